//! The notes of a core: its threads, its process, the signal, the files.
//!
//! There may be gigabytes of them, since each thread has all of its vector registers there. Those are skipped.

use std::ops::Range;

use object::elf::{NT_AUXV, NT_FILE, NT_PRPSINFO, NT_PRSTATUS, NT_SIGINFO};
use read_rip_ring::Source;

use super::death::Death;
use super::error::Gap;
use super::files::{File, files};
use super::header::Header;
use super::status::Status;
use crate::target::{Architecture, FORKED_FLAG, RunState, Sleep, Task};

/// More notes are not read: a million threads have fewer.
const NOTES_MAX: u32 = 1 << 23;
/// More threads are not read. The kernel allows four times as many, and nobody has them.
const TASKS_MAX: usize = 1 << 20;
/// Paths of a million mapped files.
const FILES_MAX_BYTES: u64 = 256 << 20;
/// What is read of a note at first: its header, its name, and the registers of a thread.
const FIRST_BYTES: usize = 512;
/// Lengths of name and description, and type.
const HEADER_LEN: usize = 12;
/// No name is longer: they are `CORE` and `LINUX`.
const NAME_MAX_BYTES: usize = 16;
/// The note with the number of a thread's system call, on aarch64.
const NT_ARM_SYSTEM_CALL: u32 = 0x404;
/// What stands for the names of threads, which a core does not have.
const THREAD: &str = "thread";

#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) pid: u32,
    /// Whether the process was made by fork and had run no program since; `None`: not known.
    pub(super) is_fork: Option<bool>,
    /// What the kernel called the first thread.
    pub(super) name: String,
    pub(super) command_line: String,
    /// The first one got the signal.
    pub(super) threads: Vec<Thread>,
    pub(super) death: Death,
    pub(super) files: Vec<File>,
    /// What the kernel told the program at its start: `AT_ENTRY` and so on.
    pub(super) auxiliary: Vec<(u64, u64)>,
}

#[derive(Debug)]
pub(super) struct Thread {
    status: Status,
    /// The number of its system call, from a note of its own.
    number: Option<i32>,
}

impl Notes {
    pub(super) fn read(source: &Source, header: &Header, gaps: &mut Vec<Gap>) -> Notes {
        let mut notes = Notes::default();
        let mut left = NOTES_MAX;
        for &(offset, len_bytes) in &header.notes {
            let end = offset.saturating_add(len_bytes);
            let is_whole = notes.segment(source, header.architecture, offset..end, &mut left);
            if !is_whole && !gaps.contains(&Gap::Notes) {
                gaps.push(Gap::Notes);
            }
        }
        if notes.pid == 0 {
            notes.pid = notes.death.tid;
        }
        notes
    }

    /// The threads, by their ids. `code` gives the instruction at an address.
    pub(super) fn tasks(&self, architecture: Architecture, code: impl Fn(u64) -> Option<u32>) -> Vec<Task> {
        let of = |thread: &Thread| {
            let status = &thread.status;
            let code = (architecture == Architecture::Aarch64).then(|| code(status.registers.pc));
            let call = status.call(architecture, code.flatten(), thread.number);
            self.task(status, call.map(Sleep::Call))
        };
        let mut tasks: Vec<Task> = self.threads.iter().map(of).collect();
        tasks.sort_by_key(|task| task.tid);
        tasks.dedup_by_key(|task| task.tid);
        tasks
    }

    /// Reads the notes of a segment. Returns whether they end where they should.
    fn segment(
        &mut self,
        source: &Source,
        architecture: Architecture,
        range: Range<u64>,
        left: &mut u32,
    ) -> bool {
        let mut at = range.start;
        let mut first = [0; FIRST_BYTES];
        while at < range.end {
            let got = source.read_at(&mut first, at).unwrap_or(0);
            let Some(note) = Note::of(&first[..got]).filter(|_| *left > 0) else { return false };
            *left -= 1;
            let begin = at + note.description_at;
            let Some(next) = begin.checked_add(note.len_bytes.next_multiple_of(4)) else { return false };
            let within = &first[..got][note.description_at as usize..];
            let within = &within[..within.len().min(note.len_bytes as usize)];
            let whole = |limit_bytes: u64| {
                let mut bytes = vec![0; note.len_bytes.min(limit_bytes).min(source.len_bytes()) as usize];
                let got = source.read_at(&mut bytes, begin).unwrap_or(0);
                bytes.truncate(got);
                bytes
            };
            match (note.is_of_linux, note.kind) {
                (false, kind) if kind == NT_PRSTATUS.0 => {
                    let Some(status) = Status::read(within, architecture) else { return false };
                    if self.threads.len() >= TASKS_MAX {
                        return false;
                    }
                    if self.threads.is_empty() {
                        self.death.add_thread(status.tid, status.signal);
                    }
                    self.threads.push(Thread { status, number: None });
                }
                (false, kind) if kind == NT_PRPSINFO.0 => self.process(within),
                // Debuggers write one for each thread.
                (false, kind) if kind == NT_SIGINFO.0 && self.threads.len() == 1 => {
                    self.death.add_signal_info(within);
                }
                (false, kind) if kind == NT_AUXV.0 => self.auxiliary = pairs(&whole(4096)),
                (false, kind) if kind == NT_FILE.0 => self.files = files(&whole(FILES_MAX_BYTES)),
                (true, NT_ARM_SYSTEM_CALL) if architecture == Architecture::Aarch64 => {
                    if let (Some(thread), Some(number)) = (self.threads.last_mut(), within.first_chunk::<4>())
                    {
                        thread.number = Some(i32::from_le_bytes(*number));
                    }
                }
                _ => {}
            }
            at = next;
        }
        true
    }

    /// `NT_PRPSINFO` of 64-bit processes.
    fn process(&mut self, note: &[u8]) {
        const FLAGS_AT: usize = 8;
        const PID_AT: usize = 24;
        const NAME: Range<usize> = 40..56;
        const ARGUMENTS: Range<usize> = 56..136;
        let text = |range| {
            let bytes: &[u8] = note.get(range).unwrap_or_default();
            let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(bytes).trim().to_owned()
        };
        // Every program has some flag: without any, they are not known.
        let flags =
            note.get(FLAGS_AT..).and_then(|bytes| bytes.first_chunk()).copied().map(u64::from_le_bytes);
        self.is_fork = flags.filter(|&flags| flags != 0).map(|flags| flags & FORKED_FLAG != 0);
        if let Some(pid) = note.get(PID_AT..PID_AT + 4).and_then(|bytes| bytes.first_chunk::<4>()) {
            self.pid = u32::from_le_bytes(*pid);
        }
        (self.name, self.command_line) = (text(NAME), text(ARGUMENTS));
    }

    fn task(&self, status: &Status, sleep: Option<Sleep>) -> Task {
        let name = if status.tid == self.pid { &self.name } else { THREAD };
        // A thread that was in no call executed its program, or was ready to.
        let state = if sleep.is_some() { RunState::Unknown('?') } else { RunState::Running };
        let registers = Some(status.registers);
        Task { name: name.to_owned(), sleep, registers, ..Task::new(status.tid, state) }
    }
}

struct Note {
    kind: u32,
    /// Whether its name is `LINUX`, and not `CORE`.
    is_of_linux: bool,
    description_at: u64,
    len_bytes: u64,
}

impl Note {
    fn of(bytes: &[u8]) -> Option<Note> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?));
        let (name_len, len_bytes, kind) = (word(0)? as usize, word(4)?, word(8)?);
        // Each has a name: zeros are no notes.
        if name_len == 0 || name_len > NAME_MAX_BYTES {
            return None;
        }
        let description_at = HEADER_LEN + name_len.next_multiple_of(4);
        let name = bytes.get(HEADER_LEN..description_at)?;
        let is_of_linux = name.starts_with(b"LINUX\0");
        Some(Note { kind, is_of_linux, description_at: description_at as u64, len_bytes: len_bytes.into() })
    }
}

fn pairs(bytes: &[u8]) -> Vec<(u64, u64)> {
    let (words, _) = bytes.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().map(|&[key, value]| (u64::from_le_bytes(key), u64::from_le_bytes(value))).collect()
}
