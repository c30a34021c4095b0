//! A loop that works through items and must not take longer than 5 ms a time. A few times a second, one item takes
//! longer. Only those cycles are kept, from their beginning on, however long the program runs.
//!
//! ```text
//! spikes [SECONDS]              default 2
//! ```
//!
//! It prints `running: pid P, ring PATH`, and in the end how many cycles there were, and which of the last ones were
//! slow by its own clock, with their times. `read-rip captures` shows the same ones.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use librip::{Builder, Keep, rip_event, rip_slow_cycle, rip_span};
use librip_examples::{ring, say, say_running};

const LIMIT: Duration = Duration::from_millis(5);
const ITEMS: u64 = 10;
/// A ring keeps as many.
const SLOW_MAX: usize = 64;

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).map_or(Some(2), |seconds| seconds.parse().ok());
    let Some(seconds) = seconds else {
        eprintln!("spikes: SECONDS must be a number\nusage: spikes [SECONDS]");
        return ExitCode::from(2);
    };
    if let Err(error) = Builder::new().words(128).keep(Keep::Always).create() {
        eprintln!("not recording: {error}");
    }
    say_running(&ring());
    let begun = Instant::now();
    let (mut cycles, mut random) = (0u64, 1u64);
    let (mut slow, mut last_slow) = (0u64, VecDeque::new());
    while begun.elapsed() < Duration::from_secs(seconds) {
        let cycle = Instant::now();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // One cycle in a thousand has an item that takes long.
        let spike = (random >> 33).is_multiple_of(1000).then_some(random >> 20 & 7);
        let inside = rip_slow_cycle!("work", LIMIT, || work(cycles, spike));
        let took = cycle.elapsed();
        if took > LIMIT {
            slow += 1;
            last_slow.push_back((cycles, took, inside));
            last_slow.drain(..last_slow.len().saturating_sub(SLOW_MAX));
        }
        cycles += 1;
    }
    say(format_args!("{cycles} cycles, {slow} of them slow; the last ones:"));
    for (cycle, took, inside) in last_slow {
        say(format_args!(
            "cycle {cycle} took {} us, {} us of them in its items",
            took.as_micros(),
            inside.as_micros()
        ));
    }
    ExitCode::SUCCESS
}

/// Returns how long the items took.
fn work(cycle: u64, spike: Option<u64>) -> Duration {
    rip_event!("cycle {}", cycle);
    let begun_all = Instant::now();
    for item in 0..ITEMS {
        let _span = rip_span!("item", "{}", item);
        let takes = if spike == Some(item) { Duration::from_millis(7) } else { Duration::from_micros(20) };
        let begun = Instant::now();
        while begun.elapsed() < takes {
            std::hint::spin_loop();
        }
    }
    begun_all.elapsed()
}
