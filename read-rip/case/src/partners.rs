//! The processes with which a process may be stuck: those that its threads wait for, and that wait for it.
//!
//! First a look at what the threads of these processes sleep in: nearly always one of those who could help can go on,
//! and nothing more is read. If not, all of them are inspected as the process itself is, and who can help is read again
//! between the two readings.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use read_rip_evidence::process::live::{LiveTarget, Machine};
use read_rip_evidence::standing::{ServerWaits, Standings};
use read_rip_evidence::target::{CallKind, Helper, Need, RunState, Sleep, Task};
use read_rip_evidence::waits::LockManager;
use read_rip_model::findings::{is_loop_alone, server_waits, tells};
use read_rip_model::locks::{Graph, Knot, Stand, Who, graph_of, knots_of, waits_between};
use read_rip_ring::SlotKind;

use crate::{Inspection, Options, Reading, Readings, Triage};

/// No more groups are inspected: to look up the functions of many processes takes long.
pub const GROUPS_MAX: usize = 64;
/// More processes are not inspected together.
const GROUP_MAX: usize = 64;
/// No more are inspected at once: each takes a few descriptors of this program.
const BATCH_MAX: usize = 128;
/// No more processes are looked at, from one process on.
const LOOKED_AT_MAX: usize = 1000;

impl Reading {
    /// Adds the processes with which this one is stuck, and what its threads need of them, if there are any.
    pub fn add_partners(&mut self, options: &Options) {
        let Some(seen) = self.seen.as_ref().filter(|_| self.process().is_some()) else { return };
        // A process whose threads all wait for nobody costs a look at its calls, and no more.
        let (group, mut helpers) = match FirstLook::of(seen) {
            Some(look) => (look.group(seen), look.helpers(seen)),
            None => (None, BTreeMap::new()),
        };
        helpers.extend(owners_of_files(seen));
        let pids: BTreeSet<u32> = helpers.values().map(|helper| helper.party.pid).collect();
        let servers = pids.into_iter().filter_map(|pid| Some((pid, server(pid, options)?))).collect();
        if let Some(seen) = &mut self.seen {
            (seen.helpers, seen.servers) = (helpers, servers);
        }
        let Some(group) = group else { return };
        let seen = inspect(&group[..group.len().min(GROUP_MAX)], options);
        let is_own = seen.first().is_some_and(|own| Some(&own.target.pid) == group.first());
        let has_tasks = self.snapshot.slots.iter().any(|slot| slot.kind == SlotKind::Task);
        let is_of_own = |knot: &Knot| knot.links.iter().all(|link| Some(&link.pid) == group.first());
        let matters = |knot: &Knot| tells(knot) || has_tasks && is_loop_alone(knot) && is_of_own(knot);
        let Some((own, others)) = together(seen, matters).filter(|_| is_own) else { return };
        if let Some(seen) = &mut self.seen {
            seen.adopt(own);
        }
        others.into_iter().for_each(|other| self.add_seen(other));
    }
}

/// Inspects groups of processes that may be stuck together, all in one time between two readings. Returns those that
/// are, with the pids of each.
pub fn stuck_groups(groups: &[Vec<u32>], options: &Options) -> Vec<(Vec<u32>, Readings)> {
    let mut left = groups.iter().peekable();
    let mut found = Vec::new();
    while left.peek().is_some() {
        let mut batch: Vec<&Vec<u32>> = Vec::new();
        let mut count = 0;
        while let Some(group) = left.next_if(|group| batch.is_empty() || count + group.len() <= BATCH_MAX) {
            count += group.len();
            batch.push(group);
        }
        let pids: Vec<u32> = batch.iter().flat_map(|group| group.iter().take(GROUP_MAX)).copied().collect();
        let mut seen: HashMap<u32, Standings> =
            inspect(&pids, options).into_iter().map(|seen| (seen.target.pid, seen)).collect();
        for group in batch {
            let of_group: Vec<Standings> = group.iter().filter_map(|pid| seen.remove(pid)).collect();
            let Some((own, others)) = together(of_group, tells) else { continue };
            let mut reading = Reading::of_process(own);
            others.into_iter().for_each(|other| reading.add_seen(other));
            found.push((group.clone(), reading.into()));
        }
    }
    found
}

/// Inspects processes in two readings, and what they need in between.
pub(crate) fn inspect(pids: &[u32], options: &Options) -> Vec<Standings> {
    let options = Options { stops_threads: false, settles: true, ..options.clone() };
    let begun = Inspection::begin_all(pids, &options);
    let machine = Machine::new();
    let mut needs: HashMap<u32, BTreeMap<usize, Need>> = begun.iter().map(|of| of.needs(&machine)).collect();
    std::thread::sleep(options.window);
    let ended = Inspection::end_all_at(begun);
    let first = ended.iter().map(|&(_, at)| at).min();
    ended
        .into_iter()
        .map(|(mut seen, at)| {
            seen.needs = needs.remove(&seen.target.pid).unwrap_or_default();
            earlier(seen, first.map_or(Duration::ZERO, |first| at - first))
        })
        .collect()
}

/// A process as it was so long ago, within the time between its two readings: how long its threads had slept then.
fn earlier(mut seen: Standings, ago: Duration) -> Standings {
    let ago_ns = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
    let asleep = seen.threads.iter_mut().filter_map(|thread| thread.asleep_ns.as_mut());
    asleep.for_each(|asleep_ns| *asleep_ns = asleep_ns.saturating_sub(ago_ns));
    seen
}

/// The first of these processes and the others, if some of their threads wait for one another for good. `matters`:
/// whether it does that these do.
fn together(seen: Vec<Standings>, matters: impl Fn(&Knot) -> bool) -> Option<(Standings, Vec<Standings>)> {
    let mut seen = seen.into_iter();
    let own = seen.next()?;
    let others = told_apart(&own, seen);
    let all: Vec<&Standings> = [&own].into_iter().chain(&others).collect();
    let (knots, stopped) = knots_of(&all, |at| Some(at.1));
    (knots.iter().any(matters) || !stopped.is_empty()).then_some((own, others))
}

/// Those of other processes that can be in one model with a process: it tells threads and processes apart by their ids
/// in their own PID namespaces.
pub(crate) fn told_apart(own: &Standings, others: impl IntoIterator<Item = Standings>) -> Vec<Standings> {
    let is_nested = |seen: &Standings| seen.target.own_pid != seen.target.pid;
    let nested = is_nested(own);
    let mut ids: HashSet<u32> = own.target.tasks.iter().map(|task| task.own_tid).collect();
    let others = others.into_iter().filter(|seen| {
        is_nested(seen) == nested && seen.target.tasks.iter().all(|task| ids.insert(task.own_tid))
    });
    others.collect()
}

/// What the threads of a process need that was inspected.
struct FirstLook {
    live: LiveTarget,
    machine: Machine,
    needs: BTreeMap<usize, Need>,
}

impl FirstLook {
    /// `None` if they need nobody.
    fn of(seen: &Standings) -> Option<FirstLook> {
        let live = LiveTarget::open_here(seen.target.pid).ok()?;
        let machine = Machine::brief();
        let needs = machine.needs_of(&live, seen);
        (!needs.is_empty()).then_some(FirstLook { live, machine, needs })
    }

    /// The processes that may be stuck together with this one, which comes first; `None` if there are none.
    fn group(&self, seen: &Standings) -> Option<Vec<u32>> {
        let mut own = seen.clone();
        own.needs.clone_from(&self.needs);
        let stands = graph_of(&[&own]).0.pop()?;
        let tids = own.target.tasks.iter().map(|task| task.tid).collect();
        let first = Looked { stands, needs: own.needs, tids, perhaps: Vec::new() };
        let groups = groups(&self.machine, vec![(seen.target.pid, first)], true);
        let mut group = groups.into_iter().find(|group| group.contains(&seen.target.pid))?;
        group.retain(|&pid| pid != seen.target.pid);
        group.insert(0, seen.target.pid);
        Some(group)
    }

    /// The threads whose waits one other process alone can end, if they stood still.
    fn helpers(self, seen: &Standings) -> BTreeMap<usize, Helper> {
        if self.machine.helpers(&self.live, &self.needs).is_empty() {
            return BTreeMap::new();
        }
        let machine = self.machine.thorough();
        let mut helpers = machine.helpers(&self.live, &machine.needs_of(&self.live, seen));
        helpers.retain(|&at, _| seen.threads.get(at).is_some_and(|thread| thread.is_still == Some(true)));
        helpers
    }
}

/// Who has the files of a process, by its threads that look from time to time whether a lock on a file is free, and by
/// those that open a file.
fn owners_of_files(seen: &Standings) -> BTreeMap<usize, Helper> {
    let looks = |at: &usize| seen.threads[*at].manager.is_some_and(LockManager::polls);
    // The kernel wakes those that wait for a lease from time to time, so they need not have stood still.
    let opens = |at: &usize| seen.target.tasks[*at].is_in_call(CallKind::File);
    let looking: Vec<usize> = (0..seen.threads.len()).filter(looks).collect();
    let opening: Vec<usize> = (0..seen.threads.len()).filter(opens).collect();
    if looking.is_empty() && opening.is_empty() {
        return BTreeMap::new();
    }
    let Ok(live) = LiveTarget::open_here(seen.target.pid) else { return BTreeMap::new() };
    let machine = Machine::new();
    let of_lease = |at: usize| Some((at, machine.owner_of_lease(&live, &seen.target.tasks[at])?));
    let opening = opening.into_iter().filter_map(of_lease);
    let owner = (!looking.is_empty()).then(|| machine.owner_of_files(&live)).flatten();
    looking.into_iter().filter_map(|at| Some((at, owner.clone()?))).chain(opening).collect()
}

/// What threads of a process wait for, if it is a server with locks of its own.
fn server(pid: u32, options: &Options) -> Option<ServerWaits> {
    let live = LiveTarget::open_here(pid).ok()?;
    if !live.is_server() {
        return None;
    }
    let options = Options { stops_threads: false, settles: true, ..options.clone() };
    let begun = Inspection::begin(pid, &options).ok().filter(Inspection::waits_for_manager)?;
    std::thread::sleep(options.window);
    server_waits(&begun.end()?)
}

/// Which of these processes may be stuck together, with others that they wait for: groups of pids. The threads of each
/// were read.
pub fn groups_among<'t>(processes: impl IntoIterator<Item = &'t Triage>) -> Vec<Vec<u32>> {
    let machine = Machine::brief();
    // One thread that waits for input, and the process can help whom it wants. One that sleeps for a time can too, and
    // perhaps never does.
    let may_be_stuck = |of: &&Triage| {
        let tasks = of.tasks();
        let waits = || tasks.iter().any(may_be_stuck);
        of.is_frozen() || waits() && tasks.iter().all(|task| may_sleep(task) || may_be_stuck(task))
    };
    let candidates = processes.into_iter().filter(may_be_stuck).map(|of| of.pid);
    let look_at = |pid: u32| {
        let live = LiveTarget::open_here(pid).ok().filter(|live| live.hidden().is_none())?;
        Some((pid, look(&machine, &live)?))
    };
    let known = candidates.filter_map(look_at).collect();
    groups(&machine, known, false)
}

/// The same, from processes that were inspected and wait for locks in memory that processes share.
pub fn groups_of<'s>(seen: impl IntoIterator<Item = &'s Standings>) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    for seen in seen.into_iter().filter(|seen| !seen.needs.is_empty()) {
        if !groups.iter().any(|group| group.contains(&seen.target.pid)) {
            groups.extend(FirstLook::of(seen).and_then(|look| look.group(seen)));
        }
    }
    groups
}

/// What a short look at a process says of its threads.
struct Looked {
    stands: Vec<Stand>,
    needs: BTreeMap<usize, Need>,
    /// Threads that wait for something in memory, and the processes that have this memory.
    perhaps: Vec<(usize, Vec<u32>)>,
    tids: Vec<u32>,
}

/// Follows the needs of processes to others. Returns which of them may be stuck together. `follows`: processes that are
/// not known yet are looked at.
fn groups(machine: &Machine, known: Vec<(u32, Looked)>, follows: bool) -> Vec<Vec<u32>> {
    let mut pids: Vec<u32> = known.iter().map(|(pid, _)| *pid).collect();
    let mut number: HashMap<u32, usize> = pids.iter().enumerate().map(|(at, &pid)| (pid, at)).collect();
    let mut looked: Vec<Looked> = known.into_iter().map(|(_, looked)| looked).collect();
    let mut queue: VecDeque<usize> = (0..looked.len()).collect();
    while let Some(at) = queue.pop_front().filter(|_| follows) {
        let of = &looked[at];
        let parties = of.needs.values().flat_map(|need| need.by.iter().chain(&need.also));
        let parties = parties.map(|party| party.pid);
        let parties: Vec<u32> =
            parties.chain(of.perhaps.iter().flat_map(|(_, pids)| pids).copied()).collect();
        for pid in parties {
            if number.contains_key(&pid) || looked.len() >= LOOKED_AT_MAX {
                continue;
            }
            let found = LiveTarget::open_here(pid).ok().filter(|live| live.hidden().is_none());
            let found = found.and_then(|live| look(machine, &live));
            number.insert(pid, looked.len());
            queue.push_back(looked.len());
            pids.push(pid);
            looked.push(found.unwrap_or(Looked {
                stands: vec![Stand::Free],
                needs: BTreeMap::new(),
                perhaps: Vec::new(),
                tids: Vec::new(),
            }));
        }
    }
    let tids: Vec<Vec<u32>> = looked.iter().map(|of| of.tids.clone()).collect();
    let thread = |process: usize, tid| tids[process].iter().position(|&known| known == tid);
    let graph = looked.into_iter().enumerate().map(|(process, of)| {
        let Looked { mut stands, needs, perhaps, .. } = of;
        // A process that is frozen needs to be thawed first.
        let is_halted: Vec<bool> = stands.iter().map(|stand| *stand == Stand::Halted).collect();
        for stand in &mut stands {
            if let Stand::Waits { by, .. } = stand {
                by.iter_mut().filter(|who| **who == OWN).for_each(|who| *who = Who::Process(process));
            }
        }
        for (at, pids) in perhaps {
            let known = pids.iter().filter_map(|pid| number.get(pid));
            stands[at] = Stand::Perhaps(known.map(|&process| Who::Process(process)).collect());
        }
        for (&at, need) in needs.iter().filter(|&(&at, _)| !is_halted[at]) {
            stands[at] = waits_between(need, &number, thread);
        }
        stands
    });
    let graph = Graph(graph.collect()).without_sleepers();
    let stuck = graph.stuck();
    let groups = graph.groups(&stuck).into_iter();
    groups.map(|group| group.into_iter().map(|process| pids[process]).collect()).collect()
}

/// The process of the thread itself, before it has a number.
const OWN: Who = Who::Process(usize::MAX);

/// A short look at what the threads of a process sleep in. `None` if it has ended.
fn look(machine: &Machine, live: &LiveTarget) -> Option<Looked> {
    let tasks = live.tasks().ok()?;
    let needs = machine.needs(live, &tasks);
    let mut perhaps = Vec::new();
    let is_frozen = live.freezer().is_some_and(|freezer| freezer.thaw().is_some());
    let stands = tasks.iter().enumerate().map(|(at, task)| match task.sleep {
        _ if matches!(task.state, RunState::Zombie | RunState::Dead) => Stand::Ended,
        _ if is_frozen || matches!(task.state, RunState::Stopped | RunState::Traced) => Stand::Halted,
        _ if may_sleep(task) => Stand::Sleeps,
        Some(Sleep::Call(call)) if task.state == RunState::Sleeping => match call.futex() {
            Some(futex) if futex.is_timed => Stand::Free,
            Some(futex) if futex.is_private => Stand::Waits { by: vec![OWN], is_between: false },
            Some(futex) => {
                perhaps.push((at, machine.sharers(live.pid(), futex.address).unwrap_or_default()));
                Stand::Perhaps(Vec::new())
            }
            None => Stand::Free,
        },
        _ => Stand::Free,
    });
    let (stands, tids) = (stands.collect(), tasks.iter().map(|task| task.tid).collect());
    Some(Looked { stands, needs, perhaps, tids })
}

/// Whether a thread may be one that sleeps for a time, again and again. One that runs may have woken just now: two
/// readings tell.
fn may_sleep(task: &Task) -> bool {
    task.state == RunState::Running || task.is_at_timer()
}

/// Whether a thread may wait for somebody, by its call alone.
fn may_be_stuck(task: &Task) -> bool {
    match (task.state, task.sleep) {
        (RunState::Zombie | RunState::Dead | RunState::Stopped | RunState::Traced, _) => true,
        (RunState::Sleeping, Some(Sleep::Call(call))) => Machine::may_need(call),
        _ => false,
    }
}
