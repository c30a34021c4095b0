//! `read-rip PID`, `stacks` and `check` on programs that nothing prepared: what is proven, and what must not be.
//!
//! `programs/deadlocks.c` gets threads stuck. What the C library's objects look like in memory: see `waits`.

use std::fs;

use librip_test_kit::tool::is_installed;
use read_rip_evidence::process::live::LiveTarget;

use crate::support::run::read_rip;
use crate::support::unprepared::{
    Stuck, compile, compile_rust, contains, deadlocks, directory, futex, is_proven_deadlock,
};

/// Lines of `programs/deadlocks.c`.
fn line_of(text: &str) -> usize {
    let source = include_str!("../programs/deadlocks.c");
    source.lines().position(|line| line.contains(text)).expect(text) + 1
}

/// The only finding is a proven deadlock that says whom it trusts. Returns it.
#[track_caller]
fn the_proven_deadlock(stuck: &Stuck) -> serde_json::Value {
    let mut found = stuck.findings();
    assert_eq!(found.len(), 1, "{found:#?}");
    let finding = found.remove(0);
    is_proven_deadlock(&finding);
    finding
}

/// Nothing recorded the process, and no command says what a record would have to have.
#[track_caller]
fn speaks_of_no_record(stuck: &Stuck) {
    for command in [&[][..], &["-t"], &["locks"], &["stacks"], &["check"]] {
        let outcome = stuck.read(command);
        let said = format!("{}{}", outcome.stdout, outcome.stderr).replace(", records nothing: ", "");
        for word in ["record", " mark", "RIP_", "Threads ran", "of process "] {
            assert!(!said.contains(word), "{word}: {outcome:#?}");
        }
    }
}

#[test]
fn two_mutexes_in_opposite_orders_are_a_proven_deadlock() {
    let at = format!("at transfer deadlocks.c:{}", line_of("/* the second lock */"));
    for case in ["normal", "recursive", "error-checking", "robust"] {
        let stuck = Stuck::start(deadlocks(), &[case], 2);
        let finding = the_proven_deadlock(&stuck);
        // A kind whose unlock fails in other threads takes no rule for granted.
        let is_by_rule = finding["premises"].as_array().unwrap().len() == 2;
        assert_eq!(is_by_rule, case == "normal", "{finding:#}");
        let check = stuck.read(&["check"]);
        assert_eq!(check.status, 1, "{check:#?}");
        contains(&check.stdout, &["proven deadlock: 2 threads wait for one another", "saver[", "spender["]);
        contains(&check.stdout, &["waits for savings", "waits for current_account", &at, "memory"]);
        let view = stuck.read(&[]).sound();
        contains(
            &view.stdout,
            &["mutex savings", "owned by saver[", "check: proven deadlock: 2 threads wait"],
        );
        let stacks = stuck.read(&["stacks"]).sound();
        contains(
            &stacks.stdout,
            &["pthread_mutex_lock", "    transfer deadlocks.c:", "    transfers deadlocks.c:"],
        );
        // They have one stack, and wait for different mutexes.
        contains(&stacks.stdout, &["mutex savings", "mutex current_account"]);
    }
}

#[test]
fn locks_with_priority_inheritance_are_part_of_a_proven_deadlock() {
    let stuck = Stuck::start(deadlocks(), &["inheriting-and-normal"], 2);
    the_proven_deadlock(&stuck);
    let check = stuck.read(&["check"]).stdout;
    contains(
        &check,
        &["2 threads wait for one another", "waits for savings", "    saver[", "] holds savings"],
    );
    // A lock of the kernel alone: the word has its owner.
    let stuck = Stuck::start(deadlocks(), &["raw-inheriting"], 2);
    the_proven_deadlock(&stuck);
    let at = format!("at take_the_word deadlocks.c:{}", line_of("&word, LOCK_PI"));
    let check = stuck.read(&["check"]).stdout;
    contains(
        &check,
        &["2 threads wait for one another", "waits for word", &at, "    saver[", "] holds word"],
    );
}

#[test]
fn a_mutex_that_the_kernel_refuses_is_a_proven_deadlock() {
    let stuck = Stuck::start(deadlocks(), &["inheriting"], 2);
    let found = stuck.findings();
    found.iter().for_each(is_proven_deadlock);
    let check = stuck.read(&["check"]).stdout;
    contains(&check, &["proven deadlock: the kernel has refused a mutex to ", ", which sleeps for good"]);
    contains(&check, &["at transfer deadlocks.c:", "or its owner has ended"]);
    let view = stuck.read(&[]).sound().stdout;
    contains(&view, &["sleeping for good in a mutex that the kernel has refused"]);
    // If both ask at the same moment, the kernel refuses both.
    match found.len() {
        1 => {
            contains(&check, &["1 more thread is blocked by it"]);
            contains(&view, &["waiting for the mutex "]);
        }
        count => assert_eq!(count, 2, "{found:#?}"),
    }
}

#[test]
fn the_same_deadlock_is_proven_in_static_and_in_stripped_programs() {
    let flags: [(&str, &[&str]); 3] = [
        ("stripped", &["-O2", "-pthread", "-s"]),
        ("static", &["-g", "-O1", "-pthread", "-static"]),
        ("static-stripped", &["-O3", "-pthread", "-static", "-s"]),
    ];
    for (name, flags) in flags {
        let Some(program) = compile("deadlocks.c", name, "cc", flags) else { continue };
        let stuck = Stuck::start(&program, &["normal"], 2);
        the_proven_deadlock(&stuck);
        let check = stuck.read(&["check"]);
        let (waits, holds) = match name {
            "static" => ("waits for savings", "] holds savings"),
            _ => ("waits for lock 0x", "] holds lock 0x"),
        };
        // A stripped dynamic program exports no variable of its own either.
        contains(&check.stdout, &[waits, holds]);
    }
}

#[test]
fn locks_on_the_heap_are_shown_by_their_addresses() {
    let stuck = Stuck::start(deadlocks(), &["heap"], 2);
    the_proven_deadlock(&stuck);
    let said = stuck.read(&["check"]).stdout;
    contains(&said, &["waits for lock 0x", " (heap) at transfer deadlocks.c:"]);
    contains(&stuck.read(&[]).sound().stdout, &["mutex 0x", " (heap), owned by saver["]);
    contains(&stuck.read(&["locks"]).sound().stdout, &["\nheap  mutex at 0x"]);
}

#[test]
fn readers_writer_locks_that_writers_hold_are_part_of_a_proven_deadlock() {
    let stuck = Stuck::start(deadlocks(), &["rwlocks"], 2);
    the_proven_deadlock(&stuck);
    let check = stuck.read(&["check"]).stdout;
    contains(&check, &["writer[", "waits for table_index", "at writes_the_table deadlocks.c:"]);
    contains(&check, &["reader[", "waits for table", "(shared) at looks_up deadlocks.c:", "] holds table"]);
}

#[test]
fn a_join_under_a_lock_that_the_thread_wants_is_a_proven_deadlock() {
    let stuck = Stuck::start(deadlocks(), &["join"], 2);
    the_proven_deadlock(&stuck);
    let check = stuck.read(&["check"]).stdout;
    contains(&check, &["joiner[", "waits for the end of ", "at joins_under_a_lock deadlocks.c:"]);
    contains(&check, &["waits for savings", "at saves deadlocks.c:", "    joiner[", "] holds savings"]);
}

#[test]
fn a_thread_that_locks_a_normal_mutex_twice_is_a_proven_deadlock() {
    let stuck = Stuck::start(deadlocks(), &["self"], 1);
    the_proven_deadlock(&stuck);
    contains(
        &stuck.read(&["check"]).stdout,
        &["waits for a lock that it holds itself", "at locks_twice deadlocks.c:"],
    );
}

#[test]
fn a_cycle_that_a_time_limit_ends_is_not_proven() {
    let stuck = Stuck::start(deadlocks(), &["timed"], 2);
    let found = stuck.findings();
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((&found[0]["kind"], &found[0]["confidence"]), (&"deadlock".into(), &"potential".into()));
    contains(&stuck.read(&["check"]).stdout, &["with a time limit"]);
}

#[test]
fn objects_without_an_owner_are_in_no_deadlock() {
    for (case, object) in [("semaphores", "right_fork"), ("conditions", "changed")] {
        let stuck = Stuck::start(deadlocks(), &[case], 2);
        let found = stuck.findings();
        assert!(found.iter().all(|finding| finding["kind"] != "deadlock"), "{case}: {found:#?}");
        assert!(found.iter().all(|finding| finding["confidence"] != "proven"), "{case}: {found:#?}");
        contains(&stuck.read(&[]).sound().stdout, &[object]);
    }
}

#[test]
fn the_mutexes_of_cplusplus_are_those_of_the_c_library() {
    let flags = ["-g", "-O1", "-pthread"];
    let Some(program) = compile("deadlock.cpp", "deadlock-cpp", "c++", &flags) else { return };
    let stuck = Stuck::start(&program, &[], 2);
    the_proven_deadlock(&stuck);
    contains(&stuck.read(&["check"]).stdout, &["waits for savings", "at transfer(", "deadlock.cpp:"]);
}

/// The memory of the lock names its owner. Such a process was called a stall, and a child of a fork too.
#[test]
fn a_lock_whose_owner_has_ended_is_proven_unreleased() {
    for (case, lock) in [("left", "savings"), ("left-writing", "table")] {
        let stuck = Stuck::start(deadlocks(), &[case], 1);
        let found = stuck.findings();
        let kinds: Vec<_> = found.iter().map(|finding| (&finding["kind"], &finding["confidence"])).collect();
        assert_eq!(kinds, [(&"unreleased".into(), &"proven".into())], "{found:#?}");
        let check = stuck.read(&["check"]);
        let summary = format!("{lock} is held by a thread that has exited; 1 thread waits for it");
        contains(&check.stdout, &[&summary]);
        contains(&check.stderr, &["1 finding in 2 threads and 1 lock"]);
        contains(&stuck.read(&[]).stdout, &[&summary]);
    }
}

/// The C++ library of gcc waits so for barriers, latches, semaphores and atomics. Nothing was known of such threads,
/// and the process had no finding.
#[test]
fn a_wait_for_a_word_of_own_memory_is_one_within_the_process_whatever_its_flag_says() {
    let stuck = Stuck::start(deadlocks(), &["word"], 2);
    let check = stuck.read(&["check"]);
    let of = "of 2 threads, 1 waits for another thread, 1 waits for a signal or a message of another thread";
    contains(&check.stdout, &["suspected stall: no thread moves, for at least ", of]);
    assert_eq!(check.status, 1);
}

/// A child of the program, once one of its threads sleeps in a futex.
fn waiting_child(stuck: &Stuck) -> String {
    let pid = stuck.0.pid();
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let child = children.split_whitespace().next().and_then(|child| child.parse().ok());
        let tasks = child.and_then(|child| LiveTarget::open(child).ok()).and_then(|live| live.tasks().ok());
        if tasks.is_some_and(|tasks| tasks.iter().any(|task| futex(task).is_some())) {
            return child.unwrap().to_string();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_child_waits_for_what_a_thread_of_its_parent_had_at_the_fork() {
    for (case, confidence) in [("forked", "proven"), ("forked-with-a-lock", "suspected")] {
        let stuck = Stuck::start(deadlocks(), &[case], 0);
        let child = waiting_child(&stuck);
        let check = read_rip(["check", &child]);
        let summary = format!(
            "{confidence} lost-owner: 1 thread of the forked process {child} waits for savings, which no thread there holds"
        );
        contains(&check.stdout, &[&summary, "which the process does not have"]);
        let may_release = "the thread that forked may have had the lock then, and may release it";
        assert_eq!(check.stdout.contains(may_release), case == "forked-with-a-lock", "{check:#?}");
        assert_eq!(check.status, 1);
        // Who asks about the parent is told too.
        let of_parent = stuck.read(&["check"]);
        contains(
            &of_parent.stdout,
            &[&summary, &format!("of process {child} waits for it at takes_savings ")],
        );
        assert_eq!(of_parent.status, 1);
    }
}

/// Whether a line says this of a thread.
fn says(text: &str, thread: &str, what: &str) -> bool {
    text.lines().any(|line| line.contains(thread) && line.contains(what))
}

/// What is initialised once does not store who initialises it. So nothing was found before a thread had waited long.
#[test]
fn who_runs_an_initialisation_or_writes_to_a_stream_is_known_by_its_stack() {
    let flags = ["-g", "-O1", "-pthread"];
    let Some(program) = compile("initialisers.cpp", "initialisers", "c++", &flags) else { return };
    for (case, confidence, what) in [("once", "proven", "once"), ("variable", "potential", "settings()::all")]
    {
        let stuck = Stuck::start(&program, &[case], 3);
        let check = stuck.read(&["check"]);
        let summary = format!("{confidence} deadlock: 2 threads wait for one another");
        contains(&check.stdout, &[&summary, "] waits for registry at "]);
        assert!(says(&check.stdout, "second[", "] holds registry"), "{check:#?}");
        let runs = check.stdout.lines().find(|line| line.contains("first[") && line.contains("] runs "));
        assert!(runs.is_some_and(|line| line.contains(what) && !line.contains("(shared)")), "{check:#?}");
        assert_eq!(check.status, 1);
        let healthy = Stuck::start(&program, &[case, "healthy"], 0);
        healthy.until(|tasks| tasks.len() == 2);
        healthy.read(&["check"]).sound();
    }
    let program = compile_rust("initialisers.rs", "initialisers-rust", &["-g", "-O"]);
    let cases = [
        ("statics", "proven", [("first[", "] runs "), ("second[", "] runs ")]),
        (
            "stream",
            "potential",
            [("second[", "] waits for std::io::stdio::STDOUT"), ("first[", "] holds std::io::stdio::STDOUT")],
        ),
    ];
    for (case, confidence, parts) in cases {
        let check = Stuck::start(&program, &[case], 3).read(&["check"]);
        contains(&check.stdout, &[&format!("{confidence} deadlock: 2 threads wait for one another")]);
        for (thread, what) in parts {
            assert!(says(&check.stdout, thread, what), "{thread} {what}: {check:#?}");
        }
    }
    let healthy = Stuck::start(&program, &["stream", "healthy"], 0);
    healthy.until(|tasks| tasks.len() == 1);
    healthy.read(&["check"]).sound();
}

#[test]
fn who_has_a_lock_that_stores_no_owner_is_presumed_if_all_who_have_its_address_wait() {
    let program = compile_rust("initialisers.rs", "presumed-rust", &["-g", "-O"]);
    let start = |arguments: &[&str]| Stuck::start(&program, arguments, 3);
    let [lock, locks, kept] = [&["lock"][..], &["locks"], &["locks", "healthy"]].map(start);
    let healthy = Stuck::start(&program, &["lock", "healthy"], 0);
    let check = lock.read(&["check"]);
    contains(
        &check.stdout,
        &["suspected deadlock: 2 threads wait for one another", "doubt: its owner is not stored"],
    );
    for (thread, what) in
        [("first[", "] runs initialisers::TABLE"), ("second[", "] is presumed to hold initialisers::CONFIG")]
    {
        assert!(says(&check.stdout, thread, what), "{thread} {what}: {check:#?}");
    }
    contains(&lock.read(&[]).stdout, &["initialisers::CONFIG, presumably owned by second["]);
    contains(&lock.read(&["locks"]).stdout, &["  presumably second["]);
    let shown = lock.read(&["locks", "--json"]).json();
    let state = |name: &str| {
        let is_it = |line: &&serde_json::Value| line["data"]["name"].as_str().is_some_and(|of| of == name);
        shown.iter().find(is_it).map(|line| line["data"]["holders"][0]["state"].clone())
    };
    assert_eq!(state("initialisers::CONFIG"), Some("presumed".into()), "{shown:#?}");
    contains(&lock.read(&["export", "--format", "dot"]).stdout, &["label=\"is presumably held by\"]"]);
    let timeline = lock.read(&["export", "--format", "chrome"]).sound().stdout;
    let holders: Vec<&str> = timeline.lines().filter(|line| line.contains(r#""cat":"holder""#)).collect();
    assert!(!holders.is_empty() && holders.iter().all(|line| line.contains("first[")), "{timeline}");
    let numbers = lock.read(&["export", "--format", "openmetrics"]).stdout;
    assert!(numbers.contains("rip_words_total{") && !numbers.contains("} -0"), "{numbers}");
    let of_lock = |line: &&str| line.starts_with("rip_lock_holders") && line.contains("CONFIG");
    assert!(numbers.lines().find(of_lock).is_some_and(|line| line.ends_with(" 0")), "{numbers}");
    let check = locks.read(&["check"]);
    contains(&check.stdout, &["suspected deadlock: 2 threads wait for one another"]);
    assert!(says(&check.stdout, "first[", "] is presumed to hold lock "), "{check:#?}");
    healthy.until(|tasks| tasks.len() == 1);
    healthy.read(&["check"]).sound();
    // Both threads have waited for a second, and not for the threshold.
    let check = kept.read(&["check", "--threshold", "1h", "--json"]).sound().json();
    let waited = check.iter().find_map(|line| line["data"]["balance"]["longest_wait_ns"].as_u64());
    assert!(waited.is_some_and(|ns| ns >= 1_000_000_000), "{check:#?}");
}

#[test]
fn locks_of_rust_are_named_and_their_holders_are_presumed() {
    let program = compile_rust("deadlock.rs", "deadlock-rust", &["-g", "-O"]);
    let stuck = Stuck::start(&program, &[], 4);
    let view = stuck.read(&[]).sound().stdout;
    contains(&view, &["std::sync::Mutex deadlock::SAVINGS", "std::sync::Mutex deadlock::CURRENT"]);
    contains(
        &view,
        &["std::sync::RwLock 0x", ", presumably owned by deadlock-rust[", "deadlock::transfer : 1 thread"],
    );
    let found = stuck.findings();
    assert!(!found.is_empty(), "a stuck program");
    contains(
        &view,
        &["check: suspected deadlock: 2 threads wait for one another", "; 1 more finding; next: "],
    );
    let check = stuck.read(&["check"]).stdout;
    let keeps = &format!(", which deadlock-rust[{}] keeps, for ", stuck.0.pid());
    contains(
        &check,
        &["suspected deadlock", "is presumed to hold deadlock::SAVINGS", keeps, "doubt: its owner is"],
    );
    speaks_of_no_record(&stuck);
    assert!(found.iter().all(|finding| finding["confidence"] == "suspected"), "{found:#?}");
}

/// The stack says it, so the C library needs symbols of its static functions, as its debug package has.
#[test]
fn a_handler_that_allocates_while_its_thread_does_is_a_proven_deadlock() {
    let program = compile("handler.c", "handler", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler");
    // It is interrupted in malloc, or in free: then nobody knows whether it had the lock.
    for _ in 0..20 {
        let stuck = Stuck::start(&program, &[], 1);
        let stacks = stuck.read(&["stacks", "-v"]).sound().stdout;
        if !stacks.contains("__lll_lock_wait_private") {
            eprintln!("SKIPPED a handler that allocates: the C library has no debug information here");
            return;
        }
        let outer = stacks.split_once("reports handler.c").map(|(_, outer)| outer);
        if outer.is_some_and(|outer| outer.contains("_int_malloc ")) {
            let found = stuck.read(&["check"]).stdout;
            contains(&found, &["proven deadlock: handler[", " waits for a lock that it holds itself"]);
            contains(&found, &["] holds ", " at reports handler.c:15\n", "call nothing in a signal handler"]);
            return;
        }
    }
    panic!("the signal never interrupted malloc");
}

#[test]
fn a_stuck_python_program_has_whole_stacks_and_no_proof() {
    if !is_installed("python3") {
        eprintln!("SKIPPED python: it is not installed");
        return;
    }
    let script = directory().join("deadlock.py");
    fs::write(&script, include_str!("../programs/deadlock.py")).unwrap();
    let stuck = Stuck::start_untimed("python3".as_ref(), &[script.to_str().unwrap()], 3);
    // Its locks are semaphores to the C library: who has one is not known, and a signal handler may post one. Once they
    // have waited for a second, the blocks in which its threads stand are a suspicion.
    let answer = stuck.read(&["check"]);
    let (status, verdict) = match answer.status {
        1 => (1, "suspected deadlock: 2 threads wait for one another"),
        _ => (3, "not judged: "),
    };
    assert_eq!(answer.status, status, "a stuck program is not called sound: {answer:#?}");
    contains(&answer.stdout, &[verdict]);
    assert!(!answer.stdout.contains("proven "), "{answer:#?}");
    speaks_of_no_record(&stuck);
    contains(&stuck.read(&[]).sound().stdout, &["3 threads", "waiting for "]);
    contains(&stuck.read(&["stacks"]).sound().stdout, &["2 threads: "]);
}
