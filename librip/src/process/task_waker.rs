//! The waker that a task's futures get: it counts the wake, and passes it on to the executor.
//!
//! Many tasks are ready at their first poll, and none of their futures keeps the waker. So [`Counting`], which a kept
//! waker needs, is made when somebody clones the waker for the first time. Until then the futures get a waker that
//! points to the poll ([`OfPoll`]). Afterwards it is the same waker in all polls, so `Waker::will_wake` says so. The
//! executor's waker is kept there, because an executor may give another one with each poll, while any thread wakes.
//!
//! # Who can wake a task
//!
//! Whoever may wake the task has a clone of its waker. So the number of clones after a poll says how many there are. If
//! each of them is kept by a lock for which the task waits, nothing else can wake the task: no time limit, no message,
//! no other branch of a `select!`. Then its wait is as certain as that of a thread. A future may be polled with another
//! waker, which some combinator has made of the task's. So a wait for a lock says whether it was polled with the task's
//! own waker ([`is_of_task`]).
//!
//! Somebody who has woken the task by a reference may drop its clone when the task has been polled again. So the number
//! is stored at the end of a poll ([`Wakers::end_poll`]), and lowered when a clone is dropped ([`Counting::dropped`]).
//! The slot must not keep a number that is too low: a proof may rest on it. Two threads may store at once, and the one
//! whose number is older may be late. So whoever stores a number above one counts and stores under the lock. A number
//! of at most one is stored without it, and is never lowered.

#![allow(unsafe_code, reason = "a waker is a pointer with a table of functions")]

use core::mem::{self, ManuallyDrop};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicUsize, fence};
use core::task::{RawWaker, RawWakerVTable, Waker};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::instance;
use super::task_slot::TaskSlot;
use librip_format::WAKERS_UNKNOWN;

#[derive(Default)]
pub(crate) struct Wakers {
    /// Nothing as long as no future has cloned the waker.
    kept: OnceLock<Kept>,
}

struct Kept {
    /// What the task's futures get. It has a reference to [`Counting`].
    of_futures: Waker,
    executors: Identity,
}

/// Which waker it is that is kept. While it is kept, no other has the same addresses.
#[derive(PartialEq, Eq)]
struct Identity {
    data: usize,
    vtable: usize,
}

impl Identity {
    #[inline]
    fn of(waker: &Waker) -> Identity {
        Identity { data: waker.data().addr(), vtable: ptr::from_ref(waker.vtable()).addr() }
    }
}

impl Kept {
    fn new(executors: Waker, slot: TaskSlot) -> Kept {
        let identity = Identity::of(&executors);
        let state = Mutex::new(State { executors, slot });
        let counting = Counting { words: slot.address(), wakers: AtomicUsize::new(1), state };
        // SAFETY: the functions of the table take such a pointer, and keep the count of references. What they do is
        // safe in any thread.
        let of_futures = unsafe { Waker::from_raw(raw(Arc::new(counting))) };
        Kept { of_futures, executors: identity }
    }

    fn counting(&self) -> ManuallyDrop<Arc<Counting>> {
        // SAFETY: `new` has made the waker of such a pointer. Its reference stays its own.
        ManuallyDrop::new(unsafe { of_pointer(self.of_futures.data()) })
    }

    #[cold]
    fn replace(&mut self, executors: &Waker) {
        let executors = executors.clone();
        self.executors = Identity::of(&executors);
        let former = self.counting().with(|state| mem::replace(&mut state.executors, executors));
        // Not under the lock: it may be the end of another task.
        drop(former);
    }
}

impl Wakers {
    /// Polls the future of the task with this slot, which the executor polls with this waker.
    #[inline]
    pub(crate) fn poll<T>(
        &mut self,
        slot: &TaskSlot,
        executors: &Waker,
        poll: impl FnOnce(&Waker) -> T,
    ) -> T {
        if let Some(kept) = self.kept.get_mut() {
            if kept.executors != Identity::of(executors) {
                kept.replace(executors);
            }
            return poll(&kept.of_futures);
        }
        let of_poll = OfPoll { slot, executors, wakers: self };
        let data = ptr::from_ref(&of_poll).cast();
        // SAFETY: the functions of the table take such a pointer. It is valid while the future is polled, and the
        // future gets a reference to the waker for that long. What they do is safe in any thread.
        let waker = ManuallyDrop::new(unsafe { Waker::new(data, &OF_POLL) });
        poll(&waker)
    }

    /// Ends a poll. `end` stores how many clones of the waker there are: those who may wake the task.
    #[inline(always)]
    pub(crate) fn end_poll(&self, end: impl FnOnce(u32)) {
        let Some(kept) = self.kept.get() else { return end(0) };
        let counting = kept.counting();
        match counting.clones() {
            clones @ 0..=1 => end(clones),
            _ => counting.with(|_| end(counting.clones())),
        }
    }

    /// The task is no more: from now on its slot is not written to.
    pub(crate) fn end(self) {
        match self.kept.get() {
            Some(kept) if Arc::strong_count(&kept.counting()) > 1 => {
                kept.counting().with(|state| state.slot = TaskSlot::NONE);
            }
            // ORDERING: acquire, pairs with the releases of those who had references: they use the slot no more.
            _ => fence(Acquire),
        }
    }
}

/// The poll of a task whose waker nobody has cloned yet.
struct OfPoll<'a> {
    slot: &'a TaskSlot,
    executors: &'a Waker,
    wakers: &'a Wakers,
}

impl OfPoll<'_> {
    fn clone_waker(&self) -> Waker {
        self.wakers.kept.get_or_init(|| Kept::new(self.executors.clone(), *self.slot)).of_futures.clone()
    }

    fn wake(&self) {
        count(self.slot);
        self.executors.wake_by_ref();
    }
}

struct State {
    executors: Waker,
    slot: TaskSlot,
}

struct Counting {
    /// Where the words of the task's slot are.
    words: usize,
    /// The wakers of this: that of [`Kept`], and its clones. There may be one reference more for each thread that is
    /// dropping a clone.
    wakers: AtomicUsize,
    state: Mutex<State>,
}

impl Counting {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        // The lock is held for a few instructions and calls of the executor's `clone`. If that panics, nothing is half
        // done.
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn clones(&self) -> u32 {
        // One is that of `Kept`. ORDERING: relaxed: see `dropped`.
        self.wakers.load(Relaxed).saturating_sub(1).min(WAKERS_UNKNOWN as usize) as u32
    }

    /// A clone is dropped. `lower` gets how many are left, if the poll that ended last may have stored more.
    ///
    /// That poll has counted under the lock if it stored more than one. If it had the lock before this, `lower` sees
    /// what it stored. If it gets the lock after this, it does not count this clone.
    fn dropped(&self, lower: impl FnOnce(&TaskSlot, u32)) {
        // ORDERING: relaxed: the lock orders what is stored.
        let left = self.wakers.fetch_sub(1, Relaxed) - 1;
        // One is that of `Kept`.
        if left > 1 {
            self.with(|state| lower(&state.slot, self.clones().max(1)));
        }
    }

    /// Counts a wake, and returns the executor's waker.
    fn count(&self) -> Waker {
        self.with(|state| {
            count(&state.slot);
            state.executors.clone()
        })
    }
}

/// Counts a wake of the task with this slot, if it exists.
fn count(slot: &TaskSlot) {
    if let (true, Some(owner)) = (slot.exists(), instance::owner()) {
        (owner.tasks.woken)(slot);
    }
}

/// Only so many can wake the task with this slot any more, if it exists.
fn lower_wakers(slot: &TaskSlot, wakers: u32) {
    if let (true, Some(owner)) = (slot.exists(), instance::owner()) {
        (owner.tasks.lower_wakers)(slot, wakers);
    }
}

/// Whether a waker is that of the task whose slot has its words at this address.
pub(crate) fn is_of_task(waker: &Waker, words: *mut u64) -> bool {
    let of_task = if ptr::eq(waker.vtable(), &raw const VTABLE) {
        // SAFETY: a waker with this table has a pointer from `Arc::into_raw`, of which it owns a reference.
        unsafe { &*waker.data().cast::<Counting>() }.words
    } else if ptr::eq(waker.vtable(), &raw const OF_POLL) {
        // SAFETY: a waker with this table has this pointer, which is valid as long as somebody has the waker.
        unsafe { of_poll(waker.data()) }.slot.address()
    } else {
        return false;
    };
    of_task == words.addr()
}

fn raw(counting: Arc<Counting>) -> RawWaker {
    RawWaker::new(Arc::into_raw(counting).cast(), &VTABLE)
}

/// A static and not a constant, so that its address tells these wakers from others. So is the next one.
static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// The pointer of a waker as what it is.
///
/// # Safety
///
/// The waker owns a reference, and the pointer is from `Arc::into_raw`.
unsafe fn of_pointer(pointer: *const ()) -> Arc<Counting> {
    // SAFETY: the caller's promise.
    unsafe { Arc::from_raw(pointer.cast()) }
}

unsafe fn clone(pointer: *const ()) -> RawWaker {
    // SAFETY: the waker lives, and so does its reference, which stays its own.
    let counting = ManuallyDrop::new(unsafe { of_pointer(pointer) });
    // ORDERING: relaxed: whoever polls the task sees what its poll has cloned.
    counting.wakers.fetch_add(1, Relaxed);
    raw(Arc::clone(&counting))
}

unsafe fn wake(pointer: *const ()) {
    // The reference ends here, before the executor learns of the wake: it may poll the task at once, and after that
    // poll this waker must not count as one that can wake the task.
    // SAFETY: the waker gives its reference up.
    let counting = unsafe { of_pointer(pointer) };
    let executors = counting.count();
    // ORDERING: release, by the end of the reference. Who polls the task next has got the wake from the executor.
    counting.wakers.fetch_sub(1, Relaxed);
    drop(counting);
    executors.wake();
}

unsafe fn wake_by_ref(pointer: *const ()) {
    // SAFETY: the waker lives, and so does its reference, which stays its own.
    ManuallyDrop::new(unsafe { of_pointer(pointer) }).count().wake();
}

unsafe fn drop_waker(pointer: *const ()) {
    // SAFETY: the waker gives its reference up.
    unsafe { of_pointer(pointer) }.dropped(lower_wakers);
}

/// The table of a waker that points to an [`OfPoll`], and owns nothing.
static OF_POLL: RawWakerVTable =
    RawWakerVTable::new(clone_of_poll, wake_of_poll, wake_of_poll, |_| { /* It owns nothing. */ });

/// The pointer of a waker as what it is.
///
/// # Safety
///
/// It is that of a waker with the table [`OF_POLL`], which has not been dropped.
unsafe fn of_poll<'a>(pointer: *const ()) -> &'a OfPoll<'a> {
    // SAFETY: the caller's promise.
    unsafe { &*pointer.cast() }
}

unsafe fn clone_of_poll(pointer: *const ()) -> RawWaker {
    // SAFETY: somebody clones the waker, so it has not been dropped.
    let clone = ManuallyDrop::new(unsafe { of_poll(pointer) }.clone_waker());
    RawWaker::new(clone.data(), clone.vtable())
}

unsafe fn wake_of_poll(pointer: *const ()) {
    // SAFETY: somebody uses the waker, so it has not been dropped.
    unsafe { of_poll(pointer) }.wake();
}

#[cfg(test)]
mod tests {
    use std::hint;
    use std::panic::{self, AssertUnwindSafe};
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::mpsc;
    use std::task::Wake;
    use std::thread;

    use librip_format::{TaskPart, pack_wakers, unpack_wakers};

    use super::*;
    use crate::process::{state, task};

    /// An executor that notes how many can wake its task when it is woken.
    #[derive(Default)]
    struct Executor {
        counting: OnceLock<Arc<Counting>>,
        clones: AtomicUsize,
        wakes: AtomicUsize,
    }

    impl Wake for Executor {
        fn wake(self: Arc<Self>) {
            self.wakes.fetch_add(1, SeqCst);
            if let Some(counting) = self.counting.get() {
                self.clones.store(counting.clones() as usize, SeqCst);
            }
        }
    }

    fn poll<T>(wakers: &mut Wakers, executors: &Waker, poll: impl FnOnce(&Waker) -> T) -> T {
        wakers.poll(&TaskSlot::NONE, executors, poll)
    }

    #[test]
    fn a_waker_that_wakes_is_none_any_more_when_the_executor_polls_the_task() {
        let (mut wakers, executor) = (Wakers::default(), Arc::new(Executor::default()));
        let of_executor = Waker::from(Arc::clone(&executor));
        let [first, second] = [0; 2].map(|_| poll(&mut wakers, &of_executor, Waker::clone));
        let counting = wakers.kept.get().unwrap().counting();
        assert!(executor.counting.set(Arc::clone(&counting)).is_ok());
        first.wake();
        assert_eq!(executor.clones.load(SeqCst), 1, "the second one");
        second.wake_by_ref();
        assert_eq!(executor.clones.load(SeqCst), 1, "it stays");
        second.wake();
        assert_eq!(executor.clones.load(SeqCst), 0);
        assert_eq!(executor.wakes.load(SeqCst), 3);
    }

    /// What the end of a poll stores.
    fn counted(wakers: &Wakers) -> u32 {
        let mut clones = None;
        wakers.end_poll(|number| clones = Some(number));
        clones.unwrap()
    }

    #[test]
    fn nothing_is_made_for_a_task_whose_waker_nobody_clones() {
        let (mut wakers, executor) = (Wakers::default(), Arc::new(Executor::default()));
        let of_executor = Waker::from(Arc::clone(&executor));
        for _ in 0..2 {
            poll(&mut wakers, &of_executor, Waker::wake_by_ref);
        }
        assert_eq!(executor.wakes.load(SeqCst), 2);
        assert!(wakers.kept.get().is_none());
        assert_eq!((counted(&wakers), Arc::strong_count(&executor)), (0, 2));
    }

    #[test]
    fn clones_of_one_poll_by_several_threads_are_one_waker_which_later_polls_get() {
        let mut wakers = Wakers::default();
        let clones = poll(&mut wakers, Waker::noop(), |waker| {
            thread::scope(|scope| {
                let clones = [0; 4].map(|_| scope.spawn(|| waker.clone()));
                clones.map(|clone| clone.join().unwrap())
            })
        });
        assert_eq!(counted(&wakers), 4);
        poll(&mut wakers, Waker::noop(), |waker| assert!(clones.iter().all(|clone| clone.will_wake(waker))));
        drop(clones);
        assert_eq!(counted(&wakers), 0);
    }

    #[test]
    fn a_clone_wakes_the_executor_that_polled_last() {
        let mut wakers = Wakers::default();
        let executors = [0; 2].map(|_| Arc::new(Executor::default()));
        let of_executors = executors.each_ref().map(|executor| Waker::from(Arc::clone(executor)));
        let clone = poll(&mut wakers, &of_executors[0], Waker::clone);
        poll(&mut wakers, &of_executors[1], |waker| assert!(waker.will_wake(&clone)));
        clone.wake_by_ref();
        let wakes = executors.each_ref().map(|executor| executor.wakes.load(SeqCst));
        assert_eq!(wakes, [0, 1]);
        assert_eq!(Arc::strong_count(&executors[0]), 2, "nothing is kept of it");
    }

    #[test]
    fn a_clone_of_a_poll_that_panics_does_not_write_into_the_slot_after_the_end_of_the_task() {
        let (mut wakers, mut words) = (Wakers::default(), 0);
        let slot = TaskSlot { words: &raw mut words, ..TaskSlot::NONE };
        let mut clone = None;
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
            wakers.poll(&slot, Waker::noop(), |waker| {
                clone = Some(waker.clone());
                panic!("a future panics");
            });
        }));
        assert!(panicked.is_err());
        let counting = Arc::clone(&wakers.kept.get().unwrap().counting());
        assert!(is_of_task(clone.as_ref().unwrap(), slot.words));
        assert!(counting.with(|state| state.slot.exists()));
        wakers.end();
        assert!(!counting.with(|state| state.slot.exists()));
    }

    #[test]
    fn the_waker_of_a_first_poll_is_known_as_that_of_its_task() {
        let (mut wakers, mut words) = (Wakers::default(), [0; 2]);
        let slot = TaskSlot { words: &raw mut words[0], ..TaskSlot::NONE };
        wakers.poll(&slot, Waker::noop(), |waker| {
            assert!(is_of_task(waker, slot.words) && !is_of_task(waker, slot.words.wrapping_add(1)));
            assert!(!is_of_task(Waker::noop(), slot.words));
        });
    }

    /// Drops a clone whose slot belongs to no ring.
    fn drop_clone(clone: Waker) {
        let clone = ManuallyDrop::new(clone);
        // SAFETY: it is a waker with `VTABLE`, and is not used again.
        unsafe { of_pointer(clone.data()) }.dropped(task::lower_wakers);
    }

    /// Clones are dropped while polls end, and the thread that polls keeps some. When all other threads are done, the
    /// slot says how many are kept, and never less before.
    #[test]
    fn a_slot_says_how_many_can_wake_the_task_however_late_the_others_are_dropped() {
        // SAFETY: zero is a value of each of its fields, which are atomics.
        let (part, mut words) = (unsafe { mem::zeroed::<TaskPart>() }, 0);
        let slot = TaskSlot {
            words: &raw mut words,
            part: &raw const part,
            forks: state::forks(),
            ..TaskSlot::NONE
        };
        let stored = || unpack_wakers(part.wakers.load(SeqCst)) as usize;
        let (mut wakers, dropped, mut sent) = (Wakers::default(), AtomicUsize::new(0), 0);
        thread::scope(|scope| {
            let droppers = [0; 2].map(|_| {
                let (to_dropper, clones) = mpsc::channel::<Waker>();
                let dropped = &dropped;
                scope.spawn(move || {
                    for clone in clones {
                        drop_clone(clone);
                        dropped.fetch_add(1, SeqCst);
                    }
                });
                to_dropper
            });
            for kept in (0..4).cycle().take(40_000) {
                let clones = wakers.poll(&slot, Waker::noop(), |waker| {
                    for dropper in &droppers {
                        dropper.send(waker.clone()).unwrap();
                    }
                    [0; 3].map(|_| waker.clone()).into_iter().take(kept).collect::<Vec<_>>()
                });
                sent += droppers.len();
                wakers.end_poll(|number| part.wakers.store(pack_wakers(number), SeqCst));
                while dropped.load(SeqCst) < sent {
                    assert!(stored() >= kept, "{} for {kept}", stored());
                    hint::spin_loop();
                }
                assert_eq!(stored().max(1), kept.max(1));
                clones.into_iter().for_each(drop_clone);
            }
        });
    }
}
