//! Programs whose ring cannot be made, or is damaged. Each prints the same whether it records or not.

mod filter;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::sync::{Arc, Barrier};

use librip::rip_snap;
use librip_test_kit::format::header_at::SLOT_LEN;
use librip_test_kit::progress;

use crate::common::{
    self, begin, cells, cycle, cycle_through, dir, errno, handle, named, pause, ring, run, say, set_errno,
};

pub(crate) fn main(arguments: &[&str]) {
    match arguments {
        ["work"] => {
            common::init();
            work();
        }
        ["full_before"] => full_before(),
        ["full_after"] => full_after(),
        ["crowd"] => crowd(),
        ["churn"] => churn(),
        ["damage", what] => damage(what),
        ["damage_with_handler", what] => {
            handle(libc::SIGBUS, counts, 0);
            damage(what);
            say(&format!("the program's own handler ran {} times", COUNTED.load(Relaxed)));
        }
        ["sigbus", handler, origin] => sigbus(handler, origin),
        ["removed"] => removed(),
        ["filtered"] => filter::filtered(),
        ["strict"] => filter::strict(),
        ["memory"] => memory(),
        ["no_descriptors"] => no_descriptors(),
        ["closes_all"] => closes_all(),
        other => panic!("no way {other:?}"),
    }
    std::process::exit(3);
}

/// Four threads that mark and compute.
fn work() {
    let sum: u64 = (0..4u64)
        .map(|index| {
            let thread = named(&format!("w{index}")).spawn(move || {
                (0..100)
                    .map(|step| {
                        cycle(step);
                        step * index
                    })
                    .sum::<u64>()
            });
            thread.unwrap().join().unwrap()
        })
        .sum();
    say(&format!("computed {sum}"));
}

/// Thousands of threads, one after the other: many more than the slots that fit on the file system.
fn churn() {
    common::init();
    for index in 0..3000u64 {
        run(&format!("c{index}"), move || cycle(index));
    }
    pause();
}

/// Uses up the file system that is mounted at `mount`.
fn fill() {
    let mut file = File::create(dir().join("mount/filler")).unwrap();
    for block in [4096, 64, 1] {
        while file.write_all(&vec![1; block]).is_ok() {}
    }
}

fn full_before() {
    fill();
    common::init();
    work();
    pause();
}

fn full_after() {
    common::init();
    let before = Arc::new(Barrier::new(2));
    let after = before.clone();
    let early = named("early").spawn(move || {
        (0..5).for_each(cycle);
        after.wait();
        after.wait();
        (5..10).for_each(cycle);
    });
    before.wait();
    fill();
    crowd_of("full", 20);
    before.wait();
    early.unwrap().join().unwrap();
    pause();
    std::fs::remove_file(dir().join("mount/filler")).unwrap();
    crowd_of("room", 5);
    pause();
    say("done");
}

fn crowd() {
    common::init();
    crowd_of("w", 10);
    run("later", || (0..4).for_each(cycle));
    say("done");
}

/// Threads that all mark before any of them ends.
fn crowd_of(name: &str, threads: usize) {
    let barrier = Arc::new(Barrier::new(threads));
    let threads: Vec<_> = (0..threads)
        .map(|index| {
            let barrier = barrier.clone();
            named(&format!("{name}{index}"))
                .spawn(move || {
                    // A refusal makes system calls that fail.
                    set_errno(123);
                    (0..3).for_each(cycle);
                    assert_eq!(errno(), 123);
                    barrier.wait();
                    (3..6).for_each(cycle);
                })
                .unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// What happens to the ring's file. Its slots come last.
fn hurt(what: &str) {
    let Some(path) = ring() else { return };
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let len = file.metadata().unwrap().len();
    match what {
        "truncate" => file.set_len(0).unwrap(),
        "halve" => {
            use std::os::unix::fs::FileExt;
            let mut slot_len = [0; 8];
            file.read_exact_at(&mut slot_len, SLOT_LEN as u64).unwrap();
            file.set_len(len - 32 * u64::from_le_bytes(slot_len)).unwrap();
        }
        "odd" => file.set_len(len - 32 * 1024 - 1000).unwrap(),
        "extend_again" => {
            file.set_len(0).unwrap();
            file.set_len(len).unwrap();
        }
        "again_and_again" => {
            for _ in 0..300 {
                file.set_len(0).unwrap();
                file.set_len(len).unwrap();
            }
            file.set_len(0).unwrap();
        }
        "punch" => {
            use std::os::fd::AsRawFd;
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, len as i64) }, 0);
        }
        other => panic!("no damage {other}"),
    }
}

/// Forty threads that mark all the time, and others that start and end. Meanwhile the file is damaged.
fn damage(what: &str) {
    common::init();
    const WORKERS: usize = 40;
    const VISITORS: usize = 30;
    static STOP: AtomicBool = AtomicBool::new(false);
    static HURT: AtomicBool = AtomicBool::new(false);
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    static SAW: AtomicUsize = AtomicUsize::new(0);
    let cells = cells();
    let workers: Vec<_> = (0..WORKERS)
        .map(|index| {
            named(&format!("w{index}"))
                .spawn(move || {
                    begin(&cells[index]);
                    cycle_through(&cells[index], 50);
                    BEGUN.fetch_add(1, Relaxed);
                    let mut after = 0;
                    while !STOP.load(Relaxed) || after < 10 {
                        for _ in 0..100 {
                            cycle(cells[index].marks.load(Relaxed));
                            cells[index].advance();
                        }
                        // All threads continue for a while after the damage.
                        after += u32::from(HURT.load(Relaxed));
                        if after == 10 {
                            SAW.fetch_add(1, Relaxed);
                        }
                        // Forty threads share a few processors: the short-lived threads must get a turn too.
                        std::thread::yield_now();
                    }
                    cells[index].state.store(progress::FINISHED, Relaxed);
                })
                .unwrap()
        })
        .collect();
    while BEGUN.load(Relaxed) < WORKERS {
        std::thread::yield_now();
    }
    let visitors = std::thread::spawn(|| {
        let mut visitors = 0usize;
        while SAW.load(Relaxed) < WORKERS || visitors < VISITORS {
            run("visitor", || (0..10).for_each(cycle));
            visitors += 1;
        }
        visitors >= VISITORS
    });
    hurt(what);
    HURT.store(true, Relaxed);
    assert!(visitors.join().unwrap());
    STOP.store(true, Relaxed);
    for worker in workers {
        worker.join().unwrap();
    }
    crowd_of("late", 5);
    say("survived");
}

static COUNTED: AtomicU32 = AtomicU32::new(0);
/// The address of a fault outside the ring.
static LOST: std::sync::atomic::AtomicPtr<u8> = std::sync::atomic::AtomicPtr::new(ptr::null_mut());

extern "C" fn counts(_signal: i32) {
    let mut stack = std::mem::MaybeUninit::<libc::stack_t>::zeroed();
    unsafe { libc::sigaltstack(ptr::null(), stack.as_mut_ptr()) };
    // A handler that asked for no alternate stack may need more room than such a stack has.
    let is_elsewhere = unsafe { stack.assume_init() }.ss_flags & libc::SS_ONSTACK != 0;
    COUNTED.fetch_add(if is_elsewhere { 100 } else { 1 }, Relaxed);
    // Repairs the fault, as a program that handles such faults does.
    let lost = LOST.load(Relaxed);
    if !lost.is_null() {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        unsafe { libc::mmap(lost.cast(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    }
}

extern "C" fn looks(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let address = unsafe { (*info).si_addr() };
    let is_fault = unsafe { (*info).si_code } > 0;
    assert!(!context.is_null() && signal == libc::SIGBUS);
    assert!(!is_fault || address.cast() == LOST.load(Relaxed));
    counts(signal);
}

/// A SIGBUS outside the ring, with this handler installed before `init`: the program behaves as without librip.
fn sigbus(handler: &str, origin: &str) {
    match handler {
        "rust" => {}
        "default" => unsafe {
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        },
        "ignore" => unsafe {
            libc::signal(libc::SIGBUS, libc::SIG_IGN);
        },
        "plain" => handle(libc::SIGBUS, counts, 0),
        "once" => handle(libc::SIGBUS, counts, libc::SA_RESETHAND),
        "info" => {
            let looks: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = looks;
            common::install(libc::SIGBUS, looks as usize, libc::SA_SIGINFO);
        }
        other => panic!("no handler {other}"),
    }
    common::init();
    rip_snap!("before");
    // First a fault in the ring: the program's handler must not see it.
    hurt("truncate");
    rip_snap!("lost");
    for _ in 0..2 {
        match origin {
            "fault" => {
                let file = File::create_new(dir().join("other")).unwrap();
                drop(file);
                let file = OpenOptions::new().read(true).write(true).open(dir().join("other")).unwrap();
                std::fs::remove_file(dir().join("other")).unwrap();
                use std::os::fd::AsRawFd;
                let both = libc::PROT_READ | libc::PROT_WRITE;
                let start =
                    unsafe { libc::mmap(ptr::null_mut(), 4096, both, libc::MAP_SHARED, file.as_raw_fd(), 0) };
                LOST.store(start.cast(), Relaxed);
                unsafe { start.cast::<u8>().write_volatile(1) };
            }
            "sent" => unsafe {
                libc::kill(libc::getpid(), libc::SIGBUS);
            },
            "raised" => unsafe {
                libc::raise(libc::SIGBUS);
            },
            other => panic!("no origin {other}"),
        }
        rip_snap!("after");
        say(&format!("handled {}", COUNTED.load(Relaxed)));
    }
}

/// The file is removed, and another file gets its name.
fn removed() {
    common::init();
    work();
    if let Some(path) = ring() {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another program's").unwrap();
    }
    work();
    std::process::exit(0);
}

/// Uses most of its address space.
fn memory() {
    common::init();
    work();
    let blocks: Vec<Vec<u8>> = (0..20).map(|block| vec![block; 8 << 20]).collect();
    say(&format!("allocated {}", blocks.iter().map(Vec::len).sum::<usize>()));
    run("late", || (0..4).for_each(cycle));
}

/// No descriptor is free when the recorder makes the ring.
fn no_descriptors() {
    let mut open = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        open.push(file);
    }
    common::init();
    work();
    drop(open);
}

/// A daemon that closes all descriptors, and then opens files under the old numbers.
fn closes_all() {
    common::init();
    work();
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    let files: Vec<File> = (0..20)
        .map(|index| {
            let mut file = File::create(dir().join(format!("file{index}"))).unwrap();
            file.write_all(b"contents").unwrap();
            file
        })
        .collect();
    crowd_of("late", 40);
    drop(files);
    for index in 0..20 {
        assert_eq!(std::fs::read(dir().join(format!("file{index}"))).unwrap(), b"contents");
    }
    say("files are as they were written");
}
