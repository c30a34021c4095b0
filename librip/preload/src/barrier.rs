//! Barriers: which threads wait until enough others have come. Nobody holds a barrier.

use core::ffi::c_int;

use librip::interpose::{BARRIER, Blocking, Caller, StackPointer};

use crate::blocking::block;
use crate::object::{Barrier, Object};
use crate::real;

pub(crate) extern "C-unwind" fn wait(barrier: Object<Barrier>, caller: Caller) -> c_int {
    let blocking = Blocking::begin::<BARRIER>(barrier.address(), caller, StackPointer::here())
        .in_round(barrier.threads_of_round());
    let has_passed = |result| result == 0 || result == libc::PTHREAD_BARRIER_SERIAL_THREAD;
    block::<BARRIER>(blocking, has_passed, move || real::pthread_barrier_wait(barrier))
}
