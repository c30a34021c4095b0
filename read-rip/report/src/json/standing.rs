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
use super::values::{Address, JsonThread};
use super::{Json, Line};
use crate::standing::doings;
use crate::{ActivityWords, StackFrames};

/// A thread of a process without a ring or of a core file, by the kernel and its memory.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Standing<'a> {
    #[serde(flatten)]
    thread: JsonThread<'a>,
    /// What it does, in words.
    doing: String,
    /// Whether it stood still between two readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    still: Option<bool>,
    /// Where it stands in the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
}

/// `stacks`: a stack, and the threads that have it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Stack"))]
pub(super) struct JsonStack<'a> {
    /// How many threads have it.
    threads: usize,
    /// Their ids, as their own PID namespace numbers them.
    tids: Vec<u32>,
    /// What most of them do, in words.
    doing: String,
    /// Threads that do something else. It is left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<JsonOthers>,
    /// Whether it reaches the beginning of the thread.
    complete: bool,
    /// The functions, the innermost first.
    frames: Vec<JsonFrame<'a>>,
}

/// Threads that do the same.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ThreadsOfStack"))]
struct JsonOthers {
    /// Their ids, as their own PID namespace numbers them.
    tids: Vec<u32>,
    /// What they do, in words.
    doing: String,
}

/// A function.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Frame"))]
struct JsonFrame<'a> {
    /// The address in the process.
    pc: Address,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    /// The source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// Whose code it is.
    #[cfg_attr(test, schemars(extend("enum" = super::location::owners())))]
    whose: &'static str,
    /// The package of a library, or the language of a runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<&'a str>,
    /// It was inlined into the next one.
    inlined: bool,
    /// It was found by a search of the stack, because a register is not known.
    inferred: bool,
}

/// A core file: the process, and why it died.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Core"))]
pub(super) struct JsonCore<'a> {
    /// The core file.
    file: Cow<'a, str>,
    /// The name of the program.
    program: &'a str,
    /// The process id that the file has.
    pid: u32,
    /// How it was started, as far as the kernel keeps it.
    command_line: &'a str,
    /// How many threads it had.
    threads: usize,
    /// The ring of the process was found, and is joined.
    has_ring: bool,
    /// The thread that got the signal.
    tid: u32,
    /// The signal. Left out if a debugger made the core of a living process.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// `si_code`: where the signal came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
    /// What could not be accessed, or the instruction that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault_address: Option<Address>,
    /// The process that sent the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_pid: Option<u32>,
    /// Its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_uid: Option<u32>,
    /// Its general registers, by their DWARF numbers.
    registers: Vec<Address>,
    /// The program counter of that thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pc: Option<Address>,
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
        let thread = seen.target.tasks.iter().find(|task| task.own_tid == death.tid);
        let registers = thread.and_then(|thread| thread.registers);
        let count = match seen.target.architecture {
            Architecture::X86_64 => 16,
            Architecture::Aarch64 => 32,
        };
        let all = registers.and_then(|registers| registers.all);
        self.line(Line::Core(JsonCore {
            file: path.to_string_lossy(),
            program: &seen.target.name,
            pid: seen.target.own_pid,
            command_line,
            threads: seen.target.tasks.len(),
            has_ring,
            tid: death.tid,
            signal: death.signal,
            code: death.code,
            fault_address: death.fault_address.map(Address),
            sender_pid: death.sender.map(|(pid, _)| pid),
            sender_uid: death.sender.map(|(_, uid)| uid),
            registers: all.iter().flatten().take(count).copied().map(Address).collect(),
            pc: registers.map(|registers| Address(registers.pc)),
        }))
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
            self.line(Line::Standing(Standing {
                thread: JsonThread { name: &task.name, pid: words.seen.target.own_pid, tid: task.own_tid },
                doing: words.of(thread),
                still: words.seen.threads[thread].is_still,
                location,
            }))?;
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
                let one = |named: &'_ Frame| (frame.pc, at >= inferred_from, named.clone());
                frames.get(frame).map_or_else(Vec::new, |named| named.iter().map(one).collect())
            };
            let tid = |&task: &usize| words.seen.target.tasks[task].own_tid;
            let named: Vec<_> = group.stack.frames.iter().enumerate().flat_map(of_frame).collect();
            self.line(Line::Stack(JsonStack {
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
                        pc: Address(*pc),
                        function: frame.function.as_deref(),
                        file: frame.file.as_deref(),
                        line: frame.line,
                        whose: frame.whose.name(),
                        package: frame.whose.package_or_language(),
                        inlined: frame.is_inlined,
                        inferred: *inferred,
                    })
                    .collect(),
            }))?;
        }
        Ok(())
    }
}
