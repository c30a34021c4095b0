//! The stacks of all threads of a target, unwound on several processors.

use read_rip_symbols::Options;

use super::{Stack, Unwinder};
use crate::shares::in_shares;
use crate::target::{Memory, Target};

/// The stacks of a target's tasks, in their order. `options` say how files are found.
pub fn all(target: &Target, memory: &(dyn Memory + Sync), options: &Options) -> Vec<Stack> {
    in_shares(&target.tasks, |tasks| {
        let mut unwinder = Unwinder::new(target, memory, options.clone());
        tasks.iter().map(|task| unwinder.stack(task.registers.as_ref())).collect()
    })
}
