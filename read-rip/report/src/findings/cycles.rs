//! Sentences about cycles: deadlocks, lock orders and livelocks. It decides nothing.

use read_rip_model::findings::{
    Blocker, BusyLoops, ChannelFact, JoinFact, LockEdge, MutualFailure, OrderCycle, OrderEdge, WaitCycle,
    WaitEdge, WorkerFact,
};
use read_rip_model::locks::ThreadId;

use super::words::{Paragraph, Words, agree, in_parentheses, shared};

pub(super) fn wait_cycle(words: &mut Words<'_>, cycle: &WaitCycle) -> Paragraph {
    let lasting = words.lasting(", for ", cycle.for_ns);
    let summary = match &cycle.edges[..] {
        [edge] if cycle.threads == 1 => match edge {
            WaitEdge::Lock(edge) => {
                let thread = words.thread(edge.wait.thread);
                match words.is_once(edge.wait.lock) {
                    _ if matches!(edge.blocker, Blocker::LeftOut(_)) => format!(
                        "{thread} waits for a lock that another future of its own is next to get{lasting}"
                    ),
                    _ if words.is_refused(edge.wait.lock) => {
                        format!("the kernel has refused a mutex to {thread}, which sleeps for good{lasting}")
                    }
                    true => format!("{thread} waits for an initialisation that it runs itself{lasting}"),
                    false => format!("{thread} waits for a lock that it holds itself{lasting}"),
                }
            }
            WaitEdge::Join { join } => {
                format!("{} waits for its own end{lasting}", words.thread(join.thread))
            }
            WaitEdge::Channel { channel } => {
                let what = if channel.is_for_room {
                    "room that only it makes"
                } else {
                    "a message, and has the only sender itself"
                };
                format!("{} waits for {what}{lasting}", words.thread(channel.thread))
            }
            WaitEdge::Worker { worker } => {
                format!("{} waits for the worker that polls it{lasting}", words.thread(worker.task))
            }
        },
        edges => {
            let members: Vec<ThreadId> = edges.iter().map(WaitEdge::thread).collect();
            format!("{} wait for one another{lasting}", words.members(&members, cycle.threads))
        }
    };
    let mut evidence: Vec<String> = cycle.edges.iter().map(|edge| wait_edge(words, edge)).collect();
    let unlisted = cycle.threads.saturating_sub(cycle.edges.len());
    if unlisted > 0 {
        evidence.push(format!("and so on: {} close the cycle", words.more_threads(unlisted)));
    }
    if cycle.also_blocked > 0 {
        evidence.push(format!(
            "{} {} blocked by {}",
            words.more_threads(cycle.also_blocked),
            agree(cycle.also_blocked, "is", "are"),
            agree(cycle.threads, "it", "them")
        ));
    }
    Paragraph { summary, evidence }
}

fn wait_edge(words: &mut Words<'_>, edge: &WaitEdge) -> String {
    let LockEdge { wait, blocker } = match edge {
        WaitEdge::Lock(edge) => edge,
        WaitEdge::Join { join } => return join_edge(words, join),
        WaitEdge::Channel { channel } => return channel_edge(words, channel),
        WaitEdge::Worker { worker } => return worker_edge(words, worker),
    };
    let thread = words.thread(wait.thread);
    if words.is_refused(wait.lock) {
        let limit = if wait.is_timed { " until a time limit ends" } else { "" };
        return format!(
            "{thread} sleeps{limit} at {}: to wait for the mutex, which has priority inheritance, would be a deadlock, \
             or its owner has ended",
            words.location(wait.location)
        );
    }
    let (lock, mode) = (words.lock(wait.lock), in_parentheses(wait.is_shared));
    let limit = if wait.is_timed { ", with a time limit" } else { "" };
    let blocked_by = match blocker {
        Blocker::Holder(hold) => {
            let holder =
                if hold.thread == wait.thread { "itself".to_owned() } else { words.thread(hold.thread) };
            let (shared, lasting) = (shared(hold.is_shared), words.lasting(" for ", hold.for_ns));
            let held = words.verbs(hold.lock).held;
            format!("{held}{shared} by {holder}{lasting}{}", words.acquired(hold))
        }
        Blocker::LeftOut(first) => {
            let whose =
                if first.thread == wait.thread { "it".to_owned() } else { words.thread(first.thread) };
            let known = if words.is_held_where_recorded(wait.lock) { "holds" } else { "is known to hold" };
            format!(
                "which nobody {known}: the first in line is another future of {whose}, which waits at {}{}, and is \
                 not polled",
                words.location(first.location),
                words.lasting(" for ", first.for_ns)
            )
        }
        Blocker::QueuedWriter(writer) => {
            format!("queued after {}, which waits to acquire it exclusively", words.thread(*writer))
        }
    };
    let location = words.location(wait.location);
    if wait.is_relock {
        return format!(
            "{thread} waits on a condition at {location} and needs {lock} to return, {blocked_by}"
        );
    }
    let but = words.contradiction(wait.thread);
    format!("{thread} waits for {lock}{mode} at {location}{limit}, {blocked_by}{but}")
}

fn channel_edge(words: &mut Words<'_>, edge: &ChannelFact) -> String {
    let lock = words.lock(edge.lock);
    let peer = match edge.peer == edge.thread {
        true => "it".to_owned(),
        false => words.thread(edge.peer),
    };
    let (what, whose) = match () {
        () if edge.is_for_answer => ("the answer at", format!("{peer} received the request, it is presumed")),
        () if edge.is_for_room => ("room in", format!("only {peer} has received from it")),
        () => ("a message of", format!("it has one sender, which only {peer} has used")),
    };
    format!(
        "{} waits for {what} {lock} at {}{}: {whose}",
        words.thread(edge.thread),
        words.location(edge.location),
        words.lasting(", for ", edge.for_ns)
    )
}

fn worker_edge(words: &Words<'_>, edge: &WorkerFact) -> String {
    let worker = words.thread(edge.worker);
    let by = match edge.workers {
        None => format!("{worker} polls it, which"),
        Some(1) => format!("a worker of its executor polls it, and the only worker, {worker},"),
        Some(all) => {
            format!("a worker of its executor polls it, and all {all} workers are stuck; one, {worker},")
        }
    };
    let why = match edge.polled {
        Some(polled) => format!("does not return from the poll of {}", words.thread(polled)),
        None => "waits itself".to_owned(),
    };
    format!("{} goes on only if {by} {why}", words.thread(edge.task))
}

fn join_edge(words: &Words<'_>, join: &JoinFact) -> String {
    let limit = if join.is_timed { ", with a time limit" } else { "" };
    format!(
        "{} waits for the end of {} at {}{limit}{}",
        words.thread(join.thread),
        words.thread(join.joined),
        words.location(join.location),
        words.lasting(", for ", join.for_ns)
    )
}

pub(super) fn order_cycle(words: &mut Words<'_>, cycle: &OrderCycle) -> Paragraph {
    let is_one = cycle.edges.windows(2).all(|edges| edges[0].thread == edges[1].thread);
    let summary = match cycle.edges.len() {
        2 if is_one => "a thread acquires two locks in opposite orders".to_owned(),
        2 => "2 threads acquire two locks in opposite orders".to_owned(),
        locks => format!("{} acquire {locks} locks in orders that form a cycle", words.threads(locks)),
    };
    let mut evidence: Vec<String> = cycle.edges.iter().map(|edge| order_edge(words, edge)).collect();
    if cycle.similar > 0 {
        let (sets, form) = (agree(cycle.similar, "set", "sets"), agree(cycle.similar, "forms", "form"));
        evidence
            .push(format!("{} more {sets} of locks with the same names {form} such a cycle", cycle.similar));
    }
    if cycle.unlisted > 0 {
        let (inversions, are) =
            (agree(cycle.unlisted, "inversion", "inversions"), agree(cycle.unlisted, "is", "are"));
        evidence.push(format!("{} more {inversions} {are} not listed", cycle.unlisted));
    }
    Paragraph { summary, evidence }
}

fn order_edge(words: &mut Words<'_>, edge: &OrderEdge) -> String {
    let OrderEdge { thread, held, acquired } = edge;
    format!(
        "{} acquired {}{} at {} while it held {}{}, acquired at {}",
        words.thread(*thread),
        words.lock(acquired.lock),
        in_parentheses(acquired.is_shared),
        words.location(acquired.location),
        words.lock(held.lock),
        in_parentheses(held.is_shared),
        words.location(held.location)
    )
}

pub(super) fn mutual_failure(words: &mut Words<'_>, failure: &MutualFailure) -> Paragraph {
    let summary = format!("{} try, fail and step back repeatedly", words.threads(failure.threads));
    let mut evidence = Vec::new();
    for tries in &failure.tries {
        let (thread, lock) = (words.thread(tries.thread), words.lock(tries.lock));
        let location = words.location(tries.location);
        let other = tries.other.map(|other| format!(", which {} acquires", words.thread(other)));
        evidence.push(format!(
            "{thread} failed {} times to acquire {lock} at {location}{}",
            tries.count,
            other.unwrap_or_default()
        ));
    }
    evidence.extend(words.and_more(failure.threads.saturating_sub(failure.tries.len())));
    let achieved = if failure.is_progress_marked { "made progress" } else { "acquired a second lock" };
    evidence.push(format!("none of them {achieved}, as far as their histories reach"));
    Paragraph { summary, evidence }
}

pub(super) fn busy_loops(words: &Words<'_>, loops: &BusyLoops) -> Paragraph {
    let summary = format!("{} are busy, and no thread made progress", words.threads(loops.threads));
    let mut evidence = Vec::new();
    for one in &loops.loops {
        let last = one.last.map(|last| format!(", last {}", words.location(last)));
        let thread = words.thread(one.thread);
        evidence.push(format!(
            "{thread} passed {} marks at few locations{}",
            one.marks,
            last.unwrap_or_default()
        ));
    }
    evidence.extend(words.and_more(loops.threads.saturating_sub(loops.loops.len())));
    Paragraph { summary, evidence }
}
