//! Compilers and other tools that tests run.
//!
//! If a tool fails, the test fails with everything that the tool wrote. A test first asks whether a tool is installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

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

/// Returns why this compiler cannot build a program that runs with these flags, or `None` if it can.
///
/// A compiler may be installed without the parts that a flag needs: clang without the sanitizers' runtime, for example.
///
/// The answer is kept. Tests of one binary ask at the same time, and two of them must not write one program.
pub fn cannot(compiler: &str, flags: &[&str], directory: &Path) -> Option<String> {
    static ANSWERS: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = format!("{compiler} {}", flags.join(" "));
    answers.entry(asked).or_insert_with(|| probe(compiler, flags, directory)).clone()
}

fn probe(compiler: &str, flags: &[&str], directory: &Path) -> Option<String> {
    if !is_installed(compiler) {
        return Some("it is not installed".to_owned());
    }
    std::fs::create_dir_all(directory).unwrap();
    let named = flags.concat().replace(|c: char| !c.is_alphanumeric(), "-");
    let program = directory.join(format!("probe-{compiler}{named}"));
    let language = if compiler.ends_with("++") { "c++" } else { "c" };
    let source = program.with_extension(language);
    std::fs::write(&source, "#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n").unwrap();
    let built = Command::new(compiler).args(flags).arg(&source).arg("-o").arg(&program).output().unwrap();
    if !built.status.success() {
        return Some(format!("a trivial program does not build: {}", first_line(&built.stderr)));
    }
    let ran = Command::new(&program).output().unwrap();
    (!ran.status.success())
        .then(|| format!("a trivial program ends with {}: {}", ran.status, first_line(&ran.stderr)))
}

fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}

/// Returns whether this compiler can make a program that runs with these flags. Says so on standard error if not.
pub fn can(compiler: &str, flags: &[&str], directory: &Path) -> bool {
    let reason = cannot(compiler, flags, directory);
    if let Some(reason) = &reason {
        eprintln!("SKIPPED {compiler} {}: {reason}", flags.join(" "));
    }
    reason.is_none()
}

/// Copies a program that a test then runs.
///
/// FOLKLORE: if this process copied it, a child that another test forks meanwhile would have the open copy too, until
/// its `exec`, and the kernel runs no program that is open for writing (`ETXTBSY`).
pub fn copy_program(program: impl AsRef<Path>, copy: &Path) {
    tool(Command::new("cp").arg(program.as_ref()).arg(copy));
}

/// Returns whether to rewrite golden files: `scripts/bless` sets `RIP_BLESS`.
pub fn blessing() -> bool {
    std::env::var_os("RIP_BLESS").is_some()
}

/// Returns the root of the repository.
pub fn repository() -> &'static Path {
    let kit = Path::new(env!("CARGO_MANIFEST_DIR"));
    kit.ancestors().nth(2).expect("the kit is in tests/kit")
}

/// The variable that gives cargo another compiler for the workspace.
pub const COMPILER_WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

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
            // `scripts/test` builds with clippy, which optimises less.
            .env_remove(COMPILER_WRAPPER)
            .envs(environment.iter().copied()),
    );
    Built(messages.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
}

/// The libraries that tests need in release. Features only add functions, so all get one librip, with those of all.
const LIBRARIES: [&str; 4] = ["--package", "librip", "--package", "librip-capi"];

/// Builds librip in release, and the library for C. `parking_lot` is built too: a test of librip uses it.
pub fn librip(directory: &Path) -> Built {
    let with_a_test = ["--features", "librip/lock_api", "--lib", "--test", "raw_condvar"];
    release(&[&LIBRARIES[..], &with_a_test].concat(), directory)
}

/// Builds the crate that stands in for `parking_lot` beside [`librip`], with the same librip.
pub fn stand_in(directory: &Path) -> Built {
    release(&[&LIBRARIES[..], &["--package", "parking_lot@0.12.900"]].concat(), directory)
}

/// Builds the interposer in release, by itself: with other packages, it would have features that it is shipped without.
pub fn interposer(directory: &Path) -> Built {
    release(&["--package", "librip-preload"], directory)
}

/// Builds in release, with the bitcode that some tests want. All tests share one directory: they need the same
/// dependencies.
fn release(packages: &[&str], directory: &Path) -> Built {
    let arguments = [&["build", "--release"], packages].concat();
    cargo(&arguments, &directory.join("release"), &[("RUSTFLAGS", "-Cembed-bitcode=yes")])
}

/// The files that cargo reports as built or up to date.
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

    /// Returns the source file of a target, which for a library of the registry is there, because cargo built it.
    ///
    /// # Panics
    ///
    /// When it was not built.
    pub fn source(&self, target: &str) -> PathBuf {
        let built = self.0.iter().find(|message| message["target"]["name"] == target);
        let source = built.and_then(|message| message["target"]["src_path"].as_str());
        source.unwrap_or_else(|| panic!("cargo has built no {target}")).into()
    }

    /// Returns the program of a target.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn executable(&self, target: &str) -> PathBuf {
        let of_target = self.0.iter().filter(|message| message["target"]["name"] == target);
        // The program of its unit tests has the same name.
        let mut programs = of_target.filter(|message| message["profile"]["test"] == false);
        let program = programs.find_map(|message| message["executable"].as_str());
        program.unwrap_or_else(|| panic!("cargo has built no program {target}")).into()
    }
}

/// The interpreters of Python of this machine, one for each version from 3.8 to 3.13, with those that `pyenv` has
/// installed. Prints a line on standard error if there is none.
pub fn pythons() -> Vec<String> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let root = std::env::var_os("PYENV_ROOT").map_or_else(|| Path::new(&home).join(".pyenv"), PathBuf::from);
    let folders = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let folders: Vec<PathBuf> = folders.map(|folder| folder.path().join("bin")).collect();
    let names = (8..=13).flat_map(|minor| {
        let name = format!("python3.{minor}");
        let installed = folders.iter().map(|folder| folder.join(&name)).find(|path| path.exists());
        installed.map(|path| path.to_string_lossy().into_owned()).or(Some(name))
    });
    let runs = |name: &String| {
        let version = Command::new(name).arg("-V").output();
        version.is_ok_and(|version| version.status.success())
    };
    let found: Vec<String> = names.filter(runs).collect();
    if found.is_empty() {
        eprintln!("SKIPPED python: no version from 3.8 to 3.13 is installed");
    }
    found
}
