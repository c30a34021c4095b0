//! What a viewer is shown: the same for every format that draws.

use read_rip_model::locks::ThreadId;
use read_rip_report::{LockNames, StackFrames};
use read_rip_ring::Schedule;

use super::timeline::{Logged, Timeline};
use super::uses::Contention;

#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// What the process is called; may contain anything.
    pub program: &'a str,
    /// The threads, tasks and locks, and what they are called.
    pub names: &'a LockNames<'a>,
    /// What the threads and tasks did that are part of it, in the order of the model.
    pub threads: &'a [(ThreadId, Timeline)],
    /// What threads logged, ordered by slots.
    pub logged: &'a [Logged],
    /// The waits of all threads, also of those that are left out.
    pub contention: &'a Contention,
    /// What the recording has of the kernel's scheduler.
    pub schedule: &'a Schedule,
    /// The functions of stacks, if the kernel was asked.
    pub frames: &'a StackFrames,
    /// When the host was started, ns since 1970; `None` if the ring does not say it.
    pub boot_ns: Option<u64>,
}

impl Scene<'_> {
    /// A moment since boot as one since 1970, ns.
    pub(super) fn realtime_ns(&self, at_ns: u64) -> Option<u64> {
        self.boot_ns?.checked_add(at_ns)
    }
}
