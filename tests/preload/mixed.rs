//! Marks of the program itself and interposed calls: one ring, one slot a thread, one wait-for graph.

use std::path::Path;

use crate::{compile, plan, preload, read_rip, release};

#[test]
fn marks_and_interposed_calls_of_a_process_are_in_one_ring() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../librip/capi");
    let archive = release("librip-capi", "rip", ".a");
    let include = format!("-I{}", header.display());
    let program = compile("mixed", &[&include, archive.to_str().unwrap(), "-lm"]);
    let mut victim = plan(&program, &[], &[preload()]).start();
    // Wait until it is stuck: the ring shows that both threads wait.
    let ring = victim.ring_path();
    while !read_rip(&["locks"], &ring).contains("waits at spender") {
        std::thread::yield_now();
    }
    victim.kill();
    let remains = victim.wait();
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
