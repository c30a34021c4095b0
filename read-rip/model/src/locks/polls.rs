//! How long polls took, by the place of their tasks, and which were the longest.
//!
//! The ring has counts and the longest polls that have ended. What is polled at this moment comes from the tasks. It
//! judges nothing: a long poll that has ended is no finding.

use foldhash::HashMap;
use read_rip_ring::{Clock, Snapshot, TaskKind};

use super::{LockModel, Quantiles, ThreadId, task_place};
use crate::locations::{LocationId, Locations};

#[derive(Debug, Default)]
pub struct Polls {
    /// Whether the program counts polls.
    pub are_counted: bool,
    /// The places, the one with the longest poll first.
    pub places: Vec<PollsAt>,
    /// The longest polls of each place, and those that have not ended, the longest first.
    pub longest: Vec<SlowPoll>,
}

/// The polls of the tasks that were made at a place.
#[derive(Debug)]
pub struct PollsAt {
    pub place: PollPlace,
    /// How long the polls took that have ended.
    pub polls: Option<Quantiles>,
    /// How long after a wake, or after the task was made, the poll began that answered it.
    pub delays: Option<Quantiles>,
}

/// Where tasks are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollPlace {
    pub pid: u32,
    /// Where they are made; `None`: all places that have no room of their own.
    pub made_at: Option<LocationId>,
    /// Their name, if it says of which kind they are; may be empty.
    pub name: String,
}

#[derive(Debug)]
pub struct SlowPoll {
    /// Where the task was made; `None` if that is not known.
    pub made_at: Option<LocationId>,
    pub pid: u32,
    /// The task, as the id of a thread.
    pub task: u32,
    /// The task's name; may be empty.
    pub name: String,
    /// The thread that polled it, by its id; `None` if that is not known.
    pub tid: Option<u32>,
    /// That thread, if it is in the model.
    pub thread: Option<ThreadId>,
    /// When it began, ns since boot; `None` if that is not known.
    pub began_ns: Option<u64>,
    /// How long it took, ns, or has taken so far.
    pub took_ns: u64,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Where the task recorded something last in the poll, if that has ended. Otherwise, where the task is now.
    pub location: Option<LocationId>,
    /// Whether most of it was the poll of another task that is listed too: a connection polls a request.
    pub is_of_inner: bool,
}

impl SlowPoll {
    /// Whether most of it was the other poll. Polls of a thread nest.
    fn is_mostly(&self, inner: &SlowPoll) -> bool {
        let (Some(began), Some(inner_began)) = (self.began_ns, inner.began_ns) else { return false };
        self.tid.is_some()
            && (self.pid, self.tid) == (inner.pid, inner.tid)
            && self.task != inner.task
            && (began..began.saturating_add(self.took_ns)).contains(&inner_began)
            && inner.took_ns <= self.took_ns
            && inner.took_ns >= self.took_ns / 2
    }
}

impl Polls {
    /// The polls of a snapshot, of which this is the model.
    pub fn of(snapshot: &Snapshot, model: &LockModel, locations: &mut Locations<'_>) -> Polls {
        let header = snapshot.header.as_ref();
        let clock = header.and_then(|header| header.clock);
        let mut polls =
            Polls { are_counted: header.is_some_and(|header| header.polls.capacity > 0), ..Polls::default() };
        // The last one that had an id is the one that polled last.
        let by_id: HashMap<(u32, u32), ThreadId> =
            model.threads.iter().enumerate().map(|(id, thread)| ((thread.pid, thread.tid), id)).collect();
        for of in &snapshot.polls {
            let made_at = of.location.map(|address| locations.find_location(of.pid, address));
            let place = PollPlace { pid: of.pid, made_at, name: of.name.clone() };
            let [of_polls, delays] = [&of.polls, &of.delays].map(Quantiles::of_counts);
            polls.places.push(PollsAt { place, polls: of_polls, delays });
            for long in &of.longest {
                let began_ns =
                    clock.and_then(|clock: Clock| clock.boottime_ns(long.began_ticks, 0, model.now_ns));
                polls.longest.push(SlowPoll {
                    made_at,
                    pid: long.pid,
                    task: long.task,
                    name: long.name.clone(),
                    tid: long.tid,
                    thread: long.tid.and_then(|tid| by_id.get(&(long.pid, tid)).copied()),
                    began_ns,
                    took_ns: long.took_ns,
                    has_ended: true,
                    location: long.last_pc.map(|pc| locations.find_in(long.pid, pc)),
                    is_of_inner: false,
                });
            }
        }
        polls.longest.extend((0..model.threads.len()).filter_map(|id| present(model, id)));
        polls.places.sort_by_key(|of| std::cmp::Reverse(of.polls.map_or(0, |polls| polls.max_ns)));
        polls.longest.sort_by_key(|poll| std::cmp::Reverse(poll.took_ns));
        let is_mostly = |outer: &SlowPoll| polls.longest.iter().any(|inner| outer.is_mostly(inner));
        let of_inner: Vec<bool> = polls.longest.iter().map(is_mostly).collect();
        polls.longest.iter_mut().zip(of_inner).for_each(|(poll, of_inner)| poll.is_of_inner = of_inner);
        polls
    }
}

/// The poll that a task is in, if it is known when it began.
fn present(model: &LockModel, id: ThreadId) -> Option<SlowPoll> {
    let thread = &model.threads[id];
    let task = thread.task.as_deref()?;
    let is_polled = task.is_polled && task.kind == TaskKind::Async && task.is_since_exact;
    let began_ns = task.since_ns.filter(|_| is_polled)?;
    let place = task_place(thread, task);
    Some(SlowPoll {
        made_at: task.made_at,
        pid: thread.pid,
        task: thread.tid,
        name: thread.name.clone(),
        tid: task.thread.map(|by| model.threads[by].tid),
        thread: task.thread,
        began_ns: Some(began_ns),
        took_ns: model.now_ns?.checked_sub(began_ns)?,
        has_ended: false,
        location: place.location.filter(|_| !place.is_where_made),
        is_of_inner: false,
    })
}
