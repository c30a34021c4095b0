//! Threads that wait for a lock whose holder is stuck elsewhere, and states that only look like it.

use std::io::Read;
use std::mem;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Barrier, Once};
use std::thread;

use librip::rip_snap;
use librip::sync::{Condvar, Mutex, mpsc as recorded};

use crate::stage::{Scenario, actor, leaked, park};

pub(crate) const ALL: &[Scenario] = &[
    ("holder-joins", || waits_behind(joins)),
    ("holder-receives", || waits_behind(receives)),
    ("holder-in-a-once", || waits_behind(in_a_once)),
    ("holder-at-a-barrier", || waits_behind(at_a_barrier)),
    ("holder-reads-a-socket", || waits_behind(reads)),
    ("guard-forgotten", || waits_behind(forgets)),
    ("holder-in-a-monitor", || waits_behind(in_a_monitor)),
    ("holder-at-a-recorded-barrier", || waits_behind(at_a_recorded_barrier)),
    ("holder-receives-recorded", || waits_behind(receives_recorded)),
    ("holder-sends-recorded", || waits_behind(sends_recorded)),
    ("holder-is-parked", || waits_behind(|| librip::thread::park())),
    ("recorded-book-pool", recorded_book_pool),
    ("many-behind-one-of-many", many_behind_one_of_many),
    ("two-layers", two_layers),
    ("chain-of-locks", chain_of_locks),
    ("book-pool", book_pool),
    ("book-pool-that-cannot-close", book_pool_that_cannot_close),
    ("nobody-left", nobody_left),
];

static CACHE: Mutex<i64> = Mutex::new(0);

/// One thread takes the lock and gets stuck in `stuck`. Another thread waits for the lock. More threads are idle.
fn waits_behind(stuck: fn()) {
    holds(stuck);
    drop(actor("client", || drop(CACHE.lock().unwrap())).until_blocked());
}

/// A thread takes the lock, and goes on with `stuck`, which does not return.
fn holds(stuck: fn()) {
    let (say_held, held) = mpsc::channel();
    drop(actor("flusher", move || {
        let guard = CACHE.lock().unwrap();
        say_held.send(()).unwrap();
        stuck();
        drop(guard);
    }));
    held.recv().unwrap();
}

fn joins() {
    thread::spawn(|| park()).join().unwrap();
}

fn receives() {
    let (_sender, receiver): (_, Receiver<()>) = mpsc::channel();
    receiver.recv().unwrap();
}

fn in_a_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| park());
}

fn at_a_barrier() {
    Barrier::new(2).wait();
}

fn at_a_recorded_barrier() {
    librip::sync::Barrier::new(2).wait();
}

fn receives_recorded() {
    let (_sender, receiver): (_, recorded::Receiver<()>) = recorded::channel();
    receiver.recv().unwrap();
}

fn sends_recorded() {
    let (sender, _receiver) = recorded::sync_channel(1);
    sender.send(1).unwrap();
    sender.send(2).unwrap();
}

fn reads() {
    let (mut ours, _theirs) = UnixStream::pair().unwrap();
    ours.read_exact(&mut [0]).unwrap();
}

/// The thread goes on to other work. Its guard lives as long as the thread.
fn forgets() {
    rip_snap!("went on");
    park()
}

/// A nested monitor: the thread waits on a condition with another lock, and keeps the cache.
fn in_a_monitor() {
    static QUEUE: Mutex<Vec<i64>> = Mutex::new(Vec::new());
    static WORK: Condvar = Condvar::new();
    let mut queue = QUEUE.lock().unwrap();
    while queue.is_empty() {
        queue = WORK.wait(queue).unwrap();
    }
}

/// Forty of a hundred and one threads wait for one that reads from a silent backend. The others have nothing to do.
fn many_behind_one_of_many() {
    holds(reads);
    for index in 0..40 {
        drop(actor(&format!("client {index}"), || drop(CACHE.lock().unwrap())).until_blocked());
    }
    for index in 0..60 {
        drop(actor(&format!("idle {index}"), || {
            rip_snap!("has nothing to do");
            park()
        }));
    }
}

/// A server with two threads a request: one waits for the cache, the other on a condition until the first is done.
fn two_layers() {
    holds(reads);
    for index in 0..30 {
        let request = leaked((Mutex::new(false), Condvar::new()));
        let (say, ready) = mpsc::channel();
        let fetcher = actor(&format!("fetcher {index}"), move || {
            drop(request.0.lock().unwrap());
            say.send(()).unwrap();
            let cache = CACHE.lock().unwrap();
            *request.0.lock().unwrap() = true;
            request.1.notify_one();
            drop(cache);
        });
        ready.recv().unwrap();
        drop(fetcher.until_blocked());
        let client = actor(&format!("client {index}"), move || {
            let mut is_done = request.0.lock().unwrap();
            while !*is_done {
                is_done = request.1.wait(is_done).unwrap();
            }
        });
        drop(client.until_blocked());
    }
}

/// Each of ten threads holds a lock for which the next one waits. The first holds the cache, and reads.
fn chain_of_locks() {
    holds(reads);
    let locks: &'static [Mutex<()>] = leaked((0..10).map(|_| Mutex::new(())).collect::<Vec<_>>());
    for index in 0..10 {
        let link = actor(&format!("link {index}"), move || {
            let _own = locks[index].lock().unwrap();
            match index.checked_sub(1) {
                None => drop(CACHE.lock().unwrap()),
                Some(before) => drop(locks[before].lock().unwrap()),
            }
        });
        drop(link.until_blocked());
    }
}

/// The thread pool of the Rust Book, after four jobs: one worker waits in `recv` under the lock, the others for it.
fn book_pool() {
    let (jobs, _) = start_pool();
    mem::forget(jobs);
}

/// The same, and another thread wants the receiver.
fn book_pool_that_cannot_close() {
    let (jobs, receiver) = start_pool();
    mem::forget(jobs);
    drop(actor("closer", move || drop(receiver.lock().unwrap())).until_blocked());
}

type Job = Box<dyn FnOnce() + Send>;

fn start_pool() -> (mpsc::Sender<Job>, Arc<Mutex<Receiver<Job>>>) {
    let (jobs, receiver) = mpsc::channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    let start = |index| {
        let receiver = Arc::clone(&receiver);
        actor(&format!("worker {index}"), move || {
            loop {
                let job = receiver.lock().unwrap().recv();
                match job {
                    Ok(job) => job(),
                    Err(_) => break,
                }
            }
        })
    };
    let workers: Vec<_> = (0..4).map(start).collect();
    let (say_done, done) = mpsc::channel();
    for _ in 0..4 {
        let say_done = say_done.clone();
        jobs.send(Box::new(move || say_done.send(()).unwrap())).unwrap();
    }
    (0..4).for_each(|_| done.recv().unwrap());
    workers.into_iter().for_each(|worker| drop(worker.until_blocked()));
    (jobs, receiver)
}

/// The same pool with a channel that records.
fn recorded_book_pool() {
    let (jobs, receiver) = recorded::channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    let start = |index| {
        let receiver = Arc::clone(&receiver);
        actor(&format!("worker {index}"), move || {
            loop {
                let Ok(job) = receiver.lock().unwrap().recv() else { break };
                job();
            }
        })
    };
    let workers: Vec<_> = (0..4).map(start).collect();
    let (say_done, done) = recorded::channel();
    for _ in 0..4 {
        let say_done = say_done.clone();
        jobs.send(Box::new(move || say_done.send(()).unwrap())).unwrap();
    }
    (0..4).for_each(|_| done.recv().unwrap());
    workers.into_iter().for_each(|worker| drop(worker.until_blocked()));
    // The record has the main thread too, and it waits for nothing. A channel records only if it has to wait.
    librip::rip_snap!();
    mem::forget(jobs);
}

/// All threads of the process wait on conditions, `main` too.
fn nobody_left() {
    static STATE: Mutex<bool> = Mutex::new(false);
    static CHANGED: Condvar = Condvar::new();
    fn wait() {
        let mut state = STATE.lock().unwrap();
        while !*state {
            state = CHANGED.wait(state).unwrap();
        }
    }
    for name in ["producer", "consumer"] {
        drop(actor(name, wait).until_blocked());
    }
    crate::stage::say("ready");
    wait();
}
