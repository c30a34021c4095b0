//! The modules of this process, found with `dl_iterate_phdr`: where each is, its build id, and its notes.
//!
//! It does not enter them in the ring (`ring::module_registry` does). It runs in ordinary code only, never in a mark.

#![allow(unsafe_code, reason = "program headers and notes are read where the loader mapped them")]

use core::ffi::{CStr, c_int, c_void};
use core::slice;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use libc::Elf64_Phdr;

use super::present::{self, PresentModule};
use crate::arch;
use crate::ring::module_registry::LoadedModule;

/// A loaded executable or library, and what its notes say about librip. Addresses are actual ones.
#[derive(Debug, Default)]
pub(crate) struct FoundModule {
    pub(crate) module: LoadedModule,
    /// Tells it from other modules, and from itself at another address.
    pub(crate) fingerprint: u64,
    /// What the loader calls it. `LD_PRELOAD` and `dlopen` may have named it by a relative path.
    name: Vec<u8>,
    /// Anchors of instances of librip.
    pub(crate) anchors: Vec<u64>,
    /// States of modules with marks in C. Every object file has a note, but most refer to the same state.
    pub(crate) states: Vec<u64>,
    /// The segments that can be read, as start and end.
    readable: Vec<(u64, u64)>,
    /// Those of them that are code.
    pub(crate) code: Vec<(u64, u64)>,
    /// The others.
    pub(crate) data: Vec<(u64, u64)>,
}

/// What tells a module from others, and from itself at another address.
pub(crate) type Identity = (Vec<u8>, u64);

/// How much of each module is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Where it is, and its instance of librip. A program reads no more than this at its start.
    Instances,
    /// All that goes into a ring.
    Sites,
}

impl FoundModule {
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.module.begin..self.module.end).contains(&address)
    }

    /// Whether it has sites, an instance of librip, or code that asks whether there is a ring: that of `librip.h`.
    pub(crate) fn has_marks(&self) -> bool {
        !self.module.sites.is_empty() || !self.anchors.is_empty() || !self.states.is_empty()
    }

    pub(crate) fn identity(&self) -> Identity {
        (self.name.clone(), self.module.load_bias)
    }

    /// Pins a library, if it is still loaded: it is never unloaded from now on. An executable needs no pinning. Returns
    /// whether a library of this name stays. It may have been unloaded and loaded again at another address before.
    pub(crate) fn pin(&self) -> bool {
        // A program without `dlopen` cannot unload a library either.
        let Some(dlopen) = arch::dlopen().filter(|_| !self.module.is_executable) else { return true };
        let Ok(name) = CString::new(self.name.clone()) else { return false };
        // SAFETY: the name is terminated; NOLOAD only finds what is loaded, NODELETE keeps it.
        let handle =
            unsafe { dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
        !handle.is_null()
    }

    /// Returns a part of the module's memory; `None` unless all of it is in one readable segment.
    ///
    /// # Safety
    ///
    /// The module stays loaded and the part is not written as long as the slice is used.
    unsafe fn memory<'a>(&self, address: u64, len_bytes: u64) -> Option<&'a [u8]> {
        let end = address.checked_add(len_bytes)?;
        if !self.readable.iter().any(|&(from, to)| from <= address && end <= to) {
            return None;
        }
        let start = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: within a segment that the loader has mapped readable; the rest is the caller's promise.
        Some(unsafe { slice::from_raw_parts(start, len_bytes as usize) })
    }

    /// Reads the notes of a segment.
    ///
    /// # Safety
    ///
    /// The module stays loaded meanwhile.
    unsafe fn read_notes(&mut self, segment: &libc::Elf64_Phdr, detail: Detail) {
        let address = self.module.load_bias.wrapping_add(segment.p_vaddr);
        // SAFETY: the caller keeps the module loaded; linkers put notes into read-only segments.
        let Some(bytes) = (unsafe { self.memory(address, segment.p_memsz) }) else { return };
        for note in librip_format::notes(bytes, address, segment.p_align) {
            if let Some(site) = note.site().filter(|_| detail == Detail::Sites) {
                // SAFETY: as above; compilers put texts of sites into read-only segments.
                if let Some(text) = unsafe { self.memory(site.text, u64::from(site.text_len_bytes)) } {
                    self.module.texts.extend_from_slice(text);
                    self.module.sites.push(site);
                }
            } else if let Some(anchor) = note.instance_anchor() {
                if self.contains(anchor) {
                    self.anchors.push(anchor);
                }
            } else if let Some(state) = note.module_state() {
                if self.contains(state) && !self.states.contains(&state) {
                    self.states.push(state);
                }
            } else if let Some(build_id) = note.build_id() {
                self.module.build_id = build_id.to_vec();
            }
        }
    }
}

/// All modules that are loaded now, the executable first. Other threads may unload any but the executable.
pub(crate) fn loaded(detail: Detail) -> Vec<FoundModule> {
    let mut modules = Vec::new();
    for_each(detail, |module| modules.push(module));
    modules
}

/// The modules that were loaded since the last call, the executable first. Libraries that have marks stay loaded from
/// now on, and one that cannot be kept is not in the list. Modules may be in the list again.
pub(crate) fn keep_new() -> Vec<FoundModule> {
    let mut kept = Vec::new();
    loop {
        let Some(Survey { now, modules, new, .. }) = Survey::make() else { return Vec::new() };
        let stays = |found: &FoundModule, kept: &[Identity]| {
            found.module.is_executable || !found.has_marks() || kept.contains(&found.identity())
        };
        let before = kept.len();
        for module in &new {
            if !stays(module, &kept) && module.pin() {
                kept.push(module.identity());
            }
        }
        // A library that was unloaded before it was pinned may be loaded elsewhere by now, so look again.
        if kept.len() == before {
            let mut new = new;
            new.retain(|module| stays(module, &kept));
            if present::set(modules) {
                SEEN_LOADS.store(now.loads, Relaxed);
                SEEN_UNLOADS.store(now.unloads, Relaxed);
            }
            return new;
        }
    }
}

/// How many modules were loaded and unloaded since the program's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Changes {
    loads: u64,
    unloads: u64,
}

/// What the last [`keep_new`] has seen.
static SEEN_LOADS: AtomicU64 = AtomicU64::new(0);
static SEEN_UNLOADS: AtomicU64 = AtomicU64::new(0);

/// Whether modules were loaded or unloaded since the last [`keep_new`]. It allocates nothing.
pub(crate) fn has_changed() -> bool {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record.
        let info = unsafe { &*info };
        // SAFETY: the caller passed a pointer to these numbers, and waits.
        let now = unsafe { &mut *data.cast::<Changes>() };
        *now = Changes { loads: info.dlpi_adds, unloads: info.dlpi_subs };
        1
    }
    let mut now = Changes { loads: 0, unloads: 0 };
    // SAFETY: `first` has the signature that the loader calls, and gets the pointer to `now` back.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut now).cast()) };
    now != seen()
}

fn seen() -> Changes {
    // ORDERING: relaxed: a thread that reads old numbers looks at modules that were seen.
    Changes { loads: SEEN_LOADS.load(Relaxed), unloads: SEEN_UNLOADS.load(Relaxed) }
}

/// What is loaded now, and what of that is new.
struct Survey {
    now: Changes,
    modules: Vec<PresentModule>,
    /// With their sites.
    new: Vec<FoundModule>,
}

impl Survey {
    /// `None` if nothing has changed since the last [`keep_new`].
    fn make() -> Option<Survey> {
        if !has_changed() {
            return None;
        }
        let now = Changes { loads: 0, unloads: 0 };
        let mut survey = Survey { now, modules: Vec::new(), new: Vec::new() };
        for_each_listed(|listed, info| {
            survey.now = Changes { loads: info.dlpi_adds, unloads: info.dlpi_subs };
            let (begin, end) = listed.code();
            // Nobody looks for this module's own code.
            let end = if listed.contains((&raw const SEEN_LOADS).addr() as u64) { begin } else { end };
            let module =
                PresentModule { fingerprint: listed.fingerprint(), code_begin: begin, code_end: end };
            survey.modules.push(module);
            if !present::is_loaded(module.fingerprint, begin) {
                survey.new.push(listed.found(Detail::Sites));
            }
        });
        Some(survey)
    }
}

/// Calls `each` for all modules that are loaded now, the executable first. The loader keeps its list locked meanwhile:
/// no module is unloaded, and `each` must load none.
pub(crate) fn for_each(detail: Detail, mut each: impl FnMut(FoundModule)) {
    for_each_listed(|listed, _| each(listed.found(detail)));
}

/// A module in the loader's list, while the list is locked.
struct Listed<'a> {
    is_executable: bool,
    load_bias: u64,
    name: &'a CStr,
    segments: &'a [libc::Elf64_Phdr],
}

fn for_each_listed(mut each: impl FnMut(&Listed<'_>, &libc::dl_phdr_info)) {
    let mut visitor = Visitor { index: 0, each: &mut each };
    // SAFETY: `visit` has the signature that the loader calls, and gets the pointer to `visitor` back.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut visitor).cast()) };
}

struct Visitor<'a> {
    index: usize,
    each: &'a mut dyn FnMut(&Listed<'_>, &libc::dl_phdr_info),
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid record, and keeps the list of modules locked.
    let info = unsafe { &*info };
    // SAFETY: `for_each_listed` passed a pointer to this visitor, and waits.
    let Visitor { index, each } = unsafe { &mut *data.cast::<Visitor<'_>>() };
    let is_executable = *index == 0;
    *index += 1;
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's own program headers.
    let segments = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let name = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the loader's own terminated string.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    each(&Listed { is_executable, load_bias: info.dlpi_addr, name, segments }, info);
    0
}

impl Listed<'_> {
    /// The segments that are mapped: first address, address after the last, flags.
    fn mapped(&self) -> impl Iterator<Item = (u64, u64, u32)> + Clone {
        self.segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD).map(|segment| {
            let begin = self.load_bias.wrapping_add(segment.p_vaddr);
            (begin, begin.wrapping_add(segment.p_memsz), segment.p_flags)
        })
    }

    fn contains(&self, address: u64) -> bool {
        self.mapped().any(|(begin, end, _)| (begin..end).contains(&address))
    }

    /// The first address of its code, and the address after it.
    fn code(&self) -> (u64, u64) {
        let code = self.mapped().filter(|&(.., flags)| flags & libc::PF_X != 0);
        let begin = code.clone().map(|(begin, ..)| begin).min();
        let end = code.map(|(_, end, _)| end).max();
        (begin.unwrap_or(self.load_bias), end.unwrap_or(self.load_bias))
    }

    /// Tells the module from others, and from itself at another address: a hash of its address, name and
    /// segments, and of its build id, if that is among the first notes.
    fn fingerprint(&self) -> u64 {
        /// A module with sites has a note for each, and its build id is in a segment or at the begin of one.
        const NOTES: usize = 4;
        let mut hash = Hash(self.load_bias);
        hash.add(self.name.to_bytes());
        for segment in self.segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD) {
            let Elf64_Phdr { p_flags, p_vaddr, p_filesz, p_memsz, .. } = *segment;
            [u64::from(p_flags) ^ p_vaddr, p_filesz, p_memsz]
                .into_iter()
                .for_each(|word| hash.add_word(word));
        }
        for segment in self.segments.iter().filter(|segment| segment.p_type == libc::PT_NOTE) {
            let begin = self.load_bias.wrapping_add(segment.p_vaddr);
            let end = begin.wrapping_add(segment.p_memsz);
            let is_in = |(from, to, flags): (u64, u64, u32)| {
                flags & libc::PF_R != 0 && from <= begin && begin <= end && end <= to
            };
            if !self.mapped().any(is_in) {
                continue;
            }
            let bytes = core::ptr::with_exposed_provenance(begin as usize);
            // SAFETY: in a segment that the loader has mapped readable. It keeps its list locked, so the module stays.
            let bytes = unsafe { slice::from_raw_parts(bytes, segment.p_memsz as usize) };
            for note in librip_format::notes(bytes, begin, segment.p_align).take(NOTES) {
                hash.add(note.build_id().unwrap_or_default());
            }
        }
        hash.0
    }

    /// What is known of it.
    fn found(&self, detail: Detail) -> FoundModule {
        let mut found = self.described();
        found.fingerprint = self.fingerprint();
        found.module.is_executable = self.is_executable;
        found.name = if self.is_executable {
            let path = std::fs::read_link("/proc/self/exe");
            path.map(|path| path.into_os_string().into_vec()).unwrap_or_default()
        } else {
            self.name.to_bytes().to_vec()
        };
        found.module.path = absolute(&found.name);
        for segment in self.segments.iter().filter(|segment| segment.p_type == libc::PT_NOTE) {
            // SAFETY: the loader keeps its list locked, so the module stays.
            unsafe { found.read_notes(segment, detail) };
        }
        found
    }

    /// Where it is, by its program headers.
    fn described(&self) -> FoundModule {
        let mapped = self.mapped();
        let readable = mapped.clone().filter(|&(.., flags)| flags & libc::PF_R != 0);
        let (code_begin, code_end) = self.code();
        FoundModule {
            module: LoadedModule {
                load_bias: self.load_bias,
                begin: mapped.clone().map(|(begin, ..)| begin).min().unwrap_or(0),
                end: mapped.map(|(_, end, _)| end).max().unwrap_or(0),
                code_begin,
                code_end,
                ..LoadedModule::default()
            },
            readable: readable.clone().map(|(begin, end, _)| (begin, end)).collect(),
            code: readable
                .clone()
                .filter(|&(.., flags)| flags & libc::PF_X != 0)
                .map(|(begin, end, _)| (begin, end))
                .collect(),
            data: readable
                .filter(|&(.., flags)| flags & libc::PF_X == 0)
                .map(|(begin, end, _)| (begin, end))
                .collect(),
            ..FoundModule::default()
        }
    }
}

/// A hash of words: fast, and good enough to tell a few hundred modules apart.
struct Hash(u64);

impl Hash {
    fn add_word(&mut self, word: u64) {
        /// Odd, with bits all over.
        const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
        self.0 = (self.0 ^ word).wrapping_mul(MULTIPLIER).rotate_left(26);
    }

    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|&word| self.add_word(u64::from_ne_bytes(word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add_word(u64::from_ne_bytes(last) ^ bytes.len() as u64);
    }
}

/// The path of a module for readers, which have other working directories than this process. If the program has changed
/// its own since it loaded the module, readers will not find the file. A name without a slash is no path: the kernel's
/// module has such a name.
fn absolute(name: &[u8]) -> Vec<u8> {
    if name.contains(&b'/')
        && let Ok(path) = std::path::absolute(OsStr::from_bytes(name))
    {
        return path.into_os_string().into_vec();
    }
    name.to_vec()
}
