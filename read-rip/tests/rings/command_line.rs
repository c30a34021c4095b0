//! The command line: where arguments may stand, typing errors, standard input, completions and manual pages.
//!
//! Not tested here: how arguments are combined (the unit tests of `cli`), and which ring is chosen (`choice.rs`).

use std::fs::File;
use std::io::Write;
use std::process::Stdio;

use crate::support::fixture::{Fixture, pile_up, sound_ring};
use crate::support::run::{command, finish, on_terminal, read_rip, show};

#[test]
fn a_ring_before_the_command_is_the_ring_that_is_read() {
    let fixture = Fixture::of(&sound_ring());
    let ring = fixture.path.to_str().unwrap();
    for view in ["check", "locks", "info"] {
        let (after, before) = (read_rip([view, ring]), read_rip([ring, view]));
        assert_eq!((before.stdout, before.status), (after.stdout, after.status));
        // The ring has no locks that `check` could judge.
        assert_eq!(after.status, if view == "check" { 3 } else { 0 });
    }
    // In an empty directory, nothing else could be read.
    let missing = ["--dir", fixture.directory.path().to_str().unwrap(), "/nonexistent", "locks"];
    read_rip(missing).fails_with("Error: could not open /nonexistent\n");
}

#[test]
fn a_misspelt_command_is_no_missing_ring() {
    let outcome = read_rip(["chek"]).fails_with("Error: no process, program or file is called chek\n");
    assert!(outcome.stderr.ends_with("Hint: did you mean `read-rip check`?\n"), "{outcome:#?}");
    let outcome = read_rip(["chek", "4711"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("tip: a similar subcommand exists: 'check'"), "{outcome:#?}");
    let outcome = read_rip(["/nowhere/ring"]).fails_with("Error: could not open /nowhere/ring\n");
    assert!(outcome.stderr.ends_with("Hint: `read-rip list` shows the rings\n"), "{outcome:#?}");
}

#[test]
fn a_name_that_nothing_has_is_no_missing_file() {
    let outcome = read_rip(["check", "no-such-server"]);
    let outcome = outcome.fails_with("Error: no process, program or file is called no-such-server\n");
    assert!(outcome.stderr.contains("`read-rip check --all` looks at all processes"), "{outcome:#?}");
}

#[test]
fn what_people_type_first_works() {
    let help = read_rip(["--help"]).sound().stdout;
    assert_eq!(read_rip(["help"]).sound().stdout, help);
    for command in ["completions", "man", "version"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is in\n{help}");
    }
    assert_eq!(read_rip(["help", "check"]).sound().stdout, read_rip(["check", "--help"]).sound().stdout);
    assert_eq!(read_rip(["version"]).sound().stdout, read_rip(["--version"]).sound().stdout);
    let fixture = Fixture::of(&pile_up());
    let directory = fixture.directory.path().to_str().unwrap();
    let list = read_rip(["list", "--dir", directory]).sound().stdout;
    assert_eq!(read_rip(["ps", "--dir", directory]).sound().stdout, list);
    let by_pid = read_rip(["--dir", directory, "-p", "4321"]).sound().stdout;
    assert_eq!(by_pid, read_rip(["--dir", directory, "4321"]).sound().stdout);
    // Where nothing has recorded, a newcomer learns that nothing has to.
    let empty = tempfile::tempdir().unwrap();
    for command in [&[][..], &["list"], &["check"]] {
        let arguments = command.iter().copied().chain(["--dir", empty.path().to_str().unwrap()]);
        let said = read_rip(arguments).stderr;
        let hint = "Hint: `read-rip check --all` finds stuck processes without a ring, and `read-rip PID`";
        assert!(said.contains(hint), "{command:?}: {said}");
    }
}

#[test]
fn standard_input_is_a_ring() {
    let fixture = Fixture::of(&pile_up());
    let bytes = std::fs::read(&fixture.path).unwrap();
    for options in [&[][..], &["-t"], &["locks"]] {
        let expected = show(options, &fixture.path).sound();
        // A file, which has a position.
        let mut from_file = command();
        from_file.args(options).arg("-").stdin(File::open(&fixture.path).unwrap());
        assert_eq!(finish(from_file).sound().stdout, expected.stdout, "{options:?}");
        // A pipe, which has none.
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut from_pipe = command();
        from_pipe.args(options).arg("-").stdin(Stdio::from(reader));
        let bytes = bytes.clone();
        let writes = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
        assert_eq!(finish(from_pipe).sound().stdout, expected.stdout, "{options:?}");
        writes.join().unwrap();
    }
    read_rip(["-"]).fails_with("Error: - is empty\n");
}

#[test]
fn completions_name_the_commands_and_manual_pages_their_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = read_rip(["completions", shell]).sound().stdout;
        assert!(script.contains("check") && script.contains("min-confidence"), "{shell}");
    }
    let page = read_rip(["man"]).sound().stdout;
    assert!(page.contains(".TH read-rip 1") && page.contains("Exit status: "), "{page}");
    let page = read_rip(["man", "check"]).sound().stdout;
    assert!(page.contains(".TH read-rip-check 1") && page.contains("suppress"), "{page}");
    let outcome = read_rip(["man", "nonsense"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("there is no command nonsense"), "{outcome:#?}");
}

#[test]
fn a_list_fits_a_terminal() {
    let fixture = Fixture::of(&pile_up());
    let directory = fixture.directory.path().to_str().unwrap();
    let mut command = command();
    command.args(["list", "--dir", directory]);
    let shown = on_terminal(command);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(lines[0].ends_with("STATE") && lines[1].contains("4321"), "{shown}");
    assert_eq!(lines[2], format!("     {}", fixture.path.display()));
    let piped = read_rip(["list", "--dir", directory]).sound().stdout;
    assert_eq!(piped.lines().count(), 2, "a line for each ring: {piped}");
    assert!(piped.ends_with(&format!("  {}\n", fixture.path.display())), "{piped}");
}
