//! The mapped ring: where its parts are, and the operations on them.
//!
//! There are no statics here: a [`Ring`] is passed in. Nothing here knows the thread that calls, the clock or the
//! loader.
//!
//! # What is trusted
//!
//! Other processes can map the file and change its contents at any time. So everything that the recorder needs again is
//! elsewhere: [`Geometry`] is private to this process, and [`Control`] is shared with forked children only.
//!
//! The recorder reads these values back from the file, and no others. A wrong value changes what is recorded, but not
//! in which memory a store goes, how long a loop runs, or by how much something is shifted:
//!
//! * the count of the calling thread's own slot. A mask in private memory limits it to the words of that slot
//!   (`arch`, `process::slot`). A claim copies it, and that of the first slot ([`slots`]).
//! * the counts of all slots at exit, to find out whether anything was recorded ([`slots::has_events`]).
//! * entries of held-lock tables, the own one (`lock::table`, [`fork_copy`]) and those of other threads
//!   ([`remote_tables`]). They are compared with the lock that is sought. All loops end after 16 entries.
//! * entries of the own table of open spans, to find a free one (`event::span`). That loop ends after the last entry.
//! * the last words of the calling thread's own slot (`lock::caller`). It reads what they and the own held-lock table
//!   refer to, but only where that is data of the recorder's own module (`process::image`).
//! * where the histories of the own slot are (`process::channels`). Numbers in private memory bound it.
//! * the least level of a channel (`process::channels`). It says whether an event is recorded.
//! * how often the calling thread has slept, to count on, if it polls tasks (`process::task`).
//! * statistics in the header, and counts of polls, to add to them ([`polls`]). The greatest length that the file has
//!   says whether a greater one is stored. The name of a task is copied.
//!
//! Reserving memory ([`sys::reserve`](crate::sys::reserve)) lets the kernel add zero to words of the file.

pub(crate) mod atomic {
    //! The atomics that [`exit_queue`](super::exit_queue) uses. Its model in the tests uses loom's instead.
    pub(crate) use core::hint::spin_loop;
    pub(crate) use core::sync::atomic::AtomicU64;
}
pub(crate) mod calls;
pub(crate) mod captures;
pub(crate) mod children;
pub(crate) mod control;
mod entry;
pub(crate) mod exit_queue;
pub(crate) mod fork_copy;
pub(crate) mod geometry;
mod handed_over;
pub(crate) mod histories;
pub(crate) mod incidents;
pub(crate) mod lock_names;
mod map;
pub(crate) mod module_registry;
mod names;
pub(crate) mod polls;
pub(crate) mod process_sites;
pub(crate) mod remote_tables;
pub(crate) mod slots;
pub(crate) mod strings;

pub(crate) use control::Control;
pub(crate) use geometry::{Geometry, Table};
pub(crate) use map::Ring;
