//! One wait that is examined: its futex, the target's memory, the living threads.

use foldhash::HashSet;

use super::wait::{Owner, UnknownOwner, WaitKind};
use crate::target::{Architecture, Futex, Memory};

/// The bit of a futex word that says that threads wait: `FUTEX_WAITERS`.
pub(super) const WAITERS: u32 = 0x8000_0000;
/// The bit of a futex word that says that the owner has died: `FUTEX_OWNER_DIED`.
pub(super) const OWNER_DIED: u32 = 0x4000_0000;
/// The bits of a futex word that have the owner's id: `FUTEX_TID_MASK`.
pub(super) const TID: u32 = 0x3fff_ffff;

/// A wait that is examined.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub memory: &'a dyn Memory,
    pub living: &'a HashSet<u32>,
    pub futex: Futex,
    pub architecture: Architecture,
}

/// What an interpretation of the bytes says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub kind: WaitKind,
    pub object: Option<u64>,
    pub owner: Owner,
    pub is_exclusive: bool,
}

impl Case<'_> {
    /// The address of the object, if the futex is at this offset in it.
    pub(super) fn object_at(&self, offset: u64) -> Option<u64> {
        // All objects with several words are aligned to 4 bytes at least.
        self.futex.address.checked_sub(offset).filter(|address| address.is_multiple_of(4))
    }

    /// Reads the words of an object, by one call.
    pub(super) fn words<const COUNT: usize>(&self, address: u64) -> Option<[u32; COUNT]> {
        let mut bytes = [[0; 4]; COUNT];
        self.memory.read(address, bytes.as_flattened_mut()).ok()?;
        Some(bytes.map(u32::from_le_bytes))
    }

    /// Whether this is a living thread of the process.
    pub(super) fn lives(&self, tid: u32) -> bool {
        self.living.contains(&tid)
    }

    /// The owner that an object names; 0 is none: somebody has acquired it, and has not said so yet.
    pub(super) fn owner(&self, tid: u32) -> Owner {
        match tid {
            0 => Owner::Unknown(UnknownOwner::Changing),
            tid if self.lives(tid) => Owner::Tid(tid),
            tid => Owner::Unknown(UnknownOwner::NotHere(tid)),
        }
    }

    /// The owner that a word of the kernel's robust or inheriting futexes has.
    pub(super) fn owner_in_word(&self, word: u32) -> Owner {
        match word & TID {
            0 if word & OWNER_DIED != 0 => Owner::Nobody,
            tid => self.owner(tid),
        }
    }

    /// An owner, unless the futex's word is no longer what the call expects.
    pub(super) fn unless_changed(&self, word: u32, owner: Owner) -> Owner {
        if word == self.futex.expected { owner } else { Owner::Unknown(UnknownOwner::Changing) }
    }

    /// Whether the object's mark "shared by processes" agrees with the call.
    pub(super) fn agrees(&self, is_shared: bool) -> bool {
        is_shared != self.futex.is_private
    }
}

/// Two words as one number.
pub(super) fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The only interpretation; `None` if there are several.
pub(super) fn only<const COUNT: usize>(found: [Option<Found>; COUNT]) -> Option<Found> {
    let mut all = found.into_iter().flatten();
    let first = all.next();
    if all.next().is_some() { None } else { first }
}
