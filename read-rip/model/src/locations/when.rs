//! When events happened: at a time, or between two.
//!
//! # Question
//!
//! A plain mark has no time of its own. When did the thread pass it?
//!
//! # Method
//!
//! A thread passes its marks in order. So a mark comes after the last event before it that has a time, and before the
//! first one after it. Where there is none, it comes after the claim of the slot, and before the thread's exit, the
//! reading or the process's death. A thread may also have sampled times: of each it is known between which of its
//! events it was, even if these are no longer in its history. So does a task: when polls of it began and ended.
//!
//! # Blind spots
//!
//! Claims and exits are times of the kernel's clock, and events have times of the counter. Where the two are apart, or
//! the counters of two processors, the bounds are wrong by as much. Bounds that have changed places are put in order.

use read_rip_ring::events::{self, Event, Leftover};
use read_rip_ring::{SampledTime, Slot, SlotState, Snapshot};

use super::guards;
use super::location::LocationId;
use super::table::Locations;

/// When something happened, ns since boot: at a time, or between two bounds. What is not known is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct When {
    pub time_ns: Option<u64>,
    /// It was not before this.
    pub after_ns: Option<u64>,
    /// It was not after this.
    pub before_ns: Option<u64>,
}

impl When {
    pub fn at(time_ns: u64) -> When {
        When { time_ns: Some(time_ns), after_ns: Some(time_ns), before_ns: Some(time_ns) }
    }

    /// Between two bounds.
    pub fn between(after_ns: Option<u64>, before_ns: Option<u64>) -> When {
        match (after_ns, before_ns) {
            (Some(after), Some(before)) if after > before => {
                When { time_ns: None, after_ns: before_ns, before_ns: after_ns }
            }
            _ => When { time_ns: None, after_ns, before_ns },
        }
    }

    /// The bounds of something that has no time.
    pub fn bounds(&self) -> (Option<u64>, Option<u64>) {
        if self.time_ns.is_some() { (None, None) } else { (self.after_ns, self.before_ns) }
    }
}

/// Where the times of a ring end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    /// The time of the reading or of the process's end, ns since boot; `None`: not known.
    pub now_ns: Option<u64>,
    /// Nothing was recorded after this, ns since boot. If `now_ns` is not known, a moment at which the process was
    /// dead.
    pub end_ns: Option<u64>,
}

/// The time that the user wants to see, ns since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// From this moment on.
    pub since_ns: Option<u64>,
    /// Up to this moment.
    pub until_ns: Option<u64>,
}

impl Limits {
    /// Whether not everything is wanted.
    pub fn is_limited(&self) -> bool {
        *self != Limits::default()
    }

    /// Whether something may have happened in that time.
    pub fn has(&self, when: &When) -> bool {
        self.overlap(when.after_ns, when.before_ns)
    }

    /// Whether a length of time has a part in that time. A limit that is `None` is not known, and may be anywhere.
    pub fn overlap(&self, from_ns: Option<u64>, to_ns: Option<u64>) -> bool {
        let is_before = |a: Option<u64>, b: Option<u64>| a.zip(b).is_none_or(|(a, b)| a <= b);
        is_before(self.since_ns, to_ns) && is_before(from_ns, self.until_ns)
    }
}

/// An event of a history, where it was, and when.
#[derive(Clone, Debug)]
pub struct Dated {
    pub event: Event,
    pub location: LocationId,
    pub when: When,
}

/// What a thread recorded, oldest first, with places and times.
pub fn dated_history(slot: &Slot, locations: &mut Locations<'_>, horizon: Horizon) -> (Vec<Dated>, Leftover) {
    let (events, leftover) = guards::history(slot, locations);
    // A history may be long, so there are no more copies of it than needed.
    let undated = |(event, location)| Dated { event, location, when: When::default() };
    let mut dated: Vec<Dated> = events.into_iter().map(undated).collect();
    let whens = whens(slot, dated.iter().map(|dated| &dated.event), locations, horizon);
    for (dated, when) in dated.iter_mut().zip(whens) {
        dated.when = when;
    }
    (dated, leftover)
}

/// When the events of a slot happened, which are all that are known, in order.
pub fn whens<'e>(
    slot: &Slot,
    events: impl Iterator<Item = &'e Event>,
    locations: &Locations<'_>,
    horizon: Horizon,
) -> Vec<When> {
    let mut after_ns = claimed_ns(slot);
    let mut sampled = slot.sampled.iter().peekable();
    let moment = |time: &SampledTime| locations.moment(slot, time.ticks, horizon.now_ns);
    // The times that were sampled before an event, and after those before it.
    let mut passed = Vec::new();
    let mut whens: Vec<When> = events
        .map(|event| {
            let mut before = None;
            while let Some(time) = sampled.next_if(|time| time.is_before(event.sequence)) {
                before = moment(time);
                after_ns = before.or(after_ns);
            }
            passed.push(before);
            forward(locations.time_of(slot, event, horizon.now_ns), &mut after_ns)
        })
        .collect();
    let mut before_ns = sampled.next().and_then(moment).or(exited_ns(slot)).or(horizon.end_ns);
    for (when, passed) in whens.iter_mut().zip(passed).rev() {
        backward(when, &mut before_ns);
        before_ns = passed.or(before_ns);
    }
    whens
}

/// When an event was, by its own time and by the events before it.
fn forward(time_ns: Option<u64>, after_ns: &mut Option<u64>) -> When {
    match time_ns {
        Some(time_ns) => {
            *after_ns = Some(time_ns);
            When::at(time_ns)
        }
        None => When::between(*after_ns, None),
    }
}

/// Adds what the events after it say.
fn backward(when: &mut When, before_ns: &mut Option<u64>) {
    match when.time_ns {
        Some(time_ns) => *before_ns = Some(time_ns),
        None => *when = When::between(when.after_ns, *before_ns),
    }
}

/// When the owner of a slot claimed it, ns since boot; `None` if that is not known.
fn claimed_ns(slot: &Slot) -> Option<u64> {
    Some(slot.claimed_boottime_ns).filter(|&ns| ns > 0)
}

/// When the owner of a slot exited, ns since boot; `None` if it did not, or that is not known.
pub fn exited_ns(slot: &Slot) -> Option<u64> {
    Some(slot.exited_boottime_ns).filter(|&ns| ns > 0 && slot.state == SlotState::Exited)
}

/// The last recorded moment of a process that died at an unknown one, ns since boot.
pub fn latest_ns(snapshot: &Snapshot, locations: &Locations<'_>) -> Option<u64> {
    let of_slot = |index: usize| {
        let slot = snapshot.recorded(index);
        let (events, _) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
        let of_events = events.iter().filter_map(|event| locations.time_of(slot, event, None)).max();
        let held = slot.held.iter().filter_map(|held| held.since_ticks);
        let open = slot.spans.iter().filter_map(|open| open.since_ticks);
        let sampled = slot.sampled.last().map(|time| time.ticks);
        let of_tables =
            held.chain(open).chain(sampled).filter_map(|ticks| locations.moment(slot, ticks, None)).max();
        of_events.max(of_tables).max(exited_ns(slot)).max(Some(slot.claimed_boottime_ns))
    };
    snapshot.all_recorded().filter_map(of_slot).max().filter(|&ns| ns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_counts_if_a_part_of_it_is_wanted() {
        let limits = Limits { since_ns: Some(10), until_ns: Some(20) };
        for (from, to, expected) in [
            (Some(0), Some(9), false),
            (Some(0), Some(10), true),
            (Some(12), Some(13), true),
            (Some(0), Some(30), true),
            (Some(20), Some(30), true),
            (Some(21), Some(30), false),
            (None, Some(9), false),
            (None, Some(10), true),
            (Some(20), None, true),
            (Some(21), None, false),
            (None, None, true),
        ] {
            assert_eq!(limits.overlap(from, to), expected, "{from:?} to {to:?}");
        }
        assert!(Limits::default().overlap(Some(0), Some(0)));
        assert!(limits.is_limited() && !Limits::default().is_limited());
    }

    #[test]
    fn bounds_that_have_changed_places_are_put_in_order() {
        let when = When::between(Some(12), Some(10));
        assert_eq!((when.after_ns, when.before_ns), (Some(10), Some(12)));
        assert_eq!(when.bounds(), (Some(10), Some(12)));
        assert_eq!(When::at(7).bounds(), (None, None));
    }
}
