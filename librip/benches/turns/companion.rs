//! A second thread, which runs what another thread measures at the same time.
//!
//! It runs on another processor if there is one. It measures nothing itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;

/// What a companion runs: so many calls.
pub(crate) type Job = Arc<dyn Fn(u64) + Send + Sync>;

/// A thread that runs something whenever another thread is measured, and rests otherwise.
pub(crate) struct Companion {
    wanted: Arc<AtomicBool>,
    start: mpsc::Sender<(Arc<Barrier>, Job)>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Companion {
    pub(crate) fn start() -> Companion {
        let wanted = Arc::new(AtomicBool::new(false));
        let (start, starts) = mpsc::channel::<(Arc<Barrier>, Job)>();
        let is_wanted = Arc::clone(&wanted);
        let thread = thread::spawn(move || {
            for (barrier, run) in starts {
                barrier.wait();
                // ORDERING: relaxed: it only ends the loop.
                while is_wanted.load(Ordering::Relaxed) {
                    run(1_000);
                }
                barrier.wait();
            }
        });
        Companion { wanted, start, thread: Some(thread) }
    }

    /// Runs `body` while the companion runs `job`, and waits until the companion rests.
    pub(crate) fn beside<T>(&self, job: Job, body: impl FnOnce() -> T) -> T {
        let barrier = Arc::new(Barrier::new(2));
        // ORDERING: relaxed: the barrier orders it.
        self.wanted.store(true, Ordering::Relaxed);
        // The companion lives as long as `self`.
        let _ = self.start.send((Arc::clone(&barrier), job));
        barrier.wait();
        let result = body();
        // ORDERING: relaxed: it only ends the loop.
        self.wanted.store(false, Ordering::Relaxed);
        barrier.wait();
        result
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // Closing the channel ends the thread.
        self.start = mpsc::channel().0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
