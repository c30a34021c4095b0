//! Sites: the marks in the source, and what their events mean.
//!
//! [`Site::kind`] says what an event means. [`Site::operand_types`] says which operand words stand before its PC word,
//! in this order:
//!
//! | kind | operands | meaning |
//! |---|---|---|
//! | [`KIND_SNAP`] | | the thread passed this mark |
//! | [`KIND_PROGRESS`] | | the thread did useful work |
//! | [`KIND_LOCK_WAIT`] | time, (place,) (stack,) lock | the thread is about to block until it gets the lock |
//! | [`KIND_LOCK_ACQUIRED`] | (time,) (place,) lock | the thread has acquired the lock |
//! | [`KIND_LOCK_RELEASED`] | (time, since,) (place,) lock | the thread has released the lock |
//! | [`KIND_LOCK_TRY_FAILED`] | (place,) lock | an attempt failed, or a wait timed out |
//! | [`KIND_LOCK_ACQUIRE_BEGIN`] | (time,) (place,) lock | a wrapper begins to acquire the lock: see below |
//! | [`KIND_CONDITION_WAIT`] | time, (place,) (stack,) lock, condition | the thread releases the lock, and waits |
//! | [`KIND_CONDITION_WOKEN`] | time, (place,) lock, condition | the thread has the lock again |
//! | [`KIND_LOCK_DESTROYED`] | (place,) lock | the lock was destroyed; another lock may be created at its address |
//! | [`KIND_LOCK_INITIALISED`] | time, (place,) lock | a new lock begins at this address, and nobody holds it |
//! | [`KIND_CONDITION_SIGNALLED`] | (place,) condition | the thread signals it, and a thread may wait on it |
//! | [`KIND_CONDITION_UNHEARD`] | (place,) condition | the thread signals it, and no thread waits on it |
//! | [`KIND_CONDITION_DESTROYED`] | time, (place,) condition | the thread destroys it, and a thread waits on it |
//! | [`KIND_EVENT`] | (time,) (values,) shape | the program records values: the label is their format |
//! | [`KIND_SPAN_BEGIN`] | (time,) (values,) shape | a span begins: the label is its name, a zero byte, and a format |
//! | [`KIND_SPAN_END`] | time, since | a span has ended: the label is its name |
//! | [`KIND_CHANNEL_PEER`] | (place,) lock, peer | before a wait at this channel: its [peer](mod@crate::peer) |
//! | [`KIND_TASK`] | | no event has it: the module has [tasks](crate::task) |
//!
//! The place is [`OPERAND_CALLER`] or [`OPERAND_LOCATION`]: it says where the program called the function that records.
//! The stack is up to four [`OPERAND_STACK`]s: a hint at who called the caller.
//! An `ACQUIRE_BEGIN` may be a [`call`](crate::call), which has no site.
//!
//! A thread also blocks on things that nobody holds: [`LOCK_TYPE_SEMAPHORE`], [`LOCK_TYPE_THREAD`],
//! [`LOCK_TYPE_BARRIER`], [`LOCK_TYPE_MESSAGE`] and [`LOCK_TYPE_WAKE`]. Their events have the kinds `WAIT`, `ACQUIRED`
//! when the wait has ended, `TRY_FAILED` when it has ended without what the thread waited for, and `RELEASED` for a
//! posted unit.
//!
//! A wrapper records no `ACQUIRED` event: it has acquired the lock after `ACQUIRE_BEGIN` unless a `TRY_FAILED` follows.
//! So it writes only one word of the held-lock table between the acquisition of a free lock and the program's own work.
//! If the lock is not free at once, the wrapper records a `WAIT` after `ACQUIRE_BEGIN`.
//!
//! # Sites of processes
//!
//! Most sites are in the notes of a module, and all processes that have the module have the site. A bridge from another
//! interface of tracing makes a site when the program runs: the site belongs to a *process*. Its [`Site::module`] is
//! [`SITE_OF_PROCESS`], [`Site::pc`] is an actual address, and [`Site::column`] is the process's id. The address is one
//! of data of the process, which nothing else uses as a PC. An event has such a site if its PC is the site's, and the
//! process of the event's slot is the site's process. A forked child has the sites of its parent too, and need not
//! enter them again: for a PC at which its own process has no site, all sites there are possible.
//!
//! A binding for another language knows the function: it stands in place of the module path, with `()` after it.
//!
//! A site of a process is complete before the first event of it is recorded. It may be entered twice.

use core::mem::offset_of;
use core::sync::atomic::AtomicU32;

use crate::Text;

/// An event has at most this many operands.
pub const OPERANDS_MAX: usize = 12;

/// One mark in the source, as its ELF note describes it, or as a bridge made it.
#[repr(C)]
#[derive(Debug)]
pub struct Site {
    /// The entry's [checksum](crate::checksum), written last; 0 before.
    pub state: AtomicU32,
    /// Index of the site's module, or [`SITE_OF_PROCESS`].
    pub module: u32,
    /// Module-relative address of the mark's first instruction: the payload of the mark's PC words minus the load bias.
    /// For a site of a process: the payload itself.
    pub pc: u64,
    /// File, module path and label, separated by zero bytes.
    pub text: Text,
    /// Line in the source, from 1.
    pub line: u32,
    /// Column in the source, from 1; 0 if the language has none. For a site of a process: the process's id.
    pub column: u32,
    /// `KIND_*`.
    pub kind: u8,
    /// The number of operands of an event.
    pub operand_count: u8,
    /// A set of `SITE_*`, and a `LOCK_TYPE_*` above [`SITE_LOCK_TYPE_SHIFT`].
    pub flags: u16,
    /// `OPERAND_*` of each operand.
    pub operand_types: [u8; OPERANDS_MAX],
}

/// [`Site::module`]: the site belongs to a process: see the [module](self).
pub const SITE_OF_PROCESS: u32 = u32::MAX;

/// [`Site::kind`]: a plain snapshot.
pub const KIND_SNAP: u8 = 0;
/// [`Site::kind`]: useful work was done.
pub const KIND_PROGRESS: u8 = 1;
/// [`Site::kind`]: the [module](self)'s table describes this kind and those below.
pub const KIND_LOCK_WAIT: u8 = 2;
/// [`Site::kind`]: see the [module](self).
pub const KIND_LOCK_ACQUIRED: u8 = 3;
/// [`Site::kind`]: see the [module](self).
pub const KIND_LOCK_RELEASED: u8 = 4;
/// [`Site::kind`]: see the [module](self).
pub const KIND_LOCK_TRY_FAILED: u8 = 5;
/// [`Site::kind`]: see the [module](self).
pub const KIND_LOCK_ACQUIRE_BEGIN: u8 = 6;
/// [`Site::kind`]: see the [module](self).
pub const KIND_CONDITION_WAIT: u8 = 7;
/// [`Site::kind`]: see the [module](self).
pub const KIND_CONDITION_WOKEN: u8 = 8;
/// [`Site::kind`]: see the [module](self).
pub const KIND_LOCK_DESTROYED: u8 = 9;
/// [`Site::kind`]: see the [module](self).
pub const KIND_LOCK_INITIALISED: u8 = 10;
/// [`Site::kind`]: see the [module](self).
pub const KIND_CONDITION_SIGNALLED: u8 = 11;
/// [`Site::kind`]: see the [module](self).
pub const KIND_CONDITION_UNHEARD: u8 = 12;
/// [`Site::kind`]: see the [module](self).
pub const KIND_CONDITION_DESTROYED: u8 = 13;
/// [`Site::kind`]: see the [module](self).
pub const KIND_EVENT: u8 = 14;
/// [`Site::kind`]: see the [module](self).
pub const KIND_SPAN_BEGIN: u8 = 15;
/// [`Site::kind`]: see the [module](self).
pub const KIND_SPAN_END: u8 = 16;
/// [`Site::kind`]: see the [module](self).
pub const KIND_TASK: u8 = 17;
/// [`Site::kind`]: see the [module](self).
pub const KIND_CHANNEL_PEER: u8 = 18;

/// [`Site::flags`]: none.
pub const NO_SITE_FLAGS: u16 = 0;
/// [`Site::flags`] of an event: the bits of its level, a `LEVEL_*`.
pub const SITE_LEVEL: u16 = 7;
/// [`Site::flags`] of an event, or of the beginning of a span: it is recorded in a [channel](crate::channel).
pub const SITE_CHANNEL: u16 = 16;
/// [`Site::flags`] of an event: its values say what the thread has [used](mod@crate::usage).
pub const SITE_USAGE: u16 = 32;
/// [`SITE_LEVEL`]: the finest.
pub const LEVEL_TRACE: u16 = 1;
/// [`SITE_LEVEL`]: for who debugs the program.
pub const LEVEL_DEBUG: u16 = 2;
/// [`SITE_LEVEL`]: the level of an event that names none.
pub const LEVEL_INFO: u16 = 3;
/// [`SITE_LEVEL`]: something is not as it should be.
pub const LEVEL_WARN: u16 = 4;
/// [`SITE_LEVEL`]: something has failed.
pub const LEVEL_ERROR: u16 = 5;
/// [`Site::flags`] of an event, or of a span's beginning: the format has the [syntax of `printf`](crate::printf).
/// Without it, the format has the syntax of Rust's `std::fmt`.
pub const SITE_PRINTF: u16 = 8;

/// [`Site::flags`]: the lock is acquired in shared mode.
pub const SITE_SHARED: u16 = 1;
/// [`Site::flags`]: the attempt does not block, or ends after a time.
pub const SITE_TRY: u16 = 2;
/// [`Site::flags`]: the site is in a wrapper, which records everything that is done with its locks. The location to
/// show is the wrapper's caller.
pub const SITE_WRAPPER: u16 = 4;
/// [`Site::flags`]: the owner may acquire the lock again.
pub const SITE_REENTRANT: u16 = 8;
/// [`Site::flags`]: a shared acquisition that passes waiting writers.
pub const SITE_READERS_FIRST: u16 = 16;
/// [`Site::flags`]: a shared acquisition that may become exclusive. A lock grants one of these at a time.
pub const SITE_UPGRADABLE: u16 = 32;
/// [`Site::flags`]: only the thread that acquired the lock can release it: its guard cannot be sent to another thread.
pub const SITE_OWNED: u16 = 64;
/// [`Site::flags`]: only the thread that acquired the lock may release it. That is a rule of its interface, and nothing
/// enforces it: POSIX leaves it undefined what an unlock of another thread's mutex does.
pub const SITE_OWNED_BY_RULE: u16 = 128;
/// [`Site::flags`]: the first bit of a `LOCK_TYPE_*`.
pub const SITE_LOCK_TYPE_SHIFT: u32 = 8;
/// [`Site::flags`]: the bits of a `LOCK_TYPE_*`.
pub const SITE_LOCK_TYPE: u16 = 0x7f << SITE_LOCK_TYPE_SHIFT;
/// [`Site::flags`]: a future does it. In the slot of a thread, the future belongs to no recorded task, and the thread
/// only polled it: what comes next may be in the slot of another thread. A [`call`](crate::call) does not say it, so no
/// future of this kind records one.
pub const SITE_OF_FUTURE: u16 = 1 << 15;
/// The lock is marked by hand, so its type is not known.
pub const LOCK_TYPE_UNKNOWN: u16 = 0;
/// A mutex.
pub const LOCK_TYPE_MUTEX: u16 = 1;
/// A readers-writer lock.
pub const LOCK_TYPE_RWLOCK: u16 = 2;
/// A spin lock.
pub const LOCK_TYPE_SPIN: u16 = 3;
/// A semaphore. A semaphore has no owner. A unit is taken in shared mode if there was more than one.
pub const LOCK_TYPE_SEMAPHORE: u16 = 4;

/// A thread, whose end another thread waits for. The operand [`OPERAND_LOCK`] is its id.
pub const LOCK_TYPE_THREAD: u16 = 5;
/// A barrier.
pub const LOCK_TYPE_BARRIER: u16 = 6;
/// A channel, or whatever else brings a message.
pub const LOCK_TYPE_MESSAGE: u16 = 7;
/// An initialisation that is done once. The thread that runs the initialiser holds it. A thread that has waited for
/// that thread releases it at once.
pub const LOCK_TYPE_ONCE: u16 = 8;
/// The waiting thread itself, which another thread wakes. The operand [`OPERAND_LOCK`] is its id.
pub const LOCK_TYPE_WAKE: u16 = 9;

/// [`Site::operand_types`]: 48 bits in one operand word.
pub const OPERAND_WORD: u8 = 1;
/// [`Site::operand_types`]: 64 bits in two operand words, the low 32 bits first.
pub const OPERAND_DOUBLE: u8 = 2;
/// [`Site::operand_types`]: the address of a lock, in one word.
pub const OPERAND_LOCK: u8 = 3;
/// [`Site::operand_types`]: the time of the event, ticks, in one word; 0 if it is not known.
pub const OPERAND_TIME: u8 = 4;
/// [`Site::operand_types`]: the time at which what ends here began, ticks, in one word; 0 if it is not known.
pub const OPERAND_SINCE: u8 = 5;
/// [`Site::operand_types`]: the address of a condition variable, in one word.
pub const OPERAND_CONDITION: u8 = 6;
/// [`Site::operand_types`]: a return address, in one word. The location to show is the call before this address: the
/// site is in a function that replaces another, such as an interposed `pthread_mutex_lock`.
pub const OPERAND_CALLER: u8 = 7;
/// [`Site::operand_types`]: the address of the location of a wrapper's caller, in one word: see [`call`](crate::call).
pub const OPERAND_LOCATION: u8 = 8;
/// [`Site::operand_types`]: a word that stood on the thread's stack and points into code, in one word; 0 if there is
/// none. It stood above the return address of [`OPERAND_CALLER`], or in or above the frame of the mark. It may be the
/// return address of a function further out. It may as well be a pointer to a function, or be left over from an earlier
/// call. Several operands of this type have the order of the stack, the innermost first.
pub const OPERAND_STACK: u8 = 9;
/// [`Site::operand_types`]: the shape of an [event with values](crate::event), in one word. It says how many words
/// before it belong to the event.
pub const OPERAND_SHAPE: u8 = 10;
/// [`Site::operand_types`]: a [peer](mod@crate::peer), in one word.
pub const OPERAND_PEER: u8 = 11;

/// Returns how many operand words an operand of this `OPERAND_*` type takes; `None` for a type that this version does
/// not know.
pub const fn operand_words(operand_type: u8) -> Option<u32> {
    match operand_type {
        OPERAND_WORD | OPERAND_LOCK | OPERAND_TIME | OPERAND_SINCE | OPERAND_CONDITION | OPERAND_CALLER
        | OPERAND_LOCATION | OPERAND_STACK | OPERAND_SHAPE | OPERAND_PEER => Some(1),
        OPERAND_DOUBLE => Some(2),
        _ => None,
    }
}

const _: () = {
    assert!(size_of::<Site>() == 48);
    assert!(offset_of!(Site, flags) == 34);
};
