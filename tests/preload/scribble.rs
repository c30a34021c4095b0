//! A hostile process scribbles over the ring while a program works under the interposer: see `fixtures/scribbled.c`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use librip_test_kit::scribble::{Manner, survives};
use librip_test_kit::tool::cargo;
use librip_test_kit::victim::Plan;

use crate::{compile, directory, plan, preload};

fn with(library: &Path, status: i32) -> Plan {
    plan(&compile("scribbled", &[]), &[&status.to_string()], &[library])
}

fn release(status: i32) -> Plan {
    with(preload(), status)
}

fn debug(status: i32) -> Plan {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let library = BUILT.get_or_init(|| {
        cargo(&["build", "--package", "librip-preload"], &directory().join("preload"), &[])
            .file("rip_preload", ".so")
    });
    with(library, status)
}

#[test]
fn an_interposed_program_survives_the_worst_values_in_each_field() {
    survives(Manner::WorstValues, release);
}

#[test]
fn an_interposed_program_survives_random_words_everywhere() {
    survives(Manner::RandomWords, release);
}

#[test]
#[ignore = "builds a library again, without optimisation: scripts/test-builds"]
fn a_debug_build_of_the_interposer_survives_the_worst_values_in_each_field() {
    survives(Manner::WorstValues, debug);
}

#[test]
#[ignore = "builds a library again, without optimisation: scripts/test-builds"]
fn a_debug_build_of_the_interposer_survives_random_words_everywhere() {
    survives(Manner::RandomWords, debug);
}
