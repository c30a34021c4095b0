//! `read-rip run`: the program runs as it does alone, and the reader reports how it ended.
//!
//! Not tested here: what it shows of a ring (`output.rs`).

use std::process::Command;

use crate::support::fixture::Scratch;
use crate::support::run::{Outcome, read_rip};

fn run(arguments: &[&str]) -> Outcome {
    read_rip([&["run"], arguments].concat())
}

#[test]
fn output_and_status_are_the_programs_own() {
    let outcome = run(&["--", "sh", "-c", "echo said; exit 7"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (7, "said\n"), "{outcome:#?}");
    assert!(outcome.stderr.contains("sh ended with exit status: 7\n"), "{outcome:#?}");
    assert_eq!(run(&["true"]).sound().stderr, "");
}

#[test]
fn the_program_blocks_and_ignores_the_same_signals_as_without_the_reader() {
    // A shell would hide it: it unblocks them. Rust ignores one, and a reader that ignored another one could not wait.
    let asks = ["grep", "^Sig[BI]", "/proc/self/status"];
    let ignoring = "import os, signal, sys\n\
        for of in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP): signal.signal(of, signal.SIG_IGN)\n\
        os.execvp(sys.argv[1], sys.argv[1:])";
    let shown = |before: &[&str], asks: &[&str]| {
        let words = [before, asks].concat();
        let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    for before in [&["env"][..], &["python3", "-c", ignoring]] {
        let alone = shown(before, &asks);
        for options in [&["run"][..], &["run", "--check"]] {
            let through = [&[env!("CARGO_BIN_EXE_read-rip")], options, &["--"], &asks].concat();
            let through = shown(before, &through);
            assert!(
                through.starts_with(&alone) && !through.contains("Error"),
                "{before:?} {options:?}: {through}"
            );
        }
    }
}

#[test]
fn settings_that_the_recorder_ignores_are_named_before_the_program_runs() {
    let warned = |options: &[&str]| {
        let mut command = crate::support::run::command();
        command.arg("run").args(options).args(["--", "true"]);
        command.env("RIP_WORDS", "many").env("RIP_SLOTS", "9").env("RIP_KEEP", "");
        let output = command.output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let words = "Warning: RIP_WORDS=many is ignored: it is not a number from 16 to 16384\n";
    let keep = "Warning: RIP_KEEP= is ignored: it is not always, failure or never\n";
    assert_eq!(warned(&[]), format!("{words}{keep}"));
    // Here the reader chooses which rings stay.
    assert!(warned(&["--check"]).starts_with(&format!("{words}No process recorded anything, so ")));
}

#[test]
fn a_signal_gives_the_exit_status_that_shells_use() {
    let outcome = run(&["--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(outcome.status, 128 + 9, "{outcome:#?}");
    assert!(outcome.stderr.contains("It left no readable ring in /dev/shm\n"), "{outcome:#?}");
}

#[test]
fn a_file_that_cannot_be_run_is_an_error() {
    run(&["no-such-program"])
        .fails_with("could not run no-such-program\nCaused by: no executable file of this name\n");
    run(&["/dev/null"]).fails_with("could not run /dev/null\nCaused by: it is no executable file\n");
    let outcome = run(&["--preload", "--preload-library", "/nowhere/librip_preload.so", "true"]);
    outcome.fails_with("could not preload /nowhere/librip_preload.so\nCaused by: No such file");
}

#[test]
fn nothing_is_preloaded_into_a_statically_linked_program() {
    let scratch = Scratch::new();
    let source = scratch.file("static.c", b"int main(void) { return 0; }\n");
    let program = scratch.path("static");
    let compiled = Command::new("cc").arg("-static").arg("-o").arg(&program).arg(source).output().unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    // Any file can stand in for the library, because nothing loads it.
    let program = program.to_str().unwrap();
    let outcome = run(&["--preload", "--preload-library", program, program]);
    outcome.fails_with("it is statically linked: there is no dynamic linker to preload anything");
}
