//! The stacks of sleeping threads: complete, and with the right functions, whatever the compiler did.
//!
//! Not tested here: what becomes of hostile memory and damaged files (`stacks_hostile.rs`).

use std::collections::BTreeSet;
use std::process::Command;

use read_rip_evidence::stacks::{Cut, End};

use crate::support::compiled::Fixture;
use crate::support::sleepers::{Named, Sleepers};

const C: &str = include_str!("../programs/sleepers.c");
const CPP: &str = include_str!("../programs/sleepers.cpp");
const RUST: &str = include_str!("../programs/sleepers.rs");

/// The functions in which the threads of the C program wait.
const C_WAITS: [&str; 5] = ["in_mutex", "in_condition", "in_read", "in_poll", "in_sleep"];
/// The functions above each of them.
const C_CALLERS: [&str; 4] = ["inner", "middle", "aligned", "outer"];

fn compile(file: &str, source: &str, command: &str) -> Fixture {
    let fixture = Fixture::new(file, source);
    fixture.run(command);
    fixture
}

fn start(fixture: &Fixture) -> Sleepers {
    Sleepers::start(&mut Command::new(fixture.path("prog")))
}

/// The names of the program's own functions among those of a stack.
fn own<'a>(stack: &'a Named, own: &[&str]) -> Vec<&'a str> {
    let is_own = |name: &&str| own.contains(name);
    stack.names.iter().map(String::as_str).filter(is_own).collect()
}

#[track_caller]
fn check_c(flags: &str) {
    let fixture = compile("prog.c", C, &format!("gcc -pthread {flags} prog.c -o prog"));
    check_c_stacks(&start(&fixture).stacks(), flags, End::Complete);
}

#[track_caller]
fn check_c_stacks(stacks: &[Named], what: &str, end: End) {
    let with = |names: &[&'static str]| names.iter().chain(&C_CALLERS).copied().collect::<Vec<_>>();
    let mut expected: BTreeSet<Vec<&str>> =
        C_WAITS.iter().map(|&wait| [with(&[wait]), vec!["worker"]].concat()).collect();
    for signal in ["in_handler", "on_other_stack"] {
        expected.insert([with(&["in_read"]), vec!["handler"], with(&[signal]), vec!["worker"]].concat());
    }
    expected.insert([with(&["in_read"]), vec!["main"]].concat());
    let all: Vec<&str> = C_WAITS
        .iter()
        .chain(&C_CALLERS)
        .chain(&["leave_traces", "handler", "in_handler", "on_other_stack", "worker", "main"])
        .copied()
        .collect();
    let found: BTreeSet<Vec<&str>> = stacks.iter().map(|stack| own(stack, &all)).collect();
    assert_eq!(found, expected, "{what}: {stacks:#?}");
    assert_eq!(stacks.len(), expected.len());
    for stack in stacks {
        assert_eq!(stack.stack.end, end, "{what}: {stack:?}");
        // Two of the threads are in a handler of a signal.
        let signals = (0..stack.stack.frames.len()).filter(|&at| stack.stack.is_signal_return(at)).count();
        assert_eq!(signals, usize::from(own(stack, &["handler"]).len() == 1), "{what}: {stack:?}");
    }
}

#[test]
fn c_without_optimisation() {
    check_c("-O0");
    check_c("-O0 -fomit-frame-pointer");
}

#[test]
fn c_with_little_optimisation() {
    check_c("-O1");
    check_c("-O1 -fno-omit-frame-pointer");
}

#[test]
fn c_with_optimisation() {
    check_c("-O2");
    check_c("-O2 -fno-omit-frame-pointer");
}

#[test]
fn c_with_much_optimisation() {
    check_c("-O3 -fno-plt");
    check_c("-O3 -fno-omit-frame-pointer -fcf-protection=none");
}

#[test]
fn c_that_is_linked_statically() {
    check_c("-O0 -static");
    check_c("-O2 -static-pie");
}

#[test]
fn c_whose_unwind_tables_are_debug_information() {
    check_c("-O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables");
}

#[test]
fn c_with_a_c_library_that_has_no_unwind_tables() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        println!("skipped: musl-gcc is not installed; apt install musl-tools");
        return;
    }
    for flags in ["-O0", "-O0 -static", "-O2", "-O2 -static", "-O2 -static -fno-omit-frame-pointer"] {
        let fixture = compile("prog.c", C, &format!("musl-gcc -pthread {flags} prog.c -o prog"));
        // Its own functions begin a thread.
        check_c_stacks(&start(&fixture).stacks(), flags, End::Cut(Cut::NoTable));
    }
}

#[test]
fn the_file_of_a_running_program_is_gone() {
    let fixture = compile("prog.c", C, "gcc -pthread -O0 prog.c -o prog");
    let sleepers = start(&fixture);
    let target = sleepers.target();
    let before = sleepers.stacks_of(&target);
    check_c_stacks(&before, "with the file", End::Complete);
    std::fs::remove_file(fixture.path("prog")).unwrap();
    let after = sleepers.stacks_of(&target);
    let stacks = |named: &[Named]| named.iter().map(|named| named.stack.clone()).collect::<Vec<_>>();
    assert_eq!(stacks(&after), stacks(&before));
}

#[test]
fn cpp() {
    for flags in ["-O0", "-O2"] {
        let fixture = compile("prog.cpp", CPP, &format!("g++ -pthread {flags} prog.cpp -o prog"));
        let stacks = start(&fixture).stacks();
        assert_eq!(stacks.len(), 4);
        let mut waits = BTreeSet::new();
        for stack in &stacks {
            assert!(stack.stack.is_complete(), "{flags}: {stacks:#?}");
            let position = |begin: &str| stack.names.iter().position(|name| name.starts_with(begin));
            let wait = ["pool::InMutex::wait(", "pool::InCondition::wait(", "pool::InException::wait("]
                .iter()
                .find_map(|wait| position(wait).map(|at| (at, *wait)));
            let (at, wait) = wait.unwrap_or_else(|| panic!("{flags}: {stack:?}"));
            waits.insert(wait);
            let inner = position("pool::inner(").unwrap();
            let outer = stack.names.iter().rposition(|name| name.starts_with("pool::outer(")).unwrap();
            assert!(at < inner && inner < outer, "{flags}: {stack:?}");
        }
        assert_eq!(waits.len(), 3);
    }
}

#[test]
fn rust() {
    for flags in ["", "-O", "-O -C debuginfo=line-tables-only -C force-frame-pointers=yes"] {
        let fixture = compile("prog.rs", RUST, &format!("rustc --edition 2024 {flags} prog.rs -o prog"));
        let stacks = start(&fixture).stacks();
        let mut waits = BTreeSet::new();
        for stack in &stacks {
            assert!(stack.stack.is_complete(), "{flags}: {stacks:#?}");
            let position = |part: &str| stack.names.iter().position(|name| name.ends_with(part));
            let wait = stack.names.iter().find(|name| name.contains("prog::in_"));
            let wait = wait.unwrap_or_else(|| panic!("{flags}: {stack:#?}"));
            waits.insert(wait.clone());
            let (inner, outer) = (position("prog::inner").unwrap(), position("prog::outer").unwrap());
            assert!(position(wait).unwrap() < inner && inner < outer, "{flags}: {stack:?}");
        }
        assert_eq!(waits.len(), 8, "{waits:?}");
    }
}

#[test]
fn python() {
    const SOURCE: &str = "import threading, time, queue\n\
        def inner(wait): wait()\n\
        def outer(wait): inner(wait)\n\
        lock = threading.Lock(); lock.acquire()\n\
        waits = [lock.acquire, queue.Queue().get, lambda: time.sleep(100000)]\n\
        for wait in waits: threading.Thread(target=outer, args=(wait,)).start()\n\
        print(len(waits), flush=True)\n\
        outer(threading.Event().wait)\n";
    let sleepers = Sleepers::start(Command::new("python3").args(["-c", SOURCE]));
    let stacks = sleepers.stacks();
    assert_eq!(stacks.len(), 4);
    for stack in &stacks {
        assert!(stack.stack.is_complete(), "{stacks:#?}");
        assert!(stack.names.iter().any(|name| name.contains("_PyEval")), "{stack:#?}");
    }
}
