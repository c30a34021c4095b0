//! Spin locks.

use core::ffi::c_int;

use librip::interpose::{Plain, SPIN, SPIN_TRY, destroyed};

use crate::acquire::{IfHad, Manner, Taking, acquire, acquire_plain, release, try_acquire};
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
    let manner = Manner::Tries(move || real_trylock(spin), libc::EBUSY);
    acquire::<SPIN>(taking(spin, caller), manner, move || real_lock(spin))
}

fn taking(spin: Pointer, caller: u64) -> Taking {
    Taking { lock: spin, caller, if_had: IfHad::NothingElse, is_process_shared: false }
}

pub(crate) unsafe extern "C-unwind" fn trylock(spin: Pointer, caller: u64) -> c_int {
    try_acquire::<SPIN_TRY>(taking(spin, caller), move || real_trylock(spin))
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
