//! Marks for locks that the program takes by itself: what happens, in what words, is up to who places them.
//!
//! The macros are expansions of a site and a call of a function below, which writes the event and keeps the
//! held-lock table. They take no lock and know no lock's type.

#![allow(unsafe_code, reason = "sites are assembly")]

use super::elsewhere;
use super::names;
use super::table::{Slot, held_flags};
use librip_format::{
    HELD_ACQUIRING, HELD_DESTROYED, HELD_HELD, HELD_NONE, HELD_SHARED, HELD_WAITING, SITE_SHARED,
};

/// Something that says which lock is meant: by its address.
///
/// For references and raw pointers that is where they point, so a lock in an `Arc` is `&*arc`.
pub trait LockAddress {
    /// The address.
    fn address(self) -> u64;
}

impl<T: ?Sized> LockAddress for &T {
    #[inline(always)]
    fn address(self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }
}

impl<T: ?Sized> LockAddress for *const T {
    #[inline(always)]
    fn address(self) -> u64 {
        self.addr() as u64
    }
}

impl<T: ?Sized> LockAddress for *mut T {
    #[inline(always)]
    fn address(self) -> u64 {
        self.addr() as u64
    }
}

/// Expands to the PC of a lock's site: kind, flags in words, operands.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_lock_site {
    ($kind:ident, [$($flag:ident),*], [$($operand:ident),*]) => {{
        const TEXT: &str = ::core::concat!(::core::file!(), "\0", ::core::module_path!(), "\0");
        // A static of its own for each site: see `__rip_mark`.
        static BYTES: [u8; TEXT.len()] = $crate::__private::text_bytes(TEXT);
        $crate::__rip_site!(
            BYTES,
            TEXT.len(),
            $crate::__private::format::$kind,
            0 $(| $crate::__rip_lock_flag!($flag))*,
            &[$($crate::__private::format::$operand),*]
        )
    }};
}

/// What the words behind a lock mean.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_lock_flag {
    (exclusive) => {
        0
    };
    (shared) => {
        $crate::__private::format::SITE_SHARED
    };
    (reentrant) => {
        $crate::__private::format::SITE_REENTRANT
    };
    (readers_first) => {
        $crate::__private::format::SITE_READERS_FIRST
    };
    (try_for) => {
        $crate::__private::format::SITE_TRY
    };
}

/// Records that the thread is about to wait for a lock.
///
/// The lock is a reference or pointer to it; what counts is the address. Words behind it say more: `shared` for
/// a reader, `reentrant` where the owner may take the lock again, `readers_first` where readers pass waiting
/// writers, `try_for` where the waiting ends by itself after a time.
///
/// Place it where the thread blocks: it notes the time, which takes some nanoseconds more than other marks
/// (`RIP_CLOCK=off` saves them). [`rip_lock_acquired!`](crate::rip_lock_acquired) or
/// [`rip_lock_try_failed!`](crate::rip_lock_try_failed) follows.
///
/// # Examples
///
/// ```
/// use librip::{rip_lock_acquired, rip_lock_released, rip_lock_wait};
/// use std::sync::Mutex;
///
/// static CACHE: Mutex<u32> = Mutex::new(0);
///
/// rip_lock_wait!(&CACHE);
/// let mut cache = CACHE.lock().unwrap();
/// rip_lock_acquired!(&CACHE);
/// *cache += 1;
/// drop(cache);
/// rip_lock_released!(&CACHE);
/// ```
#[macro_export]
macro_rules! rip_lock_wait {
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_wait(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_WAIT, [$($flag),*], [OPERAND_TIME, OPERAND_LOCK]),
            0 $(| $crate::__rip_lock_flag!($flag))*,
        )
    };
}

/// Records that the thread has got a lock: see [`rip_lock_wait!`](crate::rip_lock_wait).
///
/// Directly behind the acquisition, with or without a `rip_lock_wait!` before it. With `try_for` it says that the
/// lock was got by trying.
#[macro_export]
macro_rules! rip_lock_acquired {
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_acquired(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_ACQUIRED, [$($flag),*], [OPERAND_LOCK]),
            $crate::__rip_lock_site!(KIND_LOCK_ACQUIRED, [$($flag),*], [OPERAND_TIME, OPERAND_LOCK]),
            0 $(| $crate::__rip_lock_flag!($flag))*,
        )
    };
}

/// Records that the thread has given up a lock: see [`rip_lock_wait!`](crate::rip_lock_wait).
///
/// Directly behind the release. The lock may have been taken by another thread.
#[macro_export]
macro_rules! rip_lock_released {
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_released(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_RELEASED, [$($flag),*], [OPERAND_LOCK]),
            $crate::__rip_lock_site!(
                KIND_LOCK_RELEASED,
                [$($flag),*],
                [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]
            ),
        )
    };
}

/// Records that the thread has tried a lock in vain, or waited for it until its time was up.
#[macro_export]
macro_rules! rip_lock_try_failed {
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_try_failed(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_TRY_FAILED, [try_for $(, $flag)*], [OPERAND_LOCK]),
        )
    };
}

/// Says that a lock is about to end: its name is taken away, and whoever holds it is known to hold nothing any more.
///
/// For locks in memory that will be used again: without it another lock at the same address would be taken for it.
#[macro_export]
macro_rules! rip_lock_destroyed {
    ($lock:expr) => {
        $crate::__private::lock_destroyed($lock)
    };
}

/// Names a lock in the ring, up to 48 bytes. `read-rip` shows the name instead of the address.
///
/// A lock that is a `static` is shown by the name of that even without. Takes a microsecond or a few.
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
///
/// let sessions = Box::new(Mutex::new(Vec::<u32>::new()));
/// librip::rip_lock_name!(&*sessions, "sessions");
/// ```
#[macro_export]
macro_rules! rip_lock_name {
    ($lock:expr, $name:expr $(,)?) => {
        $crate::__private::lock_name($lock, $name)
    };
}

/// Records that useful work has been done: a request answered, an item finished.
///
/// `read-rip check` tells a program that runs and gets nowhere from one that works by these marks. Takes about a
/// nanosecond.
#[macro_export]
macro_rules! rip_progress {
    () => {
        $crate::rip_progress!("")
    };
    ($label:literal) => {{
        const TEXT: &str = ::core::concat!(::core::file!(), "\0", ::core::module_path!(), "\0", $label);
        // A static of its own for each site: see `__rip_mark`.
        static BYTES: [u8; TEXT.len()] = $crate::__private::text_bytes(TEXT);
        // SAFETY: as in `rip_snap!`.
        unsafe { $crate::__rip_mark!(BYTES, TEXT.len(), $crate::__private::format::KIND_PROGRESS) }
    }};
}

/// Behind [`rip_lock_wait!`].
pub fn wait(lock: impl LockAddress, pc: u64, site_flags: u16) {
    let Some(slot) = Slot::current() else { return };
    let lock = lock.address();
    let time = slot.time();
    let sequence = slot.event([time, lock], pc);
    let is_attempt = |state| state == HELD_ACQUIRING || state == HELD_WAITING;
    let known = slot.find(lock, is_attempt);
    let Some(mut entry) = known.or_else(|| slot.enter_lock(lock, sequence, pc, held_flags(site_flags)))
    else {
        // It counts as one that is held beyond the table when it is acquired.
        slot.was_beyond();
        return;
    };
    entry.set_since(time, 0);
    entry.set_pc(pc);
    entry.set_state(HELD_WAITING);
}

/// Behind [`rip_lock_acquired!`].
#[inline(always)]
pub fn acquired(lock: impl LockAddress, pc: u64, pc_timed: u64, site_flags: u16) {
    let lock = lock.address();
    // What `librip.h` does in the same case.
    if let Some(slot) = Slot::existing()
        && !slot.times_all()
        && let Some(entry) = slot.only_free()
    {
        let sequence = slot.event([lock], pc);
        entry.enter(lock, sequence, pc, held_flags(site_flags)).change_state(HELD_ACQUIRING, HELD_HELD);
        return;
    }
    acquired_slowly(lock, pc, pc_timed, site_flags);
}

/// The thread's first event, or one with a time, or a thread that has or had several locks, or has waited for this one.
#[inline(never)]
pub(crate) fn acquired_slowly(lock: u64, pc: u64, pc_timed: u64, site_flags: u16) {
    let Some(slot) = Slot::current() else { return };
    if !slot.times_all()
        && let Some(entry) = slot.near_free_if_new(lock)
    {
        let sequence = slot.event([lock], pc);
        entry.enter(lock, sequence, pc, held_flags(site_flags)).change_state(HELD_ACQUIRING, HELD_HELD);
        return;
    }
    let (pc, time, sequence) = if slot.times_all() {
        let (pc, time) = (pc_timed, slot.time());
        (pc, time, slot.event([time, lock], pc))
    } else {
        (pc, 0, slot.event([lock], pc))
    };
    match slot.find(lock, |state| matches!(state, HELD_ACQUIRING | HELD_WAITING | HELD_HELD)) {
        Some(mut entry) if entry.state() == HELD_HELD => entry.set_since(entry.since(), entry.again() + 1),
        Some(mut entry) => {
            entry.set_pc(pc);
            entry.set_flag(HELD_SHARED, site_flags & SITE_SHARED != 0);
            entry.set_state(HELD_HELD);
            entry.set_since(time, 0);
        }
        None => {
            if let Some(mut entry) = slot.enter_lock(lock, sequence, pc, held_flags(site_flags)) {
                if time != 0 {
                    entry.set_since(time, 0);
                }
                entry.set_state(HELD_HELD);
            }
        }
    }
}

/// Behind [`rip_lock_released!`].
#[inline(always)]
pub fn released(lock: impl LockAddress, pc: u64, pc_timed: u64) {
    let lock = lock.address();
    if let Some(slot) = Slot::existing()
        && !slot.times_all()
        && slot.has_released_first(lock)
    {
        slot.event([lock], pc);
        return;
    }
    released_slowly(lock, pc, pc_timed);
}

/// A lock that is not the thread's first one, or whose time is known, or that this thread does not have.
#[inline(never)]
pub(crate) fn released_slowly(lock: u64, pc: u64, pc_timed: u64) {
    let Some(slot) = Slot::current() else { return };
    if !slot.times_all()
        && let Some(entry) = slot.near_releases(lock)
    {
        entry.entry().clear();
        slot.event([lock], pc);
        return;
    }
    let entry = slot.find(lock, |state| state != HELD_NONE && state != HELD_DESTROYED);
    let since = entry.map_or(0, |entry| entry.since());
    match entry {
        Some(mut entry) if entry.again() > 0 => entry.set_since(since, entry.again() - 1),
        Some(entry) => entry.clear(),
        // It was destroyed between its release and this mark.
        None => match slot.find(lock, |state| state == HELD_DESTROYED) {
            Some(entry) => entry.clear(),
            None => released_unknown(slot, lock),
        },
    }
    if since != 0 || slot.times_all() {
        slot.event([slot.time(), since, lock], pc_timed);
    } else {
        slot.event([lock], pc);
    }
}

/// A lock was given up that this thread does not have, by its table.
#[cold]
#[inline(never)]
pub(super) fn released_unknown(slot: Slot, lock: u64) {
    if !slot.was_beyond() {
        elsewhere::released(lock);
    }
}

/// Behind [`rip_lock_try_failed!`].
pub fn try_failed(lock: impl LockAddress, pc: u64) {
    let Some(slot) = Slot::current() else { return };
    let lock = lock.address();
    if let Some(entry) = slot.find(lock, |state| matches!(state, HELD_ACQUIRING | HELD_WAITING)) {
        entry.clear();
    }
    slot.event([lock], pc);
}

/// Behind [`rip_lock_destroyed!`].
pub fn destroyed(lock: impl LockAddress) {
    let lock = lock.address();
    names::forget(lock);
    elsewhere::destroyed(lock);
    if let Some(slot) = Slot::existing() {
        destroyed_here(slot, lock);
    }
}

/// Behind [`rip_lock_name!`].
pub fn name(lock: impl LockAddress, name: impl AsRef<str>) {
    names::set(lock.address(), name.as_ref().as_bytes());
}

/// Records that a lock ends.
#[inline(never)]
pub(super) fn destroyed_here(slot: Slot, lock: u64) {
    let pc = crate::__rip_lock_site!(KIND_LOCK_DESTROYED, [], [OPERAND_LOCK]);
    slot.event([lock], pc);
}
