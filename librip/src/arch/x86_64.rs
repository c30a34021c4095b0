//! x86-64: the mark, the entry to the cold path, and their symbols as Rust functions. The parent module explains them.

#![allow(unsafe_code, reason = "the entry is assembly, and the block is reached through fs")]

use super::Dlopen;

/// The instructions of a mark, and the note that describes its site.
///
/// Fifteen instructions if the thread has a slot, seventeen with `KIND_PROGRESS`, which also asks whether a time is
/// due.
///
/// # How a word is reserved
///
/// The mark loads the count, adds 1 to it in memory, and compares it with the loaded value plus 1. Only the owner of a
/// slot writes its count, so a difference means that a signal handler of this thread has recorded in between. Then the
/// mark cannot know whether the handler or itself has the number that it loaded, and takes a new one by `xadd`, which
/// is one instruction. So no number is ever used twice:
///
/// * A handler before the load, or after the comparison, has numbers of its own.
/// * A handler between the load and the addition takes the loaded number. The comparison finds the difference. The
///   number that the addition reserved stays unwritten.
/// * A handler between the addition and the comparison takes later numbers. The comparison finds the difference too.
///   The loaded number stays unwritten, although it was this mark's.
///
/// The count only grows, so it does not come back to a former value. The reader counts the words that were reserved and
/// not written. `tests/threads` interrupts a mark at each of its instructions.
///
/// `xadd` alone would be exact too, and shorter. It is four times as slow as a load, an addition and a store on
/// processors that keep words of memory in registers (AMD's Zen 3): see
/// `docs/decisions/001-reserve-a-word-by-comparison.md`.
///
/// # Options
///
/// The assembly has no options, for these reasons. Not `nomem`, `readonly` or `pure`: the mark must stay before code
/// that may fault. Not `nostack`: the cold path calls, so the red zone must be left alone and the stack
/// must be aligned. Not `preserves_flags`: `test`, `add` and `cmp` change them.
///
/// Each site has a `static` `$text` of its own, so that no two sites have identical assembly. LLVM merges identical
/// assembly, and two sites would then have one PC.
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
            "cmp {word}, qword ptr fs:[{block} + 32]\njae 26f\n27:",
            // The time is due. The entry keeps all registers.
            "26:\ncall librip_enter_1\njmp 27b"
        )
    };
    ($text:path, $text_len:expr, $kind:ident, $if_due:literal, $due:literal) => {
        ::core::arch::asm!(
            "20:",
            "mov {block}, qword ptr [rip + librip_tls_1@GOTTPOFF]",
            "mov {cursor}, qword ptr fs:[{block}]",
            "test {cursor}, {cursor}",
            "jz 21f",
            "mov {word}, qword ptr [{cursor} - 8]",
            "lea {index}, [{word} + 1]",
            "add qword ptr [{cursor} - 8], 1",
            "cmp qword ptr [{cursor} - 8], {index}",
            "jne 22f",
            "24:",
            $if_due,
            "mov {index}, {word}",
            "and {index}, qword ptr [rip + librip_module_1]",
            "shl {word}, 49",
            // The block's register is free now, and holds the PC.
            "lea {block}, [rip + 20b]",
            "or {word}, {block}",
            "mov qword ptr [{cursor} + 8*{index}], {word}",
            "23:",
            // No cursor. This part is placed after the function, so that the usual path runs straight through.
            ".subsection 1",
            "21:",
            "cmp dword ptr [rip + librip_module_1 + 12], 0",
            "je 23b",
            "cmp qword ptr fs:[{block} + 8], 0",
            "jne 23b",
            "call librip_enter_1",
            // From the start: a handler may have forked meanwhile, and the child's cursor is null again.
            "jmp 20b",
            // A handler has recorded in between.
            "22:",
            "mov {word:e}, 1",
            "xadd qword ptr [{cursor} - 8], {word}",
            "jmp 24b",
            $due,
            ".previous",
            $crate::__rip_note!(),
            block = out(reg) _,
            cursor = out(reg) _,
            word = out(reg) _,
            index = out(reg) _,
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
        "lea {pc}, [rip + 20b]"
    };
}

/// Defines the symbols of this module and the entry. `define_entry!(ENTER, LOADED)`: the Rust functions that a mark
/// without a cursor calls with the block, and that the loader calls.
///
/// `librip_enter_1` gets this module's block a cursor. `librip_enter_block_1` does so for the block in rax: another
/// module's, if that module's marks are C. Both must keep every register that a function may use, because the mark
/// tells the compiler that it changes four. XSAVE's legacy area, header, AVX and AVX-512 state end at byte 2688 in the
/// standard format (Intel SDM volume 1, section 13.4 and table 13-1), whatever else is enabled. The request mask
/// 0x800e7 names these components and APX's registers, which are at byte 960. Processors without XSAVE have only the
/// registers that FXSAVE keeps.
macro_rules! define_entry {
    ($enter:path, $loaded:path) => {
        ::core::arch::global_asm!(
            $crate::arch::symbols!(),
            ".pushsection .bss.librip,\"aw\",@nobits",
            ".globl librip_has_xsave_1",
            ".hidden librip_has_xsave_1",
            "librip_has_xsave_1: .zero 1",
            ".popsection",
            ".pushsection .text.librip_enter_1,\"ax\",@progbits",
            $crate::arch::function!("librip_enter_1"),
            "push rax",
            ".cfi_def_cfa_offset 16",
            "mov rax, qword ptr fs:[0]",
            "add rax, qword ptr [rip + librip_tls_1@GOTTPOFF]",
            "call librip_enter_block_1",
            "pop rax",
            ".cfi_def_cfa_offset 8",
            "ret",
            $crate::arch::end_of_function!("librip_enter_1"),
            $crate::arch::function!("librip_enter_block_1"),
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "push rax",
            "push rcx",
            "push rdx",
            "push rsi",
            "push rdi",
            "push r8",
            "push r9",
            "push r10",
            "push r11",
            "mov rdi, rax",
            "sub rsp, 2688",
            "and rsp, -64",
            "cmp byte ptr [rip + librip_has_xsave_1], 0",
            "je 2f",
            // XRSTOR faults on anything but zeros in the unused part of the header.
            "xor eax, eax",
            "mov qword ptr [rsp + 512], rax",
            "mov qword ptr [rsp + 520], rax",
            "mov qword ptr [rsp + 528], rax",
            "mov qword ptr [rsp + 536], rax",
            "mov qword ptr [rsp + 544], rax",
            "mov qword ptr [rsp + 552], rax",
            "mov qword ptr [rsp + 560], rax",
            "mov qword ptr [rsp + 568], rax",
            "mov eax, 0x800e7",
            "xor edx, edx",
            "xsave64 [rsp]",
            "call {enter}",
            "mov eax, 0x800e7",
            "xor edx, edx",
            "xrstor64 [rsp]",
            "jmp 3f",
            "2:",
            "fxsave64 [rsp]",
            "call {enter}",
            "fxrstor64 [rsp]",
            "3:",
            "lea rsp, [rbp - 72]",
            "pop r11",
            "pop r10",
            "pop r9",
            "pop r8",
            "pop rdi",
            "pop rsi",
            "pop rdx",
            "pop rcx",
            "pop rax",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            "ret",
            $crate::arch::end_of_function!("librip_enter_block_1"),
            $crate::arch::function!("librip_enter_rust_1"),
            "jmp {enter}",
            $crate::arch::end_of_function!("librip_enter_rust_1"),
            ".popsection",
            enter = sym $enter,
            loaded = sym $loaded,
        );
    };
}
pub(crate) use define_entry;

/// The ELF machine number that goes into a ring.
pub(crate) const MACHINE: u32 = 62;

/// Returns the calling thread's cursor, or null if it has none. A signal handler may set it at any time.
#[inline(always)]
pub(crate) fn cursor() -> *mut u64 {
    let cursor;
    // SAFETY: reads the first field of the block, as a mark does. Not `pure`: a handler may change it between two
    // reads.
    unsafe {
        core::arch::asm!(
            "mov {cursor}, qword ptr [rip + librip_tls_1@GOTTPOFF]",
            "mov {cursor}, qword ptr fs:[{cursor}]",
            cursor = out(reg) cursor,
            options(nostack, readonly, preserves_flags),
        );
    }
    cursor
}

/// Reserves `words` words of the slot whose words are at `cursor`, and returns the first one's sequence.
///
/// [`__rip_mark!`](crate::__rip_mark) explains why no signal handler gets the same words, and that some may stay
/// unwritten if one records in between. There is no `lock` prefix, because no other thread reserves in this slot.
///
/// # Safety
///
/// `cursor` is a cursor of the calling thread.
#[inline(always)]
pub(crate) unsafe fn reserve(cursor: *mut u64, words: u64) -> u64 {
    let end: u64;
    // SAFETY: the count is 8 bytes before the words of every slot. Not `preserves_flags`: `add` changes them.
    unsafe {
        core::arch::asm!(
            "mov {end}, qword ptr [{cursor} - 8]",
            "add {end}, {words}",
            "add qword ptr [{cursor} - 8], {words}",
            "cmp qword ptr [{cursor} - 8], {end}",
            "jne 22f",
            "24:",
            ".subsection 1",
            // A handler has recorded in between.
            "22:",
            "mov {end}, {words}",
            "xadd qword ptr [{cursor} - 8], {end}",
            "add {end}, {words}",
            "jmp 24b",
            ".previous",
            cursor = in(reg) cursor,
            words = in(reg) words,
            end = out(reg) end,
            options(nostack),
        );
    }
    // Wrapping, because somebody may have scribbled on the count.
    end.wrapping_sub(words)
}

/// Returns the calling thread's pointer to its own data. The C library puts that data above the stacks that it makes.
pub(crate) fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: reads the thread pointer, which the ABI keeps at fs:0. It writes nothing.
    unsafe {
        core::arch::asm!(
            "mov {pointer}, qword ptr fs:[0]",
            pointer = out(reg) pointer,
            options(nostack, readonly, pure, preserves_flags),
        );
    }
    pointer
}

/// The address of a symbol in the calling thread's static TLS.
macro_rules! of_thread {
    ($symbol:literal) => {{
        let address;
        // SAFETY: reads the thread pointer, which the ABI keeps at fs:0, and adds the constant offset that the linker
        // or the loader put in place. It writes nothing. `pure`: the result is the same in all of a thread's life.
        unsafe {
            core::arch::asm!(
                "mov {address}, qword ptr fs:[0]",
                concat!("add {address}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                address = out(reg) address,
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
            "mov {address}, qword ptr [rip + dlopen@GOTPCREL]",
            address = out(reg) address,
            options(nostack, readonly, pure, preserves_flags),
        );
    }
    // SAFETY: null is `None`, and any other value is the C library's `dlopen`, which has this type.
    unsafe { core::mem::transmute::<*const (), Option<Dlopen>>(address) }
}

/// Tells the entry whether it can keep vector registers with XSAVE. Call it before marks may enter.
pub(crate) fn prepare_entry() {
    let has_xsave = u8::from(std::arch::is_x86_feature_detected!("xsave"));
    // SAFETY: it stores to a byte that `define_entry!` makes. Only the entry reads the byte, later.
    unsafe {
        core::arch::asm!(
            "mov byte ptr [rip + librip_has_xsave_1], {has_xsave}",
            has_xsave = in(reg_byte) has_xsave,
            options(nostack, preserves_flags),
        );
    }
}
