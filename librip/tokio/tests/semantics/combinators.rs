use std::time::Duration;

use librip_tokio::sync::{Mutex, Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::on_one_thread;

#[test]
fn the_branch_of_a_select_that_loses_gives_up_its_wait() {
    on_one_thread(async {
        let mutex = Mutex::new(0);
        let guard = mutex.lock().await;
        tokio::select! {
            _ = mutex.lock() => panic!("it is locked"),
            () = sleep(Duration::from_secs(1)) => {}
        }
        drop(guard);
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn a_select_polls_the_same_receiver_again_and_again() {
    on_one_thread(async {
        let (sender, mut receiver) = oneshot::channel();
        let task = librip_tokio::spawn(async move {
            sleep(Duration::from_millis(35)).await;
            sender.send(7)
        });
        let mut ticks = 0;
        let message = loop {
            tokio::select! {
                message = &mut receiver => break message,
                () = sleep(Duration::from_millis(10)) => ticks += 1,
            }
        };
        assert_eq!((message, ticks), (Ok(7), 3));
        task.await.unwrap().unwrap();
    });
}

#[test]
fn branches_of_a_join_go_on_beside_each_other() {
    on_one_thread(async {
        let (notify, mutex) = (Notify::new(), Mutex::new(Vec::new()));
        tokio::join!(
            async {
                notify.notified().await;
                mutex.lock().await.push(2);
            },
            async {
                mutex.lock().await.push(1);
                notify.notify_one();
            },
        );
        assert_eq!(mutex.into_inner(), [1, 2]);
    });
}

#[test]
fn a_join_that_may_fail_drops_the_others() {
    on_one_thread(async {
        let (sender, mut receiver) = mpsc::channel::<u8>(1);
        let result = tokio::try_join!(async { Err::<(), _>("no") }, async {
            receiver.recv().await;
            Ok(())
        });
        assert_eq!(result, Err("no"));
        sender.try_send(1).unwrap();
        assert_eq!(receiver.recv().await, Some(1));
    });
}

#[test]
fn a_timeout_ends_a_wait_for_a_task_and_leaves_the_task() {
    on_one_thread(async {
        let mut task = librip_tokio::spawn(async {
            sleep(Duration::from_secs(5)).await;
            7
        });
        assert!(timeout(Duration::from_secs(1), &mut task).await.is_err());
        assert!(!task.is_finished());
        assert_eq!(timeout(Duration::from_secs(10), task).await.unwrap().unwrap(), 7);
    });
}

#[test]
fn a_task_that_never_waits_yields_as_with_tokio() {
    on_one_thread(async {
        // A task may receive so many messages in a row, and then another task has its turn.
        let (sender, mut receiver) = mpsc::unbounded_channel();
        (0..10_000).for_each(|number| sender.send(number).unwrap());
        let (says, mut hears) = oneshot::channel();
        let greedy = librip_tokio::spawn(async move {
            let mut received = 0;
            while hears.try_recv().is_err() && receiver.recv().await.is_some() {
                received += 1;
            }
            received
        });
        let modest = librip_tokio::spawn(async move { says.send(()) });
        assert!(greedy.await.unwrap() < 10_000);
        modest.await.unwrap().unwrap();
    });
}
