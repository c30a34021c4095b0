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

use crate::arch;
use crate::ring::module_registry::LoadedModule;

/// A loaded executable or library, and what its notes say about librip. Addresses are actual ones.
#[derive(Debug, Default)]
pub(crate) struct FoundModule {
    pub(crate) module: LoadedModule,
    /// What the loader calls it. `LD_PRELOAD` and `dlopen` may have named it by a relative path.
    name: Vec<u8>,
    /// Anchors of instances of librip.
    pub(crate) anchors: Vec<u64>,
    /// States of modules with marks in C. Every object file has a note, but most refer to the same state.
    pub(crate) states: Vec<u64>,
    /// The segments that can be read, as start and end.
    readable: Vec<(u64, u64)>,
    /// Those of them that are not code.
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

    /// Whether it has sites, or an instance of librip.
    pub(crate) fn has_marks(&self) -> bool {
        !self.module.sites.is_empty() || !self.anchors.is_empty()
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
    // ORDERING: relaxed: a thread that reads old numbers looks at modules that were seen.
    let seen = Changes { loads: SEEN_LOADS.load(Relaxed), unloads: SEEN_UNLOADS.load(Relaxed) };
    let mut kept = Vec::new();
    loop {
        let (now, count) = changes();
        let new = if now.unloads == seen.unloads { now.loads.wrapping_sub(seen.loads) } else { u64::MAX };
        // FOLKLORE: glibc appends a module that it loads to its list.
        let first = (count as u64).saturating_sub(new) as usize;
        if new == 0 {
            return Vec::new();
        }
        let mut modules = Vec::new();
        for_each_from(first, Detail::Sites, |module| modules.push(module));
        let stays = |found: &FoundModule, kept: &[Identity]| {
            found.module.is_executable || !found.has_marks() || kept.contains(&found.identity())
        };
        let before = kept.len();
        for module in &modules {
            if !stays(module, &kept) && module.pin() {
                kept.push(module.identity());
            }
        }
        // A library that was unloaded before it was pinned may be loaded elsewhere by now, so look again.
        if kept.len() == before {
            modules.retain(|module| stays(module, &kept));
            SEEN_LOADS.store(now.loads, Relaxed);
            SEEN_UNLOADS.store(now.unloads, Relaxed);
            return modules;
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

/// What has changed until now, and how many modules are loaded.
fn changes() -> (Changes, usize) {
    unsafe extern "C" fn count(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record.
        let info = unsafe { &*info };
        // SAFETY: the caller passed a pointer to this pair, and waits.
        let found = unsafe { &mut *data.cast::<(Changes, usize)>() };
        *found = (Changes { loads: info.dlpi_adds, unloads: info.dlpi_subs }, found.1 + 1);
        0
    }
    let mut found = (Changes { loads: 0, unloads: 0 }, 0);
    // SAFETY: `count` has the signature that the loader calls, and gets the pointer to `found` back.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut found).cast()) };
    found
}

/// Calls `each` for all modules that are loaded now, the executable first. The loader keeps its list locked meanwhile:
/// no module is unloaded, and `each` must load none.
pub(crate) fn for_each(detail: Detail, each: impl FnMut(FoundModule)) {
    for_each_from(0, detail, each);
}

/// The same from the module with this index on.
fn for_each_from(first: usize, detail: Detail, mut each: impl FnMut(FoundModule)) {
    let mut visitor = Visitor { detail, first, index: 0, each: &mut each };
    // SAFETY: `visit` has the signature that the loader calls, and gets the pointer to `visitor` back.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut visitor).cast()) };
}

struct Visitor<'a> {
    detail: Detail,
    first: usize,
    index: usize,
    each: &'a mut dyn FnMut(FoundModule),
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid record, and keeps the list of modules locked.
    let info = unsafe { &*info };
    // SAFETY: `for_each` passed a pointer to this visitor, and waits.
    let Visitor { detail, first, index, each } = unsafe { &mut *data.cast::<Visitor<'_>>() };
    let is_executable = *index == 0;
    *index += 1;
    if info.dlpi_phdr.is_null() || *index <= *first {
        return 0;
    }
    // SAFETY: the loader's own program headers.
    let segments = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let mut found = describe(info.dlpi_addr, segments);
    found.module.is_executable = is_executable;
    found.name = if is_executable {
        std::fs::read_link("/proc/self/exe").map(|path| path.into_os_string().into_vec()).unwrap_or_default()
    } else if info.dlpi_name.is_null() {
        Vec::new()
    } else {
        // SAFETY: the loader's own terminated string.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes().to_vec()
    };
    found.module.path = absolute(&found.name);
    for segment in segments.iter().filter(|segment| segment.p_type == libc::PT_NOTE) {
        // SAFETY: the loader keeps its list locked, so the module stays.
        unsafe { found.read_notes(segment, *detail) };
    }
    each(found);
    0
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

/// Where a module is, by its program headers.
fn describe(load_bias: u64, segments: &[libc::Elf64_Phdr]) -> FoundModule {
    let mapped = segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD).map(|segment| {
        let begin = load_bias.wrapping_add(segment.p_vaddr);
        (begin, begin.wrapping_add(segment.p_memsz), segment.p_flags)
    });
    let readable = mapped.clone().filter(|&(.., flags)| flags & libc::PF_R != 0);
    let code = mapped.clone().filter(|&(.., flags)| flags & libc::PF_X != 0);
    FoundModule {
        module: LoadedModule {
            load_bias,
            begin: mapped.clone().map(|(begin, ..)| begin).min().unwrap_or(0),
            end: mapped.map(|(_, end, _)| end).max().unwrap_or(0),
            code_begin: code.clone().map(|(begin, ..)| begin).min().unwrap_or(load_bias),
            code_end: code.map(|(_, end, _)| end).max().unwrap_or(load_bias),
            ..LoadedModule::default()
        },
        readable: readable.clone().map(|(begin, end, _)| (begin, end)).collect(),
        data: readable
            .filter(|&(.., flags)| flags & libc::PF_X == 0)
            .map(|(begin, end, _)| (begin, end))
            .collect(),
        ..FoundModule::default()
    }
}
