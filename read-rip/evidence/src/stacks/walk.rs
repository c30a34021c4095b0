//! What a walk up a stack starts from, and what it finds: values that the unwinder and its search share.

use std::rc::Rc;

use super::registers::RegisterFile;
use super::rule::Rule;
use super::stack::{Cut, Frame};

/// So many callers are tried for all code without tables in a stack together.
pub(super) const GAP_TRIES_MAX: usize = 32;

/// A function that a thread is in, with what is known of its registers.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) frame: Frame,
    pub(super) registers: RegisterFile,
}

pub(super) struct Walk {
    pub(super) frames: Vec<Frame>,
    pub(super) inferred_from: Option<usize>,
    pub(super) end: WalkEnd,
}

impl Walk {
    /// Whether it has led to the thread's beginning. A C library without tables begins its threads in such code, so
    /// below a gap that is one too.
    pub(super) fn is_whole(&self, is_below_gap: bool) -> bool {
        self.end == WalkEnd::Outermost || is_below_gap && self.end == WalkEnd::Cut(Cut::NoTable)
    }

    /// Goes on with what was searched for.
    pub(super) fn infer(&mut self, rest: Walk) {
        self.inferred_from = Some(self.frames.len());
        self.frames.extend(rest.frames);
        self.end = rest.end;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEnd {
    /// An unwind table says that the thread began here.
    Outermost,
    /// The return address is zero, as programs leave it where nothing returns to. So is memory that was never used.
    Zero,
    Cut(Cut),
}

/// Why a function's caller was not found.
pub(super) enum Failure {
    End(WalkEnd),
    /// The rule needs this register, which is not known.
    Needs(Rc<Rule>, u16),
}

/// What was found at a place before.
#[derive(Default)]
pub(super) struct Found {
    /// Distances from the stack pointer, and how well the values there fitted.
    pub(super) distances: Vec<(u64, Fit)>,
    pub(super) failures: u32,
}

/// How well a return address fits to the function that returns there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// The call before it calls this function.
    Same,
    /// It is not known what the call calls.
    Unknown,
    /// It calls another function, which may have jumped to this one.
    Other,
}
