//! Several copies of librip in one process: the executable's own, and one in each `cdylib` that uses it.
//!
//! Statically linked Rust code is not shared between modules, so every copy has statics and a thread-local
//! block of its own. They find one another through *anchors*: each copy emits a note (`site::NOTE_INSTANCE`) that
//! leads to its [`Anchor`], and notes of all loaded modules can be listed. The copy in which the ring was made
//! owns it; the others *join*: their marks go into the same slots, one slot a thread.
//!
//! Modules with marks in C and no copy of librip have a block too, which `librip.h` defines. They need no anchor: the
//! first mark of a thread hands its block to the copy that the module is linked with. Their flags, which open the way
//! to it, are found by notes too (`site::NOTE_FLAG`), and set by the owner.
//!
//! What it does not do: copies with another [`ANCHOR_ABI`] are left alone. Should they make a ring of their
//! own, the reader lists both.
//!
//! # Invariants
//!
//! * A copy joins once and for good. Its library is pinned in memory first, and so is every library whose sites are
//!   in the ring: threads' lists keep its blocks, and its PCs must not come to mean another library's code.
//! * Another thread may unload a library at any time. So anchors and flags of libraries are touched only where these
//!   are pinned ([`keep_loaded`]), or while the loader holds its list still ([`found_owner`]).

#![allow(unsafe_code, reason = "foreign statics, reached by address")]

use core::mem::transmute;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8};

use crate::arch::{self, ThreadBlock};
use crate::lock::{elsewhere, names};
use crate::modules::{self, Detail, LoadedModule};
use crate::{sys, thread};

/// Changes when [`Anchor`] or `ThreadBlock` does.
const ANCHOR_ABI: u64 = 0x7269_7061_6e63_0003;

/// What a copy of librip shows to the others in its process.
///
/// A thread that is cancelled in `tell`, `name_lock` or `take_part` is unwound: there is nothing to clean up in these. Their
/// types do not say so: see `sys::with_signals_blocked`.
#[repr(C)]
struct Anchor {
    /// [`ANCHOR_ABI`].
    abi: u64,
    /// The copy that owns the ring, or null.
    owner: AtomicPtr<Anchor>,
    /// In the owner: gives a block of the calling thread a cursor.
    attach: extern "C" fn(&ThreadBlock),
    /// Makes this copy use another's ring.
    join: extern "C" fn(&'static Anchor),
    /// In the owner: registers the modules that have come since.
    refresh: extern "C" fn(),
    /// In the owner: something about a lock that concerns other threads, `elsewhere::TOLD_*`.
    tell: extern "C" fn(what: u32, lock: u64),
    /// In the owner: names a lock; the name is this many bytes.
    name_lock: extern "C" fn(lock: u64, name: *const u8, len_bytes: usize),
    /// In the owner: the calling thread gives its slot back, or (true) will have one again.
    take_part: extern "C" fn(takes_part: bool),
}

const _: () = assert!(core::mem::offset_of!(Anchor, abi) == 0);

static ANCHOR: Anchor = Anchor {
    abi: ANCHOR_ABI,
    owner: AtomicPtr::new(ptr::null_mut()),
    attach: attach_here,
    join,
    refresh,
    // SAFETY: the types differ in whether callers expect unwinding. Panics do not happen there, and callers have nothing to
    // clean up.
    tell: unsafe { transmute::<extern "C-unwind" fn(u32, u64), extern "C" fn(u32, u64)>(told) },
    // SAFETY: as above.
    name_lock: unsafe {
        transmute::<extern "C-unwind" fn(u64, *const u8, usize), extern "C" fn(u64, *const u8, usize)>(named)
    },
    // SAFETY: as above.
    take_part: unsafe { transmute::<extern "C-unwind" fn(bool), extern "C" fn(bool)>(take_part_here) },
};

core::arch::global_asm!(
    ".pushsection .note.librip,\"aR\",%note",
    ".balign 4",
    ".4byte 7, 4, 2",
    ".asciz \"librip\"",
    ".balign 4",
    ".4byte {anchor} - .",
    ".popsection",
    anchor = sym ANCHOR,
);

/// Gives `block`, the calling thread's block of this copy, a cursor. Called with signals blocked.
pub(crate) fn attach(block: &ThreadBlock) {
    if let Some(owner) = owner() {
        (owner.attach)(block);
    }
}

/// Whether this copy records in a ring, its own or another's.
pub(crate) fn is_recording() -> bool {
    owner().is_some()
}

/// Makes this copy the owner of a ring that is ready, and lets all modules record in it.
pub(crate) fn own() {
    // Of a library that runs this very code, and so is there. It fails for want of memory only.
    pin_here();
    set_owner(&ANCHOR);
    // From here on modules that are loaded register by themselves; those that came a moment before have not.
    refresh();
}

/// Joins a ring that another copy has made already; says whether there is one.
pub(crate) fn join_existing() -> bool {
    found_owner().is_some_and(join_here)
}

/// All modules that are loaded, the executable first: libraries that have marks stay loaded from here on, and one that
/// cannot be kept is not among them.
pub(crate) fn keep_loaded() -> Vec<LoadedModule> {
    let mut kept = Vec::new();
    loop {
        let mut modules = modules::loaded(Detail::Sites);
        let stays = |module: &LoadedModule, kept: &[_]| {
            module.is_executable || !module.has_marks() || kept.contains(&module.identity())
        };
        let before = kept.len();
        for module in &modules {
            if !stays(module, &kept) && pin(module) {
                kept.push(module.identity());
            }
        }
        // What was unloaded before it was pinned, and may be loaded elsewhere by now, is looked at again.
        if kept.len() == before {
            modules.retain(|module| stays(module, &kept));
            return modules;
        }
    }
}

/// Registers modules that were loaded since, in whichever copy owns the ring; not if there is no memory for that.
pub(crate) fn refresh_modules() {
    if let Some(owner) = owner()
        && sys::has_memory()
    {
        (owner.refresh)();
    }
}

/// Tells the copy that owns the ring something about a lock. Safe in a signal handler.
pub(crate) fn tell(what: u32, lock: u64) {
    if let Some(owner) = owner() {
        (owner.tell)(what, lock);
    }
}

/// Names a lock in the ring; an empty name takes it away.
pub(crate) fn name_lock(lock: u64, name: &[u8]) {
    if let Some(owner) = owner() {
        (owner.name_lock)(lock, name.as_ptr(), name.len());
    }
}

/// Ends the calling thread's ownership of its slot; or lets its next mark claim one, if that was done before.
#[cfg(feature = "c")]
pub(crate) fn take_part(takes_part: bool) {
    if let Some(owner) = owner() {
        (owner.take_part)(takes_part);
    }
}

/// Runs when a module with marks in C is loaded. This copy may be part of it, and [`loaded`] has not run yet.
#[cfg(feature = "c")]
pub(crate) fn module_loaded() {
    if is_recording() || join_existing() {
        refresh_modules();
    }
}

/// Runs when the module that this copy is part of is loaded: before `main`, or in `dlopen`.
pub(crate) extern "C" fn loaded() {
    thread::watch_forks();
    if !is_recording() && join_existing() {
        refresh_modules();
    }
}

impl Anchor {
    fn owner(&self) -> Option<&'static Anchor> {
        // ORDERING: acquire, pairs with the release in `set_owner`: the owner's ring is ready.
        let owner = self.owner.load(Acquire);
        // SAFETY: null, or an anchor of a module that is pinned or is the executable.
        unsafe { owner.as_ref() }
    }
}

fn owner() -> Option<&'static Anchor> {
    ANCHOR.owner()
}

fn set_owner(owner: &'static Anchor) {
    // ORDERING: release, pairs with the acquire in `Anchor::owner`.
    ANCHOR.owner.store(ptr::from_ref(owner).cast_mut(), Release);
    arch::activate();
}

/// The anchors of other copies in this module that speak this one's language.
///
/// # Safety
///
/// The module stays loaded as long as the anchors are used.
unsafe fn others(module: &LoadedModule) -> impl Iterator<Item = &'static Anchor> {
    module.anchors.iter().filter_map(|&address| {
        let anchor = ptr::with_exposed_provenance::<Anchor>(address as usize);
        if anchor == &raw const ANCHOR || !anchor.is_aligned() {
            return None;
        }
        // SAFETY: the note of a loaded module says that an anchor is there, and `modules` checked that the
        // address is in that module. Anchors of all versions begin with the ABI number.
        let abi = unsafe { anchor.cast::<u64>().read() };
        // SAFETY: the number says that it is an anchor of this very layout, and the caller that it stays.
        (abi == ANCHOR_ABI).then(|| unsafe { &*anchor })
    })
}

/// The owner of a ring that another copy has made.
fn found_owner() -> Option<&'static Anchor> {
    let mut owner = None;
    modules::for_each(Detail::Copies, |module| {
        // SAFETY: the loader holds its list still, so that the module is there; what is kept is an owner, which is
        // pinned or is the executable.
        owner = owner.or_else(|| unsafe { others(&module) }.find_map(Anchor::owner));
    });
    owner
}

extern "C" fn attach_here(block: &ThreadBlock) {
    thread::attach(block);
}

extern "C" fn join(owner: &'static Anchor) {
    if !is_recording() {
        join_here(owner);
    }
}

fn join_here(owner: &'static Anchor) -> bool {
    let is_pinned = pin_here();
    if is_pinned {
        set_owner(owner);
    }
    is_pinned
}

extern "C" fn refresh() {
    if let Some(ring) = thread::ring() {
        let modules = keep_loaded();
        modules::register(ring, &modules);
        for module in modules.iter().filter(|module| module.has_marks()) {
            // SAFETY: `keep_loaded` has pinned it, or it is the executable. That took the loader's lock, so that the
            // functions that the anchor leads to are relocated.
            for other in unsafe { others(module) } {
                (other.join)(&ANCHOR);
            }
            open_way(module);
        }
    }
}

extern "C-unwind" fn told(what: u32, lock: u64) {
    if let Some(ring) = thread::ring() {
        elsewhere::told(ring, what, lock);
    }
}

extern "C-unwind" fn named(lock: u64, name: *const u8, len_bytes: usize) {
    if let Some(ring) = thread::ring() {
        // SAFETY: `name_lock`, here or in another copy, passes a slice.
        names::write(ring, lock, unsafe { core::slice::from_raw_parts(name, len_bytes) });
    }
}

extern "C-unwind" fn take_part_here(takes_part: bool) {
    if takes_part {
        thread::come_back();
    } else {
        thread::leave();
    }
}

/// Opens the way into the library to a module's marks in C.
fn open_way(module: &LoadedModule) {
    for &flag in &module.flags {
        let flag = ptr::with_exposed_provenance_mut::<u8>(flag as usize);
        // SAFETY: the note of a loaded module says that its flag is there, and `modules` checked that the address is in
        // that module, which `refresh` has from `keep_loaded`: it is pinned, or is the executable.
        let flag = unsafe { AtomicU8::from_ptr(flag) };
        // ORDERING: relaxed: who sees it calls this library, which looks at its own flag.
        flag.store(1, Relaxed);
    }
}

/// Keeps the library that this copy is part of in memory for good; says whether it stays.
fn pin_here() -> bool {
    let here = (&raw const ANCHOR).addr() as u64;
    modules::loaded(Detail::Copies).iter().find(|module| module.contains(here)).is_none_or(pin)
}

/// Keeps a library in memory for good, if it is still there; an executable stays anyway. Says whether a library of this
/// name stays: it may have been unloaded meanwhile, and loaded to another place.
fn pin(module: &LoadedModule) -> bool {
    // Who cannot load a library cannot unload one either.
    let Some(dlopen) = arch::dlopen().filter(|_| !module.is_executable) else { return true };
    let Ok(path) = std::ffi::CString::new(module.path.clone()) else { return false };
    // SAFETY: the path is terminated; NOLOAD only finds what is loaded, NODELETE keeps it.
    let handle = unsafe { dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    !handle.is_null()
}
