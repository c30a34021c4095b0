//! Readers and programs in different namespaces, and readers who may not see the program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use librip_test_kit::reader;
use librip_test_kit::tool::copy_program;
use librip_test_kit::victim::{Plan, Victim, is_root};

use crate::{ready, scenario};

/// Runs a script of a shell as root in new namespaces; `None` if this machine does not permit it.
fn in_namespaces(kinds: &[&str], script: &str) -> Option<Output> {
    let output = Command::new("unshare").args(kinds).args(["sh", "-c", script]).output().ok()?;
    let is_refused = String::from_utf8_lossy(&output.stderr).contains("unshare failed");
    if is_refused {
        eprintln!("SKIPPED: this machine does not permit unshare {kinds:?}");
    }
    (!is_refused).then_some(output)
}

/// The state that `list` shows of the only ring of a directory.
fn state(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap_or_default())
        .unwrap_or_else(|_| panic!("{output:?}"));
    line["data"]["state"].as_str().unwrap().to_owned()
}

/// A line for a shell: `read-rip ARGUMENTS PATH`.
fn read_rip(arguments: &str, path: &Path) -> String {
    format!("{} {arguments} {}", reader::program().display(), path.display())
}

fn list(dir: &Path) -> String {
    read_rip("list --json --dir", dir)
}

/// A deadlocked program that runs within `unshare KINDS`, if this machine permits it.
fn started_in(kinds: &[&str]) -> Option<Victim> {
    in_namespaces(kinds, "true")?;
    let mut arguments = kinds.to_vec();
    arguments.extend([env!("CARGO_BIN_EXE_scenario"), "cycle-2"]);
    Some(ready(Plan::new("unshare", &arguments)))
}

#[test]
fn a_program_in_another_time_namespace_is_alive_for_readers_in_both() {
    if !is_root("a_program_in_another_time_namespace_is_alive_for_readers_in_both") {
        return;
    }
    let within = ["--time", "--boottime", "86400", "--fork", "--kill-child"];
    let Some(victim) = started_in(&within) else { return };
    let outside = Command::new("sh").args(["-c", &list(victim.dir())]).output().unwrap();
    assert_eq!(state(&outside), "alive");
    let elsewhere = ["--time", "--boottime", "1000000", "--fork"];
    assert_eq!(state(&in_namespaces(&elsewhere, &list(victim.dir())).unwrap()), "alive");
    let gc = read_rip("gc --all --dir", victim.dir());
    in_namespaces(&elsewhere, &gc).unwrap();
    assert!(victim.ring_path().exists());
    // Times count from the same moment.
    let check = read_rip("check --json", &victim.ring_path());
    let output = Command::new("sh").args(["-c", &check]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let finding = &lines.iter().find(|line| line["type"] == "finding").unwrap()["data"];
    assert_eq!((&finding["kind"], &finding["confidence"]), (&"deadlock".into(), &"proven".into()));
    let for_ns = finding["for_ns"].as_u64().unwrap();
    assert!(for_ns < 3_600_000_000_000, "a deadlock of a moment ago is {for_ns} ns old");
}

#[test]
fn a_program_in_a_container_is_alive_for_a_reader_outside_and_unknown_in_another_container() {
    if !is_root("a_program_in_a_container_is_alive_for_a_reader_outside") {
        return;
    }
    let container = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let Some(victim) = started_in(&container) else { return };
    let outside = Command::new("sh").args(["-c", &list(victim.dir())]).output().unwrap();
    let is_first =
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/ns/pid").unwrap()) == 0xefff_fffc;
    assert_eq!(state(&outside), "alive");
    assert_eq!(state(&in_namespaces(&container, &list(victim.dir())).unwrap()), "unknown");
    let gc = read_rip("gc --all --dir", victim.dir());
    in_namespaces(&container, &gc).unwrap();
    assert!(victim.ring_path().exists());
    let dir = victim.dir().to_owned();
    let victim = victim;
    let remains = victim.killed();
    if is_first {
        // Every process of the machine is visible here, so it is known to be dead. Its child dies with it.
        let listed = || state(&Command::new("sh").args(["-c", &list(&dir)]).output().unwrap());
        let deadline = std::time::Instant::now() + librip_test_kit::victim::DEADLINE;
        while listed() != "dead" {
            assert!(std::time::Instant::now() < deadline, "{}", listed());
        }
    }
    drop(remains);
}

#[test]
fn a_reader_that_may_not_see_the_process_calls_it_unknown_and_keeps_its_ring() {
    if !is_root("a_reader_that_may_not_see_the_process_calls_it_unknown_and_keeps_its_ring") {
        return;
    }
    let mut victim = ready(scenario("cycle-2"));
    // Everybody may read the ring and remove it. Only what the reader knows protects it.
    let allow = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    allow(victim.dir(), 0o777);
    allow(&victim.ring_path(), 0o644);
    // The reader's program must be where everybody may run it.
    let programs = tempfile::tempdir().unwrap();
    let reader = programs.path().join("reader");
    copy_program(reader::program(), &reader);
    allow(programs.path(), 0o755);
    let as_nobody = |arguments: &str| {
        let script = format!(
            "mount -t proc -o hidepid=2 proc /proc && \
             exec setpriv --reuid 65534 --regid 65534 --clear-groups {} {arguments}",
            reader.display()
        );
        in_namespaces(&["--mount"], &script)
    };
    let dir = victim.dir().display().to_string();
    let Some(output) = as_nobody(&format!("list --json --dir {dir}")) else { return };
    assert_eq!(state(&output), "unknown", "{output:?}");
    let output = as_nobody(&format!("gc --all --dir {dir}")).unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(victim.ring_path().exists());
    // A deadlock takes two readings, and is proven then.
    let output = as_nobody(&format!("check --json {}", victim.ring_path().display())).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(r#""window_ns":"#) && text.contains(r#""confidence":"proven""#), "{output:?}");
    victim.kill();
    let ring = victim.ring_path();
    let remains = victim.wait();
    // The kernel says that there is no such process.
    let output = as_nobody(&format!("gc --all --dir {dir}")).unwrap();
    assert!(!ring.exists(), "{output:?}");
    drop(remains);
}

#[test]
fn the_ring_in_a_containers_own_memory_directory_is_found_from_outside() {
    if !is_root("the_ring_in_a_containers_own_memory_directory_is_found_from_outside") {
        return;
    }
    if in_namespaces(&["--mount"], "true").is_none() {
        return;
    }
    let script = format!(
        "mount -t tmpfs -o size=32m tmpfs /dev/shm && unset RIP_RING && exec {} cycle-2",
        env!("CARGO_BIN_EXE_scenario")
    );
    let victim = ready(Plan::new("unshare", &["--mount", "sh", "-c", &script]));
    let find = |arguments: &[&str]| {
        let output = Command::new(reader::program()).args(arguments).env_remove("RIP_RING").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let path = format!("/proc/{}/root/dev/shm/rip.scenario.{}.", victim.pid(), victim.pid());
        assert!(text.contains(&path), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(r#""state":"alive""#), "{text}");
    };
    find(&["list", "--json"]);
    find(&["--json", &victim.pid().to_string()]);
}
