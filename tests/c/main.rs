//! C and C++: the header with every installed compiler, and the rings of the programs.
//!
//! The library is installed into a directory of the tests by `scripts/install-c`, and the fixtures are compiled with
//! what `librip.pc` says. A compiler that is missing is skipped, with a line on standard error; `gcc` is always needed.

#![allow(missing_docs, reason = "tests")]

mod channels;
mod cmake;
mod contexts;
mod cpp;
mod events;
mod examples;
mod folded;
mod layout;
mod legacy;
mod locks;
mod matrix;
mod parts;
mod process;
mod python;
mod scribble;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::oracle::{Ring, Slot};
use librip_test_kit::tool::{can, is_installed, repository, tool};
use librip_test_kit::victim::{Plan, Remains};

/// The directory for everything that the tests build.
fn directory() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
        std::fs::create_dir_all(&directory).unwrap();
        directory
    })
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c/fixtures").join(name)
}

/// The directory with the installed library. The first call installs it.
fn prefix() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let prefix = directory().join("prefix");
        tool(
            Command::new(repository().join("scripts/install-c"))
                .env("PREFIX", &prefix)
                .env("CARGO_TARGET_DIR", directory().join("target"))
                .env_remove("DESTDIR"),
        );
        prefix
    })
}

/// A field of `librip.pc`, as pkg-config prints it. pkg-config itself is not needed.
fn package(field: &str) -> Vec<String> {
    let text = std::fs::read_to_string(prefix().join("lib/pkgconfig/librip.pc")).unwrap();
    let variable = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
    };
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:"))).unwrap();
    let line = line.replace("${libdir}", &variable("libdir"));
    line.replace("${includedir}", &variable("includedir")).split_whitespace().map(str::to_owned).collect()
}

/// A compiler, and the standards to test it with: the oldest, the most used and the newest.
#[derive(Clone, Copy, Debug)]
struct Compiler {
    name: &'static str,
    standards: &'static [&'static str],
    is_cpp: bool,
}

const GCC: Compiler = Compiler { name: "gcc", standards: &["c99", "c11", "c17", "c2x"], is_cpp: false };
const CLANG: Compiler = Compiler { name: "clang", ..GCC };
const GPP: Compiler =
    Compiler { name: "g++", standards: &["c++11", "c++14", "c++17", "c++20", "c++2b"], is_cpp: true };
const CLANGPP: Compiler = Compiler { name: "clang++", ..GPP };

/// Those of these compilers that are installed and can build programs.
fn installed(compilers: &[Compiler]) -> Vec<Compiler> {
    compilers.iter().filter(|compiler| can(compiler.name, &[], directory())).copied().collect()
}

const STRICT: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// Compiles fixtures into a program that uses the shared library.
fn build(compiler: Compiler, sources: &[&str], name: &str, flags: &[&str]) -> PathBuf {
    build_with(compiler, sources, name, flags, &shared())
}

/// The shared library, for a program that is linked.
fn shared() -> Vec<String> {
    // FOLKLORE: glibc fails an assertion at the start of a -static-pie program that has a run path, so only this
    // function sets one.
    let path = format!("-Wl,-rpath,{}", prefix().join("lib").display());
    [package("Libs"), vec![path]].concat()
}

/// The same with these libraries.
fn build_with(
    compiler: Compiler,
    sources: &[&str],
    name: &str,
    flags: &[&str],
    libraries: &[String],
) -> PathBuf {
    let out = directory().join(name);
    let mut command = Command::new(compiler.name);
    if compiler.is_cpp && sources.iter().any(|source| source.ends_with(".c")) {
        command.args(["-x", "c++"]);
    }
    command
        .args(sources.iter().map(|source| fixture(source)))
        .args(STRICT)
        .args(flags)
        .args(package("Cflags"));
    if compiler.is_cpp {
        command.args(["-x", "none"]);
    }
    tool(command.arg("-o").arg(&out).args(libraries).args(["-pthread", "-ldl"]));
    out
}

/// Runs a built fixture, which exits with status 3.
fn run(program: &Path, arguments: &[&str]) -> Remains {
    let remains = Plan::new(program, arguments).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    remains
}

fn main_slot(ring: &Ring) -> &Slot {
    ring.slots.iter().find(|slot| slot.tid == ring.pid && slot.pid == ring.pid).unwrap()
}

/// The number of the line with this text in a fixture.
fn line_of(source: &str, text: &str) -> u32 {
    let lines = std::fs::read_to_string(fixture(source)).unwrap();
    lines.lines().position(|line| line.contains(text)).unwrap() as u32 + 1
}
