//! [`Traced`]: a future with a slot of its own; [`Blocking`]: a call with one.

use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::polling::{Polling, PollingHere};
use crate::lock::caller;
use crate::process::instance;
use crate::process::task_slot::TaskSlot;
use crate::process::task_waker::Wakers;
use librip_format::{
    SITE_WRAPPER, TASK_ASYNC, TASK_BLOCKING, TASK_COUNTS_WAKES, TASK_LOCAL, TASK_NAME_IS_KIND,
    WAKERS_UNKNOWN, task_origin,
};

/// A future that is recorded as a task.
///
/// Make it where the task is spawned: `spawn(traced(future))`. The place of this call is that of the task. Until the
/// future is ready or dropped, its task exists.
///
/// Within another task it is a task of its own, which the outer one polls.
///
/// # Examples
///
/// ```
/// # fn spawn(_: impl Future<Output = ()>) {}
/// spawn(librip::task::traced(async { librip::rip_snap!("runs") }));
/// ```
#[track_caller]
pub fn traced<F: Future>(future: F) -> Traced<F> {
    Builder::new().traced(future)
}

/// Says more about a task than [`traced`] does.
///
/// # Examples
///
/// ```
/// # fn spawn_local(_: impl Future<Output = ()>) {}
/// spawn_local(librip::task::Builder::new().name("ticker").local().traced(async {}));
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Builder<'a> {
    name: &'a str,
    flags: u64,
    workers: u64,
    runtime: u32,
}

impl Default for Builder<'_> {
    fn default() -> Self {
        Builder::new()
    }
}

impl<'a> Builder<'a> {
    /// A task of which nothing is said.
    pub fn new() -> Builder<'a> {
        Builder { name: "", flags: TASK_COUNTS_WAKES, workers: 0, runtime: 0 }
    }

    /// A name, of which 40 bytes are kept.
    pub fn name(self, name: &'a str) -> Builder<'a> {
        Builder { name, ..self }
    }

    /// A name that says of which kind the task is, as `GET /orders/{id}` does. Polls are counted for each of these
    /// names and not only for each place: see [`Polls`](crate::Polls). Use it for few names.
    pub fn kind_name(self, name: &'a str) -> Builder<'a> {
        Builder { name, flags: self.flags | TASK_NAME_IS_KIND, ..self }
    }

    /// Only one thread polls the task.
    pub fn local(self) -> Builder<'a> {
        Builder { flags: self.flags | TASK_LOCAL, ..self }
    }

    /// The executor: a number that tells it from others of this process, not 0, and how many workers it has, each of
    /// which may poll this task; 0 if none does, or if that is not known. If all of them are stuck in polls, no such
    /// task of the executor goes on, and `read-rip check` says so.
    pub fn runtime(self, runtime: u32, workers: usize) -> Builder<'a> {
        Builder { runtime, workers: workers as u64, ..self }
    }

    /// Does not count who wakes the task. Then its futures get the executor's own waker, as some executors demand, and
    /// a task that was woken and is not polled looks like one that was not woken.
    pub fn without_wakes(self) -> Builder<'a> {
        Builder { flags: self.flags & !TASK_COUNTS_WAKES, ..self }
    }

    /// Makes a task of a future: see [`traced`].
    #[track_caller]
    pub fn traced<F: Future>(self, future: F) -> Traced<F> {
        self.traced_at(Location::caller(), future)
    }

    /// Like [`traced`](Builder::traced), for those who make tasks on behalf of others: the place of the task is `at`.
    pub fn traced_at<F: Future>(self, at: &'static Location<'static>, future: F) -> Traced<F> {
        declare();
        let slot = self.claim(TASK_ASYNC, at);
        let has_wakers = slot.exists() && self.flags & TASK_COUNTS_WAKES != 0;
        let life = Life::new(slot, has_wakers.then(Wakers::default));
        Traced { future: ManuallyDrop::new(future), life }
    }

    /// Makes a task of a call that may block, for a pool of threads: see [`Blocking`].
    #[track_caller]
    pub fn blocking<F>(self, call: F) -> Blocking<F> {
        declare();
        let of_call = Builder { flags: self.flags & !TASK_COUNTS_WAKES, ..self };
        let slot = of_call.claim(TASK_BLOCKING, Location::caller());
        Blocking { call, life: Life::new(slot, None) }
    }

    pub(super) fn claim(self, kind: u64, location: &'static Location<'static>) -> TaskSlot {
        let Some(_) = instance::owner() else { return TaskSlot::NONE };
        let address = caller::enter_location(location);
        instance::claim_task(address, self.origin(kind), self.name.as_bytes())
    }

    /// [`TaskPart::origin`](librip_format::TaskPart::origin) of a task of this kind.
    pub(super) fn origin(self, kind: u64) -> u64 {
        task_origin(kind | self.flags, self.workers, self.runtime)
    }
}

/// Says in the program's file that it has tasks, so that the slots of its ring have room for them. Only generic
/// and inlined functions call it: they are compiled into programs that use them, and into no others.
#[inline(always)]
pub(super) fn declare() {
    let _ = crate::__rip_text_site!(KIND_TASK, SITE_WRAPPER, [], "");
}

/// The life of a task, which ends when this is dropped.
struct Life {
    slot: TaskSlot,
    /// Whether the slot exists, and this instance owns the ring. Which one does never changes once a slot exists.
    is_here: bool,
    /// `None` if wakes are not counted, or after the end.
    wakers: Option<Wakers>,
}

impl Life {
    fn new(slot: TaskSlot, wakers: Option<Wakers>) -> Life {
        Life { slot, is_here: slot.exists() && instance::is_owner(), wakers }
    }

    fn end(&mut self) {
        if self.slot.exists() {
            // First, so that nobody who wakes the task writes into a slot that is another task's by then.
            if let Some(wakers) = self.wakers.take() {
                wakers.end();
            }
            instance::end_task(&self.slot);
            self.slot = TaskSlot::NONE;
            self.is_here = false;
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end();
    }
}

/// A future that is recorded as a task: see [`traced`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Traced<F> {
    future: ManuallyDrop<F>,
    life: Life,
}

impl<F> Traced<F> {
    /// The number of the task, by which others can say that they [wait](super::lock::TASK) for its end; `None` if it
    /// has no slot, or has ended.
    pub fn id(&self) -> Option<u32> {
        self.life.slot.number()
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: nothing is moved out of it, and `life` is not pinned.
        let Traced { future, life } = unsafe { self.get_unchecked_mut() };
        // SAFETY: it is pinned because the whole is. It is dropped where it is, in `drop`.
        let future = unsafe { Pin::new_unchecked(&mut **future) };
        let poll = if life.is_here {
            // SAFETY: that is what it says.
            let polling = unsafe { PollingHere::begin(&life.slot) };
            let poll = poll_with(&mut life.wakers, &life.slot, future, cx);
            end_with(life.wakers.as_ref(), |wakers| polling.end(wakers));
            poll
        } else if let Some(polling) = Polling::begin(&life.slot) {
            let poll = poll_with(&mut life.wakers, &life.slot, future, cx);
            end_with(life.wakers.as_ref(), |wakers| polling.end(wakers));
            poll
        } else {
            return future.poll(cx);
        };
        if poll.is_ready() {
            life.end();
        }
        poll
    }
}

/// Polls the future of a task.
#[inline(always)]
fn poll_with<F: Future>(
    wakers: &mut Option<Wakers>,
    slot: &TaskSlot,
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> Poll<F::Output> {
    let Some(wakers) = wakers else { return future.poll(cx) };
    wakers.poll(slot, cx.waker(), |waker| future.poll(&mut Context::from_waker(waker)))
}

/// Ends a poll by `end`, which gets how many can wake the task then.
#[inline(always)]
fn end_with(wakers: Option<&Wakers>, end: impl FnOnce(u32)) {
    match wakers {
        Some(wakers) => wakers.end_poll(end),
        None => end(WAKERS_UNKNOWN),
    }
}

impl<F> Drop for Traced<F> {
    /// What the future releases when it is dropped, its task releases. Then the task ends.
    fn drop(&mut self) {
        let _polling = Polling::begin(&self.life.slot);
        // SAFETY: it is not used again. It was not moved since it was pinned.
        unsafe { ManuallyDrop::drop(&mut self.future) };
    }
}

/// A call that is recorded as a task: it exists from here on, also while it waits for a thread that runs it.
///
/// # Examples
///
/// ```
/// # fn spawn_blocking<T>(call: impl FnOnce() -> T) -> T { call() }
/// let call = librip::task::Builder::new().name("resolve").blocking(|| 7);
/// assert_eq!(spawn_blocking(move || call.run()), 7);
/// ```
pub struct Blocking<F> {
    call: F,
    life: Life,
}

impl<F> Blocking<F> {
    /// The number of the task: see [`Traced::id`].
    pub fn id(&self) -> Option<u32> {
        self.life.slot.number()
    }
}

impl<T, F: FnOnce() -> T> Blocking<F> {
    /// Makes the call, and ends the task.
    pub fn run(self) -> T {
        let Blocking { call, life } = self;
        let polling = Polling::begin(&life.slot);
        let result = call();
        drop(polling);
        result
    }
}
