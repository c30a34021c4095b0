//! The wait-for graph, in graphviz's language (<https://graphviz.org/doc/info/lang.html>).
//!
//! A thread points at the lock that it waits for, and a lock at the thread that holds it. So a deadlock is a circle.
//! Threads that wait for one lock at one place, and that nobody waits for, are one node with their number.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId, Wait};
use crate::report::LockNames;
use crate::threads::ThreadState;

/// A thread, or threads that are shown as one: they wait for one lock at one place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Waiting {
    Thread(ThreadId),
    Crowd(LockId, LocationId),
}

/// Writes the graph.
///
/// # Errors
///
/// Those of `out`.
pub fn dot(out: &mut dyn Write, names: &LockNames<'_>) -> io::Result<()> {
    let model = names.model;
    let present = || model.threads.iter().enumerate().filter(|(_, it)| it.state == ThreadState::Present);
    // The thread's own wait, or that for the lock of its condition.
    let wait_of = |id: ThreadId| -> Option<&Wait> {
        let thread = &model.threads[id];
        thread.wait.as_ref().or(thread.sleep.as_deref())
    };
    let wanted: BTreeSet<LockId> = present().filter_map(|(id, _)| Some(wait_of(id)?.lock)).collect();
    let holders: BTreeSet<ThreadId> = wanted
        .iter()
        .flat_map(|&lock| &model.locks[lock].holders)
        .map(|hold| hold.thread)
        .chain(present().filter_map(|(_, thread)| Some(thread.join.as_ref()?.joined)))
        .collect();
    let mut waiting: BTreeMap<Waiting, Vec<ThreadId>> = BTreeMap::new();
    for (id, _) in present() {
        let Some(wait) = wait_of(id) else { continue };
        let node = if holders.contains(&id) {
            Waiting::Thread(id)
        } else {
            Waiting::Crowd(wait.lock, wait.location)
        };
        waiting.entry(node).or_default().push(id);
    }

    writeln!(out, "digraph waits {{\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];")?;
    for &lock in &wanted {
        let name = names.lock(&model.locks[lock]);
        writeln!(out, "  lock{lock} [shape=box, style=rounded, label={}];", quoted(&name))?;
    }
    for &id in &holders {
        writeln!(out, "  thread{id} [shape=ellipse, label={}];", quoted(&names.thread(id)))?;
    }
    for (index, (node, threads)) in waiting.iter().enumerate() {
        let Some(wait) = threads.first().and_then(|&id| wait_of(id)) else { continue };
        let from = match node {
            Waiting::Thread(id) => format!("thread{id}"),
            Waiting::Crowd(..) => {
                let label = match threads[..] {
                    [one] => names.thread(one),
                    _ => format!("{} threads", threads.len()),
                };
                writeln!(out, "  waiting{index} [shape=ellipse, label={}];", quoted(&label))?;
                format!("waiting{index}")
            }
        };
        let place = quoted(&names.location(wait.location));
        writeln!(out, "  {from} -> lock{} [label={place}];", wait.lock)?;
    }
    for &lock in &wanted {
        for hold in &model.locks[lock].holders {
            let place = hold.location.map_or_else(String::new, |location| names.location(location));
            writeln!(out, "  lock{lock} -> thread{} [style=bold, label={}];", hold.thread, quoted(&place))?;
        }
    }
    for (id, thread) in present() {
        if let Some(join) = &thread.join {
            let from = if holders.contains(&id) {
                format!("thread{id}")
            } else {
                writeln!(out, "  joining{id} [shape=ellipse, label={}];", quoted(&names.thread(id)))?;
                format!("joining{id}")
            };
            let place = quoted(&format!("waits for its end at {}", names.location(join.location)));
            writeln!(out, "  {from} -> thread{} [style=dashed, label={place}];", join.joined)?;
        }
    }
    writeln!(out, "}}")
}

/// A string of the language: only quotes and backslashes mean something in it. The names are printable already.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_string() {
        assert_eq!(quoted(r#"a" -> b; \"#), r#""a\" -> b; \\""#);
    }
}
