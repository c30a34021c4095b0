//! `read-rip top` in a real terminal: tmux draws what the program writes.
//!
//! Without tmux these tests say that they are skipped.

use std::process::Command;
use std::time::Instant;

use librip_test_kit::tmux::Tmux;
use librip_test_kit::victim::DEADLINE;

use crate::support::exports::crew;
use crate::support::fixture::Fixture;
use crate::support::locks::{A, B, ring, transfer};
use crate::support::run::{command, finish, show};
use crate::support::synth::Ring;
use crate::support::unprepared::{Stuck, deadlocks};

fn top(ring: &str) -> String {
    format!("{} top {ring}", env!("CARGO_BIN_EXE_read-rip"))
}

fn deadlock() -> Ring {
    let ring = ring().with_slots([transfer("saver", 10, A, B), transfer("evil\x1b[2J", 11, B, A)]);
    Ring { lock_names: vec![(ring.pid, A, "SAVINGS".into()), (ring.pid, B, "CURRENT".into())], ..ring }
}

#[test]
fn a_task_is_shown_with_what_it_does_and_opens_with_its_awaits() {
    let fixture = Fixture::of(&crew());
    let Some(tmux) = Tmux::start("tasks", (160, 40), &top(&fixture.path.to_string_lossy())) else { return };
    tmux.shows("server[4321], exited with status 3: 1 thread; 4 tasks, and the last 1 that have ended");
    tmux.shows(
        "of 4 tasks: 1 waits for a lock (the longest for 57.5 s), 1 is polled, 2 are ready to be polled",
    );
    tmux.keys(&["2"]);
    let screen = tmux.shows("THREAD OR TASK");
    let (_, rows) = screen.split_once("THREAD OR TASK").unwrap();
    let row = |name: &str| {
        let row = rows.lines().find_map(|line| line.split_once(&format!(" {name} ")));
        row.unwrap_or_else(|| panic!("{name}: {screen}")).1.trim()
    };
    let place = "server::cache::? cache.rs:11<0x1100>";
    assert_eq!(row("server[task 7]"), format!("suspended for 57.0 s, waiting for queue, at {place}"));
    assert_eq!(row("busy[task 8]"), "polled by worker[10] for 56.0 s, at serve::? serve.rs:20");
    assert_eq!(row("woken[task 9]"), "ready and not polled for 55.0 s, at serve::? serve.rs:20");
    assert!(row("new[task 11]").starts_with("ready and not polled for "), "{screen}");
    assert!(row("new[task 11]").ends_with(", made at main.rs:9"), "{screen}");
    assert_eq!(row("worker[10]"), "polling busy[task 8], at server::cache::? cache.rs:10<0x1000>");
    assert!(!screen.contains("done[task 6]"), "{screen}");
    // The holder of the lock stands first.
    assert!(rows.find("worker[10]") < rows.find("server[task 7]"), "{screen}");
    tmux.keys(&["Down", "Enter"]);
    let screen = tmux.shows("waits for queue at");
    assert!(screen.contains("\n    serve::? serve.rs:20\n        save::? save.rs:7\n"), "{screen}");
}

#[test]
fn a_dead_process_is_shown_and_the_terminal_is_given_back() {
    let fixture = Fixture::of(&deadlock());
    let line = format!("echo before; {}", top(&fixture.path.to_string_lossy()));
    let Some(tmux) = Tmux::start("dead", (80, 24), &line) else { return };
    let screen = tmux.shows("HELD BY");
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(lines[0], "suspected deadlock: 2 threads wait for one another", "{screen}");
    assert!(screen.contains("DEAD  server[4321], "), "{screen}");
    let row = lines.iter().find(|line| line.contains(" 0 % SAVINGS ")).unwrap();
    assert!(row.contains("saver[10] at "), "{screen}");
    tmux.keys(&["2"]);
    // The name of a thread does not reach the terminal as it is.
    tmux.shows("evil\\u{1b}[2J[11]");
    tmux.keys(&["1", "Enter"]);
    tmux.shows("mutex at 0x7f000000");
    tmux.keys(&["Enter"]);
    tmux.shows("Recorded, the newest first:");
    tmux.keys(&["q"]);
    let after = tmux.shows("status 0");
    assert!(after.contains("before") && !after.contains("SAVINGS"), "{after}");
}

#[test]
fn a_key_saves_a_copy_that_other_commands_read() {
    let fixture = Fixture::of(&deadlock());
    let directory = fixture.directory.path();
    let line = format!("cd {}; {}", directory.display(), top("ring"));
    let Some(tmux) = Tmux::start("saves", (80, 24), &line) else { return };
    tmux.shows("HELD BY");
    tmux.keys(&["w"]);
    tmux.shows("Saved to ring.saved.gz, ");
    let outcome = show(&["check"], &directory.join("ring.saved.gz"));
    assert!(outcome.stdout.contains("suspected deadlock: "), "{outcome:#?}");
}

#[test]
fn a_key_writes_the_page_of_the_process_that_is_shown() {
    let fixture = Fixture::of(&deadlock());
    let directory = fixture.directory.path();
    let line = format!("cd {}; {} 2>errors", directory.display(), top("ring"));
    let Some(tmux) = Tmux::start("page", (80, 24), &line) else { return };
    tmux.shows("HELD BY");
    tmux.keys(&["R"]);
    tmux.shows("Written to ring.html");
    tmux.keys(&["q"]);
    tmux.shows("status 0");
    let of_key = std::fs::read_to_string(directory.join("ring.html")).unwrap();
    assert!(of_key.contains("2 threads wait for one another"), "{of_key}");
    let by_command = directory.join("by_command.html");
    let written = show(&["report", "-o", &by_command.to_string_lossy()], &fixture.path);
    assert_eq!(written.status, 0, "{written:#?}");
    let by_command = std::fs::read_to_string(by_command).unwrap();
    let counted = |page: &str| page.matches("SAVINGS").count();
    assert_eq!(counted(&of_key), counted(&by_command));
    let errors = std::fs::read_to_string(directory.join("errors")).unwrap();
    assert_eq!(errors, "", "a live screen was there");
}

#[test]
fn the_list_of_processes_leads_to_a_stuck_one_and_back() {
    let stuck = Stuck::start(deadlocks(), &["normal"], 2);
    let Some(tmux) = Tmux::start("list", (200, 60), &top("")) else { return };
    let name = format!("deadlocks[{}]", stuck.0.pid());
    tmux.shows(&name);
    tmux.keys(&["/"]);
    tmux.keys(&["-l", &format!("s.{}.", stuck.0.pid())]);
    tmux.keys(&["Enter"]);
    let screen = tmux.shows("1 locks");
    let rows: Vec<&str> = screen.lines().filter(|line| line.starts_with("deadlocks[")).collect();
    assert_eq!(rows.len(), 1, "{screen}");
    tmux.keys(&["Enter"]);
    tmux.shows("records nothing: ");
    tmux.keys(&["Escape"]);
    tmux.shows("Examined ");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let fixture = Fixture::of(&deadlock());
    for signal in ["TERM", "HUP", "INT"] {
        let pid = fixture.directory.path().join(signal);
        let line =
            format!("sh -c 'echo $$ > {}; exec {}'", pid.display(), top(&fixture.path.to_string_lossy()));
        let Some(tmux) = Tmux::start(&format!("signal-{signal}"), (80, 24), &line) else { return };
        tmux.shows("HELD BY");
        let pid = std::fs::read_to_string(&pid).unwrap();
        assert!(Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status().unwrap().success());
        let after = tmux.shows("status 0");
        assert!(!after.contains("HELD BY"), "{after}");
    }
}

#[test]
fn it_ends_with_its_terminal() {
    let fixture = Fixture::of(&deadlock());
    let file = fixture.directory.path().join("pid");
    // The leader of the session hears of the end, and this program does not.
    let top = top(&fixture.path.to_string_lossy());
    let line = format!("trap '' HUP; sh -c 'echo $$ > {}; exec {top}'", file.display());
    let Some(tmux) = Tmux::start("gone", (80, 24), &line) else { return };
    tmux.shows("HELD BY");
    let server = tmux.knows("#{pid}");
    assert!(Command::new("kill").args(["-KILL", &server]).status().unwrap().success());
    let stat = format!("/proc/{}/stat", std::fs::read_to_string(&file).unwrap().trim());
    let deadline = Instant::now() + DEADLINE;
    // Its parent may not have waited for it.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < deadline, "it goes on without a terminal");
        librip_test_kit::pause();
    }
}

#[test]
fn the_verdict_stays_when_the_process_dies() {
    let mut stuck = Stuck::start(deadlocks(), &["normal"], 2);
    let line = top(&stuck.0.pid().to_string());
    let Some(tmux) = Tmux::start("dies", (200, 60), &line) else { return };
    tmux.shows("proven deadlock: ");
    stuck.0.kill();
    let screen = tmux.shows("ENDED, this is the last reading");
    assert!(screen.starts_with("proven deadlock: "), "{screen}");
}

#[test]
fn without_colours_no_colour_reaches_the_terminal() {
    let fixture = Fixture::of(&deadlock());
    for (name, variable, has_colours) in [("no-color", "NO_COLOR=1", false), ("color", "NO_COLOR=", true)] {
        let line = format!("env {variable} {}", top(&fixture.path.to_string_lossy()));
        let Some(tmux) = Tmux::start(name, (80, 24), &line) else { return };
        tmux.shows("suspected deadlock: ");
        let screen = tmux.run(&["capture-pane", "-p", "-e"]);
        // The colour of what is suspected.
        assert_eq!(screen.contains("\x1b[38;5;6m"), has_colours, "{screen:?}");
    }
}

/// Whether the row with this text is the chosen one, which is reversed.
fn is_chosen(screen: &str, text: &str) -> bool {
    let is_reversed = |line: &str| ["\x1b[7m", ";7m"].iter().any(|reversed| line.contains(reversed));
    screen.lines().any(|line| line.contains(text) && is_reversed(line))
}

#[test]
fn a_click_chooses_a_row_and_the_wheel_scrolls_unless_the_mouse_is_left_alone() {
    let fixture = Fixture::of(&deadlock());
    let path = fixture.path.to_string_lossy();
    let Some(tmux) = Tmux::start("mouse", (80, 24), &top(&path)) else { return };
    let screen = tmux.looks("SAVINGS chosen", |screen| is_chosen(screen, "SAVINGS"));
    assert!(!is_chosen(&screen, "CURRENT"), "{screen}");
    // Buttons and the wheel, but no motion.
    let flags = "#{mouse_standard_flag} #{mouse_all_flag} #{mouse_sgr_flag}";
    assert_eq!(tmux.knows(flags), "1 0 1");
    let line = 1 + screen.lines().position(|line| line.contains("0 % CURRENT")).unwrap();
    tmux.types(&format!("\x1b[<0;5;{line}M\x1b[<0;5;{line}m"));
    tmux.looks("CURRENT chosen", |screen| is_chosen(screen, "CURRENT"));
    let [up, down] = [64, 65].map(|button| format!("\x1b[<{button};5;{line}M"));
    tmux.types(&up);
    tmux.looks("SAVINGS chosen", |screen| is_chosen(screen, "SAVINGS"));
    tmux.types(&down);
    tmux.looks("CURRENT chosen", |screen| is_chosen(screen, "CURRENT"));
    tmux.keys(&["q"]);
    tmux.shows("status 0");
    assert_eq!(tmux.knows("#{mouse_any_flag}"), "0");
    let Some(tmux) = Tmux::start("no-mouse", (80, 24), &format!("{} --no-mouse", top(&path))) else { return };
    tmux.shows("HELD BY");
    assert_eq!(tmux.knows("#{mouse_any_flag}"), "0");
}

#[test]
fn it_looks_the_same_in_all_terminals_and_over_ssh() {
    let fixture = Fixture::of(&deadlock());
    let mut screens = Vec::new();
    for term in ["screen", "xterm-256color", "vt100", "linux"] {
        let line = format!("env TERM={term} NO_COLOR=1 {}", top(&fixture.path.to_string_lossy()));
        let Some(tmux) = Tmux::start(&format!("term-{term}"), (80, 24), &line) else { return };
        tmux.shows("HELD BY");
        tmux.keys(&["2", "Down", "PageUp", "1", "Enter"]);
        let is_open = |screen: &str| screen.contains("mutex at 0x7f000000") && !screen.contains("HELD BY");
        let screen = tmux.looks("the lock alone", is_open);
        assert!(!screen.contains("\x1b[38;"), "{term}: {screen:?}");
        screens.push(screen);
        tmux.keys(&["q"]);
        tmux.shows("status 0");
        assert_eq!(tmux.knows("#{alternate_on} #{cursor_flag}"), "0 1", "{term}");
    }
    assert!(screens.iter().all(|screen| *screen == screens[0]), "{screens:#?}");
}

#[test]
fn it_fills_the_terminal_again_when_its_size_changes() {
    let fixture = Fixture::of(&deadlock());
    let Some(tmux) = Tmux::start("resize", (80, 24), &top(&fixture.path.to_string_lossy())) else { return };
    tmux.shows("HELD BY");
    for (width, height) in [("120", 40), ("40", 10), ("80", 24)] {
        tmux.run(&["resize-window", "-x", width, "-y", &height.to_string()]);
        // tmux itself may keep the last line and cut the others.
        let is_filled = |screen: &str| {
            let last = screen.lines().nth(height - 1);
            let is_at_end = last.is_some_and(|line| line.contains("Enter open"));
            is_at_end && screen.matches("Enter open").count() == 1 && screen.contains("SAVINGS")
        };
        tmux.looks("the list, and the keys in the last line", is_filled);
    }
}

#[test]
fn without_a_terminal_it_says_so() {
    let mut command = command();
    command.arg("top").env("TERM", "xterm");
    let outcome = finish(command).fails_with("standard output is not a terminal");
    assert_eq!(outcome.status, 2);
    finish({
        let mut command = crate::support::run::command();
        command.args(["top", "--json"]);
        command
    })
    .fails_with("writes no JSON");
    let Some(tmux) = Tmux::start("dumb", (80, 24), &format!("env TERM=dumb {}", top(""))) else { return };
    let screen = tmux.shows("status 2");
    assert!(screen.contains("TERM=dumb"), "{screen}");
}
