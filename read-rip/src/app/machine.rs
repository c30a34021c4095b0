//! `check --all`: which processes of this machine are stuck, in one line each.
//!
//! All processes have one window. First each process, and each ring whose process may live, is read once; after the
//! window only what may be stuck is read again: see `glance`. So a machine with hundreds of healthy processes takes
//! little more than the window. The rings of dead processes are read afterwards, one after another. There may be
//! thousands, and anybody may have put them there: what was found before them is shown first.
//!
//! It analyses nothing itself.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use read_rip_evidence::patience::{each as each_process, is_silent};
use read_rip_evidence::process::live::{Error, LiveTarget, processes};
use read_rip_evidence::process::{Ends, Found, Liveness, MappedFiles};
use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::Hidden;
use read_rip_model::findings::Confidence;
use read_rip_report::ci::{Case, CaseFinding};
use read_rip_report::{self as report, Json, Looked};
use read_rip_symbols::OpenedFiles;

use super::check::{Begun, First, Manner, Readings, judge, suppressions, write_json};
use super::collect::Collection;
use super::error::AppError;
use super::glance::Glance;
use super::look::path_of;
use super::output::{UNJUDGED, prose, remark};
use super::progress::Progress;
use super::reading::Reading;
use super::rings::look_everywhere;
use crate::cli::{CheckArgs, Common};

/// A process or a ring with findings.
struct Stuck {
    /// What sorts it: the confidence and the number of threads.
    rank: (Confidence, usize),
    text: Vec<u8>,
}

/// `read-rip check --all`: first the living, the worst on top, and then the rings of the dead, one after another.
pub(super) fn check(args: &CheckArgs, wanted: &Common) -> Result<u8, AppError> {
    let rules = suppressions(&args.suppress)?;
    let mut collection = Collection::new(args, &rules, wanted);
    let mut machine = Machine { args, wanted, opened: OpenedFiles::default(), looked: Looked::default() };
    let mut stuck = Vec::new();
    let dead = machine.read_living(&mut |path, pid, readings| {
        stuck.extend(add(&mut collection, path, pid, readings)?);
        Ok(())
    })?;
    stuck.sort_by_key(|found| std::cmp::Reverse(found.rank));
    let mut out = prose(wanted);
    for found in &stuck {
        out.write_all(&found.text)?;
    }
    out.flush()?;
    let mut stuck = stuck.len();
    let progress = Progress::of_rings(dead.len());
    for ring in dead {
        let (path, pid, readings) = machine.read_dead(ring);
        if let Some(found) = add(&mut collection, path, pid, readings)? {
            stuck += 1;
            progress.hidden(|| out.write_all(&found.text).and_then(|()| out.flush()))?;
        }
        progress.next();
    }
    drop(progress);
    let looked = Looked { stuck, ..machine.looked };
    match wanted.json {
        true => Json(&mut out).looked(&looked)?,
        false => report::looked(&mut out, &looked)?,
    }
    out.flush()?;
    if let Some(hint) = looked.hint().filter(|_| !wanted.json) {
        remark(format_args!("Hint: {hint}"));
    }
    collection.write(&args.ci)?;
    // If nothing could be looked into, nothing was judged.
    Ok(if looked.processes + looked.rings == 0 { UNJUDGED } else { collection.status() })
}

/// What is done with each ring, and with each process without a ring that may be stuck. If a ring cannot be read, the
/// process comes with it that made it.
pub(super) type Each<'a> =
    dyn FnMut(PathBuf, Option<u32>, Result<Readings, AppError>) -> Result<(), AppError> + 'a;

/// The processes and rings of this machine, while they are read.
pub(super) struct Machine<'a> {
    pub(super) args: &'a CheckArgs,
    pub(super) wanted: &'a Common,
    /// Many rings may name one program.
    pub(super) opened: OpenedFiles,
    /// Counts what was read, but for what is stuck.
    pub(super) looked: Looked,
}

impl Machine<'_> {
    /// Reads all processes, and the rings of those that may live. Returns the other rings and the copies, the newest
    /// first.
    pub(super) fn read_living(&mut self, each: &mut Each<'_>) -> Result<Vec<Found>, AppError> {
        let Machine { args, wanted, .. } = *self;
        let glances = glance(args, &mut self.looked)?;
        let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
        // A copy says nothing that its original does not say.
        let is_past =
            |ring: &Found| ring.header.is_copy() || ring.liveness.is_final() && !ring.may_have_child(&mapped);
        let (mut dead, living) = look_everywhere(wanted)?.into_iter().partition::<Vec<_>, _>(is_past);
        if args.cgroup.is_some() {
            dead.clear();
        }
        let rings = rings(args, wanted, living, &glances, each)?;
        thread::sleep(args.window);

        let recorded: HashSet<u32> = rings.iter().filter_map(Ring::process).collect();
        let items =
            glances.iter().map(|glance| (Arc::clone(glance), recorded.contains(&glance.pid))).collect();
        let own = wanted.clone();
        let second = move |(glance, is_recorded): &(Arc<Glance>, bool)| {
            (*is_recorded || glance.may_wait()).then(|| glance.second(*is_recorded, &own)).flatten()
        };
        let seen = each_process(items, |(glance, _)| glance.pid, second);
        let mut seen: Vec<Option<Standings>> = seen.into_iter().map(Option::flatten).collect();
        count(&glances, &mut self.looked);
        self.looked.rings += rings.len();
        for ring in rings {
            let at = ring.process().and_then(|pid| glances.iter().position(|glance| glance.pid == pid));
            let of_process = at.and_then(|at| seen[at].take());
            let (path, readings) = match ring {
                Ring { path, begun: Begun::Complete(readings) } => (path, Ok(*readings)),
                Ring { path, begun: Begun::First(first) } => (path, first.end(of_process, wanted)),
            };
            each(path, None, readings.map(|readings| readings.sharing(&self.opened)))?;
        }
        for seen in seen.into_iter().flatten().filter(|seen| !recorded.contains(&seen.target.pid)) {
            let path = path_of(seen.target.pid);
            let readings = Readings::one(Reading::of_process(&path, seen)).sharing(&self.opened);
            each(path, None, Ok(readings))?;
        }
        Ok(dead)
    }

    /// Reads a ring of a process that is dead, or a copy. Returns what an [`Each`] gets.
    pub(super) fn read_dead(&mut self, ring: Found) -> (PathBuf, Option<u32>, Result<Readings, AppError>) {
        self.looked.rings += 1;
        let readings = match Readings::begin(&ring.path, &Ends::default(), self.wanted) {
            Ok(Begun::Complete(readings)) => Ok(*readings),
            // By its header the process was dead when the ring was found. By what was read now, it may live.
            Ok(Begun::First(first)) => {
                thread::sleep(self.args.window);
                first.end(None, self.wanted)
            }
            Err(error) => Err(error),
        };
        let pid = readings.is_err().then_some(ring.header.pid);
        (ring.path, pid, readings.map(|readings| readings.sharing(&self.opened)))
    }
}

/// Reads all processes for the first time.
fn glance(args: &CheckArgs, looked: &mut Looked) -> Result<Vec<Arc<Glance>>, AppError> {
    let group = args.cgroup.clone();
    let first = move |&pid: &u32| {
        let live = match LiveTarget::open_here(pid) {
            Ok(live) => live,
            Err(error) => return Some(Err(error)),
        };
        if group.as_ref().is_some_and(|group| !live.is_in_group(group)) {
            return None;
        }
        Some(Glance::first(&live))
    };
    let pids = processes();
    let found = each_process(pids.clone(), |&pid| pid, first.clone());
    // A process that does not answer is read without its memory.
    let found = pids.iter().zip(found).filter_map(|(pid, found)| found.unwrap_or_else(|| first(pid)));
    let mut glances = Vec::new();
    for found in found {
        match found {
            Ok(glance) => glances.push(Arc::new(glance)),
            Err(Error::KernelThread { .. }) => looked.of_kernel += 1,
            Err(Error::Zombie { .. }) => looked.zombies += 1,
            Err(Error::Invisible { .. } | Error::System { .. }) => looked.hidden += 1,
            Err(Error::OtherArchitecture { .. }) => looked.unsupported += 1,
            // It has ended meanwhile.
            Err(Error::NoProcess { .. } | Error::Ended { .. } | Error::Ambiguous { .. }) => {}
        }
    }
    match &args.cgroup {
        Some(group) if glances.is_empty() => Err(AppError::NoProcessIn { group: group.clone() }),
        _ => Ok(glances),
    }
}

/// Counts the processes that were looked at. Whether one answers is known after the second reading.
fn count(glances: &[Arc<Glance>], looked: &mut Looked) {
    for glance in glances {
        match glance.hidden {
            _ if is_silent(glance.pid) => looked.silent += 1,
            Some(Hidden::OtherArchitecture(_)) => looked.unsupported += 1,
            Some(_) => looked.hidden += 1,
            None => {
                looked.processes += 1;
                looked.threads += glance.threads();
            }
        }
    }
}

/// A ring after its first reading.
struct Ring {
    path: PathBuf,
    begun: Begun,
}

impl Ring {
    /// The process that records in it, if it lives.
    fn process(&self) -> Option<u32> {
        match &self.begun {
            Begun::First(first) => First::process(first),
            Begun::Complete(_) => None,
        }
    }
}

/// Reads rings for the first time. If a control group is wanted: only the rings of its living processes.
fn rings(
    args: &CheckArgs,
    wanted: &Common,
    found: Vec<Found>,
    glances: &[Arc<Glance>],
    each: &mut Each<'_>,
) -> Result<Vec<Ring>, AppError> {
    let mut rings = Vec::new();
    for found in found {
        let begun = match Readings::begin(&found.path, &Ends::default(), wanted) {
            Ok(begun) => begun,
            Err(error) => {
                each(found.path, Some(found.header.pid), Err(error))?;
                continue;
            }
        };
        let ring = Ring { path: found.path, begun };
        let is_in_group = |pid| glances.iter().any(|glance| glance.pid == pid);
        if args.cgroup.is_none() || ring.process().is_some_and(is_in_group) {
            rings.push(ring);
        }
    }
    Ok(rings)
}

/// Adds what was read of a ring or a process. Returns it if there are findings.
fn add(
    collection: &mut Collection<'_>,
    path: PathBuf,
    pid: Option<u32>,
    readings: Result<Readings, AppError>,
) -> Result<Option<Stuck>, AppError> {
    let (args, rules, wanted) = (collection.args, collection.rules, collection.wanted);
    let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut case = Case { program, pid, findings: Vec::new(), error: None };
    let mut stuck = None;
    let checked = readings.and_then(|readings| {
        judge(readings, args, rules, wanted, Manner::Findings, &mut |found, checked, names, reading| {
            (case.program, case.pid) = (reading.program(), reading.pid());
            case.findings = found.iter().map(|finding| CaseFinding::of(finding, names)).collect();
            let Some(worst) = found.first() else { return Ok(()) };
            let mut text = Vec::new();
            match wanted.json {
                true => write_json(&mut text, found, checked, names, reading)?,
                false => {
                    let (process, name) = names_of(reading);
                    report::stuck(&mut text, found, names, &process, &name)?;
                }
            }
            stuck = Some(Stuck { rank: (worst.confidence, worst.threads_hurt), text });
            Ok(())
        })
    });
    collection.add(case, checked)?;
    Ok(stuck)
}

/// What a process or a ring is called, and what to type for it.
pub(super) fn names_of(reading: &Reading) -> (String, String) {
    let program = reading.program();
    let own_pid = reading.pid();
    let path = || reading.path.to_string_lossy().into_owned();
    match (&reading.seen, &reading.liveness) {
        (Some(seen), _) => {
            let target = &seen.target;
            (report::process_name(&program, target.pid, target.own_pid), target.pid.to_string())
        }
        (None, Some(Liveness::Alive { pid, .. })) if !reading.is_copy() => {
            let pid = u32::try_from(*pid).unwrap_or_default();
            (report::process_name(&program, pid, own_pid.unwrap_or(pid)), pid.to_string())
        }
        (None, liveness) => {
            let pid = own_pid.map_or_else(String::new, |pid| format!("[{pid}]"));
            let state = if liveness.as_ref().is_some_and(Liveness::is_final) { ", dead" } else { "" };
            (format!("{program}{pid}{state}"), path())
        }
    }
}
