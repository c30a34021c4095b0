//! `read-rip captures`: what threads had recorded when the program kept it. It formats nothing.

use std::io::Write;

use read_rip_case::Reading;
use read_rip_model::locations::{Dated, FileNames, Locations, When, dated_history};
use read_rip_model::locks::LockModel;
use read_rip_model::log::{self, Holder};
use read_rip_report::{self as report, Json, LockNames, ShownCapture as Shown};
use read_rip_ring::Slot;
use read_rip_ring::events::Leftover;

use super::error::AppError;
use super::limits::limits;
use super::log::{names_process, read};
use super::matching::Pattern;
use super::output::prose;
use super::remarks;
use crate::cli::{CapturesArgs, Common};

/// `read-rip captures`.
pub(super) fn captures(args: &CapturesArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let options = common.options();
    let reading = read(&subject, &options)?;
    let limits = limits(&args.time, &reading)?;
    let snapshot = &reading.snapshot;
    let mut locations = Locations::new(snapshot, reading.resolver(&options));
    let mut captures = log::captures(snapshot, &mut locations, reading.now_ns);
    let all = captures.len();
    captures.retain(|of| limits.has(&When::at(snapshot.captures[of.index].exited_boottime_ns)));
    let kept: Vec<&Slot> = captures.iter().map(|of| &snapshot.captures[of.index]).collect();
    let holders: Vec<Option<Holder>> = captures
        .iter()
        .map(|of| {
            let step = of.cycle.as_ref().and_then(|cycle| of.steps.get(cycle.wait()?.step?))?;
            log::holder(snapshot, &snapshot.captures[of.index], step, &mut locations, reading.now_ns)
        })
        .collect();
    let mut leftover = Leftover::default();
    let mut histories = Vec::new();
    for &slot in &kept {
        let (events, of_slot) = dated_history(slot, &mut locations, reading.horizon());
        events.iter().for_each(|dated| locations.find_lock(slot, &dated.event));
        leftover += of_slot;
        histories.push(events);
    }
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, files, false);
    let names_process = names_process(&reading);
    let matching = args.r#match.as_ref().map(|pattern| Pattern { pattern, names_process });
    let model = LockModel::default();
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen: None };
    let mut out = prose(common);
    if common.json {
        reading.write_ring(&mut Json(&mut out))?;
    } else {
        for process in reading.processes(&reading.threads(), "") {
            writeln!(out, "{}", process.heading)?;
        }
    }
    let mut shown = Vec::new();
    for ((slot, events), (capture, holder)) in kept.iter().zip(&histories).zip(captures.iter().zip(&holders))
    {
        let is_matched = |Dated { event, location, .. }: &Dated, of: &Pattern<'_>| {
            let location = locations.get(*location);
            let logged = log::kind_of(slot, event, &locations, None, None)
                .map(|kind| log::text(kind, slot, event, location, &locations));
            of.pattern.is_match(&texts.line_of(location))
                || logged.is_some_and(|logged| of.pattern.is_match(&logged))
        };
        if matching
            .as_ref()
            .is_none_or(|of| of.has_thread_of(slot) || events.iter().any(|event| is_matched(event, of)))
        {
            shown.push(Shown { slot, events, capture, holder: holder.as_ref() });
        }
    }
    if common.json {
        for of in &shown {
            Json(&mut out).capture(of, &names, snapshot, reading.now_ns)?;
        }
    } else {
        report::culprits(&mut out, &shown, &names, snapshot)?;
        report::usual_cycles(&mut out, &shown)?;
        for of in shown.iter().filter(|of| of.capture.usual.is_none()) {
            report::capture(&mut out, of, &names, (snapshot, names_process), reading.now_ns)?;
        }
    }
    out.flush()?;
    drop(out);
    let mut remarks = report::remarks::of_leftover(&leftover);
    remarks.extend(report::remarks::of_captures(&reading.snapshot));
    if shown.is_empty() {
        remarks.push(nothing(&reading, all == 0).to_owned());
    }
    remarks::write(&reading, common, &locations, &remarks)
}

/// Why there is nothing to show.
fn nothing(reading: &Reading, is_empty: bool) -> &'static str {
    match (is_empty, reading.snapshot.header.is_some()) {
        (false, _) => "No capture matches.",
        (true, true) => "Nothing was kept: rip_capture! and rip_slow_cycle! keep what a thread has recorded.",
        (true, false) => "A ring in the legacy format has no captures.",
    }
}
