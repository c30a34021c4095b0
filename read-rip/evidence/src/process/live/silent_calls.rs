//! Calls that nobody outside of a process can end: a `pause` without a handler, a timer that is not armed, an eventfd
//! that no other process has.
//!
//! If such a thread waits for anything, it waits for another thread of its process. The kernel says so:
//! `/proc/PID/status` lists the signals that are handled, and `fdinfo` says what a descriptor waits for.
//!
//! A handler of any signal may end the call, or arm the timer. So may a child that has the same descriptor.

use std::cell::LazyCell;
use std::collections::HashSet;

use super::LiveTarget;
use super::needs::{event_number, has_plain_events, own_events};
use super::text::hexadecimal;
use crate::target::{Call, CallKind, DescriptorKind, RunState, Sleep, Task};

/// An epoll instance may watch another one, over so many instances.
const DEPTH_MAX: u32 = 3;

impl LiveTarget {
    /// Whether the process handles no signal that somebody sends.
    pub fn handles_nothing(&self) -> bool {
        self.thread.status().is_ok_and(|status| status.handles_nothing())
    }

    /// Which of these threads sleep in calls that nobody outside of the process can end.
    pub fn silent_calls(&self, tasks: &[Task]) -> Vec<bool> {
        let none = || vec![false; tasks.len()];
        if !self.handles_nothing() {
            return none();
        }
        let has_no_child = LazyCell::new(|| self.children().is_some_and(|children| children.is_empty()));
        // The search takes long. It says nothing if another thread waits for what comes from outside.
        let may_be_inside = |task: &Task| match task.sleep {
            Some(Sleep::Call(call)) => call.futex().is_some() || self.is_silent(call, &|_| true),
            _ => false,
        };
        let own_events =
            LazyCell::new(|| match tasks.iter().all(may_be_inside) && has_plain_events(&self.thread) {
                true => own_events(self.pid),
                false => HashSet::new(),
            });
        let is_silent = |task: &Task| match (task.state, task.sleep) {
            (RunState::Sleeping, Some(Sleep::Call(call))) => {
                let is_own = |event: u64| own_events.contains(&event);
                (call.descriptor().is_none() || *has_no_child) && self.is_silent(call, &is_own)
            }
            _ => false,
        };
        let silent: Vec<bool> = tasks.iter().map(is_silent).collect();
        // A process that only sleeps waits for its end, as `sleep infinity` does. One that reads waits for more.
        let reads =
            |task: &Task| matches!(task.sleep, Some(Sleep::Call(call)) if call.descriptor().is_some());
        let is_stuck = silent.contains(&false) || tasks.iter().any(reads);
        if is_stuck { silent } else { none() }
    }

    /// Whether nobody outside of the process can end a call, if no child has the descriptor that it waits for.
    /// `is_own`: whether no other process has an eventfd.
    fn is_silent(&self, call: Call, is_own: &dyn Fn(u64) -> bool) -> bool {
        let is_quiet = || call.descriptor().is_some_and(|number| self.is_quiet(number, is_own, 0));
        match call.kind {
            CallKind::SignalWait => matches!(call.name, Some("pause" | "rt_sigsuspend")),
            CallKind::Poll | CallKind::Select => call.is_timed() == Some(false) && watches_nothing(call),
            CallKind::Read => is_quiet(),
            CallKind::Epoll => call.is_timed() == Some(false) && is_quiet(),
            _ => false,
        }
    }

    /// Whether a descriptor has nothing to tell until a thread of the process changes that.
    fn is_quiet(&self, number: u32, is_own: &dyn Fn(u64) -> bool, depth: u32) -> bool {
        let Some(descriptor) = self.descriptors().get(number) else { return false };
        let name = match descriptor.kind {
            DescriptorKind::Epoll { watched } if depth < DEPTH_MAX => {
                return watched.iter().all(|&of| self.is_quiet(of, is_own, depth + 1));
            }
            DescriptorKind::Anonymous(name) => name,
            _ => return false,
        };
        let Ok(information) = self.thread.read(&format!("fdinfo/{number}")) else { return false };
        let mut lines = information.split(|&byte| byte == b'\n');
        let mut value = |name: &[u8]| lines.find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii);
        match &*name {
            "timerfd" => value(b"it_value:") == Some(b"(0, 0)"),
            "signalfd" => value(b"sigmask:").and_then(hexadecimal) == Some(0),
            "eventfd" => event_number(&information).is_some_and(is_own),
            "inotify" => value(b"inotify wd:").is_none(),
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
