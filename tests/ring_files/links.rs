//! Programs that are started through a link: their rings have the link's name, which people know.

use std::os::unix::fs::symlink;
use std::process::Command;

use librip_test_kit::reader;
use librip_test_kit::victim::{Plan, tempdir};

use crate::ready;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_scenario");

/// What `read-rip` writes about the only ring of a directory.
fn shown(dir: &std::path::Path, arguments: &[&str]) -> String {
    let output = Command::new(reader::program()).args(["--dir"]).arg(dir).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_ring_has_the_name_of_the_link_through_which_its_program_was_started() {
    let dir = tempdir();
    let link = dir.path().join("known-by");
    symlink(EXECUTABLE, &link).unwrap();
    let rings = dir.path().join("rings");
    std::fs::create_dir(&rings).unwrap();
    let mut victim = ready(Plan::new(&link, &["held-long"]).env("RIP_RING", &rings));
    let name = std::fs::read_dir(&rings).unwrap().next().unwrap().unwrap().file_name();
    assert!(name.to_str().unwrap().starts_with("rip.known-by."), "{name:?}");
    assert!(shown(&rings, &["list"]).contains(" known-by "), "{}", shown(&rings, &["list"]));
    for name in ["known-by", "scenario"] {
        let text = shown(&rings, &["locks", name]);
        assert!(text.starts_with(&format!("known-by[{}], alive", victim.pid())), "{name}: {text}");
    }
    let info = shown(&rings, &["info"]);
    assert!(info.contains("\nprogram     known-by\n"), "{info}");
    assert!(info.contains(&format!("\nexecutable  {EXECUTABLE}\n")), "{info}");
    for arguments in [&["--json"][..], &["info", "--json"], &["check", "--json"], &["locks", "--json"]] {
        let text = shown(&rings, arguments);
        assert!(text.contains(r#""program":"known-by""#), "{arguments:?}: {text}");
    }
    let junit = dir.path().join("junit.xml");
    shown(&rings, &["check", "--junit", junit.to_str().unwrap()]);
    let junit = std::fs::read_to_string(junit).unwrap();
    let case = format!(r#"<testcase name="known-by[{}]" classname="known-by""#, victim.pid());
    assert!(junit.contains(&case), "{junit}");
    let saved = dir.path().join("saved.gz");
    shown(&rings, &["save", "-o", saved.to_str().unwrap(), "known-by"]);
    assert!(shown(&rings, &["locks", saved.to_str().unwrap()]).starts_with("known-by["));
    victim.kill();
}

#[test]
fn a_ring_has_the_name_of_its_executable_if_no_link_leads_to_it() {
    let dir = tempdir();
    let mut victim = ready(Plan::new(EXECUTABLE, &["held-long"]).env("RIP_RING", dir.path()));
    assert!(shown(dir.path(), &["list"]).contains(" scenario "));
    victim.kill();
}
