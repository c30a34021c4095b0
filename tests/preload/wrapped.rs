//! Programs that wrap their locks: where a thread waits, the wrapper's callers are shown.

use std::path::Path;

use librip_test_kit::victim::Remains;

use crate::{compile_as, compile_cpp, plan, preload, read_rip};

/// Runs the fixture, compiled with these flags, until all of its threads wait.
fn stuck(name: &'static str, flags: &[&str]) -> Remains {
    let program = compile_as("wrapped", name, flags);
    let mut victim = plan(&program, &[], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    victim.killed()
}

/// The line of the fixture with this comment, as `wrapped.c:LINE`.
fn line_of(comment: &str) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/fixtures/wrapped.c");
    let source = std::fs::read_to_string(source).unwrap();
    let line = source.lines().position(|line| line.contains(&format!("/* {comment} */"))).unwrap();
    format!("wrapped.c:{}", line + 1)
}

/// `INNERMOST from OUTER ...`, by the comments of their lines.
fn chain(comments: &[&str]) -> String {
    comments.iter().map(|comment| line_of(comment)).collect::<Vec<_>>().join(" from ")
}

fn expect_callers_of_waits(remains: &Remains) {
    let ring = &remains.ring_path();
    let found = read_rip(&["check"], ring);
    for waits in ["forth waits", "back waits"] {
        let chain = chain(&["in the inner wrapper", "in the outer wrapper", waits]);
        assert!(found.contains(&format!(" at inner {chain}\n")), "{chain}: {found}");
    }
    let locks = read_rip(&["locks"], ring);
    let threads = read_rip(&["-t"], ring);
    let others = [
        ["in the inner wrapper", "in the outer wrapper", "forth waits"].as_slice(),
        &["in the wrapper of the condition", "sleeper waits"],
        &["in the wrapper of the semaphore", "consumer waits"],
        &["among the decoys", "misled waits"],
    ];
    for comments in others {
        let chain = chain(comments);
        let in_threads = chain.replacen(" from ", "(waits) from ", 1);
        let in_threads =
            if comments[0].ends_with("condition") { in_threads.replace("waits", "idle") } else { in_threads };
        assert!(threads.contains(&in_threads), "{in_threads}: {threads}");
        // `locks` names no place of a thread that waits for a signal or a unit.
        let is_lock = !comments[0].contains("of the");
        assert!(!is_lock || locks.contains(&chain), "{chain}: {locks}");
    }
    for output in [found, locks, threads] {
        assert!(!output.contains(&format!("from {}", line_of("a decoy"))), "{output}");
    }
}

#[test]
fn a_wait_in_a_wrapper_shows_the_callers_of_the_wrapper() {
    expect_callers_of_waits(&stuck("wrapped", &[]));
}

#[test]
fn an_optimised_program_shows_the_callers_of_its_wrappers() {
    expect_callers_of_waits(&stuck("wrapped-optimised", &["-O2"]));
}

#[test]
fn an_unoptimised_program_shows_the_callers_of_its_wrappers() {
    expect_callers_of_waits(&stuck("wrapped-unoptimised", &["-O0"]));
}

#[test]
fn a_stripped_program_shows_the_addresses_of_the_callers() {
    let remains = stuck("wrapped-stripped", &["-O2", "-s"]);
    let found = read_rip(&["check"], &remains.ring_path());
    let waits: Vec<&str> = found.lines().filter(|line| line.contains(" at ")).collect();
    let chains = waits.iter().filter(|line| line.matches(" from preload-wrapped-stripped+0x").count() == 2);
    assert_eq!(chains.count(), 2, "{found}");
}

#[test]
fn a_saved_ring_has_the_callers_of_wrappers() {
    let remains = stuck("wrapped-saved", &["-O2"]);
    let saved = remains.ring_path().with_extension("saved");
    read_rip(&["save", "-o", saved.to_str().unwrap()], &remains.ring_path());
    std::fs::remove_file(Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload-wrapped-saved")).unwrap();
    let chain = chain(&["in the inner wrapper", "in the outer wrapper", "back waits"]);
    let found = read_rip(&["check"], &saved);
    std::fs::remove_file(&saved).unwrap();
    assert!(found.contains(&format!(" at inner {chain}\n")), "{chain}: {found}");
}

/// The record of a wait in `std::thread::join` or `std::condition_variable::wait` was at a line of the C++ library.
#[test]
fn a_wait_in_the_cpp_library_is_at_the_line_of_the_user_after_a_kill() {
    let program = compile_cpp("library", "library", &["-g", "-O1"]);
    let mut victim = plan(&program, &[], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    let threads = read_rip(&["-t"], &victim.killed().ring_path());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/fixtures/library.cc");
    let source = std::fs::read_to_string(source).unwrap();
    for (comment, does) in [("consumer waits", "idle"), ("joiner waits", "waits")] {
        let line = source.lines().position(|line| line.ends_with(&format!("// {comment}"))).unwrap() + 1;
        let place = format!("library.cc:{line}({does})");
        assert!(threads.contains(&place), "{place}: {threads}");
    }
}
