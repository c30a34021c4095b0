//! JSON trace events, as Chrome's `about:tracing` and Perfetto read them ("Trace Event Format", the Catapult project).
//!
//! * Each thread is a track, with slices of its waits, holds and spans. Slices that do not lie within each other are
//!   asynchronous ones, because a viewer takes slices of a track as nested.
//! * Each lock is a track of a process of its own, with slices of its holders, and a counter of the threads that wait.
//! * An arrow leads from a release to the end of the wait that it ended.
//!
//! Times are microseconds since boot, with decimals.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::timeline::{Said, SaidKind, Slice, SliceKind, Timeline, of_slot};
use crate::locks::{LockId, ThreadId};
use crate::report::LockNames;

/// The process of the locks has this added to the id of its program. No process has such an id: Linux gives none above
/// 2^22. Trace processors keep 32 bits.
const LOCKS: u64 = 1 << 30;

/// A time as the format has it, µs.
struct Micros(u64);

impl Serialize for Micros {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Exact to the nanosecond for the first 52 days after the boot, and to 16 ns for two years.
        serializer.serialize_f64(self.0 as f64 / 1000.0)
    }
}

/// One event of the format.
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

/// A wait that has ended, or a hold, of one lock.
struct Use {
    thread: ThreadId,
    begin_ns: u64,
    end_ns: u64,
    is_open: bool,
}

/// Writes the events of these threads, and what they said, ordered by slots. `program` is what their process is called.
///
/// # Errors
///
/// Those of `out`.
pub fn chrome(
    out: &mut dyn Write,
    program: &str,
    names: &LockNames<'_>,
    threads: &[(ThreadId, Timeline)],
    said: &[Said],
) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut writer = Writer { out, is_first: true, next_id: 0 };
    let (mut waits, mut holds): (BTreeMap<LockId, Vec<Use>>, BTreeMap<LockId, Vec<Use>>) = Default::default();
    let mut pids: Vec<u64> = threads.iter().map(|(id, _)| names.model.threads[*id].pid.into()).collect();
    pids.sort_unstable();
    pids.dedup();
    for pid in pids {
        writer.name("process_name", pid, 0, program)?;
        writer.name("process_name", LOCKS + pid, 0, &format!("locks of {program}"))?;
    }
    for (id, timeline) in threads {
        let thread = &names.model.threads[*id];
        let track = (thread.pid.into(), thread.tid.into());
        writer.name("thread_name", track.0, track.1, &crate::printable::printable(&thread.name))?;
        for (slice, is_nested) in timeline.slices.iter().zip(timeline.nested()) {
            writer.slice(slice, is_nested, track, names)?;
            let of =
                Use { thread: *id, begin_ns: slice.begin_ns, end_ns: slice.end_ns, is_open: slice.is_open };
            match slice.kind {
                SliceKind::Wait(lock) => waits.entry(lock).or_default().push(of),
                SliceKind::Hold(lock) => holds.entry(lock).or_default().push(of),
                _ => {}
            }
        }
        for said in of_slot(said, thread.slot) {
            if let SaidKind::Event(Some(at_ns)) = said.kind {
                let args = json!({ "place": said.place });
                writer.event(&TraceEvent {
                    s: Some("t"),
                    args,
                    ..event(&said.text, "i", "event", track, at_ns)
                })?;
            }
        }
    }
    for (lock, holds) in &mut holds {
        writer.holders(*lock, holds, names)?;
    }
    for (lock, waits) in &mut waits {
        writer.waiters(*lock, waits, names)?;
        writer.arrows(waits, holds.get(lock).map_or(&[], Vec::as_slice), names)?;
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
        let lock = |id: LockId| names.lock(&names.model.locks[id]);
        let (name, cat) = match &slice.kind {
            SliceKind::Wait(id) => (format!("waits for {}", lock(*id)), "wait"),
            SliceKind::Hold(id) => (format!("holds {}", lock(*id)), "hold"),
            SliceKind::Condition(id) => {
                (format!("waits on a condition variable, with {}", lock(*id)), "wait")
            }
            SliceKind::Sleep(id) => (format!("waits for {}", lock(*id)), "wait"),
            SliceKind::Join(id) => (format!("waits for the end of {}", names.thread(*id)), "wait"),
            SliceKind::Span(name) => (name.clone(), "span"),
        };
        let mut args = json!({});
        if let Some(location) = slice.location {
            args["location"] = names.location(location).into();
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

    /// The track of a lock.
    fn holders(&mut self, lock: LockId, holds: &mut [Use], names: &LockNames<'_>) -> io::Result<()> {
        let track = track_of(lock, names);
        self.name("thread_name", track.0, track.1, &names.lock(&names.model.locks[lock]))?;
        holds.sort_by_key(|hold| hold.begin_ns);
        for hold in holds {
            let name = names.thread(hold.thread);
            // Readers hold a lock at the same time.
            let id = Some(self.next_id());
            let args = if hold.is_open { json!({ "open": true }) } else { json!({}) };
            self.event(&TraceEvent { id, args, ..event(&name, "b", "holder", track, hold.begin_ns) })?;
            self.event(&TraceEvent { id, ..event(&name, "e", "holder", track, hold.end_ns) })?;
        }
        Ok(())
    }

    /// How many threads waited for a lock.
    fn waiters(&mut self, lock: LockId, waits: &[Use], names: &LockNames<'_>) -> io::Result<()> {
        let mut changes: Vec<(u64, i64)> = waits.iter().map(|wait| (wait.begin_ns, 1)).collect();
        changes.extend(waits.iter().filter(|wait| !wait.is_open).map(|wait| (wait.end_ns, -1)));
        changes.sort_unstable();
        let name = format!("waiters of {}", names.lock(&names.model.locks[lock]));
        let mut waiting = 0;
        for (at_ns, by) in changes {
            waiting += by;
            let args = json!({ "threads": waiting });
            self.event(&TraceEvent { args, ..event(&name, "C", "waiters", track_of(lock, names), at_ns) })?;
        }
        Ok(())
    }

    /// Arrows from the releases of a lock to the ends of the waits that they ended.
    fn arrows(&mut self, waits: &[Use], holds: &[Use], names: &LockNames<'_>) -> io::Result<()> {
        let mut releases: Vec<&Use> = holds.iter().filter(|hold| !hold.is_open).collect();
        releases.sort_by_key(|hold| hold.end_ns);
        for wait in waits.iter().filter(|wait| !wait.is_open) {
            let until = releases.partition_point(|hold| hold.end_ns <= wait.end_ns);
            let last = releases[..until].iter().rev().find(|hold| hold.thread != wait.thread);
            let Some(hold) = last.filter(|hold| hold.end_ns >= wait.begin_ns) else { continue };
            let track = |id: ThreadId| {
                let thread = &names.model.threads[id];
                (u64::from(thread.pid), u64::from(thread.tid))
            };
            let id = Some(self.next_id());
            // Both ends are within their slices, which an arrow is bound to.
            let from_ns = hold.end_ns.saturating_sub(1).max(hold.begin_ns);
            let to_ns = wait.end_ns.saturating_sub(1).max(from_ns);
            self.event(&TraceEvent { id, ..event("release", "s", "release", track(hold.thread), from_ns) })?;
            let end = event("release", "f", "release", track(wait.thread), to_ns);
            self.event(&TraceEvent { id, bp: Some("e"), ..end })?;
        }
        Ok(())
    }
}

/// The process and the thread that stand for a lock.
fn track_of(lock: LockId, names: &LockNames<'_>) -> (u64, u64) {
    (LOCKS + u64::from(names.model.locks[lock].pid), lock as u64 + 1)
}
