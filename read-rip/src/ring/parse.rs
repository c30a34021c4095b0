//! The header: its fields, and the regions it lists, checked.
//!
//! Offsets come from the recorder's own `layout`, with `offset_of!`; nothing is typed twice.

use std::mem::{offset_of, size_of};

use librip_format::{Header as Raw, Region as RawRegion};

use super::{
    Clock, Defect, Ending, Error, FileSystem, Header, IgnoredSettings, Machine, Region, RegionKind, Source,
};

/// A record's bytes; callers have checked that they are all there.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Bytes<'_> {
    pub(super) fn array<const LEN: usize>(&self, at: usize) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes.copy_from_slice(&self.0[at..at + LEN]);
        bytes
    }

    pub(super) fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    pub(super) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// A string padded with zeros.
    pub(super) fn text(&self, at: usize, len_bytes: usize) -> String {
        let bytes = &self.0[at..at + len_bytes];
        let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(len_bytes);
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }
}

/// The longest slot that is believed, bytes. A later minor version may have longer ones than this one, but a
/// whole buffer is allocated for each, and a sparse file can claim any length.
const SLOT_LEN_MAX_BYTES: u64 = 1 << 20;
/// The header of version 1.0, bytes.
const HEADER_MIN_BYTES: usize = offset_of!(Raw, clock_level);

/// Reads and checks the header.
pub(super) fn header(source: &Source) -> Result<(Header, Vec<Defect>), Error> {
    let path = || source.path().to_owned();
    let mut buffer = [0; size_of::<Raw>()];
    let got = source.read_at(&mut buffer, 0).map_err(|error| Error::Open { path: path(), source: error })?;
    let is_whole = got >= HEADER_MIN_BYTES;
    let bytes = Bytes(&buffer);
    let magic: [u8; 8] = bytes.array(offset_of!(Raw, magic));
    let byte_order = bytes.u32(offset_of!(Raw, byte_order));
    let is_ours = magic == librip_format::MAGIC && got >= librip_format::MAGIC.len();
    if !is_ours {
        // A whole header but for the magic, which is written last.
        let is_unfinished = magic == [0; 8] && byte_order == librip_format::BYTE_ORDER && is_whole;
        return Err(if is_unfinished {
            Error::Unfinished { path: path() }
        } else {
            Error::NotARing { path: path() }
        });
    }
    // Version and byte order stand in front of everything that they decide about.
    if got >= offset_of!(Raw, header_len_bytes) {
        if byte_order == librip_format::BYTE_ORDER.swap_bytes() {
            return Err(Error::ByteOrder { path: path() });
        }
        let found = (bytes.u16(offset_of!(Raw, version_major)), bytes.u16(offset_of!(Raw, version_minor)));
        if found.0 != librip_format::VERSION_MAJOR {
            return Err(Error::Version { path: path(), found });
        }
    }
    if !is_whole {
        return Err(Error::Short {
            path: path(),
            found_bytes: got as u64,
            expected_bytes: HEADER_MIN_BYTES as u64,
        });
    }
    if byte_order != librip_format::BYTE_ORDER {
        return Err(Error::Header { path: path(), what: "the byte order", found: byte_order.into() });
    }
    let machine = bytes.u32(offset_of!(Raw, machine));
    let machine =
        Machine::from_elf(machine).ok_or_else(|| Error::Machine { path: path(), found: machine })?;
    // What a later version has added to the header is there only where the writer's header is so long.
    let header_len_bytes = (bytes.u32(offset_of!(Raw, header_len_bytes)) as usize).min(got);
    buffer[header_len_bytes.clamp(HEADER_MIN_BYTES, size_of::<Raw>())..].fill(0);
    let bytes = Bytes(&buffer);
    let mut defects = Vec::new();
    defects.extend(source.cut());
    let file_len_bytes = bytes.u64(offset_of!(Raw, file_len_bytes));
    if source.len_bytes() < file_len_bytes {
        defects.push(Defect::Truncated { found_bytes: source.len_bytes(), expected_bytes: file_len_bytes });
    }
    let mut header = Header {
        version: (bytes.u16(offset_of!(Raw, version_major)), bytes.u16(offset_of!(Raw, version_minor))),
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
        host: bytes.text(offset_of!(Raw, host), 64),
        settings_ignored: IgnoredSettings::from_bits(bytes.u32(offset_of!(Raw, settings_ignored))),
        slot_words: bytes.u32(offset_of!(Raw, slot_words)),
        slot_len_bytes: bytes.u64(offset_of!(Raw, slot_len_bytes)),
        file_len_bytes,
        threads_refused_full: bytes.u64(offset_of!(Raw, threads_refused_full)),
        threads_refused_memory: bytes.u64(offset_of!(Raw, threads_refused_memory)),
        threads_without_exit: bytes.u64(offset_of!(Raw, threads_without_exit)),
        slots_reused: bytes.u64(offset_of!(Raw, slots_reused)),
        metadata_refused: bytes.u64(offset_of!(Raw, metadata_refused)),
        clock: Clock::read(&bytes).unwrap_or_else(|defect| {
            defects.push(defect);
            None
        }),
        held_overflows: bytes.u64(offset_of!(Raw, held_overflows)),
        releases_unmatched: bytes.u64(offset_of!(Raw, releases_unmatched)),
        ending: match bytes.u32(offset_of!(Raw, exit_state)) {
            librip_format::EXIT_STATUS => Ending::Exit {
                status: bytes.u32(offset_of!(Raw, exit_status)) as i32,
                boottime_ns: bytes.u64(offset_of!(Raw, exited_boottime_ns)),
            },
            _ => Ending::Unsaid,
        },
        modules: Region::default(),
        sites: Region::default(),
        texts: Region::default(),
        slots: Region::default(),
        lock_names: Region::default(),
    };
    regions(&bytes, &mut header, &mut defects);
    slot_geometry(&mut header, &mut defects);
    Ok((header, defects))
}

fn regions(bytes: &Bytes<'_>, header: &mut Header, defects: &mut Vec<Defect>) {
    let mut wanted = [
        (RegionKind::LockNames, size_of::<librip_format::LockName>(), &mut header.lock_names),
        (RegionKind::Modules, size_of::<librip_format::Module>(), &mut header.modules),
        (RegionKind::Sites, size_of::<librip_format::Site>(), &mut header.sites),
        (RegionKind::Texts, 1, &mut header.texts),
        (RegionKind::Slots, librip_format::SLOT_HEADER_LEN_BYTES as usize, &mut header.slots),
    ];
    for index in 0..librip_format::REGIONS_MAX {
        let at = offset_of!(Raw, regions) + index * size_of::<RawRegion>();
        let Some(kind) = RegionKind::from_raw(bytes.u32(at + offset_of!(RawRegion, kind))) else { continue };
        let Some((_, min_len, region)) = wanted.iter_mut().find(|(wanted, ..)| *wanted == kind) else {
            continue;
        };
        let entry_len_bytes = u64::from(bytes.u32(at + offset_of!(RawRegion, entry_len_bytes)));
        let offset = bytes.u64(at + offset_of!(RawRegion, offset));
        let capacity = bytes.u64(at + offset_of!(RawRegion, capacity));
        let used = bytes.u64(at + offset_of!(RawRegion, used));
        let end = capacity.checked_mul(entry_len_bytes).and_then(|len| len.checked_add(offset));
        if entry_len_bytes < *min_len as u64 {
            defects.push(Defect::Region { kind, what: "the length of an entry", found: entry_len_bytes });
        } else if !offset.is_multiple_of(librip_format::REGION_ALIGN_BYTES)
            || offset < size_of::<Raw>() as u64
        {
            defects.push(Defect::Region { kind, what: "its place", found: offset });
        } else if end.is_none_or(|end| end > header.file_len_bytes) {
            defects.push(Defect::Region {
                kind,
                what: "its size, which the file does not have,",
                found: capacity,
            });
        } else {
            if used > capacity {
                defects.push(Defect::Region { kind, what: "the number of its entries", found: used });
            }
            **region = Region { offset, entry_len_bytes, capacity, used: used.min(capacity) };
        }
    }
    overlaps(&mut wanted, defects);
    for (kind, _, region) in wanted {
        let is_reported = defects
            .iter()
            .any(|defect| matches!(defect, Defect::Region { kind: reported, .. } if *reported == kind));
        // Rings of 1.0 have no names for locks.
        let is_needed = kind != RegionKind::LockNames;
        if *region == Region::default() && is_needed && !is_reported {
            defects.push(Defect::RegionMissing { kind });
        }
    }
}

/// Of regions in one place at most one is right. That is rather a later one of the list: an early one is more
/// easily done without.
fn overlaps(rooms: &mut [(RegionKind, usize, &mut Region)], defects: &mut Vec<Defect>) {
    for index in 0..rooms.len() {
        let (left, right) = rooms.split_at_mut(index + 1);
        let Some((kind, _, region)) = left.last_mut() else { continue };
        let is_shared = right.iter().any(|(_, _, other)| {
            region.offset < other.offset + other.len_bytes()
                && other.offset < region.offset + region.len_bytes()
        });
        if is_shared {
            defects.push(Defect::Region {
                kind: *kind,
                what: "its place, where another region is,",
                found: region.offset,
            });
            **region = Region::default();
        }
    }
}

/// Slots are read only where their geometry is beyond doubt.
fn slot_geometry(header: &mut Header, defects: &mut Vec<Defect>) {
    let kind = RegionKind::Slots;
    let words = header.slot_words;
    let is_words_possible = words.is_power_of_two()
        && (librip_format::SLOT_WORDS_MIN..=librip_format::SLOT_WORDS_MAX).contains(&words);
    let len = header.slot_len_bytes;
    let problem = if !is_words_possible {
        Some(("the number of words a slot", u64::from(words)))
    } else if len < librip_format::slot_len_bytes(words)
        || len > SLOT_LEN_MAX_BYTES
        || len != header.slots.entry_len_bytes
    {
        Some(("the length of a slot", len))
    } else {
        None
    };
    if let Some((what, found)) = problem
        && header.slots != Region::default()
    {
        defects.push(Defect::Region { kind, what, found });
        header.slots = Region::default();
    }
}
