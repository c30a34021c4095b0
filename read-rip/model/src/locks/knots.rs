//! Who can never go on: threads that wait only for one another, in several processes.
//!
//! A thread waits for any one of several parties: each reader of a pipe can make room in it. So a cycle of waits is no
//! deadlock yet. A set of threads is one if each waits, and everybody who could end its wait is in the set too. A
//! process can do something as long as one of its threads can.
//!
//! It reads nothing and makes no finding. All threads and waits are visited a fixed number of times.

/// Somebody for whom a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    /// Any thread of a process, by the number of the process.
    Process(usize),
    /// A thread: the number of its process, and its own.
    Thread(usize, usize),
    /// Somebody of whom nothing is known.
    Stranger,
}

/// What a thread does, as far as it can go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stand {
    /// It can go on by itself, or that is not known.
    #[default]
    Free,
    /// It sleeps for a time: it goes on by itself, and whether it helps anybody is not known.
    Sleeps,
    /// Each of these can end its wait, and nobody else.
    Waits {
        /// They.
        by: Vec<Who>,
        /// Whether the kernel says that it waits for other processes.
        is_between: bool,
    },
    /// It has ended: it helps nobody.
    Ended,
    /// Something has stopped it: it helps nobody before somebody lets it run.
    Halted,
    /// It waits for one or more of these, and for whom is not known yet: it counts as one that cannot go on.
    Perhaps(Vec<Who>),
}

/// The threads of some processes.
#[derive(Clone, Debug, Default)]
pub struct Graph(pub Vec<Vec<Stand>>);

/// A thread: the number of its process, and its own.
pub(super) type At = (usize, usize);

impl Graph {
    /// The same threads, if none of those that sleep for a time helps anybody.
    #[must_use]
    pub fn without_sleepers(&self) -> Graph {
        let without = |stand: &Stand| match stand {
            Stand::Sleeps => Stand::Ended,
            stand => stand.clone(),
        };
        Graph(self.0.iter().map(|threads| threads.iter().map(without).collect()).collect())
    }

    /// Which threads cannot go on, whatever happens: the largest set of them that waits for nobody outside of it.
    pub fn stuck(&self) -> Vec<Vec<bool>> {
        let mut stuck: Vec<Vec<bool>> = self
            .0
            .iter()
            .map(|threads| {
                threads.iter().map(|stand| !matches!(stand, Stand::Free | Stand::Sleeps)).collect()
            })
            .collect();
        // Whom each of them keeps waiting. Somebody who is free frees all of these.
        let mut behind_process: Vec<Vec<At>> = vec![Vec::new(); self.0.len()];
        let mut behind_thread: Vec<Vec<Vec<At>>> =
            self.0.iter().map(|threads| vec![Vec::new(); threads.len()]).collect();
        let mut free: Vec<At> = Vec::new();
        for (process, threads) in self.0.iter().enumerate() {
            for (thread, stand) in threads.iter().enumerate() {
                let at = (process, thread);
                let Stand::Waits { by, .. } = stand else { continue };
                for who in by {
                    match *who {
                        Who::Process(process) if process < self.0.len() => behind_process[process].push(at),
                        Who::Thread(process, thread)
                            if self.0.get(process).is_some_and(|threads| thread < threads.len()) =>
                        {
                            behind_thread[process][thread].push(at);
                        }
                        _ => free.push(at),
                    }
                }
                if by.is_empty() {
                    free.push(at);
                }
            }
        }
        let mut is_process_free = vec![false; self.0.len()];
        for (process, threads) in stuck.iter().enumerate() {
            for (thread, &is_stuck) in threads.iter().enumerate() {
                if !is_stuck {
                    free.push((process, thread));
                }
            }
        }
        let mut is_done: Vec<Vec<bool>> = stuck.iter().map(|threads| vec![false; threads.len()]).collect();
        while let Some((process, thread)) = free.pop() {
            if std::mem::replace(&mut is_done[process][thread], true) {
                continue;
            }
            stuck[process][thread] = false;
            free.append(&mut behind_thread[process][thread]);
            if !std::mem::replace(&mut is_process_free[process], true) {
                free.append(&mut behind_process[process]);
            }
        }
        stuck
    }

    /// The threads that wait for one another in cycles, and for nobody else, where at least one waits for another
    /// process: each set once. Threads that only wait behind them are in none.
    pub fn knots(&self, stuck: &[Vec<bool>]) -> Vec<Vec<At>> {
        let nodes = Nodes::of(self, stuck);
        let components = nodes.components();
        let mut leaves = vec![false; components.count];
        for node in 0..nodes.edges.len() {
            for &next in &nodes.edges[node] {
                leaves[components.of[node]] |= components.of[node] != components.of[next];
            }
        }
        let mut knots: Vec<Vec<At>> = vec![Vec::new(); components.count];
        let mut is_between = vec![false; components.count];
        for (node, at) in nodes.threads.iter().enumerate() {
            let Some(at) = at.filter(|at| stuck[at.0][at.1]) else { continue };
            let component = components.of[node];
            knots[component].push(at);
            is_between[component] |= matches!(self.0[at.0][at.1], Stand::Waits { is_between: true, .. });
        }
        let is_knot = |component: usize| !leaves[component] && is_between[component];
        knots.into_iter().enumerate().filter(|&(at, _)| is_knot(at)).map(|(_, knot)| knot).collect()
    }

    /// The threads that wait for other processes, of which none runs: something has stopped all who could end the wait,
    /// apart from threads of their own process that are stuck too. With the numbers of the stopped processes.
    pub fn behind_halted(&self, stuck: &[Vec<bool>]) -> Vec<(At, Vec<usize>)> {
        let is_halted = |who: &Who| match *who {
            Who::Process(process) => {
                let is_one = |stand: &Stand| matches!(stand, Stand::Halted | Stand::Ended);
                self.0[process].iter().all(is_one) && self.0[process].contains(&Stand::Halted)
            }
            Who::Thread(process, thread) => self.0[process][thread] == Stand::Halted,
            Who::Stranger => false,
        };
        let mut behind = Vec::new();
        for (process, threads) in self.0.iter().enumerate() {
            for (at, stand) in threads.iter().enumerate().filter(|&(at, _)| stuck[process][at]) {
                let Stand::Waits { by, is_between: true } = stand else { continue };
                let (halted, others): (Vec<&Who>, Vec<&Who>) = by.iter().partition(|who| is_halted(who));
                let is_own = |who: &&Who| **who == Who::Process(process);
                if halted.is_empty() || !others.iter().all(is_own) {
                    continue;
                }
                let pid = |who: &&Who| match **who {
                    Who::Process(process) | Who::Thread(process, _) => Some(process),
                    Who::Stranger => None,
                };
                let mut halted: Vec<usize> = halted.iter().filter_map(pid).collect();
                halted.sort_unstable();
                halted.dedup();
                behind.push(((process, at), halted));
            }
        }
        behind
    }

    /// The processes that may be stuck together, in groups: each has a thread that waits for another process.
    pub fn groups(&self, stuck: &[Vec<bool>]) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.0.len()).collect();
        fn root(group: &mut [usize], mut at: usize) -> usize {
            while group[at] != at {
                group[at] = group[group[at]];
                at = group[at];
            }
            at
        }
        let mut counts = vec![false; self.0.len()];
        for (process, threads) in self.0.iter().enumerate() {
            for (stand, _) in threads.iter().zip(&stuck[process]).filter(|&(_, &is_stuck)| is_stuck) {
                let (by, is_between) = match stand {
                    Stand::Waits { by, is_between } => (by, is_between),
                    Stand::Perhaps(by) => (by, &true),
                    Stand::Free | Stand::Sleeps | Stand::Ended | Stand::Halted => continue,
                };
                for who in by {
                    let (Who::Process(other) | Who::Thread(other, _)) = *who else { continue };
                    let (one, other) = (root(&mut group, process), root(&mut group, other));
                    group[one] = other;
                    counts[other] |= counts[one];
                }
                let of = root(&mut group, process);
                counts[of] |= *is_between;
            }
        }
        let mut groups: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        for (process, threads) in stuck.iter().enumerate() {
            let of = root(&mut group, process);
            if counts[of] && threads.iter().any(|&is_stuck| is_stuck) {
                groups.entry(of).or_default().push(process);
            }
        }
        let in_knots: std::collections::BTreeSet<usize> =
            self.knots(stuck).into_iter().flatten().map(|(process, _)| process).collect();
        // There is a knot, one that does not run, or a wait of which more has to be read.
        let may_be_knot = |group: &Vec<usize>| {
            group.iter().any(|&process| {
                let mut threads = self.0[process].iter().zip(&stuck[process]);
                let is_reason = |stand: &Stand| matches!(stand, Stand::Perhaps(_) | Stand::Halted);
                let has_reason = threads.any(|(stand, &is_stuck)| is_stuck && is_reason(stand));
                has_reason || in_knots.contains(&process)
            })
        };
        groups.into_values().filter(may_be_knot).collect()
    }
}

/// The threads that are stuck and their processes, as nodes: a process leads to all of its threads.
struct Nodes {
    threads: Vec<Option<At>>,
    edges: Vec<Vec<usize>>,
}

impl Nodes {
    fn of(graph: &Graph, stuck: &[Vec<bool>]) -> Nodes {
        let mut threads: Vec<Option<At>> = vec![None; graph.0.len()];
        let mut node_of: Vec<Vec<usize>> = Vec::new();
        for (process, of) in graph.0.iter().enumerate() {
            let mut numbers = Vec::with_capacity(of.len());
            for thread in 0..of.len() {
                numbers.push(threads.len());
                threads.push(Some((process, thread)));
            }
            node_of.push(numbers);
        }
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); threads.len()];
        for (process, of) in graph.0.iter().enumerate() {
            for (thread, stand) in of.iter().enumerate().filter(|&(thread, _)| stuck[process][thread]) {
                // Nobody waits for one that has ended.
                if *stand != Stand::Ended {
                    edges[process].push(node_of[process][thread]);
                }
                let Stand::Waits { by, .. } = stand else { continue };
                edges[node_of[process][thread]] = by
                    .iter()
                    .filter_map(|who| match *who {
                        Who::Process(process) => Some(process),
                        Who::Thread(process, thread) => Some(node_of[process][thread]),
                        Who::Stranger => None,
                    })
                    .collect();
            }
        }
        Nodes { threads, edges }
    }

    /// Its strongly connected components, by Tarjan's algorithm.
    fn components(&self) -> Components {
        const NONE: usize = usize::MAX;
        let count = self.edges.len();
        let (mut index, mut low, mut of) = (vec![NONE; count], vec![0; count], vec![NONE; count]);
        let (mut next_index, mut components) = (0, 0);
        let mut stack: Vec<usize> = Vec::new();
        let mut path: Vec<(usize, usize)> = Vec::new();
        for start in 0..count {
            if index[start] != NONE {
                continue;
            }
            path.push((start, 0));
            while let Some(&mut (node, ref mut edge)) = path.last_mut() {
                if *edge == 0 {
                    (index[node], low[node]) = (next_index, next_index);
                    next_index += 1;
                    stack.push(node);
                }
                if let Some(&next) = self.edges[node].get(*edge) {
                    *edge += 1;
                    if index[next] == NONE {
                        path.push((next, 0));
                    } else if of[next] == NONE {
                        low[node] = low[node].min(index[next]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(before, _)) = path.last() {
                    low[before] = low[before].min(low[node]);
                }
                if low[node] == index[node] {
                    while let Some(member) = stack.pop() {
                        of[member] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
            }
        }
        Components { of, count: components }
    }
}

struct Components {
    of: Vec<usize>,
    count: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(by: &[Who]) -> Stand {
        Stand::Waits { by: by.to_vec(), is_between: true }
    }

    fn inside(by: &[Who]) -> Stand {
        Stand::Waits { by: by.to_vec(), is_between: false }
    }

    fn knots(graph: &Graph) -> Vec<Vec<At>> {
        let mut knots = graph.knots(&graph.stuck());
        knots.iter_mut().for_each(|knot| knot.sort_unstable());
        knots
    }

    #[test]
    fn two_processes_that_wait_for_one_another_are_a_knot_and_who_waits_behind_them_is_not() {
        let two = vec![vec![between(&[Who::Process(1)])], vec![between(&[Who::Process(0)])]];
        let mut graph = Graph(two);
        assert_eq!(knots(&graph), [[(0, 0), (1, 0)]]);
        graph.0.push(vec![between(&[Who::Process(0)])]);
        assert_eq!(knots(&graph), [[(0, 0), (1, 0)]]);
        assert_eq!(graph.stuck(), [[true], [true], [true]]);
        assert_eq!(graph.groups(&graph.stuck()), [[0, 1, 2]]);
    }

    #[test]
    fn one_who_could_help_and_is_free_is_enough() {
        let free = |stand: Stand| {
            let graph =
                Graph(vec![vec![between(&[Who::Process(1)])], vec![between(&[Who::Process(0)]), stand]]);
            assert!(knots(&graph).is_empty() && graph.groups(&graph.stuck()).is_empty(), "{graph:?}");
        };
        free(Stand::Free);
        free(between(&[Who::Stranger]));
        free(between(&[]));
        free(between(&[Who::Process(7)]));
        let third = Graph(vec![
            vec![between(&[Who::Process(1), Who::Process(2)])],
            vec![between(&[Who::Process(0)])],
            vec![Stand::Free],
        ]);
        assert!(knots(&third).is_empty(), "a third process can write too");
    }

    #[test]
    fn without_those_that_sleep_for_a_time_the_others_may_be_a_knot() {
        let mut graph = Graph(vec![
            vec![between(&[Who::Process(1)]), Stand::Sleeps],
            vec![between(&[Who::Process(0)]), Stand::Sleeps],
        ]);
        assert!(knots(&graph).is_empty());
        assert_eq!(knots(&graph.without_sleepers()), [[(0, 0), (1, 0)]]);
        // A process that only sleeps serves whoever waits for it when its time comes.
        graph.0[0][0] = Stand::Sleeps;
        assert!(knots(&graph.without_sleepers()).is_empty());
        // So does the owner of a lock that sleeps.
        graph.0[0][0] = inside(&[Who::Thread(0, 1)]);
        assert!(knots(&graph.without_sleepers()).is_empty());
    }

    #[test]
    fn a_thread_alone_may_be_waited_for() {
        // A lock in shared memory: its owner is stuck, and other threads of that process run.
        let graph = Graph(vec![
            vec![between(&[Who::Thread(1, 0)])],
            vec![between(&[Who::Thread(0, 0)]), Stand::Free],
        ]);
        assert_eq!(knots(&graph), [[(0, 0), (1, 0)]]);
    }

    #[test]
    fn who_waits_for_itself_is_a_knot() {
        assert_eq!(knots(&Graph(vec![vec![between(&[Who::Process(0)])]])), [[(0, 0)]]);
        // A worker that waits for work in its process is none.
        let pool = Graph(vec![vec![inside(&[Who::Process(0)]), inside(&[Who::Process(0)])]]);
        assert!(knots(&pool).is_empty());
        // Nor is who waits for a process that idles so.
        let mut graph = pool.clone();
        graph.0.push(vec![between(&[Who::Process(0)])]);
        assert!(knots(&graph).is_empty() && graph.groups(&graph.stuck()).is_empty());
    }

    #[test]
    fn who_waits_for_one_that_is_stopped_is_behind_it_and_in_no_knot() {
        let waits = |by: &[Who]| vec![between(by)];
        let halted = vec![Stand::Halted, Stand::Ended];
        let graph = Graph(vec![waits(&[Who::Process(0), Who::Process(1)]), halted.clone()]);
        let stuck = graph.stuck();
        assert_eq!(graph.behind_halted(&stuck), [((0, 0), vec![1])]);
        assert!(graph.knots(&stuck).is_empty());
        assert_eq!(graph.groups(&stuck), [[0, 1]]);
        // Another one can help, or a thread of the stopped one can.
        let graph = Graph(vec![waits(&[Who::Process(1), Who::Process(2)]), halted, vec![Stand::Free]]);
        assert!(graph.behind_halted(&graph.stuck()).is_empty());
        let graph = Graph(vec![waits(&[Who::Process(1)]), vec![Stand::Halted, Stand::Free]]);
        assert!(graph.behind_halted(&graph.stuck()).is_empty());
        // Nobody waits for it.
        let graph = Graph(vec![vec![Stand::Halted], vec![Stand::Halted]]);
        assert!(graph.groups(&graph.stuck()).is_empty());
    }

    #[test]
    fn of_a_wait_that_was_not_examined_yet_more_has_to_be_read() {
        let graph = Graph(vec![vec![between(&[Who::Process(1)])], vec![Stand::Perhaps(Vec::new())]]);
        assert_eq!(graph.groups(&graph.stuck()), [[0, 1]]);
        assert!(knots(&graph).is_empty());
        let both = || vec![Stand::Perhaps(vec![Who::Process(0), Who::Process(1)])];
        let graph = Graph(vec![both(), both(), vec![Stand::Free]]);
        assert_eq!(graph.groups(&graph.stuck()), [[0, 1]]);
    }

    #[test]
    fn a_long_chain_takes_no_stack_and_no_squared_time() {
        let count = 100_000;
        let chain = (0..count).map(|at| vec![between(&[Who::Process((at + 1) % count)])]).collect();
        assert_eq!(knots(&Graph(chain)).len(), 1);
    }
}
