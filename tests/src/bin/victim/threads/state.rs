//! What a mark does not change, what `exec` leaves open, and the names of threads.

use std::sync::mpsc;

use librip::rip_snap;

use crate::common::{errno, named, run, say, set_errno, sleep_forever};

/// Becomes another program, which prints what it has open and mapped.
pub(crate) fn exec() {
    rip_snap!("before");
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new("/proc/self/exe").args(["threads", "look"]).exec();
    panic!("{error}");
}

pub(crate) fn look() {
    let mut open: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .map(|path| path.display().to_string())
        .filter(|path| !path.starts_with("pipe:") && !path.starts_with("/proc/"))
        .collect();
    open.sort();
    say(&format!("open: {open:?}"));
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let shm: Vec<&str> = maps.lines().filter(|line| line.contains("/dev/shm")).collect();
    say(&format!("mapped: {shm:?}"));
}

pub(crate) fn name() {
    let long = "a name of more than 40 bytes, which is what fits into a slot";
    run("kernel", move || {
        librip::set_thread_name(long);
        rip_snap!("named first");
    });
    run("kernel", || {
        rip_snap!("marked first");
        librip::set_thread_name("new name");
        rip_snap!("named");
    });
}

pub(crate) fn keeps_errno() {
    for _ in 0..3 {
        run("thread", || {
            set_errno(123);
            rip_snap!("first");
            assert_eq!(errno(), 123);
            librip::set_thread_name("other");
            assert_eq!(errno(), 123);
        });
    }
    say("errno was kept");
    sleepers();
}

/// Uses up the slots, and reads `errno` in a thread that gets none.
pub(crate) fn sleepers() {
    let (sender, receiver) = mpsc::channel();
    for _ in 0..4 {
        let sender = sender.clone();
        named("sleeper")
            .spawn(move || {
                set_errno(123);
                rip_snap!("sleeps");
                sender.send(errno()).unwrap();
                sleep_forever()
            })
            .unwrap();
    }
    for _ in 0..4 {
        assert_eq!(receiver.recv().unwrap(), 123);
    }
}
