//! `check --all`: which processes of this machine are stuck, in one line each.
//!
//! All processes have one window. First each process, and each ring whose process may live, is read once; after the
//! window only what may be stuck is read again: see [`Triage`]. Processes that may be stuck together are inspected
//! together, in a window of their own. So a machine with hundreds of healthy processes takes
//! little more than the window. The rings of dead processes are read afterwards, one after another. There may be
//! thousands, and anybody may have put them there: what was found before them is shown first.
//!
//! It analyses nothing itself.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use read_rip_case::{
    Begun, Case, First, GROUPS_MAX, Options, Reading, Readings, Second, Subject, Triage, groups_among,
    groups_of, stuck_groups,
};
use read_rip_evidence::patience::{each as each_process, is_silent};
use read_rip_evidence::process::live::{Error, LiveTarget, processes};
use read_rip_evidence::process::{Ends, Found, Liveness, MappedFiles};
use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::Hidden;
use read_rip_model::findings::Confidence;
use read_rip_report::ci::TestCase;
use read_rip_report::{self as report, Examined, Json, Unjudged};

use super::check::judge;
use super::collect::{Collection, filter};
use super::error::AppError;
use super::output::{UNJUDGED, prose, remark};
use super::progress::Progress;
use super::remarks;
use super::rings::search_everywhere;
use crate::cli::{CheckArgs, Common};

/// A process or a ring with findings.
struct Stuck {
    /// What sorts it: the confidence and the number of threads.
    rank: (Confidence, usize),
    /// What to type for it.
    name: String,
    text: Vec<u8>,
}

/// `read-rip check --all`: first the living, the worst on top, and then the rings of the dead, one after another.
pub(super) fn check(args: &CheckArgs, common: &Common) -> Result<u8, AppError> {
    let options = args.options(common);
    let mut collection = Collection::new(filter(args)?, &args.source, &options, common);
    let group = args.cgroup.as_deref();
    let mut machine = Scan::new(group, &options, common);
    let (mut stuck, mut unjudged) = (Vec::new(), Vec::new());
    let dead = machine.read_living(&mut |path, pid, readings| {
        match add(&mut collection, path, pid, readings)? {
            Added::Stuck(found) => stuck.push(found),
            Added::Unjudged(of) => unjudged.push(of),
            Added::Sound => {}
        }
        Ok(())
    })?;
    unjudged.append(&mut machine.unseen);
    // The ring of a process may say what its memory and the kernel do not.
    unjudged.retain(|of| stuck.iter().all(|found| found.name != of.name));
    stuck.sort_by_key(|found| std::cmp::Reverse(found.rank));
    let mut out = prose(common);
    for found in &stuck {
        out.write_all(&found.text)?;
    }
    out.flush()?;
    let mut stuck = stuck.len();
    let progress = Progress::of_rings(dead.len());
    for ring in dead {
        let (path, pid, readings) = machine.read_dead(ring);
        match add(&mut collection, path, pid, readings)? {
            Added::Stuck(found) => {
                stuck += 1;
                progress.hidden(|| out.write_all(&found.text).and_then(|()| out.flush()))?;
            }
            Added::Unjudged(of) => unjudged.push(of),
            Added::Sound => {}
        }
        progress.next();
    }
    drop(progress);
    let examined = Examined { stuck, unjudged: unjudged.len(), ..machine.examined };
    match common.json {
        true => {
            unjudged.iter().try_for_each(|of| Json(&mut out).unjudged(of))?;
            Json(&mut out).examined(&examined)?;
        }
        false => {
            report::unjudged(&mut out, &unjudged)?;
            report::examined(&mut out, &examined)?;
        }
    }
    out.flush()?;
    if let Some(hint) = examined.hint().filter(|_| !common.json) {
        remark(format_args!("Hint: {hint}"));
    }
    collection.write(&args.ci)?;
    // If nothing could be looked into, nothing was judged.
    Ok(if examined.processes + examined.rings == 0 { UNJUDGED } else { collection.status() })
}

/// What is done with each ring, and with each process without a ring that may be stuck. If a ring cannot be read, the
/// process comes with it that made it.
pub(super) type Each<'a> =
    dyn FnMut(PathBuf, Option<u32>, Result<Readings, AppError>) -> Result<(), AppError> + 'a;

/// The processes and rings of this machine, while they are read.
pub(super) struct Scan<'a> {
    /// The control group whose processes are read; `None`: all.
    pub(super) group: Option<&'a str>,
    pub(super) options: &'a Options,
    pub(super) common: &'a Common,
    /// Counts what was read, but for what is stuck or not judged.
    pub(super) examined: Examined,
    /// The processes in which nothing looks wrong, and not all is seen.
    pub(super) unseen: Vec<Unjudged>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(group: Option<&'a str>, options: &'a Options, common: &'a Common) -> Scan<'a> {
        Scan { group, options, common, examined: Examined::default(), unseen: Vec::new() }
    }

    /// Reads all processes, and the rings of those that may live. Returns the other rings and the copies, the newest
    /// first.
    pub(super) fn read_living(&mut self, each: &mut Each<'_>) -> Result<Vec<Found>, AppError> {
        let Scan { group, options, common, .. } = *self;
        let triages = triage(group, &mut self.examined)?;
        let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
        // A copy says nothing that its original does not say.
        let is_past =
            |ring: &Found| ring.header.is_copy() || ring.liveness.is_final() && !ring.may_have_child(&mapped);
        let (mut dead, living) = search_everywhere(common)?.into_iter().partition::<Vec<_>, _>(is_past);
        if group.is_some() {
            dead.clear();
        }
        let rings = rings(group, options, living, &triages, each)?;
        thread::sleep(options.window);

        let found = groups_among(triages.iter().map(Arc::as_ref));
        let (first, rest) = found.split_at(found.len().min(GROUPS_MAX));
        let mut groups = stuck_groups(first, options);
        self.unseen.extend(rest.iter().flatten().map(|pid| Unjudged {
            process: format!("process {pid}"),
            name: pid.to_string(),
            why: report::MANY_GROUPS.to_owned(),
        }));
        let recorded: HashSet<u32> = rings.iter().flat_map(Ring::processes).copied().collect();
        let items =
            triages.iter().map(|triage| (Arc::clone(triage), recorded.contains(&triage.pid))).collect();
        let second = Triage::second_readings(options);
        let seen = each_process(
            items,
            |(triage, _)| triage.pid,
            move |(triage, is_recorded): &(Arc<Triage>, bool)| second(triage, *is_recorded),
        );
        let mut seen: Vec<Option<Standings>> = seen
            .into_iter()
            .map(|second| match second.flatten()? {
                Second::Seen(seen) => Some(*seen),
                // A group tells of its processes.
                Second::Unseen(_, pid, ..) if groups.iter().any(|(pids, _)| pids.contains(&pid)) => None,
                Second::Unseen(name, pid, own_pid, what) => {
                    self.unseen.push(Unjudged {
                        process: report::process_name(&name, pid, own_pid),
                        name: pid.to_string(),
                        why: report::unseen(what),
                    });
                    None
                }
            })
            .collect();
        count(&triages, &mut self.examined);
        let shares = seen
            .iter()
            .flatten()
            .filter(|seen| !groups.iter().any(|(pids, _)| pids.contains(&seen.target.pid)));
        groups.extend(stuck_groups(&groups_of(shares), options));
        let grouped: HashSet<u32> = groups.iter().flat_map(|(pids, _)| pids).copied().collect();
        self.examined.rings += rings.len();
        for ring in rings {
            let at = |pid: &u32| triages.iter().position(|triage| triage.pid == *pid);
            let of_processes: Vec<Standings> =
                ring.processes().iter().filter_map(at).filter_map(|at| seen[at].take()).collect();
            let (path, readings) = match ring {
                Ring { path, begun: Begun::Complete(readings) } => (path, Ok(*readings)),
                Ring { path, begun: Begun::First(first) } => {
                    // What its tasks are, the record alone says.
                    let is_left = matches!(*first.processes(), [pid] if found.iter().any(|of| *of == [pid]));
                    let readings = first.end(of_processes, options);
                    (path, if is_left { readings.map(|of| of.with_partners(options)) } else { readings })
                }
            };
            each(path, None, readings.map_err(AppError::from))?;
        }
        for (_, readings) in groups {
            each(readings.reading.path.clone(), None, Ok(readings))?;
        }
        let is_told = |pid: u32| recorded.contains(&pid) || grouped.contains(&pid);
        for seen in seen.into_iter().flatten().filter(|seen| !is_told(seen.target.pid)) {
            let reading = Reading::of_process(seen);
            each(reading.path.clone(), None, Ok(reading.into()))?;
        }
        Ok(dead)
    }

    /// Reads a ring of a process that is dead, or a copy. Returns what an [`Each`] gets.
    pub(super) fn read_dead(&mut self, ring: Found) -> (PathBuf, Option<u32>, Result<Readings, AppError>) {
        let readings = match begin(&ring.path, self.options) {
            Ok(Begun::Complete(readings)) => Ok(*readings),
            // By its header the process was dead when the ring was found. By what was read now, it may live.
            Ok(Begun::First(first)) => {
                thread::sleep(self.options.window);
                first.end(Vec::new(), self.options).map_err(AppError::from)
            }
            Err(error) => Err(error),
        };
        self.examined.rings += usize::from(!has_vanished(&ring.path, &readings));
        let pid = readings.is_err().then_some(ring.header.pid);
        (ring.path, pid, readings)
    }
}

/// Whether a ring could not be read because somebody removed it after it was found: a program that ends well does.
pub(super) fn has_vanished<T>(path: &Path, readings: &Result<T, AppError>) -> bool {
    readings.is_err() && !path.exists()
}

/// Reads a ring for the first time.
fn begin(path: &Path, options: &Options) -> Result<Begun, AppError> {
    let subject = Subject::of_file(path, options)?;
    Ok(Readings::begin(&subject, &Ends::default(), options)?)
}

/// Reads all processes for the first time.
fn triage(group: Option<&str>, examined: &mut Examined) -> Result<Vec<Arc<Triage>>, AppError> {
    let wanted = group.map(str::to_owned);
    let first = move |&pid: &u32| {
        let live = match LiveTarget::open_here(pid) {
            Ok(live) => live,
            Err(error) => return Some(Err(error)),
        };
        if wanted.as_ref().is_some_and(|group| !live.is_in_group(group)) {
            return None;
        }
        Some(Triage::first(&live))
    };
    let pids = processes();
    let found = each_process(pids.clone(), |&pid| pid, first.clone());
    // A process that does not answer is read without its memory.
    let found = pids.iter().zip(found).filter_map(|(pid, found)| found.unwrap_or_else(|| first(pid)));
    let mut triages = Vec::new();
    for found in found {
        match found {
            Ok(triage) => triages.push(Arc::new(triage)),
            Err(Error::KernelThread { .. }) => examined.of_kernel += 1,
            Err(Error::Zombie { .. }) => examined.zombies += 1,
            Err(Error::Invisible { .. } | Error::System { .. }) => examined.hidden += 1,
            Err(Error::OtherArchitecture { .. }) => examined.unsupported += 1,
            // It has ended meanwhile.
            Err(Error::NoProcess { .. } | Error::Ended { .. } | Error::Ambiguous { .. }) => {}
        }
    }
    match group {
        Some(group) if triages.is_empty() => Err(AppError::NoProcessIn { group: group.to_owned() }),
        _ => Ok(triages),
    }
}

/// Counts the processes that were looked at. Whether one answers is known after the second reading.
fn count(triages: &[Arc<Triage>], examined: &mut Examined) {
    for triage in triages {
        match triage.hidden {
            _ if is_silent(triage.pid) => examined.silent += 1,
            Some(Hidden::OtherArchitecture(_)) => examined.unsupported += 1,
            Some(_) => examined.hidden += 1,
            None => {
                examined.processes += 1;
                examined.threads += triage.threads();
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
    /// The processes that record in it and live.
    fn processes(&self) -> &[u32] {
        match &self.begun {
            Begun::First(first) => First::processes(first),
            Begun::Complete(_) => &[],
        }
    }
}

/// Reads rings for the first time. If a control group is wanted: only the rings of its living processes.
fn rings(
    group: Option<&str>,
    options: &Options,
    found: Vec<Found>,
    triages: &[Arc<Triage>],
    each: &mut Each<'_>,
) -> Result<Vec<Ring>, AppError> {
    let mut rings = Vec::new();
    for found in found {
        let begun = match begin(&found.path, options) {
            Ok(begun) => begun,
            Err(error) => {
                each(found.path, Some(found.header.pid), Err(error))?;
                continue;
            }
        };
        let ring = Ring { path: found.path, begun };
        let is_in_group = |pid| triages.iter().any(|triage| triage.pid == pid);
        if group.is_none() || ring.processes().iter().any(|&pid| is_in_group(pid)) {
            rings.push(ring);
        }
    }
    Ok(rings)
}

/// What came of a ring or a process.
enum Added {
    Stuck(Stuck),
    Unjudged(Unjudged),
    Sound,
}

/// Adds what was read of a ring or a process.
fn add(
    collection: &mut Collection<'_>,
    path: PathBuf,
    pid: Option<u32>,
    readings: Result<Readings, AppError>,
) -> Result<Added, AppError> {
    if has_vanished(&path, &readings) {
        return Ok(Added::Sound);
    }
    let program = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut test = TestCase { program, pid, findings: Vec::new(), error: None };
    let mut added = Added::Sound;
    let checked = readings.and_then(|mut readings| {
        let mut case = Case::of(&mut readings, collection.options);
        let verdict = judge(&mut case, &collection.filter);
        if let Some(worst) = verdict.found.first() {
            let texts = case.texts(false);
            let (names, reading) = (case.names(&texts), case.reading);
            verdict.note(&mut test, &names, reading);
            let (process, name) = names_of(reading);
            let mut text = Vec::new();
            match collection.common.json {
                true => verdict.write_json(&mut text, &names, reading)?,
                false => report::stuck(&mut text, &verdict.found, &names, &process, &name)?,
            }
            added = Added::Stuck(Stuck { rank: (worst.confidence, worst.threads_hurt), name, text });
        } else {
            let texts = case.texts(false);
            let why = report::not_judged(&verdict.checked.balance, &case.names(&texts));
            let (process, name) = names_of(case.reading);
            added = why.map_or(Added::Sound, |why| Added::Unjudged(Unjudged { process, name, why }));
        }
        Ok(verdict.status(remarks::report_defects(case.reading, collection.common)?))
    });
    collection.add(test, checked)?;
    Ok(added)
}

/// What a process or a ring is called, and what to type for it.
pub(super) fn names_of(reading: &Reading) -> (String, String) {
    let program = reading.program();
    let own_pid = reading.pid();
    let path = || reading.path.to_string_lossy().into_owned();
    match (&reading.liveness, &reading.seen) {
        // A forked child may have been looked at, and not the process that made the ring.
        (Some(Liveness::Alive { pid, .. }), _) if !reading.is_copy() => {
            let pid = u32::try_from(*pid).unwrap_or_default();
            (report::process_name(&program, pid, own_pid.unwrap_or(pid)), pid.to_string())
        }
        (_, Some(seen)) => {
            let target = &seen.target;
            (report::process_name(&program, target.pid, target.own_pid), target.pid.to_string())
        }
        (liveness, None) => {
            let pid = own_pid.map_or_else(String::new, |pid| format!("[{pid}]"));
            let state = if liveness.as_ref().is_some_and(Liveness::is_final) { ", dead" } else { "" };
            (format!("{program}{pid}{state}"), path())
        }
    }
}
