//! What a thread does, in one value.

use super::Standings;
use crate::target::{Call, RunState, Sleep};
use crate::waits::FutexWait;

/// What a thread does.
#[derive(Clone, Copy, Debug)]
pub enum Activity<'a> {
    /// It waits for something in memory.
    Waits(&'a FutexWait),
    /// It sleeps in a system call.
    Calls(Call),
    /// It waits for the kernel to bring a page of memory.
    Faults,
    /// It sleeps, and in what is not known.
    Sleeps,
    /// It sleeps, mostly for a disk, and no signal wakes it. The call, if it is in one.
    DiskSleep(Option<Call>),
    /// It runs on a processor, or did at the moment of one of two readings.
    Runs,
    /// It is ready to run, and got hardly any processor between two readings.
    Starves,
    /// A signal has stopped it.
    IsStopped,
    /// Its tracer has stopped it: the tracer's pid, if known.
    IsTraced(Option<u32>),
    /// It has ended, or is about to.
    HasEnded,
    /// Nothing is known.
    Unknown,
}

impl Standings {
    /// What a thread does, by its index.
    pub fn activity(&self, thread: usize) -> Activity<'_> {
        let (task, standing) = (&self.target.tasks[thread], &self.threads[thread]);
        match task.state {
            RunState::Stopped => return Activity::IsStopped,
            RunState::Traced => return Activity::IsTraced(task.tracer),
            RunState::Zombie | RunState::Dead => return Activity::HasEnded,
            RunState::Running => {
                let between = standing.scheduled.zip(self.window_ns);
                let is_starved =
                    between.is_some_and(|(scheduled, window_ns)| scheduled.is_starved(window_ns));
                return if is_starved { Activity::Starves } else { Activity::Runs };
            }
            RunState::DiskSleep => {
                return Activity::DiskSleep(match task.sleep {
                    Some(Sleep::Call(call)) => Some(call),
                    _ => None,
                });
            }
            RunState::Sleeping | RunState::Idle | RunState::Unknown(_) => {}
        }
        match (&standing.wait, task.sleep) {
            (Some(wait), _) => Activity::Waits(wait),
            (None, Some(Sleep::Call(call))) => Activity::Calls(call),
            (None, Some(Sleep::Fault)) => Activity::Faults,
            (None, None) if task.state == RunState::Sleeping => Activity::Sleeps,
            (None, None) => Activity::Unknown,
        }
    }
}
