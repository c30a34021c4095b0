//! `read-rip check`: findings, and the exit status that follows from them.
//!
//! A living process is read twice, so that what is said of it was so at one moment. It judges nothing itself: that
//! is what `findings` is for.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use procfs::process::Process;

use super::error::AppError;
use super::reading::{Reading, agreeing};
use super::{FINDINGS, SOUND, output, remark};
use crate::cli::{CheckArgs, Common, MinConfidence};
use crate::findings::{self, Confidence, Suppression, View};
use crate::locations::{FileNames, Location, Locations};
use crate::locks::{self, LockModel};
use crate::process::Liveness;
use crate::report::{self, Checked, Json, LockNames, counted};

/// `read-rip check`.
pub(super) fn check(args: &CheckArgs, wanted: &Common) -> Result<u8, AppError> {
    let suppressions = suppressions(args)?;
    let path = super::rings::choose(&args.ring, &wanted.dir)?;
    let readings = Readings::of(&path, args, wanted)?;
    let Readings { earlier, reading, remarks } = &readings;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let now = locks::build(
        &reading.input(earlier.as_ref().map(|(earlier, window_ns)| (earlier, *window_ns))),
        &mut locations,
    );
    let before = earlier.as_ref().map(|(earlier, _)| locks::build(&earlier.input(None), &mut locations));
    let of_places: Vec<&Location> = locations.iter().collect();
    let view = View {
        now: &now,
        before: before.as_ref(),
        locations: &of_places,
        threshold_ns: u64::try_from(args.threshold.as_nanos()).unwrap_or(u64::MAX),
    };
    let mut found = findings::look(&view);
    found.retain(|finding| finding.confidence >= confidence(args.min_confidence));
    let all = found.len();
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, false);
    let names = LockNames { model: &now, locations: &locations, texts: &texts };
    if !suppressions.is_empty() {
        found.retain(|finding| {
            let subjects = report::subjects(finding, &names);
            !suppressions.iter().any(|rule| rule.applies_to(finding.kind, &subjects))
        });
    }
    let checked = Checked {
        threads: now.threads.len(),
        locks: now.locks.len(),
        findings: found.len(),
        suppressed: all - found.len(),
        window_ns: now.window_ns,
    };
    let mut out = output(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        json.ring(&reading.path, &reading.snapshot, reading.liveness.as_ref(), &reading.losses)?;
        json.findings(&found, &checked, &names, &reading.snapshot)?;
    } else {
        remark(reading.heading(&reading.threads()));
        report::findings(&mut out, &found, &checked, &names)?;
    }
    out.flush()?;
    drop(out);
    let mut remarks = remarks.clone();
    remarks.extend(unknown(&now, &checked));
    if reading.now_ns.is_none() && now.now_ns.is_some() && !found.is_empty() {
        remarks.push(
            "Lengths of time are up to the last moment that is recorded; it may have been longer.".to_owned(),
        );
    }
    // What could not be read may hide more: that is told by the status before what was found.
    match reading.remarks(wanted, &locations, &remarks)? {
        SOUND if !found.is_empty() => Ok(FINDINGS),
        status => Ok(status),
    }
}

/// One reading, or two of a process that lives.
struct Readings {
    /// The first of two, and how long it was over when the second began, ns.
    earlier: Option<(Reading, u64)>,
    reading: Reading,
    remarks: Vec<String>,
}

impl Readings {
    fn of(path: &Path, args: &CheckArgs, wanted: &Common) -> Result<Readings, AppError> {
        let first = Reading::of(path, wanted)?;
        let one = |reading, remark: Option<&str>| {
            Ok(Readings { earlier: None, reading, remarks: remark.map(str::to_owned).into_iter().collect() })
        };
        if first.is_final() {
            return one(first, None);
        }
        if is_copy(path, first.liveness.as_ref()) {
            const WHY: &str = "This is a copy of a living process's ring. Read it itself: what takes two readings, \
                               deadlocks above all, is not looked for in a copy.";
            return one(first, Some(WHY));
        }
        let read = Instant::now();
        std::thread::sleep(args.window);
        let window_ns = u64::try_from(read.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let Ok(second) = Reading::of(path, wanted) else {
            return one(first, Some("The ring was removed between two readings: its process ended."));
        };
        let is_unknown = matches!(first.liveness, Some(Liveness::Unknown { .. }));
        let counts =
            |reading: &Reading| reading.snapshot.slots.iter().map(|slot| slot.count).collect::<Vec<u64>>();
        if is_unknown && counts(&first) == counts(&second) {
            const WHY: &str = "Whether the process lives is not known, and nothing moved: this may be a copy. What \
                               takes two readings, deadlocks above all, is not looked for.";
            return one(second, Some(WHY));
        }
        Ok(Readings { earlier: Some((first, window_ns)), reading: second, remarks: Vec::new() })
    }
}

/// Whether a file is not the ring that a living process writes: two readings of a copy are always alike, and prove
/// nothing.
fn is_copy(path: &Path, liveness: Option<&Liveness>) -> bool {
    let Some(Liveness::Alive { pid } | Liveness::Forked { pid }) = liveness else { return false };
    let (Ok(file), Ok(maps)) = (fs::metadata(path), Process::new(*pid).and_then(|process| process.maps()))
    else {
        return false;
    };
    !maps.into_iter().any(|map| map.inode == file.ino())
}

fn suppressions(args: &CheckArgs) -> Result<Vec<Suppression>, AppError> {
    let mut rules = Vec::new();
    for path in &args.suppress {
        let bad = |why: String| AppError::Suppressions { path: path.clone(), why };
        let text = fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        rules.extend(Suppression::parse(&text).map_err(|error| bad(error.to_string()))?);
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

/// What cannot be known, and what was left out.
fn unknown(model: &LockModel, checked: &Checked) -> Vec<String> {
    let mut remarks = Vec::new();
    if checked.findings > 0 {
        let (threads, locks) =
            (counted(checked.threads as u64, "thread"), counted(checked.locks as u64, "lock"));
        remarks.push(format!("{} in {threads} and {locks}.", counted(checked.findings as u64, "finding")));
    }
    if checked.suppressed > 0 {
        remarks.push(format!("{} suppressed.", agreeing(checked.suppressed as u64, "finding", "is", "are")));
    }
    if model.locks.is_empty() {
        remarks.push("No lock is known: the program marks none, or none of its marks is left.".to_owned());
    }
    let beyond: u64 = model.threads.iter().map(|thread| u64::from(thread.overflowed)).sum();
    if beyond > 0 {
        remarks.push(format!(
            "{} in no table of held locks, which were full: who holds those is not known.",
            agreeing(beyond, "lock", "is", "are")
        ));
    }
    if model.releases_unmatched > 0 {
        remarks.push(format!(
            "{} by others than the holder went unnoticed: a lock marked by hand may appear held and not be.",
            counted(model.releases_unmatched, "release")
        ));
    }
    remarks
}
