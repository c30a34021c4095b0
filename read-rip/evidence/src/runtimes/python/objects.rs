//! Objects of CPython: strings, bytes and code, each believed only if its type is the one that it should be.

use foldhash::HashMap;

use super::layout::Layout;
use super::lines::line;
use crate::runtimes::SourceFrame;
use crate::runtimes::exported::Exports;
use crate::target::Memory;

/// No name of a function or a file is longer, in characters.
const TEXT_MAX: u64 = 4096;
/// No table of lines is longer, in bytes.
const TABLE_MAX: u64 = 1 << 20;
/// In each object: its type. In those of variable length: the length.
pub(super) const TYPE: u64 = 8;
const LEN: u64 = 16;

/// The addresses of the types that objects must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Types {
    code: u64,
    text: u64,
    bytes: u64,
    /// Methods of built-in types and of classes, bound to an object; 0 if that is not known.
    pub(super) built_in_method: u64,
    pub(super) method: u64,
}

impl Types {
    /// Types that one object may have all of.
    #[cfg(test)]
    pub(super) fn all_at(address: u64) -> Types {
        Types { code: address, text: address, bytes: address, built_in_method: address, method: address }
    }

    /// Those of an interpreter, by the symbols that it exports.
    pub(super) fn of(exports: &Exports<'_>) -> Option<Types> {
        Some(Types {
            code: exports.address_of("PyCode_Type")?,
            text: exports.address_of("PyUnicode_Type")?,
            bytes: exports.address_of("PyBytes_Type")?,
            built_in_method: exports.address_of("PyCFunction_Type").unwrap_or(0),
            method: exports.address_of("PyMethod_Type").unwrap_or(0),
        })
    }
}

#[derive(Clone, Debug)]
struct CodeObject {
    function: String,
    file: String,
    first_line: u32,
    table: Vec<u8>,
}

/// Reads objects. Each code object is read once: many threads are in the same functions.
pub(super) struct Objects<'a> {
    pub(super) memory: &'a dyn Memory,
    pub(super) layout: Layout,
    pub(super) types: Types,
    codes: HashMap<u64, Option<CodeObject>>,
}

impl<'a> Objects<'a> {
    pub(super) fn new(memory: &'a dyn Memory, layout: Layout, types: Types) -> Objects<'a> {
        Objects { memory, layout, types, codes: HashMap::default() }
    }

    /// Where a frame is, by its code object and by how far it has come.
    pub(super) fn source(&mut self, code: u64, instruction: u64) -> Option<SourceFrame> {
        if !self.codes.contains_key(&code) {
            let read = self.code(code);
            self.codes.insert(code, read);
        }
        let (minor, begin) = (self.layout.minor, self.layout.code.instructions);
        let known = self.codes.get(&code)?.as_ref()?;
        // FOLKLORE: an index of 32 bits before 3.11, which counts bytes up to 3.9 and instructions of two bytes in
        // 3.10. A function that has not begun is at -1.
        let index = i64::from(instruction as u32 as i32).max(0) as u64;
        let at = match minor {
            ..=9 => index,
            10 => 2 * index,
            _ => instruction.saturating_sub(code.checked_add(begin)?) / 2,
        };
        let line = line(minor, &known.table, known.first_line, at);
        Some(SourceFrame { function: known.function.clone(), file: known.file.clone(), line })
    }

    fn code(&self, address: u64) -> Option<CodeObject> {
        let at = self.layout.code;
        self.is_of(address, self.types.code).then_some(())?;
        let pointer = |offset| self.memory.u64(address.checked_add(offset)?).ok();
        let first_line = self.memory.u32(address.checked_add(at.first_line)?).ok()?;
        Some(CodeObject {
            function: self.text(pointer(at.name)?)?,
            file: self.text(pointer(at.file)?)?,
            first_line,
            table: self.bytes(pointer(at.lines)?)?,
        })
    }

    /// A pointer that is not null.
    pub(super) fn pointer(&self, base: u64, offset: u64) -> Option<u64> {
        self.memory.u64(base.checked_add(offset)?).ok().filter(|&pointer| pointer != 0)
    }

    fn is_of(&self, object: u64, of_type: u64) -> bool {
        object.checked_add(TYPE).is_some_and(|at| self.memory.u64(at) == Ok(of_type))
    }

    fn len(&self, object: u64, at_most: u64) -> Option<usize> {
        let len = self.memory.u64(object.checked_add(LEN)?).ok().filter(|&len| len <= at_most)?;
        usize::try_from(len).ok()
    }

    pub(super) fn bytes(&self, object: u64) -> Option<Vec<u8>> {
        self.is_of(object, self.types.bytes).then_some(())?;
        let mut bytes = vec![0; self.len(object, TABLE_MAX)?];
        self.memory.read(object.checked_add(32)?, &mut bytes).ok()?;
        Some(bytes)
    }

    /// A number from 0 on that is less than 2^30.
    pub(super) fn small_number(&self, object: u64) -> Option<u32> {
        // Up to 3.11, the number of digits, and from 3.12 on, that and a sign in the lowest three bits.
        let head = self.memory.u64(object.checked_add(LEN)?).ok()?;
        let is_one_digit = head == if self.layout.minor < 12 { 1 } else { 8 };
        self.memory.u32(object.checked_add(24)?).ok().filter(|_| is_one_digit)
    }

    /// A string; control characters are left to who prints it.
    pub(super) fn text(&self, object: u64) -> Option<String> {
        const STATE: u64 = 32;
        self.is_of(object, self.types.text).then_some(())?;
        let len = self.len(object, TEXT_MAX)?;
        let state = self.memory.u32(object.checked_add(STATE)?).ok()?;
        let (width, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
        if !is_compact {
            return None;
        }
        let begin = if is_ascii { self.layout.ascii } else { self.layout.compact };
        let mut bytes = vec![0; len * width as usize];
        self.memory.read(object.checked_add(begin)?, &mut bytes).ok()?;
        match width {
            1 => Some(bytes.into_iter().map(char::from).collect()),
            2 => Some(String::from_utf16_lossy(
                &bytes.as_chunks().0.iter().map(|&unit| u16::from_le_bytes(unit)).collect::<Vec<u16>>(),
            )),
            4 => bytes.as_chunks().0.iter().map(|&unit| char::from_u32(u32::from_le_bytes(unit))).collect(),
            _ => None,
        }
    }
}
