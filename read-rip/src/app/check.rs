//! A ring is examined: findings, and the exit status that follows from them. `collect` has the commands.
//!
//! It reads a living process twice, so that a finding holds for one moment. It analyses nothing itself: `findings`
//! does.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use read_rip_evidence::core::is_core;
use read_rip_evidence::process::Ends;
use read_rip_evidence::process::live::Error;
use read_rip_evidence::standing::Standings;
use read_rip_model::findings::{self, Balance, Confidence, Finding, Limit, Memo, Outcome, Suppression, View};
use read_rip_model::locations::{FileNames, Limits, Location, Locations};
use read_rip_model::locks::{self, Input, LockModel};
use read_rip_report::{self as report, Checked, Json, LockNames, OneReading, Sources};
use read_rip_ring::{Header, Words};
use read_rip_symbols::{OpenedFiles, Options, Resolver};

use super::error::AppError;
use super::look::{Look, process_of};
use super::matching::Matching;
use super::output::{FINDINGS, SOUND, UNJUDGED, is_terminal, prose};
use super::reading::Reading;
use super::source::sources;
use crate::cli::{CheckArgs, Common, MinConfidence, RingArgs, SourceArgs};

/// What to do about a line that is not a rule.
const RULE_HINT: &str = "each line is KIND or KIND:REGEX; a line that begins with # is a comment";

/// What is done with the findings of a ring.
pub(super) type Show<'a> =
    dyn FnMut(&[Finding], &Checked, &LockNames<'_>, &Reading) -> Result<(), AppError> + 'a;

/// What is said of a ring or a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Everything.
    Full,
    /// Everything if there are findings, and otherwise nothing.
    IfNeeded,
    /// What is shown of the findings, if there are any, and no remarks.
    Findings,
    /// What is shown, whether there are findings or not. Nothing is written to standard error: a live screen is there.
    Screen,
}

/// Analyses a ring, shows the findings and writes the remarks. Returns the exit status.
pub(super) fn judge(
    mut readings: Readings,
    args: &CheckArgs,
    suppressions: &[Suppression],
    wanted: &Common,
    manner: Manner,
    show: &mut Show<'_>,
) -> Result<u8, AppError> {
    let words = readings.reading.snapshot.take_words();
    let Readings { earlier, reading, .. } = &readings;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let mut now = readings.model(words, &mut locations);
    let objects = reading.objects(&mut locations);
    let by_id: Vec<&Location> = locations.iter().collect();
    let threshold_ns = u64::try_from(args.threshold.as_nanos()).unwrap_or(u64::MAX);
    let before = earlier.as_ref().map(|earlier| &earlier.model);
    let view = View { now: &now, before, locations: &by_id, threshold_ns, memo: Memo::default() };
    let (mut found, limits) = findings::run_bounded(&view);
    reading.doubt(&mut found);
    let mut balance = Balance::of(&view, &found);
    balance.outcome = reading.outcome(balance.outcome);
    let holders: Vec<_> = balance.pools.iter().map(|pool| pool.holder).collect();
    reading.name_threads(&mut now, &found, &holders);
    let view = View { now: &now, before, locations: &by_id, threshold_ns, memo: Memo::default() };
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, false);
    let seen = reading.seen_names(&objects);
    let names = LockNames { model: &now, locations: &locations, texts: &texts, seen };
    let outcome = balance.outcome;
    found.retain(|finding| finding.confidence >= confidence(args.min_confidence));
    let suppressed =
        remove(&mut found, |finding| suppressions.iter().any(|rule| rule.applies_to(finding, &view)));
    let not_matching = args.r#match.as_ref().map_or(0, |pattern| {
        let matching = Matching::new(pattern, &names);
        remove(&mut found, |finding| !matching.has_finding(finding))
    });
    let checked = Checked {
        threads: now.threads.len() - now.tasks,
        tasks: now.tasks,
        locks: now.locks.len(),
        findings: found.len(),
        balance,
        suppressed,
        not_matching,
        window_ns: now.window_ns,
        one_reading: readings.one_reading,
        is_up_to_last_time: reading.now_ns.is_none() && now.now_ns.is_some(),
        held_overflowed: report::remarks::overflowed(&now),
        releases_unmatched: now.releases_unmatched,
        longer_slot_words: reading.snapshot.header.as_ref().and_then(Header::longer_slot_words),
        is_order_search_cut: limits.contains(&Limit::LockOrders),
    };
    let is_silent = match manner {
        Manner::Full | Manner::Screen => false,
        Manner::IfNeeded => found.is_empty() && !wanted.json,
        Manner::Findings => found.is_empty(),
    };
    if !is_silent {
        show(&found, &checked, &names, reading)?;
    }
    if manner == Manner::Screen {
        return Ok(status(SOUND, &found, outcome));
    }
    if is_silent || manner == Manner::Findings {
        return Ok(status(reading.report_defects(wanted)?, &found, outcome));
    }
    let remarks = report::remarks::of_check(&now, &checked);
    Ok(status(reading.remarks(wanted, &locations, &remarks)?, &found, outcome))
}

/// The exit status. Parts that could not be read may hide findings, so the status of the reading takes precedence.
fn status(of_reading: u8, found: &[Finding], outcome: Outcome) -> u8 {
    match outcome {
        _ if of_reading != SOUND => of_reading,
        _ if !found.is_empty() => FINDINGS,
        _ if outcome.is_judged() => SOUND,
        _ => UNJUDGED,
    }
}

/// Removes findings. Returns how many.
fn remove(found: &mut Vec<Finding>, is_unwanted: impl Fn(&Finding) -> bool) -> usize {
    let before = found.len();
    found.retain(|finding| !is_unwanted(finding));
    before - found.len()
}

/// The findings of a ring or a process as lines of JSON.
pub(super) fn write_json(
    out: &mut dyn Write,
    found: &[Finding],
    checked: &Checked,
    names: &LockNames<'_>,
    reading: &Reading,
) -> io::Result<()> {
    let mut json = Json(out);
    reading.write_ring(&mut json)?;
    reading.write_core(&mut json)?;
    json.findings(found, checked, names, &reading.snapshot)
}

pub(super) fn show(
    found: &[Finding],
    checked: &Checked,
    names: &LockNames<'_>,
    reading: &Reading,
    source: &SourceArgs,
    wanted: &Common,
) -> Result<(), AppError> {
    let mut out = prose(wanted);
    if wanted.json {
        write_json(&mut out, found, checked, names, reading)?;
    } else {
        writeln!(out, "{}", reading.heading(&reading.threads()))?;
        let sources = if is_terminal() && !source.no_source {
            sources(found, names.locations, reading, source)
        } else {
            Sources::default()
        };
        report::findings(&mut out, found, checked, names, &sources)?;
    }
    Ok(out.flush()?)
}

/// One reading, or two of a living process.
pub(super) struct Readings {
    pub(super) earlier: Option<Earlier>,
    pub(super) reading: Reading,
    /// Why there is only one reading, where there should be two.
    one_reading: Option<OneReading>,
}

/// The first of two readings, without the words of its slots.
pub(super) struct Earlier {
    pub(super) reading: Reading,
    pub(super) model: LockModel,
    /// The time from its end to the start of the second reading, ns.
    pub(super) window_ns: u64,
}

impl Earlier {
    fn of(mut reading: Reading, window_ns: u64) -> Earlier {
        let words = reading.snapshot.take_words();
        // Symbols are resolved for the second reading only.
        let mut locations = Locations::new(&reading.snapshot, Resolver::new(&[], Options::default()));
        let input = Input { wants_steps: false, ..reading.input(None) };
        let model = locks::build_of_words(&input, words, &mut locations);
        Earlier { reading, model, window_ns }
    }
}

impl Readings {
    /// One reading, where nobody compares.
    pub(super) fn one(reading: Reading) -> Readings {
        Readings { earlier: None, reading, one_reading: None }
    }

    /// The same, with files of modules that other readings use too.
    pub(super) fn sharing(mut self, opened: &OpenedFiles) -> Readings {
        self.reading.opened = opened.clone();
        self
    }

    /// A core file, a process without a ring, or a ring, with what the kernel says of a living process.
    pub(super) fn at_present(path: &Path, wanted: &Common) -> Result<Readings, AppError> {
        if is_core(path) || process_of(path).is_some() {
            return Readings::of(path, &CheckArgs::of(RingArgs::default()), &Ends::default(), wanted);
        }
        Ok(Readings::one(Reading::with_look(path, wanted)?.with_present_names()))
    }

    /// The time between the readings of each thread, ns, about: each takes its time from the first thread to the last.
    pub(super) fn period_ns(&self) -> Option<u64> {
        let earlier = self.earlier.as_ref()?;
        let period_ns = self.reading.now_ns?.checked_sub(earlier.reading.now_ns?);
        period_ns.filter(|&period_ns| period_ns > earlier.window_ns).or(Some(earlier.window_ns))
    }

    /// The model of the locks, with what the kernel and the memory say.
    pub(super) fn model(&self, words: Vec<Words>, locations: &mut Locations<'_>) -> LockModel {
        self.model_of(Limits::default(), words, locations)
    }

    /// The same, with a record of that time.
    pub(super) fn model_of(
        &self,
        limits: Limits,
        words: Vec<Words>,
        locations: &mut Locations<'_>,
    ) -> LockModel {
        let earlier = self.earlier.as_ref().map(|earlier| (&earlier.reading, earlier.window_ns));
        let mut model =
            locks::build_of_words(&Input { limits, ..self.reading.input(earlier) }, words, locations);
        if let Some(seen) = &self.reading.seen {
            locks::observe(&mut model, seen, locations);
        }
        model
    }

    /// Reads a ring as `args` ask for. `ends` says when processes ended.
    pub(super) fn of(
        path: &Path,
        args: &CheckArgs,
        ends: &Ends,
        wanted: &Common,
    ) -> Result<Readings, AppError> {
        if is_core(path) {
            return Ok(Readings::one(Reading::of_core(path, wanted)?));
        }
        if let Some(pid) = process_of(path) {
            let looked = || -> Result<Option<Standings>, AppError> {
                let look = Look::begin(pid, wanted)?;
                std::thread::sleep(args.window);
                Ok(look.end())
            };
            let seen = match looked()? {
                Some(seen) => seen,
                // It does not answer any more. What is left is known without its memory.
                None => looked()?.ok_or_else(|| AppError::Process(Error::silent(pid)))?,
            };
            return Ok(Readings::one(Reading::of_process(path, seen)));
        }
        let first = match Readings::begin(path, ends, wanted)? {
            Begun::Complete(readings) => return Ok(*readings),
            Begun::First(first) => first,
        };
        // Without rights to look at the process, the record alone has to do.
        let look = first.process().and_then(|pid| Look::begin(pid, wanted).ok());
        std::thread::sleep(args.window);
        first.end(look.and_then(Look::end), wanted)
    }

    /// Reads a ring for the first time.
    pub(super) fn begin(path: &Path, ends: &Ends, wanted: &Common) -> Result<Begun, AppError> {
        let mut reading = Reading::of(path, wanted)?;
        reading.ended(ends);
        let complete = |earlier, reading, one_reading| {
            Ok(Begun::Complete(Box::new(Readings { earlier, reading, one_reading })))
        };
        if let Some((earlier, window_ns)) = reading.take_earlier(wanted)? {
            return complete(Some(Earlier::of(earlier, window_ns)), reading, None);
        }
        if reading.is_copy() {
            return complete(None, reading, Some(OneReading::Copy));
        }
        if reading.is_final() {
            return complete(None, reading, None);
        }
        Ok(Begun::First(Box::new(First { reading, read: Instant::now() })))
    }
}

/// A ring that was read.
pub(super) enum Begun {
    /// Its last state, or all that there is.
    Complete(Box<Readings>),
    /// The first of two readings.
    First(Box<First>),
}

/// The first of two readings of a ring whose process may live.
pub(super) struct First {
    reading: Reading,
    /// When it was read.
    read: Instant,
}

impl First {
    /// The process, if it lives.
    pub(super) fn process(&self) -> Option<u32> {
        self.reading.process()
    }

    /// Reads the ring again. `seen`: what was seen of the process meanwhile.
    pub(super) fn end(self, seen: Option<Standings>, wanted: &Common) -> Result<Readings, AppError> {
        let First { reading: first, read } = self;
        let path = first.path.clone();
        let window_ns = u64::try_from(read.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if !path.exists() {
            return Ok(Readings { earlier: None, reading: first, one_reading: Some(OneReading::Removed) });
        }
        // The words of both readings at once could be too much for the memory.
        let earlier = Earlier::of(first, window_ns);
        let mut second = Reading::of(&path, wanted)?;
        // The last state is one moment by itself.
        if second.is_final() {
            return Ok(Readings::one(second));
        }
        if let Some(seen) = seen {
            second.add_seen(seen);
        }
        Ok(Readings { earlier: Some(earlier), reading: second, one_reading: None })
    }
}

pub(super) fn suppressions(files: &[PathBuf]) -> Result<Vec<Suppression>, AppError> {
    let mut rules = Vec::new();
    for path in files {
        let bad = |why: String, hint| AppError::Suppressions { path: path.clone(), why, hint };
        let text = fs::read_to_string(path).map_err(|error| bad(error.to_string(), "check the path"))?;
        rules.extend(Suppression::parse(&text).map_err(|error| bad(error.to_string(), RULE_HINT))?);
    }
    Ok(rules)
}

fn confidence(wanted: MinConfidence) -> Confidence {
    match wanted {
        MinConfidence::Suspected => Confidence::Suspected,
        MinConfidence::Potential => Confidence::Potential,
        MinConfidence::Proven => Confidence::Proven,
    }
}
