//! Trouble: an async server in which a task waits for a lock that is promised to another future of the same task.
//!
//! A request saves its data, and takes a lock for that. If it takes too long, the request writes a warning, and takes
//! the same lock. Meanwhile it does not poll the future that saves. As soon as the lock is free, tokio gives it to that
//! future, which has waited longer. So the request waits for itself, and everyone else waits behind it. Oxide has
//! described this *futurelock* in its RFD 609.
//!
//! `read-rip tasks -t` shows both futures. `read-rip check` proves the futurelock, also after a kill.
//!
//! It prints `running: pid P, ring PATH`, then `stuck`, and runs until it is killed. The futurelock happens in each
//! run.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use librip::task::AtExt;
use librip_examples::{say, say_running, start, stay};
use librip_tokio::Task;
use librip_tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use librip_tokio::sync::{Mutex, Notify};
use tokio::time::sleep;

/// How long a request waits before it warns.
const PATIENCE: Duration = Duration::from_millis(50);
const REQUESTS: usize = 3;

type Store = Mutex<Vec<String>>;

async fn save(store: &Store, line: &str) {
    store.lock().await.push(line.to_owned());
}

async fn request(store: Arc<Store>, late: UnboundedSender<()>) {
    // The mistake: while the warning is written, nobody polls `saving`, which stands in line for the lock.
    let mut saving = pin!(save(&store, "data").at());
    tokio::select! {
        () = &mut saving => {}
        () = sleep(PATIENCE) => {
            let _ = late.send(());
            save(&store, "a request takes long").at().await;
        }
    }
}

/// Keeps the store to itself for too long: until all requests are late, on however slow a machine.
async fn clean(store: Arc<Store>, has_it: Arc<Notify>, mut late: UnboundedReceiver<()>) {
    let mut lines = store.lock().await;
    has_it.notify_one();
    for _ in 0..REQUESTS {
        late.recv().await;
    }
    lines.clear();
}

fn main() {
    let ring = start();
    say_running(&ring);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = librip_tokio::watch(&mut builder).worker_threads(2).enable_time().build();
    // SANITY: without its workers this program shows nothing.
    let runtime = runtime.expect("the system can start two threads");
    runtime.block_on(async {
        let store = Arc::new(Store::default());
        store.set_name("store");
        let has_it = Arc::new(Notify::new());
        let (late, is_late) = unbounded_channel();
        let cleaner = Task::new().name("cleaner").spawn(clean(store.clone(), has_it.clone(), is_late));
        has_it.notified().await;
        for number in 1..=REQUESTS {
            Task::new().name(&format!("request {number}")).spawn(request(store.clone(), late.clone()));
        }
        let _ = cleaner.await;
    });
    say("stuck");
    stay()
}
