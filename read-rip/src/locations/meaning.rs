//! What the marks at a PC say of its events, also where the linker has made several marks one.
//!
//! Linkers fold functions whose instructions are equal (`--icf`). Marks that differ in nothing but their notes then share a
//! PC, and an event does not tell which of them was passed: known is what all of them say. It knows sites, and nothing
//! of events.

use crate::ring::Site;

/// Flags that stop conclusions: they are believed as soon as one of the marks has them.
const CAUTIOUS: u16 = librip_format::SITE_TRY | librip_format::SITE_REENTRANT;

/// So many marks of one PC are told. A linker may fold hundreds of functions, and a damaged ring claim millions.
pub const MARKS_MAX: usize = 8;

/// The marks at a PC.
#[derive(Debug)]
pub(super) struct Marks<'a> {
    /// Indices of the sites, of those that say the same the first. More than [`MARKS_MAX`]: there are others.
    pub(super) different: Vec<usize>,
    pub(super) meaning: Meaning<'a>,
}

impl<'a> Marks<'a> {
    /// Of a site that is still to be added.
    pub(super) fn of(site: &'a Site) -> Marks<'a> {
        Marks { different: Vec::new(), meaning: Meaning::of(site) }
    }

    pub(super) fn add(&mut self, index: usize, sites: &'a [Site]) {
        let said = |index: usize| {
            let Site { file, line, label, kind, flags, operand_types, .. } = &sites[index];
            (file, line, label, kind, flags, operand_types)
        };
        self.meaning = self.meaning.and(&sites[index]);
        let is_new = || self.different.iter().all(|&known| said(known) != said(index));
        if self.different.len() <= MARKS_MAX && is_new() {
            self.different.push(index);
        }
    }
}

/// What all marks at a PC say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning<'a> {
    /// `librip_format::KIND_*`; `None`: they are of several kinds.
    pub kind: Option<u8>,
    /// `librip_format::OPERAND_*` of each operand; `None`: they have different ones.
    pub operand_types: Option<&'a [u8]>,
    /// Operand words before the PC word of an event; `None`: different, or of types this version does not know.
    pub operand_words: Option<u32>,
    /// The flags of all, and those of any.
    all_flags: u16,
    any_flags: u16,
    /// They agree on the type of their lock.
    is_type_known: bool,
}

impl<'a> Meaning<'a> {
    /// Of a PC with one mark.
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

    /// The same with another mark.
    fn and(self, site: &'a Site) -> Meaning<'a> {
        let lock_type = |flags| flags >> librip_format::SITE_LOCK_TYPE_SHIFT;
        Meaning {
            kind: self.kind.filter(|&kind| kind == site.kind),
            operand_types: self.operand_types.filter(|&types| types == site.operand_types),
            operand_words: self.operand_words.filter(|&words| Some(words) == site.operand_words),
            all_flags: self.all_flags & site.flags,
            any_flags: self.any_flags | site.flags,
            is_type_known: self.is_type_known && lock_type(self.any_flags) == lock_type(site.flags),
        }
    }

    /// Whether they say different things: what an event of theirs means is not known.
    pub fn is_ambiguous(&self) -> bool {
        self.kind.is_none() || self.operand_types.is_none() || self.all_flags != self.any_flags
    }

    /// `librip_format::SITE_*` and `LOCK_TYPE_*`, as far as all say the same. Where they do not, the flags are those from
    /// which least follows.
    pub fn flags(&self) -> u16 {
        let types = u16::MAX << librip_format::SITE_LOCK_TYPE_SHIFT;
        let known = if self.is_type_known { self.all_flags } else { self.all_flags & !types };
        known | self.any_flags & CAUTIOUS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(kind: u8, flags: u16, operand_types: &[u8]) -> Site {
        Site {
            module: 0,
            pc: 0x1000,
            file: "a.c".into(),
            module_path: String::new(),
            label: String::new(),
            line: 1,
            column: 0,
            kind,
            flags,
            operand_types: operand_types.to_vec(),
            operand_words: operand_types.iter().map(|&operand| librip_format::operand_words(operand)).sum(),
        }
    }

    const MUTEX: u16 = librip_format::LOCK_TYPE_MUTEX << librip_format::SITE_LOCK_TYPE_SHIFT;
    const SPIN: u16 = librip_format::LOCK_TYPE_SPIN << librip_format::SITE_LOCK_TYPE_SHIFT;
    const LOCK: &[u8] = &[librip_format::OPERAND_LOCK];

    #[test]
    fn marks_that_say_the_same_mean_what_each_of_them_means() {
        let released = site(librip_format::KIND_LOCK_RELEASED, MUTEX | librip_format::SITE_SHARED, LOCK);
        let other = Site { line: 2, label: "other".into(), ..released.clone() };
        let meaning = Meaning::of(&released).and(&other);
        assert_eq!(meaning, Meaning::of(&released));
        assert!(!meaning.is_ambiguous());
        assert_eq!(meaning.flags(), released.flags);
    }

    #[test]
    fn of_marks_that_differ_is_known_what_they_have_in_common() {
        let (snap, progress) =
            (site(librip_format::KIND_SNAP, 0, &[]), site(librip_format::KIND_PROGRESS, 0, &[]));
        let meaning = Meaning::of(&snap).and(&progress).and(&snap);
        assert!(meaning.is_ambiguous());
        assert_eq!((meaning.kind, meaning.operand_words), (None, Some(0)));

        let shared = site(librip_format::KIND_LOCK_RELEASED, librip_format::SITE_SHARED, LOCK);
        let exclusive = Site { flags: 0, ..shared.clone() };
        let meaning = Meaning::of(&shared).and(&exclusive);
        assert!(meaning.is_ambiguous());
        assert_eq!(
            (meaning.kind, meaning.operand_types),
            (Some(librip_format::KIND_LOCK_RELEASED), Some(LOCK))
        );
        assert_eq!(meaning.flags(), 0);

        let other = site(librip_format::KIND_LOCK_RELEASED, 0, &[librip_format::OPERAND_WORD]);
        let meaning = Meaning::of(&exclusive).and(&other);
        assert!(meaning.is_ambiguous(), "one of them is about no lock");
        assert_eq!((meaning.operand_types, meaning.operand_words), (None, Some(1)));
    }

    #[test]
    fn flags_that_differ_are_those_from_which_least_follows() {
        let flags = |left, right| {
            let (left, right) = (site(2, left, LOCK), site(2, right, LOCK));
            Meaning::of(&left).and(&right).flags()
        };
        assert_eq!(flags(librip_format::SITE_WRAPPER | MUTEX, MUTEX), MUTEX, "it may be by hand");
        assert_eq!(flags(librip_format::SITE_TRY, 0), librip_format::SITE_TRY, "it may end by itself");
        assert_eq!(flags(0, librip_format::SITE_REENTRANT), librip_format::SITE_REENTRANT);
        assert_eq!(
            flags(librip_format::SITE_OWNED | SPIN, librip_format::SITE_OWNED | MUTEX),
            librip_format::SITE_OWNED
        );
    }
}
