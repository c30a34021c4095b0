//! Notices a program that becomes another one (`exec`): its ring is removed as at a clean end, because the next program
//! may not record and nobody else would remove it. If `exec` fails, recording goes on.
//!
//! A child of `vfork` runs on its parent's memory. The recorder leaves the parent's ring alone there.

#![allow(unsafe_code, reason = "functions with any number of arguments")]

use core::arch::naked_asm;
use core::ffi::c_int;

use crate::object::{Text, Texts};
use crate::real;

/// Calls the C library's function. It returns only if it has failed.
fn exec(call: impl FnOnce() -> c_int) -> c_int {
    let removed = librip::interpose::exec_begins();
    let result = call();
    // Keeps `errno`.
    librip::interpose::exec_failed(removed);
    result
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            /// Replaces the C library's function.
            ///
            /// # Safety
            ///
            /// As for the C library's function.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
                exec(move || real::$name($($argument),*))
            }
        )*
    };
}

functions! {
    execve(path: Text, arguments: Texts, environment: Texts);
    execv(path: Text, arguments: Texts);
    execvp(file: Text, arguments: Texts);
    execvpe(file: Text, arguments: Texts, environment: Texts);
    fexecve(descriptor: c_int, arguments: Texts, environment: Texts);
    execveat(directory: c_int, path: Text, arguments: Texts, environment: Texts, flags: c_int);
}

/// Arguments in registers after the first one. All others are on the stack.
const IN_REGISTERS: usize = if cfg!(target_arch = "x86_64") { 5 } else { 7 };
/// So many arguments are collected on the stack. More take memory from the kernel, because the program may not be able
/// to allocate, in a child that was forked from several threads.
const ON_STACK_MAX: usize = 256;

/// The arguments of a call that passes them one by one, up to a null pointer.
struct List {
    in_registers: *const usize,
    on_stack: *const usize,
}

impl List {
    fn at(&self, index: usize) -> usize {
        let place = match index.checked_sub(IN_REGISTERS) {
            None => self.in_registers.wrapping_add(index),
            Some(index) => self.on_stack.wrapping_add(index),
        };
        // SAFETY: the program has passed this argument: callers stop after the null pointer, or one after it.
        unsafe { *place }
    }

    /// Calls `then` with the arguments as an array, and with the argument that follows them.
    fn collected(&self, then: impl FnOnce(Texts, &dyn Fn() -> usize) -> c_int) -> c_int {
        let count = (0..).take_while(|&index| self.at(index) != 0).count();
        let next = || self.at(count + 1);
        if count < ON_STACK_MAX {
            let mut arguments = [0; ON_STACK_MAX];
            self.copy_to(&mut arguments[..count]);
            return then(Texts::of(&arguments), &next);
        }
        let len_bytes = (count + 1) * size_of::<usize>();
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: without MAP_FIXED, the kernel chooses unused addresses.
        let memory = unsafe { libc::mmap(core::ptr::null_mut(), len_bytes, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return -1;
        }
        // SAFETY: the mapping has this length, is zero, and is used here alone.
        let arguments = unsafe { core::slice::from_raw_parts_mut(memory.cast::<usize>(), count + 1) };
        self.copy_to(&mut arguments[..count]);
        let result = then(Texts::of(arguments), &next);
        // SAFETY: the mapping of above. Unmapping it cannot fail, so `errno` stays.
        unsafe { libc::munmap(memory, len_bytes) };
        result
    }

    fn copy_to(&self, arguments: &mut [usize]) {
        for (index, argument) in arguments.iter_mut().enumerate() {
            *argument = self.at(index);
        }
    }
}

extern "C-unwind" fn execl_with(path: Text, in_registers: *const usize, on_stack: *const usize) -> c_int {
    let list = List { in_registers, on_stack };
    list.collected(|arguments, _| exec(move || real::execv(path, arguments)))
}

extern "C-unwind" fn execlp_with(file: Text, in_registers: *const usize, on_stack: *const usize) -> c_int {
    let list = List { in_registers, on_stack };
    list.collected(|arguments, _| exec(move || real::execvp(file, arguments)))
}

extern "C-unwind" fn execle_with(path: Text, in_registers: *const usize, on_stack: *const usize) -> c_int {
    let list = List { in_registers, on_stack };
    list.collected(|arguments, next| {
        let environment = Texts::at(next());
        exec(move || real::execve(path, arguments, environment))
    })
}

macro_rules! lists {
    ($($name:ident => $body:path;)*) => {
        $(
            /// Replaces the C library's function, which takes any number of arguments.
            ///
            /// # Safety
            ///
            /// As for the C library's function.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C-unwind" fn $name() {
                // The arguments in registers, in their order, and where the others are.
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    ".cfi_startproc",
                    "push r9",
                    ".cfi_adjust_cfa_offset 8",
                    "push r8",
                    ".cfi_adjust_cfa_offset 8",
                    "push rcx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rsi",
                    ".cfi_adjust_cfa_offset 8",
                    "mov rsi, rsp",
                    "lea rdx, [rsp + 48]",
                    "call {body}",
                    "add rsp, 40",
                    ".cfi_adjust_cfa_offset -40",
                    "ret",
                    ".cfi_endproc",
                    body = sym $body,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    ".cfi_startproc",
                    "stp x29, x30, [sp, #-80]!",
                    ".cfi_adjust_cfa_offset 80",
                    ".cfi_rel_offset x29, 0",
                    ".cfi_rel_offset x30, 8",
                    "stp x1, x2, [sp, #16]",
                    "stp x3, x4, [sp, #32]",
                    "stp x5, x6, [sp, #48]",
                    "str x7, [sp, #64]",
                    "add x1, sp, #16",
                    "add x2, sp, #80",
                    "bl {body}",
                    "ldp x29, x30, [sp], #80",
                    ".cfi_adjust_cfa_offset -80",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "ret",
                    ".cfi_endproc",
                    body = sym $body,
                );
            }
        )*
    };
}

lists! {
    execl => execl_with;
    execlp => execlp_with;
    execle => execle_with;
}
