//! For how long threads have not run, by the scheduler's own record of when each ran last.
//!
//! The kernel shows it in `/proc/PID/task/TID/sched` as `se.exec_start`, to every user, if it was built with
//! `CONFIG_SCHED_DEBUG`. It is the time of a clock that each processor has for itself, and that stands still while the
//! host of a virtual machine takes the processor away. So a clock is compared with the time since boot on the processor
//! itself: a thread of this reader moves there, sleeps for a moment, and reads when it was itself given the processor.
//!
//! Errors make a length shorter: the reader's thread looks a moment after it was given the processor, and the clock has
//! stood still at times since the other thread ran. Only what a host takes in the 100 ms after a comparison makes a
//! length longer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use super::boottime_ns;
use super::folder::Folder;
use super::text;

/// So often the clock of a processor is compared. The best comparison counts.
const COMPARISONS: usize = 5;
/// A comparison counts for so long.
const VALID: Duration = Duration::from_millis(100);
/// A thread that sleeps for this long gives the processor away.
const PAUSE: Duration = Duration::from_micros(200);
/// At most so many clocks are compared: each takes about a millisecond.
const PROCESSORS_MAX: usize = 64;
/// The line with the time is among the first ones.
const BEGIN_BYTES: usize = 512;

/// For how long a thread that sleeps has not run, ns, at least; `None` if that is not known. It ran last on this
/// processor.
pub(super) fn not_run_for(folder: &Folder, tid: u32, processor: usize) -> Option<u64> {
    let ahead_ns = ahead_ns(processor)?;
    let last_ns = exec_start_ns(folder, &tid.to_string())?.checked_add(ahead_ns)?;
    let now_ns = i64::try_from(boottime_ns()?).ok()?;
    // A thread that has just run seems to run later than now, if the comparison came late on a busy machine.
    u64::try_from(now_ns.checked_sub(last_ns)?.max(1)).ok()
}

/// A comparison of the clock of a processor.
struct Comparison {
    made: Instant,
    /// The time since boot minus the time of the clock, ns. It is never smaller than the true one.
    ahead_ns: Option<i64>,
}

/// The last comparisons, by the numbers of the processors. All processes share the clocks.
static COMPARED: Mutex<BTreeMap<usize, Comparison>> = Mutex::new(BTreeMap::new());

/// The time since boot minus the time of the clock of a processor, ns, compared within the last [`VALID`].
fn ahead_ns(processor: usize) -> Option<i64> {
    let mut compared = COMPARED.lock().unwrap_or_else(PoisonError::into_inner);
    match compared.get(&processor) {
        Some(known) if known.made.elapsed() < VALID => return known.ahead_ns,
        None if compared.len() >= PROCESSORS_MAX => return None,
        _ => {}
    }
    let ahead_ns = compare(processor);
    compared.insert(processor, Comparison { made: Instant::now(), ahead_ns });
    ahead_ns
}

/// Compares the clock of a processor with the time since boot. `None`: this reader may not use that processor, or the
/// kernel does not show the clock.
fn compare(processor: usize) -> Option<i64> {
    let compare_here = move || {
        let mut only = CpuSet::new();
        only.set(processor).ok()?;
        sched_setaffinity(Pid::from_raw(0), &only).ok()?;
        let own = Folder::open("/proc/thread-self").ok()?;
        let differences = (0..COMPARISONS).filter_map(|_| {
            sleep(PAUSE);
            let began_ns = exec_start_ns(&own, "")?;
            i64::try_from(boottime_ns()?).ok()?.checked_sub(began_ns)
        });
        differences.min()
    };
    // Only that thread moves to the processor, and it ends.
    Builder::new().spawn(compare_here).ok()?.join().ok()?
}

/// When the thread was given a processor or gave it away last, by the clock of that processor, ns.
fn exec_start_ns(folder: &Folder, thread: &str) -> Option<i64> {
    let mut buffer = [0; BEGIN_BYTES];
    let path = if thread.is_empty() { "sched".to_owned() } else { format!("{thread}/sched") };
    // A thread that has never run yet has none.
    text::exec_start(folder.read_into(&path, &mut buffer).ok()?).filter(|&began_ns| began_ns != 0)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use nix::unistd::gettid;

    use super::*;

    #[test]
    fn a_thread_has_not_run_since_it_fell_asleep() {
        let (say, said) = channel();
        let (wake, woken) = channel::<()>();
        let asleep = std::thread::spawn(move || {
            say.send((gettid(), Instant::now())).unwrap();
            woken.recv().unwrap_err();
        });
        let (tid, fell_asleep) = said.recv().unwrap();
        let tid = u32::try_from(tid.as_raw()).unwrap();
        let folder = Folder::open("/proc/self/task").unwrap();
        if exec_start_ns(&folder, &tid.to_string()).is_none() {
            eprintln!("skipped: the kernel does not show when threads ran last");
            return;
        }
        // It may take a while until it has fallen asleep.
        let deadline = fell_asleep + Duration::from_secs(20);
        loop {
            let stat = text::stat(&folder.read(&format!("{tid}/stat")).unwrap()).unwrap();
            let known = not_run_for(&folder, tid, stat.processor.unwrap()).map(Duration::from_nanos);
            let at_most = fell_asleep.elapsed();
            assert!(known.is_none_or(|known| known <= at_most), "{known:?} of {at_most:?}");
            if known.is_some_and(|known| known > Duration::from_millis(300)) {
                break;
            }
            assert!(Instant::now() < deadline, "{known:?} of {at_most:?}");
            sleep(Duration::from_millis(10));
        }
        drop(wake);
        asleep.join().unwrap();
    }

    #[test]
    fn a_processor_that_is_not_there_has_no_clock() {
        assert_eq!(compare(1_000), None);
        assert_eq!(compare(usize::MAX), None);
    }
}
