//! SIGKILL at random instants, of threads that record everything: what they have certainly stored is read back.

use std::collections::HashMap;
use std::path::Path;

use librip_test_kit::progress;
use librip_test_kit::victim::torture;
use serde_json::Value;

use crate::{json, plan_of};

const THREADS: usize = 3;
/// A quarter of the slots.
const CAPTURES: usize = 16;
/// The first thread captures once in so many steps.
const STEPS_A_CAPTURE: u64 = 8;

/// What a thread has stored, by its cell.
struct Stored {
    /// Steps that are complete. The next one may be.
    steps: u64,
    /// The step of the span that is open, or may be: it was beginning or ending otherwise.
    span: u64,
    is_open: bool,
}

impl Stored {
    fn of(cell: [u64; 4]) -> Stored {
        let [_, _, steps, extra] = cell;
        Stored { steps, span: extra / 4, is_open: extra % 4 == 1 }
    }

    /// Checks that these steps end with the last one that is stored, and that none is missing between them.
    fn check(&self, steps: &[u64], thread: &str) {
        let end = steps.last().map_or(0, |last| last + 1);
        let stored = self.steps;
        assert!(end == stored || end == stored + 1, "{thread}: {stored} stored, read up to {end}");
        assert!(steps.windows(2).all(|pair| pair[1] == pair[0] + 1), "{thread}: {steps:?}");
    }
}

/// The number at the beginning of a text.
fn step_of(text: &str) -> u64 {
    text.split(' ').next().and_then(|step| step.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// The steps of the events of each thread, and of those in the channel. Each event is checked by itself.
fn steps(ring: &Path) -> [HashMap<String, Vec<u64>>; 2] {
    let mut steps = [HashMap::new(), HashMap::new()];
    for entry in json(&["log", "--no-spans"], "event", ring) {
        let (text, name) = (entry["text"].as_str().unwrap(), entry["thread"]["name"].as_str().unwrap());
        let (step, thread) = (step_of(text), name[1..].parse::<u64>().unwrap());
        if text.ends_with(" kept") {
            continue;
        }
        let in_channel = entry["channel"] == "STEPS";
        let expected = if in_channel {
            format!("{step} of {thread}: {}", step ^ thread << 32)
        } else {
            let letters = char::from(b'a' + (step % 26) as u8).to_string().repeat(step as usize % 60);
            let text = if letters.len() <= 48 { letters } else { letters[..48].to_owned() + "..." };
            format!("{step} {} {text}", step.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ thread)
        };
        assert_eq!(text, expected, "{entry:#}");
        steps[usize::from(in_channel)].entry(name.to_owned()).or_insert_with(Vec::new).push(step);
    }
    steps
}

/// Checks that of each thread exactly the span is open that was.
fn check_spans(ring: &Path, stored: &[Stored]) {
    let spans = json(&["spans"], "span", ring);
    let open: Vec<&Value> = spans.iter().flat_map(|span| span["open"].as_array().unwrap()).collect();
    for (index, stored) in stored.iter().enumerate() {
        let of_thread = open.iter().filter(|open| open["thread"]["name"] == format!("w{index}"));
        let steps: Vec<u64> = of_thread.map(|open| open["value"].as_u64().unwrap()).collect();
        let may_be_closed = !stored.is_open && steps.is_empty();
        assert!(may_be_closed || steps == [stored.span], "w{index}: {steps:?}, not {}", stored.span);
    }
}

/// Checks that the last captures of the first thread are there, each with the event before it.
fn check_captures(ring: &Path, stored: &Stored) {
    let captures = json(&["captures"], "capture", ring);
    let mut kept: Vec<u64> = Vec::new();
    for capture in &captures {
        let texts: Vec<&str> =
            capture["events"].as_array().unwrap().iter().filter_map(|event| event["text"].as_str()).collect();
        let [.., before, last] = texts[..] else { panic!("{capture:#}") };
        assert_eq!((step_of(before), capture["name"].as_str()), (step_of(last), Some("w0")), "{capture:#}");
        kept.push(step_of(last));
    }
    kept.sort_unstable();
    assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + STEPS_A_CAPTURE), "{kept:?}");
    // The last step may be stored and not counted, and the oldest capture may be about to be replaced.
    let all = stored.steps / STEPS_A_CAPTURE;
    let end = kept.last().map_or(0, |last| (last + 1) / STEPS_A_CAPTURE);
    assert!(end == all || end == all + 1, "{all} were kept, and {kept:?} read");
    assert!(kept.len() as u64 >= all.min(CAPTURES as u64 - 1), "{all} were kept, and {kept:?} read");
}

#[test]
fn all_that_is_stored_is_read_back_after_a_kill_at_any_instant() {
    let mut random = 0x5eed_0004_u64;
    let (mut stored_steps, mut read, mut kills) = (0, 0, 0);
    for _ in 0..6 * torture() {
        let mut victim = plan_of("mixed", &["3"]).env("RIP_WORDS", "256").start();
        victim.until("ready");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        victim.kill_after((random >> 33) % 20_000);
        let remains = victim.wait();
        let ring = remains.ring_path();
        let cells = progress::read(&remains.dir().join("progress"));
        let stored: Vec<Stored> = cells.into_iter().take(THREADS).map(Stored::of).collect();
        let [events, in_channel] = steps(&ring);
        for (index, stored) in stored.iter().enumerate() {
            let name = format!("w{index}");
            for steps in [&events, &in_channel].map(|steps| &steps[&name]) {
                stored.check(steps, &name);
                read += steps.len();
            }
            stored_steps += stored.steps;
        }
        check_spans(&ring, &stored);
        check_captures(&ring, &stored[0]);
        kills += 1;
    }
    // A step is two events and a span.
    eprintln!("{kills} kills: {stored_steps} steps stored, the events of {read} read back");
}
