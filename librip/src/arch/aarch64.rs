//! aarch64: the mark, the entry to the cold path, and their symbols as Rust functions. The parent module explains them.

#![allow(unsafe_code, reason = "the entry is assembly, and the block is reached through tpidr_el0")]

use super::Dlopen;

/// The instructions of a mark, and the note that describes its site.
///
/// The load-exclusive pair reserves the word. An exception clears the monitor, so a signal handler that marks makes the
/// store fail, the loop repeats, and no mark is lost. It needs no ordering, because each word has its sequence. It does
/// not need the LSE extension. `KIND_PROGRESS` also asks whether a time is due. The assembly has no options, for the
/// reasons given on x86-64. The cold path saves the link register itself, so that functions that only mark need no
/// frame.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_mark {
    ($text:path, $text_len:expr, KIND_SNAP) => {
        $crate::__rip_mark!($text, $text_len, KIND_SNAP, "", "")
    };
    ($text:path, $text_len:expr, KIND_PROGRESS) => {
        $crate::__rip_mark!(
            $text,
            $text_len,
            KIND_PROGRESS,
            "ldr {scratch}, [{block}, #32]\ncmp {word}, {scratch}\nb.hs 22f\n25:",
            // The time is due. The entry keeps all registers but the link register.
            "22:\nstr x30, [sp, #-16]!\nbl librip_enter_1\nldr x30, [sp], #16\nb 25b"
        )
    };
    ($text:path, $text_len:expr, $kind:ident, $if_due:literal, $due:literal) => {
        ::core::arch::asm!(
            "20:",
            "mrs {scratch}, tpidr_el0",
            "adrp {cursor}, :gottprel:librip_tls_1",
            "ldr {cursor}, [{cursor}, :gottprel_lo12:librip_tls_1]",
            "add {block}, {scratch}, {cursor}",
            "ldr {cursor}, [{block}]",
            "cbz {cursor}, 21f",
            "sub {pc}, {cursor}, #8",
            "24:",
            "ldxr {word}, [{pc}]",
            "add {scratch}, {word}, #1",
            "stxr {index:w}, {scratch}, [{pc}]",
            "cbnz {index:w}, 24b",
            $if_due,
            "adrp {index}, librip_module_1",
            "ldr {index}, [{index}, :lo12:librip_module_1]",
            "and {index}, {word}, {index}",
            "adr {pc}, 20b",
            "orr {word}, {pc}, {word}, lsl #49",
            "str {word}, [{cursor}, {index}, lsl #3]",
            "23:",
            // No cursor. This part is placed after the function, so that the usual path runs straight through.
            ".subsection 1",
            "21:",
            "adrp {pc}, librip_module_1",
            "add {pc}, {pc}, :lo12:librip_module_1",
            "ldr {pc:w}, [{pc}, #12]",
            "cbz {pc:w}, 23b",
            "ldr {cursor}, [{block}, #8]",
            "cbnz {cursor}, 23b",
            "str x30, [sp, #-16]!",
            "bl librip_enter_1",
            "ldr x30, [sp], #16",
            // From the start: a handler may have forked meanwhile, and the child's cursor is null again.
            "b 20b",
            $due,
            ".previous",
            $crate::__rip_note!(),
            block = out(reg) _,
            cursor = out(reg) _,
            word = out(reg) _,
            index = out(reg) _,
            pc = out(reg) _,
            scratch = out(reg) _,
            text = sym $text,
            text_len = const $text_len,
            line = const ::core::line!(),
            column = const ::core::column!(),
            kind = const $crate::__private::format::$kind,
            operands = const 0,
            flags = const 0,
            types = const 0,
        )
    };
}

/// The instruction that computes the PC of a site.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_pc {
    () => {
        "adr {pc}, 20b"
    };
}

/// Defines the symbols of this module and the entry. `define_entry!(ENTER, LOADED)`: the Rust functions that a mark
/// without a cursor calls with the block, and that the loader calls.
///
/// `librip_enter_1` gets this module's block a cursor. `librip_enter_block_1` does so for the block in x0: another
/// module's, if that module's marks are C. Both must keep every register that a function may use. The C ABI keeps x19
/// to x28 and the low halves of v8 to v15; the entry saves the rest. Code compiled for SVE that holds live values in
/// the upper parts of z registers across a mark is the exception: see `docs/limits.md`.
macro_rules! define_entry {
    ($enter:path, $loaded:path) => {
        ::core::arch::global_asm!(
            $crate::arch::symbols!(),
            ".pushsection .text.librip_enter_1,\"ax\",@progbits",
            $crate::arch::function!("librip_enter_1"),
            "stp x0, x30, [sp, #-16]!",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset x30, -8",
            "mrs x30, tpidr_el0",
            "adrp x0, :gottprel:librip_tls_1",
            "ldr x0, [x0, :gottprel_lo12:librip_tls_1]",
            "add x0, x0, x30",
            "bl librip_enter_block_1",
            "ldp x0, x30, [sp], #16",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore x30",
            "ret",
            $crate::arch::end_of_function!("librip_enter_1"),
            $crate::arch::function!("librip_enter_block_1"),
            "stp x29, x30, [sp, #-16]!",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset x29, -16",
            ".cfi_offset x30, -8",
            "mov x29, sp",
            ".cfi_def_cfa x29, 16",
            "sub sp, sp, #672",
            "stp x0, x1, [sp, #0]",
            "stp x2, x3, [sp, #16]",
            "stp x4, x5, [sp, #32]",
            "stp x6, x7, [sp, #48]",
            "stp x8, x9, [sp, #64]",
            "stp x10, x11, [sp, #80]",
            "stp x12, x13, [sp, #96]",
            "stp x14, x15, [sp, #112]",
            "stp x16, x17, [sp, #128]",
            "str x18, [sp, #144]",
            "stp q0, q1, [sp, #160]",
            "stp q2, q3, [sp, #192]",
            "stp q4, q5, [sp, #224]",
            "stp q6, q7, [sp, #256]",
            "stp q8, q9, [sp, #288]",
            "stp q10, q11, [sp, #320]",
            "stp q12, q13, [sp, #352]",
            "stp q14, q15, [sp, #384]",
            "stp q16, q17, [sp, #416]",
            "stp q18, q19, [sp, #448]",
            "stp q20, q21, [sp, #480]",
            "stp q22, q23, [sp, #512]",
            "stp q24, q25, [sp, #544]",
            "stp q26, q27, [sp, #576]",
            "stp q28, q29, [sp, #608]",
            "stp q30, q31, [sp, #640]",
            "bl {enter}",
            "ldp x0, x1, [sp, #0]",
            "ldp x2, x3, [sp, #16]",
            "ldp x4, x5, [sp, #32]",
            "ldp x6, x7, [sp, #48]",
            "ldp x8, x9, [sp, #64]",
            "ldp x10, x11, [sp, #80]",
            "ldp x12, x13, [sp, #96]",
            "ldp x14, x15, [sp, #112]",
            "ldp x16, x17, [sp, #128]",
            "ldr x18, [sp, #144]",
            "ldp q0, q1, [sp, #160]",
            "ldp q2, q3, [sp, #192]",
            "ldp q4, q5, [sp, #224]",
            "ldp q6, q7, [sp, #256]",
            "ldp q8, q9, [sp, #288]",
            "ldp q10, q11, [sp, #320]",
            "ldp q12, q13, [sp, #352]",
            "ldp q14, q15, [sp, #384]",
            "ldp q16, q17, [sp, #416]",
            "ldp q18, q19, [sp, #448]",
            "ldp q20, q21, [sp, #480]",
            "ldp q22, q23, [sp, #512]",
            "ldp q24, q25, [sp, #544]",
            "ldp q26, q27, [sp, #576]",
            "ldp q28, q29, [sp, #608]",
            "ldp q30, q31, [sp, #640]",
            "mov sp, x29",
            "ldp x29, x30, [sp], #16",
            ".cfi_def_cfa sp, 0",
            "ret",
            $crate::arch::end_of_function!("librip_enter_block_1"),
            $crate::arch::function!("librip_enter_rust_1"),
            "b {enter}",
            $crate::arch::end_of_function!("librip_enter_rust_1"),
            ".popsection",
            enter = sym $enter,
            loaded = sym $loaded,
        );
    };
}
pub(crate) use define_entry;

/// The ELF machine number that goes into a ring.
pub(crate) const MACHINE: u32 = 183;

/// Returns the calling thread's cursor, or null if it has none. A signal handler may set it at any time.
#[inline(always)]
pub(crate) fn cursor() -> *mut u64 {
    let cursor;
    // SAFETY: reads the first field of the block, as a mark does. Not `pure`: a handler may change it between two
    // reads.
    unsafe {
        core::arch::asm!(
            "mrs {scratch}, tpidr_el0",
            "adrp {cursor}, :gottprel:librip_tls_1",
            "ldr {cursor}, [{cursor}, :gottprel_lo12:librip_tls_1]",
            "ldr {cursor}, [{scratch}, {cursor}]",
            cursor = out(reg) cursor,
            scratch = out(reg) _,
            options(nostack, readonly, preserves_flags),
        );
    }
    cursor
}

/// Returns the calling thread's pointer to its own data. The C library puts that data above the stacks that it makes.
pub(crate) fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: reads the register that the ABI keeps the thread pointer in.
    unsafe {
        core::arch::asm!(
            "mrs {pointer}, tpidr_el0",
            pointer = out(reg) pointer,
            options(nomem, nostack, pure, preserves_flags),
        );
    }
    pointer
}

/// Reserves `words` words of the slot whose words are at `cursor`, and returns the first one's sequence.
///
/// A signal handler that records in between makes the store fail, and the loop repeats: see the mark.
///
/// # Safety
///
/// `cursor` is a cursor of the calling thread.
#[inline(always)]
pub(crate) unsafe fn reserve(cursor: *mut u64, words: u64) -> u64 {
    let first;
    // SAFETY: the count is 8 bytes before the words of every slot.
    unsafe {
        core::arch::asm!(
            "2:",
            "ldxr {first}, [{count}]",
            "add {next}, {first}, {words}",
            "stxr {failed:w}, {next}, [{count}]",
            "cbnz {failed:w}, 2b",
            count = in(reg) cursor.wrapping_byte_sub(8),
            words = in(reg) words,
            first = out(reg) first,
            next = out(reg) _,
            failed = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
    first
}

/// The address of a symbol in the calling thread's static TLS.
macro_rules! of_thread {
    ($symbol:literal) => {{
        let address;
        // SAFETY: reads the thread pointer and adds the constant offset that the linker or the loader put in place. It
        // writes nothing. `pure`: the result is the same in all of a thread's life.
        unsafe {
            core::arch::asm!(
                "mrs {scratch}, tpidr_el0",
                concat!("adrp {address}, :gottprel:", $symbol),
                concat!("ldr {address}, [{address}, :gottprel_lo12:", $symbol, "]"),
                "add {address}, {address}, {scratch}",
                address = out(reg) address,
                scratch = out(reg) _,
                options(nostack, readonly, pure),
            );
        }
        address
    }};
}
pub(crate) use of_thread;

/// Returns `dlopen`, if the program is linked with it. With a plain reference, every static link would print a warning.
pub(crate) fn dlopen() -> Option<Dlopen> {
    let address: *const ();
    // SAFETY: loads an entry of the global offset table, which the linker or the loader filled: with the function's
    // address, or with zero because the symbol is weak.
    unsafe {
        core::arch::asm!(
            ".weak dlopen",
            "adrp {address}, :got:dlopen",
            "ldr {address}, [{address}, :got_lo12:dlopen]",
            address = out(reg) address,
            options(nostack, readonly, pure, preserves_flags),
        );
    }
    // SAFETY: null is `None`, and any other value is the C library's `dlopen`, which has this type.
    unsafe { core::mem::transmute::<*const (), Option<Dlopen>>(address) }
}

/// Does nothing: the entry needs no preparation on this processor.
pub(crate) fn prepare_entry() {}
