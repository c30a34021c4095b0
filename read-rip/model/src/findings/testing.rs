//! Scenes for the tests of the analyses: locks and threads, put together by hand.
//!
//! It checks nothing: a scene may be a state that no program can reach.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use read_rip_ring::LockType;

use super::lock_order::{Acquisition, OrderCycle, OrderEdge};
use super::{Advice, Analysis, Confidence, Finding, Kind, Memo, Names, Paragraph, View};
use crate::locations::{Location, LocationId};
use crate::locks::{
    Doing, Hold, HoldState, Join, Lock, LockId, LockModel, LockName, Nature, OwnerInMemory, Ownership, Peer,
    Seen, Step, StepKind, Steps, TaskFacts, TaskHold, TaskWait, ThreadId, ThreadLocks, Wait,
};
use crate::threads::ThreadState;

pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const MILLISECOND: u64 = 1_000_000;
/// The moment of the reading.
pub(super) const NOW: u64 = 100 * SECOND;
const PID: u32 = 4242;

/// What the kernel says of a thread.
pub(super) fn seen(doing: Doing, is_still: bool) -> Seen {
    let (asleep_ns, limit_ns) = (None, None);
    Seen {
        process: 0,
        index: 0,
        place: None,
        doing,
        is_still: Some(is_still),
        asleep_ns,
        is_timed: false,
        limit_ns,
        is_at_timer: false,
        wakes_nobody: false,
        is_in_pause: false,
        reads_connection: false,
        is_idle: false,
        job: None,
        worker: None,
        manager: None,
        is_in_poll: false,
        is_in_epoll: false,
        is_in_runtime: false,
        inward: None,
        runs_on: false,
    }
}

/// A model and its locations. Unless changed: the process lives, was read twice, and nothing moved in between.
pub(super) struct Scene {
    pub(super) model: LockModel,
    pub(super) before: Option<LockModel>,
    pub(super) locations: Vec<Location>,
    /// The locations of steps, which are shared.
    steps_at: HashMap<(String, u32), LocationId>,
}

impl Scene {
    pub(super) fn new() -> Scene {
        let model =
            LockModel { pid: PID, now_ns: Some(NOW), window_ns: Some(SECOND / 5), ..LockModel::default() };
        Scene { model, before: None, locations: Vec::new(), steps_at: HashMap::new() }
    }

    /// Two threads, 0 and 1, and a lock, 0, that neither holds.
    pub(super) fn of_two_threads_and_a_lock() -> Scene {
        let mut scene = Scene::new();
        scene.thread("worker");
        scene.thread("other");
        scene.lock("QUEUE");
        scene
    }

    /// Like `new`, of a dead process.
    pub(super) fn dead() -> Scene {
        let mut scene = Scene::new();
        (scene.model.is_final, scene.model.window_ns) = (true, None);
        scene
    }

    /// Like `dead`, of a process whose end is not known. The last recorded moment is `NOW`.
    pub(super) fn killed() -> Scene {
        let mut scene = Scene::dead();
        scene.model.is_end_unknown = true;
        scene
    }

    pub(super) fn location(&mut self, file: &str, line: u32) -> LocationId {
        let address = 0x1000 + 16 * self.locations.len() as u64;
        self.locations.push(Location {
            pc: address,
            module: Some(0),
            address,
            function: "work".into(),
            full_function: "work".into(),
            source: Some((file.into(), line)),
            ..Location::default()
        });
        self.locations.len() - 1
    }

    pub(super) fn thread(&mut self, name: &str) -> ThreadId {
        let id = self.model.threads.len();
        let last = Some(self.location("idle.rs", 1));
        self.model.threads.push(ThreadLocks {
            slot: Some(id),
            claimed_ns: NOW - 60 * SECOND,
            slot_index: id as u64,
            last,
            advanced: (!self.model.is_final).then_some(0),
            ..ThreadLocks::unrecorded(PID, 5000 + id as u32, name.into())
        });
        id
    }

    /// A task of an executor with two workers, suspended, that nobody has woken and one can wake.
    pub(super) fn task(&mut self, name: &str) -> ThreadId {
        let id = self.thread(name);
        self.model.tasks += 1;
        let facts = TaskFacts::suspended(id as u32, NOW - 12 * SECOND);
        self.model.threads[id].task = Some(Box::new(facts));
        id
    }

    /// What is known of a task, to be changed.
    pub(super) fn facts(&mut self, task: ThreadId) -> &mut TaskFacts {
        self.model.threads[task].task.as_mut().expect("it is a task")
    }

    /// A worker polls the task, which blocks it.
    pub(super) fn polls(&mut self, worker: ThreadId, task: ThreadId) {
        let facts = self.facts(task);
        (facts.is_polled, facts.thread, facts.wakers) = (true, Some(worker), None);
    }

    /// A future of the task waits for a lock, and was polled last, with the task's own waker.
    pub(super) fn awaits(&mut self, task: ThreadId, lock: LockId) {
        self.awaits_with(task, lock, |_| {});
    }

    pub(super) fn awaits_with(&mut self, task: ThreadId, lock: LockId, change: impl Fn(&mut TaskWait)) {
        let own = self.model.threads[task].wait;
        self.waits_with(task, lock, |wait| wait.is_of_future = true);
        let wait = self.model.threads[task].wait.expect("it waits");
        let entry = self.facts(task).waits.len() as u8;
        let mut wait =
            TaskWait { wait, is_polled: Some(true), is_direct: true, is_for_lock: true, future: None, entry };
        change(&mut wait);
        *self.model.locks[lock].waiters.last_mut().expect("it waits") = wait.wait;
        self.model.threads[task].wait = own.filter(|_| wait.is_polled == Some(false)).or(Some(wait.wait));
        self.facts(task).waits.push(wait);
    }

    /// A future of the task holds a lock.
    pub(super) fn holds_over_await(&mut self, task: ThreadId, lock: LockId, future: Option<usize>) {
        self.holds_with(task, lock, |hold| hold.is_of_future = true);
        let hold = *self.model.threads[task].holds.last().expect("it holds one");
        self.facts(task).holds.push(TaskHold { lock, hold, future });
    }

    /// A mutex in a wrapper, which only its owner may release.
    pub(super) fn lock(&mut self, name: &str) -> LockId {
        let ownership = Ownership::ByRule;
        let nature = Nature { lock_type: LockType::Mutex, is_wrapped: true, ownership, ..Nature::default() };
        let address = 0x7f00_0000 + 64 * self.model.locks.len() as u64;
        self.model.locks.push(Lock { name: LockName::Given(name.into()), nature, ..Lock::at(PID, address) });
        self.model.locks.len() - 1
    }

    pub(super) fn rwlock(&mut self, name: &str, readers_first: Option<bool>) -> LockId {
        let lock = self.lock(name);
        self.model.locks[lock].nature.lock_type = LockType::RwLock;
        self.model.locks[lock].nature.readers_first = readers_first;
        lock
    }

    /// The lock is marked by hand.
    pub(super) fn by_hand(&mut self, lock: LockId) {
        self.model.locks[lock].nature = Nature::default();
    }

    /// The lock's memory says that this thread owns it, and said so in both readings.
    pub(super) fn owned_in_memory(&mut self, thread: ThreadId, lock: LockId) {
        let address = self.model.locks[lock].address;
        let ownership = Ownership::ByRule;
        self.model.locks[lock].owner = Some(OwnerInMemory {
            thread,
            address,
            ownership,
            is_steady: true,
            presumption: None,
            may_be_elsewhere: false,
        });
    }

    pub(super) fn holds(&mut self, thread: ThreadId, lock: LockId) {
        self.holds_with(thread, lock, |_| {});
    }

    pub(super) fn shares(&mut self, thread: ThreadId, lock: LockId) {
        self.holds_with(thread, lock, |hold| hold.is_shared = true);
    }

    pub(super) fn holds_with(&mut self, thread: ThreadId, lock: LockId, change: impl Fn(&mut Hold)) {
        let location = self.location("take.rs", 10 + lock as u32);
        let mut hold = Hold {
            thread,
            lock,
            location: Some(location),
            since_ns: Some(NOW - 30 * SECOND),
            is_steady: true,
            ..Hold::default()
        };
        change(&mut hold);
        self.model.threads[thread].holds.push(hold);
        self.model.locks[lock].holders.push(hold);
    }

    /// Futures of no recorded task hold the lock, in place of the threads that hold it.
    pub(super) fn is_held_by_future(&mut self, lock: LockId) {
        let Lock { holders, possible_holders, .. } = &mut self.model.locks[lock];
        possible_holders.extend(holders.drain(..).map(|hold| Hold {
            state: HoldState::OfFuture,
            is_of_future: true,
            is_steady: true,
            ..hold
        }));
        for thread in &mut self.model.threads {
            thread.holds.retain(|hold| hold.lock != lock);
        }
    }

    pub(super) fn waits(&mut self, thread: ThreadId, lock: LockId) {
        self.waits_with(thread, lock, |_| {});
    }

    pub(super) fn waits_to_share(&mut self, thread: ThreadId, lock: LockId) {
        self.waits_with(thread, lock, |wait| wait.is_shared = true);
    }

    pub(super) fn waits_with(&mut self, thread: ThreadId, lock: LockId, change: impl Fn(&mut Wait)) {
        let mut wait = self.wait(thread, lock, "wait.rs");
        change(&mut wait);
        if wait.is_relock {
            self.model.threads[thread].condition_wait = Some(lock);
            self.model.threads[thread].relock = Some(Box::new(wait));
            let sleep = Wait { is_relock: false, ..wait };
            self.model.threads[thread].sleep = Some(Box::new(sleep));
            self.model.locks[lock].condition_waiters.push(sleep);
            return;
        }
        self.model.threads[thread].wait = Some(wait);
        self.model.locks[lock].waiters.push(wait);
    }

    fn wait(&mut self, thread: ThreadId, lock: LockId, file: &str) -> Wait {
        Wait {
            thread,
            lock,
            location: self.location(file, 10 + lock as u32),
            since_ns: Some(NOW - 12 * SECOND),
            is_steady: true,
            ..Wait::default()
        }
    }

    /// The thread waits on a condition variable, and has released this lock meanwhile.
    pub(super) fn waits_on_condition(&mut self, thread: ThreadId, lock: LockId) {
        self.waits_with(thread, lock, |wait| wait.is_relock = true);
    }

    /// The thread waits for the end of another one.
    pub(super) fn joins(&mut self, thread: ThreadId, joined: ThreadId, change: impl Fn(&mut Join)) {
        let location = self.location("join.rs", 10 + joined as u32);
        let since_ns = Some(NOW - 12 * SECOND);
        let mut join = Join {
            thread,
            joined,
            location,
            since_ns,
            is_timed: false,
            is_steady: true,
            is_of_future: false,
        };
        change(&mut join);
        self.model.threads[thread].join = Some(Box::new(join));
    }

    /// A future of the task waits at a channel, whose other side has one end, which only `peer` has used.
    pub(super) fn awaits_peer(&mut self, task: ThreadId, channel: LockId, receives: bool, peer: ThreadId) {
        self.sleeps_on_semaphore(task, channel);
        self.model.locks[channel].nature.lock_type = LockType::Message;
        let mut wait = **self.model.threads[task].sleep.as_ref().expect("it sleeps");
        wait.is_of_future = true;
        self.model.threads[task].sleep = Some(Box::new(wait));
        let entry = self.facts(task).waits.len() as u8;
        let (is_polled, is_direct, is_for_lock, future) = (Some(true), true, false, None);
        self.facts(task).waits.push(TaskWait { wait, is_polled, is_direct, is_for_lock, future, entry });
        let user = self.model.threads[peer].tid;
        let present = Some(peer).filter(|&peer| self.model.threads[peer].state == ThreadState::Present);
        self.model.threads[task].peer =
            Some(Box::new(Peer { user: Some(user), present, ends: 1, receives, is_presumed: false }));
    }

    /// The thread waits for a unit of a semaphore.
    pub(super) fn sleeps_on_semaphore(&mut self, thread: ThreadId, semaphore: LockId) {
        self.model.locks[semaphore].nature.lock_type = LockType::Semaphore;
        self.model.threads[thread].semaphore_wait = Some(semaphore);
        let sleep = self.wait(thread, semaphore, "sleep.rs");
        self.model.threads[thread].sleep = Some(Box::new(sleep));
        self.model.locks[semaphore].semaphore_waiters.push(sleep);
    }

    pub(super) fn step(&mut self, thread: ThreadId, kind: StepKind, lock: LockId) -> NewStep<'_> {
        self.push(thread, kind, Some(lock), "step.rs", 100 + lock as u32)
    }

    pub(super) fn progress(&mut self, thread: ThreadId) {
        self.push(thread, StepKind::Progress, None, "work.rs", 1);
    }

    pub(super) fn snap(&mut self, thread: ThreadId, location: LocationId) {
        self.push(thread, StepKind::Snap, None, "snap.rs", 1).location = location;
        self.model.threads[thread].last = Some(location);
    }

    fn push(
        &mut self,
        thread: ThreadId,
        kind: StepKind,
        lock: Option<LockId>,
        file: &str,
        line: u32,
    ) -> NewStep<'_> {
        let known = self.steps_at.get(&(file.to_owned(), line)).copied();
        let location = known.unwrap_or_else(|| self.location(file, line));
        self.steps_at.insert((file.to_owned(), line), location);
        let sequence = self.model.threads[thread].steps.len() as u64;
        let step = Step {
            sequence,
            kind,
            lock,
            is_shared: false,
            is_try: false,
            is_readers_first: false,
            location,
            time_ns: Some(NOW - 20 * SECOND + sequence * MILLISECOND),
            since_ns: None,
        };
        NewStep { steps: &mut self.model.threads[thread].steps, step }
    }

    /// The steps of a thread, to be changed.
    pub(super) fn steps(&mut self, thread: ThreadId) -> StepsMut<'_> {
        let steps = &mut self.model.threads[thread].steps;
        StepsMut { unpacked: steps.iter().collect(), steps }
    }

    /// The thread acquires these locks one after the other, and releases them in the opposite order.
    pub(super) fn nests(&mut self, thread: ThreadId, locks: &[LockId]) {
        for &lock in locks {
            self.step(thread, StepKind::AcquireBegin, lock);
        }
        for &lock in locks.iter().rev() {
            self.step(thread, StepKind::Released, lock);
        }
    }

    pub(super) fn run(&self, analysis: &dyn Analysis) -> Vec<Finding> {
        self.run_after(analysis, Vec::new())
    }

    /// Calls `look` with a view of the scene.
    pub(super) fn with_view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        self.with_threshold(10 * SECOND, look)
    }

    pub(super) fn with_threshold<T>(&self, threshold_ns: u64, look: impl FnOnce(&View<'_>) -> T) -> T {
        let locations: Vec<&Location> = self.locations.iter().collect();
        let (now, before, memo) = (&self.model, self.before.as_ref(), Memo::default());
        look(&View { now, before, locations: &locations, threshold_ns, memo })
    }

    /// Runs an analysis after others that have made these findings.
    pub(super) fn run_after(&self, analysis: &dyn Analysis, mut found: Vec<Finding>) -> Vec<Finding> {
        let known = found.len();
        self.with_view(|view| analysis.run(view, &mut found));
        for finding in &found[known..] {
            assert!(!finding.advice.is_empty(), "{finding:?}");
        }
        found.split_off(known)
    }

    /// What a finding says: its sentence, and the lines below it.
    pub(super) fn says(&self, finding: &Finding) -> (String, Vec<String>) {
        let Paragraph { summary, evidence } = finding.paragraph(&NamesOf(self));
        (summary, evidence)
    }

    /// The labels of its source lines.
    pub(super) fn labels(&self, finding: &Finding) -> Vec<String> {
        finding.roles(&NamesOf(self)).into_iter().map(|role| role.label).collect()
    }
}

/// The names of the things of a scene. No kernel says anything of its threads.
struct NamesOf<'s>(&'s Scene);

impl Names for NamesOf<'_> {
    fn model(&self) -> &LockModel {
        &self.0.model
    }

    fn thread(&self, id: ThreadId) -> String {
        self.0.model.threads[id].name.to_string()
    }

    fn lock(&self, id: LockId) -> String {
        match &self.0.model.locks[id].name {
            LockName::Given(name) => name.clone(),
            name => format!("{name:?}"),
        }
    }

    fn location(&self, id: LocationId) -> String {
        self.0.locations[id].source.as_ref().map_or_else(String::new, |(file, line)| format!("{file}:{line}"))
    }

    fn text(&self, raw: &str) -> String {
        raw.to_owned()
    }

    fn source(&self, file: &str, line: u32) -> String {
        format!("{file}:{line}")
    }

    fn is_verbose(&self) -> bool {
        false
    }

    fn doing(&self, _: ThreadId) -> Option<String> {
        None
    }

    fn contradiction(&self, _: ThreadId) -> Option<String> {
        None
    }
}

/// A step that can be changed until it is added to its thread, at the end of the statement.
pub(super) struct NewStep<'a> {
    steps: &'a mut Steps,
    step: Step,
}

impl Deref for NewStep<'_> {
    type Target = Step;

    fn deref(&self) -> &Step {
        &self.step
    }
}

impl DerefMut for NewStep<'_> {
    fn deref_mut(&mut self) -> &mut Step {
        &mut self.step
    }
}

impl Drop for NewStep<'_> {
    fn drop(&mut self) {
        self.steps.push(self.step);
    }
}

/// The steps of a thread, which become the thread's again at the end of the statement.
pub(super) struct StepsMut<'a> {
    steps: &'a mut Steps,
    unpacked: Vec<Step>,
}

impl Deref for StepsMut<'_> {
    type Target = Vec<Step>;

    fn deref(&self) -> &Vec<Step> {
        &self.unpacked
    }
}

impl DerefMut for StepsMut<'_> {
    fn deref_mut(&mut self) -> &mut Vec<Step> {
        &mut self.unpacked
    }
}

impl Drop for StepsMut<'_> {
    fn drop(&mut self) {
        *self.steps = self.unpacked.iter().copied().collect();
    }
}

/// A finding of an earlier analysis about these locks.
pub(super) fn finding_about(kind: Kind, locks: &[LockId]) -> Finding {
    let edges = locks.iter().map(|&lock| OrderEdge {
        thread: 0,
        held: Acquisition { lock, location: 0, is_shared: false },
        acquired: Acquisition { lock, location: 0, is_shared: false },
    });
    let evidence = OrderCycle { edges: edges.collect(), similar: 0, unlisted: 0 };
    Finding::new(kind, Confidence::Proven, evidence, Advice::OneOrder)
}
