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
//! * In `SEM_WAIT`, which is entered from `NONE` and left to `NONE`, the owner blocks on something that nobody holds: a
//!   semaphore, the end of a thread, a barrier or a message. [`HELD_FOR`] says which.
//! * 8 bits of `meta` are a checksum of `lock` and of the rest of `meta`: see [`held_meta`]. If it does not fit and the
//!   state is `ACQUIRING`, the entry was being written and means nothing. In any other state it is damaged, and so is a
//!   free entry whose `meta` is not zero.
//! * Marks by hand pass `ACQUIRING` at once on their way to `HELD`, and may leave out `RELEASING`.
//! * The last entry is for a wait: of a lock, on a condition variable or for a semaphore, if there is no other free
//!   entry. It is never `HELD`. So a thread that holds many locks still says what it waits for.
//! * [`SlotHeader::held_overflowed`](crate::SlotHeader::held_overflowed) counts locks that found no free entry, or have
//!   only the last one.

use core::sync::atomic::AtomicU64;

use crate::PAYLOAD_MASK;
use crate::checksum::FACTOR;

/// A slot's held-lock table has this many entries. The last one is for a wait.
pub const HELD_MAX: usize = 16;

/// An entry of the held-lock table.
#[repr(C)]
#[derive(Debug)]
pub struct HeldLock {
    /// The lock's address, packed as an operand word with the sequence of the event that entered it. Without the
    /// operand flag, `meta` has a [`call`](crate::call) in place of a PC.
    pub lock: AtomicU64,
    /// The PC or the call of the acquisition, the state, flags and a checksum: see [`held_meta`]. 0 if the entry is
    /// free.
    pub meta: AtomicU64,
    /// Valid if `meta` has [`HELD_SINCE`]. The time of the wait or the hold, and how often the owner has acquired the
    /// lock again: see [`held_since`]. With [`HELD_FOR_BARRIER`] the latter is how many threads a round of the barrier
    /// takes: see [`held_round`]. With [`HELD_OF_FUTURE`] a future has the entry.
    pub since: AtomicU64,
}

/// [`HeldLock::meta`]: the first of the three bits of the state. They and [`HELD_SINCE`] are on top, where one shift
/// tests them together.
pub const HELD_STATE_SHIFT: u32 = 60;
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
/// State: the lock was destroyed while the owner held it, or another one was initialised in its place.
pub const HELD_DESTROYED: u64 = 6;
/// State: the owner blocks on something that nobody holds: see [`HELD_FOR`].
pub const HELD_SEM_WAIT: u64 = 7;
/// [`HeldLock::meta`]: in shared mode.
pub const HELD_SHARED: u64 = 1 << 56;
/// [`HeldLock::meta`]: [`HeldLock::since`] belongs to this entry. Without it the time is not known, and the owner has
/// acquired the lock once.
pub const HELD_SINCE: u64 = 1 << 63;
/// [`HeldLock::meta`]: the PC is a return address, as with [`OPERAND_CALLER`](crate::OPERAND_CALLER), and the entry is
/// a wrapper's. Without it the PC is a site.
pub const HELD_CALLER: u64 = 1 << 57;
/// [`HeldLock::meta`], with [`HELD_CALLER`]: as [`SITE_TRY`](crate::SITE_TRY).
pub const HELD_TRY: u64 = 1 << 58;
/// [`HeldLock::meta`], with a call: as [`CALL_LOCK_OWNED`](crate::CALL_LOCK_OWNED). It is the bit of [`HELD_TRY`],
/// which a call has itself.
pub const HELD_OWNED: u64 = HELD_TRY;
/// [`HeldLock::meta`]: the lock is in memory that processes share. A forked child does not inherit it.
pub const HELD_PROCESS_SHARED: u64 = 1 << 59;
/// [`HeldLock::meta`]: in the state [`HELD_SEM_WAIT`], the two bits that say what the owner blocks on. Nobody holds
/// that, so the bits are not needed for what they mean in other states. A [`call`](crate::call) that blocks has
/// [`CALL_TRY`](crate::CALL_TRY) and no other bit beside the address of its location.
pub const HELD_FOR: u64 = HELD_SHARED | HELD_PROCESS_SHARED;
/// [`HELD_FOR`]: a unit of the semaphore at this address. In an entry of a future, which waits for units as for a lock,
/// it is a notification.
pub const HELD_FOR_UNIT: u64 = 0;
/// [`HELD_FOR`]: other threads at the barrier at this address.
pub const HELD_FOR_BARRIER: u64 = HELD_SHARED;
/// [`HELD_FOR`]: the end of a thread. The entry has the thread's id in place of an address, in the owner's PID
/// namespace.
pub const HELD_FOR_THREAD: u64 = HELD_PROCESS_SHARED;
/// [`HELD_FOR`]: a message through the channel at this address, or room for one; or to be woken by another thread, if
/// the entry has the owner's own id in place of an address.
pub const HELD_FOR_MESSAGE: u64 = HELD_SHARED | HELD_PROCESS_SHARED;
/// The bits of [`HeldLock::meta`] that stay while an entry is in use, except on a downgrade.
pub const HELD_FLAGS: u64 = HELD_SHARED | HELD_CALLER | HELD_TRY | HELD_PROCESS_SHARED;
/// [`HeldLock::meta`]: the first bit of state and flags.
pub const HELD_BITS_SHIFT: u32 = 56;
/// [`HeldLock::meta`]: the first of the 48 bits of the PC. The checksum is below.
pub const HELD_PC_SHIFT: u32 = 8;
/// [`HeldLock::since`]: the first of the 12 bits that say how often the owner has acquired the lock again.
pub const HELD_RECURSION_SHIFT: u32 = 48;
/// [`HeldLock::since`], in place of the number of further acquisitions: a future waits for the lock or has acquired it,
/// and not the code that runs on the thread. If the slot is a thread's, the future belongs to no task that is known:
/// any thread may poll it.
pub const HELD_OF_FUTURE: u64 = (1 << (HELD_SINCE_CHECK_SHIFT - HELD_RECURSION_SHIFT)) - 1;
/// The most further acquisitions by the owner that [`HeldLock::since`] can count.
pub const HELD_RECURSION_MAX: u64 = HELD_OF_FUTURE - 1;
/// [`HeldLock::since`], with [`HELD_FOR_BARRIER`]: a future waits, as with [`HELD_OF_FUTURE`], and the bits below are
/// those of a round.
pub const HELD_ROUND_OF_FUTURE: u64 = 1 << 11;
/// The most threads of a round that [`HeldLock::since`] can have.
pub const HELD_ROUND_MAX: u64 = HELD_ROUND_OF_FUTURE - 2;
/// [`HeldLock::since`]: the first of the 4 bits of its own checksum.
pub const HELD_SINCE_CHECK_SHIFT: u32 = 60;

/// Packs [`HeldLock::meta`]. `lock` is [`HeldLock::lock`]. `flags` is a set of [`HELD_FLAGS`] and [`HELD_SINCE`]. `pc`
/// must have at most 48 bits.
///
/// The checksum has two parts, which are xored:
///
/// * the upper 8 bits of the sum of `lock` and `pc`, times [`FACTOR`]. One changed bit in the lock or in the PC changes
///   it, because no 8 bits of the factor in a row are equal;
/// * state and flags. So to change these, both are xored with the same bits: see [`held_change`].
#[inline(always)]
pub const fn held_meta(lock: u64, pc: u64, state: u64, flags: u64) -> u64 {
    let sum = lock.wrapping_add(pc).wrapping_mul(FACTOR);
    // The constant comes last: in another order LLVM takes one instruction more.
    (sum >> (u64::BITS - HELD_PC_SHIFT) ^ pc << HELD_PC_SHIFT)
        ^ held_change(state << HELD_STATE_SHIFT | flags)
}

/// What must be xored with a [`HeldLock::meta`] to change these bits of its state and its flags.
#[inline(always)]
pub const fn held_change(bits: u64) -> u64 {
    bits ^ bits >> HELD_BITS_SHIFT
}

/// Returns the PC or the call in a [`HeldLock::meta`].
pub const fn held_pc(meta: u64) -> u64 {
    meta >> HELD_PC_SHIFT & PAYLOAD_MASK
}

/// Returns whether the checksum in `meta` fits it and `lock`.
pub const fn is_held_meta_sound(lock: u64, meta: u64) -> bool {
    meta == held_meta(lock, held_pc(meta), 0, meta >> HELD_BITS_SHIFT << HELD_BITS_SHIFT)
}

/// Packs [`HeldLock::since`]. Its checksum is the xor of all its other groups of 4 bits. Only the lower 48 bits of
/// `ticks` are kept, and at most [`HELD_RECURSION_MAX`] further acquisitions, or [`HELD_OF_FUTURE`].
pub const fn held_since(ticks: u64, recursion: u64) -> u64 {
    let is_count = recursion != HELD_OF_FUTURE;
    let recursion = if is_count && recursion > HELD_RECURSION_MAX { HELD_RECURSION_MAX } else { recursion };
    let since = ticks & PAYLOAD_MASK | recursion << HELD_RECURSION_SHIFT;
    let by_32 = since ^ since >> 32;
    let by_16 = by_32 ^ by_32 >> 16;
    let by_8 = by_16 ^ by_16 >> 8;
    since | (by_8 ^ by_8 >> 4) << HELD_SINCE_CHECK_SHIFT
}

/// Returns whether the checksum in a [`HeldLock::since`] fits the rest.
pub const fn is_held_since_sound(since: u64) -> bool {
    since == held_since(since, held_recursion(since))
}

/// Returns how often the owner has acquired the lock again, by [`HeldLock::since`], or [`HELD_OF_FUTURE`].
pub const fn held_recursion(since: u64) -> u64 {
    since >> HELD_RECURSION_SHIFT & HELD_OF_FUTURE
}

/// Returns what [`HeldLock::since`] has in place of further acquisitions in an entry of a barrier, a round of which takes
/// so many threads, 0 if that is not known.
pub const fn held_round(threads: u64, is_of_future: bool) -> u64 {
    let is_known = threads > 0 && threads <= HELD_ROUND_MAX;
    match is_of_future {
        true if is_known => HELD_ROUND_OF_FUTURE | threads,
        true => HELD_OF_FUTURE,
        false if is_known => threads,
        false => 0,
    }
}

/// Returns how many threads a round takes, 0 if that is not known, and whether a future waits: see [`held_round`].
pub const fn round_of_held(recursion: u64) -> (u64, bool) {
    let (threads, is_of_future) = (recursion & !HELD_ROUND_OF_FUTURE, recursion & HELD_ROUND_OF_FUTURE != 0);
    (if threads <= HELD_ROUND_MAX { threads } else { 0 }, is_of_future)
}

/// Returns the state of a [`HeldLock::meta`].
pub const fn held_state(meta: u64) -> u64 {
    (meta >> HELD_STATE_SHIFT) & 7
}

const _: () = assert!(size_of::<HeldLock>() == 24);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack;

    #[test]
    fn each_changed_bit_of_an_entry_contradicts_a_checksum() {
        for (sequence, address, pc) in
            [(0, 0x10, 0x55ff_0000_1000), (77, 0x7fff_ffff_fff8, 0x1), (1 << 14, 0xff, 0xff)]
        {
            let lock = pack(sequence, address, true);
            let meta = held_meta(lock, pc, HELD_HELD, HELD_SHARED | HELD_SINCE);
            let since = held_since(0x1234_5678_9abc, 7);
            assert!(is_held_meta_sound(lock, meta) && is_held_since_sound(since));
            for bit in 0..64 {
                assert!(!is_held_meta_sound(lock ^ 1 << bit, meta), "lock {bit}");
                assert!(!is_held_meta_sound(lock, meta ^ 1 << bit), "meta {bit}");
                assert!(!is_held_since_sound(since ^ 1 << bit), "since {bit}");
            }
        }
    }

    #[test]
    fn state_and_flags_change_by_a_constant() {
        let (lock, pc) = (pack(77, 0x7000, false), 0x55ff_0000_1000);
        let meta = held_meta(lock, pc, HELD_ACQUIRING, HELD_CALLER);
        let changed = meta ^ held_change((HELD_ACQUIRING ^ HELD_HELD) << HELD_STATE_SHIFT | HELD_SINCE);
        assert_eq!(changed, held_meta(lock, pc, HELD_HELD, HELD_CALLER | HELD_SINCE));
    }

    #[test]
    fn an_entry_that_is_entered_again_a_few_words_later_does_not_fit_its_former_lock() {
        let lock = |sequence| pack(sequence, 0x7000, true);
        for words in 1..64 {
            let meta = held_meta(lock(1000 + words), 0x1234, HELD_ACQUIRING, 0);
            assert!(!is_held_meta_sound(lock(1000), meta), "{words}");
        }
    }

    #[test]
    fn further_acquisitions_are_counted_up_to_a_limit() {
        assert_eq!(held_recursion(held_since(5, HELD_RECURSION_MAX)), 4094);
        assert_eq!(held_recursion(held_since(5, HELD_OF_FUTURE)), HELD_OF_FUTURE);
        assert_eq!(held_since(5, u64::MAX), held_since(5, HELD_RECURSION_MAX));
        assert_eq!(held_since(5, 3) & PAYLOAD_MASK, 5);
    }

    #[test]
    fn an_entry_of_a_barrier_has_the_round_and_whether_a_future_waits() {
        for is_of_future in [false, true] {
            for (threads, known) in
                [(0, 0), (1, 1), (HELD_ROUND_MAX, HELD_ROUND_MAX), (HELD_ROUND_MAX + 1, 0)]
            {
                let round = held_recursion(held_since(5, held_round(threads, is_of_future)));
                assert_eq!(round_of_held(round), (known, is_of_future));
            }
        }
        assert_eq!(round_of_held(HELD_OF_FUTURE), (0, true));
    }
}
