//! The threads of executors of async tasks, by the functions of their stacks.
//!
//! The name of a thread says it too, where the program chooses none. A thread that polls one future, as in `block_on`
//! of a runtime with workers of its own, is no worker. Adding an executor takes a line of the table and one of the
//! test.

use serde::{Deserialize, Serialize};

use super::patterns::{glob, is_one_of, plain};
use crate::saved_text::Constant;

/// A thread of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Worker {
    /// It polls the tasks of this executor.
    OfTasks(#[serde(deserialize_with = "crate::saved_text::constant")] Constant),
    /// It runs calls that block, and polls no task.
    OfCalls,
}

impl Worker {
    /// What the name of a function says of a thread that it has on its stack.
    pub(crate) fn of_function(name: &str) -> Option<Worker> {
        if !name.contains("::") {
            return None;
        }
        let name = plain(name);
        if let Some((_, executor)) = POLLING.iter().find(|(pattern, _)| glob(pattern, &name)) {
            return Some(Worker::OfTasks(executor));
        }
        is_one_of(BLOCKING, &name).then_some(Worker::OfCalls)
    }

    /// What all functions of a stack say. A worker of tasks may have been begun by a pool for calls.
    pub(crate) fn of_stack(functions: impl Iterator<Item = Worker>) -> Option<Worker> {
        functions.reduce(|inner, outer| if inner == Worker::OfCalls { outer } else { inner })
    }
}

/// Whether a thread polls a task of tokio, and so polls no other one, by the names of its stack's functions, innermost
/// first. A thread whose poll has handed its worker over to another thread does not count. A worker is itself a task of
/// the pool for calls, whose poll is outside of the scheduler.
pub(crate) fn is_in_poll<'n>(functions: impl Iterator<Item = &'n str>) -> bool {
    let mut is_polled = false;
    for name in functions.filter(|name| name.contains("tokio::")).map(plain) {
        if glob("tokio::*block_in_place*", &name) {
            return false;
        }
        if is_one_of(SCHEDULERS, &name) {
            return is_polled;
        }
        is_polled |= is_one_of(POLL, &name);
    }
    false
}

/// The function that polls a task of tokio: without and with its types.
const POLL: &[&str] = &["tokio::runtime::task::raw::poll", "tokio::runtime::task::raw::poll::<*"];

/// The schedulers of tokio.
const SCHEDULERS: &[&str] =
    &["tokio::runtime::scheduler::multi_thread*::worker::*", "tokio::runtime::scheduler::current_thread::*"];

/// How the names of threads begin that poll async tasks, unless the program names them, and their executor.
const NAMED: &[(&str, Constant)] = &[
    ("tokio-rt-worker", "tokio"),
    ("tokio-runtime-w", "tokio"),
    ("async-std/runti", "async-std"),
    ("smol-", "smol"),
    ("actix-rt|", "actix"),
];

/// The executor whose tasks a thread polls: by the thread's name, or by its stack, which also knows the threads that
/// the executor has for other things.
pub fn executor_of(name: &str, worker: Option<Worker>) -> Option<&'static str> {
    let by_name = NAMED.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|of| of.1);
    match worker {
        Some(Worker::OfCalls) => None,
        Some(Worker::OfTasks(executor)) => by_name.or(Some(executor)),
        None => by_name,
    }
}

/// Functions that poll tasks, or wait until there is one to poll.
const POLLING: &[(&str, Constant)] = &[
    ("tokio::runtime::scheduler::current_thread::*", "tokio"),
    ("tokio::runtime::scheduler::multi_thread*::worker::*", "tokio"),
    ("tokio::runtime::scheduler::multi_thread*::park::*", "tokio"),
    ("tokio::runtime::driver::Driver::*", "tokio"),
    ("tokio::runtime::time::Driver::*", "tokio"),
    ("tokio::runtime::io::driver::Driver::*", "tokio"),
    ("tokio::task::local::*", "tokio"),
    ("async_executor::*", "async-executor"),
    ("futures_executor::local_pool::LocalPool::*", "futures"),
    ("futures_executor::thread_pool::*", "futures"),
];

/// Functions of the pools for calls that block. Workers of tasks are begun by the same ones.
const BLOCKING: &[&str] = &["tokio::runtime::blocking::pool::*"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Stacks, innermost first, as debuggers show them.
    const STACKS: &[(&[&str], Option<Worker>)] = &[
        (
            &[
                "epoll_wait",
                "mio::poll::Poll::poll",
                "tokio::runtime::io::driver::Driver::turn",
                "tokio::runtime::time::Driver::park_internal",
                "server::main",
            ],
            Some(Worker::OfTasks("tokio")),
        ),
        (
            &[
                "",
                "std::sys::sync::condvar::futex::Condvar::wait_timeout",
                "<tokio::runtime::scheduler::current_thread::CoreGuard>::block_on::{{closure}}",
                "tokio::runtime::runtime::Runtime::block_on",
                "server::main",
            ],
            Some(Worker::OfTasks("tokio")),
        ),
        (
            &[
                "std::sys::sync::mutex::futex::Mutex::lock_contended",
                "server::handle::{{closure}}",
                "tokio::runtime::task::raw::poll",
                "tokio::runtime::scheduler::multi_thread::worker::Context::run_task",
                "tokio::runtime::blocking::pool::Inner::run",
            ],
            Some(Worker::OfTasks("tokio")),
        ),
        // A task that asks the pool for a call.
        (
            &[
                "std::sys::sync::mutex::futex::Mutex::lock_contended",
                "tokio::runtime::blocking::pool::Spawner::spawn_blocking",
                "server::handle::{{closure}}",
                "tokio::runtime::scheduler::multi_thread::worker::Context::run_task",
                "tokio::runtime::blocking::pool::Inner::run",
            ],
            Some(Worker::OfTasks("tokio")),
        ),
        (
            &[
                "read",
                "server::load",
                "tokio::runtime::task::raw::poll",
                "tokio::runtime::blocking::pool::Inner::run",
            ],
            Some(Worker::OfCalls),
        ),
        (
            &[
                "tokio::runtime::park::CachedParkThread::block_on",
                "tokio::runtime::scheduler::multi_thread::MultiThread::block_on",
                "tokio::runtime::runtime::Runtime::block_on",
                "server::main",
            ],
            None,
        ),
        (&["", "async_executor::State::run::{{closure}}"], Some(Worker::OfTasks("async-executor"))),
        (&["futures_executor::local_pool::LocalPool::run"], Some(Worker::OfTasks("futures"))),
        (&["tokio", "", "main"], None),
    ];

    #[test]
    fn a_poll_keeps_the_threads_of_its_scheduler_unless_it_has_handed_its_worker_over() {
        let of = |functions: &[&str]| is_in_poll(functions.iter().copied());
        let [poll, worker, alone, in_place] = [
            "tokio::runtime::task::raw::poll::<server::handle::{closure#0}, alloc::sync::Arc<_>>",
            "tokio::runtime::scheduler::multi_thread::worker::Context::run_task",
            "<tokio::runtime::scheduler::current_thread::CoreGuard>::block_on::{{closure}}",
            "tokio::runtime::scheduler::multi_thread::worker::block_in_place",
        ];
        assert!(of(&["nanosleep", poll, worker]));
        assert!(of(&["nanosleep", "tokio::runtime::task::raw::poll", alone]));
        assert!(!of(&["nanosleep", in_place, poll, worker]), "another thread is the worker now");
        assert!(!of(&["epoll_wait", worker, poll]), "the worker alone is polled, by the pool");
        assert!(!of(&["nanosleep", poll, "tokio::runtime::blocking::pool::Inner::run"]), "a call");
    }

    #[test]
    fn workers_are_known_by_what_called_them() {
        for &(frames, worker) in STACKS {
            let of_functions = frames.iter().filter_map(|name| Worker::of_function(name));
            assert_eq!(Worker::of_stack(of_functions), worker, "{frames:?}");
        }
    }
}
