//! The entry for marks in C: what `librip.h` calls when a thread has no cursor.
//!
//! It calls librip's entry, and returns the cursor. A mark in C passes the block of its own module.

/// Marks in C call it with their module's block in rax. It leaves the cursor there, zero if the thread records nowhere,
/// and keeps every other register.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn librip_enter_c_1() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        // The header's call is made 128 bytes below the stack pointer that the caller's unwind information knows.
        ".cfi_def_cfa rsp, 136",
        ".cfi_offset rip, -136",
        "2:",
        "cmp dword ptr [rip + librip_module_1 + 12], 0",
        "je 3f",
        "cmp qword ptr [rax + 8], 0",
        "jne 3f",
        "call librip_enter_block_1",
        // From the start: a handler may have forked meanwhile, and then the child's cursor is null.
        "cmp qword ptr [rax], 0",
        "je 2b",
        "mov rax, qword ptr [rax]",
        "ret",
        "3:",
        "xor eax, eax",
        "ret",
        ".cfi_endproc",
    )
}

/// Marks in C call it with their module's block in x0. It leaves the cursor there, zero if the thread records nowhere,
/// and keeps every other register but x16 and the link register.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn librip_enter_c_1() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        // The header's call is made 16 bytes below the stack pointer that the caller's unwind information knows.
        ".cfi_def_cfa_offset 16",
        "str x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 32",
        ".cfi_offset x30, -32",
        "2:",
        "adrp x16, librip_module_1",
        "add x16, x16, :lo12:librip_module_1",
        "ldr w16, [x16, #12]",
        "cbz w16, 3f",
        "ldr x16, [x0, #8]",
        "cbnz x16, 3f",
        "bl librip_enter_block_1",
        "ldr x16, [x0]",
        // From the start: a handler may have forked meanwhile, and then the child's cursor is null.
        "cbz x16, 2b",
        "mov x0, x16",
        "b 4f",
        "3:",
        "mov x0, xzr",
        "4:",
        "ldr x30, [sp], #16",
        ".cfi_def_cfa_offset 16",
        ".cfi_restore x30",
        "ret",
        ".cfi_endproc",
    )
}
