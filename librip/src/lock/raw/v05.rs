//! The traits of `lock_api` 0.5, which `parking_lot` 0.13 implements.
//!
//! Methods that acquire a lock return a guard, and methods that release it take that guard. Unlike in 0.4, a
//! condition variable is a trait.

#![allow(unsafe_code, reason = "the traits are unsafe, and so is the release of a lock that may not be held")]
#![allow(unused_parens, reason = "a list of one: the macros have an empty one for 0.4")]

use core::convert::Infallible;
use core::panic::Location;

use lock_api_05 as api;

use super::record::{self as raw, MUTEX, READ as READ_IN_TURN, READ_FIRST, RawSites, UPGRADABLE, WRITE};
use super::traits::{implement, method, with_sites};
use super::{Facts, Recorded, SetName};
use crate::lock::protocol::CondWait;
use crate::lock::record;
use crate::lock::site::{Flags, Here, wrapper_site};
use librip_format::{SITE_OWNED_BY_RULE, SITE_SHARED, SITE_TRY};

/// Shared mode, without the type of readers-writer locks. That type says that readers queue after waiting writers, and
/// `R` may be a lock whose readers do not (`parking_lot::RawRwLockRecursive`). So `read-rip` must not be sure, unless
/// there are facts.
const READ: Flags = SITE_SHARED;

macro_rules! version {
    (types $($guard:ident),*) => { $(type $guard = R::$guard;)* };
    // A guard can be of any type, and a constant does not say whether that type can be sent.
    (stays $guard:ident) => { F::GUARDS_STAY };
    (sites $guard:ident, READ $(| $more:ident)?, |$sites:ident| $body:expr) => {
        if const { matches!(F::READERS_FIRST, Some(true)) } {
            with_sites!($guard, { READ_FIRST $(| $more)? }, |$sites| $body)
        } else if const { matches!(F::READERS_FIRST, Some(false)) } {
            with_sites!($guard, { READ_IN_TURN $(| $more)? }, |$sites| $body)
        } else {
            // A call cannot say both that the type is not known and that guards stay.
            let $sites = RawSites::<{ READ $(| $more)? }>(Location::caller());
            $body
        }
    };
    (sites $guard:ident, $flags:ident $(| $more:ident)?, |$sites:ident| $body:expr) => {
        with_sites!($guard, { $flags $(| $more)? }, |$sites| $body)
    };
    (guard $guard:ident) => { R::$guard };
    (tried $guard:ident) => { Option<R::$guard> };
    (upgraded) => { Result<R::ExclusiveGuard, R::UpgradableGuard> };
    (option $tried:expr) => { $tried };
    (of_option $option:expr) => { $option };
    (result $upgraded:expr) => { $upgraded };
    (of_result $result:expr) => { $result };
}

implement!([guard][F]);

/// Waits on a condition variable. `lock_api` 0.5 does not pass its caller on here, so debug information says where that
/// is. An entry keeps the line of the acquisition.
#[inline(always)]
fn wait_on_condition<const FLAGS: Flags, T>(lock: u64, condition: u64, wait: impl FnOnce() -> T) -> T {
    let pc = wrapper_site!(KIND_CONDITION_WAIT, FLAGS, [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION]);
    let waiting = CondWait::begin(Here, lock, condition, pc);
    let pc = wrapper_site!(KIND_CONDITION_WOKEN, FLAGS, [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION]);
    let waiting = Waiting(Some(waiting), pc);
    let result = wait();
    drop(waiting);
    result
}

/// A wait that ends when it is dropped, also by a panic: that of a thread that waits with another mutex, for example.
/// The thread holds the mutex then too.
struct Waiting(Option<CondWait<Here>>, u64);

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        if let Some(waiting) = self.0.take() {
            waiting.end(true, self.1);
        }
    }
}

// SAFETY: the inner condition variable unlocks and locks the inner mutex.
unsafe impl<C: api::RawCondvar, F: Facts> api::RawCondvar for Recorded<C, F> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Self = Recorded::guarded(C::INIT);

    type RawMutex = Recorded<C::RawMutex, F>;

    #[inline(always)]
    unsafe fn wait(&self, mutex: &Self::RawMutex, guard: &mut <C::RawMutex as api::RawMutex>::Guard) {
        let (lock, condition) = (mutex.identity.address(), self.identity.address());
        wait_on_condition::<MUTEX, _>(lock, condition, || {
            // SAFETY: the caller holds the mutex, and with it the inner one.
            unsafe { self.inner.wait(&mutex.inner, guard) }
        });
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.inner.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.inner.notify_all()
    }
}

// SAFETY: as above.
unsafe impl<C: api::RawCondvarTimed, F: Facts> api::RawCondvarTimed for Recorded<C, F>
where
    C::RawMutex: api::RawMutexTimed,
{
    fn checked_duration_to_instant(
        timeout: &<C::RawMutex as api::RawMutexTimed>::Duration,
    ) -> Option<<C::RawMutex as api::RawMutexTimed>::Instant> {
        C::checked_duration_to_instant(timeout)
    }

    #[inline(always)]
    unsafe fn wait_until(
        &self,
        mutex: &Self::RawMutex,
        guard: &mut <C::RawMutex as api::RawMutex>::Guard,
        timeout: &<C::RawMutex as api::RawMutexTimed>::Instant,
    ) -> bool {
        let (lock, condition) = (mutex.identity.address(), self.identity.address());
        wait_on_condition::<{ MUTEX | SITE_TRY }, _>(lock, condition, || {
            // SAFETY: the caller holds the mutex, and with it the inner one.
            unsafe { self.inner.wait_until(&mutex.inner, guard, timeout) }
        })
    }

    #[inline(always)]
    unsafe fn wait_for(
        &self,
        mutex: &Self::RawMutex,
        guard: &mut <C::RawMutex as api::RawMutex>::Guard,
        timeout: &<C::RawMutex as api::RawMutexTimed>::Duration,
    ) -> bool {
        let (lock, condition) = (mutex.identity.address(), self.identity.address());
        wait_on_condition::<{ MUTEX | SITE_TRY }, _>(lock, condition, || {
            // SAFETY: the caller holds the mutex, and with it the inner one.
            unsafe { self.inner.wait_for(&mutex.inner, guard, timeout) }
        })
    }
}
