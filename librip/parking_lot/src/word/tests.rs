//! What the word lets in, whom it wakes, and that it loses nobody.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

/// Longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_micros(50))
}

fn word(word: &Word) -> u32 {
    word.0.load(Relaxed)
}

/// Waits until the word has these bits.
fn until(of: &Word, bits: u32) {
    let end = Instant::now() + PATIENCE;
    while word(of) & bits != bits {
        assert!(Instant::now() < end, "{:b} never has {bits:b}", word(of));
        thread::yield_now();
    }
}

#[test]
fn a_waiting_writer_keeps_readers_out_but_not_recursive_ones() {
    let lock = Word::new();
    assert!(lock.lock(Mode::Shared, None));
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(lock.lock(Mode::Exclusive, None));
            lock.unlock(Mode::Exclusive, None, false);
        });
        until(&lock, WRITER | DRAINING);
        assert!(!lock.is_exclusive() && lock.is_locked());
        assert!(!lock.try_lock(Mode::Shared) && !lock.try_lock(Mode::Upgradable));
        assert!(!lock.lock(Mode::Shared, soon()), "a reader waits until the writer had the lock");
        assert!(lock.lock(Mode::Recursive, None));
        lock.unlock_shared();
        lock.unlock_shared();
    });
    assert_eq!(word(&lock), 0);
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_behind_it_in() {
    let lock = Word::new();
    assert!(lock.lock(Mode::Shared, None));
    thread::scope(|scope| {
        scope.spawn(|| {
            let time = Some(Instant::now() + Duration::from_millis(30));
            assert!(!lock.lock(Mode::Exclusive, time), "there is a reader");
        });
        scope.spawn(|| {
            assert!(lock.lock(Mode::Shared, None));
            lock.unlock_shared();
        });
    });
    lock.unlock_shared();
    assert_eq!(word(&lock), 0);
}

#[test]
fn one_upgradable_reader_and_any_number_of_others_share_the_lock() {
    let lock = Word::new();
    assert!(lock.lock(Mode::Upgradable, None) && lock.try_lock(Mode::Shared));
    assert!(!lock.try_lock(Mode::Upgradable) && !lock.try_lock(Mode::Exclusive));
    assert!(!lock.try_upgrade() && !lock.upgrade(soon()), "there is another reader");
    assert_eq!(word(&lock), UPGRADABLE | (2 * READER), "the failed upgrade has changed nothing");
    lock.unlock_shared();
    assert!(lock.try_upgrade() && lock.is_exclusive());
    lock.unlock(Mode::Exclusive, Some(Mode::Upgradable), false);
    assert!(lock.upgrade(None));
    lock.unlock(Mode::Exclusive, Some(Mode::Shared), false);
    assert_eq!(word(&lock), READER);
    lock.unlock_shared();
}

#[test]
fn a_fair_unlock_hands_the_lock_over() {
    let lock = Word::new();
    assert!(lock.lock(Mode::Exclusive, None));
    thread::scope(|scope| {
        let (says, hears) = mpsc::channel::<()>();
        scope.spawn(|| {
            assert!(lock.lock(Mode::Exclusive, None));
            // Until the other thread has tried.
            let _ = hears.recv_timeout(PATIENCE);
            drop(hears);
            lock.unlock(Mode::Exclusive, None, false);
        });
        let end = Instant::now() + PATIENCE;
        loop {
            until(&lock, PARKED);
            lock.unlock(Mode::Exclusive, None, true);
            // The thread may have been on its way into the queue: then nobody was there to hand it to.
            if !lock.try_lock(Mode::Exclusive) {
                break;
            }
            assert!(Instant::now() < end, "a thread that waits gets the lock in the end");
        }
        drop(says);
    });
    assert_eq!(word(&lock), 0);
}

/// Threads that use a lock in all ways at once, and what they check: no writer beside others, and nobody is forgotten.
struct Storm {
    lock: Word,
    /// Written by writers, one after the other: readers see equal numbers.
    values: [AtomicU64; 2],
    upgraders: AtomicU64,
}

impl Storm {
    fn write(&self) {
        for value in &self.values {
            value.store(value.load(Relaxed) + 1, Relaxed);
            // Others come meanwhile, spin, and go into the queue.
            thread::yield_now();
        }
    }

    fn read(&self) {
        let [first, second] = [0, 1].map(|index: usize| self.values[index].load(Relaxed));
        assert_eq!(first, second, "a reader beside a writer");
        thread::yield_now();
    }

    fn turn(&self, choice: u64) {
        let lock = &self.lock;
        let is_fair = choice & 0x100 != 0;
        let time = if choice & 0x600 == 0 { soon() } else { None };
        match choice % 8 {
            0 | 1 if lock.lock(Mode::Shared, time) => {
                self.read();
                lock.unlock_shared();
            }
            2 if lock.lock(Mode::Recursive, time) => {
                self.read();
                if lock.lock(Mode::Recursive, None) {
                    lock.unlock_shared();
                }
                lock.unlock_shared();
            }
            3 | 4 if lock.lock(Mode::Exclusive, time) => {
                self.write();
                lock.unlock(Mode::Exclusive, None, is_fair);
            }
            5 if lock.lock(Mode::Exclusive, time) => {
                self.write();
                let kept = if choice & 0x800 == 0 { Mode::Shared } else { Mode::Upgradable };
                lock.unlock(Mode::Exclusive, Some(kept), false);
                self.read();
                match kept {
                    Mode::Upgradable => lock.unlock(kept, None, is_fair),
                    _ => lock.unlock_shared(),
                }
            }
            6 | 7 if lock.lock(Mode::Upgradable, time) => {
                assert_eq!(self.upgraders.fetch_add(1, Relaxed), 0, "two upgradable readers");
                self.read();
                self.upgraders.fetch_sub(1, Relaxed);
                if choice & 0x800 == 0 && lock.upgrade(time) {
                    self.write();
                    lock.unlock(Mode::Exclusive, None, is_fair);
                } else if choice & 0x1000 == 0 {
                    lock.unlock(Mode::Upgradable, Some(Mode::Shared), false);
                    lock.unlock_shared();
                } else {
                    lock.unlock(Mode::Upgradable, None, is_fair);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn in_a_storm_of_all_modes_nobody_is_forgotten_and_no_writer_meets_a_reader() {
    const THREADS: u64 = 8;
    const TURNS: u64 = 4_000;
    let storm = std::sync::Arc::new(Storm {
        lock: Word::new(),
        values: [AtomicU64::new(0), AtomicU64::new(0)],
        upgraders: AtomicU64::new(0),
    });
    let (says, hears) = mpsc::channel();
    for thread in 0..THREADS {
        let (storm, says) = (std::sync::Arc::clone(&storm), says.clone());
        thread::spawn(move || {
            let mut random = 0x9e37_79b9_7f4a_7c15 ^ (thread + 1) << 20;
            for _ in 0..TURNS {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                storm.turn(random >> 16);
            }
            let _ = says.send(());
        });
    }
    drop(says);
    for _ in 0..THREADS {
        hears.recv_timeout(PATIENCE).expect("every thread ends");
    }
    assert!(storm.lock.lock(Mode::Exclusive, None));
    storm.lock.unlock(Mode::Exclusive, None, true);
    assert_eq!(word(&storm.lock), 0);
}
