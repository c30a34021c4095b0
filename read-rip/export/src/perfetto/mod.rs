//! A Perfetto trace, as its viewer and its trace processor read it: packets of protobuf, one after the other.
//!
//! * Each thread is a track of its process, with slices of its waits, holds and spans, and its events. What does not
//!   nest in these is in tracks below the thread: in a track, the end of a slice is that of the innermost one.
//! * Each task is a track below "tasks of PROGRAM", with the same slices, and one of what it does now.
//! * Each lock is a track below "locks of PROGRAM", with slices of its holders, and a counter of its waiters.
//!   Those for which threads waited longest come first.
//! * An arrow leads from a hold to the one that its release made possible.
//! * Each processor is a track, if the recording has the kernel's scheduler. Then each thread has a track that says
//!   when it runs, could run and sleeps, and who woke it.
//!
//! Times are ns since boot. The first packet says which moment of that clock is which date.

mod messages;
mod packets;
mod schedule;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use read_rip_model::locks::{LockId, ThreadId};
use read_rip_report::LockNames;
use read_rip_report::{printable, used};

use self::messages::{
    ChildOrdering, CounterDescriptor, ProcessDescriptor, SiblingMerge, ThreadDescriptor, TrackDescriptor,
};
use self::packets::{Category, Packets, What};
use super::scene::Scene;
use super::timeline::{lanes, of_slot};
use super::uses::{
    Arrow, Contention, LockUses, bounds, lock_uses, locks_of, processes, processes_of_tasks, slice_words,
    tasks_of,
};

/// Linux gives no larger id to a process or thread, and readers have a meaning of their own for 0.
const ID_MAX: u32 = 1 << 22;

/// A slice of a track, from when to when, and its index in its list.
struct Drawn {
    begin_ns: u64,
    end_ns: u64,
    index: usize,
}

/// The slices of each lane.
fn by_lane(times: impl Iterator<Item = (u64, u64)>, lanes: Vec<usize>) -> BTreeMap<usize, Vec<Drawn>> {
    let mut drawn: BTreeMap<usize, Vec<Drawn>> = BTreeMap::new();
    for (index, ((begin_ns, end_ns), lane)) in times.zip(lanes).enumerate() {
        drawn.entry(lane).or_default().push(Drawn { begin_ns, end_ns, index });
    }
    drawn
}

struct Writer<'w, 'n> {
    packets: Packets<'w>,
    names: &'n LockNames<'n>,
    /// The track of each process.
    processes: BTreeMap<u32, u64>,
    /// The track of the tasks of each process that has some.
    tasks: BTreeMap<u32, u64>,
    next_track: u64,
}

/// Writes a scene.
///
/// # Errors
///
/// Those of `out`.
pub fn perfetto(out: &mut dyn Write, scene: &Scene<'_>) -> io::Result<()> {
    let &Scene { program, names, threads, logged, contention, schedule, .. } = scene;
    let locks = lock_uses(threads);
    // The trace processor knows no date before the moment of which it knows both times.
    let first_ns = bounds(threads, logged, names.model.now_ns).map_or(0, |bounds| *bounds.start());
    let clock = scene.realtime_ns(first_ns).map(|real_ns| (first_ns, real_ns));
    let packets = Packets::new(out, clock)?;
    // Numbers of other tracks are random, so those of two processes must differ in what is not counted.
    let next_track = u64::from(names.model.pid) << 32 | 1;
    let mut writer =
        Writer { packets, names, processes: BTreeMap::new(), tasks: BTreeMap::new(), next_track };
    for pid in processes(threads, &locks, names) {
        writer.process(pid, program)?;
    }
    for pid in processes_of_tasks(threads, names) {
        let track = writer.group(tasks_of(program), pid)?;
        writer.tasks.insert(pid, track);
    }
    let shown = threads.iter().map(|(id, _)| *id).collect();
    let (from, to) = arrows(locks.keys().flat_map(|lock| contention.arrows(*lock, &shown)));
    let arrows = |ends: &Ends, thread, slice| ends.get(&(thread, slice)).cloned().unwrap_or_default();
    // An id is that of its last owner.
    let owners: HashMap<(u32, u32), ThreadId> =
        threads.iter().map(|(id, _)| (writer.ids(*id), *id)).collect();
    for (id, timeline) in threads {
        let is_owner = owners.get(&writer.ids(*id)) == Some(id);
        let track = writer.thread(*id, is_owner)?;
        let what = |index: usize| {
            let slice = &timeline.slices[index];
            let (name, category) = slice_words(slice, names);
            let category = Category::of(category);
            What {
                name: name.into_owned(),
                is_common: category != Category::Span,
                category: Some(category),
                location: slice.location,
                is_open: slice.is_open,
                usage: slice.usage.as_deref().map_or_else(String::new, used),
                arrows_from: arrows(&from, *id, index),
                arrows_to: arrows(&to, *id, index),
                ..What::default()
            }
        };
        let times = timeline.slices.iter().map(|slice| (slice.begin_ns, slice.end_ns));
        for (lane, slices) in by_lane(times, timeline.lanes()) {
            let lane = if lane == 0 { track } else { writer.lane("overlapping", track, 0)? };
            writer.slices(lane, slices, what)?;
        }
        for logged in of_slot(logged, names.model.threads[*id].slot) {
            if let Some(at_ns) = logged.at_ns() {
                let name = printable(&logged.text).into_owned();
                let place = printable(&logged.place).into_owned();
                let what = What { name, place, category: Some(Category::Event), ..What::default() };
                writer.packets.instant(track, at_ns, what, names)?;
            }
        }
    }
    writer.locks(program, &locks, contention)?;
    let drawn: HashSet<u32> = owners.keys().map(|(_, tid)| *tid).collect();
    writer.schedule(schedule, |tid| drawn.contains(&tid))
}

/// The arrows of all locks, by the slices in which they begin and end.
type Ends = HashMap<(ThreadId, usize), Vec<u64>>;

fn arrows<'a>(arrows: impl Iterator<Item = &'a Arrow>) -> (Ends, Ends) {
    let (mut from, mut to) = (Ends::new(), Ends::new());
    for (arrow, number) in arrows.zip(1..) {
        from.entry((arrow.released.thread, arrow.released.slice)).or_default().push(number);
        to.entry((arrow.acquired.thread, arrow.acquired.slice)).or_default().push(number);
    }
    (from, to)
}

/// A number as readers have it, if it can be the id of a process or thread.
fn id(number: u32) -> Option<i32> {
    i32::try_from(number).ok().filter(|_| (1..=ID_MAX).contains(&number))
}

impl Writer<'_, '_> {
    fn ids(&self, thread: ThreadId) -> (u32, u32) {
        let thread = &self.names.model.threads[thread];
        (thread.pid, thread.tid)
    }

    fn track(&mut self, track: TrackDescriptor) -> io::Result<u64> {
        let uuid = self.next_track;
        self.next_track += 1;
        self.packets.track(TrackDescriptor { uuid, ..track })?;
        Ok(uuid)
    }

    fn process(&mut self, pid: u32, program: &str) -> io::Result<()> {
        let process_name = printable(program).into_owned();
        let track = match id(pid) {
            Some(pid) => TrackDescriptor {
                process: Some(ProcessDescriptor { pid, process_name }),
                ..TrackDescriptor::default()
            },
            None => {
                TrackDescriptor { name: Some(format!("{process_name}[{pid}]")), ..TrackDescriptor::default() }
            }
        };
        let uuid = self.track(track)?;
        self.processes.insert(pid, uuid);
        Ok(())
    }

    /// A track of a process for other tracks, which have ranks.
    fn group(&mut self, name: String, pid: u32) -> io::Result<u64> {
        self.track(TrackDescriptor {
            name: Some(name),
            parent_uuid: self.processes.get(&pid).copied(),
            child_ordering: Some(ChildOrdering::Explicit.into()),
            sibling_merge_behavior: Some(SiblingMerge::None.into()),
            ..TrackDescriptor::default()
        })
    }

    /// The track of a thread or task. A thread that does not own its id any more has a track without an id.
    fn thread(&mut self, thread: ThreadId, is_owner: bool) -> io::Result<u64> {
        let (pid, tid) = self.ids(thread);
        if let Some(task) = self.names.model.threads[thread].task.as_deref() {
            return self.track(TrackDescriptor {
                name: Some(self.names.thread(thread)),
                parent_uuid: self.tasks.get(&pid).copied(),
                // By their numbers.
                sibling_order_rank: i32::try_from(task.number).ok(),
                sibling_merge_behavior: Some(SiblingMerge::ByKey.into()),
                sibling_merge_key_int: Some(thread as u64),
                ..TrackDescriptor::default()
            });
        }
        let name = &self.names.model.threads[thread].name;
        let parent_uuid = self.processes.get(&pid).copied();
        match id(pid).zip(id(tid)).filter(|_| is_owner) {
            Some((pid, tid)) => {
                let thread_name = printable(name).into_owned();
                let thread = Some(ThreadDescriptor { pid, tid, thread_name });
                self.track(TrackDescriptor { thread, parent_uuid, ..TrackDescriptor::default() })
            }
            None => self.lane(&self.names.thread(thread), parent_uuid.unwrap_or_default(), thread as u64),
        }
    }

    /// A track below another one. Those with the same key are drawn as one.
    fn lane(&mut self, name: &str, parent_uuid: u64, key: u64) -> io::Result<u64> {
        self.track(TrackDescriptor {
            name: Some(name.to_owned()),
            parent_uuid: Some(parent_uuid),
            sibling_merge_behavior: Some(SiblingMerge::ByKey.into()),
            sibling_merge_key_int: Some(key),
            ..TrackDescriptor::default()
        })
    }

    /// Slices that lie within each other or apart, by their begins.
    fn slices(&mut self, track: u64, slices: Vec<Drawn>, what: impl Fn(usize) -> What) -> io::Result<()> {
        let mut ends: Vec<u64> = Vec::new();
        for slice in slices {
            while let Some(end_ns) = ends.pop_if(|end_ns| *end_ns <= slice.begin_ns) {
                self.packets.end(track, end_ns)?;
            }
            self.packets.begin(track, slice.begin_ns, what(slice.index), self.names)?;
            ends.push(slice.end_ns);
        }
        ends.into_iter().rev().try_for_each(|end_ns| self.packets.end(track, end_ns))
    }

    /// The tracks of all locks, those with the longest waits first.
    fn locks(
        &mut self,
        program: &str,
        locks: &BTreeMap<LockId, LockUses>,
        contention: &Contention,
    ) -> io::Result<()> {
        let waited_ns = |uses: &LockUses| {
            uses.waits.iter().fold(0u64, |sum, wait| sum.saturating_add(wait.end_ns - wait.begin_ns))
        };
        let mut all: Vec<(&LockId, &LockUses)> = locks.iter().collect();
        all.sort_by_cached_key(|(id, uses)| (std::cmp::Reverse(waited_ns(uses)), **id));
        let mut groups: HashMap<u32, u64> = HashMap::new();
        for (rank, (id, uses)) in all.into_iter().enumerate() {
            let lock = &self.names.model.locks[*id];
            let group = match groups.get(&lock.pid) {
                Some(group) => *group,
                None => {
                    let group = self.group(locks_of(program), lock.pid)?;
                    groups.insert(lock.pid, group);
                    group
                }
            };
            let rank = i32::try_from(rank).unwrap_or(i32::MAX);
            self.lock(*id, uses, contention.waiters(*id), (group, rank))?;
        }
        Ok(())
    }

    /// The tracks of a lock: that of its holders, and the counter of its waiters.
    fn lock(
        &mut self,
        id: LockId,
        uses: &LockUses,
        waiters: &[(u64, usize)],
        (group, rank): (u64, i32),
    ) -> io::Result<()> {
        let name = self.names.lock(&self.names.model.locks[id]);
        let track = self.track(TrackDescriptor {
            name: Some(name.clone()),
            parent_uuid: Some(group),
            sibling_order_rank: Some(rank),
            sibling_merge_behavior: Some(SiblingMerge::ByKey.into()),
            sibling_merge_key_int: Some(id as u64),
            ..TrackDescriptor::default()
        })?;
        // Readers hold a lock at the same time.
        let times = || uses.holds.iter().map(|hold| (hold.begin_ns, hold.end_ns));
        let names = self.names;
        let what = |index: usize| {
            let hold = &uses.holds[index];
            What {
                name: names.thread(hold.thread),
                is_common: true,
                category: Some(Category::Holder),
                is_open: hold.is_open,
                ..What::default()
            }
        };
        for (lane, slices) in by_lane(times(), lanes(times())) {
            let lane = if lane == 0 { track } else { self.lane(&name, group, id as u64)? };
            self.slices(lane, slices, what)?;
        }
        if !waiters.is_empty() {
            let counter = self.track(TrackDescriptor {
                name: Some(format!("waiters of {name}")),
                parent_uuid: Some(group),
                sibling_order_rank: Some(rank),
                counter: Some(CounterDescriptor { unit_name: "waiters".to_owned() }),
                ..TrackDescriptor::default()
            })?;
            for &(at_ns, count) in waiters {
                self.packets.count(counter, at_ns, count)?;
            }
        }
        Ok(())
    }
}
