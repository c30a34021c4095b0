//! Numbers for Prometheus and its kin, in the text format of OpenMetrics 1.0.
//!
//! The labels are bounded: only the locks that hurt most have lines of their own, and the others are added up under
//! `lock=""`. What a ring has of the past is a window, and not all since the start. So every number is a gauge.

use std::collections::BTreeMap;
use std::io::{self, Write};

use read_rip_model::findings::Finding;
use read_rip_model::locks::{Lock, LockId, TaskDoes, task_does};
use read_rip_model::threads::ThreadState;
use read_rip_report::{LockNames, task_state_name};

/// The numbers of a lock, or of several.
#[derive(Default)]
struct Sum {
    waiters: u64,
    holders: u64,
    acquisitions: u64,
    contended: u64,
    wait_ns: u64,
    hold_ns: u64,
    longest_wait_ns: u64,
}

impl Sum {
    fn add(&mut self, lock: &Lock, now_ns: Option<u64>) {
        let since = lock.waiters.iter().filter_map(|wait| now_ns?.checked_sub(wait.since_ns?)).max();
        self.waiters += lock.waiting() as u64;
        self.holders += lock.holding() as u64;
        self.acquisitions = self.acquisitions.saturating_add(lock.record.acquisitions);
        self.contended = self.contended.saturating_add(lock.record.contended);
        self.wait_ns = self.wait_ns.saturating_add(lock.record.waited_ns());
        self.hold_ns = self.hold_ns.saturating_add(lock.record.held_ns());
        self.longest_wait_ns = self.longest_wait_ns.max(since.unwrap_or(0));
    }
}

/// A number of each lock: its name, its unit if it has one, what it is, and how it is made.
type OfLock = (&'static str, &'static str, &'static str, fn(&Sum) -> f64);

const OF_LOCKS: [OfLock; 7] = [
    ("rip_lock_waiters", "", "Threads and tasks that wait for the lock now.", |sum| sum.waiters as f64),
    ("rip_lock_holders", "", "Threads and tasks that hold the lock now.", |sum| sum.holders as f64),
    ("rip_lock_acquisitions", "", "Acquisitions that the record still has.", |sum| sum.acquisitions as f64),
    ("rip_lock_contended", "", "Acquisitions after a wait that the record still has.", |sum| {
        sum.contended as f64
    }),
    ("rip_lock_wait_seconds", "seconds", "How long the recorded waits took together.", |sum| {
        seconds(sum.wait_ns)
    }),
    ("rip_lock_hold_seconds", "seconds", "How long the recorded holds took together.", |sum| {
        seconds(sum.hold_ns)
    }),
    (
        "rip_lock_longest_wait_seconds",
        "seconds",
        "How long the present waiter that came first has waited.",
        |sum| seconds(sum.longest_wait_ns),
    ),
];

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Writes the numbers of a process. At most `most` locks have lines of their own.
///
/// # Errors
///
/// Those of `out`.
pub fn openmetrics(
    out: &mut dyn Write,
    program: &str,
    names: &LockNames<'_>,
    found: &[Finding],
    most: usize,
) -> io::Result<()> {
    let model = names.model;
    let process = format!("program=\"{}\",pid=\"{}\"", escaped(program), model.pid);
    let mut family = |name: &str, unit: &str, help: &str, lines: &[(String, f64)]| {
        writeln!(out, "# TYPE {name} gauge")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        writeln!(out, "# HELP {name} {help}")?;
        lines.iter().try_for_each(|(labels, value)| writeln!(out, "{name}{{{process}{labels}}} {value}"))
    };
    let present = || model.threads.iter().filter(|thread| thread.state == ThreadState::Present);
    let waiting = |is_waiting: bool| {
        let threads = present().filter(|thread| thread.task.is_none());
        threads.filter(|thread| thread.is_blocked() == is_waiting).count() as f64
    };
    let threads = [("waiting", waiting(true)), ("other", waiting(false))];
    let by_state = |(state, count): (&str, f64)| (format!(",state=\"{state}\""), count);
    family("rip_threads", "", "Present threads; tasks do not count.", &threads.map(by_state))?;
    let doing = |does: TaskDoes| {
        let tasks = present().filter_map(|thread| Some((thread, thread.task.as_deref()?)));
        (task_state_name(does), tasks.filter(|(thread, task)| task_does(thread, task) == does).count() as f64)
    };
    let tasks = [TaskDoes::Runs, TaskDoes::Ready, TaskDoes::Suspended].map(doing);
    family("rip_tasks", "", "Present tasks, by what they do now.", &tasks.map(by_state))?;
    let refused = [(String::new(), model.tasks_refused as f64)];
    family("rip_tasks_refused", "", "Tasks that are not recorded, because no slot was free.", &refused)?;
    let mut kinds: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for finding in found {
        *kinds.entry((finding.kind.name(), finding.confidence.name())).or_default() += 1;
    }
    let of_kind = |((kind, confidence), count): (&(&str, &str), &u32)| {
        (format!(",kind=\"{kind}\",confidence=\"{confidence}\""), f64::from(*count))
    };
    let findings: Vec<_> = kinds.iter().map(of_kind).collect();
    family("rip_findings", "", "Findings, as read-rip check reports them.", &findings)?;
    let locks = sums(names, most);
    for (name, unit, help, number) in OF_LOCKS {
        let lines: Vec<_> = locks.iter().map(|(labels, sum)| (labels.clone(), number(sum))).collect();
        family(name, unit, help, &lines)?;
    }
    writeln!(out, "# EOF")
}

/// The locks that hurt most, and the sum of all others, with their labels. Locks of one name are one.
fn sums(names: &LockNames<'_>, most: usize) -> Vec<(String, Sum)> {
    let mut by_name: BTreeMap<String, Sum> = BTreeMap::new();
    let mut order: Vec<LockId> = (0..names.model.locks.len()).collect();
    order.sort_by_cached_key(|&id| {
        let lock = &names.model.locks[id];
        std::cmp::Reverse((lock.waiters.len(), lock.record.waited_ns(), lock.record.contended))
    });
    let mut others = Sum::default();
    for id in order {
        let lock = &names.model.locks[id];
        let name = names.lock(lock);
        let sum = if by_name.contains_key(&name) || by_name.len() < most {
            by_name.entry(name).or_default()
        } else {
            &mut others
        };
        sum.add(lock, names.model.now_ns);
    }
    let labelled = by_name.into_iter().map(|(name, sum)| (format!(",lock=\"{}\"", escaped(&name)), sum));
    labelled.chain([(",lock=\"\"".to_owned(), others)]).collect()
}

/// A value of a label. The names are printable already.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
