//! Makes a ring by its plan: the file, its mapping, its control block and its header.
//!
//! If a step fails, it undoes the steps before; the program runs on without a ring. It does not register modules, and
//! does not open the ring to threads. It allocates nothing and is safe in a signal handler.

#![allow(unsafe_code, reason = "the header is written through the mapping")]

use core::sync::atomic::Ordering::Release;
use core::sync::atomic::{AtomicU32, AtomicU64};

use librip_format::{
    BYTE_ORDER, HANDED_OVER_MAX, Header, INCIDENTS_MAX, Incident, MAGIC, SAMPLED_TIMES,
    SETTING_SLOTS_LIMITED, TASK_LEN_BYTES, VERSION_MAJOR, VERSION_MINOR, header_checksum,
};

use super::file::{Name, Naming, NewFile};
use super::identity::{TimeNamespace, boot_id, start_time_ticks};
use super::plan::Plan;
use crate::arch;
use crate::process::usage::Usage;
use crate::ring::{Control, Ring, Table};
use crate::sys;
use crate::sys::file::{Errno, File, FileId, unmap};

/// A ring that was made. Its file may have no name yet.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) ring: Ring,
    file: NewFile,
    /// The process whose ring it is.
    pid: u32,
}

/// Why a ring could not be made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// The file could not be created.
    Create(Errno),
    /// The file could not be mapped.
    Map(Errno),
    /// There is no room for so many bytes.
    NoRoom(u64),
}

/// Makes the ring of process `pid`. If its file has a path already, it is in `name`.
pub(crate) fn make(plan: &Plan, pid: u32, naming: Naming, name: &mut Name) -> Result<Made, Failure> {
    let file = NewFile::create(&plan.place, pid, naming, name).map_err(Failure::Create)?;
    match build(plan, pid, &file) {
        Ok(ring) => Ok(Made { ring, file, pid }),
        Err(failure) => {
            file.discard(name);
            Err(failure)
        }
    }
}

impl Made {
    /// Makes the file a ring for readers, and gives it its name, which is in `name` then.
    ///
    /// # Errors
    ///
    /// The file could not get its name. Nothing is left of the ring.
    pub(crate) fn publish(mut self, plan: &Plan, name: &mut Name) -> Result<(Ring, FileId), Failure> {
        // ORDERING: release: a reader that sees the magic sees a whole ring.
        self.ring.header().magic.store(u64::from_ne_bytes(MAGIC), Release);
        match self.file.complete(&plan.place, self.pid, name) {
            Ok(id) => {
                // Map it by its name, because `/proc/PID/maps` shows the name that a file had when it was opened.
                if let Ok(named) = File::open(name.as_c_str(), libc::O_RDWR)
                    && named.id() == Ok(id)
                {
                    self.ring.map_again(&named);
                }
                Ok((self.ring, id))
            }
            Err(error) => {
                self.ring.discard();
                Err(Failure::Create(error))
            }
        }
    }
}

fn build(plan: &Plan, pid: u32, new: &NewFile) -> Result<Ring, Failure> {
    let geometry = plan.geometry;
    // `Geometry::plan` keeps the length below RLIMIT_FSIZE. Above it, this call would raise SIGXFSZ.
    new.file.set_len(geometry.file_len_bytes).map_err(Failure::Map)?;
    let len = geometry.file_len_bytes as usize;
    let base = new.file.map(len).map_err(Failure::Map)?;
    let fail = |failure| {
        // SAFETY: mapped above with this length. Nobody else knows it.
        unsafe { unmap(base, len) };
        Err(failure)
    };
    if sys::reserve(base.as_ptr(), size_of::<Header>(), geometry.page_len_bytes).is_err() {
        let slots = geometry.extent(Table::Slots);
        return fail(Failure::NoRoom(slots.offset + slots.entry_len_bytes));
    }
    let control = match Control::new(&geometry, plan.wish.usage != Usage::Off) {
        Ok(control) => control,
        Err(error) => return fail(Failure::Map(error)),
    };
    let mut header = header(plan, pid, new);
    let start = (&raw const header).cast::<u8>();
    // SAFETY: a part of our own header. What the checksum covers has no padding: its fields follow one another.
    header.checksum =
        header_checksum(|at, len| unsafe { core::slice::from_raw_parts(start.wrapping_add(at), len) });
    // SAFETY: the start of a new mapping, which is reserved above, and to which no other reference exists.
    unsafe { base.cast::<Header>().write(header) };
    // SAFETY: the mapping has this length and stays, and `control` was made for this geometry.
    Ok(unsafe { Ring::new(base, geometry, control) })
}

/// The header of a ring in which nothing is recorded, without the magic.
fn header(plan: &Plan, pid: u32, new: &NewFile) -> Header {
    let Plan { geometry, calibration, .. } = plan;
    let time = TimeNamespace::own();
    let file_id = new.file.id().unwrap_or_default();
    let limited = if plan.is_limited { SETTING_SLOTS_LIMITED } else { 0 };
    Header {
        magic: 0.into(),
        byte_order: BYTE_ORDER,
        version_major: VERSION_MAJOR,
        version_minor: VERSION_MINOR,
        header_len_bytes: size_of::<Header>() as u32,
        machine: arch::MACHINE,
        page_len_bytes: geometry.page_len_bytes as u32,
        uid: sys::uid(),
        boot_id: boot_id().unwrap_or_default(),
        pid,
        // SAFETY: asks for a constant.
        ticks_per_second: unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as u32,
        start_time_ticks: start_time_ticks(pid).unwrap_or(0),
        pid_namespace: sys::pid_namespace(),
        created_realtime_ns: sys::clock_ns(libc::CLOCK_REALTIME),
        created_boottime_ns: sys::boottime_ns(),
        file_system: new.file.file_system(),
        host: plan.host,
        settings_ignored: plan.wish.settings_ignored | limited,
        slot_words: geometry.slot.words,
        slot_len_bytes: geometry.extent(Table::Slots).entry_len_bytes,
        file_len_bytes: geometry.file_len_bytes,
        checksum: 0,
        regions: geometry.regions(),
        clock_level: calibration.level,
        clock_source: calibration.source,
        clock_shift: calibration.shift,
        span_entries: geometry.slot.spans,
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
        handed_over_places: [const { AtomicU64::new(0) }; HANDED_OVER_MAX],
        handed_over_locks: [const { AtomicU64::new(0) }; HANDED_OVER_MAX],
        threads_refused_filter: 0.into(),
        span_overflows: 0.into(),
        captures_refused: 0.into(),
        channel_entries: geometry.slot.channels,
        sampled_times: if geometry.slot.has_times { SAMPLED_TIMES as u32 } else { 0 },
        task_len_bytes: if geometry.slot.has_task { TASK_LEN_BYTES as u32 } else { 0 },
        usage_level: plan.wish.usage.level(),
        channels_refused: 0.into(),
        tasks_refused: 0.into(),
        fault_ns: plan.fault_ns.into(),
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
