//! Small async programs with bugs, or that only seem to have them. `verdicts` runs `read-rip` on them.
//!
//! ```text
//! tasks NAME
//! ```
//!
//! Each reaches its state, prints `ready`, and stays there until it is killed. It judges nothing.

#![allow(unsafe_code, reason = "tokio moves only what is `Send`, which a guard of a lock of threads is not")]

use std::future::poll_fn;
use std::io::Write;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use librip::sync::{Arc, PoisonError};
use librip_tokio::Task;
use librip_tokio::sync::{Barrier, Mutex, Notify, mpsc, oneshot};

type Scenario = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

/// How many short tasks `many-short` makes.
const SHORT: usize = 200_000;
/// How many living tasks `crowd` makes. Its test gives the ring fewer slots.
const CROWD: usize = 100;

const SCENARIOS: &[Scenario] = &[
    ("futurelock", || Box::pin(futurelock())),
    ("opposite-orders", || Box::pin(opposite_orders())),
    ("thread-lock-over-await", || Box::pin(thread_lock_over_await())),
    ("busy-workers", || Box::pin(busy_workers())),
    ("full-channel-and-lock", || Box::pin(full_channel_and_lock())),
    ("full-both-ways", || Box::pin(full_both_ways())),
    ("own-sender", || Box::pin(own_sender())),
    ("leaked-receiver", || Box::pin(leaked_receiver())),
    ("lost-waker", || Box::pin(lost_waker())),
    ("lock-over-sleep", || Box::pin(lock_over_sleep())),
    ("healthy-channels", || Box::pin(healthy_channels())),
    ("healthy", || Box::pin(healthy())),
    ("many-short", || Box::pin(many_short())),
    ("crowd", || Box::pin(crowd())),
];

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, scenario)) = SCENARIOS.iter().find(|(name, _)| *name == wanted) else {
        eprintln!("no such scenario: {wanted}");
        std::process::exit(2);
    };
    librip::init().expect("the test gives a directory for the ring");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = librip_tokio::watch(&mut builder).worker_threads(2).enable_time().build();
    let runtime = runtime.expect("two threads can be started");
    // Not as a task: a task of the main thread would be in every result.
    runtime.block_on(scenario());
    say_ready();
    thread::sleep(Duration::MAX);
}

fn say_ready() {
    println!("ready");
    std::io::stdout().flush().expect("the test reads the output");
}

/// Counts those that have arrived.
#[derive(Default)]
struct Arrivals(AtomicUsize, tokio::sync::Notify);

impl Arrivals {
    fn arrive(&self) {
        self.0.fetch_add(1, SeqCst);
        self.1.notify_one();
    }

    async fn wait(&self, count: usize) {
        while self.0.load(SeqCst) < count {
            self.1.notified().await;
        }
    }
}

/// Awaits a future, and arrives whenever a poll of it has returned without a result.
async fn noting<F: Future>(future: F, arrivals: &Arrivals) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let poll = future.as_mut().poll(cx);
        if poll.is_pending() {
            arrivals.arrive();
        }
        poll
    })
    .await
}

#[librip::traced]
async fn lock_briefly(lock: &Mutex<i32>) {
    *lock.lock().await += 1;
}

/// The program of Oxide's RFD 609: a task waits for a lock that another future of its own is next to get, and does not
/// poll that future any more.
async fn futurelock() {
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
            () = elapsed.notified() => noting(lock_briefly(&of_task), &noted[1]).await,
        }
    });
    polls[0].wait(1).await;
    timeout.notify_one();
    polls[1].wait(1).await;
    drop(guard);
    // Tokio wakes the task, because the first future is next. The task polls the second one.
    polls[1].wait(2).await;
}

/// Two tasks take two locks in opposite orders.
async fn opposite_orders() {
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

/// A task holds a lock of threads while it is suspended, and both workers wait for that lock.
async fn thread_lock_over_await() {
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
    for _ in 0..2 {
        let (lock, arrivals) = (lock.clone(), arrivals.clone());
        Task::new().name("blocks").spawn(async move {
            arrivals.arrive();
            *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        });
    }
    arrivals.wait(3).await;
    resume.notify_one();
}

struct Moves<F>(F);

// SAFETY: the lock of the guard within is never released, so no thread releases what another one has acquired.
unsafe impl<F> Send for Moves<F> {}

impl<F: Future> Future for Moves<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<F::Output> {
        // SAFETY: the future is not moved out of what is pinned.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(cx)
    }
}

/// Both workers are in polls that do not return, and three tasks wait for one.
async fn busy_workers() {
    let arrivals = Arc::new(Arrivals::default());
    for _ in 0..2 {
        let arrivals = arrivals.clone();
        Task::new().name("blocks").spawn(async move {
            arrivals.arrive();
            thread::sleep(Duration::MAX);
        });
    }
    arrivals.wait(2).await;
    for _ in 0..3 {
        Task::new().name("victim").spawn(async {});
    }
}

/// A task sends while it holds a lock, and the task that receives needs that lock.
async fn full_channel_and_lock() {
    let (jobs, mut inbox) = mpsc::channel(1);
    jobs.set_name("jobs");
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("statistics");
    let [received, full, stuck]: [Arc<Arrivals>; 3] = Default::default();
    let (held, noted, first) = (lock.clone(), full.clone(), received.clone());
    Task::new().name("producer").spawn(async move {
        let _ = jobs.send(1).await;
        first.wait(1).await;
        let _guard = held.lock().await;
        for job in 2.. {
            let _ = noting(jobs.send(job), &noted).await;
        }
    });
    let noted = stuck.clone();
    Task::new().name("consumer").spawn(async move {
        while let Some(job) = inbox.recv().await {
            received.arrive();
            // Not before the other one has the lock, and has filled the channel.
            full.wait(1).await;
            *noting(lock.lock(), &noted).await += job;
        }
    });
    stuck.wait(1).await;
}

/// Two tasks send to one another through channels that are full.
async fn full_both_ways() {
    let arrivals = Arc::new(Arrivals::default());
    let ((to_right, mut right), (to_left, mut left)) = (mpsc::channel(1), mpsc::channel(1));
    to_right.set_name("to the right");
    to_left.set_name("to the left");
    let (noted, halfway) = (arrivals.clone(), Arc::new(Barrier::new(2)));
    let met = halfway.clone();
    Task::new().name("left").spawn(async move {
        let _ = to_right.send(0).await;
        let _ = left.recv().await;
        met.wait().await;
        while noting(to_right.send(1), &noted).await.is_ok() {}
        left.recv().await
    });
    let noted = arrivals.clone();
    Task::new().name("right").spawn(async move {
        let _ = to_left.send(0).await;
        let _ = right.recv().await;
        halfway.wait().await;
        while noting(to_left.send(1), &noted).await.is_ok() {}
        right.recv().await
    });
    arrivals.wait(2).await;
}

/// A task collects the results of others, and forgets that it has a sender itself.
async fn own_sender() {
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("collector").spawn(async move {
        let (results, mut collected) = mpsc::channel(8);
        results.set_name("results");
        for number in 0..4 {
            let results = results.clone();
            Task::new().name("worker").spawn(async move { results.send(number).await });
        }
        let mut sum = 0;
        while let Some(number) = collected.recv().await {
            sum += number;
            if sum == 6 {
                noted.arrive();
            }
        }
        sum
    });
    arrivals.wait(1).await;
}

/// The task that receives ends, and what it leaves behind keeps the receiver.
async fn leaked_receiver() {
    let arrivals = Arc::new(Arrivals::default());
    let (jobs, mut inbox) = mpsc::channel(1);
    jobs.set_name("jobs");
    let noted = arrivals.clone();
    Task::new().name("producer").spawn(async move {
        // One that is received, and one for which there is room.
        for job in 0..2 {
            let _ = jobs.send(job).await;
        }
        noting(jobs.send(2), &noted).await
    });
    let consumer = Task::new().name("consumer").spawn(async move {
        let _ = inbox.recv().await;
        inbox
    });
    let inbox = consumer.await.expect("no task panics");
    std::mem::forget(inbox);
    arrivals.wait(1).await;
}

/// A task awaits a future that keeps no waker, and holds a lock.
async fn lost_waker() {
    let (lock, arrivals) = (Arc::new(Mutex::new(0)), Arc::new(Arrivals::default()));
    lock.set_name("the lock");
    let (held, noted) = (lock.clone(), arrivals.clone());
    Task::new().name("sleeper").spawn(async move {
        let _guard = held.lock().await;
        noting(poll_fn(|_| std::task::Poll::<()>::Pending), &noted).await;
    });
    arrivals.wait(1).await;
    let noted = arrivals.clone();
    Task::new().name("waiter").spawn(async move { noting(lock_briefly(&lock), &noted).await });
    arrivals.wait(2).await;
}

/// A task holds a lock while it sleeps, and another one waits for the lock.
async fn lock_over_sleep() {
    let (lock, arrivals) = (Arc::new(Mutex::new(0)), Arc::new(Arrivals::default()));
    lock.set_name("the lock");
    let (held, noted) = (lock.clone(), arrivals.clone());
    Task::new().name("sleeper").spawn(async move {
        let _guard = held.lock().await;
        noting(librip::task::at(tokio::time::sleep(Duration::MAX)), &noted).await;
    });
    arrivals.wait(1).await;
    let noted = arrivals.clone();
    Task::new().name("waiter").spawn(async move { noting(lock_briefly(&lock), &noted).await });
    arrivals.wait(2).await;
}

/// Channels of healthy programs: idle servers, handles that many share, requests with answers, and full channels that
/// are emptied.
async fn healthy_channels() {
    let arrivals = Arc::new(Arrivals::default());
    // Two actors that know one another. A handle of each is shared with others too.
    let ((to_ping, mut ping), (to_pong, mut pong)) = (mpsc::channel(4), mpsc::channel(4));
    let handles = Arc::new((to_ping, to_pong));
    let (known, noted) = (handles.clone(), arrivals.clone());
    Task::new().name("ping").spawn(async move {
        while let Some(number) = noting(ping.recv(), &noted).await {
            if number > 0 {
                let _ = known.1.send(number - 1).await;
            }
        }
    });
    let (known, noted) = (handles.clone(), arrivals.clone());
    Task::new().name("pong").spawn(async move {
        while let Some(number) = noting(pong.recv(), &noted).await {
            if number > 0 {
                let _ = known.0.send(number - 1).await;
            }
        }
    });
    for _ in 0..10 {
        let known = handles.clone();
        Task::new().name("client").spawn(async move { known.0.send(3).await }).await.unwrap().unwrap();
    }
    // A server that answers requests, and a client that is asleep between two of them.
    let (requests, mut inbox) = mpsc::channel::<oneshot::Sender<i32>>(1);
    let noted = arrivals.clone();
    Task::new().name("server").spawn(async move {
        while let Some(answer) = noting(inbox.recv(), &noted).await {
            let _ = answer.send(7);
        }
    });
    let noted = arrivals.clone();
    Task::new().name("periodic").spawn(async move {
        loop {
            let (answer, answered) = oneshot::channel();
            requests.send(answer).await.unwrap();
            answered.await.unwrap();
            noted.arrive();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    // A producer that is faster than its consumer, which works.
    let (jobs, mut work) = mpsc::channel(1);
    Task::new().name("fast").spawn(async move { while jobs.send(1).await.is_ok() {} });
    let noted = arrivals.clone();
    Task::new().name("slow").spawn(async move {
        while work.recv().await.is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            noted.arrive();
        }
    });
    arrivals.wait(100).await;
    // The state of the program keeps its handles.
    std::mem::forget(handles);
}

/// Tasks that look like trouble and go on: they share locks, poll several futures that want one lock, and give up
/// waits.
async fn healthy() {
    let locks: Arc<[Mutex<i32>; 3]> = Arc::new(std::array::from_fn(|_| Mutex::new(0)));
    for number in 0..40 {
        let locks = locks.clone();
        Task::new().name("worker").spawn(async move {
            loop {
                let first = &locks[number % 3];
                tokio::join!(lock_briefly(first), lock_briefly(first));
                let dropped = tokio::time::timeout(Duration::from_micros(50), lock_briefly(&locks[2]));
                let _ = dropped.await;
                let _guard = locks[0].lock().await;
                tokio::task::yield_now().await;
                lock_briefly(&locks[1]).await;
            }
        });
    }
    for _ in 0..40 {
        Task::new().name("idle").spawn(std::future::pending::<()>());
    }
    while *locks[1].lock().await < 100 {
        tokio::task::yield_now().await;
    }
}

/// Three tasks that live, one of which holds a lock, and many that have ended since they began.
async fn many_short() {
    let (lock, arrivals) = (Arc::new(Mutex::new(0)), Arc::new(Arrivals::default()));
    lock.set_name("kept");
    let (kept, noted) = (lock.clone(), arrivals.clone());
    Task::new().name("keeper").spawn(async move {
        let _guard = kept.lock().await;
        noting(std::future::pending::<()>(), &noted).await;
    });
    arrivals.wait(1).await;
    for _ in 0..2 {
        let (lock, arrivals) = (lock.clone(), arrivals.clone());
        Task::new().name("waiter").spawn(async move { noting(lock_briefly(&lock), &arrivals).await });
    }
    arrivals.wait(3).await;
    for _ in 0..SHORT / 100 {
        let batch: Vec<_> = (0..100).map(|_| librip_tokio::spawn(tokio::task::yield_now())).collect();
        for task in batch {
            task.await.expect("no task panics");
        }
    }
}

/// More living tasks than slots.
async fn crowd() {
    let arrivals = Arc::new(Arrivals::default());
    for _ in 0..CROWD {
        let arrivals = arrivals.clone();
        Task::new().name("one of many").spawn(async move {
            noting(std::future::pending::<()>(), &arrivals).await;
        });
    }
    arrivals.wait(CROWD).await;
}
