//! Profiles for speedscope (<https://www.speedscope.app>), in its own format: JSON that its `file-format-schema.json`
//! describes.
//!
//! * The first profile is where threads and tasks are now: the stacks of the folded lines, weighted by their numbers.
//! * Each thread and task has a profile of its waits, holds and spans, which open and close like functions. Those that
//!   do not lie within each other are in further profiles of it. In that of a task is what it does now, too.
//!
//! Times are nanoseconds since the first moment that is shown.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::folded::stacks_now;
use super::scene::Scene;
use super::timeline::Slice;
use super::uses::slice_words;
use crate::hash::HashMap;
use crate::printable::printable;
use crate::report::LockNames;

/// A line of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// All frames, numbered in the order in which they came.
#[derive(Debug, Default)]
struct Frames {
    numbers: HashMap<Frame, usize>,
    all: Vec<Frame>,
}

impl Frames {
    fn number(&mut self, frame: Frame) -> usize {
        *self.numbers.entry(frame).or_insert_with_key(|frame| {
            self.all.push(frame.clone());
            self.all.len() - 1
        })
    }
}

/// A frame opens (`O`) or closes (`C`).
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Event {
    #[serde(rename = "type")]
    kind: &'static str,
    frame: usize,
    at: u64,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Profile {
    #[serde(rename_all = "camelCase")]
    Evented { name: String, unit: &'static str, start_value: u64, end_value: u64, events: Vec<Event> },
    #[serde(rename_all = "camelCase")]
    Sampled {
        name: String,
        unit: &'static str,
        start_value: u64,
        end_value: u64,
        samples: Vec<Vec<usize>>,
        weights: Vec<usize>,
    },
}

/// Writes a scene: the profiles of its threads and tasks, and of where all of them are now. With `by_lock`, what they
/// wait for comes before the places.
///
/// # Errors
///
/// Those of `out`.
pub fn speedscope(out: &mut dyn Write, scene: &Scene<'_>, by_lock: bool) -> io::Result<()> {
    let &Scene { program, names, threads, .. } = scene;
    let mut frames = Frames::default();
    let mut is_first = true;
    let mut profile = |out: &mut dyn Write, profile: &Profile| -> io::Result<()> {
        out.write_all(if std::mem::take(&mut is_first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(out, profile).map_err(Into::into)
    };
    write!(out, "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":")?;
    serde_json::to_writer(&mut *out, &printable(program))?;
    write!(out, ",\"exporter\":\"read-rip\",\"activeProfileIndex\":0,\"profiles\":[")?;
    let now = stacks_now(scene, by_lock);
    if !now.is_empty() {
        let who = if names.model.has_tasks() { "threads and tasks" } else { "threads" };
        profile(out, &sampled(now, who, &mut frames))?;
    }
    let all = || threads.iter().flat_map(|(_, timeline)| &timeline.slices);
    let first_ns = all().map(|slice| slice.begin_ns).min().unwrap_or(0);
    for (id, timeline) in threads {
        let mut lanes: BTreeMap<usize, Vec<&Slice>> = BTreeMap::new();
        for (slice, lane) in timeline.slices.iter().zip(timeline.lanes()) {
            lanes.entry(lane).or_default().push(slice);
        }
        for (lane, slices) in &lanes {
            let name = match lane {
                0 => names.thread(*id),
                _ => format!("{}, overlapping {lane}", names.thread(*id)),
            };
            let events = events(slices, first_ns, |slice| frames.number(frame(slice, names)));
            let end_value = events.last().map_or(0, |event| event.at);
            let evented = Profile::Evented { name, unit: "nanoseconds", start_value: 0, end_value, events };
            profile(out, &evented)?;
        }
    }
    write!(out, "\n],\"shared\":{{\"frames\":")?;
    serde_json::to_writer(&mut *out, &frames.all)?;
    out.write_all(b"}}\n")
}

/// Where threads and tasks are now.
fn sampled(now: impl IntoIterator<Item = (Vec<String>, usize)>, who: &str, frames: &mut Frames) -> Profile {
    let mut number = |name| frames.number(Frame { name, file: None, line: None });
    let (samples, weights): (Vec<Vec<usize>>, Vec<usize>) = now
        .into_iter()
        .map(|(stack, threads)| (stack.into_iter().map(&mut number).collect::<Vec<usize>>(), threads))
        .unzip();
    let name = format!("where {who} are now, by number");
    let end_value = weights.iter().sum::<usize>() as u64;
    Profile::Sampled { name, unit: "none", start_value: 0, end_value, samples, weights }
}

/// What a slice is called, and where it began.
fn frame(slice: &Slice, names: &LockNames<'_>) -> Frame {
    let (name, _) = slice_words(slice, names);
    let source = slice.location.and_then(|location| names.locations.get(location).source.as_ref());
    let (file, line) = source.map(|(file, line)| (printable(file).into_owned(), *line)).unzip();
    Frame { name: name.into_owned(), file, line }
}

/// Nested slices as frames that open and close. Each closes before the frame around it.
fn events(slices: &[&Slice], first_ns: u64, mut number: impl FnMut(&Slice) -> usize) -> Vec<Event> {
    let mut events = Vec::with_capacity(2 * slices.len());
    let mut open: Vec<(usize, u64)> = Vec::new();
    let close = |(frame, end_ns): (usize, u64)| Event { kind: "C", frame, at: end_ns - first_ns };
    for slice in slices {
        while let Some(ended) = open.pop_if(|(_, end_ns)| *end_ns <= slice.begin_ns) {
            events.push(close(ended));
        }
        let frame = number(slice);
        events.push(Event { kind: "O", frame, at: slice.begin_ns - first_ns });
        open.push((frame, slice.end_ns));
    }
    events.extend(open.into_iter().rev().map(close));
    events
}

#[cfg(test)]
mod tests {
    use super::super::timeline::SliceKind;
    use super::*;

    #[test]
    fn each_frame_closes_before_the_frame_around_it() {
        let slice = |begin_ns, end_ns| {
            let kind = SliceKind::Hold(begin_ns as usize);
            Slice { kind, begin_ns, end_ns, is_open: false, location: None }
        };
        let all = [slice(10, 20), slice(10, 12), slice(12, 20), slice(20, 20), slice(20, 30)];
        let number = |slice: &Slice| (slice.end_ns - slice.begin_ns) as usize;
        let seen = events(&all.iter().collect::<Vec<_>>(), 10, number);
        let texts: Vec<String> = seen.iter().map(|it| format!("{}{}@{}", it.kind, it.frame, it.at)).collect();
        assert_eq!(
            texts,
            ["O10@0", "O2@0", "C2@2", "O8@2", "C8@10", "C10@10", "O0@10", "C0@10", "O10@10", "C10@20"]
        );
    }
}
