//! Two threads, each of which needs what the other one is about to initialise, or the stream that it writes to, or a
//! lock that the other one has. The argument says which. With a second argument, nothing is wrong.

use std::fmt;
use std::sync::{Arc, Barrier, LazyLock, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

static BOTH: Barrier = Barrier::new(2);

/// Two statics: each initialiser uses the other one.
static USERS: LazyLock<u32> = LazyLock::new(|| {
    BOTH.wait();
    *groups()
});
static GROUPS: OnceLock<u32> = OnceLock::new();

fn groups() -> &'static u32 {
    GROUPS.get_or_init(|| {
        BOTH.wait();
        *USERS
    })
}

/// The initialiser prints, and what is printed is initialised.
static TOTAL: LazyLock<u32> = LazyLock::new(|| {
    BOTH.wait();
    println!("adds up");
    7
});

struct Total;

impl fmt::Display for Total {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        BOTH.wait();
        write!(to, "{}", *TOTAL)
    }
}

/// The initialiser takes a lock, under which another thread needs what is initialised.
static TABLE: LazyLock<u32> = LazyLock::new(|| {
    BOTH.wait();
    *CONFIG.lock().expect("nobody panics")
});
static CONFIG: Mutex<u32> = Mutex::new(1);

fn reloads(is_healthy: bool) -> u32 {
    let mut config = CONFIG.lock().expect("nobody panics");
    *config += 1;
    if is_healthy {
        drop(config);
        BOTH.wait();
        return *TABLE;
    }
    BOTH.wait();
    *config + *TABLE
}

/// Two locks in opposite order. In the healthy case, the other thread has released its own one, and a third one keeps
/// what the first one wants.
fn takes_two(is_healthy: bool) {
    let locks = [Arc::new(Mutex::new(1u64)), Arc::new(Mutex::new(2))];
    let both = Arc::new(Barrier::new(2 + usize::from(is_healthy)));
    let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.into()).spawn(run).expect("a thread")
    };
    let [one, other] = locks.clone();
    let own = Arc::clone(&both);
    let first = spawn("first", Box::new(move || {
        let mut one = one.lock().expect("nobody panics");
        own.wait();
        own.wait();
        *one += *other.lock().expect("nobody panics");
    }));
    let [one, other] = locks.clone();
    let own = Arc::clone(&both);
    let second = spawn("second", Box::new(move || {
        let mut other = other.lock().expect("nobody panics");
        own.wait();
        if is_healthy {
            *other += 1;
            drop(other);
            own.wait();
            *one.lock().expect("nobody panics") += 1;
        } else {
            own.wait();
            *other += *one.lock().expect("nobody panics");
        }
    }));
    if is_healthy {
        let [_, other] = locks.clone();
        spawn("keeper", Box::new(move || {
            both.wait();
            let other = loop {
                if let Ok(other) = other.try_lock() {
                    break other;
                }
            };
            both.wait();
            thread::sleep(Duration::from_secs(1000 + *other));
        }));
    }
    spawn("ticker", Box::new(|| loop {
        thread::sleep(Duration::from_millis(10));
    }));
    first.join().expect("it ends well");
    second.join().expect("it ends well");
}

fn main() {
    let mode = std::env::args().nth(1).expect("a mode");
    let is_healthy = std::env::args().nth(2).is_some();
    let (first, second): (fn(bool) -> u32, fn(bool) -> u32) = match &*mode {
        "statics" => (|_| *USERS, |_| *groups()),
        "stream" => (reports, |_| *TOTAL),
        "lock" => (|_| *TABLE, reloads),
        "locks" => return takes_two(is_healthy),
        other => panic!("no mode is called {other}"),
    };
    let named = |name: &str, run: fn(bool) -> u32| {
        thread::Builder::new().name(name.into()).spawn(move || run(is_healthy)).expect("a thread")
    };
    let (first, second) = (named("first", first), named("second", second));
    first.join().expect("it ends well");
    second.join().expect("it ends well");
    loop {
        thread::sleep(Duration::from_secs(1000));
    }
}

fn reports(is_healthy: bool) -> u32 {
    if is_healthy {
        let total = Total.to_string();
        println!("{total}");
    } else {
        println!("{Total}");
    }
    0
}
