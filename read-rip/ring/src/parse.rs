//! The header of a ring: identified, and its fields decoded.
//!
//! It does not check the regions that the header lists: `region_list` does. Offsets come from `librip_format` by
//! `offset_of!`: no number is typed twice.

use std::collections::HashSet;
use std::io::Read;
use std::mem::{offset_of, size_of};
use std::path::Path;

use librip_format::Header as Raw;

use super::bytes::Bytes;
use super::{
    Clock, Cut, Defect, Ending, Error, FileId, FileName, FileSystem, HandedOver, Header, IgnoredSettings,
    Machine, Region, Source, region_list,
};

/// A ring of a later minor version may have a longer header. Its first fields are the same.
const HEADER_LEN_BYTES: usize = size_of::<Raw>();
const HOST_LEN_BYTES: usize = offset_of!(Raw, settings_ignored) - offset_of!(Raw, host);

pub(super) fn header(source: &Source) -> Result<(Header, Vec<Defect>), Error> {
    let mut buffer = [0; HEADER_LEN_BYTES];
    let got = source
        .read_at(&mut buffer, 0)
        .map_err(|error| Error::Open { path: source.path().to_owned(), source: error })?;
    let bytes = Bytes(&buffer);
    let machine = identify(&bytes, got, source.path())?;
    let mut defects = Vec::from_iter(source.cut());
    let mut header = fields(&bytes, machine);
    header.read_from = source.opened();
    // What was not unpacked is not lost.
    let is_unpacked =
        !matches!(defects.as_slice(), [Defect::DecompressedPart { cut: Cut::TooLong { .. }, .. }]);
    if is_unpacked && source.len_bytes() < header.file_len_bytes {
        let (found_bytes, expected_bytes) = (source.len_bytes(), header.file_len_bytes);
        defects.push(Defect::Truncated { found_bytes, expected_bytes });
    }
    if bytes.u64(offset_of!(Raw, checksum)) != librip_format::header_checksum(|at, len| &buffer[at..at + len])
    {
        defects.push(Defect::HeaderChecksum);
    }
    match Clock::read(&bytes) {
        Ok(clock) => header.clock = clock,
        Err(defect) => defects.push(defect),
    }
    region_list::read(&bytes, &mut header, &mut defects);
    Ok((header, defects))
}

/// Whether a file is the beginning of a ring whose maker has not finished it. The maker writes the magic last, and may
/// not have written anything yet: then only the default name of a ring tells.
pub(super) fn is_unfinished(file: &std::fs::File, path: &Path) -> std::io::Result<bool> {
    let mut buffer = Vec::new();
    file.take(HEADER_LEN_BYTES as u64).read_to_end(&mut buffer)?;
    buffer.resize(HEADER_LEN_BYTES, 0);
    let bytes = Bytes(&buffer);
    let has_header = bytes.u32(offset_of!(Raw, byte_order)) == librip_format::BYTE_ORDER
        && bytes.u64(offset_of!(Raw, checksum))
            == librip_format::header_checksum(|at, len| &buffer[at..at + len]);
    let has_name = path.file_name().and_then(|name| FileName::parse(name.to_str()?)).is_some();
    Ok(bytes.u64(offset_of!(Raw, magic)) == 0 && (has_header || has_name))
}

/// Checks that this reader understands the ring: magic, version, byte order and architecture.
fn identify(bytes: &Bytes<'_>, got: usize, path: &Path) -> Result<Machine, Error> {
    let path = || path.to_owned();
    let is_whole = got >= HEADER_LEN_BYTES;
    let magic: [u8; 8] = bytes.array(offset_of!(Raw, magic));
    let byte_order = bytes.u32(offset_of!(Raw, byte_order));
    if magic != librip_format::MAGIC || got < librip_format::MAGIC.len() {
        // The recorder writes the magic last: without it, the rest of the header may be complete.
        let is_unfinished = magic == [0; 8] && byte_order == librip_format::BYTE_ORDER && is_whole;
        return Err(if is_unfinished {
            Error::Unfinished { path: path() }
        } else {
            Error::NotARing { path: path() }
        });
    }
    // Version and byte order come before all fields whose meaning they decide.
    if got >= offset_of!(Raw, header_len_bytes) {
        if byte_order == librip_format::BYTE_ORDER.swap_bytes() {
            return Err(Error::ByteOrder { path: path() });
        }
        let found = version(bytes);
        if found.0 != librip_format::VERSION_MAJOR {
            return Err(Error::Version { path: path(), found });
        }
    }
    if !is_whole {
        let (found_bytes, expected_bytes) = (got as u64, HEADER_LEN_BYTES as u64);
        return Err(Error::Short { path: path(), found_bytes, expected_bytes });
    }
    if byte_order != librip_format::BYTE_ORDER {
        return Err(Error::Header { path: path(), what: "the byte order", found: byte_order.into() });
    }
    let machine = bytes.u32(offset_of!(Raw, machine));
    Machine::from_elf(machine).ok_or_else(|| Error::Machine { path: path(), found: machine })
}

fn version(bytes: &Bytes<'_>) -> (u16, u16) {
    (bytes.u16(offset_of!(Raw, version_major)), bytes.u16(offset_of!(Raw, version_minor)))
}

/// The fields as they are, without clock and regions.
fn fields(bytes: &Bytes<'_>, machine: Machine) -> Header {
    Header {
        version: version(bytes),
        machine,
        uid: bytes.u32(offset_of!(Raw, uid)),
        boot_id: bytes.array(offset_of!(Raw, boot_id)),
        pid: bytes.u32(offset_of!(Raw, pid)),
        pid_namespace: bytes.u64(offset_of!(Raw, pid_namespace)),
        start_time_ticks: bytes.u64(offset_of!(Raw, start_time_ticks)),
        ticks_per_second: bytes.u32(offset_of!(Raw, ticks_per_second)),
        created_realtime_ns: bytes.u64(offset_of!(Raw, created_realtime_ns)),
        created_boottime_ns: bytes.u64(offset_of!(Raw, created_boottime_ns)),
        file_system: FileSystem::from(bytes.u64(offset_of!(Raw, file_system))),
        host: bytes.text(offset_of!(Raw, host), HOST_LEN_BYTES),
        settings_ignored: IgnoredSettings::from_bits(bytes.u32(offset_of!(Raw, settings_ignored))),
        slot_words: bytes.u32(offset_of!(Raw, slot_words)),
        span_entries: bytes.u32(offset_of!(Raw, span_entries)),
        slot_len_bytes: bytes.u64(offset_of!(Raw, slot_len_bytes)),
        file_len_bytes: bytes.u64(offset_of!(Raw, file_len_bytes)),
        threads_refused_full: bytes.u64(offset_of!(Raw, threads_refused_full)),
        threads_refused_memory: bytes.u64(offset_of!(Raw, threads_refused_memory)),
        threads_refused_filter: bytes.u64(offset_of!(Raw, threads_refused_filter)),
        threads_without_exit: bytes.u64(offset_of!(Raw, threads_without_exit)),
        slots_reused: bytes.u64(offset_of!(Raw, slots_reused)),
        metadata_refused: bytes.u64(offset_of!(Raw, metadata_refused)),
        lock_names_refused: bytes.u64(offset_of!(Raw, lock_names_refused)),
        captures_refused: bytes.u64(offset_of!(Raw, captures_refused)),
        channel_entries: bytes.u32(offset_of!(Raw, channel_entries)),
        sampled_times: bytes.u32(offset_of!(Raw, sampled_times)),
        task_len_bytes: bytes.u32(offset_of!(Raw, task_len_bytes)),
        fault_ns: Some(bytes.u64(offset_of!(Raw, fault_ns))).filter(|ns| *ns > 0),
        usage_level: bytes.u32(offset_of!(Raw, usage_level)).into(),
        tasks_refused: bytes.u64(offset_of!(Raw, tasks_refused)),
        channels_refused: bytes.u64(offset_of!(Raw, channels_refused)),
        clock: None,
        held_overflows: bytes.u64(offset_of!(Raw, held_overflows)),
        span_overflows: bytes.u64(offset_of!(Raw, span_overflows)),
        releases_unmatched: bytes.u64(offset_of!(Raw, releases_unmatched)),
        incidents: super::incident::read(bytes),
        handed_over: HandedOver {
            places: values(bytes, offset_of!(Raw, handed_over_places)),
            locks: values(bytes, offset_of!(Raw, handed_over_locks)),
        },
        ending: ending(bytes),
        forks: bytes.u32(offset_of!(Raw, forks)),
        recent_children: recent_children(bytes),
        time_namespace: bytes.u64(offset_of!(Raw, time_namespace)),
        boottime_offset_ns: match bytes.u64(offset_of!(Raw, boottime_offset_ns)) as i64 {
            librip_format::OFFSET_UNKNOWN => None,
            offset_ns => Some(offset_ns),
        },
        file: FileId {
            device: bytes.u64(offset_of!(Raw, file_device)),
            inode: bytes.u64(offset_of!(Raw, file_inode)),
        },
        read_from: None,
        modules: Region::default(),
        sites: Region::default(),
        texts: Region::default(),
        slots: Region::default(),
        lock_names: Region::default(),
        calls: Region::default(),
        strings: Region::default(),
        channels: Region::default(),
        histories: Region::default(),
        polls: Region::default(),
    }
}

/// The noted children. Unused places are zero.
fn recent_children(bytes: &Bytes<'_>) -> Vec<Option<u32>> {
    (0..librip_format::RECENT_CHILDREN)
        .map(|index| bytes.u32(offset_of!(Raw, recent_children) + size_of::<u32>() * index))
        .filter(|&pid| pid != 0)
        .map(|pid| (pid != librip_format::CHILD_ANNOUNCED).then_some(pid))
        .collect()
}

/// The values of a table of the header that are not zero.
fn values(bytes: &Bytes<'_>, at: usize) -> HashSet<u64> {
    let values = (0..librip_format::HANDED_OVER_MAX).map(|index| bytes.u64(at + 8 * index));
    values.filter(|&value| value != 0).collect()
}

fn ending(bytes: &Bytes<'_>) -> Ending {
    match bytes.u32(offset_of!(Raw, exit_state)) {
        librip_format::EXIT_STATUS => Ending::Exit {
            status: bytes.u32(offset_of!(Raw, exit_status)) as i32,
            boottime_ns: bytes.u64(offset_of!(Raw, exited_boottime_ns)),
        },
        _ => Ending::Unrecorded,
    }
}
