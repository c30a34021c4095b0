//! Rings of several processes: each process has a heading, and threads and locks of its own.

use crate::support::fixture::Fixture;
use crate::support::locks::*;
use crate::support::synth::{Held, Ring, Slot};
use serde_json::json;

/// A process that made a ring, and two children that it forked. All of them have ended.
fn family() -> Ring {
    let child = |pid, name, tid| Slot { pid: Some(pid), ..Slot::thread(name, tid) };
    let holds = |slot: Slot| slot.event(TAKES, &[at(3.0), A]).has(Held::new(HELD, A, TAKES));
    ring().with_slots([
        holds(Slot::thread("main", 4321)),
        Slot::thread("idle", 4322).marks([SNAP]),
        holds(child(77, "early", 77)),
        holds(child(4400, "late", 4400)),
        child(4400, "helper", 4401).marks([SNAP]),
    ])
}

const OWN: &str = "server[4321], dead (killed, crashed or _exit): 2 threads\n";
const EARLY: &str = "server[77], has ended; child of 4321: 1 thread\n";
const LATE: &str = "server[4400], has ended; child of 4321: 2 threads\n";

#[test]
fn each_process_has_a_heading_and_its_own_groups_of_threads() {
    let taken = "server::cache::? : 1 thread, 1 location: cache.rs:10<0x1000> (1)\n";
    let idle = "server::? : 1 thread, 1 location: main.rs:1<0x4000> (1)\n";
    let text = Fixture::of(&family()).show(&[]).sound().stdout;
    let expected = format!("{OWN}{idle}{taken}{EARLY}{taken}{LATE}{idle}{taken}");
    assert!(text.starts_with(&expected), "{expected}\n{text}");
}

#[test]
fn the_groups_of_json_name_their_process() {
    let groups = Fixture::of(&family()).show(&["--json"]).sound().data("function");
    let groups: Vec<_> = groups.iter().map(|group| (&group["pid"], &group["threads"])).collect();
    let one = &json!(1);
    let [own, early, late] = [4321, 77, 4400].map(|pid| json!(pid));
    assert_eq!(groups, [(&own, one), (&own, one), (&early, one), (&late, one), (&late, one)]);
}

#[test]
fn the_lines_of_threads_follow_the_heading_of_their_process_in_the_remarks() {
    let outcome = Fixture::of(&family()).show(&["-t"]).sound();
    let names = outcome.stdout.lines().map(|line| line.split_once('[').unwrap().0);
    assert_eq!(names.collect::<Vec<_>>(), ["main", "idle", "early", "late", "helper"]);
    assert!(outcome.stderr.starts_with(&[OWN, EARLY, LATE].concat()), "{}", outcome.stderr);
}

#[test]
fn each_process_has_its_own_locks() {
    let fixture = Fixture::of(&family());
    let text = crate::support::run::read_rip(["locks", fixture.path.to_str().unwrap()]).sound().stdout;
    let mut rest = &*text;
    for (heading, holder) in [(OWN, "main[4321]"), (EARLY, "early[77]"), (LATE, "late[4400]")] {
        let (_, after) = rest.split_once(heading).unwrap_or_else(|| panic!("{heading}{text}"));
        let (lock, after) = after.split_once('\n').unwrap();
        assert!(lock.ends_with("  mutex at 0x7f0000001000"), "{lock}");
        assert!(after.starts_with(&format!("  held by {holder}")), "{text}");
        rest = after;
    }
}

#[test]
fn a_pattern_selects_processes_by_their_pids() {
    let fixture = Fixture::of(&family());
    let ring = fixture.path.to_str().unwrap();
    let threads = |pattern| fixture.show(&["-t", "-m", pattern]).sound().stdout;
    let names = |pattern| threads(pattern).lines().map(|line| line[..2].to_owned()).collect::<Vec<_>>();
    assert_eq!(names("process 4400$"), ["la", "he"]);
    assert_eq!(names("process (77|4321)"), ["ma", "id", "ea"]);
    let condensed = fixture.show(&["-m", "process 77"]).sound().stdout;
    assert!(condensed.contains(EARLY) && !condensed.contains("server[4400]"), "{condensed}");
    let locks = crate::support::run::read_rip(["locks", "-m", "process 4400", ring]).sound().stdout;
    assert!(locks.contains("late[4400]") && !locks.contains("main[4321]"), "{locks}");
    assert!(locks.contains(LATE) && !locks.contains("server[77]"), "{locks}");
}

#[test]
fn the_pid_of_the_only_process_of_a_ring_selects_nothing() {
    let fixture = Fixture::of(&ring().with_slots([Slot::thread("worker", 1).marks([SNAP])]));
    assert_eq!(fixture.show(&["-t", "-m", "4321"]).sound().stdout, "");
}
