//! Which thread is presumed to have a lock that stores no owner, as those of Rust's standard library.
//!
//! Whoever has a lock releases it, and mostly has its address for that: on its stack, or in the code of a function that
//! it is in, if the lock is a static variable. So if all threads with such traces of the locks that they wait for wait
//! for one another, none of them goes on. Then one of them is presumed to have a lock: the only one that has its
//! address, or the only one of these that waits for a lock itself. Who waits for a lock is not thought to have it.
//!
//! A thread that runs has no known stack pointer: all words of its stack count, also those that an earlier call has
//! left. If its stack is not found, it may have anything.
//!
//! It finds no cycles, and names no holder that may go on.

use std::ops::Range;

use foldhash::{HashMap, HashSet};

use super::construct::Role;
use super::stacks_of::stacks_of;
use super::wait::{FutexWait, Owner, UnknownOwner, WaitKind};
use crate::stacks::Group;
use crate::target::{Architecture, Memory, RunState, Target};

/// No more of a stack is searched.
const STACK_MAX_BYTES: u64 = 256 << 10;
/// No more code of a module is searched.
const CODE_MAX_BYTES: u64 = 64 << 20;
/// Code is read in pieces of this length.
const PIECE_BYTES: u64 = 1 << 20;
/// So many functions may use a lock.
const USES_MAX: usize = 1000;
/// So often are threads left out that depend on one that may go on.
const ROUNDS_MAX: usize = 64;

/// Whether a thread waits for a lock that it wants for itself, and that stores no owner.
pub(crate) fn is_for_unowned_lock(wait: &FutexWait) -> bool {
    wait.kind == WaitKind::Opaque
        && wait.is_exclusive
        && !wait.is_timed
        && wait.owner == Owner::Unknown(UnknownOwner::NotStored)
        && wait.construct.is_some_and(|construct| construct.role == Role::Lock)
}

/// A thread with a trace of a lock. The strongest trace is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Trace {
    /// It waits for a lock or an initialisation itself.
    waits_for_lock: bool,
    /// Its stack has the address. Otherwise the code has it.
    is_on_stack: bool,
}

/// The thread that is presumed to have a lock, by the lock's address. `waits` has the owners that are known otherwise.
/// `code` gives the addresses of the function at an address.
pub(crate) fn holders(
    target: &Target,
    memory: &dyn Memory,
    stacks: &[Group],
    waits: &[Option<FutexWait>],
    code: impl FnMut(u64) -> Option<Range<u64>>,
) -> HashMap<u64, usize> {
    let wanted = waits.iter().flatten().filter(|wait| is_for_unowned_lock(wait));
    let locks: HashSet<u64> = wanted.filter_map(|wait| wait.object).collect();
    // Whoever has the lock must wait too.
    if locks.is_empty() || waits.iter().flatten().count() < 2 {
        return HashMap::default();
    }
    let traces =
        Traces { uses: uses(target, memory, &locks, code), locks, target, memory }.all(stacks, waits);
    let threads: HashMap<u32, usize> =
        target.tasks.iter().enumerate().map(|(at, task)| (task.own_tid, at)).collect();
    // The threads that must go on before this one does. None: it may go on.
    let blockers: Vec<Vec<usize>> = waits
        .iter()
        .map(|wait| match wait.as_ref().filter(|wait| !wait.is_timed) {
            Some(wait) if is_for_unowned_lock(wait) => {
                let of_lock = wait.object.and_then(|object| traces.get(&object));
                of_lock.map(|of| of.iter().map(|&(task, _)| task).collect()).unwrap_or_default()
            }
            Some(FutexWait { owner: Owner::Tid(tid), .. }) => threads.get(tid).into_iter().copied().collect(),
            _ => Vec::new(),
        })
        .collect();
    let mut is_stuck: Vec<bool> = blockers.iter().map(|of| !of.is_empty()).collect();
    for round in 0.. {
        let goes_on = |&task: &usize| is_stuck[task] && blockers[task].iter().any(|&of| !is_stuck[of]);
        let left_out: Vec<usize> = (0..is_stuck.len()).filter(goes_on).collect();
        if left_out.is_empty() {
            break;
        }
        if round == ROUNDS_MAX {
            return HashMap::default();
        }
        left_out.into_iter().for_each(|task| is_stuck[task] = false);
    }
    let of_stuck = waits.iter().zip(&is_stuck).filter(|&(_, &is_stuck)| is_stuck);
    let awaited: HashSet<u64> = of_stuck.filter_map(|(wait, _)| wait.as_ref()?.object).collect();
    let only = |of: &[(usize, Trace)]| {
        let strongest = of.iter().map(|&(_, trace)| trace).max()?;
        let mut tasks = of.iter().filter(|&&(_, trace)| trace == strongest);
        tasks.next().map(|&(task, _)| task).filter(|_| tasks.next().is_none())
    };
    let stuck = traces.into_iter().filter(|(lock, _)| awaited.contains(lock));
    stuck.filter_map(|(lock, of)| Some((lock, only(&of)?))).collect()
}

/// Searches for traces of these locks.
struct Traces<'a> {
    locks: HashSet<u64>,
    /// Where functions use a lock: from there on to the end of the function, and the lock.
    uses: Vec<(Range<u64>, u64)>,
    target: &'a Target,
    memory: &'a dyn Memory,
}

impl Traces<'_> {
    /// The threads with traces of each lock, but for those that wait for it.
    fn all(&self, stacks: &[Group], waits: &[Option<FutexWait>]) -> HashMap<u64, Vec<(usize, Trace)>> {
        let runs = |at: &usize| self.target.tasks[*at].registers.is_none();
        let running: Vec<u32> =
            (0..self.target.tasks.len()).filter(runs).map(|at| self.target.tasks[at].own_tid).collect();
        let of_running = match running.is_empty() {
            true => Default::default(),
            false => stacks_of(self.target, self.memory, &running),
        };
        let mut traces: HashMap<u64, Vec<(usize, Trace)>> = HashMap::default();
        for group in stacks {
            let called: HashSet<u64> =
                group.stack.frames.iter().flat_map(|frame| self.used_in(frame.lookup())).collect();
            for &task in &group.tasks {
                let of = &self.target.tasks[task];
                if matches!(of.state, RunState::Zombie | RunState::Dead) {
                    continue;
                }
                let (mut on_stack, mut in_code) = (HashSet::default(), called.clone());
                match of.registers {
                    Some(registers) => {
                        let end = self.target.mapping_at(registers.sp).map_or(registers.sp, |at| at.end);
                        on_stack =
                            self.words(registers.sp..end).filter(|word| self.locks.contains(word)).collect();
                    }
                    None => match of_running.get(&of.own_tid) {
                        Some(stack) => {
                            for word in self.words(stack.clone()) {
                                on_stack.extend(self.locks.get(&word));
                                in_code.extend(self.used_in(word));
                            }
                        }
                        None => in_code.extend(&self.locks),
                    },
                }
                let own = waits[task].as_ref();
                let waits_for_lock = own.is_some_and(|wait| wait.kind != WaitKind::Join);
                for &lock in
                    on_stack.union(&in_code).filter(|&&lock| own.and_then(|wait| wait.object) != Some(lock))
                {
                    let trace = Trace { waits_for_lock, is_on_stack: on_stack.contains(&lock) };
                    traces.entry(lock).or_default().push((task, trace));
                }
            }
        }
        traces
    }

    /// The locks that the function at an address has used before that address.
    fn used_in(&self, address: u64) -> impl Iterator<Item = u64> {
        self.uses.iter().filter(move |(code, _)| code.contains(&address)).map(|&(_, lock)| lock)
    }

    /// The words of a stack. If it is too long, the outermost ones.
    fn words(&self, stack: Range<u64>) -> impl Iterator<Item = u64> + use<> {
        let begin = stack.start.max(stack.end.saturating_sub(STACK_MAX_BYTES)).next_multiple_of(8);
        let mut bytes = vec![0; usize::try_from(stack.end.saturating_sub(begin)).unwrap_or(0)];
        let read = self.memory.read_some(begin, &mut bytes);
        bytes.truncate(read / 8 * 8);
        (0..bytes.len() / 8)
            .map(move |at| u64::from_le_bytes(bytes[8 * at..][..8].try_into().unwrap_or_default()))
    }
}

/// Where code uses locks that are static variables of its module: from there on to the end of the function. An
/// instruction of x86-64 has the distance from its end to the variable, and mostly ends with that.
fn uses(
    target: &Target,
    memory: &dyn Memory,
    locks: &HashSet<u64>,
    mut code: impl FnMut(u64) -> Option<Range<u64>>,
) -> Vec<(Range<u64>, u64)> {
    let mut uses = Vec::new();
    if target.architecture != Architecture::X86_64 {
        return uses;
    }
    for module in &target.modules {
        let own: Vec<u64> = locks.iter().copied().filter(|&lock| module.relative(lock).is_some()).collect();
        let range =
            module.code.start.wrapping_add(module.load_bias)..module.code.end.wrapping_add(module.load_bias);
        if own.is_empty() || range.is_empty() || range.end - range.start > CODE_MAX_BYTES {
            continue;
        }
        let mut begin = range.start;
        while begin < range.end {
            // The last distance of a piece may be cut: the next one begins with it.
            let mut bytes = vec![0; usize::try_from(PIECE_BYTES.min(range.end - begin)).unwrap_or(0)];
            let read = memory.read_some(begin, &mut bytes);
            for (at, distance) in bytes[..read].windows(4).enumerate() {
                let distance = i32::from_le_bytes(distance.try_into().unwrap_or_default());
                let end = begin + at as u64 + 4;
                let used = end.wrapping_add_signed(distance.into());
                if own.contains(&used)
                    && let Some(function) = code(end - 1)
                {
                    uses.push((end..function.end.max(end), used));
                }
            }
            if uses.len() > USES_MAX || read < 8 {
                break;
            }
            begin += read as u64 - if begin + (read as u64) < range.end { 3 } else { 0 };
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Pieces, mapping, target};
    use super::*;
    use crate::stacks::{End, Frame, Stack};
    use crate::target::Registers;
    use crate::waits::{Basis, Construct};

    const ONE: u64 = 0x7000_0010;
    const OTHER: u64 = 0x7000_0040;

    fn wait(object: u64) -> FutexWait {
        FutexWait {
            kind: WaitKind::Opaque,
            object: Some(object),
            futex: object,
            owner: Owner::Unknown(UnknownOwner::NotStored),
            is_exclusive: true,
            is_timed: false,
            is_private: true,
            basis: Basis::Stack,
            construct: Some(Construct { name: "std::sync::Mutex", role: Role::Lock }),
            presumption: None,
        }
    }

    /// The presumed holders, sorted, if threads wait so and have these words on their stacks. A thread without words
    /// runs, and its stack is not found.
    fn presumed(threads: &[(Option<FutexWait>, &[u64])]) -> Vec<(u64, usize)> {
        let tids: Vec<u32> = (501..).take(threads.len()).collect();
        let mut target = target(&tids, [ONE, 0x80, 2, 0]);
        let (mut memory, mut stacks) = (Pieces::default(), Vec::new());
        for (task, (_, words)) in threads.iter().enumerate() {
            let sp = 0x1000 * (task as u64 + 1);
            target.tasks[task].registers =
                (!words.is_empty()).then_some(Registers { sp, ..Registers::default() });
            let mut of_stack = mapping("[stack]");
            (of_stack.begin, of_stack.end) = (sp, sp + 0x1000);
            target.mappings.push(of_stack);
            let halves: Vec<u32> =
                words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
            memory.put(sp, &halves);
            let frames = vec![Frame { pc: 0x40_0000 + task as u64, is_return_address: false }];
            stacks.push(Group {
                stack: Stack { frames, inferred_from: None, end: End::Complete },
                tasks: vec![task],
            });
        }
        let waits: Vec<Option<FutexWait>> = threads.iter().map(|(wait, _)| wait.clone()).collect();
        let mut found: Vec<(u64, usize)> =
            holders(&target, &memory, &stacks, &waits, |_| None).into_iter().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn two_threads_that_have_the_addresses_of_the_locks_of_one_another_are_presumed_to_have_them() {
        let stuck = [(Some(wait(OTHER)), &[1, ONE, OTHER][..]), (Some(wait(ONE)), &[OTHER, ONE])];
        let ticks = (None, &[1, 2, 3][..]);
        let all = |more: (Option<FutexWait>, &'static [u64])| {
            presumed(&[stuck[0].clone(), stuck[1].clone(), ticks.clone(), more])
        };
        let both = [(ONE, 0), (OTHER, 1)];
        assert_eq!(all((None, &[4])), both);
        assert_eq!(all((None, &[4, ONE])), [], "it may go on, and release the lock");
        assert_eq!(all((None, &[])), [], "it runs, and may have anything");
        let joins = FutexWait { kind: WaitKind::Join, owner: Owner::Tid(501), construct: None, ..wait(8) };
        assert_eq!(all((Some(joins.clone()), &[ONE])), both, "it waits for one of them, and for no lock");
        let elsewhere = FutexWait { owner: Owner::Tid(503), ..joins };
        assert_eq!(all((Some(elsewhere), &[ONE])), [], "it waits for one that goes on");
        assert_eq!(all((Some(wait(OTHER)), &[ONE])), [(OTHER, 1)], "two are alike");
        let timed = FutexWait { is_timed: true, ..wait(OTHER) };
        assert_eq!(presumed(&[(Some(timed), &[ONE]), stuck[1].clone()]), []);
        let reads = FutexWait { is_exclusive: false, ..wait(OTHER) };
        assert_eq!(presumed(&[(Some(reads), &[ONE]), stuck[1].clone()]), []);
    }

    #[test]
    fn a_thread_that_waits_for_a_lock_is_not_presumed_to_have_it() {
        assert_eq!(presumed(&[(Some(wait(ONE)), &[ONE]), (Some(wait(ONE)), &[ONE])]), []);
    }
}
