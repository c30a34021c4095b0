//! The server's sessions: a cache behind one lock, and statistics behind another.
//!
//! It knows nothing of threads, requests or stuck backends. The order is: cache before statistics.

use std::collections::HashMap;
use std::sync::Mutex;

use librip::{rip_lock_name, rip_snap};

use crate::arrivals::Arrivals;
use crate::locks::{lock, unlock, unwatched};

/// A session expires after so many uses, and is made anew.
const USES_MAX: u32 = 50;
/// Every so many lookups the statistics are brought up to date.
const LOOKUPS_A_REPORT: u64 = 64;

/// What the server remembers of a client.
#[derive(Debug)]
struct Session {
    token: u64,
    uses: u32,
}

/// What is behind the cache's lock.
#[derive(Debug, Default)]
pub struct Cache {
    sessions: HashMap<u64, Session>,
    lookups: u64,
}

/// What is behind the statistics' lock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Lookups so far, as of the last report.
    pub lookups: u64,
    /// Sessions in the cache, as of the last report.
    pub sessions: usize,
}

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    cache: Mutex<Cache>,
    statistics: Mutex<Statistics>,
    /// Threads that wait for the cache.
    pub waiting: Arrivals,
}

impl Sessions {
    /// No sessions. `waiting` learns of every thread that begins or ceases to wait for the cache.
    pub fn new(waiting: Arrivals) -> Sessions {
        Sessions { cache: Mutex::default(), statistics: Mutex::default(), waiting }
    }

    /// Tells the ring what the locks are called. They must not be moved afterwards.
    pub fn name_locks(&self) {
        rip_lock_name!(&self.cache, "session cache");
        rip_lock_name!(&self.statistics, "statistics");
    }

    /// The token of a client's session, which is made if need be.
    pub fn token(&self, client: u64) -> u64 {
        let mut cache = lock(&self.cache, || self.waiting.arrive());
        self.waiting.leave();
        let session = cache.sessions.entry(client).or_insert_with(|| {
            rip_snap!("makes a session");
            Session { token: client.rotate_left(17) ^ 0x005e_5510, uses: 0 }
        });
        session.uses += 1;
        let (token, expired) = (session.token, session.uses >= USES_MAX);
        if expired {
            rip_snap!("drops a session");
            cache.sessions.remove(&client);
        }
        cache.lookups += 1;
        if cache.lookups.is_multiple_of(LOOKUPS_A_REPORT) {
            let mut statistics = lock(&self.statistics, unwatched);
            *statistics = Statistics { lookups: cache.lookups, sessions: cache.sessions.len() };
            unlock(&self.statistics, statistics);
        }
        unlock(&self.cache, cache);
        token
    }

    /// The statistics as of the last report.
    pub fn statistics(&self) -> Statistics {
        let statistics = lock(&self.statistics, unwatched);
        let copy = *statistics;
        unlock(&self.statistics, statistics);
        copy
    }

    /// Expires old sessions by what `backend` says. The lock is held while the backend thinks, which is the
    /// mistake that this program is about.
    pub fn expire(&self, backend: impl FnOnce() -> u64) {
        let mut cache = lock(&self.cache, unwatched);
        rip_snap!("asks the backend");
        let oldest = backend();
        rip_snap!("has the backend's answer");
        cache.sessions.retain(|&client, _| client >= oldest);
        unlock(&self.cache, cache);
    }
}
