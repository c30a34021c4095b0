//! One reading of a ring, as checked values.
//!
//! It reads nothing: `ring::read` does.

use std::collections::HashMap;

use read_rip_files::Module;

use super::{Channel, CopiedCall, Defect, Header, Period, PollsOfPlace, Site, Slot, StaticTexts, Words};

/// One reading of a ring.
#[derive(Debug)]
pub struct Snapshot {
    /// Identity, geometry and counters; `None` for a ring in the legacy format.
    pub header: Option<Header>,
    /// The executable and its libraries.
    pub modules: Vec<Module>,
    /// The marks in the source of the modules.
    pub sites: Vec<Site>,
    /// The slots of all threads that ever recorded.
    pub slots: Vec<Slot>,
    /// Copies of slots that the program has kept, of [`SlotKind::Capture`](super::SlotKind::Capture). They exited when
    /// they were made.
    pub captures: Vec<Slot>,
    /// What threads have recorded in channels, of [`SlotKind::History`](super::SlotKind::History), each with words of
    /// its own and with the owner of its slot.
    pub histories: Vec<Slot>,
    /// The channels, by their index; `None` if an entry is damaged.
    pub channels: Vec<Option<Channel>>,
    /// The names that processes gave to their locks, by pid and address; may contain anything.
    pub lock_names: HashMap<(u32, u64), String>,
    /// Callers of wrapped locks that the recorder copied; may contain anything.
    pub calls: Vec<CopiedCall>,
    /// How long polls of tasks took, if the program was told to count that.
    pub polls: Vec<PollsOfPlace>,
    /// Texts to which events refer.
    pub static_texts: StaticTexts,
    /// What could not be read.
    pub defects: Vec<Defect>,
    /// The bits of a sequence that were recorded: all, or 8 in the legacy format.
    pub sequence_mask: u64,
    /// Words of a recording that were replaced before they could be copied.
    pub unseen_words: u64,
    /// Words of a recording that were not read, because there are too many.
    pub left_out_words: u64,
    /// The period of a recording whose words were read; `None`: those of all of it.
    pub period: Option<Period>,
}

impl Snapshot {
    /// What is known of a process without a ring: its modules, and no history.
    pub fn of_modules(modules: Vec<Module>) -> Snapshot {
        Snapshot {
            header: None,
            modules,
            sites: Vec::new(),
            slots: Vec::new(),
            captures: Vec::new(),
            histories: Vec::new(),
            channels: Vec::new(),
            lock_names: HashMap::new(),
            calls: Vec::new(),
            polls: Vec::new(),
            static_texts: StaticTexts::default(),
            defects: Vec::new(),
            sequence_mask: u64::MAX,
            unseen_words: 0,
            left_out_words: 0,
            period: None,
        }
    }

    /// What a thread has recorded, in its slot or in a channel: the slots come first, then the histories.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    pub fn recorded(&self, index: usize) -> &Slot {
        index.checked_sub(self.slots.len()).map_or_else(|| &self.slots[index], |index| &self.histories[index])
    }

    /// All indices of [`Snapshot::recorded`].
    pub fn all_recorded(&self) -> std::ops::Range<usize> {
        0..self.slots.len() + self.histories.len()
    }

    /// The name of a channel, by its index; `None` if its entry is damaged.
    pub fn channel_name(&self, channel: usize) -> Option<&str> {
        self.channels.get(channel)?.as_ref().map(|channel| &*channel.name)
    }

    /// Takes the words of all slots out of the snapshot, in the order of the slots.
    pub fn take_words(&mut self) -> Vec<Words> {
        self.slots.iter_mut().map(|slot| std::mem::take(&mut slot.words)).collect()
    }

    /// The program that was recorded, if the ring names it.
    pub fn program(&self) -> Option<&Module> {
        self.modules.iter().find(|module| module.is_executable)
    }
}
