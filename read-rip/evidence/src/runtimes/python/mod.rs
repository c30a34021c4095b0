//! CPython: its threads, the lines that they are at, and the lock of the interpreter (GIL), from memory.
//!
//! `_PyRuntime` leads to the interpreters, these to their threads, and these to their frames. Nothing is stopped, so
//! all of it may change meanwhile. A list that leads in a circle is left, each object must have the type that it should
//! have, and a thread must be one of the process. What does not pass is left out.
//!
//! | file | what it has |
//! |---|---|
//! | `layout` | where the fields are, for each version |
//! | `objects` | strings, bytes and code |
//! | `lines` | the tables of lines |
//! | `attributes` | the attributes of instances |
//! | `blocks` | the `with` blocks that functions are in |

mod attributes;
mod blocks;
mod layout;
mod lines;
mod objects;

use foldhash::{HashMap, HashSet};
use read_rip_files::Module;

use self::blocks::Frame;
use self::layout::{FrameAt, Gil, Identity, Layout};
use self::objects::{Objects, Types};
use super::exported::Exports;
use super::pages::Pages;
use super::{InnerDoing, InnerHold, InnerLock, InnerThread, Interior, SourceFrame};
use crate::target::{Memory, RunState, Sleep, Target};
use crate::waits::{Owner, UnknownOwner, id_of_pthread};

/// No more interpreters, threads, and frames of a thread are read.
const INTERPRETERS_MAX: usize = 64;
const THREADS_MAX: usize = 4096;
const FRAMES_MAX: usize = 64;
/// A frame without a function, which the interpreter makes where C calls it (`FRAME_OWNED_BY_CSTACK`).
const OF_C: u8 = 3;
/// `sizeof (struct _gil_runtime_state)`, and its fields.
const GIL_BYTES: usize = 208;
const GIL_LAST_HOLDER: usize = 8;
const GIL_IS_LOCKED: usize = 16;

/// What a process with CPython has; `None` if its version is not known, or if nothing of it makes sense.
pub(super) fn interior(target: &Target, memory: &dyn Memory) -> Option<Interior> {
    let memory = Pages::new(memory);
    let memory: &dyn Memory = &memory;
    let is_library = |module: &&Module| {
        module.path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libpython"))
    };
    let program = || target.modules.iter().find(|module| module.is_executable);
    let modules = target.modules.iter().filter(is_library).chain(program());
    let of_module = |module: &Module| {
        let exports = Exports::of(module, memory)?;
        let runtime = exports.address_of("_PyRuntime")?;
        let version = exports.address_of("Py_Version").and_then(|at| memory.u32(at).ok());
        let minor = match version {
            Some(version) => (version >> 24 == 3).then_some((version >> 16) as u8)?,
            None => minor_of(module)?,
        };
        let layout = Layout::of_version(minor).or_else(|| Layout::of_memory(runtime, memory))?;
        let types = Types::of(&exports)?;
        let living = target.tasks.iter();
        let living = living.filter(|task| !matches!(task.state, RunState::Zombie | RunState::Dead));
        let reader = Reader {
            target,
            memory,
            runtime,
            layout,
            living: living.map(|task| task.own_tid).collect(),
            objects: Objects::new(memory, layout, types),
        };
        reader.read()
    };
    modules.into_iter().find_map(of_module)
}

/// The minor version, by the name of a file: `libpython3.8.so.1.0`, `python3.8`.
fn minor_of(module: &Module) -> Option<u8> {
    let name = module.path.file_name()?.to_str()?;
    let after = name.split_once("python3.")?.1;
    let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}

/// The functions of the standard library that wait for another thread, and for no lock, by their files.
const WAITS: [(&str, &[&str]); 3] = [
    ("/threading.py", &["wait", "join", "_wait_for_tstate_lock", "_shutdown"]),
    ("/concurrent/futures/thread.py", &["_worker"]),
    ("/multiprocessing/pool.py", &["worker"]),
];

/// What a thread does, by its functions.
fn doing(frames: &[SourceFrame]) -> Option<InnerDoing> {
    let is_loop = |frame: &SourceFrame| {
        let is_asyncio = frame.file.ends_with("/asyncio/base_events.py") && frame.function == "run_forever";
        is_asyncio || frame.file.ends_with("/asyncio/runners.py")
    };
    if frames.iter().any(is_loop) {
        return Some(InnerDoing::EventLoop);
    }
    let innermost = frames.first()?;
    let waits = WAITS.iter().any(|(file, functions)| {
        innermost.file.ends_with(file) && functions.contains(&innermost.function.as_str())
    });
    waits.then_some(InnerDoing::WaitsForOthers)
}

/// Whether a frame is in one of these functions of `threading`.
fn is_of_threading(frame: &Frame, functions: &[&str]) -> bool {
    frame.source.file.ends_with("/threading.py") && functions.contains(&frame.source.function.as_str())
}

struct Reader<'a> {
    target: &'a Target,
    memory: &'a dyn Memory,
    runtime: u64,
    layout: Layout,
    living: HashSet<u32>,
    objects: Objects<'a>,
}

impl Reader<'_> {
    fn read(mut self) -> Option<Interior> {
        let mut inside = Interior { version: format!("3.{}", self.layout.minor), ..Interior::default() };
        // The ids of threads by the addresses of what the interpreter knows of them.
        let mut tids: HashMap<u64, Option<u32>> = HashMap::default();
        let first = self.pointer(self.runtime, self.layout.interpreters)?;
        let interpreters = self.list(first, self.layout.next_interpreter, INTERPRETERS_MAX);
        for &interpreter in &interpreters {
            let Some(first) = self.pointer(interpreter, self.layout.threads) else { continue };
            for thread in self.list(first, self.layout.next_thread, THREADS_MAX - tids.len().min(THREADS_MAX))
            {
                if self.pointer(thread, self.layout.interpreter) != Some(interpreter) {
                    break;
                }
                let tid = self.tid(thread);
                tids.insert(thread, tid);
                // A thread of the system may have several: one for each interpreter that it has entered.
                if let Some(tid) = tid.filter(|&tid| inside.thread(tid).is_none()) {
                    let frames = self.frames(thread);
                    self.holds(tid, &frames, &mut inside.holds);
                    let (name, joins) = (self.name(&frames), self.joins(&frames));
                    let frames: Vec<SourceFrame> = frames.into_iter().map(|frame| frame.source).collect();
                    let doing = doing(&frames);
                    inside.threads.push(InnerThread { tid, name, frames, doing, joins });
                }
            }
        }
        let mut gils = HashSet::default();
        for interpreter in interpreters {
            let gil = match self.layout.gil {
                Gil::OfRuntime(offset) => self.runtime.checked_add(offset),
                Gil::OfInterpreter(offset) => self.pointer(interpreter, offset),
            };
            inside.locks.extend(gil.filter(|&gil| gils.insert(gil)).and_then(|gil| self.gil(gil, &tids)));
        }
        (!inside.threads.is_empty()).then_some(inside)
    }

    /// A pointer that is not null.
    fn pointer(&self, base: u64, offset: u64) -> Option<u64> {
        self.memory.u64(base.checked_add(offset)?).ok().filter(|&pointer| pointer != 0)
    }

    /// The members of a list, each once.
    fn list(&self, first: u64, next: u64, at_most: usize) -> Vec<u64> {
        let (mut all, mut seen) = (Vec::new(), HashSet::default());
        let mut at = Some(first);
        while let Some(member) = at.filter(|&member| all.len() < at_most && seen.insert(member)) {
            all.push(member);
            at = self.pointer(member, next);
        }
        all
    }

    /// The id of a thread, if that is a living thread of the process.
    fn tid(&self, thread: u64) -> Option<u32> {
        let tid = match self.layout.thread {
            Identity::Native(offset) => u32::try_from(self.pointer(thread, offset)?).ok()?,
            Identity::Pthread(offset) => return self.of_pthread(self.pointer(thread, offset)?),
        };
        Some(tid).filter(|tid| self.living.contains(tid))
    }

    /// The functions that a thread is in, the innermost first.
    fn frames(&mut self, thread: u64) -> Vec<Frame> {
        let at = match self.layout.frame {
            FrameAt::Thread(offset) => self.pointer(thread, offset),
            FrameAt::CFrame(offset, inner) => {
                self.pointer(thread, offset).and_then(|frame| self.pointer(frame, inner))
            }
        };
        let fields = self.layout.frames;
        let mut all = Vec::new();
        for frame in at.map_or_else(Vec::new, |at| self.list(at, fields.previous, FRAMES_MAX)) {
            let owner = fields.owner.and_then(|offset| self.memory.bytes(frame.checked_add(offset)?).ok());
            let (Some(code), Some(instruction)) = (
                self.pointer(frame, fields.code),
                self.memory.u64(frame.wrapping_add(fields.instruction)).ok(),
            ) else {
                break;
            };
            if owner == Some([OF_C]) {
                continue;
            }
            let Some(source) = self.objects.source(code, instruction) else { break };
            all.push(Frame { address: frame, code, instruction, source });
        }
        all
    }

    /// What the program calls a thread: the function of `threading` that it began with has its object.
    fn name(&self, frames: &[Frame]) -> Option<String> {
        let first = frames.last().filter(|frame| is_of_threading(frame, &["_bootstrap"]))?;
        let name = self.objects.attribute(self.objects.first_variable(first)?, "_name")?;
        self.objects.text(name).filter(|name| !name.is_empty())
    }

    /// The thread for whose end a thread waits.
    fn joins(&self, frames: &[Frame]) -> Option<u32> {
        let innermost =
            frames.first().filter(|frame| is_of_threading(frame, &["join", "_wait_for_tstate_lock"]))?;
        let object = self.objects.first_variable(innermost)?;
        let tid = self.objects.small_number(self.objects.attribute(object, "_native_id")?)?;
        Some(tid).filter(|tid| self.living.contains(tid))
    }

    /// Adds the locks that a thread has, and the one for which it waits, if that stores its owner.
    fn holds(&mut self, tid: u32, frames: &[Frame], holds: &mut Vec<InnerHold>) {
        for with in self.objects.withs(frames) {
            let is_stored = with.lock.owner.is_some();
            if with.lock.owner.is_none_or(|owner| self.of_pthread(owner) == Some(tid)) {
                holds.push(InnerHold { tid, word: with.lock.word, at: Some(with.at), is_stored });
            }
        }
        let task = self.target.tasks.iter().find(|task| task.own_tid == tid);
        let word = match task.and_then(|task| task.sleep) {
            Some(Sleep::Call(call)) => call.futex().map(|futex| futex.address),
            _ => None,
        };
        let awaited = frames.first().zip(word).and_then(|(frame, word)| self.objects.lock_of(frame, word));
        if let Some(lock) = awaited
            && let Some(owner) = lock.owner.and_then(|owner| self.of_pthread(owner))
        {
            holds.push(InnerHold { tid: owner, word: lock.word, at: None, is_stored: true });
        }
    }

    /// The living thread with this `pthread_t`.
    fn of_pthread(&self, pthread: u64) -> Option<u32> {
        let tid = id_of_pthread(pthread, self.target.architecture, self.memory)?;
        Some(tid).filter(|tid| self.living.contains(tid))
    }

    /// The lock of an interpreter. `tids`: the threads that the interpreters know.
    fn gil(&self, address: u64, tids: &HashMap<u64, Option<u32>>) -> Option<InnerLock> {
        let bytes: [u8; GIL_BYTES] = self.memory.bytes(address).ok()?;
        let holder = u64::from_le_bytes(bytes[GIL_LAST_HOLDER..][..8].try_into().ok()?);
        let locked = i32::from_le_bytes(bytes[GIL_IS_LOCKED..][..4].try_into().ok()?);
        let owner = match (locked, tids.get(&holder)) {
            // The last holder stays there when the lock is free.
            (0, _) => Owner::Nobody,
            (1, Some(Some(tid))) => Owner::Tid(*tid),
            (1, _) => Owner::Unknown(UnknownOwner::Senseless),
            // It is not initialised yet.
            _ => return None,
        };
        Some(InnerLock { address, len_bytes: GIL_BYTES as u64, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::python::objects::Types;
    use crate::waits::testing::{Hostile, target};

    #[test]
    fn memory_that_leads_in_circles_ends_and_says_nothing() {
        let words: [fn(u64) -> u64; 5] = [
            |_| 0x1000,
            |address| address,
            |address| address.wrapping_add(8),
            |address| address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8,
            |_| u64::MAX,
        ];
        let target = target(&[], [0; 4]);
        for minor in 8..=12 {
            for word in words {
                let memory = Hostile(word);
                let layout = Layout::of_version(minor).unwrap();
                let types = Types::all_at(0x1000);
                let objects = Objects::new(&memory, layout, types);
                let living = HashSet::default();
                let (target, runtime) = (&target, 0x1000);
                let reader = Reader { target, memory: &memory, runtime, layout, living, objects };
                // No thread of it lives.
                assert_eq!(reader.read(), None, "3.{minor}");
                assert!(Layout::of_memory(0x1000, &memory).is_none());
            }
        }
    }
}
