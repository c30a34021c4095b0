//! The tables of modules and sites, with their texts.
//!
//! It does not look into a module's file. A damaged entry is counted, and the others are read.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::mem::offset_of;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use librip_format::{Checksum, Module as RawModule, Site as RawSite, Text};

use super::bytes::Bytes;
use super::table::{entries, used_bytes};
use super::{Defect, Header, Module, OperandType, RegionKind, Site, SiteFlags, SiteKind, Source};

/// The longest path of a source file that is accepted, bytes: `PATH_MAX`.
const FILE_MAX_BYTES: usize = 4096;
/// The longest path or text that is accepted, bytes.
const TEXT_MAX_BYTES: u32 = 64 << 10;

/// Reads both tables. A site refers to its module by index.
pub(super) fn read(source: &Source, header: &Header, defects: &mut Vec<Defect>) -> (Vec<Module>, Vec<Site>) {
    let mut texts = Texts::new(used_bytes(source, header.texts, RegionKind::Texts, defects));
    let modules = modules(source, header, &mut texts, defects);
    let sites = sites(source, header, &mut texts, modules.len(), defects);
    (modules, sites)
}

/// Reads only the path of the program, from the first complete entry that is marked as such.
pub(super) fn program(source: &Source, header: &Header) -> Option<PathBuf> {
    let table = used_bytes(source, header.modules, RegionKind::Modules, &mut Vec::new());
    let is_program = |entry: &Bytes<'_>| {
        librip_format::is_complete(entry.u32(offset_of!(RawModule, state)))
            && entry.u32(offset_of!(RawModule, is_executable)) != 0
    };
    let entry = entries(&table, header.modules).find(is_program)?;
    let (offset, len) = text_range(&entry, offset_of!(RawModule, path))?;
    let is_inside = u64::from(offset) + u64::from(len) <= header.texts.used;
    let mut path = vec![0; len as usize];
    let at = header.texts.offset + u64::from(offset);
    let is_read = is_inside && source.read_at(&mut path, at).is_ok_and(|got| got == path.len());
    is_read.then(|| OsString::from_vec(path).into())
}

fn modules(source: &Source, header: &Header, texts: &mut Texts, defects: &mut Vec<Defect>) -> Vec<Module> {
    let kind = RegionKind::Modules;
    let mut modules = Vec::new();
    let mut damaged = Damaged::default();
    let table = used_bytes(source, header.modules, kind, defects);
    for entry in entries(&table, header.modules) {
        // A damaged or unfinished entry keeps its index, because sites refer to modules by index.
        let module = match entry.u32(offset_of!(RawModule, state)) {
            state if librip_format::is_complete(state) => module(&entry, texts),
            _ => Ok(Module::default()),
        };
        modules.push(module.unwrap_or_else(|problem| damaged.note(problem)));
    }
    damaged.report(kind, "a path, range or build id is impossible", defects);
    modules
}

fn module(entry: &Bytes<'_>, texts: &mut Texts) -> Result<Module, Problem> {
    let build_id_len = entry.u32(offset_of!(RawModule, build_id_len_bytes)) as usize;
    let build_id = entry.array::<32>(offset_of!(RawModule, build_id));
    let begin = entry.u64(offset_of!(RawModule, begin));
    let end = entry.u64(offset_of!(RawModule, end));
    if begin > end {
        return Err(Problem::Impossible);
    }
    let path = texts.take(entry, offset_of!(RawModule, path)).ok_or(Problem::Impossible)?;
    let build_id = build_id.get(..build_id_len).ok_or(Problem::Impossible)?.to_vec();
    check(entry, Checksum::new().with(path))?;
    Ok(Module {
        pid: entry.u32(offset_of!(RawModule, pid)),
        load_bias: entry.u64(offset_of!(RawModule, load_bias)),
        begin,
        end,
        code: entry.u64(offset_of!(RawModule, code_begin))..entry.u64(offset_of!(RawModule, code_end)),
        path: OsString::from_vec(path.to_vec()).into(),
        build_id,
        is_executable: entry.u32(offset_of!(RawModule, is_executable)) != 0,
        file_len_bytes: entry.u64(offset_of!(RawModule, file_len_bytes)),
        modified_ns: entry.u64(offset_of!(RawModule, modified_ns)),
    })
}

fn sites(
    source: &Source,
    header: &Header,
    texts: &mut Texts,
    module_count: usize,
    defects: &mut Vec<Defect>,
) -> Vec<Site> {
    let kind = RegionKind::Sites;
    let mut sites = Vec::new();
    let mut damaged = Damaged::default();
    let table = used_bytes(source, header.sites, kind, defects);
    for entry in entries(&table, header.sites) {
        if !librip_format::is_complete(entry.u32(offset_of!(RawSite, state))) {
            continue;
        }
        match site(&entry, texts, module_count) {
            Ok(site) => sites.push(site),
            Err(problem) => damaged.note(problem),
        }
    }
    damaged.report(kind, "a module or text is impossible", defects);
    sites
}

fn site(entry: &Bytes<'_>, texts: &mut Texts, module_count: usize) -> Result<Site, Problem> {
    let module = entry.u32(offset_of!(RawSite, module)) as usize;
    let ([file, module_path, label], sum) = texts
        .parts(entry, offset_of!(RawSite, text))
        .filter(|_| module < module_count)
        .ok_or(Problem::Impossible)?;
    check(entry, sum)?;
    let operand_count = usize::from(entry.u8(offset_of!(RawSite, operand_count)));
    let operand_types = entry.array::<{ librip_format::OPERANDS_MAX }>(offset_of!(RawSite, operand_types));
    let operand_types: Option<Vec<OperandType>> =
        operand_types.get(..operand_count).map(|types| types.iter().map(|&raw| raw.into()).collect());
    Ok(Site {
        module,
        pc: entry.u64(offset_of!(RawSite, pc)),
        file,
        module_path,
        label,
        line: entry.u32(offset_of!(RawSite, line)),
        column: entry.u32(offset_of!(RawSite, column)),
        kind: SiteKind::from(entry.u8(offset_of!(RawSite, kind))),
        flags: SiteFlags::from_bits(entry.u16(offset_of!(RawSite, flags))),
        operand_words: operand_types
            .as_ref()
            .and_then(|types| types.iter().map(|operand| operand.words()).sum()),
        operand_types: operand_types.unwrap_or_default(),
    })
}

/// What can be wrong with an entry.
enum Problem {
    /// A field has a value that no recorder writes.
    Impossible,
    /// The entry or its text does not have its checksum.
    Changed,
}

/// How many entries of a table have each of these problems.
#[derive(Default)]
struct Damaged {
    impossible: u64,
    changed: u64,
}

impl Damaged {
    /// Counts an entry. Returns what stands for it.
    fn note<T: Default>(&mut self, problem: Problem) -> T {
        match problem {
            Problem::Impossible => self.impossible += 1,
            Problem::Changed => self.changed += 1,
        }
        T::default()
    }

    fn report(self, kind: RegionKind, impossible: &'static str, defects: &mut Vec<Defect>) {
        let what = "the entry or its text does not have its checksum";
        for (count, what) in [(self.impossible, impossible), (self.changed, what)] {
            if count > 0 {
                defects.push(Defect::Entries { kind, count, what });
            }
        }
    }
}

/// Checks that an entry and its text have the checksum that is the entry's state.
fn check(entry: &Bytes<'_>, text: Checksum) -> Result<(), Problem> {
    let covered = entry.0.get(size_of::<u32>()..).unwrap_or_default();
    let is_right = Checksum::new().with(covered).with_sum(text).state() == entry.u32(0);
    if is_right { Ok(()) } else { Err(Problem::Changed) }
}

/// The text region.
///
/// A recorder writes each text once, so all different texts together are no longer than the region. Texts that overlap
/// could be any number of times longer: a file of a few MiB could claim a hundred thousand texts of 64 KiB. What goes
/// beyond the region's length is refused, as damaged.
struct Texts {
    bytes: Vec<u8>,
    /// How many bytes of texts may still be copied.
    budget: usize,
    /// The parts of sites' texts and their checksums, by offset and length. Sites can share a text.
    known: HashMap<(u32, u32), Parts>,
    /// The parts of texts, each once: most sites share their file and their module path with others.
    parts: HashSet<Arc<str>>,
}

/// The file, module path and label of a site, and the checksum of all.
type Parts = ([Arc<str>; 3], Checksum);

impl Texts {
    fn new(bytes: Vec<u8>) -> Texts {
        Texts { budget: bytes.len(), bytes, known: HashMap::new(), parts: HashSet::new() }
    }

    /// The text to which the [`Text`] at offset `at` of an entry refers.
    fn take(&mut self, entry: &Bytes<'_>, at: usize) -> Option<&[u8]> {
        let (offset, len) = text_range(entry, at)?;
        let text = self.bytes.get(offset as usize..)?.get(..len as usize)?;
        self.budget = self.budget.checked_sub(text.len())?;
        Some(text)
    }

    /// The text of a site.
    fn parts(&mut self, entry: &Bytes<'_>, at: usize) -> Option<Parts> {
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

    fn part(&mut self, part: &str) -> Arc<str> {
        if let Some(known) = self.parts.get(part) {
            return known.clone();
        }
        let part: Arc<str> = part.into();
        self.parts.insert(part.clone());
        part
    }
}

/// Offset and length of the [`Text`] at offset `at` of an entry, unless it is too long.
fn text_range(entry: &Bytes<'_>, at: usize) -> Option<(u32, u32)> {
    let offset = entry.u32(at + offset_of!(Text, offset));
    let len = entry.u32(at + offset_of!(Text, len_bytes));
    (len <= TEXT_MAX_BYTES).then_some((offset, len))
}
