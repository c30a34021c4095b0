//! librip for C and C++: `librip.h`, and the library behind it.
//!
//! This file has the functions that `librip.h` declares, but for those of events, of coroutines and of places, which
//! `events`, `coroutines` and `places` have. `locks` has those that the locks of `rip.hpp` call. They translate
//! arguments and results, and record nothing themselves: marks are instructions that the header puts into the program.
//! No function fails because recording does; without a ring they do nothing. `scripts/install-c` installs the header,
//! both libraries and a file for pkg-config.
//!
//! A Rust program with parts in C depends on this package, says `use rip as _;` somewhere, and compiles its C sources
//! in a build script with the directory in `DEP_RIP_INCLUDE` among the include directories. It needs no other library:
//! the functions are linked into the program, and the marks of both languages share one ring.
//!
//! # Cancellation
//!
//! C cancels threads, which unwinds their stacks by force, and Rust ends the process if a frame on the way has anything
//! to clean up. So functions that have something to clean up run while the thread cannot be cancelled. Cancellation may
//! interrupt the others, above all marks.
//!
//! # Names
//!
//! Names that begin with `rip_` are the public interface, which `librip.h` describes. Names that begin with `librip_`
//! are the interface between the header and the library, and end in its number.

#![allow(unsafe_code, reason = "pointers come from C, and the library exports its functions by name")]

pub mod coroutines;
mod enter;
pub mod events;
pub mod locks;
mod names;
pub mod places;
mod real;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::offset_of;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use librip::capi::{lock_marks, module_loaded, set_participation, set_thread_name, with_cancellation_off};
use librip::{Builder, Clock, InitError, Keep, LockAddress as _, Usage};

/// `struct rip_options`: zero stands for a default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The structure's length in the caller's header, bytes. Fields after it have their defaults.
    pub size: usize,
    /// [`Builder::path`], or null.
    pub path: *const c_char,
    /// [`Builder::words`].
    pub words: u32,
    /// [`Builder::slots`].
    pub slots: u32,
    /// `RIP_KEEP_*`.
    pub keep: u32,
    /// `RIP_CLOCK_*`.
    pub clock: u32,
    /// Not 0: [`Builder::handle_sigbus`] with `false`.
    pub leaves_sigbus_alone: u32,
    /// `RIP_USAGE_*`.
    pub usage: u32,
}

/// The first version of [`Options`] had this length.
const OPTIONS_LEN_MIN: usize = 40;
const _: () = assert!(size_of::<Options>() == 40 && offset_of!(Options, size) == 0);

/// Starts recording with the defaults. Returns 0, or an error number; also 0 if the process records already.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rip_start() -> c_int {
    with_cancellation_off(|| match create(Builder::new()) {
        Ok(()) | Err(InitError::AlreadyRecording(_)) => 0,
        Err(error) => number(&error),
    })
}

/// Starts recording. Returns 0, or an error number: `EALREADY` if the process records already, `ECANCELED` with
/// `RIP_RING=off`, `EINVAL` for options that this version does not know.
///
/// # Safety
///
/// `options` is null, or points at options of which the first `size` bytes can be read. `path` is null or a
/// zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_start_with(options: *const Options) -> c_int {
    with_cancellation_off(|| {
        let mut builder = Builder::new();
        if !options.is_null() {
            // SAFETY: the caller promises that `size` bytes can be read. The size comes first.
            let size = unsafe { options.cast::<usize>().read() };
            if size < OPTIONS_LEN_MIN {
                return libc::EINVAL;
            }
            // SAFETY: the caller promises that `size` bytes can be read, which are at least as many as this type has.
            let options = unsafe { options.read() };
            // SAFETY: the caller's promise.
            if let Some(path) = unsafe { bytes_of(&options.path) } {
                builder = builder.path(OsStr::from_bytes(path));
            }
            if options.words != 0 {
                builder = builder.words(options.words);
            }
            if options.slots != 0 {
                builder = builder.slots(options.slots);
            }
            builder = builder.handle_sigbus(options.leaves_sigbus_alone == 0);
            builder = match options.keep {
                0 => builder.keep(Keep::OnFailure),
                1 => builder.keep(Keep::Always),
                2 => builder.keep(Keep::Never),
                _ => return libc::EINVAL,
            };
            builder = match options.clock {
                0 => builder.clock(Clock::Contended),
                1 => builder.clock(Clock::Off),
                2 => builder.clock(Clock::All),
                _ => return libc::EINVAL,
            };
            builder = match options.usage {
                0 => builder.usage(Usage::Off),
                1 => builder.usage(Usage::Counts),
                2 => builder.usage(Usage::Delays),
                _ => return libc::EINVAL,
            };
        }
        match create(builder) {
            Ok(()) => 0,
            Err(error) => number(&error),
        }
    })
}

/// Makes the ring, and gives it the names that locks have already.
fn create(builder: Builder) -> Result<(), InitError> {
    let result = builder.create();
    names::give();
    result
}

/// A call of the earlier C header: makes a ring at `file` for that many threads.
///
/// Also true if the process records already, and if the operator has switched recording off, so that a program that
/// requires its ring runs on.
///
/// # Safety
///
/// `file` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_create_ring(file: *const c_char, max_procs: usize) -> bool {
    with_cancellation_off(|| {
        let mut builder = Builder::new();
        // SAFETY: the caller's promise.
        if let Some(path) = unsafe { bytes_of(&file) } {
            builder = builder.path(OsStr::from_bytes(path));
        }
        if max_procs > 0 {
            builder = builder.slots(u32::try_from(max_procs).unwrap_or(u32::MAX));
        }
        matches!(create(builder), Ok(()) | Err(InitError::AlreadyRecording(_) | InitError::Disabled))
    })
}

/// A call of the earlier C header: the calling thread has a slot from now on, under this name.
///
/// `id`, `idx` and `ctr` are ignored: the recorder uses the kernel's thread id and its own counts.
///
/// # Safety
///
/// `name` is null, or `namelen` bytes of it can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_init(
    id: libc::pid_t,
    name: *const c_char,
    namelen: usize,
    idx: u8,
    ctr: u8,
) {
    let _ = (id, idx, ctr);
    set_participation(true);
    if name.is_null() {
        set_thread_name(b"");
        return;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { core::slice::from_raw_parts(name.cast::<u8>(), namelen) };
    // The length may count the terminator, or a whole array.
    set_thread_name(name.split(|&byte| byte == 0).next().unwrap_or_default());
}

/// A call of the earlier C header: the calling thread releases its slot. Its marks record nowhere until it calls
/// `rip_init`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rip_exit() {
    set_participation(false);
}

/// See [`librip::avoid_system_calls`].
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rip_avoid_system_calls() {
    librip::avoid_system_calls();
}

/// Names the calling thread.
///
/// # Safety
///
/// `name` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_set_thread_name(name: *const c_char) {
    // SAFETY: the caller's promise.
    if let Some(name) = unsafe { bytes_of(&name) } {
        set_thread_name(name);
    }
}

/// Whether this process records.
#[unsafe(no_mangle)]
pub extern "C" fn rip_is_recording() -> bool {
    librip::is_recording()
}

/// Writes the ring's path to `path`, terminated, and cut to `size` bytes. Returns its length without the terminator, as
/// `snprintf` does; 0 if there is no ring, or if another instance of librip in this process made it.
///
/// # Safety
///
/// `size` bytes at `path` are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_ring_path(path: *mut c_char, size: usize) -> usize {
    with_cancellation_off(|| {
        let ring = librip::ring_path().unwrap_or_default();
        let ring = ring.as_os_str().as_bytes();
        if size > 0 {
            let len = ring.len().min(size - 1);
            // SAFETY: the caller's promise, and `len` is less than `size`.
            unsafe { path.cast::<u8>().copy_from_nonoverlapping(ring.as_ptr(), len) };
            // SAFETY: as above.
            unsafe { path.wrapping_add(len).write(0) };
        }
        ring.len()
    })
}

/// Registers libraries that were loaded after the ring was made.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rip_refresh_modules() {
    with_cancellation_off(|| {
        librip::refresh_modules();
    })
}

/// Does the same. A constructor in the header calls it when a module with marks in C is loaded.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_refresh_1() {
    with_cancellation_off(|| {
        module_loaded();
    })
}

/// Names a lock. If there is no ring yet, it gets the name when it is made.
///
/// # Safety
///
/// `name` is null or a zero-terminated string. `lock` need not point at anything.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_lock_name(lock: *const c_void, name: *const c_char) {
    // SAFETY: the caller's promise.
    if let Some(name) = unsafe { bytes_of(&name) } {
        names::set(lock.addr() as u64, name);
    }
}

/// Copies the ring to a file. Returns 0, or an error number: `ENOENT` if there is no ring of this instance, `EINVAL` if
/// `path` is null.
///
/// # Safety
///
/// `path` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_dump(path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let Some(path) = (unsafe { bytes_of(&path) }) else { return libc::EINVAL };
    with_cancellation_off(|| io_number(librip::dump(OsStr::from_bytes(path))))
}

/// From now on, this signal makes a dump. Returns 0, or an error number.
///
/// # Safety
///
/// `path` is null or a zero-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rip_dump_at_signal(signal: c_int, path: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let Some(path) = (unsafe { bytes_of(&path) }) else { return libc::EINVAL };
    with_cancellation_off(|| io_number(librip::dump_at_signal(signal, OsStr::from_bytes(path))))
}

/// `RIP_LOCK_WAIT`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_lock_wait_1(lock: *const c_void, pc: u64, site_flags: u16) {
    lock_marks::wait(lock, pc, site_flags);
}

/// `RIP_LOCK_ACQUIRED`, in the cases that the header does not handle.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_lock_acquired_1(
    lock: *const c_void,
    pc: u64,
    pc_timed: u64,
    site_flags: u16,
) {
    lock_marks::acquired_slowly(lock.address(), pc, pc_timed, site_flags);
}

/// `RIP_LOCK_RELEASED`, in the cases that the header does not handle.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_lock_released_1(lock: *const c_void, pc: u64, pc_timed: u64) {
    lock_marks::released_slowly(lock.address(), pc, pc_timed);
}

/// `RIP_LOCK_TRY_FAILED`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_lock_try_failed_1(lock: *const c_void, pc: u64) {
    lock_marks::try_failed(lock, pc);
}

/// `RIP_CONDITION_WAIT`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_condition_wait_1(condition: *const c_void, lock: *const c_void, pc: u64) {
    lock_marks::condition_wait(condition, lock, pc);
}

/// `RIP_CONDITION_WOKEN`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_condition_woken_1(condition: *const c_void, lock: *const c_void, pc: u64) {
    lock_marks::condition_woken(condition, lock, pc);
}

/// `RIP_LOCK_DESTROYED`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_lock_destroyed_1(lock: *const c_void, pc: u64) {
    lock_marks::destroyed(lock, pc);
}

fn number(error: &InitError) -> c_int {
    match error {
        InitError::Disabled => libc::ECANCELED,
        InitError::AlreadyRecording(_) => libc::EALREADY,
        InitError::Create { source, .. } | InitError::Map { source, .. } => {
            source.raw_os_error().unwrap_or(libc::EIO)
        }
        InitError::NoRoom { .. } => libc::ENOSPC,
        InitError::OutOfMemory => libc::ENOMEM,
        _ => libc::EIO,
    }
}

fn io_number(result: std::io::Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EINVAL),
    }
}

/// Returns a zero-terminated string without its terminator; `None` for null.
///
/// # Safety
///
/// The pointer is null or points at a zero-terminated string, which is not freed or changed while the result is used.
unsafe fn bytes_of(string: &*const c_char) -> Option<&[u8]> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(*string) }.to_bytes())
}
