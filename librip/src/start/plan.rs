//! The plan of a ring: everything that can be known before the ring is made.
//!
//! Planning is ordinary code: it reads the environment, and allocates. Making the ring ([`create`](super::create))
//! needs nothing but the plan and system calls, so that it can happen at the process's first mark, wherever that is.

#![allow(unsafe_code, reason = "system calls")]

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use librip_format::{
    CHANNELS_MAX, KIND_EVENT, KIND_SPAN_BEGIN, KIND_TASK, ParsedSite, SITE_CHANNEL, SPANS_MAX, SlotParts,
};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::config::{Builder, DEFAULT_SLOTS, DEFAULT_SLOTS_WITH_TASKS};
use super::error::InitError;
use super::file::Place;
use crate::process::clock::Calibration;
use crate::process::clock::Clock;
use crate::process::exit::Keep;
use crate::process::loader::FoundModule;
use crate::process::polls::Polls;
use crate::process::usage::Usage;
use crate::ring::Geometry;
use crate::ring::geometry::{Demand, Limits};
use crate::ring::module_registry::LoadedModule;
use crate::sys;

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) wish: Builder,
    pub(crate) place: Place,
    pub(crate) geometry: Geometry,
    /// Limits made the ring smaller than was wished.
    pub(crate) is_limited: bool,
    pub(crate) calibration: Calibration,
    pub(crate) host: [u8; 64],
    /// How long a page fault takes, ns; 0 if nobody wants to know.
    pub(crate) fault_ns: u64,
}

impl Plan {
    /// Plans a ring with room for `modules` and for more.
    pub(crate) fn new(wish: Builder, modules: &[FoundModule]) -> Result<Plan, InitError> {
        let place = Place::find(wish.path.as_deref())?;
        place.clean_up(wish.keep != Keep::Always);
        let (geometry, is_limited) = Geometry::plan(&demand(&wish, modules), &limits(&place))
            .map_err(|needed_bytes| InitError::NoRoom { path: place.path(sys::pid()), needed_bytes })?;
        let calibration = Calibration::measure(wish.clock);
        let fault_ns = if wish.usage == Usage::Off { 0 } else { fault_ns() };
        Ok(Plan { wish, place, geometry, is_limited, calibration, host: host(), fault_ns })
    }
}

fn demand(wish: &Builder, modules: &[FoundModule]) -> Demand {
    let modules = modules.iter().map(|found| &found.module);
    let has_tasks = has_tasks(modules.clone());
    Demand {
        slot: SlotParts {
            words: wish.words,
            spans: if has_spans(modules.clone()) || EXPECTS_SPANS.load(Relaxed) { SPANS_MAX } else { 0 },
            channels: if has_channels(modules.clone()) { CHANNELS_MAX as u32 } else { 0 },
            has_times: wish.clock >= Clock::Ticks,
            has_task: has_tasks,
        },
        has_polls: has_tasks && wish.polls != Polls::Off && wish.clock != Clock::Off,
        slots: u64::from(wish.slots.unwrap_or(if has_tasks {
            DEFAULT_SLOTS_WITH_TASKS
        } else {
            DEFAULT_SLOTS
        })),
        modules: modules.len() as u64,
        sites: modules.clone().map(|module| module.sites.len() as u64).sum(),
        text_len_bytes: modules.map(|module| (module.path.len() + module.texts.len()) as u64).sum(),
    }
}

/// Whether spans may begin at places that no module has.
static EXPECTS_SPANS: AtomicBool = AtomicBool::new(false);

/// From now on, a ring has room for open spans.
#[cfg(feature = "capi")]
pub(crate) fn expect_spans() {
    // ORDERING: relaxed: the thread that makes the ring has called this before, or its spans are counted as too many.
    EXPECTS_SPANS.store(true, Relaxed);
}

/// Whether any module has spans. Without them, the slots need no room for open ones.
fn has_spans<'a>(modules: impl Iterator<Item = &'a LoadedModule>) -> bool {
    modules.flat_map(|module| &module.sites).any(|site| site.kind == KIND_SPAN_BEGIN)
}

/// Whether any module has tasks.
fn has_tasks<'a>(modules: impl Iterator<Item = &'a LoadedModule>) -> bool {
    modules.flat_map(|module| &module.sites).any(|site| site.kind == KIND_TASK)
}

/// Whether any module has events in channels. Without them, there need be no room for histories.
fn has_channels<'a>(modules: impl Iterator<Item = &'a LoadedModule>) -> bool {
    let is_in_channel = |site: &ParsedSite| {
        matches!(site.kind, KIND_EVENT | KIND_SPAN_BEGIN) && site.flags & SITE_CHANNEL != 0
    };
    modules.flat_map(|module| &module.sites).any(is_in_channel)
}

fn limits(place: &Place) -> Limits {
    let limit = |resource| match getrlimit(resource) {
        Ok((soft, _)) if soft != RLIM_INFINITY => soft,
        _ => u64::MAX,
    };
    /// If the address space is limited, the program needs it: the ring takes at most one part in this many.
    const ADDRESS_SPACE_PART: u64 = 16;
    // Threads that come and go use one slot after the other, in the end all of them. The ring leaves half of what is
    // free to the program's own shared memory: of the 64 MiB that a container has by default, the ring takes 32. It
    // takes nothing of 64 KiB, because half of them are too little.
    let memory_bytes = nix::sys::statvfs::statvfs(place.directory())
        .ok()
        .filter(|status| status.blocks() > 0)
        .map_or(u64::MAX, |status| status.blocks_available() * status.fragment_size() / 2);
    Limits {
        memory_bytes,
        file_len_bytes: limit(Resource::RLIMIT_FSIZE).min(limit(Resource::RLIMIT_AS) / ADDRESS_SPACE_PART),
        // SAFETY: asks for a constant.
        page_len_bytes: unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64,
    }
}

/// How long a page fault takes that gives the process a new page, ns; 0 if that is not known. Takes about 100
/// microseconds.
fn fault_ns() -> u64 {
    /// The batch that took the least time counts: others were interrupted.
    const BATCHES: usize = 4;
    const PAGES: usize = 16;
    // SAFETY: asks for a constant.
    let page_len_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let len = BATCHES * PAGES * page_len_bytes;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let begin = unsafe { libc::mmap(core::ptr::null_mut(), len, protection, flags, -1, 0) };
    if begin == libc::MAP_FAILED {
        return 0;
    }
    // SAFETY: the mapping above. If the kernel has no huge pages, nothing changes.
    unsafe { libc::madvise(begin, len, libc::MADV_NOHUGEPAGE) };
    let batch_ns = |batch: usize| {
        let begun_ns = sys::clock_ns(libc::CLOCK_MONOTONIC);
        for page in batch * PAGES..(batch + 1) * PAGES {
            // SAFETY: within the mapping above, which nobody else knows.
            unsafe { begin.cast::<u8>().wrapping_add(page * page_len_bytes).write_volatile(1) };
        }
        sys::clock_ns(libc::CLOCK_MONOTONIC).saturating_sub(begun_ns)
    };
    let least_ns = (0..BATCHES).map(batch_ns).min().unwrap_or(0);
    // SAFETY: the mapping above, which is not used any more.
    unsafe { libc::munmap(begin, len) };
    least_ns / PAGES as u64
}

/// The machine's name, cut and padded with zeros.
fn host() -> [u8; 64] {
    let mut host = [0; 64];
    if let Ok(name) = nix::unistd::gethostname() {
        let name = name.as_encoded_bytes();
        let len = name.len().min(host.len());
        host[..len].copy_from_slice(&name[..len]);
    }
    host
}
