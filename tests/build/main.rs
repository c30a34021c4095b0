//! What compilers and linkers make of marks: each variant is built, run, and its ring read.
//!
//! The fixtures in `fixtures/` are compiled by calling rustc with the librip that is built once, in release,
//! with bitcode for those variants that want it: a variant then takes a second or two.

#![allow(missing_docs, reason = "tests")]

mod assembly;
mod copies;
mod locks;
mod optimised;
mod variants;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::tool::{cargo, tool};
use librip_test_kit::victim::{Plan, Remains};

/// Where everything is built.
fn directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("build/fixtures").join(name)
}

/// The directory with librip and its dependencies, built in release. Built on the first call.
fn librip() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = directory().join("librip");
        let arguments = ["build", "--release", "--package", "librip", "--features", "std"];
        cargo(&arguments, &target, &[("RUSTFLAGS", "-Cembed-bitcode=yes")]);
        target.join("release")
    })
}

/// Compiles a fixture with these flags, as `name`.
fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let release = librip();
    let out = directory().join(name);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    tool(
        Command::new(rustc)
            .arg(fixture(source))
            .args(["--edition", "2024", "--crate-name"])
            .arg(source.trim_end_matches(".rs"))
            .arg("-o")
            .arg(&out)
            .arg("--extern")
            .arg(format!("librip={}", release.join("liblibrip.rlib").display()))
            .arg("-L")
            .arg(format!("dependency={}", release.join("deps").display()))
            .args(flags),
    );
    out
}

/// Runs a built fixture, which exits with status 3.
fn run(program: &Path, arguments: &[&str]) -> Remains {
    let remains = Plan::new(program, arguments).run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    remains
}
