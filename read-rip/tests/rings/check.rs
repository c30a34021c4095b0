//! `read-rip check` as its users and CI run it: exit status, text, suppressions, JSON, living and dead processes.
//!
//! Not tested here: what each analysis finds and does not find; the tests of each analysis do that.

use std::fs;
use std::path::Path;

use crate::support::fixture::Scratch;
use crate::support::locks::{A, B, CONDITION, HELD, TAKES, WAIT, WAITING, at, transfer};
use crate::support::run::{Outcome, command, finish, first_of, on_terminal, read_rip, show};
use crate::support::synth::{Held, Ring, Site, Slot};

fn ring() -> Ring {
    let mutex = 1 << 8 | 4 | 64;
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    ring.sites = vec![
        Site::new(TAKES, "src/bank.rs", 35).within("bank").of(6, mutex, &[4, 3]),
        Site::new(WAIT, "src/bank.rs", 37).within("bank").of(2, mutex, &[4, 3]),
    ];
    ring
}

/// Two threads that wait for one another, and a third thread that waits for one of their locks.
fn deadlock(ring: Ring) -> Ring {
    let behind = Slot::thread("behind", 12)
        .event(TAKES, &[at(5.0), A])
        .event(WAIT, &[at(5.0), A])
        .has(Held { sequence: 5, ..Held::new(WAITING, A, WAIT).since(at(5.0)) });
    let ring = ring.with_slots([transfer("saver", 10, A, B), transfer("spender", 11, B, A), behind]);
    Ring { lock_names: vec![(ring.pid, A, "SAVINGS".into()), (ring.pid, B, "CURRENT".into())], ..ring }
}

fn check(ring: &Path, options: &[&str]) -> Outcome {
    read_rip(["check"].iter().chain(options).copied().chain([ring.to_str().unwrap()]))
}

#[test]
fn a_deadlock_of_a_dead_process_is_reported_and_fails_a_build() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    deadlock(ring()).build().write(&path);
    let outcome = check(&path, &[]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert_eq!(
        outcome.result(),
        "proven deadlock: 2 threads wait for one another, for at least 1.0 s\n    \
             saver[10] holds SAVINGS for at least 2.0 s, acquired at bank::? bank.rs:35<0x1000>\n    \
             saver[10] waits for CURRENT at bank::? bank.rs:37<0x1100>\n    \
             spender[11] holds CURRENT for at least 2.0 s, acquired at bank::? bank.rs:35<0x1000>\n    \
             spender[11] waits for SAVINGS at bank::? bank.rs:37<0x1100>\n    \
             1 more thread is blocked by them\n    \
             next: acquire these locks in one order everywhere, or release the first before waiting for the second\n\n    \
             of 3 threads: 3 wait for locks (the longest for at least 1.0 s)\n"
    );
}

#[test]
fn a_sound_ring_has_no_findings_and_check_says_what_it_read() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    ring().with_slots([Slot::thread("one", 10).event(TAKES, &[at(3.0), A])]).build().write(&path);
    let outcome = check(&path, &[]).sound();
    assert_eq!(outcome.result(), "no findings in 1 thread and 1 lock\n");
}

#[test]
fn suppressions_and_confidence_leave_findings_out() {
    let scratch = Scratch::new();
    let (path, rules) = (scratch.path("ring"), scratch.path("rules"));
    deadlock(ring()).build().write(&path);
    let suppressed = |text: &str| {
        fs::write(&rules, text).unwrap();
        check(&path, &["--suppress", rules.to_str().unwrap()])
    };
    for text in ["deadlock", "# known\n\ndeadlock:^SAVINGS$", "deadlock:bank\\.rs:3[57]"] {
        let outcome = suppressed(text).sound();
        assert!(outcome.stderr.contains("1 finding is suppressed."), "{outcome:#?}");
    }
    assert_eq!(suppressed("deadlock:^OTHER$\nlock-order").status, 1);
    suppressed("deadlock\ndeadlok").fails_with("line 2: unknown kind of finding \"deadlok\"");
    suppressed("deadlock:(").fails_with("line 1: ");
    check(&path, &["--suppress", "/nowhere/rules"]).fails_with("/nowhere/rules");
    assert_eq!(check(&path, &["--min-confidence", "proven"]).status, 1);
}

#[test]
fn a_suppression_does_not_depend_on_what_else_is_in_the_ring() {
    let scratch = Scratch::new();
    let (path, rules) = (scratch.path("ring"), scratch.path("rules"));
    let alone = deadlock(ring());
    // Another file of the same name changes how the text output names the first one.
    let mut crowded = alone.clone();
    crowded.sites.push(Site::new(0x1200, "other/bank.rs", 1).within("other"));
    crowded.slots.push(Slot::thread("elsewhere", 13).marks([0x1200]));
    let names: Vec<bool> = [&alone, &crowded]
        .map(|ring| {
            ring.build().write(&path);
            check(&path, &[]).stdout.contains(" src/bank.rs:37")
        })
        .into();
    assert_eq!(names, [false, true], "the names in the text differ");
    for (rule, is_suppressed) in [
        ("deadlock:^src/bank\\.rs:37$", true),
        ("deadlock:^bank::\\?$", true),
        ("deadlock:^SAVINGS$", true),
        ("deadlock:^bank\\.rs", false),
        ("deadlock:other/bank", false),
    ] {
        fs::write(&rules, rule).unwrap();
        for ring in [&alone, &crowded] {
            ring.build().write(&path);
            let status = check(&path, &["--suppress", rules.to_str().unwrap()]).status;
            assert_eq!(status == 0, is_suppressed, "{rule}");
        }
    }
}

#[test]
fn locks_of_threads_that_disappeared_from_a_living_process_are_unreleased() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    deadlock(ring().of_this_process()).build().write(&path);
    // The recorded process maps its ring.
    let _mapped = crate::support::map(&path);
    let outcome = check(&path, &["--window", "20ms", "--min-confidence", "proven"]);
    // The threads of the ring do not exist in this process: they count as disappeared, and wait for nothing.
    assert!(!outcome.stdout.contains("deadlock"), "{outcome:#?}");
    assert!(outcome.stdout.contains("proven unreleased"), "{outcome:#?}");
}

#[test]
fn a_living_thread_has_the_name_that_it_has_now_unless_the_program_named_it_in_the_ring() {
    let (say, said) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("renamed".into()).spawn(move || {
        say.send(nix::unistd::gettid().as_raw() as u32).unwrap();
        // Until the test has ended.
        let _ = ended.recv();
    });
    let tid = said.recv().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (path, saved) = (directory.path().join("ring"), directory.path().join("saved.gz"));
    let line = |slot: Slot| {
        let slot = slot.event(TAKES, &[at(3.0), A]).has(Held::new(HELD, A, TAKES).since(at(3.0)));
        ring().of_this_process().with_slots([slot]).build().write(&path);
        let _mapped = crate::support::map(&path);
        let shown = read_rip(["-t", path.to_str().unwrap()]).sound().stdout;
        let locks = read_rip(["locks", path.to_str().unwrap()]).sound();
        let name = shown.split('[').next().unwrap().to_owned();
        assert!(locks.stdout.contains(&format!("{name}[{tid}]")), "{locks:#?}");
        read_rip(["save", "--window=1ms", "-o", saved.to_str().unwrap(), path.to_str().unwrap()]);
        assert_eq!(read_rip(["-t", saved.to_str().unwrap()]).sound().stdout, shown);
        name
    };
    assert_eq!(line(Slot::thread("at first", tid)), "renamed");
    assert_eq!(line(Slot { is_named: true, ..Slot::thread("by the program", tid) }), "by the program");
    drop(end);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_copy_proves_nothing_whether_its_process_lives_or_not() {
    let scratch = Scratch::new();
    let (path, copy) = (scratch.path("ring"), scratch.path("copy"));
    for ring in [deadlock(ring().of_this_process()), deadlock(ring())] {
        ring.build().write(&path);
        fs::copy(&path, &copy).unwrap();
        check(&copy, &["--min-confidence", "proven"]).sound();
        let outcome = check(&copy, &[]);
        assert!(outcome.stdout.contains("potential deadlock"), "{outcome:#?}");
        assert!(outcome.stderr.contains("This file is a copy of a ring."), "{outcome:#?}");
        let lines = check(&copy, &["--json"]).json();
        assert_eq!(first_of(&lines, "checked")["one_reading"], "copy");
        assert_eq!(first_of(&lines, "finding")["doubts"][0]["code"], "copied");
    }
    // The ring itself, which the dead process left, is in its last state.
    let outcome = check(&path, &[]);
    assert!(outcome.stdout.contains("proven deadlock"), "{outcome:#?}");
}

#[test]
fn the_status_of_a_partial_read_has_precedence_over_findings() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    Ring { spare_slots: 0, ..deadlock(ring()) }.build().write(&path);
    let len = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(len - 1100).unwrap();
    assert_eq!(check(&path, &[]).status, 2);
}

#[test]
fn findings_are_lines_of_json() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    deadlock(ring()).build().write(&path);
    let outcome = check(&path, &["--json"]);
    assert_eq!(outcome.status, 1);
    let lines = outcome.json();
    let finding = first_of(&lines, "finding");
    assert_eq!((&finding["kind"], &finding["confidence"]), (&"deadlock".into(), &"proven".into()));
    assert_eq!(finding["threads"].as_array().map(Vec::len), Some(2));
    assert_eq!(finding["locks"][0]["name"], "CURRENT");
    assert_eq!(finding["threads_hurt"], 3);
    let checked = first_of(&lines, "checked");
    assert_eq!((&checked["threads"], &checked["findings"]), (&3.into(), &1.into()));
}

#[test]
fn a_pattern_selects_findings_by_lock_thread_or_location() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    deadlock(ring()).build().write(&path);
    for pattern in ["SAVINGS", r"^spender\[11\]$", r"bank\.rs:37", "bank::"] {
        assert_eq!(check(&path, &["-m", pattern]).status, 1, "{pattern}");
        // Before the command, it means the same.
        assert_eq!(read_rip(["-m", pattern, "check", path.to_str().unwrap()]).status, 1, "{pattern}");
    }
    let outcome = check(&path, &["-m", "other"]).sound();
    assert!(outcome.result().starts_with("no findings in 3 threads and 2 locks\n"), "{outcome:#?}");
    assert!(outcome.stderr.contains("1 finding does not match the pattern.\n"), "{outcome:#?}");
}

#[test]
fn the_colour_of_a_finding_is_that_of_its_confidence() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    deadlock(ring()).build().write(&path);
    let outcome = check(&path, &["--color=always"]);
    assert!(outcome.result().starts_with("\x1b[1m\x1b[31mproven deadlock\x1b[0m: "), "{outcome:#?}");
}

#[test]
fn a_terminal_gets_the_source_lines_of_a_finding_if_they_are_the_compiled_ones() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    deadlock(ring()).build().write(&path);
    fs::create_dir(scratch.path("src")).unwrap();
    let lines: Vec<String> = (1..50).map(|line| format!("\tline_{line}(\x1b[31m);")).collect();
    let source = scratch.file("src/bank.rs", lines.join("\n").as_bytes());
    let set_changed = |seconds| {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(&source).unwrap().set_modified(time).unwrap();
    };
    let shown = |options: &[&str]| {
        let mut command = command();
        command.args(["check", "--color=never"]).args(options).arg(&path);
        on_terminal(command)
    };
    let directory = scratch.0.path().to_str().unwrap();
    let named = ["--source-dir", directory];
    // The program of the ring was built at 1,699,999,999 s.
    set_changed(1_699_999_998);
    let text = shown(&named);
    assert!(text.contains(" --> src/bank.rs:"), "{text}");
    assert!(text.contains("35 |     line_35(\\u{1b}[31m);\n"), "escaped: {text}");
    for label in ["saver[10] waits for CURRENT here\n", "spender[11] waits for SAVINGS here\n"] {
        assert!(text.contains(label), "{text}");
    }
    // In the directory in which the program was built, the path of the ring leads to it.
    let mut within = command();
    within.args(["check"]).arg(&path).current_dir(directory);
    assert!(on_terminal(within).contains("line_35"));
    assert!(!shown(&[]).contains("line_35"), "elsewhere, it does not");
    assert!(!shown(&["--no-source"]).contains("line_35"));
    let mut piped = command();
    piped.args(["check"]).args(named).arg(&path);
    assert!(!finish(piped).stdout.contains("line_35"), "no source lines in a pipe");
    set_changed(1_700_000_000);
    assert!(!shown(&named).contains("line_35"), "it was changed after the build");
}

#[test]
fn a_long_wait_says_who_holds_and_who_waits_and_its_source_lines_do() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    let keeper = Slot::thread("keeper", 10)
        .event(TAKES, &[at(3.0), A])
        .has(Held { sequence: 2, ..Held::new(HELD, A, TAKES).since(at(3.0)) });
    let waiter = Slot::thread("waiter", 11)
        .event(TAKES, &[at(4.0), A])
        .event(WAIT, &[at(4.0), A])
        .has(Held { sequence: 5, ..Held::new(WAITING, A, WAIT).since(at(4.0)) });
    let later = Slot::thread("later", 12).event(TAKES, &[at(60.0), B]);
    let ring = ring().with_slots([keeper, waiter, later]);
    let names = vec![(ring.pid, A, "SAVINGS".into())];
    Ring { lock_names: names, ..ring }.build().write(&path);
    fs::create_dir(scratch.path("src")).unwrap();
    let lines: Vec<String> = (1..50).map(|line| format!("line_{line}();")).collect();
    let source = scratch.file("src/bank.rs", lines.join("\n").as_bytes());
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    fs::File::options().write(true).open(&source).unwrap().set_modified(old).unwrap();
    let mut command = command();
    command.args(["check", "--color=never", "--source-dir"]).arg(scratch.0.path()).arg(&path);
    let text = on_terminal(command);
    assert!(text.contains("suspected long-wait"), "{text}");
    let label: Vec<&str> = text.split_whitespace().filter(|&word| word != "|").collect();
    let label = label.join(" ");
    assert!(label.contains("line_35(); --------- keeper[10] holds SAVINGS since here"), "{text}");
    assert!(label.contains("line_37(); ^^^^^^^^^ waiter[11] waits for SAVINGS here"), "{text}");
    let counts = "of 3 threads: 1 waits for a lock, 2 run, or wait";
    assert!(label.contains(counts), "{text}");
    let holder = label.split("keeper[10] has held it").nth(1).unwrap().split("waiter[11]").next().unwrap();
    assert_eq!(holder.matches("bank.rs:35").count(), 1, "a place is named once: {holder}");
}

#[test]
fn a_ring_without_locks_is_not_called_sound() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    let plain = Site::new(0x1200, "src/bank.rs", 1).within("bank");
    let mut ring = ring();
    ring.sites.push(plain);
    ring.with_slots([Slot::thread("one", 10).marks([0x1200])]).build().write(&path);
    let outcome = check(&path, &[]);
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    assert!(
        outcome.result().starts_with("nothing to judge: the record has no locks (1 thread)\n"),
        "{outcome:#?}"
    );
    assert!(outcome.result().contains("librip::sync"), "a remedy: {outcome:#?}");
    assert_eq!(check(&path, &["--json"]).data("checked")[0]["balance"]["outcome"], "nothing-recorded");
}

#[test]
fn a_dead_process_whose_threads_all_wait_on_conditions_is_not_called_sound() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    let sleeper = |tid| Slot::thread("sleeper", tid).has(Held::new(CONDITION, A, TAKES).since(at(3.0)));
    ring().with_slots([sleeper(10), sleeper(11)]).build().write(&path);
    let outcome = check(&path, &[]);
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    assert!(outcome.result().starts_with("not judged: all recorded threads wait"), "{outcome:#?}");
    assert!(outcome.result().contains("\n    of 2 threads: 2 wait on condition variables\n"), "{outcome:#?}");
}

#[test]
fn the_view_ends_with_the_verdict_and_the_next_command() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    deadlock(ring()).build().write(&path);
    let outcome = read_rip([path.as_os_str()]).sound();
    let summary = "2 threads wait for one another, for at least 1.0 s";
    let expected = format!("check: proven deadlock: {summary}; next: read-rip check {}\n", path.display());
    assert!(outcome.stdout.ends_with(&expected), "{outcome:#?}");
    // Scripts read these.
    assert!(!show(&["-t"], &path).sound().stdout.contains("check:"));
    assert!(!show(&["--json"], &path).sound().stdout.contains("check:"));
}

#[test]
fn a_second_release_is_said_to_be_one() {
    let (acquired, released) = (0x1200, 0x1300);
    let mut ring = Ring::new().with_sites(&[]);
    ring.sites = vec![
        Site::new(acquired, "src/queue.rs", 70).of(3, 0, &[3]),
        Site::new(released, "src/queue.rs", 74).of(4, 0, &[3]),
    ];
    let twice = Slot::thread("twice", 12).event(acquired, &[A]).event(released, &[A]).event(released, &[A]);
    let never = Slot::thread("never", 13).event(released, &[B]);
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    ring.with_slots([twice, never]).build().write(&path);
    let out = check(&path, &[]).stdout;
    let summary = |thread: &str| out.lines().find(|line| line.contains(thread)).unwrap_or_default();
    assert!(summary("twice[12]").ends_with(" twice, and no acquisition in between is recorded"), "{out}");
    assert!(summary("never[13]").ends_with(", and no acquisition of it is recorded"), "{out}");
}
