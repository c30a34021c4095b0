//! Sentences about many waiting threads: convoys, starvation, contention, crowded lines. It decides
//! nothing.

use read_rip_model::findings::{ActiveHolder, ApparentHolder, Contended, CrowdedLine, Overtaken, Queue};

use super::words::{Paragraph, Words, agree, lasting};

pub(super) fn queue(words: &mut Words<'_>, queue: &Queue) -> Paragraph {
    let (waiting, lock) = (queue.waiters.count, words.lock(queue.lock));
    // How long the last holder kept it was not recorded: it may have been kept for ever.
    let is_end_unknown = queue.holder.is_some() && words.is_end_unknown();
    let wait = match is_end_unknown {
        true => "waited for it when the process died",
        false => "wait for it, and it changes hands",
    };
    let summary = format!("{waiting} of the {} that use {lock} {wait}", words.threads(queue.users));
    let mut evidence = vec![match &queue.holder {
        Some(holder) => active_holder(words, holder),
        None => "no thread is known to hold it now".to_owned(),
    }];
    evidence.extend(queue.holder.as_ref().and_then(|holder| words.doing(holder.hold.thread)));
    evidence.extend(words.waiters(&queue.waiters));
    evidence.extend(queue.history.as_ref().map(|known| words.history(known)));
    Paragraph { summary, evidence }
}

fn active_holder(words: &Words<'_>, holder: &ActiveHolder) -> String {
    let mut line = words.holder(&holder.hold);
    match holder.words_recorded {
        Some(0) => line += &lasting("; no mark for ", holder.window_ns),
        Some(count) => line += &format!("; it recorded {count} words between the readings"),
        None => {}
    }
    if let Some(last) = holder.last.filter(|&last| Some(last) != holder.hold.location) {
        line += &format!(", last at {}", words.location(last));
    }
    line
}

pub(super) fn overtaken(words: &mut Words<'_>, overtaken: &Overtaken) -> Paragraph {
    let count = overtaken.threads;
    let summary = format!(
        "{} {} for {} while others overtake {}",
        words.threads(count),
        agree(count, "waits", "wait"),
        words.lock(overtaken.lock),
        agree(count, "it", "them")
    );
    let mut evidence = Vec::new();
    for one in &overtaken.first {
        let (thread, location) = (words.thread(one.wait.thread), words.location(one.wait.location));
        evidence.push(format!(
            "{thread} waits for it at {location}{}; threads that came later acquired it at least {} times",
            words.lasting(", for ", one.wait.for_ns),
            one.overtakes
        ));
    }
    evidence.extend(words.and_more(count.saturating_sub(overtaken.first.len())));
    Paragraph { summary, evidence }
}

pub(super) fn contended(words: &mut Words<'_>, contended: &Contended) -> Paragraph {
    let lock = words.lock(contended.lock);
    let summary = match contended.waiters.count {
        0 => format!("threads often wait for {lock}"),
        1 => format!("threads often wait for {lock}, and 1 thread waits for it now"),
        count => format!("{} wait for {lock}", words.threads(count)),
    };
    let mut evidence = Vec::new();
    evidence.extend(contended.holder.as_ref().map(|hold| words.holder(hold)));
    evidence.extend(contended.holder.as_ref().and_then(|hold| words.doing(hold.thread)));
    evidence.extend(words.waiters(&contended.waiters));
    evidence.extend(contended.history.as_ref().map(|known| words.history(known)));
    if contended.unlisted > 0 {
        let (locks, are) =
            (agree(contended.unlisted, "lock", "locks"), agree(contended.unlisted, "is", "are"));
        evidence.push(format!("{} more contended {locks} {are} not listed", contended.unlisted));
    }
    Paragraph { summary, evidence }
}

pub(super) fn crowded_line(words: &Words<'_>, line: &CrowdedLine) -> Paragraph {
    let summary = format!(
        "{} of {} {} at one line, as far as plain marks show",
        line.waiting,
        words.threads(line.threads),
        agree(line.waiting, "waits", "wait")
    );
    let others = words.and_more(line.waiting - 1).map(|others| format!(" {others}")).unwrap_or_default();
    let mut first = format!("{}{others}", words.thread(line.example));
    if let Some(last) = line.last {
        let was = agree(line.waiting, "was", "were");
        first += &format!(" {was} last at {}, in front of the lock", words.location(last));
    }
    let mut evidence = vec![first];
    evidence.extend(line.first_holders.iter().map(|holder| apparent_holder(words, holder)));
    let unlisted = line.holders.saturating_sub(line.first_holders.len());
    if unlisted > 0 {
        evidence.push(format!(
            "and {} {} to hold one",
            words.more_threads(unlisted),
            agree(unlisted, "seems", "seem")
        ));
    }
    if line.all_holders_wait {
        evidence
            .push("all apparent holders wait for a lock themselves, which looks like a deadlock".to_owned());
    } else if line.holders == 0 {
        evidence.push("the holder is not known: its marks are overwritten, or it made none".to_owned());
    }
    Paragraph { summary, evidence }
}

fn apparent_holder(words: &Words<'_>, holder: &ApparentHolder) -> String {
    let (thread, location) = (words.thread(holder.thread), words.location(holder.location));
    let now = match holder.last {
        _ if holder.is_waiting => ", and waits too".to_owned(),
        Some(last) => format!(", last at {}", words.location(last)),
        None => String::new(),
    };
    format!("{thread} seems to hold a lock of this file, acquired at {location}{now}")
}
