//! `read-rip gc` while programs start, die and start again under one name: the ring of a living process stays.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use librip_test_kit::reader;
use librip_test_kit::setting;
use librip_test_kit::victim::tempdir;

/// A recorded process, killed when it goes out of scope.
struct Recorded(Child);

impl Recorded {
    fn start(ring: &std::path::Path) -> Recorded {
        let mut child = Command::new(env!("CARGO_BIN_EXE_scenario"))
            .arg("cycle-2")
            .env("RIP_RING", ring)
            .env("RIP_SLOTS", "64")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        Recorded(child)
    }

    /// Whether the file that it has mapped still has a name.
    fn has_ring(&self) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.0.id())).unwrap();
        let ring = maps.lines().find(|line| line.contains("/ring")).expect("it is alive");
        !ring.contains("(deleted)")
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// `RIP_GC_SECONDS` sets the length: minutes, in `scripts/torture`.
#[test]
fn collectors_never_remove_the_ring_of_a_living_process() {
    let dir = tempdir();
    let ring = dir.path().join("ring");
    let ends = Instant::now() + Duration::from_secs(setting("RIP_GC_SECONDS", 4));
    let is_over = AtomicBool::new(false);
    let (mut restarts, mut losses) = (0, 0);
    std::thread::scope(|scope| {
        let collect = || {
            let mut removed = 0;
            while !is_over.load(Relaxed) {
                let output =
                    Command::new(reader::program()).args(["gc", "--dir"]).arg(dir.path()).output().unwrap();
                assert!(output.status.success(), "{output:?}");
                removed += String::from_utf8(output.stdout).unwrap().lines().count();
            }
            removed
        };
        let collectors: Vec<_> = (0..3).map(|_| scope.spawn(collect)).collect();
        while Instant::now() < ends {
            let recorded = Recorded::start(&ring);
            losses += u32::from(!recorded.has_ring());
            restarts += 1;
        }
        is_over.store(true, Relaxed);
        let removed: usize = collectors.into_iter().map(|collector| collector.join().unwrap()).sum();
        assert!(removed > 0, "nothing was collected");
    });
    assert_eq!(losses, 0, "of {restarts} restarts");
}
