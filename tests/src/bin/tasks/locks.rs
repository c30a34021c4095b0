//! Locks over awaits: who holds them, and who cannot go on.

use std::future::poll_fn;
use std::pin::pin;
use std::thread;
use std::time::Duration;

use librip::sync::{Arc, PoisonError};
use librip::task::AtExt;
use librip_tokio::Task;
use librip_tokio::sync::{Barrier, Mutex, Notify, OnceCell};

use crate::arrivals::{Arrivals, Moves, noting};

#[librip::traced]
pub(crate) async fn lock_briefly(lock: &Mutex<i32>) {
    *lock.lock().await += 1;
}

/// The program of Oxide's RFD 609: a task waits for a lock that is promised to another of its futures, and does not
/// poll that future any more.
pub(crate) async fn futurelock() {
    futurelock_of(|lock| async move { lock_briefly(&lock).await }).await;
}

/// The same, but the task gives up after a while.
pub(crate) async fn futurelock_in_time() {
    futurelock_of(|lock| async move {
        let _ = tokio::time::timeout(Duration::from_secs(3600), lock_briefly(&lock)).await;
    })
    .await;
}

async fn futurelock_of<F>(second: fn(Arc<Mutex<i32>>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("the lock");
    let polls: [Arc<Arrivals>; 2] = Default::default();
    let timeout = Arc::new(tokio::sync::Notify::new());
    let guard = lock.lock().await;
    let (of_task, noted, elapsed) = (lock.clone(), polls.clone(), timeout.clone());
    Task::new().name("stuck").spawn(async move {
        let mut first = pin!(noting(lock_briefly(&of_task), &noted[0]));
        tokio::select! {
            biased;
            () = &mut first => {}
            () = elapsed.notified() => noting(second(of_task.clone()), &noted[1]).await,
        }
    });
    polls[0].wait(1).await;
    timeout.notify_one();
    polls[1].wait(1).await;
    drop(guard);
    // Tokio wakes the task, because the first future is next. The task polls the second one.
    polls[1].wait(2).await;
}

/// A task waits for a lock, or for the end of the task that holds it, whatever comes first.
pub(crate) async fn lock_or_end() {
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("the lock");
    let [held, polled]: [Arc<Arrivals>; 2] = Default::default();
    let (of_keeper, holds) = (lock.clone(), held.clone());
    let keeper = Task::new().name("keeper").spawn(async move {
        let _guard = of_keeper.lock().await;
        holds.arrive();
        std::future::pending::<()>().await;
    });
    held.wait(1).await;
    let noted = polled.clone();
    Task::new().name("both").spawn(async move {
        let mut keeper = keeper;
        let mut lock = pin!(noting(lock_briefly(&lock), &noted));
        tokio::select! {
            () = &mut lock => {}
            _ = &mut keeper => {}
        }
    });
    polled.wait(1).await;
}

/// A task holds a lock in one future, does not poll that future any more, and waits for the lock in another one.
pub(crate) async fn held_and_left_out() {
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("the lock");
    let [held, stuck]: [Arc<Arrivals>; 2] = Default::default();
    let noted = stuck.clone();
    Task::new().name("stuck").spawn(async move {
        let holds = async {
            let _guard = lock.lock().await;
            held.arrive();
            std::future::pending::<()>().await;
        };
        let mut holds = pin!(holds.at());
        tokio::select! {
            biased;
            () = &mut holds => {}
            () = held.wait(1) => noting(lock_briefly(&lock), &noted).await,
        }
    });
    stuck.wait(1).await;
}

/// Like [`futurelock`], with guards that may be sent to other tasks.
pub(crate) async fn owned_futurelock() {
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("the lock");
    let guard = lock.clone().lock_owned().await;
    let (first_waits, second_waits): (Arc<Arrivals>, Arc<Arrivals>) = Default::default();
    let noted = [first_waits.clone(), second_waits.clone()];
    Task::new().name("stuck").spawn(async move {
        let mut first = pin!(noting(lock.clone().lock_owned(), &noted[0]));
        poll_fn(|cx| {
            assert!(first.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        drop(noting(lock.clone().lock_owned(), &noted[1]).await);
        drop(first.await);
    });
    first_waits.wait(1).await;
    second_waits.wait(1).await;
    drop(guard);
    // Tokio wakes the task, because the first future is next. The task polls the second one.
    second_waits.wait(2).await;
}

/// A task initialises a cell and needs a lock for that, whose holder needs what is in the cell.
pub(crate) async fn cell_and_lock() {
    let (cell, lock) = (Arc::new(OnceCell::new()), Arc::new(Mutex::new(0)));
    cell.set_name("settings");
    lock.set_name("the lock");
    let [holds, initialises, stuck]: [Arc<Arrivals>; 3] = Default::default();
    let (of_holder, held) = (cell.clone(), lock.clone());
    let (has_it, begun, noted) = (holds.clone(), initialises.clone(), stuck.clone());
    Task::new().name("holder").spawn(async move {
        let _guard = held.lock().await;
        has_it.arrive();
        begun.wait(1).await;
        noting(of_holder.get_or_init(async || 7), &noted).await;
    });
    let noted = stuck.clone();
    Task::new().name("initialiser").spawn(async move {
        holds.wait(1).await;
        let first = async || {
            initialises.arrive();
            *noting(lock.lock(), &noted).await
        };
        cell.get_or_init(first).await;
    });
    stuck.wait(2).await;
}

/// For two tasks that one thread polls: the first one holds a lock of threads over an await, and the second one blocks
/// the thread for it. Both have arrived then.
pub(crate) fn holds_and_blocks(
    arrivals: Arc<Arrivals>,
) -> (impl Future<Output = ()>, impl Future<Output = ()>) {
    let lock = Arc::new(librip::sync::Mutex::new(0));
    lock.set_name("a lock of threads");
    let (held, resume) = (lock.clone(), Arc::new(Notify::new()));
    let (resumed, noted) = (resume.clone(), arrivals.clone());
    let holds = async move {
        let _guard = held.lock().unwrap_or_else(PoisonError::into_inner);
        noting(resumed.notified(), &noted).await;
    };
    let blocks = async move {
        arrivals.wait(1).await;
        resume.notify_one();
        arrivals.arrive();
        add_one(&lock);
    };
    (holds, blocks)
}

/// Two tasks take two locks in opposite orders.
pub(crate) async fn opposite_orders() {
    let locks = [Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0))];
    locks[0].set_name("savings");
    locks[1].set_name("current account");
    let (halfway, arrivals) = (Arc::new(Barrier::new(2)), Arc::new(Arrivals::default()));
    for (name, first) in [("saver", 0), ("spender", 1)] {
        let (first, second) = (locks[first].clone(), locks[1 - first].clone());
        let (halfway, arrivals) = (halfway.clone(), arrivals.clone());
        Task::new().name(name).spawn(async move {
            let _first = first.lock().await;
            halfway.wait().await;
            let _second = noting(second.lock(), &arrivals).await;
        });
    }
    arrivals.wait(2).await;
}

/// A task holds a lock of threads while it is suspended, and both workers wait for that lock. The task is woken.
pub(crate) async fn thread_lock_over_await() {
    both_workers_wait(add_one).await.notify_one();
}

/// The same in calls for which tokio has other workers, which would poll the task that holds the lock.
pub(crate) async fn lock_in_place() {
    // The task is not woken: it would go on.
    both_workers_wait(|lock| librip_tokio::task::block_in_place(|| add_one(lock))).await;
}

/// The same with one worker, and a thread that is none and waits in `block_on`. The other worker would poll the task
/// that holds the lock.
pub(crate) async fn lock_beside_a_free_worker() {
    let handle = tokio::runtime::Handle::current();
    waits_for_a_held_lock(1, add_one, move |lock| {
        thread::spawn(move || librip_tokio::block_on(&handle, async move { add_one(&lock) }));
    })
    .await;
}

fn add_one(lock: &librip::sync::Mutex<i32>) {
    *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
}

/// Returns what resumes the task that holds the lock. `wait` waits for the lock.
async fn both_workers_wait(wait: fn(&librip::sync::Mutex<i32>)) -> Arc<Notify> {
    waits_for_a_held_lock(2, wait, |_| ()).await
}

/// A task holds a lock over an await, so many workers wait for it, and so does what `besides` starts.
async fn waits_for_a_held_lock(
    workers: usize,
    wait: fn(&librip::sync::Mutex<i32>),
    besides: impl FnOnce(Arc<librip::sync::Mutex<i32>>),
) -> Arc<Notify> {
    let lock = Arc::new(librip::sync::Mutex::new(0));
    lock.set_name("a lock of threads");
    let (resume, arrivals) = (Arc::new(Notify::new()), Arc::new(Arrivals::default()));
    let (held, resumed, noted) = (lock.clone(), resume.clone(), arrivals.clone());
    let holder = async move {
        let _guard = held.lock().unwrap_or_else(PoisonError::into_inner);
        noting(resumed.notified(), &noted).await;
    };
    // Guards of `parking_lot` are `Send`, if the program wants it.
    Task::new().name("holder").spawn(Moves(holder));
    arrivals.wait(1).await;
    besides(lock.clone());
    for _ in 0..workers {
        let (lock, arrivals) = (lock.clone(), arrivals.clone());
        Task::new().name("blocks").spawn(async move {
            arrivals.arrive();
            wait(&lock);
        });
    }
    arrivals.wait(1 + workers).await;
    resume
}

/// A task holds a lock while it awaits this, and another one waits for the lock.
async fn held_while(awaited: impl Future<Output = ()> + Send + 'static) {
    let (lock, arrivals) = (Arc::new(Mutex::new(0)), Arc::new(Arrivals::default()));
    lock.set_name("the lock");
    let (held, noted) = (lock.clone(), arrivals.clone());
    Task::new().name("sleeper").spawn(async move {
        let _guard = held.lock().await;
        noting(awaited, &noted).await;
    });
    arrivals.wait(1).await;
    let noted = arrivals.clone();
    Task::new().name("waiter").spawn(async move { noting(lock_briefly(&lock), &noted).await });
    arrivals.wait(2).await;
}

/// A task awaits a future that keeps no waker, and holds a lock.
pub(crate) async fn lost_waker() {
    held_while(poll_fn(|_| std::task::Poll::Pending)).await;
}

/// A task holds a lock while it sleeps, and another one waits for the lock.
pub(crate) async fn lock_over_sleep() {
    held_while(librip::task::at(async { tokio::time::sleep(Duration::MAX).await })).await;
}
