//! A ring that was read, with what the system knows of its process.
//!
//! It does not show the result: each command does. `remarks` says what every result leaves out.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use read_rip_evidence::core::{Death, Gap};
use read_rip_evidence::process::{self, Ends, Liveness, MappedFiles, is_of_another_boot, living_threads};
use read_rip_evidence::standing::Standings;
use read_rip_files::Module;
use read_rip_model::findings::{self, Finding};
use read_rip_model::locations::{Horizon, Limits};
use read_rip_model::locks::Input;
use read_rip_model::threads::{self, Losses, Thread};
use read_rip_report::{self as report, Json};
use read_rip_ring::{self as ring, Ending, Saved, Snapshot, Source};
use read_rip_symbols::Resolver;

use crate::saved::Context;
use crate::{Error, Options, Subject, now_ns};

/// Programs with legacy rings are not position-independent: their code may be at any address.
const WHOLE_ADDRESS_SPACE: u64 = 1 << 48;

/// How long to wait for a process that was killed. The threads of a large process take a while to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A ring that was read, and what the system knows about its process.
pub struct Reading {
    /// The file; for a process without a ring, its directory in `/proc`.
    pub path: PathBuf,
    /// What is in the ring; without one, the modules alone.
    pub snapshot: Snapshot,
    /// What became of the process; `None` for a ring in the legacy format.
    pub liveness: Option<Liveness>,
    /// What was not recorded.
    pub losses: Losses,
    /// The threads of the living process; empty when it has ended.
    pub living: HashSet<u32>,
    /// Its forked children that have ended, while it or another child lives.
    pub ended: HashSet<u32>,
    /// The moment of the reading, or of the process's end, ns since boot; `None`: not known.
    pub now_ns: Option<u64>,
    /// If `now_ns` is not known: when the ring was read, ns since boot. The process was dead by then. `None` if it ran
    /// on another machine, or before a restart.
    pub latest_end_ns: Option<u64>,
    /// If `now_ns` is not known: when somebody last saw the process alive, ns since boot.
    pub alive_ns: Option<u64>,
    /// Whether the kernel can be asked about the process: the reading is of a ring, and not of a saved one.
    pub asks_kernel: bool,
    /// What the kernel and the memory say of the living process, if they were asked. If it is dead, those of a child.
    pub seen: Option<Standings>,
    /// What they say of other living processes that record in the ring: forked children.
    pub children: Vec<Standings>,
    /// What a core file has besides.
    pub core: Option<CoreRest>,
    /// What a saved ring has besides.
    pub(crate) saved: Option<SavedRest>,
}

/// What a core file says besides its threads and its memory.
pub struct CoreRest {
    /// Why the process died.
    pub death: Death,
    /// What the file does not have.
    pub gaps: Vec<Gap>,
    /// The command line, as far as the kernel keeps it.
    pub command_line: String,
}

/// What a saved ring has besides its later image.
pub(crate) struct SavedRest {
    context: Rc<Context>,
    earlier: Option<Source>,
}

impl Reading {
    /// Reads a subject. A process without a ring is inspected twice, one time after the other; with
    /// [`Readings::of`](crate::Readings::of), there is a pause in between.
    ///
    /// # Errors
    ///
    /// If nothing of it can be read.
    pub fn of(subject: &Subject, options: &Options) -> Result<Reading, Error> {
        match subject {
            Subject::Ring { path, process } => {
                Reading::of_ring(&Source::open_within(path, options.unpack_limit)?, *process, options)
            }
            Subject::Copy(source) => Reading::of_ring(source, None, options),
            Subject::Recording(source) => match Saved::of(source) {
                Some(saved) => Reading::of_saved(&saved, options),
                // Its recorder was killed before the end.
                None => Reading::of_ring(source, None, options),
            },
            Subject::Saved(saved) => Reading::of_saved(saved, options),
            Subject::Core(path) => Reading::of_core(path, options),
            Subject::Process(pid) => Reading::of_living(*pid, Duration::ZERO, options),
        }
    }

    fn of_saved(saved: &Saved, options: &Options) -> Result<Reading, Error> {
        let Saved { later, earlier, context } = saved;
        let mut context = Context::parse(context)
            .map_err(|source| Error::SavedContext { path: later.path().to_owned(), source })?;
        let mut reading = Reading::of_image(later, &context, options)?;
        context.take_seen().for_each(|seen| reading.add_seen(seen));
        let saved = SavedRest { context: Rc::new(context), earlier: earlier.clone() };
        Ok(Reading { saved: Some(saved), ..reading })
    }

    /// A reading of an image, with what was known when it was saved.
    pub fn of_image(image: &Source, context: &Context, options: &Options) -> Result<Reading, Error> {
        let mut snapshot = ring::read_source(image)?;
        match &mut snapshot.header {
            Some(header) if !context.is_copy => {
                header.treat_as_original(context.owner.unwrap_or(header.uid));
            }
            Some(_) => {}
            None => name_program(&mut snapshot, options),
        }
        let mut reading = Reading {
            liveness: context.state.clone().map(Liveness::from),
            living: context.living.clone(),
            ended: context.ended.clone(),
            now_ns: context.now_ns,
            latest_end_ns: context.latest_end_ns,
            alive_ns: context.alive_ns,
            ..Reading::dead(image.path(), snapshot)
        };
        reading.apply_names(&context.names);
        Ok(reading)
    }

    /// If the ring was saved with an earlier image: a reading of it, and the time between the two, ns. Once.
    pub(crate) fn take_earlier(&mut self, options: &Options) -> Result<Option<(Reading, u64)>, Error> {
        let Some(saved) = &mut self.saved else { return Ok(None) };
        let (Some(image), Some(window_ns)) = (saved.earlier.take(), saved.context.window_ns) else {
            return Ok(None);
        };
        Ok(Some((Reading::of_image(&image, &saved.context, options)?, window_ns)))
    }

    /// Whoever observed the processes knows when they ended, or still lived, if the ring does not say it.
    pub fn ended(&mut self, ends: &Ends) {
        let Some(header) = self.snapshot.header.as_ref().filter(|_| self.now_ns.is_none()) else { return };
        if !self.is_final() {
            return;
        }
        let in_ring = |at: Instant| {
            let ago_ns = u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX);
            present_ns(header)?.checked_sub(ago_ns)
        };
        let others = self.snapshot.slots.iter().map(|slot| slot.pid);
        self.now_ns = ends.last_of(header.pid, others).and_then(in_ring);
        self.alive_ns = ends.alive_at(header.pid).and_then(in_ring).or(self.alive_ns);
    }

    /// The process was seen alive at the moment of another reading of the same ring.
    pub fn lived_at(&mut self, now_ns: Option<u64>) {
        if self.now_ns.is_none() {
            self.alive_ns = now_ns;
        }
    }

    /// When the ring was saved, ns since 1970; `None` if it was not.
    pub(crate) fn saved_realtime_ns(&self) -> Option<u64> {
        self.saved.as_ref().map(|saved| saved.context.saved_realtime_ns)
    }

    /// Reads an opened ring, or of several processes that share it, `process` alone.
    ///
    /// # Errors
    ///
    /// If nothing of it can be read.
    pub fn of_ring(source: &Source, process: Option<u32>, options: &Options) -> Result<Reading, Error> {
        let path = source.path();
        // Queried before and after the copy, so that a thread that starts or ends in between counts as existing.
        let living_before =
            ring::read_header(path).map(|header| living_threads(process.unwrap_or(header.pid) as i32));
        let (mut snapshot, liveness) = match process {
            Some(pid) => read_process(source, pid)?,
            None => read(source)?,
        };
        if snapshot.header.is_none() {
            name_program(&mut snapshot, options);
        }
        let mut living = match (&liveness, &snapshot.header) {
            // The ring has thread ids of the process's PID namespace. They can be compared only if it is this one
            // too.
            (Some(Liveness::Alive { pid, .. }), Some(header))
                if header.pid as i32 == *pid && !header.is_copy() =>
            {
                living_threads(*pid)
            }
            _ => HashSet::new(),
        };
        if !living.is_empty() {
            living.extend(living_before.unwrap_or_default());
        }
        let ended = match (&liveness, &snapshot.header) {
            (
                Some(Liveness::Alive { .. } | Liveness::Dying { .. } | Liveness::Forked { .. }),
                Some(header),
            ) => read_rip_evidence::process::ended_children(header, &snapshot.slots),
            _ => HashSet::new(),
        };
        let now_ns = moment(&liveness, &snapshot);
        let of_this_boot = snapshot
            .header
            .as_ref()
            .filter(|header| header.boot_id != [0; 16] && !is_of_another_boot(header));
        let latest_end_ns = of_this_boot.filter(|_| now_ns.is_none()).and_then(present_ns);
        let asks_kernel = true;
        Ok(Reading {
            liveness,
            living,
            ended,
            now_ns,
            latest_end_ns,
            asks_kernel,
            ..Reading::dead(path, snapshot)
        })
    }

    /// All threads of the ring.
    pub fn threads(&self) -> Vec<Thread<'_>> {
        threads::threads(&self.snapshot, &self.living, &self.ended)
    }

    /// Whether nothing can change any more: the process is dead, and so are its children, or this is a copy.
    pub fn is_final(&self) -> bool {
        self.is_copy() || self.liveness.as_ref().is_some_and(Liveness::is_final)
    }

    /// Whether the file is a copy of a ring. When it was made is not known.
    pub fn is_copy(&self) -> bool {
        self.snapshot.header.as_ref().is_some_and(ring::Header::is_copy)
    }

    /// Where its times end.
    pub fn horizon(&self) -> Horizon {
        Horizon { now_ns: self.now_ns, end_ns: self.now_ns.or(self.latest_end_ns) }
    }

    /// What a model of its locks is built from. `earlier` is an earlier reading of the same ring, and the time between
    /// the two, ns.
    pub fn input<'a>(&'a self, earlier: Option<(&'a Reading, u64)>) -> Input<'a> {
        Input {
            snapshot: &self.snapshot,
            earlier: earlier.map(|(earlier, _)| &earlier.snapshot),
            window_ns: earlier.map(|(_, window_ns)| window_ns),
            is_final: self.is_final(),
            now_ns: self.now_ns,
            latest_end_ns: self.latest_end_ns,
            alive_ns: self.alive_ns,
            living: &self.living,
            ended: &self.ended,
            wants_steps: true,
            limits: Limits::default(),
        }
    }

    /// What finds the functions and lines of its addresses.
    pub fn resolver(&self, options: &Options) -> Resolver {
        let pid = match self.liveness {
            // The process of a saved ring was on another machine, or in another time.
            Some(Liveness::Alive { pid, .. }) if self.saved.is_none() => Some(pid),
            _ => None,
        };
        let of_files = match pid {
            Some(pid) => options.of_files_of(pid as u32),
            None => options.of_files(),
        };
        let resolver = Resolver::new(&self.snapshot.modules, of_files).sharing(&options.opened);
        match &self.saved {
            Some(saved) => resolver.with_answers(saved.context.answers.clone()),
            None => resolver,
        }
    }

    /// The name of the program; empty if it is not known.
    pub fn program(&self) -> String {
        if let Some(saved) = &self.saved {
            return saved.context.program.clone();
        }
        if let Some(seen) = self.unrecorded() {
            return seen.target.name.clone();
        }
        let executable = self.snapshot.program().map(|module| module.path.clone()).unwrap_or_default();
        ring::program_name(&self.path, self.pid().unwrap_or_default(), &executable)
    }

    /// The id of the process in its own PID namespace; `None` if the ring has none.
    pub fn pid(&self) -> Option<u32> {
        let recorded = self.snapshot.header.as_ref().map(|header| header.pid);
        recorded.or_else(|| self.unrecorded().map(|seen| seen.target.own_pid))
    }

    /// The first line of JSON output.
    pub fn write_ring<W: Write>(&self, json: &mut Json<W>) -> std::io::Result<()> {
        json.ring(&self.path, &self.program(), &self.snapshot, self.liveness.as_ref(), &self.losses)
    }

    /// The line of JSON about a core file.
    pub fn write_core<W: Write>(&self, json: &mut Json<W>) -> std::io::Result<()> {
        match self.core.as_ref().zip(self.seen.as_ref()) {
            Some((core, seen)) => {
                json.core(&self.path, &core.death, seen, &core.command_line, self.snapshot.header.is_some())
            }
            None => Ok(()),
        }
    }

    /// What was seen of a process that has no ring.
    pub fn unrecorded(&self) -> Option<&Standings> {
        self.seen.as_ref().filter(|_| self.snapshot.header.is_none())
    }

    /// One line about the process and its threads.
    pub fn heading(&self, threads: &[Thread<'_>]) -> String {
        self.heading_with(threads, "")
    }

    /// Like `heading`, with an addition to the number of exited threads.
    pub(crate) fn heading_with(&self, threads: &[Thread<'_>], of_exited: &str) -> String {
        let (program, liveness) = (self.program(), self.liveness.as_ref());
        let of_core = self.seen.as_ref().filter(|_| self.core.is_some());
        if let Some(seen) = of_core.or(self.unrecorded()) {
            let of_tasks = report::remarks::of_tasks(threads);
            return report::standing_heading(seen, self.snapshot.header.is_some()) + &of_tasks;
        }
        report::remarks::heading(&self.snapshot, &program, liveness, threads, of_exited) + &self.saved_when()
    }

    /// Takes back what this reading cannot prove.
    pub fn doubt(&self, found: &mut [Finding]) {
        if self.is_copy() {
            findings::doubt_copy(found);
        }
        if self.liveness.as_ref().is_some_and(Liveness::is_foreign) {
            findings::doubt_foreign(found);
        }
    }

    /// What a heading says of a saved ring besides.
    pub(crate) fn saved_when(&self) -> String {
        self.saved_realtime_ns()
            .map_or_else(String::new, |saved_ns| report::remarks::of_saved(now_ns().saturating_sub(saved_ns)))
    }
}

/// Rings in the legacy format name no program.
fn name_program(snapshot: &mut Snapshot, options: &Options) {
    if let Some(exe) = options.executable.clone() {
        snapshot.modules.push(Module {
            end: WHOLE_ADDRESS_SPACE,
            path: exe,
            is_executable: true,
            ..Module::default()
        });
    }
}

/// Reads a ring, and says whether anything may still be recorded in it.
///
/// If nothing may, the ring was read after that was known: it is in its last state.
fn read(source: &Source) -> Result<(Snapshot, Option<Liveness>), Error> {
    let was_final = ring::read_header(source.path()).is_ok_and(|header| {
        let is_alone = header.forks == 0;
        is_alone && process::settled_liveness(&header, PATIENCE).is_final()
    });
    let snapshot = match was_final {
        true => ring::read_source(&source.settled())?,
        false => ring::read_source(source)?,
    };
    let Some(header) = &snapshot.header else { return Ok((snapshot, None)) };
    let liveness = liveness(header, &snapshot.slots);
    let has_others = snapshot.slots.iter().any(|slot| slot.pid != header.pid);
    if liveness.is_final() && (!was_final || has_others) {
        drop(snapshot);
        return Ok((ring::read_source(source)?, Some(liveness)));
    }
    Ok((snapshot, Some(liveness)))
}

/// Reads one process of those that share a ring. A process of a PID namespace of its own has another id in the ring,
/// and is not told from the others.
fn read_process(source: &Source, pid: u32) -> Result<(Snapshot, Option<Liveness>), Error> {
    let (mut snapshot, liveness) = read(source)?;
    let Some(header) = &snapshot.header else { return Ok((snapshot, liveness)) };
    if header.pid == pid {
        snapshot.slots.retain(|slot| slot.pid == pid);
        let own = header.forks > 0 && matches!(liveness, Some(Liveness::Forked { .. }));
        return Ok((snapshot, if own { Some(Liveness::Dead) } else { liveness }));
    }
    if snapshot.slots.iter().all(|slot| slot.pid != pid) {
        return Ok((snapshot, liveness));
    }
    let child = process::liveness_of_child(header, &snapshot.slots, pid);
    if child.is_final() {
        // It may have gone on during the first reading.
        drop(snapshot);
        snapshot = ring::read_source(source)?;
    }
    snapshot.slots.retain(|slot| slot.pid == pid);
    if let Some(header) = &mut snapshot.header {
        header.treat_as_child(pid);
    }
    Ok((snapshot, Some(child)))
}

/// Whether the process of a ring, or a process that it forked, may still record. Waits for a process that is dying.
fn liveness(header: &ring::Header, slots: &[ring::Slot]) -> Liveness {
    let own = process::settled_liveness(header, PATIENCE);
    if !own.is_final() {
        return own;
    }
    let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
    match process::liveness_of_children(header, slots, &mapped, false) {
        Liveness::Dead => own,
        other => other,
    }
}

/// The moment that a ring describes, ns since boot.
fn moment(liveness: &Option<Liveness>, snapshot: &Snapshot) -> Option<u64> {
    let header = snapshot.header.as_ref()?;
    match (liveness.as_ref()?, header.ending) {
        // A copy describes an earlier moment.
        (Liveness::Alive { .. } | Liveness::Dying { .. } | Liveness::Forked { .. }, _)
            if !header.is_copy() =>
        {
            present_ns(header)
        }
        (_, Ending::Exit { boottime_ns, .. }) if boottime_ns > 0 => Some(boottime_ns),
        _ => None,
    }
}

/// The present, ns since boot, as the ring's clock shows it.
pub fn present_ns(header: &ring::Header) -> Option<u64> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
    process::boottime_in_ring_ns(header, u64::try_from(Duration::from(now).as_nanos()).ok()?)
}
