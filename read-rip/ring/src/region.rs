//! Regions: where the tables of the file are.
//!
//! It does not read the list of regions: `region_list` does.

/// A table in the file, checked: its entries are within the length that the file was made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Where it begins, bytes from the start of the file.
    pub offset: u64,
    pub entry_len_bytes: u64,
    /// Entries that there is room for.
    pub capacity: u64,
    /// Entries that were reserved.
    pub used: u64,
}

impl Region {
    /// Its length, bytes.
    pub(super) fn len_bytes(&self) -> u64 {
        self.capacity * self.entry_len_bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    Modules,
    Sites,
    /// Texts of modules and sites.
    Texts,
    Slots,
    LockNames,
    /// Locations of calls of wrapped locks.
    Calls,
    /// Texts to which events refer.
    Strings,
    Channels,
    /// Histories of threads in channels.
    Histories,
    /// How long polls took.
    Polls,
}

impl RegionKind {
    /// Decodes the kind of the format; `None` for a kind that the reader does not use.
    pub(super) fn from_raw(raw: u32) -> Option<RegionKind> {
        match raw {
            librip_format::REGION_MODULES => Some(RegionKind::Modules),
            librip_format::REGION_SITES => Some(RegionKind::Sites),
            librip_format::REGION_TEXTS => Some(RegionKind::Texts),
            librip_format::REGION_SLOTS => Some(RegionKind::Slots),
            librip_format::REGION_LOCK_NAMES => Some(RegionKind::LockNames),
            librip_format::REGION_CALLS => Some(RegionKind::Calls),
            librip_format::REGION_STRINGS => Some(RegionKind::Strings),
            librip_format::REGION_CHANNELS => Some(RegionKind::Channels),
            librip_format::REGION_HISTORIES => Some(RegionKind::Histories),
            librip_format::REGION_POLLS => Some(RegionKind::Polls),
            _ => None,
        }
    }
}
