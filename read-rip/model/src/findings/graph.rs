//! Directed graphs over small numbers: strongly connected components, shortest cycles, reachability.
//!
//! It knows no locks. Nothing here recurses: a path may have as many nodes as there are threads.

use std::collections::VecDeque;

/// A directed graph whose nodes are numbers from 0.
#[derive(Debug)]
pub(super) struct Graph {
    /// The targets of all nodes, one node after the other.
    targets: Vec<usize>,
    /// Where the targets of each node begin, and the end of the last ones.
    begins: Vec<usize>,
}

/// An edge: from, to.
pub(super) type Edge = (usize, usize);

impl Graph {
    /// A graph of this many nodes. The edges of a node keep their order.
    pub(super) fn new(nodes: usize, edges: &[Edge]) -> Graph {
        let mut begins = vec![0; nodes + 1];
        edges.iter().for_each(|&(from, _)| begins[from + 1] += 1);
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let mut next = begins.clone();
        let mut targets = vec![0; edges.len()];
        for &(from, to) in edges {
            targets[next[from]] = to;
            next[from] += 1;
        }
        Graph { targets, begins }
    }

    fn nodes(&self) -> usize {
        self.begins.len() - 1
    }

    pub(super) fn targets(&self, node: usize) -> &[usize] {
        &self.targets[self.begins[node]..self.begins[node + 1]]
    }

    /// The same edges, reversed.
    fn reversed(&self) -> Graph {
        let edges = (0..self.nodes()).flat_map(|from| self.targets(from).iter().map(move |&to| (to, from)));
        Graph::new(self.nodes(), &edges.collect::<Vec<Edge>>())
    }

    /// The strongly connected components that contain a cycle, each with its nodes in ascending order.
    ///
    /// Tarjan, "Depth-first search and linear graph algorithms" (1972), with an explicit stack.
    pub(super) fn cyclic_components(&self) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let nodes = self.nodes();
        let (mut index, mut low) = (vec![UNSEEN; nodes], vec![0; nodes]);
        let mut is_open = vec![false; nodes];
        let (mut open, mut calls) = (Vec::new(), Vec::new());
        let mut next = 0;
        let mut components = Vec::new();
        for root in 0..nodes {
            if index[root] != UNSEEN {
                continue;
            }
            calls.push((root, 0));
            while let Some((node, edge)) = calls.pop() {
                if edge == 0 {
                    (index[node], low[node]) = (next, next);
                    next += 1;
                    open.push(node);
                    is_open[node] = true;
                }
                if let Some(&target) = self.targets(node).get(edge) {
                    calls.push((node, edge + 1));
                    if index[target] == UNSEEN {
                        calls.push((target, 0));
                    } else if is_open[target] {
                        low[node] = low[node].min(index[target]);
                    }
                    continue;
                }
                if let Some(&(caller, _)) = calls.last() {
                    low[caller] = low[caller].min(low[node]);
                }
                if low[node] == index[node] {
                    // The nodes of the component are the last ones. Most components have no other node.
                    let begin = open.iter().rposition(|&member| member == node).unwrap_or(0);
                    open[begin..].iter().for_each(|&member| is_open[member] = false);
                    if open.len() - begin > 1 || self.targets(node).contains(&node) {
                        let mut component = open[begin..].to_vec();
                        component.sort_unstable();
                        components.push(component);
                    }
                    open.truncate(begin);
                }
            }
        }
        components
    }

    /// A shortest cycle among the cycles through one of `starts`, within a component; the nodes in order.
    ///
    /// After about `budget` edges it stops the search for a still shorter one, so that a huge component cannot take
    /// long.
    pub(super) fn shortest_cycle(
        &self,
        component: &[usize],
        starts: impl Iterator<Item = usize>,
        mut budget: usize,
    ) -> Vec<usize> {
        // The component is sorted: the position of a node is its number here.
        let local = |node: usize| component.binary_search(&node).ok();
        let mut best: Vec<usize> = Vec::new();
        for start in starts {
            if budget == 0 && !best.is_empty() {
                break;
            }
            let mut before = vec![None; component.len()];
            let mut queue = VecDeque::from([start]);
            'search: while let Some(node) = queue.pop_front() {
                for &target in self.targets(node) {
                    budget = budget.saturating_sub(1);
                    let Some(at) = local(target) else { continue };
                    if target == start {
                        let mut cycle = vec![node];
                        let mut current = node;
                        while current != start
                            && let Some(previous) = local(current).and_then(|at| before[at])
                        {
                            cycle.push(previous);
                            current = previous;
                        }
                        cycle.reverse();
                        if best.is_empty() || cycle.len() < best.len() {
                            best = cycle;
                        }
                        break 'search;
                    }
                    if before[at].is_none() {
                        before[at] = Some(node);
                        queue.push_back(target);
                    }
                }
            }
        }
        best
    }

    /// For each node the group that can be reached from it, if any; of several groups one.
    pub(super) fn leading_to(&self, groups: &[Vec<usize>]) -> Vec<Option<usize>> {
        let reversed = self.reversed();
        let mut group_of = vec![None; self.nodes()];
        let mut queue = VecDeque::new();
        for (group, members) in groups.iter().enumerate() {
            for &member in members {
                group_of[member] = Some(group);
                queue.push_back(member);
            }
        }
        while let Some(node) = queue.pop_front() {
            for &source in reversed.targets(node) {
                if group_of[source].is_none() {
                    group_of[source] = group_of[node];
                    queue.push_back(source);
                }
            }
        }
        group_of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        Graph::new(nodes, edges)
    }

    #[test]
    fn finds_components_with_cycles_only() {
        let graph = graph(7, &[(0, 1), (1, 2), (2, 0), (3, 0), (4, 4), (5, 6)]);
        let mut components = graph.cyclic_components();
        components.sort();
        assert_eq!(components, [vec![0, 1, 2], vec![4]]);
        let groups = graph.leading_to(&components);
        assert_eq!(groups, [Some(0), Some(0), Some(0), Some(0), Some(1), None, None]);
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        let graph = graph(5, &[(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 2)]);
        let component = &graph.cyclic_components()[0];
        assert_eq!(component.len(), 5);
        assert_eq!(graph.shortest_cycle(component, 0..5, 1000), [2, 4]);
        assert_eq!(graph.shortest_cycle(component, 0..1, 1000), [0, 1, 2, 3]);
    }

    #[test]
    fn a_path_of_a_million_nodes_takes_no_stack() {
        let nodes = 1_000_000;
        let edges: Vec<Edge> = (0..nodes).map(|node| (node, (node + 1) % nodes)).collect();
        let graph = Graph::new(nodes, &edges);
        let components = graph.cyclic_components();
        assert_eq!(components.len(), 1);
        assert_eq!(graph.shortest_cycle(&components[0], 0..3, 10).len(), nodes);
    }
}
