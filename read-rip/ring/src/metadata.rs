//! The tables of modules and sites, with their texts.
//!
//! It does not look into a module's file. A damaged entry is counted, and the others are read.

use std::ffi::OsString;
use std::mem::offset_of;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use librip_format::{Checksum, Module as RawModule, SITE_OF_PROCESS, Site as RawSite};
use read_rip_files::Module;

use super::bytes::Bytes;
use super::table::{entries, used_bytes};
use super::texts::{Damaged, Problem, Texts, check, text_range};
use super::{
    Channel, Defect, Header, Home, OperandType, OperandWords, RegionKind, Site, SiteFlags, SiteKind, Source,
    StaticTexts, history, parse, static_text,
};

/// Reads the tables of modules, sites, texts for events, and channels, which share the region of texts. A site refers
/// to its module by index.
pub(super) fn read(
    source: &Source,
    header: &Header,
    defects: &mut Vec<Defect>,
) -> (Vec<Module>, Vec<Site>, StaticTexts, Vec<Option<Channel>>) {
    let mut of_tables = Vec::new();
    let mut table = |region, kind| used_bytes(source, region, kind, &mut of_tables);
    let module_table = table(header.modules, RegionKind::Modules);
    let site_table = table(header.sites, RegionKind::Sites);
    let static_table = table(header.strings, RegionKind::Strings);
    let channel_table = table(header.channels, RegionKind::Channels);
    // An entry that is complete has its text. So the texts are copied after the entries, as many as there are then.
    let texts = parse::header(source).map_or(header.texts, |(now, _)| now.texts);
    let mut texts = Texts::new(used_bytes(source, texts, RegionKind::Texts, defects));
    defects.append(&mut of_tables);
    let modules = modules(&module_table, header, &mut texts, defects);
    let sites = sites(&site_table, header, &mut texts, modules.len(), defects);
    let static_texts = static_text::read(&static_table, header, &mut texts, defects);
    let channels = history::channels(&channel_table, header, &mut texts, defects);
    (modules, sites, static_texts, channels)
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

fn modules(table: &[u8], header: &Header, texts: &mut Texts, defects: &mut Vec<Defect>) -> Vec<Module> {
    let kind = RegionKind::Modules;
    let mut modules = Vec::new();
    let mut damaged = Damaged::default();
    for entry in entries(table, header.modules) {
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
    table: &[u8],
    header: &Header,
    texts: &mut Texts,
    module_count: usize,
    defects: &mut Vec<Defect>,
) -> Vec<Site> {
    let kind = RegionKind::Sites;
    let mut sites = Vec::new();
    let mut damaged = Damaged::default();
    for entry in entries(table, header.sites) {
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
    let (module, column) = (entry.u32(offset_of!(RawSite, module)), entry.u32(offset_of!(RawSite, column)));
    let (home, column) = match module {
        SITE_OF_PROCESS => (Home::Process(column), 0),
        _ => (Home::Module(module as usize), column),
    };
    let ([file, module_path, label], sum) = texts
        .parts(entry, offset_of!(RawSite, text))
        .filter(|_| home.module().is_none_or(|module| module < module_count))
        .ok_or(Problem::Impossible)?;
    check(entry, sum)?;
    let operand_count = usize::from(entry.u8(offset_of!(RawSite, operand_count)));
    let operand_types = entry.array::<{ librip_format::OPERANDS_MAX }>(offset_of!(RawSite, operand_types));
    let operand_types: Option<Vec<OperandType>> =
        operand_types.get(..operand_count).map(|types| types.iter().map(|&raw| raw.into()).collect());
    let kind = SiteKind::from(entry.u8(offset_of!(RawSite, kind)));
    let (label, format) = match kind {
        SiteKind::Event => (texts.part(""), label),
        SiteKind::SpanBegin | SiteKind::SpanEnd => {
            let (name, format) = label.split_once('\0').unwrap_or((&label, ""));
            (texts.part(name), texts.part(format))
        }
        _ => (label, texts.part("")),
    };
    Ok(Site {
        home,
        pc: entry.u64(offset_of!(RawSite, pc)),
        file,
        module_path,
        label,
        format,
        line: entry.u32(offset_of!(RawSite, line)),
        column,
        kind,
        flags: SiteFlags::from_bits(entry.u16(offset_of!(RawSite, flags))),
        operand_words: operand_types.as_deref().and_then(OperandWords::of),
        operand_types: operand_types.unwrap_or_default(),
    })
}
