//! What the operands of an event say: its lock, its time, its caller's callers.
//!
//! It resolves nothing.

use read_rip_ring::events::Event;
use read_rip_ring::{OperandType, SiteFlags, Slot, call_flags, call_lock};

use super::meaning::Meaning;
use super::table::Locations;

impl Locations<'_> {
    /// The address of the lock that an event of a slot is about, if it is about one.
    pub fn lock_of(&self, slot: &Slot, event: &Event) -> Option<u64> {
        let lock = self.operand(slot, event, OperandType::Lock)?;
        Some(if self.is_call(slot.pid, event.pc) { call_lock(lock) } else { lock })
    }

    /// The time of an event that has one, ns since boot. `now_ns` is the time of the reading or of the process's end.
    pub fn time_of(&self, slot: &Slot, event: &Event, now_ns: Option<u64>) -> Option<u64> {
        let ticks = self.recorded_ticks(slot, event).or_else(|| sampled_ticks(slot, event))?;
        self.moment(slot, ticks, now_ns)
    }

    /// The time that is one of the operands.
    fn recorded_ticks(&self, slot: &Slot, event: &Event) -> Option<u64> {
        match self.operand(slot, event, OperandType::Shape) {
            Some(_) => slot.values(event.operands.clone())?.ticks,
            None => self.operand(slot, event, OperandType::Time),
        }
    }

    /// The moment that a slot's owner recorded as these ticks, ns since boot. `now_ns` is as for
    /// [`time_of`](Locations::time_of).
    pub fn moment(&self, slot: &Slot, ticks: u64, now_ns: Option<u64>) -> Option<u64> {
        let clock = self.snapshot.header.as_ref()?.clock?;
        clock.boottime_ns(ticks, slot.claimed_boottime_ns, now_ns)
    }

    /// When the clock of the ring began, ns since boot.
    pub fn began_ns(&self) -> Option<u64> {
        Some(self.snapshot.header.as_ref()?.clock?.base_boottime_ns)
    }

    /// The first operand of a type that has one word.
    pub fn operand(&self, slot: &Slot, event: &Event, operand_type: OperandType) -> Option<u64> {
        if event.operands.is_empty() {
            return None;
        }
        let types = self.meaning(slot.pid, event.pc)?.operand_types?;
        let position = types.iter().position(|&operand| operand == operand_type)?;
        let before: u32 = types[..position].iter().filter_map(|operand| operand.words()).sum();
        let at = event.operands.start + before as usize;
        slot.words.get(at).filter(|_| event.operands.contains(&at)).map(|word| word.payload())
    }

    /// What the mark of an event says besides its kind.
    pub fn flags_of(&self, slot: &Slot, event: &Event) -> SiteFlags {
        if self.is_call(slot.pid, event.pc) {
            let operand = slot.words.get(event.operands.start).map_or(0, |word| word.payload());
            return call_flags(event.pc, operand);
        }
        self.meaning(slot.pid, event.pc).map_or(SiteFlags::NONE, Meaning::flags)
    }

    /// The words of the stack in an event; empty if it has none.
    pub(super) fn stack(&self, slot: &Slot, event: &Event) -> Vec<u64> {
        let types = self.meaning(slot.pid, event.pc).and_then(|meaning| meaning.operand_types);
        let mut at = event.operands.start;
        let mut found = Vec::new();
        for operand in types.unwrap_or_default() {
            if *operand == OperandType::Stack
                && let Some(word) = slot.words.get(at).filter(|_| event.operands.contains(&at))
                && word.payload() != 0
            {
                found.push(word.payload());
            }
            at += operand.words().unwrap_or(0) as usize;
        }
        found
    }
}

/// The time that was sampled of one of the event's words.
fn sampled_ticks(slot: &Slot, event: &Event) -> Option<u64> {
    let first = event.sequence - event.operands.len() as u64;
    let at = slot.sampled.partition_point(|time| time.sequence < first);
    let mut of_event = slot.sampled[at..].iter().take_while(|time| time.sequence <= event.sequence);
    of_event.find(|time| time.is_of_word).map(|time| time.ticks)
}
