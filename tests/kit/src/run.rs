//! Runs a program to its end, within a time limit, and keeps what it wrote.
//!
//! Programs that a test talks to or kills are [victims](crate::victim).

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::victim::DEADLINE;

/// Whether the text of `read-rip locks -v` says that a thread has waited on a condition variable for longer than this.
pub fn waits_on_condition_for(shown: &str, seconds: f64) -> bool {
    let mut lines = shown.lines().filter(|line| line.contains("waits on a condition variable"));
    lines.any(|line| {
        let lasting = line.split_once(", for ").and_then(|(_, lasting)| lasting.split_once(" s "));
        lasting.is_some_and(|(length, _)| length.parse::<f64>().is_ok_and(|length| length > seconds))
    })
}

/// What a run left.
#[derive(Debug)]
pub struct Outcome {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Outcome {
    /// Asserts that the reader read the ring and found nothing wrong.
    #[track_caller]
    pub fn sound(self) -> Outcome {
        assert_eq!(self.status, 0, "{self:#?}");
        self
    }

    /// Asserts an error or a partial read: exit status 2, this on standard error, and a hint.
    #[track_caller]
    pub fn fails_with(self, message: &str) -> Outcome {
        assert_eq!(self.status, 2, "{self:#?}");
        assert!(self.stderr.contains(message), "expected {message:?}\n{self:#?}");
        assert!(self.stderr.contains("\nHint: "), "no hint\n{self:#?}");
        self
    }

    /// The first line of a view: the process and its threads.
    #[track_caller]
    pub fn heading(&self) -> &str {
        self.view().0
    }

    /// A view without its heading.
    #[track_caller]
    pub fn result(&self) -> &str {
        self.view().1
    }

    #[track_caller]
    fn view(&self) -> (&str, &str) {
        self.stdout.split_once('\n').unwrap_or_else(|| panic!("no heading\n{self:#?}"))
    }

    /// The objects of `--json` output.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The data of all lines of one type, of `--json` output.
    #[track_caller]
    pub fn data(&self, kind: &str) -> Vec<Value> {
        of_type(&self.json(), kind).cloned().collect()
    }
}

/// The data of the lines of one type.
pub fn of_type<'a>(lines: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["type"] == kind).map(|line| &line["data"])
}

/// The data of the first line of one type.
#[track_caller]
pub fn first_of<'a>(lines: &'a [Value], kind: &'a str) -> &'a Value {
    of_type(lines, kind).next().unwrap_or_else(|| panic!("no {kind}: {lines:#?}"))
}

/// The first of these that has this name.
#[track_caller]
pub fn named<'a>(all: &'a [Value], name: &str) -> &'a Value {
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {all:#?}"))
}

/// A command without settings that change what `read-rip` writes.
pub fn clean(mut command: Command) -> Command {
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end; a run that does not end is a failure.
#[track_caller]
pub fn finish(mut command: Command) -> Outcome {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    let status = wait(&mut child);
    Outcome {
        // Ended by a signal: there is no exit status, and that is always wrong.
        status: status.code().unwrap_or(-1),
        stdout: String::from_utf8(stdout.join().unwrap()).expect("the output is UTF-8"),
        stderr: String::from_utf8(stderr.join().unwrap()).expect("the errors are UTF-8"),
        took: start.elapsed(),
    }
}

/// Waits for a child, within the time limit.
#[track_caller]
pub fn wait(child: &mut Child) -> std::process::ExitStatus {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("still running after {DEADLINE:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn collect(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        bytes
    })
}
