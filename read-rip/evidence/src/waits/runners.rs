//! Who runs an initialisation that other threads wait for, or writes to the stream that they want: the stacks of the
//! threads say it.
//!
//! What is initialised once stores that somebody initialises it, and not who. But the thread that does so is in the
//! function that runs the initialiser:
//!
//! * `pthread_once`, and `Once::call` of Rust's standard library. The address of the object is among the words of this
//!   function, or among the registers that the next function has saved. If no thread has it there, but one thread alone
//!   is in such a function, it is that one.
//! * The function that has a static variable of C++. Its guard is nowhere on the stack: so it is the thread that alone
//!   is in this function, apart from those that wait for the guard. That is *presumed*: the thread may be in the
//!   function before it comes to the variable, while the one that initialises it is on a stack of its own, as
//!   coroutines are.
//!
//! So it is with the lock of `stdout` or `stderr` of Rust's standard library: the thread that alone formats what goes
//! there is presumed to have it. Formatting calls the program's own code, which may wait.
//!
//! What follows because nobody else is in a function needs the stacks of all threads.

use foldhash::HashMap;

use super::construct::Role;
use super::names::{Meaning, meaning};
use super::patterns::{glob, is_one_of, plain};
use super::wait::{FutexWait, Owner, Presumption, UnknownOwner, WaitKind};
use super::words::stack_words;
use crate::stacks::{Group, Stack};
use crate::target::{Memory, Target};

/// So many registers has a function to save that it may change.
const SAVED_MAX: usize = 6;

/// Whether this function runs an initialiser, or waits until another thread has run it.
fn runs_once(name: &str) -> bool {
    const ONCE: &[&str] = &["pthread_once*", "std::sys::*once*::call*"];
    is_one_of(ONCE, &plain(name))
}

/// Whether this function is a part of a wait for a lock of Rust's standard library.
fn is_in_lock(name: &str) -> bool {
    let is_reentrant = glob("std::sync::reentrant_lock::*", &plain(name));
    is_reentrant
        || match meaning(name, None) {
            Some(Meaning::Glue) => true,
            Some(Meaning::Object(_, construct)) => construct.role == Role::Lock,
            Some(Meaning::Purpose(_)) | None => false,
        }
}

/// The stream of Rust's standard library that this function writes to. While it formats, its thread has the stream's
/// lock.
fn writes_to(name: &str) -> Option<&'static str> {
    const STREAMS: &[(&str, &[&str])] = &[
        ("stdout", &["std::io::stdio::_print", "*std::io::stdio::Stdout* as std::io::Write::write_fmt"]),
        ("stderr", &["std::io::stdio::_eprint", "*std::io::stdio::Stderr* as std::io::Write::write_fmt"]),
    ];
    let plain = plain(name);
    STREAMS.iter().find(|(_, patterns)| is_one_of(patterns, &plain)).map(|&(stream, _)| stream)
}

/// Whether this function waits until another thread has initialised a static variable of C++.
fn is_guard(name: &str) -> bool {
    plain(name) == "cxa_guard_acquire"
}

/// The threads that run initialisations. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Runners {
    /// Threads in a function that runs an initialiser, once for each such function: with the words that it has.
    once: Vec<(usize, Vec<u64>)>,
    /// The functions with static variables, or the streams, for which threads wait, by the index of such a thread.
    variables: HashMap<usize, String>,
    /// The threads that are in these functions, or write to these streams, and are not about to wait there.
    in_function: HashMap<String, Vec<usize>>,
    /// Whether the stacks of all threads are known.
    is_complete: bool,
}

/// Who runs an initialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runner {
    /// The index of the thread.
    pub task: usize,
    /// Why it is only presumed.
    pub presumption: Option<Presumption>,
}

/// Whether a thread waits for an initialisation that another thread runs, or it itself.
fn is_for_initialisation(wait: &FutexWait) -> bool {
    has_role(wait, Role::Initialisation) && matches!(wait.kind, WaitKind::Once | WaitKind::Opaque)
}

/// Whether a thread waits for a lock of a language that stores no owner.
pub(super) fn is_for_lock(wait: &FutexWait) -> bool {
    has_role(wait, Role::Lock) && wait.kind == WaitKind::Opaque
}

/// Whether a thread waits for an object that stores no owner and is for this.
fn has_role(wait: &FutexWait, role: Role) -> bool {
    let is_one = wait.construct.is_some_and(|construct| construct.role == role);
    is_one && wait.object.is_some() && wait.owner == Owner::Unknown(UnknownOwner::NotStored)
}

/// The stream for whose lock a thread waits, by the functions of its stack.
fn awaited_stream(names: &[String]) -> Option<&'static str> {
    let is_of_lock = |name: &&String| name.is_empty() || is_in_lock(name);
    writes_to(names.iter().find(|name| !is_of_lock(name))?)
}

impl Runners {
    /// Looks for them if a thread waits for an initialisation. `names` gives the names of the functions of a stack.
    pub(crate) fn of(
        target: &Target,
        memory: &dyn Memory,
        stacks: &[Group],
        waits: &[Option<FutexWait>],
        mut names: impl FnMut(&Stack) -> Vec<String>,
    ) -> Runners {
        let waits_for_once = |task: usize| waits[task].as_ref().is_some_and(is_for_initialisation);
        let waits_for_lock = |task: usize| waits[task].as_ref().is_some_and(is_for_lock);
        let mut waits_for_stream =
            |group: &Group| waits_for_lock(group.tasks[0]) && awaited_stream(&names(&group.stack)).is_some();
        if !(0..waits.len()).any(waits_for_once) && !stacks.iter().any(&mut waits_for_stream) {
            return Runners::default();
        }
        let mut runners = Runners {
            is_complete: stacks.iter().all(|group| group.stack.is_complete()),
            ..Runners::default()
        };
        let mut functions: Vec<(&Group, Vec<String>)> = Vec::with_capacity(stacks.len());
        for group in stacks {
            let names = names(&group.stack);
            let is_waiting = waits_for_once(group.tasks[0]);
            // The first of these functions is the one that waits.
            let mut once = (0..names.len()).filter(|&at| runs_once(&names[at])).peekable();
            if is_waiting && !names.iter().any(|name| is_guard(name)) {
                once.next();
            }
            for at in once {
                let of =
                    group.tasks.iter().map(|&task| (task, words_of(target, memory, task, &group.stack, at)));
                runners.once.extend(of);
            }
            functions.push((group, names));
        }
        for (group, names) in &functions {
            let guard = names.iter().position(|name| is_guard(name));
            let function = guard.and_then(|at| names[at + 1..].first()).filter(|name| !name.is_empty());
            for &task in group.tasks.iter().filter(|&&task| waits_for_once(task)) {
                runners.variables.extend(function.map(|name| (task, name.clone())));
            }
            let stream = awaited_stream(names);
            for &task in group.tasks.iter().filter(|&&task| waits_for_lock(task)) {
                runners.variables.extend(stream.map(|stream| (task, stream.to_owned())));
            }
        }
        let mut wanted: Vec<String> = runners.variables.values().cloned().collect();
        wanted.sort_unstable();
        wanted.dedup();
        for name in &wanted {
            let is_in = |names: &[String]| {
                let mut at = (0..names.len()).filter(|&at| names[at] == *name);
                let writes = || names.iter().any(|function| writes_to(function) == Some(name));
                at.any(|at| at == 0 || !is_guard(&names[at - 1])) || writes()
            };
            let threads = functions.iter().filter(|(_, names)| is_in(names));
            let threads = threads.flat_map(|(group, _)| group.tasks.iter().copied());
            let is_waiting =
                |task: &usize| waits_for_lock(*task) && runners.variables.get(task) == Some(name);
            runners.in_function.insert(name.clone(), threads.filter(|task| !is_waiting(task)).collect());
        }
        runners
    }

    /// Who runs the initialisation that a thread waits for, if that is known.
    pub(crate) fn of_wait(&self, task: usize, wait: &FutexWait) -> Option<Runner> {
        let object = wait.object.filter(|_| is_for_initialisation(wait) || is_for_lock(wait))?;
        if let Some(function) = self.variables.get(&task) {
            let &[task] = &self.in_function.get(function).filter(|_| self.is_complete)?[..] else {
                return None;
            };
            return Some(Runner { task, presumption: Some(Presumption::InFunction) });
        }
        if is_for_lock(wait) {
            return None;
        }
        let tasks = |has: &dyn Fn(&[u64]) -> bool| {
            let mut tasks: Vec<usize> =
                self.once.iter().filter(|(_, words)| has(words)).map(|&(task, _)| task).collect();
            tasks.sort_unstable();
            tasks.dedup();
            tasks
        };
        let only = match &tasks(&|words| words.contains(&object))[..] {
            &[task] => Some(task),
            [] if self.is_complete => match tasks(&|_| true)[..] {
                [task] => Some(task),
                _ => None,
            },
            _ => None,
        };
        only.map(|task| Runner { task, presumption: None })
    }
}

/// The words of a function of a stack, and the registers that the function which it has called has saved. The return
/// addresses on the stack say where these words are.
fn words_of(target: &Target, memory: &dyn Memory, task: usize, stack: &Stack, at: usize) -> Vec<u64> {
    let (words, _) = stack_words(target, memory, task);
    // Where the function of each frame returns to: the frames from the second one on.
    let (mut from, mut places) = (0, Vec::new());
    for frame in stack.frames.iter().take(at + 2).filter(|frame| frame.is_return_address) {
        let Some(found) = words[from..].iter().position(|&word| word == frame.pc) else { break };
        from += found + 1;
        places.push((frame.pc, from - 1));
    }
    let place = |at: usize| {
        let frame = stack.frames.get(at).filter(|frame| frame.is_return_address)?;
        places.iter().rev().find(|(pc, _)| *pc == frame.pc).map(|&(_, place)| place)
    };
    let (Some(own), Some(caller)) = (place(at), place(at + 1)) else { return Vec::new() };
    let inner = at.checked_sub(1).and_then(place).map_or(0, |inner| inner + 1);
    words[inner.max(own.saturating_sub(SAVED_MAX)).min(own)..caller.max(own)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Pieces, target};
    use super::*;
    use crate::stacks::{End, Frame};
    use crate::target::Registers;
    use crate::waits::{Basis, Construct};

    const OBJECT: u64 = 0x7000_0000;
    /// Where the functions return to: the innermost one, those that run initialisers, and the outermost one.
    const CALLS: [u64; 4] = [0x40_0010, 0x40_0020, 0x40_0030, 0x40_0040];

    fn wait() -> FutexWait {
        FutexWait {
            kind: WaitKind::Once,
            object: Some(OBJECT),
            futex: OBJECT,
            owner: Owner::Unknown(UnknownOwner::NotStored),
            is_exclusive: false,
            is_timed: false,
            is_private: true,
            basis: Basis::Stack,
            construct: Some(Construct { name: "pthread_once", role: Role::Initialisation }),
            presumption: None,
        }
    }

    /// Three threads: the first one waits, and the functions of the others are these. Each has these words on its
    /// stack, from its stack pointer on.
    fn runners(others: [&[&str]; 2], words: [&[u64]; 2], is_complete: bool) -> Runners {
        let mut target = target(&[501, 502, 503], [OBJECT, 0x80, 1, 0]);
        let mut memory = Pieces::default();
        let mut stacks = Vec::new();
        let end = if is_complete { End::Complete } else { End::Cut(crate::stacks::Cut::NoTable) };
        let waits: &[&str] = &["futex_wait", "__pthread_once_slow", "settings", "main"];
        for (task, names) in [waits, others[0], others[1]].into_iter().enumerate() {
            let sp = 0x1000 * (task as u64 + 1);
            target.tasks[task].registers = Some(Registers { sp, ..Registers::default() });
            let mut mapping = super::super::testing::mapping("[stack]");
            (mapping.begin, mapping.end) = (sp, sp + 0x1000);
            target.mappings.push(mapping);
            let own = task.checked_sub(1).map_or(&[][..], |at| words[at]);
            memory.put(
                sp,
                &own.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect::<Vec<_>>(),
            );
            let frame = |at: usize| Frame {
                pc: at.checked_sub(1).map_or(0x40_0000, |at| CALLS[at]),
                is_return_address: at > 0,
            };
            let frames = (0..names.len()).map(frame).collect();
            stacks.push(Group { stack: Stack { frames, inferred_from: None, end }, tasks: vec![task] });
        }
        let names = [waits, others[0], others[1]];
        let mut at = 0;
        Runners::of(&target, &memory, &stacks, &[Some(wait()), None, None], |_| {
            at += 1;
            names[at - 1].iter().map(|name| (*name).to_owned()).collect()
        })
    }

    const RUNS: &[&str] = &["read", "initialise", "__pthread_once_slow", "main"];
    const ELSEWHERE: &[&str] = &["read", "main"];

    fn certain(task: usize) -> Option<Runner> {
        Some(Runner { task, presumption: None })
    }

    #[test]
    fn the_words_of_the_function_that_runs_an_initialiser_tell_which() {
        // The words of the innermost function do not count, nor those of the caller.
        let other = [7, OBJECT, CALLS[0], 1, CALLS[1], 2, CALLS[2], OBJECT];
        let saved = [7, CALLS[0], OBJECT, CALLS[1], 2, CALLS[2], 3];
        let own = [7, CALLS[0], 1, CALLS[1], 2, OBJECT, CALLS[2], 3];
        assert_eq!(runners([RUNS, RUNS], [&other, &saved], false).of_wait(0, &wait()), certain(2));
        assert_eq!(runners([RUNS, RUNS], [&own, &other], false).of_wait(0, &wait()), certain(1));
        assert_eq!(runners([RUNS, RUNS], [&own, &saved], true).of_wait(0, &wait()), None, "two have it");
    }

    #[test]
    fn who_alone_runs_an_initialiser_runs_this_one_if_all_stacks_are_known() {
        let nothing = [7, CALLS[0], 1, CALLS[1], 2, CALLS[2], 3];
        assert_eq!(runners([RUNS, ELSEWHERE], [&nothing, &[]], true).of_wait(0, &wait()), certain(1));
        assert_eq!(runners([RUNS, ELSEWHERE], [&nothing, &[]], false).of_wait(0, &wait()), None);
        assert_eq!(runners([RUNS, RUNS], [&nothing, &nothing], true).of_wait(0, &wait()), None);
    }
}
