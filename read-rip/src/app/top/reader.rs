//! The thread that reads the process, again and again, for at most an eighth of a processor.
//!
//! After each reading it rests until all that this program has used of a processor since it began is an eighth of the
//! time since then. So a process of many threads is read more rarely, and never more often than four times a second.
//! The rings of dead processes are read once, without such a rest.
//! Between two readings it looks at the record alone (`update`), which takes a hundredth of the time. A thread, a copy
//! or a page that the user asks for is read at once, and makes the rest longer.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use read_rip_case::{Case, Options, Readings, Subject};
use read_rip_evidence::process::Ends;
use read_rip_evidence::process::live::LiveTarget;
use read_rip_model::locks;
use read_rip_report::printable;
use read_rip_report::{Picture, ProcessTable, ThreadKey};

use super::detail;
use super::processes::Processes;
use super::update::Watch;
use crate::app::check::{Filter, judge};
use crate::app::error::AppError;
use crate::app::output::unanswered;
use crate::app::picture;
use crate::app::{report, save};
use crate::cli::{Common, ReportArgs, RingArgs};
use crate::top::Update;

/// One of so many seconds of a processor is used.
const SHARE: u32 = 8;
/// The shortest time from one reading to the next.
const PERIOD: Duration = Duration::from_millis(250);
/// The shortest time from one look at all processes to the next.
const PROCESSES_PERIOD: Duration = Duration::from_secs(2);
/// The time between the two looks of a reading.
pub(super) const WINDOW: Duration = Duration::from_millis(200);

/// More locks are only counted.
const LOCKS_MAX: usize = 300;

pub(super) enum Ask {
    /// To read this ring or process from now on.
    Process(Box<Subject>),
    /// To look at all processes from now on.
    Processes,
    /// The history and the stack of a thread.
    Thread(ThreadKey),
    /// A copy of the ring.
    Save,
    /// A page for browsers.
    Report,
}

pub(super) enum Found {
    Picture(Box<Picture>),
    /// What has moved since the last picture.
    Update(Box<Update>),
    ProcessTable(ProcessTable),
    Thread(ThreadKey, Vec<String>),
    /// A sentence for the user.
    Message(String),
    /// The process cannot be read any more, and why.
    Ended(String),
}

/// When it reads again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// What was read does not change any more.
    Never,
    Later,
    /// There is more to read.
    AtOnce,
}

/// Reads until nobody listens.
pub(super) struct Reader {
    pub(super) common: Common,
    pub(super) options: Options,
    pub(super) asked: Receiver<Ask>,
    pub(super) found: Sender<Found>,
    /// The ring or process that is read; `None`: all of this machine.
    pub(super) subject: Option<Subject>,
    pub(super) processes: Processes,
    /// What did not answer, as far as the screen has shown it.
    pub(super) unanswered: Vec<String>,
    /// When the process was seen alive. After its death this is the least that is known of its end.
    pub(super) ends: Ends,
}

impl Reader {
    pub(super) fn run(mut self) {
        loop {
            let (began, used) = (Instant::now(), processor_time());
            let (next, period) = match self.subject.clone() {
                Some(subject) => (self.read(&subject), PERIOD),
                None => (self.processes(), PROCESSES_PERIOD),
            };
            let Some(next) = next else { return };
            if self.say_unanswered().is_none() {
                return;
            }
            // Between two readings.
            let mut watch = self.subject.as_ref().filter(|_| next != Next::Never).and_then(Watch::of);
            // Requests are served while it rests.
            loop {
                let rest = processor_time().saturating_sub(used) * SHARE;
                let left = match next {
                    Next::AtOnce => Duration::ZERO,
                    _ => rest.max(period).saturating_sub(began.elapsed()),
                };
                let asked = match next {
                    Next::Never => self.asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    _ => self.asked.recv_timeout(left.min(PERIOD)),
                };
                match asked {
                    Ok(Ask::Process(subject)) => {
                        self.subject = Some(*subject);
                        self.ends = Ends::default();
                        break;
                    }
                    Ok(Ask::Processes) => {
                        self.subject = None;
                        break;
                    }
                    Ok(ask) => {
                        if self.answer(ask).is_none() {
                            return;
                        }
                    }
                    Err(RecvTimeoutError::Timeout) if left <= PERIOD => break,
                    Err(RecvTimeoutError::Timeout) => {
                        let update = watch.as_mut().and_then(Watch::update);
                        if update.is_some_and(|it| self.found.send(Found::Update(Box::new(it))).is_err()) {
                            return;
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    }

    /// Reads a process once. `None`: nobody listens.
    fn read(&mut self, subject: &Subject) -> Option<Next> {
        let (began, ends) = (Instant::now(), &mut self.ends);
        let mut made = || -> Result<Picture, AppError> {
            let mut readings = Readings::of_ended(subject, ends, &self.options)?;
            let period_ns = readings.period_ns();
            if let Some(pid) = readings.reading.pid().filter(|_| !readings.reading.is_final()) {
                ends.note_alive(pid, began);
            }
            let mut case = Case::of(&mut readings, &self.options);
            let verdict = judge(&mut case, &Filter::default());
            let texts = case.texts(false);
            let overview = locks::overview(&case.model, false, true);
            let names = case.names(&texts);
            let picture = picture::make(&verdict, &names, case.reading, period_ns, &overview, LOCKS_MAX)?;
            // If the process ended meanwhile, a reading without a ring has only a part of it.
            if let Subject::Process(pid) = *subject {
                LiveTarget::open(pid)?;
            }
            Ok(picture)
        };
        match made() {
            Ok(picture) => {
                let next = if picture.is_final { Next::Never } else { Next::Later };
                self.found.send(Found::Picture(Box::new(picture))).ok()?;
                Some(next)
            }
            Err(error) => {
                self.found.send(Found::Ended(error.sentence())).ok()?;
                Some(Next::Never)
            }
        }
    }

    /// Says what has not answered since this was logged last. `None`: nobody listens.
    fn say_unanswered(&mut self) -> Option<()> {
        let now = unanswered();
        if let Some(new) = now.iter().find(|what| !self.unanswered.contains(what)) {
            self.found.send(Found::Message(new.clone())).ok()?;
        }
        self.unanswered = now;
        Some(())
    }

    /// Looks at all processes once. `None`: nobody listens.
    fn processes(&mut self) -> Option<Next> {
        let (found, next) = match self.processes.read(&self.common, &self.options) {
            Ok((machine, 0)) => (Found::ProcessTable(machine), Next::Later),
            Ok((machine, _)) => (Found::ProcessTable(machine), Next::AtOnce),
            Err(error) => (Found::Message(error.sentence()), Next::Later),
        };
        self.found.send(found).ok()?;
        Some(next)
    }

    fn answer(&self, ask: Ask) -> Option<()> {
        let Some(subject) = &self.subject else {
            return self.found.send(Found::Message("choose a process first".to_owned())).ok();
        };
        let found = match ask {
            Ask::Thread(key) => match detail::thread(subject, key, &self.options) {
                Ok(lines) => Found::Thread(key, lines),
                Err(error) => Found::Thread(key, vec![error.sentence()]),
            },
            Ask::Save => logged(copy(subject, &self.options)),
            Ask::Report => logged(page(subject, &self.common)),
            Ask::Process(_) | Ask::Processes => return Some(()),
        };
        self.found.send(found).ok()
    }
}

/// Saves a copy as `read-rip save` does, under its default name. Returns what to tell the user.
fn copy(subject: &Subject, options: &Options) -> Result<String, AppError> {
    let target = save::default_target(&subject.path());
    let bytes = save::write(subject, &target, options)?;
    Ok(format!("Saved to {}, {} KiB", printable(&target.to_string_lossy()), bytes / 1024))
}

/// Writes the page that `read-rip report` writes, under its default name. Returns what to tell the user.
fn page(subject: &Subject, common: &Common) -> Result<String, AppError> {
    let target = report::default_target(&subject.path());
    let args = ReportArgs::of(RingArgs::default(), WINDOW);
    report::write(subject, &target, &args, common, false)?;
    Ok(format!("Written to {}", printable(&target.to_string_lossy())))
}

fn logged(done: Result<String, AppError>) -> Found {
    Found::Message(done.unwrap_or_else(|error| error.sentence()))
}

/// What this program has used of processors.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
