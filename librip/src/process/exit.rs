//! The end of a process that ends by itself: writes the status into the header, and keeps or removes the file.
//!
//! A process that dies in any other way does not come here. Its ring has no exit status, and that is the evidence.

#![allow(unsafe_code, reason = "the C library calls back")]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, fence};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use librip_format::EXIT_STATUS;

use super::{current, state, thread};
use crate::ring::{Ring, children, slots};
use crate::sys;
use crate::sys::file::{self, File, FileId};
use crate::sys::written::Written;

/// What becomes of the ring when the process calls `exit` or returns from `main`.
///
/// A process that ends in any other way (a signal, `abort`, `_exit`, out of memory) always leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// It stays.
    Always,
    /// It is removed if the exit status is 0 or nothing was marked, and stays otherwise.
    #[default]
    OnFailure,
    /// It is removed.
    Never,
}

/// The ring's file, with what identifies it at exit.
#[derive(Debug)]
pub(crate) struct RingFile {
    path: &'static CStr,
    /// Its device and inode.
    id: [AtomicU64; 2],
    keep: Keep,
    /// The process whose ring it is.
    pid: u32,
}

/// The file of the ring that this instance made.
static FILE: Written<RingFile> = Written::new();

unsafe extern "C" {
    /// glibc's `atexit` that also passes the status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    /// What `at_quick_exit` calls.
    fn __cxa_at_quick_exit(function: extern "C" fn(*mut c_void, c_int), library: *mut c_void) -> c_int;
}

/// Arranges that `exit`, `quick_exit` and a return from `main` are noticed. To be called once.
pub(crate) fn watch() {
    // SAFETY: the function has the required signature, and its module is pinned or is the executable. If there is no
    // memory for the registration, an exit looks like a crash.
    unsafe { on_exit(exits, ptr::null_mut()) };
    // FOLKLORE: glibc passes the status as a second argument. No library is named, so that the registration stays.
    // SAFETY: as above.
    unsafe { __cxa_at_quick_exit(exits_quickly, ptr::null_mut()) };
}

extern "C" fn exits(status: c_int, _argument: *mut c_void) {
    process_ends(status);
}

extern "C" fn exits_quickly(_argument: *mut c_void, status: c_int) {
    process_ends(status);
}

/// Keeps what the end of the process needs to know of the ring's file.
///
/// # Safety
///
/// No other thread calls it.
pub(crate) unsafe fn install(file: RingFile) {
    // SAFETY: the caller's promise.
    unsafe { FILE.set(file) };
}

pub(crate) fn ring_path() -> Option<PathBuf> {
    let file = FILE.get()?;
    current::ring()?;
    Some(OsStr::from_bytes(file.path.to_bytes()).into())
}

/// The ring's file, for reading; `None` if it has lost its name.
pub(crate) fn open_ring_file() -> Option<File> {
    FILE.get()?.open()
}

/// The process ends with this status. Safe in a signal handler, and in a child of `vfork`. On the section, see `fork`.
#[unsafe(link_section = ".text_of_forks")]
pub(crate) fn process_ends(status: c_int) {
    let (Some(ring), Some(file)) = (current::ring(), FILE.get()) else { return };
    let may_call = !sys::avoids_calls();
    if may_call && sys::pid_by_call() != sys::pid() {
        // A child of `vfork`, in its parent's memory.
        return;
    }
    if state::is_forked_child() {
        child_ends(ring, file, status, may_call);
        return;
    }
    // If somebody has truncated the file, nothing can be recorded. The SIGBUS handler may be switched off.
    if !ring.has_header() {
        return;
    }
    let header = ring.header();
    header.exit_status.store(status & 0xff, Relaxed);
    header.exited_boottime_ns.store(sys::boottime_ns(), Relaxed);
    // ORDERING: release: a reader that sees the state sees status and time.
    header.exit_state.store(EXIT_STATUS, Release);
    if !may_call || file.is_kept(ring, status) {
        return;
    }
    // The first process of a daemon ends at once, and its child continues to record. The last child removes the ring.
    children::leave_removal(ring);
    if !children::are_left(ring, file.id().inode, file.pid) {
        file.remove();
    }
}

/// The process has not ended after [`process_ends`]. Its ring is there: it was kept for a child that was announced.
#[cfg(feature = "interpose")]
#[cold]
pub(crate) fn process_goes_on() {
    let Some(ring) = current::ring() else { return };
    if state::is_forked_child() {
        thread::rejoin();
    } else if ring.has_header() {
        // ORDERING: relaxed: status and time mean nothing without the state.
        ring.header().exit_state.store(0, Relaxed);
        children::keep_removal(ring);
    }
}

/// The process is about to call `exec`, which ends it if it succeeds. Removes the ring if it would be removed after a
/// clean end and nobody else records in it. Returns the file of a ring that was removed.
///
/// In a process with several threads the ring stays: the others go on until the new program starts, and if `exec`
/// fails, no copy of the ring could be exact.
#[cfg(feature = "interpose")]
pub(crate) fn exec_begins() -> Option<File> {
    let (ring, file) = (current::ring()?, FILE.get()?);
    if state::is_forked_child()
        || sys::avoids_calls()
        || sys::pid_by_call() != file.pid
        || file.keep == Keep::Always
        || !sys::has_one_thread()
        || children::are_left(ring, file.id().inode, file.pid)
    {
        return None;
    }
    let opened = file.open()?;
    file::unlink(file.path);
    Some(opened)
}

/// `exec` has failed after [`exec_begins`] has removed the ring, which was this file: recording goes on in a copy. If
/// there is no room for it, the ring has no name any more.
///
/// The process has one thread.
#[cfg(feature = "interpose")]
pub(crate) fn exec_failed(former: &File) {
    let (Some(ring), Some(file)) = (current::ring(), FILE.get()) else { return };
    let signals = sys::block_signals();
    if let Ok(new) = File::create_locked(file.path) {
        new.restrict_to_owner();
        let moved = new
            .set_len(ring.geometry.file_len_bytes)
            .and_then(|()| new.id())
            .and_then(|id| ring.move_to(former, &new, id).map(|()| id));
        match moved {
            Ok(id) => {
                // ORDERING: relaxed: there is no other thread.
                file.id[0].store(id.device, Relaxed);
                file.id[1].store(id.inode, Relaxed);
            }
            Err(_) => file::unlink(file.path),
        }
    }
    sys::restore_signals(signals);
}

/// A forked child ends. It must not remove its parent's ring while others record.
#[unsafe(link_section = ".text_of_forks")]
fn child_ends(ring: &Ring, file: &RingFile, status: c_int, may_call: bool) {
    thread::release_slot_with_process();
    if !may_call || file.is_kept_by_child(ring, status) {
        return;
    }
    children::forget_own(ring);
    // ORDERING: the fence pairs with the one in `leave_removal`: of the first process and its last child, one sees that
    // the other has ended.
    fence(SeqCst);
    if children::is_removal_left(ring) && !children::are_left(ring, file.id().inode, file.pid) {
        file.remove();
    }
}

impl RingFile {
    pub(crate) fn new(path: &'static CStr, id: FileId, keep: Keep, pid: u32) -> RingFile {
        RingFile { path, id: [id.device.into(), id.inode.into()], keep, pid }
    }

    fn id(&self) -> FileId {
        // ORDERING: relaxed: they change only while the process has one thread.
        let [device, inode] = &self.id;
        FileId { device: device.load(Relaxed), inode: inode.load(Relaxed) }
    }

    /// Whether the ring stays when a process of it ends with this status.
    fn is_kept(&self, ring: &Ring, status: c_int) -> bool {
        match self.keep {
            Keep::Always => true,
            // A ring without a single mark explains no failure.
            Keep::OnFailure => status & 0xff != 0 && slots::has_events(ring),
            Keep::Never => false,
        }
    }

    /// Whether the ring stays when a forked child ends with this status.
    fn is_kept_by_child(&self, ring: &Ring, status: c_int) -> bool {
        // Somebody may have truncated the file. Few children fail, so few look.
        self.is_kept(ring, 0) || status & 0xff != 0 && (!ring.has_header() || self.is_kept(ring, status))
    }

    /// Opens the file for reading, unless another file has its name now.
    fn open(&self) -> Option<File> {
        File::open(self.path, libc::O_RDONLY).ok().filter(|opened| opened.id() == Ok(self.id()))
    }

    /// Removes the file, unless another file has its name now.
    fn remove(&self) {
        if file::id_at(self.path, false) == Ok(self.id()) {
            // Somebody else may have removed it, or the directory may have become read-only. Nothing can be done here.
            file::unlink(self.path);
        }
    }
}
