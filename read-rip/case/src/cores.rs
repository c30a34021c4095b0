//! A core file is read: its threads and its memory, and the ring of the same process where there is one.
//!
//! # Which ring is joined
//!
//! One that the user names with `--ring`, if it has the core's process id. Otherwise the core says which files were
//! mapped. If it has the ring's pages, these are of the same moment as its memory. If not, the file is read, unless the
//! process went on after the core was made: then the ring is of another moment.

use std::collections::HashSet;
use std::path::Path;

use read_rip_evidence::core::Core;
use read_rip_evidence::process::Liveness;
use read_rip_evidence::stacks::Unwinder;
use read_rip_evidence::standing::Standings;
use read_rip_model::threads;
use read_rip_ring::{self as ring, SlotState, Snapshot};
use read_rip_symbols::FunctionNames;

use crate::reading::{CoreRest, Reading};
use crate::{Error, Options};

impl Reading {
    /// Reads a core file, and the ring of its process.
    pub(crate) fn of_core(path: &Path, options: &Options) -> Result<Reading, Error> {
        let core = Core::open(path, options.unpack_limit).map_err(Error::Core)?;
        let target = core.target(options.of_files());
        let memory = core.memory(&target.modules, options.of_files());
        let mut unwinder = Unwinder::new(&target, &memory, options.of_files());
        let mut names = FunctionNames::new(&target.modules, options.of_files());
        let pid = target.pid;
        let mut seen = Standings::new(target, &memory, &mut unwinder, &mut names);
        seen.read_tasks(&memory, &mut names, true);
        seen.finish(&memory);
        seen.presume_holders(&memory, &mut names);
        seen.presume_takers(&memory, &mut unwinder, &mut names);
        seen.find_jobs(&memory, &mut names);
        let mut reading = match ring_of(&core, pid, options)? {
            Some(snapshot) => {
                name_tasks(&mut seen, &snapshot);
                let mut reading = Reading::dead(path, snapshot);
                reading.add_seen(seen);
                reading
            }
            None => {
                let mut reading = Reading::dead(path, Snapshot::of_modules(seen.target.modules.clone()));
                reading.seen = Some(seen);
                reading
            }
        };
        reading.core = Some(CoreRest {
            death: core.death().clone(),
            gaps: core.gaps().to_vec(),
            command_line: core.command_line().to_owned(),
        });
        Ok(reading)
    }

    /// A process that has ended, and that the system is not asked about.
    pub(crate) fn dead(path: &Path, snapshot: Snapshot) -> Reading {
        Reading {
            path: path.to_owned(),
            losses: threads::losses(&snapshot),
            snapshot,
            liveness: Some(Liveness::Dead),
            living: HashSet::new(),
            ended: HashSet::new(),
            now_ns: None,
            latest_end_ns: None,
            alive_ns: None,
            asks_kernel: false,
            seen: None,
            children: Vec::new(),
            core: None,
            saved: None,
        }
    }
}

/// The ring of a core's process.
fn ring_of(core: &Core, pid: u32, options: &Options) -> Result<Option<Snapshot>, Error> {
    if let Some(path) = &options.core_ring {
        let snapshot = ring::read(path)?;
        return match of_process(snapshot, pid) {
            Some(snapshot) => Ok(Some(snapshot)),
            None => Err(Error::OtherRing { path: path.clone(), pid }),
        };
    }
    for (path, image) in core.rings() {
        let in_core = image.and_then(|image| of_process(ring::read_source(&image).ok()?, pid));
        if in_core.is_some() {
            return Ok(in_core);
        }
        // After a signal that ends it, a process records nothing more. A debugger lets it go on.
        let is_last_moment = core.death().signal.is_some_and(|signal| signal != libc::SIGTRAP);
        let is_dead = || {
            ring::read_header(&path).is_ok_and(|header| {
                let own = read_rip_evidence::process::liveness(&header);
                own.is_final() && header.pid == pid
            })
        };
        if is_last_moment
            && is_dead()
            && let Ok(snapshot) = ring::read(&path)
            && let Some(snapshot) = of_process(snapshot, pid)
        {
            return Ok(Some(snapshot));
        }
    }
    Ok(None)
}

/// The part of a ring that is of this process; `None` if it has none.
fn of_process(mut snapshot: Snapshot, pid: u32) -> Option<Snapshot> {
    let header = snapshot.header.as_mut()?;
    let has_slots = snapshot.slots.iter().any(|slot| slot.pid == pid);
    if header.pid != pid {
        if !has_slots {
            return None;
        }
        header.treat_as_child(pid);
    }
    header.treat_as_original(header.uid);
    snapshot.slots.retain(|slot| slot.pid == pid);
    Some(snapshot)
}

/// Gives threads the names that the ring has.
fn name_tasks(seen: &mut Standings, snapshot: &Snapshot) {
    let slots = snapshot.slots.iter().filter(|slot| slot.state == SlotState::Live && !slot.name.is_empty());
    let names: std::collections::HashMap<u32, &str> = slots.map(|slot| (slot.tid, &*slot.name)).collect();
    for task in &mut seen.target.tasks {
        if let Some(&name) = names.get(&task.own_tid) {
            name.clone_into(&mut task.name);
        }
    }
}
