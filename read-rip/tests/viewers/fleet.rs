//! The records of a machine and of many hosts: `scripts/fleet/collect`, `scripts/fleet/compact` and the units.
//!
//! The questions themselves are tested in `duckdb.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::examples::{Stuck, built};
use crate::support::fixture::Scratch;
use crate::support::run::{Outcome, clean, finish};
use crate::tools;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/fleet").join(name)
}

/// `scripts/fleet/NAME ARGS`, with the Python packages of `python`.
fn run(mut python: Command, name: &str, args: &[&str]) -> Outcome {
    python.arg(script(name)).args(args);
    finish(clean(python))
}

/// What `scripts/fleet/ask` answers.
fn ask(question: &str, folder: &Path) -> Vec<Value> {
    let python = tools::python("duckdb").unwrap();
    run(python, "ask", &[question, folder.to_str().unwrap(), "--json"]).sound().json()
}

fn files(folder: &Path, table: &str) -> Vec<PathBuf> {
    let days = fs::read_dir(folder.join(table)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        days.flat_map(|day| fs::read_dir(day).unwrap()).map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// `scripts/fleet/collect FOLDER ARGS`, over the rings of a folder.
fn collect(rings: &Path, folder: &Path, args: &[&str]) -> Outcome {
    let mut command = Command::new(script("collect"));
    command.arg(folder).arg("--dir").arg(rings).args(args).env_remove("RIP_RING");
    command.env("READ_RIP", built().join("read-rip"));
    finish(clean(command))
}

/// The records of programs in a folder: how many of each.
fn records(folder: &Path) -> [usize; 2] {
    let files = files(folder, "processes");
    let of = |program: &str| files.iter().filter(|path| path.to_str().unwrap().contains(program)).count();
    [of(".server."), of(".deadlock.")]
}

#[test]
fn collecting_reads_each_ring_and_one_that_is_damaged_stops_no_other() {
    let scratch = Scratch::new();
    let (rings, folder) = (scratch.path("rings"), scratch.path("fleet"));
    fs::create_dir(&rings).unwrap();
    let Some(server) = Stuck::start("server", &["--threads", "12"], &rings) else { return };
    let Some(deadlock) = Stuck::start("deadlock", &[], &rings) else { return };
    collect(&rings, &folder, &[]).sound();
    assert_eq!(records(&folder), [1, 1]);

    // Each record of a living process is of another moment. One of a process that has ended is made once.
    drop(server);
    collect(&rings, &folder, &[]).sound();
    assert_eq!(records(&folder), [2, 2]);
    collect(&rings, &folder, &[]).sound();
    assert_eq!(records(&folder), [2, 3]);
    if tools::python("duckdb").is_some() {
        // The server is dead, so its host is not stuck.
        let stuck = ask("stuck-hosts", &folder);
        let programs: Vec<&Value> = stuck.iter().map(|row| &row["program"]).collect();
        assert_eq!(programs, ["deadlock"], "{stuck:#?}");
    }

    // A ring whose end is missing.
    let ring = fs::read_dir(&rings).unwrap().map(|entry| entry.unwrap().path());
    let ring = ring.into_iter().find(|path| path.to_str().unwrap().contains("rip.server.")).unwrap();
    fs::write(rings.join("rip.server.77.1"), &fs::read(&ring).unwrap()[..4096]).unwrap();
    let outcome = collect(&rings, &folder, &[]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(outcome.stderr.contains("could not read") && outcome.stderr.contains("rip.server.77.1"));
    assert_eq!(records(&folder)[1], 4);
    drop(deadlock);
}

#[test]
fn collecting_keeps_the_days_that_are_wanted_and_does_not_overlap() {
    let scratch = Scratch::new();
    let (rings, folder) = (scratch.path("rings"), scratch.path("fleet"));
    fs::create_dir(&rings).unwrap();
    let old = folder.join("waits/date=2020-01-01");
    let new = folder.join("waits/date=9999-01-01");
    for day in [&old, &new] {
        fs::create_dir_all(day).unwrap();
    }
    collect(&rings, &folder, &[]).sound();
    assert!(old.exists());
    let lock = fs::File::open(&folder).unwrap();
    lock.lock().unwrap();
    let outcome = collect(&rings, &folder, &["--keep", "3"]).sound();
    assert!(outcome.stderr.contains("another run fills") && old.exists(), "{outcome:#?}");
    drop(lock);
    collect(&rings, &folder, &["--keep", "3"]).sound();
    assert!(!old.exists() && new.exists());
    let outcome = collect(&rings, &folder, &["--keep", "0"]);
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    assert!(outcome.stderr.contains("--keep needs a number of days"), "{outcome:#?}");
}

#[test]
fn compacting_leaves_one_file_a_table_and_day_and_the_same_answers() {
    let Some(python) = tools::python("duckdb") else { return };
    let scratch = Scratch::new();
    let folder = scratch.path("fleet");
    let target = folder.to_str().unwrap();
    run(python, "simulate", &[target, "--hosts", "8", "--waits", "20000"]).sound();
    let answers = || ["costly-locks", "new-build", "holders"].map(|of| ask(of, &folder));
    let before = answers();
    assert!(before.iter().all(|rows| !rows.is_empty()), "{before:#?}");
    let parts = files(&folder, "waits");
    assert_eq!(parts.len(), 8);
    let part = fs::read(&parts[0]).unwrap();
    let compact = || run(tools::python("duckdb").unwrap(), "compact", &[target]).sound();
    compact();
    let whole = parts[0].with_file_name("all.parquet");
    assert_eq!((files(&folder, "waits"), answers()), (vec![whole.clone()], before.clone()));

    // A run that was ended before it removed the files it had taken.
    fs::write(&parts[0], part).unwrap();
    assert_ne!(ask("holders", &folder), before[2]);
    compact();
    assert_eq!((files(&folder, "waits"), ask("holders", &folder)), (vec![whole], before[2].clone()));
    assert!(compact().stdout.starts_with("0 files"), "what is compacted is left as it is");
}

#[test]
fn systemd_finds_nothing_wrong_in_the_units() {
    let Some(mut systemd) = tools::program("systemd-analyze", "systemd") else { return };
    let scratch = Scratch::new();
    for unit in ["read-rip-collect.service", "read-rip-collect.timer"] {
        let text = fs::read_to_string(script(unit)).unwrap();
        // Where they will be installed, nothing is yet.
        let here = script("collect").canonicalize().unwrap();
        let text = text.replace("/usr/local/bin/read-rip-collect", here.to_str().unwrap());
        fs::write(scratch.path(unit), text).unwrap();
    }
    systemd.args(["verify", "--man=no", "--recursive-errors=no"]);
    systemd.args([scratch.path("read-rip-collect.service"), scratch.path("read-rip-collect.timer")]);
    let outcome = finish(clean(systemd)).sound();
    assert_eq!(outcome.stderr, "");
}
