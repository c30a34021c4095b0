//! Threads under filters of system calls (seccomp) that refuse what a first mark needs, or kill for it.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{self, cycle, named, run, say};

/// Two threads install a filter each. The threads that the first one starts get no memory reserved. Those that the
/// second one starts know their ids from the C library.
pub(super) fn filtered() {
    common::init();
    run("before", || cycle(1));
    let reserving = [(libc::SYS_madvise, None), (libc::SYS_futex, Some(libc::FUTEX_WAKE_OP))];
    under(&reserving, "r", 8);
    under(&[(libc::SYS_gettid, None)], "i", 1);
    say("filtered");
}

/// The program says that it is about to restrict its system calls, and lists only those that it makes itself. A thread
/// that has not recorded before does so afterwards, and so do new ones.
pub(super) fn strict() {
    common::init();
    let lock = Arc::new(librip::sync::Mutex::new(0));
    let (goes_on, waits) = std::sync::mpsc::channel::<()>();
    let works = |lock: &librip::sync::Mutex<u32>| {
        cycle(2);
        *lock.lock().unwrap() += 1;
    };
    let started = named("started before").spawn({
        let lock = Arc::clone(&lock);
        move || {
            waits.recv().unwrap();
            works(&lock);
        }
    });
    let started = started.unwrap();
    run("before", || cycle(1));
    works(&lock);
    librip::avoid_system_calls();
    install(&allowing(&[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_futex,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_rt_sigprocmask,
        libc::SYS_sigaltstack,
        libc::SYS_sched_getaffinity,
        libc::SYS_gettid,
        libc::SYS_wait4,
    ]));
    goes_on.send(()).unwrap();
    started.join().unwrap();
    thread::spawn({
        let lock = Arc::clone(&lock);
        move || works(&lock)
    })
    .join()
    .unwrap();
    match unsafe { libc::fork() } {
        0 => {
            works(&lock);
            unsafe { libc::_exit(7) };
        }
        child => {
            let mut status = 0;
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 7 << 8, "the child was not killed");
        }
    }
    works(&lock);
    say(&format!("counted {}", lock.lock().unwrap()));
}

/// Starts so many threads that mark at once, under a filter that refuses these calls, by number and second argument.
fn under(refused: &[(i64, Option<i32>)], name: &'static str, threads: usize) {
    let filter = filter(refused);
    let installs = move || {
        install(&filter);
        let all_have_marked = Arc::new(Barrier::new(threads));
        let started: Vec<_> = (0..threads)
            .map(|index| {
                let all_have_marked = Arc::clone(&all_have_marked);
                let marks = move || {
                    cycle(2);
                    all_have_marked.wait();
                };
                named(&format!("{name}{index}")).spawn(marks).unwrap()
            })
            .collect();
        started.into_iter().for_each(|thread| thread.join().unwrap());
    };
    thread::spawn(installs).join().unwrap();
}

/// A filter that refuses these calls with EPERM.
fn filter(refused: &[(i64, Option<i32>)]) -> Vec<libc::sock_filter> {
    /// Where the number of the call is, and the lower half of its second argument.
    const NUMBER_AT: u32 = 0;
    const SECOND_AT: u32 = 16 + 8;
    let load = |at| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at);
    let unless = |value: u32, skipped: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: skipped,
        k: value,
    };
    let end = |result| statement(libc::BPF_RET | libc::BPF_K, result);
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = Vec::new();
    for &(number, second) in refused {
        filter.push(load(NUMBER_AT));
        match second {
            None => filter.extend([unless(number as u32, 1), end(refuse)]),
            Some(second) => {
                filter.extend([
                    unless(number as u32, 3),
                    load(SECOND_AT),
                    unless(second as u32, 1),
                    end(refuse),
                ]);
            }
        }
    }
    filter.push(end(libc::SECCOMP_RET_ALLOW));
    filter
}

/// A filter that kills the process for all calls but these.
fn allowing(allowed: &[i64]) -> Vec<libc::sock_filter> {
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for &number in allowed {
        filter.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: number as u32,
        });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS));
    filter
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Installs a filter in the calling thread. The threads that it starts inherit it.
fn install(filter: &[libc::sock_filter]) {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // The kernel copies the filter. Without new privileges, any user may install one.
    let results = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
        ]
    };
    assert_eq!(results, [0, 0]);
}
