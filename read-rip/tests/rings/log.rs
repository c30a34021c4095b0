//! `read-rip log` of rings that no recorder makes, and of marks that the linker has folded.
//!
//! Not tested here: what programs record; `tests/log` of the end-to-end tests does that.

use crate::support::fixture::Fixture;
use crate::support::run::read_rip;
use crate::support::synth::{Ring, Site, Slot};

const SAID: u64 = 0x1000;
/// Has one value of 32 bits, and nothing else before it.
const SHAPE: u64 = 1 | 1 << 40;

/// A ring with sites at one address, each with a line and a format.
fn ring(sites: &[(u32, &str)]) -> Ring {
    let mut ring = Ring::new().with_sites(&[]);
    ring.sites = sites
        .iter()
        .map(|&(line, format)| Site {
            label: format.into(),
            ..Site::new(SAID, "src/said.rs", line).of(14, 3, &[10])
        })
        .collect();
    ring
}

fn log(ring: &Ring) -> String {
    let fixture = Fixture::of(ring);
    read_rip(["log", fixture.path.to_str().unwrap()]).stdout
}

#[test]
fn an_event_of_folded_marks_has_what_each_of_them_says() {
    let folded = ring(&[(7, "{} apples"), (9, "{} pears"), (11, "{} pears")]);
    let out = log(&folded.with_slots([Slot::thread("grocer", 5).event(SAID, &[3, SHAPE])]));
    assert!(out.contains("grocer[5] 3 apples | 3 pears  said.rs:7|said.rs:9|said.rs:11"), "{out}");
}

#[test]
fn values_that_contradict_their_shape_are_said_to_be_damaged() {
    for (operands, expected) in [
        (&[3, SHAPE][..], "3 apples"),
        // A type that does not exist, a text longer than its words, and a shape that leaves words over.
        (&[3, 15 | 1 << 40], "{} apples (its values are damaged)"),
        (&[40, 12 | 1 << 40], "{} apples (its values are damaged)"),
        (&[3, 4, 1 | 2 << 40], "{} apples (its values are damaged)"),
    ] {
        let thread = Slot::thread("grocer", 5).event(SAID, operands);
        let out = log(&ring(&[(7, "{} apples")]).with_slots([thread]));
        assert!(out.contains(&format!("grocer[5] {expected}  ")), "{operands:?}: {out}");
    }
}
