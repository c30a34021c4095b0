//! Signal handlers that mark, at any instant and as the first of a thread.

use std::cell::Cell as LocalCell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

use librip::rip_snap;
use librip_test_kit::progress;

use crate::common::{
    begin, cells, cycle_through, cycle_through_again, errno, handle, named, run, set_errno, tid,
};

thread_local! {
    /// How many marks the handler may still make in this thread, and how many it made. Without destructor
    /// and with constant initial value: a handler may use it.
    static HANDLER: (LocalCell<u64>, LocalCell<u64>) = const { (LocalCell::new(0), LocalCell::new(0)) };
}

extern "C" fn marks_in_handler(_signal: i32) {
    HANDLER.with(|(left, made)| {
        if left.get() == 0 {
            return;
        }
        left.set(left.get() - 1);
        match made.get() % 3 {
            0 => rip_snap!("handler 0"),
            1 => rip_snap!("handler 1"),
            _ => rip_snap!("handler 2"),
        }
        made.set(made.get() + 1);
    });
}

/// A timer that signals the calling thread, until it is dropped.
///
/// On a busy machine, a thread that sends signals may not run while another one marks; the kernel does. A thread whose
/// signals come faster than it can handle them gets no further, so the interval is many times the time of one.
struct Timer(libc::timer_t);

impl Timer {
    fn start(signal: i32) -> Timer {
        const INTERVAL: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
        let mut timer = ptr::null_mut();
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = tid() as i32;
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
            let times = libc::itimerspec { it_interval: INTERVAL, it_value: INTERVAL };
            assert_eq!(libc::timer_settime(timer, 0, &raw const times, ptr::null_mut()), 0);
        }
        Timer(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Threads that mark 12000 times each, under a storm of signals whose handler marks too: at most 4000 times. Another
/// thread and a timer send them.
pub(crate) fn storm(threads: usize) {
    handle(libc::SIGUSR1, marks_in_handler, libc::SA_RESTART);
    let cells = cells();
    for (index, cell) in cells[..threads].iter().enumerate() {
        let target = Arc::new(AtomicU32::new(0));
        let thread = named(&format!("w{index}")).spawn({
            let target = target.clone();
            move || {
                begin(cell);
                HANDLER.with(|(left, _)| left.set(4000));
                target.store(tid(), Relaxed);
                let timer = Timer::start(libc::SIGUSR1);
                cycle_through(cell, 12_000);
                drop(timer);
                HANDLER.with(|(left, made)| {
                    left.set(0);
                    cell.extra.store(made.get(), Relaxed);
                });
                cell.state.store(progress::FINISHED, Relaxed);
            }
        });
        while target.load(Relaxed) == 0 {
            std::hint::spin_loop();
        }
        let target = target.load(Relaxed);
        while cell.state.load(Relaxed) != progress::FINISHED {
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), target, libc::SIGUSR1) };
        }
        thread.unwrap().join().unwrap();
    }
}

/// Marks with a signal, whose handler marks too, between each two instructions: the processor's own
/// single-step flag raises it, so the test covers every instant.
#[cfg(target_arch = "x86_64")]
pub(crate) fn step() {
    handle(libc::SIGTRAP, marks_in_handler, 0);
    let cell = &cells()[0];
    run("thread", move || {
        begin(cell);
        // The first mark blocks signals, and a blocked trap kills.
        cycle_through(cell, 1);
        HANDLER.with(|(left, _)| left.set(16_000));
        unsafe { std::arch::asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq") };
        for _ in 0..30 {
            cycle_through_again(cell, 1);
        }
        unsafe { std::arch::asm!("pushfq", "and dword ptr [rsp], 0xfffffeff", "popfq") };
        HANDLER.with(|(left, made)| {
            assert!(left.get() > 0, "the handler could not always mark");
            cell.extra.store(made.get(), Relaxed);
        });
    });
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn step() {}

static HANDLER_RAN: AtomicBool = AtomicBool::new(false);

extern "C" fn first_mark_in_handler(_signal: i32) {
    set_errno(77);
    rip_snap!("in the handler");
    HANDLER_RAN.store(errno() == 77, Relaxed);
}

/// A handler makes a thread's first mark, on an alternate stack of that size if it is not 0.
pub(crate) fn handler_first(stack_len: usize) {
    let flags = if stack_len > 0 { libc::SA_ONSTACK } else { 0 };
    handle(libc::SIGUSR1, first_mark_in_handler, flags);
    run("thread", move || {
        if stack_len > 0 {
            // No memory is mapped below it, so an overflow faults.
            let (none, both) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
            let map_flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let guard = 1 << 16;
            unsafe {
                let start = libc::mmap(ptr::null_mut(), guard + stack_len, none, map_flags, -1, 0);
                let stack = start.byte_add(guard);
                assert_eq!(libc::mprotect(stack, stack_len, both), 0);
                let stack = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: stack_len };
                assert_eq!(libc::sigaltstack(&raw const stack, ptr::null_mut()), 0);
            }
        }
        unsafe { libc::raise(libc::SIGUSR1) };
        assert!(HANDLER_RAN.load(Relaxed));
        rip_snap!("after the handler");
        if stack_len > 0 {
            let stack = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
        }
    });
}
