//! Writes core files of processes whose threads all sleep in system calls, as the kernel does.
//!
//! It stops nobody: what `/proc` shows must not change meanwhile. Its layouts are its own: the reader's are not used.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const PAGE: u64 = 4096;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const NT_PRSTATUS: u32 = 1;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
/// The note about mapped files.
pub const NT_FILE: u32 = 0x4649_4c45;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
/// What the kernel leaves in `rax` for a call that has to be started again.
const ERESTARTSYS: i64 = -512;

/// A range of memory.
struct Range {
    begin: u64,
    end: u64,
    flags: u32,
    offset: u64,
    path: Option<String>,
    /// How many of its first bytes are written.
    dumped: u64,
}

/// Writes the core file of a process, with this signal (0: none) for its first thread.
///
/// # Panics
///
/// If a thread of it does not sleep in a system call, or if it cannot be read.
pub fn write(pid: u32, signal: i16, path: &Path) {
    let ranges = ranges(pid);
    let notes = notes(pid, signal, &ranges);
    let header_len = 64 + 56 * (ranges.len() as u64 + 1);
    let mut at = (header_len + notes.len() as u64).next_multiple_of(PAGE);
    let mut headers = elf_header(ranges.len() as u16 + 1);
    headers.extend(program_header(PT_NOTE, 4, header_len, 0, notes.len() as u64, 0));
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let file = File::create(path).unwrap();
    for range in &ranges {
        let len = range.end - range.begin;
        headers.extend(program_header(PT_LOAD, range.flags, at, range.begin, range.dumped, len));
        let mut page = [0; PAGE as usize];
        for within in (0..range.dumped).step_by(PAGE as usize) {
            memory.read_exact_at(&mut page, range.begin + within).unwrap();
            // Zeros stay holes.
            if page != [0; PAGE as usize] {
                file.write_all_at(&page, at + within).unwrap();
            }
        }
        at += range.dumped;
    }
    file.write_all_at(&headers, 0).unwrap();
    file.write_all_at(&notes, header_len).unwrap();
    file.set_len(at).unwrap();
}

/// What the kernel writes by default: what can be written to, and the first page of each file.
fn ranges(pid: u32) -> Vec<Range> {
    let maps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    // Each range, and what follows of it until the next one.
    let mut all: Vec<(&str, bool)> = Vec::new();
    for line in maps.lines() {
        match line.split_once(": ") {
            // What was written, as relocated pointers are, belongs to the process, and no longer to the file.
            Some(("Anonymous", size)) => all.last_mut().unwrap().1 = size.trim() != "0 kB",
            Some(_) if line.starts_with(|letter: char| letter.is_ascii_uppercase()) => {}
            _ => all.push((line, false)),
        }
    }
    let range = |&(line, is_written): &(&str, bool)| {
        let mut fields = line.split_ascii_whitespace();
        let (begin, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?.as_bytes();
        let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
        let path = fields.nth(2).map(str::to_owned);
        let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let is_special = path.as_ref().is_some_and(|path| path.starts_with("[v") && path != "[vdso]");
        let is_file = path.as_ref().is_some_and(|path| path.starts_with('/'));
        let is_own = rights[1] == b'w' || is_written && rights[3] == b'p';
        let is_whole = is_own || path.as_deref() == Some("[vdso]") || !is_file && rights[0] == b'r';
        let dumped = match () {
            () if is_whole => end - begin,
            () if is_file && offset == 0 => PAGE,
            () => 0,
        };
        let flag = |at: usize, letter, bit| u32::from(rights[at] == letter) * bit;
        let flags = flag(0, b'r', 4) | flag(1, b'w', 2) | flag(2, b'x', 1);
        (!is_special).then_some(Range { begin, end, flags, offset, path: path.filter(|_| is_file), dumped })
    };
    all.iter().filter_map(range).collect()
}

fn notes(pid: u32, signal: i16, ranges: &[Range]) -> Vec<u8> {
    let mut tids: Vec<u32> = fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    tids.sort_unstable();
    let mut out = note(NT_PRSTATUS, &status(pid, tids[0], signal));
    out.extend(note(NT_PRPSINFO, &process(pid)));
    out.extend(note(NT_AUXV, &fs::read(format!("/proc/{pid}/auxv")).unwrap()));
    out.extend(note(NT_FILE, &files(ranges)));
    for &tid in &tids[1..] {
        out.extend(note(NT_PRSTATUS, &status(pid, tid, signal)));
    }
    out
}

/// A note of the kernel.
pub fn note(kind: u32, description: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [5, description.len() as u32, kind] {
        out.extend(word.to_le_bytes());
    }
    out.extend(b"CORE\0\0\0\0");
    out.extend(description);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// The call that a thread sleeps in. On a busy machine a thread that was asleep may run for a moment.
fn asleep(pid: u32, tid: u32) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).unwrap();
        if !text.starts_with("running") {
            return text;
        }
        assert!(Instant::now() < deadline, "{tid} does not sleep");
        crate::pause();
    }
}

/// `struct elf_prstatus` of a thread that sleeps in a system call.
fn status(pid: u32, tid: u32, signal: i16) -> Vec<u8> {
    let text = asleep(pid, tid);
    let mut fields = text.split_ascii_whitespace();
    let number: u64 =
        fields.next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{tid}: {text}"));
    let values: Vec<u64> =
        fields.map(|value| u64::from_str_radix(value.trim_start_matches("0x"), 16).unwrap()).collect();
    let &[a, b, c, d, e, f, sp, pc] = values.as_slice() else { panic!("{tid}: {text}") };
    let registers = if cfg!(target_arch = "x86_64") {
        // r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss, and six more.
        let mut all =
            vec![0, 0, 0, 0, 0, 0, 0, d, f, e, ERESTARTSYS as u64, 0, c, b, a, number, pc, 0, 0, sp, 0];
        all.resize(27, 0);
        all
    } else {
        // x0 to x30, sp, pc, pstate. The kernel has already gone back to the instruction of the call.
        let mut all = vec![a, b, c, d, e, f, 0, 0, number];
        all.resize(31, 0);
        all.extend([sp, pc - 4, 0]);
        all
    };
    status_of(tid, signal, &registers)
}

/// `struct elf_prstatus` with these registers.
pub fn status_of(tid: u32, signal: i16, registers: &[u64]) -> Vec<u8> {
    let mut out = vec![0; 112];
    out[0..4].copy_from_slice(&i32::from(signal).to_le_bytes());
    out[12..14].copy_from_slice(&signal.to_le_bytes());
    out[32..36].copy_from_slice(&tid.to_le_bytes());
    out.extend(registers.iter().flat_map(|register| register.to_le_bytes()));
    out.extend([0; 8]);
    out
}

/// `struct elf_prpsinfo`.
fn process(pid: u32) -> Vec<u8> {
    let mut out = vec![0; 136];
    out[24..28].copy_from_slice(&pid.to_le_bytes());
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap();
    let name = name.trim_ascii_end();
    out[40..40 + name.len()].copy_from_slice(name);
    out
}

/// The note about mapped files.
fn files(ranges: &[Range]) -> Vec<u8> {
    let mapped: Vec<(&Range, &String)> =
        ranges.iter().filter_map(|range| Some((range, range.path.as_ref()?))).collect();
    let words = mapped.iter().flat_map(|(range, _)| [range.begin, range.end, range.offset / PAGE]);
    let mut out: Vec<u8> =
        [mapped.len() as u64, PAGE].into_iter().chain(words).flat_map(u64::to_le_bytes).collect();
    for (_, path) in mapped {
        out.extend(path.as_bytes());
        out.push(0);
    }
    out
}

/// The ELF header of a core file with so many program headers, which follow it.
pub fn elf_header(segments: u16) -> Vec<u8> {
    let machine = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };
    let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    out.extend(machine.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    // Entry, program headers, section headers.
    out.extend([0, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    out.extend(0_u32.to_le_bytes());
    out.extend([64, 56, segments, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    out
}

pub fn program_header(
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
) -> Vec<u8> {
    let mut out: Vec<u8> = [kind, flags].into_iter().flat_map(u32::to_le_bytes).collect();
    out.extend([offset, address, 0, in_file, in_memory, PAGE].into_iter().flat_map(u64::to_le_bytes));
    out
}
