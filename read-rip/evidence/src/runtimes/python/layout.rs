//! Where the fields of CPython's structures are: offsets for each minor version.
//!
//! The numbers are those of the headers `Include/cpython/*.h` and `Include/internal/pycore_*.h` of CPython 3.8 to 3.13,
//! for 64 bits, with the GIL and without debugging. From 3.13 on, the interpreter has most of them in its own memory:
//! `_Py_DebugOffsets` at the beginning of `_PyRuntime` (`pycore_runtime.h`). A wrong offset leads to memory that makes
//! no sense, and each object's type is checked, so that nothing is believed then.

use crate::target::Memory;

/// The offsets that the reader needs. Those of a pointer's target are in the structure that it points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub minor: u8,
    /// In `_PyRuntimeState`: the first interpreter.
    pub interpreters: u64,
    /// In `PyInterpreterState`: the next one, and its first thread.
    pub next_interpreter: u64,
    pub threads: u64,
    pub gil: Gil,
    /// In `PyThreadState`.
    pub next_thread: u64,
    pub interpreter: u64,
    pub thread: Identity,
    pub frame: FrameAt,
    pub frames: Frames,
    pub code: Code,
    /// What it takes to know in which `with` blocks a function is, and the attributes of an instance; `None` before
    /// 3.11.
    pub blocks: Option<Blocks>,
    /// Where the characters of a string begin that has ASCII alone, and those of others.
    pub ascii: u64,
    pub compact: u64,
}

/// Where the lock of the interpreter is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gil {
    /// In `_PyRuntimeState`: one for the process.
    OfRuntime(u64),
    /// A pointer to it in `PyInterpreterState`.
    OfInterpreter(u64),
}

/// How a thread says which thread of the system it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity {
    /// By its `pthread_t`.
    Pthread(u64),
    Native(u64),
}

/// Where the innermost frame of a thread is.
#[derive(Clone, Copy, Debug)]
pub(super) enum FrameAt {
    /// A pointer in `PyThreadState`.
    Thread(u64),
    /// In a structure to which `PyThreadState` has a pointer: the offsets of both.
    CFrame(u64, u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    pub previous: u64,
    pub code: u64,
    /// How far it has come: a pointer to an instruction from 3.11 on, and an index before.
    pub instruction: u64,
    /// Whose the frame is; `None` before 3.11.
    pub owner: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub first_line: u64,
    pub file: u64,
    pub name: u64,
    pub lines: u64,
    /// Where its instructions begin; 0 before 3.11.
    pub instructions: u64,
}

/// Fields of frames, code and types that say what a function has on its stack of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// In a frame: its variables. Its stack of values follows.
    pub locals: u64,
    /// In `PyCodeObject`: how many variables these are, how many values the stack may have, the names of attributes
    /// that the code uses, and the table of what handles exceptions where.
    pub locals_len: u64,
    pub stack_len: u64,
    pub names: u64,
    pub exceptions: u64,
    /// In `PyHeapTypeObject`: the names of the attributes that instances have, in their order.
    pub keys: u64,
    pub attributes: AttributesAt,
}

/// Where an instance has the values of its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributesAt {
    /// 3.11: a pointer to the values in the fourth word before it, or a dictionary in the third one.
    Apart,
    /// 3.12: either in the third word before it.
    Tagged,
    /// 3.13: the values are in the instance itself, or a dictionary in the third word before it.
    Inline,
}

const fn before_3_11(minor: u8, gil: u64, instruction: u64) -> Layout {
    Layout {
        minor,
        interpreters: 32,
        next_interpreter: 0,
        threads: 8,
        gil: Gil::OfRuntime(gil),
        next_thread: 8,
        interpreter: 16,
        thread: Identity::Pthread(176),
        frame: FrameAt::Thread(24),
        frames: Frames { previous: 24, code: 32, instruction, owner: None },
        code: Code { first_line: 40, file: 104, name: 112, lines: 120, instructions: 0 },
        blocks: None,
        ascii: 48,
        compact: 72,
    }
}

/// Those that `_Py_DebugOffsets` of 3.13 does not have.
const BLOCKS_OF_3_13: Blocks = Blocks {
    locals: 72,
    locals_len: 72,
    stack_len: 64,
    names: 32,
    exceptions: 40,
    keys: 880,
    attributes: AttributesAt::Inline,
};

const TABLE: [Layout; 5] = [
    before_3_11(8, 1152, 104),
    before_3_11(9, 352, 104),
    before_3_11(10, 352, 96),
    Layout {
        minor: 11,
        interpreters: 40,
        next_interpreter: 0,
        threads: 16,
        gil: Gil::OfRuntime(360),
        next_thread: 8,
        interpreter: 16,
        thread: Identity::Native(160),
        frame: FrameAt::CFrame(56, 8),
        frames: Frames { previous: 48, code: 32, instruction: 56, owner: Some(69) },
        code: Code { first_line: 72, file: 112, name: 120, lines: 136, instructions: 184 },
        blocks: Some(Blocks {
            locals: 72,
            locals_len: 76,
            stack_len: 68,
            names: 32,
            exceptions: 40,
            keys: 872,
            attributes: AttributesAt::Apart,
        }),
        ascii: 48,
        compact: 72,
    },
    Layout {
        minor: 12,
        interpreters: 40,
        next_interpreter: 0,
        threads: 72,
        gil: Gil::OfInterpreter(384),
        next_thread: 8,
        interpreter: 16,
        thread: Identity::Native(144),
        frame: FrameAt::CFrame(56, 0),
        frames: Frames { previous: 8, code: 0, instruction: 56, owner: Some(70) },
        code: Code { first_line: 68, file: 112, name: 120, lines: 136, instructions: 192 },
        blocks: Some(Blocks { attributes: AttributesAt::Tagged, ..BLOCKS_OF_3_13 }),
        ascii: 40,
        compact: 56,
    },
];

/// What `_Py_DebugOffsets` begins with.
const COOKIE: [u8; 8] = *b"xdebugpy";
/// Its fields that are read, as far as the frame's: numbers of 64 bits.
const FIELDS: usize = 48;
/// No field is further from the beginning of its structure.
const OFFSET_MAX: u64 = 1 << 20;

impl Layout {
    /// That of a version of which the offsets are in the table.
    pub(super) fn of_version(minor: u8) -> Option<Layout> {
        TABLE.into_iter().find(|layout| layout.minor == minor)
    }

    /// That of 3.13, which the process has in its memory: the order of these fields is not that of other versions.
    pub(super) fn of_memory(runtime: u64, memory: &dyn Memory) -> Option<Layout> {
        let bytes: [u8; 8 * FIELDS] = memory.bytes(runtime).ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        let at = |index: usize| Some(u64::from_le_bytes(words[index])).filter(|&at| at < OFFSET_MAX);
        let version = u64::from_le_bytes(words[1]);
        let is_free_threaded = words[2] != [0; 8];
        if words[0] != COOKIE || version >> 16 != 0x030d || is_free_threaded {
            return None;
        }
        Some(Layout {
            minor: 13,
            interpreters: at(5)?,
            next_interpreter: at(8)?,
            threads: at(9)?,
            gil: Gil::OfInterpreter(at(14)?),
            next_thread: at(21)?,
            interpreter: at(22)?,
            thread: Identity::Native(at(25)?),
            frame: FrameAt::Thread(at(23)?),
            frames: Frames { previous: at(29)?, code: at(30)?, instruction: at(31)?, owner: Some(at(33)?) },
            code: Code {
                file: at(35)?,
                name: at(36)?,
                lines: at(38)?,
                first_line: at(39)?,
                instructions: at(43)?,
            },
            blocks: Some(Blocks { locals: at(32)?, ..BLOCKS_OF_3_13 }),
            ascii: 40,
            compact: 56,
        })
    }
}
