//! How long polls took, by the place of their tasks: see `src/bin/polled.rs`. The oracle reads the counts of the killed
//! program, and the reader says the same of it, dead or alive.

use std::path::Path;
use std::process::Command;

use librip_test_kit::oracle::{Polls, Ring};
use librip_test_kit::reader;
use librip_test_kit::victim::{Plan, Remains, Victim};
use serde_json::Value;

use crate::{json, read};

fn started(way: &str) -> Victim {
    let mut victim = Plan::new(env!("CARGO_BIN_EXE_polled"), &[way]).env("RIP_POLLS", "times").start();
    victim.until("ready");
    victim
}

/// Looks at the ring of the living program, and of the killed one.
fn look(way: &str, judge: impl Fn(&Path)) -> Remains {
    let victim = started(way);
    judge(&victim.ring_path());
    let remains = victim.killed();
    judge(&remains.ring_path());
    remains
}

fn sum((counts, _): &(Vec<u64>, u64)) -> u64 {
    counts.iter().sum()
}

/// The entries of the only place. Threads that make its entry at the same moment make one each, and the reader adds
/// them up.
fn entries(ring: &Ring) -> &[Polls] {
    let [first, others @ ..] = ring.polls.as_slice() else { panic!("no place") };
    assert!(
        others.iter().all(|of| (of.location, &of.name) == (first.location, &first.name)),
        "{:#?}",
        ring.polls
    );
    &ring.polls
}

/// The polls of these entries, and the delays.
fn sums(entries: &[Polls]) -> (u64, u64) {
    (entries.iter().map(|of| sum(&of.polls)).sum(), entries.iter().map(|of| sum(&of.delays)).sum())
}

/// What the reader says of the only place.
fn only_said(ring: &Path) -> Value {
    let mut said = json(&["tasks", "--polls"], "polls", ring);
    assert_eq!(said.len(), 1, "{said:#?}");
    said.remove(0)
}

#[test]
fn no_poll_of_threads_that_poll_at_once_is_lost() {
    let polls = 6 * 20 * 200;
    let remains = look("crowd", |ring| {
        let said = only_said(ring);
        assert_eq!((&said["polls"]["count"], &said["wake_to_poll"]["count"]), (&polls.into(), &polls.into()));
        assert_eq!(said["made_at"]["file"].as_str().map(|file| file.ends_with("polled.rs")), Some(true));
    });
    let ring = remains.ring();
    let entries = entries(&ring);
    // Each poll but the first is the answer to a wake, and the first to that the task was made.
    assert_eq!(sums(entries), (polls, polls));
    for of in entries {
        assert_eq!(of.name, "", "names of these tasks say nothing of their kind");
        assert_eq!(of.longest.len() as u64, sum(&of.polls).min(8));
        let took = of.longest.iter().map(|poll| poll.took);
        assert_eq!(took.max().unwrap_or(0), of.polls.1, "the longest is kept: {of:#?}");
        assert!(of.longest.iter().all(|poll| poll.name == "one of many" && poll.task > 1 << 31), "{of:#?}");
    }
}

#[test]
fn a_long_poll_is_known_after_its_end_with_its_task_its_time_and_its_last_mark() {
    let remains = look("sluggish", |ring| {
        let said = only_said(ring);
        let [polls, delays] = ["polls", "wake_to_poll"].map(|of| said[of].clone());
        assert_eq!((&polls["count"], &delays["count"]), (&3.into(), &2.into()), "{said:#}");
        for of in [&polls, &delays] {
            let [p50, max] = ["p50_ns", "max_ns"].map(|name| of[name].as_u64().unwrap());
            assert!(max >= 20_000_000 && p50 < max, "{said:#}");
        }
        let longest = &json(&["tasks", "--slow"], "long_poll", ring)[0];
        assert_eq!(longest["took_ns"], polls["max_ns"], "{longest:#}");
        assert_eq!((&longest["task"]["name"], &longest["ended"]), (&"sluggish".into(), &true.into()));
        assert_eq!(longest["location"]["label"], "computes", "{longest:#}");
        let (out, _) = read(&["tasks", "--slow"], ring);
        assert!(out.contains("  sluggish[task 1] by polled["), "{out}");
        assert!(out.contains(", last at polled::compute polled.rs:"), "{out}");
        // It has ended: nothing is wrong.
        let check = Command::new(reader::program()).arg("check").arg(ring).output().expect("the reader");
        assert_ne!(check.status.code(), Some(1), "{}", String::from_utf8_lossy(&check.stdout));
    });
    let ring = remains.ring();
    let [of] = entries(&ring) else { panic!("one thread makes one entry: {:#?}", ring.polls) };
    let longest = of.longest.iter().max_by_key(|poll| poll.took).unwrap();
    assert_eq!((longest.pid, longest.tid), (ring.pid, ring.pid), "the main thread polled");
    assert_eq!(of.longest.iter().filter(|poll| poll.last != 0).count(), 1, "the others recorded nothing");
    assert_eq!(of.longest.len(), 3);
}

#[test]
fn tasks_are_counted_by_kind_and_those_of_too_many_kinds_together() {
    let remains = look("kinds", |ring| {
        let said = json(&["tasks", "--polls", "-m", "/again"], "polls", ring);
        assert_eq!((said.len(), &said[0]["polls"]["count"]), (1, &600.into()), "{said:#?}");
        let others = json(&["tasks", "--polls", "-m", "other places"], "polls", ring);
        assert!(others.len() == 1 && others[0].get("made_at").is_none(), "{others:#?}");
    });
    let ring = remains.ring();
    assert_eq!(ring.polls.len(), 256);
    assert_eq!(ring.polls.iter().map(|of| sum(&of.polls)).sum::<u64>(), 2 * (300 + 300));
    let others = ring.polls.iter().find(|of| of.location == 0).unwrap();
    assert_eq!((others.name.as_str(), sum(&others.polls)), ("", 2 * (300 + 1 - 255)));
}

#[test]
fn a_call_on_a_pool_is_no_poll() {
    let remains = look("blocking", |ring| {
        assert!(json(&["tasks", "--polls"], "polls", ring).is_empty());
    });
    assert!(remains.ring().polls.is_empty());
}

#[test]
fn polls_are_read_while_they_are_counted_and_after_a_kill_at_any_moment() {
    let victim = started("for-ever");
    let mut last = 0;
    for _ in 0..3 {
        let (out, errors) = read(&["tasks", "--slow"], &victim.ring_path());
        assert!(!errors.contains("damaged") && !errors.contains("checksum"), "{out}\n{errors}");
        let said = only_said(&victim.ring_path());
        let count = said["polls"]["count"].as_u64().unwrap();
        assert!(count > last, "{count} after {last}");
        last = count;
    }
    let remains = victim.killed();
    let ring = remains.interrupted_ring();
    let (polls, delays) = sums(entries(&ring));
    assert!(polls >= last && delays >= polls, "{polls} after {last}, {delays} delays");
    assert_eq!(only_said(&remains.ring_path())["polls"]["count"], polls);
}

#[test]
fn without_the_setting_nothing_is_counted_and_the_reader_says_which_setting_it_is() {
    let mut victim = Plan::new(env!("CARGO_BIN_EXE_polled"), &["sluggish"]).start();
    victim.until("ready");
    let (out, errors) = read(&["tasks", "--polls"], &victim.ring_path());
    assert!(errors.contains("start the program with RIP_POLLS=times"), "{out}\n{errors}");
    assert!(victim.killed().ring().polls.is_empty());
}
