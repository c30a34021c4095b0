//! The tables of modules and sites, with their texts.
//!
//! It does not look into a module's file. A damaged entry is counted, and the others are read.

use std::ffi::OsString;
use std::mem::offset_of;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use librip_format::{Module as RawModule, Site as RawSite, Text};

use super::bytes::Bytes;
use super::table::{entries, used_bytes};
use super::{Defect, Header, Module, OperandType, RegionKind, Site, SiteFlags, SiteKind, Source};

/// The longest path or text that is accepted, bytes.
const TEXT_MAX_BYTES: u32 = 64 << 10;

/// Reads both tables. A site refers to its module by index.
pub(super) fn read(source: &Source, header: &Header, defects: &mut Vec<Defect>) -> (Vec<Module>, Vec<Site>) {
    let texts = Texts(used_bytes(source, header.texts, RegionKind::Texts, defects));
    let modules = modules(source, header, &texts, defects);
    let sites = sites(source, header, &texts, modules.len(), defects);
    (modules, sites)
}

fn modules(source: &Source, header: &Header, texts: &Texts, defects: &mut Vec<Defect>) -> Vec<Module> {
    let kind = RegionKind::Modules;
    let mut modules = Vec::new();
    let mut damaged = 0;
    let table = used_bytes(source, header.modules, kind, defects);
    for entry in entries(&table, header.modules) {
        // A damaged or unfinished entry keeps its index, because sites refer to modules by index.
        let module = match entry.u32(offset_of!(RawModule, state)) {
            librip_format::ENTRY_COMPLETE => module(&entry, texts),
            _ => Some(Module::default()),
        };
        damaged += u64::from(module.is_none());
        modules.push(module.unwrap_or_default());
    }
    if damaged > 0 {
        let what = "a path, range or build id is impossible";
        defects.push(Defect::Entries { kind, count: damaged, what });
    }
    modules
}

fn module(entry: &Bytes<'_>, texts: &Texts) -> Option<Module> {
    let build_id_len = entry.u32(offset_of!(RawModule, build_id_len_bytes)) as usize;
    let build_id = entry.array::<32>(offset_of!(RawModule, build_id));
    let begin = entry.u64(offset_of!(RawModule, begin));
    let end = entry.u64(offset_of!(RawModule, end));
    if begin > end {
        return None;
    }
    Some(Module {
        pid: entry.u32(offset_of!(RawModule, pid)),
        load_bias: entry.u64(offset_of!(RawModule, load_bias)),
        begin,
        end,
        path: PathBuf::from(OsString::from_vec(texts.get(entry, offset_of!(RawModule, path))?.to_vec())),
        build_id: build_id.get(..build_id_len)?.to_vec(),
        is_executable: entry.u32(offset_of!(RawModule, is_executable)) != 0,
        file_len_bytes: entry.u64(offset_of!(RawModule, file_len_bytes)),
        modified_ns: entry.u64(offset_of!(RawModule, modified_ns)),
    })
}

fn sites(
    source: &Source,
    header: &Header,
    texts: &Texts,
    module_count: usize,
    defects: &mut Vec<Defect>,
) -> Vec<Site> {
    let kind = RegionKind::Sites;
    let mut sites = Vec::new();
    let mut damaged = 0;
    let table = used_bytes(source, header.sites, kind, defects);
    for entry in entries(&table, header.sites) {
        if entry.u32(offset_of!(RawSite, state)) != librip_format::ENTRY_COMPLETE {
            continue;
        }
        match site(&entry, texts).filter(|site| site.module < module_count) {
            Some(site) => sites.push(site),
            None => damaged += 1,
        }
    }
    if damaged > 0 {
        defects.push(Defect::Entries { kind, count: damaged, what: "a module or text is impossible" });
    }
    sites
}

fn site(entry: &Bytes<'_>, texts: &Texts) -> Option<Site> {
    let text = texts.get(entry, offset_of!(RawSite, text))?;
    let mut parts = text.splitn(3, |&byte| byte == 0).map(String::from_utf8_lossy);
    let mut part = || parts.next().unwrap_or_default().into_owned();
    let operand_count = usize::from(entry.u8(offset_of!(RawSite, operand_count)));
    let operand_types = entry.array::<{ librip_format::OPERANDS_MAX }>(offset_of!(RawSite, operand_types));
    let operand_types: Option<Vec<OperandType>> =
        operand_types.get(..operand_count).map(|types| types.iter().map(|&raw| raw.into()).collect());
    Some(Site {
        module: entry.u32(offset_of!(RawSite, module)) as usize,
        pc: entry.u64(offset_of!(RawSite, pc)),
        file: part(),
        module_path: part(),
        label: part(),
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

/// The text region.
struct Texts(Vec<u8>);

impl Texts {
    /// The text to which the [`Text`] at offset `at` of an entry refers.
    fn get(&self, entry: &Bytes<'_>, at: usize) -> Option<&[u8]> {
        let offset = entry.u32(at + offset_of!(Text, offset)) as usize;
        let len = entry.u32(at + offset_of!(Text, len_bytes));
        if len > TEXT_MAX_BYTES {
            return None;
        }
        self.0.get(offset..)?.get(..len as usize)
    }
}
