//! What the mark at a PC means for locks. Each PC of a process is looked up once.
//!
//! It knows sites, and nothing of threads or histories.

use foldhash::HashMap;
use read_rip_ring::events::Event;
use read_rip_ring::{self as ring, HeldLock, LockType, OperandType, OperandWords, SiteFlags, SiteKind, Slot};

use crate::locations::{Guards, LocationId, Locations};

/// A mark, as far as it concerns locks: that of an event, or of an entry of a held-lock table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) location: LocationId,
    /// What an event says. A plain mark if a lock event does not say which lock it is about, or its meaning is
    /// ambiguous.
    pub(super) kind: SiteKind,
    /// Whether the mark is an entry of a held-lock table that has a return address, and so does not have all flags of
    /// its site.
    pub(super) is_return_address: bool,
    /// More about the event and its lock.
    pub(super) flags: SiteFlags,
    /// The mark says of which class the lock is.
    pub(super) has_class: bool,
}

/// What all events with one PC have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventKind {
    /// The mark at the PC. Operands may say another location, or other flags.
    pub(super) mark: Mark,
    /// The linker folded this mark with marks that differ in meaning, so that the meaning of an event is not known.
    pub(super) is_ambiguous: bool,
    pub(super) is_semaphore: bool,
    /// It is about a wait for what nobody holds.
    pub(super) is_blocked: bool,
    pub(super) operand_words: OperandWords,
    /// The index of the operand word with the lock; `None` if an event has none. The same holds for the fields below.
    pub(super) lock: Option<u32>,
    pub(super) time: Option<u32>,
    pub(super) since: Option<u32>,
    pub(super) caller: Option<u32>,
    pub(super) place: Option<u32>,
    pub(super) condition: Option<u32>,
    /// It signals a condition variable: whether a thread may have waited on it.
    pub(super) signal: Option<bool>,
    /// The word that says who uses the other side of a channel.
    pub(super) peer: Option<u32>,
    /// It destroys a condition variable on which a thread waits.
    pub(super) ends_condition: bool,
    /// It is a call: its operand has flags too.
    pub(super) is_call: bool,
}

impl Mark {
    /// A mark that says nothing about locks.
    fn plain(location: LocationId) -> Mark {
        Mark {
            location,
            kind: SiteKind::Snap,
            is_return_address: false,
            flags: SiteFlags::NONE,
            has_class: false,
        }
    }
}

impl EventKind {
    /// An event that says nothing about locks.
    fn plain(location: LocationId) -> EventKind {
        EventKind {
            mark: Mark::plain(location),
            is_ambiguous: false,
            is_semaphore: false,
            is_blocked: false,
            operand_words: OperandWords::Fixed(0),
            lock: None,
            time: None,
            since: None,
            caller: None,
            place: None,
            condition: None,
            signal: None,
            peer: None,
            ends_condition: false,
            is_call: false,
        }
    }
}

/// The number of a PC that was looked up.
pub(super) type EventKindId = usize;

/// All marks that were looked up.
pub(super) struct Marks<'p, 'a> {
    pub(super) locations: &'p mut Locations<'a>,
    kinds: Vec<EventKind>,
    /// By process and PC.
    known: HashMap<(u32, u64), EventKindId>,
}

impl<'p, 'a> Marks<'p, 'a> {
    pub(super) fn new(locations: &'p mut Locations<'a>) -> Marks<'p, 'a> {
        Marks { locations, kinds: Vec::new(), known: HashMap::default() }
    }

    /// What the mark at a PC of a process makes of an event, or the call that the PC is.
    pub(super) fn find(&mut self, pid: u32, pc: u64) -> EventKindId {
        if let Some(&id) = self.known.get(&(pid, pc)) {
            return id;
        }
        let kind = self.look_up(pid, pc);
        let id = self.kinds.len();
        self.kinds.push(kind);
        self.known.insert((pid, pc), id);
        id
    }

    pub(super) fn kind(&self, id: EventKindId) -> &EventKind {
        &self.kinds[id]
    }

    /// The mark of an entry of a held-lock table. Less is known of a call that an interposer recorded.
    pub(super) fn of_entry(&mut self, pid: u32, held: &HeldLock) -> Mark {
        if let Some(flags) = held.call {
            let location = self.locations.find_in(pid, held.pc);
            return Mark { kind: SiteKind::LockAcquireBegin, flags, ..Mark::plain(location) };
        }
        if !held.is_caller {
            let id = self.find(pid, held.pc);
            return self.kinds[id].mark;
        }
        // The rule is that of the C library's locks.
        let flags = SiteFlags::WRAPPER | SiteFlags::OWNED_BY_RULE;
        Mark {
            kind: SiteKind::LockAcquireBegin,
            is_return_address: true,
            flags: if held.is_try { flags | SiteFlags::TRY } else { flags },
            ..Mark::plain(self.locations.find_call(pid, held.pc))
        }
    }

    /// The mark of an event, given the kind of its PC. Its location is that of the mark, of the wrapper's caller, or of
    /// the call that an interposer recorded.
    pub(super) fn of_event(&mut self, slot: &Slot, event: &Event, id: EventKindId) -> Mark {
        let &EventKind { mark, is_call, caller, place, .. } = self.kind(id);
        if is_call {
            let operand = slot.words.get(event.operands.start).map_or(0, |word| word.payload());
            return Mark { flags: ring::call_flags(event.pc, operand), ..mark };
        }
        if caller.is_none() && place.is_none() {
            return mark;
        }
        Mark { location: self.locations.find(slot, event), ..mark }
    }

    /// Like [`of_event`](Marks::of_event). A release whose caller is not known has the location of its acquisition.
    pub(super) fn of_event_in_order(
        &mut self,
        slot: &Slot,
        event: &Event,
        id: EventKindId,
        guards: &mut Guards,
    ) -> Mark {
        let mark = self.of_event(slot, event, id);
        if !mark.flags.is_wrapper() {
            return mark;
        }
        let lock = self.locations.lock_of(slot, event);
        Mark { location: guards.follow(mark.kind, lock, mark.location, self.locations), ..mark }
    }

    fn look_up(&mut self, pid: u32, pc: u64) -> EventKind {
        let mut event = EventKind::plain(self.locations.find_in(pid, pc));
        // If the operand types are not known, neither is the meaning of an event's words.
        let Some(meaning) = self.locations.meaning(pid, pc) else { return event };
        event.is_call = self.locations.is_call(pid, pc);
        event.is_ambiguous = meaning.is_ambiguous();
        let Some(operand_words) = meaning.operand_words else { return event };
        event.operand_words = operand_words;
        let (mut at, mut peer) = (0, None);
        for &operand_type in meaning.operand_types.unwrap_or_default() {
            match operand_type {
                OperandType::Lock => event.lock = event.lock.or(Some(at)),
                OperandType::Time => event.time = event.time.or(Some(at)),
                OperandType::Since => event.since = event.since.or(Some(at)),
                OperandType::Caller => event.caller = event.caller.or(Some(at)),
                OperandType::Condition => event.condition = event.condition.or(Some(at)),
                OperandType::Location => event.place = event.place.or(Some(at)),
                OperandType::Peer => peer = peer.or(Some(at)),
                _ => {}
            }
            at += operand_type.words().unwrap_or(0);
        }
        event.signal = match meaning.kind.filter(|_| !event.is_ambiguous) {
            Some(SiteKind::ConditionSignalled) => Some(true),
            Some(SiteKind::ConditionUnheard) => Some(false),
            _ => None,
        };
        let is_peer = !event.is_ambiguous && meaning.kind == Some(SiteKind::ChannelPeer);
        event.peer = peer.filter(|_| is_peer);
        event.ends_condition = !event.is_ambiguous && meaning.kind == Some(SiteKind::ConditionDestroyed);
        // Nobody holds a semaphore: only that a thread takes a unit, or posts one, counts. Nothing else that a thread
        // blocks on is a lock.
        let lock_type = meaning.flags().lock_type();
        event.is_semaphore = lock_type == LockType::Semaphore;
        let is_of_unit = matches!(meaning.kind, Some(SiteKind::LockAcquired | SiteKind::LockReleased));
        if lock_type.is_unowned() && !(event.is_semaphore && is_of_unit) {
            event.lock = None;
            event.is_blocked = !event.is_ambiguous;
        }
        if meaning.kind == Some(SiteKind::Progress) || event.lock.is_some() {
            event.mark.kind = meaning.kind.filter(|_| !event.is_ambiguous).unwrap_or(SiteKind::Snap);
            event.mark.flags = meaning.flags();
            event.mark.has_class = self.locations.lock_class(event.mark.location).is_some();
        }
        event
    }
}
