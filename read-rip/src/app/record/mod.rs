//! `read-rip record`: follows living rings into files, for as long as wanted.
//!
//! `ring::Follower` copies what is new, and `ring::RecordingWriter` writes it. `recorder` decides when: an image of the
//! ring is written at the start, from time to time, and at the end. So a recorder that is killed leaves an image that
//! is not old, and all words up to its last round. `target` goes on in another file when one is full. `all` finds the
//! rings of many processes. `evidence::scheduler` watches the processors, once for all rings. This file has the rounds.

mod all;
mod recorder;
mod target;

use std::time::Instant;

use read_rip_evidence::scheduler::{Refusal, Scheduler, Watched};
use read_rip_report as report;

use crate::app::signals::Signals;
use recorder::Recorder;

use super::error::AppError;
use super::output::{SOUND, remark};
use super::written::is_standard_output;
use crate::cli::{Common, RecordArgs};

/// `read-rip record`.
pub(super) fn record(args: &RecordArgs, common: &Common) -> Result<u8, AppError> {
    if is_standard_output(&args.output) && (args.all || args.rotation.is_limited()) {
        return Err(AppError::NoFiles);
    }
    if args.all {
        return all::record(args, common);
    }
    let subject = super::rings::choose(&args.ring, common)?;
    let options = common.options();
    let mut rounds = Rounds::begin(args)?;
    let mut recorder = Recorder::begin(&subject, &args.output, args)?;
    loop {
        recorder.look()?;
        if recorder.round(rounds.is_last(), rounds.watched().as_ref(), &options)? {
            break;
        }
        rounds.pause()?;
    }
    remark(recorder.summary());
    Ok(SOUND)
}

/// When the next round begins, and which one is the last.
struct Rounds<'a> {
    args: &'a RecordArgs,
    signals: Signals,
    begun: Instant,
    round_begun: Instant,
    is_stopped: bool,
    /// The watch of the processors, if the user wants it and the kernel allows it.
    scheduler: Option<Scheduler>,
}

impl Rounds<'_> {
    fn begin(args: &RecordArgs) -> Result<Rounds<'_>, AppError> {
        let signals = Signals::catch()?;
        let scheduler = if args.sched { watch() } else { None };
        let now = Instant::now();
        Ok(Rounds { args, signals, begun: now, round_begun: now, is_stopped: false, scheduler })
    }

    /// What the processors did since the last round.
    fn watched(&mut self) -> Option<Watched> {
        self.scheduler.as_mut().map(Scheduler::watched)
    }

    /// Whether the user wants no more rounds after this one.
    fn is_last(&self) -> bool {
        self.is_stopped || self.args.r#for.is_some_and(|limit| self.begun.elapsed() >= limit)
    }

    /// Waits until the next round is due: never less than the last one took.
    fn pause(&mut self) -> Result<(), AppError> {
        let mut pause = self.args.interval.max(self.round_begun.elapsed());
        if let Some(limit) = self.args.r#for {
            pause = pause.min(limit.saturating_sub(self.begun.elapsed()));
        }
        self.is_stopped = self.signals.wait(pause)?;
        self.round_begun = Instant::now();
        Ok(())
    }
}

/// Begins to watch the processors. Says what it cannot see.
fn watch() -> Option<Scheduler> {
    let (scheduler, refusal) = match Scheduler::watch() {
        Ok((scheduler, refusal)) => (Some(scheduler), refusal),
        Err(refusal) => (None, Some(refusal)),
    };
    refusal.iter().for_each(say);
    scheduler
}

fn say(refusal: &Refusal) {
    let (what, hint) = report::remarks::of_scheduler(refusal);
    remark(format_args!("Warning: {what}"));
    if !hint.is_empty() {
        remark(format_args!("Hint: {hint}"));
    }
}
