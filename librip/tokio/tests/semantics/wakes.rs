use std::sync::Arc;

use librip_tokio::sync::{Barrier, Notify};

use super::{Spawned, on_two_workers, start};

#[test]
fn a_notification_is_kept_for_one_and_the_next_waits() {
    start();
    let notify = Notify::new();
    notify.notify_one();
    notify.notify_one();
    Spawned::new(notify.notified()).ready();
    Spawned::new(notify.notified()).waits();
}

#[test]
fn the_first_or_the_last_is_notified() {
    start();
    let notify = Notify::new();
    let mut waiters = [(); 3].map(|()| Spawned::new(notify.notified()));
    waiters.iter_mut().for_each(Spawned::waits);
    notify.notify_one();
    assert_eq!(waiters.each_ref().map(Spawned::is_woken), [true, false, false]);
    notify.notify_last();
    assert_eq!(waiters.each_ref().map(Spawned::is_woken), [true, false, true]);
}

#[test]
fn all_are_notified_that_were_made_before_and_none_made_after() {
    start();
    let notify = Notify::new();
    let mut polled = Spawned::new(notify.notified());
    polled.waits();
    let mut unpolled = Spawned::new(notify.notified());
    notify.notify_waiters();
    let mut later = Spawned::new(notify.notified());
    polled.ready();
    unpolled.ready();
    later.waits();
}

#[test]
fn a_notification_of_a_future_that_is_dropped_goes_to_the_next() {
    start();
    let notify = Notify::new();
    let [mut first, mut second] = [(); 2].map(|()| Spawned::new(notify.notified()));
    first.waits();
    second.waits();
    notify.notify_one();
    drop(first);
    assert!(second.is_woken());
    second.ready();
}

#[test]
fn a_future_that_is_enabled_is_in_line() {
    start();
    let notify = Arc::new(Notify::new());
    let mut first = Spawned::new(notify.notified());
    let mut second = Spawned::new(Arc::clone(&notify).notified_owned());
    assert!(!first.pinned().enable());
    assert!(!second.pinned().enable());
    notify.notify_one();
    second.waits();
    assert!(first.pinned().enable());
    first.ready();
    notify.notify_one();
    second.ready();
    drop(second);
    assert_eq!(Arc::strong_count(&notify), 1);
}

#[test]
fn an_owned_future_outlives_the_other_owners() {
    start();
    let notify = Arc::new(Notify::new());
    let mut owned = Spawned::new(Arc::clone(&notify).notified_owned());
    owned.waits();
    notify.notify_waiters();
    drop(notify);
    owned.ready();
}

#[test]
fn one_of_a_round_at_a_barrier_leads() {
    let leaders = on_two_workers(async {
        let barrier = Arc::new(Barrier::new(3));
        let mut set = librip_tokio::task::JoinSet::new();
        for _ in 0..6 {
            let barrier = Arc::clone(&barrier);
            set.spawn(async move { barrier.wait().await.is_leader() });
        }
        set.join_all().await.into_iter().filter(|&is_leader| is_leader).count()
    });
    assert_eq!(leaders, 2);
}

#[test]
fn a_barrier_for_nobody_is_one_for_one() {
    start();
    assert!(Spawned::new(Barrier::new(0).wait()).ready().is_leader());
}
