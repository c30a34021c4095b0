//! Reads what this process's ring says of tasks.
//!
//! It finds the fields by the layouts of `librip-format`, in a copy of the file. What a field means, the tests say.

use std::mem::{offset_of, size_of};

use librip_format::{
    AwaitEntry, CALL_BITS, CallLocation, HELD_MAX, Header, HeldLock, LockName, NAME_FREE, POLL_COUNTS,
    POLL_LANES, PollLane, PollPlace, REGION_CALLS, REGION_LOCK_NAMES, REGION_POLLS, REGION_SLOTS,
    REGIONS_MAX, Region, SLOT_KIND_TASK, SLOT_LIVE, SlotHeader, TASK_LEN_BYTES, TaskPart, held_pc,
    held_state, payload,
};

const _: () = assert!(size_of::<AwaitEntry>() == 16, "the part for tasks is at the end of a slot");

/// A copy of the ring of this process.
pub(crate) struct Ring(Vec<u8>);

/// A slot whose owner is, or was, a task or a thread.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) is_task: bool,
    pub(crate) is_live: bool,
    /// The owner's id: of a task, its number.
    pub(crate) id: u32,
    pub(crate) name: String,
    /// The line at which a task was made.
    pub(crate) line: u32,
    pub(crate) origin: u64,
    pub(crate) turn: u64,
    pub(crate) wakes: u64,
    pub(crate) held: Vec<Held>,
}

/// An entry of the held-lock table that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) lock: u64,
    /// `HELD_*`.
    pub(crate) state: u64,
    /// The line of the call.
    pub(crate) line: u32,
}

impl Ring {
    pub(crate) fn read() -> Ring {
        Ring(std::fs::read(librip::ring_path().expect("this process records")).unwrap())
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    fn text_at(&self, at: usize, len_bytes: usize) -> String {
        let text = &self.0[at..at + len_bytes];
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(len_bytes);
        String::from_utf8_lossy(&text[..end]).into_owned()
    }

    /// Where the entries of a region are.
    fn entries(&self, kind: u32) -> impl Iterator<Item = usize> {
        let regions = offset_of!(Header, regions);
        let at = (0..REGIONS_MAX).map(|index| regions + index * size_of::<Region>());
        let region = at.into_iter().find(|&at| self.u32_at(at) == kind).expect("the region");
        let len_bytes = self.u32_at(region + offset_of!(Region, entry_len_bytes)) as usize;
        let first = self.u64_at(region + offset_of!(Region, offset)) as usize;
        let used = self.u64_at(region + offset_of!(Region, used)) as usize;
        (0..used).map(move |index| first + index * len_bytes)
    }

    /// The slots that have, or had, an owner.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let len_bytes = self.u64_at(offset_of!(Header, slot_len_bytes)) as usize;
        let slots = self.entries(REGION_SLOTS);
        slots.map(|at| self.slot(at, at + len_bytes - TASK_LEN_BYTES as usize)).collect()
    }

    fn slot(&self, at: usize, part: usize) -> Slot {
        let held =
            (0..HELD_MAX).map(|index| at + offset_of!(SlotHeader, held) + index * size_of::<HeldLock>());
        let held = held.filter_map(|at| {
            let meta = self.u64_at(at + offset_of!(HeldLock, meta));
            let lock = self.u64_at(at + offset_of!(HeldLock, lock));
            let line = self.line_of(held_pc(meta) & !CALL_BITS);
            (meta != 0).then_some(Held { lock: payload(lock), state: held_state(meta), line })
        });
        let is_task = self.u32_at(at + offset_of!(SlotHeader, kind)) == SLOT_KIND_TASK;
        let of_task = |field: usize| if is_task { self.u64_at(part + field) } else { 0 };
        Slot {
            is_task,
            is_live: self.u32_at(at + offset_of!(SlotHeader, state)) == SLOT_LIVE,
            id: self.u32_at(at + offset_of!(SlotHeader, tid)),
            name: self.text_at(at + offset_of!(SlotHeader, name), 40),
            line: self.line_of(of_task(offset_of!(TaskPart, location))),
            origin: of_task(offset_of!(TaskPart, origin)),
            turn: of_task(offset_of!(TaskPart, turn)),
            wakes: of_task(offset_of!(TaskPart, wakes)),
            held: held.collect(),
        }
    }

    /// The line of a location of this program, if it was copied to the ring; otherwise 0.
    fn line_of(&self, address: u64) -> u32 {
        let mut entries = self.entries(REGION_CALLS);
        let entry = entries.find(|at| self.u64_at(at + offset_of!(CallLocation, address)) == address);
        entry.map_or(0, |at| self.u32_at(at + offset_of!(CallLocation, line)))
    }

    /// How many tasks have found no slot.
    #[allow(dead_code, reason = "not all need it")]
    pub(crate) fn tasks_refused(&self) -> u64 {
        self.u64_at(offset_of!(Header, tasks_refused))
    }

    /// How many polls were counted of tasks that were made at this line, and how many times from a wake to a poll.
    #[allow(dead_code, reason = "not all need it")]
    pub(crate) fn polls(&self, line: u32) -> (u64, u64) {
        let place = |at: &usize| self.line_of(self.u64_at(at + offset_of!(PollPlace, location))) == line;
        let (mut polls, mut delays) = (0, 0);
        for at in self.entries(REGION_POLLS).filter(place) {
            for lane in 0..POLL_LANES {
                let at = at + offset_of!(PollPlace, lanes) + lane * size_of::<PollLane>();
                let sum = |at: usize| (0..POLL_COUNTS).map(|index| self.u64_at(at + 8 * index)).sum::<u64>();
                polls += sum(at + offset_of!(PollLane, polls));
                delays += sum(at + offset_of!(PollLane, delays));
            }
        }
        (polls, delays)
    }

    /// The live task of this name.
    pub(crate) fn task(&self, name: &str) -> Option<Slot> {
        self.slots().into_iter().find(|slot| slot.is_task && slot.is_live && slot.name == name)
    }

    /// The address that has this name.
    pub(crate) fn named(&self, name: &str) -> Option<u64> {
        let mut named = self.entries(REGION_LOCK_NAMES).filter(|at| {
            let is_free = self.u32_at(at + offset_of!(LockName, state)) == NAME_FREE;
            !is_free && self.text_at(at + offset_of!(LockName, name), 48) == name
        });
        named.next().map(|at| self.u64_at(at + offset_of!(LockName, lock)))
    }
}

/// What the ring says of the live task of this name.
#[track_caller]
pub(crate) fn task(name: &str) -> Slot {
    Ring::read().task(name).unwrap_or_else(|| panic!("no live task is named {name}"))
}
