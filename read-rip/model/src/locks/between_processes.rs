//! Threads of several processes that wait for one another: the graph of their waits, and who can never go on.
//!
//! The kernel says what a thread needs from other processes, and the memory says which thread of its own process has
//! what it waits for. `knots` says what follows.

use std::collections::HashMap;

use read_rip_evidence::standing::{LATELY_NS, ServerWaits, Standings};
use read_rip_evidence::target::{Helper, Need, Needed, Others, Party, RunState, Target};
use read_rip_evidence::waits::{FutexWait, Owner, WaitKind};

use super::ThreadId;
use super::halt::{HaltCause, halts};
use super::knots::{At, Graph, Stand, Who};

/// Threads that wait for one another, in several processes, and for nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knot {
    /// They, in the order of their waits.
    pub links: Vec<Link>,
    /// Threads that can go on only after one of these.
    pub behind: Vec<ThreadId>,
    /// Who else may help, as far as any of the needs says so.
    pub others: Others,
    /// Threads of the processes that could help. They sleep for a time, again and again, and have gone on since these
    /// wait. Without them nobody could.
    pub sleepers: Vec<ThreadId>,
}

/// A thread of a knot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub thread: ThreadId,
    /// Its process: the pid in this reader's PID namespace.
    pub pid: u32,
    /// The name of its program; may contain anything.
    pub program: String,
    /// How many threads its process has.
    pub threads: usize,
    /// What it needs from other processes; `None` if it waits within its own.
    pub need: Option<Need>,
    /// The thread of its own process for which it waits, if the memory names one.
    pub owner: Option<ThreadId>,
}

/// Threads that wait for processes which do not run: something has stopped all who could end their waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedPartners {
    pub links: Vec<Link>,
    /// The processes that do not run.
    pub stopped: Vec<StoppedPartner>,
    /// Who else may help, as far as any of the needs says so.
    pub others: Others,
}

/// A process that does not run, and for which others wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedPartner {
    /// Its pid in this reader's PID namespace.
    pub pid: u32,
    /// Its pid in its own PID namespace.
    pub own_pid: u32,
    /// The name of its program; may contain anything.
    pub program: String,
    pub cause: HaltCause,
}

/// A process that alone can end the waits of some threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyHelper {
    /// It, and what it does.
    pub helper: Helper,
    pub threads: Vec<ThreadId>,
    /// What its own threads wait for, if it is a server with locks of its own.
    pub server: Option<ServerWaits>,
}

/// The processes each of which alone can end waits of a process. `thread_of` says which thread of the model a thread
/// is, by its index.
pub fn only_helpers(seen: &Standings, thread_of: impl Fn(usize) -> Option<ThreadId>) -> Vec<OnlyHelper> {
    let mut all: Vec<OnlyHelper> = Vec::new();
    for (&at, helper) in &seen.helpers {
        let Some(thread) = thread_of(at).filter(|_| !seen.needs.contains_key(&at)) else { continue };
        match all.iter_mut().find(|known| known.helper.party.pid == helper.party.pid) {
            Some(known) => known.threads.push(thread),
            None => {
                let server = seen.servers.get(&helper.party.pid).copied();
                all.push(OnlyHelper { helper: helper.clone(), threads: vec![thread], server });
            }
        }
    }
    all
}

/// A lock in shared memory whose owner has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostLock {
    pub address: u64,
    pub owner: u32,
    /// Whether only forks of one process can have the memory.
    pub of_forks: bool,
    pub threads: Vec<ThreadId>,
}

/// The locks in shared memory for which threads of a process wait, and whose owners have ended. `thread_of` says which
/// thread of the model a thread is, by its index.
pub fn lost_locks(seen: &Standings, thread_of: impl Fn(usize) -> Option<ThreadId>) -> Vec<LostLock> {
    let mut lost: Vec<LostLock> = Vec::new();
    for (&at, need) in &seen.needs {
        let Needed::LostLock { address, owner, of_forks } = need.what else { continue };
        let Some(thread) = thread_of(at).filter(|_| seen.threads[at].is_steady) else { continue };
        match lost.iter_mut().find(|lost| lost.address == address) {
            Some(known) => known.threads.push(thread),
            None => lost.push(LostLock { address, owner, of_forks, threads: vec![thread] }),
        }
    }
    lost
}

/// The graph of these processes.
pub fn graph_of(seen: &[&Standings]) -> Graph {
    let processes: HashMap<u32, usize> =
        seen.iter().enumerate().map(|(at, of)| (of.target.pid, at)).collect();
    let graph = seen.iter().enumerate().map(|(process, of)| {
        let own: HashMap<u32, usize> =
            of.target.tasks.iter().enumerate().map(|(at, task)| (task.own_tid, at)).collect();
        (0..of.threads.len()).map(|at| stand(seen, &processes, &own, (process, at))).collect()
    });
    Graph(graph.collect())
}

fn stand(
    seen: &[&Standings],
    processes: &HashMap<u32, usize>,
    own: &HashMap<u32, usize>,
    (process, at): At,
) -> Stand {
    let of = seen[process];
    let thread = &of.threads[at];
    if matches!(of.target.tasks[at].state, RunState::Zombie | RunState::Dead) {
        return Stand::Ended;
    }
    let goes_on = if thread.is_at_timer { Stand::Sleeps } else { Stand::Free };
    if thread.is_still != Some(true) {
        return goes_on;
    }
    if of.is_frozen() || matches!(of.target.tasks[at].state, RunState::Stopped | RunState::Traced) {
        return Stand::Halted;
    }
    if let Some(need) = of.needs.get(&at) {
        let thread = |process: usize, tid| seen[process].target.tasks.iter().position(|task| task.tid == tid);
        return waits_between(need, processes, thread);
    }
    if thread.is_in_silent_call {
        return Stand::Waits { by: vec![Who::Process(process)], is_between: false };
    }
    let Some(wait) = thread.wait.as_ref().filter(|wait| thread.is_steady && !wait.is_timed) else {
        return goes_on;
    };
    match within(wait, process, own, at) {
        Some(who) => Stand::Waits { by: vec![who], is_between: false },
        None => Stand::Free,
    }
}

/// A thread that needs other processes. `processes` has their indices by pid, and `thread` finds a thread of one by its
/// id.
pub fn waits_between(
    need: &Need,
    processes: &HashMap<u32, usize>,
    thread: impl Fn(usize, u32) -> Option<usize>,
) -> Stand {
    let who = |party: &Party| {
        let Some(&process) = processes.get(&party.pid) else { return Who::Stranger };
        let Some(tid) = party.tid else { return Who::Process(process) };
        thread(process, tid).map_or(Who::Stranger, |at| Who::Thread(process, at))
    };
    Stand::Waits { by: need.by.iter().chain(&need.also).map(who).collect(), is_between: true }
}

/// Who can end a wait for a word of memory, if only threads of the process can.
fn within(wait: &FutexWait, process: usize, own: &HashMap<u32, usize>, at: usize) -> Option<Who> {
    match wait.owner {
        _ if wait.kind == WaitKind::Refused => Some(Who::Thread(process, at)),
        Owner::Tid(tid) => own.get(&tid).map(|&at| Who::Thread(process, at)),
        Owner::Nobody | Owner::Unknown(_) => wait.is_private.then_some(Who::Process(process)),
    }
}

/// The knots of these processes, and the threads that wait for processes which do not run. `thread_of` says which
/// thread of the model a thread is.
pub fn knots_of(
    seen: &[&Standings],
    thread_of: impl Fn(At) -> Option<ThreadId>,
) -> (Vec<Knot>, Vec<StoppedPartners>) {
    if seen.iter().all(|of| of.needs.is_empty()) {
        return (Vec::new(), Vec::new());
    }
    let graph = graph_of(seen);
    let stuck = graph.stuck();
    let knots = graph.knots(&stuck);
    let stopped = stopped_partners(seen, &graph, &stuck, &thread_of);
    let is_halted = |&(process, at): &At| graph.0[process][at] == Stand::Halted;
    let in_knots: Vec<At> = knots.iter().flatten().copied().collect();
    let behind = stuck.iter().enumerate().flat_map(|(process, threads)| {
        let stuck = threads.iter().enumerate().filter(|&(_, &is_stuck)| is_stuck);
        stuck.map(move |(at, _)| (process, at))
    });
    let behind = behind.filter(|at| !in_knots.contains(at) && !is_halted(at)).filter_map(&thread_of);
    let is_told = |id: &ThreadId| stopped.iter().flat_map(|of| &of.links).any(|link| link.thread == *id);
    let behind: Vec<ThreadId> = behind.filter(|id| !is_told(id)).collect();
    let knot = |knot: &[At], behind: &[ThreadId], sleepers: &[At]| {
        let links: Vec<Link> =
            in_order(&graph, knot).into_iter().filter_map(|at| link(seen, &graph, at, &thread_of)).collect();
        let needs = links.iter().filter_map(|link| link.need.as_ref());
        let others = needs.fold(Others::default(), |all, need| all.or(need.others));
        let sleepers = sleepers.iter().copied().filter_map(&thread_of).collect();
        Knot { links, behind: behind.to_vec(), others, sleepers }
    };
    let mut all: Vec<Knot> = knots.iter().map(|of| knot(of, &behind, &[])).collect();
    let without = graph.without_sleepers();
    let beside = without.knots(&without.stuck());
    let beside = beside.iter().filter(|of| of.iter().any(|&(process, at)| !stuck[process][at]));
    all.extend(beside.filter_map(|of| Some(knot(of, &[], &idle_sleepers(seen, &graph, of)?))));
    (all, stopped)
}

/// The threads of processes that could help these, if all of them sleep for a time, and each has gone on after these
/// had waited for a while. `None` if one has not: it may be about to help.
fn idle_sleepers(seen: &[&Standings], graph: &Graph, knot: &[At]) -> Option<Vec<At>> {
    let asleep_ns = |&(process, at): &At| seen[process].threads[at].asleep_ns;
    let shortest = knot.iter().map(asleep_ns).min().flatten()?;
    let stands = knot.iter().map(|&(process, at)| &graph.0[process][at]);
    let by = stands.filter_map(|stand| if let Stand::Waits { by, .. } = stand { Some(by) } else { None });
    let mut helpers: Vec<usize> = by
        .flatten()
        .filter_map(|who| if let Who::Process(process) = *who { Some(process) } else { None })
        .collect();
    helpers.sort_unstable();
    helpers.dedup();
    let threads = |&process: &usize| (0..graph.0[process].len()).map(move |at| (process, at));
    let sleepers = helpers.iter().flat_map(threads).filter(|&(of, at)| graph.0[of][at] == Stand::Sleeps);
    let sleepers: Vec<At> = sleepers.collect();
    let has_ticked = |&(process, at): &At| {
        let thread = &seen[process].threads[at];
        has_ticked(thread.is_still, thread.asleep_ns, shortest)
    };
    sleepers.iter().all(has_ticked).then_some(sleepers)
}

/// Whether a thread that sleeps for a time has gone on after others had waited for a while, which sleep for so long at
/// least. One that has just begun to sleep shows nothing.
pub(crate) fn has_ticked(is_still: Option<bool>, asleep_ns: Option<u64>, shortest_ns: u64) -> bool {
    let ago_ns = match asleep_ns {
        Some(asleep_ns) if is_still == Some(true) => asleep_ns,
        _ if is_still == Some(false) => 0,
        _ => return false,
    };
    ago_ns + LATELY_NS <= shortest_ns
}

fn stopped_partners(
    seen: &[&Standings],
    graph: &Graph,
    stuck: &[Vec<bool>],
    thread_of: &impl Fn(At) -> Option<ThreadId>,
) -> Vec<StoppedPartners> {
    let mut found: Vec<(Vec<usize>, StoppedPartners)> = Vec::new();
    for (at, processes) in graph.behind_halted(stuck) {
        let Some(link) = link(seen, graph, at, thread_of) else { continue };
        let stopped: Vec<StoppedPartner> =
            processes.iter().filter_map(|&process| stopped_partner(seen[process])).collect();
        let is_tracer = |of: &StoppedPartner| of.cause.tracer() == Some(link.pid);
        let is_usual = match link.need.as_ref().map(|need| &need.what) {
            // The tracer of a child is told what becomes of it.
            Some(Needed::EndOfChild) => stopped.iter().any(is_tracer),
            // A server waits so for its client, whatever that does.
            Some(Needed::DataInSocket | Needed::OneOfMany(_)) => true,
            _ => false,
        };
        if stopped.len() < processes.len() || is_usual {
            continue;
        }
        let others = link.need.as_ref().map(|need| need.others).unwrap_or_default();
        match found.iter_mut().find(|(known, _)| *known == processes) {
            Some((_, known)) => {
                known.links.push(link);
                known.others = known.others.or(others);
            }
            None => found.push((processes, StoppedPartners { links: vec![link], stopped, others })),
        }
    }
    found.into_iter().map(|(_, found)| found).collect()
}

fn stopped_partner(seen: &Standings) -> Option<StoppedPartner> {
    let is_stop = |cause: &HaltCause| !matches!(cause, HaltCause::Kernel(_));
    let cause = halts(seen).into_iter().map(|(cause, _)| cause).find(is_stop)?;
    let Target { pid, own_pid, name, .. } = &seen.target;
    Some(StoppedPartner { pid: *pid, own_pid: *own_pid, program: name.clone(), cause })
}

fn link(
    seen: &[&Standings],
    graph: &Graph,
    at: At,
    thread_of: &impl Fn(At) -> Option<ThreadId>,
) -> Option<Link> {
    let of = seen[at.0];
    let owner = match &graph.0[at.0][at.1] {
        Stand::Waits { by, is_between: false } => by.iter().find_map(|who| match *who {
            Who::Thread(process, at) => thread_of((process, at)),
            _ => None,
        }),
        _ => None,
    };
    Some(Link {
        thread: thread_of(at)?,
        pid: of.target.pid,
        program: of.target.name.clone(),
        threads: of.threads.len(),
        need: of.needs.get(&at.1).cloned(),
        owner,
    })
}

/// The threads of a knot, each followed by one for which it waits, as far as that goes.
fn in_order(graph: &Graph, knot: &[At]) -> Vec<At> {
    let mut left = knot.to_vec();
    left.sort_unstable();
    let mut ordered: Vec<At> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let mut at = left.remove(0);
        ordered.push(at);
        while let Stand::Waits { by, .. } = &graph.0[at.0][at.1] {
            let next = left.iter().position(|&other| {
                by.iter().any(|who| match *who {
                    Who::Process(process) => other.0 == process,
                    Who::Thread(process, thread) => other == (process, thread),
                    Who::Stranger => false,
                })
            });
            let Some(next) = next else { break };
            at = left.remove(next);
            ordered.push(at);
        }
    }
    ordered
}
