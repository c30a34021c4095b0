//! What the kernel says of living processes: this one, and programs that every system has.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use read_rip_evidence::process::live::{Error, LiveTarget, processes_with_pid_in_container};
use read_rip_evidence::target::{
    CallKind, DescriptorKind, Freezer, Hidden, Memory, RunState, Sleep, Target, Task, Unreadable,
};

use crate::support::run::{Ended, read_rip};

/// A machine under load may take long.
const PATIENCE: Duration = Duration::from_secs(60);

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
            _ if Instant::now() < deadline => librip_test_kit::pause(),
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
fn reading_shared_memory_makes_no_pages() {
    let touches_one_page = "import mmap, signal\n\
        memory = mmap.mmap(-1, 3 << 20)\n\
        memory[9 * 4096] = 7\n\
        signal.pause()";
    let mut python = run("python3", &["-c", touches_one_page]);
    let pid = python.0.id();
    wait_until(pid, "asleep", |target| target.tasks.iter().any(|task| sleeps_in(task, CallKind::SignalWait)));
    let live = LiveTarget::open(pid).unwrap();
    let mappings = live.mappings();
    let shared = mappings.iter().find(|of| of.is_shared && of.end - of.begin == 3 << 20).unwrap();
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find(|line| line.starts_with("RssShmem:")).unwrap().to_owned()
    };
    let before = resident();
    let mut bytes = vec![1; 3 << 20];
    if live.memory(&mappings).read(shared.begin, &mut bytes).is_ok() {
        assert_eq!((bytes[9 * 4096], bytes.iter().filter(|&&byte| byte != 0).count()), (7, 1));
    } else {
        // A page may be on a disk, and the kernel does not say so.
        let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
        assert!(swaps.lines().count() > 1);
    }
    assert_eq!(resident(), before);
    let memory = live.memory(&mappings);
    python.0.kill().unwrap();
    python.0.wait().unwrap();
    assert!(memory.read(shared.begin, &mut bytes).is_err(), "its memory is gone, and not zeros");
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

/// Compiles a program of C and runs it.
fn run_c(directory: &tempfile::TempDir, source: &str) -> Ended {
    let file = directory.path().join("program.c");
    std::fs::write(&file, source).expect("a file");
    let program = directory.path().join("program");
    let mut gcc = Command::new("gcc");
    let compiled = gcc.args(["-pthread", "-o"]).arg(&program).arg(&file).output().expect("gcc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    run(program.to_str().expect("a path of text"), &[])
}

#[test]
fn a_thread_that_waits_in_vfork_has_the_child_that_runs_on_its_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let source =
        "#include <unistd.h>\nint main(void) { if (vfork() == 0) { char c; read(0, &c, 1); _exit(0); } }\n";
    let child = run_c(&directory, source);
    let pid = child.0.id();
    let target = wait_until(pid, "in vfork", |target| {
        let call = target.tasks[0].sleep;
        matches!(call, Some(Sleep::Call(call)) if call.kind == CallKind::Spawn)
            && target.tasks[0].state == RunState::DiskSleep
    });
    // Some kernels do not name the functions that threads sleep in.
    let is_named = std::fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|name| name != "0");
    assert_eq!(target.tasks[0].wchan.is_some(), is_named);
    let live = LiveTarget::open(pid).expect("it lives");
    let [grandchild] = live.children_of(pid)[..] else { panic!("not one child") };
    let grandchild = wait_until(grandchild, "reading", |target| sleeps_in(&target.tasks[0], CallKind::Read));
    assert_eq!(grandchild.name, "program");
}

#[test]
fn a_process_whose_first_thread_has_ended_still_has_memory_and_descriptors() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = "#include <pthread.h>\n#include <unistd.h>\n\
        static void *rest(void *a) { char c; read(0, &c, 1); return a; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, rest, 0); pthread_exit(0); }\n";
    let child = run_c(&directory, source);
    let pid = child.0.id();
    let target = wait_until(pid, "without its first thread", |target| {
        target.tasks.len() == 2
            && target.tasks[0].state == RunState::Zombie
            && sleeps_in(&target.tasks[1], CallKind::Read)
            // The thread through which it was opened may have ended since.
            && target.modules.iter().any(|module| module.is_executable)
    });
    assert!(!target.tasks[0].hidden);
    let live = LiveTarget::open(pid).expect("it lives");
    let mut bytes = [0; 8];
    let sp = target.tasks[1].registers.expect("its registers").sp;
    assert_eq!(live.memory(&target.mappings).read(sp, &mut bytes), Ok(()));
    let input = live.descriptors().get(0).expect("its input");
    assert!(matches!(input.kind, DescriptorKind::Pipe { .. }), "{input:?}");
    // Its program is found through the root directory of the other thread.
    let shown = read_rip(["stacks", &pid.to_string()]).stdout;
    assert!(shown.contains("rest"), "{shown}");
}

#[test]
fn a_traced_thread_names_its_tracer() {
    let directory = tempfile::tempdir().expect("a directory");
    // The child does not stay when the test ends its parent.
    let source = "#include <signal.h>\n#include <sys/prctl.h>\n#include <sys/ptrace.h>\n#include <unistd.h>\n\
        int main(void) { if (fork() == 0) { prctl(PR_SET_PDEATHSIG, SIGKILL);\n\
        ptrace(PTRACE_TRACEME, 0, 0, 0); raise(SIGSTOP); _exit(0); }\n\
        char c; read(0, &c, 1); }\n";
    let tracer = run_c(&directory, source);
    let tracer_pid = tracer.0.id();
    let live = LiveTarget::open(tracer_pid).expect("it lives");
    let deadline = Instant::now() + PATIENCE;
    let child = loop {
        match live.children_of(tracer_pid)[..] {
            [child] => break child,
            _ => assert!(Instant::now() < deadline, "no child"),
        }
    };
    let target = wait_until(child, "traced", |target| target.tasks[0].state == RunState::Traced);
    assert_eq!(target.tasks[0].tracer, Some(tracer_pid));
}

#[test]
fn descriptors_say_what_they_are() {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a socket");
    let unix = UnixListener::bind(&path).expect("a socket");
    let file = std::fs::File::create(directory.path().join("file")).expect("a file");
    let live = own();
    let descriptors = live.descriptors();
    let kind = |descriptor: &dyn AsRawFd| {
        descriptors.get(descriptor.as_raw_fd() as u32).map(|descriptor| descriptor.kind)
    };
    let address = |address: std::io::Result<std::net::SocketAddr>| address.expect("an address");
    let local = address(listener.local_addr());
    assert_eq!(kind(&listener), Some(DescriptorKind::Tcp { local, peer: None, state: "LISTEN" }));
    let (local, peer) = (address(client.local_addr()), Some(address(client.peer_addr())));
    assert_eq!(kind(&client), Some(DescriptorKind::Tcp { local, peer, state: "ESTABLISHED" }));
    let name = Some(path.to_str().expect("text").to_owned());
    let of_unix = kind(&unix);
    assert!(
        matches!(&of_unix, Some(DescriptorKind::Unix { name: found, peers, .. }) if *found == name && peers.is_empty()),
        "{of_unix:?}"
    );
    assert_eq!(kind(&file), Some(DescriptorKind::File(directory.path().join("file"))));
    assert_eq!(descriptors.get(u32::MAX), None);
}

#[test]
fn a_thread_of_the_kernel_is_none_of_a_program() {
    let threads = (2..100).map(LiveTarget::open);
    let found = threads.filter_map(Result::err).find(|error| matches!(error, Error::KernelThread { .. }));
    let Some(error) = found else {
        println!(
            "a_thread_of_the_kernel_is_none_of_a_program: this PID namespace has no thread of the kernel"
        );
        return;
    };
    assert!(error.to_string().ends_with("is a thread of the kernel, not a program"), "{error}");
}

/// Whether this is root, who alone can provoke what the test is about.
fn is_root(test: &str) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        println!("{test}: skipped, only root can do this");
    }
    is_root
}

#[test]
fn a_process_of_another_user_shows_states_and_names_and_says_why_not_more() {
    if !is_root("a_process_of_another_user_shows_states_and_names_and_says_why_not_more") {
        return;
    }
    let child = run("cat", &[]);
    let pid = child.0.id();
    wait_until(pid, "reading", |target| sleeps_in(&target.tasks[0], CallKind::Read));
    // This changes the rights of one thread, and not of the process.
    let reader = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root can");
        let live = LiveTarget::open(pid).expect("it may be seen");
        let target = live.target().expect("it lives");
        let read = live.memory(&target.mappings).read(0x1000, &mut [0]);
        (target, read)
    });
    let (target, read) = reader.join().expect("no panic");
    let task = &target.tasks[0];
    assert_eq!((task.name.as_str(), task.state, task.sleep), ("cat", RunState::Sleeping, None));
    assert!(task.hidden && task.registers.is_none());
    assert_eq!(read, Err(Unreadable::Refused));
    assert_eq!((target.name.as_str(), target.mappings.len(), target.modules.len()), ("cat", 0, 0));
    let hidden = target.hidden.expect("a reason");
    assert_eq!(hidden, Hidden::OtherUser(0));
    assert_eq!(hidden.to_string(), "the process belongs to another user (0)");
    assert!(hidden.remedy().is_some());
}

#[test]
fn a_process_of_a_container_has_the_ids_of_both_sides() {
    if !is_root("a_process_of_a_container_has_the_ids_of_both_sides") {
        return;
    }
    let outer = run("unshare", &["--pid", "--fork", "--kill-child", "cat"]);
    let outer_pid = outer.0.id();
    let live = LiveTarget::open(outer_pid).expect("it lives");
    let deadline = Instant::now() + PATIENCE;
    let pid = loop {
        match live.children_of(outer_pid)[..] {
            [pid] => break pid,
            _ => assert!(Instant::now() < deadline, "no child"),
        }
    };
    let target = wait_until(pid, "reading", |target| sleeps_in(&target.tasks[0], CallKind::Read));
    assert_eq!((target.pid, target.own_pid), (pid, 1));
    assert_eq!((target.tasks[0].tid, target.tasks[0].own_tid), (pid, 1));
    assert!(processes_with_pid_in_container(1).contains(&pid));
    assert!(!processes_with_pid_in_container(1).contains(&std::process::id()));
}

/// A control group of this test, removed with it.
struct Group(std::path::PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_frozen_process_says_so() {
    let test = "a_frozen_process_says_so";
    let name = format!("rip-test-{}", std::process::id());
    let roots =
        ["/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(std::path::Path::new);
    let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists());
    let group = root.map(|root| root.join(&name)).filter(|path| std::fs::create_dir(path).is_ok()).map(Group);
    let Some(group) = group else {
        println!("{test}: skipped, no control group can be made here");
        return;
    };
    // One sleeps in a call, and the other one runs.
    for program in [&["cat"][..], &["sh", "-c", "while :; do :; done"]] {
        frozen_process_says_so(&group, program);
    }
}

fn frozen_process_says_so(group: &Group, program: &[&str]) {
    let child = run(program[0], &program[1..]);
    let pid = child.0.id();
    let write =
        |file: &str, text: &str| std::fs::write(group.0.join(file), text).expect("a file of the group");
    write("cgroup.procs", &pid.to_string());
    assert_eq!(
        LiveTarget::open(pid).and_then(|live| live.target()).expect("it lives").freezer,
        Some(Freezer::Thawed)
    );
    let (file, frozen, thawed) = if group.0.join("freezer.state").exists() {
        ("freezer.state", "FROZEN", "THAWED")
    } else {
        ("cgroup.freeze", "1", "0")
    };
    // A child that is frozen cannot be ended.
    struct Thaw<'a>(&'a std::path::Path, &'a str);
    impl Drop for Thaw<'_> {
        fn drop(&mut self) {
            let _ = std::fs::write(self.0, self.1);
        }
    }
    let path = group.0.join(file);
    let thaw = Thaw(&path, thawed);
    write(file, frozen);
    let switch = group.0.join(file);
    let by_this_group = Some(Freezer::Frozen { switch: switch.clone() });
    wait_until(pid, "frozen", |target| target.freezer == by_this_group);
    let check = read_rip(["check", &pid.to_string()]);
    let command = format!("`echo {thawed} > {}`", switch.display());
    assert!(check.status == 1 && check.stdout.contains("proven frozen: "), "{check:#?}");
    assert!(check.stdout.contains(&command), "{command}\n{check:#?}");
    drop(thaw);
    wait_until(pid, "thawed", |target| target.freezer == Some(Freezer::Thawed));
}

#[test]
fn a_second_reading_completes_what_the_first_one_leaves_out() {
    let sleeper = run("sleep", &["1000"]);
    let pid = sleeper.0.id();
    wait_until(pid, "asleep", |target| sleeps_in(&target.tasks[0], CallKind::Sleep));
    let live = LiveTarget::open(pid).expect("a process");
    let whole = live.tasks().expect("its thread");
    let first = live.tasks_at_first().expect("its thread");
    assert_eq!((first[0].name.as_str(), first[0].start_ticks), ("", 0));
    assert_eq!((first[0].sleep, first[0].registers), (whole[0].sleep, whole[0].registers));
    assert_eq!(live.tasks_again(&first), whole);
    // One that ran between the two readings is read as a whole.
    let moved = Task { schedule: None, ..first[0].clone() };
    assert_eq!(live.tasks_again(&[moved]), whole);
    drop(sleeper);
    assert_eq!(live.tasks_again(&first), []);
}
