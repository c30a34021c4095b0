//! Programs in languages with a runtime of their own: which one is recognised, and that none of them is called sound
//! while it is stuck.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use librip_test_kit::tool::tool;
use librip_test_kit::victim::Plan;

use crate::support::run::read_rip;
use crate::support::unprepared::{Stuck, contains, directory};

/// Whether a program is installed. It is not started: `erl` has no option that ends it.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Starts a program that waits for ever once it has said `ready`; `None` if this machine cannot.
fn stuck(program: &str, arguments: &[&str]) -> Option<Stuck> {
    if !is_installed(program) {
        eprintln!("SKIPPED {program}: it is not installed");
        return None;
    }
    let mut stuck = Stuck(Plan::new(program, arguments).start());
    stuck.0.until("ready");
    Some(stuck)
}

/// The process is not judged, and the user is told who knows more.
#[track_caller]
fn is_not_judged(stuck: &Stuck, unseen: &str, advice: &str) {
    let checked = stuck.read(&["check"]);
    assert_eq!(checked.status, 3, "a stuck program is not called sound: {checked:#?}");
    let advice = advice.replace("PID", &stuck.0.pid().to_string());
    contains(&checked.stdout, &[&format!("not judged: {unseen} are not seen"), &advice]);
}

const NODE: &str =
    "const a = new Int32Array(new SharedArrayBuffer(4)); console.log('ready'); Atomics.wait(a, 0, 0);";

#[test]
fn a_stuck_program_of_node_is_not_called_sound() {
    let Some(stuck) = stuck("node", &["-e", NODE]) else { return };
    is_not_judged(&stuck, "the promises and workers of Node.js", "`node inspect -p PID`");
}

const RUBY: &str = "a, b = Mutex.new, Mutex.new
q = Queue.new
Thread.new { a.lock; q << 1; sleep 0.1; b.lock }
Thread.new { b.lock; q << 1; sleep 0.1; a.lock }
2.times { q.pop }
STDOUT.puts 'ready'
STDOUT.flush
STDIN.read";

#[test]
fn a_stuck_program_of_ruby_is_not_called_sound() {
    let Some(stuck) = stuck("ruby", &["-e", RUBY]) else { return };
    is_not_judged(&stuck, "Ruby's locks and queues", "`rbspy dump --pid PID`");
}

#[test]
fn a_stuck_program_of_erlang_is_not_called_sound() {
    let code = "io:format(\"ready~n\"), receive never -> ok end.";
    let Some(stuck) = stuck("erl", &["-noshell", "-noinput", "-eval", code]) else { return };
    is_not_judged(&stuck, "Erlang's processes", "`erl -sname look -remsh NODE`");
}

/// A Go program of this file and its text; `None` without Go. `flags` are those of its linker.
fn go(name: &str, [file, source]: [&str; 2], flags: &str) -> Option<PathBuf> {
    if !is_installed("go") {
        eprintln!("SKIPPED go: it is not installed");
        return None;
    }
    let program = directory().join(name);
    let file = directory().join(file);
    fs::write(&file, source).unwrap();
    let mut build = Command::new("go");
    build.env("GO111MODULE", "off").env("GOCACHE", directory().join("go-cache"));
    tool(build.args(["build", "-ldflags", flags, "-o"]).arg(&program).arg(&file));
    Some(program)
}

fn started(program: &Path, arguments: &[&str]) -> Stuck {
    let mut stuck = Stuck(Plan::new(program, arguments).start());
    stuck.0.until("ready");
    stuck
}

#[test]
fn goroutines_that_wait_for_mutexes_of_one_another_are_suspected() {
    for (name, flags) in [("go-deadlock", ""), ("go-stripped", "-s -w")] {
        let source = ["deadlock.go", include_str!("../programs/deadlock.go")];
        let Some(program) = go(name, source, flags) else { return };
        let stuck = started(&program, &[]);
        let outcome = stuck.read(&["check"]);
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        let checked = outcome.stdout;
        contains(
            &checked,
            &[
                "suspected deadlock: 4 goroutines wait for mutexes, and nobody else is known who may have these",
                " waits for the mutex 0x",
                " at main.transfer deadlock.go:21",
                " at main.copyTo deadlock.go:36",
                "doubt: a mutex of Go does not say who has it",
                "next: acquire these locks in one order everywhere",
            ],
        );
        let all = read_rip(["check", "--all"]).stdout;
        assert!(all.contains(&format!("{name}[{}]: 4 goroutines wait", stuck.0.pid())), "{all}");
        let main = "made at main.main deadlock.go:50 or main.main deadlock.go:51";
        contains(
            &checked,
            &[&format!("2 goroutines: sync.Mutex.Lock at main.transfer deadlock.go:21, {main}")],
        );
        contains(&checked, &["2 goroutines: sync.RWMutex.Lock at main.copyTo deadlock.go:36"]);
        contains(&checked, &["1 goroutine: sync.WaitGroup.Wait at main.main deadlock.go:59"]);
    }
}

#[test]
fn goroutines_are_suspected_if_nobody_else_can_reach_what_they_wait_for() {
    let source = ["circles.go", include_str!("../programs/circles.go")];
    let Some(program) = go("go-circles", source, "-s -w") else { return };
    let circle = |says: &'static [&'static str]| (1, says);
    let healthy = (3, &["not judged: the owners of Go's locks are not seen"][..]);
    let cases = [
        (
            "group",
            circle(&[
                "suspected deadlock: 4 goroutines wait for one another, and nobody else can reach what they wait for",
                "goroutine 1 waits for the group 0x",
                " sends to the channel 0x",
                "doubt: a finalizer of Go",
                "next: let somebody receive",
            ]),
        ),
        (
            "receive",
            circle(&["2 goroutines wait for one another", "goroutine 1 receives from the channel 0x"]),
        ),
        ("select", circle(&["2 goroutines wait for one another", "goroutine 1 sends to the channel 0x"])),
        ("condition", circle(&["goroutine 1 waits for the condition 0x", " waits for the mutex 0x"])),
        (
            "nil",
            circle(&["suspected deadlock: a goroutine sends to a nil channel", "next: make the channel"]),
        ),
        ("pool", healthy),
        ("timer", healthy),
        ("slow", healthy),
        ("forgotten", healthy),
        ("global", healthy),
    ];
    let started: Vec<Stuck> = cases.iter().map(|(name, _)| started(&program, &[name])).collect();
    for ((name, (status, says)), stuck) in cases.iter().zip(&started) {
        let outcome = stuck.read(&["check"]);
        assert_eq!(outcome.status, *status, "{name}: {outcome:#?}");
        contains(&outcome.stdout, says);
    }
}

const PYTHON: &str = "
import threading
a, b = threading.Lock(), threading.Lock()
met = threading.Barrier(2)
def transfer(one, other):
    one.acquire()
    met.wait()
    other.acquire()
threads = [threading.Thread(target=transfer, args=of) for of in ((a, b), (b, a))]
for thread in threads: thread.start()
print('ready', flush=True)
for thread in threads: thread.join()
";

#[test]
fn a_stuck_program_of_python_is_not_called_sound() {
    let Some(stuck) = stuck("python3", &["-c", PYTHON]) else { return };
    is_not_judged(&stuck, "Python's locks and tasks", "`py-spy dump --pid PID`");
}

#[test]
fn an_event_loop_of_python_is_not_judged() {
    let code = "import asyncio\nasync def main():\n    print('ready', flush=True)\n    \
                await asyncio.get_running_loop().create_future()\nasyncio.run(main())";
    let Some(stuck) = stuck("python3", &["-c", code]) else { return };
    is_not_judged(&stuck, "Python's locks and tasks", "`py-spy dump --pid PID`");
}

#[test]
fn a_program_with_another_name_has_the_runtime_that_it_exports() {
    if !is_installed("node") {
        return eprintln!("SKIPPED node: it is not installed");
    }
    let node = tool(Command::new("node").args(["-p", "process.execPath"]));
    let renamed = directory().join("my-server");
    librip_test_kit::tool::copy_program(node.trim(), &renamed);
    let mut stuck = Stuck(Plan::new(&renamed, &["-e", NODE]).start());
    stuck.0.until("ready");
    is_not_judged(&stuck, "the promises and workers of Node.js", "`node inspect -p PID`");
}
