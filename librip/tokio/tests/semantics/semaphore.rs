use std::sync::Arc;

use librip_tokio::sync::{Semaphore, TryAcquireError};

use super::{Spawned, on_two_workers, start};

#[test]
fn permits_are_given_out_in_order_even_to_one_that_wants_many() {
    start();
    let semaphore = Semaphore::new(2);
    let one = semaphore.try_acquire().unwrap();
    let mut many = Spawned::new(semaphore.acquire_many(2));
    many.waits();
    let mut few = Spawned::new(semaphore.acquire());
    few.waits();
    assert_eq!(semaphore.available_permits(), 0);
    drop(one);
    assert!(many.is_woken() && !few.is_woken());
    let many = many.ready().unwrap();
    assert_eq!(many.num_permits(), 2);
    drop(many);
    assert!(few.ready().is_ok());
}

#[test]
fn a_wait_that_is_dropped_gives_back_what_it_had_collected() {
    start();
    let semaphore = Semaphore::new(3);
    let one = semaphore.try_acquire().unwrap();
    let mut many = Spawned::new(semaphore.acquire_many(3));
    many.waits();
    assert_eq!(semaphore.available_permits(), 0);
    drop(many);
    assert_eq!(semaphore.available_permits(), 2);
    drop(one);
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn permits_are_split_merged_and_forgotten() {
    start();
    let semaphore = Semaphore::new(5);
    let mut whole = semaphore.try_acquire_many(4).unwrap();
    let part = whole.split(3).unwrap();
    assert_eq!((whole.num_permits(), part.num_permits()), (1, 3));
    assert!(whole.split(2).is_none());
    drop(part);
    assert_eq!(semaphore.available_permits(), 4);
    whole.merge(semaphore.try_acquire_many(2).unwrap());
    assert_eq!(whole.num_permits(), 3);
    let rest = whole.split(3).unwrap();
    assert_eq!(whole.num_permits(), 0);
    drop(whole);
    assert_eq!(semaphore.available_permits(), 2);
    rest.forget();
    assert_eq!(semaphore.available_permits(), 2);
    semaphore.add_permits(3);
    assert_eq!(semaphore.forget_permits(9), 5);
}

#[test]
#[should_panic(expected = "different semaphore instances")]
fn permits_of_different_semaphores_are_not_merged() {
    start();
    let [one, other] = [Semaphore::new(1), Semaphore::new(1)];
    one.try_acquire().unwrap().merge(other.try_acquire().unwrap());
}

#[test]
fn owned_permits_are_split_merged_and_given_back_by_other_tasks() {
    on_two_workers(async {
        let semaphore = Arc::new(Semaphore::new(4));
        let mut permit = Arc::clone(&semaphore).acquire_many_owned(3).await.unwrap();
        let part = permit.split(1).unwrap();
        assert!(Arc::ptr_eq(part.semaphore(), &semaphore));
        let task = librip_tokio::spawn(async move { drop(part) });
        task.await.unwrap();
        assert_eq!(semaphore.available_permits(), 2);
        permit.merge(Arc::clone(&semaphore).try_acquire_owned().unwrap());
        assert_eq!((permit.num_permits(), semaphore.available_permits()), (3, 1));
        drop(permit);
        assert_eq!((Arc::strong_count(&semaphore), semaphore.available_permits()), (1, 4));
    });
}

#[test]
fn a_closed_semaphore_wakes_its_waiters_and_gives_nothing() {
    start();
    let semaphore = Semaphore::new(0);
    let mut waiter = Spawned::new(semaphore.acquire());
    waiter.waits();
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
    semaphore.close();
    assert!(waiter.is_woken() && semaphore.is_closed());
    assert!(waiter.ready().is_err());
    assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
    assert_eq!(semaphore.try_acquire_many(0).unwrap_err(), TryAcquireError::Closed);
}

#[test]
fn no_permits_are_always_there() {
    start();
    let semaphore = Semaphore::new(0);
    assert_eq!(semaphore.try_acquire_many(0).unwrap().num_permits(), 0);
    assert_eq!(Spawned::new(semaphore.acquire_many(0)).ready().unwrap().num_permits(), 0);
}
