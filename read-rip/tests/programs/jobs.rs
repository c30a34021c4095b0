//! The same as `jobs.c`, with closures and channels.

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

const WORKERS: usize = 2;

#[inline(never)]
fn works(queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = queue.lock().unwrap().recv();
        match job {
            Ok(job) => job(),
            Err(_) => return,
        }
    }
}

/// Waits for a job of the same pool. All workers do, before one is queued.
#[inline(never)]
fn needs_another(pool: &Sender<Job>, all: &Barrier) {
    let (done, result) = channel();
    all.wait();
    pool.send(Box::new(move || done.send(1).unwrap())).unwrap();
    assert_eq!(result.recv(), Ok(1));
}

fn main() {
    let case = std::env::args().nth(1).unwrap_or_default();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (pool, queue) = channel::<Job>();
    let queue = Arc::new(Mutex::new(queue));
    for _ in 0..WORKERS {
        let queue = Arc::clone(&queue);
        match case.as_str() {
            // An optimised closure has no function of its own.
            "turns" => drop(thread::spawn(move || {
                loop {
                    let job = queue.lock().unwrap().recv();
                    let Ok(job) = job else { return };
                    job();
                }
            })),
            _ => drop(thread::spawn(move || works(&queue))),
        }
    }
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let all = Arc::new(Barrier::new(WORKERS));
    let (keep, never) = channel::<()>();
    match case.as_str() {
        "stuck" => {
            for _ in 0..WORKERS {
                let (own, all) = (pool.clone(), Arc::clone(&all));
                pool.send(Box::new(move || needs_another(&own, &all))).unwrap();
            }
        }
        "one" => pool.send(Box::new(move || never.recv().unwrap_or_default())).unwrap(),
        _ => {}
    }
    while listener.accept().is_ok() {}
    drop((keep, pool));
}
