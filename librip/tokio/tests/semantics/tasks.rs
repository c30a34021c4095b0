use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use librip_tokio::Task;
use librip_tokio::task::{JoinSet, LocalSet};
use tokio::runtime::Handle;

use super::{on_one_thread, on_two_workers, start};

#[test]
fn a_handle_tells_how_its_task_ended() {
    on_one_thread(async {
        assert_eq!(librip_tokio::spawn(async { 7 }).await.unwrap(), 7);
        let panics = librip_tokio::spawn(async { std::panic::resume_unwind(Box::new("on purpose")) });
        let panic: Result<(), _> = panics.await;
        assert_eq!(panic.unwrap_err().into_panic().downcast_ref(), Some(&"on purpose"));
        let stays = librip_tokio::spawn(std::future::pending::<()>());
        assert_eq!(stays.id(), stays.abort_handle().id());
        stays.abort();
        assert!(stays.await.unwrap_err().is_cancelled());
        let never_polled = librip_tokio::spawn(async { unreachable!() });
        never_polled.abort_handle().abort();
        let ended: Result<(), _> = never_polled.await;
        assert!(ended.unwrap_err().is_cancelled());
    });
}

#[test]
fn a_task_runs_on_when_its_handle_is_dropped() {
    on_one_thread(async {
        let (says, hears) = tokio::sync::oneshot::channel();
        drop(librip_tokio::spawn(async move { says.send(7) }));
        assert_eq!(hears.await, Ok(7));
    });
}

#[test]
fn a_future_is_dropped_when_its_task_ends() {
    on_one_thread(async {
        let value = Arc::new(());
        let own = Arc::clone(&value);
        let task = librip_tokio::spawn(async move {
            let _own = own;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&value), 2);
        task.abort();
        task.await.unwrap_err();
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn tasks_are_spawned_by_handles_and_have_names() {
    start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle = runtime.handle();
    let task = Task::new()
        .name("a name of more than forty bytes, of which some are cut")
        .spawn_on(async { 1 }, handle);
    let call = Task::new().name("call").spawn_blocking_on(|| 2, handle);
    let sum = Task::new().name("main").block_on(handle, async { task.await.unwrap() + call.await.unwrap() });
    assert_eq!(sum, 3);
    assert_eq!(
        librip_tokio::block_on(&runtime, librip_tokio::traced(async { Handle::current().id() })),
        handle.id()
    );
}

#[test]
#[should_panic(expected = "no reactor running")]
fn outside_of_a_runtime_nothing_is_spawned() {
    start();
    drop(librip_tokio::spawn(async {}));
}

#[test]
fn local_tasks_need_not_be_sent() {
    on_one_thread(async {
        let set = LocalSet::new();
        let value = Rc::new(7);
        let own = Rc::clone(&value);
        let before = Task::new().name("before").spawn_local_on(async move { *own }, &set);
        let during = set.run_until(async {
            let own = Rc::clone(&value);
            librip_tokio::spawn_local(async move { *own }).await.unwrap()
        });
        assert_eq!((during.await, before.await.unwrap()), (7, 7));
    });
}

#[test]
fn a_set_joins_its_tasks_as_they_end() {
    on_one_thread(async {
        let mut set = JoinSet::new();
        for number in [3, 1, 2] {
            set.spawn(async move {
                tokio::time::sleep(Duration::from_secs(number)).await;
                number
            });
        }
        assert!(set.try_join_next().is_none());
        assert_eq!(set.len(), 3);
        let mut ended = Vec::new();
        while let Some(number) = set.join_next().await {
            ended.push(number.unwrap());
        }
        assert_eq!(ended, [1, 2, 3]);
        assert!(set.is_empty() && set.join_next().await.is_none());
    });
}

#[test]
fn a_set_aborts_shuts_down_and_detaches() {
    on_one_thread(async {
        let alive = Arc::new(());
        let stay = |alive: &Arc<()>| {
            let own = Arc::clone(alive);
            async move {
                let _own = own;
                std::future::pending::<()>().await;
            }
        };
        let mut set = JoinSet::new();
        let task = set.spawn(stay(&alive));
        task.abort();
        let (id, error) = (task.id(), set.join_next_with_id().await.unwrap().unwrap_err());
        assert!(error.is_cancelled() && error.id() == id);
        set.extend([stay(&alive), stay(&alive)]);
        set.abort_all();
        assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
        set.shutdown().await;
        assert!(set.is_empty());
        assert_eq!(Arc::strong_count(&alive), 1);
        set.spawn(stay(&alive));
        set.detach_all();
        assert!(set.is_empty());
        let dropped: JoinSet<()> = [stay(&alive)].into_iter().collect();
        drop(dropped);
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&alive), 2, "the detached one");
    });
}

#[test]
fn a_set_has_local_tasks_and_calls_too() {
    on_one_thread(async {
        let local = LocalSet::new();
        let mut set = JoinSet::new();
        set.spawn_local_on(async { 1 }, &local);
        set.spawn_blocking(|| 2);
        set.spawn_on(async { 3 }, &Handle::current());
        set.spawn_blocking_on(|| 4, &Handle::current());
        let sum = local.run_until(async {
            set.spawn_local(async { 5 });
            set.join_all().await.into_iter().sum::<u32>()
        });
        assert_eq!(sum.await, 15);
    });
}

#[test]
fn many_tasks_on_two_workers_end_and_are_joined() {
    let sum = on_two_workers(async {
        let mut handles = Vec::new();
        // More than there are slots.
        for number in 0..5000_u32 {
            handles.push(librip_tokio::spawn(async move {
                tokio::task::yield_now().await;
                number
            }));
        }
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, (0..5000).sum());
}
