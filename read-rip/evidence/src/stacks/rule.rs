//! One row of an unwind table, applied: from the registers of a function to those of its caller.
//!
//! A register that is not known stays unknown, and a rule that needs one says which.

use gimli::{
    CfaRule, Encoding, EndianSlice, Evaluation, EvaluationResult, Location, Register, RegisterRule, Value,
};
use gimli::{LittleEndian, UnwindExpression};

use super::registers::{Convention, RegisterFile};
use super::stack::Cut;

/// Expressions of unwind tables have a few operations.
const OPERATIONS_MAX: u32 = 1000;

/// The bytes of an unwind table.
pub(super) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// How the caller of a function is found, at one of its instructions.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// Where the function begins, as an actual address.
    pub(super) begin: u64,
    /// It interrupts, and is not called: the caller's address is that of its next instruction.
    pub(super) is_signal_frame: bool,
    pub(super) table: TableId,
    pub(super) encoding: Encoding,
    pub(super) cfa: CfaRule<usize>,
    pub(super) ra: u16,
    pub(super) registers: Vec<(Register, RegisterRule<usize>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableId {
    pub(super) module: usize,
    /// `.debug_frame` and not `.eh_frame`.
    pub(super) is_debug_frame: bool,
}

/// Why a rule leads to no caller.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// There is no caller: the thread began in this function.
    Outermost,
    /// A register is not known.
    Needs(u16),
    Cut(Cut),
}

impl Rule {
    /// If the frame begins at a fixed distance from a register: the register, the distance, and where the return
    /// address is from that register.
    pub(super) fn simple(&self) -> Option<(u16, i64, i64)> {
        let CfaRule::RegisterAndOffset { register, offset } = self.cfa else { return None };
        let RegisterRule::Offset(ra) = self.of(self.ra)? else { return None };
        Some((register.0, offset, offset.checked_add(*ra)?))
    }

    /// Whether it says that the thread began in this function.
    pub(super) fn is_outermost(&self) -> bool {
        matches!(self.of(self.ra), Some(RegisterRule::Undefined))
    }

    fn of(&self, register: u16) -> Option<&RegisterRule<usize>> {
        self.registers.iter().find(|(of, _)| of.0 == register).map(|(_, rule)| rule)
    }

    /// Finds the caller: its program counter and its registers. `word` reads a word of memory.
    pub(super) fn caller(
        &self,
        convention: &Convention,
        registers: &RegisterFile,
        is_interrupted: bool,
        table: &[u8],
        word: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(u64, RegisterFile), Stop> {
        if self.is_outermost() {
            return Err(Stop::Outermost);
        }
        let mut context = Context { registers, table, encoding: self.encoding, word };
        let cfa = match &self.cfa {
            CfaRule::RegisterAndOffset { register, offset } => {
                let value = registers.get(register.0).ok_or(Stop::Needs(register.0))?;
                value.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => context.evaluate(expression, None)?,
        };
        let pc = match self.of(self.ra) {
            // A function that calls none may leave the return address in its register.
            None | Some(RegisterRule::SameValue) if self.ra == convention.ra && is_interrupted => {
                registers.get(self.ra).ok_or(Stop::Needs(self.ra))?
            }
            None | Some(RegisterRule::SameValue) => return Err(Stop::Cut(Cut::NoProgress)),
            Some(rule) => context.value(rule, self.ra, cfa)?,
        };
        let mut caller = RegisterFile::new();
        for register in (0..64).filter(|register| convention.preserved >> register & 1 == 1) {
            caller.set(register, registers.get(register));
        }
        for (register, rule) in &self.registers {
            // What cannot be computed is not known, and seldom needed.
            caller.set(register.0, context.value(rule, register.0, cfa).ok());
        }
        if self.of(convention.sp).is_none() {
            caller.set(convention.sp, Some(cfa));
        }
        // An interrupted function still has its link register. A caller has made a call since it had its own.
        if !self.is_signal_frame {
            caller.set(convention.ra, None);
        }
        Ok((pc & convention.address_bits, caller))
    }
}

/// What rules are computed from.
struct Context<'a> {
    registers: &'a RegisterFile,
    table: &'a [u8],
    encoding: Encoding,
    word: &'a mut dyn FnMut(u64) -> Option<u64>,
}

impl Context<'_> {
    fn value(&mut self, rule: &RegisterRule<usize>, register: u16, cfa: u64) -> Result<u64, Stop> {
        let known = |register: u16| self.registers.get(register).ok_or(Stop::Needs(register));
        match rule {
            RegisterRule::SameValue => known(register),
            RegisterRule::Register(other) => known(other.0),
            RegisterRule::Offset(offset) => self.read(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Ok(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Expression(expression) => {
                let address = self.evaluate(expression, Some(cfa))?;
                self.read(address)
            }
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(cfa)),
            RegisterRule::Constant(value) => Ok(*value),
            _ => Err(Stop::Needs(register)),
        }
    }

    fn read(&mut self, address: u64) -> Result<u64, Stop> {
        (self.word)(address).ok_or(Stop::Cut(Cut::Unreadable))
    }

    /// Evaluates an expression; `first` is on its stack at the beginning.
    fn evaluate(&mut self, expression: &UnwindExpression<usize>, first: Option<u64>) -> Result<u64, Stop> {
        let damaged = || Stop::Cut(Cut::NoTable);
        let end = expression.offset.checked_add(expression.length).ok_or_else(damaged)?;
        let code = self.table.get(expression.offset..end).ok_or_else(damaged)?;
        let mut evaluation: Evaluation<Bytes> =
            Evaluation::new(EndianSlice::new(code, LittleEndian), self.encoding);
        evaluation.set_max_iterations(OPERATIONS_MAX);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().map_err(|_| damaged())?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.registers.get(register.0).ok_or(Stop::Needs(register.0))?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = self.read(address)?;
                    let mask = u64::MAX.checked_shr(64 - 8 * u32::from(size.min(8))).unwrap_or(0);
                    evaluation.resume_with_memory(Value::Generic(value & mask))
                }
                _ => return Err(damaged()),
            }
            .map_err(|_| damaged())?;
        }
        match evaluation.as_result().last().map(|piece| &piece.location) {
            Some(&Location::Address { address }) => Ok(address),
            Some(&Location::Value { value: Value::Generic(value) }) => Ok(value),
            _ => Err(damaged()),
        }
    }
}
