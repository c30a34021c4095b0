//! Sentences about tasks that nobody polls, and polls that do not return. It decides nothing.

use read_rip_model::findings::{BusyRuntime, FullChannel, NeverWoken, PollFact, ReadyTasks, Unpolled};
use read_rip_ring::task_number;

use super::words::{Paragraph, Words, agree};
use crate::names::LockNames;
use crate::units::counted;

pub(super) fn busy_runtime(words: &Words<'_>, busy: &BusyRuntime) -> Paragraph {
    let (workers, waiting) = (busy.workers, counted(busy.ready.count as u64, "task"));
    let wait = agree(busy.ready.count, "waits", "wait");
    let and_wait = if busy.ready.count > 0 { format!(", and {waiting} {wait}") } else { String::new() };
    let summary = match busy.only_thread {
        _ if busy.is_blocking => format!(
            "{waiting} {wait} for a thread of the pool for calls that block, and {} {} it",
            counted(workers as u64, "call"),
            agree(workers, "occupies", "occupy")
        ),
        Some(thread) => format!(
            "{} is in a poll that has not returned{and_wait} that it alone polls",
            words.thread(thread)
        ),
        None if workers < busy.of_workers => {
            let are = agree(workers, "is in a poll that has", "are in polls that have");
            format!("{workers} of {} {are} not returned{and_wait}", counted(busy.of_workers as u64, "worker"))
        }
        None if workers == 1 => {
            format!("the only worker of an executor is in a poll that has not returned{and_wait}")
        }
        None => format!("all {workers} workers of an executor are in polls that have not returned{and_wait}"),
    };
    let mut evidence: Vec<String> =
        busy.polls.iter().map(|poll| poll_of(words, poll, busy.is_blocking)).collect();
    let unlisted = workers.saturating_sub(busy.polls.len());
    if unlisted > 0 {
        evidence.push(format!("and {}", counted(unlisted as u64, "more poll")));
    }
    evidence.extend(ready(words, &busy.ready));
    Paragraph { summary, evidence }
}

/// A line for each poll.
pub(super) fn polls(names: &LockNames<'_>, polls: &[PollFact]) -> Vec<String> {
    let words = Words::new(names, &[]);
    polls.iter().map(|poll| poll_of(&words, poll, false)).collect()
}

fn poll_of(words: &Words<'_>, poll: &PollFact, is_call: bool) -> String {
    let task = words.thread(poll.task);
    let lasting = words.lasting_at_most(" for", poll.is_at_most, poll.for_ns);
    let by = match (poll.thread, is_call) {
        (Some(thread), true) => format!("{} has run {task}{lasting}", words.thread(thread)),
        (Some(thread), false) => format!("{} has polled {task}{lasting}", words.thread(thread)),
        (None, _) => format!("{task} has run{lasting}"),
    };
    let last = poll.location.map(|location| format!(", last at {}", words.location(location)));
    let last = last.or_else(|| poll.made_at.map(|made| format!(", made at {}", words.location(made))));
    // The record of a wait says more than the kernel.
    let doing = words
        .awaited(poll.task)
        .or_else(|| poll.thread.and_then(|thread| words.doing(thread)))
        .map(|doing| format!("; {doing}"));
    format!("{by}{}{}", last.unwrap_or_default(), doing.unwrap_or_default())
}

fn ready<'a>(words: &'a Words<'_>, ready: &'a ReadyTasks) -> impl Iterator<Item = String> + 'a {
    let lines = ready.first.iter().map(|one| {
        let what = if one.is_new { "was made and never polled" } else { "was woken and is not polled" };
        format!("{} {what}{}", words.thread(one.task), words.lasting(", for ", one.for_ns))
    });
    let unlisted = ready.count.saturating_sub(ready.first.len());
    lines.chain((unlisted > 0).then(|| format!("and {}", counted(unlisted as u64, "more task"))))
}

pub(super) fn unpolled(words: &Words<'_>, unpolled: &Unpolled) -> Paragraph {
    let count = unpolled.ready.count;
    let summary = format!(
        "{} {} ready to run, and nobody polls {}",
        counted(count as u64, "task"),
        agree(count, "is", "are"),
        agree(count, "it", "them")
    );
    let mut evidence: Vec<String> = ready(words, &unpolled.ready).collect();
    if let (Some(outer), Some(first)) = (unpolled.outer, unpolled.ready.first.first()) {
        evidence.push(format!(
            "{} is a part of {}, which polls it",
            words.thread(first.task),
            words.thread(outer)
        ));
    }
    Paragraph { summary, evidence }
}

pub(super) fn never_woken(words: &mut Words<'_>, of: &NeverWoken) -> Paragraph {
    let (tasks, are) = (counted(of.count as u64, "task"), agree(of.count, "is", "are"));
    let summary = format!("{tasks} {are} suspended, and nobody can wake {}", agree(of.count, "it", "them"));
    let mut evidence = Vec::new();
    for one in &of.first {
        let task = words.thread(one.task);
        let holds = format!(" holds {}, for which others wait, and", words.lock(one.lock));
        let suspended = &one.suspended;
        let at = match suspended.location {
            Some(location) if suspended.is_await => format!(" is suspended at {}", words.location(location)),
            Some(location) => format!(" was last at {}", words.location(location)),
            None => " sleeps".to_owned(),
        };
        let lasting = words.lasting_at_most(", for", suspended.is_at_most, suspended.for_ns);
        evidence.push(format!("{task}{holds}{at}{lasting}"));
    }
    let unlisted = of.count.saturating_sub(of.first.len());
    evidence.extend((unlisted > 0).then(|| format!("and {}", counted(unlisted as u64, "more task"))));
    Paragraph { summary, evidence }
}

pub(super) fn full_channel(words: &mut Words<'_>, channel: &FullChannel) -> Paragraph {
    let longest = channel.first.first().and_then(|first| first.for_ns);
    let summary = format!(
        "{} {} for room in a channel, and who received from it has ended{}",
        words.threads(channel.waiting),
        agree(channel.waiting, "waits", "wait"),
        words.lasting(", for ", longest)
    );
    let mut evidence = Vec::new();
    for one in &channel.first {
        let (thread, lock) = (words.thread(one.thread), words.lock(one.lock));
        let (at, lasting) = (words.location(one.location), words.lasting(", for ", one.for_ns));
        evidence.push(format!("{thread} waits for room in {lock} at {at}{lasting}"));
    }
    evidence.extend(words.and_more(channel.waiting.saturating_sub(channel.first.len())));
    let who = match task_number(channel.receiver) {
        Some(number) => format!("task {number}"),
        None => format!("thread {}", channel.receiver),
    };
    evidence.push(format!("{who}, which alone had received, has ended"));
    Paragraph { summary, evidence }
}
