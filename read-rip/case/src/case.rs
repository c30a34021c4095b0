//! A subject that was read, as a model with names: what every command begins with.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use read_rip_evidence::runtimes::pools_among;
use read_rip_evidence::stacks::Stack;
use read_rip_evidence::standing::Standings;
use read_rip_model::findings::{self, Balance, Finding, Limit, Memo, Suppression, UnrecordedFutures, View};
use read_rip_model::locations::{FileNames, Limits, Location, Locations};
use read_rip_model::locks::{LockModel, Polls};
use read_rip_model::log::{self, SlowCycles};
use read_rip_report::{LocationTexts, LockNames, ObjectName, OneReading, StackFrames, location_texts};
use read_rip_symbols::{Frame, Whose};

use crate::{Options, Reading, Readings};

/// A subject that was read, as a model with names.
pub struct Case<'a> {
    /// What was read.
    pub reading: &'a Reading,
    /// The functions and lines of what was recorded and seen.
    pub locations: Locations<'a>,
    /// Who holds and awaits what.
    pub model: LockModel,
    /// The functions at the addresses of stacks, as far as they were looked up.
    pub frames: StackFrames,
    /// Why there is only one reading, where there should be two.
    pub one_reading: Option<OneReading>,
    before: Option<&'a LockModel>,
    objects: HashMap<u64, ObjectName>,
}

/// What follows from a case.
pub struct Judgement {
    /// What is wrong, the most certain first.
    pub findings: Vec<Finding>,
    /// What the threads do, what the outcome is, and what the record cannot show.
    pub balance: Balance,
    /// What was not analysed completely, because that could take too long or too much memory.
    pub limits: Vec<Limit>,
}

impl<'a> Case<'a> {
    /// Makes a case of what was read. The words of the slots are used up.
    pub fn of(readings: &'a mut Readings, options: &Options) -> Case<'a> {
        Case::within(readings, Limits::default(), options)
    }

    /// The same, with the steps of that time alone.
    pub fn within(readings: &'a mut Readings, limits: Limits, options: &Options) -> Case<'a> {
        let words = readings.reading.snapshot.take_words();
        let readings = &*readings;
        let reading = &readings.reading;
        let mut locations = Locations::new(&reading.snapshot, reading.resolver(options));
        let model = readings.model(limits, words, &mut locations);
        let objects = reading.objects(&mut locations);
        Case {
            reading,
            locations,
            model,
            frames: StackFrames::default(),
            one_reading: readings.one_reading,
            before: readings.earlier.as_ref().map(|earlier| &earlier.model),
            objects,
        }
    }

    /// Looks up the functions on these stacks.
    pub fn find_frames<'s>(&mut self, stacks: impl IntoIterator<Item = &'s Stack>) {
        if let Some(seen) = &self.reading.seen {
            self.frames.extend(frames(stacks, seen, &mut self.locations));
        }
    }

    /// Looks up the functions on the stacks of all threads, if they were read.
    pub fn find_all_frames(&mut self) {
        let reading = self.reading;
        self.find_frames(reading.standings().flat_map(|seen| &seen.stacks).map(|group| &group.stack));
    }

    /// Short names for the files of everything that was looked up so far.
    pub fn texts(&self, is_verbose: bool) -> LocationTexts {
        let awaits = await_frames(self.reading);
        let frames = self.frames.values().flatten().chain(&awaits);
        let files = FileNames::choose_with(self.locations.iter(), frames);
        location_texts(&self.locations, files, is_verbose)
    }

    /// What threads, locks and places are called.
    pub fn names<'n>(&'n self, texts: &'n LocationTexts) -> LockNames<'n> {
        let seen = self.reading.seen_names(&self.objects);
        LockNames { model: &self.model, locations: &self.locations, texts, seen }
    }

    /// Finds what is wrong. A wait is long from `threshold` on. The threads that findings name get the names that they
    /// have now.
    pub fn judge(&mut self, threshold: Duration) -> Judgement {
        let (mut judgement, suspended) = self.with_view(threshold, |view| {
            let (mut findings, limits) = findings::run_bounded(view);
            self.reading.doubt(&mut findings);
            let balance = Balance::of(view, &findings);
            let suspended = balance.suspended_tasks(view);
            (Judgement { findings, balance, limits }, suspended)
        });
        let balance = &mut judgement.balance;
        // The constants of a program are many: this looks for its pools only if they matter.
        if let Some(suspended) = suspended {
            balance.note_suspended(suspended, pools_among(&self.locations.packages()));
        }
        balance.outcome = self.reading.outcome(balance.outcome, self.model.runtime);
        let of_futures = &mut balance.unrecorded_futures;
        *of_futures = of_futures.take().map(|of| of.with_crates(&self.locations.packages()));
        let holders: Vec<_> = judgement.balance.pools.iter().map(|pool| pool.holder).collect();
        self.reading.name_threads(&mut self.model, &judgement.findings, &holders);
        judgement
    }

    /// The slow cycles that the ring has kept; `None` if there are none.
    pub fn slow_cycles(&mut self) -> Option<SlowCycles> {
        let snapshot = &self.reading.snapshot;
        let captures = log::captures(snapshot, &mut self.locations, self.reading.now_ns);
        SlowCycles::of(&captures, snapshot)
    }

    /// How long polls of tasks took.
    pub fn polls(&mut self) -> Polls {
        Polls::of(&self.reading.snapshot, &self.model, &mut self.locations)
    }

    /// What the record has of futures that belong to no recorded task.
    pub fn unrecorded_futures(&mut self) -> Option<UnrecordedFutures> {
        Some(UnrecordedFutures::of(&self.model)?.with_crates(&self.locations.packages()))
    }

    /// Removes the findings that a rule applies to. Returns how many.
    pub fn suppress(&self, findings: &mut Vec<Finding>, rules: &[Suppression]) -> usize {
        let before = findings.len();
        self.with_view(Duration::ZERO, |view| {
            findings.retain(|finding| !rules.iter().any(|rule| rule.applies_to(finding, view)));
        });
        before - findings.len()
    }

    fn with_view<R>(&self, threshold: Duration, with: impl FnOnce(&View<'_>) -> R) -> R {
        let by_id: Vec<&Location> = self.locations.iter().collect();
        let threshold_ns = u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX);
        let (now, before, memo) = (&self.model, self.before, Memo::default());
        with(&View { now, before, locations: &by_id, threshold_ns, memo })
    }
}

/// The functions at all addresses of these stacks, inlined ones first.
pub(crate) fn frames<'s>(
    stacks: impl IntoIterator<Item = &'s Stack>,
    seen: &Standings,
    locations: &mut Locations<'_>,
) -> StackFrames {
    let mut frames = StackFrames::default();
    for &frame in stacks.into_iter().flat_map(|stack| &stack.frames) {
        frames.entry(frame).or_insert_with(|| locations.frames(seen.target.own_pid, frame.lookup()));
    }
    frames
}

/// The source files of the awaits in which tasks are suspended, as frames.
fn await_frames(reading: &Reading) -> Vec<Frame> {
    let tasks = reading.standings().filter_map(|seen| seen.tokio.as_ref());
    let steps = tasks.flat_map(|tasks| &tasks.chains).flat_map(|chain| &chain.steps);
    let files: BTreeSet<&str> = steps.filter_map(|step| step.file.as_deref()).collect();
    let frame = |file: &str| Frame {
        file: Some(file.into()),
        whose: Whose::of(None, Some(file), &Whose::User),
        ..Frame::default()
    };
    files.into_iter().map(frame).collect()
}
