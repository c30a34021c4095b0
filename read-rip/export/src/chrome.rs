//! JSON trace events, as Chrome's `about:tracing` and Perfetto read them ("Trace Event Format", the Catapult project).
//!
//! * Each thread is a track, with slices of its waits, holds and spans. Slices that do not lie within each other are
//!   asynchronous ones, because a viewer takes slices of a track as nested.
//! * Each task is a track of a process of its own, by its number, with the same slices, and one of what it does now.
//! * Each lock is a track of a process of its own, with slices of its holders, and a counter of its waiters.
//! * An arrow leads from a hold to the one that its release made possible.
//!
//! Times are microseconds since boot, with decimals.

use std::io::{self, Write};

use read_rip_model::locks::{LockId, ThreadLocks};
use read_rip_report::LockNames;
use read_rip_report::{printable, used};
use serde::Serialize;
use serde_json::{Value, json};

use super::scene::Scene;
use super::timeline::{Slice, of_slot};
use super::uses::{
    Arrow, LockUses, Use, lock_uses, locks_of, processes, processes_of_tasks, slice_words, tasks_of,
};

/// The process of the locks has this added to the id of its program. No process has such an id: Linux gives none above
/// 2^22. Trace processors keep 32 bits.
const LOCKS: u64 = 1 << 30;
/// The process of the tasks has this added.
const TASKS: u64 = 1 << 29;

/// A time as the format has it, µs.
struct Micros(u64);

impl Serialize for Micros {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Exact to the nanosecond for the first 52 days after the boot, and to 16 ns for two years.
        serializer.serialize_f64(self.0 as f64 / 1000.0)
    }
}

#[derive(Serialize)]
struct TraceEvent<'a> {
    name: &'a str,
    /// What it is: `X` a slice, `b` and `e` an asynchronous one, `i` an instant, `C` a counter, `s` and `f` an arrow,
    /// `M` a name.
    ph: &'static str,
    cat: &'static str,
    pid: u64,
    tid: u64,
    ts: Micros,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<Micros>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// An arrow ends at the slice around its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    /// An instant belongs to its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    args: Value,
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    is_first: bool,
    /// The number of the next arrow or asynchronous slice.
    next_id: u64,
}

impl Writer<'_> {
    fn event(&mut self, event: &TraceEvent<'_>) -> io::Result<()> {
        self.out.write_all(if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *self.out, event).map_err(Into::into)
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Gives a process or a thread its name.
    fn name(&mut self, what: &'static str, pid: u64, tid: u64, name: &str) -> io::Result<()> {
        self.event(&TraceEvent { args: json!({ "name": name }), ..event(what, "M", "", (pid, tid), 0) })
    }
}

/// The process and the thread of a track.
fn track(of: &ThreadLocks) -> (u64, u64) {
    match of.task.as_deref() {
        Some(task) => (TASKS + u64::from(of.pid), task.number.into()),
        None => (of.pid.into(), of.tid.into()),
    }
}

/// An event without what only some have.
fn event<'a>(
    name: &'a str,
    ph: &'static str,
    cat: &'static str,
    (pid, tid): (u64, u64),
    at_ns: u64,
) -> TraceEvent<'a> {
    let (dur, id, bp, s) = (None, None, None, None);
    TraceEvent { name, ph, cat, pid, tid, ts: Micros(at_ns), dur, id, bp, s, args: json!({}) }
}

/// Writes a scene.
///
/// # Errors
///
/// Those of `out`.
pub fn chrome(
    out: &mut dyn Write,
    &Scene { program, names, threads, logged, contention, .. }: &Scene<'_>,
) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut writer = Writer { out, is_first: true, next_id: 0 };
    let locks = lock_uses(threads);
    let shown = threads.iter().map(|(id, _)| *id).collect();
    for pid in processes(threads, &locks, names) {
        writer.name("process_name", pid.into(), 0, &printable(program))?;
        writer.name("process_name", LOCKS + u64::from(pid), 0, &locks_of(program))?;
    }
    for pid in processes_of_tasks(threads, names) {
        writer.name("process_name", TASKS + u64::from(pid), 0, &tasks_of(program))?;
    }
    for (id, timeline) in threads {
        let thread = &names.model.threads[*id];
        let track = track(thread);
        writer.name("thread_name", track.0, track.1, &names.track(*id))?;
        for (slice, is_nested) in timeline.slices.iter().zip(timeline.nested()) {
            writer.slice(slice, is_nested, track, names)?;
        }
        for logged in of_slot(logged, thread.slot) {
            if let Some(at_ns) = logged.at_ns() {
                let (text, args) = (printable(&logged.text), json!({ "place": printable(&logged.place) }));
                writer.event(&TraceEvent {
                    s: Some("t"),
                    args,
                    ..event(&text, "i", "event", track, at_ns)
                })?;
            }
        }
    }
    for (lock, uses) in &locks {
        writer.lock(*lock, uses, contention.waiters(*lock), names)?;
        writer.arrows(contention.arrows(*lock, &shown), names)?;
    }
    writer.out.write_all(b"\n]}\n")
}

impl Writer<'_> {
    fn slice(
        &mut self,
        slice: &Slice,
        is_nested: bool,
        track: (u64, u64),
        names: &LockNames<'_>,
    ) -> io::Result<()> {
        let (name, cat) = slice_words(slice, names);
        let mut args = json!({});
        if let Some(location) = slice.location {
            args["location"] = names.location(location).into();
        }
        if let Some(usage) = &slice.usage {
            args["usage"] = used(usage).into();
        }
        if slice.is_open {
            args["open"] = true.into();
        }
        if is_nested {
            let dur = Some(Micros(slice.end_ns - slice.begin_ns));
            return self.event(&TraceEvent { dur, args, ..event(&name, "X", cat, track, slice.begin_ns) });
        }
        let id = Some(self.next_id());
        self.event(&TraceEvent { id, args, ..event(&name, "b", cat, track, slice.begin_ns) })?;
        self.event(&TraceEvent { id, ..event(&name, "e", cat, track, slice.end_ns) })
    }

    /// The track of a lock, with its holders, and how many waited for it.
    fn lock(
        &mut self,
        lock: LockId,
        uses: &LockUses,
        waiters: &[(u64, usize)],
        names: &LockNames<'_>,
    ) -> io::Result<()> {
        let track = (LOCKS + u64::from(names.model.locks[lock].pid), lock as u64 + 1);
        let name = names.lock(&names.model.locks[lock]);
        self.name("thread_name", track.0, track.1, &name)?;
        for hold in &uses.holds {
            let name = names.thread(hold.thread);
            // Readers hold a lock at the same time.
            let id = Some(self.next_id());
            let args = if hold.is_open { json!({ "open": true }) } else { json!({}) };
            self.event(&TraceEvent { id, args, ..event(&name, "b", "holder", track, hold.begin_ns) })?;
            self.event(&TraceEvent { id, ..event(&name, "e", "holder", track, hold.end_ns) })?;
        }
        let name = format!("waiters of {name}");
        for &(at_ns, count) in waiters {
            let args = json!({ "waiters": count });
            self.event(&TraceEvent { args, ..event(&name, "C", "waiters", track, at_ns) })?;
        }
        Ok(())
    }

    /// Arrows from the releases of a lock to the holds that they made possible.
    fn arrows<'a>(
        &mut self,
        arrows: impl Iterator<Item = &'a Arrow>,
        names: &LockNames<'_>,
    ) -> io::Result<()> {
        for arrow in arrows {
            let track = |of: &Use| track(&names.model.threads[of.thread]);
            let id = Some(self.next_id());
            // Both ends are within the slices that the arrow is bound to. A viewer takes the older slice for its begin,
            // and the wait may be older than the hold of which the release is. An asynchronous slice has no arrows.
            let from_ns = arrow.released.end_ns.saturating_sub(1).max(arrow.released.begin_ns);
            let to_ns = match arrow.acquired.is_nested {
                true => arrow.acquired.begin_ns,
                false => arrow.wait.end_ns.saturating_sub(1).max(from_ns),
            };
            let from = track(&arrow.released);
            self.event(&TraceEvent { id, ..event("release", "s", "release", from, from_ns) })?;
            let end = event("release", "f", "release", track(&arrow.wait), to_ns);
            self.event(&TraceEvent { id, bp: Some("e"), ..end })?;
        }
        Ok(())
    }
}
