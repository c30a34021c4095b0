//! `read-rip log` and `read-rip spans`: events with values, and spans, of all threads. It formats nothing.

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use read_rip_case::{Options, Reading, Subject};
use read_rip_model::locations::{FileNames, Limits, Locations};
use read_rip_model::log::{self, Entry, EntryKind};
use read_rip_report::{self as report, Json, LogText, LogWriter};
use read_rip_ring::events::Leftover;
use read_rip_ring::{Channel, Syntax, Value};

use super::error::AppError;
use super::limits::within;
use super::matching::Pattern;
use super::output::prose;
use super::remarks;
use crate::cli::{Common, LogArgs, SpansArgs};

/// How often a living ring is read with `--follow`.
const INTERVAL: Duration = Duration::from_millis(200);

/// `read-rip log`.
pub(super) fn log(args: &LogArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let options = common.options();
    let mut out = prose(common);
    let mut shown = Shown::default();
    loop {
        let read = |subject: &Subject| read(subject, &options);
        let (reading, limits) = within(&subject, &args.time, (false, None), read, |reading| reading)?;
        // A living program may come to the first event of a channel later.
        if !args.follow {
            args.channel.iter().try_for_each(|name| channel(&reading, name).map(drop))?;
        }
        let (leftover, mut locations) =
            show(&mut out, args, (common, &options), (&reading, limits), &mut shown)?;
        out.flush()?;
        if args.follow && !reading.is_final() {
            drop(locations);
            std::thread::sleep(INTERVAL);
            continue;
        }
        let mut remarks = report::remarks::of_leftover(&leftover);
        if shown.entries == 0 {
            let is_limited = args.r#match.is_some() || !args.channel.is_empty() || args.time.is_limited();
            remarks.extend(nothing(&reading, is_limited, &mut locations));
        }
        remarks.extend(report::remarks::of_channels(&reading.snapshot));
        if args.follow {
            remarks.extend(report::remarks::of_unseen(shown.lost_words));
        }
        return remarks::write(&reading, common, &locations, &remarks);
    }
}

/// `read-rip spans`.
pub(super) fn spans(args: &SpansArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let options = common.options();
    let read = |since_ns| {
        let read = |subject: &Subject| read(subject, &options);
        within(&subject, &args.time, (false, since_ns), read, |reading| reading)
    };
    let (mut reading, limits) = read(None)?;
    let has = |entry: &Entry| limits.has(&entry.when);
    // Spans that began before the part of a recording that was read say there what they say.
    if let Some((count, period)) = args.slow.zip(reading.snapshot.period)
        && let Some(begin_ns) = earliest_of_slowest(&reading, &options, count, has)
        && begin_ns < period.since_ns
    {
        (reading, _) = read(Some(begin_ns))?;
    }
    let reading = reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(&options));
    let slots = || reading.snapshot.all_recorded();
    let (mut entries, leftover) = log::entries(&reading.snapshot, slots(), &locations, reading.horizon());
    if let Some(count) = args.slow {
        let shown = slowest(args, common, &reading, (&entries, count), has, &mut locations)?;
        let mut remarks = report::remarks::of_leftover(&leftover);
        if shown == 0 {
            remarks.extend(nothing(
                &reading,
                args.r#match.is_some() || args.time.is_limited(),
                &mut locations,
            ));
        }
        return remarks::write(&reading, common, &locations, &remarks);
    }
    entries.retain(has);
    let mut spans = log::spans(&reading.snapshot, &entries, slots(), &mut locations, reading.now_ns);
    for span in &mut spans {
        span.open.retain(|open| limits.overlap(open.since_ns, reading.now_ns));
    }
    spans.retain(|span| span.ended > 0 || !span.open.is_empty());
    let names_process = names_process(&reading);
    if let Some(pattern) = &args.r#match {
        let of = Pattern { pattern, names_process };
        spans.retain_mut(|span| {
            let is_named = pattern.is_match(&span.name)
                || pattern.is_match(&format!("{}:{}", span.place.0, span.place.1));
            if !is_named {
                span.open.retain(|open| of.has_thread_of(reading.snapshot.recorded(open.slot)));
            }
            is_named || !span.open.is_empty()
        });
    }
    let mut out = prose(common);
    if common.json {
        let mut json = Json(&mut out);
        reading.write_ring(&mut json)?;
        for span in &spans {
            json.span(span, &reading.snapshot)?;
        }
    } else {
        for process in reading.processes(&reading.threads(), "") {
            writeln!(out, "{}", process.heading)?;
        }
        let files = FileNames::choose(locations.iter());
        let file = |path: &str| files.get(path).to_owned();
        report::spans(&mut out, &spans, &reading.snapshot, (&file, names_process), reading.now_ns)?;
    }
    out.flush()?;
    drop(out);
    let mut remarks = report::remarks::of_leftover(&leftover);
    if spans.is_empty() {
        let is_limited = args.r#match.is_some() || args.time.is_limited();
        remarks.extend(nothing(&reading, is_limited, &mut locations));
    }
    remarks.extend(report::remarks::of_spans(&reading.snapshot));
    remarks::write(&reading, common, &locations, &remarks)
}

/// When the first of the longest spans began whose beginning was not read, ns since boot.
fn earliest_of_slowest(
    reading: &Reading,
    options: &Options,
    count: usize,
    has: impl Fn(&Entry) -> bool,
) -> Option<u64> {
    let snapshot = &reading.snapshot;
    let mut locations = Locations::new(snapshot, reading.resolver(options));
    let (entries, _) = log::entries(snapshot, snapshot.all_recorded(), &locations, reading.horizon());
    let slowest = log::slowest(snapshot, &entries, &mut locations);
    let shown = slowest.into_iter().filter(|ended| has(&entries[ended.end])).take(count);
    let without = shown.filter(|ended| ended.begin.is_none()).map(|ended| &entries[ended.end]);
    let begun_ns = |end: &Entry| match end.kind {
        EntryKind::End(took_ns) => end.when.time_ns?.checked_sub(took_ns?),
        _ => None,
    };
    without.filter_map(begun_ns).min()
}

/// Shows the ends of the longest spans, with what their beginnings say. Returns how many.
fn slowest<'r>(
    args: &SpansArgs,
    common: &Common,
    reading: &'r Reading,
    (entries, count): (&[Entry], usize),
    has: impl Fn(&Entry) -> bool,
    locations: &mut Locations<'r>,
) -> Result<u64, AppError> {
    let slowest = log::slowest(&reading.snapshot, entries, locations);
    let lines = slowest.into_iter().filter(|ended| has(&entries[ended.end])).map(|ended| {
        let end = &entries[ended.end];
        (end, ended.begin.map_or(end, |begin| &entries[begin]))
    });
    let mut out = prose(common);
    if common.json {
        reading.write_ring(&mut Json(&mut out))?;
    }
    let mut writer = Writer { reading, locations, json: common.json, pattern: args.r#match.as_ref() };
    let shown = writer.write(&mut out, &mut LogWriter::default(), lines, count)?;
    out.flush()?;
    Ok(shown)
}

/// Reads a ring. Only rings have events.
pub(super) fn read(subject: &Subject, options: &Options) -> Result<Reading, AppError> {
    if !subject.is_ring() {
        return Err(AppError::NoEvents { path: subject.path().into_owned() });
    }
    Ok(Reading::of(subject, options)?.with_present_names())
}

pub(super) fn channel<'r>(reading: &'r Reading, name: &str) -> Result<&'r Channel, AppError> {
    let channels = || reading.snapshot.channels.iter().flatten();
    channels().find(|channel| channel.name == name).ok_or_else(|| AppError::NoChannel {
        path: reading.path.clone(),
        name: name.to_owned(),
        known: channels().map(|channel| channel.name.clone()).collect(),
    })
}

/// What was shown so far.
#[derive(Default)]
struct Shown {
    writer: LogWriter,
    entries: u64,
    /// For each slot and channel, the generation and the first sequence that was not read yet.
    next: HashMap<(u64, Option<usize>), (u32, u64)>,
    /// Words that were overwritten between two readings.
    lost_words: u64,
    has_ring: bool,
}

impl Shown {
    /// Whether an event was not read before.
    fn is_new(&self, entry: &Entry, reading: &Reading) -> bool {
        let slot = reading.snapshot.recorded(entry.slot);
        let next = self
            .next
            .get(&(slot.index, slot.channel()))
            .filter(|(generation, _)| *generation == slot.generation);
        next.is_none_or(|&(_, next)| entry.event.sequence >= next)
    }

    /// Everything in a reading was read.
    fn note(&mut self, reading: &Reading) {
        for slot in reading.snapshot.slots.iter().chain(&reading.snapshot.histories) {
            let key = (slot.index, slot.channel());
            let next = slot.words_from + slot.words.len() as u64;
            if let Some(&(generation, before)) = self.next.get(&key)
                && generation == slot.generation
            {
                self.lost_words += slot.words_from.saturating_sub(before);
            }
            self.next.insert(key, (slot.generation, next));
        }
    }
}

/// Shows the entries of a reading that were not shown before.
fn show<'r>(
    out: &mut impl Write,
    args: &LogArgs,
    (common, options): (&Common, &Options),
    (reading, limits): (&'r Reading, Limits),
    shown: &mut Shown,
) -> Result<(Leftover, Locations<'r>), AppError> {
    let snapshot = &reading.snapshot;
    let mut locations = Locations::new(snapshot, reading.resolver(options));
    let (mut entries, leftover) =
        log::entries(snapshot, snapshot.all_recorded(), &locations, reading.horizon());
    let of_channel = |entry: &Entry| {
        let name = snapshot.recorded(entry.slot).channel().and_then(|channel| snapshot.channel_name(channel));
        args.channel.is_empty() || args.channel.iter().any(|wanted| Some(&**wanted) == name)
    };
    entries.retain(|entry| {
        let is_level = match entry.kind {
            EntryKind::Event(level) => level >= args.level.into(),
            EntryKind::Begin | EntryKind::End(_) => !args.no_spans,
        };
        is_level && of_channel(entry) && limits.has(&entry.when) && shown.is_new(entry, reading)
    });
    shown.note(reading);
    if common.json && !shown.has_ring {
        reading.write_ring(&mut Json(&mut *out))?;
        shown.has_ring = true;
    }
    let pattern = args.r#match.as_ref();
    let mut writer = Writer { reading, locations: &mut locations, json: common.json, pattern };
    let lines = entries.iter().map(|entry| (entry, entry));
    shown.entries += writer.write(out, &mut shown.writer, lines, usize::MAX)?;
    Ok((leftover, locations))
}

/// Writes entries, as text or as JSON.
struct Writer<'w, 'r> {
    reading: &'r Reading,
    locations: &'w mut Locations<'r>,
    json: bool,
    /// Only what matches is written.
    pattern: Option<&'w regex::Regex>,
}

impl Writer<'_, '_> {
    /// Writes at most so many entries, each with what another one says. Returns how many.
    fn write<'e>(
        &mut self,
        out: &mut impl Write,
        writer: &mut LogWriter,
        lines: impl Iterator<Item = (&'e Entry, &'e Entry)>,
        at_most: usize,
    ) -> Result<u64, AppError> {
        let snapshot = &self.reading.snapshot;
        let mut find = |entry: &Entry| self.locations.find(snapshot.recorded(entry.slot), &entry.event);
        let lines: Vec<_> = lines.map(|(entry, said)| (entry, said, find(said))).collect();
        let files = FileNames::choose(self.locations.iter());
        let locations = &*self.locations;
        let texts = report::location_texts(locations, files, false);
        let names_process = names_process(self.reading);
        let matching = self.pattern.map(|pattern| Pattern { pattern, names_process });
        let mut written = 0;
        for (entry, said, place) in lines {
            if written == at_most {
                break;
            }
            let slot = snapshot.recorded(entry.slot);
            let text = log::text(said.kind, slot, &said.event, locations.get(place), locations);
            let line = texts.line_of(locations.get(place));
            if matching.is_some_and(|of| {
                !of.has_thread_of(slot) && !of.pattern.is_match(&text) && !of.pattern.is_match(&line)
            }) {
                continue;
            }
            written += 1;
            if !self.json {
                writer.entry(out, entry, (&text, &line), snapshot, names_process)?;
                continue;
            }
            let site = locations.get(place).sites.first().map(|&at| locations.site(at));
            let values: Vec<Value> = match said.kind {
                EntryKind::End(_) => Vec::new(),
                _ => slot.values(said.event.operands.clone()).map(|values| values.values).unwrap_or_default(),
            };
            let logged = LogText {
                text: &text,
                span: site.map_or("", |site| &site.label),
                format: site.map_or("", |site| &site.format),
                syntax: site.map_or(Syntax::Rust, |site| site.flags.syntax()),
                values: &values,
                place: site.map(|site| (&*site.file, site.line)),
            };
            Json(&mut *out).entry(entry, &logged, snapshot)?;
        }
        Ok(written as u64)
    }
}

/// Whether several processes share the ring.
pub(super) fn names_process(reading: &Reading) -> bool {
    let own = reading.pid();
    reading.snapshot.slots.iter().any(|slot| Some(slot.pid) != own)
}

/// Why there is nothing to show.
fn nothing(reading: &Reading, is_limited: bool, locations: &mut Locations<'_>) -> Vec<String> {
    let has_sites = reading.snapshot.sites.iter().any(|site| site.kind.has_values());
    let why = match (has_sites, is_limited) {
        (true, true) => return vec!["Nothing in the record matches.".to_owned()],
        (true, false) => {
            "The record has no events: the program has not recorded any, or later words replaced them."
        }
        (false, _) => "The program has no events and no spans: rip_event! and rip_span! record them.",
    };
    [why.to_owned()].into_iter().chain(report::remarks::of_filter(locations)).collect()
}
