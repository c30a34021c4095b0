//! The functions of a stack, a line each, the innermost first.
//!
//! Most functions on a stack are not the user's: those of a lock's library, of its language, and of the C library. So a
//! row of them is one line: the function that the user's code has called, and how many more are inside. Where a thread
//! began is left out, but for the number of functions.

use std::io::{self, Write};

use read_rip_evidence::stacks::{Cut, End, Stack};
use read_rip_evidence::standing::Standings;
use read_rip_symbols::Frame;

use super::standing::StackFrames;
use super::units::counted;
use crate::printable;

#[derive(Clone, Copy)]
pub(super) struct StackLines<'a> {
    pub(super) seen: &'a Standings,
    pub(super) frames: &'a StackFrames,
    /// Nothing is folded.
    pub(super) is_whole: bool,
}

/// A function of a stack, or an address that nothing names.
struct Line<'a> {
    pc: u64,
    frame: Option<&'a Frame>,
    is_inferred: bool,
    is_signal: bool,
    /// It is outside of the language's function that calls `main`: the program's `main` there is the language's.
    is_before_main: bool,
}

impl StackLines<'_> {
    /// Writes the lines of a stack. `file` shortens the path of a source file.
    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        stack: &Stack,
        file: impl Fn(&str) -> String,
    ) -> io::Result<()> {
        let lines = self.lines(stack);
        let kept = if self.is_whole { Kept::All } else { Kept::of(&lines) };
        let is_shown = |line: &Line<'_>| kept.keeps(line);
        let mut rows = lines.chunk_by(|one, other| is_shown(one) == is_shown(other)).peekable();
        while let Some(row) = rows.next() {
            if is_shown(&row[0]) {
                for line in row {
                    self.line(out, line, &file, "")?;
                }
                continue;
            }
            if rows.peek().is_none() {
                writeln!(out, "    and {} before", counted(row.len() as u64, "function"))?;
                continue;
            }
            // What the user's code has called: a package's function says more than what a language has around it.
            let of_package = row.iter().rev().find(|line| line.is_of_package());
            let called = of_package.or(row.last());
            let more = match row.len() - 1 {
                0 => String::new(),
                more => format!(", {} inside", counted(more as u64, "more function")),
            };
            if let Some(called) = called {
                self.line(out, called, &file, &more)?;
            }
        }
        // If the process may not be looked into, a warning says why.
        if let End::Cut(cut) = stack.end
            && self.seen.target.hidden.is_none()
        {
            writeln!(out, "    cut: {}", why(cut))?;
        }
        Ok(())
    }

    fn lines(&self, stack: &Stack) -> Vec<Line<'_>> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        let mut is_before_main = false;
        for (at, frame) in stack.frames.iter().enumerate() {
            let is_inferred = stack.inferred_from.is_some_and(|from| at >= from);
            let is_signal = stack.is_signal_return(at);
            let named = self.frames.get(frame).map_or(&[][..], Vec::as_slice);
            if named.is_empty() || is_signal {
                lines.push(Line { pc: frame.pc, frame: None, is_inferred, is_signal, is_before_main });
            }
            if is_signal {
                continue;
            }
            let of = |one| Line { pc: frame.pc, frame: Some(one), is_inferred, is_signal, is_before_main };
            lines.extend(named.iter().map(of));
            is_before_main |= named.iter().any(calls_main);
        }
        lines
    }

    fn line(
        &self,
        out: &mut dyn Write,
        line: &Line<'_>,
        file: impl Fn(&str) -> String,
        more: &str,
    ) -> io::Result<()> {
        let mark = if line.is_inferred { "?" } else { " " };
        if line.is_signal {
            return writeln!(out, "  {mark} a signal interrupts the next function{more}");
        }
        let Some(frame) = line.frame else {
            let what = if is_generated(self.seen, line.pc) { ", in generated code" } else { "" };
            return writeln!(out, "  {mark} {:#x}{what}{more}", line.pc);
        };
        let function = frame.function.as_deref().map_or("unknown".into(), printable);
        let package = frame.whose.package_or_language().map(|name| format!(" {}", printable(name)));
        let source = match (&frame.file, frame.line) {
            (Some(path), Some(line)) => {
                format!("{} {}:{line}", package.unwrap_or_default(), printable(&file(path)))
            }
            _ => String::new(),
        };
        // A function that stands for others is not inlined into the next line.
        let inlined = if frame.is_inlined && more.is_empty() { " (inlined)" } else { "" };
        writeln!(out, "  {mark} {function}{source}{inlined}{more}")
    }
}

/// Whether it is the function of Rust's library that calls `main`. Its own caller is called `main` too.
fn calls_main(frame: &Frame) -> bool {
    frame.function.as_deref().is_some_and(|function| function.starts_with("std::rt::lang_start"))
}

impl Line<'_> {
    /// Whether it is known to be the user's, or may be.
    fn is_users(&self) -> bool {
        !self.is_before_main
            && self.frame.is_some_and(|frame| frame.whose.may_be_users() && frame.function.is_some())
    }

    /// Whether it is of a package, and not of one around locks.
    fn is_of_package(&self) -> bool {
        self.frame.is_some_and(|frame| frame.whose.package().is_some() && !frame.whose.is_around_locks())
    }
}

/// Which functions of a stack are shown.
#[derive(Clone, Copy)]
enum Kept {
    Users,
    /// None is the user's.
    Packages,
    All,
}

impl Kept {
    fn of(lines: &[Line<'_>]) -> Kept {
        if lines.iter().any(Line::is_users) {
            Kept::Users
        } else if lines.iter().any(Line::is_of_package) {
            Kept::Packages
        } else {
            Kept::All
        }
    }

    fn keeps(self, line: &Line<'_>) -> bool {
        match self {
            // Nothing is known of an address without a name: it may be the user's.
            Kept::Users => line.is_users() || line.frame.is_none(),
            Kept::Packages => line.is_of_package() || line.frame.is_none(),
            Kept::All => true,
        }
    }
}

/// Whether an address is in code that the program has made itself, as a Java virtual machine does: it can be executed,
/// and no file is mapped there. Core files do not always say where files were mapped.
fn is_generated(seen: &Standings, address: u64) -> bool {
    let mapping = seen.target.mapping_at(address).filter(|_| !seen.is_final);
    mapping.is_some_and(|mapping| mapping.is_executable && mapping.path.is_none())
}

fn why(cut: Cut) -> &'static str {
    match cut {
        Cut::NoRegisters => "the thread runs, or the kernel does not show its registers",
        Cut::NoModule => "the next address is in no file that is mapped",
        Cut::NoTable => "the code has no unwind table here",
        Cut::UnknownRegister => "the unwind table needs a register that is not known",
        Cut::Unreadable => "the stack cannot be read",
        Cut::NotACall => "the next value on the stack is not a return address",
        Cut::NoProgress => "the unwind table leads in a circle",
        Cut::TooLong => "the stack is longer than read-rip reads",
    }
}
