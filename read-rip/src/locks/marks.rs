//! What the mark at a PC means for locks: looked up once for each PC of a process.
//!
//! It knows sites, and nothing of threads or histories.

use std::collections::HashMap;

use crate::events::Event;
use crate::locations::{LocationId, Locations};
use crate::ring::{HeldLock, Slot};

/// A mark, as far as locks are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) location: LocationId,
    /// `librip_format::KIND_*`; a plain mark where a lock event does not say which lock, or what was done with it.
    pub(super) kind: u8,
    /// The linker has made it one with marks that say something else: it is not known what an event of it means.
    pub(super) is_ambiguous: bool,
    /// `librip_format::SITE_*` and `LOCK_TYPE_*`.
    pub(super) flags: u16,
    pub(super) operand_words: u32,
    /// Which of the operand words are these; `None`: the event has no such.
    pub(super) lock: Option<u32>,
    pub(super) time: Option<u32>,
    pub(super) since: Option<u32>,
    pub(super) caller: Option<u32>,
}

impl Mark {
    pub(super) fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// All marks that were met.
pub(super) struct Marks<'p, 'a> {
    pub(super) locations: &'p mut Locations<'a>,
    known: HashMap<(u32, u64), Mark>,
}

impl<'p, 'a> Marks<'p, 'a> {
    pub(super) fn new(locations: &'p mut Locations<'a>) -> Marks<'p, 'a> {
        Marks { locations, known: HashMap::new() }
    }

    /// The mark at this PC of a process.
    pub(super) fn at(&mut self, pid: u32, pc: u64) -> Mark {
        if let Some(&mark) = self.known.get(&(pid, pc)) {
            return mark;
        }
        let mark = self.look_up(pid, pc);
        self.known.insert((pid, pc), mark);
        mark
    }

    /// What a held-lock table names: a mark, or a call that an interposer has recorded, of which less is known.
    pub(super) fn held(&mut self, pid: u32, held: &HeldLock) -> Mark {
        if !held.is_caller {
            return self.at(pid, held.pc);
        }
        Mark {
            location: self.locations.find_call(pid, held.pc),
            kind: librip_format::KIND_LOCK_ACQUIRE_BEGIN,
            flags: librip_format::SITE_WRAPPER | if held.is_try { librip_format::SITE_TRY } else { 0 },
            is_ambiguous: false,
            operand_words: 0,
            lock: None,
            time: None,
            since: None,
            caller: None,
        }
    }

    /// The mark of an event, and its location: where the mark is, or the call that it stands in for.
    pub(super) fn of(&mut self, slot: &Slot, event: &Event) -> Mark {
        let mark = self.at(slot.pid, event.pc);
        if mark.caller.is_none() {
            return mark;
        }
        Mark { location: self.locations.find(slot, event), ..mark }
    }

    fn look_up(&mut self, pid: u32, pc: u64) -> Mark {
        let mut mark = Mark {
            location: self.locations.find_in(pid, pc),
            kind: librip_format::KIND_SNAP,
            is_ambiguous: false,
            flags: 0,
            operand_words: 0,
            lock: None,
            time: None,
            since: None,
            caller: None,
        };
        // Without the types of its operands, nothing is known of an event's words.
        let Some(meaning) = self.locations.meaning(pid, pc) else { return mark };
        mark.is_ambiguous = meaning.is_ambiguous();
        let Some(operand_words) = meaning.operand_words else { return mark };
        mark.operand_words = operand_words;
        let mut at = 0;
        for &operand_type in meaning.operand_types.unwrap_or_default() {
            match operand_type {
                librip_format::OPERAND_LOCK => mark.lock = mark.lock.or(Some(at)),
                librip_format::OPERAND_TIME => mark.time = mark.time.or(Some(at)),
                librip_format::OPERAND_SINCE => mark.since = mark.since.or(Some(at)),
                librip_format::OPERAND_CALLER => mark.caller = mark.caller.or(Some(at)),
                _ => {}
            }
            at += librip_format::operand_words(operand_type).unwrap_or(0);
        }
        // Nobody holds a semaphore: who has waited for it has taken something, not locked somebody out.
        if meaning.flags() >> librip_format::SITE_LOCK_TYPE_SHIFT == librip_format::LOCK_TYPE_SEMAPHORE {
            mark.lock = None;
        }
        if meaning.kind == Some(librip_format::KIND_PROGRESS) || mark.lock.is_some() {
            mark.kind = meaning.kind.filter(|_| !mark.is_ambiguous).unwrap_or(librip_format::KIND_SNAP);
            mark.flags = meaning.flags();
        }
        mark
    }
}
