//! Objects as literal words, by glibc's and musl's public headers: layouts of other versions than this machine's.
//!
//! The end-to-end test `waits` has the real objects of this machine.

use std::cell::Cell;

use librip_test_kit::Random;

use super::testing::{Pieces, mapping, target};
use super::*;
use crate::target::Unreadable;

/// The threads of the target. The first one waits.
const TIDS: [u32; 4] = [501, 502, 503, 504];
const PRIVATE_WAIT: u64 = 0x80;
const SHARED_WAIT: u64 = 0;
const WAIT_UNTIL: u64 = 0x189;
const OBJECT: u64 = 0x7000_0000;

/// What a thread of a target waits for that has these words at `OBJECT`, and waits at an offset for a value.
fn wait_at(
    words: &[u32],
    offset: u64,
    operation: u64,
    value: u32,
    frames: &[&str],
    library: &str,
) -> FutexWait {
    let mut memory = Pieces::default();
    memory.put(OBJECT, words);
    let mut target = target(&TIDS, [OBJECT + offset, operation, u64::from(value), 0]);
    target.mappings = vec![mapping(library)];
    Waits::new(&target, &memory, &[]).of(0, &Clue::of(frames)).expect("it waits")
}

/// The same in a program of glibc.
fn glibc(words: &[u32], offset: u64, operation: u64, value: u32, frames: &[&str]) -> FutexWait {
    wait_at(words, offset, operation, value, frames, "/lib64/libc.so.6")
}

/// The same in a program of musl.
fn musl(words: &[u32], offset: u64, operation: u64, value: u32, frames: &[&str]) -> FutexWait {
    wait_at(words, offset, operation, value, frames, "/lib/ld-musl-x86_64.so.1")
}

const LOCK: &[&str] = &["__lll_lock_wait", "pthread_mutex_lock"];

/// A mutex that thread 502 has.
fn mutex(kind: u32) -> [u32; 10] {
    [2, 0, 502, 1, kind, 0, 0, 0, 0, 0]
}

fn mutex_kind(wait: &FutexWait) -> (MutexType, bool, Protocol) {
    let WaitKind::Mutex { of_type, is_robust, protocol, .. } = wait.kind else { panic!("{wait:?}") };
    (of_type, is_robust, protocol)
}

#[test]
fn a_mutex_has_its_kind_and_its_owner_with_and_without_function_names() {
    let kinds = [MutexType::Normal, MutexType::Recursive, MutexType::ErrorChecking, MutexType::Adaptive];
    for (number, of_type) in kinds.into_iter().enumerate() {
        let mut words = mutex(number as u32);
        words[1] = u32::from(number == 1);
        for (frames, basis) in [(LOCK, Basis::Stack), (&[], Basis::Bytes)] {
            let wait = glibc(&words, 0, PRIVATE_WAIT, 2, frames);
            assert_eq!(mutex_kind(&wait), (of_type, false, Protocol::None));
            assert_eq!((wait.owner, wait.basis), (Owner::Tid(502), basis), "{of_type:?}");
            assert_eq!((wait.object, wait.is_exclusive, wait.is_timed), (Some(OBJECT), true, false));
        }
    }
}

#[test]
fn a_mutex_of_a_protocol_has_its_owner_where_the_protocol_keeps_it() {
    // Robust: the word has the id, and the call is not private. The list is somewhere.
    let robust = [0x8000_01f6, 0, 502, 1, 16 | 128, 0, 0x7000_1000, 0, 0x7000_2000, 0];
    let wait = glibc(&robust, 0, SHARED_WAIT, 0x8000_01f6, &[]);
    assert_eq!((mutex_kind(&wait), wait.owner), ((MutexType::Normal, true, Protocol::None), Owner::Tid(502)));

    // Inheriting: the kernel compares nothing.
    let inheriting = [0x8000_01f6, 0, 502, 1, 32, 0, 0, 0, 0, 0];
    let wait = glibc(&inheriting, 0, 0x86, 0, LOCK);
    assert_eq!(
        (mutex_kind(&wait), wait.owner),
        ((MutexType::Normal, false, Protocol::Inherit), Owner::Tid(502))
    );

    // Protecting: the ceiling is above.
    let protecting = [(10 << 19) | 2, 0, 502, 1, 64 | 2, 0, 0, 0, 0, 0];
    let wait = glibc(&protecting, 0, PRIVATE_WAIT, (10 << 19) | 2, &[]);
    let kind = (MutexType::ErrorChecking, false, Protocol::Protect);
    assert_eq!((mutex_kind(&wait), wait.owner), (kind, Owner::Tid(502)));
}

#[test]
fn a_futex_of_priority_inheritance_that_is_no_mutex_has_the_kernels_owner() {
    let wait = glibc(&[0x8000_01f6], 0, 0x86, 0, &["my_lock"]);
    assert_eq!((wait.kind, wait.owner, wait.basis), (WaitKind::PiFutex, Owner::Tid(502), Basis::Call));
    let dead = glibc(&[0xc000_0000], 0, 0x86, 0, &[]);
    assert_eq!(dead.owner, Owner::Nobody);
}

#[test]
fn a_forged_mutex_gets_no_owner() {
    let mut foreign = mutex(0);
    foreign[2] = 1;
    assert_eq!(glibc(&foreign, 0, PRIVATE_WAIT, 2, &[]).kind, WaitKind::Unknown);
    assert_eq!(glibc(&foreign, 0, PRIVATE_WAIT, 2, LOCK).owner, Owner::Unknown(UnknownOwner::NotHere(1)));
    // The reader's own number for a thread is not the target's.
    foreign[2] = 100_502;
    assert_eq!(
        glibc(&foreign, 0, PRIVATE_WAIT, 2, LOCK).owner,
        Owner::Unknown(UnknownOwner::NotHere(100_502))
    );

    for bad in [4, 8, 96, 768, 0x1_0000] {
        let wait = glibc(&mutex(bad), 0, PRIVATE_WAIT, 2, LOCK);
        assert_eq!(
            (wait.kind, wait.owner),
            (WaitKind::Unknown, Owner::Unknown(UnknownOwner::Senseless)),
            "{bad}"
        );
        assert_eq!(wait.construct.unwrap().name, "pthread mutex");
    }
    // The words that a normal mutex does not use.
    for word in [1, 5, 6, 7, 8, 9] {
        let mut words = mutex(0);
        words[word] = 7;
        assert_eq!(
            glibc(&words, 0, PRIVATE_WAIT, 2, &[]).owner,
            Owner::Unknown(UnknownOwner::Unrecognised),
            "{word}"
        );
    }
}

#[test]
fn a_mutex_that_changes_has_no_owner() {
    let mut free = mutex(0);
    (free[0], free[2], free[3]) = (0, 0, 0);
    let just_taken = [2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for words in [free, just_taken] {
        let wait = glibc(&words, 0, PRIVATE_WAIT, 2, LOCK);
        assert_eq!((wait.owner, wait.object), (Owner::Unknown(UnknownOwner::Changing), Some(OBJECT)));
        assert_eq!(glibc(&words, 0, PRIVATE_WAIT, 2, &[]).kind, WaitKind::Unknown);
    }
}

#[test]
fn a_thread_that_has_ended_owns_nothing() {
    let mut memory = Pieces::default();
    memory.put(OBJECT, &mutex(0));
    let mut target = target(&TIDS, [OBJECT, PRIVATE_WAIT, 2, 0x1234]);
    target.tasks[1].state = RunState::Zombie;
    let wait = Waits::new(&target, &memory, &[]).of(0, &Clue::of(LOCK)).unwrap();
    assert_eq!((wait.owner, wait.is_timed), (Owner::Unknown(UnknownOwner::NotHere(502)), true));
}

const READ: &[&str] = &["", "pthread_rwlock_rdlock"];
const WRITE: &[&str] = &["", "pthread_rwlock_wrlock"];

#[test]
fn a_readers_writer_lock_since_2_25() {
    // Thread 502 writes; a reader waits, then a writer.
    let words = [11, 1, 3, 3, 0, 0, 502, 0, 0, 0, 0, 0, 0, 0];
    for (offset, frames, is_exclusive) in [(8, READ, false), (12, WRITE, true)] {
        for (frames, basis) in [(frames, Basis::Stack), (&[], Basis::Bytes)] {
            let wait = glibc(&words, offset, WAIT_UNTIL, 3, frames);
            assert_eq!(
                (wait.owner, wait.object, wait.basis),
                (Owner::Tid(502), Some(OBJECT), basis),
                "{offset}"
            );
            assert_eq!(wait.is_exclusive, is_exclusive);
        }
    }
    // Two readers have it; a writer waits for them, and a reader waits behind the writer.
    let words = [0x16, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    let kind = WaitKind::ReadWriteLock { readers: 2, preference: Some(Preference::Writers) };
    for (offset, value, frames) in [(8, 2, WRITE), (0, 0x16, READ)] {
        let wait = glibc(&words, offset, WAIT_UNTIL, value, frames);
        assert_eq!((wait.kind, wait.object), (kind, Some(OBJECT)));
        assert_eq!(wait.owner, Owner::Unknown(UnknownOwner::Readers(2)));
        assert_eq!(glibc(&words, offset, WAIT_UNTIL, value, &[]).kind, WaitKind::Unknown);
    }
}

#[test]
fn a_readers_writer_lock_before_2_25() {
    // glibc 2.17: nptl/sysdeps/unix/sysv/linux/x86_64/pthread_rwlock_wrlock.S, bits/pthreadtypes.h.
    let words = [0, 0, 5, 9, 1, 1, 502, 0, 0, 0, 0, 0, 0, 0];
    for (offset, value, frames) in [(8, 5, READ), (12, 9, WRITE)] {
        let wait = glibc(&words, offset, PRIVATE_WAIT, value, frames);
        assert_eq!((wait.owner, wait.object), (Owner::Tid(502), Some(OBJECT)), "{offset}");
    }
    let words = [0, 3, 5, 9, 0, 1, 0, 128, 0, 0, 0, 0, 1, 0];
    let wait = glibc(&words, 12, SHARED_WAIT, 9, WRITE);
    assert_eq!(wait.owner, Owner::Unknown(UnknownOwner::Readers(3)));
    let preference = Some(Preference::WritersInName);
    assert_eq!(wait.kind, WaitKind::ReadWriteLock { readers: 3, preference });
}

const CONDITION: &[&str] = &["", "pthread_cond_wait@@GLIBC_2.3.2"];

#[test]
fn the_layouts_of_a_condition_variable_are_told_apart() {
    let none = WaitKind::Condition { mutex: None };
    // 2.25 to 2.40: three threads waited, one was signalled, one came later. The second group is the first one now.
    let words = [8 | 1, 0, 1, 0, 6, 0, 2, 0, 3 << 2, 3 << 3, 0, 0, 0x11, 0];
    let wait = glibc(&words, 40, WAIT_UNTIL, 0, CONDITION);
    assert_eq!((wait.kind, wait.object, wait.owner), (none, Some(OBJECT), Owner::Nobody));
    // 2.41: two threads of one group wait, and another one waited before.
    let words = [6, 0, 1, 0, 0, 0, 0, 2 << 3, 1, 1, 0, 0];
    for offset in [32, 36] {
        let wait = glibc(&words, offset, WAIT_UNTIL, 1, CONDITION);
        assert_eq!((wait.kind, wait.object), (none, Some(OBJECT)), "{offset}");
    }
    // 2.17, nptl/pthread_cond_wait.c: two threads waited, one was woken. The mutex is at 0x7000_0100.
    let words = [0, 3, 2, 0, 1, 0, 1, 0, 0x7000_0100, 0, 2, 0];
    let wait = glibc(&words, 4, PRIVATE_WAIT, 3, CONDITION);
    assert_eq!(wait.kind, WaitKind::Condition { mutex: Some(0x7000_0100) });
    assert_eq!(wait.object, Some(OBJECT));
    // It moves: the address is not known.
    let words = [6, 0, 1, 0, 0, 0, 0, 5 << 3, 1, 1, 0, 0];
    assert_eq!(glibc(&words, 32, WAIT_UNTIL, 1, CONDITION).object, None);
    // Without function names, nothing is known.
    assert_eq!(glibc(&words, 32, WAIT_UNTIL, 1, &[]).kind, WaitKind::Unknown);
}

#[test]
fn the_layouts_of_semaphores_and_barriers_are_told_apart() {
    let semaphore = |words: &[u32], operation| glibc(words, 0, operation, 0, &["", "sem_wait"]);
    let value = |wait: FutexWait| (wait.kind, wait.object);
    let zero = (WaitKind::Semaphore { value: 0 }, Some(OBJECT));
    assert_eq!(value(semaphore(&[0, 1, 0, 0], WAIT_UNTIL)), zero); // since 2.21
    assert_eq!(value(semaphore(&[0, 2, 128, 0], 0x109)), zero);
    assert_eq!(value(semaphore(&[0, 0, 1, 0], PRIVATE_WAIT)), zero); // before
    assert_eq!(semaphore(&[0, 0, 0, 0], PRIVATE_WAIT).kind, WaitKind::Unknown);

    let barrier =
        |words: &[u32], offset, value| glibc(words, offset, PRIVATE_WAIT, value, &["pthread_barrier_wait"]);
    let two_of_three = WaitKind::Barrier { arrived: Some((2, 3)) };
    let recent = barrier(&[5, 3, 3, 0, 3], 4, 3); // since 2.23
    assert_eq!((recent.kind, recent.object), (two_of_three, Some(OBJECT)));
    let old = barrier(&[4, 0, 1, 3, 0], 0, 4); // before
    assert_eq!((old.kind, old.object), (two_of_three, Some(OBJECT)));
    assert_eq!(barrier(&[9, 3, 3, 0, 3], 4, 3).kind, WaitKind::Unknown);
}

#[test]
fn initialisations_are_recognised_by_their_functions() {
    let once = glibc(&[1 | 4 << 2], 0, PRIVATE_WAIT, 1 | 4 << 2, &["", "__pthread_once_slow"]);
    assert_eq!((once.kind, once.owner), (WaitKind::Once, Owner::Unknown(UnknownOwner::NotStored)));
    let guard = glibc(&[0x1_0100], 0, SHARED_WAIT, 0x1_0100, &["syscall", "__cxa_guard_acquire"]);
    assert_eq!((guard.kind, guard.construct.unwrap().role), (WaitKind::Once, Role::Initialisation));
}

#[test]
fn a_join_is_recognised_by_the_number_after_the_threads_id() {
    let words = [502, 0, 0, 0, 0, 0, 0xffff_ffe0, 0xffff_ffff];
    for (frames, basis) in [(&["", "pthread_join"][..], Basis::Stack), (&[], Basis::Bytes)] {
        let wait = glibc(&words, 0, 0x109, 502, frames);
        assert_eq!((wait.kind, wait.owner, wait.basis), (WaitKind::Join, Owner::Tid(502), basis));
    }
    let mut other = words;
    other[6] = 0;
    assert_eq!(glibc(&other, 0, 0x109, 502, &[]).kind, WaitKind::Unknown);
    assert_eq!(glibc(&words, 0, WAIT_UNTIL, 502, &[]).kind, WaitKind::Unknown); // A join is not private.
}

#[test]
fn a_streams_owner_is_found_through_its_thread_structure() {
    let thread = OBJECT + 0x1000;
    for (architecture, offset) in [(crate::target::Architecture::X86_64, 720), (Aarch64, 208)] {
        let mut memory = Pieces::default();
        memory.put(OBJECT, &[2, 1, thread as u32, 0]);
        let mut words = vec![0; offset / 4 + 8];
        words[4] = thread as u32;
        words[offset / 4] = 503;
        words[offset / 4 + 6..].copy_from_slice(&[0xffff_ffe0, 0xffff_ffff]);
        memory.put(thread, &words);
        let mut target = target(&TIDS, [OBJECT, PRIVATE_WAIT, 2, 0]);
        target.architecture = architecture;
        for frames in [&[][..], &["__lll_lock_wait_private", "fputs"]] {
            let wait = Waits::new(&target, &memory, &[]).of(0, &Clue::of(frames)).unwrap();
            assert_eq!((wait.kind, wait.owner), (WaitKind::LibraryLock, Owner::Tid(503)), "{architecture:?}");
        }
    }
    use crate::target::Architecture::Aarch64;
    let wait = glibc(&[2, 0, 0, 0], 0, PRIVATE_WAIT, 2, &["__lll_lock_wait_private", "malloc"]);
    assert_eq!((wait.kind, wait.owner), (WaitKind::LibraryLock, Owner::Unknown(UnknownOwner::NotStored)));
    assert_eq!(wait.construct.unwrap().role, Role::Allocator);
}

#[test]
fn a_handler_that_allocates_waits_for_the_lock_that_its_thread_has() {
    let owner = |frames: &[&str]| glibc(&[2, 0, 0, 0], 0, PRIVATE_WAIT, 2, frames).owner;
    let interrupted = |by: &'static str, function| {
        owner(&["__lll_lock_wait_private", "__GI___libc_malloc", by, "", function, "malloc", "main"])
    };
    assert_eq!(interrupted("on_alarm", "_int_malloc"), Owner::Tid(TIDS[0]));
    let unknown = Owner::Unknown(UnknownOwner::NotStored);
    assert_eq!(interrupted("on_alarm", "_int_free"), unknown, "it has the lock for a part of the time");
    assert_eq!(interrupted("on_alarm", "work"), unknown);
    // Without a function of the user in between, it is one call.
    assert_eq!(owner(&["__lll_lock_wait_private", "_int_malloc", "malloc", "main"]), unknown);
}

#[test]
fn a_normal_mutex_of_musl_is_known_by_its_zeros_alone_and_has_no_owner() {
    let sound = [0, 0x8000_0010, 3, 0, 0, 0, 0, 0, 0, 0];
    let wait = |words: &[u32], operation| musl(words, 4, operation, 0x8000_0010, &[]);
    let found = wait(&sound, PRIVATE_WAIT);
    assert!(matches!(found.kind, WaitKind::Mutex { of_type: MutexType::Normal, is_shared: false, .. }));
    let expected = (Owner::Unknown(UnknownOwner::NotStored), Some(OBJECT), Basis::Bytes);
    assert_eq!((found.owner, found.object, found.basis), expected);
    for at in 0..sound.len() {
        for word in [0, 1, 5, 0x10, u32::MAX] {
            let mut words = sound;
            words[at] = word;
            let is_sound = words == sound || at == 2 && (1..1 << 22).contains(&word);
            let found = wait(&words, PRIVATE_WAIT);
            assert_eq!(found.kind != WaitKind::Unknown, is_sound, "{words:x?} {found:?}");
        }
    }
    assert_eq!(wait(&sound, SHARED_WAIT).kind, WaitKind::Unknown, "the call says that processes share it");
}

#[test]
fn objects_of_musl() {
    let lock = &["__timedwait", "__pthread_mutex_timedlock", "__pthread_mutex_lock"];
    let normal = musl(&[0, 0x8000_0010, 1], 4, PRIVATE_WAIT, 0x8000_0010, lock);
    assert_eq!((normal.owner, normal.object), (Owner::Unknown(UnknownOwner::NotStored), Some(OBJECT)));
    for frames in [&lock[..], &[]] {
        let recursive = musl(&[1, 0x8000_01f6, 1], 4, PRIVATE_WAIT, 0x8000_01f6, frames);
        assert_eq!((mutex_kind(&recursive).0, recursive.owner), (MutexType::Recursive, Owner::Tid(502)));
    }
    let rwlock =
        musl(&[u32::MAX, 1, 0], 0, PRIVATE_WAIT, u32::MAX, &["__timedwait", "__pthread_rwlock_timedrdlock"]);
    assert_eq!(rwlock.owner, Owner::Unknown(UnknownOwner::NotStored));
    let stream = musl(&[0x4000_01f6], 0, PRIVATE_WAIT, 0x4000_01f6, &["__futexwait", "__lockfile", "fputs"]);
    assert_eq!((stream.kind, stream.owner), (WaitKind::LibraryLock, Owner::Tid(502)));
    // In a static program, both libraries are possible. This is a mutex of musl, and nothing of glibc.
    let words = [1, 0x8000_01f6, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(wait_at(&words, 4, PRIVATE_WAIT, 0x8000_01f6, &[], "/bin/static").owner, Owner::Tid(502));
}

#[test]
fn locks_without_an_owner_are_known_by_their_functions() {
    let mutex = glibc(&[2, 0], 0, PRIVATE_WAIT, 2, &["std::sys::sync::mutex::futex::Mutex::lock_contended"]);
    assert_eq!((mutex.kind, mutex.owner), (WaitKind::Opaque, Owner::Unknown(UnknownOwner::NotStored)));
    assert_eq!((mutex.object, mutex.construct.unwrap().name), (Some(OBJECT), "std::sync::Mutex"));
    // A writer of a std::sync::RwLock waits at its second word. The first one says that a writer waits.
    let write = &["std::sys::sync::rwlock::futex::RwLock::write_contended"];
    assert_eq!(glibc(&[0x8000_0001, 7], 4, PRIVATE_WAIT, 7, write).object, Some(OBJECT));
    assert_eq!(glibc(&[1, 7], 4, PRIVATE_WAIT, 7, write).object, None);
    // Each thread of parking_lot sleeps in a futex of its own.
    let parked = &["parking_lot_core::parking_lot::park", "parking_lot::raw_mutex::RawMutex::lock_slow"];
    let parked = glibc(&[1, 0], 0, PRIVATE_WAIT, 1, parked);
    assert_eq!((parked.object, parked.construct.unwrap().name), (None, "parking_lot::Mutex"));
}

/// A memory that counts how often it is read.
struct Counted(Pieces, Cell<usize>);

impl Memory for Counted {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.1.set(self.1.get() + 1);
        self.0.read(address, into)
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        self.0.read_some(address, into)
    }
}

#[test]
fn an_object_is_read_once_for_all_threads_that_wait_for_it_and_again_by_the_next_reading() {
    let target = target(&TIDS, [OBJECT, PRIVATE_WAIT, 2, 0]);
    let mut memory = Counted(Pieces::default(), Cell::new(0));
    let owners = |memory: &Counted| -> Vec<Owner> {
        let waits = Waits::new(&target, memory, &[]);
        (0..TIDS.len()).map(|task| waits.of(task, &Clue::of(LOCK)).unwrap().owner).collect()
    };
    memory.0.put(OBJECT, &mutex(0));
    assert_eq!(owners(&memory), [Owner::Tid(502); TIDS.len()]);
    let reads_of_one_thread = {
        let before = memory.1.get();
        Waits::new(&target, &memory, &[]).of(0, &Clue::of(LOCK));
        memory.1.get() - before
    };
    assert_eq!(memory.1.get(), 2 * reads_of_one_thread, "all threads take no more reads than one");
    memory.0.put(OBJECT, &[2, 0, 503, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(owners(&memory), [Owner::Tid(503); TIDS.len()]);
}

#[test]
fn memory_that_cannot_be_read_is_not_known() {
    let memory = Pieces::default();
    for address in [0, 1, 7, OBJECT, u64::MAX - 3, u64::MAX] {
        let target = target(&TIDS, [address, PRIVATE_WAIT, 2, 0]);
        let waits = Waits::new(&target, &memory, &[]);
        for frames in [LOCK, READ, WRITE, &["", "pthread_join"], &["", "sem_wait"], &[]] {
            let wait = waits.of(0, &Clue::of(frames)).unwrap();
            assert_eq!(wait.kind, WaitKind::Unknown, "{frames:?}");
        }
        assert_eq!(waits.of(0, &Clue::of(CONDITION)).unwrap().object, None);
        assert_eq!(waits.of(TIDS.len(), &Clue::default()), None);
    }
}

#[test]
fn random_bytes_are_nothing_and_what_passes_has_an_owner_that_lives() {
    let mut random = Random(0x5eed);
    let frames =
        [&[][..], LOCK, READ, WRITE, CONDITION, &["pthread_join"], &["sem_wait"], &["pthread_barrier_wait"]];
    let clues = frames.map(Clue::of);
    let operations = [PRIVATE_WAIT, SHARED_WAIT, WAIT_UNTIL, 0x109, 0x86];
    for round in 0..20_000_u32 {
        let is_nasty = round % 2 == 1;
        // Random bytes; and numbers that objects have.
        let words: [u32; 64] = std::array::from_fn(|_| match (is_nasty, random.below(8)) {
            (false, _) => random.next() as u32,
            (true, 0..4) => 0,
            (true, 4) => random.below(4) as u32,
            (true, 5) => TIDS[random.below(4)],
            (true, 6) => TIDS[random.below(4)] | 0x8000_0000,
            (true, _) => [128, 16, 32, 64, u32::MAX, OBJECT as u32][random.below(6)],
        });
        let offset = 64 + 4 * random.below(16) as u64;
        let value = words[offset as usize / 4];
        let operation = operations[random.below(5)];
        let mut memory = Pieces::default();
        memory.put(OBJECT, &words);
        let target = target(&TIDS, [OBJECT + offset, operation, u64::from(value), 0]);
        let waits = Waits::new(&target, &memory, &[]);
        for clue in &clues {
            let wait = waits.of(0, clue).unwrap();
            let has_living_owner = matches!(wait.owner, Owner::Tid(tid) if TIDS.contains(&tid));
            assert!(has_living_owner || !matches!(wait.owner, Owner::Tid(_)), "{words:x?} {wait:?}");
            if !is_nasty && operation != 0x86 {
                assert!(!has_living_owner, "{words:x?} {wait:?}");
                assert!(clue.primitive.is_some() || wait.kind == WaitKind::Unknown, "{words:x?} {wait:?}");
            }
            assert!(wait.basis != Basis::Bytes || has_living_owner, "{words:x?} {wait:?}");
        }
    }
}
