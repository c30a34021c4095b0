//! `json-schema.json` describes every line that `--json` writes, and nothing else.
//!
//! Readers of the output must accept fields that later versions add, so the schema allows them. The tests do not: they
//! close every object of the schema first. The tests of each command check what its lines say.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use jsonschema::Validator;
use read_rip_model::findings::*;
use read_rip_model::locks::Quantiles;
use serde_json::{Value, json};

use crate::support::fixture::{Fixture, Scratch, lock_sites, pile_up};
use crate::support::run::read_rip;
use crate::support::synth::{BIAS, Held, Ring, Site, Slot};
use crate::support::unprepared::{Stuck, deadlocks};

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("json-schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The same schema, closed to fields that it does not describe.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(object) => {
            if object.get("type") == Some(&json!("object")) && object.contains_key("properties") {
                object.insert("additionalProperties".into(), json!(false));
            }
            object.values_mut().for_each(|value| *value = closed(value.take()));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = closed(value.take())),
        _ => {}
    }
    schema
}

/// The published schema, and the closed one.
static PUBLISHED: LazyLock<Validator> = LazyLock::new(|| jsonschema::validator_for(&schema()).unwrap());
static CLOSED: LazyLock<Validator> = LazyLock::new(|| jsonschema::validator_for(&closed(schema())).unwrap());

/// The closed schema of the data of a type of lines.
fn of_type(name: &str) -> Validator {
    let mut of_type = closed(schema());
    of_type.as_object_mut().unwrap().remove("oneOf");
    of_type["$ref"] = json!(format!("#/$defs/line_{name}"));
    jsonschema::validator_for(&of_type).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Asserts that a line fits the schema. If not, checks its data against the part for its type: those errors say more.
#[track_caller]
fn assert_valid(line: &Value) {
    if !CLOSED.is_valid(line) {
        let of_type = of_type(line["type"].as_str().unwrap_or("?"));
        let errors = of_type.iter_errors(&line["data"]);
        let errors: Vec<_> = errors.map(|error| format!("{error} (at {})", error.instance_path())).collect();
        panic!("{errors:#?}\n{line:#}");
    }
    assert!(PUBLISHED.is_valid(line), "the published schema: {line:#}");
}

const A: u64 = 0x7f00_0000_1000;
const B: u64 = 0x7f00_0000_2000;
const TAKES: u64 = 0x1000;
const WAIT: u64 = 0x1100;
const WAITING: u64 = 2;
const HELD: u64 = 3;

/// Two threads in a deadlock, and a third thread that waits for one of their locks.
fn deadlock() -> Ring {
    let mutex = 1 << 8 | 4 | 64;
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    ring.sites = vec![
        Site::new(TAKES, "src/bank.rs", 35).within("bank").of(6, mutex, &[4, 3]),
        Site::new(WAIT, "src/bank.rs", 37).within("bank").of(2, mutex, &[4, 3]),
    ];
    let transfer = |name, tid, holds, waits_for| {
        Slot::thread(name, tid)
            .event(TAKES, &[2000, holds])
            .event(TAKES, &[3000, waits_for])
            .event(WAIT, &[3000, waits_for])
            .has(Held { sequence: 2, ..Held::new(HELD, holds, TAKES).since(2000) })
            .has(Held { sequence: 8, ..Held::new(WAITING, waits_for, WAIT).since(3000) })
    };
    let behind = Slot::thread("behind", 12).has(Held::new(WAITING, A, WAIT));
    let ring = ring.with_slots([transfer("saver", 10, A, B), transfer("spender", 11, B, A), behind]);
    Ring { lock_names: vec![(ring.pid, A, "SAVINGS".into())], ..ring }
}

/// A thread that said something, with a span that has ended and one that is open.
fn said() -> Ring {
    let (event, begin, end) = (0x1000, 0x1100, 0x1200);
    let mut ring = Ring { span_entries: 16, ..Ring::new().with_sites(&[]).with_clock(3) };
    let site = |pc, line, kind, flags, operands: &[u8], label: &str| Site {
        label: label.into(),
        ..Site::new(pc, "src/said.rs", line).of(kind, flags, operands)
    };
    ring.sites = vec![
        site(event, 7, 14, 4, &[10], "{} and {}"),
        site(begin, 8, 15, 0, &[10], "parse\0{} bytes"),
        site(end, 8, 16, 0, &[4, 5], "parse\0"),
    ];
    // A time, an unsigned value and the text "no".
    let text = [2 | 2 << 8, u64::from(b'n') | u64::from(b'o') << 8];
    let shape = |types: u64, words: u64| types | words << 40 | 1 << 46;
    let begin_word = librip_test_kit::format::pack(9, false, begin + BIAS);
    let slot = Slot::thread("speaker", 9)
        .event(event, &[2000, 7, text[0], text[1], shape(0xc1, 4)])
        .event(begin, &[3000, 512, shape(1, 2)])
        .event(end, &[4000, 3000]);
    let since = librip_format::span_since(begin_word, 3000, 1, 512);
    ring.with_slots([Slot { open: vec![[begin_word, since, 512]], ..slot }])
}

/// The lines of `read-rip --json OPTIONS RING`, all of which fit the schema.
#[track_caller]
fn valid(options: &[&str], ring: &Ring) -> Vec<Value> {
    let fixture = Fixture::of(ring);
    let path = fixture.path.to_str().unwrap();
    let outcome = read_rip(options.iter().copied().chain(["--json", path]));
    all_valid(outcome.json())
}

#[track_caller]
fn all_valid(lines: Vec<Value>) -> Vec<Value> {
    assert!(!lines.is_empty());
    lines.iter().for_each(assert_valid);
    lines
}

#[test]
fn every_command_writes_lines_that_fit_the_schema() {
    let mut lines = valid(&[], &pile_up());
    lines.extend(valid(&["-tv"], &deadlock()));
    lines.extend(valid(&["locks"], &deadlock()));
    lines.extend(valid(&["check"], &deadlock()));
    lines.extend(valid(&["tasks", "--all"], &crate::tasks::futurelock()));
    lines.extend(valid(&["check"], &crate::tasks::futurelock()));
    lines.extend(valid(&["log"], &said()));
    let spans = valid(&["spans"], &said());
    assert_eq!(spans[1]["data"]["open"][0]["value"], 512, "{spans:#?}");
    lines.extend(spans);
    let fixture = Fixture::of(&pile_up());
    let ring = fixture.path.to_str().unwrap();
    lines.extend(all_valid(read_rip(["--json", "diff", ring, ring]).sound().json()));
    let mut kept = said();
    let slot = kept.slots[0].clone();
    kept.slots.push(Slot { is_capture: true, ..slot.exited() });
    let captures = valid(&["captures"], &kept);
    assert_eq!(captures[1]["data"]["events"][0]["text"], "7 and no", "{captures:#?}");
    lines.extend(captures);
    lines.extend(valid(&["check"], &deadlock().of_this_process()));
    lines.extend(all_valid(read_rip(["check", "--all", "--json", "--min-confidence", "proven"]).json()));
    let damaged = Ring { settings_ignored: 31, reused: 6, exit_status: Some(3), ..pile_up() };
    lines.extend(valid(&["info"], &damaged));
    let fixture = Fixture::of(&pile_up().of_a_dead_process());
    let directory = fixture.directory.path().to_str().unwrap();
    for command in [&["list"][..], &["gc", "--dry-run"], &["gc"]] {
        let arguments = command.iter().copied().chain(["--json", "--dir", directory]);
        lines.extend(all_valid(read_rip(arguments).sound().json()));
    }
    // This program has no ring.
    let own = std::process::id().to_string();
    lines.extend(all_valid(read_rip(["--json", "--dir", directory, &own]).sound().json()));
    lines.extend(all_valid(read_rip(["stacks", "--json", "--dir", directory, &own]).sound().json()));
    let stuck = Stuck::start(deadlocks(), &["normal"], 2);
    let core = fixture.directory.path().join("core");
    librip_test_kit::core::write(stuck.0.pid(), 6, &core);
    for command in [&["--json"][..], &["stacks", "--json"], &["locks", "--json"], &["check", "--json"]] {
        let core = core.to_str().unwrap();
        lines.extend(all_valid(read_rip(command.iter().copied().chain([core])).json()));
    }
    let types: BTreeSet<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    let schema = schema();
    let described = schema["$defs"].as_object().unwrap().keys();
    let described: BTreeSet<&str> = described.filter_map(|name| name.strip_prefix("line_")).collect();
    assert_eq!(types, described, "all types of lines, and no other");
}

#[test]
fn lines_that_do_not_fit_the_schema_are_rejected() {
    let lines = valid(&["check"], &deadlock());
    let finding = lines.iter().find(|line| line["type"] == "finding").unwrap();
    let changes: [fn(&mut Value); 7] = [
        |line| line["type"] = json!("opinion"),
        |line| drop(line.as_object_mut().unwrap().remove("type")),
        |line| line["data"]["kind"] = json!("bad-luck"),
        |line| line["data"]["for_ns"] = json!("long"),
        |line| line["data"]["undocumented"] = json!(1),
        |line| line["data"]["locks"][0]["address"] = json!(4096),
        |line| line["data"]["evidence"]["edges"][0]["wait"]["thread"] = json!("saver"),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut line = finding.clone();
        change(&mut line);
        assert!(!CLOSED.is_valid(&line), "change {at}");
    }
}

#[test]
fn a_later_version_may_add_fields() {
    assert!(PUBLISHED.is_valid(&json!({"type": "checked", "data": {"findings": 0, "new": true}})));
    assert!(PUBLISHED.is_valid(&json!({"type": "checked"})), "all fields but the type are optional");
}

#[test]
fn codes_of_the_schema_are_those_of_the_program() {
    fn names<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Value {
        all.iter().map(|&value| name(value)).collect()
    }
    let schema = schema();
    let finding = &schema["$defs"]["line_finding"]["properties"];
    assert_eq!(finding["kind"]["enum"], names(Kind::ALL, Kind::name));
    assert_eq!(finding["confidence"]["enum"], names(Confidence::ALL, Confidence::name));
    assert_eq!(
        finding["premises"]["items"]["properties"]["code"]["enum"],
        names(Premise::ALL, Premise::name)
    );
    assert_eq!(finding["doubts"]["items"]["properties"]["code"]["enum"], names(Doubt::ALL, Doubt::name));
    assert_eq!(schema["$defs"]["misuse"]["properties"]["what"]["enum"], names(Refusal::ALL, Refusal::name));
    assert_eq!(finding["advice"]["items"]["properties"]["code"]["enum"], names(Advice::ALL, Advice::name));
}

#[test]
fn the_readme_lists_the_kinds_that_can_be_suppressed() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let list = readme.split_once("\nkinds are ").expect("it has the list").1.split_once('.').unwrap().0;
    let mut listed: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let mut kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    listed.sort_unstable();
    kinds.sort_unstable();
    assert_eq!(listed, kinds);
}

#[test]
fn evidence_of_every_kind_fits_the_schema() {
    for &kind in Kind::ALL {
        for evidence in evidence(kind) {
            let line = json!({"type": "finding", "data": {"kind": kind, "evidence": evidence}});
            assert_valid(&line);
        }
        let line = json!({"type": "finding", "data": {"kind": kind, "evidence": {"undocumented": 1}}});
        assert!(!CLOSED.is_valid(&line), "{kind:?}");
    }
}

fn hold() -> HoldFact {
    HoldFact { thread: 1, lock: 2, location: Some(3), is_shared: true, for_ns: Some(4), is_inherited: true }
}

fn wait() -> WaitFact {
    WaitFact {
        thread: 1,
        lock: 2,
        location: 3,
        is_shared: true,
        is_timed: true,
        is_relock: true,
        for_ns: Some(4),
    }
}

fn waiters() -> Waiters {
    Waiters { count: 6, first: vec![wait()] }
}

fn suspended() -> SuspendedFact {
    SuspendedFact { location: Some(3), is_await: true, for_ns: Some(4), is_at_most: true }
}

fn never_woken() -> Evidence {
    let first = vec![SleeperFact { task: 1, suspended: suspended(), lock: 2 }];
    Evidence::NeverWoken(NeverWoken { count: 2, waiting: 3, first })
}

fn full_channel() -> Evidence {
    let first = SleepFact { thread: 1, lock: 2, what: Asleep::Message, location: 3, for_ns: Some(4) };
    Evidence::FullChannel(FullChannel { lock: 2, receiver: 1 << 31 | 4, waiting: 3, first: vec![first] })
}

fn history() -> Option<LockHistory> {
    let times = Some(Quantiles { count: 1, p50_ns: 2, p90_ns: 3, p99_ns: 4, max_ns: 5 });
    Some(LockHistory { acquisitions: 3, contended: 2, owners: 1, waits: times, holds: times })
}

fn queue() -> Evidence {
    let holder = ActiveHolder { hold: hold(), words_recorded: Some(1), window_ns: Some(2), last: Some(4) };
    Evidence::Queue(Queue { lock: 2, waiters: waiters(), users: 9, holder: Some(holder), history: history() })
}

fn standstill() -> Evidence {
    let sleep = HolderSleep { lock: 2, what: Asleep::Barrier, location: 3, is_timed: true, for_ns: Some(4) };
    let holder = StandingHolder {
        hold: hold(),
        held_at_least_ns: Some(1),
        is_steady: Some(true),
        words_recorded: Some(0),
        window_ns: Some(2),
        last: Some(4),
        sleep: Some(sleep),
        join: Some(JoinFact { thread: 1, joined: 2, location: 3, is_timed: true, for_ns: Some(4) }),
        suspended: Some(Box::new(suspended())),
    };
    Evidence::Standstill(Standstill {
        lock: 2,
        waiters: waiters(),
        blocked: 9,
        locks: 3,
        on_conditions: 1,
        longest_ns: Some(1),
        longest_at_most_ns: Some(2),
        holder: Some(holder),
        history: history(),
        unlisted: 1,
    })
}

fn lost_wakeup() -> Evidence {
    let first = SleepFact { thread: 1, lock: 2, what: Asleep::Condition, location: 3, for_ns: Some(4) };
    Evidence::Unheard(Unheard { waiting: 1, first, threads: 2, signaller: 5, signalled_at: 6 })
}

fn nobody_left() -> Evidence {
    let one = |what| SleepFact { thread: 1, lock: 2, what, location: 3, for_ns: Some(4) };
    Evidence::Abandoned(Abandoned {
        threads: 3,
        on_locks: 1,
        on_conditions: 1,
        on_semaphores: 1,
        on_barriers: 1,
        on_messages: 1,
        for_ns: Some(1),
        first: [
            Asleep::Lock,
            Asleep::Condition,
            Asleep::Semaphore,
            Asleep::Barrier,
            Asleep::Message,
            Asleep::Thread,
        ]
        .map(one)
        .into(),
    })
}

fn stall() -> Evidence {
    use read_rip_model::locks::Doing;
    let all = [
        Doing::WaitsForLock,
        Doing::WaitsForThread,
        Doing::WaitsInside,
        Doing::WaitsOutside,
        Doing::Kernel,
        Doing::Runs,
        Doing::Starves,
        Doing::Stopped,
        Doing::Unknown,
    ];
    let one = |doing| StandingFact { thread: 1, count: 2, doing, location: Some(3) };
    let first = all.map(one).into();
    Evidence::Stall(Stall { threads: 3, on_locks: 1, on_threads: 1, inside: 1, window_ns: Some(1), first })
}

fn wait_cycle() -> Evidence {
    let blockers = [Blocker::Holder(hold()), Blocker::QueuedWriter(7), Blocker::LeftOut(wait())];
    let lock = |blocker| WaitEdge::Lock(LockEdge { wait: wait(), blocker });
    let join = JoinFact { thread: 1, joined: 2, location: 3, is_timed: true, for_ns: Some(4) };
    let channel = ChannelFact {
        thread: 1,
        lock: 2,
        location: 3,
        for_ns: Some(4),
        peer: 5,
        is_for_room: true,
        is_for_answer: true,
    };
    let worker =
        WaitEdge::Worker { worker: WorkerFact { task: 1, worker: 2, polled: Some(3), workers: Some(4) } };
    let edges = blockers
        .map(lock)
        .into_iter()
        .chain([WaitEdge::Join { join }, WaitEdge::Channel { channel }, worker])
        .collect();
    Evidence::WaitCycle(WaitCycle { threads: 2, for_ns: Some(1), edges, also_blocked: 3 })
}

fn order_cycle() -> Evidence {
    let acquisition = Acquisition { lock: 1, location: 2, is_shared: false };
    let edges = vec![OrderEdge { thread: 1, held: acquisition, acquired: acquisition }];
    Evidence::OrderCycle(OrderCycle { edges, similar: 1, unlisted: 2 })
}

fn livelock() -> [Evidence; 2] {
    let tries = vec![FailedTries { thread: 1, count: 5, lock: 2, location: 3, other: Some(9) }];
    let loops = vec![BusyLoop { thread: 1, marks: 64, last: Some(4) }];
    [
        Evidence::MutualFailure(MutualFailure { threads: 2, tries, is_progress_marked: true }),
        Evidence::BusyLoops(BusyLoops { threads: 2, loops }),
    ]
}

fn crowded_line() -> Evidence {
    let holder = ApparentHolder { thread: 1, location: 3, is_waiting: true, last: Some(4) };
    Evidence::CrowdedLine(CrowdedLine {
        waiting: 3,
        threads: 4,
        example: 1,
        last: Some(4),
        holders: 1,
        first_holders: vec![holder],
        all_holders_wait: true,
    })
}

fn ready_tasks() -> ReadyTasks {
    ReadyTasks { count: 2, first: vec![ReadyTask { task: 1, is_new: true, for_ns: Some(2) }] }
}

fn busy_runtime() -> Evidence {
    let poll = PollFact {
        task: 1,
        thread: Some(2),
        location: Some(3),
        made_at: Some(5),
        for_ns: Some(4),
        is_at_most: true,
    };
    let (polls, ready) = (vec![poll], ready_tasks());
    Evidence::BusyRuntime(BusyRuntime {
        runtime: Some(1),
        only_thread: Some(2),
        workers: 2,
        of_workers: 3,
        is_blocking: true,
        polls,
        ready,
    })
}

/// Evidence of a kind, with every field.
fn evidence(kind: Kind) -> Vec<Evidence> {
    let (hold, wait, waiters) = (hold(), wait(), waiters());
    let (thread, lock, location, last) = (1, 2, 3, Some(4));
    match kind {
        Kind::Deadlock | Kind::Futurelock => vec![wait_cycle()],
        Kind::StarvedRuntime | Kind::LongPoll => vec![busy_runtime()],
        Kind::UnpolledTask => {
            vec![Evidence::Unpolled(Unpolled { ready: ready_tasks(), outer: Some(1) })]
        }
        Kind::NeverWoken => vec![never_woken()],
        Kind::AbandonedChannel => vec![full_channel()],
        Kind::Unreleased => vec![Evidence::DeadHolder(DeadHolder { hold, has_exited: true, waiters })],
        Kind::LostOwner => {
            vec![Evidence::Orphan(Orphan { pid: 1, lock, waiters, locked_at_fork: true, parent: Some(hold) })]
        }
        Kind::DestroyedLock => {
            vec![Evidence::DestroyedWhileHeld(DestroyedWhileHeld { hold, is_initialised: true })]
        }
        Kind::Misuse => {
            let call = |&what: &Refusal| {
                let (thread, tid, count, first_ago_ns) = (Some(thread), 12, 3, Some(4));
                Evidence::RefusedCall(RefusedCall { what, thread, tid, lock, location, count, first_ago_ns })
            };
            Refusal::ALL.iter().map(call).collect()
        }
        Kind::UnlockWithoutLock => {
            vec![Evidence::StrayRelease(StrayRelease { thread, lock, location, released_before: true })]
        }
        Kind::DoubleLock => {
            let second = SecondAcquisition { thread, lock, first: location, second: last };
            vec![Evidence::SecondAcquisition(second)]
        }
        Kind::NestedRead => {
            let (first, second, writer, written) = (location, location, 5, location);
            vec![Evidence::NestedReads(NestedReads { thread, lock, first, second, writer, written })]
        }
        Kind::LockOrder => vec![order_cycle()],
        Kind::Livelock => livelock().into(),
        Kind::StarvedHolder => vec![standstill()],
        Kind::LongWait => vec![standstill(), nobody_left()],
        Kind::LostWakeup => vec![lost_wakeup()],
        Kind::Stall => vec![stall()],
        Kind::PileUp => vec![standstill()],
        Kind::Convoy => vec![queue()],
        Kind::LongHold => {
            vec![Evidence::IdleHolder(IdleHolder {
                hold,
                at_least_ns: 1,
                last,
                suspended: Some(suspended()),
                waiters,
            })]
        }
        Kind::Starvation => {
            let first = vec![OvertakenWait { wait, overtakes: 20 }];
            vec![Evidence::Overtaken(Overtaken { lock, threads: 1, first })]
        }
        Kind::Contention => {
            let (holder, history) = (Some(hold), history());
            vec![Evidence::Contended(Contended { lock, holder, waiters, history, unlisted: 1 })]
        }
        Kind::LockLine => vec![crowded_line()],
    }
}

#[test]
fn a_ring_without_locks_fits_the_schema() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    lock_sites()
        .with_slots([Slot::thread("a", 1).marks([crate::support::fixture::WAITS]).exited()])
        .build()
        .write(&path);
    for options in [&["-tv"][..], &["locks", "--all"], &["check"], &["info"], &[]] {
        let arguments = options.iter().copied().chain(["--json", path.to_str().unwrap()]);
        all_valid(read_rip(arguments).json());
    }
}
