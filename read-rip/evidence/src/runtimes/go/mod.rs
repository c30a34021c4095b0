//! Go: its goroutines with their states, why and where they wait, and where they were made, from memory.
//!
//! `moduledata` leads to the tables of functions and lines, and says where variables are. It is found by its shape: its
//! first word points to a table with a magic number, and slices follow whose lengths are their capacities. The list of
//! all goroutines is found by its shape too, so that stripped programs are understood. A version whose structures have
//! another shape is not understood.
//!
//! Nothing is stopped. What a goroutine waits in is followed by its frame pointers, on x86-64.
//!
//! | file | what it has |
//! |---|---|
//! | `functions` | functions, files and lines |
//! | `mutexes` | who waits for mutexes, and who may have them |
//! | `heap` | the objects of the heap, and what can be reached |
//! | `reach` | who waits for what nobody else can reach |

mod functions;
mod heap;
mod mutexes;
mod reach;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use self::functions::{Functions, HEAD_WORDS};
use self::heap::Heap;
use self::mutexes::{Does, Kind, User};
use super::pages::Pages;
use super::{InnerTasks, InnerWait, Interior, SourceFrame};
use crate::target::{Architecture, Mapping, Memory, Target, has_note};

/// No more of a program is searched, and no more of its variables.
const SEARCHED_MAX_BYTES: u64 = 256 << 20;
/// So much is read at once.
const BLOCK_BYTES: usize = 1 << 20;
/// No more goroutines, and no more frames of one, are read.
const GOROUTINES_MAX: u64 = 200_000;
const FRAMES_MAX: usize = 48;
/// After this time for a step, the rest is counted alone: a process that takes longer counts as one that does not
/// answer.
const PATIENCE: Duration = Duration::from_millis(300);
/// Different groups that are kept.
const GROUPS_MAX: usize = 256;
/// So many places where those of a group were made are kept.
const MADE_AT_MAX: usize = 3;
/// So much of a goroutine (`runtime.g`) is read.
const WORDS: usize = 56;
/// How many goroutines decide whether a slice is the list of all.
const SAMPLE: u64 = 16;

/// `stack.lo`, `stack.hi`, `sched.sp` and `sched.pc` of a goroutine, as indices of words.
const LOW: usize = 0;
const HIGH: usize = 1;
const SP: usize = 7;
const PC: usize = 8;
/// Where `goid` may be. The status is in the word before it, and the reason to wait three words after it.
const IDS: [usize; 2] = [19, 20];

/// The states of goroutines (`runtime/runtime2.go`).
const IDLE: u32 = 0;
const RUNNABLE: u32 = 1;
const RUNNING: u32 = 2;
const SYSCALL: u32 = 3;
const WAITING: u32 = 4;
const DEAD: u32 = 6;
/// It belongs to a thread that C has made, and that is not in Go now.
const DEAD_EXTRA: u32 = 11;
const STATUS_MAX: u32 = 11;
/// The collector looks at the goroutine.
const SCAN: u32 = 0x1000;

/// The states of goroutines that wait for a mutex, for a readers-writer lock, and for others to be done.
const AT_MUTEX: &str = "sync.Mutex.Lock";
const AT_WRITER: &str = "sync.RWMutex.Lock";
const AT_READER: &str = "sync.RWMutex.RLock";
const AT_GROUP: &str = "sync.WaitGroup.Wait";
/// The reasons to wait for what others do, by their names in `runtime/runtime2.go`; those of semaphores begin so.
const AT_CHANNELS: [&str; 3] = [SENDS, "chan receive", "select"];
const SENDS: &str = "chan send";
const SENDS_TO_NIL: &str = "chan send (nil chan)";
const RESTS: [&str; 2] = ["chan receive (nil chan)", "select (no cases)"];
const AT_CONDITION: &str = "sync.Cond.Wait";
const AT_SEMAPHORE: [&str; 2] = ["semacquire", "sync."];
/// The id of the goroutine that runs `main`.
const MAIN: u64 = 1;

type Goroutine = [u64; WORDS];

/// Goroutines, and how many of them were not read.
struct Goroutines {
    addresses: Vec<u64>,
    read: Vec<Goroutine>,
    unread: usize,
}

/// What a Go program has; `None` if it is not understood.
pub(super) fn interior(target: &Target, memory: &dyn Memory) -> Option<Interior> {
    let as_it_is = memory;
    let memory = Pages::new(memory);
    let memory: &dyn Memory = &memory;
    let program = target.modules.iter().find(|module| module.is_executable)?;
    let is_own = |mapping: &&Mapping| program.relative(mapping.begin).is_some() && !mapping.is_executable;
    let own = target.mappings.iter().filter(is_own);
    let head = own.clone().find_map(|mapping| moduledata(mapping.begin..mapping.end, memory))?;
    let (address, words) = head;
    let functions = Functions::of(address, &words, memory)?;
    // `bss` and `ebss`; the reasons are in the data with values, with pointers or without.
    let (list, id_at) = goroutines(words[28]..words[29], memory)?;
    let data = [words[26]..words[27], words[24]..words[25]];
    let reasons = data.into_iter().find_map(|range| reasons(range, memory));
    let made_at = list.read.iter().find_map(|of| made_at(of, id_at, &functions));
    let reader = Reader { architecture: target.architecture, memory, functions, id_at, reasons, made_at };
    let tasks = reader.groups(&list);
    let mut waits = reader.circle(&list, &tasks);
    if waits.is_empty() && !has_another_program(target, memory) {
        let variables = [words[26]..words[27], words[28]..words[29]];
        // `mheap` is among the variables without pointers, the last ones.
        let spans = words[28]..words[31].max(words[29]);
        waits = reader.circle_of_all(&list, &variables, spans, as_it_is);
    }
    Some(Interior { tasks, waits, ..Interior::default() })
}

/// Whether a library is a program in Go too, with variables of its own.
fn has_another_program(target: &Target, memory: &dyn Memory) -> bool {
    target.modules.iter().any(|module| !module.is_executable && has_note(module, b"Go\0\0", memory))
}

/// Each word of a range with its index and those that follow it, until `found` has what it wants.
fn search<R, const LEN: usize>(
    range: Range<u64>,
    memory: &dyn Memory,
    mut found: impl FnMut(u64, &[u64; LEN]) -> Option<R>,
) -> Option<R> {
    let end = range.end.min(range.start.saturating_add(SEARCHED_MAX_BYTES));
    let mut at = range.start.next_multiple_of(8);
    let mut bytes = vec![0; BLOCK_BYTES + 8 * LEN];
    while at < end {
        let wanted = usize::try_from(end - at).ok()?.min(bytes.len());
        let len = memory.read_some(at, &mut bytes[..wanted]);
        let (words, _) = bytes[..len].as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let in_block = words.windows(LEN).take(BLOCK_BYTES / 8).enumerate();
        for (index, window) in in_block {
            // SANITY: a window has this length.
            let window: &[u64; LEN] = window.try_into().expect("the length of a window");
            if let Some(result) = found(at + 8 * index as u64, window) {
                return Some(result);
            }
        }
        // What cannot be read is passed over.
        at += BLOCK_BYTES as u64;
    }
    None
}

/// Finds `moduledata` in a range: its address and its first words.
fn moduledata(range: Range<u64>, memory: &dyn Memory) -> Option<(u64, [u64; HEAD_WORDS])> {
    search(range, memory, |address, words: &[u64; HEAD_WORDS]| {
        let is_slice =
            |at: &usize| words[at + 1] == words[at + 2] && words[*at] > words[0] && words[at + 1] > 0;
        let is_shape = words[0] != 0 && [1, 4, 7, 10, 13, 16].iter().all(is_slice) && words[22] < words[23];
        (is_shape && Functions::of(address, words, memory).is_some()).then_some((address, *words))
    })
}

/// Finds the slice of all goroutines: those, and where their ids are.
fn goroutines(range: Range<u64>, memory: &dyn Memory) -> Option<(Goroutines, usize)> {
    search(range, memory, |_, &[list, len, capacity]| {
        let is_shape =
            list != 0 && list % 8 == 0 && (1..=capacity).contains(&len) && capacity <= GOROUTINES_MAX;
        if !is_shape {
            return None;
        }
        let at = |index: u64| {
            let address =
                memory.u64(list.checked_add(8 * index)?).ok().filter(|&of| of != 0 && of % 8 == 0)?;
            Some((address, goroutine(address, memory)?))
        };
        let sample: Vec<(u64, Goroutine)> = (0..len.min(SAMPLE)).map_while(at).collect();
        if sample.len() as u64 != len.min(SAMPLE) {
            return None;
        }
        let id_at = IDS.into_iter().find(|&id_at| {
            // The first one runs `main`.
            sample[0].1[id_at] == 1 && sample.iter().all(|(_, of)| is_known(of, id_at))
        })?;
        let begun = Instant::now();
        let in_time = |_: &u64| begun.elapsed() < PATIENCE;
        let read: Vec<Option<(u64, Goroutine)>> = (0..len).take_while(in_time).map(at).collect();
        let unread = len as usize - read.len();
        let read = read.into_iter().flatten().filter(|(_, of)| is_known(of, id_at));
        let (addresses, read) = read.unzip();
        Some((Goroutines { addresses, read, unread }, id_at))
    })
}

fn goroutine(address: u64, memory: &dyn Memory) -> Option<Goroutine> {
    let bytes: [u8; 8 * WORDS] = memory.bytes(address).ok()?;
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|&word| u64::from_le_bytes(word)).collect::<Vec<u64>>().try_into().ok()
}

fn status(of: &Goroutine, id_at: usize) -> u32 {
    of[id_at - 1] as u32 & !SCAN
}

/// Whether these words can be those of a goroutine.
fn is_known(of: &Goroutine, id_at: usize) -> bool {
    let is_dead = matches!(status(of, id_at), IDLE | DEAD | DEAD_EXTRA);
    let has_stack = of[LOW] < of[HIGH] && (of[LOW]..=of[HIGH]).contains(&of[SP]);
    let is_status = status(of, id_at) <= STATUS_MAX && of[id_at - 1] as u32 >> 16 == 0;
    is_status
        && of[id_at] < 1 << 48
        && (is_dead || has_stack || of[LOW] < of[HIGH] && status(of, id_at) != WAITING)
}

/// Where the reasons to wait are: strings, the first of which is empty.
fn reasons(range: Range<u64>, memory: &dyn Memory) -> Option<u64> {
    const SECOND: &[u8] = b"GC assist marking";
    search(range, memory, |address, &[text, len]| {
        if len != SECOND.len() as u64 {
            return None;
        }
        let bytes: [u8; SECOND.len()] = memory.bytes(text).ok()?;
        (bytes == SECOND).then(|| address.checked_sub(16)).flatten()
    })
}

/// Where a goroutine has the address that made it: two words before the address at which it began.
fn made_at(of: &Goroutine, id_at: usize, functions: &Functions<'_>) -> Option<usize> {
    (id_at + 4..WORDS - 2).find(|&at| functions.has(of[at]) && functions.has(of[at + 2]))
}

struct Reader<'a> {
    architecture: Architecture,
    memory: &'a dyn Memory,
    functions: Functions<'a>,
    id_at: usize,
    reasons: Option<u64>,
    made_at: Option<usize>,
}

impl Reader<'_> {
    /// Goroutines that do the same at the same place, the most frequent first. Those of the runtime are left out.
    fn groups(&self, list: &Goroutines) -> Vec<InnerTasks> {
        let mut groups: BTreeMap<(String, Option<SourceFrame>), InnerTasks> = BTreeMap::new();
        let (mut unread, begun) = (list.unread, Instant::now());
        for of in list.read.iter().filter(|of| !matches!(status(of, self.id_at), IDLE | DEAD | DEAD_EXTRA)) {
            if self.is_of_runtime(of) {
                continue;
            }
            if begun.elapsed() > PATIENCE {
                unread += 1;
                continue;
            }
            let frames = self.frames(of);
            let state = self.state(of, &frames);
            let key = (state.clone(), frames.into_iter().find(is_of_program));
            if groups.len() >= GROUPS_MAX && !groups.contains_key(&key) {
                continue;
            }
            let at = key.1.clone();
            let group = groups.entry(key).or_insert(InnerTasks { count: 0, state, at, made_at: Vec::new() });
            group.count += 1;
            let made = self.made(of).filter(|_| group.made_at.len() < MADE_AT_MAX);
            group.made_at.extend(made.filter(|made| !group.made_at.contains(made)));
        }
        let mut groups: Vec<InnerTasks> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        if unread > 0 {
            let state = "not looked at, because they are many".to_owned();
            groups.push(InnerTasks { count: unread, state, at: None, made_at: Vec::new() });
        }
        groups
    }

    /// Goroutines that wait for mutexes which only others of them are known to have.
    fn circle(&self, list: &Goroutines, groups: &[InnerTasks]) -> Vec<InnerWait> {
        let is_at_mutex = |group: &&InnerTasks| [AT_MUTEX, AT_WRITER, AT_READER].contains(&&*group.state);
        let at_mutexes = groups.iter().filter(is_at_mutex);
        // Who was not looked at may have one of the mutexes.
        if list.unread > 0 || at_mutexes.map(|group| group.count).sum::<usize>() < 2 {
            return Vec::new();
        }
        let is_counted = |&(of, _): &(&Goroutine, u64)| {
            !matches!(status(of, self.id_at), IDLE | DEAD | DEAD_EXTRA) && !self.is_of_runtime(of)
        };
        let all = list.read.iter().zip(list.addresses.iter().copied()).filter(is_counted);
        let all: Vec<(&Goroutine, u64)> = all.collect();
        let user = |&(of, address): &(&Goroutine, u64)| {
            let is_asleep = matches!(status(of, self.id_at), WAITING | RUNNABLE);
            let does = match &*self.state(of, &self.frames(of)) {
                AT_MUTEX => Does::WaitsFor(Kind::Mutex),
                AT_WRITER => Does::WaitsFor(Kind::Writer),
                AT_READER => Does::WaitsFor(Kind::Reader),
                AT_GROUP => Does::WaitsForGroup,
                _ => Does::Other,
            };
            User { address, stack: (if is_asleep { of[SP] } else { of[LOW] }, of[HIGH]), does }
        };
        let users: Vec<User> = all.iter().map(user).collect();
        let waiting =
            mutexes::circle(&users, self.memory).into_iter().map(|(at, lock)| self.wait(all[at].0, lock));
        waiting.collect()
    }

    fn wait(&self, of: &Goroutine, lock: u64) -> InnerWait {
        let frames = self.frames(of);
        let state = self.state(of, &frames);
        InnerWait { task: of[self.id_at], lock, state, at: frames.into_iter().find(is_of_program) }
    }

    /// Goroutines that wait for one another, and for nothing that others can reach. Two looks agree: pointers move
    /// meanwhile.
    fn circle_of_all(
        &self,
        list: &Goroutines,
        variables: &[Range<u64>],
        spans: Range<u64>,
        as_it_is: &dyn Memory,
    ) -> Vec<InnerWait> {
        if list.unread > 0 {
            return Vec::new();
        }
        let lives =
            |&(of, _): &(&Goroutine, u64)| !matches!(status(of, self.id_at), IDLE | DEAD | DEAD_EXTRA);
        let all: Vec<(&Goroutine, u64)> =
            list.read.iter().zip(list.addresses.iter().copied()).filter(lives).collect();
        // What goroutines of the runtime have left on their stacks while they sleep is used by none.
        let sleeps = |of: &Goroutine| status(of, self.id_at) == WAITING && self.is_of_runtime(of);
        let all: Vec<(&Goroutine, u64)> = all.into_iter().filter(|(of, _)| !sleeps(of)).collect();
        let reason = |of: &Goroutine| {
            (status(of, self.id_at) == WAITING).then(|| self.reason(of[self.id_at + 3] as u8)).flatten()
        };
        let reasons: Vec<Option<String>> = all.iter().map(|(of, _)| reason(of)).collect();
        let rests = |at: usize| {
            let is_at_semaphore =
                |of: &String| of != AT_CONDITION && AT_SEMAPHORE.iter().any(|begin| of.starts_with(begin));
            let is_pressing = |of: &String| of == SENDS || of == SENDS_TO_NIL || is_at_semaphore(of);
            let is_main = || {
                let waits = |of: &String| AT_CHANNELS.contains(&&**of) || of == AT_CONDITION;
                all[at].0[self.id_at] == MAIN && reasons[at].as_ref().is_some_and(waits)
            };
            !reasons[at].as_ref().is_some_and(is_pressing) && !is_main()
        };
        if (0..all.len()).all(rests) {
            return Vec::new();
        }
        let look = |memory: &dyn Memory| {
            let heap = Heap::of(spans.clone(), memory)?;
            let waits = reach::Waits { heap: &heap, memory, known: RefCell::default() };
            let user = |(at, &(of, address)): (usize, &(&Goroutine, u64))| {
                let reason = reasons[at].as_deref().unwrap_or_default();
                let low = if matches!(status(of, self.id_at), WAITING | RUNNABLE) { of[SP] } else { of[LOW] };
                let stack = low..of[HIGH];
                let objects = match reason {
                    _ if AT_CHANNELS.contains(&reason) => waits.channels(address, of),
                    AT_CONDITION => waits.condition(address, &stack).map(|of| vec![of]),
                    _ if AT_SEMAPHORE.iter().any(|begin| reason.starts_with(begin)) => {
                        waits.semaphore(address, &stack).map(|of| vec![of])
                    }
                    _ => None,
                };
                let does = match objects {
                    _ if reason == SENDS_TO_NIL => reach::Does::SendsToNil,
                    _ if RESTS.contains(&reason) => reach::Does::Rests,
                    Some(objects) => reach::Does::WaitsFor { objects, rests: rests(at) },
                    None => reach::Does::Other,
                };
                reach::User { memory: [stack, address..address + 8 * WORDS as u64], does }
            };
            let users: Vec<reach::User> = all.iter().enumerate().map(user).collect();
            let ends = list.addresses.iter().filter_map(|&of| heap.begin(of)).collect();
            reach::circle(&users, variables, &ends, &heap, memory)
        };
        let found = look(self.memory).unwrap_or_default();
        if found.is_empty() || look(&Pages::new(as_it_is)).as_ref() != Some(&found) {
            return Vec::new();
        }
        found.into_iter().map(|(at, object)| self.wait(all[at].0, object)).collect()
    }

    /// Whether the runtime made it for itself. The one that runs `main` is not for itself.
    fn is_of_runtime(&self, of: &Goroutine) -> bool {
        let began = self.made_at.and_then(|at| self.functions.name(of[at + 2]));
        began.is_some_and(|name| name.starts_with("runtime.") && name != "runtime.main")
    }

    fn made(&self, of: &Goroutine) -> Option<SourceFrame> {
        let frames = self.functions.frames(of[self.made_at?]);
        frames.iter().find(|frame| is_of_program(frame)).cloned()
    }

    /// What it does: the reason to wait, as Go prints it. Before 1.20, that of a mutex is the reason of all locks.
    fn state(&self, of: &Goroutine, frames: &[SourceFrame]) -> String {
        match status(of, self.id_at) {
            RUNNABLE => "runnable".to_owned(),
            RUNNING => "running".to_owned(),
            SYSCALL => "syscall".to_owned(),
            WAITING => {
                let reason = self.reason(of[self.id_at + 3] as u8);
                let of_lock = || {
                    let until = frames.iter().position(is_of_program).unwrap_or(frames.len());
                    let called =
                        frames[..until].iter().rev().find(|frame| frame.function.starts_with("sync."));
                    let name = called?.function.replace(['(', ')', '*'], "");
                    // The function of a value: `wait := group.Wait`.
                    Some(name.trim_end_matches("-fm").to_owned())
                };
                match reason {
                    Some(reason) if reason == "semacquire" => of_lock().unwrap_or(reason),
                    reason => reason.unwrap_or_else(|| "waiting".to_owned()),
                }
            }
            _ => "changing".to_owned(),
        }
    }

    fn reason(&self, number: u8) -> Option<String> {
        const LEN_MAX: u64 = 64;
        let at = self.reasons?.checked_add(16 * u64::from(number))?;
        let (text, len) = (self.memory.u64(at).ok()?, self.memory.u64(at + 8).ok()?);
        let mut bytes = vec![0; usize::try_from(len).ok().filter(|_| (1..=LEN_MAX).contains(&len))?];
        self.memory.read(text, &mut bytes).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// The functions that a goroutine is in, the innermost first. Empty if it runs.
    fn frames(&self, of: &Goroutine) -> Vec<SourceFrame> {
        let is_asleep = matches!(status(of, self.id_at), WAITING | RUNNABLE);
        if !is_asleep || self.architecture != Architecture::X86_64 || !self.functions.has(of[PC]) {
            return Vec::new();
        }
        let mut frames = self.functions.frames(of[PC]).to_vec();
        // `sched.bp`: one of three words, the others of which are no addresses in the stack.
        let is_in_stack =
            |at: u64, above: u64| at > above && at < of[HIGH].saturating_sub(16) && at.is_multiple_of(8);
        let mut frame = of[11..=13].iter().copied().find(|&at| is_in_stack(at, of[SP].saturating_sub(1)));
        while let Some(at) = frame.filter(|_| frames.len() < FRAMES_MAX) {
            let Ok(bytes) = self.memory.bytes::<16>(at) else { break };
            let (words, _) = bytes.as_chunks::<8>();
            let [next, pc] = [words[0], words[1]].map(u64::from_le_bytes);
            let named = self.functions.frames(pc);
            if named.is_empty() {
                break;
            }
            frames.extend(named.iter().cloned());
            frame = Some(next).filter(|&next| is_in_stack(next, at));
        }
        frames
    }
}

/// Whether a function is none of Go's own packages: these have no dot in the first part of their paths.
fn is_of_program(frame: &SourceFrame) -> bool {
    let is_of_go =
        frame.file.contains("/go/src/") || frame.file.contains("/go-1") || frame.file.starts_with("<");
    let package = frame.function.split(['(', '/']).next().unwrap_or_default();
    let package = package.split('.').next().unwrap_or_default();
    !(is_of_go
        || matches!(package, "runtime" | "sync" | "internal" | "time" | "os" | "net" | "syscall" | "io"))
}
