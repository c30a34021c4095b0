//! Threads that claim slots, release them, and reuse the slots of others.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier, mpsc};

use librip::rip_snap;

use super::forks::reap;
use crate::common::{begin, cells, cycle, cycle_through, named, pause, run, say, tid};

pub(crate) fn first() {
    run("quiet", || ());
    run("marks", || {
        begin(&cells()[0]);
        rip_snap!("first");
        rip_snap!("second");
    });
}

/// Threads that start recording at the same time. Each makes a mark as soon as its call has returned.
pub(crate) fn begin_together() {
    let barrier = Arc::new(Barrier::new(16));
    let threads: Vec<_> = (0..16)
        .map(|index| {
            let barrier = barrier.clone();
            let thread = named(&format!("t{index}")).spawn(move || {
                barrier.wait();
                librip::init().unwrap();
                rip_snap!("began");
            });
            thread.unwrap()
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A thread that marks and exits on request.
struct Puppet {
    sender: mpsc::Sender<u64>,
    done: mpsc::Receiver<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Puppet {
    fn new(name: &str) -> Puppet {
        let (sender, orders) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let thread = named(name).spawn(move || {
            for marks in orders {
                (0..marks).for_each(cycle);
                report.send(()).unwrap();
            }
        });
        Puppet { sender, done, thread: thread.unwrap() }
    }
    fn marks(&self, marks: u64) {
        self.sender.send(marks).unwrap();
        self.done.recv().unwrap();
    }
    fn exits(self) {
        drop(self.sender);
        self.thread.join().unwrap();
    }
}

/// Four slots. Their owners exit in the order c, a, d, b, and four more threads start.
pub(crate) fn reuse() {
    let first = ["a", "b", "c", "d"].map(|name| {
        let puppet = Puppet::new(name);
        puppet.marks(5);
        puppet
    });
    let [a, b, c, d] = first;
    for puppet in [c, a, d, b] {
        puppet.exits();
    }
    let second = ["e", "f", "g", "h"].map(|name| {
        let puppet = Puppet::new(name);
        puppet.marks(3);
        puppet
    });
    pause();
    second.into_iter().for_each(Puppet::exits);
}

/// As many slots as threads: no evidence is overwritten.
pub(crate) fn fresh() {
    for index in 0..64 {
        let puppet = Puppet::new(&format!("t{index}"));
        puppet.marks(index + 1);
        puppet.exits();
    }
}

/// Threads that have the same id, one after the other.
pub(crate) fn same_tid() {
    let wanted = Arc::new(AtomicU32::new(0));
    run("dies", {
        let wanted = wanted.clone();
        move || {
            (0..5).for_each(cycle);
            wanted.store(tid(), Relaxed);
        }
    });
    let wanted = wanted.load(Relaxed);
    for _ in 0..200 {
        if std::fs::write("/proc/sys/kernel/ns_last_pid", (wanted - 1).to_string()).is_err() {
            say("cannot");
            return;
        }
        let hit = named("lives").spawn(move || {
            let hit = tid() == wanted;
            if hit {
                (0..3).for_each(cycle);
            }
            hit
        });
        if hit.unwrap().join().unwrap() {
            say(&format!("{wanted}"));
            return;
        }
    }
    say("unlucky");
}

/// All threads make their first mark at once.
pub(crate) fn crowd(threads: usize) {
    let barrier = Arc::new(Barrier::new(threads + 1));
    let cells = cells();
    for (index, cell) in cells[..threads].iter().enumerate() {
        let barrier = barrier.clone();
        std::thread::Builder::new()
            .name(format!("w{index}"))
            .stack_size(32 << 10)
            .spawn(move || {
                begin(cell);
                barrier.wait();
                cycle_through(cell, 3);
                barrier.wait();
                barrier.wait();
            })
            .unwrap();
    }
    barrier.wait();
    barrier.wait();
    pause();
}

/// Two slots. The owner of one of them is killed.
pub(crate) fn reclaim() {
    rip_snap!("parent");
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        (0..5).for_each(cycle);
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    reap(pid);
    run("heir", || (0..3).for_each(cycle));
    rip_snap!("parent again");
}

/// Sixteen slots. Forty children crash, one after the other.
pub(crate) fn crash_loop() {
    rip_snap!("parent");
    for child in 0..40 {
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            crate::common::rename(if child == 0 { "first" } else { "later" });
            rip_snap!("crashes");
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        reap(pid);
    }
}
