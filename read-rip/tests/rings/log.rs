//! `read-rip log` of rings that no recorder makes, and of marks that the linker has folded.
//!
//! Not tested here: what programs record; `tests/log` of the end-to-end tests does that.

use crate::support::fixture::Fixture;
use crate::support::run::read_rip;
use crate::support::synth::{BIAS, Ring, Site, Slot};

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

/// An event at an actual address, which no module covers.
fn said_at(thread: Slot, pc: u64) -> Slot {
    thread.operand(3).operand(SHAPE).actual_marks([pc])
}

/// A site that a bridge made in a process.
fn site_of_process(pid: u32, pc: u64, line: u32, format: &str) -> Site {
    let site = Site::new(pc, "src/bridged.rs", line).of(14, 3, &[10]);
    Site { module: u32::MAX, column: pid, label: format.into(), ..site }
}

#[test]
fn an_event_has_the_site_that_its_own_process_made_at_its_address() {
    const HEAP: u64 = 0x7000_0000_1001;
    let of = |name: &str, pid| said_at(Slot { pid: Some(pid), ..Slot::thread(name, pid) }, HEAP);
    let mut ring = ring(&[]);
    ring.sites = vec![site_of_process(71, HEAP, 5, "{} pears"), site_of_process(72, HEAP, 6, "{} plums")];
    let out = log(&ring.clone().with_slots([of("one", 71), of("other", 72), of("child", 73)]));
    for wanted in [
        "one[71] of process 71 3 pears  bridged.rs:5\n",
        "other[72] of process 72 3 plums  bridged.rs:6\n",
        // It is a child of one of them, and it is not known of which.
        "child[73] of process 73 3 pears | 3 plums  bridged.rs:5|bridged.rs:6\n",
    ] {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
    // Two threads may have entered it.
    ring.sites.push(site_of_process(71, HEAP, 5, "{} pears"));
    ring.sites.remove(1);
    let out = log(&ring.with_slots([of("one", 71), of("child", 73)]));
    assert!(out.contains("one[71] of process 71 3 pears  bridged.rs:5\n"), "{out}");
    assert!(out.contains("child[73] of process 73 3 pears  bridged.rs:5\n"), "{out}");
}

#[test]
fn an_event_whose_address_is_data_of_a_module_with_wrappers_is_no_call_of_one() {
    // Beside a site of a wrapper, an address of data may be a location of its caller. Here it is a bridge's site.
    const DATA: u64 = BIAS + 0x5_0001;
    let mut ring = ring(&[]);
    ring.modules[0].code = 0x1000..0x2000;
    ring.sites = vec![
        Site::new(0x1100, "src/mutex.rs", 7).of(6, 4 | 1 << 8, &[3]),
        site_of_process(ring.pid, DATA, 5, "{} pears"),
    ];
    let ring = ring.with_slots([said_at(Slot::thread("grocer", 5), DATA)]);
    let out = log(&ring);
    assert!(out.contains("grocer[5] 3 pears  bridged.rs:5\n"), "{out}");
}
