//! How scenarios start threads, wait until the threads reach their state, and print that they are ready.

use std::io::Write;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::thread;

/// A scenario's name and body.
pub(crate) type Scenario = (&'static str, fn());

/// Runs the scenario that the command line names. It records, unless `RIP_RING` is `off`.
pub(crate) fn run(all: &[Scenario]) {
    let name = std::env::args().nth(1).unwrap_or_default();
    if let Err(error) = librip::init()
        && std::env::var_os("RIP_RING").is_none_or(|ring| ring != "off")
    {
        panic!("not recording: {error}");
    }
    let Some((_, run)) = all.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
        panic!("name one of: {}", names.join(" "));
    };
    run();
    ready();
}

/// Waits a little more than a tenth of a second: after that time a reader of rings treats a state as settled.
#[allow(dead_code, reason = "shared by two programs")]
pub(crate) fn settle() {
    thread::sleep(std::time::Duration::from_millis(120));
}

/// A barrier that spins. So a thread of a scenario that sleeps always sleeps for a lock.
#[allow(dead_code, reason = "shared by two programs")]
pub(crate) struct Meeting {
    missing: AtomicUsize,
}

#[allow(dead_code, reason = "shared by two programs")]
impl Meeting {
    pub(crate) fn new(count: usize) -> Meeting {
        Meeting { missing: AtomicUsize::new(count) }
    }

    /// Returns once all threads have arrived. For one use only.
    pub(crate) fn wait(&self) {
        self.missing.fetch_sub(1, Relaxed);
        while self.missing.load(Relaxed) > 0 {
            thread::yield_now();
        }
    }
}

/// A thread that was started.
pub(crate) struct Actor {
    tid: u32,
    name: String,
    handle: thread::JoinHandle<()>,
}

/// Starts a thread, which runs at once.
pub(crate) fn actor(name: &str, body: impl FnOnce() + Send + 'static) -> Actor {
    let (say, said) = mpsc::channel();
    let handle = thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            say.send(nix::unistd::gettid().as_raw() as u32).unwrap();
            body();
        })
        .unwrap();
    Actor { tid: said.recv().unwrap(), name: name.into(), handle }
}

impl Actor {
    /// Waits until the thread sleeps in the kernel, in a futex: it waits for a lock, a condition, or is parked.
    #[allow(dead_code, reason = "shared by two programs")]
    pub(crate) fn until_blocked(self) -> Actor {
        let call = format!("/proc/self/task/{}/syscall", self.tid);
        let futex = format!("{} ", libc::SYS_futex);
        loop {
            let state = std::fs::read_to_string(&call).unwrap_or_else(|_| panic!("{} has ended", self.name));
            if state.starts_with(&futex) {
                return self;
            }
            thread::yield_now();
        }
    }

    /// Waits until the thread has ended, and the kernel has forgotten it.
    #[allow(dead_code, reason = "shared by two programs")]
    pub(crate) fn until_ended(self) {
        self.handle.join().unwrap();
        let task = format!("/proc/self/task/{}", self.tid);
        while std::fs::metadata(&task).is_ok() {
            thread::yield_now();
        }
    }
}

/// Waits until a thread of this name sleeps in a futex.
#[allow(dead_code, reason = "shared by two programs")]
pub(crate) fn until_waits(name: &str) {
    let futex = format!("{} ", libc::SYS_futex);
    let waits = |task: std::fs::DirEntry| {
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        read("comm").trim_end() == name && read("syscall").starts_with(&futex)
    };
    while !std::fs::read_dir("/proc/self/task").unwrap().flatten().any(waits) {
        thread::yield_now();
    }
}

/// Waits until the process has no more than so many threads.
#[allow(dead_code, reason = "shared by two programs")]
pub(crate) fn until_left(threads: usize) {
    while std::fs::read_dir("/proc/self/task").unwrap().count() > threads {
        thread::yield_now();
    }
}

/// A value on the heap that is never freed.
pub(crate) fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

pub(crate) fn park() -> ! {
    loop {
        thread::park();
    }
}

/// Prints that the scenario has reached its state, and stays in it.
pub(crate) fn ready() -> ! {
    say("ready");
    park()
}

/// Prints a line at once.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}
