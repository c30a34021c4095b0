//! Sentences about wrong use of a lock: destroyed while held, refused by the C library, released without an
//! acquisition, acquired twice, and read twice. It
//! decides nothing.

use read_rip_model::findings::{
    DestroyedWhileHeld, NestedReads, Refusal, RefusedCall, SecondAcquisition, StrayRelease,
};

use super::words::{Paragraph, Words};
use crate::units::duration;

pub(super) fn destroyed(words: &mut Words<'_>, destroyed: &DestroyedWhileHeld) -> Paragraph {
    let hold = &destroyed.hold;
    let what = if destroyed.is_initialised { "initialised" } else { "destroyed" };
    let thread = words.thread(hold.thread);
    let acquired =
        hold.location.map(|location| format!("{thread} acquired it at {}", words.location(location)));
    Paragraph {
        summary: format!("{} was {what} while {thread} held it", words.lock(hold.lock)),
        evidence: acquired.into_iter().collect(),
    }
}

pub(super) fn refused_call(words: &mut Words<'_>, call: &RefusedCall) -> Paragraph {
    let thread = call.thread.map_or_else(|| format!("thread {}", call.tid), |thread| words.thread(thread));
    let lock = words.lock(call.lock);
    let what = match call.what {
        Refusal::Relock => {
            format!("{thread} may not lock {lock}: it owns the lock, or the owner waits for it")
        }
        Refusal::Unlock => format!("{thread} may not unlock {lock}: it does not own the lock"),
        Refusal::Destroy => format!("{thread} may not destroy {lock}: the lock is in use"),
        Refusal::OwnerDied => format!("{thread} got {lock} from an owner that ended without unlocking it"),
        Refusal::NotRecoverable => {
            format!("{thread} cannot lock {lock} any more: its owner ended, and nobody repaired it")
        }
        Refusal::TooOften => format!("{thread} cannot lock {lock} once more: it is held too many times"),
        Refusal::Destroyed => format!("{thread} used {lock} after it was destroyed"),
        Refusal::SemaphoreFull => format!("{thread} cannot post {lock}: it has as many units as it can have"),
        Refusal::InitialisedInUse => {
            format!("{thread} initialised {lock} while another thread waited for it")
        }
        Refusal::DestroyedInUse => {
            format!("{thread} destroyed a condition variable on which a thread waits, with the lock {lock}")
        }
        Refusal::WaitWithoutLock => {
            format!("{thread} waited on a condition with {lock}, which it did not hold")
        }
    };
    let error = call.what.error().map_or_else(String::new, |error| format!(" ({error})"));
    let times = if call.count > 1 { format!(", {} times", call.count) } else { String::new() };
    let first = if call.count > 1 { "first " } else { "" };
    let ago =
        call.first_ago_ns.map_or_else(String::new, |ago_ns| format!(", {first}{} ago", duration(ago_ns)));
    let location = words.location(call.location);
    Paragraph { summary: format!("{what}{error}"), evidence: vec![format!("at {location}{times}{ago}")] }
}

pub(super) fn stray_release(words: &mut Words<'_>, release: &StrayRelease) -> Paragraph {
    let (thread, location) = (words.thread(release.thread), words.location(release.location));
    let lock = words.lock(release.lock);
    let (summary, why) = if release.released_before {
        let summary = format!("{thread} released {lock} twice, and no acquisition in between is recorded");
        (summary, ", after having released it before")
    } else {
        let summary = format!("{thread} released {lock}, and no acquisition of it is recorded");
        (summary, " without having acquired it")
    };
    Paragraph { summary, evidence: vec![format!("{thread} released it at {location}{why}")] }
}

pub(super) fn nested_reads(words: &mut Words<'_>, reads: &NestedReads) -> Paragraph {
    let (thread, writer) = (words.thread(reads.thread), words.thread(reads.writer));
    let [first, second, written] =
        [reads.first, reads.second, reads.written].map(|location| words.location(location));
    let lock = words.lock(reads.lock);
    Paragraph {
        summary: format!(
            "{thread} acquired {lock} shared while it held it shared, and {writer} writes to it"
        ),
        evidence: vec![
            format!("{thread} acquired it at {second}, after acquiring it at {first}"),
            format!(
                "{writer} acquires it exclusively at {written}: if it waits in between, both wait for ever"
            ),
        ],
    }
}

pub(super) fn second_acquisition(words: &mut Words<'_>, second: &SecondAcquisition) -> Paragraph {
    let (thread, first) = (words.thread(second.thread), words.location(second.first));
    let how = match second.second {
        Some(location) => {
            let location = words.location(location);
            format!("{thread} acquired it at {location}, after acquiring it at {first}")
        }
        None => format!("{thread} holds it more than once, and acquired it first at {first}"),
    };
    let lock = words.lock(second.lock);
    Paragraph { summary: format!("{thread} acquired {lock} while already holding it"), evidence: vec![how] }
}
