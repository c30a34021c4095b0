//! Rings that several test files read, and the directories that hold them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::run::{Outcome, show};
use super::synth::{Module, Ring, Site, Slot};

/// Time limit for reading a damaged ring, even on a busy machine.
pub(crate) const QUICK: Duration = Duration::from_secs(20);

/// Three threads in three functions.
pub(crate) fn sound_ring() -> Ring {
    let mut ring = Ring::new().with_sites(&[(0x1000, "src/a.rs", 1), (0x2000, "src/b.rs", 2)]);
    ring.modules.push(Module::library("/nowhere/lib.so", 0x7f00_0000_0000));
    ring.sites.push(Site { module: 1, ..Site::new(0x1000, "src/lib.rs", 3) });
    ring.with_slots([
        Slot::thread("one", 1).from(70).marks([0x1000, 0x2000]),
        Slot::thread("two", 2).marks([0x1000; 80]).marks([0x2000]),
        Slot::thread("three", 3).actual_marks([0x7f00_0000_1000]),
    ])
}

pub(crate) const ONE: &str = "one[1]: {70}a.rs:1, {71}b.rs:2\n";
pub(crate) const THREE: &str = "three[3]: {0}lib.rs:3\n";

pub(crate) struct Scratch(pub(crate) TempDir);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with these bytes.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// A directory with one ring in it.
pub(crate) struct Fixture {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

impl Fixture {
    pub(crate) fn of(ring: &Ring) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        ring.build().write(&path);
        Fixture { directory, path }
    }

    pub(crate) fn show(&self, options: &[&str]) -> Outcome {
        show(options, &self.path)
    }
}

/// `read-rip OPTIONS` with this ring.
pub(crate) fn run(ring: &Ring, options: &[&str]) -> Outcome {
    Fixture::of(ring).show(options)
}

/// The three marks around a lock, the last two on one line.
pub(crate) const WAITS: u64 = 0x44_2bae;
pub(crate) const HOLDS: u64 = 0x44_2bb6;
pub(crate) const DONE: u64 = 0x44_2c00;

pub(crate) fn lock_sites() -> Ring {
    Ring::new().with_sites(&[
        (WAITS, "src/source_a.c", 124),
        (HOLDS, "src/source_a.c", 124),
        (DONE, "src/source_a.c", 129),
    ])
}

/// Two functions, one in each Rust module: three threads in the first, one thread in the second.
pub(crate) fn pile_up() -> Ring {
    let mut ring = Ring::new().with_sites(&[]);
    ring.sites = vec![
        Site::new(0x1100, "src/cache.rs", 10).within("server::cache"),
        Site::new(0x1200, "src/cache.rs", 12).within("server::cache"),
        Site { label: "to the peer".into(), ..Site::new(0x1300, "src/net.rs", 7).within("server::net") },
    ];
    ring.with_slots([
        Slot::thread("net", 10).marks([0x1100, 0x1300]),
        Slot::thread("worker 1", 11).marks([0x1300, 0x1200]),
        Slot::thread("worker 2", 12).marks([0x1100, 0x1100]),
        Slot::thread("worker 3", 13).marks([0x1100]),
        Slot::thread("worker 4", 14).marks([0x1100]).exited(),
    ])
}
