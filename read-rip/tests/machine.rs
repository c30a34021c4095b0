//! `check --all`: which processes of a machine are stuck. And a process by its name, or by its pid in a container.
//!
//! Each test that expects an exact result runs on a machine of its own: a PID namespace with an empty `/dev/shm`.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use librip_test_kit::victim::is_root;
use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

use support::compiled::module_of;
use support::locks;
use support::run::{Ended, Outcome, clean, finish, read_rip};
use support::sleepers::Sleepers;
use support::synth::{Module, Ring};

const READER: &str = env!("CARGO_BIN_EXE_read-rip");

/// Two threads in a deadlock, or with an argument in an idle pool, while the first one waits for clients. It wakes the
/// pool for each. The pool may have the names of workers of an executor, or have the first thread too.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static pthread_mutex_t savings = PTHREAD_MUTEX_INITIALIZER, current = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static void *save(void *arg) {
    pthread_mutex_lock(&savings); pthread_barrier_wait(&both); pthread_mutex_lock(&current);
    return arg;
}
static void *spend(void *arg) {
    pthread_mutex_lock(&current); pthread_barrier_wait(&both); pthread_mutex_lock(&savings);
    return arg;
}
static void *idle(void *arg) {
    pthread_mutex_lock(&savings);
    for (;;) pthread_cond_wait(&work, &savings);
    return arg;
}
int main(int count, char **arguments) {
    pthread_t thread;
    const char *argument = count > 1 ? arguments[1] : "";
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, count > 1 ? idle : save, NULL);
    pthread_create(&thread, NULL, count > 1 ? idle : spend, NULL);
    if (!strcmp(argument, "executor")) pthread_setname_np(thread, "tokio-rt-worker");
    puts("2");
    fflush(stdout);
    if (!strcmp(argument, "waits")) idle(NULL);
    int clients = socket(AF_INET, SOCK_STREAM, 0);
    listen(clients, 1);
    for (;;) {
        accept(clients, NULL, NULL);
        pthread_cond_signal(&work);
    }
}
"#;

/// A program, compiled under a name, in a directory that everybody may read.
struct Program {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    fn new(name: &str) -> Program {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("program.c");
        std::fs::write(&source, PROGRAM).unwrap();
        let path = directory.path().join(name);
        let compiled =
            Command::new("gcc").args(["-g", "-pthread", "-o"]).arg(&path).arg(&source).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Program { directory, path }
    }

    fn start(&self, arguments: &[&str]) -> Sleepers {
        Sleepers::start(Command::new(&self.path).args(arguments))
    }

    /// Runs a script of a shell on a machine of its own, in which `$PROGRAM` is this one and `$READER` the reader.
    ///
    /// `asleep NUMBER` waits until so many processes of the program sleep with all of their threads.
    fn machine(&self, script: &str) -> Outcome {
        let whole = format!(
            "mount -t tmpfs none /dev/shm\n\
             asleep() {{\n\
               while :; do\n\
                 found=0\n\
                 for stat in /proc/[0-9]*/task; do\n\
                   case $(cat $stat/../comm 2>/dev/null) in {name}) ;; *) continue;; esac\n\
                   for thread in $stat/*/syscall; do\n\
                     case $(cat $thread 2>/dev/null) in 202*|98*) found=$((found + 1));; esac\n\
                   done\n\
                 done\n\
                 test $found -ge $((2 * $1)) && return\n\
                 sleep 0.05\n\
               done\n\
             }}\n\
             {script}",
            name = self.path.file_name().unwrap().to_str().unwrap()
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &whole]);
        command.env("PROGRAM", &self.path).env("READER", READER).env_remove("RIP_RING");
        finish(clean(command))
    }
}

/// The lines of text about a process.
fn lines_of(outcome: &Outcome, pid: u32) -> Vec<&str> {
    let next = format!("; next: read-rip check {pid}");
    outcome.stdout.lines().filter(|line| line.ends_with(&next)).collect()
}

#[test]
fn a_stuck_process_is_found_among_all_and_an_idle_one_is_not() {
    let program = Program::new("bank");
    let (stuck, idle) = (program.start(&[]), program.start(&["idle"]));
    let outcome = read_rip(["check", "--all"]);
    let [line] = lines_of(&outcome, stuck.pid())[..] else { panic!("{outcome:#?}") };
    let expected = format!("proven deadlock: bank[{}]: 2 threads wait for one another", stuck.pid());
    assert!(line.starts_with(&expected), "{line}");
    assert_eq!(lines_of(&outcome, idle.pid()), [""; 0], "{outcome:#?}");
    assert!(outcome.stdout.contains("\nExamined "), "{outcome:#?}");
    // Another test may damage a ring at this moment, and that is an error.
    let has_damage = outcome.stderr.contains("Damaged: ");
    assert_eq!(outcome.status, if has_damage { 2 } else { 1 }, "{outcome:#?}");
}

#[test]
fn a_machine_without_stuck_processes_has_no_findings() {
    if !is_root("a_machine_without_stuck_processes_has_no_findings") {
        return;
    }
    let program = Program::new("pool");
    let script = "\
        for at in 1 2 3 4 5 6 7 8 9 10; do $PROGRAM idle >/dev/null & sleep 1000 & done\n\
        asleep 10\n\
        exec $READER check --all";
    let outcome = program.machine(script);
    assert_eq!(outcome.stdout, "Examined 20 processes with 40 threads: no findings.\n", "{outcome:#?}");
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:#?}");
}

#[test]
fn what_cannot_be_judged_is_listed_and_counted() {
    if !is_root("what_cannot_be_judged_is_listed_and_counted") {
        return;
    }
    let program = Program::new("web");
    let script = "\
        $PROGRAM executor >/dev/null & $PROGRAM executor >/dev/null & $PROGRAM waits >/dev/null & $PROGRAM idle >/dev/null &\n\
        asleep 4\n\
        $READER check --all\n\
        $READER check --all --json";
    let outcome = program.machine(script);
    let (json, text): (Vec<&str>, Vec<&str>) = outcome.stdout.lines().partition(|line| line.starts_with('{'));
    let [tasks, all, examined] = text[..] else { panic!("{outcome:#?}") };
    assert!(
        tasks.starts_with("not judged: what the async tasks of tokio wait for is not seen: web["),
        "{outcome:#?}"
    );
    assert!(tasks.contains("], web[") && tasks.contains("; next: read-rip check "), "{outcome:#?}");
    assert!(
        all.starts_with("not judged: all threads wait, and read-rip does not know who could "),
        "{outcome:#?}"
    );
    assert_eq!(examined, "Examined 5 processes with 13 threads: no findings, and 3 could not be judged.");
    let lines: Vec<serde_json::Value> = json.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["unjudged", "unjudged", "unjudged", "examined"], "{outcome:#?}");
    assert_eq!(lines[3]["data"]["unjudged"], 3, "{outcome:#?}");
}

#[test]
fn the_most_certain_finding_comes_first_and_json_has_the_usual_lines() {
    if !is_root("the_most_certain_finding_comes_first_and_json_has_the_usual_lines") {
        return;
    }
    let program = Program::new("bank");
    let script = "\
        $PROGRAM >/dev/null & $PROGRAM >/dev/null & $PROGRAM idle >/dev/null &\n\
        asleep 3\n\
        $READER check --all\n\
        $READER check --all --min-confidence proven --json";
    let outcome = program.machine(script);
    let (json, text): (Vec<&str>, Vec<&str>) = outcome.stdout.lines().partition(|line| line.starts_with('{'));
    assert_eq!(text.len(), 3, "{outcome:#?}");
    assert!(text[..2].iter().all(|line| line.starts_with("proven deadlock: bank[")), "{outcome:#?}");
    // The shell is a process, too.
    assert_eq!(text[2], "Examined 4 processes with 10 threads: 2 have findings.", "{outcome:#?}");
    let lines: Vec<serde_json::Value> = json.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["ring", "finding", "checked", "ring", "finding", "checked", "examined"],
        "{outcome:#?}"
    );
    let examined = &lines[6]["data"];
    assert_eq!((&examined["processes"], &examined["stuck"]), (&4.into(), &2.into()), "{outcome:#?}");
    assert_eq!(outcome.status, 1, "{outcome:#?}");
}

/// A ring of a dead process whose threads are in a deadlock. Its program is this file.
fn ring_of_dead(program: &Path) -> Ring {
    let read_rip_files::Module { path, build_id, file_len_bytes, modified_ns, .. } = module_of(program);
    let path = path.into_os_string().into_encoded_bytes();
    let module = Module { path, build_id, file_len: file_len_bytes, modified_ns, ..Module::program() };
    Ring { modules: vec![module], ..locks::deadlock() }
}

/// How often a file was opened since the watch began.
fn opened(watch: &Inotify) -> usize {
    match watch.read_events() {
        Ok(events) => events.len(),
        Err(Errno::EAGAIN) => 0,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_living_come_first_and_a_program_that_many_rings_name_is_opened_once() {
    if !is_root("the_living_come_first_and_a_program_that_many_rings_name_is_opened_once") {
        return;
    }
    let (program, named) = (Program::new("bank"), Program::new("server"));
    let ring = ring_of_dead(&named.path);
    let rings = tempfile::tempdir().unwrap();
    for at in 0..30 {
        let ring = Ring { created_realtime_ns: ring.created_realtime_ns + at, ..ring.clone() };
        ring.build().write(&rings.path().join(format!("rip.server.{at}.0")));
    }
    let watch = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
    watch.add_watch(&named.path, AddWatchFlags::IN_OPEN).unwrap();
    let script = format!(
        "cp {}/* /dev/shm\n\
         $PROGRAM >/dev/null &\n\
         asleep 1\n\
         exec $READER check --all",
        rings.path().display()
    );
    let outcome = program.machine(&script);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines[0].starts_with("proven deadlock: bank["), "{outcome:#?}");
    let newest_first = (0..30).rev().map(|at| format!("; next: read-rip check /dev/shm/rip.server.{at}.0"));
    for (line, next) in lines[1..].iter().zip(newest_first) {
        assert!(line.contains(" deadlock: server[4321], dead: ") && line.ends_with(&next), "{line}");
    }
    assert!(lines[31].contains(" and 30 rings: 31 have findings."), "{outcome:#?}");
    assert_eq!(opened(&watch), 1);
    // And if each has its full report.
    let outcome = read_rip(["check".as_ref(), "--all".as_ref(), "--dir".as_ref(), rings.path().as_os_str()]);
    assert_eq!(
        outcome.stdout.matches(" deadlock: 2 threads wait for one another").count(),
        30,
        "{outcome:#?}"
    );
    assert_eq!(opened(&watch), 1);
}

/// Removes the ring `rip.server.0.0` of a directory as soon as `reader` has found it: a search opens each ring twice.
fn removed_meanwhile(rings: &Path, reader: impl FnOnce() -> Outcome) -> Outcome {
    let ring = rings.join("rip.server.0.0");
    let watch = Inotify::init(InitFlags::empty()).unwrap();
    watch.add_watch(&ring, AddWatchFlags::IN_OPEN | AddWatchFlags::IN_CLOSE_NOWRITE).unwrap();
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            let mut closed = 0;
            while closed < 2 {
                let events = watch.read_events().unwrap();
                closed += events.iter().filter(|event| event.mask != AddWatchFlags::IN_OPEN).count();
            }
            std::fs::remove_file(&ring).unwrap();
        });
        let outcome = reader();
        remover.join().unwrap();
        outcome
    })
}

#[test]
fn a_ring_that_is_removed_after_it_was_found_is_nobodys_error() {
    if !is_root("a_ring_that_is_removed_after_it_was_found_is_nobodys_error") {
        return;
    }
    let program = Program::new("bank");
    let ring = ring_of_dead(&program.path);
    let rings = tempfile::tempdir().unwrap();
    let write = |at: u64| {
        let ring = Ring { created_realtime_ns: ring.created_realtime_ns + at, ..ring.clone() };
        ring.build().write(&rings.path().join(format!("rip.server.{at}.0")));
    };
    (0..2).for_each(write);
    let script = format!("mount --bind {} /dev/shm; exec $READER check --all", rings.path().display());
    let all = removed_meanwhile(rings.path(), || program.machine(&script));
    assert!(all.status == 1 && all.stdout.contains(" and 1 ring: 1 has findings"), "{all:#?}");
    write(0);
    let of_directory = removed_meanwhile(rings.path(), || {
        read_rip(["check".as_ref(), "--all".as_ref(), "--dir".as_ref(), rings.path().as_os_str()])
    });
    assert!(of_directory.status == 1 && !of_directory.stderr.contains("Error"), "{of_directory:#?}");
}

#[test]
fn all_processes_have_one_window() {
    if !is_root("all_processes_have_one_window") {
        return;
    }
    let program = Program::new("bank");
    let script = "\
        for at in 1 2 3 4 5 6 7 8; do $PROGRAM >/dev/null & done\n\
        asleep 8\n\
        exec $READER check --all --json --window 2s";
    let outcome = program.machine(script);
    let checked = outcome.data("checked");
    let windows: Vec<u64> = checked.iter().map(|checked| checked["window_ns"].as_u64().unwrap()).collect();
    assert_eq!(windows.len(), 8, "{outcome:#?}");
    let limits = (Duration::from_secs(2).as_nanos() as u64, outcome.took.as_nanos() as u64);
    // Each process has the whole window, and all of them have it within the one run.
    assert!(windows.iter().all(|window| (limits.0..limits.1).contains(window)), "{windows:?}");
    assert!(windows.iter().sum::<u64>() > limits.1, "{windows:?} {limits:?}");
}

#[test]
fn a_process_without_a_ring_is_found_by_the_name_of_its_program() {
    let program = Program::new("ledgerd");
    assert!(read_rip(["ledgerd"]).fails_with("ledgerd").stdout.is_empty());
    let only = program.start(&[]);
    let outcome = read_rip(["ledgerd"]);
    assert!(outcome.heading().starts_with(&format!("ledgerd[{}], alive", only.pid())), "{outcome:#?}");
    let chosen = format!("Chosen: process {}, the only living one of this name\n", only.pid());
    assert!(outcome.stderr.starts_with(&chosen), "{outcome:#?}");
    let second = program.start(&["idle"]);
    let outcome =
        read_rip(["ledgerd"]).fails_with("Error: 2 living processes are called ledgerd; name one\n");
    for (process, argument) in [(&only, ""), (&second, " idle")] {
        let listed = format!("ledgerd[{}]  {}{argument}\n", process.pid(), program.path.display());
        assert!(outcome.stderr.contains(&listed), "{outcome:#?}");
    }
}

#[test]
fn the_pid_in_a_container_is_accepted_and_shown() {
    if !is_root("the_pid_in_a_container_is_accepted_and_shown") {
        return;
    }
    let program = Program::new("bank");
    // On this machine the shell has the pid 1, so that the program's pid in its container is in use here.
    let script = "\
        unshare --pid --fork --kill-child sh -c \
            'for at in $(seq 90); do sh -c :; done; $PROGRAM >/dev/null & echo $! >$0; wait' /dev/shm/inside &\n\
        asleep 1\n\
        inside=$(cat /dev/shm/inside)\n\
        $READER check $inside\n\
        $READER check 1 2>&1 >/dev/null | head -1\n";
    let outcome = program.machine(script);
    let inside: u32 = {
        let (_, rest) = outcome.heading().split_once("] (").unwrap_or_else(|| panic!("{outcome:#?}"));
        rest.split_once(" in its container)").unwrap_or_else(|| panic!("{outcome:#?}")).0.parse().unwrap()
    };
    assert!(outcome.stdout.contains("proven deadlock: "), "{outcome:#?}");
    let chosen = format!(", which has the pid {inside} in its container\n");
    assert!(outcome.stderr.contains(&chosen), "{outcome:#?}");
    assert!(outcome.stdout.contains("in a container, 1 is also the process"), "{outcome:#?}");
}

#[test]
fn only_the_processes_of_a_control_group_are_looked_at() {
    let program = Program::new("bank");
    let stuck = program.start(&[]);
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", stuck.pid())).unwrap();
    let group = groups.lines().next().and_then(|line| line.splitn(3, ':').nth(2)).unwrap().to_owned();
    let outcome = read_rip(["check", "--all", "--cgroup", &group]);
    assert_eq!(lines_of(&outcome, stuck.pid()).len(), 1, "{outcome:#?}");
    read_rip(["check", "--all", "--cgroup", "/no/such/group"])
        .fails_with("Error: no process that this user can see is in the control group /no/such/group\n");
}

/// Runs the reader as a user without rights.
fn as_nobody(program: &Program, arguments: &[&str]) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    let reader = program.directory.path().join("reader");
    let everybody = || std::fs::Permissions::from_mode(0o755);
    librip_test_kit::tool::copy_program(READER, &reader);
    for path in [program.directory.path(), Path::new(&reader)] {
        std::fs::set_permissions(path, everybody()).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&reader).args(arguments);
    finish(clean(command))
}

#[test]
fn of_a_process_that_may_not_be_looked_into_states_and_names_are_shown_and_nothing_is_judged() {
    if !is_root("of_a_process_that_may_not_be_looked_into_states_and_names_are_shown_and_nothing_is_judged") {
        return;
    }
    let program = Program::new("bank");
    let stuck = program.start(&[]);
    let pid = stuck.pid().to_string();
    let outcome = as_nobody(&program, &[&pid]);
    assert!(outcome.result().starts_with("bank : 3 threads, sleeping"), "{outcome:#?}");
    let why =
        format!("not judged: the process belongs to another user (0); run: sudo read-rip check {pid}\n");
    assert!(outcome.stdout.ends_with(&format!("\ncheck: {why}")), "{outcome:#?}");
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "it is said once: {outcome:#?}");
    let outcome = as_nobody(&program, &["check", &pid]);
    assert_eq!((outcome.result(), &*outcome.stderr), (&*why, ""), "nothing else is claimed: {outcome:#?}");
    assert_eq!(outcome.status, 3, "{outcome:#?}");
    for view in ["stacks", "locks"] {
        let outcome = as_nobody(&program, &[view, &pid]);
        let warning = "Warning: memory, stacks and system calls are not shown: the process belongs to another user (0)\n\
                       Hint: run read-rip as that user or as root\n";
        assert!(outcome.stderr.contains(warning), "{outcome:#?}");
        assert!(!outcome.stdout.contains("cut: "), "nothing is known of its stacks: {outcome:#?}");
        assert!(!outcome.stdout.contains("records nothing"), "that is not known: {outcome:#?}");
    }
    let worker = program.start(&["executor"]);
    let outcome = as_nobody(&program, &["check", &worker.pid().to_string()]);
    assert!(outcome.stderr.contains(" runs async tasks (tokio), "), "{outcome:#?}");
    assert!(!outcome.stderr.contains("read-rip stacks"), "it would refuse too: {outcome:#?}");
    let outcome = as_nobody(&program, &["check", "--all"]);
    assert_eq!(lines_of(&outcome, stuck.pid()), [""; 0], "{outcome:#?}");
    assert!(outcome.stdout.contains(" that this user may not read"), "{outcome:#?}");
    assert!(outcome.stderr.contains("Hint: run read-rip as root"), "{outcome:#?}");
}

#[test]
fn a_pid_that_stands_for_no_program_is_an_error_of_one_sentence() {
    let error = |pid: u32| {
        let outcome = read_rip(["check", &pid.to_string()]);
        assert_eq!((outcome.status, &*outcome.stdout), (2, ""), "{outcome:#?}");
        outcome.stderr
    };
    let expected = "Error: there is no process 4294967295, and no readable ring of it in ";
    assert!(error(u32::MAX).starts_with(expected));
    let zombie = Command::new("true").spawn().unwrap();
    let pid = zombie.id();
    while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
        librip_test_kit::pause();
    }
    let parent = std::process::id();
    let expected =
        format!("Error: process {pid} (true) has ended, and its parent {parent} has not waited for it yet\n");
    assert!(error(pid).starts_with(&expected));
    drop(Ended(zombie));
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        let error = error(2);
        let (first, second) =
            ("Error: process 2 (kthreadd) is a thread of the kernel, not a program\n", "Chosen: process ");
        assert!(error.starts_with(first) || error.starts_with(second), "{error}");
    }
}

/// A program of 32 bits that sleeps: `None` if it cannot be built or run here.
fn narrow_program(directory: &Path) -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    // `pause`, number 29, again and again.
    let source = ".globl _start\n_start:\n1: movl $29, %eax\nint $0x80\njmp 1b\n";
    let (assembly, path) = (directory.join("narrow.s"), directory.join("narrow"));
    std::fs::write(&assembly, source).unwrap();
    let mut build = Command::new("gcc");
    build.args(["-m32", "-nostdlib", "-static", "-o"]).args([&path, &assembly]);
    build.output().is_ok_and(|out| out.status.success()).then_some(path)
}

#[test]
fn a_process_of_32_bits_is_not_supported_by_whatever_it_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let running = narrow_program(directory.path()).and_then(|path| Command::new(path).spawn().ok());
    let Some(running) = running.map(Ended) else {
        return println!("skipped: this machine does not build or run programs of 32 bits");
    };
    let pid = running.0.id().to_string();
    let refused = format!("Error: process {pid} runs 32-bit code, which is not supported\n");
    for arguments in [&[&*pid][..], &["check", &pid], &["stacks", &pid], &["check", "narrow"], &["narrow"]] {
        let outcome = read_rip(arguments);
        assert_eq!((outcome.status, &*outcome.stdout, &outcome.stderr), (2, "", &refused), "{arguments:?}");
    }
    let outcome = read_rip(["check", "--all"]);
    assert!(outcome.stdout.contains("that runs code of another processor"), "{outcome:#?}");
}
