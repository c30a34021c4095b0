//! The server's sessions: a cache with one lock, and statistics with another.
//!
//! It does not know threads, requests or backends. A thread that takes both locks takes the cache's lock first.

use std::collections::HashMap;
use std::sync::Mutex;

use librip::{rip_lock_name, rip_snap};

use crate::arrivals::Arrivals;
use crate::locks::{lock, unlock, unwatched};

/// The number of uses after which a session expires.
const USES_MAX: u32 = 50;
/// The number of lookups between two updates of the statistics.
const LOOKUPS_PER_REPORT: u64 = 64;

/// What the server stores for a client.
#[derive(Debug)]
struct Session {
    token: u64,
    uses: u32,
}

/// What the cache's lock protects.
#[derive(Debug, Default)]
pub struct Cache {
    sessions: HashMap<u64, Session>,
    lookups: u64,
}

/// What the statistics' lock protects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// The number of lookups at the last update.
    pub lookups: u64,
    /// The number of sessions in the cache at the last update.
    pub sessions: usize,
}

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    cache: Mutex<Cache>,
    statistics: Mutex<Statistics>,
    /// The threads that wait for the cache's lock.
    pub waiting: Arrivals,
}

impl Sessions {
    /// Has no sessions at first. `waiting` counts the threads that wait for the cache's lock.
    pub fn new(waiting: Arrivals) -> Sessions {
        Sessions { cache: Mutex::default(), statistics: Mutex::default(), waiting }
    }

    /// Names the locks in the ring. The caller must not move them after that.
    pub fn name_locks(&self) {
        rip_lock_name!(&self.cache, "session cache");
        rip_lock_name!(&self.statistics, "statistics");
    }

    /// The token of a client's session. Creates the session if there is none.
    pub fn token(&self, client: u64) -> u64 {
        let mut cache = lock(&self.cache, || self.waiting.arrive());
        self.waiting.leave();
        let session = cache.sessions.entry(client).or_insert_with(|| {
            rip_snap!("creates a session");
            Session { token: client.rotate_left(17) ^ 0x005e_5510, uses: 0 }
        });
        session.uses += 1;
        let (token, expired) = (session.token, session.uses >= USES_MAX);
        if expired {
            rip_snap!("drops a session");
            cache.sessions.remove(&client);
        }
        cache.lookups += 1;
        if cache.lookups.is_multiple_of(LOOKUPS_PER_REPORT) {
            let mut statistics = lock(&self.statistics, unwatched);
            *statistics = Statistics { lookups: cache.lookups, sessions: cache.sessions.len() };
            unlock(&self.statistics, statistics);
        }
        unlock(&self.cache, cache);
        token
    }

    /// The statistics at the last update.
    pub fn statistics(&self) -> Statistics {
        let statistics = lock(&self.statistics, unwatched);
        let copy = *statistics;
        unlock(&self.statistics, statistics);
        copy
    }

    /// Asks `backend` for the oldest valid session and removes the sessions before it. It holds the cache's lock while
    /// it waits for the backend, which is the mistake that this program shows.
    pub fn expire(&self, backend: impl FnOnce() -> u64) {
        let mut cache = lock(&self.cache, unwatched);
        rip_snap!("asks the backend");
        let oldest = backend();
        rip_snap!("has the backend's answer");
        cache.sessions.retain(|&client, _| client >= oldest);
        unlock(&self.cache, cache);
    }
}
