//! Spin locks.

use core::ffi::c_int;

use librip::interpose::{Plain, SPIN, SPIN_TRY, destroyed};

use crate::acquire::{acquire, acquire_plain, release, try_acquire};
use crate::{Pointer, address, real};

#[inline(always)]
fn real_trylock(spin: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::pthread_spin_trylock(spin) }
}

#[inline(always)]
fn real_lock(spin: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::pthread_spin_lock(spin) }
}

pub(crate) unsafe extern "C-unwind" fn lock(spin: Pointer, caller: u64) -> c_int {
    let plain = Plain::takes::<SPIN>(address(spin), caller);
    let otherwise = move || lock_slowly(spin, caller);
    acquire_plain::<SPIN>(plain, spin, libc::EBUSY, real_trylock, real_lock, otherwise)
}

#[inline(never)]
fn lock_slowly(spin: Pointer, caller: u64) -> c_int {
    let (try_lock, wait) = (move || real_trylock(spin), move || real_lock(spin));
    acquire::<SPIN>(address(spin), caller, libc::EBUSY, try_lock, wait)
}

pub(crate) unsafe extern "C-unwind" fn trylock(spin: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    try_acquire::<SPIN_TRY>(address(spin), caller, move || unsafe { real::pthread_spin_trylock(spin) })
}

pub(crate) unsafe extern "C-unwind" fn unlock(spin: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    release::<SPIN>(address(spin), caller, || true, move || unsafe { real::pthread_spin_unlock(spin) })
}

pub(crate) unsafe extern "C-unwind" fn destroy(spin: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let result = unsafe { real::pthread_spin_destroy(spin) };
    if result == 0 {
        destroyed::<SPIN>(address(spin), caller, true);
    }
    result
}
