//! Equal stacks, counted.

use foldhash::HashMap;
use serde::{Deserialize, Serialize};

use super::Stack;

/// Threads with equal stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub stack: Stack,
    /// Their indices among the target's tasks, ascending.
    pub tasks: Vec<usize>,
}

/// Groups the stacks of a target's tasks. The most frequent stack comes first; of equally frequent ones, that of the
/// first task.
pub fn group(stacks: impl IntoIterator<Item = Stack>) -> Vec<Group> {
    let mut positions: HashMap<Stack, usize> = HashMap::default();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (task, stack) in stacks.into_iter().enumerate() {
        let position = *positions.entry(stack).or_insert_with(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        members[position].push(task);
    }
    let mut groups: Vec<Group> = positions
        .into_iter()
        .map(|(stack, position)| Group { stack, tasks: std::mem::take(&mut members[position]) })
        .collect();
    groups.sort_by_key(|group| (std::cmp::Reverse(group.tasks.len()), group.tasks[0]));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::{End, Frame};

    fn stack(pc: u64) -> Stack {
        let frames = vec![Frame { pc, is_return_address: false }];
        Stack { frames, inferred_from: None, end: End::Complete }
    }

    #[test]
    fn the_most_frequent_stack_comes_first_and_of_equals_that_of_the_first_task() {
        let groups = group([stack(3), stack(1), stack(2), stack(1), stack(2)]);
        let found: Vec<(u64, &[usize])> =
            groups.iter().map(|group| (group.stack.frames[0].pc, &*group.tasks)).collect();
        assert_eq!(found, [(1, &[1, 3][..]), (2, &[2, 4]), (3, &[0])]);
    }
}
