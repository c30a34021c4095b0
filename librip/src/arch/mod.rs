//! What differs between processors: the mark itself, the thread's block, the way into the cold path.
//!
//! It holds instructions and the names they share; it decides nothing. Each architecture's file has the same
//! three parts, so that they can be read side by side:
//!
//! 1. `__rip_mark!`, the instructions of a mark and its ELF note, expanded in the user's crate;
//! 2. the assembly behind it: the thread-local block, the flag that says whether there is a ring, and
//!    `librip_enter_1`, which runs Rust code without disturbing a single register of the marked function;
//! 3. `thread_block`, the address of the calling thread's block.
//!
//! # Why the thread-local block is defined in assembly
//!
//! A mark must reach its cursor without a call, also in a shared library. That takes the *initial-exec* TLS
//! model, which stable Rust cannot ask for: `thread_local!` in a `cdylib` calls `__tls_get_addr`. In an
//! executable the linker relaxes the same instructions to an immediate. The price: a library with marks that is
//! loaded by `dlopen` must find room for *all* of its thread-local data, not only for our 48 bytes, in glibc's
//! reserve of static TLS, about 1.6 KiB for all such libraries together. Where that does not do, `dlopen` says
//! "cannot allocate memory in static TLS block", and `GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192` helps.
//!
//! # Why the names end in `_1`
//!
//! They are an interface between code compiled at different times: marks and the library behind them. The
//! number changes when the meaning of the block, the flag or the entry does.

#[cfg(feature = "std")]
use core::cell::Cell;

/// The note of a site, for the assembly of a mark; `site::Note` is its definition. Label 20 is the mark's PC, and
/// the mark brings the operands that it names.
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
            ".4byte {types}, 0, 0\n",
            ".popsection",
        )
    };
}

/// The thread-local block and the flag that marks refer to, and the constructor of this module, whose address is
/// the operand `loaded`.
#[cfg(feature = "std")]
macro_rules! symbols {
    () => {
        concat!(
            ".pushsection .tbss.librip,\"awT\",@nobits\n",
            ".balign 8\n",
            ".globl librip_tls_1\n",
            ".hidden librip_tls_1\n",
            ".type librip_tls_1,@object\n",
            ".size librip_tls_1,48\n",
            "librip_tls_1: .zero 48\n",
            ".popsection\n",
            ".pushsection .bss.librip,\"aw\",@nobits\n",
            ".globl librip_active_1\n",
            ".hidden librip_active_1\n",
            ".type librip_active_1,@object\n",
            ".size librip_active_1,1\n",
            "librip_active_1: .zero 1\n",
            ".popsection\n",
            ".pushsection .init_array,\"aw\",@init_array\n",
            ".balign 8\n",
            ".8byte {loaded}\n",
            ".popsection",
        )
    };
}
#[cfg(feature = "std")]
pub(crate) use symbols;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(all(feature = "std", target_arch = "aarch64"))]
pub(crate) use aarch64::*;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
pub(crate) use x86_64::*;

#[cfg(all(
    feature = "std",
    not(all(
        target_os = "linux",
        target_endian = "little",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))
))]
compile_error!("librip records on Linux, on x86-64 and little-endian aarch64 only");

/// The thread-local block, `librip_tls_1`.
///
/// Every copy of librip in a process (the executable's, a `cdylib`'s) has a block of its own for each thread.
/// Only its thread touches it, so plain loads and stores do; a signal handler of that thread may interrupt
/// at any instruction, which the mark's null check and `thread::enter` allow for.
#[cfg(feature = "std")]
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ThreadBlock {
    /// Where the next word goes: a slot's words, this block's `sink`, or null before the first mark.
    pub(crate) cursor: Cell<*mut u64>,
    /// In the block of the copy that owns the ring: the blocks of other copies that share this thread's slot.
    pub(crate) next: Cell<*const ThreadBlock>,
    /// Rounds of thread-specific destructors seen so far.
    pub(crate) exit_rounds: Cell<u64>,
    /// A slot of one word that nobody reads: a refused thread marks into it at the usual cost.
    pub(crate) sink_count: Cell<u64>,
    /// Always zero, which sends every word to the same place.
    pub(crate) sink_mask: Cell<u64>,
    /// The word.
    pub(crate) sink: Cell<u64>,
}

#[cfg(feature = "std")]
impl ThreadBlock {
    /// What a refused thread's cursor points at.
    pub(crate) fn sink(&self) -> *mut u64 {
        self.sink.as_ptr()
    }
}

#[cfg(feature = "std")]
const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<ThreadBlock>() == 48, "librip_tls_1 has this size in assembly");
    assert!(offset_of!(ThreadBlock, cursor) == 0, "marks load the cursor from the block's start");
    assert!(
        offset_of!(ThreadBlock, sink) - offset_of!(ThreadBlock, sink_count)
            == librip_format::CURSOR_TO_COUNT_BYTES
    );
    assert!(
        offset_of!(ThreadBlock, sink) - offset_of!(ThreadBlock, sink_mask)
            == librip_format::CURSOR_TO_MASK_BYTES
    );
};
