//! The Firefox Profiler's own command line reads the profiles.
//!
//! It is a program of Node.js. A process of it keeps the profile, and other ones ask it. Not tested here: how the
//! profiler draws.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use librip_test_kit::victim::DEADLINE;
use serde_json::{Value, json};

use crate::support::exports::*;
use crate::support::fixture::Fixture;
use crate::support::locks::*;
use crate::support::run::{Outcome, clean, finish, read_rip};
use crate::support::synth::{Ring, Slot};
use crate::tools;

/// The name of a session, in the folder that it has to itself.
const SESSION: &str = "test";

/// A profile that a process of the profiler keeps, in a folder with its socket.
struct Session {
    node: PathBuf,
    program: PathBuf,
    fixture: Fixture,
    keeper: Option<Child>,
}

impl Session {
    /// Loads the profile of a ring; `None` if there is no profiler.
    fn of(ring: &Ring, options: &[&str]) -> Option<Session> {
        let node = tools::file("node/node_modules/.bin/node")?;
        let program = tools::file("node/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js")?;
        let mut session = Session { node, program, fixture: Fixture::of(ring), keeper: None };
        let (profile, path) = (session.path("profile.json"), &session.fixture.path);
        let args = ["export", "-f", "firefox", "-o", profile.to_str().unwrap(), path.to_str().unwrap()];
        read_rip(args.iter().chain(options)).sound();
        // Its command `load` starts it too, but gives up after half a second.
        let mut command = session.command(&["--daemon", profile.to_str().unwrap()]);
        session.keeper = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        session.wait_until_it_listens();
        Some(session)
    }

    /// Waits until the process says where it listens. A command that asks before may take the session for a dead one,
    /// and remove its files.
    fn wait_until_it_listens(&mut self) {
        let (metadata, socket) =
            (self.path(&format!("{SESSION}.json")), self.path(&format!("{SESSION}.sock")));
        let is_complete = |text: Vec<u8>| serde_json::from_slice::<Value>(&text).is_ok();
        let start = Instant::now();
        while !fs::read(&metadata).is_ok_and(is_complete) || UnixStream::connect(&socket).is_err() {
            let ended = self.keeper.as_mut().and_then(|keeper| keeper.try_wait().unwrap());
            assert!(ended.is_none() && start.elapsed() < DEADLINE, "{ended:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.fixture.directory.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = clean(Command::new(&self.node));
        command.arg(&self.program).args(args).args(["--session", SESSION]);
        command.env("PROFILER_CLI_SESSION_DIR", self.fixture.directory.path());
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        finish(self.command(args))
    }

    fn ask(&self, args: &[&str]) -> Value {
        let out = self.run(&[args, &["--json"]].concat()).sound().stdout;
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// The threads: tid, name and handle.
    fn threads(&self) -> Vec<(String, String, String)> {
        let answer = self.ask(&["thread", "list", "--limit", "0"]);
        let threads = answer["threads"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut threads: Vec<_> = threads
            .iter()
            .map(|of| (text(&of["tid"]), text(&of["name"]), text(&of["threadHandle"])))
            .collect();
        threads.sort();
        threads
    }

    /// The handle of a thread.
    fn handle(&self, tid: &str) -> String {
        let threads = self.threads();
        threads.iter().find(|(of, ..)| of == tid).unwrap_or_else(|| panic!("{threads:#?}")).2.clone()
    }

    /// The markers of a thread, as name, begin and length in ms, and texts.
    fn markers(&self, tid: &str) -> Vec<Value> {
        let answer =
            self.ask(&["thread", "markers", "--list", "--limit", "0", "--thread", &self.handle(tid)]);
        let markers = answer["flatMarkers"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
        let ms = |value: &Value| value.as_f64().map(|ms| ms.round() as u64);
        let texts = |of: &Value| -> Vec<Value> {
            of["fields"].as_array().unwrap().iter().map(|field| field["value"].clone()).collect()
        };
        let marker = |of: &Value| json!([of["name"], ms(&of["start"]), ms(&of["duration"]), texts(of)]);
        markers.iter().map(marker).collect()
    }

    /// The frames of the stack in which a thread is, from the outermost on.
    fn stack(&self, tid: &str) -> Vec<String> {
        let answer =
            self.ask(&["thread", "samples-top-down", "--include-idle", "--thread", &self.handle(tid)]);
        let mut frames = Vec::new();
        let mut node = &answer["regularCallTree"];
        while let Some(child) = node["children"].get(0) {
            frames.push(child["name"].as_str().unwrap().to_owned());
            node = child;
        }
        frames
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            // It may have ended by itself.
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

#[test]
fn a_profile_has_threads_with_their_waits_holds_spans_and_events() {
    let Some(session) = Session::of(&talk(), &[]) else { return };
    let threads = session.threads();
    let names: Vec<(&str, &str)> = threads.iter().map(|(tid, name, _)| (&**tid, &**name)).collect();
    assert_eq!(names, [("1", SEEN), ("2", "follower"), ("3", "waiter"), ("4", "waiter"), ("5", "grocer")]);
    // Time 0 is the first moment that is shown, 3 s after the boot. The process ended 66 s after the boot.
    let wait = "server::cache::? cache.rs:11<0x1100>";
    let holds = format!("holds {SEEN}");
    let follower = [
        json!([format!("waits for {SEEN}"), 2000, 1000, [SEEN, wait, "ended"]]),
        json!([holds, 3000, 500, [SEEN, "", "ended"]]),
        json!(["waits for queue", 6000, 57_000, ["queue", wait, "goes on"]]),
    ];
    assert_eq!(session.markers("2"), follower);
    let said = [
        json!(["span", 1000, 1000, [format!("sale{SEEN}"), "", "ended"]]),
        json!(["event", 1500, null, [format!("3 apples{SEEN}"), "src/said.rs:7", ""]]),
    ];
    assert_eq!(session.markers("5"), said);
    let meta = session.ask(&["profile", "meta"]);
    // The ring was made 1.7 * 10^9 s after 1970, and 55 s after the boot.
    assert_eq!((&meta["startTime"], &meta["product"]), (&json!(1_699_999_948_000_u64), &json!("server")));
}

#[test]
fn the_stack_of_a_thread_ends_in_what_it_waits_for() {
    let Some(session) = Session::of(&talk(), &[]) else { return };
    assert_eq!(session.stack("3"), ["server::cache::? cache.rs:11<0x1100>", "[waits for queue]"]);
    assert_eq!(session.stack("5"), ["said.rs:7"]);
}

#[test]
fn a_task_has_a_row_with_what_it_does_now_and_its_awaits() {
    let Some(session) = Session::of(&crew(), &[]) else { return };
    let threads = session.threads();
    let tid = |name: &str| {
        &threads.iter().find(|(_, of, _)| of == name).unwrap_or_else(|| panic!("{threads:#?}")).0
    };
    let place = "server::cache::? cache.rs:11<0x1100>";
    // Time 0 is the first moment that is shown, when the task was made that was never polled.
    let markers = session.markers(tid("server[task 7]"));
    let lengths = markers.iter().map(|of| json!([of[0], of[2], of[3]])).collect::<Vec<_>>();
    let expected = [
        json!(["waits for queue", 57_500, ["queue", place, "goes on"]]),
        json!([format!("suspended at {place}"), 57_000, ["", place, "goes on"]]),
    ];
    assert_eq!(lengths, expected);
    assert_eq!(session.markers(tid("busy[task 8]"))[0][0], "polled by worker[10]");
    let stack = session.stack(tid("server[task 7]"));
    assert_eq!(stack, ["serve::? serve.rs:20", "save::? save.rs:7", place, "[waits for queue]"]);
    assert_eq!(session.stack(tid("busy[task 8]")), ["serve::? serve.rs:20", "[polled]"]);
}

#[test]
fn a_profile_shows_as_many_threads_as_the_user_wants_and_those_that_matter_come_first() {
    let Some(session) = Session::of(&talk(), &["--threads", "1"]) else { return };
    let threads = session.threads();
    assert!(matches!(&threads[..], [(tid, ..)] if tid == "1"), "the one that others wait for: {threads:#?}");
}

#[test]
fn ids_and_times_that_no_process_has_leave_a_profile_that_is_read() {
    let far = |tid| Slot { claimed_ns: 1 << 63, tid, ..holder() };
    let twice = [Slot { pid: Some(0), ..holder() }, far(0), far(u32::MAX), far(7), far(7).exited()];
    let ring = Ring { clock: Some((3, 1000, 1 << 63)), pid: u32::MAX, ..story().with_slots(twice) };
    let Some(session) = Session::of(&ring, &[]) else { return };
    assert_eq!(session.threads().len(), 4 + 5);
    assert_eq!(session.markers("2").len(), 3);
}

#[test]
fn a_ring_without_a_time_is_a_profile_without_markers() {
    let ring = ring().with_slots([Slot::thread("quiet", 1).marks([SNAP]), Slot::thread("gone", 2).exited()]);
    let Some(session) = Session::of(&ring, &[]) else { return };
    assert_eq!((session.threads().len(), session.markers("1")), (2, vec![]));
}
