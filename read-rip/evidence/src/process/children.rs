//! Forked children, which record in their parent's ring, after the parent's death.
//!
//! It does not say whether the parent lives: `liveness` does.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashSet};

use read_rip_ring::{Header, Slot, SlotState};

use super::liveness::{HIDDEN, Liveness, OTHER_NAMESPACE, of_running, tick_ns};
use super::mapped::{MappedFiles, Recorder, maps};
use super::observer::observer;
use super::state::{Seen, look};

const MAY_BE_CHILD: &str =
    "the process is dead, but a child of it may live: this user cannot see all processes";

/// Who may record in a ring whose first process is dead. `mapped` must not have been searched before that was known.
/// `is_thorough`: search even if the ring knows of no child, as after a fork without fork handlers.
///
/// Three sources: slots of other processes, the children that the header notes, and the processes that have the ring
/// mapped. A child that has not marked yet has no slot. One that was forked long ago is not noted any more.
pub fn liveness_of_children(
    header: &Header,
    slots: &[Slot],
    mapped: &LazyCell<MappedFiles>,
    is_thorough: bool,
) -> Liveness {
    let observer = observer();
    if observer.is_of_another_boot(header) {
        return Liveness::Dead;
    }
    let is_own_namespace = observer.pid_namespace == header.pid_namespace;
    if is_own_namespace {
        let recorders = recorders(slots, header.pid_namespace, |slot| slot.state != SlotState::Exited);
        if let Some(&(pid, _)) = recorders.iter().find(|&&recorder| is_recorder_alive(header, recorder)) {
            return Liveness::Forked { pid: pid as i32 };
        }
    }
    if header.is_copy() {
        return Liveness::Dead;
    }
    if is_own_namespace {
        let noted = header.recent_children.iter().flatten().map(|&pid| pid as i32);
        if let Some(pid) = { noted }.find(|&pid| maps(pid, header) == Some(true)) {
            return Liveness::Forked { pid };
        }
    }
    let is_shared = header.forks > 0 || slots.iter().any(|slot| slot.pid != header.pid);
    if !is_shared && !is_thorough {
        return Liveness::Dead;
    }
    // A child may be in a PID namespace of its own.
    let made_at_ticks = observer
        .boottime_ahead_ns(header)
        .and_then(|ahead_ns| header.created_boottime_ns.checked_add_signed(ahead_ns))
        .map(|made_at_ns| made_at_ns / tick_ns(header));
    match mapped.recorder(header, is_shared, made_at_ticks) {
        Recorder::Found(pid) => Liveness::Forked { pid },
        Recorder::None => Liveness::Dead,
        Recorder::Unknown => Liveness::Unknown { why: MAY_BE_CHILD },
    }
}

/// A process that was forked by the process that made a ring, and has recorded in it.
#[derive(Clone, Debug)]
pub struct Child {
    pub pid: u32,
    /// How many threads of it have slots.
    pub threads: usize,
    /// Whether it is alive.
    pub liveness: Liveness,
}

/// The children that have recorded in a ring, by their pids.
pub fn children_in(header: &Header, slots: &[Slot]) -> Vec<Child> {
    let mut children: BTreeMap<u32, (usize, &Slot)> = BTreeMap::new();
    for slot in slots.iter().filter(|slot| slot.pid != header.pid) {
        let (threads, first) = children.entry(slot.pid).or_insert((0, slot));
        *threads += 1;
        if slot.claimed_boottime_ns < first.claimed_boottime_ns {
            *first = slot;
        }
    }
    let child = |(pid, (threads, first))| Child { pid, threads, liveness: liveness_by(header, first) };
    children.into_iter().map(child).collect()
}

/// Whether a child is alive that has recorded in a ring.
pub fn liveness_of_child(header: &Header, slots: &[Slot], pid: u32) -> Liveness {
    let of_child = slots.iter().filter(|slot| slot.pid == pid);
    let first = of_child.min_by_key(|slot| slot.claimed_boottime_ns);
    first.map_or(Liveness::Dead, |first| liveness_by(header, first))
}

/// Whether the child is alive whose first slot this is.
fn liveness_by(header: &Header, first: &Slot) -> Liveness {
    let (observer, pid) = (observer(), first.pid);
    if observer.is_of_another_boot(header) {
        return Liveness::Dead;
    }
    if observer.pid_namespace == 0 || first.pid_namespace != observer.pid_namespace {
        return Liveness::Unknown { why: OTHER_NAMESPACE };
    }
    if !is_recorder_alive(header, (pid, first.claimed_boottime_ns)) {
        return Liveness::Dead;
    }
    match look(pid as i32, observer.has_own_proc) {
        Seen::Gone => Liveness::Dead,
        Seen::Hidden | Seen::Unknown => Liveness::Unknown { why: HIDDEN },
        Seen::Dying(_) => Liveness::Dying { pid: pid as i32 },
        Seen::Running(running) => of_running(header, pid as i32, &running),
    }
}

/// The processes that recorded in a ring, were forked by the process that made it, and have ended. Empty for a ring
/// of another PID namespace or another boot.
pub fn ended_children(header: &Header, slots: &[Slot]) -> HashSet<u32> {
    let observer = observer();
    let own_namespace = observer.pid_namespace;
    if own_namespace == 0 || own_namespace != header.pid_namespace || observer.is_of_another_boot(header) {
        return HashSet::new();
    }
    recorders(slots, own_namespace, |slot| slot.pid != header.pid)
        .into_iter()
        .filter(|&recorder| !is_recorder_alive(header, recorder))
        .map(|(pid, _)| pid)
        .collect()
}

/// The processes of the wanted slots, with the time at which each claimed its first slot. The process started
/// before that.
fn recorders(slots: &[Slot], pid_namespace: u64, is_wanted: impl Fn(&Slot) -> bool) -> Vec<(u32, u64)> {
    let mut pids: Vec<(u32, u64)> = slots
        .iter()
        .filter(|slot| is_wanted(slot) && slot.pid_namespace == pid_namespace)
        .map(|slot| (slot.pid, slot.claimed_boottime_ns))
        .collect();
    pids.sort_unstable();
    pids.dedup_by_key(|&mut (pid, _)| pid);
    pids
}

/// Whether a process that claimed a slot at this time is alive, or may be.
fn is_recorder_alive(header: &Header, (pid, claimed_ns): (u32, u64)) -> bool {
    let observer = observer();
    match look(pid as i32, observer.has_own_proc) {
        Seen::Gone => false,
        Seen::Hidden | Seen::Unknown => true,
        Seen::Running(running) | Seen::Dying(running) => {
            let tick_ns = tick_ns(header);
            let began_ns = observer.boottime_ahead_ns(header).and_then(|ahead_ns| {
                running.start_ticks.saturating_mul(tick_ns).checked_add_signed(ahead_ns.checked_neg()?)
            });
            // Start times are rounded to ticks.
            began_ns.is_none_or(|began_ns| began_ns <= claimed_ns.saturating_add(tick_ns))
        }
    }
}
