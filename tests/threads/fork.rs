//! fork: the child records as itself, and the parent keeps its slot. exec: nothing stays open or mapped.

use std::io::Read;

use librip_test_kit::oracle::State;
use librip_test_kit::progress;
use librip_test_kit::victim::DEADLINE;

use crate::{ended, plan, run};

#[test]
fn children_record_as_themselves_and_leave_the_parents_slot_alone() {
    let ring = run(&["fork"]).ring();
    let parent = ring.slot_named("victim");
    assert_eq!((parent.pid, parent.tid), (ring.pid, ring.pid));
    assert_eq!(ring.labels(parent), ["parent 1", "parent 2", "parent 3"]);

    let child = ring.slot_named("child");
    assert_eq!(child.pid, child.tid);
    assert_ne!(child.pid, ring.pid);
    assert_eq!(child.state, State::Exited, "its exit is recorded");
    assert_eq!(ring.labels(child), ["child 1", "child 2"]);

    let second = ring.slot_named("second");
    assert_eq!(ring.labels(second), ["second 1", "second 2"]);
    let grandchild = ring.slot_named("grandchild");
    assert_ne!(grandchild.pid, second.pid);
    assert_eq!(ring.labels(grandchild), ["grandchild"]);
    let thread = ring.slot_named("thread");
    assert_eq!((thread.pid, thread.state), (second.pid, State::Exited));
    assert_eq!(ring.labels(thread), ["thread of the second"]);

    let leaves = ring.slot_named("leaves");
    assert_eq!(leaves.state, State::Live, "who calls _exit cannot say so");
    assert_eq!(ring.slots.len(), 6, "a child that does not mark has no slot");
    // Children that ended earlier neither removed the ring nor wrote their status into it.
    assert_eq!(ring.exit_status, Some(3));
}

#[test]
fn the_ring_of_a_daemon_outlives_the_process_that_started_it() {
    let plan = plan(&["daemon"]);
    // The daemon writes into this FIFO once it is alone. Opened for both directions, so that the open does not block.
    let done = plan.dir().join("done");
    nix::unistd::mkfifo(&done, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut done = std::fs::File::options().read(true).write(true).open(done).unwrap();
    let remains = plan.run();
    let (says, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || says.send(done.read_exact(&mut [0; 5]).is_ok()));
    assert_eq!(hears.recv_timeout(DEADLINE), Ok(true));
    assert_eq!(remains.status.code(), Some(0), "{remains:?}");
    let ring = remains.ring();
    assert_eq!(ring.labels(ring.slot_named("daemon")), ["in the background", "alone"]);
}

#[test]
fn a_program_may_fork_while_its_other_threads_mark() {
    let remains = plan(&["fork_storm"]).env("RIP_SLOTS", "128").run();
    assert_eq!(remains.signal(), Some(libc::SIGKILL), "{remains:?}");
    let ring = remains.ring();
    let cells = progress::read(&remains.dir().join("progress"));
    assert_eq!((cells.len(), ring.slots.len()), (63, 63));
    for (index, &[state, tid, marks, _]) in cells.iter().enumerate() {
        let slot = ring.slot_named(&format!("w{index}"));
        assert_eq!(u64::from(slot.tid), tid);
        if index < 2 {
            // Killed while it marks at full speed.
            assert!(slot.count == marks || slot.count == marks + 1, "{} of {marks}", slot.count);
        } else {
            assert_eq!(slot.count, marks, "w{index}");
            assert!(slot.events().missing.is_empty());
        }
        let is_child = index >= 3;
        assert_eq!(slot.pid != ring.pid, is_child);
        assert_eq!(slot.state == State::Exited, is_child);
        assert_eq!(state == progress::FINISHED, is_child);
        for event in slot.events().events {
            assert_eq!(ring.label(event.pc), format!("cycle {}", event.sequence % 7), "w{index}");
        }
    }
}

#[test]
fn signals_that_come_while_a_process_forks_write_nothing_into_the_parents_slot() {
    let remains = ended(plan(&["fork_signals"]).env("RIP_SLOTS", "4096").env("RIP_WORDS", "16384").run());
    let ring = remains.ring();
    let [_, tid, marks, handled] = progress::read(&remains.dir().join("progress"))[0];
    let slot = ring.slots.iter().find(|slot| u64::from(slot.tid) == tid && slot.pid == ring.pid).unwrap();
    let strangers =
        slot.events().events.iter().filter(|event| ring.label(event.pc).contains("child")).count();
    assert_eq!(strangers, 0, "marks of children in the parent's slot");
    // The handler counts after it marks, in one thread. Few signals meet a mark between its load and its addition, and
    // each of these leaves a number unused.
    let unused = slot.count.checked_sub(marks + handled).expect("no mark is lost");
    assert!(unused * 50 <= handled, "{handled} signals left {unused} numbers unused");
    assert!(handled > 100, "only {handled} signals came");
}

#[test]
fn a_fork_handler_registered_before_librips_marks_into_the_childs_slot() {
    let ring = run(&["atfork"]).ring();
    let parent = ring.slots.iter().find(|slot| slot.pid == ring.pid).unwrap();
    let child = ring.slots.iter().find(|slot| slot.pid != ring.pid).unwrap();
    assert_eq!(ring.labels(parent), ["parent"]);
    assert_eq!(ring.labels(child), ["in the child's own fork handler", "child"]);
}

#[test]
fn exec_leaves_no_descriptor_and_no_mapping() {
    let remains = plan(&["exec"]).run();
    assert_eq!(remains.status.code(), Some(0), "{remains:?}");
    // The caller of the tests may have left descriptors open, so compare with a program without a ring.
    let without = plan(&["exec"]).env("RIP_RING", "off").run();
    assert_eq!(remains.stdout, without.stdout);
    assert!(remains.stdout.ends_with("mapped: []\n"), "{remains:?}");
    let ring = remains.ring();
    assert_eq!(ring.labels(&ring.slots[0]), ["before"]);
}
