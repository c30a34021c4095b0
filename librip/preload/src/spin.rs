//! Spin locks.

use core::ffi::c_int;

use librip::interpose::{Caller, FastAcquisition, LastHolder, SPIN, SPIN_TRY, destroyed, initialised};

use crate::acquire::{
    Call, Calls as _, Manner, OnRelock, acquire, acquire_fast, lock_calls, release, try_acquire,
};
use crate::object::{Object, Spin};
use crate::real;

lock_calls!(Pthread(Spin): pthread_spin_trylock, pthread_spin_lock, libc::EBUSY);

pub(crate) extern "C-unwind" fn lock(spin: Object<Spin>, caller: Caller) -> c_int {
    let fast = FastAcquisition::begin::<SPIN>(spin.address(), caller);
    acquire_fast::<Pthread, SPIN>(fast, spin, move || lock_slowly(spin, caller))
}

#[inline(never)]
fn lock_slowly(spin: Object<Spin>, caller: Caller) -> c_int {
    acquire::<Pthread, SPIN>(call(spin, caller), Manner::TryFirst, move || Pthread::lock(spin))
}

fn call(spin: Object<Spin>, caller: Caller) -> Call<Spin> {
    Call { lock: spin, caller, on_relock: OnRelock::Nothing, is_process_shared: false }
}

pub(crate) extern "C-unwind" fn trylock(spin: Object<Spin>, caller: Caller) -> c_int {
    try_acquire::<Pthread, SPIN_TRY>(call(spin, caller))
}

pub(crate) extern "C-unwind" fn unlock(spin: Object<Spin>, caller: Caller) -> c_int {
    release::<Spin, SPIN>(spin, caller, || true, move || real::pthread_spin_unlock(spin))
}

pub(crate) extern "C-unwind" fn destroy(spin: Object<Spin>, caller: Caller) -> c_int {
    let result = real::pthread_spin_destroy(spin);
    if result == 0 {
        destroyed::<SPIN>(spin.address(), caller, LastHolder::Possible);
    }
    result
}

pub(crate) extern "C-unwind" fn init(spin: Object<Spin>, is_process_shared: c_int, caller: Caller) -> c_int {
    let result = real::pthread_spin_init(spin, is_process_shared);
    if result == 0 {
        initialised::<SPIN>(spin.address(), caller, None);
    }
    result
}
