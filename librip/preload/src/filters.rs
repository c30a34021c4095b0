//! Notices when the program restricts its own system calls (seccomp).
//!
//! A filter allows what the program needs, and may kill it for anything else. A thread's first operation asks for its
//! id and its name, and a clean exit removes the ring: after a filter is installed, neither happens. Threads that
//! have already recorded go on, because that takes no system call. Later threads do not record, and the ring stays.
//! A process without a ring makes it before the filter is installed, because it cannot do so afterwards.
//! Filters that existed before the program started are not noticed: they were made for programs in general. Nor is a
//! filter that the program installs by an instruction of its own.

use core::ffi::{c_int, c_long};

use crate::{exit, real};

/// Runs before `prctl`.
pub(crate) extern "C" fn before_prctl(option: c_int, mode: usize, filter: usize) {
    real::find_once();
    if option == libc::PR_SET_SECCOMP {
        notice(mode == libc::SECCOMP_MODE_STRICT as usize || filter != 0);
    }
}

/// Runs before `syscall`, by which libseccomp installs its filters.
/// A program may also end by it.
pub(crate) extern "C" fn before_syscall(number: c_long, operation: usize, _flags: usize, filter: usize) {
    real::find_once();
    if number == libc::SYS_exit_group {
        exit::before_exit(operation as c_int);
    } else if number == libc::SYS_seccomp {
        let sets_filter = operation == libc::SECCOMP_SET_MODE_FILTER as usize && filter != 0;
        notice(sets_filter || operation == libc::SECCOMP_SET_MODE_STRICT as usize);
    }
}

/// A call without a filter only asks what is possible.
fn notice(is_set: bool) {
    if is_set {
        // The first operation makes the ring.
        librip::interpose::enter();
        librip::avoid_system_calls();
    }
}
