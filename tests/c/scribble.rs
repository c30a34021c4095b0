//! A hostile process scribbles over the ring while a program in C works: see `fixtures/scribbled.c`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use librip_test_kit::scribble::{Manner, survives};
use librip_test_kit::tool::cargo;
use librip_test_kit::victim::Plan;

use crate::{GCC, build, directory};

/// A program compiled with optimisation, with a release build of librip.so.
fn release(status: i32) -> Plan {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let program = BUILT.get_or_init(|| build(GCC, &["scribbled.c"], "scribbled", &["-O2"]));
    Plan::new(program, &[&status.to_string()])
}

/// The same program and library in debug builds.
fn debug(status: i32) -> Plan {
    static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (program, library) = BUILT.get_or_init(|| {
        let built = cargo(&["build", "--package", "librip-capi"], &directory().join("preload"), &[]);
        // The loader looks for the installed name of the library.
        let library = directory().join("preload/debug/librip.so.1");
        std::fs::copy(built.file("rip", ".so"), &library).unwrap();
        (build(GCC, &["scribbled.c"], "scribbled-debug", &["-O0"]), library)
    });
    let path = library.parent().map(Path::as_os_str).expect("a file is in a directory");
    // LD_LIBRARY_PATH has precedence over the program's run path, which is a RUNPATH.
    Plan::new(program, &[&status.to_string()]).env("LD_LIBRARY_PATH", path)
}

#[test]
fn a_program_in_c_survives_the_worst_values_in_each_field() {
    survives(Manner::WorstValues, release);
}

#[test]
fn a_program_in_c_survives_random_words_everywhere() {
    survives(Manner::RandomWords, release);
}

#[test]
#[ignore = "builds a library again, without optimisation: scripts/test-builds"]
fn a_program_in_c_with_the_library_in_debug_survives_the_worst_values_in_each_field() {
    survives(Manner::WorstValues, debug);
}

#[test]
#[ignore = "builds a library again, without optimisation: scripts/test-builds"]
fn a_program_in_c_with_the_library_in_debug_survives_random_words_everywhere() {
    survives(Manner::RandomWords, debug);
}
