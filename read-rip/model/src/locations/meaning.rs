//! What the marks at a PC mean, even if the linker folded several marks into one.
//!
//! Linkers fold functions whose instructions are equal (`--icf`). Marks that differ only in their notes then share
//! a PC, and an event does not say which of them was passed. So only what all of them have in common is known. This
//! file knows sites, and nothing of events.

use read_rip_ring::{LockType, OperandType, OperandWords, Site, SiteFlags, SiteKind};

/// Flags that prevent conclusions. They are set if any of the marks has them.
const CAUTIOUS: [SiteFlags; 2] = [SiteFlags::TRY, SiteFlags::REENTRANT];

/// At most this many marks of one PC are shown. A linker may fold hundreds of functions, and a damaged ring claim
/// millions.
pub const MARKS_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Marks<'a> {
    /// Indices of the sites, one for each different site. If there are more than [`MARKS_MAX`], the list is incomplete.
    pub(super) different: Vec<usize>,
    pub(super) meaning: Meaning<'a>,
}

impl<'a> Marks<'a> {
    /// No marks yet, with the meaning of `site`. The caller adds `site` next.
    pub(super) fn of(site: &'a Site) -> Marks<'a> {
        Marks { different: Vec::new(), meaning: Meaning::of(site) }
    }

    pub(super) fn add(&mut self, index: usize, sites: &'a [Site]) {
        let said = |index: usize| {
            let Site { file, line, label, format, kind, flags, operand_types, .. } = &sites[index];
            (file, line, label, format, kind, flags, operand_types)
        };
        self.meaning = self.meaning.and(&sites[index]);
        let is_new = || self.different.iter().all(|&known| said(known) != said(index));
        if self.different.len() <= MARKS_MAX && is_new() {
            self.different.push(index);
        }
    }
}

/// What all marks at a PC have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning<'a> {
    /// What an event says; `None` if the marks have different kinds.
    pub kind: Option<SiteKind>,
    /// The type of each operand; `None` if the marks have different ones.
    pub operand_types: Option<&'a [OperandType]>,
    /// Operand words before the PC word of an event; `None` if the marks differ, or an operand type is unknown.
    pub operand_words: Option<OperandWords>,
    /// The flags that all marks have.
    pub(super) all_flags: SiteFlags,
    /// The flags that at least one mark has.
    pub(super) any_flags: SiteFlags,
    /// Whether the marks agree on the type of their lock.
    pub(super) is_type_known: bool,
}

impl<'a> Meaning<'a> {
    fn of(site: &'a Site) -> Meaning<'a> {
        Meaning {
            kind: Some(site.kind),
            operand_types: Some(&site.operand_types),
            operand_words: site.operand_words,
            all_flags: site.flags,
            any_flags: site.flags,
            is_type_known: true,
        }
    }

    /// The meaning with another mark.
    fn and(self, site: &'a Site) -> Meaning<'a> {
        Meaning {
            kind: self.kind.filter(|&kind| kind == site.kind),
            operand_types: self.operand_types.filter(|&types| types == site.operand_types),
            operand_words: self.operand_words.filter(|&words| Some(words) == site.operand_words),
            all_flags: self.all_flags & site.flags,
            any_flags: self.any_flags | site.flags,
            is_type_known: self.is_type_known && self.any_flags.lock_type() == site.flags.lock_type(),
        }
    }

    /// Whether the marks differ in meaning, so that the meaning of an event is not known.
    pub fn is_ambiguous(&self) -> bool {
        self.kind.is_none() || self.operand_types.is_none() || self.all_flags != self.any_flags
    }

    /// Whether the marks are in a wrapper: see [`Site::is_wrapper`].
    pub fn is_wrapper(&self) -> bool {
        self.kind.is_none_or(SiteKind::is_of_lock) && self.flags().is_wrapper()
    }

    /// The flags that all marks have. A flag that prevents conclusions counts if any mark has it. The type of the lock
    /// is known if all marks agree on it.
    pub fn flags(&self) -> SiteFlags {
        let lock_type = if self.is_type_known { self.all_flags.lock_type() } else { LockType::Unknown };
        CAUTIOUS
            .into_iter()
            .filter(|&cautious| self.any_flags.contains(cautious))
            .fold(self.all_flags.with_lock_type(lock_type), |flags, cautious| flags | cautious)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use read_rip_ring::Home;

    fn site(kind: SiteKind, flags: SiteFlags, operand_types: &[OperandType]) -> Site {
        Site {
            home: Home::Module(0),
            pc: 0x1000,
            file: "a.c".into(),
            module_path: "".into(),
            label: "".into(),
            format: "".into(),
            line: 1,
            column: 0,
            kind,
            flags,
            operand_types: operand_types.to_vec(),
            operand_words: OperandWords::of(operand_types),
        }
    }

    const NONE: SiteFlags = SiteFlags::NONE;
    const MUTEX: SiteFlags = NONE.with_lock_type(LockType::Mutex);
    const SPIN: SiteFlags = NONE.with_lock_type(LockType::Spin);
    const LOCK: &[OperandType] = &[OperandType::Lock];

    #[test]
    fn marks_with_one_meaning_have_that_meaning() {
        let released = site(SiteKind::LockReleased, MUTEX | SiteFlags::SHARED, LOCK);
        let other = Site { line: 2, label: "other".into(), ..released.clone() };
        let meaning = Meaning::of(&released).and(&other);
        assert_eq!(meaning, Meaning::of(&released));
        assert!(!meaning.is_ambiguous());
        assert_eq!(meaning.flags(), released.flags);
    }

    #[test]
    fn marks_that_differ_mean_what_they_have_in_common() {
        let (snap, progress) = (site(SiteKind::Snap, NONE, &[]), site(SiteKind::Progress, NONE, &[]));
        let meaning = Meaning::of(&snap).and(&progress).and(&snap);
        assert!(meaning.is_ambiguous());
        assert_eq!((meaning.kind, meaning.operand_words), (None, Some(OperandWords::Fixed(0))));

        let shared = site(SiteKind::LockReleased, SiteFlags::SHARED, LOCK);
        let exclusive = Site { flags: NONE, ..shared.clone() };
        let meaning = Meaning::of(&shared).and(&exclusive);
        assert!(meaning.is_ambiguous());
        assert_eq!((meaning.kind, meaning.operand_types), (Some(SiteKind::LockReleased), Some(LOCK)));
        assert_eq!(meaning.flags(), NONE);

        let other = site(SiteKind::LockReleased, NONE, &[OperandType::Word]);
        let meaning = Meaning::of(&exclusive).and(&other);
        assert!(meaning.is_ambiguous(), "one of them is about no lock");
        assert_eq!((meaning.operand_types, meaning.operand_words), (None, Some(OperandWords::Fixed(1))));
    }

    #[test]
    fn a_level_is_no_wrapper() {
        let warning = SiteFlags::from_bits(librip_format::LEVEL_WARN);
        let event = site(SiteKind::Event, warning, &[OperandType::Shape]);
        assert!(!Meaning::of(&event).is_wrapper() && !event.is_wrapper());
        assert!(Meaning::of(&site(SiteKind::LockWait, SiteFlags::WRAPPER, LOCK)).is_wrapper());
    }

    #[test]
    fn flags_that_differ_are_those_that_allow_fewer_conclusions() {
        let flags = |left, right| {
            let (left, right) = (site(SiteKind::LockWait, left, LOCK), site(SiteKind::LockWait, right, LOCK));
            Meaning::of(&left).and(&right).flags()
        };
        assert_eq!(flags(SiteFlags::WRAPPER | MUTEX, MUTEX), MUTEX, "it may be marked by hand");
        assert_eq!(flags(SiteFlags::TRY, NONE), SiteFlags::TRY, "the wait may end by itself");
        assert_eq!(flags(NONE, SiteFlags::REENTRANT), SiteFlags::REENTRANT);
        assert_eq!(flags(SiteFlags::OWNED | SPIN, SiteFlags::OWNED | MUTEX), SiteFlags::OWNED);
    }
}
