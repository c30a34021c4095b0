//! Threads that record everything at full speed until the process dies: events with texts, spans, events in a channel,
//! and captures. Each can be checked by itself, and each thread's cell says what it has certainly stored.

use std::sync::atomic::Ordering::Relaxed;

use librip::{rip_capture, rip_channel, rip_event, rip_span};
use librip_test_kit::progress::Cell;

use crate::common::{self, say, sleep_forever};

rip_channel!(STEPS, words = 64);

pub(crate) fn main(arguments: &[&str]) {
    common::init();
    let [threads] = arguments else { panic!("how many threads?") };
    let cells = common::storm(threads.parse().expect("a number"), record);
    // From then on, the ring has the channel.
    while cells.iter().any(|cell| cell.marks.load(Relaxed) == 0) {
        std::thread::yield_now();
    }
    say("ready");
    sleep_forever();
}

/// Each step counts when all of it is stored. The cell's `extra` is four times the step, and more: 1 if the step's span
/// is certainly open, 2 if it may be ending. The first thread alone captures, so that no capture is refused.
fn record(thread: u64, cell: &Cell) -> ! {
    let mut text = String::new();
    for step in 0u64.. {
        text.clear();
        text.extend(std::iter::repeat_n(char::from(b'a' + (step % 26) as u8), step as usize % 60));
        cell.extra.store(4 * step, Relaxed);
        let span = rip_span!("step", "{}", step);
        cell.extra.store(4 * step + 1, Relaxed);
        rip_event!("{} {} {}", step, step.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ thread, text.as_str());
        rip_event!(channel STEPS, "{} of {}: {}", step, thread, step ^ thread << 32);
        if thread == 0 && step % 8 == 7 {
            rip_capture!("{} kept", step);
        }
        cell.advance();
        cell.extra.store(4 * step + 2, Relaxed);
        drop(span);
    }
    unreachable!("a thread counts for ever")
}
