//! Where the viewers are. Each is looked for in what `scripts/viewers` fetched, or among the installed programs.

#![allow(dead_code, reason = "which viewers are asked for changes with the tests")]

use std::path::PathBuf;
use std::process::Command;

/// What `scripts/viewers` fetched: the folder beside those of cargo's profiles.
fn fetched() -> PathBuf {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_read-rip"));
    let target = program.ancestors().find(|folder| folder.join("viewers").is_dir());
    target.map_or_else(|| PathBuf::from("/nonexistent"), |target| target.join("viewers"))
}

/// A file or folder that `scripts/viewers` fetched; `None`, with a line that says so, if it is missing.
pub(crate) fn file(name: &str) -> Option<PathBuf> {
    let path = fetched().join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {name} is missing; run scripts/viewers");
    None
}

/// An installed program; `None`, with a line that says so, if it cannot run.
pub(crate) fn program(name: &str, package: &str) -> Option<Command> {
    let runs = Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    if !runs {
        eprintln!("skipped: {name} is missing; apt install {package}");
    }
    runs.then(|| Command::new(name))
}

/// Python with a package that `scripts/viewers` fetched; `None`, with a line that says so, if it cannot load it.
pub(crate) fn python(package: &str) -> Option<Command> {
    let folder = file("python")?;
    let python = || {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", &folder);
        command
    };
    let loads = python().args(["-c", &format!("import {package}")]).output();
    if !loads.is_ok_and(|out| out.status.success()) {
        eprintln!("skipped: python3 cannot load {package}; run scripts/viewers");
        return None;
    }
    Some(python())
}
