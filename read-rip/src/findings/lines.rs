//! Pile-ups at a source line: locks of which only plain marks tell.
//!
//! # Question
//!
//! Where no mark says "lock": do most threads stand before a lock, and who seems to have it?
//!
//! # Method
//!
//! The pattern of three plain marks, which the scripts `lock-holders` and `lock-waiters` read as well: one before the
//! locking and one after it, on one source line with two addresses, and one after the unlocking, on another line of that
//! file. Which address of a line comes first is learned from threads that passed both; a line whose marks mostly stand
//! alone takes no lock. An inlined copy of such a line that nobody was seen to pass is taken for one. A thread whose last mark is the first of a pair waits there, unless it went on between the
//! readings. A thread that passed a second mark, with no other mark in that file after it, seems to have a lock. Told
//! is what holds for most of the threads, and suspected is all it can be.
//!
//! # Blind spots
//!
//! Which of several locks it is: a line is not a lock. Acquisitions that were overwritten. Marks in the file that are
//! neither of locking nor unlocking count as releases. A line that nobody was ever seen to pass takes no lock. Marks that the
//! linker has made one with others are on no line, and count as releases in all their files.
//!
//! # Example output
//!
//! ```text
//! suspected lock-line: 19116 threads of 19126 wait at one line
//!     worker[12] and 19115 threads more were last at locking_function ssl.c:210
//!     flusher[88] seems to have a lock of this file, taken at locking_function ssl.c:210, last at flush ssl.c:240
//! ```

use std::collections::{BTreeMap, HashMap};

use super::{Analysis, Confidence, Finding, Part, View, more_threads, parts};
use crate::locations::{Location, LocationId};
use crate::locks::{Step, StepKind, ThreadId, ThreadLocks};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct Lines;

const KIND: &str = "lock-line";
/// Fewer threads are no pattern.
const WAITERS_MIN: usize = 2;
/// As many apparent holders are told of.
const TOLD_MAX: usize = 5;

/// A source file and line.
type Line<'a> = (&'a str, u32);

/// What a line's addresses are: above zero the first of a pair, below zero the second.
type Roles<'a> = HashMap<Line<'a>, HashMap<Address, i64>>;

/// A module and the address relative to it.
type Address = (Option<usize>, u64);

#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    Waits,
    Has,
    Other,
}

impl Analysis for Lines {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let locations = view.locations;
        let line = |step: &Step| line(locations, step.location);
        let roles = learn(view);
        if roles.is_empty() {
            return;
        }
        // What a mark means, by what the mark before it meant, if that was on the same line.
        let meaning = |step: &Step, before: Option<Meaning>| {
            let location = locations[step.location];
            let role = line(step).and_then(|line| roles.get(&line));
            match role.map(|roles| roles.get(&(location.module, location.address)).copied().unwrap_or(0)) {
                None => Meaning::Other,
                Some(1..) => Meaning::Waits,
                Some(..=-1) => Meaning::Has,
                // Another inlined copy of the line, which nobody was seen to pass: its marks come in pairs too.
                Some(0) if before == Some(Meaning::Waits) => Meaning::Has,
                Some(0) => Meaning::Waits,
            }
        };
        let meanings = |thread: &ThreadLocks| {
            let mut meanings: Vec<Meaning> = Vec::new();
            let mut last = None;
            for step in snaps(thread) {
                let before = meanings.last().copied().filter(|_| last == line(step));
                meanings.push(meaning(step, before));
                last = line(step);
            }
            meanings
        };
        let is_still = |thread: &ThreadLocks| {
            thread.state == ThreadState::Present
                && thread.wait.is_none()
                && thread.advanced.is_none_or(|words| words == 0)
        };
        let mut waiting: BTreeMap<(u32, Line<'_>), Vec<ThreadId>> = BTreeMap::new();
        let mut all: HashMap<u32, usize> = HashMap::new();
        for (id, thread) in view.now.threads.iter().enumerate() {
            if thread.state == ThreadState::Present && !thread.steps.is_empty() {
                *all.entry(thread.pid).or_default() += 1;
            }
            let last = snaps(thread).last().filter(|_| is_still(thread));
            let is_waiting = || meanings(thread).last() == Some(&Meaning::Waits);
            if let Some(line) = last.and_then(line).filter(|_| is_waiting()) {
                waiting.entry((thread.pid, line)).or_default().push(id);
            }
        }
        for ((pid, at), waiters) in waiting {
            let all = all.get(&pid).copied().unwrap_or(0);
            if waiters.len() < WAITERS_MIN || waiters.len() * 2 <= all {
                continue;
            }
            let mut holders: Vec<(ThreadId, LocationId)> = Vec::new();
            for (id, thread) in view.now.threads.iter().enumerate() {
                let is_possible = thread.pid == pid && thread.state != ThreadState::Exited;
                let mut held = Vec::new();
                for (step, meaning) in snaps(thread).zip(meanings(thread)) {
                    if !is_possible || !is_in(view.locations[step.location], at.0) {
                        continue;
                    }
                    match meaning {
                        Meaning::Has => held.push(step.location),
                        Meaning::Other => {
                            held.pop();
                        }
                        Meaning::Waits => {}
                    }
                }
                holders.extend(held.last().map(|&location| (id, location)));
            }
            found.push(tell(view, &waiters, all, &holders));
        }
    }
}

fn line<'a>(locations: &'a [&'a Location], location: LocationId) -> Option<Line<'a>> {
    let location = locations[location];
    let source = location.source.as_ref().filter(|_| location.folded.is_empty());
    source.map(|(file, line)| (file.as_str(), *line))
}

/// Whether a mark is in a file, or may be.
fn is_in(location: &Location, file: &str) -> bool {
    location.source.iter().chain(&location.folded).any(|(source, _)| source == file)
}

/// Only plain marks take part: others say themselves what they are.
fn snaps(thread: &ThreadLocks) -> impl DoubleEndedIterator<Item = &Step> {
    thread.steps.iter().filter(|step| step.kind == StepKind::Snap)
}

/// Learns from all histories which addresses of a line are the first of a pair, and which the second.
fn learn<'a>(view: &View<'a>) -> Roles<'a> {
    let mut roles = Roles::new();
    let (mut pairs, mut alone): (HashMap<Line<'_>, usize>, HashMap<Line<'_>, usize>) = Default::default();
    for thread in &view.now.threads {
        let marks: Vec<(Option<Line<'_>>, Address)> = snaps(thread)
            .map(|step| {
                let location = view.locations[step.location];
                (line(view.locations, step.location), (location.module, location.address))
            })
            .collect();
        let mut from = 0;
        while from < marks.len() {
            let same = marks[from..].iter().take_while(|mark| mark.0 == marks[from].0).count();
            let run = &marks[from..from + same];
            let (is_first, is_last) = (from == 0, from + same == marks.len());
            from += same;
            let Some(at) = run[0].0 else { continue };
            // At its beginning a history may have lost the first mark of a pair, and at its end lack the second.
            let lost = usize::from(same % 2 == 1 && is_first && !is_last);
            for pair in run[lost..].chunks_exact(2).filter(|pair| pair[0].1 != pair[1].1) {
                *pairs.entry(at).or_default() += 1;
                let line = roles.entry(at).or_default();
                *line.entry(pair[0].1).or_default() += 1;
                *line.entry(pair[1].1).or_default() -= 1;
            }
            if same % 2 == 1 && !is_first && !is_last {
                *alone.entry(at).or_default() += 1;
            }
        }
    }
    roles.retain(|at, _| alone.get(at).copied().unwrap_or(0) <= pairs.get(at).copied().unwrap_or(0));
    roles
}

fn tell(view: &View<'_>, waiters: &[ThreadId], all: usize, holders: &[(ThreadId, LocationId)]) -> Finding {
    let summary = parts![
        Part::Threads(waiters.len()),
        format!(" of {all} wait at one line, as far as plain marks tell")
    ];
    let mut first = parts![Part::Thread(waiters[0])];
    if waiters.len() > 1 {
        first.extend(parts![" and ", more_threads(waiters.len() - 1)]);
    }
    if let Some(last) =
        view.now.threads[waiters[0]].steps.iter().rev().find(|step| step.kind == StepKind::Snap)
    {
        first.extend(parts![" were last at ", Part::Location(last.location), ", before the lock"]);
    }
    let mut evidence = vec![first];
    for &(thread, location) in holders.iter().take(TOLD_MAX) {
        let mut line = parts![
            Part::Thread(thread),
            " seems to have a lock of this file, taken at ",
            Part::Location(location)
        ];
        if waiters.binary_search(&thread).is_ok() {
            line.push(", and waits as well".into());
        } else if let Some(last) = view.now.threads[thread].last {
            line.extend(parts![", last at ", Part::Location(last)]);
        }
        evidence.push(line);
    }
    if holders.len() > TOLD_MAX {
        evidence.push(parts!["and ", more_threads(holders.len() - TOLD_MAX), " seem to have one"]);
    }
    let is_circle =
        !holders.is_empty() && holders.iter().all(|(thread, _)| waiters.binary_search(thread).is_ok());
    if is_circle {
        evidence.push(parts!["all that seem to have a lock wait for one: so it looks in a deadlock"]);
    } else if holders.is_empty() {
        evidence.push(parts!["who has the lock is not known: it was overwritten, or is not marked"]);
    }
    let mut finding = Finding::new(KIND, Confidence::Suspected, summary, evidence);
    finding.doubt = Some("plain marks do not say which lock it is: several may be taken at this line".into());
    finding.threads_hurt = waiters.len();
    finding.advice =
        "mark the lock with rip_lock_wait!, rip_lock_acquired! and rip_lock_released!, or use a lock of \
                      librip::sync: then holders and deadlocks are known exactly"
            .into();
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{Scene, text};

    /// Threads that went through a lock before; the marks before, after and at the release.
    fn scene() -> (Scene, [LocationId; 3]) {
        let mut scene = Scene::new();
        let marks =
            [scene.location("lock.c", 10), scene.location("lock.c", 10), scene.location("lock.c", 20)];
        (scene, marks)
    }

    fn passes(scene: &mut Scene, name: &str, marks: &[LocationId]) -> ThreadId {
        let thread = scene.thread(name);
        marks.iter().for_each(|&mark| scene.snap(thread, mark));
        thread
    }

    #[test]
    fn threads_before_a_line_and_the_one_behind_it_are_told() {
        let (mut scene, [before, after, release]) = scene();
        let owner = passes(&mut scene, "owner", &[before, after, release, before, after]);
        for _ in 0..20 {
            passes(&mut scene, "worker", &[before, after, release, before]);
        }
        let found = scene.look(&Lines);
        assert_eq!((found.len(), found[0].confidence, found[0].threads_hurt), (1, Confidence::Suspected, 20));
        assert!(text(&found[0]).contains(&format!("T{owner} seems to have a lock")), "{}", text(&found[0]));
        assert!(!text(&found[0]).contains("deadlock"));
    }

    #[test]
    fn all_holders_wait_in_a_deadlock() {
        let (mut scene, [before, after, release]) = scene();
        for _ in 0..2 {
            passes(&mut scene, "transfers", &[before, after, before]);
        }
        passes(&mut scene, "main", &[before, after, release]);
        let found = scene.look(&Lines);
        assert!(text(&found[0]).contains("so it looks in a deadlock"), "{}", text(&found[0]));
    }

    #[test]
    fn a_queue_that_moves_and_lines_that_take_no_lock_are_no_finding() {
        let (mut scene, [before, after, release]) = scene();
        for _ in 0..20 {
            let thread = passes(&mut scene, "worker", &[before, after, release, before]);
            scene.model.threads[thread].advanced = Some(30);
        }
        assert!(scene.look(&Lines).is_empty(), "a queue that moves");
        let (mut scene, [before, ..]) = self::scene();
        let other = scene.location("lock.c", 30);
        for _ in 0..20 {
            passes(&mut scene, "worker", &[other, before, other, before]);
        }
        assert!(scene.look(&Lines).is_empty(), "one mark a line");
    }

    #[test]
    fn marks_that_the_linker_has_made_one_tell_nothing_of_a_line() {
        let (mut scene, [before, after, release]) = scene();
        let owner = passes(&mut scene, "owner", &[before, after, release]);
        for _ in 0..20 {
            passes(&mut scene, "worker", &[before, after, release, before]);
        }
        scene.locations[release].folded.push(("other.c".into(), 7));
        assert!(
            !text(&scene.look(&Lines)[0]).contains(&format!("T{owner} seems to have")),
            "released, or elsewhere"
        );
        scene.locations[before].folded.push(("other.c".into(), 8));
        assert!(scene.look(&Lines).is_empty(), "they may wait there, or be elsewhere");
    }

    #[test]
    fn an_idle_majority_is_no_pile_up() {
        let (mut scene, [before, after, release]) = scene();
        for _ in 0..5 {
            passes(&mut scene, "worker", &[before, after, release, before]);
        }
        for _ in 0..5 {
            passes(&mut scene, "idle", &[before, after, release]);
        }
        assert!(scene.look(&Lines).is_empty());
    }
}
