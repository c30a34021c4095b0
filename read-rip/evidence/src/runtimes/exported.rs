//! The address of a symbol that a module exports, from the memory of its process alone.
//!
//! The loader needs the table of exported symbols and its hash table in memory. So no file has to be opened, and the
//! table is that of the code that runs, even if the file was replaced.
//!
//! The format of the hash table is that of `DT_GNU_HASH`: see "Dynamic linking" of the GNU C library's manual, and
//! <https://sourceware.org/legacy-ml/binutils/2006-10/msg00377.html>.

use object::LittleEndian;
use object::elf::{DT_GNU_HASH, DT_STRTAB, DT_SYMTAB, Dyn64, SHN_UNDEF, Sym64};
use object::pod::{from_bytes, slice_from_all_bytes};
use read_rip_files::Module;

use crate::target::{Memory, dynamic_section};

const LITTLE: LittleEndian = LittleEndian;
/// No more of a dynamic section is read.
const DYNAMIC_MAX_BYTES: u64 = 8 << 10;
/// No more symbols of one hash value are compared.
const CHAIN_MAX: u32 = 4096;

pub(super) struct Exports<'a> {
    memory: &'a dyn Memory,
    load_bias: u64,
    symbols: u64,
    names: u64,
    buckets: u64,
    buckets_len: u32,
    chains: u64,
    first_symbol: u32,
}

impl<'a> Exports<'a> {
    /// Those of a module; `None` if it has none, or no hash table of GNU's.
    pub(super) fn of(module: &Module, memory: &'a dyn Memory) -> Option<Exports<'a>> {
        let range = dynamic_section(module, memory)?;
        let len =
            (range.end - range.start).min(DYNAMIC_MAX_BYTES) as usize / size_of::<Dyn64<LittleEndian>>();
        let mut bytes = vec![0; len * size_of::<Dyn64<LittleEndian>>()];
        memory.read(range.start, &mut bytes).ok()?;
        let entries = slice_from_all_bytes::<Dyn64<LittleEndian>>(&bytes).ok()?;
        let value = |tag| {
            let entry = entries.iter().find(|entry| entry.d_tag.get(LITTLE) == tag)?;
            let value = entry.d_val.get(LITTLE);
            // glibc has put addresses there, and musl leaves what the file has.
            Some(if value < module.load_bias { value.wrapping_add(module.load_bias) } else { value })
        };
        let (hash, symbols, names) = (value(DT_GNU_HASH)?, value(DT_SYMTAB)?, value(DT_STRTAB)?);
        let word = |index: u64| memory.u32(hash.checked_add(4 * index)?).ok();
        let (buckets_len, first_symbol, bloom_len) = (word(0)?, word(1)?, word(2)?);
        let buckets = hash.checked_add(16 + 8 * u64::from(bloom_len))?;
        let chains = buckets.checked_add(4 * u64::from(buckets_len))?;
        Some(Exports {
            memory,
            load_bias: module.load_bias,
            symbols,
            names,
            buckets,
            buckets_len,
            chains,
            first_symbol,
        })
    }

    /// The actual address of a symbol; `None` if the module does not define it.
    pub(super) fn address_of(&self, name: &str) -> Option<u64> {
        let hash = hash(name);
        let bucket = hash.checked_rem(self.buckets_len)?;
        let first = self.memory.u32(self.buckets.checked_add(4 * u64::from(bucket))?).ok()?;
        for index in first.max(1)..first.checked_add(CHAIN_MAX)? {
            let in_chain = u64::from(index.checked_sub(self.first_symbol)?);
            let known = self.memory.u32(self.chains.checked_add(4 * in_chain)?).ok()?;
            if known | 1 == hash | 1
                && let Some(address) = self.symbol_named(index, name)
            {
                return Some(address);
            }
            if known & 1 == 1 {
                break;
            }
        }
        None
    }

    fn symbol_named(&self, index: u32, name: &str) -> Option<u64> {
        const LEN: usize = size_of::<Sym64<LittleEndian>>();
        let bytes: [u8; LEN] =
            self.memory.bytes(self.symbols.checked_add(u64::from(index) * LEN as u64)?).ok()?;
        let (symbol, _) = from_bytes::<Sym64<LittleEndian>>(&bytes).ok()?;
        let mut text = vec![0; name.len() + 1];
        self.memory.read(self.names.checked_add(u64::from(symbol.st_name.get(LITTLE)))?, &mut text).ok()?;
        let is_it =
            text.strip_suffix(&[0]) == Some(name.as_bytes()) && symbol.st_shndx.get(LITTLE) != SHN_UNDEF;
        is_it.then(|| symbol.st_value.get(LITTLE).wrapping_add(self.load_bias))
    }
}

fn hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_linker() {
        // From a table that `readelf --gnu-hash-section` could show: the value of the linker for this name.
        assert_eq!((hash(""), hash("printf")), (0x1505, 0x156b_2bb8));
    }
}
