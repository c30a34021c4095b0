//! Sentences about wrong use of a lock: destroyed while held, released without an acquisition, acquired twice. It
//! decides nothing.

use super::words::{Paragraph, Words};
use crate::findings::{DestroyedWhileHeld, SecondAcquisition, StrayRelease};

pub(super) fn destroyed(words: &mut Words<'_>, destroyed: &DestroyedWhileHeld) -> Paragraph {
    let hold = &destroyed.hold;
    let (thread, location) = (words.thread(hold.thread), words.location(hold.location));
    Paragraph {
        summary: format!("{} was destroyed while {thread} held it", words.lock(hold.lock)),
        evidence: vec![format!("{thread} acquired it at {location}")],
    }
}

pub(super) fn stray_release(words: &mut Words<'_>, release: &StrayRelease) -> Paragraph {
    let (thread, location) = (words.thread(release.thread), words.location(release.location));
    let why = if release.released_before {
        ", after having released it before"
    } else {
        " without having acquired it"
    };
    let lock = words.lock(release.lock);
    Paragraph {
        summary: format!("{thread} released {lock}, and no acquisition of it is recorded"),
        evidence: vec![format!("{thread} released it at {location}{why}")],
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
