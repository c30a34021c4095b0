//! The pages of `docs/`: each of their commands runs, over rings of two example programs that were killed.
//!
//! A block that begins with ```console has commands, as lines that begin with `$ `. Such a command ends with status 0,
//! or with what the line `(exit status N)` after it says, and each file that it writes with `-o` or `>` is there then.
//! A command whose program is missing is skipped, with a line. Not tested here: what the commands print.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use librip_test_kit::victim::DEADLINE;

use crate::examples::Stuck;
use crate::support::fixture::Scratch;
use crate::support::run::{Outcome, clean, finish};
use crate::tools;

/// Programs that the pages use, made of Python packages that `scripts/viewers` fetches: name, package, and what it does
/// with its arguments.
const STAND_INS: [(&str, &str, &str); 2] = [
    ("duckdb", "duckdb", "assert sys.argv[1] == '-c'; duckdb.sql(sys.argv[2]).show()"),
    ("clickhouse", "chdb", "assert sys.argv[1:3] == ['local', '--query']; print(chdb.query(sys.argv[3]))"),
];

/// Scripts of the pages that load a Python package.
const SCRIPTS: [(&str, &str); 2] = [("scripts/fleet/ask", "duckdb"), ("scripts/fleet/compact", "duckdb")];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A command of a page, and the status with which it ends.
struct Said {
    command: String,
    status: i32,
}

fn commands(page: &str) -> Vec<Said> {
    let mut commands: Vec<Said> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        for line in block.split_once("\n```").expect("a block ends").0.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push(Said { command: command.to_owned(), status: 0 });
            } else if let Some(status) = line.strip_prefix("(exit status ") {
                let last = commands.last_mut().expect("a status follows a command");
                last.status = status.trim_end_matches(')').parse().unwrap();
            }
        }
    }
    commands
}

/// The programs that a command starts: the first word, and those after each `|`. What is in quotes is none.
fn programs(command: &str) -> Vec<String> {
    let unquoted: String = command.split(['\'', '"']).step_by(2).collect();
    unquoted.split('|').filter_map(|part| part.split_whitespace().next().map(str::to_owned)).collect()
}

/// The files that a command writes.
fn written(command: &str) -> Vec<&str> {
    let words: Vec<&str> = command.split_whitespace().collect();
    words.windows(2).filter(|pair| pair[0] == "-o" || pair[0] == ">").map(|pair| pair[1]).collect()
}

/// A folder in which the commands run as on the machine of who reads the page.
struct Place {
    scratch: Scratch,
    path: OsString,
}

impl Place {
    /// With the rings of both programs; `None`, with a line that says so, if they are not built.
    fn new() -> Option<Place> {
        let scratch = Scratch::new();
        for folder in ["first", "last", "rings", "sessions"] {
            fs::create_dir(scratch.path(folder)).unwrap();
        }
        for (program, args) in [("server", &["--threads", "12"][..]), ("deadlock", &[])] {
            drop(Stuck::start(program, args, &scratch.path("rings"))?);
        }
        // Other rings of this machine are none of a page's business.
        let (program, rings) = (env!("CARGO_BIN_EXE_read-rip"), scratch.path("rings"));
        let only_ours = format!("#!/bin/sh\nexec '{program}' --dir '{}' \"$@\"\n", rings.display());
        let mut programs = vec![("first/read-rip".to_owned(), only_ours)];
        programs.extend(STAND_INS.map(|(name, package, does)| {
            (format!("last/{name}"), format!("#!/usr/bin/env python3\nimport sys, {package}\n{does}\n"))
        }));
        for (name, text) in programs {
            let file = scratch.file(&name, text.as_bytes());
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut folders = vec![scratch.path("first")];
        folders.extend(tools::file("node/node_modules/.bin"));
        let present = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&present));
        folders.push(scratch.path("last"));
        Some(Place { path: std::env::join_paths(folders).unwrap(), scratch })
    }

    fn shell(&self, folder: &Path, command: &str) -> Command {
        let mut shell = clean(Command::new("bash"));
        shell.args(["-o", "pipefail", "-c", command]).current_dir(folder);
        shell.env("PATH", &self.path).env("RIP_RING", self.scratch.path("rings"));
        shell.env("PROFILER_CLI_SESSION_DIR", self.scratch.path("sessions"));
        if let Some(python) = tools::file("python") {
            shell.env("PYTHONPATH", python);
        }
        shell
    }

    /// Whether a program is there.
    fn has(&self, folder: &Path, program: &str) -> bool {
        let found = finish(self.shell(folder, &format!("command -v {program}")));
        let stands_in = Path::new(found.stdout.trim()).starts_with(self.scratch.path("last"));
        let stand_in = STAND_INS.iter().find(|(name, ..)| stands_in && *name == program);
        let script = SCRIPTS.iter().find(|(name, _)| *name == program);
        let package = stand_in.map(|(_, package, _)| package).or(script.map(|(_, package)| package));
        found.status == 0 && package.is_none_or(|package| tools::python(package).is_some())
    }

    /// Runs a command, again while it says that its server is still starting: `profiler-cli load` waits for half a
    /// second only.
    fn outcome(&self, folder: &Path, command: &str) -> Outcome {
        let start = Instant::now();
        loop {
            let outcome = finish(self.shell(folder, command));
            if !outcome.stderr.contains("it is most likely still starting") || start.elapsed() > DEADLINE {
                return outcome;
            }
        }
    }

    /// Runs the commands of a page. Returns how many of them ran.
    fn run(&self, name: &str) -> usize {
        let page = fs::read_to_string(package().join("docs").join(name)).unwrap();
        // Pages write files of the same names.
        let work = self.scratch.path(name);
        fs::create_dir(&work).unwrap();
        let scripts = package().parent().unwrap().join("scripts");
        std::os::unix::fs::symlink(scripts, work.join("scripts")).unwrap();
        let mut ran = 0;
        for Said { command, status } in commands(&page) {
            if let Some(missing) = programs(&command).iter().find(|program| !self.has(&work, program)) {
                eprintln!("skipped: {missing} is missing, for `{command}` of {name}");
                continue;
            }
            let outcome = self.outcome(&work, &command);
            assert_eq!(outcome.status, status, "{name}: {command}\n{outcome:#?}");
            for file in written(&command) {
                assert!(work.join(file).exists(), "{name}: {command}: {file}");
            }
            ran += 1;
        }
        ran
    }
}

#[test]
fn each_command_of_each_page_does_what_the_page_says() {
    let pages: Vec<PathBuf> =
        package().join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut pages: Vec<&str> = pages.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    // The index and the page of a live screen have no commands.
    pages.retain(|name| name.ends_with(".md") && !["README.md", "top.md"].contains(name));
    assert!(pages.len() >= 10, "{pages:?}");
    let Some(place) = Place::new() else { return };
    std::thread::scope(|scope| {
        for page in pages {
            let place = &place;
            scope.spawn(move || assert!(place.run(page) > 0, "{page} has no command that runs"));
        }
    });
}

#[test]
fn commands_statuses_and_files_are_found_in_a_page() {
    let page =
        "```console\n$ a -o b.svg | 'c | d' e > f\nshown\n(exit status 1)\n$ g\n```\n```sh\n$ h\n```\n";
    let found = commands(page);
    let shown: Vec<_> = found.iter().map(|said| (&*said.command, said.status)).collect();
    assert_eq!(shown, [("a -o b.svg | 'c | d' e > f", 1), ("g", 0)]);
    assert_eq!(programs("a -o b | c 'd | e' \"f | g\" | h"), ["a", "c", "h"]);
    assert_eq!(written(shown[0].0), ["b.svg", "f"]);
}
