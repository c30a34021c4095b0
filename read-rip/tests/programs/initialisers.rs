//! Two threads, each of which needs what the other one is about to initialise, or the stream that it writes to. The
//! argument says which. With a second argument, nothing is wrong.

use std::fmt;
use std::sync::{Barrier, LazyLock, OnceLock};
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

fn main() {
    let mode = std::env::args().nth(1).expect("a mode");
    let is_healthy = std::env::args().nth(2).is_some();
    let (first, second): (fn(bool) -> u32, fn(bool) -> u32) = match &*mode {
        "statics" => (|_| *USERS, |_| *groups()),
        "stream" => (reports, |_| *TOTAL),
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
