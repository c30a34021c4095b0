//! Perf events of a processor, and the buffer into which the kernel writes their records.
//!
//! It opens events and copies bytes, and does not know what these mean.
//!
//! # Invariants
//!
//! This reader reads between the tail and the head of a buffer, and the kernel writes elsewhere in it. The kernel alone
//! moves the head, and this reader alone the tail.
#![allow(unsafe_code, reason = "no safe library opens perf events, or reads memory that the kernel shares")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use memmap2::{MmapOptions, MmapRaw};

use super::Refusal;

/// The kernel lets every user have as much: `kernel.perf_event_mlock_kb`, with the first page.
const BUFFER_BYTES: usize = 512 << 10;
/// `offsetof(struct perf_event_mmap_page, data_head)`.
const HEAD_AT: usize = 1024;
/// `offsetof(struct perf_event_mmap_page, data_tail)`.
const TAIL_AT: usize = 1032;

/// `sizeof(struct perf_event_attr)` up to the clock's id.
const ATTRIBUTES_LEN: usize = 96;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const COUNT_SW_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_RAW: u64 = 1 << 10;
const FLAG_DISABLED: u64 = 1;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
const FLAG_CONTEXT_SWITCH: u64 = 1 << 26;
const OPEN_CLOEXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_ENABLE`.
const ENABLE: libc::Ioctl = 0x2400;
/// `PERF_EVENT_IOC_SET_OUTPUT`.
const SET_OUTPUT: libc::Ioctl = 0x2405;

/// The events of a processor, and their buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    cpu: u32,
    events: Vec<OwnedFd>,
    memory: MmapRaw,
    /// Where the records begin in the memory, bytes.
    begin: usize,
}

impl Buffer {
    /// Opens an event of the threads that get or leave a processor, or end: [`begin`](Buffer::begin) begins it. If a
    /// tracepoint is given, opens another event of what this says, which begins here. Also says why not, if the kernel
    /// refuses that one.
    pub(super) fn open(cpu: u32, tracepoint: Option<u64>) -> Result<(Buffer, Option<Refusal>), Refusal> {
        let of_tracepoint = tracepoint.map(|id| open((TYPE_TRACEPOINT, id), (1, SAMPLE_RAW), 0, cpu));
        let flags = FLAG_DISABLED | FLAG_TASK | FLAG_CONTEXT_SWITCH;
        let event = open((TYPE_SOFTWARE, COUNT_SW_DUMMY), (0, 0), flags, cpu).map_err(Refusal::Events)?;
        let begin = rustix::param::page_size();
        let memory =
            MmapOptions::new().len(begin + BUFFER_BYTES).map_raw(&event).map_err(Refusal::Buffers)?;
        let mut buffer = Buffer { cpu, events: vec![event], memory, begin };
        let added = of_tracepoint.map(|event| event.and_then(|event| buffer.add(event)));
        Ok((buffer, added.and_then(Result::err).map(Refusal::WakeUps)))
    }

    pub(super) fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Begins the event of switches.
    pub(super) fn begin(&self) -> io::Result<()> {
        // SAFETY: the call takes no address. `self` owns the open descriptor.
        match unsafe { libc::ioctl(self.events[0].as_raw_fd(), ENABLE, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Adds another event of this processor, whose records go to the same buffer.
    fn add(&mut self, event: OwnedFd) -> io::Result<()> {
        // SAFETY: the call takes no address. Both descriptors are open: this function and `self` own them.
        let answer = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, self.events[0].as_raw_fd()) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        self.events.push(event);
        Ok(())
    }

    /// Moves what is new from the buffer to the end of `bytes`.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>) {
        let memory = self.memory.as_mut_ptr();
        // SAFETY: the first page of the mapping is `struct perf_event_mmap_page`, and 8 bytes at this offset of it are
        // its `data_head`. `self` keeps the mapping. Both sides access it atomically: the kernel's is `WRITE_ONCE`.
        let head = unsafe { AtomicU64::from_ptr(memory.wrapping_add(HEAD_AT).cast()) };
        // SAFETY: the same of `data_tail`.
        let tail = unsafe { AtomicU64::from_ptr(memory.wrapping_add(TAIL_AT).cast()) };
        // ORDERING: acquire: what the kernel wrote before it moved the head is seen. The tail is this reader's own.
        let (until, from) = (head.load(Acquire), tail.load(Acquire));
        let len = until.wrapping_sub(from).min(BUFFER_BYTES as u64) as usize;
        // A power of two.
        let at = from as usize & (BUFFER_BYTES - 1);
        let first = len.min(BUFFER_BYTES - at);
        for (at, len) in [(at, first), (0, len - first)] {
            let from = memory.wrapping_add(self.begin + at);
            // SAFETY: `at + len` is at most the length of the records, which the mapping has behind `begin`. The kernel
            // does not write to these until the tail has passed them, and the slice is gone then.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(from, len) });
        }
        // ORDERING: release: the bytes are read before the kernel may write to their place. It reads the tail, and
        // orders its stores after that.
        tail.store(until, Release);
    }
}

/// Opens an event of a processor and of all processes. Its times are of `CLOCK_MONOTONIC`.
fn open(
    (kind, config): (u32, u64),
    (period, sampled): (u64, u64),
    flags: u64,
    cpu: u32,
) -> io::Result<OwnedFd> {
    let flags = flags | FLAG_SAMPLE_ID_ALL | FLAG_USE_CLOCKID;
    let sampled = sampled | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU;
    let mut attributes = [0u8; ATTRIBUTES_LEN];
    attributes[..4].copy_from_slice(&kind.to_ne_bytes());
    attributes[4..8].copy_from_slice(&(ATTRIBUTES_LEN as u32).to_ne_bytes());
    for (at, number) in [(8, config), (16, period), (24, sampled), (40, flags)] {
        attributes[at..at + 8].copy_from_slice(&number.to_ne_bytes());
    }
    attributes[92..].copy_from_slice(&libc::CLOCK_MONOTONIC.to_ne_bytes());
    let (all, alone): (libc::pid_t, libc::c_int) = (-1, -1);
    let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
    // SAFETY: the kernel reads as many bytes of `attributes` as these say, which is their length. It keeps no address.
    let answer = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), all, cpu, alone, OPEN_CLOEXEC)
    };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned a new descriptor, which nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as libc::c_int) })
}
