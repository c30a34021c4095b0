//! `read-rip run --check`, as CI runs it: all processes beneath a program are recorded and checked, what hangs is
//! explained and ended, and signals and exit statuses pass through.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use librip_test_kit::reader;
use librip_test_kit::run::{Outcome, clean, finish, wait};
use librip_test_kit::tool::repository;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const SCENARIO: &str = env!("CARGO_BIN_EXE_scenario");

/// Runs scenarios in turn until each is ready, and kills each. Ends with status 0.
const IN_TURN: &str = "\
    mkfifo $DIR/ready\n\
    for name; do\n\
      $SCENARIO $name > $DIR/ready &\n\
      read ready < $DIR/ready\n\
      kill -KILL $!\n\
      wait $!\n\
    done\n\
    exit 0";

/// `read-rip run OPTIONS -- sh -c SCRIPT sh ARGUMENTS`.
fn command(directory: &Path, options: &[&str], script: &str, arguments: &[&str]) -> Command {
    // A shell cannot trap signals that it inherits ignored, as those of a background job are.
    let mut command = clean(Command::new("env"));
    command.arg("--default-signal").arg(reader::program());
    command.arg("run").args(options).args(["--", "sh", "-c", script, "sh"]).args(arguments);
    command.env("SCENARIO", SCENARIO).env("DIR", directory).env_remove("RIP_RING");
    command
}

fn run(directory: &Path, options: &[&str], script: &str, arguments: &[&str]) -> Outcome {
    finish(command(directory, options, script, arguments))
}

/// The paths of a directory's entries that are no FIFOs.
fn rings(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.starts_with("rip"))
        .collect()
}

#[test]
fn each_process_is_checked_and_a_finding_fails_the_run() {
    let scratch = tempfile::tempdir().unwrap();
    let rings_directory = scratch.path().join("rings");
    let [junit, sarif] = ["junit.xml", "findings.sarif"].map(|name| scratch.path().join(name));
    let options = [
        "--check",
        "--rings",
        rings_directory.to_str().unwrap(),
        "--junit",
        junit.to_str().unwrap(),
        "--sarif",
        sarif.to_str().unwrap(),
    ];
    let outcome = run(scratch.path(), &options, IN_TURN, &["cycle-2", "cycle-3", "readers-only"]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert_eq!(outcome.stdout.matches("proven deadlock: ").count(), 2, "{outcome:#?}");
    assert!(outcome.stderr.contains("3 rings checked, 2 of them with findings.\n"), "{outcome:#?}");
    assert_eq!(rings(&rings_directory).len(), 3, "a directory that the user named keeps all rings");
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains(r#"<testsuites tests="3" failures="2" errors="0">"#), "{junit}");
    let sarif: serde_json::Value = serde_json::from_slice(&std::fs::read(sarif).unwrap()).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["ruleId"] == "deadlock" && result["level"] == "error"));
    // The same, from the rings that are left.
    let mut again = clean(Command::new(reader::program()));
    again.args(["check", "--all", "--min-confidence", "potential", "--dir"]).arg(&rings_directory);
    let again = finish(again);
    assert_eq!((again.status, again.stdout.matches("proven deadlock: ").count()), (1, 2), "{again:#?}");
    assert_eq!(again.stdout.matches("no findings").count(), 1, "{again:#?}");
}

#[test]
fn only_rings_with_findings_stay() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().to_str().unwrap();
    let outcome = run(scratch.path(), &["--check", "--dir", dir], IN_TURN, &["readers-only"]);
    assert_eq!((outcome.status, &*outcome.stdout), (0, ""), "{outcome:#?}");
    assert_eq!(rings(scratch.path()), [""; 0], "neither a ring nor a directory is left");
    std::fs::remove_file(scratch.path().join("ready")).unwrap();
    let outcome = run(scratch.path(), &["--check", "--dir", dir], IN_TURN, &["readers-only", "cycle-2"]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let left = rings(scratch.path());
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(outcome.stderr.contains(&left[0]), "the output names the directory: {outcome:#?}");
    assert_eq!(rings(&scratch.path().join(&left[0])).len(), 1);
}

#[test]
fn the_status_of_a_program_that_fails_is_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let script = IN_TURN.replace("exit 0", "exit 7");
    let outcome =
        run(scratch.path(), &["--check", "--rings", scratch.path().to_str().unwrap()], &script, &["cycle-2"]);
    assert_eq!(outcome.status, 7, "{outcome:#?}");
    assert!(outcome.stdout.contains("proven deadlock: "), "{outcome:#?}");
}

#[test]
fn a_run_in_which_nothing_was_recorded_has_a_status_of_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    let outcome = run(scratch.path(), &["--check"], "echo said", &[]);
    assert_eq!((outcome.status, &*outcome.stdout), (3, "said\n"), "{outcome:#?}");
    assert!(
        outcome.stderr.contains("No process recorded anything, so read-rip checked nothing.\nHint: "),
        "{outcome:#?}"
    );
    // With a limit the question is whether it hangs.
    assert_eq!(run(scratch.path(), &["--check", "--timeout", "60s"], "exit 0", &[]).status, 0);
}

#[test]
fn what_hangs_is_explained_and_then_ended_with_all_that_it_started() {
    let scratch = tempfile::tempdir().unwrap();
    // The process in a session of its own ignores SIGTERM, and its parent does not wait for it.
    let script = "\
        setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' &\n\
        $SCENARIO cycle-2\n\
        echo never";
    let rings = scratch.path().to_str().unwrap();
    let options = ["--check", "--timeout", "3s", "--grace", "100ms", "--rings", rings];
    let outcome = run(scratch.path(), &options, script, &[]);
    assert_eq!(outcome.status, 124, "{outcome:#?}");
    assert!(outcome.stderr.contains("sh still runs after 3.0 s."), "{outcome:#?}");
    assert!(outcome.stdout.contains(", alive: "), "it was read while it lived: {outcome:#?}");
    assert_eq!(outcome.stdout.matches("proven deadlock: ").count(), 1, "{outcome:#?}");
    assert!(!outcome.stdout.contains("never"), "{outcome:#?}");
    let sleeper = outcome.stdout.lines().find_map(|line| line.parse().ok()).expect("the pid of the sleeper");
    assert!(kill(Pid::from_raw(sleeper), None).is_err(), "it is gone");
}

#[test]
fn what_hangs_without_a_ring_is_explained_too_with_its_command_line_and_the_names_of_its_threads() {
    let scratch = tempfile::tempdir().unwrap();
    let script = "RIP_RING=off $SCENARIO cycle-2; echo never";
    let [junit, options] = [scratch.path().join("junit.xml"), scratch.path().join("rings")];
    let options = ["--check", "--timeout", "2s", "--grace", "100ms", "--rings", options.to_str().unwrap()];
    let options: Vec<&str> = options.into_iter().chain(["--junit", junit.to_str().unwrap()]).collect();
    let outcome = run(scratch.path(), &options, script, &[]);
    assert_eq!(outcome.status, 124, "{outcome:#?}");
    assert!(outcome.stderr.contains("/scenario cycle-2\n"), "{outcome:#?}");
    assert!(outcome.stdout.contains("suspected stall: "), "{outcome:#?}");
    assert!(outcome.stdout.contains("philosopher 0["), "{outcome:#?}");
    assert!(outcome.stderr.contains(" without a ring checked, 1 of them with findings.\n"), "{outcome:#?}");
    assert!(!outcome.stderr.contains("no process recorded anything"), "{outcome:#?}");
    assert!(std::fs::read_to_string(junit).unwrap().contains("suspected stall"));
    // What hangs with a ring in which nothing is found is explained by its stacks.
    let outcome = run(scratch.path(), &["--check", "--timeout", "1s"], "$SCENARIO readers-only", &[]);
    assert_eq!(outcome.status, 124, "{outcome:#?}");
    assert!(outcome.stderr.contains("/scenario readers-only\n"), "{outcome:#?}");
    assert!(outcome.stdout.contains(" scenario::stage::park stage.rs:"), "{outcome:#?}");
    assert!(!outcome.stderr.contains("/proc/self/exe"), "no helper of the reader is shown: {outcome:#?}");
    // A healthy sleeper is no finding: its stack is shown.
    let outcome = run(scratch.path(), &["--check", "--timeout", "1s"], "sleep 1000; echo never", &[]);
    assert_eq!(outcome.status, 124, "{outcome:#?}");
    assert!(outcome.stderr.contains(": sleep 1000\n"), "{outcome:#?}");
    assert!(!outcome.stdout.contains("suspected ") && outcome.stdout.contains("sleep["), "{outcome:#?}");
}

#[test]
fn the_time_that_a_compiler_takes_does_not_count() {
    let scratch = tempfile::tempdir().unwrap();
    // A program of that name. The shell waits for it, as cargo does.
    let script = "cp $(command -v sleep) $DIR/rustc; $DIR/rustc 3; echo built; $*; exit 0";
    let options = ["--check", "--timeout", "2s", "--grace", "100ms"];
    let outcome = run(scratch.path(), &options, script, &["true"]);
    assert_eq!((outcome.status, &*outcome.stdout), (0, "built\n"), "{outcome:#?}");
    let outcome = run(scratch.path(), &options, script, &["sleep", "1000"]);
    assert_eq!(outcome.status, 124, "{outcome:#?}");
    assert!(outcome.stderr.contains("sh still runs after 2.0 s, compilation not counted."), "{outcome:#?}");
}

#[test]
fn signals_that_are_sent_to_the_reader_alone_reach_the_program() {
    let scratch = tempfile::tempdir().unwrap();
    for (signal, status) in [(Signal::SIGINT, 42), (Signal::SIGTERM, 43), (Signal::SIGHUP, 44)] {
        for options in [&[][..], &["--check"]] {
            let script = "\
                trap 'exit 42' INT; trap 'exit 43' TERM; trap 'exit 44' HUP\n\
                echo ready\n\
                while :; do sleep 0.05; done";
            let mut command = command(scratch.path(), options, script, &[]);
            // A group of its own, as a supervisor gives it.
            let mut reader =
                command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(reader.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            kill(Pid::from_raw(reader.id() as i32), signal).unwrap();
            assert_eq!(wait(&mut reader).code(), Some(status), "{signal} {options:?}");
        }
    }
}

#[test]
fn the_end_of_an_orphan_is_known() {
    let scratch = tempfile::tempdir().unwrap();
    // The subshell ends before the scenario does. `kill -0` fails when the reader has waited for the orphan.
    let script = "\
        mkfifo $DIR/ready\n\
        ($SCENARIO holder-joins > $DIR/ready & echo $! > $DIR/orphan)\n\
        read ready < $DIR/ready\n\
        read orphan < $DIR/orphan\n\
        kill -KILL $orphan\n\
        while kill -0 $orphan 2> $DIR/gone; do sleep 0.01; done\n\
        exit 0";
    let rings = scratch.path().join("rings");
    let options = ["--json", "--check", "--rings", rings.to_str().unwrap()];
    let outcome = run(scratch.path(), &options, script, &[]);
    let checked = outcome.data("checked");
    assert_eq!(checked.len(), 1, "{outcome:#?}");
    assert_eq!(checked[0]["is_up_to_last_time"], false, "{outcome:#?}");
}

#[test]
fn the_recipe_of_the_guide_works() {
    let chapter = std::fs::read_to_string(repository().join("docs/guide/src/ci.md")).unwrap();
    let recipe = chapter.lines().find(|line| line.starts_with("read-rip run --check")).expect("a recipe");
    let (words, tests) = recipe.split_once(" -- ").expect("a command");
    assert_eq!(tests, "cargo test");
    let scratch = tempfile::tempdir().unwrap();
    // What `cargo test` does, as far as the reader sees it: it runs several programs, and prints what they print.
    let mut command = clean(Command::new(reader::program()));
    command.args(words.split(' ').skip(1)).args(["--", "sh", "-c", IN_TURN, "sh", "readers-only", "cycle-2"]);
    command.env("SCENARIO", SCENARIO).env("DIR", scratch.path()).current_dir(scratch.path());
    let outcome = finish(command);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let files = std::fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(files.into_iter().any(|name| name == "findings.sarif"), "{outcome:#?}");
    let kept = outcome.stderr.lines().find_map(|line| line.strip_prefix("Rings are kept in "));
    std::fs::remove_dir_all(kept.expect("a directory of rings")).unwrap();
}
