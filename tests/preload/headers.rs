//! Locations of C++ locks: the function that uses the lock, not the headers of the standard library inlined into it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use librip_test_kit::reader;
use librip_test_kit::victim::DEADLINE;

use crate::{compile_cpp, plan, preload};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/fixtures/headers.cc")
}

/// The number of the line that ends in this comment.
fn line_of(comment: &str) -> usize {
    let source = std::fs::read_to_string(fixture()).unwrap();
    source.lines().position(|line| line.ends_with(&format!("// {comment}"))).unwrap() + 1
}

/// The output of `read-rip locks` for the program compiled with these flags, once all of its threads are stuck.
fn locks(name: &str, flags: &[&str]) -> String {
    let program = compile_cpp("headers", name, flags);
    let victim = plan(&program, &[], &[preload()]).start();
    let ring = victim.ring_path();
    let began = Instant::now();
    let shown = loop {
        let output = Command::new(reader::program()).args(["locks", "-v"]).arg(&ring).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        let both_wait = shown.matches("waits at").count() == 2 || shown.contains("2 threads (");
        if both_wait && shown.contains("on a condition variable") {
            break shown;
        }
        assert!(began.elapsed() < DEADLINE, "{shown}");
        librip_test_kit::pause();
    };
    victim.killed();
    shown
}

#[test]
fn the_location_of_a_cpp_lock_is_in_the_function_that_uses_it() {
    let shown = locks("headers-O2", &["-O2", "-g"]);
    let is_at = |what: &str, function: &str, comment: &str| {
        let location = format!("at {function} headers.cc:{}<", line_of(comment));
        let found = shown.lines().any(|line| line.contains(what) && line.contains(&location));
        assert!(found, "{what} {location}: {shown}");
    };
    is_at("held by", "takes", "takes");
    is_at("held shared by", "reads", "reads");
    is_at("waits at", "waits", "waits");
    assert!(!shown.contains("gthr"), "{shown}");
}

#[test]
fn the_location_of_a_cpp_lock_that_is_not_inlined_is_in_the_library() {
    let shown = locks("headers-O0", &["-O0", "-g"]);
    let holder = shown.lines().find(|line| line.contains("held by")).unwrap();
    assert!(holder.contains("_lock libstdc++ gthr-default.h:"), "{shown}");
}
