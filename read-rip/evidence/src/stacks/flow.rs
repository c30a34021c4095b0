//! What the code of a function does: what it calls, in which order, and where it goes round.
//!
//! It resolves no names.

use std::ops::Range;

use super::argument::first_argument;
use super::calls::{Call, Code, Step};
use super::registers::RegisterFile;
use crate::target::{Architecture, Memory, Target};

/// What a function may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The address after the call, or after what loads the address of the function for it.
    pub end: u64,
    /// The word that has the address of the function, if the loader fills it in.
    pub word: Option<u64>,
    /// Where the function begins.
    pub begin: u64,
}

/// The code of a function.
#[derive(Debug)]
pub struct Body {
    begin: u64,
    steps: Vec<(u64, Step)>,
    /// What it may call directly, ascending by the addresses of the calls.
    pub calls: Vec<Callee>,
}

impl Body {
    /// Whether the call that returns to an address is in a loop: what follows it leads to it again. What follows a jump
    /// through a register is not known.
    pub fn is_in_loop(&self, return_address: u64) -> bool {
        self.walk(return_address, return_address, |_| false).1
    }

    /// Whether a way leads from an address to the call that returns to another one, and passes none of these calls.
    pub fn leads(&self, from: u64, return_address: u64, is_barred: impl Fn(u64) -> bool) -> bool {
        self.walk(from, return_address, is_barred).1
    }

    /// What the function may call before it makes the call that returns to an address for the first time. In the code,
    /// it may come later. What follows a jump through a register is not known.
    pub fn calls_before(&self, return_address: u64) -> impl Iterator<Item = Callee> {
        self.calls_between(self.begin, return_address)
    }

    /// What the function may call from an address on, before it comes to the call that returns to another one.
    pub fn calls_between(&self, from: u64, return_address: u64) -> impl Iterator<Item = Callee> {
        let (is_passed, _) = self.walk(from, return_address, |_| false);
        let step_of = |callee: &Callee| self.steps.binary_search_by_key(&callee.end, |&(end, _)| end);
        self.calls.iter().copied().filter(move |callee| step_of(callee).is_ok_and(|at| is_passed[at]))
    }

    /// All that the function may call from an address on; `None` if that is not known, because it calls what a register
    /// says.
    pub fn calls_from(&self, from: u64) -> Option<impl Iterator<Item = Callee>> {
        let (mut is_passed, _) = self.walk(from, u64::MAX, |_| false);
        let mut passed = self.steps.iter().zip(&is_passed).filter(|&(_, &is_passed)| is_passed);
        if passed.any(|((_, step), _)| *step == Step::Switch) {
            is_passed.fill(true);
        }
        let call_at = |end: u64| self.calls.binary_search_by_key(&end, |callee| callee.end).is_ok();
        let is_known = |&(end, step): &(u64, Step)| match step {
            Step::Call(_) => call_at(end),
            Step::Elsewhere => false,
            Step::Load(_) | Step::Jump { .. } | Step::Switch | Step::End => true,
        };
        let mut passed = self.steps.iter().zip(&is_passed).filter(|&(_, &is_passed)| is_passed);
        if !passed.all(|(step, _)| is_known(step)) {
            return None;
        }
        let step_of = |callee: &Callee| self.steps.binary_search_by_key(&callee.end, |&(end, _)| end);
        let is_load = |at: usize| matches!(self.steps[at].1, Step::Load(_));
        let is_passed = move |callee: &Callee| step_of(callee).is_ok_and(|at| is_passed[at] && !is_load(at));
        Some(self.calls.iter().copied().filter(is_passed))
    }

    /// Goes all ways from an address to the call that returns to another one: the steps that it passes, and whether it
    /// comes to that call. No way goes on behind a step that is barred.
    fn walk(&self, from: u64, return_address: u64, is_barred: impl Fn(u64) -> bool) -> (Vec<bool>, bool) {
        let (mut is_passed, mut arrives) = (vec![false; self.steps.len()], false);
        let mut begins = vec![from];
        while let Some(begin) = begins.pop() {
            let mut at = self.steps.partition_point(|&(end, _)| end <= begin);
            while let Some(&(end, step)) = self.steps.get(at) {
                // A load for this very call is a part of it.
                let is_next = self.steps.get(at + 1).is_some_and(|&(end, _)| end == return_address);
                if end == return_address || is_next && matches!(step, Step::Load(_)) {
                    arrives = true;
                    break;
                }
                if std::mem::replace(&mut is_passed[at], true) || is_barred(end) {
                    break;
                }
                match step {
                    Step::Call(_) | Step::Load(_) => {}
                    Step::Jump { to, is_certain } => {
                        begins.extend(Some(to).filter(|&to| to >= self.begin));
                        if is_certain {
                            break;
                        }
                    }
                    Step::Switch | Step::End | Step::Elsewhere => break,
                }
                at += 1;
            }
        }
        (is_passed, arrives)
    }
}

/// Answers questions about the code of a target.
pub struct Flow<'m>(Code<'m>);

impl std::fmt::Debug for Flow<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Flow").finish_non_exhaustive()
    }
}

impl<'m> Flow<'m> {
    /// Prepares to read the code of a target.
    pub fn new(target: &Target, memory: &'m dyn Memory) -> Flow<'m> {
        Flow(Code::new(memory, target.architecture, &target.mappings))
    }

    /// Whether the call that returns to an address calls what a register says, as a closure or a virtual function.
    pub fn is_indirect(&mut self, return_address: u64) -> bool {
        self.0.call_before(return_address, |_, _| None) == Some(Call::Register)
    }

    /// The first argument of the call that returns to an address, in a function with these registers.
    pub fn argument(
        &self,
        function: &Range<u64>,
        return_address: u64,
        registers: &RegisterFile,
    ) -> Option<u64> {
        if self.0.architecture != Architecture::X86_64 {
            return None;
        }
        let code = self.0.piece(function);
        first_argument(&code, function.start, return_address, registers, self.0.memory)
    }

    /// The code of a function.
    pub fn body(&mut self, function: &Range<u64>) -> Body {
        let steps = self.0.steps(function);
        let mut callee = |end: u64, call: Call| {
            if matches!(call, Call::Direct(target) if !self.0.contains(target)) {
                return None;
            }
            self.0.called(call).map(|(begin, word)| Callee { end, word, begin })
        };
        let calls = steps.iter().filter_map(|&(end, step)| match step {
            Step::Call(call) | Step::Load(call) => callee(end, call),
            // Its last call, whose caller is that of the function.
            Step::Jump { to, .. } if !function.contains(&to) => callee(end, Call::Direct(to)),
            Step::Jump { .. } | Step::Switch | Step::End | Step::Elsewhere => None,
        });
        let calls = calls.collect();
        Body { begin: function.start, steps, calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GETS: u64 = 0x9000;
    const HANDLES: u64 = 0xa000;

    fn body(steps: Vec<(u64, Step)>) -> Body {
        let calls = steps.iter().filter_map(|&(end, step)| match step {
            Step::Call(Call::Direct(begin)) => Some(Callee { end, word: None, begin }),
            _ => None,
        });
        let calls = calls.collect();
        Body { begin: 0x1000, steps, calls }
    }

    fn jump(to: u64, is_certain: bool) -> Step {
        Step::Jump { to, is_certain }
    }

    #[test]
    fn a_call_is_in_a_loop_if_a_jump_behind_it_leads_back() {
        let of = body(vec![
            (0x1006, Step::Call(Call::Direct(GETS))),
            (0x1010, Step::Call(Call::Register)),
            (0x1012, jump(0x1008, false)),
            (0x1018, Step::Call(Call::Register)),
            (0x1019, Step::End),
        ]);
        assert_eq!([0x1006, 0x1010, 0x1018].map(|end| of.is_in_loop(end)), [false, true, false]);
    }

    /// `job = get(); job->run()`, with a way at the end that goes back to other code in front of the call.
    #[test]
    fn a_jump_back_that_does_not_lead_to_the_call_makes_no_loop() {
        let of = |back_to: u64| {
            body(vec![
                (0x1004, jump(0x1020, false)),
                (0x1008, Step::End),
                (0x1010, Step::Call(Call::Register)),
                (0x1014, jump(0x1022, false)),
                (0x1018, Step::End),
                (0x1022, jump(0x1008, true)),
                (0x1026, jump(back_to, true)),
            ])
        };
        assert!(!of(0x1004).is_in_loop(0x1010), "it returns there");
        assert!(of(0x100a).is_in_loop(0x1010));
    }

    /// `while (get()) job->run()`, as compilers arrange it: the condition follows the body of the loop.
    #[test]
    fn what_a_function_calls_before_follows_its_jumps() {
        let with = |condition: Call, inside: Call| {
            body(vec![
                (0x1002, jump(0x1010, true)),
                (0x100a, Step::Call(inside)),
                (0x1015, Step::Call(condition)),
                (0x1017, jump(0x1002, false)),
                (0x1018, Step::End),
            ])
        };
        let before =
            |of: &Body, end: u64| of.calls_before(end).map(|callee| callee.begin).collect::<Vec<_>>();
        let closures = with(Call::Direct(GETS), Call::Register);
        assert_eq!(before(&closures, 0x100a), [GETS]);
        let virtual_getter = with(Call::Register, Call::Direct(HANDLES));
        assert_eq!(before(&virtual_getter, 0x1015), [0_u64; 0]);
        // A word of the program says what the getter is.
        let load = Callee { end: 0x1007, word: Some(0x4000), begin: GETS };
        let steps = vec![
            (0x1007, Step::Load(Call::Pointer(0x4000))),
            (0x1009, Step::Call(Call::Register)),
            (0x100e, Step::Call(Call::Direct(HANDLES))),
            (0x1010, jump(0x1000, true)),
        ];
        let of = Body { begin: 0x1000, steps, calls: vec![load] };
        assert_eq!(before(&of, 0x1009), [0_u64; 0]);
    }

    /// `close(); for (;;) { get(); handle(); }`, and after it what another way leads to.
    #[test]
    fn what_a_function_calls_from_an_address_on_is_known_unless_a_register_says_it() {
        let of = |last: Step| {
            body(vec![
                (0x1006, Step::Call(Call::Direct(0x8000))),
                (0x100b, Step::Call(Call::Direct(GETS))),
                (0x1010, Step::Call(Call::Direct(HANDLES))),
                (0x1012, jump(0x1006, true)),
                (0x1014, Step::Call(Call::Register)),
                (0x1018, last),
            ])
        };
        let from = |of: &Body, begin: u64| {
            Some(of.calls_from(begin)?.map(|callee| callee.begin).collect::<Vec<_>>())
        };
        assert_eq!(from(&of(Step::End), 0x100b), Some(vec![GETS, HANDLES]), "it goes round");
        assert_eq!(from(&of(Step::End), 0x1012), None, "it calls what a register says");
        assert_eq!(from(&of(Step::End), 0x1014), Some(vec![]));
        assert_eq!(from(&of(Step::Elsewhere), 0x1014), None, "it jumps to what a register says");
        assert_eq!(from(&of(Step::Switch), 0x1014), None, "it may go anywhere");
    }
}
