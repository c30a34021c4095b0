//! An independent reader of rings: what the recorder left, without `librip_format` and without `read-rip`.
//!
//! It follows the description of the format, with its own [table](crate::format), and shares no code with either side.
//! It is strict where they are lenient: anything that the format does not allow is an error here, because the tests
//! know that the file was not damaged. It resolves no symbols.

mod parse;

use std::fmt;

use crate::format::{call, kind, lock_type, operand, word};

/// The four states of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Free,
    Live,
    Exited,
    Claiming,
}

/// A ring, read.
#[derive(Debug)]
pub struct Ring {
    pub pid: u32,
    pub uid: u32,
    pub start_time_ticks: u64,
    pub settings_ignored: u32,
    pub slot_words: u32,
    pub slot_capacity: u64,
    pub slots_used: u64,
    pub refused_full: u64,
    pub refused_memory: u64,
    pub refused_filter: u64,
    pub without_exit: u64,
    pub slots_reused: u64,
    pub metadata_refused: u64,
    pub lock_names_refused: u64,
    pub captures_refused: u64,
    pub clock_level: u32,
    pub held_overflows: u64,
    pub releases_unmatched: u64,
    /// The names that locks have now: process, address, name.
    pub lock_names: Vec<(u32, u64, String)>,
    /// The locations of calls that were copied.
    pub calls: Vec<Call>,
    /// The places of polls; empty if none are counted.
    pub polls: Vec<Polls>,
    /// The status that the creator passed to `exit`, if it called it.
    pub exit_status: Option<i32>,
    pub modules: Vec<Module>,
    pub sites: Vec<Site>,
    /// The slots that have been handed out to threads.
    pub slots: Vec<Slot>,
    /// The slots with copies that the program has kept.
    pub captures: Vec<Slot>,
}

/// An executable or library.
#[derive(Debug)]
pub struct Module {
    pub path: String,
    pub load_bias: u64,
    pub begin: u64,
    pub end: u64,
    pub is_executable: bool,
    pub build_id: Vec<u8>,
    pub code_begin: u64,
    pub code_end: u64,
}

/// The polls of a place. Lengths are in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polls {
    pub pid: u32,
    pub location: u64,
    pub name: String,
    /// The counts of all lanes together, and the greatest length.
    pub polls: (Vec<u64>, u64),
    pub delays: (Vec<u64>, u64),
    pub longest: Vec<LongPoll>,
}

/// One of the longest polls of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongPoll {
    pub pid: u32,
    pub task: u32,
    pub tid: u32,
    pub began: u64,
    pub took: u64,
    pub last: u64,
    pub name: String,
}

/// The location of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub pid: u32,
    pub address: u64,
    pub line: u32,
    pub column: u32,
    /// The end of the file's name.
    pub file: String,
}

/// A mark in the source.
#[derive(Debug, PartialEq, Eq)]
pub struct Site {
    /// `u32::MAX` for a site of a process, which is in no module.
    pub module: usize,
    /// Module-relative, if it is in a module.
    pub pc: u64,
    pub file: String,
    pub module_path: String,
    pub label: String,
    pub line: u32,
    pub column: u32,
    pub kind: u8,
    pub flags: u16,
    pub operand_types: Vec<u8>,
}

/// One thread's part.
#[derive(Debug)]
pub struct Slot {
    pub index: usize,
    pub state: State,
    pub is_capture: bool,
    pub generation: u32,
    pub pid: u32,
    pub tid: u32,
    pub claimed_ns: u64,
    pub exited_ns: u64,
    pub first_sequence: u64,
    pub name: String,
    /// The program gave it the name.
    pub is_named: bool,
    pub count: u64,
    pub words: Vec<u64>,
    pub held_overflowed: u32,
    /// The entries of the held-lock table that are in use, without those that were being written.
    pub held: Vec<Held>,
    /// When its owner recorded some words: sequence and ticks, oldest first.
    pub sampled: Vec<(u64, u64)>,
    /// Sampled times whose two words do not belong together: they were being written.
    pub sampled_torn: u32,
}

/// What a thread does with a lock: see `HELD_*` in `librip_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    Acquiring,
    Waiting,
    Held,
    Releasing,
    CondWait,
    Destroyed,
    SemWait,
    BarrierWait,
    ThreadWait,
    MessageWait,
}

/// An entry of a held-lock table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The lock's address.
    pub lock: u64,
    /// The lower 15 bits of the sequence of the event that made the entry.
    pub sequence: u64,
    /// An actual address.
    pub pc: u64,
    /// It is a return address.
    pub is_caller: bool,
    /// The flags of the site that `pc` stands for, if it is a call.
    pub call: Option<u16>,
    /// What the owner does with it.
    pub state: Holding,
    /// In shared mode.
    pub shared: bool,
    /// Ticks, or 0 if not known. `None` if the entry has no time.
    pub since: Option<u64>,
    /// How often the owner acquired it again. At a barrier: how many threads a round takes, or 0.
    pub recursion: u64,
}

/// A recorded program counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The full sequence, not only the 15 bits that the word holds.
    pub sequence: u64,
    /// An actual address.
    pub pc: u64,
    /// The operand words before it that the slot still has.
    pub operands: Vec<u64>,
}

/// What a slot's owner recorded and the slot still has.
#[derive(Debug, Default)]
pub struct Events {
    /// Oldest first.
    pub events: Vec<Event>,
    /// Sequences that were reserved and whose word is missing.
    pub missing: Vec<u64>,
}

/// Why a file is not a ring, or not a ring that the recorder may leave.
#[derive(Debug)]
pub enum Damage {
    /// There is no such file, or it cannot be read.
    NoFile(std::io::Error),
    /// The magic is zero: the ring was never finished.
    Unfinished,
    /// The format does not allow this.
    Defect(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::NoFile(error) => write!(f, "no file: {error}"),
            Damage::Unfinished => write!(f, "never finished"),
            Damage::Defect(what) => f.write_str(what),
        }
    }
}

impl Ring {
    /// Returns what a slot's owner did with locks: the kind of each event, its flags, and its operands by type.
    pub fn lock_events(&self, slot: &Slot) -> Vec<LockEvent> {
        slot.events().events.iter().filter_map(|event| self.lock_event(event)).collect()
    }

    fn lock_event(&self, event: &Event) -> Option<LockEvent> {
        if self.is_call(event.pc) {
            let &[lock] = &event.operands[..] else { return None };
            let has = |bit: u64| lock & bit != 0;
            return Some(LockEvent {
                kind: kind::LOCK_ACQUIRE_BEGIN,
                flags: call::flags(event.pc, has(call::LOCK_SHARED), has(call::LOCK_OWNED)),
                pc: event.pc,
                lock: lock & !call::LOCK_BITS,
                time: None,
                since: None,
                condition: None,
                location: Some(event.pc & !call::BITS),
            });
        }
        let site = self.site_of(event.pc)?;
        if site.kind <= kind::PROGRESS || event.operands.len() != site.operand_types.len() {
            return None;
        }
        let value = |wanted: u8| {
            let at = site.operand_types.iter().position(|&of| of == wanted)?;
            Some(event.operands[at])
        };
        Some(LockEvent {
            kind: site.kind,
            flags: site.flags,
            pc: event.pc,
            lock: value(operand::LOCK).unwrap_or_default(),
            time: value(operand::TIME),
            since: value(operand::SINCE),
            condition: value(operand::CONDITION),
            location: value(operand::LOCATION),
        })
    }

    /// Whether an actual address in a PC word is a call: it is in a module with wrappers, and not in its code.
    pub fn is_call(&self, pc: u64) -> bool {
        const WRAPPER: u16 = 4;
        let home = self
            .modules
            .iter()
            .rposition(|module| (module.begin..module.end).contains(&pc.wrapping_sub(module.load_bias)));
        home.is_some_and(|home| {
            let module = &self.modules[home];
            !(module.code_begin..module.code_end).contains(&pc.wrapping_sub(module.load_bias))
                && self.sites.iter().any(|site| site.module == home && site.flags & WRAPPER != 0)
        })
    }

    /// The copied location of a call, as `FILE:LINE`.
    pub fn call_of(&self, pc: u64) -> Option<String> {
        let call = self.calls.iter().find(|call| call.address == pc & !call::BITS)?;
        Some(format!("{}:{}", call.file, call.line))
    }

    /// The site of an actual address.
    pub fn site_of(&self, pc: u64) -> Option<&Site> {
        let load_bias = |site: &Site| self.modules.get(site.module).map_or(0, |module| module.load_bias);
        self.sites.iter().find(|site| load_bias(site).wrapping_add(site.pc) == pc)
    }

    /// The label of the site of an actual address.
    ///
    /// # Panics
    ///
    /// When there is no site: the recorder stored an address that is not a mark.
    pub fn label(&self, pc: u64) -> &str {
        match self.site_of(pc) {
            Some(site) => &site.label,
            None => panic!("{pc:#x} is not a site"),
        }
    }

    /// The slots whose owner had this name.
    pub fn slots_named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Slot> {
        let name = name.to_owned();
        self.slots.iter().filter(move |slot| slot.name == name)
    }

    /// The one slot whose owner had this name.
    ///
    /// # Panics
    ///
    /// When there is none, or more than one.
    pub fn slot_named(&self, name: &str) -> &Slot {
        let found: Vec<&Slot> = self.slots_named(name).collect();
        let names: Vec<&str> = self.slots.iter().map(|slot| slot.name.as_str()).collect();
        assert_eq!(found.len(), 1, "slots named {name:?}; there are {names:?}");
        found[0]
    }

    /// The labels that a slot's owner recorded and the slot still holds, oldest first.
    ///
    /// # Panics
    ///
    /// When a word is missing or is not at a site.
    pub fn labels(&self, slot: &Slot) -> Vec<&str> {
        let events = slot.events();
        assert!(events.missing.is_empty(), "slot {} lacks {:?}", slot.index, events.missing);
        events.events.iter().map(|event| self.label(event.pc)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockEvent {
    pub kind: u8,
    pub flags: u16,
    pub pc: u64,
    pub lock: u64,
    pub time: Option<u64>,
    pub since: Option<u64>,
    pub condition: Option<u64>,
    pub location: Option<u64>,
}

impl LockEvent {
    /// The type of the lock: one of `format::lock_type`.
    pub fn lock_type(&self) -> u16 {
        (self.flags & lock_type::BITS) >> lock_type::SHIFT
    }
}

impl Slot {
    /// The entry of a lock in the held-lock table.
    ///
    /// # Panics
    ///
    /// When there are several.
    pub fn held_of(&self, lock: u64) -> Option<Held> {
        let found: Vec<&Held> = self.held.iter().filter(|held| held.lock == lock).collect();
        assert!(found.len() < 2, "{found:?}");
        found.first().copied().copied()
    }

    /// What the present owner recorded.
    pub fn events(&self) -> Events {
        let oldest = self.count.saturating_sub(self.words.len() as u64).max(self.first_sequence);
        let mut events = Events::default();
        let mut operands = Vec::new();
        for sequence in oldest..self.count {
            let value = self.words[(sequence % self.words.len() as u64) as usize];
            let payload = value & word::PAYLOAD;
            if value == 0 || value >> word::SEQUENCE_SHIFT != sequence & 0x7fff {
                events.missing.push(sequence);
                operands.clear();
            } else if value >> word::OPERAND_BIT & 1 == 1 {
                operands.push(payload);
            } else {
                events.events.push(Event { sequence, pc: payload, operands: std::mem::take(&mut operands) });
            }
        }
        events
    }
}
