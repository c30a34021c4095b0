//! Notices when the program forbids itself system calls (seccomp).
//!
//! A filter allows what the program needs and may kill it for anything else. A thread's first operation asks for its id and
//! its name, and a clean exit removes the ring: behind a filter neither is done. Threads that have recorded before go on,
//! which takes no calls; later ones record nowhere, and the ring stays. Filters that were there before the program
//! are not noticed: they were made for programs in general.

use core::ffi::{c_int, c_long};

use crate::real;

/// Runs before `prctl`.
pub(crate) extern "C" fn before_prctl(option: c_int, mode: usize, filter: usize) {
    real::find_once();
    if option == libc::PR_SET_SECCOMP {
        notice(mode == libc::SECCOMP_MODE_STRICT as usize || filter != 0);
    }
}

/// Runs before `syscall`, which is how libseccomp sets its filters.
pub(crate) extern "C" fn before_syscall(number: c_long, operation: usize, _flags: usize, filter: usize) {
    real::find_once();
    if number == libc::SYS_seccomp {
        let sets_filter = operation == libc::SECCOMP_SET_MODE_FILTER as usize && filter != 0;
        notice(sets_filter || operation == libc::SECCOMP_SET_MODE_STRICT as usize);
    }
}

/// Without a filter these calls are questions: what is possible here?
fn notice(is_set: bool) {
    if is_set {
        librip::interpose::avoid_system_calls();
    }
}
