//! Mutexes: normal, recursive, error-checking and adaptive, robust or not, with priority inheritance or protection.

use core::ffi::c_int;
use core::sync::atomic::AtomicI32;
use core::sync::atomic::Ordering::Relaxed;

use librip::interpose::{Flags, MUTEX, MUTEX_TRY, Plain, RECURSIVE, RECURSIVE_TRY, destroyed};

use crate::acquire::{
    Calls, IfHad, Manner, Taking, acquire, acquire_plain, lock_calls, release, try_acquire,
};
use crate::{Pointer, address, real};

/// A mutex's type and protocol, as glibc keeps them in the mutex. Its place and values are part of the binary
/// interface, because `PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP` and others are compiled into programs.
#[derive(Clone, Copy)]
pub(crate) struct Kind(i32);

impl Kind {
    const TYPE: i32 = 3;
    const RECURSIVE: i32 = 1;
    const ERROR_CHECKING: i32 = 2;
    const ROBUST: i32 = 0x10;
    const PRIORITY_INHERITANCE: i32 = 0x20;
    const PRIORITY_PROTECTION: i32 = 0x40;
    const PROCESS_SHARED: i32 = 0x80;
    const SPECIAL: i32 = Kind::ROBUST | Kind::PRIORITY_INHERITANCE | Kind::PRIORITY_PROTECTION;
    const PLACE: usize = 16;

    /// Reads what the C library's function is about to read.
    #[inline(always)]
    pub(crate) fn of(mutex: Pointer) -> Kind {
        let kind = mutex.wrapping_byte_add(Kind::PLACE).cast::<i32>();
        // SAFETY: within the mutex; a program that passes none faults here instead of in the C library.
        let kind = unsafe { AtomicI32::from_ptr(kind) };
        // ORDERING: relaxed: it does not change while the mutex is in use, but for bits that are not looked at.
        Kind(kind.load(Relaxed))
    }

    /// Normal or adaptive, and nothing besides.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        matches!(self.0 & (Kind::TYPE | Kind::SPECIAL | Kind::PROCESS_SHARED), 0 | 3)
    }

    #[inline(always)]
    pub(crate) fn is_recursive(self) -> bool {
        self.0 & Kind::TYPE == Kind::RECURSIVE
    }

    fn is_robust(self) -> bool {
        self.0 & Kind::ROBUST != 0
    }

    /// Whether several processes use it.
    pub(crate) fn is_process_shared(self) -> bool {
        self.0 & Kind::PROCESS_SHARED != 0
    }

    /// A call that takes a mutex of this kind.
    pub(crate) fn taking(self, mutex: Pointer, caller: u64) -> Taking {
        let if_had = match self.0 & Kind::TYPE {
            Kind::RECURSIVE => IfHad::HasAgain,
            Kind::ERROR_CHECKING => IfHad::IsRefused,
            _ => IfHad::NothingElse,
        };
        Taking { lock: mutex, caller, if_had, is_process_shared: self.is_process_shared() }
    }

    /// Whether trying differs from locking in more than waiting.
    ///
    /// FOLKLORE: with glibc 2.36, locking a mutex with priority protection for the first time may be refused where
    /// trying it is not; and a robust mutex that cannot be recovered any more is refused once, and waited for the next time.
    fn is_special(self) -> bool {
        self.0 & Kind::SPECIAL != 0
    }

    /// Whether the C library lets a thread give it up that is not its owner.
    pub(crate) fn is_anyones(self) -> bool {
        matches!(self.0 & (Kind::TYPE | Kind::ROBUST | Kind::PRIORITY_INHERITANCE), 0 | 3)
    }

    /// Whether somebody has a mutex that is special: its first word has the owner's id, or a 1 or 2 under the priority.
    fn is_taken(self, mutex: Pointer) -> bool {
        const OWNER: i32 = 0x3fff_ffff;
        const BELOW_PRIORITY: i32 = 0x0007_ffff;
        // SAFETY: the start of the mutex, which the C library is about to change.
        let word = unsafe { AtomicI32::from_ptr(mutex.cast()) };
        let is_protected = self.0 & Kind::PRIORITY_PROTECTION != 0;
        // ORDERING: relaxed: a hint.
        word.load(Relaxed) & if is_protected { BELOW_PRIORITY } else { OWNER } != 0
    }
}

lock_calls!(Pthread: pthread_mutex_trylock, pthread_mutex_lock, libc::EBUSY);

pub(crate) unsafe extern "C-unwind" fn lock(mutex: Pointer, caller: u64) -> c_int {
    lock_with::<Pthread>(mutex, caller)
}

/// Locks a mutex. The usual kind first, all else apart.
#[inline(always)]
pub(crate) fn lock_with<C: Calls>(mutex: Pointer, caller: u64) -> c_int {
    let kind = Kind::of(mutex);
    if kind.is_plain() {
        let plain = Plain::takes::<MUTEX>(address(mutex), caller);
        return lock_plain::<C, MUTEX>(plain, mutex, caller, kind);
    }
    lock_not_plain::<C>(mutex, caller, kind)
}

#[inline(never)]
fn lock_not_plain<C: Calls>(mutex: Pointer, caller: u64, kind: Kind) -> c_int {
    if kind.is_special() || kind.is_process_shared() {
        lock_slowly::<C>(mutex, caller, kind)
    } else if kind.is_recursive() {
        let plain = Plain::takes_if_new::<RECURSIVE>(address(mutex), caller);
        lock_plain::<C, RECURSIVE>(plain, mutex, caller, kind)
    } else {
        let plain = Plain::takes_if_new::<MUTEX>(address(mutex), caller);
        lock_plain::<C, MUTEX>(plain, mutex, caller, kind)
    }
}

#[inline(always)]
fn lock_plain<C: Calls, const FLAGS: Flags>(
    plain: Option<Plain>,
    mutex: Pointer,
    caller: u64,
    kind: Kind,
) -> c_int {
    let otherwise = move || lock_slowly::<C>(mutex, caller, kind);
    acquire_plain::<C, FLAGS>(plain, mutex, otherwise)
}

#[inline(never)]
fn lock_slowly<C: Calls>(mutex: Pointer, caller: u64, kind: Kind) -> c_int {
    lock_otherwise::<C, MUTEX, RECURSIVE>(mutex, caller, kind, move || C::lock(mutex))
}

/// Locks a mutex of any kind.
#[inline(always)]
fn lock_otherwise<C: Calls, const FLAGS: Flags, const FLAGS_IF_RECURSIVE: Flags>(
    mutex: Pointer,
    caller: u64,
    kind: Kind,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let taking = kind.taking(mutex, caller);
    let manner =
        if kind.is_special() { Manner::Looks { seems_taken: kind.is_taken(mutex) } } else { Manner::Tries };
    if kind.is_recursive() {
        acquire::<C, FLAGS_IF_RECURSIVE>(taking, manner, wait)
    } else {
        acquire::<C, FLAGS>(taking, manner, wait)
    }
}

/// Locks a mutex for which `wait` waits a limited time.
#[inline(always)]
pub(crate) fn lock_in_time<C: Calls>(mutex: Pointer, caller: u64, wait: impl FnOnce() -> c_int) -> c_int {
    lock_otherwise::<C, MUTEX_TRY, RECURSIVE_TRY>(mutex, caller, Kind::of(mutex), wait)
}

pub(crate) unsafe extern "C-unwind" fn trylock(mutex: Pointer, caller: u64) -> c_int {
    trylock_with::<Pthread>(mutex, caller)
}

/// Locks a mutex if it is free.
#[inline(always)]
pub(crate) fn trylock_with<C: Calls>(mutex: Pointer, caller: u64) -> c_int {
    let kind = Kind::of(mutex);
    let taking = kind.taking(mutex, caller);
    if kind.is_recursive() {
        try_acquire::<C, RECURSIVE_TRY>(taking)
    } else {
        try_acquire::<C, MUTEX_TRY>(taking)
    }
}

pub(crate) unsafe extern "C-unwind" fn timedlock(mutex: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_mutex_timedlock(mutex, until) };
    lock_in_time::<Pthread>(mutex, caller, wait)
}

pub(crate) unsafe extern "C-unwind" fn clocklock(
    mutex: Pointer,
    clock: c_int,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_mutex_clocklock(mutex, clock, until) };
    // It refuses other clocks even where the mutex is free.
    if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
        let taking = Kind::of(mutex).taking(mutex, caller);
        return acquire::<Pthread, MUTEX_TRY>(taking, Manner::Looks { seems_taken: false }, wait);
    }
    lock_in_time::<Pthread>(mutex, caller, wait)
}

pub(crate) unsafe extern "C-unwind" fn unlock(mutex: Pointer, caller: u64) -> c_int {
    release::<MUTEX>(
        address(mutex),
        caller,
        #[inline(always)]
        move || Kind::of(mutex).is_anyones(),
        #[inline(always)]
        // SAFETY: passes on what the program has passed.
        move || unsafe { real::pthread_mutex_unlock(mutex) },
    )
}

pub(crate) unsafe extern "C-unwind" fn destroy(mutex: Pointer, caller: u64) -> c_int {
    let kind = Kind::of(mutex);
    // SAFETY: passes on what the program has passed.
    let result = unsafe { real::pthread_mutex_destroy(mutex) };
    if result == 0 {
        // Others are refused while they are held.
        destroyed::<MUTEX>(address(mutex), caller, kind.is_robust());
    }
    result
}
