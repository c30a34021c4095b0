//! `read-rip CORE`: core files of the kernel, of gcore and of the kit, whole and damaged.
//!
//! The kit's core files are made everywhere. Those of the kernel need a `core_pattern` that leaves them in the working
//! directory, and those of gcore need gdb: without them, a line says that the test did nothing.

use std::fs::{self, File};
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use librip_test_kit::core;
use librip_test_kit::tool::{copy_program, is_installed};
use librip_test_kit::victim::{Plan, tempdir};
use nix::sys::resource::Resource;
use tempfile::TempDir;

use crate::support::run::{Outcome, read_rip, show};
use crate::support::synth::{Held, Ring, Site, Slot, Task};
use crate::support::unprepared::{Stuck, compile, compile_rust, contains, deadlocks, is_proven_deadlock};

/// A stuck program, and a core file of it.
struct Cored {
    directory: TempDir,
    path: PathBuf,
    pid: u32,
}

/// A core file of two threads that wait for one another.
fn deadlock() -> Cored {
    let directory = tempdir();
    let path = directory.path().join("core");
    let stuck = Stuck::start(deadlocks(), &["normal"], 2);
    core::write(stuck.0.pid(), 6, &path);
    Cored { directory, path, pid: stuck.0.pid() }
}

impl Cored {
    /// Another file with these bytes.
    fn with(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// The only finding is a proven deadlock, which trusts memory.
#[track_caller]
fn is_proven(path: &Path) -> Outcome {
    are_proven(path, 1..=1)
}

/// There are so many findings, and each is a proven deadlock.
fn are_proven(path: &Path, count: RangeInclusive<usize>) -> Outcome {
    let outcome = show(&["check", "--json"], path);
    let found = outcome.data("finding");
    assert!(count.contains(&found.len()), "{outcome:#?}");
    found.iter().for_each(is_proven_deadlock);
    outcome
}

#[test]
fn a_deadlock_is_proven_from_a_core_alone() {
    let core = deadlock();
    assert_eq!(is_proven(&core.path).status, 1);
    let check = show(&["check"], &core.path);
    contains(&check.stdout, &["waits for savings", "waits for current_account", " at transfer deadlocks.c:"]);
    let view = show(&[], &core.path).sound();
    let heading = format!("deadlocks[{}], core file: 3 threads", core.pid);
    assert_eq!(view.heading(), heading);
    contains(view.result(), &["ended by SIGABRT in deadlocks[", "waiting for the mutex savings"]);
    contains(view.result(), &["check: proven deadlock: 2 threads wait for one another"]);
    let stacks = show(&["stacks"], &core.path).sound();
    contains(
        &stacks.stdout,
        &["pthread_mutex_lock", "    transfer deadlocks.c:", "    transfers deadlocks.c:"],
    );
    let threads = show(&["-t"], &core.path).sound();
    assert_eq!(threads.stdout.lines().count(), 4, "{threads:#?}");
    let locks = show(&["locks"], &core.path).sound();
    contains(&locks.stdout, &["savings", "current_account", "held by thread["]);
}

#[test]
fn a_program_without_a_build_id_is_used_if_its_file_has_what_the_core_has() {
    let flags = ["-g", "-O1", "-pthread", "-Wl,--build-id=none"];
    let compiled = compile("deadlocks.c", "unidentified", "cc", &flags).expect("a C compiler");
    let directory = tempdir();
    let (program, path) = (directory.path().join("unidentified"), directory.path().join("core"));
    copy_program(&compiled, &program);
    let stuck = Stuck::start(&program, &["normal"], 2);
    core::write(stuck.0.pid(), 6, &path);
    is_proven(&path);
    let names = ["waits for savings", " at transfer deadlocks.c:"];
    contains(&show(&["check"], &path).stdout, &names);
    // The file is of another time, or another one.
    drop(stuck);
    let is_unused = || {
        let check = show(&["check"], &path);
        assert!(
            !check.stdout.contains("deadlocks.c") && check.stderr.contains("name the program with -e"),
            "{check:#?}"
        );
    };
    let (made, later) = (fs::metadata(&path).unwrap().modified().unwrap(), std::time::Duration::from_secs(9));
    let set_modified = |time| File::open(&program).unwrap().set_modified(time).unwrap();
    set_modified(made + later);
    is_unused();
    // Nobody may write to the file of a program that runs.
    let replace = |bytes: &[u8]| {
        fs::remove_file(&program).unwrap();
        fs::write(&program, bytes).unwrap();
    };
    let mut bytes = fs::read(&program).unwrap();
    // A length in a program header.
    bytes[64 + 56 + 32] ^= 1;
    replace(&bytes);
    set_modified(made - later);
    is_unused();
    replace(&fs::read(&compiled).unwrap());
    set_modified(made - later);
    contains(&show(&["check"], &path).stdout, &names);
}

#[test]
fn deadlocks_through_robust_and_inheriting_mutexes_are_proven_from_a_core() {
    for case in ["robust", "inheriting-and-normal", "inheriting"] {
        let directory = tempdir();
        let path = directory.path().join("core");
        let stuck = Stuck::start(deadlocks(), &[case], 2);
        core::write(stuck.0.pid(), 6, &path);
        // The kernel refuses one of two inheriting mutexes, or both if the threads ask for them at the same moment.
        let count = if case == "inheriting" { 1..=2 } else { 1..=1 };
        assert_eq!(are_proven(&path, count).status, 1, "{case}");
    }
}

#[test]
fn compressed_cores_are_read() {
    let core = deadlock();
    let bytes = fs::read(&core.path).unwrap();
    let gzip = core.directory.path().join("core.gz");
    librip_test_kit::gzip(&bytes, &gzip);
    let zstd = ruzstd::encoding::compress_to_vec(&*bytes, ruzstd::encoding::CompressionLevel::Fastest);
    let lz4 = core.directory.path().join("core.lz4");
    let mut encoder = lz4_flex::frame::FrameEncoder::new(File::create(&lz4).unwrap());
    encoder.write_all(&bytes).unwrap();
    encoder.finish().unwrap();
    for path in [gzip, core.with("core.zst", &zstd), lz4] {
        assert_eq!(is_proven(&path).status, 1, "{path:?}");
    }
}

#[test]
fn a_core_that_was_cut_gives_what_it_has() {
    let core = deadlock();
    let bytes = fs::read(&core.path).unwrap();
    // All but the last page: the memory of the locks is there.
    let cut = core.with("cut", &bytes[..bytes.len() - 4096]);
    let outcome = is_proven(&cut);
    assert_eq!(outcome.status, 2);
    show(&[], &cut).fails_with("the core file was cut");
    let mut len = bytes.len();
    while len > 20 {
        len /= 2;
        let outcome = show(&["check"], &core.with("cut", &bytes[..len]));
        assert_eq!(outcome.status, 2, "{len} bytes: {outcome:#?}");
        assert!(outcome.stderr.contains("\nHint: "), "{len} bytes: {outcome:#?}");
    }
    // Nothing of the memory, which begins with the first segment after the notes: nothing is claimed about locks.
    let memory_at = u64::from_le_bytes(*bytes[64 + 56 + 8..].first_chunk().unwrap());
    let notes = core.with("cut", &bytes[..memory_at as usize]);
    assert!(!show(&["check"], &notes).stdout.contains("deadlock:"));
}

#[test]
fn a_core_without_files_says_so_and_proves_the_deadlock() {
    let core = deadlock();
    let mut bytes = fs::read(&core.path).unwrap();
    let kind = core::NT_FILE.to_le_bytes();
    let at = bytes.windows(4).position(|word| word == kind).unwrap();
    bytes[at] ^= 1;
    let path = core.with("bare", &bytes);
    is_proven(&path);
    let view = show(&["-e", deadlocks().to_str().unwrap()], &path);
    contains(&view.stdout, &["waiting for the mutex savings"]);
    contains(&view.stderr, &["does not say which files were mapped"]);
}

#[test]
fn cores_of_other_processors_and_what_is_no_core_are_refused_in_one_sentence() {
    let core = deadlock();
    let bytes = fs::read(&core.path).unwrap();
    for (at, value, what) in [(18, 243, "RISC-V"), (18, 3, "32-bit x86"), (4, 1, "")] {
        let mut bytes = bytes[..8192].to_vec();
        bytes[at] = value;
        bytes[19] = 0;
        show(&["check"], &core.with("other", &bytes)).fails_with(&format!("is the core of a {what}"));
    }
    show(&[], &core.with("short", &bytes[..60])).fails_with("shorter than its header");
    for command in ["info", "save"] {
        show(&[command], &core.path).fails_with("is a core file, and this command is for rings");
    }
    // A program is no core.
    show(&[], deadlocks()).fails_with("is not a ring");
}

#[test]
fn a_ring_of_another_process_is_not_joined() {
    let core = deadlock();
    let ring = crate::support::fixture::Fixture::of(&crate::support::fixture::sound_ring());
    let options = ["--ring", ring.path.to_str().unwrap()];
    show(&options, &core.path).fails_with("is not its ring");
}

/// A ring of a process, whose first thread has a name there.
fn ring_of(pid: u32) -> Ring {
    let ring = Ring::new().with_sites(&[(0x1000, "src/a.rs", 1)]);
    Ring { pid, ..ring.with_slots([Slot::thread("chief", pid).marks([0x1000])]) }
}

#[test]
fn the_ring_that_is_named_is_joined() {
    let core = deadlock();
    let ring = crate::support::fixture::Fixture::of(&ring_of(core.pid));
    let options = ["--ring", ring.path.to_str().unwrap()];
    let view = show(&options, &core.path).sound();
    assert_eq!(view.heading(), format!("deadlocks[{}], core file and ring: 3 threads", core.pid));
    contains(
        &view.stdout,
        &["ended by SIGABRT in chief[", "check: proven deadlock: 2 threads wait for one another"],
    );
}

#[test]
fn the_tasks_of_the_ring_are_shown_and_judged_with_the_core() {
    let core = deadlock();
    let task = |turn, entries: &[(u64, bool, Option<u64>)]| Task {
        turn,
        counts_wakes: true,
        wakers: Some(1),
        entry_turns: entries.to_vec(),
        ..Task::new()
    };
    let of_future = |held: Held| Held { recursion: 4095, ..held };
    let mut ring = ring_of(core.pid).with_clock(1);
    ring.sites.push(Site::new(0x2000, "src/a.rs", 2).of(6, 0x144, &[3]));
    let [waits, holds] = [2, 3].map(|state| move |lock| of_future(Held::new(state, lock, 0x2000)));
    ring.slots.extend([
        Slot::task("saver", 7, task(2, &[(1, true, None), (1, true, None)]))
            .has(holds(0x7000))
            .has(waits(0x7040)),
        Slot::task("spender", 8, task(4, &[(1, true, None), (3, true, None)]))
            .has(holds(0x7040))
            .has(waits(0x7000)),
    ]);
    let ring = crate::support::fixture::Fixture::of(&Ring { has_tasks: true, ..ring });
    let of_ring = ["--ring", ring.path.to_str().unwrap()];
    let tasks = show(&[&["tasks", "-t"], &of_ring[..]].concat(), &core.path).sound();
    contains(
        &tasks.stdout,
        &["saver[task 7]: suspended, waiting for ", "spender[task 8]: suspended, waiting for "],
    );
    assert!(tasks.stderr.contains("core file and ring: 3 threads; 2 tasks"), "{}", tasks.stderr);
    let check = show(&[&["check"], &of_ring[..]].concat(), &core.path);
    contains(
        &check.stdout,
        &["proven deadlock: 2 threads wait for one another", "proven deadlock: 2 tasks wait for one another"],
    );
}

#[test]
fn the_rings_pages_in_a_core_are_read() {
    const PID: u32 = 4711;
    const RING: u64 = 0x1000_0000;
    let file = crate::support::fixture::Fixture::of(&ring_of(PID));
    let ring = fs::read(&file.path).unwrap();
    let end = RING + ring.len() as u64;
    let mut files: Vec<u8> = [1, 4096, RING, end, 0].into_iter().flat_map(u64::to_le_bytes).collect();
    // The name says what it is. The file is gone.
    files.extend(b"/nowhere/rip.server.4711.1f\0");
    let mut process = vec![0; 136];
    process[24..28].copy_from_slice(&PID.to_le_bytes());
    let status = core::status_of(PID, 11, &[0; 34]);
    let notes = [core::note(1, &status), core::note(3, &process), core::note(core::NT_FILE, &files)].concat();
    let (notes_at, ring_at) = (64 + 2 * 56, 64 + 2 * 56 + notes.len() as u64);
    let length = ring.len() as u64;
    let bytes = [
        core::elf_header(2),
        core::program_header(4, 4, notes_at, 0, notes.len() as u64, 0),
        core::program_header(1, 6, ring_at, RING, length, length),
        notes,
        ring,
    ];
    let path = file.directory.path().join("core");
    fs::write(&path, bytes.concat()).unwrap();
    let view = show(&[], &path).sound();
    contains(&view.stdout, &["core file and ring: 1 thread", "ended by SIGSEGV in chief[4711]"]);
}

/// The directory in which the kernel leaves cores, if it does so for tests. Prints a line if it does not.
fn leaves_cores(test: &str) -> bool {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let leaves = !pattern.trim().is_empty() && !pattern.starts_with('|') && !pattern.contains('/');
    if !leaves {
        eprintln!("SKIPPED {test}: the kernel's core_pattern leaves no cores in working directories");
    }
    leaves
}

/// A plan that ends in its own directory with a core.
fn plan(program: &Path, arguments: &[&str]) -> Plan {
    let plan = Plan::new(program, arguments).limit(Resource::RLIMIT_CORE, nix::libc::RLIM_INFINITY);
    let directory = plan.dir().to_owned();
    plan.before(move || Ok(nix::unistd::chdir(&directory)?))
}

fn core_in(directory: &Path) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_core =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core"));
    files.into_iter().find(is_core).expect("a core")
}

#[test]
fn the_kernels_core_of_a_crash_says_why() {
    if !leaves_cores("the_kernels_core_of_a_crash_says_why") {
        return;
    }
    let program = compile("fault.c", "fault", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler");
    let remains = plan(&program, &[]).run();
    let core = core_in(remains.dir());
    let view = show(&[], &core).sound();
    let fault =
        include_str!("../programs/fault.c").lines().position(|line| line.contains("the fault")).unwrap() + 1;
    contains(&view.stdout, &["ended by SIGSEGV (nothing is mapped at 0x10) in thread["]);
    contains(&view.stdout, &[&format!("]:\n    write_nowhere fault.c:{fault}\n    body fault.c:")]);
    let data = &show(&["--json"], &core).sound().data("core")[0];
    assert_eq!((&data["signal"], &data["fault_address"]), (&11.into(), &"0x10".into()), "{data:#}");
}

#[test]
fn the_kernels_core_of_a_deadlock_proves_it() {
    if !leaves_cores("the_kernels_core_of_a_deadlock_proves_it") {
        return;
    }
    let program = deadlocks();
    let stuck = Stuck::start_plan(plan(program, &["normal"]), 2);
    let mut victim = stuck.0;
    victim.signal(nix::libc::SIGABRT);
    let remains = victim.wait();
    let core = core_in(remains.dir());
    assert_eq!(is_proven(&core).status, 1);
    contains(&show(&[], &core).sound().stdout, &["ended by SIGABRT (sent by process "]);
}

/// The core file that gcore makes of a program; `None` if there is no gcore, or if it may not trace.
pub(crate) fn gcore(stuck: &Stuck, directory: &Path, test: &str) -> Option<PathBuf> {
    if !is_installed("gdb") || !is_installed("gcore") {
        eprintln!("SKIPPED {test}: gcore is not installed");
        return None;
    }
    let pid = stuck.0.pid().to_string();
    let made = Command::new("gcore").arg("-o").arg(directory.join("core")).arg(&pid).output().unwrap();
    let core = directory.join(format!("core.{pid}"));
    if !core.exists() {
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        eprintln!("SKIPPED {test}: gcore may not trace: {why}");
        return None;
    }
    Some(core)
}

#[test]
fn the_core_that_gcore_makes_of_a_deadlock_proves_it() {
    let stuck = Stuck::start(deadlocks(), &["normal"], 2);
    let directory = tempdir();
    let Some(core) = gcore(&stuck, directory.path(), "the_core_that_gcore_makes_of_a_deadlock_proves_it")
    else {
        return;
    };
    assert_eq!(is_proven(&core).status, 1);
    contains(
        &read_rip([core.as_os_str()]).sound().stdout,
        &["a debugger made the core of the living process"],
    );
}

/// A debugger leaves out the code, and no section has all of it. So no use of a static lock was known.
#[test]
fn the_holders_of_static_locks_are_presumed_in_the_core_that_gcore_makes() {
    let directory = tempdir();
    let program = compile_rust("deadlock.rs", "deadlock-rust-core", &["-g", "-O"]);
    let stuck = Stuck::start(&program, &[], 4);
    let test = "the_holders_of_static_locks_are_presumed_in_the_core_that_gcore_makes";
    let Some(core) = gcore(&stuck, directory.path(), test) else { return };
    let answer = show(&["check"], &core);
    contains(
        &answer.stdout,
        &["suspected deadlock: 2 threads wait for one another", "is presumed to hold deadlock::SAVINGS"],
    );
    assert_eq!(answer.status, 1, "{answer:#?}");
}

#[test]
fn a_core_of_busy_threads_is_not_called_stuck() {
    let program =
        compile("contended.c", "contended", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler");
    // The main thread waits for the others. Threads at the allocator wait for moments, if they wait at all.
    for (what, sleepers) in [("mutex", 5), ("allocator", 1)] {
        let stuck = Stuck::start(&program, &[what], sleepers);
        let directory = tempdir();
        let Some(core) = gcore(&stuck, directory.path(), "a_core_of_busy_threads_is_not_called_stuck") else {
            return;
        };
        let answer = show(&["check"], &core);
        assert!(answer.stdout.contains("not judged: ") || what == "allocator", "{answer:#?}");
        assert!(!answer.stdout.contains("suspected"), "{answer:#?}");
        assert_ne!(answer.status, 1, "{answer:#?}");
    }
}
