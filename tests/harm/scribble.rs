//! A hostile process scribbles over the ring while a Rust program works: see `src/bin/scribbled.rs`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::scribble::{Manner, survives};
use librip_test_kit::tool::{librip, tool};
use librip_test_kit::victim::Plan;

fn debug(status: i32) -> Plan {
    Plan::new(env!("CARGO_BIN_EXE_scribbled"), &[&status.to_string()]).env("RIP_POLLS", "times")
}

fn release(status: i32) -> Plan {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin/scribbled.rs");
        let program = directory.join("scribbled-release");
        let mut command: Command = librip(directory).rustc(&["librip", "lock_api", "libc"]);
        tool(command.arg(source).args(["-O", "--crate-name", "scribbled", "-o"]).arg(&program));
        program
    });
    Plan::new(program, &[&status.to_string()]).env("RIP_POLLS", "times")
}

#[test]
fn a_debug_build_survives_the_worst_values_in_each_field() {
    survives(Manner::WorstValues, debug);
}

#[test]
fn a_debug_build_survives_random_words_everywhere() {
    survives(Manner::RandomWords, debug);
}

#[test]
fn a_release_build_survives_the_worst_values_in_each_field() {
    survives(Manner::WorstValues, release);
}

#[test]
fn a_release_build_survives_random_words_everywhere() {
    survives(Manner::RandomWords, release);
}
