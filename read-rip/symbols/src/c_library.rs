//! Functions of C libraries, by name: a static program has them in its own file.
//!
//! Only those are here in which threads wait, and what they call.

/// How the names of functions for threads begin.
const PREFIXES: &[&str] = &["pthread_", "sem_", "mtx_", "cnd_", "thrd_"];

/// Functions in which a thread may wait: the cancellation points of POSIX, their relatives in Linux, and those of
/// streams that are used most.
const WAITING: &[&str] = &[
    "accept",
    "accept4",
    "call_once",
    "clock_nanosleep",
    "close",
    "connect",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "fcntl",
    "fdatasync",
    "fgetc",
    "fgets",
    "flock",
    "fputs",
    "fread",
    "fsync",
    "fwrite",
    "getc",
    "getchar",
    "getdelim",
    "getline",
    "getrandom",
    "ioctl",
    "lockf",
    "mq_receive",
    "mq_send",
    "mq_timedreceive",
    "mq_timedsend",
    "msgrcv",
    "msgsnd",
    "msync",
    "nanosleep",
    "open",
    "openat",
    "pause",
    "poll",
    "ppoll",
    "pread",
    "preadv",
    "pselect",
    "pwrite",
    "pwritev",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "select",
    "semop",
    "semtimedop",
    "send",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "sigsuspend",
    "sigtimedwait",
    "sigwait",
    "sigwaitinfo",
    "sleep",
    "splice",
    "syscall",
    "tcdrain",
    "usleep",
    "wait",
    "wait3",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
];

/// Whether this is a function of a C library, by its name in the symbol table. The language reserves names that begin
/// with two underscores, or with one and a capital letter.
pub(super) fn is_of_c_library(function: &str) -> bool {
    // An overloaded function has arguments, and one of Rust a path.
    let is_reserved = match function.as_bytes() {
        [b'_', second, ..] => *second == b'_' || second.is_ascii_uppercase(),
        _ => false,
    };
    is_reserved
        || PREFIXES.iter().any(|prefix| function.starts_with(prefix))
        || WAITING.binary_search(&function).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_in_order() {
        assert!(WAITING.is_sorted());
    }

    #[test]
    fn functions_in_which_static_programs_wait_are_known() {
        for name in
            ["__syscall_cp_c", "_IO_new_file_underflow", "pthread_mutex_lock", "sem_timedwait", "pause"]
        {
            assert!(is_of_c_library(name), "{name}");
        }
        for name in ["transfer", "read(Socket&)", "idle::read", "semaphore", "_start", "", "_", "readers"] {
            assert!(!is_of_c_library(name), "{name}");
        }
    }
}
