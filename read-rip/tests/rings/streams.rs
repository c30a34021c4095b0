//! Where `read-rip` writes: pipes, a full disk, a terminal, with and without colours.
//!
//! Not tested here: what it writes (`output.rs`).

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;

use librip_test_kit::format::region_at;

use crate::support::fixture::{Fixture, pile_up};
use crate::support::run::{command, wait};
use crate::support::synth::{Ring, Slot};

/// A ring whose views are much longer than the buffer of a pipe, with names that are not ASCII.
fn large() -> Ring {
    let sites: Vec<(u64, String)> = (0..200).map(|n| (0x1000 + n, format!("größe/straße-{n}.rs"))).collect();
    let sites: Vec<(u64, &str, u32)> = sites.iter().map(|(pc, file)| (*pc, file.as_str(), 1)).collect();
    let slots =
        (1..400).map(|tid| Slot::thread("Fädchen", tid).marks((0..64).map(|n| 0x1000 + (n * 3) % 200)));
    Ring::new().with_sites(&sites).with_slots(slots)
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let fixture = Fixture::of(&large());
    for options in [&["-t"][..], &["-t", "--json"]] {
        let mut command = command();
        command.args(options).arg(&fixture.path).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(wait(&mut child).code(), Some(0), "{errors}");
        assert!(!errors.contains("Error"), "{errors}");
    }
}

#[test]
fn a_closed_standard_error_is_not_an_error() {
    // `read-rip RING 2>&1 | head -1`: standard error is a closed pipe too.
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::of(&large());
    let damaged = directory.path().join("damaged");
    let mut image = pile_up().build();
    let slots = image.region(crate::support::synth::SLOTS);
    image.set64(slots + region_at::USED, 1 << 40);
    image.write(&damaged);
    for (ring, expected) in [(&fixture.path, 0), (&damaged, 2), (&PathBuf::from("/nowhere"), 2)] {
        for options in [&["-t"][..], &[], &["info"]] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = command();
            command.args(options).arg(ring).stdout(File::create("/dev/null").unwrap()).stderr(writer);
            let mut child = command.spawn().unwrap();
            drop(command);
            assert_eq!(wait(&mut child).code(), Some(expected), "{options:?} {}", ring.display());
        }
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let fixture = Fixture::of(&pile_up());
    let mut command = command();
    command.arg(&fixture.path).stdout(File::options().write(true).open("/dev/full").unwrap());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(wait(&mut child).code(), Some(2));
    assert!(
        errors.contains("Error: could not write the output\nCaused by: No space left on device"),
        "{errors}"
    );
}

#[test]
fn output_into_a_pipe_is_plain_and_colours_do_not_change_its_text() {
    let fixture = Fixture::of(&large());
    for options in [&[][..], &["-t"]] {
        let plain = fixture.show(options).sound().stdout;
        assert!(!plain.contains('\x1b'));
        let never = fixture.show(&[options, &["--color", "never"]].concat()).sound().stdout;
        assert!(never == plain);
        let coloured = fixture.show(&[options, &["--color=always"]].concat()).sound().stdout;
        assert!(coloured.contains("\x1b[1m"), "function or thread in bold");
        assert!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain);
    }
}

#[test]
fn a_terminal_gets_colours_unless_no_color_is_set() {
    let fixture = Fixture::of(&pile_up());
    let on_terminal = |variable: Option<(&str, &str)>, options: &[&str]| {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let mut command = command();
        command.args(options).arg(&fixture.path).env("TERM", "xterm").stderr(Stdio::null());
        command.envs(variable).stdout(terminal.slave);
        let mut child = command.spawn().unwrap();
        drop(command);
        wait(&mut child);
        // Read what the program wrote. The read ends with an error once the other end of the terminal is closed.
        let mut shown = Vec::new();
        let _ = File::from(terminal.master).read_to_end(&mut shown);
        String::from_utf8(shown).unwrap()
    };
    assert!(on_terminal(None, &[]).contains("\x1b[1mserver::cache::?\x1b[0m : 3 threads"));
    assert!(on_terminal(Some(("NO_COLOR", "1")), &[]).contains("\nserver::cache::? : 3 threads"));
    assert!(on_terminal(None, &["--color=never"]).contains("\nserver::cache::? : 3 threads"));
    assert!(on_terminal(Some(("NO_COLOR", "1")), &["--color=always"]).contains("\x1b[1m"));
}

#[test]
fn a_view_begins_with_its_heading_and_the_lines_for_scripts_with_a_thread() {
    let fixture = Fixture::of(&pile_up());
    let heading = "server[4321], dead (killed, crashed or _exit): 5 threads, 1 of them exited";
    for (view, status) in [(&[][..], 0), (&["locks"], 0), (&["check"], 3)] {
        let outcome = fixture.show(view);
        assert_eq!(outcome.status, status, "{outcome:#?}");
        assert!(outcome.stdout.starts_with(heading), "{outcome:#?}");
        assert!(!outcome.stderr.contains(heading), "{outcome:#?}");
    }
    let outcome = fixture.show(&["-t"]).sound();
    assert!(outcome.stdout.lines().all(|line| line.contains("]: {")), "{outcome:#?}");
    assert!(outcome.stderr.starts_with(heading), "{outcome:#?}");
}

#[test]
fn a_terminal_gets_lines_that_fit_and_a_pipe_whole_ones() {
    let fixture = Fixture::of(&large());
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = nix::pty::openpty(&size, None).unwrap();
    let mut command = command();
    command.args(["--color=never", "-v"]).arg(&fixture.path).stderr(Stdio::null()).stdout(terminal.slave);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut shown = Vec::new();
    let _ = File::from(terminal.master).read_to_end(&mut shown);
    wait(&mut child);
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.lines().count() > 10, "{shown}");
    let long = shown.lines().find(|line| line.trim_end().chars().count() > 80);
    assert_eq!(long, None);
    let piped = fixture.show(&["-v"]).sound().stdout;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let legend = "Signs: <0x1f>: an address in the program or library, where a line has several.";
    let (before, after) =
        words(&shown).split_once(legend).map(|(a, b)| (a.to_owned(), b.to_owned())).expect(legend);
    assert!(words(&format!("{before} {after}")) == words(&piped), "the same words");
    assert!(piped.lines().any(|line| line.len() > 1000));
}
