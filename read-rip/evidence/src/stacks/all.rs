//! The stacks of all threads of a target, unwound on several processors.

use read_rip_symbols::Options;

use super::{Stack, Unwinder};
use crate::shares::in_shares;
use crate::target::{Memory, Target, Task};

/// The stacks of a target's tasks, in their order; without frames if its memory is hidden. `options` say how files are
/// found.
pub fn all(target: &Target, memory: &(dyn Memory + Sync), options: &Options) -> Vec<Stack> {
    in_shares(&target.tasks, |tasks| {
        let mut unwinder = Unwinder::new(target, memory, options.clone());
        let registers = |task: &Task| task.registers.filter(|_| target.hidden.is_none());
        tasks.iter().map(|task| unwinder.stack(registers(task).as_ref())).collect()
    })
}
