//! What stuck threads wait for: real objects of this machine's C libraries.
//!
//! `programs/stuck.c` gets a thread stuck and says in what. Each test reads it with the function names that a debugger
//! shows, and without any, as in a stripped static program.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::victim::{DEADLINE, Plan, Victim};
use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::stacks::Unwinder;
use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::Task;
use read_rip_evidence::waits::{
    Basis, Clue, FutexWait, MutexType, Owner, Preference, Protocol, Role, UnknownOwner, WaitKind, Waits,
};
use read_rip_symbols::{FunctionNames, Options};

use crate::support::sleepers::Names;
use crate::support::unprepared::{compile, futex};

/// A thread that is stuck.
struct Stuck {
    victim: Victim,
    waiter: u32,
    object: u64,
    owner: u32,
}

impl Stuck {
    /// Runs a program, and returns when its thread sleeps in a futex.
    fn start(program: &Path, object: &str) -> Stuck {
        let mut victim = Plan::new(program, &[object]).start();
        let line = victim.line();
        let fields: Vec<&str> = line.split(' ').collect();
        let &[waiter, address, owner] = fields.as_slice() else { panic!("{object}: {line}") };
        let stuck = Stuck {
            waiter: waiter.parse().unwrap(),
            object: u64::from_str_radix(address, 16).unwrap(),
            owner: owner.parse().unwrap(),
            victim,
        };
        let live = stuck.live();
        let deadline = Instant::now() + DEADLINE;
        // The other threads too: a condition variable that one of them leaves or comes to is not at rest.
        let is_at_rest = |tasks: &[Task]| {
            let waiter = tasks.iter().find(|task| task.tid == stuck.waiter);
            waiter.is_some_and(|task| futex(task).is_some()) && tasks.iter().all(|task| task.sleep.is_some())
        };
        while !is_at_rest(&live.tasks().unwrap()) {
            assert!(Instant::now() < deadline, "{object}: a thread does not wait");
            librip_test_kit::pause();
        }
        stuck
    }

    fn live(&self) -> LiveTarget {
        LiveTarget::open(self.victim.pid()).unwrap()
    }

    /// What its thread waits for, by these function names.
    fn wait(&self, frames: &[&str]) -> FutexWait {
        let live = self.live();
        let target = live.target().unwrap();
        let memory = live.memory(&target.mappings);
        let waits = Waits::new(&target, &memory, &[]);
        let index = target.tasks.iter().position(|task| task.tid == self.waiter).unwrap();
        waits.of(index, &Clue::of(frames)).unwrap()
    }

    /// The function names of its thread's stack, innermost first. Without debug information, the C library has names
    /// for its exported functions only.
    fn frames(&self) -> Vec<String> {
        let live = self.live();
        let target = live.target().unwrap();
        let memory = live.memory(&target.mappings);
        let options = Options { debug_dirs: Vec::new(), ..Options::default() };
        let mut unwinder = Unwinder::new(&target, &memory, options);
        let task = target.tasks.iter().find(|task| task.tid == self.waiter).unwrap();
        let names = Names::new(&target).of(unwinder.stack(task.registers.as_ref())).names;
        names
            .into_iter()
            .map(|name| if name.starts_with("0x") || name == "?" { String::new() } else { name })
            .collect()
    }

    /// What its thread waits for, by its own stack.
    fn wait_by_stack(&self) -> FutexWait {
        let frames = self.frames();
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        println!("{frames:?}");
        self.wait(&frames)
    }

    /// The owner that the program says.
    fn owner(&self) -> Owner {
        Owner::Tid(self.owner)
    }
}

fn build(name: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    compile("stuck.c", name, compiler, &[&["-g", "-O1", "-pthread"], flags].concat())
}

/// The program, linked with this machine's C library.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("stuck", "cc", &[]).expect("a C compiler"))
}

/// A mutex of glibc.
fn mutex(of_type: MutexType, is_robust: bool, protocol: Protocol, is_shared: bool) -> WaitKind {
    WaitKind::Mutex { of_type, is_robust, protocol, is_shared }
}

const LOCK: &[&str] = &["futex_wait", "__GI___lll_lock_wait", "___pthread_mutex_lock", "lock_mutex"];

/// Mutexes of all kinds, and what they are.
fn mutexes() -> [(&'static str, WaitKind); 11] {
    use MutexType::{Adaptive, ErrorChecking, Normal, Recursive};
    let plain = |of_type| mutex(of_type, false, Protocol::None, false);
    [
        ("normal", plain(Normal)),
        ("timed", plain(Normal)),
        ("self", plain(Normal)),
        ("recursive", plain(Recursive)),
        ("error-checking", plain(ErrorChecking)),
        ("adaptive", plain(Adaptive)),
        ("shared", mutex(Normal, false, Protocol::None, true)),
        ("robust", mutex(Normal, true, Protocol::None, true)),
        ("robust-shared", mutex(ErrorChecking, true, Protocol::None, true)),
        ("inheriting", mutex(Normal, false, Protocol::Inherit, false)),
        ("robust-inheriting", mutex(Recursive, true, Protocol::Inherit, true)),
    ]
}

/// Checks all mutexes of a program of glibc.
fn check_mutexes(program: &Path) {
    for (object, kind) in mutexes() {
        let stuck = Stuck::start(program, object);
        for (frames, basis) in [(LOCK, Basis::Stack), (&[], Basis::Bytes)] {
            let wait = stuck.wait(frames);
            assert_eq!((wait.kind, wait.owner, wait.basis), (kind, stuck.owner(), basis), "{object}");
            assert_eq!(wait.object, Some(stuck.object), "{object}");
            assert_eq!((wait.is_timed, wait.is_exclusive), (object == "timed", true), "{object}");
        }
        let by_stack = stuck.wait_by_stack();
        assert_eq!((by_stack.kind, by_stack.owner), (kind, stuck.owner()), "{object}");
        // Nothing has changed, so a second reading is the same.
        assert_eq!(stuck.wait(LOCK), stuck.wait(LOCK));
    }
}

#[test]
fn each_kind_of_mutex_names_its_owner() {
    check_mutexes(program());
}

#[test]
fn a_static_program_has_the_same_mutexes() {
    if let Some(program) = build("stuck-static", "cc", &["-static"]) {
        check_mutexes(&program);
    }
}

#[test]
fn a_mutex_whose_owner_has_ended_has_no_owner() {
    let stuck = Stuck::start(program(), "abandoned");
    assert!(matches!(stuck.wait(LOCK).owner, Owner::Unknown(UnknownOwner::NotHere(_))));
    assert_eq!(stuck.wait(&[]).kind, WaitKind::Unknown);
}

const READ: &[&str] =
    &["", "__futex_abstimed_wait64", "__pthread_rwlock_rdlock_full64", "___pthread_rwlock_rdlock"];
const WRITE: &[&str] =
    &["", "__futex_abstimed_wait64", "__pthread_rwlock_wrlock_full64", "___pthread_rwlock_wrlock"];

#[test]
fn a_readers_writer_lock_names_its_writer() {
    let kind = WaitKind::ReadWriteLock { readers: 0, preference: Some(Preference::Readers) };
    for (object, frames, is_exclusive) in
        [("read-after-writer", READ, false), ("write-after-writer", WRITE, true)]
    {
        let stuck = Stuck::start(program(), object);
        for (frames, basis) in [(frames, Basis::Stack), (&[], Basis::Bytes)] {
            let wait = stuck.wait(frames);
            assert_eq!((wait.kind, wait.owner, wait.basis), (kind, stuck.owner(), basis), "{object}");
            assert_eq!((wait.object, wait.is_exclusive), (Some(stuck.object), is_exclusive), "{object}");
        }
    }
}

#[test]
fn a_readers_writer_lock_counts_its_readers() {
    for (object, frames, readers, preference) in [
        ("write-after-readers", WRITE, 2, Preference::Readers),
        ("read-behind-writer", READ, 1, Preference::Writers),
    ] {
        let stuck = Stuck::start(program(), object);
        let wait = stuck.wait(frames);
        let kind = WaitKind::ReadWriteLock { readers, preference: Some(preference) };
        assert_eq!((wait.kind, wait.object), (kind, Some(stuck.object)), "{object}");
        assert_eq!(wait.owner, Owner::Unknown(UnknownOwner::Readers(readers)), "{object}");
        assert_eq!(stuck.wait(&[]).kind, WaitKind::Unknown, "{object}");
    }
}

#[test]
fn objects_without_an_owner_are_known_by_the_function_and_by_nothing_else() {
    let condition = WaitKind::Condition { mutex: None };
    let cases: &[(&str, &[&str], WaitKind, Owner)] = &[
        ("condition", &["", "___pthread_cond_wait"], condition, Owner::Nobody),
        ("condition-timed", &["", "___pthread_cond_timedwait64"], condition, Owner::Nobody),
        ("condition-later", &["", "pthread_cond_wait@@GLIBC_2.3.2"], condition, Owner::Nobody),
        ("semaphore", &["", "__new_sem_wait_slow64"], WaitKind::Semaphore { value: 0 }, Owner::Nobody),
        ("barrier", &["___pthread_barrier_wait"], WaitKind::Barrier { arrived: Some((1, 3)) }, Owner::Nobody),
        (
            "once",
            &["futex_wait", "__pthread_once_slow"],
            WaitKind::Once,
            Owner::Unknown(UnknownOwner::NotStored),
        ),
    ];
    for &(object, frames, kind, owner) in cases {
        let stuck = Stuck::start(program(), object);
        let wait = stuck.wait(frames);
        let by_stack = stuck.wait_by_stack();
        // The functions of some objects jump to others, which have no names without debug information.
        let has_no_name = matches!(object, "once" | "semaphore") && by_stack.kind == WaitKind::Unknown;
        assert!(by_stack.kind == kind || has_no_name, "{object} {by_stack:?}");
        assert_eq!((wait.kind, wait.owner, wait.object), (kind, owner, Some(stuck.object)), "{object}");
        assert_eq!(wait.is_timed, object == "condition-timed", "{object}");
        assert_eq!(stuck.wait(&[]).kind, WaitKind::Unknown, "{object}");
        assert_eq!(stuck.wait(LOCK).owner, Owner::Unknown(UnknownOwner::Senseless), "{object}");
    }
}

/// In a C library without a symbol table, the functions that wait have no names: `sem_wait` and `pthread_once` jump to
/// them. The calls in the program say what was called.
#[test]
fn a_function_that_ends_with_a_jump_is_known_by_the_call() {
    for (object, kind) in [("semaphore", WaitKind::Semaphore { value: 0 }), ("once", WaitKind::Once)] {
        let stuck = Stuck::start(program(), object);
        let live = stuck.live();
        let target = live.target().unwrap();
        let memory = live.memory(&target.mappings);
        let options = || Options { debug_dirs: Vec::new(), ..Options::default() };
        let mut unwinder = Unwinder::new(&target, &memory, options());
        let mut names = FunctionNames::new(&target.modules, options());
        let index = target.tasks.iter().position(|task| task.tid == stuck.waiter).unwrap();
        let seen = Standings::new(target.clone(), &memory, &mut unwinder, &mut names);
        let wait = seen.threads[index].wait.as_ref().unwrap();
        assert_eq!((wait.kind, wait.object), (kind, Some(stuck.object)), "{:?}", stuck.frames());
    }
}

#[test]
fn a_join_names_the_joined_thread() {
    for object in ["join", "join-timed"] {
        let stuck = Stuck::start(program(), object);
        for frames in [&["", "__pthread_clockjoin_ex"][..], &[]] {
            let wait = stuck.wait(frames);
            assert_eq!((wait.kind, wait.owner), (WaitKind::Join, stuck.owner()), "{object}");
            assert_eq!(wait.is_timed, object == "join-timed");
        }
    }
}

#[test]
fn locks_of_the_library_name_their_owners() {
    let stuck = Stuck::start(program(), "stream");
    for frames in [&["futex_wait", "__GI___lll_lock_wait_private", "__GI__IO_fwrite"][..], &[]] {
        let wait = stuck.wait(frames);
        assert_eq!((wait.kind, wait.owner), (WaitKind::LibraryLock, stuck.owner()));
    }
    assert_eq!(stuck.wait_by_stack().owner, stuck.owner());
    // The lock of the dynamic loader is a recursive mutex.
    let stuck = Stuck::start(program(), "loader");
    let wait = stuck.wait(&[]);
    let recursive = mutex(MutexType::Recursive, false, Protocol::None, false);
    assert_eq!((wait.kind, wait.owner), (recursive, stuck.owner()));
    let by_stack = stuck.wait_by_stack();
    assert_eq!((by_stack.basis, by_stack.construct.unwrap().role), (Basis::Stack, Role::Loader));
}

#[test]
fn objects_of_musl_are_recognised() {
    let Some(program) = build("stuck-musl", "musl-gcc", &["-static"]) else { return };
    let lock = &["__timedwait_cp", "__timedwait", "__pthread_mutex_timedlock", "__pthread_mutex_lock"];
    let owned = |stuck: &Stuck| Owner::Tid(stuck.owner);
    let not_stored = Owner::Unknown(UnknownOwner::NotStored);

    let stuck = Stuck::start(&program, "normal");
    for frames in [&lock[..], &[]] {
        let wait = stuck.wait(frames);
        assert_eq!((wait.owner, wait.object), (not_stored, Some(stuck.object)), "{frames:?}");
        assert!(matches!(wait.kind, WaitKind::Mutex { .. }), "{wait:?}");
    }
    for object in ["recursive", "error-checking", "robust", "robust-shared", "inheriting"] {
        let stuck = Stuck::start(&program, object);
        for frames in [&lock[..], &[]] {
            let wait = stuck.wait(frames);
            assert_eq!((wait.owner, wait.object), (owned(&stuck), Some(stuck.object)), "{object} {frames:?}");
        }
    }
    let cases: &[(&str, &[&str], WaitKind)] = &[
        (
            "read-after-writer",
            &["__timedwait", "__pthread_rwlock_timedrdlock"],
            WaitKind::ReadWriteLock { readers: 0, preference: None },
        ),
        (
            "write-after-readers",
            &["__timedwait", "__pthread_rwlock_timedwrlock"],
            WaitKind::ReadWriteLock { readers: 2, preference: None },
        ),
        ("condition", &["__timedwait_cp", "__pthread_cond_timedwait"], WaitKind::Condition { mutex: None }),
        ("semaphore", &["__timedwait_cp", "sem_timedwait"], WaitKind::Semaphore { value: 0 }),
        ("barrier", &["__wait", "pthread_barrier_wait"], WaitKind::Barrier { arrived: None }),
        ("once", &["__wait", "__pthread_once_full"], WaitKind::Once),
        ("join", &["__timedwait_cp", "__pthread_timedjoin_np"], WaitKind::Join),
        ("stream", &["__lockfile", "fputs"], WaitKind::LibraryLock),
    ];
    for &(object, frames, kind) in cases {
        let stuck = Stuck::start(&program, object);
        let wait = stuck.wait(frames);
        assert_eq!(wait.kind, kind, "{object}");
        if matches!(kind, WaitKind::Join | WaitKind::LibraryLock) {
            assert_eq!(wait.owner, owned(&stuck), "{object}");
        }
        if let WaitKind::Condition { .. } = kind {
            assert_eq!(stuck.wait(&[]).kind, WaitKind::Unknown);
        }
    }
}
