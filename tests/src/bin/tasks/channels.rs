//! Channels whose other side is stuck, gone, or only slow.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use librip::sync::Arc;
use librip_tokio::Task;
use librip_tokio::sync::{Barrier, Mutex, Notify, mpsc, oneshot, watch};

use crate::arrivals::{Arrivals, noting};

/// A task sends while it holds a lock, and the task that receives needs that lock.
pub(crate) async fn full_channel_and_lock() {
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
pub(crate) async fn full_both_ways() {
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
pub(crate) async fn own_sender() {
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

/// A task awaits the next value under a lock that the only task which sends it needs.
pub(crate) async fn change_under_a_lock() {
    let (values, mut seen) = watch::channel(0);
    seen.set_name("the value");
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("the lock");
    let [held, stuck]: [Arc<Arrivals>; 2] = Default::default();
    let (of_reader, begun) = (lock.clone(), held.clone());
    let [of_sender, of_waiting] = [stuck.clone(), stuck.clone()];
    Task::new().name("sender").spawn(async move {
        let _ = values.send(1);
        begun.wait(1).await;
        let _guard = noting(lock.lock(), &of_sender).await;
        let _ = values.send(2);
    });
    Task::new().name("reader").spawn(async move {
        let _guard = of_reader.lock().await;
        while *seen.borrow_and_update() == 0 {
            let _ = seen.changed().await;
        }
        held.arrive();
        let _ = noting(seen.changed(), &of_waiting).await;
    });
    stuck.wait(2).await;
}

/// The task that receives ends, and what it leaves behind keeps the receiver.
pub(crate) async fn leaked_receiver() {
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

/// What one actor asks another one.
enum Request {
    /// To ask the other one.
    Ask,
    Answer(oneshot::Sender<i32>),
}

/// Handles a request as each of two actors does: `ask` gives the other one a request.
async fn handle(request: Request, both_know: &Barrier, ask: impl AsyncFnOnce(Request), stuck: &Arrivals) {
    match request {
        Request::Ask => {
            both_know.wait().await;
            let (answer, answered) = oneshot::channel();
            ask(Request::Answer(answer)).await;
            let _ = noting(answered, stuck).await;
        }
        Request::Answer(answer) => drop(answer.send(1)),
    }
}

/// Each of two actors asks the other one while it handles a request itself.
pub(crate) async fn requests_both_ways() {
    let (both_know, stuck) = (Arc::new(Barrier::new(2)), Arc::new(Arrivals::default()));
    let ((to_left, mut left), (to_right, mut right)) = (mpsc::channel(4), mpsc::unbounded_channel());
    let (asks_left, asks_right) = (to_left.clone(), to_right.clone());
    let (met, noted) = (both_know.clone(), stuck.clone());
    Task::new().name("left").spawn(async move {
        while let Some(request) = left.recv().await {
            handle(request, &met, async |request| drop(asks_right.send(request)), &noted).await;
        }
    });
    let noted = stuck.clone();
    Task::new().name("right").spawn(async move {
        while let Some(request) = right.recv().await {
            handle(request, &both_know, async |request| drop(asks_left.send(request).await), &noted).await;
        }
    });
    let _ = to_left.send(Request::Ask).await;
    let _ = to_right.send(Request::Ask);
    stuck.wait(2).await;
}

/// A task asks another one while it holds a lock that the other one needs to answer.
pub(crate) async fn request_under_a_lock() {
    let [idle, stuck]: [Arc<Arrivals>; 2] = Default::default();
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("accounts");
    let (requests, mut inbox) = mpsc::channel::<oneshot::Sender<i32>>(4);
    let (locked, noted, waits) = (lock.clone(), stuck.clone(), idle.clone());
    Task::new().name("server").spawn(async move {
        while let Some(answer) = noting(inbox.recv(), &waits).await {
            let account = noting(locked.lock(), &noted).await;
            let _ = answer.send(*account);
        }
    });
    idle.wait(1).await;
    let noted = stuck.clone();
    Task::new().name("client").spawn(async move {
        let mut account = lock.lock().await;
        let (answer, answered) = oneshot::channel();
        answered.set_name("the answer");
        let _ = requests.send(answer).await;
        *account += noting(answered, &noted).await.unwrap_or(0);
    });
    stuck.wait(2).await;
}

/// Tasks wait for answers to requests that were taken, and are never answered. Another task waits for what is not
/// recorded, as that which accepts connections.
pub(crate) async fn unanswered_requests() {
    let [idle, stuck]: [Arc<Arrivals>; 2] = Default::default();
    let (requests, mut inbox) = mpsc::channel::<oneshot::Sender<i32>>(4);
    let noted = idle.clone();
    Task::new().name("server").spawn(async move {
        let mut taken = Vec::new();
        while let Some(answer) = noting(inbox.recv(), &noted).await {
            taken.push(answer);
        }
    });
    let noted = idle.clone();
    Task::new()
        .name("listener")
        .spawn(async move { noting(tokio::time::sleep(Duration::MAX), &noted).await });
    // Who receives is known once the server has waited.
    idle.wait(2).await;
    for _ in 0..2 {
        let (requests, noted) = (requests.clone(), stuck.clone());
        Task::new().name("client").spawn(async move {
            let (answer, answered) = oneshot::channel();
            let _ = requests.send(answer).await;
            let _ = noting(answered, &noted).await;
        });
    }
    stuck.wait(2).await;
    drop(requests);
    idle.wait(3).await;
}

/// A request waits for a notification that nobody gives, beside a task that waits for what is not recorded.
pub(crate) async fn request_for_ever() {
    let (event, waits) = (Arc::new(Notify::new()), Arc::new(Arrivals::default()));
    event.set_name("the event");
    let noted = waits.clone();
    Task::new()
        .name("listener")
        .spawn(async move { noting(tokio::time::sleep(Duration::MAX), &noted).await });
    let (noted, request) = (waits.clone(), Task::new().kind_name("GET /events"));
    tokio::spawn(request.traced(async move { noting(event.notified(), &noted).await }));
    waits.wait(2).await;
}

/// Meets others at a barrier, once for each of these.
async fn meet(barrier: Arc<Barrier>, rounds: Vec<Arc<Arrivals>>) {
    for arrivals in rounds {
        noting(barrier.wait(), &arrivals).await;
    }
}

/// Three tasks meet at a barrier, one of them ends, and the others wait there for it. Another task waits for what is
/// not recorded.
pub(crate) async fn missing_party() {
    let barrier = Arc::new(Barrier::new(3));
    barrier.set_name("the round");
    let [first, second]: [Arc<Arrivals>; 2] = Default::default();
    let noted = first.clone();
    Task::new()
        .name("listener")
        .spawn(async move { noting(tokio::time::sleep(Duration::MAX), &noted).await });
    for _ in 0..2 {
        Task::new().name("party").spawn(meet(barrier.clone(), vec![first.clone(), second.clone()]));
    }
    let third = Task::new().name("third").spawn(meet(barrier, vec![first]));
    third.await.expect("no task panics");
    second.wait(2).await;
}

/// An actor asks a slow task and then another actor, awaits the answer of the slow one first, and the other actor asks
/// the first one meanwhile. If the first one awaited the other answer first, that would be a deadlock.
pub(crate) async fn two_requests_at_once() {
    let stuck = Arc::new(Arrivals::default());
    let (to_slow, mut slow) = mpsc::channel::<oneshot::Sender<i32>>(4);
    Task::new().name("slow").spawn(async move {
        while let Some(answer) = slow.recv().await {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let _ = answer.send(1);
        }
    });
    let (to_other, mut other) = mpsc::channel::<oneshot::Sender<i32>>(4);
    let (to_first, mut first) = mpsc::channel::<oneshot::Sender<i32>>(4);
    let noted = stuck.clone();
    Task::new().name("other").spawn(async move {
        while let Some(answer) = other.recv().await {
            let (own, answered) = oneshot::channel();
            let _ = to_first.send(own).await;
            let _ = answer.send(noting(answered, &noted).await.unwrap_or(0));
        }
    });
    let noted = stuck.clone();
    Task::new().name("first").spawn(async move {
        loop {
            let (own, of_slow) = oneshot::channel();
            let _ = to_slow.send(own).await;
            let (own, of_other) = oneshot::channel();
            let _ = to_other.send(own).await;
            let _ = noting(of_slow, &noted).await;
            if let Some(answer) = first.recv().await {
                let _ = answer.send(2);
            }
            let _ = of_other.await;
        }
    });
    // Each has received before: so who receives from whom is known.
    stuck.wait(4).await;
}

/// Requests that go on: one who is asked asks somebody else, hands a request on to another one or to a task that is
/// made for it, or is asked again by one who has given up.
pub(crate) async fn healthy_requests() {
    let arrivals = Arc::new(Arrivals::default());
    let (to_spawning, mut spawning) = mpsc::channel::<oneshot::Sender<i32>>(4);
    Task::new().name("spawning").spawn(async move {
        while let Some(answer) = spawning.recv().await {
            Task::new().name("handler").spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let _ = answer.send(1);
            });
        }
    });
    let noted = arrivals.clone();
    Task::new().name("only client").spawn(async move {
        loop {
            let (answer, answered) = oneshot::channel();
            let _ = to_spawning.send(answer).await;
            let _ = noting(answered, &noted).await;
        }
    });
    let (to_last, mut last) = mpsc::channel::<oneshot::Sender<i32>>(4);
    let noted = arrivals.clone();
    Task::new().name("last").spawn(async move {
        while let Some(answer) = last.recv().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let _ = answer.send(1);
            noted.arrive();
        }
    });
    let (to_middle, mut middle) = mpsc::channel::<(bool, oneshot::Sender<i32>)>(4);
    let asks_last = to_last.clone();
    Task::new().name("middle").spawn(async move {
        while let Some((is_handed_on, answer)) = middle.recv().await {
            if is_handed_on {
                let _ = asks_last.send(answer).await;
                continue;
            }
            let (own, answered) = oneshot::channel();
            let _ = asks_last.send(own).await;
            let _ = answer.send(answered.await.unwrap_or(0));
        }
    });
    for name in ["one", "another"] {
        let asks_middle = to_middle.clone();
        Task::new().name(name).spawn(async move {
            for round in 0.. {
                let (answer, answered) = oneshot::channel();
                let _ = asks_middle.send((round % 2 == 0, answer)).await;
                let _ = answered.await;
                // An answer that nobody waits for any more.
                let (answer, forgotten) = oneshot::channel();
                let _ = asks_middle.send((false, answer)).await;
                drop(forgotten);
            }
        });
    }
    arrivals.wait(100).await;
}

/// A task waits for a notification, gets it, and waits for the next one.
pub(crate) async fn notified_again() {
    let waits = Arc::new(Arrivals::default());
    let event = Arc::new(Notify::new());
    event.set_name("the event");
    let (listened, noted) = (event.clone(), waits.clone());
    Task::new().name("listener").spawn(async move {
        loop {
            noting(listened.notified(), &noted).await;
        }
    });
    waits.wait(1).await;
    event.notify_one();
    waits.wait(2).await;
}

/// A task sees that it has to wait, and is notified before it does. Nobody notifies it again.
pub(crate) async fn notified_before() {
    let (checked, waits) = (Arc::new(Arrivals::default()), Arc::new(Arrivals::default()));
    let ready = Arc::new(Notify::new());
    ready.set_name("ready");
    let (is_ready, resume) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let (listened, flag, go_on) = (ready.clone(), is_ready.clone(), resume.clone());
    let (noted_check, noted) = (checked.clone(), waits.clone());
    Task::new().name("listener").spawn(async move {
        if !flag.load(SeqCst) {
            noted_check.arrive();
            go_on.notified().await;
            noting(listened.notified(), &noted).await;
        }
    });
    checked.wait(1).await;
    is_ready.store(true, SeqCst);
    ready.notify_waiters();
    resume.notify_one();
    waits.wait(1).await;
}

/// Channels of healthy programs: idle servers, handles that many share, requests with answers, and full channels that
/// are emptied.
pub(crate) async fn healthy_channels() {
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
    // A sender that has waited for a receiver, which has moved on, and now waits for the end of the channel.
    let (items, mut first_items) = mpsc::channel(1);
    let [received, full, closing]: [Arc<Arrivals>; 3] = Default::default();
    let (goes_on, noted, closes) = (received.clone(), full.clone(), closing.clone());
    Task::new().name("closing").spawn(async move {
        items.send(0).await.unwrap();
        goes_on.wait(1).await;
        items.send(1).await.unwrap();
        noting(items.send(2), &noted).await.unwrap();
        noting(items.closed(), &closes).await;
    });
    let moves = Task::new().name("moves").spawn(async move {
        let _ = first_items.recv().await;
        received.arrive();
        full.wait(1).await;
        let _ = first_items.recv().await;
        first_items
    });
    let last_items = moves.await.unwrap();
    Task::new().name("last").spawn(async move {
        tokio::time::sleep(Duration::MAX).await;
        drop(last_items);
    });
    closing.wait(1).await;
    // An actor that is idle, and whose own sender is the only one that is not weak.
    let (own, mut inbox) = mpsc::channel(1);
    let weak = own.downgrade();
    let noted = arrivals.clone();
    Task::new().name("actor").spawn(async move {
        own.send(1).await.unwrap();
        while noting(inbox.recv(), &noted).await.is_some() {}
    });
    arrivals.wait(100).await;
    std::mem::forget(weak);
    // The state of the program keeps its handles.
    std::mem::forget(handles);
}

/// Tasks that lock something briefly and then wait for a slow consumer.
pub(crate) async fn healthy_backpressure() {
    let lock = Arc::new(Mutex::new(0));
    let (jobs, mut inbox) = mpsc::channel(1);
    let full = Arc::new(Arrivals::default());
    for _ in 0..4 {
        let (lock, jobs, full) = (lock.clone(), jobs.clone(), full.clone());
        Task::new().name("producer").spawn(async move {
            for round in 0.. {
                let job = { *lock.lock().await + round };
                let _ = noting(jobs.send(job), &full).await;
            }
        });
    }
    Task::new().name("consumer").spawn(async move {
        while inbox.recv().await.is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    full.wait(200).await;
}
