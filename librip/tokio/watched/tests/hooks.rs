//! What the ring has of tasks that are spawned with tokio alone, on runtimes that are watched.

#[allow(dead_code, reason = "others need more of it")]
#[path = "../../tests/ring/mod.rs"]
mod ring;

use std::future::{pending, poll_fn};
use std::panic::Location;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use librip_tokio::{Watch, sync, watch};
use ring::{Ring, Slot};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinHandle, JoinSet, LocalSet, yield_now};

const SLOTS: u32 = 512;

/// One test at a time: each counts the tasks of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !librip::is_recording() {
        let ring = librip::Builder::new().slots(SLOTS).polls(librip::Polls::Times);
        ring.keep(librip::Keep::Never).create().unwrap();
    }
    alone
}

fn multi_thread(workers: usize) -> Runtime {
    watch(Builder::new_multi_thread().worker_threads(workers).enable_time()).build().unwrap()
}

fn current_thread() -> Runtime {
    watch(Builder::new_current_thread().enable_time()).build().unwrap()
}

#[track_caller]
fn here() -> u32 {
    Location::caller().line()
}

/// Spawns a task, and says at which line.
#[track_caller]
fn spawn<F>(runtime: &Runtime, future: F) -> (u32, JoinHandle<F::Output>)
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    (here(), runtime.spawn(future))
}

/// The tasks that were made at this line.
fn made_at(line: u32) -> Vec<Slot> {
    made_in(&Ring::read(), line)
}

fn made_in(ring: &Ring, line: u32) -> Vec<Slot> {
    ring.slots().into_iter().filter(|slot| slot.is_task && slot.line == line).collect()
}

fn live_tasks() -> usize {
    Ring::read().slots().iter().filter(|slot| slot.is_task && slot.is_live).count()
}

/// The only task that was made at this line.
#[track_caller]
fn only(line: u32) -> Slot {
    let mut made = made_at(line);
    assert_eq!(made.len(), 1, "{made:?}");
    made.remove(0)
}

/// The only live task that was made at this line.
#[track_caller]
fn only_live(line: u32) -> Slot {
    let mut made = made_at(line);
    made.retain(|slot| slot.is_live);
    assert_eq!(made.len(), 1, "{made:?}");
    made.remove(0)
}

/// The tasks that were made at this line, when all have ended: whoever awaits a task goes on before its hooks do.
fn ended_at(line: u32) -> Vec<Slot> {
    loop {
        let made = made_at(line);
        if made.iter().all(|slot| !slot.is_live) {
            return made;
        }
        thread::yield_now();
    }
}

/// The number of the runtime, and how many workers it has.
fn runtime_of(slot: &Slot) -> (u64, u64) {
    (slot.origin >> 32, slot.origin >> 16 & 0xffff)
}

fn block<T>(runtime: &Runtime, task: JoinHandle<T>) -> T {
    runtime.block_on(task).unwrap()
}

#[test]
fn every_task_has_a_slot_with_the_place_of_its_spawn() {
    let _alone = alone();
    for runtime in [multi_thread(2), current_thread()] {
        let (line, task) = spawn(&runtime, yield_now());
        block(&runtime, task);
        let slots = ended_at(line);
        assert!(slots.iter().all(|slot| (slot.is_live, slot.turn, slot.name.as_str()) == (false, 4, "")));
        runtime.block_on(async {
            let (line, task) = (here(), tokio::spawn(pending::<()>()));
            assert!(only_live(line).is_live);
            task.abort();
            let mut set = JoinSet::new();
            let (line, _) = (here(), set.spawn(pending::<()>()));
            assert!(only_live(line).is_live);
        });
        drop(runtime);
        assert_eq!((slots.is_empty(), live_tasks()), (false, 0));
    }
}

#[test]
fn each_poll_is_counted_with_the_time_that_the_task_waited_for_it() {
    let _alone = alone();
    for runtime in [multi_thread(2), current_thread()] {
        let before = Ring::read();
        let (line, task) = spawn(&runtime, async {
            for _ in 0..100 {
                yield_now().await;
            }
        });
        block(&runtime, task);
        ended_at(line);
        let ((polls, delays), before) = (Ring::read().polls(line), before.polls(line));
        assert_eq!((polls - before.0, delays - before.1), (101, 101));
    }
}

#[test]
fn a_recorded_task_has_one_slot() {
    let _alone = alone();
    let runtime = multi_thread(2);
    runtime.block_on(async {
        let before = live_tasks();
        let mut set = librip_tokio::task::JoinSet::new();
        librip_tokio::spawn(pending::<()>());
        librip_tokio::Task::new().name("named").spawn_on(pending::<()>(), &Handle::current());
        set.spawn(pending::<()>());
        set.spawn_on(pending::<()>(), &Handle::current());
        assert_eq!(live_tasks() - before, 4);
        let local = LocalSet::new();
        local.run_until(async { drop(librip_tokio::spawn_local(pending::<()>())) }).await;
        assert_eq!(live_tasks() - before, 5);
        // The next one is tokio's alone: nothing is left of the last one's mark.
        tokio::spawn(pending::<()>());
        assert_eq!(live_tasks() - before, 6);
    });
    drop(runtime);
    assert_eq!(live_tasks(), 0);
}

#[test]
fn what_a_task_holds_is_its_own_on_every_worker() {
    let _alone = alone();
    let runtime = multi_thread(4);
    let lock = Arc::new(sync::Mutex::new(0));
    let held = Arc::clone(&lock);
    let (line, task) = spawn(&runtime, async move {
        let mut total = held.lock().await;
        for _ in 0..100 {
            yield_now().await;
            *total += 1;
        }
        drop(total);
        let total = held.lock().await;
        (Ring::read(), *total)
    });
    let (ring, total) = block(&runtime, task);
    assert_eq!(total, 100);
    let slots = ring.slots();
    let holders: Vec<&Slot> = slots.iter().filter(|slot| !slot.held.is_empty()).collect();
    assert_eq!(holders.len(), 1, "{holders:?}");
    assert_eq!((holders[0].is_task, holders[0].line, holders[0].held.len()), (true, line, 1));
    assert!(Ring::read().slots().iter().all(|slot| slot.held.is_empty()));
}

#[test]
fn a_task_knows_its_runtime_before_anyone_has_polled_it() {
    let _alone = alone();
    let runtime_of_recorded = |runtime: &Runtime| {
        let task = librip_tokio::Task::new().name("recorded").spawn_on(pending::<()>(), runtime.handle());
        let known = runtime_of(&ring::task("recorded"));
        task.abort();
        runtime.block_on(task).unwrap_err();
        known
    };
    let runtimes = [current_thread(), multi_thread(1), multi_thread(3)];
    let numbers = runtimes.each_ref().map(|runtime| {
        let expected = runtime_of_recorded(runtime);
        let gate = Arc::new(Mutex::new(()));
        // Until all are spawned, nobody has polled a task that could have told of its runtime.
        let spawns = gate.lock().unwrap();
        let waits = Arc::clone(&gate);
        let (line, reads) = spawn(runtime, async move {
            drop(waits.lock().unwrap());
            Ring::read()
        });
        let (early, early_task) = spawn(runtime, pending::<()>());
        drop(spawns);
        let ring = block(runtime, reads);
        let early_slots = made_in(&ring, early);
        let is_expected = |slot: &&Slot| slot.is_live && runtime_of(slot) == expected;
        assert_eq!(early_slots.iter().filter(is_expected).count(), 1, "{expected:?} {early_slots:?}");
        assert_eq!(made_in(&ring, line).iter().filter(is_expected).count(), 1);
        // From now on it is known from the start.
        let (later, later_task) = spawn(runtime, pending::<()>());
        assert_eq!(made_at(later).iter().filter(is_expected).count(), 1);
        for task in [early_task, later_task] {
            task.abort();
            runtime.block_on(task).unwrap_err();
        }
        expected
    });
    assert_eq!(numbers.map(|(_, workers)| workers), [1, 1, 3]);
    assert!(numbers[0] != numbers[1] && numbers[1].0 != numbers[2].0 && numbers[2].0 != numbers[0].0);
}

#[test]
fn a_builder_of_two_runtimes_tells_each_task_its_own() {
    let _alone = alone();
    let mut builder = Builder::new_multi_thread();
    let builder = watch(builder.worker_threads(2));
    let runtimes = [builder.build().unwrap(), builder.build().unwrap()];
    let numbers = runtimes.each_ref().map(|runtime| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (line, task) = spawn(runtime, async move {
            sender.send(()).unwrap();
            pending::<()>().await;
        });
        receiver.recv().unwrap();
        let number = runtime_of(&only_live(line)).0;
        task.abort();
        runtime.block_on(task).unwrap_err();
        number
    });
    assert!(!numbers.contains(&0) && numbers[0] != numbers[1], "{numbers:?}");
}

#[test]
fn a_task_ends_however_it_ends() {
    let _alone = alone();
    for runtime in [multi_thread(2), current_thread()] {
        let suspended = runtime.spawn(pending::<()>());
        runtime.block_on(runtime.spawn(yield_now())).unwrap();
        suspended.abort();
        assert!(runtime.block_on(suspended).unwrap_err().is_cancelled());
        let unpolled = runtime.spawn(pending::<()>());
        unpolled.abort();
        assert!(runtime.block_on(unpolled).unwrap_err().is_cancelled());
        let panics = runtime.spawn(async { std::panic::resume_unwind(Box::new(7)) });
        assert!(runtime.block_on::<JoinHandle<()>>(panics).unwrap_err().is_panic());
        let aborts_itself = runtime.spawn(async {
            let (sender, receiver) = tokio::sync::oneshot::channel::<tokio::task::AbortHandle>();
            let task = tokio::spawn(async move {
                receiver.await.unwrap().abort();
                pending::<()>().await;
            });
            sender.send(task.abort_handle()).unwrap();
            task.await.unwrap_err().is_cancelled()
        });
        assert!(block(&runtime, aborts_itself));
        // Dropped with the runtime.
        runtime.spawn(pending::<()>());
        let handle = runtime.handle().clone();
        drop(runtime);
        assert_eq!(live_tasks(), 0);
        // Tokio ends this one before it says that it has spawned it.
        let line = (here(), handle.spawn(pending::<()>())).0;
        assert!(made_at(line).iter().all(|slot| !slot.is_live));
        assert_eq!(live_tasks(), 0);
    }
}

#[test]
fn a_task_may_outlive_its_runtime() {
    let _alone = alone();
    let runtime = multi_thread(1);
    let (began, may_go) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let line = spawn(&runtime, async move {
        began.0.send(()).unwrap();
        may_go.1.recv().unwrap();
    })
    .0;
    began.1.recv().unwrap();
    runtime.shutdown_background();
    assert!(only(line).is_live);
    may_go.0.send(()).unwrap();
    while only(line).is_live {
        thread::yield_now();
    }
    assert_eq!(only(line).turn, 2);
}

#[test]
fn more_tasks_than_slots_are_harmless_and_counted() {
    let _alone = alone();
    let runtime = multi_thread(4);
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let tasks: Vec<_> = (0..3 * SLOTS)
        .map(|number| {
            let gate = Arc::clone(&gate);
            runtime.spawn(async move {
                gate.acquire().await.unwrap().forget();
                number
            })
        })
        .collect();
    assert!(live_tasks() <= SLOTS as usize);
    gate.add_permits(tasks.len());
    let sum: u32 = tasks.into_iter().map(|task| block(&runtime, task)).sum();
    assert_eq!(sum, (0..3 * SLOTS).sum());
    assert!(Ring::read().tasks_refused() >= u64::from(2 * SLOTS));
    let (line, task) = spawn(&runtime, yield_now());
    block(&runtime, task);
    drop(runtime);
    assert_eq!(only(line).turn, 4, "there are slots again");
    assert_eq!(live_tasks(), 0);
}

#[test]
fn what_has_no_hooks_has_no_slot() {
    let _alone = alone();
    let runtime = multi_thread(2);
    runtime.block_on(async {
        tokio::task::spawn_blocking(|| assert_eq!(live_tasks(), 0)).await.unwrap();
        let local = LocalSet::new();
        local
            .run_until(async {
                tokio::task::spawn_local(async { assert_eq!(live_tasks(), 0) }).await.unwrap()
            })
            .await;
    });
}

#[test]
fn a_poll_within_a_poll_is_the_inner_tasks() {
    let _alone = alone();
    let runtime = multi_thread(2);
    let (line, task) = spawn(&runtime, async {
        let inner = tokio::task::block_in_place(|| {
            let runtime = current_thread();
            runtime.block_on(async {
                let lock = Arc::new(sync::Mutex::new(()));
                tokio::spawn(async move {
                    let _held = lock.lock().await;
                    (here(), Ring::read())
                })
                .await
                .unwrap()
            })
        });
        let lock = sync::Mutex::new(());
        let _held = lock.lock().await;
        (inner, Ring::read())
    });
    let ((_, inner), outer) = block(&runtime, task);
    let holders = |ring: &Ring| {
        let slots = ring.slots();
        slots.into_iter().filter(|slot| !slot.held.is_empty()).collect::<Vec<_>>()
    };
    let (inner, outer) = (holders(&inner), holders(&outer));
    assert_eq!((inner.len(), outer.len()), (1, 1));
    assert!(inner[0].is_task && inner[0].line != line && inner[0].turn % 2 == 1, "{inner:?}");
    assert!(outer[0].is_task && outer[0].line == line, "{outer:?}");
}

#[test]
fn hooks_of_the_program_are_called_too() {
    let _alone = alone();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let calls = Arc::clone(&calls);
        move |_: &tokio::runtime::TaskMeta<'_>| calls.lock().unwrap().push(what)
    };
    let parks = Arc::new(AtomicUsize::new(0));
    let count = |by: usize| {
        let parks = Arc::clone(&parks);
        move || {
            parks.fetch_add(by, SeqCst);
        }
    };
    let mut builder = Builder::new_current_thread();
    Watch::new()
        .on_task_spawn(note("spawn"))
        .on_before_task_poll(note("before"))
        .on_after_task_poll(note("after"))
        .on_task_terminate(note("terminate"))
        .on_thread_park(count(1))
        .on_thread_unpark(count(1000))
        .install(builder.enable_time());
    let runtime = builder.build().unwrap();
    let (line, task) = spawn(&runtime, yield_now());
    block(&runtime, task);
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
    assert_eq!(*calls.lock().unwrap(), ["spawn", "before", "after", "before", "terminate", "after"]);
    let parks = parks.load(SeqCst);
    let (parks, unparks) = (parks % 1000, parks / 1000);
    assert!(parks > 0 && unparks > 0, "{parks} {unparks}");
    assert_eq!(only(line).turn, 4);
}

#[test]
fn a_thread_that_does_not_leave_a_task_keeps_others_for_a_second_only() {
    let _alone = alone();
    let tasks = librip::task::Watched::new();
    tasks.spawned(1, Location::caller());
    let number = only_live(here() - 1).id;
    let holders = || {
        let slots = Ring::read().slots();
        slots
            .into_iter()
            .filter(|slot| !slot.held.is_empty())
            .map(|slot| slot.id == number)
            .collect::<Vec<_>>()
    };
    let lock = librip::sync::Mutex::new(());
    tasks.poll_begins(1, || None);
    thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            tasks.poll_begins(1, || None);
            assert!(began.elapsed() >= Duration::from_secs(1), "it has waited for its turn");
            let held = lock.lock().unwrap();
            assert_eq!(holders(), [false], "what it does is its own");
            drop(held);
            tasks.poll_ends(1);
            tasks.ended(1);
        });
    });
    assert_eq!(live_tasks(), 1, "a thread is in it");
    let held = lock.lock().unwrap();
    assert_eq!(holders(), [true]);
    drop(held);
    tasks.poll_ends(1);
    assert_eq!(live_tasks(), 0);
}

#[test]
fn calls_in_a_wrong_order_do_no_harm() {
    let _alone = alone();
    let tasks = librip::task::Watched::new();
    let other = librip::task::Watched::new();
    tasks.poll_begins(1, || None);
    tasks.poll_ends(1);
    tasks.ended(1);
    tasks.spawned(1, Location::caller());
    assert_eq!(live_tasks(), 0, "it has ended before it was made");
    tasks.spawned(2, Location::caller());
    tasks.spawned(2, Location::caller());
    assert_eq!(live_tasks(), 1);
    tasks.poll_begins(2, || Some((7, 1)));
    tasks.poll_begins(2, || None);
    other.poll_ends(2);
    tasks.ended(2);
    tasks.ended(2);
    tasks.poll_ends(2);
    assert_eq!(live_tasks(), 0);
    tasks.spawned(3, Location::caller());
    assert_eq!(live_tasks(), 1);
    drop(tasks);
    assert_eq!(live_tasks(), 0);
}

/// Each poll wakes its own task, so the next poll may begin on any worker before the hook after this one has run.
#[test]
fn each_poll_of_a_task_is_recorded_once_whichever_worker_makes_it() {
    const TASKS: usize = 32;
    let _alone = alone();
    let torture: u64 = std::env::var("RIP_TORTURE").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let polls = 4000 * torture;
    let runtime = multi_thread(4);
    let moves = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    let mut line = 0;
    for number in 0..TASKS {
        let moves = Arc::clone(&moves);
        let polls = async move {
            let (mut left, mut last) = (polls, None);
            let lock = sync::Mutex::new(());
            let _held = lock.lock().await;
            poll_fn(move |cx| {
                left -= 1;
                let former = last.replace(thread::current().id());
                moves.fetch_add(usize::from(former.is_some() && former != last), SeqCst);
                match number % 2 {
                    _ if left == 0 => return Poll::Ready(()),
                    0 => cx.waker().wake_by_ref(),
                    _ => Waker::wake(cx.waker().clone()),
                }
                Poll::Pending
            })
            .await;
        };
        let (made_at, task) = spawn(&runtime, polls);
        tasks.push(task);
        line = made_at;
    }
    tasks.into_iter().for_each(|task| block(&runtime, task));
    drop(runtime);
    let recorded: Vec<u64> = made_at(line).iter().map(|slot| slot.turn).collect();
    assert_eq!(recorded, [2 * polls; TASKS]);
    assert!(moves.load(SeqCst) > 0, "no task has gone to another worker");
    assert!(Ring::read().slots().iter().all(|slot| slot.held.is_empty()));
    assert_eq!(live_tasks(), 0);
}
