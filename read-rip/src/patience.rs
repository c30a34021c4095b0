//! Work that a process can hold up for ever, while it is looked at.
//!
//! Whoever reads the memory, the mappings or the command line of a process waits for the lock of its memory. The process
//! can hold that lock for as long as it likes: one of its threads reads `/proc/self/mem` where a file system that never
//! answers is mapped, and another one maps something. A signal that ends this program ends the wait for the lock;
//! nothing else does. So such work is done by a thread that may be left behind. What it waits for ends with this
//! program.
//!
//! What takes long is not cut: a thread is left behind if it sleeps and has used no processor for a while.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};

/// How long a thread may do nothing. A little more than the time that a file system has for an answer: then what else
/// is known is not lost.
const PATIENCE: Duration = read_rip_files::PATIENCE.saturating_add(Duration::from_millis(500));
/// How often a thread is looked at.
const TICK: Duration = Duration::from_millis(50);
/// A process that did not answer is asked again after this time.
const REST: Duration = Duration::from_secs(30);
/// As much as the main thread usually has: work was written for that.
const STACK_BYTES: usize = 8 << 20;

/// The processes that did not answer, and when that was found.
static SILENT: Mutex<BTreeMap<u32, Instant>> = Mutex::new(BTreeMap::new());

fn silent<R>(with: impl FnOnce(&mut BTreeMap<u32, Instant>) -> R) -> R {
    with(&mut SILENT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether a process did not answer a short time ago.
pub fn is_silent(pid: u32) -> bool {
    silent(|silent| silent.get(&pid).is_some_and(|found| found.elapsed() < REST))
}

/// All processes that did not answer.
pub fn all_silent() -> Vec<u32> {
    silent(|silent| silent.keys().copied().collect())
}

thread_local! {
    static GROUP: RefCell<Option<Arc<Group>>> = const { RefCell::new(None) };
    /// The worker that did this thread's last work.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// The threads that do a piece of work together.
#[derive(Debug, Default)]
pub(crate) struct Group(Mutex<Vec<Pid>>);

/// The group that this thread belongs to, if its work may be left behind.
pub(crate) fn group() -> Option<Arc<Group>> {
    GROUP.with_borrow(Clone::clone)
}

/// This thread belongs to a group until it is dropped.
pub(crate) struct Member(Arc<Group>);

impl Member {
    pub(crate) fn of(group: Arc<Group>) -> Member {
        group.0.lock().unwrap_or_else(PoisonError::into_inner).push(gettid());
        GROUP.set(Some(Arc::clone(&group)));
        Member(group)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|&tid| tid != gettid());
        GROUP.set(None);
    }
}

impl Group {
    /// What the threads have used of processors, and whether one of them wants to run.
    fn activity(&self) -> (Duration, bool) {
        let members = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let used = members.iter().filter_map(|&tid| clock_gettime(clock_of(tid)).ok()).map(Duration::from);
        (used.sum(), members.iter().any(|&tid| wants_to_run(tid)))
    }
}

/// The clock of what a thread of this process has used of processors: `MAKE_THREAD_CPUCLOCK` of the kernel.
fn clock_of(tid: Pid) -> ClockId {
    const PER_THREAD: i32 = 4;
    const SCHEDULED: i32 = 2;
    ClockId::from_raw((!tid.as_raw() << 3) | PER_THREAD | SCHEDULED)
}

fn wants_to_run(tid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that works for another one.
struct Worker {
    jobs: Sender<Job>,
    group: Arc<Group>,
    thread: JoinHandle<()>,
}

impl Worker {
    /// `None` if no thread can be started.
    fn start() -> Option<Worker> {
        let (jobs, job) = channel::<Job>();
        let group = Arc::new(Group::default());
        let own = Arc::clone(&group);
        let work = move || {
            let _member = Member::of(own);
            while let Ok(job) = job.recv() {
                job();
            }
        };
        let thread = Builder::new().name("reader".into()).stack_size(STACK_BYTES).spawn(work).ok()?;
        Some(Worker { jobs, group, thread })
    }
}

/// Does work that looks at a process. `None` if it got no answer, now or a short time ago: the process is then
/// [silent](is_silent).
///
/// Where no thread can be started, this one does the work.
pub fn patiently<R: Send + 'static>(pid: u32, work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    if is_silent(pid) {
        return None;
    }
    if group().is_some() {
        return Some(work());
    }
    let Some(worker) = WORKER.take().or_else(Worker::start) else { return Some(work()) };
    let (send, result) = channel();
    // Nobody hears it if this thread has given up.
    let job = move || drop(send.send(work()));
    let sent = worker.jobs.send(Box::new(job)).is_ok();
    let (mut before, mut since) = (worker.group.activity(), Instant::now());
    loop {
        match result.recv_timeout(TICK) {
            Ok(result) => {
                WORKER.set(Some(worker));
                return Some(result);
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = worker.group.activity();
                if now.1 || now.0 != before.0 {
                    (before, since) = (now, Instant::now());
                } else if since.elapsed() >= PATIENCE {
                    silent(|silent| silent.insert(pid, Instant::now()));
                    return None;
                }
            }
            Err(RecvTimeoutError::Disconnected) => match worker.thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => unreachable!("a worker ends after its last job, and this one was sent: {sent}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_and_its_result_comes_back_again_and_again() {
        for number in 0..100 {
            assert_eq!(patiently(u32::MAX, move || 2 * number), Some(2 * number));
        }
        assert!(!is_silent(u32::MAX));
    }

    #[test]
    fn work_that_sleeps_is_left_behind_and_the_next_one_is_done() {
        let (_kept, never) = channel::<()>();
        assert_eq!(patiently(u32::MAX - 1, move || never.recv().is_ok()), None);
        assert!(is_silent(u32::MAX - 1));
        assert_eq!(patiently(u32::MAX - 2, || 7), Some(7));
    }

    #[test]
    fn work_that_computes_for_longer_is_not_left_behind() {
        let works = || {
            let began = Instant::now();
            while began.elapsed() < PATIENCE + 2 * TICK {}
            7
        };
        assert_eq!(patiently(u32::MAX - 3, works), Some(7));
        // Nor is work that waits for a thread that computes.
        let waits = move || {
            let own = group();
            let computes = move || {
                let _member = own.map(Member::of);
                works()
            };
            std::thread::spawn(computes).join().unwrap_or_default()
        };
        assert_eq!(patiently(u32::MAX - 3, waits), Some(7));
    }

    #[test]
    fn a_panic_of_the_work_is_one_of_the_caller() {
        let panics = || patiently(u32::MAX - 4, || panic!("as it should"));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(patiently(u32::MAX - 4, || 7), Some(7));
    }
}
