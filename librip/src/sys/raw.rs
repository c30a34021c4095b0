//! A system call without the C library.
//!
//! What a mark or a claim calls must not be a function that another library may have replaced. A replaced function may
//! lock, allocate or mark, and a lock that is recorded comes back here.

#![allow(unsafe_code, reason = "system calls are made by an instruction")]

/// Makes a system call. Returns its result, or the negated error number. `errno` does not change.
///
/// # Safety
///
/// As for the system call: pointers among the arguments are valid for what the call does with them.
#[inline(always)]
pub(crate) unsafe fn call<const N: usize>(number: i64, arguments: [usize; N]) -> isize {
    const { assert!(N <= 6, "a system call has at most six arguments") };
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
    let result: isize;
    // SAFETY: the kernel changes rcx, r11 and the result register. It may write to memory, so no option says otherwise.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") argument(0),
            in("rsi") argument(1),
            in("rdx") argument(2),
            in("r10") argument(3),
            in("r8") argument(4),
            in("r9") argument(5),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: the kernel changes the result register only. It may write to memory, so no option says otherwise.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") argument(0) => result,
            in("x1") argument(1),
            in("x2") argument(2),
            in("x3") argument(3),
            in("x4") argument(4),
            in("x5") argument(5),
            options(nostack),
        );
    }
    result
}

/// Returns whether the result of [`call`] is this error.
pub(crate) fn is_error(result: isize, error: i32) -> bool {
    result == -(error as isize)
}
