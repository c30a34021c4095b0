//! [`RwLock`]: that of `async_lock`, recorded.

#![allow(unsafe_code, reason = "the value is in a cell, to which the inner lock regulates access")]

use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use librip::task::lock::{self, Identity, WRITE, WRITE_OWNED};

use crate::blocking::{in_two_polls, run};
use crate::guards::guard;
use crate::lease::{Lease, forget, outliving, ways};
use crate::with::with;

/// [`async_lock::RwLock`], recorded: the ring says which tasks read or write it, and which wait for it.
///
/// # Examples
///
/// ```
/// use librip_async_lock::RwLock;
///
/// static ROUTES: RwLock<Vec<u32>> = RwLock::new(Vec::new());
///
/// ROUTES.write_blocking().push(7);
/// assert_eq!(ROUTES.read_blocking().len(), 1);
/// ```
#[repr(C)]
pub struct RwLock<T: ?Sized> {
    identity: Identity,
    inner: async_lock::RwLock<()>,
    value: UnsafeCell<T>,
}

// SAFETY: whoever has the lock may take the value.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: several threads may read the value at once, and one that writes may take it.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

/// Defines the methods that lock in one of the three modes.
macro_rules! locking {
    (
        $guard:ident, $guard_arc:ident, $lock:ident, $lock_arc:ident, $blocking:ident, $arc_blocking:ident,
        $try_lock:ident, $try_lock_arc:ident
    ) => {
        #[doc = concat!("See [`async_lock::RwLock::", stringify!($lock), "`].")]
        #[inline]
        #[track_caller]
        pub fn $lock(&self) -> impl Future<Output = $guard<'_, T>> {
            let ways =
                ways(|| self.inner.$try_lock(), || self.inner.$lock(), |lease| $guard::new(lease, self));
            lock::acquire_free(Location::caller(), self.identity.address_in_use(), false, ways)
        }

        #[doc = concat!("See [`async_lock::RwLock::", stringify!($lock_arc), "`].")]
        #[track_caller]
        pub fn $lock_arc(self: &Arc<Self>) -> impl Future<Output = $guard_arc<T>> + use<T> {
            let (at, this) = (Location::caller(), Arc::clone(self));
            async move {
                // SAFETY: the future drops the lease before the share, and so does the guard.
                let inner = unsafe { outliving(&this.inner) };
                let ways = ways(|| inner.$try_lock(), || inner.$lock(), |lease| lease);
                let lease = lock::acquire_free(at, this.identity.address_in_use(), false, ways).await;
                $guard_arc::new(lease, this)
            }
        }

        #[doc = concat!("See [`async_lock::RwLock::", stringify!($blocking), "`].")]
        #[track_caller]
        pub fn $blocking(&self) -> $guard<'_, T> {
            let acquire = in_two_polls(|| self.inner.$try_lock(), || self.inner.$blocking());
            let acquired = run(lock::acquire(self.identity.address_in_use(), acquire, |_| true));
            $guard::new(Lease::new(acquired), self)
        }

        #[doc = concat!("See [`async_lock::RwLock::", stringify!($arc_blocking), "`].")]
        #[track_caller]
        pub fn $arc_blocking(self: &Arc<Self>) -> $guard_arc<T> {
            // SAFETY: the guard drops the lease before its share.
            let inner = unsafe { outliving(&self.inner) };
            let acquire = in_two_polls(|| inner.$try_lock(), || inner.$blocking());
            let acquired = run(lock::acquire(self.identity.address_in_use(), acquire, |_| true));
            $guard_arc::new(Lease::new(acquired), Arc::clone(self))
        }

        #[doc = concat!("See [`async_lock::RwLock::", stringify!($try_lock), "`].")]
        #[track_caller]
        pub fn $try_lock(&self) -> Option<$guard<'_, T>> {
            let acquired = lock::attempt(self.identity.address_in_use(), || self.inner.$try_lock())?;
            Some($guard::new(Lease::new(acquired), self))
        }

        #[doc = concat!("See [`async_lock::RwLock::", stringify!($try_lock_arc), "`].")]
        #[track_caller]
        pub fn $try_lock_arc(self: &Arc<Self>) -> Option<$guard_arc<T>> {
            // SAFETY: the guard drops the lease before its share.
            let inner = unsafe { outliving(&self.inner) };
            let acquired = lock::attempt(self.identity.address_in_use(), || inner.$try_lock())?;
            Some($guard_arc::new(Lease::new(acquired), Arc::clone(self)))
        }
    };
}

impl<T> RwLock<T> {
    /// See [`async_lock::RwLock::new`].
    pub const fn new(t: T) -> RwLock<T> {
        RwLock { identity: Identity::new(), inner: async_lock::RwLock::new(()), value: UnsafeCell::new(t) }
    }

    /// See [`async_lock::RwLock::into_inner`].
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    locking!(
        RwLockReadGuard,
        RwLockReadGuardArc,
        read,
        read_arc,
        read_blocking,
        read_arc_blocking,
        try_read,
        try_read_arc
    );
    locking!(
        RwLockUpgradableReadGuard,
        RwLockUpgradableReadGuardArc,
        upgradable_read,
        upgradable_read_arc,
        upgradable_read_blocking,
        upgradable_read_arc_blocking,
        try_upgradable_read,
        try_upgradable_read_arc
    );
    locking!(
        RwLockWriteGuard,
        RwLockWriteGuardArc,
        write,
        write_arc,
        write_blocking,
        write_arc_blocking,
        try_write,
        try_write_arc
    );

    /// See [`async_lock::RwLock::get_mut`].
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    librip::__rip_set_name!("the lock", identity);
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    /// Locks the lock to read if it is free, and records nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner.try_read() {
            Some(_guard) => {
                // SAFETY: the guard is alive, so nobody changes the value.
                let value = unsafe { &*self.value.get() };
                f.debug_struct("RwLock").field("value", &value).finish()
            }
            None => f.debug_struct("RwLock").field("value", &format_args!("<locked>")).finish(),
        }
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

guard! {
    /// Holds a [`RwLock`] for reading until it is dropped.
    shared RwLockReadGuard['a]: async_lock::RwLockReadGuard<'a, ()>, READ, &'a RwLock<T>, &'a T
}
guard! {
    /// Holds a [`RwLock`] for reading until it is dropped, and owns a share of it.
    shared RwLockReadGuardArc[]: async_lock::RwLockReadGuard<'static, ()>, READ_OWNED, Arc<RwLock<T>>, Box<T>
}
guard! {
    /// Holds a [`RwLock`] for reading until it is dropped, and may be upgraded.
    shared RwLockUpgradableReadGuard['a]:
    async_lock::RwLockUpgradableReadGuard<'a, ()>, READ, &'a RwLock<T>, &'a mut T
}
guard! {
    /// Holds a [`RwLock`] for reading until it is dropped, may be upgraded, and owns a share of it.
    shared RwLockUpgradableReadGuardArc[]:
    async_lock::RwLockUpgradableReadGuard<'static, ()>, READ_OWNED, Arc<RwLock<T>>, Box<T>
}
guard! {
    /// Holds a [`RwLock`] for writing until it is dropped.
    exclusive RwLockWriteGuard['a]: async_lock::RwLockWriteGuard<'a, ()>, WRITE, &'a RwLock<T>, &'a mut T
}
guard! {
    /// Holds a [`RwLock`] for writing until it is dropped, and owns a share of it.
    exclusive RwLockWriteGuardArc[]:
    async_lock::RwLockWriteGuard<'static, ()>, WRITE_OWNED, Arc<RwLock<T>>, Box<T>
}

/// Defines the methods that change the mode of a guard.
macro_rules! change_mode {
    (
        [$($lifetime:lifetime)?] $read:ident, $upgradable:ident, $write:ident, $flags:ident
    ) => {
        impl<$($lifetime,)? T: ?Sized> $upgradable<$($lifetime,)? T> {
            #[doc = concat!("See [`async_lock::", stringify!($upgradable), "::downgrade`].")]
            pub fn downgrade(guard: Self) -> $read<$($lifetime,)? T> {
                let lease = guard.lease.downgrade(async_lock::RwLockUpgradableReadGuard::downgrade);
                $read::new(lease, guard.lock)
            }

            #[doc = concat!("See [`async_lock::", stringify!($upgradable), "::try_upgrade`].")]
            ///
            /// # Errors
            ///
            /// This guard, if others read.
            #[track_caller]
            pub fn try_upgrade(guard: Self) -> Result<$write<$($lifetime,)? T>, Self> {
                let (inner, hold) = guard.lease.into_parts();
                let mut failed = None;
                let upgrade = || {
                    let upgraded = async_lock::RwLockUpgradableReadGuard::try_upgrade(inner);
                    upgraded.map_err(|inner| failed = Some(inner)).ok()
                };
                let address = guard.lock.identity.address_in_use();
                if let Some(upgraded) = lock::attempt::<$flags, _>(address, upgrade) {
                    forget(hold);
                    return Ok($write::new(Lease::new(upgraded), guard.lock));
                }
                // SANITY: it has failed, and has given its guard back.
                let inner = failed.expect("the guard of an attempt that has failed");
                Err(Self::new(Lease::new((inner, hold)), guard.lock))
            }

            #[doc = concat!("See [`async_lock::", stringify!($upgradable), "::upgrade`].")]
            #[track_caller]
            pub fn upgrade(guard: Self) -> impl Future<Output = $write<$($lifetime,)? T>> {
                let (inner, hold) = guard.lease.into_parts();
                // Otherwise the task would seem to wait for itself.
                forget(hold);
                let upgrade = async_lock::RwLockUpgradableReadGuard::upgrade(inner);
                let address = guard.lock.identity.address_in_use();
                let acquire = lock::acquire::<$flags, _>(address, upgrade, |_| true);
                with(acquire, guard.lock, |acquired, lock| $write::new(Lease::new(acquired), lock))
            }

            #[doc = concat!("See [`async_lock::", stringify!($upgradable), "::upgrade_blocking`].")]
            #[track_caller]
            pub fn upgrade_blocking(guard: Self) -> $write<$($lifetime,)? T> {
                let guard = match Self::try_upgrade(guard) {
                    Ok(upgraded) => return upgraded,
                    Err(guard) => guard,
                };
                let lock = guard.lock;
                let (inner, hold) = guard.lease.into_parts();
                forget(hold);
                let block = || async_lock::RwLockUpgradableReadGuard::upgrade_blocking(inner);
                let acquire = in_two_polls(|| None, block);
                let acquired = run(lock::acquire::<$flags, _>(lock.identity.address_in_use(), acquire, |_| true));
                $write::new(Lease::new(acquired), lock)
            }
        }

        impl<$($lifetime,)? T: ?Sized> $write<$($lifetime,)? T> {
            #[doc = concat!("See [`async_lock::", stringify!($write), "::downgrade`].")]
            pub fn downgrade(guard: Self) -> $read<$($lifetime,)? T> {
                let lease = guard.lease.downgrade(async_lock::RwLockWriteGuard::downgrade);
                $read::new(lease, guard.lock)
            }

            #[doc = concat!("See [`async_lock::", stringify!($write), "::downgrade_to_upgradable`].")]
            pub fn downgrade_to_upgradable(guard: Self) -> $upgradable<$($lifetime,)? T> {
                let lease = guard.lease.downgrade(async_lock::RwLockWriteGuard::downgrade_to_upgradable);
                $upgradable::new(lease, guard.lock)
            }
        }
    };
}

change_mode!(['a] RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, WRITE);
change_mode!([] RwLockReadGuardArc, RwLockUpgradableReadGuardArc, RwLockWriteGuardArc, WRITE_OWNED);
