//! The held-lock table: the locks that the owner of a slot holds or waits for, however long ago it acquired them.
//!
//! An entry is in use if its state, in [`HeldLock::meta`], is not [`HELD_NONE`]:
//!
//! ```text
//!                         /--> HELD_WAITING ---\
//!   NONE --> HELD_ACQUIRING --------------------> HELD_HELD --> HELD_RELEASING --> NONE
//!               ^      |  the try failed           |    ^ \
//!               |      +----------------> NONE     v    |  +--> HELD_DESTROYED
//!               |                           HELD_COND_WAIT
//!   entered before the lock is touched          left after the lock was released
//! ```
//!
//! * `HELD` is exact. The owner stores it after it has acquired the lock, and replaces it before it releases the lock.
//!   In `ACQUIRING` and `RELEASING`, which last a few instructions, the owner may hold the lock or not.
//! * In `WAITING` the owner does not hold the lock. In `COND_WAIT` it has released the lock, or waits to get it back
//!   after the signal.
//! * In `SEM_WAIT`, which is entered from `NONE` and left to `NONE`, the owner blocks on a semaphore. Nobody holds
//!   that.
//! * The lower 8 bits of the sequence in `meta` must equal those in `lock`. Otherwise the entry was being written and
//!   means nothing.
//! * Marks by hand enter `HELD` without `ACQUIRING`, and may leave out `RELEASING`.
//! * The last entry is for a wait: of a lock, on a condition variable or for a semaphore, if there is no other free
//!   entry. It is never `HELD`. So a thread that holds many locks still says what it waits for.
//! * [`SlotHeader::held_overflowed`](crate::SlotHeader::held_overflowed) counts locks that found no free entry, or have
//!   only the last one.

use core::sync::atomic::AtomicU64;

use crate::PAYLOAD_MASK;

/// A slot's held-lock table has this many entries. The last one is for a wait.
pub const HELD_MAX: usize = 16;

/// An entry of the held-lock table.
#[repr(C)]
#[derive(Debug)]
pub struct HeldLock {
    /// The lock's address, packed as an operand word with the sequence of the event that entered it. Without the
    /// operand flag, `meta` has a [`call`](crate::call) in place of a PC.
    pub lock: AtomicU64,
    /// The PC or the call of the acquisition, the state, and flags: see [`held_meta`].
    pub meta: AtomicU64,
    /// Valid if `meta` has [`HELD_SINCE`]. The lower 48 bits say when the wait or the hold began, ticks, 0 if that is
    /// not known. The upper bits say how often the owner has acquired the lock again.
    pub since: AtomicU64,
}

/// [`HeldLock::meta`]: the first of the three bits of the state.
pub const HELD_STATE_SHIFT: u32 = 48;
/// State: the entry is free.
pub const HELD_NONE: u64 = 0;
/// State: the owner tries to acquire the lock, and may have succeeded already.
pub const HELD_ACQUIRING: u64 = 1;
/// State: the owner waits for the lock.
pub const HELD_WAITING: u64 = 2;
/// State: the owner holds the lock.
pub const HELD_HELD: u64 = 3;
/// State: the owner releases the lock, and may have done so already.
pub const HELD_RELEASING: u64 = 4;
/// State: the owner waits on a condition variable without the lock, or waits to get the lock back.
pub const HELD_COND_WAIT: u64 = 5;
/// State: the lock was destroyed while the owner held it.
pub const HELD_DESTROYED: u64 = 6;
/// State: the owner blocks on a semaphore until it can take a unit.
pub const HELD_SEM_WAIT: u64 = 7;
/// [`HeldLock::meta`]: in shared mode.
pub const HELD_SHARED: u64 = 1 << 51;
/// [`HeldLock::meta`]: [`HeldLock::since`] belongs to this entry. Without it the time is not known, and the owner has
/// acquired the lock once.
pub const HELD_SINCE: u64 = 1 << 52;
/// [`HeldLock::meta`]: the PC is a return address, as with [`OPERAND_CALLER`](crate::OPERAND_CALLER), and the entry is
/// a wrapper's. Without it the PC is a site.
pub const HELD_CALLER: u64 = 1 << 53;
/// [`HeldLock::meta`], with [`HELD_CALLER`]: as [`SITE_TRY`](crate::SITE_TRY).
pub const HELD_TRY: u64 = 1 << 54;
/// [`HeldLock::meta`], with a call: as [`CALL_LOCK_OWNED`](crate::CALL_LOCK_OWNED). It is the bit of [`HELD_TRY`],
/// which a call has itself.
pub const HELD_OWNED: u64 = HELD_TRY;
/// [`HeldLock::meta`]: the lock is in memory that processes share. A forked child does not inherit it.
pub const HELD_PROCESS_SHARED: u64 = 1 << 55;
/// The bits of [`HeldLock::meta`] that stay while an entry is in use, except on a downgrade.
pub const HELD_FLAGS: u64 = HELD_SHARED | HELD_CALLER | HELD_TRY | HELD_PROCESS_SHARED;
/// [`HeldLock::meta`]: the first bit of the lower 8 bits of the sequence.
pub const HELD_SEQUENCE_SHIFT: u32 = 56;
/// [`HeldLock::since`]: the first bit of the number of further acquisitions by the owner.
pub const HELD_RECURSION_SHIFT: u32 = 48;

/// Packs [`HeldLock::meta`]. `flags` is a set of [`HELD_FLAGS`] and [`HELD_SINCE`]. Only the lower 8 bits of `sequence`
/// are kept.
pub const fn held_meta(sequence: u64, pc: u64, state: u64, flags: u64) -> u64 {
    (sequence << HELD_SEQUENCE_SHIFT) | (state << HELD_STATE_SHIFT) | flags | (pc & PAYLOAD_MASK)
}

/// Returns the state of a [`HeldLock::meta`].
pub const fn held_state(meta: u64) -> u64 {
    (meta >> HELD_STATE_SHIFT) & 7
}

const _: () = assert!(size_of::<HeldLock>() == 24);
