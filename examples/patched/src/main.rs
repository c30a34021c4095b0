//! Trouble with a lock of a dependency: two threads wait for one another, and one of the locks is in the crate
//! `prometheus`, which knows nothing of librip.
//!
//! Whoever gathers metrics holds the lock of the registry, which `prometheus` has from `parking_lot`, and the program's
//! collector takes the sessions. Another thread has the sessions and registers a metric.
//!
//! It prints `running: pid P` and runs until it is killed. The deadlock happens in each run.

use std::sync::Barrier;
use std::thread;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounter, IntGauge, Registry};

static SESSIONS: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// Where each thread waits until both threads hold their first lock.
static HALFWAY: Barrier = Barrier::new(2);

/// Counts the sessions when somebody asks.
struct OpenSessions(IntGauge);

impl Collector for OpenSessions {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        HALFWAY.wait();
        self.0.set(SESSIONS.lock().len() as i64);
        self.0.collect()
    }
}

fn main() -> Result<(), prometheus::Error> {
    if let Err(error) = librip::init() {
        eprintln!("not recording: {error}");
    }
    println!("running: pid {}", std::process::id());
    let registry = Registry::new();
    registry.register(Box::new(OpenSessions(IntGauge::new("sessions", "open sessions")?)))?;
    thread::scope(|scope| {
        scope.spawn(|| registry.gather());
        let mut sessions = SESSIONS.lock();
        HALFWAY.wait();
        sessions.push(1);
        registry.register(Box::new(IntCounter::new("logins", "sessions since the start")?))
    })
}
