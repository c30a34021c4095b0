//! Compilers and other tools that tests run.
//!
//! A tool that fails, fails the test, with all that the tool wrote. A test asks first where a tool may be missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a tool and returns its standard output.
///
/// # Panics
///
/// When the tool cannot be run, or fails.
pub fn tool(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns whether a program is installed.
pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Returns the root of the repository.
pub fn repository() -> &'static Path {
    let kit = Path::new(env!("CARGO_MANIFEST_DIR"));
    kit.ancestors().nth(2).expect("the kit is in tests/kit")
}

/// Builds with cargo in a target directory of its own: `cargo build ARGUMENTS`. Returns the directory.
pub fn cargo_build(arguments: &[&str], target: &Path, environment: &[(&str, &str)]) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let environment = environment.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    tool(
        Command::new(cargo)
            .arg("build")
            .args(arguments)
            .arg("--manifest-path")
            .arg(repository().join("Cargo.toml"))
            .arg("--target-dir")
            .arg(target)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .envs(environment),
    );
    target.to_owned()
}
