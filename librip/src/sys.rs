//! System calls that the recorder makes while the program runs. Each is safe in a signal handler.
//!
//! It decides nothing. `start`, which runs once and in ordinary code, uses `nix` and `std` instead.
//!
//! # Invariants
//!
//! * What a claim or a mark calls here calls no function that another library may replace. Such a function may lock,
//!   and a lock that is recorded comes back here. So there are system calls by instruction ([`raw`]), and the kernel's
//!   own clock function ([`vdso`]).
//!
//! # All system calls after the start, and why none hurts the program
//!
//! A program may install a filter (seccomp) that kills it for a call that it does not list. It tells the recorder
//! before (`avoid_system_calls`), or the interposer notices. From then on the recorder makes only the calls of the
//! first group. A test compares this list with the code.
//!
//! | when | calls | why it cannot hurt |
//! |---|---|---|
//! | a mark, an event, a lock that is free, a wait, a poll | none | |
//! | a lock that is named, destroyed while held, released by a thread that does not hold it; the first wait at a place; a first event in a channel | `rt_sigprocmask`; if the tables of other threads are searched, `sigaltstack`, `mmap` and `munmap` as below | each new thread makes the first in the C library; not the others under a filter |
//! | a cycle, or a span that wants it, if the program or its operator asks for it (`RIP_USAGE`) | `getrusage`, `clock_gettime`; if it asks for delays, `openat`, `read` and `close` of a file in `/proc` | not under a filter; the descriptor is closed again at once |
//! | the clock without a vDSO | `clock_gettime` | a program on such a kernel makes it itself |
//! | two threads that make the ring, or register modules, at a time | `nanosleep` | not under a filter: the ring is made before, and modules are not registered |
//! | a thread's first mark | `rt_sigprocmask`, `sigaltstack`, and `mmap` and `munmap` on an alternate stack with little room; `prctl(PR_GET_NAME)`, `madvise(MADV_POPULATE_WRITE)`, `futex(FUTEX_WAKE_OP)` where the kernel does not populate; `getpid`, `gettid`; `kill` and `tgkill` with signal 0 if the ring is full | refused under a filter: the thread records nowhere and is counted |
//! | the first mark of a forked child | `newfstatat` of its PID namespace | as above |
//! | a fork | `rt_sigprocmask` | the C library makes it at each fork; the child's id is that of its thread |
//! | the initialisation of a lock in memory that looks like a lock in use | `getpid`, `tgkill` with signal 0 | not under a filter; signal 0 is not sent |
//! | the process's first mark under the interposer, `init` | `openat`, `flock`, `fchmod`, `prlimit64`, `ftruncate`, `mmap`, `munmap`, `madvise`, `futex`, `linkat`, `unlinkat`, `newfstatat`, `fstatfs`, `getuid`, `geteuid`, `read`, `close` | the interposer makes the ring before a filter is installed; descriptors are closed again at once |
//! | `dump` | `getrandom`, `openat`, `fchmod`, `prlimit64`, `ftruncate`, `lseek`, `pwrite64`, `pread64`, `renameat`, `unlinkat`, `newfstatat`, `close` | the program asks for it |
//! | the end of the process, `exec` | `getpid`, `kill` with signal 0, `newfstatat`, `openat`, `read`, `close`, `unlinkat`; after a failed `exec` those of `init` and `dump` | not under a filter: the ring stays |
//! | `dlopen` and `dlsym` under the interposer, `refresh_modules` | `getpid`, `newfstatat`, `mmap`, `munmap` | not under a filter |
//!
//! # All limits that matter after the start
//!
//! | limit | where it is read | why a later change cannot hurt |
//! |---|---|---|
//! | `RLIMIT_FSIZE` | at the start, for the length of the ring; again before each `ftruncate` ([`file::File::set_len`]) | a file above the limit is not made; stores to a mapping do not count |
//! | `RLIMIT_AS` | at the start, for the length of the ring | `mmap` fails, and there is no ring |
//! | free memory of the file system | at the start, for the length of the ring | each page is reserved before it is written to; a thread without memory is refused and counted |
//! | `RLIMIT_NOFILE` | never | `openat` fails: no ring, no dump, or the ring stays at the end |
//! | `RLIMIT_MEMLOCK`, after `mlockall(MCL_FUTURE)` | never | `mmap` fails, and there is no ring |
//! | `RLIMIT_STACK` | by the C library, for the stacks of threads | a stack whose length is not known is read up to the end of a page |

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::c_int;
#[cfg(feature = "capi")]
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use std::os::unix::ffi::OsStrExt;

pub(crate) mod file;
#[cfg(all(feature = "interpose", target_env = "gnu"))]
pub(crate) mod loaded;
mod of_process;
mod of_thread;
pub(crate) mod raw;
mod reserve;
mod stack;
pub(crate) mod symbols;
mod vdso;
pub(crate) mod written;

pub(crate) use of_process::{
    OF_PROCESS, avoid_calls, avoids_calls, note_pid, note_pid_of_child, pid, pid_by_call,
};
pub(crate) use of_thread::{cpu_ns_of_thread, ready_ns_of_thread, usage_of_thread};
pub(crate) use reserve::{Unreserved, reserve};
pub(crate) use stack::with_room;

/// Looks for what the other functions use if it is there. To be called once, before threads record.
pub(crate) fn prepare() {
    vdso::find();
    // ORDERING: relaxed: before threads record.
    OF_PROCESS.has_tid.store(true, Relaxed);
    let own = own_thread();
    // SAFETY: the calling thread is there. Descriptors are longer than the offset in all versions of glibc.
    OF_PROCESS.has_tid.store(unsafe { tid_of(own) } == Some(tid_by_call()), Relaxed);
}

/// This thread's id, as its own PID namespace numbers it. Takes no system call if the C library has it.
#[inline(always)]
pub(crate) fn tid() -> u32 {
    // SAFETY: the calling thread is there.
    match unsafe { tid_of(own_thread()) } {
        Some(tid) if tid != 0 => tid,
        _ => tid_by_call(),
    }
}

/// The calling thread's `pthread_t`. Without a call of the C library, whose page of code costs a forked child a page
/// fault.
#[inline(always)]
pub(crate) fn own_thread() -> usize {
    // SAFETY: on x86-64 the ABI keeps the thread pointer at fs:0, and glibc's `pthread_t` is the thread pointer. It
    // writes nothing.
    #[cfg(target_arch = "x86_64")]
    return unsafe {
        let own: usize;
        core::arch::asm!(
            "mov {own}, qword ptr fs:[0]",
            own = out(reg) own,
            options(nostack, readonly, pure, preserves_flags),
        );
        own
    };
    // SAFETY: it returns a number, and has no condition.
    #[cfg(not(target_arch = "x86_64"))]
    return unsafe { libc::pthread_self() } as usize;
}

/// Asks the system: see [`tid`].
pub(crate) fn tid_by_call() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { raw::call(libc::SYS_gettid, []) as u32 }
}

/// The id of the thread with this `pthread_t`, 0 if the thread has ended; `None` if it is not known where the C library
/// keeps it.
///
/// # Safety
///
/// Nobody has joined the thread yet, so the C library's descriptor of it is there.
#[inline(always)]
pub(crate) unsafe fn tid_of(thread: usize) -> Option<u32> {
    // ORDERING: relaxed: `prepare` stores it before threads record.
    if !OF_PROCESS.has_tid.load(Relaxed) {
        return None;
    }
    let word = core::ptr::with_exposed_provenance_mut(thread + TID_OFFSET);
    // SAFETY: the caller's promise: the word is in the descriptor. The kernel writes it when the thread ends.
    let word = unsafe { AtomicU32::from_ptr(word) };
    // ORDERING: relaxed: the creation of the thread has ordered the id, and 0 is only a hint.
    Some(word.load(Relaxed))
}

/// Where the C library keeps the id of a thread in its descriptor, which is at the address that a `pthread_t` is. It
/// has been the same in all versions of glibc from 2.17 to 2.42.
const TID_OFFSET: usize = if cfg!(target_arch = "x86_64") { 720 } else { 208 };

/// This process's real user id.
pub(crate) fn uid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { raw::call(libc::SYS_getuid, []) as u32 }
}

/// The user id that the files of this process get.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { raw::call(libc::SYS_geteuid, []) as u32 }
}

/// Whether this process has rights that its caller may not have: setuid, setgid, file capabilities.
pub(crate) fn is_privileged() -> bool {
    // SAFETY: it reads a value that the kernel passes to each program.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// An address near the end of the process's first stack; 0 if the kernel does not say.
pub(crate) fn address_on_first_stack() -> u64 {
    // SAFETY: it reads a value that the kernel passes to each program.
    unsafe { libc::getauxval(libc::AT_EXECFN) }
}

/// The path that was executed: of a link, if the program was started through one. `None` if the kernel does not say.
pub(crate) fn executed_path() -> Option<std::path::PathBuf> {
    // SAFETY: it reads a value that the kernel passes to each program.
    let path =
        core::ptr::with_exposed_provenance::<core::ffi::c_char>(
            unsafe { libc::getauxval(libc::AT_EXECFN) } as usize
        );
    // SAFETY: it is null or the address of a terminated string, which the kernel puts on the first stack.
    let path = (!path.is_null()).then(|| unsafe { core::ffi::CStr::from_ptr(path) })?;
    Some(std::ffi::OsStr::from_bytes(path.to_bytes()).into())
}

/// Whether there is memory for a list of the modules with their sites, which is made once or rarely.
///
/// Without memory Rust's collections end the process, and the recorder must not do that. Another thread may take the
/// memory after this call; that case is not handled.
///
/// It does not ask the program's allocator. That of glibc learns from what it frees: after one long block, it gives
/// shorter ones from its heap, and keeps them there.
pub(crate) fn has_memory() -> bool {
    const ENOUGH_BYTES: usize = 1 << 20;
    let probe = file::map_private(ENOUGH_BYTES);
    // SAFETY: the mapping was made above, and nobody uses it.
    probe.map(|probe| unsafe { file::unmap(probe, ENOUGH_BYTES) }).is_ok()
}

/// Whether this process has no thread but the calling one.
#[cfg(feature = "interpose")]
pub(crate) fn has_one_thread() -> bool {
    // A directory has a link for itself, one for its name, and one for each directory in it.
    file::links_at(c"/proc/self/task") == Ok(3)
}

/// Whether a process exists. A process that may not be signalled exists.
pub(crate) fn process_exists(pid: u32) -> bool {
    // SAFETY: signal 0 only asks, and changes nothing.
    let answer = unsafe { raw::call(libc::SYS_kill, [pid as usize, 0]) };
    !raw::is_error(answer, libc::ESRCH)
}

/// Whether a thread is gone. A thread that may not be signalled is not gone.
pub(crate) fn thread_is_gone(pid: u32, tid: u32) -> bool {
    // SAFETY: signal 0 only asks, and changes nothing.
    let answer = unsafe { raw::call(libc::SYS_tgkill, [pid as usize, tid as usize, 0]) };
    raw::is_error(answer, libc::ESRCH)
}

/// `CLOCK_BOOTTIME`, ns: the clock of `/proc/PID/stat`, so that a slot's times compare with a thread's start.
pub(crate) fn boottime_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME)
}

/// A clock's reading, ns; 0 if the kernel does not have the clock.
pub(crate) fn clock_ns(clock: libc::clockid_t) -> u64 {
    let time = vdso::clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The calling thread's name as the kernel has it: at most 15 bytes, padded with zeros.
pub(crate) fn thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, the array's length.
    unsafe {
        raw::call(libc::SYS_prctl, [libc::PR_GET_NAME as usize, name.as_mut_ptr().expose_provenance()])
    };
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

/// Runs `body`, which may call a cancellation point, while this thread cannot be cancelled, and restores `errno`. For
/// unwinding, the same holds as for [`with_signals_blocked`].
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
    let result = without_unwinding(|| with_errno_kept(body));
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

/// Lets other threads run for a moment. Threads of lower priority run too.
pub(crate) fn rest() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
    // SAFETY: `time` is readable. The kernel writes the rest of the time nowhere.
    unsafe { raw::call(libc::SYS_nanosleep, [(&raw const time).expose_provenance(), 0]) };
}

/// Changes the mask. Returns the signals that were blocked before.
#[inline(always)]
fn change_mask(how: c_int, signals: Signals) -> Signals {
    let mut before: Signals = 0;
    // SAFETY: both sets have the length that the call states.
    unsafe {
        raw::call(
            libc::SYS_rt_sigprocmask,
            [
                how as usize,
                (&raw const signals).expose_provenance(),
                (&raw mut before).expose_provenance(),
                size_of::<Signals>(),
            ],
        );
    }
    before
}

/// Inode of `/proc/self/ns/pid`; 0 if there is no `/proc`. Safe in a signal handler.
pub(crate) fn pid_namespace() -> u64 {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path is terminated and `status` is writable.
    let result = unsafe {
        let path = c"/proc/self/ns/pid".as_ptr().expose_provenance();
        raw::call(
            libc::SYS_newfstatat,
            [libc::AT_FDCWD as usize, path, status.as_mut_ptr().expose_provenance(), 0],
        )
    };
    // SAFETY: zeroed, which is a valid `stat`, or filled by the kernel.
    let inode = unsafe { status.assume_init() }.st_ino;
    if result == 0 { inode } else { 0 }
}
