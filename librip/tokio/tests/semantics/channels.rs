use std::sync::Arc;

use librip_tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::{Spawned, on_one_thread, on_two_workers, start};

#[test]
fn a_sender_waits_for_room_in_line() {
    start();
    let (sender, mut receiver) = mpsc::channel(1);
    Spawned::new(sender.send(1)).ready().unwrap();
    let mut second = Spawned::new(sender.send(2));
    let mut third = Spawned::new(sender.send(3));
    second.waits();
    third.waits();
    assert_eq!(receiver.try_recv(), Ok(1));
    assert!(second.is_woken() && !third.is_woken());
    drop(second);
    third.ready().unwrap();
    assert_eq!(Spawned::new(receiver.recv()).ready(), Some(3));
    assert!(receiver.is_empty());
}

#[test]
fn a_receiver_waits_and_gets_nothing_when_all_senders_are_gone() {
    start();
    let (sender, mut receiver) = mpsc::channel::<u8>(4);
    let other = sender.clone();
    let weak = sender.downgrade();
    {
        let mut receives = Spawned::new(receiver.recv());
        receives.waits();
        other.try_send(1).unwrap();
        assert!(receives.is_woken());
        assert_eq!(receives.ready(), Some(1));
    }
    assert!(sender.same_channel(&other));
    assert_eq!((receiver.sender_strong_count(), weak.weak_count()), (2, 1));
    drop((sender, other));
    assert!(weak.upgrade().is_none());
    assert_eq!(Spawned::new(receiver.recv()).ready(), None);
}

#[test]
fn a_wait_to_receive_that_is_dropped_loses_nothing() {
    start();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut receives = Spawned::new(receiver.recv());
    receives.waits();
    sender.send(1).unwrap();
    drop(receives);
    sender.send(2).unwrap();
    let mut buffer = Vec::new();
    assert_eq!(Spawned::new(receiver.recv_many(&mut buffer, 10)).ready(), 2);
    assert_eq!(buffer, [1, 2]);
    receiver.close();
    assert!(sender.send(3).is_err());
}

#[test]
fn room_is_reserved_and_given_back() {
    start();
    let (sender, mut receiver) = mpsc::channel(2);
    let permit = Spawned::new(sender.reserve()).ready().unwrap();
    let mut many = Spawned::new(sender.reserve_many(2));
    many.waits();
    permit.send(1);
    assert_eq!(receiver.try_recv(), Ok(1));
    let mut permits = many.ready().unwrap();
    permits.next().unwrap().send(2);
    assert!(sender.try_reserve().is_err());
    drop(permits);
    let owned = Spawned::new(sender.clone().reserve_owned()).ready().unwrap();
    assert!(owned.same_channel_as_sender(&sender));
    assert_eq!(sender.capacity(), 0);
    let returned = owned.release();
    assert_eq!(returned.capacity(), 1);
    let returned = returned.try_reserve_owned().unwrap().send(3);
    let full = returned.try_reserve_owned().unwrap_err();
    assert!(matches!(full, mpsc::error::TrySendError::Full(sender) if sender.max_capacity() == 2));
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(2), Ok(3)));
}

#[test]
fn a_sender_learns_that_the_receiver_is_gone() {
    start();
    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(1).unwrap();
    let mut sends = Spawned::new(sender.send(2));
    let mut closed = Spawned::new(sender.closed());
    sends.waits();
    closed.waits();
    drop(receiver);
    assert!(sends.is_woken() && closed.is_woken());
    closed.ready();
    assert_eq!(sends.ready().unwrap_err().0, 2);
    assert!(sender.is_closed());
}

#[test]
fn tasks_on_two_workers_exchange_messages() {
    let sum = on_two_workers(async {
        let (sender, mut receiver) = mpsc::channel(2);
        for part in 0..4 {
            let sender = sender.clone();
            librip_tokio::spawn(async move {
                for number in 0..100 {
                    sender.send(part * 100 + number).await.unwrap();
                }
            });
        }
        drop(sender);
        let mut sum = 0;
        while let Some(number) = receiver.recv().await {
            sum += number;
        }
        sum
    });
    assert_eq!(sum, (0..400).sum());
}

#[test]
fn a_oneshot_receiver_may_be_polled_many_times_and_moved_between() {
    start();
    let (sender, mut receiver) = oneshot::channel();
    assert!(Spawned::new(&mut receiver).poll().is_pending());
    let mut moved = Box::new(receiver);
    assert!(moved.try_recv().is_err() && moved.is_empty());
    sender.send(7).unwrap();
    assert_eq!(Spawned::new(*moved).ready(), Ok(7));
}

#[test]
fn the_ends_of_a_oneshot_channel_learn_of_each_other() {
    start();
    let (mut sender, mut receiver) = oneshot::channel::<u8>();
    let mut closed = Spawned::new(sender.closed());
    closed.waits();
    receiver.close();
    closed.ready();
    drop(closed);
    assert_eq!(sender.send(1), Err(1));
    let (sender, receiver) = oneshot::channel::<u8>();
    drop(sender);
    assert!(Spawned::new(receiver).ready().is_err());
}

#[test]
fn a_watcher_sees_the_last_value_and_waits_for_another() {
    start();
    let (sender, mut receiver) = watch::channel(1);
    let mut other = sender.subscribe();
    assert!(receiver.same_channel(&other));
    {
        let mut changed = Spawned::new(receiver.changed());
        changed.waits();
        sender.send(2).unwrap();
        sender.send_modify(|value| *value += 1);
        assert!(changed.is_woken());
        changed.ready().unwrap();
    }
    assert_eq!(*receiver.borrow(), 3);
    {
        let mut wanted = Spawned::new(other.wait_for(|&value| value == 9));
        wanted.waits();
        assert_eq!(sender.send_replace(9), 3);
        assert_eq!(*wanted.ready().unwrap(), 9);
    }
    let closing = sender.clone();
    let mut closed = Spawned::new(closing.closed());
    closed.waits();
    drop(other);
    closed.waits();
    let mut last = receiver.clone();
    drop((receiver, sender));
    last.mark_unchanged();
    closed.waits();
    drop(last);
    closed.ready();
}

#[test]
fn a_watcher_learns_that_the_sender_is_gone() {
    start();
    let (sender, mut receiver) = watch::channel(());
    assert!(!receiver.is_closed());
    sender.send(()).unwrap();
    assert!(!receiver.is_closed());
    drop(sender);
    assert!(receiver.is_closed(), "also if it has not seen the last value");
    assert!(Spawned::new(receiver.changed()).ready().is_ok());
    assert!(Spawned::new(receiver.changed()).ready().is_err());
    assert!(receiver.has_changed().is_err());
}

#[test]
fn each_receiver_of_a_broadcast_gets_each_message_or_learns_what_it_missed() {
    start();
    let (sender, mut receiver) = broadcast::channel(2);
    let mut other = sender.subscribe();
    {
        let mut receives = Spawned::new(receiver.recv());
        receives.waits();
        sender.send(1).unwrap();
        assert_eq!(receives.ready(), Ok(1));
    }
    sender.send(2).unwrap();
    sender.send(3).unwrap();
    assert_eq!(Spawned::new(other.recv()).ready(), Err(broadcast::error::RecvError::Lagged(1)));
    assert_eq!((other.try_recv(), other.len(), receiver.len()), (Ok(2), 1, 2));
    let weak = sender.downgrade();
    drop(sender);
    assert!(weak.upgrade().is_none());
    assert_eq!(Spawned::new(receiver.resubscribe().recv()).ready(), Err(broadcast::error::RecvError::Closed));
}

#[test]
fn ends_that_were_given_away_work_on() {
    on_one_thread(async {
        let (sender, receiver) = mpsc::channel(1);
        let mut receiver: tokio::sync::mpsc::Receiver<u8> = receiver.into_inner();
        let sender: tokio::sync::mpsc::Sender<u8> = sender.into_inner();
        sender.send(7).await.unwrap();
        assert_eq!(receiver.recv().await, Some(7));
        let (sender, receiver) = oneshot::channel();
        sender.into_inner().send(8).unwrap();
        assert_eq!(receiver.into_inner().await, Ok(8));
    });
}

#[test]
fn messages_are_dropped_with_the_channel() {
    start();
    let message = Arc::new(());
    let (sender, receiver) = mpsc::unbounded_channel();
    sender.send(Arc::clone(&message)).unwrap();
    drop((sender, receiver));
    let (sender, receiver) = oneshot::channel();
    sender.send(Arc::clone(&message)).unwrap();
    drop(receiver);
    assert_eq!(Arc::strong_count(&message), 1);
}

#[cfg(feature = "time")]
#[test]
fn a_message_for_which_there_is_no_room_in_time_is_given_back() {
    on_one_thread(async {
        let (sender, receiver) = mpsc::channel(1);
        let second = std::time::Duration::from_secs(1);
        sender.send_timeout(1, second).await.unwrap();
        assert_eq!(sender.send_timeout(2, second).await, Err(mpsc::error::SendTimeoutError::Timeout(2)));
        drop(receiver);
        assert_eq!(sender.send_timeout(3, second).await, Err(mpsc::error::SendTimeoutError::Closed(3)));
    });
}
