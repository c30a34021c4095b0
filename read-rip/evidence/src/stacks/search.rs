//! Searches the stack for the value of a register that is not known.
//!
//! Of a sleeping thread the kernel does not give the frame pointer. A function that has one keeps its own frame there,
//! so the value is an address further up the same stack. Each one is tried. It fits if the unwind table then leads to a
//! return address, and from there to the thread's beginning. A stack also has words that earlier calls have left, and
//! so several values may fit. The call before the return address tells: values with which it calls the function in
//! question come first.
//!
//! The distance from the stack pointer is the same for all threads that wait at the same place, unless the function
//! allocates on its stack. So distances that were found are tried first.

use std::rc::Rc;

use super::calls::Call;
use super::rule::Rule;
use super::unwinder::Unwinder;
use super::walk::{Fit, Position, Walk};

/// The frame of one function is rarely larger.
const FRAME_MAX_BYTES: u64 = 1 << 20;
/// If nothing was found a few times at the same place, less is searched.
const FRAME_AFTER_FAILURES_BYTES: u64 = 16 << 10;
const FAILURES_MAX: u32 = 4;
/// The limits for all frames that are tried in one search.
const STEPS_MAX: usize = 20_000;
const STEPS_AFTER_FAILURES_MAX: usize = 1_000;
/// Values that fit less well are kept for later, up to this many.
const OTHERS_MAX: usize = 64;
/// Distances that are kept for a place.
const DISTANCES_MAX: usize = 8;

impl Unwinder<'_> {
    /// Finds a value of a register with which the stack can be unwound to its end. Returns the frames from the caller
    /// on. If there is no such value, the stack is cut: then the frames are those from the first caller on that calls
    /// this very function.
    pub(super) fn search(&mut self, at: &Position, rule: &Rc<Rule>, register: u16) -> Option<Walk> {
        // A return address is not searched for: any would fit.
        let sp = at.registers.get(self.convention.sp)?;
        if register == self.convention.ra {
            return None;
        }
        let place = at.frame.pc;
        let (known, failures) =
            self.found.get(&place).map(|found| (found.distances.clone(), found.failures)).unwrap_or_default();
        let steps = if failures < FAILURES_MAX { STEPS_MAX } else { STEPS_AFTER_FAILURES_MAX };
        // All that is searched for behind a gap has one limit together.
        self.steps_left = if self.gaps == 0 { steps } else { self.steps_left.min(steps) };
        for (distance, fit) in known {
            if let Some((found, position)) = self.candidate(at, rule, register, sp.wrapping_add(distance))
                && found <= fit
                && let Some(walk) = self.complete(&position)
            {
                return Some(walk);
            }
        }
        let limit = if failures < FAILURES_MAX { FRAME_MAX_BYTES } else { FRAME_AFTER_FAILURES_BYTES };
        let end = self.stack_end(sp).min(sp.saturating_add(limit));
        let mut others: Vec<(Fit, u64, Position)> = Vec::new();
        let mut best = None;
        for value in (sp.checked_next_multiple_of(8)?..end).step_by(8) {
            if self.steps_left == 0 {
                break;
            }
            match self.candidate(at, rule, register, value) {
                Some((Fit::Same, position)) => {
                    let walk = self.walk(position, true);
                    if walk.is_whole(self.gaps > 0) {
                        self.remember(place, value - sp, Fit::Same);
                        return Some(walk);
                    }
                    best = best.or(Some(walk));
                }
                Some((fit, position)) if others.len() < OTHERS_MAX => others.push((fit, value, position)),
                _ => {}
            }
        }
        others.sort_by_key(|&(fit, value, _)| (fit, value));
        for (fit, value, position) in others {
            if let Some(walk) = self.complete(&position) {
                self.remember(place, value - sp, fit);
                return Some(walk);
            }
        }
        self.found.entry(place).or_default().failures += 1;
        best
    }

    fn complete(&mut self, position: &Position) -> Option<Walk> {
        let walk = self.walk(*position, true);
        walk.is_whole(self.gaps > 0).then_some(walk)
    }

    fn remember(&mut self, place: u64, distance: u64, fit: Fit) {
        let found = self.found.entry(place).or_default();
        if found.distances.len() < DISTANCES_MAX
            && found.distances.iter().all(|&(known, _)| known != distance)
        {
            found.distances.push((distance, fit));
        }
    }

    /// The caller that a value of the register leads to, if it can be one.
    fn candidate(
        &mut self,
        at: &Position,
        rule: &Rc<Rule>,
        register: u16,
        value: u64,
    ) -> Option<(Fit, Position)> {
        // Most words are sorted out here.
        if let Some((base, cfa, ra)) = rule.simple()
            && base == register
        {
            let is_aligned = value.wrapping_add_signed(cfa).is_multiple_of(self.convention.alignment);
            let word = self.window.word(value.wrapping_add_signed(ra))? & self.convention.address_bits;
            if !is_aligned || !self.code.contains(word) {
                return None;
            }
        }
        let mut registers = at.registers;
        registers.set(register, Some(value));
        let position = self.apply(&Position { registers, ..*at }, rule).ok()?;
        let tables = &mut self.tables;
        let call = self.code.call_before(position.frame.pc, |address, len| tables.code(address, len))?;
        let fit = match (call, self.code.destination(call)) {
            (_, Some(destination)) if destination == rule.begin => Fit::Same,
            (Call::Direct(_), _) => Fit::Other,
            _ => Fit::Unknown,
        };
        Some((fit, position))
    }

    /// The end of the memory range that a stack pointer is in.
    pub(super) fn stack_end(&self, sp: u64) -> u64 {
        let after = self.writable.partition_point(|&(begin, _)| begin <= sp);
        let range = after.checked_sub(1).map(|last| self.writable[last]);
        range.filter(|&(_, end)| sp < end).map_or(sp.saturating_add(FRAME_MAX_BYTES), |(_, end)| end)
    }
}
