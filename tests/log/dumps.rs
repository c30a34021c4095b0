//! Dumps: snapshots that the program makes itself, while its threads record at full speed.

use std::path::Path;

use librip_test_kit::victim::Plan;

use crate::storm::steps;
use crate::{json, plan_of, read};

fn plan(way: &str, path: &Path) -> Plan {
    plan_of("dumps", &[way, path.to_str().unwrap()])
}

/// Reads a dump of a program whose threads ran: nothing is damaged, and each event is checked by itself.
fn check(dump: &Path) -> usize {
    let (_, errors) = read(&["-t"], dump);
    assert!(!errors.contains("Damaged:"), "{errors}");
    steps(dump).into_values().map(|steps| steps.len()).sum()
}

#[test]
fn dumps_of_threads_at_full_speed_are_sound() {
    // The threads write all words of the shorter slots while their dump is made.
    for words in ["256", "16"] {
        let directory = librip_test_kit::victim::tempdir();
        let mut victim = plan("call", directory.path()).env("RIP_WORDS", words).start();
        victim.until("dumped");
        let found: usize = (0..6).map(|round| check(&directory.path().join(format!("dump.{round}")))).sum();
        assert!(found > 0 || words == "16");
        let mut names: Vec<String> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, (0..6).map(|round| format!("dump.{round}")).collect::<Vec<_>>());
        victim.killed();
    }
}

#[test]
fn the_first_panic_makes_a_dump_of_what_came_before() {
    let directory = librip_test_kit::victim::tempdir();
    let path = directory.path().join("panic.ring");
    let mut victim = plan("panic", &path).start();
    victim.until("done");
    let texts = |ring: &Path| {
        let events = json(&["log"], "event", ring);
        events.iter().map(|event| event["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&path), ["before the panic 1", "in the thread"]);
    assert_eq!(texts(&victim.ring_path()), ["in the thread"], "the ring itself has gone on");
    victim.killed();
}

#[test]
fn a_signal_makes_a_dump_each_time() {
    let directory = librip_test_kit::victim::tempdir();
    let path = directory.path().join("signal.ring");
    let mut victim = plan("signal", &path).env("RIP_WORDS", "256").start();
    for _ in 0..3 {
        victim.until("ready");
        victim.signal(libc::SIGUSR2);
        victim.until("dumped");
        check(&path);
        std::fs::remove_file(&path).unwrap();
        victim.go_on();
    }
    victim.wait();
}

#[test]
fn a_dump_that_cannot_be_made_says_why_and_leaves_nothing() {
    let directory = librip_test_kit::victim::tempdir();
    let mut victim = plan("errors", directory.path()).start();
    let said: Vec<String> = (0..6).map(|_| victim.line()).collect();
    // A file that cannot take the place of a directory; the signals; the path.
    assert_eq!(
        said,
        ["NotFound", "IsADirectory", "InvalidInput", "InvalidInput", "InvalidInput", "NotFound"],
        "{said:?}"
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    victim.killed();
}

#[test]
fn a_dump_is_written_to_no_file_that_was_there_before_and_only_its_owner_reads_it() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let directory = librip_test_kit::victim::tempdir();
    let path = directory.path().join("signal.ring");
    // What was there is replaced and not written to: neither a file nor the target of a link. The victim waits until
    // the path leads to something.
    let [target, nowhere] = ["target", "nowhere"].map(|name| directory.path().join(name));
    std::fs::write(&target, "mine").unwrap();
    std::os::unix::fs::symlink(&target, directory.path().join("signal.ring.partial")).unwrap();
    std::os::unix::fs::symlink(&nowhere, &path).unwrap();
    let open_to_all = || {
        nix::sys::stat::umask(nix::sys::stat::Mode::empty());
        Ok(())
    };
    let mut victim = plan("signal", &path).env("RIP_WORDS", "256").before(open_to_all).start();
    victim.until("ready");
    victim.signal(libc::SIGUSR2);
    victim.until("dumped");
    check(&path);
    assert!(!nowhere.exists(), "the link was replaced");
    let dump = std::fs::symlink_metadata(&path).unwrap();
    assert!(dump.is_file() && dump.permissions().mode() & 0o777 == 0o600, "{:o}", dump.mode());
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
    victim.killed();
}

#[test]
fn a_dump_above_the_limit_on_files_is_an_error_and_raises_no_signal() {
    let directory = librip_test_kit::victim::tempdir();
    let mut victim = plan("limited", directory.path()).start();
    assert_eq!(victim.line(), "FileTooLarge");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    victim.killed();
}
