//! Pile-ups at a source line, found from plain marks around a lock.
//!
//! # Question
//!
//! In a program without lock marks: do most threads wait in front of a lock, and which thread seems to hold it?
//!
//! # Method
//!
//! Infers pile-ups from a pattern of three plain marks. One is before the locking and one after it, on one source line
//! with two addresses. The third is after the unlocking, on another line of the same file. The scripts `lock-holders`
//! and `lock-waiters` read the same pattern (in Perl: `scripts/lib/RipMarks.pm`).
//!
//! * Threads that passed both addresses of a line show which of the two comes first.
//! * A line whose marks mostly stand alone acquires no lock.
//! * A line may be inlined in several places: a copy that no thread was seen to pass acquires a lock like the others.
//! * A thread waits at a line if its last mark is the first of a pair, and it recorded nothing between the readings.
//! * A thread seems to hold a lock if it passed the second mark of a pair, and no other mark of that file after it.
//!
//! A finding needs more than half of the threads of a process, and is only suspected.
//!
//! # Blind spots
//!
//! A line is not a lock: which of several locks it acquires is not known. Acquisitions that were overwritten are
//! missing. Marks in the file that neither lock nor unlock count as releases. A line that no thread was seen to pass
//! acquires no lock. Marks that the linker has folded with others are on no line, and count as releases in all their
//! files.
//!
//! # Example output
//!
//! ```text
//! suspected lock-line: 19116 of 19126 threads wait at one line, as far as plain marks show
//!     worker[12] and 19115 more threads were last at locking_function ssl.c:210, in front of the lock
//!     flusher[88] seems to hold a lock of this file, acquired at locking_function ssl.c:210, last at flush ssl.c:240
//! ```

use std::collections::BTreeMap;

use foldhash::HashMap;
use serde::Serialize;

use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locations::{Location, LocationId};
use crate::locks::{StepKind, ThreadId, ThreadLocks};
use crate::threads::ThreadState;
use crate::units::agree;

/// See the file's description.
pub(super) struct Lines;

/// Minimum number of waiting threads.
const WAITERS_MIN: usize = 2;
/// At most this many apparent holders are listed.
const LISTED_MAX: usize = 5;

/// A source file and line.
type Line<'a> = (&'a str, u32);

/// A module and the address relative to it.
type Address = (Option<usize>, u64);

/// A number for each line: an index into [`Numbered::all`].
type LineNumber = usize;

/// For each address of a line, a count: positive if the address is the first of a pair, negative if it is the second.
type Addresses = HashMap<Address, i64>;

/// What a thread does when it passes a mark.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    Waits,
    Acquired,
    Other,
}

/// A source line at which most threads wait, as far as plain marks show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrowdedLine {
    /// How many threads wait there.
    pub waiting: usize,
    /// How many threads the process has.
    pub threads: usize,
    /// One of those that wait.
    pub example: ThreadId,
    /// Where that one was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// How many threads seem to hold a lock of the same file.
    pub holders: usize,
    /// The first of these.
    pub first_holders: Vec<ApparentHolder>,
    /// All apparent holders wait at the line themselves, which looks like a deadlock.
    pub all_holders_wait: bool,
}

/// A thread that seems to hold a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApparentHolder {
    /// The thread.
    pub thread: ThreadId,
    /// Where it seems to have acquired the lock.
    pub location: LocationId,
    /// It waits at the crowded line itself.
    #[serde(rename = "waits_too")]
    pub is_waiting: bool,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}

impl Analysis for Lines {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let pattern = Pattern::learn(view);
        if pattern.is_empty() {
            return;
        }
        let mut all: HashMap<u32, usize> = HashMap::default();
        for thread in &view.now.threads {
            if thread.state == ThreadState::Present && !thread.steps.is_empty() {
                *all.entry(thread.pid).or_default() += 1;
            }
        }
        for ((pid, line), waiters) in pattern.waiting() {
            let all = all.get(&pid).copied().unwrap_or(0);
            if waiters.len() >= WAITERS_MIN && waiters.len() * 2 > all {
                let holders = pattern.holders(pid, line.0);
                found.push(finding(view, &waiters, all, &holders));
            }
        }
    }
}

/// All lines by numbers, which take less time to compare.
struct Numbered<'a> {
    all: Vec<Line<'a>>,
    /// The line of each location, if it is known.
    of_location: Vec<Option<LineNumber>>,
}

impl<'a> Numbered<'a> {
    fn of(locations: &[&'a Location]) -> Numbered<'a> {
        let mut all = Vec::new();
        let mut numbers: HashMap<Line<'_>, LineNumber> = HashMap::default();
        let number = |location: &&'a Location| {
            let line = line_of(location)?;
            Some(*numbers.entry(line).or_insert_with(|| {
                all.push(line);
                all.len() - 1
            }))
        };
        let of_location = locations.iter().map(number).collect();
        Numbered { all, of_location }
    }
}

/// The lines that acquire a lock.
struct Pattern<'a> {
    view: &'a View<'a>,
    lines: Numbered<'a>,
    /// For each line, its addresses; none if it acquires no lock.
    roles: Vec<Addresses>,
}

impl<'a> Pattern<'a> {
    /// Learns from all histories which addresses of a line are the first of a pair, and which the second.
    fn learn(view: &'a View<'a>) -> Pattern<'a> {
        let lines = Numbered::of(view.locations);
        let mut roles = vec![Addresses::default(); lines.all.len()];
        // How often the marks of each line came in pairs, and how often one stood alone.
        let (mut pairs, mut alone) = (vec![0_usize; lines.all.len()], vec![0_usize; lines.all.len()]);
        let mut marks: Vec<LocationId> = Vec::new();
        for thread in &view.now.threads {
            marks.clear();
            marks.extend(snaps(thread));
            let mut from = 0;
            for run in marks.chunk_by(|&one, &other| lines.of_location[one] == lines.of_location[other]) {
                let (is_first, is_last) = (from == 0, from + run.len() == marks.len());
                from += run.len();
                let Some(line) = lines.of_location[run[0]] else { continue };
                // A history may have lost the first mark of a pair at its beginning, and lack the second at its end.
                let lost = usize::from(run.len() % 2 == 1 && is_first && !is_last);
                for pair in run[lost..].chunks_exact(2) {
                    let [first, second] = [pair[0], pair[1]].map(|at| address_of(view.locations[at]));
                    if first != second {
                        pairs[line] += 1;
                        *roles[line].entry(first).or_default() += 1;
                        *roles[line].entry(second).or_default() -= 1;
                    }
                }
                if run.len() % 2 == 1 && !is_first && !is_last {
                    alone[line] += 1;
                }
            }
        }
        for line in (0..roles.len()).filter(|&line| alone[line] > pairs[line]) {
            roles[line].clear();
        }
        Pattern { view, lines, roles }
    }

    /// Whether no line acquires a lock.
    fn is_empty(&self) -> bool {
        self.roles.iter().all(Addresses::is_empty)
    }

    /// The line of a location, if it is known.
    fn line(&self, location: LocationId) -> Option<LineNumber> {
        self.lines.of_location[location]
    }

    /// What a mark means. `before` is the meaning of the mark before it, if that was on the same line.
    fn meaning(&self, at: LocationId, before: Option<Meaning>) -> Meaning {
        let roles = self.line(at).map(|line| &self.roles[line]);
        let Some(roles) = roles.filter(|roles| !roles.is_empty()) else { return Meaning::Other };
        match roles.get(&address_of(self.view.locations[at])).copied().unwrap_or(0) {
            1.. => Meaning::Waits,
            ..=-1 => Meaning::Acquired,
            // Another inlined copy of the line, which no thread was seen to pass: its marks come in pairs too.
            0 if before == Some(Meaning::Waits) => Meaning::Acquired,
            0 => Meaning::Waits,
        }
    }

    /// The plain marks of a thread with their meanings, oldest first.
    fn meanings(&self, thread: &ThreadLocks) -> Vec<(LocationId, Meaning)> {
        let mut meanings: Vec<(LocationId, Meaning)> = Vec::new();
        for at in snaps(thread) {
            let before = meanings.last().filter(|&&(last, _)| last == at || self.line(last) == self.line(at));
            let meaning = self.meaning(at, before.map(|&(_, meaning)| meaning));
            meanings.push((at, meaning));
        }
        meanings
    }

    /// The threads that wait at each line of each process.
    fn waiting(&self) -> BTreeMap<(u32, Line<'a>), Vec<ThreadId>> {
        let has_recorded_wait = |thread: &ThreadLocks| {
            thread.wait.is_some_and(|wait| !self.view.now.locks[wait.lock].is_from_memory)
        };
        let mut waiting: BTreeMap<_, Vec<ThreadId>> = BTreeMap::new();
        for (id, thread) in self.view.now.threads.iter().enumerate() {
            let is_still = thread.state == ThreadState::Present
                && !has_recorded_wait(thread)
                && thread.advanced.is_none_or(|words| words == 0);
            let last = snaps(thread).next_back().filter(|_| is_still);
            let is_waiting = || self.meanings(thread).last().is_some_and(|last| last.1 == Meaning::Waits);
            if let Some(line) = last.and_then(|last| self.line(last)).filter(|_| is_waiting()) {
                waiting.entry((thread.pid, self.lines.all[line])).or_default().push(id);
            }
        }
        waiting
    }

    /// The threads of a process that seem to hold a lock of a file, and where they acquired it.
    fn holders(&self, pid: u32, file: &str) -> Vec<(ThreadId, LocationId)> {
        let mut holders = Vec::new();
        for (id, thread) in self.view.now.threads.iter().enumerate() {
            if thread.pid != pid || thread.state == ThreadState::Exited {
                continue;
            }
            let mut held = Vec::new();
            for (at, meaning) in self.meanings(thread) {
                match meaning {
                    _ if !is_in(self.view.locations[at], file) => {}
                    Meaning::Acquired => held.push(at),
                    Meaning::Other => {
                        held.pop();
                    }
                    Meaning::Waits => {}
                }
            }
            holders.extend(held.last().map(|&location| (id, location)));
        }
        holders
    }
}

/// The line of a location, if its marks are on one line.
fn line_of(location: &Location) -> Option<Line<'_>> {
    let source = location.source.as_ref().filter(|_| location.folded.is_empty());
    source.map(|(file, line)| (&**file, *line))
}

/// The address of a location.
fn address_of(location: &Location) -> Address {
    (location.module, location.address)
}

/// Whether a mark is in a file, or may be.
fn is_in(location: &Location, file: &str) -> bool {
    location.source.iter().chain(&location.folded).any(|(source, _)| **source == *file)
}

/// The plain marks of a thread: all other marks say what they mean.
fn snaps(thread: &ThreadLocks) -> impl DoubleEndedIterator<Item = LocationId> {
    let snaps = thread.steps.locations().filter(|&(kind, _)| kind == StepKind::Snap);
    snaps.map(|(_, location)| location)
}

fn finding(view: &View<'_>, waiters: &[ThreadId], all: usize, holders: &[(ThreadId, LocationId)]) -> Finding {
    // Threads are visited by id, so `waiters` are sorted.
    let is_waiting = |thread: ThreadId| waiters.binary_search(&thread).is_ok();
    let apparent = |&(thread, location): &(ThreadId, LocationId)| ApparentHolder {
        thread,
        location,
        is_waiting: is_waiting(thread),
        last: view.now.threads[thread].last,
    };
    let example = waiters[0];
    let evidence = CrowdedLine {
        waiting: waiters.len(),
        threads: all,
        example,
        last: snaps(&view.now.threads[example]).next_back(),
        holders: holders.len(),
        first_holders: holders.iter().take(LISTED_MAX).map(apparent).collect(),
        all_holders_wait: !holders.is_empty() && holders.iter().all(|&(thread, _)| is_waiting(thread)),
    };
    let mut finding = Finding::new(Kind::LockLine, Confidence::Suspected, evidence, Advice::MarkTheLock);
    finding.doubts = vec![Doubt::LockUnknown];
    finding.threads_hurt = waiters.len();
    finding
}

impl Basis for CrowdedLine {
    fn about(&self, all: &mut About<'_>) {
        all.thread(self.example, self.last);
        all.main(self.last, |words| {
            format!("{} was last here, in front of the lock", words.thread(self.example))
        });
        for holder in &self.first_holders {
            all.thread(holder.thread, [holder.location].into_iter().chain(holder.last));
            all.other(holder.location, |words| {
                format!("{} seems to hold a lock since here", words.thread(holder.thread))
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let summary = format!(
            "{} of {} {} at one line, as far as plain marks show",
            self.waiting,
            words.threads(self.threads),
            agree(self.waiting, "waits", "wait")
        );
        let others = words.and_more(self.waiting - 1).map(|others| format!(" {others}")).unwrap_or_default();
        let mut first = format!("{}{others}", words.thread(self.example));
        if let Some(last) = self.last {
            let was = agree(self.waiting, "was", "were");
            first += &format!(" {was} last at {}, in front of the lock", words.location(last));
        }
        let mut evidence = vec![first];
        evidence.extend(self.first_holders.iter().map(|holder| holder.line(words)));
        let unlisted = self.holders.saturating_sub(self.first_holders.len());
        if unlisted > 0 {
            let (more, seem) = (words.more_threads(unlisted), agree(unlisted, "seems", "seem"));
            evidence.push(format!("and {more} {seem} to hold one"));
        }
        if self.all_holders_wait {
            let all = "all apparent holders wait for a lock themselves, which looks like a deadlock";
            evidence.push(all.to_owned());
        } else if self.holders == 0 {
            evidence.push("the holder is not known: its marks are overwritten or missing".to_owned());
        }
        Paragraph { summary, evidence }
    }
}

impl ApparentHolder {
    fn line(&self, words: &Words<'_>) -> String {
        let (thread, location) = (words.thread(self.thread), words.location(self.location));
        let now = match self.last {
            _ if self.is_waiting => ", and waits too".to_owned(),
            Some(last) => format!(", last at {}", words.location(last)),
            None => String::new(),
        };
        format!("{thread} seems to hold a lock of this file, acquired at {location}{now}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::Scene;

    /// A scene, and three marks: before an acquisition, after it, and after the release.
    fn scene() -> (Scene, [LocationId; 3]) {
        let mut scene = Scene::new();
        let marks =
            [scene.location("lock.c", 10), scene.location("lock.c", 10), scene.location("lock.c", 20)];
        (scene, marks)
    }

    fn line(found: &[Finding]) -> &CrowdedLine {
        let Evidence::CrowdedLine(line) = &found[0].evidence else { panic!("{found:?}") };
        line
    }

    fn passes(scene: &mut Scene, name: &str, marks: &[LocationId]) -> ThreadId {
        let thread = scene.thread(name);
        marks.iter().for_each(|&mark| scene.snap(thread, mark));
        thread
    }

    #[test]
    fn threads_in_front_of_a_lock_and_its_holder_are_found() {
        let (mut scene, [before, after, release]) = scene();
        let owner = passes(&mut scene, "owner", &[before, after, release, before, after]);
        for _ in 0..20 {
            passes(&mut scene, "worker", &[before, after, release, before]);
        }
        let found = scene.run(&Lines);
        assert_eq!((found.len(), found[0].confidence, found[0].threads_hurt), (1, Confidence::Suspected, 20));
        let line = line(&found);
        assert_eq!((line.waiting, line.threads, line.holders), (20, 21, 1));
        assert_eq!((line.first_holders[0].thread, line.first_holders[0].location), (owner, after));
        assert!(!line.all_holders_wait);
    }

    #[test]
    fn holders_that_all_wait_look_like_a_deadlock() {
        let (mut scene, [before, after, release]) = scene();
        for _ in 0..2 {
            passes(&mut scene, "transfers", &[before, after, before]);
        }
        passes(&mut scene, "main", &[before, after, release]);
        let found = scene.run(&Lines);
        assert!(line(&found).all_holders_wait, "{found:?}");
    }

    #[test]
    fn a_queue_that_moves_and_lines_that_acquire_no_lock_are_no_finding() {
        let (mut scene, [before, after, release]) = scene();
        for _ in 0..20 {
            let thread = passes(&mut scene, "worker", &[before, after, release, before]);
            scene.model.threads[thread].advanced = Some(30);
        }
        assert!(scene.run(&Lines).is_empty(), "a queue that moves");
        let (mut scene, [before, ..]) = self::scene();
        let other = scene.location("lock.c", 30);
        for _ in 0..20 {
            passes(&mut scene, "worker", &[other, before, other, before]);
        }
        assert!(scene.run(&Lines).is_empty(), "one mark a line");
    }

    #[test]
    fn marks_that_the_linker_has_folded_are_on_no_line() {
        let (mut scene, [before, after, release]) = scene();
        let owner = passes(&mut scene, "owner", &[before, after, release]);
        for _ in 0..20 {
            passes(&mut scene, "worker", &[before, after, release, before]);
        }
        scene.locations[release].folded.push(("other.c".into(), 7));
        let found = scene.run(&Lines);
        let holders = &line(&found).first_holders;
        assert!(holders.iter().all(|holder| holder.thread != owner), "released, or elsewhere");
        scene.locations[before].folded.push(("other.c".into(), 8));
        assert!(scene.run(&Lines).is_empty(), "they may wait there, or be elsewhere");
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
        assert!(scene.run(&Lines).is_empty());
    }
}
