//! Finds functions and variables of loaded modules in the tables of dynamic symbols that the dynamic linker uses.
//!
//! `dlsym` does nearly the same. But older C libraries allocate in it, and an allocator may lock; it changes what
//! `dlerror` returns; and of several versions of a function it may choose the oldest. This allocates nothing and
//! changes nothing, so it may run at any time, in any function.
//!
//! It finds a symbol by name, in its default version: the one that a program linked today would get. It does not know
//! which modules are loaded: callers do.

#![allow(unsafe_code, reason = "reads tables where the dynamic linker or the kernel mapped them")]
#![cfg_attr(
    not(feature = "interpose"),
    allow(unreachable_pub, dead_code, reason = "the interposer uses it too")
)]

use core::ffi::CStr;
use core::ptr;

const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const STT_FUNC: u8 = 2;
/// In a version's number: not the default one.
const VERSION_HIDDEN: u16 = 0x8000;

/// A loaded module's tables of dynamic symbols.
#[derive(Clone, Copy, Debug)]
pub struct Symbols {
    bias: usize,
    /// This or `hash` may be null, if the module does not have it.
    gnu_hash: *const u32,
    hash: *const u32,
    symbols: *const libc::Elf64_Sym,
    strings: *const u8,
    versions: *const u16,
}

impl Symbols {
    /// The tables of a module with this load bias and this dynamic section; `None` if it has none.
    ///
    /// # Safety
    ///
    /// `dynamic` is null, or the dynamic section of a module that stays loaded as long as the tables are used. The
    /// section ends with an entry whose tag is 0.
    pub unsafe fn new(bias: usize, dynamic: *const [u64; 2]) -> Option<Symbols> {
        let mut entry = dynamic;
        if entry.is_null() {
            return None;
        }
        let mut symbols = Symbols {
            bias,
            gnu_hash: ptr::null(),
            hash: ptr::null(),
            symbols: ptr::null(),
            strings: ptr::null(),
            versions: ptr::null(),
        };
        loop {
            // SAFETY: an entry of the dynamic section: the loop ends at the last one.
            let [tag, value] = unsafe { *entry };
            // FOLKLORE: glibc relocates these addresses in place, but not if the section is read-only, as in the
            // kernel's vDSO. An address that is not relocated is below the bias.
            let value = value as usize;
            let actual = if value < bias { value.wrapping_add(bias) } else { value };
            match tag {
                0 => break,
                DT_GNU_HASH => symbols.gnu_hash = at(actual),
                DT_HASH => symbols.hash = at(actual),
                DT_SYMTAB => symbols.symbols = at(actual),
                DT_STRTAB => symbols.strings = at(actual),
                DT_VERSYM => symbols.versions = at(actual),
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        let has_hash = !symbols.gnu_hash.is_null() || !symbols.hash.is_null();
        let is_whole = has_hash && !symbols.symbols.is_null() && !symbols.strings.is_null();
        is_whole.then_some(symbols)
    }

    /// The address of a function, in its default version.
    pub fn function(&self, name: &CStr) -> Option<usize> {
        self.find(name, |symbol| symbol.st_info & 15 == STT_FUNC)
    }

    /// The address of a symbol that is not a function.
    pub fn data(&self, name: &CStr) -> Option<usize> {
        self.find(name, |symbol| symbol.st_info & 15 != STT_FUNC)
    }

    fn find(&self, name: &CStr, is_wanted: impl Fn(&libc::Elf64_Sym) -> bool) -> Option<usize> {
        if self.gnu_hash.is_null() {
            return self.find_in_hash(name, is_wanted);
        }
        self.find_in_gnu_hash(name, is_wanted)
    }

    /// Looks a symbol up in the GNU hash table: a header of four words, a filter, the buckets, and for each symbol a
    /// hash whose lowest bit says that it is its bucket's last. ("ELF: better symbol lookup via DT_GNU_HASH",
    /// flapenguin.me; the format has no other specification than the linkers.)
    fn find_in_gnu_hash(&self, name: &CStr, is_wanted: impl Fn(&libc::Elf64_Sym) -> bool) -> Option<usize> {
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let [buckets, first, filter_words, _shift] = words(self.gnu_hash);
        if buckets == 0 {
            return None;
        }
        let buckets_at = self.gnu_hash.wrapping_add(4 + 2 * filter_words as usize);
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

    /// Looks a symbol up in the hash table of the System V ABI (chapter 5, "Hash Table"): the numbers of buckets and of
    /// symbols, the first symbol of each bucket, and for each symbol the next one in its bucket.
    fn find_in_hash(&self, name: &CStr, is_wanted: impl Fn(&libc::Elf64_Sym) -> bool) -> Option<usize> {
        let hash = name.to_bytes().iter().fold(0u32, |hash, &byte| {
            let hash = (hash << 4).wrapping_add(u32::from(byte));
            let high = hash & 0xf000_0000;
            (hash ^ high >> 24) & !high
        });
        let [buckets, _symbols] = words(self.hash);
        if buckets == 0 {
            return None;
        }
        let buckets_at = self.hash.wrapping_add(2);
        let next_at = buckets_at.wrapping_add(buckets as usize);
        let follow = |at: *const u32| Some(word(at)).filter(|&index| index != 0);
        let first = follow(buckets_at.wrapping_add((hash % buckets) as usize));
        core::iter::successors(first, |&index| follow(next_at.wrapping_add(index as usize)))
            .find_map(|index| self.symbol(index as usize, name, &is_wanted))
    }

    /// The address of this symbol, if it has the name and `is_wanted`.
    fn symbol(
        &self,
        index: usize,
        name: &CStr,
        is_wanted: impl Fn(&libc::Elf64_Sym) -> bool,
    ) -> Option<usize> {
        // SAFETY: the hash table leads to symbols of its own module.
        let symbol = unsafe { &*self.symbols.wrapping_add(index) };
        let text = self.strings.wrapping_add(symbol.st_name as usize);
        // SAFETY: the name of a symbol is a terminated string in the same module.
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

fn words<const N: usize>(place: *const u32) -> [u32; N] {
    core::array::from_fn(|index| word(place.wrapping_add(index)))
}
