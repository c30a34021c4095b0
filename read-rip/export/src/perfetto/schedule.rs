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
/// States of a thread that leaves a processor, as Linux 4.4 has them: Perfetto takes these if it is told no version.
const RUNNABLE: i64 = 0;
const SLEEPS: i64 = 1;
const DEAD: i64 = 16;
const PREEMPTED: i64 = 2048;

impl Writer<'_, '_> {
    /// Writes the events of all processors. `tracks`: the threads that have tracks, by their ids.
    pub(super) fn schedule(&mut self, schedule: &Schedule, is_drawn: impl Fn(u32) -> bool) -> io::Result<()> {
        let recorded: HashMap<u32, String> =
            self.names.model.threads.iter().map(|thread| (thread.tid, thread.name.clone())).collect();
        let known = schedule.names.iter().map(|(tid, (_, name))| (*tid, name.clone()));
        let names: HashMap<u32, String> = known.chain(recorded).collect();
        self.other_threads(schedule, is_drawn)?;
        let mut processors: BTreeMap<u32, Vec<FtraceEvent>> = BTreeMap::new();
        for turns in schedule.turns.chunk_by(|one, other| one.cpu == other.cpu) {
            let drawn: Vec<(&Turn, i32)> =
                turns.iter().filter_map(|turn| Some((turn, id(turn.tid)?))).collect();
            let events = processors.entry(turns[0].cpu).or_default();
            for (index, &(turn, tid)) in drawn.iter().enumerate() {
                let name = names.get(&turn.tid).map_or("", |name| name);
                events.push(switch(turn.begin_ns, (IDLE, RUNNABLE), (tid, name)));
                // What goes on at the end of the recording has no end.
                if turn.end != TurnEnd::GoesOn || index + 1 < drawn.len() {
                    events.push(switch(turn.end_ns, ((tid, name), state(turn.end)), IDLE));
                }
            }
        }
        for of in &schedule.wake_ups {
            processors.entry(of.cpu).or_default().extend(waking(of, &names));
        }
        for (cpu, mut events) in processors {
            events.sort_by_key(|event| event.timestamp);
            for part in events.chunks(BUNDLE_LEN) {
                self.packets.ftrace(FtraceEventBundle { cpu: Some(cpu), event: part.to_vec() })?;
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

/// Whom an interrupt has woken has nobody to thank: the thread that it interrupted did nothing for it.
fn waking(of: &WakeUp, names: &HashMap<u32, String>) -> Option<FtraceEvent> {
    let waker = if of.is_by_interrupt { None } else { id(of.waker_tid) };
    let comm = names.get(&of.woken_tid).map_or("", |name| name);
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
