//! Who waits for whom now, as a graph: what is drawn of it is up to others.
//!
//! A thread leads to the lock that it waits for, and a lock to the thread that holds it. So a deadlock is a circle. A
//! channel leads to the one that alone has used its other side, if that is known.
//! Threads that wait for one lock at one place, and that nobody waits for, are one node.

use std::collections::{BTreeMap, BTreeSet};

use read_rip_model::locations::LocationId;
use read_rip_model::locks::{LockId, LockModel, Object, ThreadId, ThreadLocks};
use read_rip_model::threads::ThreadState;
use read_rip_report::LockNames;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Lock(LockId),
    Thread(ThreadId),
    /// Threads that nobody waits for, and that do the same.
    Waiting(Vec<ThreadId>),
    /// A part of a long circle, by the threads in it: see [`abridge`](WaitGraph::abridge).
    Part(Vec<ThreadId>),
}

impl Node {
    /// What it is called: a lock or a thread by its name, several threads by their number.
    pub fn label(&self, names: &LockNames<'_>) -> String {
        match self {
            &Node::Lock(lock) => names.lock(&names.model.locks[lock]),
            &Node::Thread(thread) => names.thread(thread),
            Node::Waiting(threads) => match threads[..] {
                [one] => names.thread(one),
                _ => names.members(threads, threads.len()),
            },
            Node::Part(threads) => names.members(threads, threads.len()).replacen(' ', " more ", 1),
        }
    }

    pub fn is_lock(&self) -> bool {
        matches!(self, Node::Lock(_))
    }
}

/// Why one node leads to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// A thread waits for a lock, or for what is not held, such as a message.
    Waits,
    /// A thread waits on a condition variable, and has released the lock meanwhile.
    Condition,
    Held,
    /// A lock is presumably held by a thread.
    Presumed,
    /// A channel has one end on the other side of a wait, and only this thread has used it.
    Uses,
    /// A thread waits for the end of another one.
    Joins,
}

/// An edge from one node to another, by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    pub kind: EdgeKind,
    /// Where the thread waits, or acquired the lock; `None` if that is not known.
    pub location: Option<LocationId>,
}

/// Who waits for whom now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitGraph {
    /// First the locks, then the threads that others wait for, then all others.
    pub nodes: Vec<Node>,
    /// Waits, then holds, then who uses channels.
    pub edges: Vec<Edge>,
}

impl WaitGraph {
    /// The graph of all threads that exist.
    pub fn of(model: &LockModel) -> WaitGraph {
        let present = || model.threads.iter().enumerate().filter(|(_, it)| it.state == ThreadState::Present);
        let waits: Vec<(ThreadId, Vec<(Object, LocationId)>)> =
            present().map(|(id, _)| (id, waits(model, id))).collect();
        let objects = || waits.iter().flat_map(|(_, waits)| waits).map(|&(object, _)| object);
        let wanted: BTreeSet<LockId> = objects().filter_map(Object::lock).collect();
        let joined = objects().filter_map(|object| match object {
            Object::End(joined) => Some(joined),
            _ => None,
        });
        let awaited: BTreeSet<ThreadId> = wanted
            .iter()
            .flat_map(|&lock| &model.locks[lock].holders)
            .map(|hold| hold.thread)
            .chain(joined)
            .chain(present().filter_map(|(_, thread)| only_peer(thread)))
            .collect();
        let mut graph = WaitGraph::default();
        let locks = graph.add_all(&wanted, Node::Lock);
        let threads = graph.add_all(&awaited, Node::Thread);

        // Those that nobody waits for, by all that they wait for.
        let mut crowds: BTreeMap<&[(Object, LocationId)], Vec<ThreadId>> = BTreeMap::new();
        let mut edges: Vec<(usize, Object, LocationId)> = Vec::new();
        for (id, waits) in waits.iter().filter(|(_, waits)| !waits.is_empty()) {
            match threads.get(id) {
                Some(&from) => edges.extend(waits.iter().map(|&(object, at)| (from, object, at))),
                None => crowds.entry(waits).or_default().push(*id),
            }
        }
        for (waits, waiting) in crowds {
            let from = graph.add(Node::Waiting(waiting));
            edges.extend(waits.iter().map(|&(object, at)| (from, object, at)));
        }
        for &(from, object, location) in &edges {
            let (to, kind) = match object {
                Object::Lock(lock) | Object::Unit(lock) => (locks[&lock], EdgeKind::Waits),
                Object::Condition(lock) => (locks[&lock], EdgeKind::Condition),
                Object::End(joined) => (threads[&joined], EdgeKind::Joins),
            };
            graph.edge(from, to, kind, Some(location));
        }
        for &lock in &wanted {
            let of = &model.locks[lock];
            let kind = if of.is_holder_presumed() { EdgeKind::Presumed } else { EdgeKind::Held };
            for hold in &of.holders {
                graph.edge(locks[&lock], threads[&hold.thread], kind, hold.location);
            }
        }
        let peers: BTreeSet<(LockId, ThreadId)> = present()
            .filter_map(|(_, thread)| Some((thread.awaited()?.lock()?, only_peer(thread)?)))
            .filter(|(channel, _)| wanted.contains(channel))
            .collect();
        for (channel, peer) in peers {
            graph.edge(locks[&channel], threads[&peer], EdgeKind::Uses, None);
        }
        graph
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn add_all(&mut self, ids: &BTreeSet<usize>, node: fn(usize) -> Node) -> BTreeMap<usize, usize> {
        ids.iter().map(|&id| (id, self.add(node(id)))).collect()
    }

    fn edge(&mut self, from: usize, to: usize, kind: EdgeKind, location: Option<LocationId>) {
        self.edges.push(Edge { from, to, kind, location });
    }

    /// Replaces the middle of each long circle by one node. A circle is long if it has more than `most` nodes, and none
    /// of them is in another circle. About `ends` nodes are left at its beginning and as many at its end. Who waits for
    /// what is replaced goes with it.
    pub fn abridge(&mut self, most: usize, ends: usize) {
        for circle in self.circles().into_iter().filter(|circle| circle.len() > most) {
            let is_thread = |at: &usize| !self.nodes[*at].is_lock();
            // The part is from thread to thread: it holds the lock before it, and waits for the one after it.
            let (head, tail) = (ends, circle.len().saturating_sub(ends));
            let inner = || circle.get(head..tail).unwrap_or_default().iter();
            let (Some(from), Some(to)) = (inner().position(is_thread), inner().rposition(is_thread)) else {
                continue;
            };
            let part = &circle[head + from..=head + to];
            let threads = part.iter().filter_map(|&at| match self.nodes[at] {
                Node::Thread(thread) => Some(thread),
                _ => None,
            });
            let node = Node::Part(threads.collect());
            let part: BTreeSet<usize> = part.iter().copied().collect();
            let new = self.add(node);
            for edge in &mut self.edges {
                match (part.contains(&edge.from), part.contains(&edge.to)) {
                    (true, false) => edge.from = new,
                    (false, true) if circle.contains(&edge.from) => edge.to = new,
                    _ => {}
                }
            }
            // What is within the part goes, and what leads into it from outside of the circle.
            self.edges.retain(|edge| !part.contains(&edge.from) && !part.contains(&edge.to));
        }
        // The indices stayed meanwhile, for other circles. Who leads nowhere any more goes too.
        let has_edge: BTreeSet<usize> = self.edges.iter().flat_map(|edge| [edge.from, edge.to]).collect();
        self.keep(|node| has_edge.contains(&node));
    }

    /// The circles of which no node is in another one, each in its order.
    fn circles(&self) -> Vec<Vec<usize>> {
        let count = self.nodes.len();
        let (mut next, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for edge in &self.edges {
            next[edge.from].push(edge.to);
            before[edge.to].push(edge.from);
        }
        // Who leads nowhere, or is led to from nowhere, is in none.
        let mut degrees: Vec<[usize; 2]> = (0..count).map(|at| [next[at].len(), before[at].len()]).collect();
        let mut ends: Vec<usize> = (0..count).filter(|&at| degrees[at].contains(&0)).collect();
        let mut is_left = vec![true; count];
        while let Some(at) = ends.pop() {
            if !std::mem::replace(&mut is_left[at], false) {
                continue;
            }
            for (degree, others) in [&before[at], &next[at]].into_iter().enumerate() {
                for &other in others {
                    degrees[other][degree] = degrees[other][degree].saturating_sub(1);
                    if degrees[other][degree] == 0 {
                        ends.push(other);
                    }
                }
            }
        }
        let mut circles = Vec::new();
        let mut is_seen = vec![false; count];
        for first in 0..count {
            let mut circle = Vec::new();
            let mut at = first;
            while is_left[at] && degrees[at] == [1, 1] && !std::mem::replace(&mut is_seen[at], true) {
                circle.push(at);
                let Some(&following) = next[at].iter().find(|&&to| is_left[to]) else { break };
                at = following;
            }
            if at == first && !circle.is_empty() {
                circles.push(circle);
            }
        }
        circles
    }

    /// Keeps these nodes, and the edges between them.
    pub fn keep(&mut self, is_wanted: impl Fn(usize) -> bool) {
        let mut index = vec![None; self.nodes.len()];
        let mut kept = Vec::new();
        for (at, node) in self.nodes.drain(..).enumerate().filter(|&(at, _)| is_wanted(at)) {
            index[at] = Some(kept.len());
            kept.push(node);
        }
        self.nodes = kept;
        self.edges = self
            .edges
            .iter()
            .filter_map(|edge| Some(Edge { from: index[edge.from]?, to: index[edge.to]?, ..*edge }))
            .collect();
    }
}

/// All that a thread waits for at a place that is known.
fn waits(model: &LockModel, id: ThreadId) -> Vec<(Object, LocationId)> {
    let all = model.threads[id].all_awaited();
    all.iter().filter_map(|awaited| Some((awaited.object(), awaited.location()?))).collect()
}

/// Who alone has used the other side of the channel at which a thread or task waits, if nothing else can wake it.
fn only_peer(thread: &ThreadLocks) -> Option<ThreadId> {
    let (.., peer) = thread.waits_for_peer().filter(|_| thread.wait.is_none())?;
    Some(peer)
}
