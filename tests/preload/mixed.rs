//! Marks of the program itself and interposed calls: one ring, one slot a thread, one wait-for graph.

use std::path::Path;
use std::process::Command;

use librip_test_kit::tool::tool;

use crate::{c_archive, compile, directory, plan, preload, read_rip};

#[test]
fn marks_and_interposed_calls_of_a_process_are_in_one_ring() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../librip/capi");
    let archive = c_archive();
    let include = format!("-I{}", header.display());
    let program = compile("mixed", &[&include, archive.to_str().unwrap(), "-lm"]);
    let victim = plan(&program, &[], &[preload()]).start();
    // Wait until it is stuck: the ring shows that both threads wait.
    let ring = victim.ring_path();
    while !read_rip(&["locks"], &ring).contains("waits at spender") {
        librip_test_kit::pause();
    }
    let remains = victim.killed();
    assert_eq!(remains.files().iter().filter(|name| name.to_string_lossy().starts_with("ring")).count(), 1);

    let ring = remains.ring_path();
    let found = read_rip(&["check"], &ring);
    assert!(found.contains("\npotential deadlock: 2 threads wait for one another\n"), "{found}");
    for part in ["waits for by_hand", "at saver mixed.c:", "waits for by_pthread", "at spender mixed.c:"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let threads = read_rip(&["-t"], &ring);
    assert_eq!(threads.lines().count(), 3, "one slot a thread: {threads}");
}

#[test]
fn locks_of_cpp_are_recorded_once_and_at_the_line_of_the_user() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory().join("mixed-cpp");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-g", "-O1", "-Wall", "-Wextra", "-pthread", "-I"]);
    compiler.arg(package.join("../librip/capi")).arg(package.join("c/fixtures/cpp_locks.cc"));
    compiler.arg(c_archive()).args(["-lm", "-ldl", "-o"]).arg(&program);
    tool(&mut compiler);
    let mut victim = plan(&program, &[], &[preload()]).start();
    victim.until("stuck");
    let remains = victim.killed();
    let ring = remains.ring_path();
    let found = read_rip(&["check"], &ring);
    assert!(found.contains("proven deadlock: 5 threads wait for one another"), "{found}");
    assert_eq!(found.matches("cpp_locks.cc:").count(), 10, "{found}");
    let locks = read_rip(&["locks"], &ring);
    for holder in ["first", "second", "third", "fourth", "fifth"] {
        let held =
            locks.lines().filter(|line| line.contains("held by") && line.contains(&format!("at {holder} ")));
        // The fourth thread has two.
        assert_eq!(held.count(), if holder == "fourth" { 2 } else { 1 }, "{locks}");
    }
}
