//! What spans took, by their name and place, and which are open.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use read_rip_ring::{Snapshot, Value};

use super::{Entry, EntryKind, Usage};
use crate::locations::Locations;
use crate::locks::Quantiles;

/// All spans of one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// The source file, as the compiler knew it, and the line.
    pub place: (String, u32),
    /// How many ends the record still has.
    pub ended: u64,
    /// How long those took together whose times are known, ns.
    pub total_ns: u64,
    /// How long they took, ns; `None` if no time is known.
    pub took: Option<Quantiles>,
    /// The one that took the longest.
    pub longest: Option<Longest>,
    /// What threads used in those that asked the kernel; `None` if none did.
    pub usage: Option<UsageOfSpans>,
    /// Those that are open now, the oldest first.
    pub open: Vec<OpenSpan>,
}

/// The span that took the longest.
#[derive(Clone, Debug, PartialEq)]
pub struct Longest {
    /// The thread's slot, as an index into those of the snapshot.
    pub slot: usize,
    /// When it ended, ns since boot.
    pub ended_ns: u64,
    /// What the thread used in it, if it asked the kernel.
    pub usage: Option<Usage>,
}

/// What threads used in some spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageOfSpans {
    /// How many spans these are.
    pub count: u64,
    /// What was used in all of them together.
    pub sum: Usage,
}

/// A span that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenSpan {
    /// The thread's slot, as an index into those of the snapshot.
    pub slot: usize,
    /// When it began, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
    /// Its first value.
    pub value: Option<Value>,
}

/// The spans of these entries, and the open ones of these slots. Those that are open come first, then those that took
/// the most time.
pub fn spans(
    snapshot: &Snapshot,
    entries: &[Entry],
    slots: impl Iterator<Item = usize>,
    locations: &mut Locations<'_>,
    now_ns: Option<u64>,
) -> Vec<Span> {
    let mut all: BTreeMap<(String, String, u32), (Span, Vec<u64>)> = BTreeMap::new();
    for entry in entries {
        let EntryKind::End(took_ns) = entry.kind else { continue };
        let slot = snapshot.recorded(entry.slot);
        let location = locations.find(slot, &entry.event);
        let (span, times) = of(&mut all, locations.get(location).sites.first().copied(), locations);
        span.ended += 1;
        if let Some(usage) = &entry.usage {
            match &mut span.usage {
                Some(all) => {
                    all.count += 1;
                    all.sum.add(usage);
                }
                None => span.usage = Some(UsageOfSpans { count: 1, sum: **usage }),
            }
        }
        let Some(took_ns) = took_ns else { continue };
        span.total_ns = span.total_ns.saturating_add(took_ns);
        if times.iter().all(|&other| other < took_ns) {
            span.longest = entry.when.time_ns.map(|ended_ns| Longest {
                slot: entry.slot,
                ended_ns,
                usage: entry.usage.as_deref().copied(),
            });
        }
        times.push(took_ns);
    }
    for index in slots {
        let slot = snapshot.recorded(index);
        for open in &slot.spans {
            let site = locations.site_at(slot.pid, open.pc);
            let (span, _) = of(&mut all, site, locations);
            let since_ns = open.since_ticks.and_then(|ticks| locations.moment(slot, ticks, now_ns));
            span.open.push(OpenSpan { slot: index, since_ns, value: open.value.clone() });
        }
    }
    let mut spans: Vec<Span> = all
        .into_values()
        .map(|(mut span, mut times)| {
            times.sort_unstable();
            span.took = Quantiles::of(&times);
            span.open.sort_by_key(|open| open.since_ns.unwrap_or(u64::MAX));
            span
        })
        .collect();
    spans.sort_by_key(|span| std::cmp::Reverse((!span.open.is_empty(), span.total_ns, span.ended)));
    spans
}

/// A span that has ended: its end and its beginning, as indices into the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its end. It says how long the span took.
    pub end: usize,
    /// Its beginning; `None` if later words have replaced it, or if it is not among the entries.
    pub begin: Option<usize>,
}

/// The spans that have ended and whose lengths are known, the longest first.
pub fn slowest(snapshot: &Snapshot, entries: &[Entry], locations: &mut Locations<'_>) -> Vec<Ended> {
    // The sites of a span's beginning and of its end have one name and one place.
    let mut spans: HashMap<(String, String, u32), usize> = HashMap::new();
    let mut span_of_site: HashMap<usize, usize> = HashMap::new();
    let mut open: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    let mut ended = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        if let EntryKind::Event(_) = entry.kind {
            continue;
        }
        let location = locations.find(snapshot.recorded(entry.slot), &entry.event);
        let Some(&site) = locations.get(location).sites.first() else { continue };
        let span = *span_of_site.entry(site).or_insert_with(|| {
            let site = locations.site(site);
            let next = spans.len();
            *spans.entry((site.label.to_string(), site.file.to_string(), site.line)).or_insert(next)
        });
        let of_thread = open.entry((entry.slot, span)).or_default();
        match entry.kind {
            EntryKind::End(took_ns) => {
                let begin = of_thread.pop();
                ended.extend(took_ns.map(|took_ns| (took_ns, Ended { end: at, begin })));
            }
            _ => of_thread.push(at),
        }
    }
    ended.sort_by_key(|&(took_ns, _)| std::cmp::Reverse(took_ns));
    ended.into_iter().map(|(_, ended)| ended).collect()
}

/// The spans of a site's place.
fn of<'m>(
    all: &'m mut BTreeMap<(String, String, u32), (Span, Vec<u64>)>,
    site: Option<usize>,
    locations: &Locations<'_>,
) -> &'m mut (Span, Vec<u64>) {
    let (name, file, line) = site
        .map(|site| locations.site(site))
        .map_or_else(Default::default, |site| (site.label.to_string(), site.file.to_string(), site.line));
    all.entry((name.clone(), file.clone(), line)).or_insert_with(|| {
        let span = Span {
            name,
            place: (file, line),
            ended: 0,
            total_ns: 0,
            took: None,
            longest: None,
            usage: None,
            open: Vec::new(),
        };
        (span, Vec::new())
    })
}
