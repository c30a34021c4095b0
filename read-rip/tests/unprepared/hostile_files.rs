//! A living process whose program's file lies: what its memory proves stays proven, promptly and in bounded memory.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use librip_test_kit::Random;
use librip_test_kit::tool::copy_program;
use librip_test_kit::victim::Plan;
use read_rip_evidence::target::Sleep;

use crate::support::fixture::QUICK;
use crate::support::run::{Outcome, clean, finish};
use crate::support::unprepared::{Stuck, contains, deadlocks};

/// The kernel lets nobody write to the file of a program that it has started. It does not protect what this loads.
const LOADER: &str =
    if cfg!(target_arch = "x86_64") { "/lib64/ld-linux-x86-64.so.2" } else { "/lib/ld-linux-aarch64.so.1" };
/// Address space that `read-rip` may have, bytes.
const SPACE_BYTES: u64 = 1 << 30;

/// Bytes, and where they are written.
type Change = (u64, Vec<u8>);

/// A deadlock of two mutexes, and the file of its program.
fn stuck() -> (Stuck, PathBuf) {
    let plan = Plan::new(LOADER, &[]);
    let program = plan.dir().join("program");
    copy_program(deadlocks(), &program);
    let plan = plan.argument(&program).argument("normal");
    let stuck = Stuck::start_plan(plan, 2);
    // A thread that still runs would die of a file that was cut.
    stuck.until(|tasks| tasks.iter().all(|task| matches!(task.sleep, Some(Sleep::Call(_)))));
    (stuck, program)
}

/// `read-rip COMMAND... PID` in bounded memory.
fn read(stuck: &Stuck, command: &[&str]) -> Outcome {
    let script = format!("ulimit -v {} && exec \"$@\"", SPACE_BYTES / 1024);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_read-rip")]);
    shell.args(command).arg(stuck.0.pid().to_string());
    finish(clean(shell))
}

/// Asserts that the deadlock is proven, whatever the file says.
#[track_caller]
fn is_still_proven(stuck: &Stuck, how: &str) {
    let checked = read(stuck, &["check"]);
    assert!(checked.status == 1 && checked.took < QUICK, "{how}: {checked:#?}");
    contains(&checked.stdout, &["proven deadlock"]);
    let stacks = read(stuck, &["stacks"]);
    assert!(stacks.status == 0 && stacks.took < QUICK, "{how}: {stacks:#?}");
}

fn write(program: &Path, bytes: &[u8], at: u64) {
    File::options().write(true).open(program).unwrap().write_all_at(bytes, at).unwrap();
}

#[test]
fn headers_that_lie_do_not_keep_a_deadlock_from_being_proven() {
    let (stuck, program) = stuck();
    is_still_proven(&stuck, "the sound file");
    let sound = fs::read(&program).unwrap();
    let section_headers = u64::from_le_bytes(sound[40..48].try_into().unwrap());
    let count = u16::from_le_bytes(sound[60..62].try_into().unwrap());
    let huge = (1u64 << 63).to_le_bytes();
    let mut lies: Vec<(String, Vec<Change>)> = vec![
        ("no ELF file".into(), vec![(0, vec![0xff; 64])]),
        ("sections behind the end".into(), vec![(40, huge.to_vec())]),
        ("65535 sections".into(), vec![(60, vec![0xff; 2])]),
        ("65535 segments".into(), vec![(56, vec![0xff; 2])]),
        ("segments behind the end".into(), vec![(32, huge.to_vec())]),
        ("another architecture".into(), vec![(18, vec![0xf3, 0])]),
    ];
    // The offset, length, and entry length of each section.
    for field in [24, 32, 56] {
        let at = |index: u64| section_headers + 64 * index + field;
        let all = (0..u64::from(count)).map(|index| (at(index), huge.to_vec())).collect();
        lies.push((format!("all sections: {field}"), all));
    }
    for (how, changes) in lies {
        changes.iter().for_each(|(at, bytes)| write(&program, bytes, *at));
        is_still_proven(&stuck, &how);
        write(&program, &sound, 0);
    }
}

#[test]
fn random_damage_of_the_file_does_not_keep_a_deadlock_from_being_proven() {
    let (stuck, program) = stuck();
    let sound = fs::read(&program).unwrap();
    let mut random = Random(11);
    for round in 0..6 {
        for _ in 0..200 {
            let byte = [random.next() as u8];
            write(&program, &byte, random.below(sound.len()) as u64);
        }
        is_still_proven(&stuck, &format!("round {round}"));
        if round % 3 == 2 {
            write(&program, &sound, 0);
        }
    }
}

#[test]
fn a_file_that_is_gone_or_replaced_does_not_keep_a_deadlock_from_being_proven() {
    let (stuck, program) = stuck();
    fs::remove_file(&program).unwrap();
    is_still_proven(&stuck, "no file");
    nix::unistd::mkfifo(&program, nix::sys::stat::Mode::S_IRWXU).unwrap();
    is_still_proven(&stuck, "a FIFO in its place");
}

#[test]
fn a_file_that_was_cut_takes_the_memory_of_its_process_with_it_and_that_is_not_called_sound() {
    let (stuck, program) = stuck();
    for len in [4096, 100, 0] {
        // The process has no mutexes any more: they are after the end of the file that it maps.
        File::options().write(true).open(&program).unwrap().set_len(len).unwrap();
        for (command, status) in [(&["check"][..], 3), (&["stacks"], 0), (&["-t"], 0)] {
            let outcome = read(&stuck, command);
            assert!(outcome.took < QUICK && outcome.status == status, "{len} bytes: {outcome:#?}");
            assert!(!outcome.stdout.contains("proven"), "{len} bytes: {outcome:#?}");
        }
        let said = read(&stuck, &["check"]).stdout;
        let why = "not judged: 2 threads sleep at memory that cannot be read, because its file may have been truncated";
        assert!(said.contains(&format!("\n{why}")), "{len} bytes: {said}");
        let view = read(&stuck, &[]).stdout;
        assert!(view.contains(&format!("\ncheck: {why}; next: ")), "{view}");
    }
}
