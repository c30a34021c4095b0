//! What threads held at their acquisitions, as a tree of locks.
//!
//! A node stands for a list of held locks: its parent's list and one more lock. So lists that begin alike share their
//! nodes, and a thread that acquires a thousand locks one inside the other has a thousand nodes, not a thousand lists.
//! It draws no conclusions.

use foldhash::{HashMap, HashSet};

use super::graph::{Edge, Graph};
use crate::locks::LockId;

/// A lock, and whether it is held shared.
pub(super) type Mode = (LockId, bool);
/// A list of held locks: an index into the tree.
pub(super) type Node = usize;

/// The node of the empty list.
pub(super) const NOTHING: Node = 0;

/// The lists of locks that threads held at their acquisitions.
pub(super) struct Nesting {
    /// The parent of each node, and the lock that it adds. The first node has neither.
    nodes: Vec<(Node, Mode)>,
    children: HashMap<(Node, Mode), Node>,
    /// Which locks were acquired with what held.
    acquired: HashSet<(Node, LockId)>,
    /// The latest list. The next one mostly begins alike.
    latest: Vec<(Mode, Node)>,
    nodes_max: usize,
}

impl Nesting {
    /// An empty tree that never has more than about `nodes_max` nodes.
    pub(super) fn new(nodes_max: usize) -> Nesting {
        Nesting {
            nodes: vec![(NOTHING, (0, false))],
            children: HashMap::default(),
            acquired: HashSet::default(),
            latest: Vec::new(),
            nodes_max,
        }
    }

    /// The number of lists, the empty one included.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node of a list; `None` if the tree has no room for it.
    pub(super) fn node(&mut self, held: impl Iterator<Item = Mode>) -> Option<Node> {
        let mut node = NOTHING;
        for (depth, mode) in held.enumerate() {
            if let Some(&(latest, known)) = self.latest.get(depth)
                && latest == mode
            {
                node = known;
            } else {
                self.latest.truncate(depth);
                node = self.child(node, mode)?;
                self.latest.push((mode, node));
            }
        }
        Some(node)
    }

    fn child(&mut self, parent: Node, mode: Mode) -> Option<Node> {
        if let Some(&child) = self.children.get(&(parent, mode)) {
            return Some(child);
        }
        if self.nodes.len() >= self.nodes_max {
            return None;
        }
        self.nodes.push((parent, mode));
        let child = self.nodes.len() - 1;
        self.children.insert((parent, mode), child);
        Some(child)
    }

    /// Notes that some thread acquired a lock while it held the locks of a node.
    pub(super) fn acquired(&mut self, held: Node, lock: LockId) {
        if held != NOTHING {
            self.acquired.insert((held, lock));
        }
    }

    /// The locks of a node, the last one first.
    pub(super) fn held(&self, node: Node) -> impl Iterator<Item = Mode> {
        let mut node = node;
        std::iter::from_fn(move || {
            let (parent, mode) = self.nodes[node];
            let is_more = node != NOTHING;
            node = parent;
            is_more.then_some(mode)
        })
    }

    /// The groups of locks that were acquired in a cycle of orders: A inside B, and B inside A.
    ///
    /// The graph has no edge for each pair of locks: an edge leads from a lock to each list that ends with it, from a
    /// list to the lists that begin with it, and from a list to what was acquired with it. So it is no larger than the
    /// tree, and it connects the same locks.
    pub(super) fn cyclic_locks(&self, locks: usize) -> Vec<Vec<LockId>> {
        let mut edges: Vec<Edge> = Vec::with_capacity(2 * self.nodes.len() + self.acquired.len());
        for (node, &(parent, (lock, _))) in self.nodes.iter().enumerate().skip(1) {
            edges.push((lock, locks + node));
            if parent != NOTHING {
                edges.push((locks + parent, locks + node));
            }
        }
        edges.extend(self.acquired.iter().map(|&(held, lock)| (locks + held, lock)));
        let components = Graph::new(locks + self.nodes.len(), &edges).cyclic_components().into_iter();
        let only_locks = components.map(|component| component.into_iter().filter(|&node| node < locks));
        only_locks.map(Iterator::collect).filter(|group: &Vec<LockId>| group.len() > 1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(locks: &[LockId]) -> impl Iterator<Item = Mode> {
        locks.iter().map(|&lock| (lock, false))
    }

    #[test]
    fn lists_that_begin_alike_share_their_nodes() {
        let mut nesting = Nesting::new(100);
        let long = nesting.node(list(&[3, 1, 2])).unwrap();
        assert_eq!(nesting.held(long).collect::<Vec<_>>(), [(2, false), (1, false), (3, false)]);
        let other = nesting.node(list(&[3, 1, 4])).unwrap();
        assert_ne!(long, other);
        assert_eq!(nesting.len(), 5, "the first node, and one for each of 3, 1, 2, 4");
        assert_eq!(nesting.node(list(&[3, 1, 2])), Some(long));
        assert_eq!(nesting.node(list(&[])), Some(NOTHING));
        assert_ne!(nesting.node([(3, true)].into_iter()), nesting.node(list(&[3])));
    }

    #[test]
    fn a_full_tree_takes_no_more_lists() {
        let mut nesting = Nesting::new(3);
        assert!(nesting.node(list(&[1, 2])).is_some());
        assert_eq!(nesting.node(list(&[1, 3])), None);
        assert!(nesting.node(list(&[1, 2])).is_some());
    }

    #[test]
    fn only_locks_in_a_cycle_of_orders_are_cyclic() {
        let mut nesting = Nesting::new(100);
        for (held, lock) in [(&[0, 1, 2][..], 3), (&[3], 1), (&[3, 4], 5), (&[], 0)] {
            let node = nesting.node(list(held)).unwrap();
            nesting.acquired(node, lock);
        }
        // Holding 1 and 2, a thread acquired 3; another acquired 1 inside 3. Nobody acquired 0, 2 or 4 inside another.
        assert_eq!(nesting.cyclic_locks(6), [[1, 3]]);
    }
}
