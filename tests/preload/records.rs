//! The rings of programs that do not use librip themselves.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use librip_test_kit::format::lock_type;
use librip_test_kit::oracle::{Held, Holding, Ring, Slot};
use librip_test_kit::reader;
use librip_test_kit::victim::{DEADLINE, Victim};

use crate::{compile, plan, preload, read_rip};

/// Reads the addresses that `stuck` prints.
fn addresses(victim: &mut Victim) -> HashMap<String, u64> {
    let mut found = HashMap::new();
    loop {
        let line = victim.line();
        let Some((name, address)) = line.split_once(" 0x") else { return found };
        found.insert(name.to_owned(), u64::from_str_radix(address, 16).unwrap());
    }
}

/// Runs a program until it prints that it is ready, and kills it.
fn killed(name: &'static str) -> (HashMap<String, u64>, Ring) {
    let mut victim = plan(&compile(name, &[]), &[], &[preload()]).start();
    let addresses = addresses(&mut victim);
    (addresses, victim.killed().ring())
}

fn held(slot: &Slot, lock: u64) -> Held {
    slot.held_of(lock)
        .unwrap_or_else(|| panic!("{} has nothing to do with {lock:#x}: {:x?}", slot.name, slot.held))
}

#[test]
fn an_interposer_that_a_relative_path_names_is_found_by_a_reader_elsewhere() {
    let below_root = preload().strip_prefix("/").unwrap();
    let plan = plan(&compile("stuck", &[]), &[], &[below_root]).before(|| Ok(nix::unistd::chdir("/")?));
    let mut victim = plan.start();
    addresses(&mut victim);
    let locks = read_rip(&["locks"], &victim.ring_path());
    // The interposer's file says of which type a lock is.
    assert!(locks.contains("  mutex at 0x"), "{locks}");
    let ring = victim.killed().ring();
    assert!(ring.modules.iter().any(|module| Path::new(&module.path) == preload()), "{:#?}", ring.modules);
}

#[test]
fn the_tables_of_a_killed_program_show_its_holders_and_waiters() {
    let (at, ring) = killed("stuck");
    let state = |thread: &str, lock: &str| held(ring.slot_named(thread), at[lock]).state;
    assert_eq!(state("first", "a"), Holding::Held);
    assert_eq!(state("first", "b"), Holding::Waiting);
    assert_eq!(state("second", "b"), Holding::Held);
    assert_eq!(state("second", "a"), Holding::Waiting);
    assert_eq!(state("idler", "lent"), Holding::CondWait);
    assert_eq!(state("worker", "semaphore"), Holding::SemWait, "it waits for work, and for no owner");
    for lock in ["recursive", "robust", "inheriting", "spin", "rwlock", "c11"] {
        assert_eq!(state("holder", lock), Holding::Held, "{lock}");
    }
    let holder = ring.slot_named("holder");
    assert_eq!(held(holder, at["recursive"]).recursion, 1, "locked three times, unlocked once");
    assert!(held(holder, at["rwlock"]).shared);
    assert_eq!(state("waiter", "inheriting"), Holding::Waiting, "a mutex with priority inheritance");
    let writer = held(ring.slot_named("writer"), at["rwlock"]);
    assert_eq!((writer.state, writer.shared), (Holding::Waiting, false));
    assert!(writer.since.is_some_and(|since| since > 0));
    let all: usize = ring.slots.iter().map(|slot| slot.held.len()).sum();
    assert_eq!(all, 14, "and no thread has another entry");
}

#[test]
fn the_locations_are_those_of_the_calls() {
    let (at, ring) = killed("stuck");
    let slot = ring.slot_named("first");
    let function = at["first"];
    for lock in ["a", "b"] {
        let held = held(slot, at[lock]);
        assert!(
            (function..function + 200).contains(&held.pc),
            "{:#x} is not in first, {function:#x}",
            held.pc
        );
        assert!(held.is_caller, "a return address");
    }
    assert!(held(slot, at["a"]).pc < held(slot, at["b"]).pc, "in the order of the source");
    // Each event brings the same: TAKES of a, TAKES of b, WAIT for b. A barrier is no lock.
    let is_lock = |flags: u16| flags >> lock_type::SHIFT != lock_type::BARRIER;
    let callers: Vec<(u8, u64, u64)> = slot
        .events()
        .events
        .iter()
        .map(|event| (event, ring.site_of(event.pc).expect("sites are the interposer's")))
        .filter(|(_, site)| is_lock(site.flags))
        .map(|(event, site)| {
            let operand =
                |wanted| event.operands[site.operand_types.iter().position(|&is| is == wanted).unwrap()];
            (site.kind, operand(3), operand(7))
        })
        .collect();
    let (a, b) = (held(slot, at["a"]).pc, held(slot, at["b"]).pc);
    assert_eq!(callers, [(6, at["a"], a), (6, at["b"], b), (2, at["b"], b)]);
}

#[test]
fn a_lock_is_left_out_of_the_table_when_its_thread_is_cancelled() {
    let remains = plan(&compile("trouble", &[]), &["cancel"], &[preload()]).env("RIP_KEEP", "always").run();
    let ring = remains.ring();
    assert_eq!(ring.slots.len(), 3, "one thread is cancelled before it does anything");
    for slot in &ring.slots {
        assert_eq!(slot.held, [], "{}", slot.name);
    }
    // CONDITION_WAIT, and CONDITION_WOKEN before the cleanup handler's try and release.
    let kinds = |slot: &Slot| {
        let events = ring.lock_events(slot);
        // The unwinder initialises itself once.
        let own = events.iter().filter(|event| event.lock_type() != lock_type::ONCE);
        own.map(|event| event.kind).collect::<Vec<u8>>()
    };
    assert!(
        ring.slots.iter().any(|slot| kinds(slot) == [6, 7, 8, 6, 5, 4]),
        "{:?}",
        ring.slots.iter().map(kinds).collect::<Vec<_>>()
    );
    assert!(
        ring.slots.iter().any(|slot| kinds(slot) == [2, 5]),
        "a wait for a semaphore that came to nothing"
    );
}

#[test]
fn a_robust_mutex_passes_from_its_dead_owner_to_the_next() {
    let remains = plan(&compile("operations", &[]), &[], &[preload()])
        .env("RIP_KEEP", "always")
        .env("RIP_SLOTS", "4096")
        .run();
    let ring = remains.ring();
    let held: Vec<&Held> = ring.slots.iter().flat_map(|slot| &slot.held).collect();
    assert!(
        held.iter().all(|held| held.state == Holding::Held || held.state == Holding::Destroyed),
        "{held:x?}"
    );
    assert_eq!((ring.held_overflows, ring.refused_full, ring.refused_memory), (0, 0, 0));
}

#[test]
fn a_library_that_is_loaded_later_has_a_name() {
    let plugin = compile("plugin", &["-shared", "-fPIC"]);
    let remains = plan(&compile("trouble", &[]), &["load", plugin.to_str().unwrap()], &[preload()]).run();
    assert_eq!(remains.signal(), Some(libc::SIGKILL));
    let ring = remains.ring();
    let module =
        ring.modules.iter().find(|module| module.path.ends_with("preload-plugin")).expect("the plugin");
    let main = ring.slots.iter().find(|slot| slot.tid == ring.pid).unwrap();
    let [held] = main.held[..] else { panic!("{:x?}", main.held) };
    assert_eq!(held.state, Holding::Held);
    let relative = held.pc - module.load_bias;
    assert!((module.begin..module.end).contains(&relative), "{relative:#x} is not in the plugin");
}

#[test]
fn a_forked_child_holds_the_locks_of_its_parent() {
    let remains = plan(&compile("trouble", &[]), &["fork"], &[preload()]).env("RIP_KEEP", "always").run();
    let ring = remains.ring();
    let children = ring.slots.iter().filter(|slot| slot.pid != ring.pid).count();
    assert_eq!(children, 2, "the child, and its thread");
    for slot in &ring.slots {
        assert_eq!(slot.held, [], "{} gave up what it had", slot.name);
    }
}

#[test]
fn the_ring_of_a_daemon_is_kept_when_its_first_process_ends() {
    for how in ["daemon", "daemon-libc"] {
        // The victim ends with its first process. The daemon starts its work then.
        let remains = plan(&compile("trouble", &[]), &[how], &[preload()]).run();
        let deadline = Instant::now() + DEADLINE;
        loop {
            assert!(remains.has_ring() && Instant::now() < deadline, "no marks of a daemon");
            if let Ok(ring) = Ring::read(remains.ring_path())
                && ring.slots.iter().filter(|slot| slot.pid != ring.pid && slot.count > 0).count() == 2
            {
                assert_eq!(ring.exit_status, Some(0), "{how}: that of the first process");
                break;
            }
            librip_test_kit::pause();
        }
    }
}

#[test]
fn a_daemon_whose_first_process_has_marked_nothing_has_a_ring_of_its_own() {
    let remains = plan(&compile("trouble", &[]), &["daemon-late"], &[preload()]).run();
    let deadline = Instant::now() + DEADLINE;
    loop {
        assert!(Instant::now() < deadline, "no marks of a daemon");
        if let Ok(ring) = Ring::read(remains.ring_path())
            && ring.slots.iter().filter(|slot| slot.pid == ring.pid && slot.count > 0).count() == 2
        {
            return assert_eq!(ring.exit_status, None, "it was killed");
        }
        librip_test_kit::pause();
    }
}

#[test]
fn the_last_child_removes_the_ring_that_the_first_process_has_left_to_it() {
    for how in ["daemon-ends", "daemon-libc-ends"] {
        let remains = plan(&compile("trouble", &[]), &[how], &[preload()]).run();
        let deadline = Instant::now() + DEADLINE;
        while remains.has_ring() {
            assert!(Instant::now() < deadline, "{how}: the ring is still there");
            librip_test_kit::pause();
        }
    }
}

#[test]
fn a_child_forked_in_a_signal_handler_does_not_write_into_its_parents_slot() {
    let (at, ring) = killed("forking_handler");
    let of = |is_child: bool, lock: &str| -> Vec<Holding> {
        let slots = ring.slots.iter().filter(|slot| (slot.pid != ring.pid) == is_child);
        slots.filter_map(|slot| slot.held_of(at[lock])).map(|held| held.state).collect()
    };
    assert_eq!(of(false, "taken"), [Holding::Held, Holding::Waiting], "main has it, the waiter waits on");
    assert_eq!(of(false, "lent"), [Holding::CondWait], "the lender waits on");
    assert_eq!(of(true, "taken"), [Holding::Held], "the waiter's child got it");
    assert_eq!(of(true, "lent"), [Holding::Held], "the lender's child got it back");
}

#[test]
fn the_interposer_exports_the_functions_that_it_replaces_and_nothing_else() {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(preload()).output().unwrap();
    let names = String::from_utf8_lossy(&output.stdout);
    let prefixes = [
        "pthread_",
        "call_once",
        "sem_",
        "mtx_",
        "cnd_",
        "thrd_",
        "dl",
        "daemon",
        "exec",
        "fexecve",
        "prctl",
        "syscall",
        "_exit",
        "_Exit",
        "librip_preload_1",
    ];
    for name in names.lines().filter_map(|line| line.split(' ').nth(2)) {
        assert!(prefixes.iter().any(|prefix| name.starts_with(prefix)), "{name}");
    }
}

#[test]
fn the_interposers_own_debug_information_is_not_missed() {
    let mut victim = plan(&compile("stuck", &[]), &[], &[preload()]).start();
    addresses(&mut victim);
    let remains = victim.killed();
    for view in [&["check"][..], &["locks"], &["-t"], &[]] {
        let output = Command::new(reader::program()).args(view).arg(remains.ring_path()).output().unwrap();
        let remarks = String::from_utf8(output.stderr).unwrap();
        assert!(!remarks.contains("Warning"), "{view:?}: {remarks}");
    }
}
