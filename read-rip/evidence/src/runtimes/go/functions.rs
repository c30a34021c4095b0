//! Functions, files and lines of a Go program, by the tables that its runtime has in memory (`pclntab`).
//!
//! The format is that of `runtime/symtab.go` of Go 1.18 and later. Everything is an index into another table: each is
//! checked against the length of that table.

use std::cell::RefCell;
use std::rc::Rc;

use foldhash::HashMap;

use crate::runtimes::SourceFrame;
use crate::target::Memory;

/// No table of functions is longer, in functions.
const FUNCTIONS_MAX: u64 = 1 << 21;
/// No name is longer, in bytes.
const NAME_MAX: usize = 512;
/// No more of a table of values by addresses is read.
const VALUES_MAX: usize = 16 << 10;
/// No more functions are inlined into one another at one address.
const INLINED_MAX: usize = 16;
/// The numbers of the tables that say what is inlined where (`internal/abi`).
const PCDATA_INLINED: u32 = 2;
const FUNCDATA_INLINED: u32 = 3;

/// What `moduledata` begins with, from Go 1.18 on: words of 64 bits.
pub(super) const HEAD_WORDS: usize = 32;

/// The magic numbers of Go 1.18 and of 1.20 and later.
const MAGIC_1_18: u32 = 0xffff_fff0;
const MAGIC_1_20: u32 = 0xffff_fff1;

/// A slice in `moduledata`.
#[derive(Clone, Copy, Debug)]
struct Slice {
    begin: u64,
    len: u64,
}

pub(super) struct Functions<'a> {
    memory: &'a dyn Memory,
    is_1_18: bool,
    quantum: u64,
    names: Slice,
    units: Slice,
    files: Slice,
    values: Slice,
    functions: Slice,
    /// Where functions begin, from the beginning of the code, and where they are described.
    index: Vec<(u32, u32)>,
    code: std::ops::Range<u64>,
    /// Candidates for the base of what is inlined where: its place in `moduledata` is that of a version.
    inlined_at: Vec<u64>,
    /// What was looked up: thousands of goroutines are at few addresses.
    known: RefCell<HashMap<u64, Rc<[SourceFrame]>>>,
}

struct Function {
    address: u64,
    entry: u64,
    name: u32,
    files: u32,
    lines: u32,
    tables: u32,
    unit: u32,
    more_tables: u8,
}

/// A position: the function, and where the instruction before an address is.
struct Inlined {
    name: u32,
    parent: u64,
}

impl<'a> Functions<'a> {
    /// Those of a `moduledata` that begins with these words, at this address.
    pub(super) fn of(
        address: u64,
        words: &[u64; HEAD_WORDS],
        memory: &'a dyn Memory,
    ) -> Option<Functions<'a>> {
        let slice = |at: usize| {
            let slice = Slice { begin: words[at], len: words[at + 1] };
            (words[at + 1] == words[at + 2] && slice.begin >= words[0]).then_some(slice)
        };
        let (names, units, files) = (slice(1)?, slice(4)?, slice(7)?);
        let (values, functions, index) = (slice(10)?, slice(13)?, slice(16)?);
        let code = words[22]..words[23];
        if code.is_empty() || !(1..=FUNCTIONS_MAX).contains(&index.len) {
            return None;
        }
        let header: [u8; 8] = memory.bytes(words[0]).ok()?;
        let magic = u32::from_le_bytes(header[..4].try_into().ok()?);
        let is_1_18 = match magic {
            MAGIC_1_18 => true,
            MAGIC_1_20 => false,
            _ => return None,
        };
        let (quantum, pointer_bytes) = (u64::from(header[6]), header[7]);
        if header[4..6] != [0, 0] || !matches!(quantum, 1 | 4) || pointer_bytes != 8 {
            return None;
        }
        let mut bytes = vec![0; index.len as usize * 8];
        memory.read(index.begin, &mut bytes).ok()?;
        let (pairs, _) = bytes.as_chunks::<8>();
        let half = |pair: &[u8; 8], at: usize| {
            u32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]])
        };
        let index: Vec<(u32, u32)> = pairs.iter().map(|pair| (half(pair, 0), half(pair, 4))).collect();
        if !index.is_sorted_by_key(|function| function.0) {
            return None;
        }
        // `gofunc` of 1.18 and 1.19; of 1.20; of 1.27.
        let places: &[u64] = if is_1_18 { &[304] } else { &[320, 344] };
        let inlined_at = places.iter().filter_map(|at| memory.u64(address.checked_add(*at)?).ok()).collect();
        Some(Functions {
            memory,
            is_1_18,
            quantum,
            names,
            units,
            files,
            values,
            functions,
            index,
            code,
            inlined_at,
            known: RefCell::default(),
        })
    }

    /// Whether an address is in the program's code.
    pub(super) fn has(&self, pc: u64) -> bool {
        self.code.contains(&pc)
    }

    /// The functions at an address, the inlined ones first. Empty if that is not known.
    pub(super) fn frames(&self, pc: u64) -> Rc<[SourceFrame]> {
        let known = self.known.borrow().get(&pc).cloned();
        known.unwrap_or_else(|| {
            let frames: Rc<[SourceFrame]> = self.look_up(pc).into();
            self.known.borrow_mut().insert(pc, frames.clone());
            frames
        })
    }

    fn look_up(&self, pc: u64) -> Vec<SourceFrame> {
        let Some(function) = self.function(pc) else { return Vec::new() };
        let (mut frames, mut at) = (Vec::new(), pc);
        while frames.len() < INLINED_MAX {
            let inlined = self.inlined(&function, at);
            let name = inlined.as_ref().map_or(function.name, |inlined| inlined.name);
            let Some(name) = self.text(self.names, name) else { break };
            let (file, line) = self.source(&function, at).unwrap_or_default();
            frames.push(SourceFrame { function: name, file, line: (line > 0).then_some(line) });
            match inlined {
                Some(inlined) => at = inlined.parent,
                None => break,
            }
        }
        frames
    }

    /// The name of the function that an address is in.
    pub(super) fn name(&self, pc: u64) -> Option<String> {
        self.text(self.names, self.function(pc)?.name)
    }

    fn function(&self, pc: u64) -> Option<Function> {
        let offset = u32::try_from(pc.checked_sub(self.code.start)?).ok().filter(|_| self.has(pc))?;
        let next = self.index.partition_point(|function| function.0 <= offset);
        let (entry, described) = *self.index.get(next.checked_sub(1)?)?;
        let len = if self.is_1_18 { 40 } else { 44 };
        let address = self.within(self.functions, described, len)?;
        let mut bytes = [0; 44];
        self.memory.read(address, &mut bytes[..len as usize]).ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        (word(0) == entry).then(|| Function {
            address: address + len,
            entry: self.code.start + u64::from(entry),
            name: word(4),
            files: word(20),
            lines: word(24),
            tables: word(28),
            unit: word(32),
            more_tables: bytes[len as usize - 1],
        })
    }

    /// File and line of an address in a function.
    fn source(&self, function: &Function, pc: u64) -> Option<(String, u32)> {
        let line = u32::try_from(self.value(function, function.lines, pc)?).ok()?;
        let file = u32::try_from(self.value(function, function.files, pc)?).ok()?;
        let in_unit = function.unit.checked_add(file).filter(|&at| u64::from(at) < self.units.len)?;
        let file = self.memory.u32(self.units.begin.checked_add(4 * u64::from(in_unit))?).ok()?;
        Some((self.text(self.files, file)?, line))
    }

    /// The function that is inlined at an address of another one.
    fn inlined(&self, function: &Function, pc: u64) -> Option<Inlined> {
        if function.tables <= PCDATA_INLINED || u32::from(function.more_tables) <= FUNCDATA_INLINED {
            return None;
        }
        let table = |at: u32| self.memory.u32(function.address.checked_add(4 * u64::from(at))?).ok();
        let index = self.value(function, table(PCDATA_INLINED)?, pc)?;
        let index = u64::try_from(index).ok()?;
        let offset = table(function.tables + FUNCDATA_INLINED).filter(|&offset| offset != u32::MAX)?;
        let (len, name_at, parent_at) = if self.is_1_18 { (20, 12, 16) } else { (16, 4, 8) };
        let entry = |base: u64| -> Option<Inlined> {
            let at = base.checked_add(u64::from(offset))?.checked_add(index.checked_mul(len)?)?;
            let name = self.memory.u32(at.checked_add(name_at)?).ok()?;
            let parent = function.entry + u64::from(self.memory.u32(at.checked_add(parent_at)?).ok()?);
            // The base is the right one if there is a name.
            let is_name = self.text(self.names, name).is_some_and(|name| name.contains('.'));
            let is_parent = self.function(parent).is_some_and(|of| of.entry == function.entry);
            (is_name && is_parent).then_some(Inlined { name, parent: parent + 1 })
        };
        self.inlined_at.iter().find_map(|&base| entry(base))
    }

    /// The value for the instruction before an address, from a table of differences.
    fn value(&self, function: &Function, table: u32, pc: u64) -> Option<i64> {
        let begin = self.within(self.values, table, 1).filter(|_| table != 0)?;
        let rest = self.values.len - u64::from(table);
        let mut bytes = vec![0; VALUES_MAX.min(usize::try_from(rest).ok()?)];
        let len = self.memory.read_some(begin, &mut bytes);
        let mut bytes = bytes[..len].iter().copied();
        let target = pc.checked_sub(1)?;
        let (mut value, mut at, mut is_first) = (-1_i64, function.entry, true);
        loop {
            let difference = number(&mut bytes)?;
            if difference == 0 && !is_first {
                return None;
            }
            is_first = false;
            let half = i64::from(difference >> 1);
            value += if difference & 1 == 1 { !half } else { half };
            at = at.checked_add(u64::from(number(&mut bytes)?) * self.quantum)?;
            if target < at {
                return Some(value);
            }
        }
    }

    /// The address of an entry of a table, if so many bytes are within it.
    fn within(&self, table: Slice, offset: u32, len: u64) -> Option<u64> {
        (u64::from(offset) + len <= table.len).then(|| table.begin.checked_add(offset.into())).flatten()
    }

    /// A text that ends with a zero.
    fn text(&self, table: Slice, offset: u32) -> Option<String> {
        let begin = self.within(table, offset, 1)?;
        let rest = usize::try_from(table.len - u64::from(offset)).ok()?;
        let mut bytes = vec![0; NAME_MAX.min(rest)];
        let len = self.memory.read_some(begin, &mut bytes);
        let end = bytes[..len].iter().position(|&byte| byte == 0)?;
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// A number of several bytes with 7 bits each, the lowest first.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..32).step_by(7) {
        let byte = bytes.next()?;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
