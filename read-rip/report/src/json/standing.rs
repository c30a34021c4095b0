//! Threads and stacks by the kernel and the memory, as JSON.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use read_rip_evidence::core::Death;
use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::Architecture;
use read_rip_model::locations::LocationId;
use read_rip_ring::Snapshot;
use read_rip_symbols::Frame;
use serde::Serialize;

use super::location::{JsonLocation, json_location};
use super::writer::Json;
use crate::standing::doings;
use crate::{ActivityWords, StackFrames};

#[derive(Serialize)]
struct JsonThread<'a> {
    name: &'a str,
    pid: u32,
    tid: u32,
    doing: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    still: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
}

#[derive(Serialize)]
struct JsonStack<'a> {
    threads: usize,
    tids: Vec<u32>,
    /// What most of them do.
    doing: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<JsonOthers>,
    complete: bool,
    frames: Vec<JsonFrame<'a>>,
}

/// Threads of a stack that do something else than most of them.
#[derive(Serialize)]
struct JsonOthers {
    tids: Vec<u32>,
    doing: String,
}

#[derive(Serialize)]
struct JsonFrame<'a> {
    pc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    inlined: bool,
    inferred: bool,
}

#[derive(Serialize)]
struct JsonCore<'a> {
    file: Cow<'a, str>,
    program: &'a str,
    pid: u32,
    command_line: &'a str,
    threads: usize,
    has_ring: bool,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_uid: Option<u32>,
    /// By their DWARF numbers.
    registers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<String>,
}

impl<W: Write> Json<W> {
    /// A core file: why the process died.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn core(
        &mut self,
        path: &Path,
        death: &Death,
        seen: &Standings,
        command_line: &str,
        has_ring: bool,
    ) -> io::Result<()> {
        let hexadecimal = |value: u64| format!("{value:#x}");
        let thread = seen.target.tasks.iter().find(|task| task.own_tid == death.tid);
        let registers = thread.and_then(|thread| thread.registers);
        let count = match seen.target.architecture {
            Architecture::X86_64 => 16,
            Architecture::Aarch64 => 32,
        };
        let all = registers.and_then(|registers| registers.all);
        self.line(
            "core",
            JsonCore {
                file: path.to_string_lossy(),
                program: &seen.target.name,
                pid: seen.target.own_pid,
                command_line,
                threads: seen.target.tasks.len(),
                has_ring,
                tid: death.tid,
                signal: death.signal,
                code: death.code,
                fault_address: death.fault_address.map(hexadecimal),
                sender_pid: death.sender.map(|(pid, _)| pid),
                sender_uid: death.sender.map(|(_, uid)| uid),
                registers: all.iter().flatten().take(count).copied().map(hexadecimal).collect(),
                pc: registers.map(|registers| hexadecimal(registers.pc)),
            },
        )
    }

    /// The process, and a line for each thread.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn standings(
        &mut self,
        words: &ActivityWords<'_>,
        threads: &[usize],
        place_of: impl Fn(usize) -> Option<LocationId>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        for &thread in threads {
            let task = &words.seen.target.tasks[thread];
            let locations = words.names.locations;
            let location =
                place_of(thread).map(|place| json_location(locations.get(place), locations, snapshot));
            self.line(
                "standing",
                JsonThread {
                    name: &task.name,
                    pid: words.seen.target.own_pid,
                    tid: task.own_tid,
                    doing: words.of(thread),
                    still: words.seen.threads[thread].is_still,
                    location,
                },
            )?;
        }
        Ok(())
    }

    /// A line for each different stack.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn stacks(
        &mut self,
        words: &ActivityWords<'_>,
        is_wanted: impl Fn(usize) -> bool,
        frames: &StackFrames,
    ) -> io::Result<()> {
        for group in &words.seen.stacks {
            let threads: Vec<usize> = group.tasks.iter().copied().filter(|&task| is_wanted(task)).collect();
            let mut doings = doings(words, &threads).into_iter();
            let Some((doing, _)) = doings.next() else { continue };
            let inferred_from = group.stack.inferred_from.unwrap_or(usize::MAX);
            let of_frame = |(at, frame): (usize, &read_rip_evidence::stacks::Frame)| {
                let pc = format!("{:#x}", frame.pc);
                let one = move |named: &'_ Frame| (pc.clone(), at >= inferred_from, named.clone());
                frames.get(frame).map_or_else(Vec::new, |named| named.iter().map(one).collect())
            };
            let tid = |&task: &usize| words.seen.target.tasks[task].own_tid;
            let named: Vec<_> = group.stack.frames.iter().enumerate().flat_map(of_frame).collect();
            self.line(
                "stack",
                JsonStack {
                    threads: threads.len(),
                    tids: threads.iter().map(tid).collect(),
                    doing,
                    others: doings
                        .map(|(doing, of)| JsonOthers { tids: of.iter().map(tid).collect(), doing })
                        .collect(),
                    complete: group.stack.is_complete(),
                    frames: named
                        .iter()
                        .map(|(pc, inferred, frame)| JsonFrame {
                            pc: pc.clone(),
                            function: frame.function.as_deref(),
                            file: frame.file.as_deref(),
                            line: frame.line,
                            inlined: frame.is_inlined,
                            inferred: *inferred,
                        })
                        .collect(),
                },
            )?;
        }
        Ok(())
    }
}
