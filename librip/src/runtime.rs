//! The recorder as a whole: the anchor through which instances of librip in one process meet, starting, and the
//! constructor.
//!
//! Only this file imports all layers. It decides the order of steps, and leaves the steps to the other files.
//! `requests` has what other instances ask for.
//!
//! # How instances meet
//!
//! Each instance emits a note (`librip_format::NOTE_INSTANCE`) that leads to its [`Anchor`], and the notes of all
//! loaded modules can be listed. The instance in which the ring was made owns it. The others *join*: their marks go
//! into the same slots.
//!
//! Modules with marks in C and no instance of librip have a block and a state too, which `librip.h` defines. They need
//! no anchor: the first mark of a thread hands its block to the instance that the module is linked with. Notes lead to
//! their states (`librip_format::NOTE_MODULE`), and the owner opens them.
//!
//! Instances with another `ANCHOR_ABI` are ignored. If they make a ring of their own, the reader lists both.
//!
//! # Invariants
//!
//! * An instance joins once and for good. Its library is pinned in memory first, and so is every library whose sites
//!   are in the ring: threads' lists keep its blocks, and its PCs must not come to mean another library's code.
//! * Another thread may unload a library at any time. So anchors and states of libraries are touched only if these are
//!   pinned ([`loader::keep_new`]), or while the loader keeps its list locked ([`found_owner`]).

#![allow(unsafe_code, reason = "reaches statics of other modules by address")]

mod requests;

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::arch::{self, ModuleState, Settings, ThreadBlock};
use crate::lock::stack;
use crate::process::exit::RingFile;
use crate::process::instance::{self, ANCHOR_ABI, Anchor};
use crate::process::loader::{self, Detail, FoundModule};
use crate::process::{channels::Channels, clock, current, exit, fork, image, polls, sampled, sigbus, thread};
use crate::ring::module_registry::{self, LoadedModule};
use crate::ring::{Ring, Table};
use crate::start::config::Builder;
use crate::start::create::{self, Failure};
use crate::start::error::InitError;
use crate::start::file::{Name, Naming};
use crate::start::found::FoundModules;
use crate::start::plan::Plan;
use crate::sys;
use crate::sys::written::{Scratch, Written};

static ANCHOR: Anchor = Anchor {
    abi: ANCHOR_ABI,
    owner: AtomicPtr::new(ptr::null_mut()),
    mask: AtomicU64::new(0),
    clock: AtomicU32::new(0),
    is_starting: AtomicU32::new(0),
    has_left_locks: AtomicU32::new(0),
    has_lock_names: AtomicU32::new(0),
    attach,
    join,
    refresh,
    request: requests::request,
    note_incident: requests::note_incident,
    name_lock: requests::name_lock,
    enter_call: requests::enter_call,
    enter_text: requests::enter_text,
    channels: Channels::none(),
    enter_channel: requests::enter_channel,
    begin_history: requests::begin_history,
    enter_site: requests::enter_site,
    tasks: requests::TASKS,
    set_participation: requests::set_participation,
    measure: requests::measure,
};

arch::define_entry!(enter_block, loaded);

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

/// Whether a thread of this process is starting to record.
static IS_STARTING: AtomicBool = AtomicBool::new(false);

/// How long a thread waits for another one to make the ring. That takes about a millisecond.
const START_PATIENCE: Duration = Duration::from_secs(1);
/// How long it sleeps before it looks again.
const START_POLL: Duration = Duration::from_micros(100);

/// The plan of the ring.
static PLAN: Written<Plan> = Written::new();

/// The path of the ring, while it is made and afterwards.
static PATH: Scratch<Name> = Scratch::new(Name::new());

/// The modules that are to be registered in the ring.
static MODULES: FoundModules = FoundModules::new();

pub(crate) fn ring_path() -> Option<PathBuf> {
    exit::ring_path()
}

/// When the ring is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At the start.
    Now,
    /// At the process's first mark.
    #[cfg(feature = "interpose")]
    AtFirstMark,
}

/// See [`Builder::create`].
pub(crate) fn start(wish: Builder, when: When) -> Result<(), InitError> {
    sys::with_errno_kept(|| {
        if !begin_start() {
            return Err(InitError::AlreadyRecording(None));
        }
        let result = start_alone(wish, when);
        // ORDERING: release, pairs with the acquire above: threads take turns.
        IS_STARTING.store(false, Release);
        result
    })
}

/// Whether this thread is the one that starts now.
///
/// If another thread is starting, it waits until that one has made the ring: what the caller does next is recorded
/// then. It does not wait for ever, because the other one acquires the loader's lock, and a caller in a library's
/// constructor holds that.
fn begin_start() -> bool {
    let begun = Instant::now();
    // ORDERING: acquire, pairs with the release in `start`.
    while IS_STARTING.swap(true, Acquire) {
        if begun.elapsed() > START_PATIENCE {
            return false;
        }
        std::thread::sleep(START_POLL);
    }
    true
}

/// One thread at a time calls it.
fn start_alone(wish: Builder, when: When) -> Result<(), InitError> {
    sys::prepare();
    sys::note_pid();
    stack::prepare();
    if !sys::has_memory() {
        return Err(InitError::OutOfMemory);
    }
    let wish = wish.with_process_environment()?;
    if instance::is_recording() {
        return Err(InitError::AlreadyRecording(ring_path()));
    }
    // Until this function returns, no other instance begins to make a ring.
    let _announcement = match Announcement::make() {
        Ok(announcement) => announcement,
        Err(None) => return Err(InitError::AlreadyRecording(None)),
        Err(Some(owner)) if join_here(owner) => {
            instance::refresh_modules();
            return Err(InitError::AlreadyRecording(None));
        }
        Err(Some(_)) => return Err(InitError::OutOfMemory),
    };
    let modules = loader::keep_new();
    let plan = Plan::new(wish, &modules)?;
    MODULES.add(modules);
    if when == When::Now {
        let ring = make(&plan, sys::pid()).map_err(|failure| error(&plan, failure))?;
        // SAFETY: this thread alone starts, and there is no plan yet.
        unsafe { current::install(ring) };
    }
    // SAFETY: this thread alone starts.
    open(unsafe { PLAN.set(plan) }, when);
    Ok(())
}

fn error(plan: &Plan, failure: Failure) -> InitError {
    let path = plan.place.path(sys::pid());
    match failure {
        Failure::Create(error) => InitError::Create { path, source: error.into() },
        Failure::Map(error) => InitError::Map { path, source: error.into() },
        Failure::NoRoom(needed_bytes) => InitError::NoRoom { path, needed_bytes },
    }
}

/// Makes the ring of process `pid`, with the modules that are known. It allocates nothing, and is safe in a signal
/// handler.
///
/// One thread at a time calls it.
fn make(plan: &Plan, pid: u32) -> Result<Ring, Failure> {
    make_named(plan, pid, Naming::AtTheEnd).or_else(|_| make_named(plan, pid, Naming::AtTheStart))
}

fn make_named(plan: &Plan, pid: u32, naming: Naming) -> Result<Ring, Failure> {
    // SAFETY: one thread makes the ring, and the path does not change afterwards.
    let path: &'static mut Name = unsafe { PATH.take() };
    let made = create::make(plan, pid, naming, path)?;
    module_registry::register(&made.ring, loaded_modules(MODULES.iter()));
    let (ring, id) = made.publish(plan, path)?;
    ANCHOR.channels.install(&ring);
    thread::watch_exits();
    // SAFETY: one thread makes the ring.
    unsafe { exit::install(RingFile::new(path.as_c_str(), id, plan.wish.keep, pid)) };
    Ok(ring)
}

/// Makes the ring at the process's first mark.
#[cfg(feature = "interpose")]
fn make_at_first_mark() -> Option<Ring> {
    make(PLAN.get()?, sys::pid()).ok()
}

/// Tells the other instances that this one makes a ring, so that a process has one ring. With two rings, the mask in
/// the state of a C module could be that of the other ring, whose slots may be longer.
struct Announcement;

impl Announcement {
    /// # Errors
    ///
    /// The owner of another instance's ring; `None` if another instance makes one at this moment.
    fn make() -> Result<Announcement, Option<&'static Anchor>> {
        let announcement = Announcement;
        let (mut owner, mut is_other_starting) = (None, false);
        loader::for_each(Detail::Instances, |module| {
            // ORDERING: relaxed: the loader's lock orders this iteration before or after that of any other instance.
            ANCHOR.is_starting.store(1, Relaxed);
            // SAFETY: as in `found_owner`.
            for other in unsafe { others(&module) } {
                // ORDERING: acquire, pairs with the release in `drop`. It comes before the load of the owner: see
                // there.
                is_other_starting |= other.is_starting.load(Acquire) != 0;
                owner = owner.or_else(|| owner_of(other));
            }
        });
        if owner.is_some() || is_other_starting { Err(owner) } else { Ok(announcement) }
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // ORDERING: release, pairs with the acquire in `make`: whoever sees 0 also sees the owner, which `adopt`
        // stored.
        ANCHOR.is_starting.store(0, Release);
    }
}

/// Opens a ring to all threads and modules of the process.
fn open(plan: &Plan, when: When) {
    if plan.wish.handles_sigbus {
        sigbus::install();
    }
    clock::install(&plan.calibration);
    polls::install(plan.geometry.capacity(Table::Polls) > 0);
    exit::watch();
    match when {
        When::Now => {}
        #[cfg(feature = "interpose")]
        // SAFETY: one thread starts, once.
        When::AtFirstMark => unsafe { current::plan(make_at_first_mark) },
    }
    // ORDERING: relaxed: whoever reads them has found the owner with acquire.
    ANCHOR.mask.store(u64::from(plan.geometry.slot.words) - 1, Relaxed);
    let spans = plan.geometry.slot.spans << arch::SPAN_ENTRIES_SHIFT;
    let usage = plan.wish.usage.level() << arch::USAGE_LEVEL_SHIFT;
    ANCHOR.clock.store(plan.calibration.packed() | spans | usage, Relaxed);
    // This library has marks or an anchor, so `loader::keep_new` has pinned it.
    if let Some(own) = MODULES.iter().find(|module| is_here(module)) {
        image::note(&own.data);
        image::note_code(&own.code);
    }
    instance::set_is_owner();
    adopt(&ANCHOR);
    introduce(MODULES.iter());
    // A module that is loaded from now on registers itself. One that was loaded a moment ago has found no ring.
    refresh();
}

/// Runs when the module that this instance is part of is loaded: before `main`, or in `dlopen`.
extern "C" fn loaded() {
    sys::with_errno_kept(|| {
        fork::watch();
        if !instance::is_recording() && join_existing() {
            instance::refresh_modules();
        }
    });
}

/// Runs when a module with marks in C is loaded. This instance may be part of it, and [`loaded`] may not have run yet.
#[cfg(feature = "capi")]
pub(crate) fn module_loaded() {
    if instance::is_recording() || join_existing() {
        instance::refresh_modules();
    }
}

/// `librip_enter_block_1` calls it: a mark found no cursor in this block, the calling thread's of some module, or a
/// time is due.
///
/// The thread may be cancelled here and is unwound then.
extern "C-unwind" fn enter_block(block: &ThreadBlock) {
    sys::with_errno_kept(|| {
        if !block.cursor.get().is_null() {
            return sampled::take(block);
        }
        sys::with_signals_blocked(|| {
            if let Some(owner) = instance::owner() {
                (owner.attach)(block);
            }
        });
    });
}

/// Makes `owner` the instance in whose ring this one records.
fn adopt(owner: &'static Anchor) {
    instance::set_owner(owner);
    // ORDERING: release, pairs with the acquire in `owner_of`: the owner's ring is ready.
    ANCHOR.owner.store(ptr::from_ref(owner).cast_mut(), Release);
}

/// The owner that another instance has found or is.
fn owner_of(anchor: &Anchor) -> Option<&'static Anchor> {
    // ORDERING: acquire, pairs with the release in `adopt`.
    let owner = anchor.owner.load(Acquire);
    // SAFETY: null, or an anchor of a module that is never unloaded: it is pinned, or is the executable.
    unsafe { owner.as_ref() }
}

/// Joins a ring that another instance has made already. Returns whether there is one.
fn join_existing() -> bool {
    found_owner().is_some_and(join_here)
}

/// The owner of a ring that another instance has made.
fn found_owner() -> Option<&'static Anchor> {
    let mut owner = None;
    loader::for_each(Detail::Instances, |module| {
        // SAFETY: the loader keeps its list locked, so the module stays during this call. The owner that leaves it is
        // in a module that is pinned, or is the executable.
        owner = owner.or_else(|| unsafe { others(&module) }.find_map(owner_of));
    });
    owner
}

/// The anchors of other instances in this module that have this instance's layout.
///
/// # Safety
///
/// The module stays loaded as long as the anchors are used.
unsafe fn others(module: &FoundModule) -> impl Iterator<Item = &'static Anchor> {
    module.anchors.iter().filter_map(|&address| {
        let anchor = ptr::with_exposed_provenance::<Anchor>(address as usize);
        if anchor == &raw const ANCHOR || !anchor.is_aligned() {
            return None;
        }
        // SAFETY: the note of a loaded module says that an anchor is there, and `loader` checked that the address is in
        // that module. Anchors of all versions start with the ABI number.
        let abi = unsafe { anchor.cast::<u64>().read() };
        // SAFETY: the number says that it is an anchor of this very layout, and the caller that it stays.
        (abi == ANCHOR_ABI).then(|| unsafe { &*anchor })
    })
}

extern "C" fn attach(block: &ThreadBlock) {
    sys::with_room(|| thread::attach(block));
}

extern "C" fn join(owner: &'static Anchor) {
    if !instance::is_recording() {
        join_here(owner);
    }
}

fn join_here(owner: &'static Anchor) -> bool {
    let is_pinned = pin_here();
    if is_pinned {
        adopt(owner);
    }
    is_pinned
}

/// Whether this instance is part of a module.
fn is_here(module: &FoundModule) -> bool {
    module.contains((&raw const ANCHOR).addr() as u64)
}

/// Keeps the library that this instance is part of in memory for good. Returns whether it stays.
fn pin_here() -> bool {
    let modules = loader::loaded(Detail::Instances);
    let Some(own) = modules.iter().find(|module| is_here(module)) else { return true };
    let is_pinned = own.pin();
    if is_pinned {
        image::note(&own.data);
        image::note_code(&own.code);
    }
    is_pinned
}

extern "C" fn refresh() {
    if sys::avoids_calls() {
        return;
    }
    let modules = loader::keep_new();
    introduce(modules.iter());
    if let Some(ring) = current::ring() {
        return module_registry::register(ring, loaded_modules(modules.iter()));
    }
    MODULES.add(modules);
    // Another thread may have made the ring meanwhile, from the list without these modules.
    if let Some(ring) = current::settled_ring() {
        module_registry::register(ring, loaded_modules(MODULES.iter()));
    }
}

fn loaded_modules<'a>(
    found: impl Iterator<Item = &'a FoundModule>,
) -> impl Iterator<Item = &'a LoadedModule> {
    found.map(|found| &found.module)
}

/// Tells modules with marks that this instance owns a ring.
fn introduce<'a>(modules: impl Iterator<Item = &'a FoundModule>) {
    for module in modules.filter(|module| module.has_marks()) {
        // SAFETY: `keep_new` has pinned it, or it is the executable. That took the loader's lock, so the functions that
        // the anchor leads to are relocated.
        for other in unsafe { others(module) } {
            (other.join)(&ANCHOR);
        }
        open_states(module);
    }
}

/// Lets a module's marks in C enter the library.
fn open_states(module: &FoundModule) {
    // ORDERING: relaxed: this instance is the owner, and stored them before.
    let settings = Settings { mask: ANCHOR.mask.load(Relaxed), clock: ANCHOR.clock.load(Relaxed) };
    for &state in &module.states {
        let state = ptr::with_exposed_provenance::<ModuleState>(state as usize);
        if !state.is_aligned() {
            continue;
        }
        // SAFETY: the note of a loaded module says that its state is there, and `loader` checked that the address is in
        // that module, which `refresh` has from `keep_new`: it is pinned, or is the executable. All fields are
        // atomics.
        let state = unsafe { &*state };
        // Nothing else to publish: its marks call the library, whose own state decides then.
        state.open(settings, || {});
    }
}
