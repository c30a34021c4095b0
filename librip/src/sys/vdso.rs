//! The kernel's clock function, which it maps into each process (the vDSO): the clocks without a system call.
//!
//! The C library's `clock_gettime` calls the same function. Other libraries replace `clock_gettime` to fake the time,
//! and some lock in it.

#![allow(unsafe_code, reason = "program headers and a function of the kernel")]

use core::ffi::{CStr, c_int, c_void};
use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use super::raw;
use super::symbols::Symbols;

#[cfg(target_arch = "x86_64")]
const NAME: &CStr = c"__vdso_clock_gettime";
#[cfg(target_arch = "aarch64")]
const NAME: &CStr = c"__kernel_clock_gettime";

/// The kernel's function; null if it was not looked for, or if there is none.
static CLOCK_GETTIME: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks for the kernel's function. Without it, and before, each reading of a clock is a system call.
pub(super) fn find() {
    if let Some(function) = symbols().and_then(|symbols| symbols.function(NAME)) {
        // ORDERING: relaxed: it leads to code, which is there from the start.
        CLOCK_GETTIME.store(ptr::with_exposed_provenance_mut(function), Relaxed);
    }
}

/// Reads a clock; zeros if the kernel does not have it.
pub(super) fn clock_gettime(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // ORDERING: relaxed, as in `find`.
    let function = CLOCK_GETTIME.load(Relaxed);
    if function.is_null() {
        // SAFETY: `time` is writable.
        unsafe { raw::call(libc::SYS_clock_gettime, [clock as usize, (&raw mut time).expose_provenance()]) };
    } else {
        type Function = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;
        // SAFETY: `find` stored it: the kernel's function, which has the type of the C library's.
        let function = unsafe { core::mem::transmute::<*mut c_void, Function>(function) };
        // SAFETY: `time` is writable.
        unsafe { function(clock, &raw mut time) };
    }
    time
}

/// The tables of the module that the kernel maps.
fn symbols() -> Option<Symbols> {
    // SAFETY: it reads a value that the kernel passes to each program.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if base == 0 {
        return None;
    }
    // SAFETY: the kernel maps an ELF file there for as long as the process lives.
    let header = unsafe { &*ptr::with_exposed_provenance::<libc::Elf64_Ehdr>(base) };
    let segments = ptr::with_exposed_provenance::<libc::Elf64_Phdr>(base + header.e_phoff as usize);
    // SAFETY: the file's own program headers.
    let segments = unsafe { core::slice::from_raw_parts(segments, usize::from(header.e_phnum)) };
    let first = |kind| segments.iter().find(|segment| segment.p_type == kind);
    let bias = base.wrapping_sub(first(libc::PT_LOAD)?.p_vaddr as usize);
    let dynamic = bias.wrapping_add(first(libc::PT_DYNAMIC)?.p_vaddr as usize);
    // SAFETY: the kernel's module stays mapped, and its headers say that its dynamic section is there.
    unsafe { Symbols::new(bias, ptr::with_exposed_provenance(dynamic)) }
}

const _: () = assert!(offset_of!(libc::Elf64_Ehdr, e_phoff) == 32, "a 64-bit file");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_function_is_found_and_tells_the_time() {
        find();
        assert!(!CLOCK_GETTIME.load(Relaxed).is_null());
        let before = clock_gettime(libc::CLOCK_BOOTTIME);
        let mut asked = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `asked` is writable.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut asked) };
        let after = clock_gettime(libc::CLOCK_BOOTTIME);
        let ns = |time: libc::timespec| time.tv_sec * 1_000_000_000 + time.tv_nsec;
        assert!(ns(before) > 0 && ns(before) <= ns(asked) && ns(asked) <= ns(after));
    }

    #[test]
    fn a_clock_that_does_not_exist_reads_zero() {
        find();
        let time = clock_gettime(1000);
        assert_eq!((time.tv_sec, time.tv_nsec), (0, 0));
    }
}
