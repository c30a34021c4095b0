//! Reserves memory of a shared mapping: a store to it does not raise SIGBUS afterwards.
//!
//! A store to a hole of a full tmpfs raises SIGBUS. When the kernel itself accesses user memory, the same condition is
//! an error code. Both ways here take no file descriptor. So they work in a daemon that has closed all of its
//! descriptors, and cannot use one that has become another file's.

#![allow(unsafe_code, reason = "system calls")]

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::raw;

/// Why there is no memory to store to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreserved {
    /// The kernel could not provide it: the tmpfs is full, a limit was reached, or the file was truncated. Or a table
    /// of the ring is full.
    NoMemory,
    /// The kernel refuses the system calls, above all because of a filter (seccomp).
    Refused,
}

/// Makes sure that stores to `len_bytes` from `start` do not fault because there is no memory.
///
/// Pages that exist do not change, even if other threads write to them meanwhile.
///
/// # Errors
///
/// [`Unreserved`]; part of the range may have been reserved.
pub(crate) fn reserve(start: *mut u8, len_bytes: usize, page_len_bytes: usize) -> Result<(), Unreserved> {
    let begin = start.addr() & !(page_len_bytes - 1);
    let pages = Pages { start: start.with_addr(begin), end: start.addr() + len_bytes, page_len_bytes };
    if kernel_populates(page_len_bytes)
        && let Some(result) = pages.populate()
    {
        return result;
    }
    pages.touch()
}

struct Pages {
    start: *mut u8,
    end: usize,
    page_len_bytes: usize,
}

impl Pages {
    /// Lets the kernel populate the pages, in one call. `None` if it does not do that here.
    fn populate(&self) -> Option<Result<(), Unreserved>> {
        let len = (self.end - self.start.addr()).next_multiple_of(self.page_len_bytes);
        // SAFETY: it changes no byte. The kernel checks the addresses.
        let result = unsafe { populate(self.start.expose_provenance(), len) };
        match -result as i32 {
            0 => Some(Ok(())),
            error if is_no_memory(error) => Some(Err(Unreserved::NoMemory)),
            // A filter of system calls, or a kernel that does not know the advice.
            _ => None,
        }
    }

    /// Lets the kernel add zero to one word of each page.
    ///
    /// `FUTEX_WAKE_OP` does an atomic read-modify-write, and then wakes waiters of the address, of which there are
    /// none. Every kernel since 2.6.14 can do it.
    ///
    /// FOLKLORE: without `FUTEX_PRIVATE_FLAG`, although nobody else uses the address. Linux 6.16 and later keep private
    /// futexes in a small table of the process. If 20,000 threads wait in one of its buckets, such a call takes 240
    /// microseconds, and starting a thread makes one. The table of shared futexes is large.
    fn touch(&self) -> Result<(), Unreserved> {
        const ADD_ZERO: usize = (libc::FUTEX_OP_ADD as usize) << 28;
        for page in (self.start.addr()..self.end).step_by(self.page_len_bytes) {
            let word = self.start.with_addr(page).expose_provenance();
            let arguments = [word, libc::FUTEX_WAKE_OP as usize, 0, 0, word, ADD_ZERO];
            // SAFETY: the kernel checks the address; adding zero atomically changes nothing.
            let result = unsafe { raw::call(libc::SYS_futex, arguments) };
            match -result as i32 {
                ..=0 => {}
                error if is_no_memory(error) => return Err(Unreserved::NoMemory),
                _ => return Err(Unreserved::Refused),
            }
        }
        Ok(())
    }
}

/// EFAULT: a store would raise SIGBUS. ENOMEM: no memory, or no mapping. EHWPOISON: the memory is broken.
fn is_no_memory(error: i32) -> bool {
    matches!(error, libc::EFAULT | libc::ENOMEM | libc::EHWPOISON)
}

/// `madvise(MADV_POPULATE_WRITE)`: Linux 5.14.
///
/// # Safety
///
/// None of the pages is one that the program relies on not being touched. No byte changes.
unsafe fn populate(page: usize, len_bytes: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { raw::call(libc::SYS_madvise, [page, len_bytes, libc::MADV_POPULATE_WRITE as usize]) }
}

const UNKNOWN: u32 = 0;
const POPULATES: u32 = 1;
const IGNORES: u32 = 2;
/// What [`kernel_populates`] has found out.
static KERNEL: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether the kernel obeys `MADV_POPULATE_WRITE`.
///
/// FOLKLORE: older kernels refuse advice that they do not know, but emulators (qemu-user) report success and do
/// nothing. Page 0 is not mapped, so only a kernel that obeys reports that there is no such memory.
fn kernel_populates(page_len_bytes: usize) -> bool {
    // ORDERING: relaxed, here and below: a single word. Asking twice does no harm.
    let mut kernel = KERNEL.load(Relaxed);
    if kernel == UNKNOWN {
        // SAFETY: a program that has mapped page 0 keeps its bytes.
        let result = unsafe { populate(0, page_len_bytes) };
        kernel = if raw::is_error(result, libc::ENOMEM) { POPULATES } else { IGNORES };
        KERNEL.store(kernel, Relaxed);
    }
    kernel == POPULATES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mapping of a file of `file_len` bytes, `map_len` long.
    fn mapping(file_len: u64, map_len: usize) -> memmap2::MmapRaw {
        let file = unlinked_file();
        file.set_len(file_len).unwrap();
        memmap2::MmapOptions::new().len(map_len).map_raw(&file).unwrap()
    }

    fn unlinked_file() -> std::fs::File {
        let name = format!("/dev/shm/librip-test-{}-{}", std::process::id(), crate::sys::tid());
        let path = std::path::PathBuf::from(name);
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    fn touch(start: *mut u8, len_bytes: usize, page_len_bytes: usize) -> Result<(), Unreserved> {
        Pages { start, end: start.addr() + len_bytes, page_len_bytes }.touch()
    }

    #[test]
    fn memory_after_the_end_of_the_file_is_refused_without_a_signal() {
        // A store after the end of the file raises SIGBUS, as in a full tmpfs. The test survives.
        for reserve in [reserve, touch] {
            let map = mapping(4096, 3 * 4096);
            assert_eq!(reserve(map.as_mut_ptr(), 4096, 4096), Ok(()));
            assert_eq!(reserve(map.as_mut_ptr().wrapping_add(4096), 1, 4096), Err(Unreserved::NoMemory));
            assert_eq!(reserve(map.as_mut_ptr(), 4097, 4096), Err(Unreserved::NoMemory));
        }
    }

    #[test]
    fn reserving_does_not_change_contents() {
        for reserve in [reserve, touch] {
            let map = mapping(8192, 8192);
            // SAFETY: within the mapping and aligned; nothing else knows it.
            unsafe { map.as_mut_ptr().cast::<u64>().write(0x0123_4567_89ab_cdef) };
            assert_eq!(reserve(map.as_mut_ptr(), 8192, 4096), Ok(()));
            // SAFETY: as above.
            assert_eq!(unsafe { map.as_ptr().cast::<u64>().read() }, 0x0123_4567_89ab_cdef);
        }
    }

    /// An instruction of a filter of system calls.
    fn step(code: u32, k: u32, (yes, no): (u8, u8)) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: yes, jf: no, k }
    }

    /// From now on, this thread gets EPERM for private `FUTEX_WAKE_OP`, and for `madvise` if `forbids_advice`.
    fn forbid(forbids_advice: bool) {
        const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
        let advice = if forbids_advice { libc::SYS_madvise as u32 } else { u32::MAX };
        let private = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
        // The number of the call is at offset 0 of `struct seccomp_data`, the second argument at 24.
        let mut filter = [
            step(LOAD, 0, (0, 0)),
            step(IS, advice, (4, 0)),
            step(IS, libc::SYS_futex as u32, (0, 2)),
            step(LOAD, 24, (0, 0)),
            step(IS, private as u32, (1, 0)),
            step(RETURN, libc::SECCOMP_RET_ALLOW, (0, 0)),
            step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, (0, 0)),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: it only takes rights from this thread.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
        // SAFETY: a whole filter, which the kernel copies.
        let result =
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
        assert_eq!(result, 0);
    }

    /// Private futexes of a process share few buckets, and a call looks at everyone who waits in one of them.
    #[test]
    fn reserving_does_not_look_among_the_private_futexes_on_any_kernel() {
        for forbids_advice in [false, true] {
            std::thread::spawn(move || {
                let map = mapping(8192, 8192);
                forbid(forbids_advice);
                assert_eq!(reserve(map.as_mut_ptr(), 8192, 4096), Ok(()), "{forbids_advice}");
                assert_eq!(touch(map.as_mut_ptr(), 8192, 4096), Ok(()), "{forbids_advice}");
            })
            .join()
            .unwrap();
        }
    }
}
