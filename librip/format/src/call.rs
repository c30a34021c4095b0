//! Calls of wrappers: how an event names the caller of a wrapped lock.
//!
//! A wrapper of a lock (`librip::sync`, `librip::raw`) is compiled for each place that calls it. Its caller is a
//! `core::panic::Location`, a constant of the program with file, line and column. An acquisition that may take no more
//! than two words records the address of that constant in place of a PC. It has no site, so the words say the rest:
//!
//! ```text
//!  operand word   47                                        2 1 0
//!                +-------------------------------------------+-+-+
//!                | address of the lock, a multiple of 4      |O|S|    O: owned, or so by rule, S: shared
//!                +-------------------------------------------+-+-+
//!  PC word        47                                      3 2 1 0
//!                +-----------------------------------------+---+-+
//!                | address of the location, a multiple of 8|how|T|    T: a try; how: see `CALL_*`
//!                +-----------------------------------------+---+-+
//! ```
//!
//! The event is of the kind [`KIND_LOCK_ACQUIRE_BEGIN`](crate::KIND_LOCK_ACQUIRE_BEGIN). All other events of wrappers
//! have sites; where the caller is known, their operand [`OPERAND_LOCATION`](crate::OPERAND_LOCATION) is the address of
//! its location.
//!
//! An address is a call, and no PC, if it is in a module that has wrappers' sites, and not in the code of that module
//! ([`Module::code_begin`](crate::Module::code_begin)). An entry of the held-lock table says so itself: see
//! [`HeldLock::lock`](crate::HeldLock::lock).
//!
//! A reader finds file, line and column in the program's file: the constant is in read-only data, and the pointer to
//! its file name has a relative relocation, which `strip` keeps. A [`CallLocation`] has them without the program.

use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::{
    LOCK_TYPE_BARRIER, LOCK_TYPE_MESSAGE, LOCK_TYPE_MUTEX, LOCK_TYPE_ONCE, LOCK_TYPE_RWLOCK,
    LOCK_TYPE_SEMAPHORE, LOCK_TYPE_THREAD, LOCK_TYPE_WAKE, SITE_LOCK_TYPE, SITE_LOCK_TYPE_SHIFT,
    SITE_OF_FUTURE, SITE_OWNED, SITE_OWNED_BY_RULE, SITE_READERS_FIRST, SITE_SHARED, SITE_TRY,
    SITE_UPGRADABLE, SITE_WRAPPER,
};

/// The bits of a call that are not the location's address.
pub const CALL_BITS: u64 = 7;
/// In a call: the attempt does not block, or ends after a time.
pub const CALL_TRY: u64 = 1;
/// In a call: the two bits that say how the lock is acquired.
pub const CALL_HOW: u64 = 6;
/// [`CALL_HOW`], exclusive: a mutex. Shared: the lock's type is not known. Shared and [`CALL_LOCK_OWNED`]: a
/// readers-writer lock, as [`SITE_OWNED_BY_RULE`].
pub const CALL_PLAIN: u64 = 0;
/// [`CALL_HOW`]: a readers-writer lock. Shared and [`CALL_LOCK_OWNED`]: as [`SITE_OWNED`].
pub const CALL_RWLOCK: u64 = 2;
/// [`CALL_HOW`], exclusive: a bit beside [`CALL_PLAIN`] or [`CALL_RWLOCK`]. With it, [`CALL_LOCK_OWNED`] is as
/// [`SITE_OWNED_BY_RULE`]. Without it, [`CALL_PLAIN`] and this bit are an initialisation, as [`SITE_OWNED`].
pub const CALL_BY_RULE: u64 = 4;
/// [`CALL_HOW`], shared: as [`SITE_READERS_FIRST`]. [`CALL_LOCK_OWNED`] is as [`SITE_OWNED_BY_RULE`].
pub const CALL_READERS_FIRST: u64 = 4;
/// [`CALL_HOW`], shared: as [`SITE_UPGRADABLE`]. [`CALL_LOCK_OWNED`] is as [`SITE_OWNED_BY_RULE`].
pub const CALL_UPGRADABLE: u64 = 6;
/// The bits of a call's operand that are not the lock's address.
pub const CALL_LOCK_BITS: u64 = 3;
/// In the operand: in shared mode.
pub const CALL_LOCK_SHARED: u64 = 1;
/// In the operand: as [`SITE_OWNED`] or [`SITE_OWNED_BY_RULE`]. [`CALL_HOW`] says which.
pub const CALL_LOCK_OWNED: u64 = 2;

/// Returns the `LOCK_TYPE_*` of these `SITE_*` flags.
pub const fn lock_type(site_flags: u16) -> u16 {
    (site_flags & SITE_LOCK_TYPE) >> SITE_LOCK_TYPE_SHIFT
}

/// Returns whether nobody can hold what has these `SITE_*` flags: a thread only blocks on it.
pub const fn is_unowned(site_flags: u16) -> bool {
    matches!(
        lock_type(site_flags),
        LOCK_TYPE_SEMAPHORE | LOCK_TYPE_THREAD | LOCK_TYPE_BARRIER | LOCK_TYPE_MESSAGE | LOCK_TYPE_WAKE
    )
}

/// Returns the bits that a call has beside its location's address, for an acquisition with these `SITE_*` flags. Of a
/// wait for what nobody holds, a call says only whether it is a try. It never says [`SITE_OF_FUTURE`].
///
/// # Panics
///
/// If a call cannot express the flags. They are constants, so that is an error of the compilation.
pub const fn call_bits(site_flags: u16) -> u64 {
    let site_flags = site_flags & !SITE_OF_FUTURE;
    let tries = if site_flags & SITE_TRY != 0 { CALL_TRY } else { 0 };
    if is_unowned(site_flags) {
        return tries;
    }
    let is_shared = site_flags & SITE_SHARED != 0;
    let is_by_rule = site_flags & SITE_OWNED_BY_RULE != 0;
    let is_rwlock = lock_type(site_flags) == LOCK_TYPE_RWLOCK;
    let how = if site_flags & SITE_READERS_FIRST != 0 {
        CALL_READERS_FIRST
    } else if site_flags & SITE_UPGRADABLE != 0 {
        CALL_UPGRADABLE
    } else if is_shared {
        if is_rwlock && !is_by_rule { CALL_RWLOCK } else { CALL_PLAIN }
    } else if is_once(site_flags) {
        CALL_BY_RULE
    } else {
        let how = if is_rwlock { CALL_RWLOCK } else { CALL_PLAIN };
        how | if is_by_rule { CALL_BY_RULE } else { 0 }
    };
    let bits = how | tries;
    let is_owned = call_lock_bits(site_flags) & CALL_LOCK_OWNED != 0;
    assert!(
        call_flags(bits, is_shared, is_owned) == site_flags | SITE_WRAPPER,
        "a call has no room for these flags"
    );
    bits
}

/// Returns the bits that the operand of a call has beside the lock's address.
pub const fn call_lock_bits(site_flags: u16) -> u64 {
    if is_once(site_flags) {
        return 0;
    }
    let shared = if site_flags & SITE_SHARED != 0 { CALL_LOCK_SHARED } else { 0 };
    shared | if site_flags & (SITE_OWNED | SITE_OWNED_BY_RULE) != 0 { CALL_LOCK_OWNED } else { 0 }
}

/// Returns the `SITE_*` flags of a call, of which only [`CALL_BITS`] matter.
pub const fn call_flags(call: u64, is_shared: bool, is_owned: bool) -> u16 {
    let rwlock = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT;
    let how = call & CALL_HOW;
    let tries = if call & CALL_TRY != 0 { SITE_TRY } else { 0 };
    if !is_shared && !is_owned && how == CALL_BY_RULE {
        return SITE_WRAPPER | LOCK_TYPE_ONCE << SITE_LOCK_TYPE_SHIFT | SITE_OWNED | tries;
    }
    let (mode, owned) = if is_shared {
        match how {
            CALL_PLAIN if is_owned => (SITE_SHARED | rwlock, SITE_OWNED_BY_RULE),
            CALL_PLAIN => (SITE_SHARED, 0),
            CALL_READERS_FIRST => (SITE_SHARED | SITE_READERS_FIRST | rwlock, SITE_OWNED_BY_RULE),
            CALL_UPGRADABLE => (SITE_SHARED | SITE_UPGRADABLE | rwlock, SITE_OWNED_BY_RULE),
            _ => (SITE_SHARED | rwlock, SITE_OWNED),
        }
    } else {
        let is_rwlock = how & CALL_RWLOCK != 0;
        let mode = if is_rwlock { rwlock } else { LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT };
        (mode, if how & CALL_BY_RULE != 0 { SITE_OWNED_BY_RULE } else { SITE_OWNED })
    };
    SITE_WRAPPER | mode | if is_owned { owned } else { 0 } | tries
}

const fn is_once(site_flags: u16) -> bool {
    lock_type(site_flags) == LOCK_TYPE_ONCE
}

/// Returns the `SITE_*` flags of a call that waits for what nobody holds.
pub const fn blocked_call_flags(call: u64) -> u16 {
    SITE_WRAPPER | if call & CALL_TRY != 0 { SITE_TRY } else { 0 }
}

/// The longest end of a file's name that a [`CallLocation`] has room for, bytes.
pub const CALL_FILE_LEN_BYTES: usize = 96;

/// The location of a call, copied from the program: an entry of [`REGION_CALLS`](crate::REGION_CALLS).
///
/// A thread that waits for a lock copies the locations of the wait and of the locks that it holds. A thread's first
/// acquisition, an acquisition with a time, and each acquisition of an unoptimised program copy theirs. With a location
/// that is new, those of the thread's last words are copied. Some locations may be copied twice.
#[repr(C)]
#[derive(Debug)]
pub struct CallLocation {
    /// The entry's [checksum](crate::checksum), written last; 0 before.
    pub state: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// The actual address of the location.
    pub address: AtomicU64,
    /// Line, from 1.
    pub line: AtomicU32,
    /// Column, from 1.
    pub column: AtomicU32,
    /// Length of the whole file name, bytes. If it is longer than `file`, then `file` has the end of it.
    pub file_len_bytes: AtomicU32,
    /// Zero.
    pub reserved: AtomicU32,
    /// The name of the source file, padded with zeros.
    pub file: [AtomicU64; CALL_FILE_LEN_BYTES / 8],
}

const _: () = {
    assert!(size_of::<CallLocation>() == 128);
    let mut bits = 0;
    while bits < 32 {
        let (is_shared, is_owned) = (bits & 8 != 0, bits & 16 != 0);
        let flags = call_flags(bits, is_shared, is_owned);
        // "By rule" needs an owner. One of the other combinations of bits is an initialisation, and one is not in use.
        let is_unused = !is_shared && !is_owned && bits & CALL_HOW == CALL_RWLOCK | CALL_BY_RULE;
        if !is_unused {
            assert!(call_bits(flags & !SITE_WRAPPER) == bits & CALL_BITS, "bits and flags are the same");
        }
        bits += 1;
    }
};
