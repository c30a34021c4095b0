//! Marks in the output of compilers and linkers: the tests build and run each variant, and read its ring.
//!
//! The fixtures in `fixtures/` are compiled by calling rustc with the librip that is built once, in release,
//! with bitcode for the variants that need it: a variant then takes a second or two.

#![allow(missing_docs, reason = "tests")]

mod assembly;
mod awaits;
mod callers;
mod copies;
mod locks;
mod optimised;
mod servers;
mod stand_in;
mod variants;
mod watched;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::reader;
use librip_test_kit::tool::{self, Built, tool};
use librip_test_kit::victim::{Plan, Remains};

/// The directory for everything that the tests build.
fn directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("build/fixtures").join(name)
}

/// librip, built in release. Built on the first call.
fn librip() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| tool::librip(directory()))
}

/// Compiles a fixture with these flags, as `name`.
fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    compile_by(librip().rustc(&["librip", "lock_api", "parking_lot"]), source, name, flags)
}

/// Compiles a fixture by this call of rustc, to which the libraries were given.
fn compile_by(mut rustc: Command, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let out = directory().join(name);
    rustc.arg(fixture(source)).arg("--crate-name").arg(source.trim_end_matches(".rs"));
    tool(rustc.arg("-o").arg(&out).args(flags));
    out
}

/// Runs a built fixture, which exits with status 3.
fn run(program: &Path, arguments: &[&str]) -> Remains {
    let remains = Plan::new(program, arguments).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    remains
}

/// What the reader prints about a ring.
fn read_rip(arguments: &[&str], ring: &Path) -> String {
    reader::ask(arguments, ring).stdout
}

/// Builds a package that has a workspace of its own, and returns the directory of its programs. `None` if cargo cannot
/// download what it needs, or if the compiler is too old.
///
/// Without flags for the compiler, it goes to the main target directory, where most is built already.
fn built_alone(package: &str, flags: Option<(&str, &str)>) -> Option<PathBuf> {
    let target = directory().parent().expect("target/tmp");
    let manifest = tool::repository().join(package).join("Cargo.toml");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(&manifest);
    cargo.env_remove("CARGO_ENCODED_RUSTFLAGS");
    let target = match flags {
        Some((flags, directory)) => {
            let all = [std::env::var("RUSTFLAGS").unwrap_or_default(), flags.to_owned()].join(" ");
            cargo.env("RUSTFLAGS", all);
            target.join(directory)
        }
        None => target.to_owned(),
    };
    let built = cargo.arg("--target-dir").arg(&target).output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    if said.contains("failed to download") || said.contains("requires rustc") {
        eprintln!("SKIPPED {package}: {said}");
        return None;
    }
    let next = "if the lock file is old: cargo update --workspace --manifest-path";
    assert!(built.status.success(), "{said}\n{next} {package}/Cargo.toml");
    Some(target.join("debug"))
}
