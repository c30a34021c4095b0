//! What the function names of a stack say about a wait.
//!
//! The innermost functions of a thread that sleeps in a futex are those that make the system call; then comes the
//! function of the object, as `pthread_mutex_lock`; then, in a few cases, functions that say what the object is for, as
//! `malloc`. The walk outwards stops at the first name that is none of these. So a function of the user that runs below
//! `pthread_once` and waits for something of its own is not taken for a wait for the initialisation.
//!
//! Frames without a name are passed over: a stripped C library has names for its exported functions only.

use super::construct::{Construct, Primitive, Role};
use super::names::{self, Meaning};

/// What the stack of a thread says about its wait.
///
/// Threads with one stack have one clue: make it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clue {
    pub(super) primitive: Option<Primitive>,
    pub(super) construct: Option<Construct>,
    /// Whether the thread waits for the allocator, and was interrupted by a signal while it had the allocator's lock.
    pub(super) has_allocator: bool,
}

/// How many functions are looked at. Constructs have fewer.
const DEPTH: usize = 24;

impl Clue {
    /// Whether the thread waits for a lock of its language's runtime, which the runtime's own data may tell more of.
    pub(super) fn is_for_runtime_lock(&self) -> bool {
        self.construct.is_some_and(|construct| construct.name == names::PYTHON_GIL)
    }

    /// Interprets the function names of a stack, innermost first. An empty name is an unknown function.
    ///
    /// Demangled names and those of the linker's table are understood, with and without versions and arguments.
    pub fn of(frames: &[&str]) -> Clue {
        let mut clue = Clue::default();
        let mut frames = frames.iter().filter(|frame| !frame.is_empty());
        for frame in frames.by_ref().take(DEPTH) {
            match names::meaning(frame, clue.construct.map(|construct| construct.role)) {
                Some(Meaning::Glue) => {}
                Some(Meaning::Object(primitive, construct)) if clue.primitive.is_none() => {
                    clue = Clue { primitive: Some(primitive), construct: Some(construct), ..clue };
                }
                // What is further out says more, unless it is another function of the same object.
                Some(Meaning::Purpose(construct)) if clue.primitive.is_some() => {
                    clue.construct = Some(construct)
                }
                // A function of the object's own library, which calls the one that was found.
                Some(Meaning::Object(..)) => {}
                Some(Meaning::Purpose(..)) | None => break,
            }
        }
        // The walk has stopped at a function of the user. What allocates calls none, unless a signal interrupts it.
        let is_allocator = clue.construct.is_some_and(|construct| construct.role == Role::Allocator);
        clue.has_allocator = is_allocator && frames.any(|frame| names::has_allocators_lock(frame));
        clue
    }
}
