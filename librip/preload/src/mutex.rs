//! Mutexes: normal, recursive, error-checking and adaptive, robust or not, with priority inheritance or protection.

use core::ffi::c_int;

use librip::interpose::{
    Caller, FastAcquisition, Flags, LastHolder, MUTEX, MUTEX_TRY, OWNED, OWNED_TRY, RECURSIVE, RECURSIVE_TRY,
    destroyed, initialised,
};

use crate::acquire::{
    Call, Calls, Manner, OnRelock, acquire, acquire_fast, lock_calls, release, try_acquire,
};
use crate::incident::not_destroyed;
use crate::object::{Attributes, Deadline, Mutex, Object};
use crate::real;

/// A mutex's type and protocol, as glibc keeps them in the mutex.
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
    /// What glibc leaves in a mutex that was destroyed.
    const DESTROYED: i32 = -1;
    const SPECIAL: i32 = Kind::ROBUST | Kind::PRIORITY_INHERITANCE | Kind::PRIORITY_PROTECTION;

    /// Reads the word that the C library's function is about to read.
    #[inline(always)]
    pub(crate) fn of(mutex: Object<Mutex>) -> Kind {
        Kind(mutex.kind_word())
    }

    /// Whether it is normal or adaptive, and nothing else.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        matches!(self.0 & (Kind::TYPE | Kind::SPECIAL | Kind::PROCESS_SHARED), 0 | 3)
    }

    #[inline(always)]
    pub(crate) fn is_recursive(self) -> bool {
        self.0 & Kind::TYPE == Kind::RECURSIVE
    }

    fn is_robust(self) -> bool {
        self.0 & Kind::ROBUST != 0 && self.0 != Kind::DESTROYED
    }

    /// Whether several processes use it.
    pub(crate) fn is_process_shared(self) -> bool {
        self.0 & Kind::PROCESS_SHARED != 0
    }

    /// A call that acquires a mutex of this kind.
    pub(crate) fn call(self, mutex: Object<Mutex>, caller: Caller) -> Call<Mutex> {
        let on_relock = match self.0 & Kind::TYPE {
            Kind::RECURSIVE => OnRelock::Recurses,
            Kind::ERROR_CHECKING => OnRelock::Refuses,
            _ => OnRelock::Nothing,
        };
        Call { lock: mutex, caller, on_relock, is_process_shared: self.is_process_shared() }
    }

    /// Whether the C library's try differs from its lock in more than waiting.
    ///
    /// FOLKLORE: with glibc 2.36, the first lock of a mutex with priority protection may be refused where a try is not.
    /// And a robust mutex that cannot be recovered any more is refused the first time, and waited for the next time.
    fn is_special(self) -> bool {
        self.0 & Kind::SPECIAL != 0
    }

    /// Whether the C library lets a thread release it that does not own it.
    pub(crate) fn is_released_by_anyone(self) -> bool {
        matches!(self.0 & (Kind::TYPE | Kind::ROBUST | Kind::PRIORITY_INHERITANCE), 0 | 3)
    }

    /// Whether the mutex says that another thread than this one owns it, or none.
    ///
    /// FOLKLORE: glibc keeps the owner's thread id in every mutex, of normal mutexes too, but for those whose lock the
    /// processor elides. A robust mutex has another value there until it is consistent.
    pub(crate) fn names_another_owner(self, mutex: Object<Mutex>, tid: u32) -> bool {
        const ELIDED: i32 = 0x100;
        self.0 & (Kind::ROBUST | ELIDED) == 0 && mutex.owner_word() as u32 != tid
    }

    /// Whether a thread holds a mutex that is special.
    fn is_taken(self, mutex: Object<Mutex>) -> bool {
        const OWNER: i32 = 0x3fff_ffff;
        const BELOW_PRIORITY: i32 = 0x0007_ffff;
        let is_protected = self.0 & Kind::PRIORITY_PROTECTION != 0;
        mutex.lock_word() & if is_protected { BELOW_PRIORITY } else { OWNER } != 0
    }
}

lock_calls!(Pthread(Mutex): pthread_mutex_trylock, pthread_mutex_lock, libc::EBUSY);

pub(crate) extern "C-unwind" fn lock(mutex: Object<Mutex>, caller: Caller) -> c_int {
    lock_with::<Pthread>(mutex, caller)
}

/// Locks a mutex. The usual kind is inlined, all others are not.
#[inline(always)]
pub(crate) fn lock_with<C: Calls<Kind = Mutex>>(mutex: Object<Mutex>, caller: Caller) -> c_int {
    let kind = Kind::of(mutex);
    if kind.is_plain() {
        let fast = FastAcquisition::begin::<MUTEX>(mutex.address(), caller);
        return lock_fast::<C, MUTEX>(fast, mutex, caller, kind);
    }
    lock_not_plain::<C>(mutex, caller, kind)
}

#[inline(never)]
fn lock_not_plain<C: Calls<Kind = Mutex>>(mutex: Object<Mutex>, caller: Caller, kind: Kind) -> c_int {
    if kind.is_special() || kind.is_process_shared() {
        lock_slowly::<C>(mutex, caller, kind)
    } else if kind.is_recursive() {
        let fast = FastAcquisition::begin_if_new::<RECURSIVE>(mutex.address(), caller);
        lock_fast::<C, RECURSIVE>(fast, mutex, caller, kind)
    } else {
        let fast = FastAcquisition::begin_if_new::<OWNED>(mutex.address(), caller);
        lock_fast::<C, OWNED>(fast, mutex, caller, kind)
    }
}

#[inline(always)]
fn lock_fast<C: Calls<Kind = Mutex>, const FLAGS: Flags>(
    fast: Option<FastAcquisition>,
    mutex: Object<Mutex>,
    caller: Caller,
    kind: Kind,
) -> c_int {
    let otherwise = move || lock_slowly::<C>(mutex, caller, kind);
    acquire_fast::<C, FLAGS>(fast, mutex, otherwise)
}

#[inline(never)]
fn lock_slowly<C: Calls<Kind = Mutex>>(mutex: Object<Mutex>, caller: Caller, kind: Kind) -> c_int {
    lock_otherwise::<C, MUTEX, OWNED, RECURSIVE>(mutex, caller, kind, move || C::lock(mutex))
}

/// Locks a mutex of any kind.
#[inline(always)]
fn lock_otherwise<
    C: Calls<Kind = Mutex>,
    const FLAGS: Flags,
    const FLAGS_IF_OWNED: Flags,
    const FLAGS_IF_RECURSIVE: Flags,
>(
    mutex: Object<Mutex>,
    caller: Caller,
    kind: Kind,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let call = kind.call(mutex, caller);
    let manner = if kind.is_special() {
        Manner::Direct { seems_taken: kind.is_taken(mutex) }
    } else {
        Manner::TryFirst
    };
    if kind.is_recursive() {
        acquire::<C, FLAGS_IF_RECURSIVE>(call, manner, wait)
    } else if kind.is_released_by_anyone() {
        acquire::<C, FLAGS>(call, manner, wait)
    } else {
        acquire::<C, FLAGS_IF_OWNED>(call, manner, wait)
    }
}

/// Locks a mutex. `wait` has a time limit.
#[inline(always)]
pub(crate) fn lock_in_time<C: Calls<Kind = Mutex>>(
    mutex: Object<Mutex>,
    caller: Caller,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    lock_otherwise::<C, MUTEX_TRY, OWNED_TRY, RECURSIVE_TRY>(mutex, caller, Kind::of(mutex), wait)
}

pub(crate) extern "C-unwind" fn trylock(mutex: Object<Mutex>, caller: Caller) -> c_int {
    trylock_with::<Pthread>(mutex, caller)
}

/// Locks a mutex if it is free.
#[inline(always)]
pub(crate) fn trylock_with<C: Calls<Kind = Mutex>>(mutex: Object<Mutex>, caller: Caller) -> c_int {
    let kind = Kind::of(mutex);
    let call = kind.call(mutex, caller);
    if kind.is_recursive() {
        try_acquire::<C, RECURSIVE_TRY>(call)
    } else if kind.is_released_by_anyone() {
        try_acquire::<C, MUTEX_TRY>(call)
    } else {
        try_acquire::<C, OWNED_TRY>(call)
    }
}

pub(crate) extern "C-unwind" fn timedlock(mutex: Object<Mutex>, until: Deadline, caller: Caller) -> c_int {
    lock_in_time::<Pthread>(mutex, caller, move || real::pthread_mutex_timedlock(mutex, until))
}

pub(crate) extern "C-unwind" fn clocklock(
    mutex: Object<Mutex>,
    clock: c_int,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::pthread_mutex_clocklock(mutex, clock, until);
    // The C library refuses other clocks even if the mutex is free.
    if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
        let call = Kind::of(mutex).call(mutex, caller);
        return acquire::<Pthread, MUTEX_TRY>(call, Manner::Direct { seems_taken: false }, wait);
    }
    lock_in_time::<Pthread>(mutex, caller, wait)
}

pub(crate) extern "C-unwind" fn unlock(mutex: Object<Mutex>, caller: Caller) -> c_int {
    release::<Mutex, MUTEX>(
        mutex,
        caller,
        #[inline(always)]
        move || Kind::of(mutex).is_released_by_anyone(),
        #[inline(always)]
        move || real::pthread_mutex_unlock(mutex),
    )
}

pub(crate) extern "C-unwind" fn destroy(mutex: Object<Mutex>, caller: Caller) -> c_int {
    let kind = Kind::of(mutex);
    let result = real::pthread_mutex_destroy(mutex);
    if result == 0 {
        // The C library refuses to destroy any other mutex while it is held.
        let holder = if kind.is_robust() { LastHolder::Possible } else { LastHolder::None };
        destroyed::<MUTEX>(mutex.address(), caller, holder);
    } else {
        not_destroyed(mutex, caller, result);
    }
    result
}

pub(crate) extern "C-unwind" fn init(mutex: Object<Mutex>, attributes: Attributes, caller: Caller) -> c_int {
    let owner = mutex.owner();
    let result = real::pthread_mutex_init(mutex, attributes);
    if result == 0 {
        initialised::<MUTEX>(mutex.address(), caller, owner);
    }
    result
}
