//! Dumps: the ring is copied to another file while threads record on, at a call, a panic or a signal.
//!
//! A dump is what a crash at that moment would have left, but for what the threads did meanwhile. The copying is safe
//! in a signal handler: it makes system calls alone. The copy gets its name last, so nobody sees a part of it. Until
//! then it has a name that nobody can guess: whoever may write to the directory could make that file before, and would
//! own the copy.

#![allow(unsafe_code, reason = "a signal handler is installed by the C library")]

use core::ffi::c_int;
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Once;

use super::{current, exit};
use crate::ring::{Ring, Table};
use crate::sys;
use crate::sys::file::{self, Errno, File, Terminated};
use librip_format::{SEQUENCE_BITS, SLOT_HEADER_LEN_BYTES, SlotHeader, sequence_bits};

/// No path is longer, its end included. A signal handler has room for it on its stack.
const PATH_MAX_BYTES: usize = 4096;
/// A slot is copied again, at most this many times, if its owner was too fast.
const ATTEMPTS: u32 = 10;
/// Words are looked at in pieces of this many: a signal handler has room for them on its stack.
const PIECE_WORDS: usize = 64;

/// Where a dump goes.
#[derive(Debug)]
struct Target {
    path: CString,
}

impl Target {
    /// The working directory may be another one when the dump is made, so a relative path is resolved here.
    fn new(path: &Path) -> io::Result<Target> {
        let path = std::path::absolute(path)?;
        Ok(Target { path: CString::new(path.as_os_str().as_bytes())? })
    }

    fn dump(&self) -> Result<(), Errno> {
        let (Some(ring), Some(source)) = (current::ring(), exit::open_ring_file()) else {
            return Err(Errno(libc::ENOENT));
        };
        let mut name = Terminated::<PATH_MAX_BYTES>::new();
        let copy = File::create_beside(&self.path, &mut name)?;
        copy.restrict_to_owner();
        let result = copy_ring(ring, &source, &copy).and_then(|()| file::rename(name.as_c_str(), &self.path));
        if result.is_err() {
            file::unlink(name.as_c_str());
        }
        result
    }
}

fn copy_ring(ring: &Ring, source: &File, copy: &File) -> Result<(), Errno> {
    let (base, len_bytes) = (ring.base().cast_const(), ring.geometry.file_len_bytes);
    let slots = ring.geometry.extent(Table::Slots);
    let end = slots.offset + slots.capacity * slots.entry_len_bytes;
    copy.set_len(len_bytes)?;
    // ORDERING: acquire, as in `slots::handed_out_from`: the memory of these slots is reserved.
    let used = ring.used(Table::Slots).load(Acquire).min(slots.capacity);
    for index in 0..used {
        copy_slot(ring, index, copy)?;
    }
    // After the slots: the sites of all their words are there.
    source.copy_data(base, end..len_bytes, copy)?;
    source.copy_data(base, 0..slots.offset, copy)
}

/// Copies a slot whose owner may write: its words before its header, so that the count in the copy is none of words
/// that are not there.
///
/// If the owner writes all its words meanwhile, or while this thread has no processor, no word of the copy may be one
/// of the last lap before that count. A reader would take the count for damaged. So the copy of such a slot keeps the
/// words of the last lap alone. The sequence that a word tells them by comes again after 2^15 words: if the owner may
/// have written so many, the slot is copied again.
fn copy_slot(ring: &Ring, index: u64, copy: &File) -> Result<(), Errno> {
    let (base, n) = (ring.base().cast_const(), u64::from(ring.geometry.slot.words));
    let begin = ring.geometry.offset(Table::Slots, index);
    let words = begin + SLOT_HEADER_LEN_BYTES;
    let end = begin + ring.geometry.extent(Table::Slots).entry_len_bytes;
    for _ in 0..ATTEMPTS {
        // ORDERING: acquire: the words are copied later.
        let before = ring.slot(index).count.load(Acquire);
        copy.write_mapped(base, words..end)?;
        copy.write_mapped(base, begin..words)?;
        let mut count = [0];
        copy.read_words(&mut count, begin + offset_of!(SlotHeader, count) as u64)?;
        let [count] = count;
        match count.wrapping_sub(before) {
            // At least one word of the last lap was there before.
            written if written < n => return Ok(()),
            written if written < (1 << SEQUENCE_BITS) - n => {
                let newest = count.wrapping_sub(1);
                return keep_words(copy, words, n, |index, word| {
                    let sequence = newest.wrapping_sub(newest.wrapping_sub(index) % n);
                    sequence_bits(word) == sequence % (1 << SEQUENCE_BITS)
                });
            }
            _ => {}
        }
    }
    keep_words(copy, words, n, |_, _| false)
}

/// Makes the other ones of `n` words of the copy words that were never written.
fn keep_words(copy: &File, at: u64, n: u64, is_kept: impl Fn(u64, u64) -> bool) -> Result<(), Errno> {
    for first in (0..n).step_by(PIECE_WORDS) {
        let mut piece = [0; PIECE_WORDS];
        let len = PIECE_WORDS.min((n - first) as usize);
        let (words, offset) = (&mut piece[..len], at + 8 * first);
        copy.read_words(words, offset)?;
        for (index, word) in (first..).zip(&mut *words) {
            if !is_kept(index, *word) {
                *word = 0;
            }
        }
        copy.write_words(words, offset)?;
    }
    Ok(())
}

pub(crate) fn dump(path: &Path) -> io::Result<()> {
    Ok(Target::new(path)?.dump()?)
}

/// See [`dump_at_panic`](crate::dump_at_panic).
pub(crate) fn at_panic(path: &Path) -> io::Result<()> {
    static TARGET: AtomicPtr<Target> = AtomicPtr::new(ptr::null_mut());
    static HOOK: Once = Once::new();
    let target = Box::leak(Box::new(Target::new(path)?));
    // ORDERING: release, pairs with the acquire below: the target is complete.
    TARGET.store(target, Release);
    HOOK.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            former(info);
            // The first panic alone: what comes later is often its consequence.
            // SAFETY: null, or leaked.
            if let Some(target) = unsafe { TARGET.swap(ptr::null_mut(), Acquire).as_ref() } {
                // Nobody is there to tell.
                let _ = target.dump();
            }
        }));
    });
    Ok(())
}

/// Signals have numbers below this.
const SIGNALS: usize = 65;

/// For each signal, where the dump goes.
static AT_SIGNAL: [AtomicPtr<Target>; SIGNALS] = [const { AtomicPtr::new(ptr::null_mut()) }; SIGNALS];

/// See [`dump_at_signal`](crate::dump_at_signal).
pub(crate) fn at_signal(signal: c_int, path: &Path) -> io::Result<()> {
    let Some(place) = usize::try_from(signal).ok().and_then(|signal| AT_SIGNAL.get(signal)) else {
        return Err(Errno(libc::EINVAL).into());
    };
    // ORDERING: release, pairs with the acquire in `on_signal`.
    place.store(Box::leak(Box::new(Target::new(path)?)), Release);
    // SAFETY: zeros are a valid `sigaction`: no flags, and an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(_) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: a complete action; the handler has the one-argument form.
    if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
        place.store(ptr::null_mut(), Relaxed);
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn on_signal(signal: c_int) {
    sys::with_errno_kept(|| {
        let place = usize::try_from(signal).ok().and_then(|signal| AT_SIGNAL.get(signal));
        // SAFETY: null, or leaked by `at_signal`.
        if let Some(target) = place.and_then(|place| unsafe { place.load(Acquire).as_ref() }) {
            // Nobody is there to tell.
            let _ = target.dump();
        }
    });
}
