//! Recordings that go on in another file when one is full.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use librip_test_kit::victim::Victim;

use crate::recordings::{Recorder, THREADS, advance, has_gap, steps, victim};

/// The numbers of the full files of a recording, ascending.
fn numbers(target: &Path) -> Vec<u64> {
    let prefix = format!("{}.", target.file_name().unwrap().to_string_lossy());
    let entries = std::fs::read_dir(target.parent().unwrap()).unwrap();
    let mut numbers: Vec<u64> = entries
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_prefix(&prefix)?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

fn full(target: &Path, number: u64) -> PathBuf {
    PathBuf::from(format!("{}.{number}", target.display()))
}

fn record(victim: &Victim, options: &[&str]) -> (Recorder, PathBuf) {
    let target = victim.dir().join("recording");
    let ring = victim.ring_path();
    let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    arguments.extend([OsStr::new("-o"), target.as_ref(), ring.as_ref()]);
    (Recorder::start(&arguments), target)
}

#[test]
fn a_recording_goes_on_in_another_file_when_one_is_full_and_loses_nothing() {
    let (mut victim, cells) = victim();
    let (recorder, target) = record(&victim, &["--max-size", "64K"]);
    while numbers(&target).len() < 3 {
        advance(cells, 100);
    }
    victim.kill();
    let said = recorder.end();
    let numbers = numbers(&target);
    let files: Vec<PathBuf> =
        numbers.iter().map(|&number| full(&target, number)).chain([target.clone()]).collect();
    // A round may be longer than what was left of the file.
    assert!(files.iter().all(|file| file.metadata().unwrap().len() < 256 << 10), "{files:?}");
    let mut all = vec![Vec::new(); THREADS];
    for file in &files {
        for (thread, steps) in steps(file) {
            all[thread as usize].extend(steps);
        }
    }
    for mut steps in all {
        // Two files may have the same event: each begins with an image of the ring.
        steps.sort_unstable();
        steps.dedup();
        assert!(!has_gap(&steps) || said.contains(" overwritten before they were read"), "{said}");
    }
    victim.wait();
}

#[test]
fn of_the_full_files_only_those_that_are_wanted_are_kept() {
    let (victim, cells) = victim();
    let foreign = full(&victim.dir().join("recording"), 2);
    std::fs::write(&foreign, "somebody else's").unwrap();
    let (recorder, target) = record(&victim, &["--max-time", "1ms", "--keep", "2"]);
    while numbers(&target).last().is_none_or(|&last| last < 7) {
        advance(cells, 10);
    }
    recorder.interrupt();
    recorder.end();
    let numbers = numbers(&target);
    let last = *numbers.last().unwrap();
    assert_eq!(numbers, [2, last - 1, last]);
    assert_eq!(std::fs::read(&foreign).unwrap(), b"somebody else's");
    for file in [full(&target, last - 1), full(&target, last), target] {
        assert_eq!(steps(&file).len(), THREADS, "{}", file.display());
    }
    victim.killed();
}
