//! The view of locks: for each, its type, its holders, its waiters, and how it was used.
//!
//! ```text
//! CACHE_LOCK  mutex at 0x5555555a4010
//!   held by worker 1[11] at server::cache::get cache.rs:12, for 3.2 s
//!   19116 threads wait at server::cache::get cache.rs:12, the longest for 3.1 s
//!   204 known acquisitions by 12 threads, 31 of them contended (15 %)
//!   waits: p50 1.2 ms, p90 4.0 ms, p99 9.1 ms, max 9.1 ms; known 31 times
//!   held: p50 2.0 us, p90 7.1 us, p99 8.4 us, max 8.4 us; known 31 times
//! ```
//!
//! What is not known is left out, except the holder of a lock with waiters. This file chooses and orders no locks.

use std::io::{self, Write};

use foldhash::HashMap;
use read_rip_model::findings::Verbs;
use read_rip_model::locks::{
    HoldState, Holders, Lock, LockName, Ownership, Quantiles, Rate, Summary, ThreadId, Waiters,
};
use read_rip_model::threads::ThreadState;
use read_rip_ring::LockType;

use super::activity::ActivityWords;
use super::names::{LockNames, awaited_words, lock_type};
use super::rows::Rows;
use super::units::{counted, duration, lasted, notable};

/// Of so many of the threads that wait at one place the view says where the kernel contradicts the record.
const CONTRADICTIONS_MAX: usize = 5;

/// Writes locks below the heading of a process.
///
/// # Errors
///
/// Those of `out`.
pub fn locks<'s>(
    out: &mut dyn Write,
    summaries: impl Iterator<Item = &'s Summary>,
    pid: u32,
    names: &LockNames<'_>,
    is_verbose: bool,
) -> io::Result<()> {
    for summary in summaries {
        let lock = &names.model.locks[summary.lock];
        heading(out, lock, pid, names)?;
        let mut writer = LockWriter { out: &mut *out, names, is_verbose };
        writer.holders(summary, lock)?;
        for waiters in &summary.waiters {
            writer.waiters(waiters, "", "")?;
        }
        writer.record(lock)?;
        writer.quantiles("waits", summary.waits.as_ref())?;
        writer.quantiles("held", summary.holds.as_ref())?;
    }
    Ok(())
}

/// Writes the numbers of locks, a line each; nothing of fewer than two.
///
/// # Errors
///
/// Those of `out`.
pub fn locks_table<'s>(
    out: &mut dyn Write,
    summaries: impl Iterator<Item = &'s Summary>,
    names: &LockNames<'_>,
) -> io::Result<()> {
    let mut rows = Rows::new(["WAITING", "LONGEST", "ACQUIRED", "CONTENDED"], ["LOCK", "HOLDER"]);
    let summaries: Vec<&Summary> = summaries.collect();
    let at_least = if names.model.is_end_unknown { ">=" } else { "" };
    let mut namesakes: HashMap<String, usize> = HashMap::default();
    for summary in &summaries {
        *namesakes.entry(lock_name(&names.model.locks[summary.lock], names)).or_default() += 1;
    }
    for summary in &summaries {
        let lock = &names.model.locks[summary.lock];
        let mut name = lock_name(lock, names);
        if namesakes[&name] > 1 {
            name = format!("{name} {:#x}", lock.address);
        }
        let waiters = summary.waiters.iter().chain(&summary.futures_waiting);
        let longest = notable(names.model.is_end_unknown, waiters.filter_map(|group| group.longest_ns).max());
        let holders = summary.holders.iter().filter(|group| group.state == HoldState::Held);
        let holders: Vec<ThreadId> = holders.flat_map(|group| group.threads.iter().copied()).collect();
        let holder = match holders[..] {
            [] => String::new(),
            [holder] if lock.is_holder_presumed() => format!("presumably {}", names.thread(holder)),
            [holder] => names.thread(holder),
            _ => counted(holders.len() as u64, "thread"),
        };
        rows.add(
            [
                lock.waiting().to_string(),
                longest.map_or_else(String::new, |ns| format!("{at_least}{}", duration(ns))),
                lock.record.acquisitions.to_string(),
                lock.record.contended.to_string(),
            ],
            [name, holder],
        );
    }
    if summaries.len() > 1 { rows.write(out) } else { Ok(()) }
}

/// How many threads wait at a barrier, and how many it takes; `None` if nobody waits, or if that is not known.
pub(super) fn round(lock: &Lock) -> Option<String> {
    let (here, taken) = (lock.semaphore_waiters.len(), lock.threads_of_round?);
    let wait = if here == 1 { "waits" } else { "wait" };
    (here > 0).then(|| format!("{here} of the {taken} threads that it takes {wait} there"))
}

/// The name of a lock, or else the region of memory that it is in.
fn lock_name(lock: &Lock, names: &LockNames<'_>) -> String {
    match (names.region_of(lock), &lock.name, &lock.class) {
        (Some(region), LockName::None, None) => region.to_owned(),
        _ => names.lock(lock),
    }
}

fn heading(out: &mut dyn Write, lock: &Lock, pid: u32, names: &LockNames<'_>) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    let name = lock_name(lock, names);
    write!(out, "{bold}{name}{bold:#}  {} at {:#x}", lock_type(lock), lock.address)?;
    if lock.pid != pid {
        write!(out, " of process {}", lock.pid)?;
    }
    writeln!(out)
}

struct LockWriter<'v> {
    out: &'v mut dyn Write,
    names: &'v LockNames<'v>,
    is_verbose: bool,
}

impl LockWriter<'_> {
    fn holders(&mut self, summary: &Summary, lock: &Lock) -> io::Result<()> {
        if summary.is_contradictory {
            writeln!(
                self.out,
                "  contradictory: {} threads are recorded as holders, and one of them holds it exclusively",
                lock.holders.len()
            )?;
        }
        if summary.has_moved {
            writeln!(self.out, "  it changed hands while it was read")?;
        }
        for group in &summary.holders {
            self.holder(lock, group)?;
        }
        if let Some(said) = round(lock) {
            writeln!(self.out, "  {said}")?;
        }
        for group in &summary.semaphore_waiters {
            let what = match lock.nature.lock_type {
                LockType::Barrier => "for others ",
                LockType::Message => "for a message, or for room for one, ",
                LockType::Wake | LockType::Notification => "to be woken ",
                _ => "for a unit ",
            };
            self.waiters(group, what, "")?;
        }
        for group in &summary.condition_waiters {
            self.waiters(group, "on a condition variable ", " (the lock is released meanwhile)")?;
        }
        for group in &summary.futures_waiting {
            self.future_waits(group)?;
        }
        let is_of_future = lock.holds_of_futures().next().is_some();
        if lock.holders.is_empty() && !lock.waiters.is_empty() && !is_of_future {
            let what = if !lock.possible_holders.is_empty() {
                "no thread is certain to hold it"
            } else if self.names.model.full.contains(&lock.pid) {
                "holder not known: it may be a thread whose table of held locks is full"
            } else if self.names.model.is_for_next_in_line(summary.lock) && lock.is_held_where_recorded() {
                "nobody holds it: the first in line can have it as soon as it is polled"
            } else if lock.is_from_memory && lock.nature.ownership == Ownership::Anyone {
                "holder not known: a lock of this kind does not store it"
            } else {
                "holder not known"
            };
            writeln!(self.out, "  {what}")?;
        }
        Ok(())
    }

    fn holder(&mut self, lock: &Lock, group: &Holders) -> io::Result<()> {
        let Verbs { held, acquired: verb, .. } = Verbs::of(lock);
        let who = self.names.threads(&group.threads, self.is_verbose);
        let place = group.location.map(|location| self.names.location(location));
        let at = place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
        let acquired = place.map_or_else(String::new, |place| format!(", {verb} at {place}"));
        let is_one = group.threads.len() == 1;
        let (lasting, fate) = (self.lasting(group.threads.len(), group.longest_ns), fate(group));
        let shared = if group.is_shared { " shared" } else { "" };
        let is = if is_one { "is" } else { "are" };
        match group.state {
            HoldState::Held => {
                writeln!(self.out, "  {held}{shared} by {who}{fate}{at}{lasting}")?;
                let &[one] = &group.threads[..] else { return Ok(()) };
                self.doing(one).map_or(Ok(()), |doing| writeln!(self.out, "  {doing}"))
            }
            HoldState::Acquiring => writeln!(self.out, "  {who}{fate} {is} acquiring it{at}"),
            HoldState::Releasing => {
                writeln!(self.out, "  {who}{fate} {is} releasing it{acquired}")
            }
            HoldState::Destroyed => {
                writeln!(self.out, "  destroyed while held{shared} by {who}{fate}{acquired}")
            }
            HoldState::OfFuture => {
                let who = self.futures(&group.threads);
                writeln!(self.out, "  {held}{shared} by {who}{at}{lasting}")
            }
        }
    }

    /// What a holder does. Where its record says what it waits for, and the kernel agrees, the record has the names.
    fn doing(&self, holder: ThreadId) -> Option<String> {
        let words = ActivityWords::new(self.names)?;
        let of = &self.names.model.threads[holder];
        let is_recorded = of.slot.is_some() && words.contradiction(holder).is_none();
        match of.awaited().filter(|_| is_recorded) {
            Some(awaited) => {
                let what = awaited_words(awaited.object(), self.names);
                Some(format!("{} waits {what}", self.names.thread(holder)))
            }
            None => words.sentence(holder),
        }
    }

    /// Futures that belong to no recorded task, each of which one of these threads polled.
    fn futures(&self, polled_by: &[ThreadId]) -> String {
        let mut threads = polled_by.to_vec();
        threads.sort_unstable();
        threads.dedup();
        let threads = self.names.threads(&threads, self.is_verbose);
        match polled_by.len() {
            1 => format!("a future polled by {threads}"),
            count => format!("{count} futures polled by {threads}"),
        }
    }

    /// Futures that belong to no recorded task wait.
    fn future_waits(&mut self, group: &Waiters) -> io::Result<()> {
        let (who, location) = (self.futures(&group.threads), self.names.location(group.location));
        let waits = if group.threads.len() == 1 { "waits" } else { "wait" };
        let shared = if group.is_shared { "(shared) " } else { "" };
        let lasting = self.lasting(group.threads.len(), group.longest_ns);
        writeln!(self.out, "  {who} {waits} {shared}at {location}{lasting}")
    }

    /// `what` they wait for, and what has to be said besides.
    fn waiters(&mut self, group: &Waiters, what: &str, besides: &str) -> io::Result<()> {
        let who = self.names.threads(&group.threads, self.is_verbose);
        let waits = if group.threads.len() == 1 { "waits" } else { "wait" };
        let shared = if group.is_shared && what.is_empty() { "(shared) " } else { "" };
        let timed = if group.is_timed { "with a time limit " } else { "" };
        let location = self.names.location(group.location);
        let lasting = self.lasting(group.threads.len(), group.longest_ns);
        writeln!(self.out, "  {who} {waits} {shared}{what}{timed}at {location}{lasting}{besides}")?;
        let Some(words) = ActivityWords::new(self.names) else { return Ok(()) };
        let said = group.threads.iter().filter_map(|&thread| Some((thread, words.contradiction(thread)?)));
        for (thread, said) in said.take(CONTRADICTIONS_MAX) {
            writeln!(self.out, "  but the kernel says that {} is {said}", self.names.thread(thread))?;
        }
        Ok(())
    }

    /// For how long, after a comma.
    fn lasting(&self, threads: usize, longest_ns: Option<u64>) -> String {
        let first = if threads == 1 { "" } else { "the longest " };
        let model = self.names.model;
        let longest = lasted(model.is_end_unknown, longest_ns);
        longest.map_or_else(String::new, |longest| format!(", {first}{longest}"))
    }

    fn record(&mut self, lock: &Lock) -> io::Result<()> {
        let record = &lock.record;
        if record.acquisitions == 0 && record.failed_tries == 0 {
            return Ok(());
        }
        write!(self.out, "  {}", counted(record.acquisitions, "known acquisition"))?;
        if record.owners > 1 {
            write!(self.out, " by {} threads", record.owners)?;
        }
        if record.contended > 0 && lock.nature.is_wrapped {
            let percent = (200 * record.contended / record.acquisitions.max(1)).div_ceil(2).max(1);
            write!(self.out, ", {} of them contended ({percent} %)", record.contended)?;
        } else if record.contended > 0 {
            // Marks by hand may mark a wait before each acquisition.
            write!(self.out, ", {} of them after a marked wait", record.contended)?;
        }
        if record.failed_tries > 0 {
            let tries = if record.failed_tries == 1 { "try" } else { "tries" };
            write!(self.out, "; {} {tries} failed", record.failed_tries)?;
        }
        writeln!(self.out)
    }

    fn quantiles(&mut self, what: &str, of: Option<&Quantiles>) -> io::Result<()> {
        let Some(&Quantiles { count, p50_ns, p90_ns, p99_ns, max_ns }) = of else { return Ok(()) };
        let [p50, p90, p99, max] = [p50_ns, p90_ns, p99_ns, max_ns].map(duration);
        match count {
            1 => writeln!(self.out, "  {what}: {max}, known once"),
            _ => writeln!(
                self.out,
                "  {what}: p50 {p50}, p90 {p90}, p99 {p99}, max {max}; known {count} times"
            ),
        }
    }
}

/// How often a lock was acquired between two readings.
pub fn rate(rate: &Rate) -> String {
    let Rate { acquired, contended, is_estimate } = *rate;
    let (about, why) = match is_estimate {
        true => ("about ", "; some words were replaced before they were read"),
        false => ("", ""),
    };
    let acquired = counted(acquired, "acquisition");
    format!(
        "  between the last two readings: {about}{acquired} a second, {contended} of them after a wait{why}"
    )
}

/// What happened to holders that no longer exist.
fn fate(group: &Holders) -> &'static str {
    match (group.thread_state, group.threads.len()) {
        (ThreadState::Present, _) => "",
        (ThreadState::Exited, 1) => ", which has exited,",
        (ThreadState::Exited, _) => ", which have exited,",
        (ThreadState::Abandoned, _) => ", which disappeared without exiting,",
    }
}
