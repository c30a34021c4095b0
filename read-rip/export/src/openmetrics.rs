//! Numbers for Prometheus and its kin, in the text format of OpenMetrics 1.0.
//!
//! The labels are bounded: only the locks that hurt most have lines of their own, and the others are added up as
//! [`OTHERS`]. A ring keeps the last words of each thread. So what is added up from them may shrink, and is a gauge.
//! Only what the recorder itself counts is a counter.

use std::collections::BTreeMap;
use std::io::{self, Write};

use read_rip_model::findings::Finding;
use read_rip_model::locks::{Lock, LockId, TaskDoes, task_does};
use read_rip_model::threads::ThreadState;
use read_rip_report::{LockNames, task_state_name};
use read_rip_ring::Snapshot;

/// The label of the locks that have no lines of their own. A lock of this name is added to them.
const OTHERS: &str = "other locks";

/// What kind of number a family has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    /// It never shrinks while the process lives.
    Counter,
}

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
    ("rip_lock_acquisitions", "", "Acquisitions that the record still has. May shrink.", |sum| {
        sum.acquisitions as f64
    }),
    ("rip_lock_contended", "", "Acquisitions after a wait that the record still has. May shrink.", |sum| {
        sum.contended as f64
    }),
    (
        "rip_lock_wait_seconds",
        "seconds",
        "How long the waits that the record still has took together. May shrink.",
        |sum| seconds(sum.wait_ns),
    ),
    (
        "rip_lock_hold_seconds",
        "seconds",
        "How long the holds that the record still has took together. May shrink.",
        |sum| seconds(sum.hold_ns),
    ),
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
    snapshot: &Snapshot,
    most: usize,
) -> io::Result<()> {
    let model = names.model;
    let process = format!("program=\"{}\",pid=\"{}\"", escaped(program), model.pid);
    let mut write = |name: &str, kind: Kind, unit: &str, help: &str, lines: &[(String, f64)]| {
        let (kind, suffix) = match kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
        };
        writeln!(out, "# TYPE {name} {kind}")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        writeln!(out, "# HELP {name} {help}")?;
        lines
            .iter()
            .try_for_each(|(labels, value)| writeln!(out, "{name}{suffix}{{{process}{labels}}} {value}"))
    };
    // The count of a slot goes on with its next owner.
    let words: u64 = snapshot.slots.iter().map(|slot| slot.count).fold(0, u64::saturating_add);
    for (name, help, count) in [
        ("rip_words", "Words that threads and tasks have recorded, without those of channels.", words as f64),
        (
            "rip_tasks_refused",
            "Tasks that are not recorded, because no slot was free.",
            model.tasks_refused as f64,
        ),
    ] {
        write(name, Kind::Counter, "", help, &[(String::new(), count)])?;
    }
    let mut family = |name: &str, unit: &str, help: &str, lines: &[(String, f64)]| {
        write(name, Kind::Gauge, unit, help, lines)
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
    for id in order {
        let lock = &names.model.locks[id];
        let name = names.lock(lock);
        let has_line = by_name.contains_key(&name) || by_name.len() < most;
        let label = if has_line { name } else { OTHERS.to_owned() };
        by_name.entry(label).or_default().add(lock, names.model.now_ns);
    }
    by_name.into_iter().map(|(name, sum)| (format!(",lock=\"{}\"", escaped(&name)), sum)).collect()
}

/// A value of a label. The names are printable already.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
