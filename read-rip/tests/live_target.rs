//! What the kernel says of living processes: this one, and programs that every system has.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use read_rip::process::live::{Error, LiveTarget};
use read_rip::target::{CallKind, Memory, RunState, Sleep, Target, Task};

/// A machine under load may take long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A child that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(program: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Ended(command.spawn().expect("a program that every system has"))
}

/// Reads a process until it is as expected.
fn wait_until(pid: u32, what: &str, is_so: impl Fn(&Target) -> bool) -> Target {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let target = LiveTarget::open(pid).and_then(|live| live.target());
        match target {
            Ok(target) if is_so(&target) => return target,
            _ if Instant::now() < deadline => std::thread::yield_now(),
            other => panic!("not {what}: {other:?}"),
        }
    }
}

/// Whether a thread sleeps in a call of this kind.
fn sleeps_in(task: &Task, kind: CallKind) -> bool {
    matches!(task.sleep, Some(Sleep::Call(call)) if call.kind == kind) && task.state == RunState::Sleeping
}

fn own() -> LiveTarget {
    LiveTarget::open(std::process::id()).expect("this process")
}

#[test]
fn a_thread_that_sleeps_in_a_futex_has_its_address_and_registers() {
    let (sender, receiver) = mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("sleeper".to_owned());
    let thread = thread.spawn(move || receiver.recv()).expect("a thread");
    let target = wait_until(std::process::id(), "asleep", |target| {
        target.tasks.iter().any(|task| task.name == "sleeper" && sleeps_in(task, CallKind::Futex))
    });
    let task = target.tasks.iter().find(|task| task.name == "sleeper").expect("it was there");
    let Some(Sleep::Call(call)) = task.sleep else { unreachable!("it sleeps in a call") };
    let futex = call.futex().expect("a wait");
    let registers = task.registers.expect("its registers");
    let memory = own().memory(&target.mappings);
    let memory: &dyn Memory = &memory;
    assert_eq!(memory.u32(futex.address), Ok(futex.expected));
    assert!(memory.u64(registers.sp).is_ok());
    let code = target.mappings.iter().find(|mapping| (mapping.begin..mapping.end).contains(&registers.pc));
    assert!(code.is_some_and(|mapping| mapping.is_executable), "{registers:x?}");
    assert_eq!((task.own_tid, task.hidden, task.tracer), (task.tid, false, None));
    assert!(task.schedule.is_some_and(|schedule| schedule.turns > 0));
    drop(sender);
    assert!(thread.join().expect("no panic").is_err());
}

#[test]
fn modules_are_found_in_memory() {
    let target = own().target().expect("this process");
    assert_eq!((target.pid, target.own_pid), (std::process::id(), std::process::id()));
    let executable = target.modules.iter().find(|module| module.is_executable).expect("the program");
    let path = std::env::current_exe().expect("a path");
    assert_eq!(executable.path, path);
    assert_eq!(executable.file_len_bytes, std::fs::metadata(&path).expect("the file").len());
    let here = modules_are_found_in_memory as *const () as u64;
    let relative = executable.relative(here).expect("this function is in the program");
    assert!(executable.code.contains(&relative));
    let library = target.modules.iter().find(|module| module.path.to_string_lossy().contains("libc.so"));
    let library = library.expect("the C library");
    assert!(!library.is_executable && library.build_id.len() == 20, "{library:?}");
    assert!(library.relative(libc::getpid as *const () as u64).is_some());
    assert!(target.modules.iter().any(|module| module.path.as_os_str() == "[vdso]"));
    assert_eq!(target.name, path.file_name().expect("a name").to_string_lossy());
}

#[test]
fn memory_is_read_up_to_where_it_ends() {
    let live = own();
    let mappings = live.mappings();
    let memory = live.memory(&mappings);
    let last = mappings.iter().rfind(|mapping| mapping.is_writable).expect("a stack");
    let mut bytes = [0; 64];
    assert_eq!(memory.read_some(last.end - 16, &mut bytes), 16);
    assert!(memory.read(last.end - 16, &mut bytes).is_err());
    for address in [0, 8, u64::MAX, u64::MAX - 63, 1 << 63, (1 << 63) - 1, 0xffff_8000_0000_0000] {
        assert!(memory.read(address, &mut bytes).is_err(), "{address:x}");
        assert_eq!(memory.read_some(address, &mut bytes), 0, "{address:x}");
    }
}

#[test]
fn a_process_that_ends_is_an_error_and_its_memory_is_gone() {
    let mut child = run("cat", &[]);
    let pid = child.0.id();
    let target = wait_until(pid, "reading", |target| sleeps_in(&target.tasks[0], CallKind::Read));
    let live = LiveTarget::open(pid).expect("it lives");
    let memory = live.memory(&target.mappings);
    let sp = target.tasks[0].registers.expect("its registers").sp;
    let mut bytes = [0; 8];
    assert_eq!(memory.read(sp, &mut bytes), Ok(()));
    child.0.kill().expect("it lives");
    child.0.wait().expect("it ends");
    assert!(memory.read(sp, &mut bytes).is_err());
    assert!(!live.is_there());
    assert_eq!(live.target().err(), Some(Error::Ended { pid }));
    assert_eq!(LiveTarget::open(pid).err(), Some(Error::NoProcess { pid }));
}

#[test]
fn a_stopped_process_says_so() {
    let child = run("cat", &[]);
    let pid = child.0.id();
    wait_until(pid, "reading", |target| sleeps_in(&target.tasks[0], CallKind::Read));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::SIGSTOP)
        .expect("it lives");
    let target = wait_until(pid, "stopped", |target| target.tasks[0].state == RunState::Stopped);
    assert!(target.tasks[0].registers.is_some());
}

#[test]
fn a_zombie_is_named_with_its_parent() {
    let child = run("true", &[]);
    let pid = child.0.id();
    let deadline = Instant::now() + PATIENCE;
    let error = loop {
        match LiveTarget::open(pid) {
            Err(error @ Error::Zombie { .. }) => break error,
            other => assert!(Instant::now() < deadline, "{other:?}"),
        }
    };
    assert_eq!(error, Error::Zombie { pid, name: "true".to_owned(), parent: std::process::id() });
    let own_pid = std::process::id();
    let expected =
        format!("process {pid} (true) has ended, and its parent {own_pid} has not waited for it yet");
    assert_eq!(error.to_string(), expected);
    assert!(error.remedy().is_some());
}

#[test]
fn a_pid_that_nothing_can_have_is_an_error() {
    for pid in [0, u32::MAX, i32::MAX as u32] {
        assert_eq!(LiveTarget::open(pid).err(), Some(Error::NoProcess { pid }));
    }
}

#[test]
fn the_id_of_a_thread_leads_to_its_process() {
    let tid = std::thread::spawn(|| {
        let tid = nix::unistd::gettid().as_raw() as u32;
        assert_eq!(LiveTarget::open(tid).expect("this process").pid(), std::process::id());
        tid
    });
    tid.join().expect("no panic");
}
