//! Sentences about holders: threads that no longer exist, threads of a forked child's parent, and idle threads. It
//! decides nothing.

use read_rip_model::findings::{DeadHolder, IdleHolder, Orphan};

use super::waits::suspended_line;
use super::words::{Paragraph, Words, agree, shared};
use crate::units::duration;

pub(super) fn dead_holder(words: &mut Words<'_>, holder: &DeadHolder) -> Paragraph {
    let DeadHolder { hold, has_exited, waiters } = holder;
    let fate = if *has_exited { "has exited" } else { "disappeared without exiting" };
    let waiting = match waiters.count {
        0 => "no thread waits for it".to_owned(),
        count => format!("{} {} for it", words.threads(count), agree(count, "waits", "wait")),
    };
    let summary = format!("{} is held by a thread that {fate}; {waiting}", words.lock(hold.lock));
    let mut evidence = vec![words.holder(hold)];
    evidence.extend(words.waiters(waiters));
    Paragraph { summary, evidence }
}

pub(super) fn orphan(words: &mut Words<'_>, orphan: &Orphan) -> Paragraph {
    let count = orphan.waiters.count;
    let summary = format!(
        "{} of the forked process {} {} for {}, which no thread there holds",
        words.threads(count),
        orphan.pid,
        agree(count, "waits", "wait"),
        words.lock(orphan.lock)
    );
    let mut evidence = words.waiters(&orphan.waiters);
    if orphan.locked_at_fork {
        let why = "a thread of the parent held it at the fork; that thread does not exist in the child";
        evidence.push(why.to_owned());
    }
    if let Some(hold) = &orphan.parent {
        let (thread, acquired) = (words.thread(hold.thread), words.acquired(hold));
        evidence.push(format!("in the parent, {thread} holds it now{acquired}"));
    }
    Paragraph { summary, evidence }
}

pub(super) fn idle_holder(words: &mut Words<'_>, holder: &IdleHolder) -> Paragraph {
    let IdleHolder { hold, at_least_ns, last, suspended, waiters } = holder;
    let thread = words.thread(hold.thread);
    let at_least = if hold.for_ns.is_some() && !words.is_end_unknown() { "" } else { "at least " };
    let summary = format!(
        "{thread} has held {}{} for {at_least}{} and does nothing",
        words.lock(hold.lock),
        shared(hold.is_shared),
        duration(*at_least_ns)
    );
    let last = last.filter(|&last| Some(last) != hold.location && suspended.is_none());
    let last = last.map(|last| format!(", and was last at {}", words.location(last)));
    let acquired =
        hold.location.map(|location| format!("{thread} acquired it at {}", words.location(location)));
    let mut evidence: Vec<String> =
        acquired.map(|acquired| acquired + &last.unwrap_or_default()).into_iter().collect();
    evidence.extend(suspended_line(words, suspended.as_ref()));
    evidence.extend(words.doing(hold.thread));
    evidence.extend(words.waiters(waiters));
    Paragraph { summary, evidence }
}
