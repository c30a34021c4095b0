//! Rings that the tests of exports read, and what hostile names in them are.

use super::fixture::Fixture;
use super::locks::*;
use super::run::{Outcome, read_rip};
use super::synth::{Held, Ring, Site, Slot};

/// What breaks out of strings of the formats, and what a terminal would obey.
pub(crate) const NASTY: &str = "a\"b\\\n;x \u{1b}[2J\u{202e}</";
/// The same as people see it.
pub(crate) const SEEN: &str = "a\"b\\\\n;x \\u{1b}[2J\\u{202e}</";

/// An event, and the end of a span.
pub(crate) const SAID: u64 = 0x5000;
pub(crate) const ENDS: u64 = 0x5200;
/// A time and one value of 32 bits: two words before it.
const SHAPE: u64 = 1 | 2 << 40 | 1 << 46;

/// A thread that held A from 3 to 6 s and B from 4 to 7 s, released A to a waiter, and holds B again since 8 s.
pub(crate) fn holder() -> Slot {
    Slot::thread(NASTY, 1)
        .event(TAKES, &[at(3.0), A])
        .event(TAKES, &[at(4.0), B])
        .event(RELEASED, &[at(6.0), at(3.0), A])
        .event(RELEASED, &[at(7.0), at(4.0), B])
        .event(TAKES, &[at(8.0), B])
        .has(Held::new(HELD, B, TAKES).since(at(8.0)))
}

/// One that waited for A from 5 s on, and got it when it was released.
pub(crate) fn follower() -> Slot {
    Slot::thread("follower", 2)
        .event(WAIT, &[at(5.0), A])
        .event(RELEASED, &[at(6.5), at(6.0), A])
        .event(WAIT, &[at(9.0), B])
        .has(Held::new(WAITING, B, WAIT).since(at(9.0)))
}

pub(crate) fn waiter(tid: u32) -> Slot {
    Slot::thread("waiter", tid).event(WAIT, &[at(9.0), B]).has(Held::new(WAITING, B, WAIT).since(at(9.0)))
}

/// One that said "3 apples" at 4.5 s, within a span from 4 to 5 s.
pub(crate) fn grocer() -> Slot {
    Slot::thread("grocer", 5).event(SAID, &[at(4.5), 3, SHAPE]).event(ENDS, &[at(5.0), at(4.0)])
}

/// All of them but the grocer.
pub(crate) fn story() -> Ring {
    let threads = [holder(), follower(), waiter(3), waiter(4)];
    let names = vec![(4321, A, NASTY.to_owned()), (4321, B, "queue".to_owned())];
    // It exited 66 s after the boot.
    Ring { exit_status: Some(3), lock_names: names, ..ring().with_slots(threads) }
}

/// The story with what the grocer said. A line feed and others are in the format and in the name of the span.
pub(crate) fn talk() -> Ring {
    let mut ring = story().with_slots([grocer()]);
    let said = |pc, label: &str, kind, operands: &[u8]| Site {
        label: label.into(),
        ..Site::new(pc, "src/said.rs", 7).of(kind, 3, operands)
    };
    ring.sites.push(said(SAID, &format!("{{}} apples{NASTY}"), 14, &[4, 10]));
    ring.sites.push(said(ENDS, &format!("sale{NASTY}"), 16, &[4, 5]));
    ring
}

pub(crate) fn export(ring: &Ring, format: &str, options: &[&str]) -> Outcome {
    let fixture = Fixture::of(ring);
    let all = [&["export", "--format", format], options].concat();
    read_rip(all.into_iter().chain([fixture.path.to_str().unwrap()]))
}
