//! Dumps of the ring: by a call, at a panic and at a signal, while threads record at full speed.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use librip::{rip_event, rip_snap};

use crate::common::{self, named, pause, say, sleep_forever};
use crate::events::record;

pub(crate) fn main(arguments: &[&str]) {
    common::init();
    match arguments {
        ["call", directory] => call(Path::new(directory)),
        ["panic", path] => panic(Path::new(path)),
        ["signal", path] => signal(Path::new(path)),
        ["errors", directory] => errors(Path::new(directory)),
        ["limited", directory] => limited(Path::new(directory)),
        _ => panic!("which way?"),
    }
    std::process::exit(3);
}

/// Threads at full speed, which have recorded when it returns.
fn storm() {
    let cells = common::storm(3, record);
    while cells.iter().any(|cell| cell.marks.load(Relaxed) < 100) {
        std::thread::yield_now();
    }
}

fn call(directory: &Path) {
    storm();
    for round in 0..6 {
        librip::dump(directory.join(format!("dump.{round}"))).expect("a dump");
    }
    say("dumped");
    sleep_forever();
}

fn panic(path: &Path) {
    librip::dump_at_panic(path).expect("a path");
    rip_event!("before the panic {}", 1u32);
    let first = named("first").spawn(|| {
        rip_event!("in the thread");
        panic!("on purpose");
    });
    assert!(first.expect("a thread").join().is_err());
    // Replaces the main thread's history, and the second panic makes no dump.
    (0..20_000).for_each(|_| rip_snap!());
    assert!(std::panic::catch_unwind(|| panic!("again")).is_err());
    say("done");
    pause();
}

fn signal(path: &Path) {
    librip::dump_at_signal(libc::SIGUSR2, path).expect("a signal");
    storm();
    for _ in 0..3 {
        say("ready");
        while !path.exists() {
            std::thread::yield_now();
        }
        say("dumped");
        pause();
    }
}

/// The program lowers its limit on the length of files after the start.
fn limited(directory: &Path) {
    let limit = libc::rlimit { rlim_cur: 4096, rlim_max: libc::RLIM_INFINITY };
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
    say(&format!("{:?}", librip::dump(directory.join("dump")).unwrap_err().kind()));
    pause();
}

fn errors(directory: &Path) {
    for error in [
        librip::dump(directory.join("missing").join("dump")).unwrap_err(),
        librip::dump(directory).unwrap_err(),
        librip::dump_at_signal(libc::SIGKILL, directory).unwrap_err(),
        librip::dump_at_signal(1000, directory).unwrap_err(),
        librip::dump_at_panic("a\0b").unwrap_err(),
    ] {
        say(&format!("{:?}", error.kind()));
    }
    std::fs::remove_file(librip::ring_path().expect("a ring")).expect("its file");
    say(&format!("{:?}", librip::dump(directory.join("dump")).unwrap_err().kind()));
    pause();
}
