//! `read-rip record --sched`: what the kernel says of processors agrees with what the threads recorded, and whoever may
//! not see it is told so.
//!
//! The Perfetto trace is read here by a decoder that knows nothing of the writer's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use librip_test_kit::reader;
use librip_test_kit::victim::{Victim, is_root};

use crate::json;
use crate::recordings::{THREADS, advance, victim};

/// Both clocks are some tens of nanoseconds apart. A pause while they are compared adds some.
const CLOCKS_APART_NS: u64 = 10_000;

/// The state in which the kernel has a thread behind that ends.
const DEAD: u64 = 0x10;

/// A field of a message: its number, and its value.
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = bytes.split_first().expect("a number");
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        if byte < 128 {
            break;
        }
    }
    number
}

/// The fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let len = match key & 7 {
            0 => {
                fields.push(Field::Number(key >> 3, varint(&mut bytes)));
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            5 => 4,
            other => panic!("a field of type {other}"),
        };
        let (value, rest) = bytes.split_at(len);
        fields.push(Field::Bytes(key >> 3, value));
        bytes = rest;
    }
    fields
}

fn number(fields: &[Field<'_>], wanted: u64) -> u64 {
    let of = |field: &Field<'_>| match field {
        Field::Number(number, value) if *number == wanted => Some(*value),
        _ => None,
    };
    fields.iter().find_map(of).unwrap_or_else(|| panic!("field {wanted} is missing"))
}

fn messages<'a>(fields: &[Field<'a>], wanted: u64) -> Vec<&'a [u8]> {
    let of = |field: &Field<'a>| match field {
        Field::Bytes(number, value) if *number == wanted => Some(*value),
        _ => None,
    };
    fields.iter().filter_map(of).collect()
}

/// What a trace has of the kernel: turns, as thread, begin, end and state behind, and wake-ups, as thread and time.
#[derive(Debug, Default)]
struct Kernel {
    turns: Vec<(u64, u64, u64, u64)>,
    wake_ups: Vec<(u64, u64)>,
}

fn kernel(trace: &[u8]) -> Kernel {
    let mut kernel = Kernel::default();
    let mut running: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for packet in messages(&fields(trace), 1) {
        for bundle in messages(&fields(packet), 1) {
            let bundle = fields(bundle);
            let cpu = number(&bundle, 1);
            for event in messages(&bundle, 2) {
                let event = fields(event);
                let at_ns = number(&event, 1);
                for switch in messages(&event, 4) {
                    let switch = fields(switch);
                    let (left, state, came) =
                        (number_or_0(&switch, 2), number_or_0(&switch, 4), number_or_0(&switch, 6));
                    let ran = running.insert(cpu, (came, at_ns));
                    if let Some((tid, begin_ns)) = ran {
                        assert_eq!(tid, left, "processor {cpu} at {at_ns}");
                        assert!(begin_ns <= at_ns);
                        if tid != 0 {
                            kernel.turns.push((tid, begin_ns, at_ns, state));
                        }
                    }
                }
                for waking in messages(&event, 20) {
                    kernel.wake_ups.push((number(&fields(waking), 2), at_ns));
                }
            }
        }
    }
    kernel
}

/// Numbers that are 0 may be left out.
fn number_or_0(fields: &[Field<'_>], wanted: u64) -> u64 {
    fields
        .iter()
        .find_map(|field| match field {
            Field::Number(number, value) if *number == wanted => Some(*value),
            _ => None,
        })
        .unwrap_or(0)
}

/// Records the kernel's scheduler until `go_on` has ended the victim, and returns what the recorder said; `None` if the
/// program is missing that starts it.
fn record(
    victim: &mut Victim,
    target: &Path,
    starter: &[&str],
    go_on: impl FnOnce(&mut Victim),
) -> Option<String> {
    let mut command = Command::new(starter[0]);
    command.args(&starter[1..]).arg(reader::program()).args(["record", "--sched", "-o"]);
    let Ok(mut recorder) = command.arg(target).arg(victim.ring_path()).stderr(Stdio::piped()).spawn() else {
        eprintln!("SKIPPED: {} is missing", starter[0]);
        return None;
    };
    while !target.exists() && recorder.try_wait().expect("a child").is_none() {
        std::thread::yield_now();
    }
    go_on(victim);
    let output = recorder.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    Some(said)
}

/// Starts a program with tracefs, which it has alone if the machine has none, if it may mount that.
const WITH_TRACEFS: [&str; 3] = [
    "sh",
    "-c",
    "unshare --mount true 2>/dev/null || exec \"$0\" \"$@\"; exec unshare --mount sh -c \
     'mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null; exec \"$0\" \"$@\"' \"$0\" \"$@\"",
];

/// What a recording says of a program with three threads.
struct Recorded {
    said: String,
    kernel: Kernel,
    /// By thread: the times of its events, ns.
    events: BTreeMap<u64, Vec<u64>>,
}

/// `None` if this machine does not permit it.
fn recorded() -> Option<Recorded> {
    let (mut victim, cells) = victim();
    let target = victim.dir().join("recording");
    let said = record(&mut victim, &target, &WITH_TRACEFS, |victim| {
        advance(cells, 500);
        victim.kill();
    })?;
    let _remains = victim.wait();
    if said.contains("no turns of threads on processors are recorded") {
        eprintln!("SKIPPED: this machine does not permit perf events: {said}");
        return None;
    }
    let trace = target.with_extension("perfetto");
    reader::ask(&["export", "-f", "perfetto", "-o", trace.to_str().unwrap()], &target).sound();
    let kernel = kernel(&std::fs::read(trace).unwrap());
    let mut events: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for event in json(&["log"], "event", &target) {
        let at_ns = event["boottime_ns"].as_str().unwrap().parse().unwrap();
        events.entry(event["thread"]["tid"].as_u64().unwrap()).or_default().push(at_ns);
    }
    Some(Recorded { said, kernel, events })
}

#[test]
fn threads_recorded_their_events_while_they_had_a_processor_as_the_kernel_says() {
    // If others keep the processors busy, the kernel's buffers may be full before the recorder reads them.
    const ATTEMPTS: usize = 30;
    for _ in 0..ATTEMPTS {
        let Some(recorded) = recorded() else { return };
        let lost = ["was", "were"].map(|verb| format!(" of the kernel's scheduler {verb} lost"));
        if !lost.iter().any(|lost| recorded.said.contains(lost)) {
            check(recorded);
            return;
        }
    }
    panic!("records of the scheduler were lost in {ATTEMPTS} recordings");
}

fn check(Recorded { said, kernel, events }: Recorded) {
    assert!(said.contains(" words and ") && said.contains(" turns in "), "{said}");
    assert_eq!(events.len(), THREADS, "{said}");
    for (tid, events) in events {
        let turns: Vec<_> = kernel.turns.iter().filter(|turn| turn.0 == tid).collect();
        assert!(!turns.is_empty(), "{said}");
        let (first_ns, last_ns) =
            (turns.iter().map(|turn| turn.1).min().unwrap(), turns.iter().map(|turn| turn.2).max().unwrap());
        let is_within = |at_ns: u64| {
            turns.iter().any(|turn| turn.1 <= at_ns + CLOCKS_APART_NS && at_ns <= turn.2 + CLOCKS_APART_NS)
        };
        let watched: Vec<u64> =
            events.into_iter().filter(|at_ns| (first_ns..last_ns).contains(at_ns)).collect();
        let outside: Vec<&u64> = watched.iter().filter(|at_ns| !is_within(**at_ns)).collect();
        assert!(watched.len() > 100 && outside.is_empty(), "{} {outside:?} {said}", watched.len());
        let last = turns.iter().max_by_key(|turn| turn.2).unwrap();
        assert_eq!(last.3, DEAD, "the kill ends its last turn: {last:?} {said}");
        // It rests every 16 events. A thread that sleeps is woken before its next turn.
        let sleeps = turns.iter().filter(|turn| turn.3 == 1).count();
        assert!(sleeps >= watched.len() / 32, "{sleeps} of {}", watched.len());
        if !said.contains("no wake-ups are recorded") {
            let woken = kernel.wake_ups.iter().filter(|wake_up| wake_up.0 == tid).count();
            assert!(woken + 1 >= sleeps, "{woken} of {sleeps}");
        }
    }
}

/// Starts a program without the right to watch other processes.
const WITHOUT_RIGHTS: [&str; 2] = ["setpriv", "--bounding-set=-sys_admin,-perfmon"];

#[test]
fn without_the_right_a_recording_says_once_what_is_missing_and_goes_on() {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if !is_root("without_the_right") || paranoid.trim().parse::<i32>().unwrap_or(2) < 1 {
        eprintln!("SKIPPED: every user of this machine may watch processors");
        return;
    }
    let (mut victim, cells) = victim();
    let target = victim.dir().join("recording");
    let said = record(&mut victim, &target, &WITHOUT_RIGHTS, |victim| {
        advance(cells, 100);
        victim.kill();
    });
    let Some(said) = said else { return };
    let _remains = victim.wait();
    let what = "Warning: no turns of threads on processors are recorded: the kernel refuses perf events: ";
    assert_eq!(said.matches(what).count(), 1, "{said}");
    assert!(said.contains("CAP_PERFMON") && said.contains("kernel.perf_event_paranoid to 0"), "{said}");
    assert!(!json(&["log"], "event", &target).is_empty());
}
