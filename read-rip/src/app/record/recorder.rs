//! One ring, and the recording of it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use read_rip_case::{Context, Options, Reading, Subject, answers, present_ns};
use read_rip_evidence::process::{Liveness, liveness};
use read_rip_evidence::scheduler::{Refusal, Turns, Watched};
use read_rip_report::{self as report, printable};
use read_rip_ring::{
    self as ring, Follower, Header, IntoParts, NewWords, Parts, Saved, Scheduled, Source, TurnEnd,
};

use super::target::Target;
use crate::app::error::AppError;
use crate::app::output::remark;
use crate::cli::RecordArgs;

/// How often an image of the ring is written.
const IMAGE_INTERVAL: Duration = Duration::from_secs(10);
/// After an image, none is written for so many times the time that it took.
const IMAGE_PAUSE: u32 = 20;

/// A ring that is recorded.
pub(super) struct Recorder {
    source: Source,
    target: Target,
    follower: Follower,
    begun: Instant,
    image_due: Instant,
    words: u64,
    unseen: u64,
    /// When it began to copy the last words, ns since boot: those that are not copied yet are later.
    copied_ns: u64,
    /// When it had copied the last words, ns since boot. It never decreases.
    until_ns: u64,
    /// When the process was last seen alive, ns since boot.
    alive_ns: Option<u64>,
    /// Whether it was dead when it was last looked at.
    is_dead: bool,
    /// Whether what is taken after the last look is the last of it.
    is_over: bool,
    /// What its process does on the processors, if that is recorded.
    turns: Option<Turns>,
    turns_count: u64,
    /// Records of the kernel that had no room.
    lost_records: u64,
}

impl Recorder {
    /// Opens the ring, begins the file, and says so.
    pub(super) fn begin(subject: &Subject, target: &Path, args: &RecordArgs) -> Result<Recorder, AppError> {
        let ring = &*subject.path();
        let source = match subject {
            Subject::Ring { path, .. } => Source::open(path)?,
            Subject::Core(_) => return Err(AppError::NotForCores { path: ring.to_owned() }),
            Subject::Process(_) => return Err(AppError::NoEvents { path: ring.to_owned() }),
            Subject::Copy(_) | Subject::Saved(_) | Subject::Recording(_) => {
                return Err(AppError::AlreadySaved { path: ring.to_owned() });
            }
        };
        let target = Target::create(&source, target, args.rotation)
            .map_err(|source| cannot_record(target.to_owned(), source))?;
        remark(format_args!("Recording {} into {}.", shown(ring), shown(target.path())));
        let turns = if args.sched { turns(&source)? } else { None };
        let begun = Instant::now();
        Ok(Recorder {
            source,
            target,
            follower: Follower::default(),
            begun,
            image_due: begun,
            words: 0,
            unseen: 0,
            copied_ns: 0,
            until_ns: 0,
            alive_ns: None,
            is_dead: false,
            is_over: false,
            turns,
            turns_count: 0,
            lost_records: 0,
        })
    }

    /// Sees whether the process lives. What is taken after its death has its last words. The kernel reports its last
    /// turns a little later, so one more round takes them.
    pub(super) fn look(&mut self) -> Result<(), AppError> {
        let header = ring::present_header(&self.source)?;
        let before_ns = present_ns(&header);
        let was_dead = std::mem::replace(&mut self.is_dead, liveness(&header).is_final());
        self.is_over = self.is_dead && (was_dead || self.turns.is_none());
        if !self.is_dead {
            self.alive_ns = before_ns;
        }
        Ok(())
    }

    /// Writes what is new. Returns whether this was the last time: the process had ended at the last [`look`], and at
    /// the one before if turns are recorded, or `is_stopped`.
    ///
    /// [`look`]: Recorder::look
    pub(super) fn round(
        &mut self,
        is_stopped: bool,
        watched: Option<&Watched>,
        options: &Options,
    ) -> Result<bool, AppError> {
        let is_last = self.is_over || is_stopped;
        // Before the words: so no block of words begins before an earlier block of turns.
        self.new_turns(watched, is_last).map_err(|source| self.failed(source))?;
        self.new_words().map_err(|source| self.failed(source))?;
        let is_full = !is_last && self.target.is_full();
        if is_last || is_full || Instant::now() >= self.image_due {
            self.image(is_last || is_full, options)?;
        }
        if is_full {
            let parts = self.turns.as_mut().map(Turns::cut).unwrap_or_default();
            self.write_turns(&parts).map_err(|source| self.failed(source))?;
            self.target.rotate(&self.source).map_err(|source| self.failed(source))?;
            self.image(false, options)?;
        }
        Ok(is_last)
    }

    fn failed(&self, source: io::Error) -> AppError {
        cannot_record(self.target.path().to_owned(), source)
    }

    fn new_words(&mut self) -> io::Result<()> {
        let header = ring::present_header(&self.source).map_err(io::Error::other)?;
        let begun_ns = present_ns(&header);
        let new = self.follower.new_words(&self.source, &header)?;
        // If the ring's clock cannot be read, the words may be of any time.
        self.until_ns = self.until_ns.max(present_ns(&header).unwrap_or(u64::MAX));
        for NewWords { words, unseen, .. } in &new {
            self.words += words.iter().filter(|word| !word.is_missing()).count() as u64;
            self.unseen += unseen;
        }
        let since_ns = std::mem::replace(&mut self.copied_ns, begun_ns.unwrap_or(0));
        self.target.words(&new, since_ns..self.until_ns)
    }

    /// Writes what the processors did for the process since the last round; `is_last`: the turns that go on too.
    fn new_turns(&mut self, watched: Option<&Watched>, is_last: bool) -> io::Result<()> {
        let Some((turns, watched)) = self.turns.as_mut().zip(watched) else { return Ok(()) };
        let mut all = turns.take(watched);
        if is_last {
            all.extend(turns.cut());
        }
        self.write_turns(&all)
    }

    fn write_turns(&mut self, all: &[Scheduled]) -> io::Result<()> {
        let mut from_ns = self.copied_ns;
        for one in all {
            let begin_ns = match one {
                Scheduled::Turn(turn) => {
                    self.turns_count += u64::from(turn.end != TurnEnd::GoesOn);
                    turn.begin_ns
                }
                Scheduled::WakeUp(of) => of.at_ns,
                Scheduled::Gap(gap) => {
                    self.lost_records += gap.records;
                    gap.begin_ns
                }
                Scheduled::Name { .. } => continue,
            };
            from_ns = from_ns.min(begin_ns);
        }
        if let Some(turns) = &self.turns {
            self.until_ns = self.until_ns.max(turns.until_ns());
        }
        self.target.schedule(all, from_ns..self.until_ns)
    }

    /// Writes an image. The last one of a file has what the program's files say about the addresses, too.
    fn image(&mut self, is_last: bool, options: &Options) -> Result<(), AppError> {
        let begun = Instant::now();
        let mut reading = Reading::of_ring(&self.source, None, options)?;
        reading.lived_at(self.alive_ns);
        let header = reading.snapshot.header.clone();
        let answers = if is_last { answers(&reading, None, options) } else { Default::default() };
        let context = Context::of(reading, None).with_answers(answers).to_bytes();
        let context = context.map_err(|error| self.failed(error.into()))?;
        self.write_image(header.as_ref(), &context).map_err(|source| self.failed(source))?;
        // The next block of turns has the names again, for a reader of a later range of time or of the next file.
        if let Some(turns) = &mut self.turns {
            turns.forget_names();
        }
        self.image_due = Instant::now() + IMAGE_INTERVAL.max(IMAGE_PAUSE * begun.elapsed());
        Ok(())
    }

    /// Copies the ring, writes what was recorded until then, and writes the copy.
    fn write_image(&mut self, header: Option<&Header>, context: &[u8]) -> io::Result<()> {
        let mut parts = Parts::default();
        let len = ring::write_image(&self.source, header, &mut IntoParts(&mut parts))?;
        Saved::write_rest(&mut parts, len, 0, context)?;
        self.new_words()?;
        self.target.image(&parts, self.until_ns)
    }

    /// What was recorded.
    pub(super) fn summary(&self) -> String {
        let kib = self.target.written_bytes() / 1024;
        let took_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let lost: Vec<String> =
            [report::remarks::of_unseen(self.unseen), report::remarks::of_gaps(self.lost_records)]
                .into_iter()
                .flatten()
                .collect();
        let lost = lost.join(" ");
        let turns = match self.turns {
            Some(_) => format!(" and {}", report::counted(self.turns_count, "turn")),
            None => String::new(),
        };
        format!(
            "Recorded {}{turns} in {}: {}, {kib} KiB. {lost}",
            report::counted(self.words, "word"),
            report::duration(took_ns),
            shown(self.target.path())
        )
        .trim_end()
        .to_owned()
    }
}

/// What the process of a ring will do on the processors, if it lives. Says why not, if that cannot be known.
fn turns(source: &Source) -> Result<Option<Turns>, AppError> {
    let header = ring::present_header(source)?;
    let Liveness::Alive { pid, .. } = liveness(&header) else { return Ok(None) };
    let turns = Turns::of(&header, pid);
    if turns.is_none() {
        static SAID: Once = Once::new();
        // Once for all rings.
        SAID.call_once(|| super::say(&Refusal::Clock));
    }
    Ok(turns)
}

fn cannot_record(path: PathBuf, source: io::Error) -> AppError {
    AppError::Record { path, source }
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).to_string()
}
