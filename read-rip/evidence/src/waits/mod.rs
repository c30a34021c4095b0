//! What a thread that sleeps in a futex waits for, and who has it.
//!
//! The kernel says at which address a thread sleeps, and which value it expects there. The function names of its stack
//! say which lock function it called ([`Clue`]). The memory at the address then says the rest: the kind of a mutex, its
//! owner, the value of a semaphore. [`Waits`] puts the three together into a [`FutexWait`].
//!
//! This is data in, data out: it reads the target's memory and nothing else, and makes no text. It names no symbols. It
//! finds no cycles: it says what one thread waits for at one moment.
//!
//! # What is believed
//!
//! Memory moves while it is read, and a hostile process can have anything there. So
//!
//! * the bytes of an object are read by one call, for all threads that wait for it. The kernel may still copy them
//!   while a processor changes them: two words of one object can be of two moments. A wait that is the same in two
//!   readings, by a thread that did not run between them, is not torn;
//! * the word must be what the call expects. If not, the wait is about to end: [`UnknownOwner::Changing`];
//! * an owner must be a living thread of this process, by its id in its own PID namespace;
//! * fields that are always zero must be zero, and so on: each file says what it checks;
//! * what does not pass is *unknown*.
//!
//! All of this shows that an object makes sense, and not that the process is honest.
//!
//! # Without function names
//!
//! Stripped static programs have none. Then only objects count that store an owner and have many bytes to check:
//! `glibc::mutex` says how likely an error is. [`FutexWait::basis`] says where the knowledge comes from.
//!
//! | file | what it has |
//! |---|---|
//! | `wait` | the values: a wait, its kind, its owner |
//! | `construct` | the values: what the function that a thread waits in is for |
//! | `clue` | what the function names of a stack say |
//! | `names` | the table of these function names |
//! | `wakers` | which functions may wake a thread, by their names |
//! | `patterns` | how a function name is compared with a pattern |
//! | `managers` | whether the function names are those of a wait for a lock of a database |
//! | `executors` | whether the function names are those of a worker of async tasks |
//! | `case` | one wait that is examined: its futex, the memory, the living threads |
//! | `memory` | the memory, each object read once |
//! | `library` | which C library the target uses |
//! | `glibc`, `musl` | the layouts of their objects |
//! | `holders` | who is presumed to have a lock that stores no owner |
//! | `runners` | who runs an initialisation that threads wait for |
//! | `trying` | what a thread calls that waits in a loop |
//! | `stacks_of` | where the stacks of threads are that run |
//! | `words` | the words of the stacks of threads |
//! | `refused` | a lock that the kernel has refused |

mod case;
mod clue;
mod construct;
mod executors;
mod glibc;
mod holders;
mod library;
mod managers;
mod memory;
mod musl;
mod names;
mod patterns;
mod refused;
mod runners;
mod stacks_of;
mod trying;
mod wait;
mod wakers;
mod words;

pub use clue::Clue;
pub use construct::{Construct, Role};
pub(crate) use executors::is_in_poll;
pub use executors::{Worker, executor_of};
pub(crate) use holders::{holders, unowned_lock};
pub use managers::LockManager;
pub(crate) use names::PYTHON_LOCK;
pub use names::pool_of;
pub(crate) use names::{brings, calls_closure, is_of_library, waits_for_work};
pub(crate) use patterns::is_one_of;
pub(crate) use runners::{Runner, Runners};
pub(crate) use stacks_of::stacks_of;
pub use trying::Trying;
pub use wait::{
    Basis, FutexWait, MutexType, Owner, Preference, Presumption, Protocol, UnknownOwner, WaitKind,
};
pub(crate) use wakers::{is_closed, may_wake, unlocks, wakes};

use foldhash::HashSet;

use crate::runtimes::InnerLock;
use crate::target::{Architecture, FutexOperation, Memory, RunState, Sleep, Target, Unreadable};
use case::{Case, Found, only};
use construct::{Place, Primitive};
use library::Library;
use memory::ReadOnce;
use refused::refused;

/// Examines the waits of a target's threads.
pub struct Waits<'a> {
    target: &'a Target,
    memory: ReadOnce<'a>,
    /// The threads that have not ended, by their ids in their own PID namespace.
    living: HashSet<u32>,
    library: Library,
    /// The locks of a language's runtime.
    of_runtime: &'a [InnerLock],
}

impl std::fmt::Debug for Waits<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Waits").field("pid", &self.target.pid).finish_non_exhaustive()
    }
}

impl<'a> Waits<'a> {
    /// Prepares to examine the threads of a target. `of_runtime`: the locks of a language's runtime that it has.
    pub fn new(target: &'a Target, memory: &'a dyn Memory, of_runtime: &'a [InnerLock]) -> Waits<'a> {
        let living =
            target.tasks.iter().filter(|task| !matches!(task.state, RunState::Zombie | RunState::Dead));
        Waits {
            target,
            memory: ReadOnce::new(memory),
            living: living.map(|task| task.own_tid).collect(),
            library: Library::of(&target.mappings),
            of_runtime,
        }
    }

    /// Returns what the thread at this index of [`Target::tasks`] waits for, given what its stack says.
    ///
    /// `None` if it does not sleep in a futex, or if that is not known.
    pub fn of(&self, task: usize, clue: &Clue) -> Option<FutexWait> {
        let task = self.target.tasks.get(task)?;
        let Some(Sleep::Call(call)) = task.sleep else { return None };
        let futex = call.futex()?;
        let case = Case {
            memory: &self.memory,
            living: &self.living,
            futex,
            architecture: self.target.architecture,
        };
        // A lock that a language makes of a condition variable looks from time to time whether it is free.
        let looks_again = |kind| {
            matches!(kind, WaitKind::Condition { .. } | WaitKind::RuntimeLock)
                && clue.construct.is_some_and(|construct| construct.role == Role::Lock)
        };
        let wait = |found: Found, basis| FutexWait {
            kind: found.kind,
            object: found.object,
            futex: futex.address,
            owner: found.owner,
            is_exclusive: found.is_exclusive,
            is_timed: futex.is_timed && !looks_again(found.kind),
            // FOLKLORE: the C++ library of gcc 11 to 15 sleeps in std::atomic::wait, and in what is made of it, without
            // the flag that says that the futex is the process's own. Its memory is.
            is_private: futex.is_private || self.target.is_own_memory(futex.address),
            basis,
            construct: clue.construct,
            presumption: None,
        };
        let of_runtime = self.of_runtime.iter().find(|lock| lock.has(futex.address));
        let found = match clue.primitive {
            Some(_) if clue.is_for_runtime_lock() && of_runtime.is_some() => {
                of_runtime.map(|lock| wait(Found::from(lock), Basis::Stack))
            }
            Some(primitive) => {
                let is_mutex = primitive == Primitive::Mutex;
                let refused = || refused(&case, task.registers.filter(|_| is_mutex)?.sp);
                let own = |found: Found| match found.owner {
                    Owner::Unknown(UnknownOwner::NotStored) if clue.has_allocator => {
                        Found { owner: Owner::Tid(task.own_tid), ..found }
                    }
                    _ => found,
                };
                self.named(&case, primitive).or_else(refused).map(|found| wait(own(found), Basis::Stack))
            }
            None => self.unnamed(&case).map(|found| wait(found, Basis::Bytes)),
        };
        let found = found.or_else(|| pi_futex(&case).map(|found| wait(found, Basis::Call)));
        Some(found.unwrap_or_else(|| {
            // The functions may be known, and the bytes senseless.
            let doubt = match clue.primitive {
                _ if case.memory.u32(futex.address) == Err(Unreadable::Absent) => UnknownOwner::Absent,
                Some(_) => UnknownOwner::Senseless,
                None => UnknownOwner::Unrecognised,
            };
            let kind = WaitKind::Unknown;
            wait(Found { kind, object: None, owner: Owner::Unknown(doubt), is_exclusive: true }, Basis::None)
        }))
    }

    /// Interprets the bytes as the object that the stack says.
    fn named(&self, case: &Case<'_>, primitive: Primitive) -> Option<Found> {
        if let Primitive::Opaque { place, is_exclusive } = primitive {
            return Some(opaque(case, place, is_exclusive));
        }
        let glibc = || glibc::named(case, primitive);
        let musl = || musl::named(case, primitive);
        match self.library {
            Library::Glibc => glibc(),
            Library::Musl => musl(),
            // musl finds some objects by their functions alone, and these have no address.
            Library::Unknown => match (glibc(), musl()) {
                (Some(found), Some(other)) => other.object.is_none().then_some(found),
                (found, other) => found.or(other),
            },
        }
    }

    /// Interprets the bytes as any object with an owner.
    fn unnamed(&self, case: &Case<'_>) -> Option<Found> {
        let glibc = || only(glibc::unnamed(case));
        let musl = || musl::unnamed(case);
        match self.library {
            Library::Glibc => glibc(),
            Library::Musl => musl(),
            Library::Unknown => only([glibc(), musl()]),
        }
    }
}

impl From<&InnerLock> for Found {
    fn from(lock: &InnerLock) -> Found {
        Found {
            kind: WaitKind::RuntimeLock,
            object: Some(lock.address),
            owner: lock.owner,
            is_exclusive: true,
        }
    }
}

/// The id of the thread whose `pthread_t` this is; `None` if it is none of glibc.
pub(crate) fn id_of_pthread(pthread: u64, architecture: Architecture, memory: &dyn Memory) -> Option<u32> {
    glibc::id_at(memory, architecture, pthread)
}

/// A lock whose kind only the stack tells: it stores no owner that this reader knows.
fn opaque(case: &Case<'_>, place: Place, is_exclusive: bool) -> Found {
    let address = case.futex.address;
    let object = match place {
        Place::AtFutex => Some(address),
        Place::Elsewhere => None,
        // While a writer waits for a std::sync::RwLock, the highest bit of the state is set. The state is before the
        // word at which writers sleep.
        Place::BeforeFutex => {
            let state = address.checked_sub(4);
            state.filter(|&state| case.memory.u32(state).is_ok_and(|word| word >> 31 == 1))
        }
    };
    Found { kind: WaitKind::Opaque, object, owner: Owner::Unknown(UnknownOwner::NotStored), is_exclusive }
}

/// A futex of the kernel's priority inheritance: the kernel itself keeps the owner's id in the word.
fn pi_futex(case: &Case<'_>) -> Option<Found> {
    if case.futex.operation != FutexOperation::LockPi {
        return None;
    }
    let [word] = case.words(case.futex.address)?;
    Some(Found {
        kind: WaitKind::PiFutex,
        object: Some(case.futex.address),
        owner: case.owner_in_word(word),
        is_exclusive: true,
    })
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
