//! `Barrier` and `mpsc` of `librip::sync` behave as those of `std::sync`.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use librip::sync::Barrier;
// All stable names of `std::sync::mpsc`.
#[allow(unused_imports, reason = "what matters is that they exist")]
use librip::sync::mpsc::{
    self, IntoIter, Iter, Receiver, RecvError, RecvTimeoutError, SendError, Sender, SyncSender, TryIter,
    TryRecvError, TrySendError,
};

#[test]
fn a_barrier_has_one_leader_in_each_round() {
    static BARRIER: Barrier = Barrier::new(4);
    let leaders = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    leaders.fetch_add(usize::from(BARRIER.wait().is_leader()), SeqCst);
                }
            });
        }
    });
    assert_eq!(leaders.into_inner(), 5);
    assert_eq!(format!("{BARRIER:?}"), format!("{:?}", std::sync::Barrier::new(4)));
}

#[test]
fn messages_come_in_their_order_until_all_senders_are_gone() {
    let (sender, receiver) = mpsc::channel();
    let other = sender.clone();
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..100 {
                sender.send(number).unwrap();
                thread::yield_now();
            }
        });
        drop(other);
        assert!(receiver.iter().eq(0..100));
    });
    assert_eq!((receiver.recv(), receiver.try_recv()), (Err(RecvError), Err(TryRecvError::Disconnected)));
    assert_eq!(receiver.recv_timeout(Duration::from_secs(9)), Err(RecvTimeoutError::Disconnected));
    assert_eq!(receiver.into_iter().next(), None);
}

#[test]
fn a_receiver_waits_no_longer_than_it_was_told() {
    let (sender, receiver) = mpsc::channel();
    assert_eq!(receiver.recv_timeout(Duration::from_millis(1)), Err(RecvTimeoutError::Timeout));
    sender.send(1).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(1));
    assert_eq!((receiver.try_recv(), receiver.try_iter().next()), (Err(TryRecvError::Empty), None));
}

#[test]
fn a_bounded_sender_waits_for_room() {
    for bound in [0, 1, 3] {
        let (sender, receiver) = mpsc::sync_channel(bound);
        thread::scope(|scope| {
            let sender = sender.clone();
            scope.spawn(move || (0..100).try_for_each(|number| sender.send(number)).unwrap());
            for (expected, number) in (0..100).zip(&receiver) {
                assert_eq!(expected, number);
            }
        });
        let mut sent = 0;
        while sender.try_send(7).is_ok() {
            sent += 1;
        }
        assert_eq!((sent, sender.try_send(8)), (bound, Err(TrySendError::Full(8))));
        drop(receiver);
        assert_eq!(
            (sender.try_send(1), sender.send(2)),
            (Err(TrySendError::Disconnected(1)), Err(SendError(2)))
        );
    }
}

#[test]
fn ends_of_channels_are_sent_to_other_threads() {
    fn is_sent<T: Send>() {}
    is_sent::<Receiver<i32>>();
    is_sent::<IntoIter<i32>>();
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Sender<i32>>();
    is_shared::<SyncSender<i32>>();
    is_shared::<Barrier>();
}
