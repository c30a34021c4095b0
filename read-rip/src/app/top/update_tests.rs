//! Looks at rings made by hand, whose threads go on between two looks.

use std::path::Path;

use librip_test_kit::builder::{Held, Ring, Slot, Task};

use super::*;
use crate::top::LockUpdate;

const LOCK: u64 = 0x7000;
const WAITING: u64 = 2;
const HELD: u64 = 3;

/// A ring whose threads have made so many marks, in an order of its own.
fn ring(slot_words: u32, marks: &[(u32, usize)]) -> Ring {
    let slots = marks.iter().map(|&(tid, marks)| {
        let state = if tid == 10 { HELD } else { WAITING };
        Slot::thread("worker", tid).marks(vec![0x1000; marks]).has(Held::new(state, LOCK, 0x1000))
    });
    Ring { slot_words, ..Ring::new().with_sites(&[(0x1000, "src/a.rs", 1)]).with_slots(slots) }
}

fn thread(tid: u32) -> ThreadKey {
    ThreadKey { pid: Ring::new().pid, tid }
}

fn subject(path: &Path, process: Option<u32>) -> Subject {
    Subject::Ring { path: path.to_owned(), process }
}

#[test]
fn it_says_who_waits_who_holds_and_who_has_moved_since_the_last_look() {
    // The longer slots are not copied whole.
    for slot_words in [64, 1024] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        ring(slot_words, &[(10, 3), (11, 5), (12, 5)]).build().write(&path);
        let mut watch = Watch::of(&subject(&path, None)).unwrap();
        let first = watch.update().unwrap();
        assert_eq!((first.waiting, first.holding, first.period_ns), (2, 1, None));
        let lock = LockKey { pid: Ring::new().pid, address: LOCK };
        assert_eq!(first.locks[&lock], LockUpdate { waiters: 2, holder: Some(thread(10)) });
        assert!(first.advanced.is_empty() && first.words_per_second().is_none());

        ring(slot_words, &[(10, 7), (11, 5), (12, 6), (13, 9)]).build().write(&path);
        let second = watch.update().unwrap();
        assert_eq!(second.waiting, 3);
        // It is not known when the new thread made its marks.
        assert_eq!(second.advanced, [(thread(10), 4), (thread(12), 1)].into_iter().collect());
        assert!(second.period_ns.is_some() && second.words_per_second().is_some());
    }
}

#[test]
fn a_ring_that_is_cut_off_or_no_ring_is_not_looked_at() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    ring(64, &[(10, 3)]).build().write(&path);
    let mut watch = Watch::of(&subject(&path, None)).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
    assert_eq!(watch.update(), None);
    std::fs::write(&path, "no ring").unwrap();
    assert!(Watch::of(&subject(&path, None)).is_none());
    assert!(Watch::of(&subject(directory.path(), None)).is_none());
}

#[test]
fn it_looks_at_one_process_of_a_ring_if_it_is_asked_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    ring(64, &[(10, 3), (11, 5)]).build().write(&path);
    assert_eq!(Watch::of(&subject(&path, Some(Ring::new().pid))).unwrap().update().unwrap().waiting, 1);
    assert_eq!(Watch::of(&subject(&path, Some(1))).unwrap().update().unwrap().waiting, 0);
}

#[test]
fn a_task_that_waits_for_a_lock_in_two_futures_is_one_waiter() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ring");
    let wait = || Held { recursion: 4095, ..Held::new(WAITING, LOCK, 0x1000) };
    let other = Held::new(WAITING, LOCK + 8, 0x1000);
    let task = Slot::task("stuck", 1, Task::new()).has(wait()).has(wait()).has(other);
    let ring = Ring { has_tasks: true, ..Ring::new().with_sites(&[(0x1000, "src/a.rs", 1)]) };
    ring.with_slots([task]).build().write(&path);
    let update = Watch::of(&subject(&path, None)).unwrap().update().unwrap();
    let waiters = |address| update.locks[&LockKey { pid: Ring::new().pid, address }].waiters;
    assert_eq!((waiters(LOCK), waiters(LOCK + 8), update.waiting), (1, 1, 1));
}
