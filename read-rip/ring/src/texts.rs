//! The region of texts, and how an entry of a table is checked together with its text.
//!
//! It knows no table.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;
use std::sync::Arc;

use librip_format::{Checksum, Text};

use super::bytes::Bytes;
use super::{Defect, RegionKind};

/// The longest path of a source file that is accepted, bytes: `PATH_MAX`.
const FILE_MAX_BYTES: usize = 4096;
/// The longest path or text that is accepted, bytes.
const TEXT_MAX_BYTES: u32 = 64 << 10;

/// What can be wrong with an entry.
pub(super) enum Problem {
    /// A field has a value that no recorder writes.
    Impossible,
    /// The entry or its text does not have its checksum.
    Changed,
}

/// How many entries of a table have each of these problems.
#[derive(Default)]
pub(super) struct Damaged {
    impossible: u64,
    changed: u64,
}

impl Damaged {
    /// Counts an entry. Returns what stands for it.
    pub(super) fn note<T: Default>(&mut self, problem: Problem) -> T {
        match problem {
            Problem::Impossible => self.impossible += 1,
            Problem::Changed => self.changed += 1,
        }
        T::default()
    }

    pub(super) fn report(self, kind: RegionKind, impossible: &'static str, defects: &mut Vec<Defect>) {
        let what = "the entry or its text does not have its checksum";
        for (count, what) in [(self.impossible, impossible), (self.changed, what)] {
            if count > 0 {
                defects.push(Defect::Entries { kind, count, what });
            }
        }
    }
}

/// Checks that an entry and its text have the checksum that is the entry's state.
pub(super) fn check(entry: &Bytes<'_>, text: Checksum) -> Result<(), Problem> {
    check_entry(entry, entry.0.len(), text)
}

/// As [`check`], for an entry of which only the first bytes are written once.
pub(super) fn check_entry(entry: &Bytes<'_>, len: usize, text: Checksum) -> Result<(), Problem> {
    let covered = entry.0.get(size_of::<u32>()..len).unwrap_or_default();
    let is_right = Checksum::new().with(covered).with_sum(text).state() == entry.u32(0);
    if is_right { Ok(()) } else { Err(Problem::Changed) }
}

/// The text region.
///
/// A recorder writes each text once, so all different texts together are no longer than the region. Texts that overlap
/// could be any number of times longer: a file of a few MiB could claim a hundred thousand texts of 64 KiB. What goes
/// beyond the region's length is refused, as damaged.
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// How many bytes of texts may still be copied.
    budget: usize,
    /// The parts of sites' texts and their checksums, by offset and length. Sites can share a text.
    known: HashMap<(u32, u32), Parts>,
    /// The parts of texts, each once: most sites share their file and their module path with others.
    parts: HashSet<Arc<str>>,
}

/// The file, module path and label of a site, and the checksum of all.
pub(super) type Parts = ([Arc<str>; 3], Checksum);

impl Texts {
    pub(super) fn new(bytes: Vec<u8>) -> Texts {
        Texts { budget: bytes.len(), bytes, known: HashMap::new(), parts: HashSet::new() }
    }

    /// The text to which the [`Text`] at offset `at` of an entry refers.
    pub(super) fn take(&mut self, entry: &Bytes<'_>, at: usize) -> Option<&[u8]> {
        let (offset, len) = text_range(entry, at)?;
        let text = self.bytes.get(offset as usize..)?.get(..len as usize)?;
        self.budget = self.budget.checked_sub(text.len())?;
        Some(text)
    }

    pub(super) fn parts(&mut self, entry: &Bytes<'_>, at: usize) -> Option<Parts> {
        let range = text_range(entry, at)?;
        if let Some(known) = self.known.get(&range) {
            return Some(known.clone());
        }
        let bytes = self.take(entry, at)?;
        let sum = Checksum::new().with(bytes);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut parts = text.splitn(3, '\0');
        let parts = [(); 3].map(|()| self.part(parts.next().unwrap_or_default()));
        if parts[0].len() > FILE_MAX_BYTES {
            return None;
        }
        self.known.insert(range, (parts.clone(), sum));
        Some((parts, sum))
    }

    pub(super) fn part(&mut self, part: &str) -> Arc<str> {
        if let Some(known) = self.parts.get(part) {
            return known.clone();
        }
        let part: Arc<str> = part.into();
        self.parts.insert(part.clone());
        part
    }
}

/// Offset and length of the [`Text`] at offset `at` of an entry, unless it is too long.
pub(super) fn text_range(entry: &Bytes<'_>, at: usize) -> Option<(u32, u32)> {
    let offset = entry.u32(at + offset_of!(Text, offset));
    let len = entry.u32(at + offset_of!(Text, len_bytes));
    (len <= TEXT_MAX_BYTES).then_some((offset, len))
}
