//! The exported functions: each finds out where it was called, and continues in a function of the other modules.
//!
//! Rust cannot read a return address, so these are a few instructions of assembly. The return address becomes one more
//! argument, after those that the program has passed, and a jump leaves the stack as it was. An unwinder or a
//! debugger sees nothing of it. While there is no ring, the jump goes to the C library.
//!
//! # Where the types of `object` come from
//!
//! A function of the other modules takes the arguments of the C library's function, with the types of `object` for
//! pointers and with the return address as a `Caller`. All these types are transparent, so each is passed like the
//! pointer or the number in it. This table is the only place where they come into being: it must name, for each
//! function of the C library, a function with its arguments. Then the program has passed each object to a function
//! that uses it as such.

use core::arch::naked_asm;
use core::ffi::c_int;

use crate::{
    barrier, c11, condition, exit, filters, modules, mutex, once, real, rwlock, semaphore, spin, thread,
};

/// Defines the functions: `REGISTERS { NAME => BODY, }`, with the registers of the argument after the last one.
macro_rules! calls {
    ($($first:literal / $second:literal { $($name:ident => $body:path,)* })*) => {
        $($(
            /// Replaces the C library's function.
            ///
            /// # Safety
            ///
            /// As for the C library's function. The caller passes that function's arguments.
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C-unwind" fn $name() -> c_int {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "cmp dword ptr [rip + librip_module_1 + 12], 0",
                    "je 2f",
                    concat!("mov ", $first, ", qword ptr [rsp]"),
                    "jmp {body}",
                    "2:",
                    "jmp qword ptr [rip + {real}]",
                    body = sym $body,
                    real = sym real::address::$name,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    "adrp x16, librip_module_1",
                    "add x16, x16, :lo12:librip_module_1",
                    "ldr w16, [x16, #12]",
                    "cbz w16, 2f",
                    concat!("mov ", $second, ", x30"),
                    "b {body}",
                    "2:",
                    "adrp x16, {real}",
                    "ldr x16, [x16, :lo12:{real}]",
                    "br x16",
                    body = sym $body,
                    real = sym real::address::$name,
                );
            }
        )*)*
    };
}

calls! {
    "rsi" / "x1" {
        pthread_mutex_lock => mutex::lock,
        pthread_mutex_trylock => mutex::trylock,
        pthread_mutex_unlock => mutex::unlock,
        pthread_mutex_destroy => mutex::destroy,
        pthread_rwlock_rdlock => rwlock::rdlock,
        pthread_rwlock_tryrdlock => rwlock::tryrdlock,
        pthread_rwlock_wrlock => rwlock::wrlock,
        pthread_rwlock_trywrlock => rwlock::trywrlock,
        pthread_rwlock_unlock => rwlock::unlock,
        pthread_rwlock_destroy => rwlock::destroy,
        pthread_spin_lock => spin::lock,
        pthread_spin_trylock => spin::trylock,
        pthread_spin_unlock => spin::unlock,
        pthread_spin_destroy => spin::destroy,
        pthread_cond_signal => condition::signal,
        pthread_cond_broadcast => condition::broadcast,
        pthread_cond_destroy => condition::destroy,
        cnd_destroy => c11::cnd_destroy,
        cnd_signal => c11::cnd_signal,
        cnd_broadcast => c11::cnd_broadcast,
        sem_wait => semaphore::wait,
        sem_trywait => semaphore::trywait,
        sem_post => semaphore::post,
        pthread_barrier_wait => barrier::wait,
        mtx_lock => c11::lock,
        mtx_trylock => c11::trylock,
        mtx_unlock => c11::unlock,
        mtx_destroy => c11::destroy,
    }
    "rdx" / "x2" {
        pthread_mutex_init => mutex::init,
        pthread_rwlock_init => rwlock::init,
        pthread_spin_init => spin::init,
        mtx_init => c11::init,
        pthread_mutex_timedlock => mutex::timedlock,
        pthread_rwlock_timedrdlock => rwlock::timedrdlock,
        pthread_rwlock_timedwrlock => rwlock::timedwrlock,
        pthread_cond_wait => condition::wait,
        sem_timedwait => semaphore::timedwait,
        mtx_timedlock => c11::timedlock,
        cnd_wait => c11::cnd_wait,
        pthread_join => thread::join,
        thrd_join => thread::thrd_join,
        pthread_once => once::run,
        call_once => once::run_c11,
    }
    "rcx" / "x3" {
        pthread_mutex_clocklock => mutex::clocklock,
        pthread_rwlock_clockrdlock => rwlock::clockrdlock,
        pthread_rwlock_clockwrlock => rwlock::clockwrlock,
        pthread_cond_timedwait => condition::timedwait,
        sem_clockwait => semaphore::clockwait,
        cnd_timedwait => c11::cnd_timedwait,
        pthread_timedjoin_np => thread::timedjoin,
    }
    "r8" / "x4" {
        pthread_cond_clockwait => condition::clockwait,
        pthread_clockjoin_np => thread::clockjoin,
    }
}

/// Defines functions for which something is done before the C library's function runs: `NAME: BEFORE, REAL;`.
///
/// The C library's function looks at its return address, or has any number of arguments. So we jump to it, with the
/// stack and the arguments as they were.
///
/// A forked child executes `_exit`: see `librip::process::fork` on the section.
macro_rules! hooks {
    ($($name:ident: $before:path, $real:path;)*) => {
        $(
            /// Replaces the C library's function.
            ///
            /// # Safety
            ///
            /// As for the C library's function. The caller passes that function's arguments.
            #[unsafe(naked)]
            #[unsafe(link_section = ".text_of_forks")]
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C-unwind" fn $name() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    ".cfi_startproc",
                    "push rax",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rsi",
                    ".cfi_adjust_cfa_offset 8",
                    "push rdx",
                    ".cfi_adjust_cfa_offset 8",
                    "push rcx",
                    ".cfi_adjust_cfa_offset 8",
                    "push r8",
                    ".cfi_adjust_cfa_offset 8",
                    "push r9",
                    ".cfi_adjust_cfa_offset 8",
                    "call {before}",
                    "pop r9",
                    ".cfi_adjust_cfa_offset -8",
                    "pop r8",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rcx",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rdx",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rsi",
                    ".cfi_adjust_cfa_offset -8",
                    "pop rdi",
                    ".cfi_adjust_cfa_offset -8",
                    // The number of floating-point arguments. There are none, but the callee may read it.
                    "pop rax",
                    ".cfi_adjust_cfa_offset -8",
                    "jmp qword ptr [rip + {real}]",
                    ".cfi_endproc",
                    before = sym $before,
                    real = sym $real,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    ".cfi_startproc",
                    "stp x0, x1, [sp, #-80]!",
                    ".cfi_adjust_cfa_offset 80",
                    "stp x2, x3, [sp, #16]",
                    "stp x4, x5, [sp, #32]",
                    "stp x6, x7, [sp, #48]",
                    "str x30, [sp, #64]",
                    ".cfi_rel_offset x30, 64",
                    "bl {before}",
                    "ldr x30, [sp, #64]",
                    ".cfi_restore x30",
                    "ldp x6, x7, [sp, #48]",
                    "ldp x4, x5, [sp, #32]",
                    "ldp x2, x3, [sp, #16]",
                    "ldp x0, x1, [sp], #80",
                    ".cfi_adjust_cfa_offset -80",
                    "adrp x16, {real}",
                    "ldr x16, [x16, :lo12:{real}]",
                    "br x16",
                    ".cfi_endproc",
                    before = sym $before,
                    real = sym $real,
                );
            }
        )*
    };
}

hooks! {
    dlopen: modules::before_loading, real::DLOPEN;
    dlmopen: modules::before_loading, real::DLMOPEN;
    dlsym: modules::before_looking_up, real::DLSYM;
    dlvsym: modules::before_looking_up, real::DLVSYM;
    prctl: filters::before_prctl, real::PRCTL;
    syscall: filters::before_syscall, real::SYSCALL;
    _exit: exit::before_exit, real::EXIT;
    _Exit: exit::before_exit, real::EXIT;
}
