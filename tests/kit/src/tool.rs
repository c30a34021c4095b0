//! Compilers and other tools that tests run.
//!
//! A tool that fails, fails the test, with all that the tool wrote. A test asks first where a tool may be missing.

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

/// Runs cargo on this workspace in a target directory of its own, and returns what was built: `cargo ARGUMENTS`.
pub fn cargo(arguments: &[&str], target: &Path, environment: &[(&str, &str)]) -> Built {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let messages = tool(
        Command::new(cargo)
            .args(arguments)
            .args(["--message-format", "json", "--manifest-path"])
            .arg(repository().join("Cargo.toml"))
            .arg("--target-dir")
            .arg(target)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .envs(environment.iter().copied()),
    );
    Built(messages.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
}

/// Builds librip in release, with bitcode for tests that want it. Tests of one package share what is built.
pub fn librip(directory: &Path) -> Built {
    let arguments = ["build", "--release", "--package", "librip", "--features", "lock_api"];
    cargo(&arguments, &directory.join("librip"), &[("RUSTFLAGS", "-Cembed-bitcode=yes")])
}

/// What cargo says that it has built, or found built.
#[derive(Debug)]
pub struct Built(Vec<serde_json::Value>);

impl Built {
    /// Returns a call of rustc with these of the built libraries, for a program of one file.
    ///
    /// # Panics
    ///
    /// When one of them was not built.
    pub fn rustc(&self, libraries: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        command.args(["--edition", "2024"]);
        for library in libraries {
            let file = self.file(library, ".rlib");
            let dependencies = file.parent().expect("a file is in a directory");
            let dependencies =
                if dependencies.ends_with("deps") { dependencies.into() } else { dependencies.join("deps") };
            command.arg("--extern").arg(format!("{library}={}", file.display()));
            command.arg("-L").arg(format!("dependency={}", dependencies.display()));
        }
        command
    }

    /// Returns the file of a target (as `librip_preload`) whose name ends like this (as `.so`).
    ///
    /// The directories of a target keep files of earlier builds: a search there may find the wrong one.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn file(&self, target: &str, ending: &str) -> PathBuf {
        let of_target = self.0.iter().filter(|message| message["target"]["name"] == target);
        let mut files = of_target.flat_map(|message| message["filenames"].as_array().into_iter().flatten());
        let file = files.find_map(|file| file.as_str().filter(|file| file.ends_with(ending)));
        file.unwrap_or_else(|| panic!("cargo has built no {target}{ending}")).into()
    }
}
