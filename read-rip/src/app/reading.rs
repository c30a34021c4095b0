//! A ring that was read, with what the system knows of its process; and what is said about it besides the result.
//!
//! It decides nothing about the result itself: each command shows its own.

use std::collections::{BTreeSet, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use nix::time::{ClockId, clock_gettime};

use super::error::AppError;
use super::{ERROR, SOUND, output, remark};
use crate::cli::Common;
use crate::locations::{FileNames, Location, Locations};
use crate::locks::Input;
use crate::process::{self, Liveness, living_threads};
use crate::report::{self, Json, counted, printable};
use crate::ring::{self, Ending, Module, Snapshot};
use crate::symbols::{Options, Resolver};
use crate::threads::{self, Losses, Thread, ThreadState};

/// A C ancestor's program was not position-independent: any address may be in it.
const WHOLE_ADDRESS_SPACE: u64 = 1 << 48;

/// A ring that was read, and what the system knows of its process.
pub(super) struct Reading {
    pub(super) path: PathBuf,
    pub(super) snapshot: Snapshot,
    pub(super) liveness: Option<Liveness>,
    pub(super) losses: Losses,
    /// The threads that the process has; empty when it has ended.
    pub(super) living: HashSet<u32>,
    /// The processes that it forked and that have ended, while it or another one lives.
    pub(super) ended: HashSet<u32>,
    /// The moment of the reading, or of the process's end, ns since boot; `None`: not known.
    pub(super) now_ns: Option<u64>,
}

impl Reading {
    pub(super) fn of(path: &Path, wanted: &Common) -> Result<Reading, AppError> {
        // Asked before and behind the copy: a thread that ends or begins in between is not gone.
        let living_before = ring::read_header(path).map(|header| living_threads(header.pid as i32));
        let mut snapshot = ring::read(path)?;
        if snapshot.header.is_none()
            && let Some(exe) = wanted.exe.clone()
        {
            // The ancestor's rings name no program.
            snapshot.modules.push(Module {
                end: WHOLE_ADDRESS_SPACE,
                path: exe,
                is_executable: true,
                ..Module::default()
            });
        }
        let liveness =
            snapshot.header.as_ref().map(|header| process::liveness_of_ring(header, &snapshot.slots));
        let mut living = match (&liveness, &snapshot.header) {
            // Thread ids in the ring count in the process's own namespace, which must be ours to compare.
            (Some(Liveness::Alive { pid }), Some(header)) if header.pid as i32 == *pid => {
                living_threads(*pid)
            }
            _ => HashSet::new(),
        };
        if !living.is_empty() {
            living.extend(living_before.unwrap_or_default());
        }
        let ended = match (&liveness, &snapshot.header) {
            (Some(Liveness::Alive { .. } | Liveness::Forked { .. }), Some(header)) => {
                process::ended_children(header, &snapshot.slots)
            }
            _ => HashSet::new(),
        };
        let losses = threads::losses(&snapshot);
        let now_ns = moment(&liveness, &snapshot);
        Ok(Reading { path: path.to_owned(), snapshot, liveness, losses, living, ended, now_ns })
    }

    /// All threads of the ring.
    pub(super) fn threads(&self) -> Vec<Thread<'_>> {
        threads::threads(&self.snapshot, &self.living, &self.ended)
    }

    /// Whether nothing can change any more: the process is dead, and so are its children.
    pub(super) fn is_final(&self) -> bool {
        self.liveness == Some(Liveness::Dead)
    }

    /// What a model of its locks is built from. `earlier` is another reading of the same ring, and how long before it was,
    /// ns.
    pub(super) fn input<'a>(&'a self, earlier: Option<(&'a Reading, u64)>) -> Input<'a> {
        Input {
            snapshot: &self.snapshot,
            earlier: earlier.map(|(earlier, _)| &earlier.snapshot),
            window_ns: earlier.map(|(_, window_ns)| window_ns),
            is_final: self.is_final(),
            now_ns: self.now_ns,
            living: &self.living,
            ended: &self.ended,
        }
    }

    pub(super) fn resolver(&self, wanted: &Common) -> Resolver {
        let pid = match self.liveness {
            Some(Liveness::Alive { pid }) => Some(pid),
            _ => None,
        };
        let mut options = Options { executable: wanted.exe.clone(), ..Options::default() };
        options.debug_dirs.splice(0..0, wanted.debug_dir.iter().cloned());
        options.root = pid.map(|pid| PathBuf::from(format!("/proc/{pid}/root")));
        options.live_executable = pid.map(|pid| PathBuf::from(format!("/proc/{pid}/exe")));
        Resolver::new(&self.snapshot.modules, options)
    }

    /// Says on standard error what the result does not show; the exit status follows from it.
    pub(super) fn remarks(
        &self,
        wanted: &Common,
        locations: &Locations<'_>,
        remarks: &[String],
    ) -> Result<u8, AppError> {
        if wanted.json {
            let mut out = output(wanted);
            if let Some((what, hint)) = self.unnamed_program(wanted) {
                Json(&mut out).problem(&self.path.to_string_lossy(), what, Some(hint))?;
            }
            for problem in locations.resolver().problems() {
                let about = problem.path.to_string_lossy();
                Json(&mut out).problem(&about, &problem.to_string(), Some(problem.hint()))?;
            }
            if let Some((what, hint)) = ambiguous(locations) {
                Json(&mut out).problem(&self.path.to_string_lossy(), &what, Some(hint))?;
            }
            out.flush()?;
            return self.report_defects(wanted);
        }
        remarks.iter().for_each(remark);
        let Losses { words, overwritten, torn, unwritten, .. } = self.losses;
        let lost = [(torn, "torn"), (unwritten, "unwritten")]
            .iter()
            .filter(|&&(count, _)| count > 0)
            .map(|(count, what)| format!(", {count} {what}"))
            .collect::<String>();
        remark(format_args!(
            "{} known, {} overwritten{lost}.",
            agreeing(words, "mark", "is", "are"),
            agreeing(overwritten, "older one", "was", "were")
        ));
        if let Some((what, hint)) = self.unnamed_program(wanted) {
            remark(format_args!("Warning: {what}"));
            remark(format_args!("Hint: {hint}"));
        }
        if let Some(header) = &self.snapshot.header {
            let refused = header.threads_refused_full.saturating_add(header.threads_refused_memory);
            if refused > 0 {
                remark(format_args!(
                    "{} recorded nowhere: {} found no slot (RIP_SLOTS), {} no memory.",
                    counted(refused, "thread"),
                    header.threads_refused_full,
                    header.threads_refused_memory
                ));
            }
        }
        for problem in locations.resolver().problems() {
            remark(format_args!("Warning: {}", printable(&problem.to_string())));
            remark(format_args!("Hint: {}", problem.hint()));
        }
        if let Some((what, hint)) = ambiguous(locations) {
            remark(format_args!("Warning: {what}"));
            remark(format_args!("Hint: {hint}"));
        }
        self.report_defects(wanted)
    }

    pub(super) fn report_defects(&self, wanted: &Common) -> Result<u8, AppError> {
        let about = self.path.to_string_lossy();
        let mut hints = Vec::new();
        for defect in &self.snapshot.defects {
            if wanted.json {
                let mut out = output(wanted);
                Json(&mut out).problem(&about, &defect.to_string(), Some(defect.hint()))?;
                out.flush()?;
            } else {
                remark(format_args!("Damaged: {}", printable(&defect.to_string())));
                if !hints.contains(&defect.hint()) {
                    hints.push(defect.hint());
                }
            }
        }
        hints.iter().for_each(|hint| remark(format_args!("Hint: {hint}")));
        Ok(if self.snapshot.defects.is_empty() { SOUND } else { ERROR })
    }

    /// What to say where the ring does not name its program, and nobody else does.
    fn unnamed_program(&self, wanted: &Common) -> Option<(&'static str, &'static str)> {
        (self.snapshot.header.is_none() && wanted.exe.is_none()).then_some((
            "a ring of the C ancestor does not say which program it is of, so there are only addresses",
            "give the program with -e",
        ))
    }

    /// One sentence on the process.
    pub(super) fn heading(&self, threads: &[Thread<'_>]) -> String {
        self.heading_with(threads, "")
    }

    /// The same, and what to do about threads that have exited.
    pub(super) fn heading_with(&self, threads: &[Thread<'_>], of_exited: &str) -> String {
        let count = |state| threads.iter().filter(|thread| thread.state == state).count();
        let (exited, abandoned) = (count(ThreadState::Exited), count(ThreadState::Abandoned));
        let mut heading = match (&self.snapshot.header, &self.liveness) {
            (Some(header), Some(liveness)) => {
                let program = self.snapshot.program();
                let program = program.and_then(|module| module.path.file_name()).unwrap_or_default();
                let state = report::ended(header, liveness);
                format!("{}[{}], {state}: ", printable(&program.to_string_lossy()), header.pid)
            }
            _ => String::new(),
        };
        heading += &counted(threads.len() as u64, "thread");
        if exited > 0 {
            heading += &format!(", {exited} of them exited{of_exited}");
        }
        if abandoned > 0 {
            heading += &format!(", {abandoned} gone without saying so");
        }
        heading
    }
}

/// What to say of marks that were met and whose meaning is not known.
fn ambiguous(locations: &Locations<'_>) -> Option<(String, &'static str)> {
    let met: Vec<&Location> = locations.iter().filter(|location| location.is_ambiguous).collect();
    let names = FileNames::choose(met.iter().copied());
    let texts = report::location_texts(locations, &names, false);
    let lines: BTreeSet<String> = met.iter().map(|location| texts.line_of(location)).collect();
    let first = lines.first()?;
    let others = match lines.len() - 1 {
        0 => String::new(),
        others => format!(", and so it is at {}", counted(others as u64, "other location")),
    };
    let what = format!(
        "{first}: the linker has made these marks one, and they say different things: what an event there means is \
         not known{others}"
    );
    Some((what, "link without --icf, or keep these functions apart with the linker's --keep-unique=FUNCTION"))
}

/// When what a ring says was so, ns since boot.
fn moment(liveness: &Option<Liveness>, snapshot: &Snapshot) -> Option<u64> {
    match (liveness.as_ref()?, snapshot.header.as_ref()?.ending) {
        (Liveness::Alive { .. } | Liveness::Forked { .. }, _) => {
            let now = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
            u64::try_from(std::time::Duration::from(now).as_nanos()).ok()
        }
        (_, Ending::Exit { boottime_ns, .. }) if boottime_ns > 0 => Some(boottime_ns),
        _ => None,
    }
}

/// A number of things and what they do.
pub(super) fn agreeing(count: u64, thing: &str, one: &str, several: &str) -> String {
    format!("{} {}", counted(count, thing), if count == 1 { one } else { several })
}
