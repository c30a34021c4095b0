//! Where the parts of a ring are: plans the file, and computes addresses from the plan.
//!
//! It touches no memory. The plan stays in private memory, so a damaged file cannot change it.

use librip_format::{
    CallLocation, ChannelEntry, Header, LockName, Module, POLL_PLACES_MAX, PollPlace, REGION_ALIGN_BYTES,
    REGION_CALLS, REGION_CHANNELS, REGION_HISTORIES, REGION_LOCK_NAMES, REGION_MODULES, REGION_POLLS,
    REGION_SITES, REGION_SLOTS, REGION_STRINGS, REGION_TEXTS, Region, Site, SlotParts, StaticText,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Modules,
    Sites,
    Texts,
    LockNames,
    Calls,
    Strings,
    Channels,
    Histories,
    Polls,
    Slots,
}

impl Table {
    /// All tables, in the order in which the file and [`Header::regions`] have them.
    pub(crate) const ALL: [Table; 10] = [
        Table::Modules,
        Table::Sites,
        Table::Texts,
        Table::LockNames,
        Table::Calls,
        Table::Strings,
        Table::Channels,
        Table::Histories,
        Table::Polls,
        Table::Slots,
    ];
    pub(crate) const COUNT: usize = Table::ALL.len();

    /// Its index in [`Header::regions`].
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    fn kind(self) -> u32 {
        match self {
            Table::Modules => REGION_MODULES,
            Table::Sites => REGION_SITES,
            Table::Texts => REGION_TEXTS,
            Table::LockNames => REGION_LOCK_NAMES,
            Table::Calls => REGION_CALLS,
            Table::Strings => REGION_STRINGS,
            Table::Channels => REGION_CHANNELS,
            Table::Histories => REGION_HISTORIES,
            Table::Polls => REGION_POLLS,
            Table::Slots => REGION_SLOTS,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Bytes from the start of the file.
    pub(crate) offset: u64,
    /// Bytes from one entry to the next.
    pub(crate) entry_len_bytes: u64,
    /// The number of entries that it has room for.
    pub(crate) capacity: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) page_len_bytes: usize,
    pub(crate) file_len_bytes: u64,
    /// What a slot has room for.
    pub(crate) slot: SlotParts,
    extents: [Extent; Table::COUNT],
}

/// What a ring has to hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// What a slot has room for.
    pub(crate) slot: SlotParts,
    /// Whether polls of tasks are counted.
    pub(crate) has_polls: bool,
    /// Slots that the program or the operator asks for.
    pub(crate) slots: u64,
    /// Modules that are loaded now.
    pub(crate) modules: u64,
    pub(crate) sites: u64,
    /// Bytes of text that registering them takes.
    pub(crate) text_len_bytes: u64,
}

impl Demand {
    /// The memory that the ring takes without slots, bytes: that of the tables is reserved as they fill.
    fn tables_len_bytes(&self, page_len_bytes: u64) -> u64 {
        let tables = [
            size_of::<Header>() as u64,
            self.modules * size_of::<Module>() as u64,
            self.sites * size_of::<Site>() as u64,
            self.text_len_bytes,
        ];
        tables.iter().map(|len_bytes| len_bytes.next_multiple_of(page_len_bytes)).sum()
    }
}

/// What limits a ring, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The length of the file, most of which is holes.
    pub(crate) file_len_bytes: u64,
    /// The memory that the ring may take.
    pub(crate) memory_bytes: u64,
    pub(crate) page_len_bytes: u64,
}

/// Room for libraries that are loaded later. It costs nothing before they come, because the file is sparse.
const SPARE_MODULES: u64 = 4096;
const SPARE_SITES: u64 = 32_768;
const SPARE_TEXT_BYTES: u64 = 4 << 20;
const LOCK_NAMES: u64 = 131_072;
/// Room for calls of locks at which a thread has waited, or held a lock meanwhile.
const CALLS: u64 = 2048;
/// Room for texts to which events refer.
const STRINGS: u64 = 8192;
/// Room for histories of channels, in units of 8 bytes.
const HISTORIES: u64 = 4 << 20;
/// A ring with few slots has no room for more than this for each of them.
const HISTORIES_OF_SLOT: u64 = 4096;
/// If limits are tight, the spare room is divided by this; that for histories, which is the largest, twice.
const TIGHT_PART: u64 = 64;

impl Geometry {
    /// Plans a ring. Also returns whether the limits made it smaller than demanded.
    ///
    /// # Errors
    ///
    /// What the smallest ring that would do takes, bytes, if the limits forbid it.
    pub(crate) fn plan(demand: &Demand, limits: &Limits) -> Result<(Geometry, bool), u64> {
        let slot_len = demand.slot.len_bytes();
        let for_slots = limits.memory_bytes.checked_sub(demand.tables_len_bytes(limits.page_len_bytes));
        let slots = demand.slots.min(for_slots.unwrap_or(0) / slot_len);
        if slots == 0 {
            return Err(demand.tables_len_bytes(limits.page_len_bytes) + slot_len);
        }
        let roomy = Geometry::with_spare(demand, limits, 1, slots);
        if roomy.file_len_bytes <= limits.file_len_bytes {
            return Ok((roomy, slots < demand.slots));
        }
        // First the spare room shrinks, then the number of slots.
        let smallest = Geometry::with_spare(demand, limits, TIGHT_PART, 1).file_len_bytes;
        let left = limits.file_len_bytes.checked_sub(smallest).ok_or(smallest)?;
        let fitting = slots.min(1 + left.saturating_sub(REGION_ALIGN_BYTES) / slot_len);
        Ok((Geometry::with_spare(demand, limits, TIGHT_PART, fitting), fitting < demand.slots))
    }

    fn with_spare(demand: &Demand, limits: &Limits, spare_part: u64, slots: u64) -> Geometry {
        let mut end = (size_of::<Header>() as u64).next_multiple_of(REGION_ALIGN_BYTES);
        let extents = Table::ALL.map(|table| {
            let (capacity, entry_len_bytes) = match table {
                Table::Modules => (demand.modules + SPARE_MODULES / spare_part, size_of::<Module>() as u64),
                Table::Sites => (demand.sites + SPARE_SITES / spare_part, size_of::<Site>() as u64),
                Table::Texts => (demand.text_len_bytes + SPARE_TEXT_BYTES / spare_part, 1),
                Table::LockNames => (LOCK_NAMES / spare_part, size_of::<LockName>() as u64),
                Table::Calls => (CALLS / spare_part, size_of::<CallLocation>() as u64),
                Table::Strings => (STRINGS / spare_part, size_of::<StaticText>() as u64),
                // Without channels, these two are empty.
                Table::Channels => (u64::from(demand.slot.channels), size_of::<ChannelEntry>() as u64),
                Table::Histories if demand.slot.channels == 0 => (0, 8),
                Table::Histories => {
                    ((HISTORIES / spare_part / spare_part).min(demand.slots * HISTORIES_OF_SLOT), 8)
                }
                Table::Polls if !demand.has_polls => (0, 8),
                Table::Polls => (POLL_PLACES_MAX as u64 / spare_part, size_of::<PollPlace>() as u64),
                Table::Slots => (slots, demand.slot.len_bytes()),
            };
            let extent = Extent { offset: end, entry_len_bytes, capacity };
            end = (end + capacity * entry_len_bytes).next_multiple_of(REGION_ALIGN_BYTES);
            extent
        });
        Geometry {
            page_len_bytes: limits.page_len_bytes as usize,
            slot: demand.slot,
            file_len_bytes: end.next_multiple_of(limits.page_len_bytes),
            extents,
        }
    }

    pub(crate) fn extent(&self, table: Table) -> Extent {
        self.extents[table.index()]
    }

    /// The number of entries that a table has room for.
    pub(crate) fn capacity(&self, table: Table) -> u64 {
        self.extent(table).capacity
    }

    /// Where an entry is, bytes from the start of the file.
    ///
    /// # Panics
    ///
    /// If the table has no such entry.
    pub(crate) fn offset(&self, table: Table, index: u64) -> u64 {
        let extent = self.extent(table);
        assert!(index < extent.capacity, "an entry beyond its table");
        extent.offset + index * extent.entry_len_bytes
    }

    /// The tables, as the header describes them.
    pub(crate) fn regions(&self) -> [Region; librip_format::REGIONS_MAX] {
        let mut regions = core::array::from_fn(|_| Region {
            kind: 0,
            entry_len_bytes: 0,
            offset: 0,
            capacity: 0,
            used: 0.into(),
        });
        for table in Table::ALL {
            let extent = self.extent(table);
            if extent.capacity == 0 {
                continue;
            }
            let region: &mut Region = &mut regions[table.index()];
            region.kind = table.kind();
            region.entry_len_bytes = extent.entry_len_bytes as u32;
            region.offset = extent.offset;
            region.capacity = extent.capacity;
        }
        regions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: SlotParts = SlotParts { words: 64, spans: 0, channels: 0, has_times: false, has_task: false };
    const DEMAND: Demand =
        Demand { slot: SLOT, has_polls: true, slots: 1000, modules: 3, sites: 10, text_len_bytes: 500 };
    const NO_LIMITS: Limits =
        Limits { file_len_bytes: u64::MAX, memory_bytes: u64::MAX, page_len_bytes: 4096 };

    #[test]
    fn tables_do_not_overlap_and_end_within_the_file() {
        let (geometry, is_limited) = Geometry::plan(&DEMAND, &NO_LIMITS).unwrap();
        assert!(!is_limited);
        let mut end = size_of::<Header>() as u64;
        for table in Table::ALL.into_iter().filter(|&table| geometry.capacity(table) > 0) {
            let extent = geometry.extent(table);
            assert!(extent.offset >= end && extent.offset % REGION_ALIGN_BYTES == 0, "{table:?}");
            end = extent.offset + extent.capacity * extent.entry_len_bytes;
        }
        assert!(end <= geometry.file_len_bytes);
        assert_eq!(geometry.capacity(Table::Slots), 1000);
    }

    #[test]
    fn limits_take_the_spare_room_first_and_then_slots() {
        let (roomy, _) = Geometry::plan(&DEMAND, &NO_LIMITS).unwrap();
        let tight = Limits { file_len_bytes: roomy.file_len_bytes - 1, ..NO_LIMITS };
        let (geometry, is_limited) = Geometry::plan(&DEMAND, &tight).unwrap();
        assert!(!is_limited && geometry.file_len_bytes <= tight.file_len_bytes);
        let tighter = Limits { file_len_bytes: 600 << 10, ..NO_LIMITS };
        let (geometry, is_limited) = Geometry::plan(&DEMAND, &tighter).unwrap();
        assert!(is_limited && geometry.file_len_bytes <= tighter.file_len_bytes);
        assert!((1..1000).contains(&geometry.capacity(Table::Slots)));
        let needed = Geometry::plan(&DEMAND, &Limits { file_len_bytes: 8192, ..NO_LIMITS }).unwrap_err();
        assert!(Geometry::plan(&DEMAND, &Limits { file_len_bytes: needed, ..NO_LIMITS }).is_ok());
    }

    #[test]
    fn a_ring_with_channels_has_room_for_histories_within_the_limits() {
        let demand = Demand { slot: SlotParts { channels: 8, ..SLOT }, ..DEMAND };
        let (roomy, _) = Geometry::plan(&demand, &NO_LIMITS).unwrap();
        assert_eq!(
            (roomy.capacity(Table::Channels), roomy.capacity(Table::Histories)),
            (8, 1000 * HISTORIES_OF_SLOT)
        );
        for file_len_bytes in [roomy.file_len_bytes - 1, 4 << 20, 2 << 20, 600 << 10] {
            let (tight, _) = Geometry::plan(&demand, &Limits { file_len_bytes, ..NO_LIMITS }).unwrap();
            assert!(tight.file_len_bytes <= file_len_bytes, "{file_len_bytes}: {tight:?}");
            assert!(tight.capacity(Table::Histories) >= 1000);
        }
        let (without, _) = Geometry::plan(&DEMAND, &NO_LIMITS).unwrap();
        assert_eq!((without.capacity(Table::Channels), without.capacity(Table::Histories)), (0, 0));
    }

    #[test]
    fn a_ring_takes_no_more_memory_than_it_may() {
        // A page or two for each table, and 1 KiB for each slot.
        let tables = DEMAND.tables_len_bytes(4096);
        assert!((16 << 10..32 << 10).contains(&tables), "{tables}");
        let with_memory = |memory_bytes| Geometry::plan(&DEMAND, &Limits { memory_bytes, ..NO_LIMITS });
        let (geometry, is_limited) = with_memory(tables + (10 << 10)).unwrap();
        assert_eq!((geometry.capacity(Table::Slots), is_limited), (10, true));
        assert_eq!(with_memory(tables + 1023).unwrap_err(), tables + 1024);
        assert_eq!(with_memory(tables - 1).unwrap_err(), tables + 1024);
    }

    #[test]
    #[should_panic(expected = "beyond its table")]
    fn an_entry_beyond_its_table_has_no_offset() {
        let (geometry, _) = Geometry::plan(&DEMAND, &NO_LIMITS).unwrap();
        geometry.offset(Table::Slots, 1000);
    }
}
