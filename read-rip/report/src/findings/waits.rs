//! Sentences about waits for what stands still: long waits, pile-ups, and processes in which nobody is left. It decides
//! nothing.

use read_rip_model::findings::{
    Abandoned, Asleep, HolderSleep, JoinFact, SleepFact, Stall, StandingFact, StandingHolder, Standstill,
    SuspendedFact, Unheard,
};
use read_rip_model::locks::Doing;

use super::words::{Paragraph, Words, agree, lasting, shared};
use crate::doing::doing;
use crate::names::Verbs;
use crate::units::{counted, lasted};

pub(super) fn standstill(words: &mut Words<'_>, of: &Standstill) -> Paragraph {
    let direct = of.waiters.count;
    let lock = words.lock(of.lock);
    let behind = of.blocked.saturating_sub(direct);
    let and_behind = match behind {
        0 => String::new(),
        _ => format!(", and {} behind {}", words.more_threads(behind), agree(direct, "it", "them")),
    };
    let who = match &of.holder {
        Some(holder) => {
            let does = if words.is_once(of.lock) { "runs" } else { keeps(holder) };
            format!(", which {} {does}", words.thread(holder.hold.thread))
        }
        None if words.is_from_memory(of.lock) => ", whose holder is not known".to_owned(),
        None => ", which no recorded thread is known to hold".to_owned(),
    };
    let summary = format!(
        "{} {} for {lock}{who}{}{and_behind}",
        words.threads(direct),
        agree(direct, "waits", "wait"),
        longest(words, of, direct)
    );
    let mut evidence = Vec::new();
    evidence.extend(of.holder.as_ref().map(|holder| holder_line(words, holder)));
    evidence.extend(of.holder.as_ref().and_then(|holder| match (holder.sleep, holder.join) {
        (Some(sleep), _) => Some(sleep_line(words, &sleep)),
        (None, Some(join)) => Some(join_line(words, &join)),
        (None, None) if holder.suspended.is_some() => suspended_line(words, holder.suspended.as_deref()),
        (None, None) => words.doing(holder.hold.thread),
    }));
    evidence.extend(words.waiters(&of.waiters));
    if behind > 0 {
        let locks = of.locks.saturating_sub(1);
        evidence.push(format!(
            "{} {} for {} that {} to threads behind it",
            words.more_threads(behind),
            agree(behind, "waits", "wait"),
            counted(locks.max(1) as u64, "lock"),
            agree(locks.max(1), "belongs", "belong"),
        ));
    }
    if of.on_conditions > 0 {
        evidence.push(format!(
            "{} {} on condition variables whose locks these threads use, perhaps for them",
            words.more_threads(of.on_conditions),
            agree(of.on_conditions, "waits", "wait")
        ));
    }
    evidence.extend(of.history.as_ref().filter(|of| of.contended > 0).map(|known| words.history(known)));
    if of.unlisted > 0 {
        let are = agree(of.unlisted, "lock like this is", "locks like this are");
        evidence.push(format!("{} more {are} not listed", of.unlisted));
    }
    Paragraph { summary, evidence }
}

/// What a holder does with its lock.
fn keeps(holder: &StandingHolder) -> &'static str {
    match (holder.is_steady, holder.words_recorded) {
        (Some(false), _) => "holds now",
        (_, Some(0) | None) => "keeps",
        (_, Some(_)) => "keeps while it works",
    }
}

/// How long the first of the threads has waited.
fn longest(words: &Words<'_>, of: &Standstill, direct: usize) -> String {
    let first = if direct == 1 { "" } else { "the longest " };
    let longest = lasted(words.is_end_unknown(), of.longest_ns, of.longest_at_most_ns);
    longest.map_or_else(String::new, |longest| format!(", {first}{longest}"))
}

fn holder_line(words: &Words<'_>, holder: &StandingHolder) -> String {
    let StandingHolder { hold, held_at_least_ns, .. } = holder;
    let (thread, acquired) = (words.thread(hold.thread), words.acquired(hold));
    // The time of a hold is exact, if it has one, unless the end of the process is not known.
    let bound = match hold.for_ns {
        Some(_) => words.lasting(" for ", hold.for_ns),
        None => lasting(" for at least ", *held_at_least_ns),
    };
    let Verbs { holds, held, .. } = words.verbs(hold.lock);
    let verb = if bound.is_empty() { holds.to_owned() } else { format!("has {held}") };
    let mut line = format!("{thread} {verb} it{}{bound}{acquired}", shared(hold.is_shared));
    match holder.words_recorded {
        // Below, it is said how long a task is suspended.
        Some(0) if holder.suspended.is_some() => {}
        Some(0) => line += &lasting("; it recorded nothing for ", holder.window_ns),
        Some(count) => line += &format!("; it recorded {count} words between the readings"),
        None => {}
    }
    // The place of the acquisition is in the line already.
    let is_shown = |last| Some(last) != hold.location && holder.suspended.is_none();
    if let Some(last) = holder.last.filter(|&last| is_shown(last)) {
        line += &format!(", last at {}", words.location(last));
    }
    line
}

fn sleep_line(words: &mut Words<'_>, sleep: &HolderSleep) -> String {
    let what = asleep(sleep.what, &words.lock(sleep.lock));
    let limit = if sleep.is_timed { ", with a time limit" } else { "" };
    let location = words.location(sleep.location);
    format!("meanwhile it waits {what}, at {location}{limit}{}", words.lasting(", for ", sleep.for_ns))
}

/// What a task does that holds a lock over an await.
pub(super) fn suspended_line(words: &Words<'_>, suspended: Option<&SuspendedFact>) -> Option<String> {
    let of = suspended?;
    let lasting = words.lasting_at_most(" for", of.is_at_most, of.for_ns);
    let at = of.location.map(|location| format!(" at {}", words.location(location)));
    if !of.is_await {
        let last = at.map(|at| format!("; it was last{at}"));
        return Some(format!("meanwhile it is suspended{lasting}{}", last.unwrap_or_default()));
    }
    Some(format!(
        "meanwhile it is suspended{}{lasting}, and holds the lock over that await",
        at.unwrap_or_default()
    ))
}

fn join_line(words: &Words<'_>, join: &JoinFact) -> String {
    let limit = if join.is_timed { ", with a time limit" } else { "" };
    let (joined, location) = (words.thread(join.joined), words.location(join.location));
    let lasting = words.lasting(", for ", join.for_ns);
    format!("meanwhile it waits for the end of {joined}, at {location}{limit}{lasting}")
}

/// On what a thread waits: `lock` is the name of that, or of the lock that it has released meanwhile.
fn asleep(what: Asleep, lock: &str) -> String {
    match what {
        Asleep::Lock => format!("for {lock}"),
        Asleep::Condition => format!("on a condition variable, with the lock {lock}"),
        Asleep::Semaphore => format!("for a unit of the semaphore {lock}"),
        Asleep::Barrier => format!("at the barrier {lock}"),
        Asleep::Message => format!("for a message, or for room for one, in {lock}"),
        Asleep::Wake => "to be woken by another thread".to_owned(),
        Asleep::Notification => format!("for {lock}"),
        Asleep::Thread => "for the end of a thread".to_owned(),
    }
}

pub(super) fn stall(words: &Words<'_>, of: &Stall) -> Paragraph {
    let kinds = [
        (of.on_locks, Doing::WaitsForLock),
        (of.on_threads, Doing::WaitsForThread),
        (of.inside, Doing::WaitsInside),
    ];
    let kinds = kinds.into_iter().filter(|&(count, _)| count > 0);
    let parts: Vec<String> = kinds.map(|(count, kind)| format!("{count} {}", doing(kind, count))).collect();
    let summary = format!(
        "no thread moves{}; of {}, {}",
        lasting(", for at least ", of.window_ns),
        words.threads(of.threads),
        parts.join(", ")
    );
    let line = |fact: &StandingFact| {
        let place = fact.location.map_or_else(String::new, |place| format!(" at {}", words.location(place)));
        let others = match fact.count - 1 {
            0 => String::new(),
            others => format!("; so {} {}", agree(others, "does", "do"), words.more_threads(others)),
        };
        format!("{} {}{place}{others}", words.thread(fact.thread), doing(fact.doing, 1))
    };
    Paragraph { summary, evidence: of.first.iter().map(line).collect() }
}

pub(super) fn abandoned(words: &mut Words<'_>, of: &Abandoned) -> Paragraph {
    let summary = format!(
        "all {} wait, and none is left to wake another one{}",
        words.threads(of.threads),
        words.lasting(", for ", of.for_ns)
    );
    let mut evidence: Vec<String> = of.first.iter().map(|one| asleep_line(words, one)).collect();
    evidence.extend(words.and_more(of.threads.saturating_sub(of.first.len())));
    Paragraph { summary, evidence }
}

pub(super) fn unheard(words: &mut Words<'_>, of: &Unheard) -> Paragraph {
    let is_notification = of.first.what == Asleep::Notification;
    let (what, is_given, left) = match is_notification {
        true => ("for a notification", "given", "nobody is left to give it"),
        false => ("on a condition variable", "signalled", "no thread is left to signal it"),
    };
    let count = |count: usize| match is_notification {
        true => counted(count as u64, "task"),
        false => words.threads(count),
    };
    let (waiting, all) = (count(of.waiting), count(of.threads));
    let summary = format!(
        "{waiting} {} {what} that was {is_given} when nobody waited, and {left}{}",
        agree(of.waiting, "waits", "wait"),
        words.lasting(", for ", of.first.for_ns)
    );
    let mut evidence = vec![asleep_line(words, &of.first)];
    evidence.extend(words.and_more(of.waiting - 1));
    let (thread, location) = (words.thread(of.signaller), words.location(of.signalled_at));
    evidence.push(match is_notification {
        true => format!("{thread} notified all who waited at {location}, and nobody did"),
        false => format!("{thread} signalled it last at {location}, and no thread waited"),
    });
    evidence.push(format!("all {all} of the process wait"));
    Paragraph { summary, evidence }
}

fn asleep_line(words: &mut Words<'_>, one: &SleepFact) -> String {
    let (thread, location) = (words.thread(one.thread), words.location(one.location));
    let lock = words.lock(one.lock);
    let what = asleep(one.what, &lock);
    let comma = if one.what == Asleep::Condition { "," } else { "" };
    format!("{thread} waits {what}{comma} at {location}{}", words.lasting(", for ", one.for_ns))
}
