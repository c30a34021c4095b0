//! Marks in signal handlers.

use librip_test_kit::oracle::{Ring, Slot, State};
use librip_test_kit::progress;
use librip_test_kit::victim::torture;

use crate::{ended, plan, run};

/// Checks a slot whose owner made `marks` marks of the cycle, and `handled` marks in handlers between them: each
/// is in the ring once, and the marks of each kind are in order. Returns how many words were reserved and not written:
/// a mark leaves at most one for each handler that interrupts it.
fn check(ring: &Ring, slot: &Slot, marks: u64, handled: u64) -> u64 {
    let events = slot.events();
    let unwritten = events.missing.len() as u64;
    assert_eq!(slot.count, marks + handled + unwritten, "{}: marks lost or doubled", slot.name);
    assert!(unwritten <= handled, "{}: {unwritten} words are not written", slot.name);
    let labels: Vec<&str> = events.events.iter().map(|event| ring.label(event.pc)).collect();
    let of = |kind: &str| -> Vec<&str> {
        labels.iter().copied().filter(|label| label.starts_with(kind)).collect()
    };
    let expected: Vec<String> = (0..marks).map(|step| format!("cycle {}", step % 7)).collect();
    assert_eq!(of("cycle"), expected, "{}", slot.name);
    let expected: Vec<String> = (0..handled).map(|step| format!("handler {}", step % 3)).collect();
    assert_eq!(of("handler"), expected, "{}", slot.name);
    unwritten
}

#[test]
#[cfg(target_arch = "x86_64")]
fn no_mark_is_lost_or_doubled_or_torn_when_a_signal_comes_between_any_two_instructions() {
    let remains = ended(plan(&["step"]).env("RIP_WORDS", "16384").run());
    let ring = remains.interrupted_ring();
    let cell = progress::read(&remains.dir().join("progress"))[0];
    assert_eq!(cell[2], 31);
    assert!(cell[3] > 30 * 15, "a mark alone has fifteen instructions: {}", cell[3]);
    let unwritten = check(&ring, ring.slot_named("thread"), cell[2], cell[3]);
    // A handler comes between the load of the count and the comparison in each of the marks.
    assert_eq!(unwritten, 30, "every interrupted reservation, and no other, leaves a word");
}

#[test]
fn no_mark_is_lost_or_doubled_or_torn_under_a_storm_of_signals() {
    let threads = 60 * torture();
    let (mut in_handlers, mut unwritten) = (0, 0);
    let remains = ended(
        plan(&["storm", &threads.to_string()])
            .env("RIP_WORDS", "16384")
            .env("RIP_SLOTS", threads.to_string())
            .run(),
    );
    let ring = remains.interrupted_ring();
    let cells = progress::read(&remains.dir().join("progress"));
    assert_eq!(cells.len() as u32, threads);
    for (index, cell) in cells.iter().enumerate() {
        let slot = ring.slot_named(&format!("w{index}"));
        assert_eq!((slot.state, cell[2]), (State::Exited, 12_000));
        unwritten += check(&ring, slot, cell[2], cell[3]);
        in_handlers += cell[3];
    }
    eprintln!(
        "{in_handlers} marks in handlers, {} outside, {unwritten} words reserved and not written",
        12_000 * threads
    );
    // The timer alone sends some to each thread, also on a busy machine.
    assert!(in_handlers > u64::from(threads), "only {in_handlers} signals came: the test is too kind");
}

#[test]
fn the_first_mark_ever_may_be_made_in_a_signal_handler() {
    let ring = run(&["handler_first"]).ring();
    let slot = ring.slot_named("thread");
    assert_eq!(slot.state, State::Exited);
    assert_eq!(ring.labels(slot), ["in the handler", "after the handler"]);
}

#[test]
fn the_first_mark_may_be_made_on_an_alternate_stack() {
    // 8 KiB is SIGSTKSZ. The claim itself does not fit there in unoptimised code. `build` repeats this on optimised
    // code.
    let ring = run(&["handler_first_on_stack", "8192"]).ring();
    assert_eq!(ring.labels(ring.slot_named("thread")), ["in the handler", "after the handler"]);
}
