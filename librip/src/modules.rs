//! The modules of this process: found with `dl_iterate_phdr`, entered in the ring with their sites.
//!
//! It does not resolve addresses (the reader does); it copies what the reader will need: path, build id, load
//! bias, and each site's note and text. Runs in ordinary code only, never in a mark.

#![allow(unsafe_code, reason = "program headers and notes are read where the loader mapped them")]

use core::ffi::{CStr, c_int, c_void};
use core::slice;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;

use crate::ring::{Extent, Ring};
use crate::sys::{self, NoMemory};
use librip_format::ParsedSite;
use librip_format::{ENTRY_COMPLETE, Module, Site, Text};

/// A loaded executable or library. Addresses are actual ones.
#[derive(Debug)]
pub(crate) struct LoadedModule {
    pub(crate) path: Vec<u8>,
    pub(crate) is_executable: bool,
    bias: u64,
    begin: u64,
    end: u64,
    /// What can be read of it, as begin and end.
    readable: Vec<(u64, u64)>,
    build_id: Vec<u8>,
    /// Anchors of copies of librip.
    pub(crate) anchors: Vec<u64>,
    /// Flags of marks in C: every object file has a note, but most point at the same flag.
    pub(crate) flags: Vec<u64>,
    sites: Vec<ParsedSite>,
    /// The sites' texts, one after the other.
    texts: Vec<u8>,
}

impl LoadedModule {
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }

    pub(crate) fn site_count(&self) -> u64 {
        self.sites.len() as u64
    }

    /// Whether it has sites, or a copy of librip.
    pub(crate) fn has_marks(&self) -> bool {
        !self.sites.is_empty() || !self.anchors.is_empty()
    }

    /// What tells it from other modules, and from itself in another place.
    pub(crate) fn identity(&self) -> (Vec<u8>, u64) {
        (self.path.clone(), self.bias)
    }

    /// Bytes of text that registering it takes.
    pub(crate) fn text_len_bytes(&self) -> u64 {
        (self.path.len() + self.texts.len()) as u64
    }
}

/// How much of each module is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Where it lies, and its copy of librip: all that a program pays for at its start.
    Copies,
    /// All that goes into a ring.
    Sites,
}

/// All modules that are loaded now, the executable first. Other threads may unload any but that one.
pub(crate) fn loaded(detail: Detail) -> Vec<LoadedModule> {
    let mut modules = Vec::new();
    for_each(detail, |module| modules.push(module));
    modules
}

/// Calls `each` for all modules that are loaded now, the executable first. The loader holds its list still meanwhile: no
/// module is unloaded, and none must be loaded.
pub(crate) fn for_each(detail: Detail, mut each: impl FnMut(LoadedModule)) {
    let mut visitor = Visitor { detail, is_first: true, each: &mut each };
    // SAFETY: `visit` has the signature that the loader calls, and gets the pointer to `visitor` back.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut visitor).cast()) };
}

struct Visitor<'a> {
    detail: Detail,
    is_first: bool,
    each: &'a mut dyn FnMut(LoadedModule),
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid record, and holds the list of modules still.
    let info = unsafe { &*info };
    // SAFETY: `for_each` passed a pointer to this visitor, and waits.
    let Visitor { detail, is_first, each } = unsafe { &mut *data.cast::<Visitor<'_>>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's own program headers.
    let segments = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let bias = info.dlpi_addr;
    let mapped = || segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
    let is_executable = core::mem::replace(is_first, false);
    let name = if info.dlpi_name.is_null() {
        &[]
    } else {
        // SAFETY: the loader's own terminated string.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    let mut module = LoadedModule {
        path: if is_executable { executable_path() } else { name.to_vec() },
        is_executable,
        bias,
        begin: mapped().map(|segment| bias.wrapping_add(segment.p_vaddr)).min().unwrap_or(0),
        end: mapped()
            .map(|segment| bias.wrapping_add(segment.p_vaddr).wrapping_add(segment.p_memsz))
            .max()
            .unwrap_or(0),
        readable: mapped()
            .filter(|segment| segment.p_flags & libc::PF_R != 0)
            .map(|segment| {
                let begin = bias.wrapping_add(segment.p_vaddr);
                (begin, begin.wrapping_add(segment.p_memsz))
            })
            .collect(),
        build_id: Vec::new(),
        anchors: Vec::new(),
        flags: Vec::new(),
        sites: Vec::new(),
        texts: Vec::new(),
    };
    for segment in segments.iter().filter(|segment| segment.p_type == libc::PT_NOTE) {
        let address = bias.wrapping_add(segment.p_vaddr);
        if let Some(bytes) = module.memory(address, segment.p_memsz) {
            module.take_notes(bytes, address, segment.p_align, *detail);
        }
    }
    each(module);
    0
}

impl LoadedModule {
    /// A part of the module's memory; `None` unless all of it is in one readable segment.
    ///
    /// For read-only parts, while the loader's list is held (`visit` is running): the slice must not outlive it.
    fn memory(&self, address: u64, len_bytes: u64) -> Option<&'static [u8]> {
        let end = address.checked_add(len_bytes)?;
        if !self.readable.iter().any(|&(from, to)| from <= address && end <= to) {
            return None;
        }
        let start = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: within a segment that the loader has mapped readable. Callers ask for notes and texts, which
        // linkers place in read-only loaded segments, and use them before `visit` returns.
        Some(unsafe { slice::from_raw_parts(start, len_bytes as usize) })
    }

    fn take_notes(&mut self, bytes: &[u8], address: u64, align_bytes: u64, detail: Detail) {
        for note in librip_format::notes(bytes, address, align_bytes) {
            if let Some(site) = note.site().filter(|_| detail == Detail::Sites) {
                let len = u64::from(site.text_len_bytes);
                if let Some(text) = self.memory(site.text, len) {
                    self.texts.extend_from_slice(text);
                    self.sites.push(site);
                }
            } else if let Some(anchor) = note.instance_anchor() {
                if self.contains(anchor) {
                    self.anchors.push(anchor);
                }
            } else if let Some(flag) = note.flag() {
                if self.contains(flag) && !self.flags.contains(&flag) {
                    self.flags.push(flag);
                }
            } else if let Some(build_id) = note.build_id() {
                self.build_id = build_id.to_vec();
            }
        }
    }
}

fn executable_path() -> Vec<u8> {
    std::fs::read_link("/proc/self/exe").map(|path| path.into_os_string().into_vec()).unwrap_or_default()
}

/// Enters modules that the ring does not have yet. What finds no room is counted in the header.
pub(crate) fn register(ring: &Ring, modules: &[LoadedModule]) {
    let _turn = Turn::wait();
    for module in modules {
        if is_registered(ring, module) {
            continue;
        }
        if enter(ring, module).is_err() {
            // ORDERING: relaxed, a statistic.
            ring.header().metadata_refused.fetch_add(1, Relaxed);
        }
    }
}

/// One thread of a process registers at a time, so that no module is entered twice.
///
/// A mutex would not do: in a forked child it stays locked if another thread of the parent had it. Here the lock
/// is its owner's pid, and that of another process is free.
struct Turn;

static TURN: AtomicU32 = AtomicU32::new(0);

impl Turn {
    fn wait() -> Turn {
        let own = sys::pid();
        loop {
            // ORDERING: relaxed, the exchange below decides.
            let owner = TURN.load(Relaxed);
            // ORDERING: acquire, pairs with the release in `drop`.
            if owner != own && TURN.compare_exchange(owner, own, Acquire, Relaxed).is_ok() {
                return Turn;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // ORDERING: release, pairs with the acquire in `wait`.
        TURN.store(0, Release);
    }
}

/// A forked child finds its parent's modules registered: they are where they were. Unless another child has
/// registered something else in the same place since; then this process needs an entry of its own.
fn is_registered(ring: &Ring, module: &LoadedModule) -> bool {
    let extent = ring.geometry.modules;
    // ORDERING: acquire, pairs with the exchange in `append`: entries below are handed out and reserved.
    let used = ring.region(extent).used.load(Acquire).min(extent.capacity);
    let newest_there = (0..used).rev().find_map(|index| {
        let entry = ring.module(index);
        // SAFETY: within the region; the state is an atomic.
        let state = unsafe { &(*entry).state };
        // ORDERING: acquire, pairs with the release in `enter`.
        if state.load(Acquire) != ENTRY_COMPLETE {
            return None;
        }
        // SAFETY: complete entries do not change any more.
        let entry = unsafe { &*entry };
        let overlaps = entry.load_bias.wrapping_add(entry.begin) < module.end
            && module.begin < entry.load_bias.wrapping_add(entry.end);
        overlaps.then_some(entry)
    });
    newest_there.is_some_and(|entry| {
        let build_id = entry.build_id.get(..entry.build_id_len_bytes as usize).unwrap_or_default();
        entry.load_bias == module.bias
            && entry.begin == module.begin.wrapping_sub(module.bias)
            && entry.end == module.end.wrapping_sub(module.bias)
            && build_id == cut(&module.build_id)
    })
}

/// Build ids are 20 bytes, or 8 to 32; longer ones are cut on both sides of a comparison.
fn cut(build_id: &[u8]) -> &[u8] {
    &build_id[..build_id.len().min(32)]
}

fn enter(ring: &Ring, module: &LoadedModule) -> Result<(), NoMemory> {
    let geometry = &ring.geometry;
    let path = append_text(ring, &module.path)?;
    let texts = append_text(ring, &module.texts)?;
    let sites = append(ring, geometry.sites, size_of::<Site>() as u64, module.site_count())?;
    let index = append(ring, geometry.modules, size_of::<Module>() as u64, 1)?;
    let mut build_id = [0; 32];
    build_id[..cut(&module.build_id).len()].copy_from_slice(cut(&module.build_id));
    let file = std::fs::metadata(OsStr::from_bytes(&module.path)).ok();
    let entry = Module {
        state: 0.into(),
        pid: sys::pid(),
        load_bias: module.bias,
        begin: module.begin.wrapping_sub(module.bias),
        end: module.end.wrapping_sub(module.bias),
        path,
        build_id_len_bytes: cut(&module.build_id).len() as u32,
        is_executable: u32::from(module.is_executable),
        build_id,
        file_len_bytes: file.as_ref().map_or(0, MetadataExt::size),
        modified_ns: file.as_ref().map_or(0, |file| {
            (file.mtime() as u64).wrapping_mul(1_000_000_000).wrapping_add(file.mtime_nsec() as u64)
        }),
        reserved: [0; 4],
    };
    let slot = ring.module(index);
    // SAFETY: `append` handed this entry to us alone, reserved; nobody reads it before its state says so.
    unsafe { slot.write(entry) };
    // SAFETY: as above, and the state is an atomic.
    let state = unsafe { &(*slot).state };
    // ORDERING: release, pairs with readers' acquire: the entry is whole.
    state.store(ENTRY_COMPLETE, Release);

    let mut offset = texts.offset;
    for (position, site) in module.sites.iter().enumerate() {
        let entry = Site {
            state: 0.into(),
            module: index as u32,
            pc: site.pc.wrapping_sub(module.bias),
            text: Text { offset, len_bytes: site.text_len_bytes },
            line: site.line,
            column: site.column,
            kind: site.kind,
            operand_count: site.operand_count,
            flags: site.flags,
            operand_types: site.operand_types,
        };
        offset += site.text_len_bytes;
        let slot = ring.site(sites + position as u64);
        // SAFETY: as for the module.
        unsafe { slot.write(entry) };
        // SAFETY: as for the module.
        let state = unsafe { &(*slot).state };
        // ORDERING: as for the module.
        state.store(ENTRY_COMPLETE, Release);
    }
    Ok(())
}

/// Hands out `count` entries of a region, reserved. Entries beyond the capacity are no memory either.
fn append(ring: &Ring, extent: Extent, len_bytes: u64, count: u64) -> Result<u64, NoMemory> {
    let used = &ring.region(extent).used;
    loop {
        // ORDERING: relaxed: other processes may append too, and the exchange decides.
        let first = used.load(Relaxed);
        let end = first.checked_add(count).filter(|&end| end <= extent.capacity).ok_or(NoMemory)?;
        ring.reserve(extent, len_bytes, first, end)?;
        // ORDERING: release, pairs with the acquire in `is_registered`: the memory is there.
        if used.compare_exchange(first, end, Release, Relaxed).is_ok() {
            return Ok(first);
        }
    }
}

fn append_text(ring: &Ring, bytes: &[u8]) -> Result<Text, NoMemory> {
    let offset = append(ring, ring.geometry.texts, 1, bytes.len() as u64)?;
    if !bytes.is_empty() {
        let target = ring.text(offset);
        // SAFETY: `append` handed this range to us alone, reserved.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    Ok(Text { offset: offset as u32, len_bytes: bytes.len() as u32 })
}
