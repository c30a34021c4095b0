//! The end of `check`'s text: what the threads do, and what the record cannot show. It counts nothing itself.
//!
//! ```text
//! no findings in 12 threads and 3 locks
//!     of 12 threads: 3 wait for locks (the longest for 600 ms), 9 run, or wait for something that is not recorded
//!     11 of its 23 threads recorded nothing: ...
//! ```

use std::io::{self, Write};

use read_rip_model::findings::{Balance, HelperFact, IdlePool, Outcome, TaskBalance, doing};
use read_rip_model::locks::{LockModel, LockName};

use super::advice::is_of_c;
use super::executor::executor_lines;
use super::inward::inward;
use super::locks::round;
use super::names::LockNames;
use super::outcome::{Reason, of_futures, reason};
use super::printable::printable;
use super::remarks::{Checked, looked_at};
use super::tokio_tasks::tokio_lines;
use super::units::{agree, counted, lasted};

/// What a program brings along whose locks no pthread function takes, and what its locks are called.
const OTHER_LOCKS: &[(&str, &str)] = &[
    ("libjvm.", "Java's monitors"),
    ("libgomp.", "OpenMP's locks"),
    ("libomp.", "OpenMP's locks"),
    ("libiomp", "OpenMP's locks"),
    ("libtbb.", "TBB's locks"),
    ("libQt", "Qt's locks"),
    ("libglib-2.", "GLib's locks"),
    ("libcoreclr.", ".NET's monitors"),
];

/// No more processes are named that alone can end waits.
const HELPERS_MAX: usize = 5;

/// No more barriers are named.
const BARRIERS_MAX: usize = 5;

/// The file name of the interposer.
const INTERPOSER: &str = "librip_preload.so";

/// Writes what there is to say besides the findings. `polls`: a line for each poll that kept a worker when the process
/// died.
///
/// # Errors
///
/// Those of `out`.
pub(super) fn balance(
    out: &mut dyn Write,
    checked: &Checked,
    is_without_findings: bool,
    polls: &[String],
    names: &LockNames<'_>,
) -> io::Result<()> {
    let balance = &checked.balance;
    let is_recorded = names.model.is_recorded();
    let (all, locks) = (counted(checked.threads as u64, "thread"), counted(checked.locks as u64, "lock"));
    if is_without_findings {
        let looked_at = looked_at(checked, locks.clone());
        match reason(balance, names) {
            // All findings may be suppressed, or less certain than what was asked for.
            None => writeln!(out, "no findings in {looked_at}")?,
            Some(Reason { sentence, more }) => {
                let of = match balance.outcome {
                    // Nothing else is known of the process.
                    Outcome::Hidden => return writeln!(out, "{sentence}{more}"),
                    Outcome::NothingRecorded | Outcome::OtherLocks | Outcome::UnseenTasks => all,
                    Outcome::AllTasksWait => {
                        format!("{}, {locks}", counted(balance.tasks.present as u64, "task"))
                    }
                    Outcome::AllWorkersBusy
                    | Outcome::WorkersBusy
                    | Outcome::RareWorkersBusy
                    | Outcome::WaitsWithinPoll => looked_at,
                    _ => format!("{all}, {locks}"),
                };
                writeln!(out, "{sentence}{more} ({of})")?;
                polls.iter().try_for_each(|poll| writeln!(out, "    {poll}"))?;
            }
        }
    }
    let of_futures = balance.unrecorded_futures.as_ref().map(|of| of_futures(of, names));
    of_futures.into_iter().flatten().try_for_each(|line| writeln!(out, "    {line}"))?;
    let unrecorded = is_recorded.then(|| unrecorded(balance, names)).flatten();
    let is_said = is_without_findings && balance.outcome == Outcome::AllWorkersBusy;
    let of_tasks = tasks(&balance.tasks, names.model.is_end_unknown, is_said);
    // What is wrong comes first, and a finding is what to do.
    let executor = if is_without_findings { executor_lines(names) } else { Vec::new() };
    let left = if is_without_findings { balance.left_waiting.lines(names) } else { Vec::new() };
    let first = [waits(balance, names.model.is_end_unknown), of_tasks].into_iter().flatten();
    let lines = first.chain(left).chain([unrecorded, histories(checked, names)].into_iter().flatten());
    let lines = lines.chain(helpers(balance, names)).chain(inward(names));
    let lines = lines.chain(executor).chain(tokio_lines(names)).chain(barriers(names));
    let lines = lines.chain(alone(balance, names).filter(|_| is_without_findings));
    for line in lines.chain(balance.pools.iter().map(|one| pool(one, names))) {
        writeln!(out, "    {line}")?;
    }
    if let Some(cycles) = &checked.slow_cycles {
        writeln!(out, "    {}", cycles.line(&printable(&checked.ring)))?;
    }
    Ok(())
}

/// What a core file does not say, if a thread waits for it.
fn alone(balance: &Balance, names: &LockNames<'_>) -> Option<String> {
    let is_core = names.seen.is_some_and(|seen| seen.standings.is_final);
    let is_any_outside = balance.doing.keys().any(|doing| doing.is_outside());
    (is_core && is_any_outside).then(|| {
        "a core file has no other processes: who could have ended a wait for input is not known".to_owned()
    })
}

/// What the tasks do, in one line; `None` if there are none.
fn tasks(of: &TaskBalance, is_end_unknown: bool, is_saturation_said: bool) -> Option<String> {
    if of.present == 0 {
        return None;
    }
    let longest = lasted(is_end_unknown, of.longest_ns).map(|lasted| format!(" (the longest {lasted})"));
    let longest = longest.unwrap_or_default();
    let parts = parts([
        (of.on_locks, ["waits for a lock", "wait for locks"], &*longest),
        (of.running, ["is polled", "are polled"], ""),
        (of.ready, ["is ready to be polled", "are ready to be polled"], ""),
        (of.suspended, ["is suspended", "are suspended"], ""),
    ]);
    let parts: Vec<String> = parts.collect();
    let all = counted(of.present as u64, "task");
    let saturated = (of.are_all_saturated && !is_saturation_said).then_some(
        "; all workers of an executor were in polls when the process died: \
         if that lasted, nothing else of it could run",
    );
    let parts = parts.join(", ") + saturated.unwrap_or_default();
    Some(format!("of {all}: {parts}"))
}

/// The barriers at which threads wait for others, as far as it is known how many they take.
fn barriers<'a>(names: &'a LockNames<'_>) -> impl Iterator<Item = String> + 'a {
    let waited = names.model.locks.iter().filter_map(|lock| {
        let name = match &lock.name {
            LockName::Given(_) | LockName::Symbol(_) if !names.texts.is_verbose => names.lock(lock),
            LockName::Given(_) | LockName::Symbol(_) => format!("{} ({:#x})", names.lock(lock), lock.address),
            _ => format!("{:#x}", lock.address),
        };
        Some(format!("barrier {name}: {}", round(lock)?))
    });
    waited.take(BARRIERS_MAX)
}

/// What the threads of a process do, in one line; `None` if nothing is known of that.
pub fn doing_now(of: &Balance, model: &LockModel) -> Option<String> {
    waits(of, model.is_end_unknown)
}

/// The processes each of which alone can end waits, a line each.
pub fn helpers(of: &Balance, names: &LockNames<'_>) -> Vec<String> {
    let line = |helper: &HelperFact| {
        let HelperFact { pid, name, does, threads, first, .. } = helper;
        let whose = match threads {
            1 => format!("the wait of {}", names.thread(*first)),
            threads => format!("the waits of {}", counted(*threads as u64, "thread")),
        };
        let does = match *does {
            "stopped" => "it is stopped",
            "waits-for-itself" => "its threads all wait for one another",
            "runs" => "it runs",
            _ => "it sleeps",
        };
        format!("only {}[{pid}] can end {whose}, and {does}; next: read-rip check {pid}", printable(name))
    };
    let more = of.helpers.len().saturating_sub(HELPERS_MAX);
    let more = (more > 0).then(|| format!("{more} more processes can end waits of one thread or more alone"));
    of.helpers.iter().take(HELPERS_MAX).map(line).chain(more).collect()
}

/// What its tasks do, in one line; `None` if there are none.
pub fn tasks_now(of: &Balance, model: &LockModel) -> Option<String> {
    tasks(&of.tasks, model.is_end_unknown, false)
}

/// `2 threads recorded nothing`.
pub fn recorded_nothing(threads: usize) -> String {
    format!("{} recorded nothing", counted(threads as u64, "thread"))
}

/// `2 wait for locks`: how many, what they do, and more words. Nothing is said of none.
fn parts<'a>(of: impl IntoIterator<Item = (usize, [&'a str; 2], &'a str)>) -> impl Iterator<Item = String> {
    let some = of.into_iter().filter(|&(count, ..)| count > 0);
    some.map(|(count, words, more)| format!("{count} {}{more}", words[usize::from(count != 1)]))
}

fn waits(of: &Balance, is_end_unknown: bool) -> Option<String> {
    let recorded = [
        (of.on_conditions, ["waits on a condition variable", "wait on condition variables"]),
        (of.on_semaphores, ["waits for a semaphore", "wait for semaphores"]),
        (of.on_barriers, ["waits at a barrier", "wait at barriers"]),
        (of.on_messages, ["waits for a message, or to be woken", "wait for messages, or to be woken"]),
        (of.on_threads, ["waits for the end of a thread", "wait for the ends of threads"]),
    ];
    let waiting = of.on_locks + recorded.iter().map(|(count, _)| count).sum::<usize>();
    if waiting == 0 && of.doing.is_empty() {
        return None;
    }
    let first = if of.on_locks == 1 { "" } else { "the longest " };
    let longest = lasted(is_end_unknown, of.longest_ns);
    let longest = longest.map_or_else(String::new, |longest| format!(" ({first}{longest})"));
    let seen: usize = of.doing.values().sum();
    let others = of.present - waiting - seen;
    let on_locks = (of.on_locks, ["waits for a lock", "wait for locks"], &*longest);
    let unknown = [
        "runs, or waits for something that is not recorded",
        "run, or wait for something that is not recorded",
    ];
    let kinds = recorded.into_iter().chain([(others, unknown)]).map(|(count, words)| (count, words, ""));
    let seen = of.doing.iter().map(|(&what, &count)| format!("{count} {}", doing(what, count)));
    let parts: Vec<String> = parts([on_locks].into_iter().chain(kinds)).chain(seen).collect();
    Some(format!("of {}: {}", counted(of.present as u64, "thread"), parts.join(", ")))
}

fn unrecorded(of: &Balance, names: &LockNames<'_>) -> Option<String> {
    let (modules, is_of_c) = (names.locations.modules(), is_of_c(names));
    let is_interposed = modules.iter().any(|module| module.path.ends_with(INTERPOSER));
    let others = of.unrecorded.filter(|&unrecorded| unrecorded > 0);
    let what = match (others, of.outcome) {
        (Some(others), _) => {
            let all = counted((of.present + others) as u64, "thread");
            format!("{others} of its {all} recorded nothing: ")
        }
        (None, Outcome::NothingRecorded) => String::new(),
        (None, _) => return None,
    };
    let files = modules.iter().filter_map(|module| module.path.file_name()?.to_str());
    let mut brought: Vec<&str> = files
        .flat_map(|name| OTHER_LOCKS.iter().filter(move |(prefix, _)| name.starts_with(prefix)))
        .map(|&(_, locks)| locks)
        .collect();
    brought.sort_unstable();
    brought.dedup();
    let why = match (is_interposed, brought.is_empty()) {
        (true, false) => {
            format!("{} are no pthread locks, and the interposer does not see them", brought.join(" and "))
        }
        (true, true) if is_of_c => "the interposer sees pthread locks only: mark other locks with RIP_LOCK_WAIT, \
                                    RIP_LOCK_ACQUIRED and RIP_LOCK_RELEASED"
            .to_owned(),
        (true, true) => {
            "the interposer sees pthread locks only, and not those of Rust's standard library, of \
                         parking_lot, or of async runtimes: use librip::sync, or librip::raw, and rebuild"
                .to_owned()
        }
        (false, _) if of.tasks.present > 0 => {
            "to see which tasks wait for locks and channels, use those of librip_tokio::sync, or of librip-async-lock"
                .to_owned()
        }
        (false, _) => {
            let these = match others {
                Some(1) => "it uses no recorded lock and passes no mark",
                _ => "they use no recorded lock and pass no mark",
            };
            let locks = match is_of_c {
                true => "rip::mutex and the other locks of rip.hpp",
                false => "the locks of librip::sync",
            };
            format!("{these}: use {locks}, mark the locks, or use read-rip run --preload")
        }
    };
    Some(format!("{what}{why}"))
}

fn histories(checked: &Checked, names: &LockNames<'_>) -> Option<String> {
    let overwritten = checked.balance.overwritten;
    let (one, several) =
        if checked.tasks > 0 { ("thread or task", "threads or tasks") } else { ("thread", "threads") };
    // An order takes two locks.
    (overwritten > 0 && names.model.locks.len() > 1).then(|| {
        let keeps_more = checked
            .longer_slot_words
            .map_or_else(String::new, |words| format!("; RIP_WORDS={words} keeps more"));
        format!(
            "older events of {overwritten} {} were overwritten, so earlier orders of locks are not known{keeps_more}",
            agree(overwritten, one, several)
        )
    })
}

fn pool(of: &IdlePool, names: &LockNames<'_>) -> String {
    let lock = names.lock(&names.model.locks[of.lock]);
    let wait = if of.waiting == 1 { "waits its turn" } else { "wait their turn" };
    let who = if of.are_tasks { "task" } else { "thread" };
    let lasting = lasted(names.model.is_end_unknown, of.longest_ns);
    let lasting = lasting.map_or_else(String::new, |lasting| format!(", the longest {lasting}"));
    let (place, holder) = (names.location(of.location), names.thread(of.holder));
    let waiting = counted(of.waiting as u64, who);
    format!(
        "{waiting} {wait} for {lock} at {place}{lasting}, and {holder} has it: this is an idle pool, or {holder} is \
         stuck there"
    )
}
