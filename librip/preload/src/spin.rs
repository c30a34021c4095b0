//! Spin locks.

use core::ffi::c_int;

use librip::interpose::{Plain, SPIN, SPIN_TRY, destroyed};

use crate::acquire::{
    Calls as _, IfHad, Manner, Taking, acquire, acquire_plain, lock_calls, release, try_acquire,
};
use crate::{Pointer, address, real};

lock_calls!(Spin: pthread_spin_trylock, pthread_spin_lock, libc::EBUSY);

pub(crate) unsafe extern "C-unwind" fn lock(spin: Pointer, caller: u64) -> c_int {
    let plain = Plain::takes::<SPIN>(address(spin), caller);
    let otherwise = move || lock_slowly(spin, caller);
    acquire_plain::<Spin, SPIN>(plain, spin, otherwise)
}

#[inline(never)]
fn lock_slowly(spin: Pointer, caller: u64) -> c_int {
    acquire::<Spin, SPIN>(taking(spin, caller), Manner::Tries, move || Spin::lock(spin))
}

fn taking(spin: Pointer, caller: u64) -> Taking {
    Taking { lock: spin, caller, if_had: IfHad::NothingElse, is_process_shared: false }
}

pub(crate) unsafe extern "C-unwind" fn trylock(spin: Pointer, caller: u64) -> c_int {
    try_acquire::<Spin, SPIN_TRY>(taking(spin, caller))
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
