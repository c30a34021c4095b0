//! What the kernel's scheduler does with the threads of processes while somebody watches.
//!
//! The source is perf events, one of each processor: whoever gets or leaves it, the kernel writes a record of 40 bytes
//! into a buffer. So a process may have any number of threads. If this reader may see tracepoints too, the buffers also
//! have who wakes whom. The events end with this program, however it ends. Nobody of the host waits: if a buffer is
//! full, the kernel counts what it could not write.
//!
//! | file | has |
//! |---|---|
//! | `perf` | the kernel's events and buffers |
//! | `tracepoint` | what the kernel calls a wake-up |
//! | `records` | bytes of a buffer -> records |
//! | `turns` | records -> the turns and wake-ups of one process |
//!
//! It does not see processors that come later, and asks no thread anything.

mod perf;
mod records;
mod tracepoint;
mod turns;

use std::fs;
use std::io;

use nix::time::{ClockId, clock_gettime};

use crate::process::monotonic_offset_ns;
use perf::Buffer;
use records::Record;
use tracepoint::Waking;
pub use turns::Turns;

/// Both clocks are read this many times: the reading that took the least time counts.
const CLOCK_READINGS: usize = 5;
/// If two clocks seem to be no farther apart than before by this, it is the error of reading them.
const CLOCK_ERROR_NS: i64 = 1_000_000;

/// What keeps a reader from watching, or from seeing all.
#[derive(Debug)]
pub enum Refusal {
    /// The kernel gives no events.
    Events(io::Error),
    /// The kernel gives no buffers.
    Buffers(io::Error),
    /// The kernel's clock cannot be compared with this reader's.
    Clock,
    /// No file says what the kernel calls a wake-up.
    Tracepoints(io::Error),
    /// The kernel gives no events for wake-ups.
    WakeUps(io::Error),
    /// Wake-ups number threads as the first PID namespace does, and this reader is in another one.
    PidNamespace,
}

/// A watch of all processors.
#[derive(Debug)]
pub struct Scheduler {
    buffers: Vec<Buffer>,
    waking: Option<Waking>,
    bytes: Vec<u8>,
    /// By how much this reader's time since boot is ahead of the events' clock, ns.
    ahead_ns: i64,
    /// When it began, or its buffers were read last, ns since boot as this reader has it.
    read_ns: u64,
}

/// What all processors did between two moments.
#[derive(Debug)]
pub struct Watched {
    /// By processor: its records, in their order.
    processors: Vec<(u32, Vec<Record>)>,
    /// All records of later moments are here, ns since boot as this reader has it.
    since_ns: u64,
    /// All records up to this moment are here, ns since boot as this reader has it.
    pub until_ns: u64,
}

impl Scheduler {
    /// Begins to watch. Also says why it does not see wake-ups, if it does not.
    ///
    /// # Errors
    ///
    /// If it cannot see turns.
    pub fn watch() -> Result<(Scheduler, Option<Refusal>), Refusal> {
        let ahead_ns = ahead_ns().ok_or(Refusal::Clock)?;
        let (waking, mut refusal) = match Waking::find() {
            Ok(waking) => (Some(waking), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let mut buffers = Vec::new();
        for cpu in online().map_err(Refusal::Events)? {
            let (buffer, refused) = match Buffer::open(cpu, waking.as_ref().map(|waking| waking.id)) {
                Ok(opened) => opened,
                // It has just been switched off.
                Err(Refusal::Events(error)) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(other) => return Err(other),
            };
            refusal = refusal.or(refused);
            buffers.push(buffer);
        }
        // Last: a thread may sleep on one processor and be woken on another one, whose tracepoint takes its time.
        for buffer in &buffers {
            buffer.begin().map_err(Refusal::Events)?;
        }
        let read_ns = boottime_ns().ok_or(Refusal::Clock)?;
        Ok((Scheduler { buffers, waking, bytes: Vec::new(), ahead_ns, read_ns }, refusal))
    }

    /// Takes what the buffers have.
    pub fn watched(&mut self) -> Watched {
        if let Some(ahead_ns) = ahead_ns()
            && ahead_ns.abs_diff(self.ahead_ns) > CLOCK_ERROR_NS.unsigned_abs()
        {
            // The machine was suspended.
            self.ahead_ns = ahead_ns;
        }
        let until_ns = boottime_ns().unwrap_or(self.read_ns);
        let mut processors = Vec::new();
        for buffer in &mut self.buffers {
            self.bytes.clear();
            buffer.take(&mut self.bytes);
            let records = records::records(&self.bytes, self.waking.as_ref(), self.ahead_ns);
            processors.push((buffer.cpu(), records));
        }
        let since_ns = std::mem::replace(&mut self.read_ns, until_ns);
        Watched { processors, since_ns, until_ns }
    }
}

/// The processors that are switched on.
fn online() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    ranges(text.trim()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Numbers such as `0-3,5`.
fn ranges(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        all.extend(first.parse().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(all)
}

fn boottime_ns() -> Option<u64> {
    clock_ns(ClockId::CLOCK_BOOTTIME).and_then(|ns| u64::try_from(ns).ok())
}

fn clock_ns(clock: ClockId) -> Option<i64> {
    let now = clock_gettime(clock).ok()?;
    now.tv_sec().checked_mul(1_000_000_000)?.checked_add(now.tv_nsec())
}

/// By how much this reader's time since boot is ahead of the clock of perf events, which no time namespace moves.
fn ahead_ns() -> Option<i64> {
    let reading = |_| {
        let before_ns = clock_ns(ClockId::CLOCK_MONOTONIC)?;
        let boottime_ns = clock_ns(ClockId::CLOCK_BOOTTIME)?;
        let after_ns = clock_ns(ClockId::CLOCK_MONOTONIC)?;
        Some((after_ns - before_ns, boottime_ns - before_ns - (after_ns - before_ns) / 2))
    };
    let readings: Option<Vec<_>> = (0..CLOCK_READINGS).map(reading).collect();
    let (_, ahead_ns) = readings?.into_iter().min_by_key(|(took_ns, _)| *took_ns)?;
    ahead_ns.checked_add(monotonic_offset_ns()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_ranges_of_numbers() {
        assert_eq!(ranges("0"), Some(vec![0]));
        assert_eq!(ranges("0-3,5,8-9"), Some(vec![0, 1, 2, 3, 5, 8, 9]));
        for wrong in ["", "a", "0-", "-1", "1,,2"] {
            assert_eq!(ranges(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn both_clocks_differ_by_the_time_of_suspensions() {
        let (first, second) = (ahead_ns().unwrap(), ahead_ns().unwrap());
        assert!(first.abs_diff(second) < CLOCK_ERROR_NS.unsigned_abs(), "{first} {second}");
    }
}
