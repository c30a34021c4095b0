//! Makes a ring: the file, its mapping, its control block and its header.
//!
//! If a step fails, it undoes the steps before and returns an [`InitError`]; the program runs on without a ring. It
//! does not register modules, and does not open the ring to threads.

#![allow(unsafe_code, reason = "the header is written through the mapping")]

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Release;
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use librip_format::{
    BYTE_ORDER, Header, INCIDENTS_MAX, Incident, MAGIC, SETTING_SLOTS_LIMITED, VERSION_MAJOR, VERSION_MINOR,
};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::config::Builder;
use super::error::InitError;
use super::identity::{FileId, TimeNamespace, boot_id, start_time_ticks};
use crate::arch;
use crate::process::clock::Calibration;
use crate::process::loader::FoundModule;
use crate::ring::geometry::{Demand, Limits};
use crate::ring::{Control, Geometry, Ring, Table};
use crate::sys;

/// A ring that was made, and is not published yet.
pub(crate) struct Made {
    pub(crate) ring: &'static Ring,
    pub(crate) calibration: Calibration,
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

/// Makes a ring with room for `modules` and for more.
pub(crate) fn create(wish: &Builder, modules: &[FoundModule]) -> Result<Made, InitError> {
    let (file, path) = super::file::create(wish.path.as_deref())?;
    match build(wish, &file, &path, modules) {
        Ok((ring, calibration)) => Ok(Made { ring: Box::leak(Box::new(ring)), calibration, file, path }),
        Err(error) => {
            // We created the file a moment ago.
            let _ = std::fs::remove_file(&path);
            Err(error)
        }
    }
}

impl Made {
    /// Makes the file a ring for readers.
    pub(crate) fn publish(&self) {
        // ORDERING: release: a reader that sees the magic sees a whole ring.
        self.ring.header().magic.store(u64::from_ne_bytes(MAGIC), Release);
    }
}

fn build(
    wish: &Builder,
    file: &File,
    path: &Path,
    modules: &[FoundModule],
) -> Result<(Ring, Calibration), InitError> {
    let map_error = |source: io::Error| InitError::Map { path: path.to_owned(), source };
    let no_room = |needed_bytes| InitError::NoRoom { path: path.to_owned(), needed_bytes };
    let (geometry, is_limited) = Geometry::plan(&demand(wish, modules), &limits(file)).map_err(no_room)?;
    // `plan` keeps the length below RLIMIT_FSIZE. Above it, this call would raise SIGXFSZ.
    file.set_len(geometry.file_len_bytes).map_err(map_error)?;
    let map = memmap2::MmapOptions::new()
        .len(geometry.file_len_bytes as usize)
        .no_reserve_swap()
        .map_raw(file)
        .map_err(map_error)?;
    let base = NonNull::new(map.as_mut_ptr()).ok_or_else(|| map_error(io::ErrorKind::Other.into()))?;
    if sys::reserve(base.as_ptr(), size_of::<Header>(), geometry.page_len_bytes).is_err() {
        let slots = geometry.extent(Table::Slots);
        return Err(no_room(slots.offset + slots.entry_len_bytes));
    }
    let control = Control::new(&geometry).map_err(map_error)?;
    let calibration = Calibration::measure(wish.clock);
    let limited = if is_limited { SETTING_SLOTS_LIMITED } else { 0 };
    let header = header(&geometry, &calibration, wish.settings_ignored | limited, file);
    // SAFETY: the start of a new mapping, which is reserved above, and to which no other reference exists.
    unsafe { base.cast::<Header>().write(header) };
    // The mapping stays for good, see `Ring`.
    std::mem::forget(map);
    // SAFETY: the mapping has this length and is leaked, and `control` was made for this geometry.
    let ring = unsafe { Ring::new(base, geometry, control) };
    Ok((ring, calibration))
}

fn demand(wish: &Builder, modules: &[FoundModule]) -> Demand {
    let modules = modules.iter().map(|found| &found.module);
    Demand {
        words: wish.words,
        slots: u64::from(wish.slots),
        modules: modules.len() as u64,
        sites: modules.clone().map(|module| module.sites.len() as u64).sum(),
        text_len_bytes: modules.map(|module| (module.path.len() + module.texts.len()) as u64).sum(),
    }
}

fn limits(file: &File) -> Limits {
    let limit = |resource| match getrlimit(resource) {
        Ok((soft, _)) if soft != RLIM_INFINITY => soft,
        _ => u64::MAX,
    };
    /// If the address space is limited, the program needs it: the ring takes at most one part in this many.
    const ADDRESS_SPACE_PART: u64 = 16;
    // Threads that come and go use one slot after the other, in the end all of them. The slots must leave a part of the
    // file system to the program's own shared memory: of the 64 MiB that a container has by default, slots take 48.
    let memory_bytes = nix::sys::statvfs::fstatvfs(file)
        .ok()
        .filter(|status| status.blocks() > 0)
        .map_or(u64::MAX, |status| status.blocks_available() * status.fragment_size() / 4 * 3);
    Limits {
        memory_bytes,
        file_len_bytes: limit(Resource::RLIMIT_FSIZE).min(limit(Resource::RLIMIT_AS) / ADDRESS_SPACE_PART),
        // SAFETY: asks for a constant.
        page_len_bytes: unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64,
    }
}

/// The header of a ring in which nothing is recorded, without the magic.
fn header(geometry: &Geometry, calibration: &Calibration, settings_ignored: u32, file: &File) -> Header {
    let mut host = [0; 64];
    if let Ok(name) = nix::unistd::gethostname() {
        let name = name.as_encoded_bytes();
        let len = name.len().min(host.len());
        host[..len].copy_from_slice(&name[..len]);
    }
    let time = TimeNamespace::own();
    let file_id = FileId::of(file).unwrap_or_default();
    Header {
        magic: 0.into(),
        byte_order: BYTE_ORDER,
        version_major: VERSION_MAJOR,
        version_minor: VERSION_MINOR,
        header_len_bytes: size_of::<Header>() as u32,
        machine: arch::MACHINE,
        page_len_bytes: geometry.page_len_bytes as u32,
        uid: nix::unistd::getuid().as_raw(),
        boot_id: boot_id().unwrap_or_default(),
        pid: sys::pid(),
        // SAFETY: asks for a constant.
        ticks_per_second: unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u32,
        start_time_ticks: start_time_ticks().unwrap_or(0),
        pid_namespace: sys::pid_namespace(),
        created_realtime_ns: sys::clock_ns(libc::CLOCK_REALTIME),
        created_boottime_ns: calibration.base.boottime_ns,
        file_system: nix::sys::statfs::fstatfs(file).map_or(0, |status| status.filesystem_type().0 as u64),
        host,
        settings_ignored,
        slot_words: geometry.slot_words,
        slot_len_bytes: geometry.extent(Table::Slots).entry_len_bytes,
        file_len_bytes: geometry.file_len_bytes,
        reserved: 0,
        regions: geometry.regions(),
        clock_level: calibration.level,
        clock_source: calibration.source,
        clock_shift: calibration.shift,
        reserved_clock: 0,
        clock_base_ticks: calibration.base.ticks,
        clock_base_boottime_ns: calibration.base.boottime_ns,
        clock_ticks_per_kilosecond: calibration.rate.into(),
        threads_refused_full: 0.into(),
        threads_refused_memory: 0.into(),
        threads_without_exit: 0.into(),
        slots_reused: 0.into(),
        metadata_refused: 0.into(),
        held_overflows: 0.into(),
        releases_unmatched: 0.into(),
        exit_state: 0.into(),
        exit_status: 0.into(),
        exited_boottime_ns: 0.into(),
        forks: 0.into(),
        recent_children: [const { AtomicU32::new(0) }; 15],
        lock_names_refused: 0.into(),
        time_namespace: time.inode,
        boottime_offset_ns: time.boottime_offset_ns,
        file_device: file_id.device,
        file_inode: file_id.inode,
        incidents: [const { unused_incident() }; INCIDENTS_MAX],
    }
}

const fn unused_incident() -> Incident {
    Incident {
        kind: AtomicU32::new(0),
        count: AtomicU32::new(0),
        pid: AtomicU32::new(0),
        tid: AtomicU32::new(0),
        lock: AtomicU64::new(0),
        caller: AtomicU64::new(0),
        boottime_ns: AtomicU64::new(0),
    }
}
