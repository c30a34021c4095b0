//! The regions that a header lists, checked. A region that cannot be right is left empty and reported.
//!
//! It reads no region.

use std::mem::{offset_of, size_of};

use librip_format::{Header as Raw, Region as RawRegion};

use super::bytes::Bytes;
use super::{Defect, Header, Region, RegionKind};

/// The longest slot that is read, bytes. A later minor version may have longer slots than this one. But each takes
/// a whole buffer, and a sparse file can claim any length.
const SLOT_LEN_MAX_BYTES: u64 = 1 << 20;

/// A slot has no more open spans, in any version.
const SPAN_ENTRIES_MAX: u32 = 4096;
/// Nor entries for channels.
const CHANNEL_ENTRIES_MAX: u32 = 4096;

/// A region to fill in, and the shortest entry that it can have.
type Wanted<'h> = (RegionKind, usize, &'h mut Region);

/// Fills in the regions of the header.
pub(super) fn read(bytes: &Bytes<'_>, header: &mut Header, defects: &mut Vec<Defect>) {
    let file_len_bytes = header.file_len_bytes;
    let has_channels = header.channel_entries > 0;
    let mut wanted: [Wanted<'_>; 10] = [
        (RegionKind::Polls, size_of::<librip_format::PollPlace>(), &mut header.polls),
        (RegionKind::Histories, 8, &mut header.histories),
        (RegionKind::Channels, size_of::<librip_format::ChannelEntry>(), &mut header.channels),
        (RegionKind::Calls, size_of::<librip_format::CallLocation>(), &mut header.calls),
        (RegionKind::LockNames, size_of::<librip_format::LockName>(), &mut header.lock_names),
        (RegionKind::Modules, size_of::<librip_format::Module>(), &mut header.modules),
        (RegionKind::Sites, size_of::<librip_format::Site>(), &mut header.sites),
        (RegionKind::Strings, size_of::<librip_format::StaticText>(), &mut header.strings),
        (RegionKind::Texts, 1, &mut header.texts),
        (RegionKind::Slots, librip_format::SLOT_HEADER_LEN_BYTES as usize, &mut header.slots),
    ];
    for index in 0..librip_format::REGIONS_MAX {
        let at = offset_of!(Raw, regions) + index * size_of::<RawRegion>();
        let Some(kind) = RegionKind::from_raw(bytes.u32(at + offset_of!(RawRegion, kind))) else { continue };
        if let Some((_, min_len, region)) = wanted.iter_mut().find(|(wanted, ..)| *wanted == kind)
            && let Some(found) = listed(bytes, at, kind, *min_len as u64, file_len_bytes, defects)
        {
            **region = found;
        }
    }
    clear_overlaps(&mut wanted, defects);
    for (kind, _, region) in wanted {
        let is_reported = defects
            .iter()
            .any(|defect| matches!(defect, Defect::Region { kind: reported, .. } if *reported == kind));
        // A program without channels needs neither. Polls are counted if the operator wants it.
        let is_optional = match kind {
            RegionKind::Channels | RegionKind::Histories => !has_channels,
            kind => kind == RegionKind::Polls,
        };
        if *region == Region::default() && !is_reported && !is_optional {
            defects.push(Defect::RegionMissing { kind });
        }
    }
    check_slots(header, defects);
}

/// The region at offset `at` of the header, if it is possible.
fn listed(
    bytes: &Bytes<'_>,
    at: usize,
    kind: RegionKind,
    entry_min_bytes: u64,
    file_len_bytes: u64,
    defects: &mut Vec<Defect>,
) -> Option<Region> {
    let entry_len_bytes = u64::from(bytes.u32(at + offset_of!(RawRegion, entry_len_bytes)));
    let offset = bytes.u64(at + offset_of!(RawRegion, offset));
    let capacity = bytes.u64(at + offset_of!(RawRegion, capacity));
    let used = bytes.u64(at + offset_of!(RawRegion, used));
    let is_aligned = offset.is_multiple_of(librip_format::REGION_ALIGN_BYTES);
    let end = capacity.checked_mul(entry_len_bytes).and_then(|len| len.checked_add(offset));
    let (what, found) = if entry_len_bytes < entry_min_bytes {
        ("the length of an entry", entry_len_bytes)
    } else if !is_aligned || offset < size_of::<Raw>() as u64 {
        ("its offset", offset)
    } else if end.is_none_or(|end| end > file_len_bytes) {
        ("its capacity, for which the file is too short,", capacity)
    } else {
        if used > capacity {
            defects.push(Defect::Region { kind, what: "the number of its entries", found: used });
        }
        return Some(Region { offset, entry_len_bytes, capacity, used: used.min(capacity) });
    };
    defects.push(Defect::Region { kind, what, found });
    None
}

/// Clears regions that overlap with a later one of the list.
///
/// At most one of two overlapping regions is right. The list begins with the regions that matter least to the reader.
fn clear_overlaps(regions: &mut [Wanted<'_>], defects: &mut Vec<Defect>) {
    for index in 0..regions.len() {
        let (left, right) = regions.split_at_mut(index + 1);
        let Some((kind, _, region)) = left.last_mut() else { continue };
        let overlaps = right.iter().any(|(_, _, other)| {
            region.offset < other.offset + other.len_bytes()
                && other.offset < region.offset + region.len_bytes()
        });
        if overlaps {
            let what = "its offset, which is inside another region,";
            defects.push(Defect::Region { kind: *kind, what, found: region.offset });
            **region = Region::default();
        }
    }
}

/// Clears the region of the slots unless their geometry is possible.
fn check_slots(header: &mut Header, defects: &mut Vec<Defect>) {
    let words = header.slot_words;
    let is_spans_possible = header.span_entries <= SPAN_ENTRIES_MAX;
    let is_words_possible = words.is_power_of_two()
        && (librip_format::SLOT_WORDS_MIN..=librip_format::SLOT_WORDS_MAX).contains(&words);
    let len = header.slot_len_bytes;
    let problem = if !is_words_possible {
        Some(("the number of words per slot", u64::from(words)))
    } else if !is_spans_possible {
        Some(("the number of open spans per slot", u64::from(header.span_entries)))
    } else if header.channel_entries > CHANNEL_ENTRIES_MAX {
        Some(("the number of channels per slot", u64::from(header.channel_entries)))
    } else if ![0, librip_format::SAMPLED_TIMES as u32].contains(&header.sampled_times) {
        Some(("the number of sampled times per slot", u64::from(header.sampled_times)))
    } else if ![0, librip_format::TASK_LEN_BYTES as u32].contains(&header.task_len_bytes) {
        Some(("the length of a slot's part for tasks", u64::from(header.task_len_bytes)))
    } else if len < header.slot_parts().len_bytes()
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
        defects.push(Defect::Region { kind: RegionKind::Slots, what, found });
        header.slots = Region::default();
    }
}
