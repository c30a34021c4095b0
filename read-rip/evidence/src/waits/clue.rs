//! What the function names of a stack say about a wait.
//!
//! The innermost functions of a thread that sleeps in a futex are those that make the system call; then comes the
//! function of the object, as `pthread_mutex_lock`; then, in a few cases, functions that say what the object is for, as
//! `malloc`. The walk outwards stops at the first name that is none of these. So a function of the user that runs below
//! `pthread_once` and waits for something of its own is not taken for a wait for the initialisation.
//!
//! Frames without a name are passed over: a stripped C library has names for its exported functions only.

use super::construct::{Construct, Primitive};
use super::names::{self, Meaning};

/// What the stack of a thread says about its wait.
///
/// Threads with one stack have one clue: make it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clue {
    pub(super) primitive: Option<Primitive>,
    pub(super) construct: Option<Construct>,
}

/// How many functions are looked at. Constructs have fewer.
const DEPTH: usize = 24;

impl Clue {
    /// Interprets the function names of a stack, innermost first. An empty name is an unknown function.
    ///
    /// Demangled names and those of the linker's table are understood, with and without versions and arguments.
    pub fn of(frames: &[&str]) -> Clue {
        let mut clue = Clue::default();
        for frame in frames.iter().take(DEPTH).filter(|frame| !frame.is_empty()) {
            match names::meaning(frame, clue.construct.map(|construct| construct.role)) {
                Some(Meaning::Glue) => {}
                Some(Meaning::Object(primitive, construct)) if clue.primitive.is_none() => {
                    clue = Clue { primitive: Some(primitive), construct: Some(construct) };
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
        clue
    }
}
