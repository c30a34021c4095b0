//! The modules that are loaded now, as far as this instance of librip knows: who they are, and where their code is.
//!
//! It is a table that is made anew after each change, so a program that loads and unloads libraries for ever needs no
//! more memory. Whoever finds the modules (`loader`) fills it. A word of a stack that points into code of a module may
//! be a return address.
//!
//! The table is a hint: a library may have been unloaded since, and nothing is read or called at these addresses.
//!
//! # Invariants
//!
//! * There are two tables. One thread at a time fills the one that is not the present one. A reader that still looks at
//!   that one finds a mixture of an old and a new table, and so at worst says something wrong of an address.
//! * To read allocates nothing and waits for nobody.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use crate::sys;

/// Further modules are not remembered: they are looked at again after each change, and their code is not known.
const MODULES_MAX: usize = 1024;

/// Code is looked for in granules of this many bytes, as a power of two. Most words of a stack are in none with code.
#[cfg(feature = "interpose")]
const GRANULE_SHIFT: u32 = 16;
/// The filter has this many bits, as a power of two: 200 libraries of common sizes set a tenth of them.
#[cfg(feature = "interpose")]
const FILTER_BITS: u32 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PresentModule {
    /// Tells it from other modules, and from itself at another address.
    pub(crate) fingerprint: u64,
    /// The first address of its code.
    pub(crate) code_begin: u64,
    /// The address after its code; equal to the first one if the code is of no interest.
    pub(crate) code_end: u64,
}

struct Entry {
    fingerprint: AtomicU64,
    code_begin: AtomicU64,
    code_end: AtomicU64,
}

struct Table {
    /// How many entries are in use. They are sorted by where their code begins.
    used: AtomicUsize,
    entries: [Entry; MODULES_MAX],
    /// A bit for each granule with code, at the granule's hash.
    #[cfg(feature = "interpose")]
    filter: [AtomicU64; 1 << FILTER_BITS >> 6],
}

static TABLES: [Table; 2] = [const {
    Table {
        used: AtomicUsize::new(0),
        entries: [const {
            Entry {
                fingerprint: AtomicU64::new(0),
                code_begin: AtomicU64::new(0),
                code_end: AtomicU64::new(0),
            }
        }; MODULES_MAX],
        #[cfg(feature = "interpose")]
        filter: [const { AtomicU64::new(0) }; 1 << FILTER_BITS >> 6],
    }
}; 2];

/// The index of the present table.
static PRESENT: AtomicUsize = AtomicUsize::new(0);

/// The process whose thread fills a table; 0 if none does. In a forked child, a thread of the parent does nothing more.
static FILLING: AtomicU32 = AtomicU32::new(0);

fn present() -> &'static Table {
    // ORDERING: acquire, pairs with the release in `set`.
    &TABLES[PRESENT.load(Acquire) & 1]
}

impl Table {
    fn used(&self) -> &[Entry] {
        // ORDERING: relaxed: the present table was complete before it was the present one.
        &self.entries[..self.used.load(Relaxed).min(MODULES_MAX)]
    }

    /// Another thread may look at it. The order of the stores does not matter: see the module.
    fn fill(&self, modules: &[PresentModule]) {
        self.used.store(modules.len(), Relaxed);
        for (entry, module) in self.entries.iter().zip(modules) {
            entry.fingerprint.store(module.fingerprint, Relaxed);
            entry.code_begin.store(module.code_begin, Relaxed);
            entry.code_end.store(module.code_end, Relaxed);
        }
        #[cfg(feature = "interpose")]
        self.fill_filter(modules);
    }

    #[cfg(feature = "interpose")]
    fn fill_filter(&self, modules: &[PresentModule]) {
        for bits in &self.filter {
            // A look is cheaper than the copy of a page that was never written to.
            if bits.load(Relaxed) != 0 {
                bits.store(0, Relaxed);
            }
        }
        for module in modules.iter().filter(|module| module.code_begin < module.code_end) {
            let granules = module.code_begin >> GRANULE_SHIFT..=(module.code_end - 1) >> GRANULE_SHIFT;
            for granule in granules.take(1 << FILTER_BITS) {
                let (word, bit) = filter_bit(granule << GRANULE_SHIFT);
                let bits = &self.filter[word];
                bits.store(bits.load(Relaxed) | bit, Relaxed);
            }
        }
    }
}

#[cfg(feature = "interpose")]
#[inline(always)]
fn filter_bit(address: u64) -> (usize, u64) {
    /// 2^64 by the golden ratio, which spreads neighbours well.
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (address >> GRANULE_SHIFT).wrapping_mul(MULTIPLIER) >> (u64::BITS - FILTER_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// These modules are loaded, and no others. Returns false, and does nothing, if another thread says the same at this
/// moment.
pub(crate) fn set(mut modules: Vec<PresentModule>) -> bool {
    let own = sys::pid();
    // ORDERING: acquire, pairs with the release below: the last one has filled its table.
    let begun = FILLING.fetch_update(Acquire, Relaxed, |filling| (filling != own).then_some(own));
    if begun.is_err() {
        return false;
    }
    modules.truncate(MODULES_MAX);
    modules.sort_unstable_by_key(|module| module.code_begin);
    // ORDERING: relaxed: one thread at a time comes here.
    let other = !PRESENT.load(Relaxed) & 1;
    TABLES[other].fill(&modules);
    // ORDERING: release, pairs with the acquire in `present`.
    PRESENT.store(other, Release);
    // ORDERING: release, pairs with the acquire above.
    FILLING.store(0, Release);
    true
}

/// Whether further modules may be loaded, which are not remembered.
pub(crate) fn is_full() -> bool {
    present().used().len() == MODULES_MAX
}

/// Whether the module with this fingerprint is loaded, whose code begins here.
pub(crate) fn is_loaded(fingerprint: u64, code_begin: u64) -> bool {
    let entries = present().used();
    // ORDERING: relaxed, here and below: see `Table::used`.
    let first = entries.partition_point(|entry| entry.code_begin.load(Relaxed) < code_begin);
    let mut there = entries[first..].iter().take_while(|entry| entry.code_begin.load(Relaxed) == code_begin);
    there.any(|entry| entry.fingerprint.load(Relaxed) == fingerprint)
}

/// Whether an address is in code of a loaded module.
#[cfg(feature = "interpose")]
#[inline(always)]
pub(crate) fn is_code(address: u64) -> bool {
    let table = present();
    let (word, bit) = filter_bit(address);
    table.filter[word].load(Relaxed) & bit != 0 && is_in_code_of(table, address)
}

#[cfg(feature = "interpose")]
#[inline(never)]
fn is_in_code_of(table: &Table, address: u64) -> bool {
    let entries = table.used();
    let after = entries.partition_point(|entry| entry.code_begin.load(Relaxed) <= address);
    after > 0 && address < entries[after - 1].code_end.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests of this file share the tables, so they are one.
    #[test]
    fn what_was_said_last_is_loaded_and_its_code_is_code() {
        let module = |number: u64| PresentModule {
            fingerprint: number,
            code_begin: number << 24,
            code_end: (number << 24) + 0x23456,
        };
        let is_there = |number| is_loaded(number, module(number).code_begin);
        assert!(!is_there(3), "nothing is loaded");
        assert!(set((1..500).rev().map(module).collect()));
        assert!((1..500).all(is_there) && !is_there(500));
        #[cfg(feature = "interpose")]
        for number in 1..500 {
            let PresentModule { code_begin, code_end, .. } = module(number);
            assert!(
                is_code(code_begin) && is_code(code_begin + 0x12345) && is_code(code_end - 1),
                "{number}"
            );
            assert!(!is_code(code_begin - 1) && !is_code(code_end) && !is_code(number), "{number}");
        }
        assert!(set((1..3).map(module).collect()));
        assert!(is_there(1) && is_there(2) && !is_there(3));
        #[cfg(feature = "interpose")]
        assert!(is_code(2 << 24) && !is_code(3 << 24), "it was unloaded");
        assert!(set((0..2000).map(module).collect()), "there is no room for all");
        assert!(is_there(0) && !is_there(1999) && !is_loaded(7, 0));
    }
}
