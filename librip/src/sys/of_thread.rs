//! What the kernel says of the calling thread: what it has used.

#![allow(unsafe_code, reason = "system calls")]

use super::file::File;
use super::raw;

/// How long the calling thread has run on a processor, ns.
pub(crate) fn cpu_ns_of_thread() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [libc::CLOCK_THREAD_CPUTIME_ID as usize, (&raw mut time).expose_provenance()];
    // SAFETY: `time` is writable.
    let result = unsafe { raw::call(libc::SYS_clock_gettime, arguments) };
    (result == 0).then(|| (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
}

/// What the calling thread has used: the time in the kernel in us, voluntary and involuntary switches, minor and major
/// page faults.
pub(crate) fn usage_of_thread() -> Option<[u64; 5]> {
    let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
    let arguments = [libc::RUSAGE_THREAD as usize, usage.as_mut_ptr().expose_provenance()];
    // SAFETY: `usage` is writable.
    if unsafe { raw::call(libc::SYS_getrusage, arguments) } != 0 {
        return None;
    }
    // SAFETY: zeros are a valid value, and the kernel has written another one.
    let usage = unsafe { usage.assume_init() };
    let system_us = usage.ru_stime.tv_sec * 1_000_000 + usage.ru_stime.tv_usec;
    Some(
        [system_us, usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_minflt, usage.ru_majflt]
            .map(|value| value as u64),
    )
}

/// How long the calling thread was ready to run and had no processor, ns. `None` if the kernel does not count it, or if
/// there is no `/proc`.
pub(crate) fn ready_ns_of_thread() -> Option<u64> {
    let mut text = [0; 80];
    let len = File::open(c"/proc/thread-self/schedstat", libc::O_RDONLY).ok()?.read(&mut text).ok()?;
    second_number(&text[..len])
}

fn second_number(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b' ').nth(1)?;
    digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_being_ready_is_the_second_number() {
        assert_eq!(second_number(b"8103 52889 1\n"), Some(52889));
        assert_eq!(
            [&b""[..], b"12", b"1 x 2", b"1  2", b"1 99999999999999999999 2"].map(second_number),
            [None, None, None, Some(0), None]
        );
    }

    #[test]
    fn the_kernel_answers() {
        let before = (cpu_ns_of_thread().unwrap(), usage_of_thread().unwrap());
        let mut sum = 0u64;
        while cpu_ns_of_thread().unwrap() < before.0 + 1_000_000 {
            sum += 1;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        let used = usage_of_thread().unwrap();
        assert!(sum > 0 && used[1] > before.1[1], "a thread that sleeps gives up its processor");
    }
}
