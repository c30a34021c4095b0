//! Threads under filters of system calls (seccomp) that refuse what a first mark needs.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::common::{self, cycle, named, run, say};

/// Two threads install a filter each. The threads that the first one starts get no memory reserved, and those that the
/// second one starts do not learn their ids.
pub(super) fn filtered() {
    common::init();
    run("before", || cycle(1));
    let reserving = [(libc::SYS_madvise, None), (libc::SYS_futex, Some(libc::FUTEX_WAKE_OP))];
    under(&reserving, "r", 8);
    under(&[(libc::SYS_gettid, None)], "i", 1);
    say("filtered");
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
