//! Which functions may wake a thread, by their names.

use super::patterns::{glob, plain};

/// Whether a function of this name wakes a thread that waits for a unit of a semaphore, or at a condition variable.
pub(crate) fn wakes(function: &str) -> bool {
    let plain = plain(function);
    ["*sem_post", "*pthread_cond_signal", "*pthread_cond_broadcast", "*::notify_one", "*::notify_all"]
        .iter()
        .any(|pattern| glob(pattern, &plain))
}

/// Whether a function of this name may wake a thread in any way, or calls what the program gives it: it starts threads,
/// sends signals, or goes elsewhere.
pub(crate) fn may_wake(function: &str) -> bool {
    const FUNCTIONS: &str = "syscall *notify* *unpark* *futex_wake* *barrier_wait cnd_signal cnd_broadcast \
        *pthread_create* thrd_create clone clone3 std::thread::_M_start_thread* std::sys::*hread*::new* \
        std::__future_base* *pthread_kill pthread_sigqueue *pthread_cancel *pthread_exit raise kill tgkill tkill \
        *pthread_once* *call_once* qsort* bsearch lfind lsearch tsearch tfind tdelete twalk* ftw* nftw* scandir* \
        glob* dl_iterate_phdr *longjmp* setcontext swapcontext timer_create aio_* lio_listio* mq_notify";
    let plain = plain(function);
    wakes(function) || FUNCTIONS.split(' ').any(|pattern| glob(pattern, &plain))
}

/// Whether a function of this name releases a lock, and wakes a thread that waits for that.
pub(crate) fn unlocks(function: &str) -> bool {
    let plain = plain(function);
    ["*unlock*", "std::sys::*lock*::wake*", "std::sys::*utex*::wake*"]
        .iter()
        .any(|pattern| glob(pattern, &plain))
}

/// Whether a function of this name is one of Rust's standard library, or of the recorder, that calls nothing of the
/// program but what prints a value.
pub(crate) fn is_closed(function: &str) -> bool {
    const MODULES: &[&str] = &[
        "core::fmt::",
        "core::panicking::",
        "core::str::",
        "core::num::",
        "core::slice::index::",
        "core::result::unwrap_failed",
        "core::option::unwrap_failed",
        "core::option::expect_failed",
        "alloc::alloc::",
        "alloc::raw_vec::",
        "alloc::fmt::",
        "std::alloc::",
        "std::backtrace::",
        "std::env::",
        "std::fs::",
        "std::io::",
        "std::net::",
        "std::panicking::",
        "std::rt::",
        "std::sys::",
        "std::time::",
        "core::ptr::drop_in_place<std::io::",
        "librip::",
    ];
    let plain = plain(function);
    MODULES.iter().any(|module| plain.starts_with(module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_may_wake_threads_are_known() {
        for name in [
            "pthread_cond_signal@@GLIBC_2.3.2",
            "std::condition_variable::notify_all()",
            "pthread_barrier_wait@@GLIBC_2.34",
            "__pthread_create_2_1",
            "std::thread::_M_start_thread(std::unique_ptr<std::thread::_State>, void (*)())",
            "std::__atomic_futex_unsigned_base::_M_futex_notify_all(unsigned int*)",
            "syscall",
            "std::thread::Thread::unpark",
            "std::sys::pal::unix::thread::Thread::new",
            "std::sys::sync::condvar::futex::Condvar::notify_one",
            "__pthread_once_slow",
        ] {
            assert!(may_wake(name), "{name}");
        }
        for name in ["accept", "close", "std::net::tcp::TcpListener::accept", "pthread_mutex_unlock", "exit"]
        {
            assert!(!may_wake(name), "{name}");
        }
        for name in ["pthread_mutex_unlock@@GLIBC_2.2.5", "<std::sys::sync::mutex::futex::Mutex>::wake"] {
            assert!(unlocks(name), "{name}");
        }
        assert!(is_closed("<std::net::tcp::TcpStream as std::io::Read>::read"));
        assert!(!is_closed("core::ops::function::FnOnce::call_once") && !is_closed("app::std::net::f"));
    }
}
