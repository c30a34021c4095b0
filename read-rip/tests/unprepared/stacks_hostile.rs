//! Stacks, registers and module files that somebody made up: no panic, no hang, and nothing is called complete that
//! is not.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::process::Command;

use read_rip_evidence::process::live::LiveMemory;
use read_rip_evidence::stacks::{Cut, End, Unwinder};
use read_rip_evidence::target::{Memory, Registers, Target, Unreadable};
use read_rip_symbols::Options;

use crate::support::Random;
use crate::support::compiled::Fixture;
use crate::support::sleepers::Sleepers;

const C: &str = include_str!("../programs/sleepers.c");
/// Where the stack is made up.
const STACK: u64 = 0x7000_0000_0000;

/// A target's memory, with a stack of our own.
struct Forged<'a> {
    real: &'a LiveMemory,
    stack: Vec<u8>,
    /// How many bytes of it were read.
    read_bytes: Cell<usize>,
}

impl<'a> Forged<'a> {
    fn new(real: &'a LiveMemory, words: impl Iterator<Item = u64>) -> Forged<'a> {
        Forged { real, stack: words.flat_map(u64::to_le_bytes).collect(), read_bytes: 0.into() }
    }
}

impl Memory for Forged<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        if self.read_some(address, into) == into.len() { Ok(()) } else { Err(Unreadable::Absent) }
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(rest) = address.checked_sub(STACK).and_then(|at| self.stack.get(at as usize..)) else {
            return self.real.read_some(address, into);
        };
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        self.read_bytes.set(self.read_bytes.get() + len);
        len
    }
}

fn program(flags: &str) -> (Fixture, Sleepers) {
    let fixture = Fixture::new("prog.c", C);
    fixture.run(&format!("gcc -pthread {flags} prog.c -o prog"));
    let sleepers = Sleepers::start(&mut Command::new(fixture.path("prog")));
    (fixture, sleepers)
}

/// An address at which a call in the function `outer` returns.
fn pc_of_outer(sleepers: &Sleepers) -> u64 {
    let in_outer = |names: &[String]| names.iter().position(|name| name == "outer");
    let stacks = sleepers.stacks().into_iter();
    let mut found = stacks.filter_map(|named| Some(named.stack.frames[in_outer(&named.names)?].pc));
    found.next().expect("a thread in it")
}

/// Addresses behind calls, and other addresses in code: what a stack that is meant to mislead has.
fn code_addresses(sleepers: &Sleepers, target: &Target) -> Vec<u64> {
    let returns = sleepers.stacks().into_iter().flat_map(|named| named.stack.frames).map(|frame| frame.pc);
    let begins =
        target.mappings.iter().filter(|mapping| mapping.is_executable).map(|mapping| mapping.begin + 64);
    returns.chain(begins).collect()
}

#[test]
fn a_made_up_stack_neither_hangs_nor_is_complete_unless_it_leads_to_a_threads_beginning() {
    let (_fixture, sleepers) = program("-O0");
    let target = sleepers.target();
    let real = sleepers.memory(&target);
    let code = code_addresses(&sleepers, &target);
    let mut random = Random(77);
    let (mut complete, mut cut) = (0, 0);
    for round in 0..12 {
        let mut word = |index: u64| match random.below(6) {
            0 => random.next(),
            1 => 0,
            2 => STACK + 8 * (index + random.below(64) as u64),
            // Frame pointers that point back.
            3 => STACK + 8 * random.below(512) as u64,
            _ => code[random.below(code.len())],
        };
        let memory = Forged::new(&real, (0..512).map(&mut word));
        let mut unwinder = Unwinder::new(&target, &memory, Options::default());
        for &pc in &code {
            let fp = (round % 3 > 0).then(|| STACK + 8 * random.below(512) as u64);
            let sp = STACK + 8 * random.below(100) as u64;
            let stack = unwinder.stack(Some(&Registers { pc, sp, fp, ..Registers::default() }));
            assert!(memory.read_bytes.take() <= 8 << 20);
            match stack.end {
                End::Complete => {
                    complete += 1;
                    // It may be forged, but it does end where threads begin.
                    let last = stack.frames.last().unwrap();
                    let is_beginning = last.pc != 0 && code.contains(&last.pc);
                    assert!(is_beginning, "{stack:?}");
                }
                End::Cut(cause) => {
                    cut += 1;
                    assert_ne!(cause, Cut::NoRegisters);
                }
            }
        }
    }
    assert!(cut > complete, "{complete} complete, {cut} cut");
}

#[test]
fn registers_that_point_nowhere_cut_a_stack() {
    let (_fixture, sleepers) = program("-O0");
    let target = sleepers.target();
    let memory = sleepers.memory(&target);
    let code = code_addresses(&sleepers, &target);
    let mut unwinder = Unwinder::new(&target, &memory, Options::default());
    let edges = [0, 1, 8, 1 << 12, i64::MAX as u64, 1 << 63, u64::MAX - 8, u64::MAX - 7, u64::MAX];
    let mut complete = BTreeSet::new();
    for &pc in edges.iter().chain(&code) {
        for &sp in &edges {
            for fp in edges.iter().map(|&fp| Some(fp)).chain([None]) {
                let stack = unwinder.stack(Some(&Registers { pc, sp, fp, ..Registers::default() }));
                assert_eq!(stack.frames.len(), 1, "{stack:?}");
                if stack.is_complete() {
                    complete.insert(pc);
                }
            }
        }
    }
    // Where threads begin is a whole stack by itself: `_start` and `clone3`.
    assert!((1..=4).contains(&complete.len()), "{complete:x?}");
}

#[test]
fn frame_pointers_in_a_circle_end_a_stack() {
    let (_fixture, sleepers) = program("-O0");
    let target = sleepers.target();
    let real = sleepers.memory(&target);
    // A function that keeps its frame at its frame pointer: its caller is itself, each time with the same frame.
    let pc = pc_of_outer(&sleepers);
    let words = (0..512).map(|index| if index % 2 == 0 { STACK + 128 } else { pc });
    let memory = Forged::new(&real, words);
    let mut unwinder = Unwinder::new(&target, &memory, Options::default());
    for fp in [None, Some(STACK + 128)] {
        let stack = unwinder.stack(Some(&Registers { pc, sp: STACK, fp, ..Registers::default() }));
        assert!(matches!(stack.end, End::Cut(_)), "{stack:?}");
    }
}

#[test]
fn endless_recursion_is_cut() {
    let (_fixture, sleepers) = program("-O0");
    let target = sleepers.target();
    let real = sleepers.memory(&target);
    let pc = pc_of_outer(&sleepers);
    let words = (0..100_000u64).map(|index| if index % 2 == 0 { STACK + 8 * (index + 2) } else { pc });
    let memory = Forged::new(&real, words);
    let mut unwinder = Unwinder::new(&target, &memory, Options::default());
    let stack = unwinder.stack(Some(&Registers { pc, sp: STACK, fp: Some(STACK), ..Registers::default() }));
    assert_eq!(stack.end, End::Cut(Cut::TooLong));
    assert_eq!(stack.frames.len(), 10_000);
}

#[test]
fn a_thread_without_known_registers_has_no_frames_and_is_not_complete() {
    let (_fixture, sleepers) = program("-O2");
    let target = sleepers.target();
    let memory = sleepers.memory(&target);
    let stack = Unwinder::new(&target, &memory, Options::default()).stack(None);
    assert_eq!((stack.frames.len(), stack.end), (0, End::Cut(Cut::NoRegisters)));
}

#[test]
fn damaged_unwind_tables_cause_no_panic_and_no_hang() {
    use object::{Object, ObjectSection};

    let (fixture, sleepers) = program("-O0");
    let target = sleepers.target();
    let memory = sleepers.memory(&target);
    let path = fixture.path("prog");
    let sound = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*sound).unwrap();
    let places: Vec<(u64, u64)> = [".eh_frame", ".eh_frame_hdr"]
        .iter()
        .map(|name| file.section_by_name(name).unwrap().file_range().unwrap())
        .collect();
    let other = fixture.path("damaged");
    let mut random = Random(5);
    let tasks = &target.tasks;
    for round in 0..100 {
        let mut damaged = sound.clone();
        for &(offset, len) in &places {
            for _ in 0..1 + round % 40 {
                damaged[offset as usize + random.below(len as usize)] = random.next() as u8;
            }
        }
        std::fs::write(&other, &damaged).unwrap();
        let mut target = target.clone();
        for module in target.modules.iter_mut().filter(|module| module.path == path) {
            module.path = other.clone();
        }
        let mut unwinder = Unwinder::new(&target, &memory, Options::default());
        for task in tasks {
            let stack = unwinder.stack(task.registers.as_ref());
            assert!(!stack.frames.is_empty());
        }
    }
}
