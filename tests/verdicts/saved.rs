//! `read-rip save`: another machine reads the copy with the same result, without the process and without the program.

use std::path::{Path, PathBuf};

use librip_test_kit::reader;
use librip_test_kit::tool::copy_program;
use librip_test_kit::victim::{Plan, Victim};
use regex::Regex;
use serde_json::Value;

use super::ask::{check, printed};

/// A scenario whose program is a file in the victim's directory.
fn start(scenario: &str) -> (Victim, PathBuf) {
    let directory = librip_test_kit::victim::tempdir().keep();
    let program = directory.join("program");
    copy_program(env!("CARGO_BIN_EXE_scenario"), &program);
    let mut victim = Plan::new(&program, &[scenario]).start();
    victim.until("ready");
    (victim, directory)
}

fn save(ring: &Path, to: &Path) {
    let output = reader::ask(&["save", "-o", to.to_str().unwrap()], ring);
    assert_eq!(output.status, 0, "{output:?}");
}

/// What a command prints, without how long ago the ring was saved, and how long before the reading a wait began.
fn said(arguments: &[&str], ring: &Path) -> String {
    let output = printed(arguments, ring);
    let (heading, rest) = output.split_once('\n').unwrap_or((&output, ""));
    let heading = heading.split_once(" (saved").map_or(heading, |(heading, _)| heading);
    // `(the longest for at least 3 ms and at most 1 s)`
    let lines = rest.lines().map(|line| match line.split_once("at most ") {
        Some((before, after)) => {
            format!("{before}{}\n", after.trim_start_matches(|at: char| at != ')' && at != ','))
        }
        None => format!("{line}\n"),
    });
    format!("{heading}\n{}", lines.collect::<String>())
}

/// The findings without their times, which pass on while the process lives.
fn timeless(lines: &[Value]) -> Vec<Value> {
    fn without_times(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let is_kept = |name: &str| !name.ends_with("_ns") && name != "text";
                let kept = fields.iter().filter(|(name, _)| is_kept(name));
                Value::Object(kept.map(|(name, value)| (name.clone(), without_times(value))).collect())
            }
            Value::Array(values) => Value::Array(values.iter().map(without_times).collect()),
            other => other.clone(),
        }
    }
    lines.iter().filter(|line| line["type"] == "finding").map(without_times).collect()
}

#[test]
fn a_saved_ring_gives_the_same_findings_without_process_and_program() {
    for scenario in ["cycle-2", "readers-after-a-queued-writer", "cycle-in-a-crowd"] {
        let (victim, directory) = start(scenario);
        let ring = victim.ring_path();
        let (live, dead) = (directory.join("live.gz"), directory.join("dead.gz"));
        let here = check(&ring, &[]);
        assert!(!here.findings.is_empty(), "{scenario}: {here:?}");
        save(&ring, &live);
        let remains = victim.killed();
        let views: [&[&str]; 3] = [&["check"], &["locks"], &["-t", "-v"]];
        let after_death = views.map(|view| said(view, &remains.ring_path()));
        save(&remains.ring_path(), &dead);
        std::fs::remove_file(remains.ring_path()).unwrap();
        std::fs::remove_file(directory.join("program")).unwrap();
        let there = check(&live, &[]);
        assert_eq!(timeless(&there.lines), timeless(&here.lines), "{scenario}");
        assert_eq!(there.status, here.status);
        assert!(said(&["check"], &live).contains(", alive"), "{scenario}");
        assert_eq!(views.map(|view| said(view, &dead)), after_death, "{scenario}");
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn a_saved_ring_has_what_the_kernel_said_of_each_thread() {
    let (victim, directory) = start("holder-reads-a-socket");
    let ring = victim.ring_path();
    let saved = directory.join("saved.gz");
    let here = said(&["-t"], &ring);
    assert!(here.contains("]: {") && here.contains("(takes), now in recvfrom on descriptor "), "{here}");
    assert!(here.contains(", now waiting for std::sync::Mutex scenario::waits::CACHE+0x8"), "{here}");
    let place = r", now in recvfrom on descriptor \d+ \(unix socket to descriptor \d+ of this process\), ";
    let place = Regex::new(&format!("{place}at scenario::waits::reads waits.rs:")).unwrap();
    let verbose = said(&["-tv"], &ring);
    assert!(place.is_match(&verbose), "{verbose}");
    let stacks = said(&["stacks"], &ring);
    assert!(stacks.contains("    scenario::waits::reads waits.rs:"), "{stacks}");
    let locks = said(&["locks"], &ring);
    assert!(locks.contains("has been in recvfrom on descriptor "), "{locks}");
    save(&ring, &saved);
    std::fs::remove_file(victim.killed().ring_path()).unwrap();
    std::fs::remove_file(directory.join("program")).unwrap();
    let there = [&["-t"][..], &["-tv"], &["stacks"]].map(|view| said(view, &saved));
    assert_eq!(there, [here, verbose, stacks]);
    assert!(said(&["locks"], &saved).contains("has been in recvfrom on descriptor "));
    let json = printed(&["-t", "--json"], &saved);
    let lines = json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls: Vec<_> = lines.map(|mut line| line["data"]["doing"].take()["call"].take()).collect();
    assert_eq!(calls.iter().filter(|call| *call == "recvfrom").count(), 1, "{json}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_saved_ring_is_a_ring_for_programs_that_know_nothing_of_the_rest() {
    let (victim, directory) = start("cycle-2");
    let packed = directory.join("saved.gz");
    let ring_len = std::fs::metadata(victim.ring_path()).unwrap().len();
    save(&victim.ring_path(), &packed);
    drop(victim.killed());
    let unpacked = directory.join("saved");
    let mut bytes = flate2::read::MultiGzDecoder::new(std::fs::File::open(&packed).unwrap());
    std::io::copy(&mut bytes, &mut std::fs::File::create(&unpacked).unwrap()).unwrap();
    assert_eq!(check(&unpacked, &[]).findings, ["proven deadlock"]);
    // The oracle insists on the length that the header states.
    let whole = std::fs::File::options().write(true).open(&unpacked).unwrap();
    whole.set_len(ring_len).unwrap();
    let ring = librip_test_kit::oracle::Ring::read(&unpacked).unwrap();
    assert!(ring.slots.len() >= 2, "the earlier image");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn saving_fails_with_a_reason_and_leaves_nothing_behind() {
    let (victim, directory) = start("cycle-2");
    let ring = victim.ring_path();
    let nowhere = directory.join("none/saved.gz");
    let output = reader::ask(&["save", "-o", nowhere.to_str().unwrap()], &ring);
    let why = output.stderr;
    assert!(output.status == 2 && why.contains("No such file or directory"), "{why}");
    let saved = directory.join("saved.gz");
    save(&ring, &saved);
    let output = reader::ask(&["save", "-o", directory.join("again.gz").to_str().unwrap()], &saved);
    let why = output.stderr;
    assert!(output.status == 2 && why.contains("is a saved ring"), "{why}");
    // Damage in what is saved beside the ring.
    let bytes = std::fs::read(&saved).unwrap();
    std::fs::write(&saved, &bytes[..bytes.len() - 100]).unwrap();
    let output = reader::ask(&["check"], &saved);
    let said = output.stderr;
    assert!(output.status != 0 && !said.is_empty(), "{said}");
    let mut files: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["program", "saved.gz"]);
    drop(victim.killed());
    std::fs::remove_dir_all(directory).unwrap();
}
