//! The classes of events in a trace: their numbers, their names, and which fields each has.
//!
//! Each kind of mark is a class, with the name that JSON has for it. Two more have no mark: `unknown`, a mark of which
//! the record does not say what it means, and `overwritten`, where the kept history of a thread begins.

use read_rip_report::kind_name;
use read_rip_ring::SiteKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Marks of a kind that has a name.
    Kind(SiteKind),
    /// A mark whose meaning is not known.
    Unknown,
    /// Later words have replaced the words before this moment.
    Overwritten,
}

/// The fields of an event besides those that all have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    Mark,
    Lock,
    Event,
    SpanBegin,
    SpanEnd,
    Overwritten,
}

const KINDS: [SiteKind; 18] = [
    SiteKind::Snap,
    SiteKind::Progress,
    SiteKind::LockWait,
    SiteKind::LockAcquired,
    SiteKind::LockReleased,
    SiteKind::LockTryFailed,
    SiteKind::LockAcquireBegin,
    SiteKind::ConditionWait,
    SiteKind::ConditionWoken,
    SiteKind::LockDestroyed,
    SiteKind::LockInitialised,
    SiteKind::ConditionSignalled,
    SiteKind::ConditionUnheard,
    SiteKind::ConditionDestroyed,
    SiteKind::Event,
    SiteKind::SpanBegin,
    SiteKind::SpanEnd,
    SiteKind::ChannelPeer,
];

/// The number of `unknown`. That of another kind is its index in the list above.
const UNKNOWN: u16 = KINDS.len() as u16;
const OVERWRITTEN: u16 = UNKNOWN + 1;

impl Class {
    /// All classes, in the order of their numbers.
    pub(super) fn all() -> impl Iterator<Item = Class> {
        KINDS.into_iter().map(Class::Kind).chain([Class::Unknown, Class::Overwritten])
    }

    /// The class of marks of a kind; `None` if the kind is not known.
    pub(super) fn of(kind: Option<SiteKind>) -> Class {
        kind.filter(|kind| KINDS.contains(kind)).map_or(Class::Unknown, Class::Kind)
    }

    pub(super) fn id(self) -> u16 {
        match self {
            Class::Kind(kind) => {
                KINDS.iter().position(|&known| known == kind).map_or(UNKNOWN, |index| index as u16)
            }
            Class::Unknown => UNKNOWN,
            Class::Overwritten => OVERWRITTEN,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Class::Kind(kind) => kind_name(kind).unwrap_or("unknown"),
            Class::Unknown => "unknown",
            Class::Overwritten => "overwritten",
        }
    }

    pub(super) fn fields(self) -> Fields {
        match self {
            Class::Kind(SiteKind::Event) => Fields::Event,
            Class::Kind(SiteKind::SpanBegin) => Fields::SpanBegin,
            Class::Kind(SiteKind::SpanEnd) => Fields::SpanEnd,
            Class::Kind(kind) if kind.is_of_lock() => Fields::Lock,
            Class::Kind(_) | Class::Unknown => Fields::Mark,
            Class::Overwritten => Fields::Overwritten,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_a_number_and_a_name_of_its_own() {
        let ids: Vec<u16> = Class::all().map(Class::id).collect();
        assert!(ids.iter().copied().eq(0..20), "{ids:?}");
        let names: std::collections::BTreeSet<&str> = Class::all().map(Class::name).collect();
        assert_eq!(names.len(), ids.len(), "{names:?}");
        // Each kind that the format has is a class.
        let of_raw = |raw: u8| Class::of(Some(SiteKind::from(raw)));
        let known = (0..=u8::MAX).filter(|&raw| of_raw(raw) != Class::Unknown).count();
        assert_eq!(known, KINDS.len());
        assert!((0..=u8::MAX).all(|raw| {
            let is_unknown = matches!(SiteKind::from(raw), SiteKind::Unknown(_));
            is_unknown == (of_raw(raw) == Class::Unknown)
        }));
    }
}
