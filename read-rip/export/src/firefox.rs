//! A profile for the Firefox Profiler: <https://profiler.firefox.com>, in its "processed profile format".
//!
//! * Each task is a thread of a process of its own, which says that these are tasks.
//! * Each thread and task has markers: its waits, holds and spans from when to when, and its events.
//! * Each of them that exists has a sample: its stack or its awaits now, as the folded stacks have them.
//! * Those that wait for locks or hold them are those that the profiler shows first.
//!
//! Times are ms since the first moment that is shown. It keeps the whole profile in memory, because the format has one
//! table of texts for all threads.

use std::collections::HashMap;
use std::io::{self, Write};

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Marker, MarkerFieldFlags,
    MarkerFieldFormat, MarkerLocations, MarkerTiming, MarkerTypeHandle, ProcessHandle, Profile,
    ReferenceTimestamp, RuntimeSchemaMarkerField, RuntimeSchemaMarkerSchema, SamplingInterval, StackHandle,
    StringHandle, ThreadHandle, Timestamp,
};
use read_rip_model::locks::{LockId, ThreadId};
use read_rip_model::threads::ThreadState;
use read_rip_report::printable;
use read_rip_report::{LockNames, StackFrames};

use super::folded::{awaited, places};
use super::scene::Scene;
use super::timeline::{Logged, Slice, SliceKind, Timeline, of_slot};
use super::uses::{bounds, object_name, slice_words, tasks_of};

/// At most this many threads are shown before the user asks for more.
const SHOWN_FIRST: usize = 50;

/// A kind of marker: its name, what it is, what stands in the chart and in the table, and its fields.
fn schema(
    (type_name, description): (&str, &str),
    (chart_label, table_label): (&str, &str),
    fields: [(&str, &str); 3],
) -> RuntimeSchemaMarkerSchema {
    let field = |(key, label): (&str, &str)| RuntimeSchemaMarkerField {
        key: key.to_owned(),
        label: label.to_owned(),
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    };
    RuntimeSchemaMarkerSchema {
        type_name: type_name.to_owned(),
        description: Some(description.to_owned()),
        locations: MarkerLocations::MARKER_CHART | MarkerLocations::MARKER_TABLE,
        chart_label: Some(chart_label.to_owned()),
        tooltip_label: None,
        table_label: Some(table_label.to_owned()),
        fields: fields.into_iter().map(field).collect(),
        graphs: Vec::new(),
    }
}

/// A marker, with the texts of its fields.
struct TextMarker {
    kind: MarkerTypeHandle,
    /// Those with the same name are one line of the chart.
    name: StringHandle,
    category: CategoryHandle,
    texts: [StringHandle; 3],
}

impl Marker for TextMarker {
    fn marker_type(&self, _profile: &mut Profile) -> MarkerTypeHandle {
        self.kind
    }

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, index: u32) -> StringHandle {
        self.texts[index as usize]
    }

    /// It has no such fields.
    fn number_field_value(&self, _index: u32) -> f64 {
        0.0
    }
}

struct Writer<'n> {
    profile: Profile,
    names: &'n LockNames<'n>,
    /// Waits and holds.
    uses: MarkerTypeHandle,
    /// Spans and events.
    logged: MarkerTypeHandle,
    categories: HashMap<&'static str, CategoryHandle>,
    /// By the id, and whether it is that of the tasks.
    processes: HashMap<(u32, bool), ProcessHandle>,
    /// The time that is 0, ns since boot.
    zero_ns: u64,
    /// The last time that is shown, ns since boot.
    last_ns: u64,
}

/// Writes a scene.
///
/// # Errors
///
/// Those of `out`.
pub fn firefox(out: &mut dyn Write, scene: &Scene<'_>) -> io::Result<()> {
    let &Scene { program, names, threads, logged, frames, .. } = scene;
    let (zero_ns, last_ns) = bounds(threads, logged, names.model.now_ns).unwrap_or(0..=0).into_inner();
    let real_ms = scene.realtime_ns(zero_ns).map_or(0.0, |real_ns| real_ns as f64 / 1e6);
    let reference = ReferenceTimestamp::from_millis_since_unix_epoch(real_ms);
    let mut profile = Profile::new(&printable(program), reference, SamplingInterval::from_millis(1));
    profile.set_os_name("Linux");
    // All names are here: nothing is to be looked up in the files of the program.
    profile.set_symbolicated(true);
    let colours = [
        ("wait", CategoryColor::Orange),
        ("hold", CategoryColor::Blue),
        ("span", CategoryColor::Green),
        ("event", CategoryColor::Purple),
        ("task", CategoryColor::Yellow),
    ];
    let categories = colours.map(|(name, colour)| (name, profile.add_category(name, colour)));
    let categories = HashMap::from(categories);
    let uses = profile.register_marker_type(schema(
        ("Lock", "A wait for a lock, a thread or a task, a hold of a lock, or what a task does now."),
        ("{marker.data.location}", "{marker.name} {marker.data.location}"),
        [("lock", "Lock, thread or task"), ("location", "Location"), ("state", "State")],
    ));
    let of_said = profile.register_marker_type(schema(
        ("Logged", "A span, or an event, with its values."),
        ("{marker.data.text}", "{marker.data.text}"),
        [("text", "Text"), ("place", "Place"), ("state", "State")],
    ));
    let processes = HashMap::new();
    let mut writer =
        Writer { profile, names, uses, logged: of_said, categories, processes, zero_ns, last_ns };
    let mut shown_first = 0;
    for (id, timeline) in threads {
        let handle = writer.thread(*id, program, timeline);
        for slice in &timeline.slices {
            writer.slice(handle, slice);
        }
        for logged in of_slot(logged, names.model.threads[*id].slot) {
            writer.event(handle, logged);
        }
        writer.samples(handle, *id, frames);
        let thread = &names.model.threads[*id];
        if (thread.is_blocked() || !thread.holds.is_empty()) && shown_first < SHOWN_FIRST {
            shown_first += 1;
            writer.profile.add_initial_visible_thread(handle);
        }
    }
    serde_json::to_writer(out, &writer.profile).map_err(Into::into)
}

impl Writer<'_> {
    fn time(&self, at_ns: u64) -> Timestamp {
        Timestamp::from_nanos_since_reference(at_ns.saturating_sub(self.zero_ns))
    }

    fn thread(&mut self, id: ThreadId, program: &str, timeline: &Timeline) -> ThreadHandle {
        let thread = &self.names.model.threads[id];
        let begin = self.time(timeline.slices.first().map_or(self.zero_ns, |slice| slice.begin_ns));
        let key = (thread.pid, thread.task.is_some());
        let process = match self.processes.get(&key) {
            Some(process) => *process,
            None => {
                let begin = self.time(self.zero_ns);
                let name = if key.1 { tasks_of(program) } else { printable(program).into_owned() };
                let process = self.profile.add_process(&name, thread.pid, begin);
                self.processes.insert(key, process);
                process
            }
        };
        let handle = self.profile.add_thread(process, thread.tid, begin, thread.tid == thread.pid);
        self.profile.set_thread_name(handle, &self.names.track(id));
        if let Some(exited_ns) = thread.exited_ns {
            let end = self.time(exited_ns);
            self.profile.set_thread_end_time(handle, end);
        }
        handle
    }

    fn slice(&mut self, thread: ThreadHandle, slice: &Slice) {
        let (words, category) = slice_words(slice, self.names);
        let state = self.profile.intern_string(if slice.is_open { "goes on" } else { "ended" });
        let location = slice.location.map_or_else(String::new, |location| self.names.location(location));
        let location = self.profile.intern_string(&location);
        let of = self.category(category);
        let timing = MarkerTiming::Interval(self.time(slice.begin_ns), self.time(slice.end_ns));
        let lock = |id: LockId| self.names.lock(&self.names.model.locks[id]);
        let object = match &slice.kind {
            SliceKind::Wait(object) => object_name(*object, self.names),
            SliceKind::Hold(id) | SliceKind::UndatedHold { lock: id, .. } => lock(*id),
            SliceKind::Kept(lock) => printable(lock).into_owned(),
            SliceKind::Task(_) => String::new(),
            SliceKind::Span(_) => {
                // A line for all spans of a thread, because their texts have values in them.
                let (name, text) = (self.profile.intern_string(category), self.profile.intern_string(&words));
                let marker =
                    TextMarker { kind: self.logged, name, category: of, texts: [text, location, state] };
                self.profile.add_marker(thread, timing, marker);
                return;
            }
        };
        let (name, object) = (self.profile.intern_string(&words), self.profile.intern_string(&object));
        let marker = TextMarker { kind: self.uses, name, category: of, texts: [object, location, state] };
        self.profile.add_marker(thread, timing, marker);
    }

    fn event(&mut self, thread: ThreadHandle, logged: &Logged) {
        let Some(at_ns) = logged.at_ns() else { return };
        let texts = ["event", &*printable(&logged.text), &*printable(&logged.place), ""];
        let [name, text, place, state] = texts.map(|text| self.profile.intern_string(text));
        let category = self.category("event");
        let marker = TextMarker { kind: self.logged, name, category, texts: [text, place, state] };
        let timing = MarkerTiming::Instant(self.time(at_ns));
        self.profile.add_marker(thread, timing, marker);
    }

    /// Where a thread is, if it exists. The profiler shows the time of samples and no other: so there is one at the
    /// begin and at the end of all, for which it is not known where the thread was.
    fn samples(&mut self, handle: ThreadHandle, id: ThreadId, frames: &StackFrames) {
        let thread = &self.names.model.threads[id];
        let now_ns = self.names.model.now_ns.filter(|_| thread.state == ThreadState::Present);
        let mut samples = vec![(self.zero_ns, None, 0)];
        samples.extend(now_ns.map(|now_ns| (now_ns, self.stack(handle, id, frames), 1)));
        samples.push((self.last_ns, None, 0));
        for (at_ns, stack, weight) in samples {
            self.profile.add_sample(handle, self.time(at_ns), stack, CpuDelta::ZERO, weight);
        }
    }

    fn stack(&mut self, handle: ThreadHandle, id: ThreadId, frames: &StackFrames) -> Option<StackHandle> {
        let category_pair = CategoryHandle::OTHER.into();
        let waits = self.category("wait").into();
        let called = places(id, self.names, frames).into_iter().map(|place| (place, category_pair));
        let waited = awaited(id, self.names).into_iter().map(|what| (what, waits));
        let stack: Vec<FrameInfo> = called
            .chain(waited)
            .map(|(text, category_pair)| FrameInfo {
                frame: Frame::Label(self.profile.intern_string(&text)),
                category_pair,
                flags: FrameFlags::empty(),
            })
            .collect();
        self.profile.intern_stack_frames(handle, stack.into_iter())
    }

    fn category(&self, name: &str) -> CategoryHandle {
        self.categories.get(name).copied().unwrap_or(CategoryHandle::OTHER)
    }
}
