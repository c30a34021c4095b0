//! The interposer: small C and C++ programs, run with `librip_preload.so` and without it, and their rings.
//!
//! The library is built once, in release; the programs in `fixtures/` are compiled by the tests.

#![allow(missing_docs, reason = "tests")]

mod arena;
mod behaviour;
mod costs;
mod evidence;
mod first;
mod forks;
mod headers;
mod identity;
mod joins;
mod mixed;
mod neighbours;
mod onces;
mod order;
mod owners;
mod records;
mod scribble;
mod signals;
mod stories;
mod wrapped;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use librip_test_kit::reader;
use librip_test_kit::tool::{self, tool};
use librip_test_kit::victim::{Plan, Remains};

/// The directory for everything that the tests build.
fn directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The interposer. Built on the first call.
fn preload() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| tool::interposer(directory()).file("rip_preload", ".so"))
}

/// The static library for C. Built on the first call.
fn c_archive() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| tool::librip(directory()).file("rip", ".a"))
}

/// Compiles `fixtures/NAME.c` with these flags, once. Returns the program or library.
fn compile(name: &'static str, flags: &[&str]) -> PathBuf {
    compile_as(name, name, flags)
}

/// Compiles `fixtures/SOURCE.c` with these flags, once for each name. Returns the program or library.
fn compile_as(source: &str, name: &'static str, flags: &[&str]) -> PathBuf {
    static COMPILED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/fixtures").join(source).with_extension("c");
    let out = directory().join(format!("preload-{name}"));
    if !compiled.contains(name) {
        tool(
            Command::new("cc")
                .args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-pthread"])
                .arg(&source)
                .args(flags)
                .arg("-o")
                .arg(&out)
                .arg("-ldl"),
        );
        compiled.insert(name);
    }
    out
}

/// Compiles `fixtures/SOURCE.cc` with these flags. Returns the program.
fn compile_cpp(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("preload/fixtures").join(source).with_extension("cc");
    let out = directory().join(format!("preload-{name}"));
    tool(
        Command::new("g++")
            .args(["-std=c++17", "-Wall", "-Wextra", "-pthread"])
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(&out),
    );
    out
}

/// A run of a program with these libraries preloaded.
fn plan(program: &Path, arguments: &[&str], libraries: &[&Path]) -> Plan {
    let libraries: Vec<&OsStr> = libraries.iter().map(|library| library.as_os_str()).collect();
    let plan = Plan::new(program, arguments);
    if libraries.is_empty() { plan } else { plan.env("LD_PRELOAD", libraries.join(OsStr::new(":"))) }
}

/// The output of `read-rip`.
fn read_rip(arguments: &[&str], ring: &Path) -> String {
    reader::ask(arguments, ring).stdout
}

/// Fails unless two runs had the same output and the same end.
fn expect_same(with: &Remains, without: &Remains) {
    for (index, (with, without)) in with.stdout.lines().zip(without.stdout.lines()).enumerate() {
        assert_eq!(with, without, "line {index}, with the interposer (left) and without (right)");
    }
    librip_test_kit::victim::expect_same(with, without);
}
