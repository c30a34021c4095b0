//! Makes a picture of a process of what was read. It reads nothing.

use std::cmp::Reverse;
use std::io;

use foldhash::HashMap;
use read_rip_case::{Reading, now_ns};
use read_rip_model::findings::Finding;
use read_rip_model::locks::{
    self, Awaited, HoldState, LockModel, Overview, Rate, Summary, TaskDoes, ThreadId, ThreadLocks, per_second,
};
use read_rip_model::threads::ThreadState;
use read_rip_report::{self as report, ActivityWords, LockNames, Sources, printable};
use read_rip_report::{LockKey, LockRow, Picture, Severity, Texts, ThreadKey, ThreadRow};

use super::check::Verdict;

/// How bad the worst of these findings is, which is the first one.
pub(super) fn severity(found: &[Finding]) -> Severity {
    found.first().map_or(Severity::None, |worst| worst.confidence.into())
}

/// Makes a picture of what was found, with at most so many locks: the first ones of this list. `period_ns` is the time
/// between two readings, if there were two.
pub(super) fn make(
    Verdict { found, checked }: &Verdict,
    names: &LockNames<'_>,
    reading: &Reading,
    period_ns: Option<u64>,
    overview: &Overview,
    locks_max: usize,
) -> io::Result<Picture> {
    let model = names.model;
    let mut findings = Vec::new();
    report::findings(&mut findings, found, checked, names, &Sources::default())?;
    let mut findings = report::plain_lines(&findings);
    findings.extend(defects(reading));
    let verdict = report::verdict(&checked.balance, found, names);
    let more_locks = overview.hidden + overview.locks.len().saturating_sub(locks_max);
    let mut texts = Texts::default();
    let polled = polled(model);
    let row_of = |id: ThreadId| thread(id, names, polled.get(&id).copied(), &mut texts);
    let mut threads: Vec<(u8, ThreadRow)> = (0..model.threads.len()).filter_map(row_of).collect();
    threads.sort_by_key(|(rank, row)| (*rank, Reverse(row.processor.map(|of| of.percent))));
    let advanced: Option<u64> =
        model.threads.iter().filter_map(|thread| thread.advanced).reduce(|a, b| a + b);
    let words_per_second = advanced.zip(period_ns).map(|(words, period_ns)| per_second(words, period_ns));
    let locks = overview.locks.iter().take(locks_max);
    let of_ring = reading.pid().map_or_else(String::new, |pid| pid.to_string());
    let doing = [report::doing_now(&checked.balance, model), report::tasks_now(&checked.balance, model)];
    Ok(Picture {
        taken_ns: now_ns(),
        heading: reading.heading(&reading.threads()),
        verdict,
        severity: severity(found),
        doing: doing.into_iter().flatten().collect::<Vec<_>>().join("; "),
        slow_cycles: checked.slow_cycles.as_ref().map_or_else(String::new, |cycles| cycles.line(&of_ring)),
        is_final: reading.is_final(),
        findings,
        locks: locks.map(|one| row(one, names, period_ns)).collect::<io::Result<_>>()?,
        more_locks,
        threads: threads.into_iter().map(|(_, row)| row).collect(),
        texts: texts.into_all(),
        words_per_second,
        is_partial: reading.losses.overwritten > 0,
    })
}

fn defects(reading: &Reading) -> impl Iterator<Item = String> {
    reading.snapshot.defects.iter().map(|defect| printable(&format!("Damaged: {defect}")).into_owned())
}

fn row(summary: &Summary, names: &LockNames<'_>, period_ns: Option<u64>) -> io::Result<LockRow> {
    let lock = &names.model.locks[summary.lock];
    let mut text = Vec::new();
    report::locks(&mut text, std::iter::once(summary), names.model.pid, names, false)?;
    let mut lines = report::plain_lines(&text);
    let rate = period_ns.map(|ns| Rate::of(&lock.record, ns, names.model.has_lost_between));
    let holders = summary.holders.iter().filter(|group| group.state == HoldState::Held);
    let holder = holders.flat_map(|group| &group.threads).next();
    // The first line is the heading. The second one names the thread that holds the lock.
    let held = lines.get(1).map_or("", |line| line.trim());
    let is_held = !summary.holders.is_empty() || !lock.waiters.is_empty();
    let held = if is_held { held.trim_start_matches("held by ").to_owned() } else { String::new() };
    lines.extend(rate.as_ref().map(report::rate));
    Ok(LockRow {
        key: LockKey { pid: lock.pid, address: lock.address },
        name: names.lock(lock),
        waiters: lock.waiting(),
        longest_ns: summary.waiters.iter().filter_map(|group| group.longest_ns).max(),
        acquisitions: lock.record.acquisitions,
        contended: lock.record.contended,
        waits: summary.waits,
        holds: summary.holds,
        held,
        rate,
        holder: holder.map(|&thread| key(&names.model.threads[thread])),
        lines,
    })
}

fn key(of: &ThreadLocks) -> ThreadKey {
    ThreadKey { pid: of.pid, tid: of.tid }
}

/// The task that each thread polls, not those within it.
fn polled(model: &LockModel) -> HashMap<ThreadId, ThreadId> {
    let by = |(id, of): (ThreadId, &ThreadLocks)| {
        let task = of.task.as_deref().filter(|task| task.is_polled && task.outer.is_none())?;
        Some((task.thread?, id)).filter(|_| of.state == ThreadState::Present)
    };
    model.threads.iter().enumerate().filter_map(by).collect()
}

/// A thread or task that exists, and its rank: those whose locks others wait for come first, then those that wait, and
/// then those that hold a lock. `polled` is the task that the thread polls.
fn thread(
    id: ThreadId,
    names: &LockNames<'_>,
    polled: Option<ThreadId>,
    texts: &mut Texts,
) -> Option<(u8, ThreadRow)> {
    let of = &names.model.threads[id];
    if of.state != ThreadState::Present {
        return None;
    }
    let is_blocked = of.is_blocked();
    let words = ActivityWords::new(names).zip(of.seen);
    let task = of.task.as_deref();
    let doing = match (task, of.awaited(), words) {
        (Some(_), ..) => report::task_doing_since(id, names),
        (None, Some(awaited), _) => format!("waiting {}", report::awaited_words(awaited.object(), names)),
        (None, None, Some((words, seen))) => words.of_process(&seen).without_share(seen.index),
        (None, None, None) => String::new(),
    };
    let polling = polled.map(|task| format!("polling {}", names.thread(task)));
    let doing =
        [doing].into_iter().chain(polling).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let place = match task.map(|task| locks::task_place(of, task)) {
        Some(place) => place.location.filter(|_| !place.is_where_made),
        None => {
            let awaited = of.awaited().and_then(|awaited| awaited.location());
            awaited.or(of.seen.and_then(|seen| seen.place)).or(of.last)
        }
    };
    let is_idle = is_blocked || task.is_some_and(|task| locks::task_does(of, task) == TaskDoes::Suspended);
    let awaits_owner = matches!(of.awaited(), Some(Awaited::Lock(_) | Awaited::End(_)));
    let is_wanted = of.holds.iter().any(|hold| !names.model.locks[hold.lock].waiters.is_empty());
    let rank = match (awaits_owner, of.holds.is_empty()) {
        _ if is_wanted => 0,
        (true, false) => 1,
        (true, true) => 2,
        (false, false) => 3,
        (false, true) if is_idle => 5,
        (false, true) => 4,
    };
    let row = ThreadRow {
        key: key(of),
        name: names.thread(id).into(),
        doing: texts.add(doing),
        place: texts.add(place.map_or_else(String::new, |place| names.location(place))),
        is_task: task.is_some(),
        is_blocked,
        holds: u32::try_from(names.model.certain_holds(of).count()).unwrap_or(u32::MAX),
        advanced: of.advanced,
        processor: words.and_then(|(words, seen)| words.of_process(&seen).processor(seen.index)),
    };
    Some((rank, row))
}
