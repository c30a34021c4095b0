//! The processors: who has them, and who wakes whom, as the kernel's own events.
//!
//! Perfetto draws a track for each processor, and for each thread a state: it runs, could run, or sleeps. A processor
//! that no thread of the recording has is drawn as idle: it may have others.

use std::collections::{BTreeMap, HashMap};
use std::io;

use read_rip_report::printable;
use read_rip_ring::{Schedule, Turn, TurnEnd, WakeUp};

use super::messages::*;
use super::{Writer, id};

/// So many events are in one packet.
const BUNDLE_LEN: usize = 4096;
/// What a processor has that has no thread.
const IDLE: (i32, &str) = (0, "swapper");
/// The priority of a thread whose priority is not known: the normal one.
const PRIORITY: i32 = 120;
/// States of a thread that leaves a processor, as Linux 4.4 numbers them. Perfetto assumes this version if a trace
/// names none.
const RUNNABLE: i64 = 0;
const SLEEPS: i64 = 1;
const DEAD: i64 = 16;
const PREEMPTED: i64 = 2048;

/// An event of a processor, before it is written: there may be millions.
enum Moment<'s> {
    Begin(&'s Turn),
    End(&'s Turn),
    WakeUp(&'s WakeUp),
}

impl Moment<'_> {
    fn at_ns(&self) -> u64 {
        match self {
            Moment::Begin(turn) => turn.begin_ns,
            Moment::End(turn) => turn.end_ns,
            Moment::WakeUp(of) => of.at_ns,
        }
    }

    fn event(&self, names: &HashMap<u32, &str>) -> Option<FtraceEvent> {
        let thread = |turn: &Turn| Some((id(turn.tid)?, names.get(&turn.tid).copied().unwrap_or_default()));
        match self {
            Moment::Begin(turn) => Some(switch(turn.begin_ns, (IDLE, RUNNABLE), thread(turn)?)),
            Moment::End(turn) => Some(switch(turn.end_ns, (thread(turn)?, state(turn.end)), IDLE)),
            Moment::WakeUp(of) => waking(of, names),
        }
    }
}

impl Writer<'_, '_> {
    /// Writes the events of all processors. `is_drawn`: whether the thread with an id has a track.
    pub(super) fn schedule(&mut self, schedule: &Schedule, is_drawn: impl Fn(u32) -> bool) -> io::Result<()> {
        let model = self.names.model;
        let recorded = model.threads.iter().map(|thread| (thread.tid, &*thread.name));
        let known = schedule.names.iter().map(|(tid, (_, name))| (*tid, &**name));
        let names: HashMap<u32, &str> = known.chain(recorded).collect();
        self.other_threads(schedule, is_drawn)?;
        let mut processors: BTreeMap<u32, Vec<Moment<'_>>> = BTreeMap::new();
        for turns in schedule.turns.chunk_by(|one, other| one.cpu == other.cpu) {
            let moments = processors.entry(turns[0].cpu).or_default();
            for (index, turn) in turns.iter().enumerate() {
                moments.push(Moment::Begin(turn));
                // What goes on at the end of the recording has no end.
                if turn.end != TurnEnd::GoesOn || index + 1 < turns.len() {
                    moments.push(Moment::End(turn));
                }
            }
        }
        for of in &schedule.wake_ups {
            processors.entry(of.cpu).or_default().push(Moment::WakeUp(of));
        }
        for (cpu, mut moments) in processors {
            moments.sort_by_key(Moment::at_ns);
            for part in moments.chunks(BUNDLE_LEN) {
                let event = part.iter().filter_map(|moment| moment.event(&names)).collect();
                self.packets.ftrace(FtraceEventBundle { cpu: Some(cpu), event })?;
            }
        }
        Ok(())
    }

    /// The threads of the process that have turns and recorded nothing: they belong to it too.
    fn other_threads(&mut self, schedule: &Schedule, is_drawn: impl Fn(u32) -> bool) -> io::Result<()> {
        for (&tid, (pid, name)) in &schedule.names {
            let Some(&parent_uuid) = self.processes.get(pid) else { continue };
            if let Some((pid, number)) = id(*pid).zip(id(tid))
                && !is_drawn(tid)
            {
                let thread_name = printable(name).into_owned();
                let thread = Some(ThreadDescriptor { pid, tid: number, thread_name });
                let parent_uuid = Some(parent_uuid);
                self.track(TrackDescriptor { thread, parent_uuid, ..TrackDescriptor::default() })?;
            }
        }
        Ok(())
    }
}

fn state(end: TurnEnd) -> i64 {
    match end {
        TurnEnd::Blocked => SLEEPS,
        TurnEnd::Preempted => PREEMPTED,
        TurnEnd::Exited => DEAD,
        TurnEnd::GoesOn | TurnEnd::Lost => RUNNABLE,
    }
}

fn switch(
    at_ns: u64,
    ((left, left_name), state): ((i32, &str), i64),
    (came, came_name): (i32, &str),
) -> FtraceEvent {
    FtraceEvent {
        timestamp: Some(at_ns.min(i64::MAX as u64)),
        pid: Some(left.unsigned_abs()),
        event: Some(Event::SchedSwitch(SchedSwitch {
            prev_comm: printable(left_name).into_owned(),
            prev_pid: left,
            prev_prio: PRIORITY,
            prev_state: state,
            next_comm: printable(came_name).into_owned(),
            next_pid: came,
            next_prio: PRIORITY,
        })),
    }
}

/// A thread that an interrupt has woken has no waker: the thread that was interrupted did nothing for it.
fn waking(of: &WakeUp, names: &HashMap<u32, &str>) -> Option<FtraceEvent> {
    let waker = if of.is_by_interrupt { None } else { id(of.waker_tid) };
    let comm = names.get(&of.woken_tid).copied().unwrap_or_default();
    Some(FtraceEvent {
        timestamp: Some(of.at_ns.min(i64::MAX as u64)),
        pid: Some(waker.unwrap_or(IDLE.0).unsigned_abs()),
        event: Some(Event::SchedWaking(SchedWaking {
            comm: printable(comm).into_owned(),
            pid: id(of.woken_tid)?,
            prio: PRIORITY,
            success: 1,
        })),
    })
}
