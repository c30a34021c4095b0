//! Work that a process can hold up for ever, while it is looked at.
//!
//! Whoever reads the memory, the mappings or the command line of a process waits for the lock of its memory. The
//! process can hold that lock for as long as it likes: one of its threads reads `/proc/self/mem` where a file system
//! that never answers is mapped, and another one maps something. A signal that ends this program ends the wait for the
//! lock; nothing else does. So a thread that may be left behind does such work. What it waits for ends with this
//! program.
//!
//! What takes long is not cut: a thread is left behind if it sleeps and has used no processor for a while.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, available_parallelism};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, gettid};
use procfs::process::Process;

/// How long a thread may do nothing. A little more than the time that a file system has for an answer: then what else
/// is known is not lost.
const PATIENCE: Duration = read_rip_files::PATIENCE.saturating_add(Duration::from_millis(500));
/// A thread that has done nothing for so long may wait for ever. Another one begins in its place.
const DOUBT: Duration = Duration::from_millis(100);
/// How often threads are looked at.
const TICK: Duration = Duration::from_millis(20);
/// A process that has answered at last is asked again after this time.
const REST: Duration = Duration::from_secs(30);
/// As much as the main thread usually has: work was written for that.
const STACK_BYTES: usize = 8 << 20;
/// More threads of this program would mostly wait for the kernel's locks.
const WORKERS_MAX: usize = 8;
/// No more threads are left behind. Processes beyond that are silent without being asked.
const LEFT_BEHIND_MAX: usize = 256;

/// A process that did not answer.
struct Silence {
    /// When the process began, clock ticks since boot: another one may get its pid.
    start_ticks: Option<u64>,
    found: Instant,
    /// Whether the thread that was left behind has come back.
    has_ended: Arc<AtomicBool>,
}

/// The processes that did not answer.
static SILENT: Mutex<BTreeMap<u32, Silence>> = Mutex::new(BTreeMap::new());

fn silent<R>(with: impl FnOnce(&mut BTreeMap<u32, Silence>) -> R) -> R {
    with(&mut SILENT.lock().unwrap_or_else(PoisonError::into_inner))
}

fn start_ticks(pid: u32) -> Option<u64> {
    Process::new(i32::try_from(pid).ok()?).and_then(|process| process.stat()).ok().map(|stat| stat.starttime)
}

/// Whether a process did not answer, and has not answered since, or only a short time ago.
pub fn is_silent(pid: u32) -> bool {
    silent(|silent| {
        silent.get(&pid).is_some_and(|silence| {
            // ORDERING: relaxed: only whether it has ended matters.
            let is_over = silence.has_ended.load(Relaxed) && silence.found.elapsed() >= REST;
            !is_over && (silence.start_ticks.is_none() || silence.start_ticks == start_ticks(pid))
        })
    })
}

/// All processes that did not answer.
pub fn all_silent() -> Vec<u32> {
    silent(|silent| silent.keys().copied().collect())
}

/// Whether no more threads may be left behind.
fn is_at_limit() -> bool {
    // ORDERING: relaxed, as above.
    silent(|silent| silent.values().filter(|of| !of.has_ended.load(Relaxed)).count() >= LEFT_BEHIND_MAX)
}

thread_local! {
    static GROUP: RefCell<Option<Arc<Group>>> = const { RefCell::new(None) };
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

/// Work that several threads take one after the other.
struct Shared<F> {
    /// The work of the item at an index.
    work: F,
    pids: Vec<u32>,
    /// The first item that nobody has begun.
    next: AtomicUsize,
}

/// What a worker says.
enum Message<R> {
    /// It does an item.
    Begun {
        at: usize,
        group: Arc<Group>,
        has_ended: Arc<AtomicBool>,
    },
    Done {
        at: usize,
        result: std::thread::Result<R>,
    },
}

/// An item that a worker does.
struct Running {
    group: Arc<Group>,
    has_ended: Arc<AtomicBool>,
    before: (Duration, bool),
    /// For how long it has done nothing, as far as this thread has watched it.
    idle: Duration,
    /// Whether another worker was begun in its place.
    is_replaced: bool,
}

/// Does work that looks at processes, each on some thread. The results are in the order of the items; `None` if a
/// process got no answer, now or a short time ago: it is then [silent](is_silent).
///
/// Processes that do not answer hold up one another as little as this program: all of them together take as long as
/// one of them.
pub fn each<T: Send + Sync + 'static, R: Send + 'static>(
    items: Vec<T>,
    pid_of: impl Fn(&T) -> u32,
    work: impl Fn(&T) -> R + Send + Sync + 'static,
) -> Vec<Option<R>> {
    let pids: Vec<u32> = items.iter().map(pid_of).collect();
    let count = items.len();
    let at = move |index: usize| work(&items[index]);
    if group().is_some() {
        return (0..count).map(|index| (!is_silent(pids[index])).then(|| at(index))).collect();
    }
    let shared = Arc::new(Shared { work: at, pids, next: AtomicUsize::new(0) });
    let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
    let (send, messages) = channel();
    let mut running: BTreeMap<usize, Running> = BTreeMap::new();
    let mut left = count;
    let workers = available_parallelism().map_or(1, usize::from).min(WORKERS_MAX).min(count);
    let mut looked = Instant::now();
    let begun = (0..workers).filter(|_| start(&shared, &send)).count();
    if begun == 0 && count > 0 {
        // Where no thread can be started, this one does everything.
        return (0..count).map(|index| Some((shared.work)(index))).collect();
    }
    while left > 0 {
        match messages.recv_timeout(TICK) {
            Ok(Message::Begun { at, group, has_ended }) => {
                let before = group.activity();
                let of = Running { group, has_ended, before, idle: Duration::ZERO, is_replaced: false };
                running.insert(at, of);
            }
            Ok(Message::Done { at, result }) => {
                // Whoever was left behind may come back: its answer counts no more.
                if running.remove(&at).is_some() {
                    left -= 1;
                    match result {
                        Ok(result) => results[at] = result,
                        Err(panic) => resume_unwind(panic),
                    }
                }
            }
            // This function keeps a sender.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if looked.elapsed() < TICK {
            continue;
        }
        let watched = watched(looked.elapsed());
        looked = Instant::now();
        let mut given_up = Vec::new();
        for (&at, of) in &mut running {
            let now = of.group.activity();
            if now.1 || now.0 != of.before.0 {
                (of.before, of.idle) = (now, Duration::ZERO);
                continue;
            }
            of.idle += watched;
            if of.idle >= PATIENCE {
                given_up.push(at);
            } else if of.idle >= DOUBT && !of.is_replaced {
                of.is_replaced = start(&shared, &send);
            }
        }
        for at in given_up {
            let Some(of) = running.remove(&at) else { continue };
            left -= 1;
            let (pid, found) = (shared.pids[at], Instant::now());
            let silence = Silence { start_ticks: start_ticks(pid), found, has_ended: of.has_ended };
            silent(|silent| silent.insert(pid, silence));
        }
    }
    results
}

/// How much of the time since the last look counts. If this thread could not look for longer, then others may not have
/// run either: the machine is overloaded, or it was stopped.
fn watched(since_last_look: Duration) -> Duration {
    since_last_look.min(2 * TICK)
}

/// Starts a worker. Returns whether a thread could be started.
fn start<R: Send + 'static, F: Fn(usize) -> R + Send + Sync + 'static>(
    shared: &Arc<Shared<F>>,
    send: &Sender<Message<Option<R>>>,
) -> bool {
    let (shared, send) = (Arc::clone(shared), send.clone());
    let work = move || {
        loop {
            // ORDERING: relaxed: only the number matters.
            let at = shared.next.fetch_add(1, Relaxed);
            let Some(&pid) = shared.pids.get(at) else { return };
            let (group, has_ended) = (Arc::new(Group::default()), Arc::new(AtomicBool::new(false)));
            let member = Member::of(Arc::clone(&group));
            let begun = Message::Begun { at, group, has_ended: Arc::clone(&has_ended) };
            // Nobody hears it if the caller has given up.
            let _ = send.send(begun);
            let is_asked = !is_silent(pid) && !is_at_limit();
            let result = catch_unwind(AssertUnwindSafe(|| is_asked.then(|| (shared.work)(at))));
            drop(member);
            has_ended.store(true, Relaxed);
            if send.send(Message::Done { at, result }).is_err() {
                return;
            }
        }
    };
    Builder::new().name("reader".into()).stack_size(STACK_BYTES).spawn(work).is_ok()
}

type Work<R> = Box<dyn FnOnce() -> R + Send>;

/// Does work that looks at a process, as [`each`] does.
pub fn patiently<R: Send + 'static>(pid: u32, work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let work: Work<R> = Box::new(work);
    let once = |work: &Mutex<Option<Work<R>>>| {
        let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map(|work| work())
    };
    each(vec![Mutex::new(Some(work))], move |_| pid, once).pop()??
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
    fn nobody_is_given_up_because_nobody_ran() {
        assert_eq!(watched(TICK), TICK);
        assert!(DOUBT > watched(Duration::from_secs(60)));
    }

    #[test]
    fn what_sleeps_holds_up_nothing_else() {
        let items: Vec<u32> = (0..20).collect();
        let (_kept, never) = channel::<()>();
        let never = Mutex::new(never);
        let work = move |&item: &u32| {
            if item % 5 == 0 {
                let _ = never.lock().map(|never| never.recv());
            }
            item
        };
        let results = each(items.clone(), |item| u32::MAX - 100 - item, work);
        let expected: Vec<_> = items.into_iter().map(|item| (item % 5 > 0).then_some(item)).collect();
        assert_eq!(results, expected);
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
