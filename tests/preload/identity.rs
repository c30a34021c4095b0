//! One process has one answer: whoever asks by its pid, by that of a forked child, by its ring or for all rings gets
//! the same.

use std::path::Path;
use std::process::Command;

use librip_test_kit::reader;
use librip_test_kit::tool::tool;
use serde_json::Value;

use crate::{compile, plan, preload};

/// The output of `read-rip`, and its status.
fn read_rip(arguments: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(reader::program()).args(arguments).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

/// What `check` finds: the confidence, the kind, and the locks and threads by their addresses and ids.
fn found(arguments: &[&str]) -> Vec<String> {
    let (said, status) = read_rip(&[&["check", "--json"], arguments].concat());
    let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let of = |line: Value| {
        let data = &line["data"];
        let ids = |of: &str, id: &str| {
            data[of].as_array().into_iter().flatten().map(|one| one[id].to_string()).collect::<Vec<_>>()
        };
        let (threads, locks) = (ids("threads", "tid"), ids("locks", "address"));
        format!("{} {} {threads:?} {locks:?}", data["confidence"], data["kind"])
    };
    let found: Vec<String> = lines.filter(|line| line["type"] == "finding").map(of).collect();
    assert_eq!(status, Some(1), "{arguments:?}: {said}");
    found
}

#[test]
fn a_forked_child_its_parent_and_their_ring_have_one_answer() {
    let mut victim = plan(&compile("evidence", &[]), &["forks"], &[preload()]).start();
    let child = victim.line();
    victim.until("ready");
    let (pid, ring) = (victim.pid().to_string(), victim.ring_path());
    let directory = victim.dir().to_str().unwrap().to_owned();
    let ring_name = ring.to_str().unwrap();
    let answer = found(&[ring_name]);
    assert_eq!(answer.len(), 1, "{answer:?}");
    assert!(answer[0].starts_with("\"proven\" \"lost-owner\" "), "{answer:?}");
    for arguments in [&[&*pid][..], &[&child], &["--all", "--dir", &directory]] {
        assert_eq!(found(arguments), answer, "{arguments:?}");
    }
    for name in [&*pid, &child, ring_name] {
        let view = read_rip(&[name]).0;
        assert!(
            view.contains("\ncheck: proven lost-owner: 1 thread of the forked process "),
            "{name}: {view}"
        );
        let page = victim.dir().join("page.html");
        tool(Command::new(reader::program()).args(["report", name, "-o"]).arg(&page));
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("lost-owner"), "{name}");
    }
    let saved = victim.dir().join("saved.gz");
    tool(Command::new(reader::program()).arg("save").arg(&child).arg("-o").arg(&saved));
    assert_eq!(found(&[saved.to_str().unwrap()]), answer);
    let remains = victim.killed();
    let dead = remains.ring_path();
    // The child is an orphan, and lives.
    for name in [dead.to_str().unwrap(), &*child] {
        assert_eq!(found(&[name]), answer, "{name}");
    }
    assert!(Path::new("/proc").join(&child).exists());
}

#[test]
fn what_the_kernel_says_of_a_forked_child_is_told_by_its_ring() {
    let mut victim = plan(&compile("evidence", &[]), &["forked keeper"], &[preload()]).start();
    victim.until("ready");
    let ring = victim.ring_path();
    for name in [&*victim.pid().to_string(), ring.to_str().unwrap()] {
        let (said, status) = read_rip(&["check", "--threshold", "100ms", name]);
        assert_eq!(status, Some(1), "{said}");
        assert!(
            said.contains(", which keeper[") && said.contains("waiting for the child process "),
            "{said}"
        );
    }
}
