//! Finds functions in the libraries behind this one, in the tables that the dynamic linker uses itself.
//!
//! `dlsym(RTLD_NEXT, ...)` would do nearly the same. But older C libraries allocate in it, and an allocator may take
//! locks, which would bring us back here; it changes what `dlerror` says; and of several versions of a function
//! it may pick the oldest. This allocates nothing and changes nothing, so it may run at any time, in any function.
//!
//! It looks for functions by name, in their default version: the one that a program linked today would get.

use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use core::slice;

use crate::OWN;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const STT_FUNC: u8 = 2;
/// In a version's number: not the default one.
const VERSION_HIDDEN: u16 = 0x8000;

/// A loaded module's tables of dynamic symbols.
#[derive(Clone, Copy)]
pub(crate) struct Symbols {
    bias: usize,
    hash: *const u32,
    symbols: *const libc::Elf64_Sym,
    strings: *const u8,
    versions: *const u16,
}

/// Calls `body` for each loaded module, in the order in which the dynamic linker searches them, until it says that
/// this was enough.
fn for_each(mut body: impl FnMut(Symbols) -> bool) {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
        // SAFETY: `for_each` passes a pointer to this very reference, and waits.
        let body = unsafe { &mut *data.cast::<&mut dyn FnMut(Symbols) -> bool>() };
        // SAFETY: the dynamic linker passes a valid record.
        let info = unsafe { &*info };
        c_int::from(Symbols::of(info).is_some_and(body))
    }
    let mut body: &mut dyn FnMut(Symbols) -> bool = &mut body;
    // SAFETY: `visit` has the signature that is called, and gets the pointer to `body` back.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut body).cast()) };
}

/// Calls `body` for each module behind this one that is no interposer like it.
pub(crate) fn for_each_behind(mut body: impl FnMut(&Symbols)) {
    let mut is_behind = false;
    for_each(|symbols| {
        match symbols.data(MARK) {
            Some(mark) => is_behind |= is_own(mark),
            None if is_behind => body(&symbols),
            None => {}
        }
        false
    });
}

/// Whether no other copy of this library comes before it.
pub(crate) fn is_first_copy() -> bool {
    let mut is_first = false;
    for_each(|symbols| match symbols.data(MARK) {
        Some(mark) => {
            is_first = is_own(mark);
            true
        }
        None => false,
    });
    is_first
}

/// Whether the symbol at this address is this copy's.
fn is_own(mark: usize) -> bool {
    // SAFETY: in all copies it is a pointer. If it has not been relocated yet, it is not this copy's.
    let target = unsafe { *at::<*const u8>(mark) };
    target == &raw const OWN
}

const MARK: &CStr = c"librip_preload_1";

impl Symbols {
    /// `None` where the module has no such tables.
    fn of(info: &libc::dl_phdr_info) -> Option<Symbols> {
        if info.dlpi_phdr.is_null() {
            return None;
        }
        // SAFETY: the dynamic linker's own program headers.
        let segments = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let dynamic = segments.iter().find(|segment| segment.p_type == libc::PT_DYNAMIC)?;
        let bias = info.dlpi_addr as usize;
        let mut entry = at::<[u64; 2]>(bias.wrapping_add(dynamic.p_vaddr as usize));
        let mut symbols = Symbols {
            bias,
            hash: ptr::null(),
            symbols: ptr::null(),
            strings: ptr::null(),
            versions: ptr::null(),
        };
        loop {
            // SAFETY: entries of the dynamic section, up to the one that ends it.
            let [tag, value] = unsafe { *entry };
            // FOLKLORE: glibc turns these addresses into actual ones in place, but not where the section is
            // read-only, as in the kernel's vDSO. A module-relative address is below the bias.
            let value = value as usize;
            let actual = if value < bias { value.wrapping_add(bias) } else { value };
            match tag {
                0 => break,
                DT_GNU_HASH => symbols.hash = at(actual),
                DT_SYMTAB => symbols.symbols = at(actual),
                DT_STRTAB => symbols.strings = at(actual),
                DT_VERSYM => symbols.versions = at(actual),
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        let is_whole = !symbols.hash.is_null() && !symbols.symbols.is_null() && !symbols.strings.is_null();
        is_whole.then_some(symbols)
    }

    /// The address of a function, in its default version.
    pub(crate) fn function(&self, name: &CStr) -> Option<usize> {
        self.find(name, |symbol| symbol.st_info & 15 == STT_FUNC)
    }

    /// The address of something that is no function.
    fn data(&self, name: &CStr) -> Option<usize> {
        self.find(name, |symbol| symbol.st_info & 15 != STT_FUNC)
    }

    /// Looks a symbol up in the GNU hash table: a header of four words, a filter, the buckets, and for each symbol a
    /// hash whose lowest bit says that it is its bucket's last. ("ELF: better symbol lookup via DT_GNU_HASH",
    /// flapenguin.me; the format has no other specification than the linkers.)
    fn find(&self, name: &CStr, is_wanted: impl Fn(&libc::Elf64_Sym) -> bool) -> Option<usize> {
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let [buckets, first, filter_words, _shift] = word4(self.hash);
        if buckets == 0 {
            return None;
        }
        let buckets_at = self.hash.wrapping_add(4 + 2 * filter_words as usize);
        let mut index = word(buckets_at.wrapping_add((hash % buckets) as usize));
        if index < first {
            return None;
        }
        let hashes = buckets_at.wrapping_add(buckets as usize);
        loop {
            let found = word(hashes.wrapping_add((index - first) as usize));
            if found | 1 == hash | 1
                && let Some(address) = self.symbol(index as usize, name, &is_wanted)
            {
                return Some(address);
            }
            if found & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }

    /// The address of this symbol if it is the one.
    fn symbol(
        &self,
        index: usize,
        name: &CStr,
        is_wanted: impl Fn(&libc::Elf64_Sym) -> bool,
    ) -> Option<usize> {
        // SAFETY: the hash table leads to symbols of its own module.
        let symbol = unsafe { &*self.symbols.wrapping_add(index) };
        let text = self.strings.wrapping_add(symbol.st_name as usize);
        // SAFETY: the names of symbols are terminated strings in the same module.
        if unsafe { CStr::from_ptr(text.cast()) } != name {
            return None;
        }
        let is_default = self.versions.is_null() || {
            // SAFETY: there is a version for each symbol.
            let version = unsafe { *self.versions.wrapping_add(index) };
            version & VERSION_HIDDEN == 0
        };
        let is_defined = symbol.st_shndx != 0 && symbol.st_value != 0;
        (is_default && is_defined && is_wanted(symbol))
            .then(|| self.bias.wrapping_add(symbol.st_value as usize))
    }
}

fn at<T>(address: usize) -> *const T {
    ptr::with_exposed_provenance(address)
}

fn word(place: *const u32) -> u32 {
    // SAFETY: callers stay within the hash table of a loaded module.
    unsafe { *place }
}

fn word4(place: *const u32) -> [u32; 4] {
    core::array::from_fn(|index| word(place.wrapping_add(index)))
}
