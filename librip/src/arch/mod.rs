//! What differs between processors: the instructions of a mark, the thread's block, and the entry to the cold path.
//!
//! It contains instructions and the symbols that they share. It decides nothing, and imports nothing of the recorder.
//! Each architecture's file has the same three parts, so that they can be read side by side:
//!
//! 1. `__rip_mark!`, the instructions of a mark and its ELF note, expanded in the user's crate;
//! 2. `define_entry!`, which defines the thread-local block, the state of the module, and `librip_enter_1`. A mark
//!    without a cursor, or a mark of progress whose time is due, calls this function, which calls Rust code and keeps
//!    every register of the marked function. `runtime` expands the macro, and says which Rust functions it calls;
//! 3. functions that read the same symbols from Rust code.
//!
//! # What a mark reads
//!
//! A mark loads the cursor from the thread's block and the mask from the module's state. Both are private memory of the
//! process. The mark reads one value back from the file: the count of its own slot. The mask limits it to the words of
//! that slot. So a file that somebody scribbles on cannot send a store elsewhere.
//!
//! # Why the thread-local block is defined in assembly
//!
//! A mark must reach its cursor without a call, in a shared library too. That takes the *initial-exec* TLS model, which
//! stable Rust cannot ask for: `thread_local!` in a `cdylib` calls `__tls_get_addr`. In an executable the linker
//! relaxes the same instructions to an immediate. The price: a library with marks that `dlopen` loads must find room
//! for *all* of its thread-local data, not only for our 56 bytes, in glibc's reserve of static TLS. The reserve is
//! about 1.6 KiB for all such libraries together. If it is too small, `dlopen` reports "cannot allocate memory in
//! static TLS block", and `GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192` helps.
//!
//! # Why the names end in `_1`
//!
//! Marks and the library that they call may be compiled at different times, and these names are the interface between
//! them. The number changes when the meaning of the block, the module's state or the entry changes.

#![allow(unsafe_code, reason = "symbols that assembly defines")]

use core::cell::Cell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use librip_format::AwaitEntry;

/// The note of a site, for the assembly of a mark. `librip_format::Note` defines it. Label 20 is the mark's PC, and the
/// mark brings the operands that the note names.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_note {
    () => {
        ::core::concat!(
            ".pushsection .note.librip,\"aR\",@note\n",
            ".balign 4\n",
            ".4byte 7, 36, 1\n",
            ".asciz \"librip\"\n",
            ".balign 4\n",
            ".4byte 20b - .\n",
            ".4byte {text} - .\n",
            ".4byte {text_len}, {line}, {column}\n",
            ".byte {kind}, {operands}\n",
            ".2byte {flags}\n",
            ".8byte {types}\n",
            ".4byte 0\n",
            ".popsection",
        )
    };
}

/// The PC of a site whose words Rust code writes, and the note that describes the site.
///
/// It records nothing: it accesses no memory and changes no flag, as its options say. Not `pure`: the compiler must not
/// move or merge it, because each expansion is a site, and so is each inlined copy.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_site {
    ($text:path, $text_len:expr, $kind:expr, $flags:expr, $operands:expr) => {{
        let pc: u64;
        // SAFETY: it computes an address, and adds a note to the file.
        unsafe {
            ::core::arch::asm!(
                "20:",
                $crate::__rip_pc!(),
                $crate::__rip_note!(),
                pc = out(reg) pc,
                text = sym $text,
                text_len = const $text_len,
                line = const ::core::line!(),
                column = const ::core::column!(),
                kind = const $kind,
                operands = const $operands.len(),
                flags = const $flags,
                types = const $crate::__private::types($operands),
                options(nomem, nostack, preserves_flags),
            );
        }
        pc
    }};
}

/// Defines the symbol of an object, which is all zero at first.
macro_rules! object {
    ($name:literal, $len_bytes:literal) => {
        concat!(
            concat!(".globl ", $name, "\n.hidden ", $name, "\n"),
            concat!(".type ", $name, ",@object\n"),
            concat!(".size ", $name, ",", $len_bytes, "\n"),
            concat!($name, ": .zero ", $len_bytes, "\n"),
        )
    };
}
pub(crate) use object;

/// Begins the function of a symbol.
macro_rules! function {
    ($name:literal) => {
        concat!(
            concat!(".balign 16\n.globl ", $name, "\n.hidden ", $name, "\n"),
            concat!(".type ", $name, ",@function\n", $name, ":\n.cfi_startproc"),
        )
    };
}
pub(crate) use function;

/// Ends the function of a symbol.
macro_rules! end_of_function {
    ($name:literal) => {
        concat!(".cfi_endproc\n.size ", $name, ", . - ", $name)
    };
}
pub(crate) use end_of_function;

/// The symbols that marks refer to, and the constructor of this module, whose address is the operand `loaded`.
macro_rules! symbols {
    () => {
        concat!(
            ".pushsection .tbss.librip,\"awT\",@nobits\n",
            ".balign 8\n",
            $crate::arch::object!("librip_tls_1", 56),
            $crate::arch::object!("librip_fork_1", 408),
            $crate::arch::object!("librip_task_1", 96),
            $crate::arch::object!("librip_creator_1", 24),
            ".popsection\n",
            ".pushsection .bss.librip,\"aw\",@nobits\n",
            ".balign 8\n",
            $crate::arch::object!("librip_module_1", 16),
            ".popsection\n",
            ".pushsection .init_array,\"aw\",@init_array\n",
            ".balign 8\n",
            ".8byte {loaded}\n",
            ".popsection",
        )
    };
}
pub(crate) use symbols;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    target_endian = "little",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("librip records on Linux with glibc only, on x86-64 and little-endian aarch64");

/// The thread-local block, `librip_tls_1`.
///
/// Every instance of librip in a process (the executable's, a `cdylib`'s) has a block of its own for each thread, and
/// so has every module with marks in C. Only its thread touches a block, with plain loads and stores. A signal handler
/// of that thread may interrupt at any instruction; the mark's null check and the entry allow for that.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ThreadBlock {
    /// The words of the thread's slot, or null while it has none.
    pub(crate) cursor: Cell<*mut u64>,
    /// Not 0: the thread has no slot, and its marks do not claim one. It was refused a slot, it has released its slot,
    /// or it is claiming one now.
    pub(crate) is_absent: Cell<u64>,
    /// In the block of the instance that owns the ring: the blocks of other modules that share this thread's slot.
    pub(crate) next: Cell<*const ThreadBlock>,
    /// Rounds of thread-specific destructors so far.
    pub(crate) exit_rounds: Cell<u64>,
    /// An event with this sequence or a later one takes the time, unless it is a plain mark: see `process::sampled`. Or
    /// a `DUE_*`.
    pub(crate) due: Cell<u64>,
    /// How many words after the last time the next one is due.
    pub(crate) period: Cell<u64>,
    /// The last time that was taken, ticks.
    pub(crate) sampled_ticks: Cell<u64>,
}

/// [`ThreadBlock::due`]: the next event takes the time.
pub(crate) const DUE_NOW: u64 = 0;
/// [`ThreadBlock::due`]: the event that is recorded now has a time of its own, and the next one takes the time.
pub(crate) const DUE_AFTER_THIS: u64 = 1;
/// [`ThreadBlock::due`]: no event takes the time.
pub(crate) const DUE_NEVER: u64 = u64::MAX;

/// What a thread remembers while it forks, `librip_fork_1`. All zero outside of a fork, in a child up to its first
/// mark.
///
/// It is here, and not in a `thread_local!`, because a child would call `__tls_get_addr`: that takes two page faults,
/// each of which costs a fiftieth of a fork.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ForkBlock {
    /// Not 0: the thread forks, and has blocked signals.
    pub(crate) has_mask: Cell<u64>,
    /// The signals that were blocked before.
    pub(crate) mask: Cell<u64>,
    /// One more than the number of the child; 0 if it has none.
    pub(crate) child: Cell<u64>,
    /// The locks that the thread holds.
    pub(crate) held: Cell<[[u64; 3]; librip_format::HELD_MAX]>,
}

/// What a thread remembers of its polls of tasks, `librip_task_1`. Used in the instance that owns the ring.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct TaskBlock {
    /// The words of the slot that is the thread's own, from the first task on that it polls. Null before, and when it
    /// has left that slot. While the cursor is another one, the thread polls a task.
    pub(crate) home: Cell<*mut u64>,
    /// The entry of the future that is polled, in the part of its task; null, or that of another task, if the future
    /// that is polled has none.
    pub(crate) future: Cell<*const AwaitEntry>,
    /// Not 0: the thread has other blocks, or its blocks say when a time is due. All of that changes with the cursor.
    pub(crate) has_more: Cell<u64>,
    /// When the clock was read last for a turn, ticks.
    pub(crate) ticks: Cell<u64>,
    /// How many polls have this time too.
    pub(crate) left: Cell<u64>,
    /// How many polls had one time, the last time.
    pub(crate) period: Cell<u64>,
    /// A moment that is not long ago, on the system's clock, ns, and in ticks: see `process::clock`.
    pub(crate) moment_ns: Cell<u64>,
    pub(crate) moment_ticks: Cell<u64>,
    /// Where the thread counts its polls; 0 before the first one: see `process::polls`.
    pub(crate) lane: Cell<u64>,
    /// When the thread last began or ended a sleep, or claimed its slot, ticks; 0 if that is not known.
    pub(crate) rest_since: Cell<u64>,
    /// For how long it was awake, and slept, ticks: what its slot says too.
    pub(crate) awake: Cell<u64>,
    pub(crate) asleep: Cell<u64>,
}

/// Who created the calling thread, `librip_creator_1`: a slot and its count then. All zero when unknown.
///
/// What the creator says of the stack is here too. A claim reads it, maybe in a signal handler.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Creator {
    /// One more than the index of the slot.
    pub(crate) slot: Cell<u64>,
    pub(crate) count: Cell<u64>,
    /// An address in the thread's own stack: from here to the thread pointer there is nothing else. 0 if unknown.
    pub(crate) stack_begin: Cell<u64>,
}

/// The state of a module, `librip_module_1`: what its marks need to know of the ring.
///
/// Each module has one: the executable, and each library with marks. It is zero before there is a ring. All later
/// writes store the same values, those of the one ring. It is private memory, so no other process can change it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ModuleState {
    /// The number of words of a slot minus one.
    pub(crate) mask: AtomicU64,
    /// A `CLOCK_LEVEL_*` in the lowest byte, a `CLOCK_SOURCE_*` in the next, the shift of the clock and a
    /// `USAGE_LEVEL_*` in the third, and the number of open spans that a slot has room for in the last.
    pub(crate) clock: AtomicU32,
    /// Not 0: marks may enter. Written last.
    pub(crate) is_open: AtomicU32,
}

impl ModuleState {
    /// Lets the module's marks record in a ring with these settings.
    ///
    /// `publish` runs before marks may enter, and after the settings are in place.
    pub(crate) fn open(&self, settings: Settings, publish: impl FnOnce()) {
        // ORDERING: relaxed: the release below publishes them to marks that find the module open. `publish` does a
        // release too: the entry acquires that one before it sets a cursor, so a mark with a cursor reads this mask.
        self.mask.store(settings.mask, Relaxed);
        self.clock.store(settings.clock, Relaxed);
        publish();
        // ORDERING: release, pairs with the acquire in `is_open`. Marks load this word without ordering: a mark that
        // sees it calls the entry, which acquires the owner and finds none at worst. Then the mark tries again.
        self.is_open.store(1, Release);
    }

    /// The number of open spans that a slot has room for.
    #[inline(always)]
    pub(crate) fn span_entries(&self) -> usize {
        // ORDERING: relaxed: written once, before marks of this module may enter.
        (self.clock.load(Relaxed) >> SPAN_ENTRIES_SHIFT) as usize
    }

    /// What the recorder asks the kernel about cycles: a `USAGE_LEVEL_*`.
    #[inline(always)]
    pub(crate) fn usage_level(&self) -> u32 {
        // ORDERING: relaxed, as above.
        self.clock.load(Relaxed) >> USAGE_LEVEL_SHIFT & 3
    }

    /// Returns whether marks of this module may enter: there is a ring, and this module knows it.
    pub(crate) fn is_open(&self) -> bool {
        // ORDERING: acquire, pairs with the release in `open`.
        self.is_open.load(Acquire) != 0
    }
}

/// [`ModuleState::clock`]: the first bit of the `USAGE_LEVEL_*`, above the shift of the clock, which has six bits.
pub(crate) const USAGE_LEVEL_SHIFT: u32 = 22;
/// [`ModuleState::clock`]: the first bit of the number of open spans.
pub(crate) const SPAN_ENTRIES_SHIFT: u32 = 24;

/// What marks need to know of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Settings {
    /// [`ModuleState::mask`].
    pub(crate) mask: u64,
    /// [`ModuleState::clock`].
    pub(crate) clock: u32,
}

unsafe extern "C" {
    /// Gives this module's block of the calling thread a cursor, or marks it absent. If it has one, notes the time.
    /// Defined by `define_entry!`. Unlike `librip_enter_1`, it keeps the registers that a function must keep, and no
    /// others: that takes 3 KiB less of the stack, which for many threads is a page.
    safe fn librip_enter_rust_1(block: &ThreadBlock);
    safe static librip_module_1: ModuleState;
}

/// Claims a slot for the calling thread if it has none and is not absent, as a mark without a cursor does. For a thread
/// with a slot, it notes the time, as a mark does whose time is due.
///
/// Call it only if [`module`] is open.
pub(crate) fn enter() {
    librip_enter_rust_1(thread_block());
}

/// Defines a function that returns memory of the calling thread. The memory lives as long as the thread, and the
/// reference cannot leave the thread: it is not `Send`.
macro_rules! memory_of_thread {
    ($function:ident -> $memory:ident, $symbol:literal) => {
        #[inline(always)]
        pub(crate) fn $function<'a>() -> &'a $memory {
            let address: *const $memory = of_thread!($symbol);
            // SAFETY: `symbols!` makes thread-local memory of this size and alignment. It is zero at first, which is
            // valid. Only this thread accesses it, in marks and signal handlers too, and all fields are cells.
            unsafe { &*address }
        }
    };
}
memory_of_thread!(thread_block -> ThreadBlock, "librip_tls_1");
memory_of_thread!(fork_block -> ForkBlock, "librip_fork_1");
memory_of_thread!(task_block -> TaskBlock, "librip_task_1");
memory_of_thread!(creator -> Creator, "librip_creator_1");

/// Returns the state of the module that this code is linked into.
#[inline(always)]
pub(crate) fn module() -> &'static ModuleState {
    &librip_module_1
}

pub(crate) type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<ThreadBlock>() == 56, "librip_tls_1 has this size in assembly");
    assert!(size_of::<ForkBlock>() == 408, "librip_fork_1 has this size in assembly");
    assert!(size_of::<TaskBlock>() == 96, "librip_task_1 has this size in assembly");
    assert!(size_of::<Creator>() == 24, "librip_creator_1 has this size in assembly");
    assert!(offset_of!(ThreadBlock, cursor) == 0, "marks load the cursor from the block's start");
    assert!(offset_of!(ThreadBlock, is_absent) == 8, "marks look here before they enter");
    assert!(offset_of!(ThreadBlock, due) == 32, "marks compare their sequences with it");
    assert!(size_of::<ModuleState>() == 16, "librip_module_1 has this size in assembly");
    assert!(offset_of!(ModuleState, mask) == 0, "marks load the mask from the state's start");
    assert!(offset_of!(ModuleState, is_open) == 12, "marks look here before they enter");
    assert!(librip_format::CURSOR_TO_COUNT_BYTES == 8, "marks advance the count at this distance");
};
