//! What the servers serve: two locks and a channel, which requests and tasks in the background use.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use librip_tokio::sync::{Mutex, RwLock, mpsc};
use tokio::sync::{Barrier, Semaphore};

use crate::client::ANSWER;

/// How many lines the audit's channel has room for.
const ROOM: usize = 4;

/// The state of a server.
pub(crate) struct Shop {
    stock: Mutex<u32>,
    cache: RwLock<u32>,
    audit: mpsc::Sender<u32>,
    lines: StdMutex<Option<mpsc::Receiver<u32>>>,
    /// A request and the task in the background have met.
    both_hold: Barrier,
    /// Has a permit for each of the two that has begun to wait.
    waiting: Semaphore,
}

impl Default for Shop {
    fn default() -> Shop {
        let (audit, lines) = mpsc::channel(ROOM);
        let lines = StdMutex::new(Some(lines));
        let (both_hold, waiting) = (Barrier::new(2), Semaphore::new(0));
        Shop { stock: Mutex::default(), cache: RwLock::default(), audit, lines, both_hold, waiting }
    }
}

impl Shop {
    /// Gives the locks their names, and begins what is in the background in this scenario.
    pub(crate) fn begin(self: &Arc<Shop>, scenario: &str) {
        self.stock.set_name("stock");
        self.cache.set_name("cache");
        match scenario {
            "orders" => drop(librip_tokio::Task::new().name("sweep").spawn(self.clone().sweep())),
            "channel" => drop(librip_tokio::Task::new().name("auditor").spawn(self.clone().audits())),
            other => panic!("there is no scenario {other:?}"),
        }
    }

    /// A background that disturbs nobody.
    pub(crate) fn keep_shop(self: &Arc<Shop>) {
        let shop = self.clone();
        let mut lines = self.lines.lock().unwrap().take().expect("it begins once");
        librip_tokio::Task::new().name("auditor").spawn(async move {
            while let Some(line) = lines.recv().await {
                let mut stock = shop.stock.lock().await;
                *stock = stock.wrapping_add(line);
            }
        });
        let shop = self.clone();
        librip_tokio::Task::new().name("sweep").spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let stock = *shop.stock.lock().await;
                *shop.cache.write().await = stock;
            }
        });
    }

    /// A request that only reads, and one that writes: under load from all clients.
    pub(crate) async fn buys(&self) -> &'static str {
        let mut stock = self.stock.lock().await;
        *stock = stock.wrapping_add(1);
        tokio::task::yield_now().await;
        let cached = self.cache.read().await;
        tokio::task::yield_now().await;
        let line = stock.wrapping_add(*cached);
        drop(cached);
        drop(stock);
        self.audit.send(line).await.expect("the auditor lives");
        ANSWER
    }

    /// A request that acquires the locks in another order than the task in the background.
    pub(crate) async fn orders(&self) -> &'static str {
        let stock = self.stock.lock().await;
        self.both_hold.wait().await;
        *self.noting(self.cache.write()).await += *stock;
        ANSWER
    }

    async fn sweep(self: Arc<Shop>) {
        let cache = self.cache.write().await;
        self.both_hold.wait().await;
        *self.noting(self.stock.lock()).await += *cache;
    }

    /// A request that sends into a full channel while it holds what the receiver needs.
    pub(crate) async fn sends(&self) -> &'static str {
        let stock = self.stock.lock().await;
        self.both_hold.wait().await;
        while self.audit.try_send(*stock).is_ok() {}
        self.noting(self.audit.send(*stock)).await.expect("the auditor lives");
        ANSWER
    }

    async fn audits(self: Arc<Shop>) {
        let mut lines = self.lines.lock().unwrap().take().expect("it begins once");
        self.audit.send(0).await.expect("the receiver is here");
        let line = lines.recv().await.expect("the sender is here");
        self.both_hold.wait().await;
        *self.noting(self.stock.lock()).await += line;
        while let Some(line) = lines.recv().await {
            *self.stock.lock().await += line;
        }
    }

    /// Awaits a future, and notes that it has begun to wait.
    async fn noting<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let mut is_noted = false;
        poll_fn(|cx| {
            let poll = future.as_mut().poll(cx);
            if poll.is_pending() && !is_noted {
                is_noted = true;
                self.waiting.add_permits(1);
            }
            poll
        })
        .await
    }

    /// Until the request and the task in the background wait.
    pub(crate) async fn until_stuck(&self) {
        self.waiting.acquire_many(2).await.expect("nobody closes it").forget();
    }
}
