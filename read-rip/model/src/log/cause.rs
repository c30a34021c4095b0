//! Why a cycle took longer than it usually does.
//!
//! # Question
//!
//! What did the thread do in the time that a slow cycle took more than a usual one: run, wait for a lock, wait for
//! something else, or wait for a processor?
//!
//! # Method
//!
//! The kernel counted for how long the thread ran, and for how long it was ready and had no processor. The rest is time
//! in which it slept. The part of that in which it waited for locks is known from its record. From each part, the part
//! of a usual cycle is subtracted. Each rest that is at least a quarter of all of them is a cause, and each one that
//! alone would have made the cycle slow, the greatest one first. The kernel also counted a short time before the cycle.
//! Each rest may contain it, so a rest must be that large without it. What the kernel counted after the cycle is known:
//! the thread asked, so it was ready or ran.
//!
//! If the time of being ready is not known, the switches tell. A thread that never gave up its processor was preempted.
//! If it did, it slept, or was woken and had no processor: it is not known which of them took long.
//!
//! A thread that ran longer had page faults as the cause if they took at least a third of that time: their number
//! beyond the usual one, times what a page fault took on this machine when the ring was made. That is the least: page
//! faults that copy a page, among many of them, took 2 to 3 times as long, and 10 times as long on a busy machine. So
//! a twelfth is enough if half of the time was in the kernel. Otherwise the thread computed too, from a sixth on.
//!
//! # Blind spots
//!
//! Without the time of being ready, the time from a wake-up to running may count as a wait for a lock. A thread that a
//! signal has stopped sleeps too. A page fault that clears a huge page takes longer than others: some of these count as
//! computing.

use librip_format::{USAGE_LEVEL_COUNTS, USAGE_LEVEL_DELAYS, usage_age_max_ns};

use super::Usage;

/// Why a cycle was slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It waited for locks.
    Lock,
    /// It was ready and had no processor.
    Preempted,
    /// It slept, and waited for no recorded lock.
    Blocked,
    /// It slept, for a lock or for something else: what it recorded then was replaced by later words.
    Asleep,
    /// It ran longer, in page faults; or it waited for pages from a disk.
    PageFaults,
    /// It merely ran longer.
    Computed,
    /// It did not run, and had not given up its processor, and did not lose it to another thread: interrupts or the
    /// hypervisor had the processor.
    Taken,
    /// It slept, or had no processor: which of them took long is not known.
    NotRunning,
    /// Nothing stands out by enough.
    Unclear,
}

/// The parts of a cycle's time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    lock: u64,
    ready: u64,
    /// Neither running, nor ready if that is known, nor waiting for a lock.
    off: u64,
    on_cpu: u64,
}

/// A cycle whose usage is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) usage: Usage,
    /// For how long it waited for locks, ns.
    pub(super) waited_ns: u64,
    /// How many of these waits were too long for a lock that spins: unless it was preempted, the thread slept at least
    /// once in each of them.
    pub(super) long_waits: u64,
    /// In how much of the cycle waits may be missing, ns: its words were replaced by later ones.
    pub(super) lost_ns: u64,
}

/// A wait for a lock that takes longer does not spin.
pub(super) const SPINS_NS: u64 = 100_000;

/// What a page fault takes at least, if that was not measured.
const FAULT_NS: u64 = 500;

/// What a cycle is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// How long the cycle may take, ns.
    pub(super) limit_ns: u64,
    /// What a page fault takes, ns, if that was measured.
    pub(super) fault_ns: Option<u64>,
}

impl Measured {
    /// What is around the cycle and may be before it, ns. The rest is after it.
    fn before_ns(&self, limit_ns: u64) -> u64 {
        let level = if self.usage.ready_ns.is_some() { USAGE_LEVEL_DELAYS } else { USAGE_LEVEL_COUNTS };
        self.usage.around_ns.min(usage_age_max_ns(level, limit_ns))
    }

    fn parts(&self, limit_ns: u64) -> Parts {
        let Usage { took_ns, around_ns, on_cpu_ns, ready_ns, .. } = self.usage;
        let before_ns = self.before_ns(limit_ns);
        let all = took_ns.saturating_add(before_ns);
        let on_cpu = on_cpu_ns.min(all);
        // The thread did not sleep after the cycle, while it asked.
        let ready = ready_ns.unwrap_or(0).saturating_sub(around_ns - before_ns).min(all - on_cpu);
        let asleep = all - on_cpu - ready;
        let lock = self.waited_ns.min(asleep);
        Parts { lock, ready, off: asleep - lock, on_cpu }
    }
}

/// Why this cycle was slow, the greatest cause first; never empty. `usual` are cycles of its kind that were not slow.
pub(super) fn causes(slow: &Measured, usual: &[Measured], scale: Scale) -> Vec<Cause> {
    let parts = slow.parts(scale.limit_ns);
    let beyond = |part: fn(&Parts) -> u64| {
        // What is around a usual cycle is no part of it.
        let usual_ns = median(usual.iter().map(|of| part(&of.parts(scale.limit_ns)).min(of.usage.took_ns)));
        part(&parts).saturating_sub(usual_ns)
    };
    let (ran_ns, off_ns) = (beyond(|of| of.on_cpu), beyond(|of| of.off));
    let mut rests: [(u64, &[Cause]); 4] = [
        (beyond(|of| of.lock), &[Cause::Lock]),
        (beyond(|of| of.ready), &[Cause::Preempted]),
        (off_ns, &[not_running(slow, off_ns)]),
        (ran_ns, ran(slow, usual, ran_ns, scale.fault_ns)),
    ];
    rests.sort_by_key(|(rest_ns, _)| std::cmp::Reverse(*rest_ns));
    let all_ns = rests.iter().fold(0u64, |sum, (rest_ns, _)| sum.saturating_add(*rest_ns));
    let before_ns = slow.before_ns(scale.limit_ns);
    let is_sure = |rest_ns: u64| is_great(rest_ns.saturating_sub(before_ns), all_ns, scale.limit_ns);
    let mut causes: Vec<Cause> = Vec::new();
    for &cause in rests.iter().filter(|(rest_ns, _)| is_sure(*rest_ns)).flat_map(|(_, causes)| *causes) {
        // Two parts may have one cause: page faults run, and wait for a disk.
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    if causes.is_empty() { vec![Cause::Unclear] } else { causes }
}

/// A cause counts if it made at least one part in this many of the time beyond the usual one. One that alone would have
/// made the cycle slow counts too.
const GREAT_PART: u64 = 4;

/// Whether this time beyond the usual one is enough to name what it was spent on. All of these times are `all_ns`.
pub(super) fn is_great(rest_ns: u64, all_ns: u64, limit_ns: u64) -> bool {
    rest_ns > 0 && (rest_ns >= all_ns / GREAT_PART || rest_ns >= limit_ns)
}

/// Why a thread did not run for this much longer than usual, other than for a lock.
fn not_running(slow: &Measured, longer_ns: u64) -> Cause {
    let Usage { ready_ns, voluntary, involuntary, major_faults, .. } = slow.usage;
    // A thread that was never preempted slept in each long wait for a lock.
    let slept = if involuntary == 0 { voluntary.saturating_sub(slow.long_waits) } else { voluntary };
    match (ready_ns, slept, involuntary) {
        (Some(_), 0, _) | (None, 0, 0) => Cause::Taken,
        (None, 0, _) => Cause::Preempted,
        // It gave up its processor for nothing but pages.
        (_, _, 0) | (Some(_), ..) if slept <= major_faults => Cause::PageFaults,
        (None, ..) => Cause::NotRunning,
        _ if slow.lost_ns > longer_ns / 2 => Cause::Asleep,
        _ => Cause::Blocked,
    }
}

/// Why a thread ran for this much longer than usual.
fn ran(slow: &Measured, usual: &[Measured], longer_ns: u64, fault_ns: Option<u64>) -> &'static [Cause] {
    let usual_faults = median(usual.iter().map(|of| of.usage.minor_faults));
    let faults = slow.usage.minor_faults.saturating_sub(usual_faults);
    let faulted_ns = faults.saturating_mul(fault_ns.unwrap_or(FAULT_NS));
    let usual_system_ns = median(usual.iter().map(|of| of.usage.system_ns.min(of.usage.took_ns)));
    let is_in_kernel = slow.usage.system_ns.saturating_sub(usual_system_ns) >= longer_ns / 2;
    // The kernel's count of its own time may be wrong by some ticks, so it is not enough alone.
    let part = if is_in_kernel { 12 } else { 3 };
    if faults > 0 && faulted_ns >= longer_ns / part {
        &[Cause::PageFaults]
    } else if faults > 0 && faulted_ns >= longer_ns / 6 {
        &[Cause::Computed, Cause::PageFaults]
    } else {
        &[Cause::Computed]
    }
}

/// The median; 0 if there is none.
fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Usage = Usage {
        took_ns: 110_000,
        around_ns: 10_000,
        on_cpu_ns: 105_000,
        system_ns: 20_000,
        ready_ns: Some(1000),
        voluntary: 2,
        involuntary: 0,
        minor_faults: 1,
        major_faults: 0,
    };

    const SCALE: Scale = Scale { limit_ns: 3_000_000, fault_ns: Some(1300) };

    fn of(usage: Usage) -> Measured {
        Measured { usage, waited_ns: 0, long_waits: 0, lost_ns: 0 }
    }

    fn cause_of(usage: Usage) -> Cause {
        let causes = causes(&of(usage), &[of(USUAL)], SCALE);
        assert_eq!(causes.len(), 1, "{causes:?}");
        causes[0]
    }

    /// A cycle in which the thread ran no longer than usual.
    fn not_run(voluntary: u64, involuntary: u64, ready_ns: Option<u64>) -> Usage {
        Usage { took_ns: 5_000_000, voluntary, involuntary, ready_ns, ..USUAL }
    }

    fn run(on_cpu_ns: u64, system_ns: u64, minor_faults: u64) -> Usage {
        Usage { took_ns: on_cpu_ns + 5000, on_cpu_ns, system_ns, minor_faults, ..USUAL }
    }

    #[test]
    fn a_thread_without_a_processor_was_preempted_and_one_that_slept_was_blocked() {
        assert_eq!(cause_of(not_run(2, 1, Some(4_800_000))), Cause::Preempted);
        assert_eq!(cause_of(not_run(2, 0, Some(4_800_000))), Cause::Preempted, "it was woken");
        assert_eq!(cause_of(not_run(2, 1, Some(9000))), Cause::Blocked);
        assert_eq!(cause_of(not_run(0, 1, Some(9000))), Cause::Taken);
    }

    #[test]
    fn without_the_time_of_being_ready_a_thread_that_was_woken_looks_like_one_that_sleeps() {
        assert_eq!(cause_of(not_run(0, 1, None)), Cause::Preempted);
        assert_eq!(cause_of(not_run(2, 0, None)), Cause::NotRunning);
        assert_eq!(cause_of(not_run(2, 1, None)), Cause::NotRunning);
        assert_eq!(cause_of(not_run(0, 0, None)), Cause::Taken);
    }

    #[test]
    fn waits_for_locks_are_told_from_other_waits() {
        let all = |waited_ns, long_waits, usage| {
            causes(&Measured { usage, waited_ns, long_waits, lost_ns: 0 }, &[of(USUAL)], SCALE)
        };
        let waited = |waited_ns, long_waits, usage| all(waited_ns, long_waits, usage)[0];
        assert_eq!(all(4_700_000, 1, not_run(2, 1, Some(9000))), [Cause::Lock]);
        let woken = all(4_700_000, 1, not_run(2, 1, Some(3_000_000)));
        assert_eq!(woken, [Cause::Preempted, Cause::Lock], "it was woken, and had no processor");
        assert_eq!(waited(500_000, 1, not_run(2, 0, Some(9000))), Cause::Blocked);
        assert_eq!(waited(500_000, 1, not_run(2, 0, None)), Cause::NotRunning);
        assert_eq!(waited(500_000, 1, not_run(1, 0, None)), Cause::Taken, "it slept for the lock alone");
        assert_eq!(waited(500_000, 1, not_run(1, 1, None)), Cause::NotRunning);
    }

    #[test]
    fn page_faults_are_the_cause_if_there_are_enough_of_them() {
        assert_eq!(cause_of(run(17_600_000, 15_300_000, 10_240)), Cause::PageFaults);
        assert_eq!(cause_of(run(17_600_000, 0, 10_240)), Cause::PageFaults, "the kernel counted by ticks");
        assert_eq!(cause_of(run(9_000_000, 0, 1)), Cause::Computed);
        assert_eq!(cause_of(run(9_000_000, 8_000_000, 1)), Cause::Computed, "a system call computes");
        assert_eq!(cause_of(run(9_000_000, 1_000_000, 1000)), Cause::Computed, "1.3 of 9 ms");
        let both = causes(&of(run(9_000_000, 1_000_000, 2000)), &[of(USUAL)], SCALE);
        assert_eq!(both, [Cause::Computed, Cause::PageFaults], "2.6 of 9 ms, or twice as much");
        assert_eq!(cause_of(run(65_000_000, 60_000_000, 6144)), Cause::PageFaults, "a busy machine");
        assert_eq!(cause_of(run(19_300_000, 3_000_000, 6144)), Cause::PageFaults, "pages were copied");
        let unmeasured = Scale { fault_ns: None, ..SCALE };
        let storm = |faults| causes(&of(run(9_000_000, 0, faults)), &[of(USUAL)], unmeasured);
        assert_eq!((storm(10_000), storm(2000)), (vec![Cause::PageFaults], vec![Cause::Computed]));
        let from_disk = Usage { major_faults: 2, ..not_run(2, 0, Some(9000)) };
        assert_eq!(cause_of(from_disk), Cause::PageFaults);
        assert_eq!(cause_of(Usage { voluntary: 9, ..from_disk }), Cause::Blocked);
    }

    #[test]
    fn a_sleep_whose_words_were_replaced_may_have_been_for_a_lock() {
        let slept = not_run(2, 1, Some(9000));
        let lost = |lost_ns| causes(&Measured { lost_ns, ..of(slept) }, &[of(USUAL)], SCALE);
        assert_eq!(lost(4_800_000), [Cause::Asleep]);
        assert_eq!(lost(300_000), [Cause::Blocked], "a wait in that time would have been short");
        let preempted = Measured { lost_ns: 4_800_000, ..of(not_run(2, 1, Some(4_800_000))) };
        assert_eq!(causes(&preempted, &[of(USUAL)], SCALE), [Cause::Preempted]);
    }

    #[test]
    fn several_causes_are_named_the_greatest_first() {
        let ready_ns = Some(19_000_000);
        let storm = Usage { took_ns: 38_000_000, ready_ns, ..run(18_500_000, 16_000_000, 10_240) };
        assert_eq!(causes(&of(storm), &[of(USUAL)], SCALE), [Cause::Preempted, Cause::PageFaults]);
        let short = Usage { took_ns: 21_000_000, ready_ns: Some(2_000_000), ..storm };
        assert_eq!(causes(&of(short), &[of(USUAL)], SCALE), [Cause::PageFaults], "2 of 21 ms do not count");
        let less = Usage { took_ns: 22_600_000, ready_ns: Some(3_500_000), ..storm };
        let both = [Cause::PageFaults, Cause::Preempted];
        assert_eq!(causes(&of(less), &[of(USUAL)], SCALE), both, "3.5 ms alone are more than the limit");
    }

    #[test]
    fn a_time_around_the_cycle_may_hide_the_cause() {
        let slow = not_run(2, 1, Some(2_600_000));
        assert_eq!(causes(&of(slow), &[of(USUAL)], SCALE), [Cause::Preempted, Cause::Blocked]);
        // The limit is long, so all of it may be before the cycle.
        let long = Scale { limit_ns: 40_000_000, ..SCALE };
        let hidden = Usage { around_ns: 2_500_000, ..slow };
        assert_eq!(causes(&of(hidden), &[of(USUAL)], long), [Cause::Blocked]);
        let hidden = Usage { around_ns: 9_000_000, ..slow };
        assert_eq!(causes(&of(hidden), &[of(USUAL)], long), [Cause::Unclear]);
        // The thread lost its processor after the cycle, when it asked.
        let after = not_run(2, 3, Some(60_000_000));
        let after = Usage { around_ns: 60_000_000, ..after };
        assert_eq!(causes(&of(after), &[of(USUAL)], SCALE), [Cause::Blocked]);
        let both = Usage { ready_ns: Some(64_900_000), ..after };
        assert_eq!(causes(&of(both), &[of(USUAL)], SCALE)[0], Cause::Preempted);
        let alone = causes(&of(not_run(2, 1, Some(4_800_000))), &[], SCALE);
        assert_eq!(alone, [Cause::Preempted], "without usual cycles");
    }
}
