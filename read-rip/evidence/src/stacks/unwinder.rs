//! Unwinds stacks: from a thread's registers to the functions that it is in.
//!
//! # Method
//!
//! The unwind tables of the modules say where a function's caller is. For a sleeping thread the kernel gives the
//! stack pointer and the program counter, and no other register. If a table needs another one (a frame pointer mostly),
//! it is searched for (`search`): each word of the stack is tried that makes the table lead to a return address, first
//! those at which the call before that address calls this very function. The first one counts with which the stack can
//! be unwound to the thread's beginning.
//!
//! Every return address is checked: the instruction before it must be a call.
//!
//! # Blind spots
//!
//! Code that was generated at run time ends a stack. So does the code of a module without unwind tables, unless a call
//! from code with tables has led there (`gap`). A thread that runs on while its stack is read gives a stack that may be
//! cut, or mixed of two moments: compare its turns of the scheduler before and after.

use std::rc::Rc;

use foldhash::HashMap;
use read_rip_symbols::Options;

use super::calls::Code;
use super::registers::{Convention, RegisterFile};
use super::rule::{Rule, Stop};
use super::signal_frame;
use super::stack::{Cut, End, Frame, Stack};
use super::tables::Tables;
use super::walk::{Failure, Found, GAP_TRIES_MAX, Position, Walk, WalkEnd};
use super::window::Window;
use crate::target::{Architecture, Mapping, Memory, Registers, Target};

/// More frames are not read of one stack.
const FRAMES_MAX: usize = 10_000;

/// Unwinds the stacks of one target.
pub struct Unwinder<'m> {
    pub(super) architecture: Architecture,
    pub(super) convention: Convention,
    pub(super) tables: Tables<'m>,
    pub(super) code: Code<'m>,
    pub(super) window: Window<'m>,
    /// Ranges of memory that can be written to, where stacks are.
    pub(super) writable: Vec<(u64, u64)>,
    pub(super) found: HashMap<u64, Found>,
    /// How many frames may still be found for the present stack.
    pub(super) steps_left: usize,
    /// How many callers of code without tables may still be tried for the present stack.
    pub(super) gap_tries_left: usize,
    /// How many pieces of code without tables the present walk has crossed.
    pub(super) gaps: usize,
}

impl<'m> Unwinder<'m> {
    /// An unwinder for a target. It does not open files yet.
    pub fn new(target: &Target, memory: &'m dyn Memory, options: Options) -> Unwinder<'m> {
        let is_writable = |mapping: &&Mapping| mapping.is_writable;
        let mut writable: Vec<(u64, u64)> =
            target.mappings.iter().filter(is_writable).map(|mapping| (mapping.begin, mapping.end)).collect();
        writable.sort_unstable();
        Unwinder {
            architecture: target.architecture,
            convention: Convention::of(target.architecture),
            tables: Tables::new(memory, &target.modules, options),
            code: Code::new(memory, target.architecture, &target.mappings),
            window: Window::new(memory),
            writable,
            found: HashMap::default(),
            steps_left: 0,
            gap_tries_left: 0,
            gaps: 0,
        }
    }

    /// The stack of a thread with these registers.
    pub fn stack(&mut self, registers: Option<&Registers>) -> Stack {
        let Some(given) = registers else { return Stack::unknown() };
        let begin = self.begin(given);
        let walk = self.walk(begin, false);
        let end = match walk.end {
            WalkEnd::Outermost => End::Complete,
            // Where a register was searched for, a zero may be any word.
            WalkEnd::Zero if walk.inferred_from.is_none() => End::Complete,
            WalkEnd::Zero => End::Cut(Cut::NotACall),
            WalkEnd::Cut(cut) => End::Cut(cut),
        };
        Stack { frames: walk.frames, inferred_from: walk.inferred_from, end }
    }

    /// The registers in a frame of the stack of a thread with these registers, as far as they are known. Frames that
    /// are searched for have none.
    pub fn registers_in(&mut self, frame: usize, given: &Registers) -> Option<RegisterFile> {
        let mut at = self.begin(given);
        for inner in 0..frame {
            at = self.caller(&at, inner == 0).ok()?;
        }
        Some(at.registers)
    }

    /// Begins a walk up the stack of a thread with these registers.
    fn begin(&mut self, given: &Registers) -> Position {
        let mut registers = RegisterFile::new();
        let all = given.all.iter().flatten().take(self.convention.general.into());
        for (register, &value) in (0..).zip(all) {
            registers.set(register, Some(value));
        }
        registers.set(self.convention.sp, Some(given.sp));
        registers.set(self.convention.fp, given.fp);
        if self.architecture == Architecture::Aarch64 {
            registers.set(self.convention.ra, given.lr);
        }
        self.window.start(given.sp);
        (self.steps_left, self.gap_tries_left) = (FRAMES_MAX, GAP_TRIES_MAX);
        Position { frame: Frame { pc: given.pc, is_return_address: false }, registers }
    }

    /// Unwinds from a position. In a search there is no other one, except behind a gap: the registers of a caller that
    /// was searched for are those that its table needs.
    pub(super) fn walk(&mut self, mut at: Position, is_in_search: bool) -> Walk {
        let mut walk = Walk { frames: Vec::new(), inferred_from: None, end: WalkEnd::Cut(Cut::TooLong) };
        loop {
            walk.frames.push(at.frame);
            self.steps_left = self.steps_left.saturating_sub(1);
            if walk.frames.len() >= FRAMES_MAX || self.steps_left == 0 {
                return walk;
            }
            let is_first = walk.frames.len() == 1 && !is_in_search;
            match self.caller(&at, is_first) {
                Ok(caller) => at = caller,
                Err(Failure::End(end)) => {
                    walk.end = end;
                    if end == WalkEnd::Cut(Cut::NoTable)
                        && let Some(rest) = self.over_gap(&at)
                    {
                        walk.infer(rest);
                    }
                    return walk;
                }
                Err(Failure::Needs(rule, register)) => {
                    walk.end = WalkEnd::Cut(Cut::UnknownRegister);
                    if !is_in_search && let Some(rest) = self.search(&at, &rule, register) {
                        walk.infer(rest);
                    }
                    return walk;
                }
            }
        }
    }

    fn caller(&mut self, at: &Position, is_first: bool) -> Result<Position, Failure> {
        match self.tables.rule(at.frame.lookup()) {
            Ok(rule) => self.apply(at, &rule),
            Err(_) if self.code.is_signal_return(at.frame.pc) => {
                let word = &mut |address| self.window.word(address);
                let (pc, registers) = signal_frame::interrupted(self.architecture, &at.registers, word)
                    .ok_or(Failure::End(WalkEnd::Cut(Cut::Unreadable)))?;
                Ok(Position { frame: Frame { pc, is_return_address: false }, registers })
            }
            // A call through a wrong pointer: nothing was done since.
            Err(_) if is_first && !self.code.contains(at.frame.pc) => self.after_call_to_nowhere(at),
            Err(cut) => Err(Failure::End(WalkEnd::Cut(cut))),
        }
    }

    /// Applies a rule, and checks what it led to.
    pub(super) fn apply(&mut self, at: &Position, rule: &Rc<Rule>) -> Result<Position, Failure> {
        let Unwinder { convention, tables, window, .. } = self;
        let word = &mut |address| window.word(address);
        let is_interrupted = !at.frame.is_return_address;
        let caller = rule.caller(convention, &at.registers, is_interrupted, tables.bytes(rule.table), word);
        let (pc, registers) = caller.map_err(|stop| match stop {
            Stop::Outermost => Failure::End(WalkEnd::Outermost),
            Stop::Needs(register) => Failure::Needs(rule.clone(), register),
            Stop::Cut(cut) => Failure::End(WalkEnd::Cut(cut)),
        })?;
        if rule.is_signal_frame {
            return Ok(Position { frame: Frame { pc, is_return_address: false }, registers });
        }
        let (before, after) = (at.registers.get(convention.sp), registers.get(convention.sp));
        // On aarch64 a function that calls none may leave the stack as it is.
        if after < before || after == before && (pc == at.frame.pc || !is_interrupted) {
            return Err(Failure::End(WalkEnd::Cut(Cut::NoProgress)));
        }
        let frame = self.returned_to(pc)?;
        Ok(Position { frame, registers })
    }

    /// Checks that a function can return to an address.
    fn returned_to(&mut self, pc: u64) -> Result<Frame, Failure> {
        if pc == 0 {
            return Err(Failure::End(WalkEnd::Zero));
        }
        let tables = &mut self.tables;
        if self.code.call_before(pc, |address, len| tables.code(address, len)).is_some() {
            return Ok(Frame { pc, is_return_address: true });
        }
        // The kernel and `makecontext` let functions return to the beginning of another one, which none has called.
        let is_entered = self.code.is_signal_return(pc)
            || self.tables.rule(pc).is_ok_and(|rule| rule.is_signal_frame || rule.is_outermost());
        if is_entered {
            return Ok(Frame { pc, is_return_address: false });
        }
        Err(Failure::End(WalkEnd::Cut(Cut::NotACall)))
    }

    fn after_call_to_nowhere(&mut self, at: &Position) -> Result<Position, Failure> {
        let none = Failure::End(WalkEnd::Cut(Cut::NoModule));
        let Some(sp) = at.registers.get(self.convention.sp) else { return Err(none) };
        let mut registers = at.registers;
        let pc = match self.architecture {
            Architecture::X86_64 => {
                registers.set(self.convention.sp, sp.checked_add(8));
                self.window.word(sp)
            }
            Architecture::Aarch64 => at.registers.get(self.convention.ra),
        };
        let frame = self.returned_to(pc.ok_or(none)?)?;
        if frame.is_return_address {
            Ok(Position { frame, registers })
        } else {
            Err(Failure::End(WalkEnd::Cut(Cut::NoModule)))
        }
    }
}
