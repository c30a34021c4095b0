//! [`Life`]: what others need to know of a thread to wait for its end, and to say for which thread they wait.
//!
//! It records nothing but who created a thread, and who joined it.

#![allow(unsafe_code, reason = "it asks the C library which thread this is")]

use std::sync::{Arc, OnceLock};

use crate::process::{kin, thread};
use crate::ring::slots::Position;
use crate::sys;

/// A thread, from before its start until it is joined.
#[derive(Debug, Default)]
pub(super) struct Life {
    begun: OnceLock<Begun>,
    ended: OnceLock<()>,
}

/// What is known of a thread once it runs.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// Its id; 0 if the recorder may not ask.
    tid: u32,
    /// Its `pthread_t`.
    pthread: usize,
}

impl Life {
    /// That of a thread that the calling thread is about to start.
    pub(super) fn starts(life: &Arc<Life>) -> Starting {
        Starting { life: Arc::clone(life), creator: thread::position_of_creator() }
    }

    /// The id of the thread, for the record of a wait for its end. Waits until the thread runs.
    pub(super) fn object(&self) -> u64 {
        self.begun.wait().tid.into()
    }

    /// Whether the thread has left its function.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Waits until the thread has left its function.
    pub(super) fn wait_for_end(&self) {
        self.ended.wait();
    }

    /// The calling thread has joined the thread.
    pub(super) fn joined(&self) {
        if let Some(begun) = self.begun.get() {
            thread::joined(begun.pthread);
        }
    }
}

/// What goes with a thread that starts.
#[derive(Debug)]
pub(super) struct Starting {
    life: Arc<Life>,
    creator: Option<Position>,
}

impl Starting {
    /// The calling thread is the one that starts.
    pub(super) fn begin(self) -> Running {
        if let Some(creator) = self.creator {
            kin::created_at(creator);
        }
        let tid = if sys::avoids_calls() { 0 } else { sys::tid() };
        // SAFETY: it returns a number, and has no condition.
        let pthread = unsafe { libc::pthread_self() } as usize;
        // It is set once: a thread begins once.
        let _ = self.life.begun.set(Begun { tid, pthread });
        Running(self.life)
    }
}

/// A thread within its function.
#[derive(Debug)]
pub(super) struct Running(Arc<Life>);

impl Drop for Running {
    fn drop(&mut self) {
        // As above.
        let _ = self.0.ended.set(());
    }
}
