//! The ways to die.

use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;

use librip::rip_snap;
use librip_test_kit::progress::{self, CELLS, Cell};

use crate::common::{self, begin, cells, cycle_forever, cycle_through, pause, say, sleep_forever};

pub(crate) fn main(arguments: &[&str]) {
    match arguments {
        ["torture"] => torture(),
        [way, rest @ ..] => {
            common::init();
            let cells = cells();
            prelude(cells);
            die(way, rest, &cells[0]);
        }
        [] => panic!("which way?"),
    }
}

/// A thread that has marked and stays alive, a thread that has marked and exited, and 100 marks of the main thread.
fn prelude(cells: &'static [Cell]) {
    let (sender, receiver) = mpsc::channel();
    common::named("w1")
        .spawn(move || {
            begin(&cells[1]);
            cycle_through(&cells[1], 10);
            sender.send(()).unwrap();
            sleep_forever()
        })
        .unwrap();
    receiver.recv().unwrap();
    common::run("w2", || {
        begin(&cells[2]);
        cycle_through(&cells[2], 200);
        cells[2].state.store(progress::FINISHED, Relaxed);
    });
    begin(&cells[0]);
    cycle_through(&cells[0], 100);
}

fn die(way: &str, arguments: &[&str], cell: &Cell) {
    match way {
        "sigkill" => {
            rip_snap!("about to die");
            pause();
        }
        "sigkill_self" => {
            rip_snap!("about to die");
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        "sigsegv" => {
            let nowhere = black_box(16 as *const u64);
            rip_snap!("about to die");
            // An unmapped address, on purpose.
            let value = unsafe { *nowhere };
            rip_snap!("survived");
            black_box(value);
        }
        "abort" => {
            rip_snap!("about to die");
            std::process::abort()
        }
        "panic" => {
            rip_snap!("about to die");
            panic!("as the test wishes")
        }
        "stack_overflow" => {
            black_box(deeper(cell, 0));
        }
        "_exit" => {
            rip_snap!("about to die");
            unsafe { libc::_exit(0) }
        }
        "exec" => {
            rip_snap!("about to die");
            let path = c"/bin/true".as_ptr();
            let arguments = [path, std::ptr::null()];
            // As a supervisor's wrapper does: the process becomes another program.
            unsafe { libc::execv(path, arguments.as_ptr()) };
        }
        "eat" => eat(cell),
        "alloc" => {
            rip_snap!("about to die");
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(black_box(Vec::with_capacity(1 << 24)));
            }
        }
        "exit" => std::process::exit(arguments[0].parse().unwrap()),
        "return" => {}
        other => panic!("no way {other}"),
    }
}

/// Marks, counts and recurses until the stack overflows.
#[expect(unconditional_recursion, reason = "that is how stacks overflow")]
#[inline(never)]
fn deeper(cell: &Cell, depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    rip_snap!("deeper");
    cell.advance();
    deeper(cell, depth + 1) + frame[3]
}

/// Marks, counts and uses one more page, until there is no memory.
fn eat(cell: &Cell) {
    let len = 1 << 34;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    for offset in (0..len).step_by(4096) {
        rip_snap!("about to eat");
        cell.advance();
        unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
    }
}

/// Three threads at full speed, and others that start, mark a few times and end, until the process is killed.
fn torture() -> ! {
    common::init();
    let cells = cells();
    let next = &*Box::leak(Box::new(AtomicUsize::new(0)));
    for _ in 0..3 {
        let index = next.fetch_add(1, Relaxed);
        common::named(&format!("w{index}"))
            .spawn(move || {
                begin(&cells[index]);
                cycle_forever(&cells[index])
            })
            .unwrap();
    }
    let churn = move |_: i32| -> ! {
        loop {
            let batch: Vec<_> = (0..3)
                .map_while(|_| {
                    let index = next.fetch_add(1, Relaxed);
                    (index < CELLS).then(|| {
                        let thread = common::named(&format!("w{index}")).spawn(move || {
                            let cell = &cells[index];
                            begin(cell);
                            cycle_through(cell, 1 + index as u64 * 37 % 150);
                            cell.state.store(progress::FINISHED, Relaxed);
                        });
                        (index, thread.unwrap())
                    })
                })
                .collect();
            if batch.is_empty() {
                sleep_forever()
            }
            for (index, thread) in batch {
                thread.join().unwrap();
                // Joined, so its slot records the exit.
                cells[index].extra.store(1, Relaxed);
            }
        }
    };
    for index in 0..2 {
        std::thread::spawn(move || churn(index));
    }
    say("ready");
    sleep_forever()
}
