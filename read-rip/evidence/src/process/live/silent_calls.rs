//! Calls that nobody outside of a process can end: a `pause` without a handler, a timer that is not armed.
//!
//! A thread in such a call waits for another thread of its process, if it waits for anything. The kernel alone says so:
//! `/proc/PID/status` has the signals that are handled, and `fdinfo` what a descriptor waits for.
//!
//! A handler of any signal may end the call, or arm the timer. So may a child that has the same descriptor.

use super::LiveTarget;
use super::text::{hexadecimal, words};
use crate::target::{Call, CallKind, RunState, Sleep, Task};

/// An epoll instance may watch another one, over so many instances.
const DEPTH_MAX: u32 = 3;

impl LiveTarget {
    /// Which of these threads sleep in calls that nobody outside of the process can end.
    pub fn silent_calls(&self, tasks: &[Task]) -> Vec<bool> {
        let mut silent: Vec<bool> = tasks.iter().map(|task| self.is_silent(task)).collect();
        let handles_nothing = || self.thread.status().is_ok_and(|status| status.handles_nothing());
        // A process that only sleeps waits for its end, as `sleep infinity` does.
        let has_others = silent.contains(&false);
        if silent.contains(&true) && !(has_others && handles_nothing()) {
            silent.fill(false);
        }
        silent
    }

    fn is_silent(&self, task: &Task) -> bool {
        let (RunState::Sleeping, Some(Sleep::Call(call))) = (task.state, task.sleep) else { return false };
        let is_of_itself = || self.children().is_some_and(|children| children.is_empty());
        match call.kind {
            CallKind::SignalWait => matches!(call.name, Some("pause" | "rt_sigsuspend")),
            CallKind::Poll | CallKind::Select => call.is_timed() == Some(false) && watches_nothing(call),
            CallKind::Read => {
                call.descriptor().is_some_and(|number| self.is_quiet(number, 0)) && is_of_itself()
            }
            CallKind::Epoll => {
                let is_quiet = || call.descriptor().is_some_and(|number| self.is_quiet(number, 0));
                call.is_timed() == Some(false) && is_quiet() && is_of_itself()
            }
            _ => false,
        }
    }

    /// Whether nothing that a descriptor tells of can happen before a thread of the process changes that.
    fn is_quiet(&self, number: u32, depth: u32) -> bool {
        let Ok(link) = self.thread.link(&format!("fd/{number}")) else { return false };
        let Ok(information) = self.thread.read(&format!("fdinfo/{number}")) else { return false };
        let mut lines = information.split(|&byte| byte == b'\n');
        let mut value = |name: &[u8]| lines.find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii);
        match &*link {
            b"anon_inode:[timerfd]" => value(b"it_value:") == Some(b"(0, 0)"),
            b"anon_inode:[signalfd]" => value(b"sigmask:").and_then(hexadecimal) == Some(0),
            b"anon_inode:inotify" => value(b"inotify wd:").is_none(),
            b"anon_inode:[eventpoll]" if depth < DEPTH_MAX => {
                let watched = lines.filter_map(|line| line.strip_prefix(b"tfd:"));
                let mut numbers = watched.map(|rest| words(rest).next().and_then(super::text::decimal));
                numbers.all(|of| {
                    let of = of.and_then(|of| u32::try_from(of).ok());
                    of.is_some_and(|of| self.is_quiet(of, depth + 1))
                })
            }
            _ => false,
        }
    }
}

/// Whether a call that waits for descriptors has none, and no time limit.
fn watches_nothing(call: Call) -> bool {
    let [first, second, ..] = call.arguments;
    match call.kind {
        CallKind::Poll => second == 0,
        _ => first == 0,
    }
}
