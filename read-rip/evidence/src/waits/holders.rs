//! Which thread is presumed to have a lock that stores no owner, as those of Rust's standard library.
//!
//! Whoever has a lock releases it, and mostly has its address for that on its stack. A static variable's address is in
//! the code instead: then the thread is in a function that uses it. So if all threads with such traces of the locks
//! that they wait for wait for one another, none of them goes on. Then one of them is presumed to have a lock: the only
//! one that has its address, or the only one of these that waits for a lock itself. Who waits for a lock is not thought
//! to have it.
//!
//! What is not known takes presumptions away:
//!
//! * A thread may have the lock if it has the address of something before the lock, as of a structure that it is in, or
//!   of what it protects. So may a thread in a function that uses the lock later, as in a loop.
//! * A thread that runs has no known stack pointer: all words of its stack count, also those that an earlier call has
//!   left. So do all words as return addresses, if the frames of a thread are not all known.
//! * A thread whose stack is not found, or not read to its end, may have any lock.
//! * If not all uses of a static variable are known, nobody is presumed to have it.
//!
//! It finds no cycles, and names no holder that may go on.

use std::ops::Range;

use foldhash::{HashMap, HashSet};
use memchr::memmem::Finder;
use read_rip_files::Module;

use super::runners::is_for_lock;
use super::stacks_of::stacks_of;
use super::wait::{FutexWait, Owner, WaitKind};
use super::words::{stack_words, words};
use crate::stacks::Stack;
use crate::target::{Architecture, Memory, RunState, Target};

/// No more of the stacks of all threads that run is read.
const RUNNING_MAX_BYTES: u64 = 64 << 20;
/// No more code of a module is searched.
const CODE_MAX_BYTES: u64 = 64 << 20;
/// Code is read in pieces of this length: the distances from one to a variable have two upper halves.
const PIECE_BYTES: u64 = 1 << 16;
/// A lock may be in a structure, so far from the beginning.
const NEAR_BYTES: u64 = 4096;
/// What a lock protects begins no farther from it, if the lock has it inside.
const DATA_MAX_BYTES: u64 = 16;
/// So many functions of a module may use locks.
const USES_MAX: usize = 1000;
/// So many locks are searched for.
const LOCKS_MAX: usize = 1000;
/// So many threads may have locks, each counted once for each lock.
const USERS_MAX: usize = 1 << 20;
/// So often are threads left out that depend on one that may go on.
const ROUNDS_MAX: usize = 64;

/// The lock for which a thread waits, if it wants the lock for itself and the lock stores no owner.
pub(crate) fn unowned_lock(wait: &FutexWait) -> Option<u64> {
    wait.object.filter(|_| is_for_lock(wait) && wait.is_exclusive && !wait.is_timed)
}

/// A thread with a trace of a lock. The strongest trace is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Trace {
    /// It waits for a lock or an initialisation itself.
    waits_for_lock: bool,
    /// Its stack has the address. Otherwise the code has it.
    is_on_stack: bool,
}

/// Threads that may have a lock, each with its trace. Without one, it may have the lock and is not presumed to.
type Users = Vec<(usize, Option<Trace>)>;

/// What must happen before a thread goes on.
#[derive(Clone, Copy)]
enum Blocker {
    /// A user of this lock must go on.
    Lock(u64),
    /// This thread must.
    Task(usize),
}

/// The thread that is presumed to have a lock, by the lock's address. `waits` has the owners that are known otherwise.
/// `stack` gives the stack of a thread as it is now, and `symbol` the addresses of the function or the variable at an
/// address.
pub(crate) fn holders<'a>(
    target: &Target,
    memory: &dyn Memory,
    stack: impl Fn(usize) -> Option<&'a Stack>,
    waits: &[Option<FutexWait>],
    symbol: impl FnMut(u64) -> Option<Range<u64>>,
) -> HashMap<u64, usize> {
    let users = users(target, memory, stack, waits, symbol).unwrap_or_default();
    if users.is_empty() {
        return HashMap::default();
    }
    let threads: HashMap<u32, usize> =
        target.tasks.iter().enumerate().map(|(at, task)| (task.own_tid, at)).collect();
    let blocker = |wait: &FutexWait| match wait.owner {
        _ if wait.is_timed => None,
        Owner::Tid(tid) => threads.get(&tid).map(|&task| Blocker::Task(task)),
        Owner::Unknown(_) => unowned_lock(wait).map(Blocker::Lock),
        _ => None,
    };
    let blockers: Vec<Option<Blocker>> = waits.iter().map(|wait| blocker(wait.as_ref()?)).collect();
    let mut is_stuck: Vec<bool> = blockers.iter().map(Option::is_some).collect();
    for round in 0.. {
        let kept = users.iter().filter(|(_, of)| of.iter().all(|&(task, _)| is_stuck[task]));
        let kept: HashSet<u64> = kept.map(|(&lock, _)| lock).collect();
        let goes_on = |&task: &usize| {
            is_stuck[task]
                && match blockers[task] {
                    Some(Blocker::Lock(lock)) => !kept.contains(&lock),
                    Some(Blocker::Task(other)) => !is_stuck[other],
                    None => true,
                }
        };
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
    let only = |of: &Users| {
        let strongest = of.iter().filter_map(|&(_, trace)| trace).max()?;
        let mut tasks = of.iter().filter(|&&(_, trace)| trace == Some(strongest));
        tasks.next().map(|&(task, _)| task).filter(|_| tasks.next().is_none())
    };
    let stuck = users.iter().filter(|(lock, _)| awaited.contains(lock));
    stuck.filter_map(|(&lock, of)| Some((lock, only(of)?))).collect()
}

/// A lock that is searched for.
struct Wanted {
    lock: u64,
    /// Who has one of these addresses may have the lock.
    near: Range<u64>,
    /// Where functions use it, if it is a static variable.
    uses: Vec<Use>,
}

/// A use of a lock in code.
struct Use {
    /// Where calls in the function return to.
    function: Range<u64>,
    /// Where those return to that come after the use of the lock's own address; empty if another address is used.
    after: Range<u64>,
}

/// The threads that may have each lock, but for those that wait for it. `None` if they are too many.
fn users<'a>(
    target: &Target,
    memory: &dyn Memory,
    stack: impl Fn(usize) -> Option<&'a Stack>,
    waits: &[Option<FutexWait>],
    symbol: impl FnMut(u64) -> Option<Range<u64>>,
) -> Option<HashMap<u64, Users>> {
    let mut users: HashMap<u64, Users> = HashMap::default();
    let mut locks: Vec<u64> = waits.iter().flatten().filter_map(unowned_lock).collect();
    locks.sort_unstable();
    locks.dedup();
    // Whoever has the lock must wait too.
    if locks.is_empty() || locks.len() > LOCKS_MAX || waits.iter().flatten().count() < 2 {
        return None;
    }
    let wanted = wanted(target, memory, &locks, symbol);
    if wanted.is_empty() {
        return None;
    }
    let runs = |at: &usize| target.tasks[*at].registers.is_none();
    let running: Vec<u32> = (0..target.tasks.len()).filter(runs).map(|at| target.tasks[at].own_tid).collect();
    let of_running = match running.is_empty() {
        true => Default::default(),
        false => stacks_of(target, memory, &running),
    };
    let (mut left, mut count) = (RUNNING_MAX_BYTES, 0);
    for (at, task) in target.tasks.iter().enumerate() {
        if matches!(task.state, RunState::Zombie | RunState::Dead) {
            continue;
        }
        let (mut on_stack, is_whole) = match of_running.get(&task.own_tid) {
            _ if task.registers.is_some() => stack_words(target, memory, at),
            Some(stack) if stack.end.saturating_sub(stack.start) <= left => {
                left -= stack.end.saturating_sub(stack.start);
                words(memory, stack.clone(), RUNNING_MAX_BYTES)
            }
            _ => (Vec::new(), false),
        };
        on_stack.extend(task.registers.and_then(|registers| registers.all).into_iter().flatten());
        on_stack.sort_unstable();
        on_stack.dedup();
        let stack = stack(at);
        let frames = stack.map_or(&[][..], |stack| &stack.frames);
        let mut calls: Vec<u64> = frames.iter().map(|frame| frame.lookup().wrapping_add(1)).collect();
        calls.sort_unstable();
        let knows_calls = stack.is_some_and(|stack| stack.is_complete() && stack.inferred_from.is_none());
        let own = waits[at].as_ref();
        let waits_for_lock = own.is_some_and(|wait| wait.kind != WaitKind::Join);
        for Wanted { lock, near, uses } in &wanted {
            if own.and_then(|wait| wait.object) == Some(*lock) {
                continue;
            }
            let is_on_stack = is_any_in(&on_stack, *lock..*lock + 1);
            let has_used = |of: &Use| is_any_in(&calls, of.after.clone());
            let is_in = |of: &Use| {
                is_any_in(&calls, of.function.clone())
                    || !knows_calls && is_any_in(&on_stack, of.function.clone())
            };
            let trace = match is_on_stack || uses.iter().any(has_used) {
                true => Some(Trace { waits_for_lock, is_on_stack }),
                false if !is_whole || is_any_in(&on_stack, near.clone()) || uses.iter().any(is_in) => None,
                false => continue,
            };
            users.entry(*lock).or_default().push((at, trace));
            count += 1;
        }
        if count > USERS_MAX {
            return None;
        }
    }
    Some(users)
}

/// Whether one of these numbers, which ascend, is in a range.
fn is_any_in(ascending: &[u64], range: Range<u64>) -> bool {
    let first = ascending.partition_point(|&number| number < range.start);
    ascending.get(first).is_some_and(|number| range.contains(number))
}

/// The locks of these whose users can be found. They ascend.
fn wanted(
    target: &Target,
    memory: &dyn Memory,
    locks: &[u64],
    mut symbol: impl FnMut(u64) -> Option<Range<u64>>,
) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    let mut of_modules: Vec<(&Module, Vec<Wanted>)> = Vec::new();
    for &lock in locks {
        let Some(module) = target.modules.iter().find(|module| module.relative(lock).is_some()) else {
            let near = lock.saturating_sub(NEAR_BYTES)..lock.saturating_add(DATA_MAX_BYTES + 1);
            wanted.push(Wanted { lock, near, uses: Vec::new() });
            continue;
        };
        let Some(near) = symbol(lock) else { continue };
        let own = Wanted { lock, near, uses: Vec::new() };
        match of_modules.iter_mut().find(|(known, _)| std::ptr::eq(*known, module)) {
            Some((_, of)) => of.push(own),
            None => of_modules.push((module, vec![own])),
        }
    }
    for (module, mut own) in of_modules {
        if target.architecture == Architecture::X86_64
            && find_uses(memory, module, &mut own, &mut symbol).is_some()
        {
            wanted.append(&mut own);
        }
    }
    wanted
}

/// Finds where the code of a module uses static variables of it. An instruction of x86-64 has the distance from its end
/// to the variable, and mostly ends with that. `None` if not all uses are found.
fn find_uses(
    memory: &dyn Memory,
    module: &Module,
    own: &mut [Wanted],
    symbol: &mut impl FnMut(u64) -> Option<Range<u64>>,
) -> Option<()> {
    let [mut begin, end] = [module.code.start, module.code.end].map(|at| at.wrapping_add(module.load_bias));
    if begin >= end || end - begin > CODE_MAX_BYTES {
        return None;
    }
    let first = own.iter().map(|wanted| wanted.near.start).min()?;
    let all = first..own.iter().map(|wanted| wanted.near.end).max()?;
    let (mut bytes, mut count) = (Vec::new(), 0);
    while begin < end {
        bytes.resize(usize::try_from(PIECE_BYTES.min(end - begin)).ok()?, 0);
        memory.read(begin, &mut bytes).ok()?;
        for (after, used) in distances(&bytes, begin, &all) {
            // Variables are apart from one another.
            let first = own.partition_point(|wanted| wanted.near.end <= used);
            for wanted in own[first..].iter_mut().take_while(|wanted| wanted.near.start <= used) {
                let function = symbol(after - 1)?;
                count += 1;
                if count > USES_MAX {
                    return None;
                }
                let last = function.end.checked_add(1)?;
                let first = if used == wanted.lock { after } else { last };
                wanted.uses.push(Use { function: function.start + 1..last, after: first..last });
            }
        }
        // The last distance of a piece may be cut: the next one begins with it.
        let next = begin + bytes.len() as u64;
        begin = if next < end { next - 3 } else { end };
    }
    Some(())
}

/// The distances in code that lead into a range: where each ends, and where it leads. Few bytes are looked at: those
/// with the upper half of such a distance.
fn distances(code: &[u8], begin: u64, range: &Range<u64>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let upper_halves = code.get(2..).unwrap_or_default();
    let upper_half = |from: u64, to: u64| (i128::from(to) - i128::from(from)) >> 16;
    let least = upper_half(begin + code.len() as u64, range.start).max(i16::MIN.into());
    let greatest = upper_half(begin, range.end).min(i16::MAX.into());
    for half in least..=greatest {
        let half = (half as i16).to_le_bytes();
        let finder = Finder::new(&half);
        let mut from = 0;
        while let Some(at) = finder.find(&upper_halves[from..]) {
            let at = from + at;
            // Of three equal bytes, each two may be one.
            from = at + 1;
            let distance = i32::from_le_bytes([code[at], code[at + 1], half[0], half[1]]);
            let after = begin + at as u64 + 4;
            let leads_to = after.wrapping_add_signed(distance.into());
            if range.contains(&leads_to) {
                found.push((after, leads_to));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Pieces, mapping, target};
    use super::super::words::STACK_MAX_BYTES;
    use super::*;
    use crate::stacks::{Cut, End, Frame, Stack};
    use crate::target::Registers;
    use crate::waits::{Basis, Construct, Role, UnknownOwner};

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

    /// A process, and what its threads wait for.
    struct Scene {
        target: Target,
        memory: Pieces,
        stacks: Vec<Stack>,
        waits: Vec<Option<FutexWait>>,
        /// The addresses of functions and variables.
        symbols: Vec<Range<u64>>,
    }

    /// How long the stack of each thread is.
    const STACK_BYTES: u64 = 0x1000;

    /// Where the stack pointer of a thread is.
    fn sp(task: usize) -> u64 {
        0x100_0000 * (task as u64 + 1)
    }

    impl Scene {
        /// Threads that wait so and have these words on their stacks. One without words runs, and its stack is not
        /// found.
        fn of(threads: &[(Option<FutexWait>, &[u64])]) -> Scene {
            let tids: Vec<u32> = (501..).take(threads.len()).collect();
            let mut scene = Scene {
                target: target(&tids, [ONE, 0x80, 2, 0]),
                memory: Pieces::default(),
                stacks: Vec::new(),
                waits: threads.iter().map(|(wait, _)| wait.clone()).collect(),
                symbols: Vec::new(),
            };
            for (task, (_, words)) in threads.iter().enumerate() {
                scene.target.tasks[task].registers =
                    (!words.is_empty()).then_some(Registers { sp: sp(task), ..Registers::default() });
                let mut of_stack = mapping("[stack]");
                (of_stack.begin, of_stack.end) = (sp(task), sp(task) + STACK_BYTES);
                scene.target.mappings.push(of_stack);
                scene.put(sp(task), words, STACK_BYTES);
                let frames = vec![Frame { pc: FUNCTION.start - 8, is_return_address: false }];
                scene.stacks.push(Stack { frames, inferred_from: None, end: End::Complete });
            }
            scene
        }

        /// Puts words at an address. Zeros follow up to that length.
        fn put(&mut self, address: u64, words: &[u64], len_bytes: u64) {
            let halves = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]);
            let halves: Vec<u32> = halves.chain(std::iter::repeat(0)).take(len_bytes as usize / 4).collect();
            self.memory.put(address, &halves);
        }

        /// A module with both locks, whose only function uses them at these distances from its beginning.
        fn with_module(mut self, uses: &[(usize, u64)]) -> Scene {
            self.target.modules.push(Module {
                begin: FUNCTION.start,
                end: 0x8000_0000,
                code: FUNCTION,
                ..Module::default()
            });
            let mut code = vec![0x90; (FUNCTION.end - FUNCTION.start) as usize];
            for &(at, lock) in uses {
                let distance = lock.wrapping_sub(FUNCTION.start + at as u64 + 4) as u32;
                code[at..at + 4].copy_from_slice(&distance.to_le_bytes());
            }
            self.memory.0.insert(FUNCTION.start, code);
            self.symbols = vec![FUNCTION, ONE..ONE + 8, OTHER..OTHER + 8];
            self
        }

        /// The same with this change.
        fn but(mut self, change: impl FnOnce(&mut Scene)) -> Scene {
            change(&mut self);
            self
        }

        /// The presumed holders, sorted.
        fn presumed(&self) -> Vec<(u64, usize)> {
            let symbol = |address| self.symbols.iter().find(|range| range.contains(&address)).cloned();
            let found =
                holders(&self.target, &self.memory, |task| self.stacks.get(task), &self.waits, symbol);
            let mut found: Vec<(u64, usize)> = found.into_iter().collect();
            found.sort_unstable();
            found
        }
    }

    const FUNCTION: Range<u64> = 0x6f00_0000..0x6f00_1000;

    fn presumed(threads: &[(Option<FutexWait>, &[u64])]) -> Vec<(u64, usize)> {
        Scene::of(threads).presumed()
    }

    /// Two threads that wait for locks of one another, and one more, which does not wait, with this word on its stack.
    fn stuck_and(word: u64) -> Scene {
        Scene::of(&[(Some(wait(OTHER)), &[ONE]), (Some(wait(ONE)), &[OTHER]), (None, &[word])])
    }

    const BOTH: [(u64, usize); 2] = [(ONE, 0), (OTHER, 1)];

    #[test]
    fn who_has_the_address_of_what_a_lock_may_be_part_of_may_have_the_lock() {
        assert_eq!(stuck_and(OTHER + DATA_MAX_BYTES + 8).presumed(), BOTH);
        for near in [ONE - 8, OTHER - NEAR_BYTES, OTHER + 8] {
            assert_eq!(stuck_and(near).presumed(), [], "{near:#x}");
        }
        let reads = [(Some(wait(OTHER)), &[ONE - 8][..]), (Some(wait(ONE)), &[OTHER]), (None, &[1])];
        assert_eq!(presumed(&reads), [(OTHER, 1)], "and is not presumed to have it");
    }

    #[test]
    fn a_thread_whose_stack_is_not_known_to_its_end_may_have_any_lock() {
        let longer = |scene: &mut Scene, by: u64| scene.target.mappings[2].end += by;
        assert_eq!(stuck_and(1).but(|scene| longer(scene, 0x10)).presumed(), [], "a part cannot be read");
        let deep = |len_bytes: u64, at: u64| {
            stuck_and(1).but(|scene| {
                longer(scene, len_bytes - STACK_BYTES);
                let mut words = vec![0; (at / 8) as usize];
                words.push(ONE);
                scene.put(sp(2), &words, len_bytes);
            })
        };
        assert_eq!(deep(STACK_MAX_BYTES, 8).presumed(), [], "it is among the newest words");
        assert_eq!(deep(STACK_MAX_BYTES + 0x100, 8).presumed(), [], "there is more");
        // The stack of the thread with the greatest addresses ends its mapping, and that of the other one is before it.
        let merged = |words: &[u64]| {
            stuck_and(1).but(|scene| {
                scene.target.tasks[2].registers.as_mut().unwrap().sp = sp(0) - STACK_BYTES;
                scene.target.mappings[0].begin -= STACK_BYTES;
                let words: Vec<u64> = words
                    .iter()
                    .copied()
                    .chain(std::iter::repeat(0))
                    .take(STACK_BYTES as usize / 8)
                    .collect();
                scene.put(sp(0) - STACK_BYTES, &[&words[..], &[ONE]].concat(), 2 * STACK_BYTES);
            })
        };
        assert_eq!(merged(&[1]).presumed(), BOTH, "the words of the other stack are not its own");
        assert_eq!(merged(&[OTHER]).presumed(), []);
    }

    #[test]
    fn the_functions_of_a_thread_may_have_static_locks() {
        let waits = || Scene::of(&[(Some(wait(OTHER)), &[1]), (Some(wait(ONE)), &[OTHER]), (None, &[1])]);
        let within = |scene: &mut Scene, task: usize, at: u64| {
            scene.stacks[task].frames[0].pc = FUNCTION.start + at;
        };
        let scene = || waits().with_module(&[(0x100, ONE)]).but(|scene| within(scene, 0, 0x200));
        assert_eq!(scene().presumed(), BOTH);
        assert_eq!(scene().but(|scene| within(scene, 0, 0x80)).presumed(), [(OTHER, 1)], "before the use");
        assert_eq!(scene().but(|scene| within(scene, 2, 0x80)).presumed(), [], "as in a loop");
        let data = || waits().with_module(&[(0x100, ONE + 4)]);
        assert_eq!(data().but(|scene| within(scene, 0, 0x200)).presumed(), [(OTHER, 1)], "a use of the data");
        assert_eq!(data().but(|scene| within(scene, 2, 0x200)).presumed(), []);
        let cut = |scene: &mut Scene| {
            scene.put(sp(2), &[FUNCTION.start + 0x300], STACK_BYTES);
            scene.stacks[2].end = End::Cut(Cut::NoTable);
        };
        assert_eq!(scene().but(cut).presumed(), [], "a caller that is not known");
    }

    #[test]
    fn each_distance_in_code_that_leads_to_a_variable_is_found() {
        let begin = FUNCTION.start;
        // Zeros, and bytes of small distances, in both directions.
        let mut seed = 1_u32;
        let mut byte = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            [0, 0, 0, 1, 0xff, 0xff, 0xff, 0x10][(seed >> 29) as usize]
        };
        let code: Vec<u8> = (0..0x8000).map(|_| byte()).collect();
        let end = begin + code.len() as u64;
        for range in
            [end..end + 0x40, begin - 0x1_0000..begin, begin + 0x100..begin + 0x140, begin - 0x20_0000..end]
        {
            let each = code.windows(4).enumerate().map(|(at, distance)| {
                let after = begin + at as u64 + 4;
                (after, after.wrapping_add_signed(i32::from_le_bytes(distance.try_into().unwrap()).into()))
            });
            let wanted: Vec<(u64, u64)> = each.filter(|(_, leads_to)| range.contains(leads_to)).collect();
            let mut found = distances(&code, begin, &range);
            found.sort_unstable();
            assert!(wanted.len() > 3, "{range:x?}");
            assert_eq!(found, wanted, "{range:x?}");
        }
        assert_eq!(distances(&code[..3], begin, &(0..u64::MAX)), []);
    }

    #[test]
    fn if_not_all_uses_of_a_static_lock_are_known_nobody_is_presumed_to_have_it() {
        let scene = || stuck_and(1).with_module(&[]);
        assert_eq!(scene().presumed(), BOTH);
        assert_eq!(scene().but(|scene| scene.target.architecture = Architecture::Aarch64).presumed(), []);
        let long = |scene: &mut Scene| scene.target.modules[0].code.end += CODE_MAX_BYTES;
        assert_eq!(scene().but(long).presumed(), []);
        let longer = |scene: &mut Scene| scene.target.modules[0].code.end += 1;
        assert_eq!(scene().but(longer).presumed(), [], "code that cannot be read");
        let stripped = |scene: &mut Scene| scene.symbols.clear();
        assert_eq!(stuck_and(1).with_module(&[(0x100, ONE)]).but(stripped).presumed(), []);
        let many: Vec<(usize, u64)> = (0..=USES_MAX).map(|at| (4 * at, ONE)).collect();
        assert_eq!(stuck_and(1).with_module(&many).presumed(), []);
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
    fn uses_are_found_where_pieces_of_code_meet() {
        let scene = Scene::of(&[(Some(wait(OTHER)), &[1]), (Some(wait(ONE)), &[OTHER])]).with_module(&[]);
        let (begin, end) = (FUNCTION.start, FUNCTION.start + PIECE_BYTES + 0x100);
        for after in [begin + 4, end - 0x100, end - 0xff, end - 0xfd, end - 0xfc, end] {
            let scene = Scene::of(&[]).but(|empty| {
                (empty.target, empty.waits) = (scene.target.clone(), scene.waits.clone());
                empty.target.modules[0].code = begin..end;
                empty.symbols = vec![begin..end, ONE..ONE + 8, OTHER..OTHER + 8];
                let mut code = vec![0x90; (end - begin) as usize];
                let at = (after - begin) as usize;
                code[at - 4..at].copy_from_slice(&(ONE.wrapping_sub(after) as u32).to_le_bytes());
                empty.memory.0.insert(begin, code);
            });
            let symbol = |at| scene.symbols.iter().find(|range| range.contains(&at)).cloned();
            let found = wanted(&scene.target, &scene.memory, &[ONE, OTHER], symbol);
            let ends: Vec<Vec<u64>> =
                found.iter().map(|of| of.uses.iter().map(|of| of.after.start).collect()).collect();
            assert_eq!(ends, [vec![after], vec![]], "{after:#x}");
        }
    }

    #[test]
    fn many_threads_that_wait_for_the_locks_of_one_another_take_little() {
        let stuck = [(Some(wait(OTHER)), &[ONE, OTHER][..]), (Some(wait(ONE)), &[ONE, OTHER])];
        let threads: Vec<_> = (0..1000).map(|at| stuck[at % 2].clone()).collect();
        assert_eq!(presumed(&threads), [], "each may have one");
    }

    #[test]
    fn a_thread_that_waits_for_a_lock_is_not_presumed_to_have_it() {
        assert_eq!(presumed(&[(Some(wait(ONE)), &[ONE]), (Some(wait(ONE)), &[ONE])]), []);
    }
}
