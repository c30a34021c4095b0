//! Recordings of all processes of a machine, or of a program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use librip_test_kit::reader;
use librip_test_kit::tool::copy_program;
use librip_test_kit::victim::{Plan, Victim, tempdir};

use crate::read;
use crate::recordings::{Recorder, steps};

/// A victim with one thread, whose ring is in a directory of rings.
fn victim(program: &Path, rings: &Path) -> Victim {
    let mut victim = Plan::new(program, &["events", "paced", "1"]).env("RIP_RING", rings).start();
    victim.until("ready");
    victim
}

fn record<'a>(rings: &'a Path, target: &'a Path, program: &'a [&OsStr]) -> Recorder {
    let fixed = ["--all".as_ref(), "--dir".as_ref(), rings.as_ref(), "-o".as_ref(), target.as_ref()];
    Recorder::start_early(&[&fixed, program].concat())
}

fn recordings(target: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(target).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The recording of a process.
fn of(victim: &Victim, target: &Path) -> PathBuf {
    let pid = format!(".{}.", victim.pid());
    let mut found = recordings(target);
    found.retain(|path| path.file_name().unwrap().to_str().unwrap().contains(&pid));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn all_processes_are_recorded_those_that_start_later_too_each_into_a_file_of_its_own() {
    let (rings, target) = (tempdir(), tempdir());
    let target = target.path().join("made/for/it");
    let program = Path::new(env!("CARGO_BIN_EXE_victim"));
    let mut first = victim(program, rings.path());
    let mut recorder = record(rings.path(), &target, &[]);
    let line = recorder.line();
    assert!(line.starts_with("Recording ") && line.ends_with(".recording.\n"), "{line}");
    let mut later = victim(program, rings.path());
    assert!(recorder.line().starts_with("Recording "));
    first.kill();
    let ended = recorder.line();
    assert!(ended.starts_with("Recorded "), "{ended}");
    recorder.interrupt();
    assert!(recorder.end().starts_with("Recorded "));
    for victim in [&first, &later] {
        let recording = of(victim, &target);
        assert!(steps(&recording)[&0].len() > 1, "{}", recording.display());
        assert!(recording.file_name().unwrap().to_str().unwrap().starts_with("rip.victim."));
    }
    let (info, _) = read(&["info"], &of(&first, &target));
    assert!(info.contains("killed or crashed") || info.contains("dead"), "{info}");
    later.kill();
    first.wait();
    later.wait();
}

#[test]
fn the_processes_of_one_program_are_recorded_and_no_others() {
    let (rings, target) = (tempdir(), tempdir());
    let program = rings.path().join("another");
    copy_program(env!("CARGO_BIN_EXE_victim"), &program);
    let mut other = victim(Path::new(env!("CARGO_BIN_EXE_victim")), rings.path());
    let mut wanted = victim(&program, rings.path());
    let mut recorder = record(rings.path(), target.path(), &["another".as_ref()]);
    assert!(recorder.line().starts_with("Recording "));
    // A recorder that goes on does not take the file of one before it.
    recorder.interrupt();
    recorder.end();
    let mut recorder = record(rings.path(), target.path(), &["another".as_ref()]);
    let line = recorder.line();
    assert!(line.ends_with("-2.recording.\n"), "{line}");
    recorder.interrupt();
    recorder.end();
    let found = recordings(target.path());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|path| !steps(path).is_empty()), "{found:?}");
    other.kill();
    wanted.kill();
    other.wait();
    wanted.wait();
}

#[test]
fn a_recording_of_nothing_and_a_path_in_place_of_a_name_are_errors() {
    let rings = tempdir();
    let failed = |arguments: &[&str]| {
        let run = std::process::Command::new(reader::program())
            .args(["record", "--all", "--for", "1ms", "--dir"])
            .arg(rings.path())
            .args(arguments)
            .output()
            .expect("the reader");
        assert_eq!(run.status.code(), Some(2));
        String::from_utf8(run.stderr).expect("UTF-8")
    };
    let target = rings.path().join("target");
    let target = target.to_str().unwrap();
    let nothing = failed(&["-o", target]);
    assert!(nothing.starts_with("Error: no "), "{nothing}");
    assert!(failed(&["-o", target, "./name"]).contains("takes the name of a program, not ./name\n"));
    assert!(failed(&["-o", target, "4711"]).contains("takes the name of a program, not 4711\n"));
    std::fs::write(rings.path().join("file"), "").unwrap();
    let file = rings.path().join("file");
    assert!(failed(&["-o", file.to_str().unwrap()]).starts_with("Error: "));
}

#[test]
fn a_recording_names_functions_where_the_program_is_not() {
    let (rings, target) = (tempdir(), tempdir());
    let program = rings.path().join("victim");
    copy_program(env!("CARGO_BIN_EXE_victim"), &program);
    let victim = victim(&program, rings.path());
    let mut recorder = record(rings.path(), target.path(), &[]);
    assert!(recorder.line().starts_with("Recording "));
    recorder.interrupt();
    recorder.end();
    std::fs::remove_file(&program).unwrap();
    let recording = of(&victim, target.path());
    victim.killed();
    let (out, _) = read(&["-v"], &recording);
    assert!(out.contains("paced"), "{out}");
}
