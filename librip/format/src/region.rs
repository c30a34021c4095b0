//! Regions: the tables of the file.

use core::sync::atomic::AtomicU64;

/// The header lists at most this many regions.
pub const REGIONS_MAX: usize = 16;
/// Each region starts at a multiple of this, bytes.
pub const REGION_ALIGN_BYTES: u64 = 4096;

/// A table in the file.
#[repr(C)]
#[derive(Debug)]
pub struct Region {
    /// `REGION_*`, or 0 for an unused entry. A reader skips kinds that it does not know.
    pub kind: u32,
    /// Bytes from one entry to the next; 1 for texts.
    pub entry_len_bytes: u32,
    /// Where the first entry starts, bytes from the start of the file.
    pub offset: u64,
    /// The number of entries that the region has room for.
    pub capacity: u64,
    /// The number of entries that were handed out, at most `capacity`. An entry counts once its own `state` says so.
    pub used: AtomicU64,
}

/// [`Region::kind`]: [`Module`](crate::Module) entries.
pub const REGION_MODULES: u32 = 1;
/// [`Region::kind`]: [`Site`](crate::Site) entries.
pub const REGION_SITES: u32 = 2;
/// [`Region::kind`]: bytes that [`Text`](crate::Text) refers to.
pub const REGION_TEXTS: u32 = 3;
/// [`Region::kind`]: slots.
pub const REGION_SLOTS: u32 = 4;
/// [`Region::kind`]: [`LockName`](crate::LockName) entries. `used` counts free entries too.
pub const REGION_LOCK_NAMES: u32 = 5;
/// [`Region::kind`]: [`CallLocation`](crate::CallLocation) entries.
pub const REGION_CALLS: u32 = 6;
/// [`Region::kind`]: [`StaticText`](crate::StaticText) entries.
pub const REGION_STRINGS: u32 = 7;
/// [`Region::kind`]: [`ChannelEntry`](crate::ChannelEntry) entries.
pub const REGION_CHANNELS: u32 = 8;
/// [`Region::kind`]: histories of channels, in units of 8 bytes: see [`channel`](crate::channel).
pub const REGION_HISTORIES: u32 = 9;
/// [`Region::kind`]: [`PollPlace`](crate::PollPlace) entries.
pub const REGION_POLLS: u32 = 10;

const _: () = assert!(size_of::<Region>() == 32);
