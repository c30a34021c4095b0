//! Processes that fork, and what their children do.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use librip::rip_snap;
use librip_test_kit::progress;

use crate::common::{self, begin, cells, cycle_through, cycle_through_again, handle, named, rename, run};

/// Forks; the child runs `body` and exits with status 0. Waits for it.
pub(crate) fn child(body: impl FnOnce()) {
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        body();
        std::process::exit(0);
    }
    reap(pid);
}

pub(crate) fn reap(pid: i32) -> i32 {
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

/// The parent marks before, between and after; one child marks and exits, one does so and has a child of its
/// own and a thread, one does not mark, one ends with `_exit`.
pub(crate) fn fork() {
    rip_snap!("parent 1");
    child(|| {
        rename("child");
        rip_snap!("child 1");
        rip_snap!("child 2");
    });
    rip_snap!("parent 2");
    child(|| {
        rename("second");
        rip_snap!("second 1");
        child(|| {
            rename("grandchild");
            rip_snap!("grandchild");
        });
        run("thread", || rip_snap!("thread of the second"));
        rip_snap!("second 2");
    });
    child(|| ());
    child(|| {
        rename("leaves");
        rip_snap!("leaves");
        unsafe { libc::_exit(0) }
    });
    rip_snap!("parent 3");
}

/// Becomes a daemon: the first process ends with status 0 once its child has marked. The child marks again when its
/// parent is gone, and dies.
pub(crate) fn daemon() {
    let mut marked = [0; 2];
    let mut alone = [0; 2];
    unsafe { libc::pipe(marked.as_mut_ptr()) };
    unsafe { libc::pipe(alone.as_mut_ptr()) };
    if unsafe { libc::fork() } == 0 {
        unsafe { libc::close(alone[1]) };
        rename("daemon");
        rip_snap!("in the background");
        assert_eq!(unsafe { libc::write(marked[1], c"".as_ptr().cast(), 1) }, 1);
        // The parent has the other end of the pipe: this read ends when the parent is gone.
        let mut byte = 0u8;
        assert_eq!(unsafe { libc::read(alone[0], (&raw mut byte).cast(), 1) }, 0);
        rip_snap!("alone");
        std::fs::write(common::dir().join("done"), "alone").unwrap();
        std::process::abort();
    }
    let mut byte = 0u8;
    assert_eq!(unsafe { libc::read(marked[0], (&raw mut byte).cast(), 1) }, 1);
    std::process::exit(0);
}

/// Forks 60 times while two threads mark at full speed.
pub(crate) fn fork_storm() {
    let cells = cells();
    for (index, cell) in cells[..2].iter().enumerate() {
        named(&format!("w{index}"))
            .spawn(move || {
                begin(cell);
                common::cycle_forever(cell)
            })
            .unwrap();
    }
    begin(&cells[2]);
    rename("w2");
    for index in 3..63 {
        cycle_through_again(&cells[2], 3);
        let cell = &cells[index];
        child(|| {
            rename(&format!("w{index}"));
            begin(cell);
            cycle_through(cell, 5);
            cell.state.store(progress::FINISHED, Relaxed);
        });
    }
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

static PARENT: AtomicI32 = AtomicI32::new(0);
static MADE_IN_PARENT: AtomicU64 = AtomicU64::new(0);

extern "C" fn marks_by_process(_signal: i32) {
    if unsafe { libc::getpid() } == PARENT.load(Relaxed) {
        rip_snap!("handler in the parent");
        MADE_IN_PARENT.fetch_add(1, Relaxed);
    } else {
        rip_snap!("handler in a child");
    }
}

/// From now on, this thread does not get the signal.
fn block(signal: i32) {
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
    }
}

/// Forks while a thread sends signals to the whole process group. The handler marks.
pub(crate) fn fork_signals() {
    unsafe { libc::setpgid(0, 0) };
    PARENT.store(unsafe { libc::getpid() }, Relaxed);
    handle(libc::SIGUSR1, marks_by_process, libc::SA_RESTART);
    static STOP: AtomicBool = AtomicBool::new(false);
    let sender = named("sender").spawn(|| {
        block(libc::SIGUSR1);
        while !STOP.load(Relaxed) {
            unsafe { libc::kill(0, libc::SIGUSR1) };
        }
    });
    let cell = &cells()[0];
    begin(cell);
    for _ in 0..1500 {
        cycle_through_again(cell, 1);
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            unsafe { libc::_exit(0) };
        }
        reap(pid);
    }
    STOP.store(true, Relaxed);
    sender.unwrap().join().unwrap();
    // The last signal may not have come yet.
    block(libc::SIGUSR1);
    cell.extra.store(MADE_IN_PARENT.load(Relaxed), Relaxed);
}

pub(crate) unsafe extern "C" fn early_child() {
    rip_snap!("in the child's own fork handler");
}

/// Registers a fork handler before librip's: to be called before `init`.
pub(crate) fn prepare() {
    unsafe { libc::pthread_atfork(None, None, Some(early_child)) };
}

/// A handler for the child of a fork, registered before librip's, marks.
pub(crate) fn atfork() {
    rip_snap!("parent");
    child(|| rip_snap!("child"));
}
