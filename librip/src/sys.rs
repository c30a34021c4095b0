//! System calls that the recorder makes while the program runs. Each is safe in a signal handler.
//!
//! It holds no state and decides nothing. `start`, which runs once and in ordinary code, uses `nix` and `std` instead.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::c_int;
use core::ptr;

/// This process's id, as its own PID namespace numbers it.
pub(crate) fn pid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::getpid() as u32 }
}

/// This thread's id, as its own PID namespace numbers it.
pub(crate) fn tid() -> u32 {
    // SAFETY: takes nothing, cannot fail. The raw call: older C libraries have no wrapper.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Whether this process has rights that its caller may not have: setuid, setgid, file capabilities.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: it reads a value that the kernel passes to each program.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether there is memory for a list of the modules with their sites, which is made once or rarely.
///
/// Without memory Rust's collections end the process, and the recorder must not do that. Another thread may take the
/// memory after this call; that case is not handled.
pub(crate) fn has_memory() -> bool {
    const ENOUGH_BYTES: usize = 1 << 20;
    let mut probe: Vec<u8> = Vec::new();
    // Without the black box the compiler may leave the allocation out.
    core::hint::black_box(&mut probe).try_reserve_exact(ENOUGH_BYTES).is_ok()
}

/// Whether a process exists. A process that may not be signalled exists.
pub(crate) fn process_exists(pid: u32) -> bool {
    // SAFETY: signal 0 only asks, and changes nothing.
    unsafe { libc::kill(pid as libc::pid_t, 0) == 0 || errno() != libc::ESRCH }
}

/// Whether a thread is gone. A thread that may not be signalled is not gone.
pub(crate) fn thread_is_gone(pid: u32, tid: u32) -> bool {
    // SAFETY: signal 0 only asks, and changes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_tgkill, pid as libc::pid_t, tid as libc::pid_t, 0) };
    answer == -1 && errno() == libc::ESRCH
}

/// `CLOCK_BOOTTIME`, ns: the clock of `/proc/PID/stat`, so that a slot's times compare with a thread's start.
pub(crate) fn boottime_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME)
}

/// A clock's reading, ns; 0 if the kernel does not have the clock.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a writable timespec.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The calling thread's name as the kernel has it: at most 15 bytes, padded with zeros.
pub(crate) fn thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, the array's length.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

fn errno_location() -> *mut i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::__errno_location() }
}

fn errno() -> i32 {
    // SAFETY: the C library's own location, valid for this thread.
    unsafe { *errno_location() }
}

/// Runs `body` and restores `errno`: a mark must not change a value that the program is about to read.
pub(crate) fn with_errno_kept<T>(body: impl FnOnce() -> T) -> T {
    let before = errno();
    let result = body();
    // SAFETY: as in `errno`.
    unsafe { *errno_location() = before };
    result
}

/// Signals as the kernel's mask has them, by their numbers minus one.
pub(crate) type Signals = u64;

/// FOLKLORE: glibc cancels threads by this signal, which `pthread_sigmask` cannot block; the system call can.
#[cfg(feature = "capi")]
const SIGCANCEL: Signals = 1 << (32 - 1);
/// FOLKLORE: glibc's `setuid` waits until every thread has handled this signal.
const SIGSETXID: Signals = 1 << (33 - 1);

/// Runs `body` with signals blocked in this thread, so that no handler sees its work half done, and no cancellation
/// interrupts it.
///
/// Asynchronous cancellation is delivered when the mask is restored, and unwinds the stack from there to the program's
/// own code. No frame between them may have anything to clean up, and each of these functions that C calls is `extern
/// "C-unwind"`.
///
/// FOLKLORE: the functions that Rust calls there are declared `extern "C"` all the same. A crate that calls a function
/// that may unwind cannot be linked into programs whose panics abort. The unwinder passes through a frame that has
/// nothing to clean up in any case.
#[inline(always)]
pub(crate) fn with_signals_blocked<T: Copy>(body: impl FnOnce() -> T) -> T {
    let before = block_signals();
    let result = without_unwinding(body);
    restore_signals(before);
    result
}

/// Runs `body`, which may call a cancellation point, while this thread cannot be cancelled. For unwinding, the same
/// holds as for [`with_signals_blocked`].
#[cfg(feature = "capi")]
#[inline(always)]
pub(crate) fn with_cancellation_off<T: Copy>(body: impl FnOnce() -> T) -> T {
    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    }
    /// glibc's number.
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    // FOLKLORE: up to glibc 2.36 at least, a cancellation signal that was sent before cancels the thread in spite of
    // the state. So the signal is blocked too.
    let signals = change_mask(libc::SIG_BLOCK, SIGCANCEL);
    let mut before = 0;
    // SAFETY: `before` is writable.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
    let result = without_unwinding(body);
    // SAFETY: it restores the former state. Null: the present state is not wanted.
    unsafe { pthread_setcancelstate(before, ptr::null_mut()) };
    restore_signals(signals);
    result
}

/// Runs `body` in a frame of its own. Not inlined: a frame with anything to clean up would stop the unwinding of its
/// caller. A panic ends here.
#[inline(never)]
extern "C" fn without_unwinding<T>(body: impl FnOnce() -> T) -> T {
    body()
}

/// Blocks all signals in this thread except SIGBUS: if somebody truncates the file at this moment, the SIGBUS handler
/// must run. Returns the signals that were blocked before.
#[inline(always)]
pub(crate) fn block_signals() -> Signals {
    change_mask(libc::SIG_BLOCK, !(1 << (libc::SIGBUS - 1) | SIGSETXID))
}

/// Undoes [`block_signals`].
#[inline(always)]
pub(crate) fn restore_signals(before: Signals) {
    change_mask(libc::SIG_SETMASK, before);
}

/// Changes the mask. Returns the signals that were blocked before.
#[inline(always)]
fn change_mask(how: c_int, signals: Signals) -> Signals {
    let mut before: Signals = 0;
    // SAFETY: both sets have the length that the call states.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const signals,
            &raw mut before,
            size_of::<Signals>(),
        );
    }
    before
}

/// Inode of `/proc/self/ns/pid`; 0 if there is no `/proc`. Safe in a signal handler.
pub(crate) fn pid_namespace() -> u64 {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path is terminated and `status` is writable.
    let result = unsafe { libc::stat(c"/proc/self/ns/pid".as_ptr(), status.as_mut_ptr()) };
    // SAFETY: zeroed, which is a valid `stat`, or filled by the kernel.
    let inode = unsafe { status.assume_init() }.st_ino;
    if result == 0 { inode } else { 0 }
}

/// The kernel could not provide memory: the tmpfs is full, a limit was reached, or the file was truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

/// Makes sure that stores to `len_bytes` from `start` do not fault because there is no memory.
///
/// A store to a hole of a full tmpfs raises SIGBUS. When the kernel itself accesses user memory, the same condition is
/// an error code. So the kernel adds zero to one word of each page: `FUTEX_WAKE_OP` does an atomic read-modify-write,
/// and then wakes waiters of the address, of which there are none. Pages that exist do not change, even if other
/// threads write to them meanwhile.
///
/// This takes no file descriptor. So it works in a daemon that has closed all of its descriptors, and cannot use one
/// that has become another file's. Every kernel since 2.6.14 can do it. `MADV_POPULATE_WRITE` is plainer, but came with
/// 5.14, and emulators that do not know it report success.
///
/// # Errors
///
/// [`NoMemory`]; part of the range may have been reserved.
pub(crate) fn reserve(start: *mut u8, len_bytes: usize, page_len_bytes: usize) -> Result<(), NoMemory> {
    const ADD_ZERO: i32 = libc::FUTEX_OP_ADD << 28;
    let begin = start.addr() & !(page_len_bytes - 1);
    for page in (begin..start.addr() + len_bytes).step_by(page_len_bytes) {
        let word = start.with_addr(page);
        // SAFETY: the kernel checks the address; adding zero atomically changes nothing.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word,
                libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG,
                0,
                ptr::null::<libc::timespec>(),
                word,
                ADD_ZERO,
            )
        };
        if result == -1 {
            return Err(NoMemory);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mapping of a file of `file_len` bytes, `map_len` long.
    fn mapping(file_len: u64, map_len: usize) -> memmap2::MmapRaw {
        let file = unlinked_file();
        file.set_len(file_len).unwrap();
        memmap2::MmapOptions::new().len(map_len).map_raw(&file).unwrap()
    }

    fn unlinked_file() -> std::fs::File {
        let path = std::path::PathBuf::from(format!("/dev/shm/librip-test-{}-{}", pid(), tid()));
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    #[test]
    fn memory_after_the_end_of_the_file_is_refused_without_a_signal() {
        // A store after the end of the file raises SIGBUS, as in a full tmpfs. The test survives.
        let map = mapping(4096, 3 * 4096);
        assert_eq!(reserve(map.as_mut_ptr(), 4096, 4096), Ok(()));
        assert_eq!(reserve(map.as_mut_ptr().wrapping_add(4096), 1, 4096), Err(NoMemory));
        assert_eq!(reserve(map.as_mut_ptr(), 4097, 4096), Err(NoMemory));
    }

    #[test]
    fn reserving_does_not_change_contents() {
        let map = mapping(8192, 8192);
        // SAFETY: within the mapping and aligned; nothing else knows it.
        unsafe { map.as_mut_ptr().cast::<u64>().write(0x0123_4567_89ab_cdef) };
        assert_eq!(reserve(map.as_mut_ptr(), 8192, 4096), Ok(()));
        // SAFETY: as above.
        assert_eq!(unsafe { map.as_ptr().cast::<u64>().read() }, 0x0123_4567_89ab_cdef);
    }
}
