//! The texts to which events refer, as the ring has them.

use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::Arc;

use librip_format::{Checksum, StaticText as Raw};

use super::bytes::Bytes;
use super::table::entries;
use super::texts::{Damaged, Problem, Texts, check};
use super::{Defect, Header, RegionKind};

/// Texts by process, address and length.
#[derive(Debug, Default)]
pub struct StaticTexts(HashMap<(u32, u64, u64), StaticText>);

/// A text, or its beginning; may contain anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticText {
    pub text: Arc<str>,
    /// Whether the whole text is longer.
    pub is_cut: bool,
}

impl StaticTexts {
    /// The text at an address. `len` is its length in bytes; 0: not known, and then any text there will do.
    pub fn get(&self, pid: u32, address: u64, len: u64) -> Option<&StaticText> {
        if len > 0 {
            return self.0.get(&(pid, address, len));
        }
        let here = self.0.iter().filter(|&(&(of, at, _), _)| (of, at) == (pid, address));
        here.min_by_key(|&(&(.., len), _)| len).map(|(_, text)| text)
    }
}

/// Reads the table. Damaged entries are counted, and unfinished ones left out.
pub(super) fn read(
    table: &[u8],
    header: &Header,
    texts: &mut Texts,
    defects: &mut Vec<Defect>,
) -> StaticTexts {
    let kind = RegionKind::Strings;
    let mut read = StaticTexts::default();
    let mut damaged = Damaged::default();
    for entry in entries(table, header.strings) {
        if !librip_format::is_complete(entry.u32(offset_of!(Raw, state))) {
            continue;
        }
        match static_text(&entry, texts) {
            Ok((key, text)) => drop(read.0.insert(key, text)),
            Err(problem) => damaged.note(problem),
        }
    }
    damaged.report(kind, "a text is impossible", defects);
    read
}

fn static_text(entry: &Bytes<'_>, texts: &mut Texts) -> Result<((u32, u64, u64), StaticText), Problem> {
    let bytes = texts.take(entry, offset_of!(Raw, text)).ok_or(Problem::Impossible)?;
    let len = entry.u64(offset_of!(Raw, len_bytes));
    if (bytes.len() as u64) > len {
        return Err(Problem::Impossible);
    }
    check(entry, Checksum::new().with(bytes))?;
    let text = StaticText { text: String::from_utf8_lossy(bytes).into(), is_cut: (bytes.len() as u64) < len };
    Ok(((entry.u32(offset_of!(Raw, pid)), entry.u64(offset_of!(Raw, address)), len), text))
}
