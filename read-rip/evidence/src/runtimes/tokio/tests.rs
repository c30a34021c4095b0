//! Memory of tokio, made by hand: what is found in it, and that nothing of a hostile process harms the reader.

use std::cell::Cell as Counter;
use std::collections::HashMap as Map;
use std::path::PathBuf;

use read_rip_files::Module;
use read_rip_symbols::Options;

use super::*;
use crate::target::{Mapping, Registers, Unreadable};
use crate::waits::testing;

const CODE: u64 = 0x40_0000;
const TABLE: u64 = 0x40_2000;
const WAKER_TABLE: u64 = 0x40_2800;
const HEAP: u64 = 0x1000_0000;
const SCHEDULER: u64 = HEAP;
const SHARDS: u64 = HEAP + 0x2000;
const CELLS: u64 = HEAP + 0x10000;
const CELL_BYTES: u64 = 512;
const STACK: u64 = 0x7000_0000;
const MEMORY_END: u64 = 0x8000_0000;
/// The offsets of this program's cells.
const TRAILER: u64 = 256;
const SCHEDULER_AT: u64 = 32;
const ID: u64 = 40;
const ONE: u64 = 1 << 6;

/// Pages that were written, and zeros elsewhere.
#[derive(Default)]
struct Paper {
    pages: Map<u64, Vec<u8>>,
    reads: Counter<usize>,
}

impl Paper {
    fn put(&mut self, address: u64, words: &[u64]) {
        for (at, word) in words.iter().enumerate() {
            let at = address + 8 * at as u64;
            let page = self.pages.entry(at / 4096).or_insert_with(|| vec![0; 4096]);
            page[(at % 4096) as usize..][..8].copy_from_slice(&word.to_le_bytes());
        }
    }
}

impl Memory for Paper {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.reads.set(self.reads.get() + 1);
        for (index, byte) in into.iter_mut().enumerate() {
            let at = address.checked_add(index as u64).filter(|&at| at < MEMORY_END);
            let at = at.ok_or(Unreadable::Absent)?;
            *byte = self.pages.get(&(at / 4096)).map_or(0, |page| page[(at % 4096) as usize]);
        }
        Ok(())
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        self.read(address, into).map_or(0, |()| into.len())
    }
}

/// A process with a scheduler whose four shards have tasks.
struct Scene {
    memory: Paper,
    target: Target,
    shards: [Vec<u64>; 4],
    count: u64,
}

impl Scene {
    fn new() -> Scene {
        let mut target = testing::target(&[1], [0; 4]);
        let mapping = |begin, end, is_executable: bool| Mapping {
            begin,
            end,
            is_writable: !is_executable && begin != TABLE,
            is_executable,
            ..Mapping::default()
        };
        target.mappings = vec![
            mapping(CODE, CODE + 0x2000, true),
            mapping(TABLE, TABLE + 0x2000, false),
            mapping(HEAP, HEAP + (1 << 28), false),
            mapping(STACK, STACK + 0x1000, false),
        ];
        target.modules = vec![Module {
            begin: CODE,
            end: CODE + 0x4000,
            code: CODE..CODE + 0x2000,
            path: PathBuf::from("/nowhere/program"),
            is_executable: true,
            ..Module::default()
        }];
        target.tasks[0].registers =
            Some(Registers { pc: CODE, sp: STACK + 0x800, fp: None, lr: None, tls: None, all: None });
        let mut memory = Paper::default();
        let functions: Vec<u64> = (0..7).map(|at| CODE + 16 * at).collect();
        memory.put(TABLE, &functions);
        memory.put(TABLE + 56, &[TRAILER, SCHEDULER_AT, ID]);
        memory.put(WAKER_TABLE, &functions[..4]);
        memory.put(SCHEDULER, &[2, 1]);
        memory.put(STACK + 0x900, &[SCHEDULER]);
        Scene { memory, target, shards: Default::default(), count: 0 }
    }

    fn address(id: u64) -> u64 {
        CELLS + CELL_BYTES * id
    }

    /// Adds a suspended task with a handle and so many wakers.
    fn task(&mut self, id: u64, wakers: u64) {
        self.task_in(id, (ONE * (2 + wakers)) | 8);
    }

    fn task_in(&mut self, id: u64, state: u64) {
        let address = Scene::address(id);
        self.memory.put(address, &[state, 0, TABLE, 7, SCHEDULER, id]);
        self.shards[(id % 4) as usize].push(address);
        self.count += 1;
    }

    /// The end of a task wakes another one.
    fn wakes(&mut self, id: u64, other: u64) {
        let address = Scene::address(id);
        let state = self.memory.pages[&(address / 4096)][(address % 4096) as usize];
        self.memory.put(address, &[u64::from(state) | 1 << 4]);
        self.memory.put(address + TRAILER + 16, &[WAKER_TABLE, Scene::address(other)]);
    }

    fn link(&mut self) {
        for (at, shard) in self.shards.iter().enumerate() {
            let ends = [shard.first().copied().unwrap_or(0), shard.last().copied().unwrap_or(0)];
            self.memory.put(SHARDS + 24 * at as u64, &[0, ends[0], ends[1]]);
            for (at, &address) in shard.iter().enumerate() {
                let before = at.checked_sub(1).map_or(0, |before| shard[before]);
                let next = shard.get(at + 1).copied().unwrap_or(0);
                self.memory.put(address + TRAILER, &[before, next]);
            }
        }
        self.memory.put(SCHEDULER + 0x180, &[SHARDS, 4, 99, self.count, 3]);
    }

    fn find(&self) -> Option<(TokioTasks, TokioLists)> {
        let mut names = FunctionNames::new(&[], Options::default());
        TokioTasks::find(&self.target, &[0], &self.memory, &mut names)
    }

    fn found(&self) -> TokioTasks {
        self.find().expect("the list is found").0
    }
}

#[test]
fn the_tasks_of_a_runtime_are_those_of_its_list() {
    let mut scene = Scene::new();
    (1..=11).for_each(|id| scene.task(id, 1));
    scene.task_in(12, (ONE * 2) | 1);
    scene.task_in(13, (ONE * 3) | 4 | 8);
    scene.task_in(14, (ONE * 2) | 32 | 4);
    scene.wakes(3, 4);
    // It is in no list: it has ended, and its memory is not used again yet.
    scene.memory.put(Scene::address(20), &[ONE, 0, TABLE, 7, SCHEDULER, 20]);
    scene.link();
    let found = scene.found();
    assert_eq!((found.tasks.len(), found.unread, found.runtimes), (14, 0, 1));
    let task = |id| found.tasks.iter().find(|task| task.id == id).expect("a task");
    assert_eq!(task(1).stage, TaskStage::Suspended);
    assert_eq!((task(1).wakers, task(1).has_handle), (1, true));
    let stages = [task(12), task(13), task(14)].map(|task| (task.stage, task.wakers));
    assert_eq!(stages, [(TaskStage::Polled, 0), (TaskStage::Ready, 0), (TaskStage::Aborted, 0)]);
    assert_eq!(task(3).wakes.map(|at| found.tasks[at].id), Some(4));
    assert!(found.is_consistent());
}

#[test]
fn the_list_of_a_local_set_has_two_ends_and_no_shards() {
    let mut scene = Scene::new();
    (1..=3).for_each(|id| scene.task(4 * id, 1));
    scene.link();
    let [first, last] = [4, 12].map(Scene::address);
    scene.memory.put(SCHEDULER + 0x180, &[0; 5]);
    // A queue has some of the tasks.
    scene.memory.put(SCHEDULER + 0x80, &[first, first]);
    scene.memory.put(SCHEDULER + 0x140, &[first, last]);
    assert_eq!(scene.found().tasks.len(), 3);
    // A runtime without tasks follows it in memory. Its list was taken for that of the set.
    scene.memory.put(SCHEDULER + 0x600, &[HEAP + 0x3000, 4, 99, 0, 3]);
    assert_eq!(scene.found().tasks.len(), 3);
}

#[test]
fn a_runtime_without_tasks_is_known() {
    let mut scene = Scene::new();
    scene.link();
    assert_eq!(scene.found().tasks.len(), 0);
    // Its list has no task, and it says that there are some.
    scene.memory.put(SCHEDULER + 0x198, &[5]);
    assert!(scene.find().is_none());
}

#[test]
fn what_has_another_shape_is_not_understood() {
    // Another scheduler, another list, another shard, a table with other offsets, a function that is no code.
    let changes: [(u64, u64); 6] = [
        (Scene::address(4) + SCHEDULER_AT, SCHEDULER + 64),
        (Scene::address(4) + 24, 0),
        (Scene::address(4) + ID, 5),
        (TABLE + 56, 32),
        (TABLE + 8, HEAP),
        (SCHEDULER, 0),
    ];
    for (address, word) in changes {
        let mut scene = Scene::new();
        scene.task(4, 1);
        scene.task(8, 1);
        scene.link();
        assert!(scene.find().is_some());
        scene.memory.put(address, &[word]);
        assert!(scene.find().is_none(), "{address:#x}");
    }
}

#[test]
fn a_list_that_leads_in_a_circle_ends() {
    let mut scene = Scene::new();
    (1..=9).for_each(|id| scene.task(4 * id, 1));
    scene.link();
    // The sixth leads back to the second.
    scene.memory.put(Scene::address(24) + TRAILER + 8, &[Scene::address(8)]);
    let found = scene.found();
    assert_eq!((found.tasks.len(), found.unread), (6, 3));
    // Each leads to itself.
    for id in 1..=9 {
        scene.memory.put(Scene::address(4 * id) + TRAILER, &[Scene::address(4 * id); 2]);
    }
    let found = scene.found();
    assert_eq!((found.tasks.len(), found.unread), (1, 8));
}

#[test]
fn a_list_that_is_as_long_as_it_claims_is_bounded() {
    let mut scene = Scene::new();
    (1..=3).for_each(|id| scene.task(id, 1));
    scene.count = u64::MAX;
    scene.link();
    assert_eq!(scene.found().unread, 0, "a number that no process can have is not believed");
    let mut scene = Scene::new();
    (1..=20_000).for_each(|id| scene.task(id, 1));
    scene.link();
    let found = scene.found();
    assert_eq!(found.tasks.len() + found.unread, 20_000);
}

#[test]
fn memory_that_leads_anywhere_harms_nobody() {
    let words: [fn(u64) -> u64; 6] = [
        |_| SCHEDULER,
        |_| TABLE,
        |address| address,
        |address| address.wrapping_add(128),
        |address| address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8,
        |_| u64::MAX,
    ];
    let scene = Scene::new();
    for word in words {
        let mut names = FunctionNames::new(&[], Options::default());
        assert!(TokioTasks::find(&scene.target, &[0], &testing::Hostile(word), &mut names).is_none());
    }
}

#[test]
fn a_task_stands_still_if_nothing_of_it_changes() {
    let mut scene = Scene::new();
    (1..=4).for_each(|id| scene.task(id, 1));
    scene.wakes(2, 1);
    scene.link();
    let (before, lists) = scene.find().expect("the list is found");
    // One changes, one ends, one begins.
    scene.memory.put(Scene::address(3) + 64, &[1]);
    scene.shards[0].clear();
    scene.count -= 1;
    scene.task(5, 1);
    scene.link();
    let compared = |apart_ns| {
        let mut tasks = before.clone();
        tasks.compare(&lists, &scene.target, &scene.memory, apart_ns);
        tasks
    };
    let mut tasks = compared(APART_MIN_NS);
    tasks.tasks.sort_by_key(|task| task.id);
    let still: Vec<_> = tasks.tasks.iter().map(|task| (task.id, task.is_still)).collect();
    assert_eq!(
        still,
        [(1, Some(true)), (2, Some(true)), (3, Some(false))],
        "a new neighbour changes nothing"
    );
    assert_eq!(tasks.unread, 1);
    assert!(compared(APART_MIN_NS - 1).tasks.iter().all(|task| task.is_still.is_none()));
}

#[test]
fn only_tasks_that_nobody_else_wakes_are_in_a_circle() {
    let circles = |wakers: u64, edges: &[(u64, u64)]| {
        let mut scene = Scene::new();
        (1..=6).for_each(|id| scene.task(id, wakers));
        edges.iter().for_each(|&(ended, woken)| scene.wakes(ended, woken));
        scene.link();
        let tasks = scene.found();
        let circles = tasks.circles(true).into_iter();
        let ids = circles.map(|circle| circle.into_iter().map(|at| tasks.tasks[at].id).collect::<Vec<_>>());
        let mut ids: Vec<Vec<u64>> = ids.collect();
        ids.iter_mut().for_each(|circle| {
            let least = circle.iter().position(|id| Some(id) == circle.iter().min()).unwrap_or(0);
            circle.rotate_left(least);
        });
        ids.sort();
        ids
    };
    // The end of 1 wakes 2, and so on: 1 goes on after 3, 3 after 2, 2 after 1.
    assert_eq!(circles(1, &[(1, 2), (2, 3), (3, 1), (4, 1), (5, 5)]), [vec![1, 3, 2], vec![5]]);
    assert_eq!(circles(2, &[(1, 2), (2, 1)]), [[0; 0]; 0], "a time limit may wake them");
    assert_eq!(circles(1, &[(1, 2), (2, 3)]), [[0; 0]; 0]);
    assert_eq!(circles(1, &[]), [[0; 0]; 0]);
}
