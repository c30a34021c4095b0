//! What the script of a page shows: locks, threads, tasks, timelines, events and spans, as JSON.
//!
//! Lists of many rows are columns, and their texts are numbers of one list. Times are nanoseconds since `origin`. A
//! number that a script cannot tell from its neighbours is the greatest one that it can.

use read_rip_model::locks::{Object, Quantiles, Record, TaskDoes, ThreadId, task_does};
use read_rip_report::Texts;
use read_rip_report::{self as report, LockNames, printable};
use serde::Serialize;

use super::{Entry, Page};
use crate::uses::{object_name, since_words};
use crate::{Slice, SliceKind, Timeline};

/// The greatest number that a script tells from its neighbours.
const EXACT_MAX: u64 = (1 << 53) - 1;
/// A timeline has at most so many slices, the newest ones.
const SLICES_MAX: usize = 5000;
/// Lengths of time are counted in so many classes, each four times as long as the one before.
const CLASSES: usize = 20;
/// The first class goes to 2^8 ns.
const FIRST_CLASS_BITS: u32 = 8;

#[derive(Serialize)]
pub(super) struct Data<'a> {
    /// The time 0, us since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_us: Option<u64>,
    /// The time of the reading or of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<u64>,
    locks: Vec<Lock<'a>>,
    threads: Threads,
    timelines: Vec<Track>,
    events: Events,
    spans: Vec<SpanRow>,
    texts: Vec<Box<str>>,
}

#[derive(Serialize)]
struct Lock<'a> {
    name: &'a str,
    held: &'a str,
    waiters: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest: Option<u64>,
    acquisitions: u64,
    contended: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Lengths>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<Lengths>,
    lines: &'a [String],
}

/// A distribution of lengths of time.
#[derive(Serialize)]
struct Lengths {
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
    classes: Vec<u32>,
}

/// Columns of the list of threads and tasks.
#[derive(Default, Serialize)]
struct Threads {
    name: Vec<u32>,
    task: Vec<bool>,
    doing: Vec<u32>,
    place: Vec<u32>,
    holds: Vec<u32>,
}

/// The timeline of a thread or task.
#[derive(Serialize)]
struct Track {
    name: u32,
    task: bool,
    undated: usize,
    left_out: usize,
    /// Of each slice: what it is, its text, its begin, its length, whether it goes on, and its place.
    slices: Vec<[u64; 6]>,
}

/// Columns of the list of events.
#[derive(Default, Serialize)]
struct Events {
    at: Vec<Option<u64>>,
    word: Vec<u32>,
    thread: Vec<u32>,
    text: Vec<u32>,
    place: Vec<u32>,
}

#[derive(Serialize)]
struct SpanRow {
    name: u32,
    place: u32,
    open: usize,
    ended: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<[u64; 4]>,
    total: u64,
    lines: Vec<String>,
}

impl<'a> Data<'a> {
    pub(super) fn of(page: &Page<'a>) -> Data<'a> {
        let mut texts = Texts::default();
        // The empty text is number 0.
        texts.add(String::new());
        let slices =
            page.timelines.iter().flat_map(|(_, timeline)| kept(timeline)).map(|slice| slice.begin_ns);
        let events = page.log.entries.iter().filter_map(|entry| entry.at_ns);
        let now_ns = page.names.model.now_ns;
        let origin_ns = slices.chain(events).chain(now_ns).min().unwrap_or(0);
        let since = |ns: u64| exact(ns.saturating_sub(origin_ns));
        let origin_us = page.boot_realtime_ns.map(|boot_ns| exact(boot_ns.saturating_add(origin_ns) / 1000));
        let tracks = page.timelines.iter().map(|(thread, timeline)| Track {
            name: texts.add(page.names.thread(*thread)),
            task: page.names.model.threads[*thread].task.is_some(),
            undated: timeline.undated,
            left_out: timeline.slices.len() - kept(timeline).len(),
            slices: kept(timeline).iter().map(|slice| row(slice, page.names, &since, &mut texts)).collect(),
        });
        let timelines = tracks.collect();
        Data {
            origin_us,
            now: now_ns.map(since),
            locks: locks(page),
            threads: threads(page, &mut texts),
            timelines,
            events: events_of(&page.log.entries, &since, &mut texts),
            spans: spans(page, &mut texts),
            texts: texts.into_all(),
        }
    }
}

fn exact(number: u64) -> u64 {
    number.min(EXACT_MAX)
}

fn locks<'a>(page: &Page<'a>) -> Vec<Lock<'a>> {
    let rows = page.picture.locks.iter().zip(&page.records);
    rows.map(|(row, record)| Lock {
        name: &row.name,
        held: &row.held,
        waiters: row.waiters,
        longest: row.longest_ns.map(exact),
        acquisitions: exact(row.acquisitions),
        contended: exact(row.contended),
        waits: Lengths::of(record, |record| &record.waits_ns),
        holds: Lengths::of(record, |record| &record.holds_ns),
        lines: &row.lines,
    })
    .collect()
}

impl Lengths {
    fn of(record: &Record, which: impl Fn(&Record) -> &Vec<u64>) -> Option<Lengths> {
        let ascending = which(record);
        let Quantiles { p50_ns, p90_ns, p99_ns, max_ns, .. } = Quantiles::of(ascending)?;
        let [p50, p90, p99, max] = [p50_ns, p90_ns, p99_ns, max_ns].map(exact);
        let mut classes = vec![0; CLASSES];
        ascending.iter().for_each(|&length_ns| classes[class(length_ns)] += 1);
        Some(Lengths { p50, p90, p99, max, classes })
    }
}

fn class(length_ns: u64) -> usize {
    let bits = u64::BITS - length_ns.leading_zeros();
    (bits.saturating_sub(FIRST_CLASS_BITS).div_ceil(2) as usize).min(CLASSES - 1)
}

fn threads(page: &Page<'_>, texts: &mut Texts) -> Threads {
    let mut threads = Threads::default();
    for row in &page.picture.threads {
        threads.name.push(texts.add(row.name.to_string()));
        threads.task.push(row.is_task);
        threads.doing.push(texts.add(page.picture.text(row.doing).to_owned()));
        threads.place.push(texts.add(page.picture.text(row.place).to_owned()));
        threads.holds.push(row.holds);
    }
    threads
}

/// The slices that are shown.
fn kept(timeline: &Timeline) -> &[Slice] {
    &timeline.slices[timeline.slices.len().saturating_sub(SLICES_MAX)..]
}

fn row(slice: &Slice, names: &LockNames<'_>, since: &impl Fn(u64) -> u64, texts: &mut Texts) -> [u64; 6] {
    let lock = |lock: usize| names.lock(&names.model.locks[lock]);
    let (kind, text) = match &slice.kind {
        &SliceKind::Hold(of) => (0, lock(of)),
        &SliceKind::UndatedHold { lock: of, is_or_earlier } => {
            (8, format!("{}, {}", lock(of), since_words(is_or_earlier)))
        }
        &SliceKind::Wait(of) => (kind_of(of), object_name(of, names)),
        SliceKind::Kept(lock) => (1, printable(lock).into_owned()),
        SliceKind::Span(name) => (5, printable(name).into_owned()),
        &SliceKind::Task(task) if is_suspended(task, names) => (6, report::task_doing_since(task, names)),
        &SliceKind::Task(task) => (7, report::task_doing_since(task, names)),
    };
    let place = slice.location.map_or_else(String::new, |location| names.location(location));
    let length_ns = slice.end_ns.saturating_sub(slice.begin_ns);
    let [text, place] = [text, place].map(|text| u64::from(texts.add(text)));
    [kind, text, since(slice.begin_ns), exact(length_ns), u64::from(slice.is_open), place]
}

fn kind_of(awaited: Object) -> u64 {
    match awaited {
        Object::Lock(_) => 1,
        Object::Condition(_) => 2,
        Object::Unit(_) => 3,
        Object::End(_) => 4,
    }
}

fn is_suspended(task: ThreadId, names: &LockNames<'_>) -> bool {
    let thread = &names.model.threads[task];
    thread.task.as_deref().is_some_and(|task| task_does(thread, task) == TaskDoes::Suspended)
}

fn events_of(entries: &[Entry], since: &impl Fn(u64) -> u64, texts: &mut Texts) -> Events {
    let mut events = Events::default();
    for entry in entries {
        events.at.push(entry.at_ns.map(since));
        events.word.push(texts.add(entry.word.to_owned()));
        events.thread.push(texts.add(entry.thread.clone()));
        events.text.push(texts.add(logged(entry)));
        events.place.push(texts.add(entry.place.clone()));
    }
    events
}

/// What an entry says, as `read-rip log` shows it.
fn logged(entry: &Entry) -> String {
    let channel =
        if entry.channel.is_empty() { String::new() } else { format!("{}: ", printable(&entry.channel)) };
    let took = match (entry.word, entry.took_ns) {
        ("end", Some(took_ns)) => format!(", after {}", report::duration(took_ns)),
        ("end", None) => ", after an unknown time".to_owned(),
        _ => String::new(),
    };
    format!("{channel}{}{took}", printable(&entry.text))
}

fn spans(page: &Page<'_>, texts: &mut Texts) -> Vec<SpanRow> {
    let file = |path: &str| page.names.texts.file(path).to_owned();
    let of = |span: &read_rip_model::log::Span| {
        let mut lines = Vec::new();
        let one = std::slice::from_ref(span);
        let named = (&file as &dyn Fn(&str) -> String, page.log.names_process);
        // A vector can be written.
        let _ = report::spans(&mut lines, one, page.snapshot, named, page.names.model.now_ns);
        SpanRow {
            name: texts.add(printable(&span.name).into_owned()),
            place: texts.add(printable(&format!("{}:{}", file(&span.place.0), span.place.1)).into_owned()),
            open: span.open.len(),
            ended: exact(span.ended),
            took: span.took.map(|took| [took.p50_ns, took.p90_ns, took.p99_ns, took.max_ns].map(exact)),
            total: exact(span.total_ns),
            lines: report::plain_lines(&lines),
        }
    };
    page.log.spans.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_lengths_are_four_times_as_long_each_and_the_last_one_has_the_rest() {
        assert_eq!([0, 1, 255, 256, 1023, 1024, 4095, 4096].map(class), [0, 0, 0, 1, 1, 2, 2, 3]);
        assert_eq!((class(u64::MAX), class(1 << 62)), (CLASSES - 1, CLASSES - 1));
    }

    #[test]
    fn numbers_are_those_that_a_script_can_tell_apart() {
        assert_eq!([0, 1 << 53, u64::MAX].map(exact), [0, EXACT_MAX, EXACT_MAX]);
    }
}
