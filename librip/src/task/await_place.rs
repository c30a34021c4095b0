//! [`At`]: a future within a task that has a name, its place in the source.

use core::future::Future;
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::pin::Pin;
use core::task::{Context, Poll};

use crate::lock::caller;
use crate::process::instance::{self, TaskCalls};
use crate::process::task_slot::FuturePlace;
use librip_format::AwaitEntry;

/// Names the place of an await: `at(stream.next()).await`.
///
/// While the future is polled for the first time and not ready, and until it is dropped, the slot of its task has an
/// entry with this place, up to eight at a time; of others it has the number. So `read-rip tasks -t` shows the tree of
/// awaits, with several branches below a `join!` or a `select!`, and says of each branch whether it was polled in the
/// last poll of the task: a branch that was not, and holds a lock, is what a futurelock is made of.
///
/// Outside of a task it does nothing.
///
/// # Examples
///
/// ```
/// use librip::task::at;
///
/// async fn fetch() -> u32 {
///     at(core::future::ready(7)).await
/// }
/// ```
#[track_caller]
pub fn at<F: Future>(future: F) -> At<F> {
    At {
        future: ManuallyDrop::new(future),
        location: Location::caller(),
        place: FuturePlace::NONE,
        is_begun: false,
    }
}

/// [`at`] as a method: `stream.next().at().await`.
pub trait AtExt: Future + Sized {
    /// Names the place of this await: see [`at`].
    #[track_caller]
    fn at(self) -> At<Self> {
        at(self)
    }
}

impl<F: Future> AtExt for F {}

/// A future with a place: see [`at`].
#[must_use = "futures do nothing unless they are polled"]
pub struct At<F> {
    future: ManuallyDrop<F>,
    location: &'static Location<'static>,
    place: FuturePlace,
    is_begun: bool,
}

/// A poll of a future, which ends however it ends.
struct Polled {
    calls: &'static TaskCalls,
    former: *const AwaitEntry,
}

impl Polled {
    fn begin(place: &FuturePlace) -> Option<Polled> {
        let calls = &instance::owner().filter(|_| place.exists())?.tasks;
        Some(Polled { calls, former: (calls.poll_future)(place) })
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        (self.calls.leave_future)(self.former);
    }
}

impl<F> At<F> {
    fn begin(&mut self) {
        self.is_begun = true;
        if let Some(owner) = instance::owner() {
            self.place = (owner.tasks.begin_future)(caller::enter_location(self.location));
        }
    }

    fn end(&mut self) {
        if let Some(owner) = instance::owner().filter(|_| self.place.exists()) {
            (owner.tasks.end_future)(&self.place);
            self.place = FuturePlace::NONE;
        }
    }
}

impl<F: Future> Future for At<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: nothing is moved out of it, and the other fields are not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if !this.is_begun {
            this.begin();
        }
        // SAFETY: it is pinned because the whole is. It is dropped where it is, in `drop`.
        let future = unsafe { Pin::new_unchecked(&mut *this.future) };
        let polled = Polled::begin(&this.place);
        let poll = future.poll(cx);
        drop(polled);
        if poll.is_ready() {
            this.end();
        }
        poll
    }
}

impl<F> Drop for At<F> {
    fn drop(&mut self) {
        let polled = Polled::begin(&self.place);
        // If the future's destructor panics, the entry stays until the task ends.
        // SAFETY: it is not used again. It was not moved since it was pinned.
        unsafe { ManuallyDrop::drop(&mut self.future) };
        drop(polled);
        self.end();
    }
}
