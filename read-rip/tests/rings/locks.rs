//! Locks: who holds each, who waits for it and how it was used, as `read-rip locks` shows it, for rings made by hand.
//!
//! Not tested here: that the recorder writes such rings, the model of the locks (`lock_model.rs`), and what `check`
//! makes of it.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::fixture::Fixture;
use crate::support::locks::*;
use crate::support::run::{Outcome, show};
use crate::support::synth::{Held, Module, Ring, Slot};
use serde_json::{Value, json as value};

fn locks(ring: &Ring, options: &[&str]) -> Outcome {
    Fixture::of(ring).show(&[&["locks"], options].concat())
}

fn shown(ring: &Ring) -> String {
    locks(ring, &[]).sound().result().to_owned()
}

/// The `lock` objects.
fn json(ring: &Ring) -> Vec<Value> {
    locks(ring, &["--json"]).sound().data("lock")
}

#[test]
fn a_lock_shows_its_holder_and_its_waiters_by_location() {
    let waiter = |tid| Slot::thread("worker", tid).event(TAKES, &[at(3.5), A]).event(WAIT, &[at(3.5), A]);
    let ring = ring().with_slots([
        Slot::thread("owner", 10)
            .event(TAKES, &[at(3.0), A])
            .has(Held { sequence: 2, ..Held::new(HELD, A, TAKES).since(at(3.0)) }),
        waiter(11).has(Held::new(WAITING, A, WAIT).since(at(3.5))),
        waiter(12).has(Held::new(WAITING, A, WAIT).since(at(4.0))),
        Slot::thread("timed", 13).event(TIMED_WAIT, &[at(4.5), A]).has(Held::new(WAITING, A, TIMED_WAIT)),
    ]);
    let ring = Ring { lock_names: vec![(4321, A, "cache".into()), (1, B, "other".into())], ..ring };
    assert_eq!(
        shown(&ring),
        "cache  mutex at 0x7f0000001000\n  \
           held by owner[10] at server::cache::? cache.rs:10<0x1000>, for at least 1.5 s\n  \
           2 threads wait at server::cache::? cache.rs:11<0x1100>, the longest for at least 1.0 s\n  \
           timed[13] waits with a time limit at server::net::? net.rs:32<0x3200>\n  \
           1 known acquisition\n"
    );
    let verbose = locks(&ring, &["-v"]).sound().stdout;
    assert!(
        verbose.contains("2 threads (worker[11], worker[12]) wait at server::cache::? cache.rs:11<0x1100>")
    );
}

#[test]
fn after_a_death_at_an_unknown_moment_times_are_lower_bounds() {
    let wait = Held::new(WAITING, A, WAIT);
    let slots = [
        Slot::thread("early", 11).has(wait.since(at(3.5))),
        Slot::thread("late", 12).event(WAIT, &[at(4.5), A]).has(wait.since(at(4.5))),
    ];
    let shown = shown(&ring().of_a_dead_process().with_slots(slots));
    assert!(shown.contains("2 threads wait at "), "{shown}");
    // The last recorded moment is 4.5 s after the boot. When the ring is read does not count.
    assert!(shown.contains(", the longest for at least 1.0 s\n"), "{shown}");
}

#[test]
fn many_waiters_at_one_location_are_one_line() {
    let slots = (1..3000).map(|tid| Slot::thread("w", tid).has(Held::new(WAITING, A, WAIT)));
    let shown = shown(&ring().with_slots(slots));
    assert_eq!(
        shown,
        "lock of server::cache::? cache.rs:11<0x1100>  mutex at 0x7f0000001000\n  \
           holder not known\n  \
           2999 threads wait at server::cache::? cache.rs:11<0x1100>\n"
    );
}

#[test]
fn the_lock_with_most_waiters_comes_first() {
    let ring = ring().with_slots([
        Slot::thread("a", 1).has(Held::new(WAITING, A, WAIT)),
        Slot::thread("b", 2).has(Held::new(WAITING, B, WAIT)),
        Slot::thread("c", 3).has(Held::new(WAITING, B, WAIT)),
    ]);
    let locks = json(&ring);
    assert_eq!(locks.len(), 2);
    assert_eq!(locks[0]["address"], format!("{B:#x}"));
}

#[test]
fn operations_on_a_lock_are_counted() {
    let ring = ring().with_slots([
        Slot::thread("a", 1)
            .event(TAKES, &[at(3.0), A])
            .event(RELEASED, &[at(3.25), at(3.0), A])
            .event(TAKES, &[at(4.0), A])
            .event(WAIT, &[at(4.0), A])
            .event(RELEASED, &[at(4.75), at(4.5), A])
            // A failed try is not an acquisition.
            .event(TRY_TAKES, &[A])
            .event(TRY_FAILED, &[A])
            .event(TRY_TAKES, &[A])
            .marks([SNAP]),
        // The matching acquisition was overwritten.
        Slot::thread("b", 2).from(100).at(5000).event(RELEASED, &[at(5.0), at(4.9), A]),
    ]);
    let lock = &json(&ring)[0];
    assert_eq!(lock["acquisitions"], 3);
    assert_eq!(lock["contended"], 1);
    assert_eq!(lock["failed_tries"], 1);
    assert_eq!(lock["owners"], 1);
    assert_eq!(lock["wrapped"], true);
    let ns = |value: &Value| (value.as_f64().unwrap() / 1e6).round() as u64;
    assert_eq!((ns(&lock["waits"]["max_ns"]), lock["waits"]["count"].as_u64()), (500, Some(1)));
    assert_eq!(lock["holds"]["count"], 3);
    assert_eq!((ns(&lock["holds"]["p50_ns"]), ns(&lock["holds"]["max_ns"])), (250, 250));
    assert!(lock["holders"].as_array().unwrap().is_empty());
    let text = shown(&ring);
    assert!(text.contains("  3 known acquisitions, 1 of them contended (33 %); 1 try failed\n"), "{text}");
    assert!(text.contains("  waits: 500 ms, known once\n"), "{text}");
}

#[test]
fn marks_by_hand_measure_the_wait_between_them() {
    let ring = ring().with_slots([Slot::thread("a", 1)
        .event(HAND_WAIT, &[at(3.0), A])
        .event(HAND_ACQUIRED, &[at(3.5), A])
        .event(HAND_RELEASED, &[at(3.6), 0, A])]);
    let lock = &json(&ring)[0];
    assert_eq!((lock["acquisitions"].as_u64(), lock["wrapped"].as_bool()), (Some(1), Some(false)));
    assert_eq!(lock["waits"]["max_ns"], 500_000_000);
    assert_eq!(lock["holds"]["max_ns"], 100_000_000);
    assert!(shown(&ring).contains("1 known acquisition, 1 of them after a marked wait\n"));
}

#[test]
fn the_held_lock_table_decides_the_outcome_of_the_last_attempt() {
    let attempt = |tid, waits: bool| {
        let slot = Slot::thread("a", tid).event(TAKES, &[at(3.0), A]);
        if waits { slot.event(WAIT, &[at(3.0), A]) } else { slot }
    };
    for (state, waits, acquisitions) in
        [(TAKING, false, 0), (WAITING, true, 0), (HELD, false, 1), (HELD, true, 1), (RELEASING, true, 1)]
    {
        let site = if waits { WAIT } else { TAKES };
        // The sequence of the event that made the entry.
        let entry = Held { sequence: 2, ..Held::new(state, A, site) };
        let ring = ring().with_slots([attempt(1, waits).has(entry)]);
        assert_eq!(json(&ring)[0]["acquisitions"], acquisitions, "{state} {waits}");
    }
    let entries = [
        Held { sequence: 2, ..Held::new(HELD, A, TAKES) },
        Held { sequence: 5, ..Held::new(WAITING, A, WAIT) },
    ];
    let twice = Slot::thread("a", 1).event(TAKES, &[0, A]).event(TAKES, &[0, A]).event(WAIT, &[0, A]);
    let ring = ring().with_slots([entries.into_iter().fold(twice, Slot::has)]);
    assert_eq!(json(&ring)[0]["acquisitions"], 1, "it waits for a lock that it holds");
    let ring = Ring { slots: vec![attempt(1, false)], ..ring };
    assert_eq!(json(&ring)[0]["acquisitions"], 0, "it may have failed");
    let ring = ring.with_slots([attempt(2, false).marks([SNAP])]);
    assert_eq!(json(&ring)[0]["acquisitions"], 1, "a later mark shows that it succeeded");
}

#[test]
fn a_thread_that_may_hold_a_lock_is_not_a_holder() {
    let ring = ring().with_slots([
        Slot::thread("a", 1).has(Held::new(TAKING, A, TAKES)),
        Slot::thread("b", 2).has(Held::new(RELEASING, A, TAKES)),
        Slot::thread("c", 3).has(Held::new(CONDITION, A, TAKES)),
        Slot::thread("d", 4).has(Held::new(WAITING, A, WAIT)),
        Slot::thread("e", 5).has(Held::new(DESTROYED, B, TAKES)),
    ]);
    assert_eq!(
        shown(&ring),
        "WAITING  LONGEST  ACQUIRED  CONTENDED  LOCK                                                         HOLDER\n      \
           1                  0          0  lock of server::cache::? cache.rs:10<0x1000> 0x7f0000001000\n      \
           0                  0          0  lock of server::cache::? cache.rs:10<0x1000> 0x7f0000002000\n\
         lock of server::cache::? cache.rs:10<0x1000>  mutex at 0x7f0000001000\n  \
           a[1] is acquiring it at server::cache::? cache.rs:10<0x1000>\n  \
           b[2] is releasing it, acquired at server::cache::? cache.rs:10<0x1000>\n  \
           c[3] waits on a condition variable at server::cache::? cache.rs:10<0x1000> \
           (the lock is released meanwhile)\n  \
           no thread is certain to hold it\n  \
           d[4] waits at server::cache::? cache.rs:11<0x1100>\n\
         lock of server::cache::? cache.rs:10<0x1000>  mutex at 0x7f0000002000\n  \
           destroyed while held by e[5], acquired at server::cache::? cache.rs:10<0x1000>\n"
    );
}

#[test]
fn threads_that_wait_on_a_condition_or_for_units_at_one_place_are_one_line() {
    let sleeper = |tid| Slot::thread("sleeper", tid).has(Held::new(CONDITION, A, WAIT).since(at(3.0)));
    let taker = |tid| Slot::thread("taker", tid).has(Held::new(SEMAPHORE, B, WAIT).since(at(4.0)));
    let other = Slot::thread("other", 9).has(Held::new(CONDITION, A, TAKES));
    let ring = ring().with_slots([sleeper(1), sleeper(2), sleeper(3), taker(5), taker(6), other]);
    let text = shown(&ring);
    for expected in [
        "  3 threads wait on a condition variable at server::cache::? cache.rs:11<0x1100>, the longest for at least \
         1.0 s (the lock is released meanwhile)\n  \
           other[9] waits on a condition variable at server::cache::? cache.rs:10<0x1000> (",
        "  2 threads wait for a unit at server::cache::? cache.rs:11<0x1100>\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let lines = json(&ring);
    let groups = |of: &str| -> Vec<Value> {
        lines.iter().flat_map(|lock| lock[of].as_array().unwrap().clone()).collect()
    };
    let [conditions, units] = ["condition_waiters", "semaphore_waiters"].map(groups);
    assert_eq!((conditions.len(), units.len()), (2, 1));
    assert_eq!(
        (&conditions[0]["tids"], &conditions[0]["location"]["line"]),
        (&value!([1, 2, 3]), &value!(11))
    );
    assert_eq!((&units[0]["threads"], &units[0]["location"]["line"]), (&value!(2), &value!(11)));
}

#[test]
fn a_lock_can_be_held_recursively_and_shared() {
    let reads = |tid| Slot::thread("r", tid).has(Held { shared: true, ..Held::new(HELD, B, READS) });
    let ring = ring().with_slots([
        Slot::thread("a", 1).has(Held { recursion: 2, ..Held::new(HELD, A, TAKES) }),
        reads(2),
        reads(3),
        Slot::thread("w", 4).has(Held { shared: true, ..Held::new(WAITING, B, READ_WAIT) }),
    ]);
    let locks = json(&ring);
    let [shared, recursive] = &locks[..] else { panic!("{locks:#?}") };
    assert_eq!(recursive["holders"][0]["recursion"], 2);
    assert_eq!(recursive["holders"][0].get("since_boottime_ns"), None);
    assert_eq!((&shared["type"], &shared["contradictory"]), (&"rwlock".into(), &false.into()));
    assert_eq!(shared["holders"].as_array().unwrap().len(), 2);
    let text = shown(&ring);
    assert!(text.contains("  held shared by 2 threads at server::net::? net.rs:30<0x3000>\n"), "{text}");
    assert!(text.contains("  w[4] waits (shared) at server::net::? net.rs:31<0x3100>\n"), "{text}");
}

#[test]
fn two_holders_of_an_exclusive_lock_are_contradictory() {
    let ring = ring().with_slots([1, 2].map(|tid| Slot::thread("a", tid).has(Held::new(HELD, A, TAKES))));
    assert!(shown(&ring).contains("  contradictory: "), "{}", shown(&ring));
    assert_eq!(json(&ring)[0]["contradictory"], true);
    // In a living process, the reader sees each thread at a different moment.
    let mut ring = ring.of_this_process();
    ring.modules[0].pid = ring.pid;
    let fixture = Fixture::of(&ring);
    let _mapped = crate::support::map(&fixture.path);
    let outcome = show(&["locks"], &fixture.path).sound();
    assert!(outcome.stdout.contains("  it changed hands while it was read\n"), "{outcome:#?}");
    assert!(outcome.stderr.contains("each is shown at a slightly different moment"), "{outcome:#?}");
}

#[test]
fn an_exited_holder_still_holds_its_lock() {
    let ring = ring().with_slots([Slot::thread("a", 1).has(Held::new(HELD, A, TAKES)).exited()]);
    assert!(shown(&ring).contains("  held by a[1], which has exited, at "), "{}", shown(&ring));
    assert_eq!(json(&ring)[0]["holders"][0]["thread_state"], "exited");
}

#[test]
fn an_entry_that_was_being_written_is_counted_and_ignored() {
    let torn = Held { sequence: 4999, place_sequence: Some(5000), ..Held::new(TAKING, A, TAKES) };
    let whole = Held { sequence: 5000, ..Held::new(HELD, B, TAKES) };
    let outcome = locks(&ring().with_slots([Slot::thread("a", 1).has(torn).has(whole)]), &[]).sound();
    assert!(!outcome.stdout.contains("0x7f0000001000"), "{outcome:#?}");
    assert!(outcome.stdout.contains("mutex at 0x7f0000002000\n  held by a[1] "), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("1 lock was being acquired or released during the reading"),
        "{outcome:#?}"
    );
}

#[test]
fn an_entry_without_a_lock_is_damage() {
    let ring = ring().with_slots([
        Slot::thread("a", 1).has(Held::new(HELD, 0, TAKES)),
        Slot::thread("b", 2).has(Held::new(HELD, A, TAKES)),
    ]);
    let outcome = locks(&ring, &[]);
    outcome.fails_with(
        "1 damaged slot, the first is number 0: an entry of the held-lock table contradicts itself",
    );
}

#[test]
fn locks_without_an_entry_in_the_table_are_mentioned() {
    let mut slot = Slot::thread("a", 1);
    slot.held_overflowed = 3;
    let ring = Ring { held_overflows: 9, releases_unmatched: 2, ..ring() };
    let ring = ring.with_slots([slot, Slot::thread("b", 2).has(Held::new(WAITING, A, WAIT))]);
    let outcome = locks(&ring, &[]).sound();
    assert!(
        outcome.stdout.contains("  holder not known: it may be a thread whose table of held locks is full")
    );
    for remark in [
        "3 held locks are not listed: a thread's table has room for 16",
        "9 acquisitions were not recorded as held so far, because a thread's table was full.",
        "2 releases by a thread other than the holder were not matched to the holder",
    ] {
        assert!(outcome.stderr.contains(remark), "{outcome:#?}");
    }
}

#[test]
fn a_forked_child_has_another_lock_at_the_same_address() {
    let child = Slot { pid: Some(4400), ..Slot::thread("child", 4400) };
    let ring = ring().with_slots([
        Slot::thread("a", 1).has(Held::new(HELD, A, TAKES)),
        child.has(Held::new(HELD, A, TAKES)),
    ]);
    let text = shown(&ring);
    assert!(text.contains("mutex at 0x7f0000001000\n  held by a[1] at "), "{text}");
    let (_, of_child) = text.split_once("\nserver[4400], has ended; child of 4321: 1 thread\n").unwrap();
    assert!(of_child.contains("mutex at 0x7f0000001000\n  held by child[4400] of process 4400"), "{text}");
    assert!(!text.contains("contradictory"), "{text}");
}

#[test]
fn idle_locks_are_hidden_when_there_are_many() {
    let slots = (0..30).map(|n| Slot::thread("a", 1 + n).event(TAKES, &[0, A + u64::from(n)]).marks([SNAP]));
    let ring = ring().with_slots(slots.chain([Slot::thread("b", 99).has(Held::new(HELD, B, TAKES))]));
    let outcome = locks(&ring, &[]).sound();
    assert_eq!(outcome.stdout.matches("mutex at").count(), 1);
    assert!(outcome.stderr.contains("30 idle, uncontended locks hidden (--all shows them)"), "{outcome:#?}");
    assert_eq!(locks(&ring, &["--all"]).sound().stdout.matches("mutex at").count(), 31);
}

#[test]
fn steps_before_words_that_are_missing_do_not_count_as_known() {
    let mut slot = Slot::thread("a", 1).event(TAKES, &[0, A]).event(TRY_FAILED, &[A]).marks([SNAP]);
    // The failure is missing, so the outcome of the acquisition is unknown.
    slot.words.retain(|&(sequence, ..)| sequence != 4);
    let lock = &json(&ring().with_slots([slot]))[0];
    assert_eq!((lock["acquisitions"].as_u64(), lock["failed_tries"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn the_other_views_show_lock_events_as_marks() {
    let ring = ring().with_slots([Slot::thread("a", 1).event(TAKES, &[7, A]).event(RELEASED, &[9, 8, A])]);
    let fixture = Fixture::of(&ring);
    assert_eq!(
        fixture.show(&["-t"]).sound().stdout,
        "a[1]: {2}cache.rs:10(takes), {6}cache.rs:12(released)\n"
    );
    assert_eq!(
        fixture.show(&["-tv"]).sound().stdout,
        "a[1]: {2}cache.rs:10<0x1000>(takes) of 0x7f0000001000, {6}cache.rs:12<0x1200>(released) of 0x7f0000001000\n"
    );
    let events = &fixture.show(&["-t", "--json"]).sound().json()[1]["data"]["events"];
    assert_eq!(events[0]["location"]["kind"], "lock_acquire_begin");
    assert_eq!(events[1]["location"]["kind"], "lock_released");
    assert_eq!(events[1]["lock"], "0x7f0000001000");
}

/// A static of this test program. The reader finds it by its symbol.
static CACHE_LOCK: [u64; 4] = [1; 4];

#[test]
fn a_lock_in_a_static_is_named_after_its_symbol() {
    let exe = std::env::current_exe().unwrap();
    let metadata = fs::metadata(&exe).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let first = maps.lines().find(|line| line.ends_with(exe.to_str().unwrap())).unwrap();
    let load_bias = u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap();
    let mut ring = ring();
    ring.modules.push(Module {
        load_bias,
        begin: 0,
        end: 1 << 30,
        path: exe.into_os_string().into_encoded_bytes(),
        build_id: Vec::new(),
        file_len: metadata.len(),
        modified_ns: metadata.mtime() as u64 * 1_000_000_000 + metadata.mtime_nsec() as u64,
        is_executable: false,
        ..Module::program()
    });
    let address = std::hint::black_box(&raw const CACHE_LOCK) as u64;
    let held = |address| Held::new(HELD, address, TAKES);
    let ring = ring.with_slots([Slot::thread("a", 1).has(held(address)).has(held(address + 16))]);
    let text = shown(&ring);
    assert!(text.contains(&format!("locks::CACHE_LOCK  mutex at {address:#x}\n")), "{text}");
    assert!(text.contains("locks::CACHE_LOCK+0x10  mutex at "), "{text}");
}

#[test]
fn a_pattern_selects_locks_by_name_thread_or_location() {
    let ring = ring().with_slots([
        Slot::thread("owner", 1).event(TAKES, &[at(3.0), A]).has(Held::new(HELD, A, TAKES)),
        Slot::thread("other", 2).event(TAKES, &[at(3.0), B]).has(Held::new(HELD, B, TAKES)),
    ]);
    let ring = Ring { lock_names: vec![(4321, A, "cache".into())], ..ring };
    for pattern in ["^cache$", r"owner\[1\]"] {
        let shown = locks(&ring, &["-m", pattern]).sound();
        assert!(shown.result().starts_with("cache  mutex"), "{shown:#?}");
        assert!(!shown.result().contains("other[2]"), "{shown:#?}");
    }
    let all = locks(&ring, &["-m", r"cache\.rs:10"]).sound();
    assert_eq!(all.result().matches("held by").count(), 2, "{all:#?}");
}

#[test]
fn verbose_histories_have_the_names_of_locks_and_times() {
    let ring = ring()
        .with_slots([Slot::thread("owner", 1).event(TAKES, &[at(3.0), A]).event(TAKES, &[at(3.25), B])]);
    let fixture = Fixture::of(&Ring { lock_names: vec![(4321, A, "cache".into())], ..ring });
    let lines = fixture.show(&["-tv"]).sound().stdout;
    let cache = format!("(takes) of cache ({A:#x}) at ");
    let (_, after) = lines.split_once(&cache).unwrap_or_else(|| panic!("{lines}"));
    let seconds = |text: &str| text.split(' ').next().unwrap().parse::<f64>().unwrap();
    let first = seconds(after);
    let (_, after) = after.split_once(&format!("(takes) of {B:#x} at ")).unwrap();
    assert!((seconds(after) - first - 0.25).abs() < 1e-5, "{lines}");
    assert!(!fixture.show(&["-t"]).sound().stdout.contains("cache ("), "only with -v");
    let json = fixture.show(&["-t", "--json"]).sound().json();
    let event = &json[1]["data"]["events"][0];
    assert_eq!(
        (&event["lock_name"], &event["boottime_ns"]),
        (&"cache".into(), &"3000000000".into()),
        "{event}"
    );
}
