//! Tasks at full speed that say themselves, in memory which survives the process, which lock each of them holds.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use librip::sync::Arc;
use librip_tokio::Task;
use librip_tokio::sync::{Mutex, RwLock, Semaphore};

use crate::arrivals::Arrivals;

/// How many tasks there are. Task `N` is named `N`.
const TASKS: usize = 24;
/// How many mutexes, named `m0`, `m1` and so on.
const MUTEXES: usize = 3;

/// What the tasks hold, in a file that `TASKS_TRUTH` names: eight bytes a task, 0 for nothing. `1 + N`: the mutex N.
/// 101: the lock `rw` to read, 102: to write. 200: a permit of `permits`.
fn truth() -> &'static [AtomicU64; TASKS] {
    let path = std::env::var("TASKS_TRUTH").expect("TASKS_TRUTH names a file");
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
    let file = file.expect("the test's directory can be written");
    file.set_len(8 * TASKS as u64).expect("there is room");
    // SAFETY: nobody truncates the file, and all use it through atomics.
    let map = unsafe { memmap2::MmapMut::map_mut(&file) }.expect("a file can be mapped");
    let map = Box::leak(Box::new(map));
    // SAFETY: it has so many bytes, it is aligned to a page, and it is never unmapped.
    unsafe { &*map.as_mut_ptr().cast() }
}

/// Each task acquires and releases locks of all kinds, also over awaits. It notes a lock after it has acquired it, and
/// clears the note before it releases the lock. So the ring has each hold that is noted.
pub(crate) async fn tells_the_truth() {
    let truth = truth();
    let mutexes: Arc<[Mutex<u64>; MUTEXES]> = Arc::new(std::array::from_fn(|_| Mutex::new(0)));
    let (rw, permits) = (Arc::new(RwLock::new(0)), Arc::new(Semaphore::new(2)));
    for (number, mutex) in mutexes.iter().enumerate() {
        mutex.set_name(&format!("m{number}"));
    }
    rw.set_name("rw");
    permits.set_name("permits");
    let arrivals = Arc::new(Arrivals::default());
    for (number, own) in truth.iter().enumerate() {
        let (mutexes, rw, permits) = (mutexes.clone(), rw.clone(), permits.clone());
        let arrivals = arrivals.clone();
        Task::new().name(&number.to_string()).spawn(async move {
            let says = |what: usize| own.store(what as u64, SeqCst);
            for round in number.. {
                match round % 5 {
                    0 => {
                        let _permit = permits.acquire().await.expect("nobody closes it");
                        says(200);
                        tokio::task::yield_now().await;
                        says(0);
                    }
                    1 => {
                        let _guard = rw.read().await;
                        says(101);
                        tokio::task::yield_now().await;
                        says(0);
                    }
                    2 if round % 3 == 0 => {
                        let mut guard = rw.write().await;
                        says(102);
                        *guard += 1;
                        says(0);
                    }
                    _ => {
                        let index = round % MUTEXES;
                        let mut guard = mutexes[index].lock().await;
                        says(1 + index);
                        *guard += 1;
                        if round % 2 == 0 {
                            tokio::task::yield_now().await;
                        }
                        says(0);
                    }
                }
                if round == number + 100 {
                    arrivals.arrive();
                }
            }
        });
    }
    arrivals.wait(TASKS).await;
}
