//! Pools of async code whose objects tasks await, by the functions in which the tasks are suspended.

use std::collections::BTreeMap;

use super::futures::is_users;
use super::places::{AwaitChain, AwaitStep};
use super::values::TokioTasks;
use crate::waits::is_one_of;

/// Tasks that are in one function, all of which await objects of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWait {
    /// The library of the pool that the first one awaits.
    pub pool: &'static str,
    /// The function, one of the program's own if the debug information has its source file.
    pub function: String,
    /// The first one: an index of [`TokioTasks::tasks`].
    pub first: usize,
    /// How many there are.
    pub tasks: usize,
}

/// A pool of async code.
struct Pool {
    /// The library.
    name: &'static str,
    /// Its crate.
    of_crate: &'static str,
    /// The functions in which a task is that awaits an object.
    gets: &'static [&'static str],
    /// How the functions begin that these await until somebody gives an object back.
    inside: &'static [&'static str],
    /// How the type of what the last one awaits begins.
    awaited: &'static [&'static str],
}

const POOLS: &[Pool] = &[
    Pool {
        name: "deadpool",
        of_crate: "deadpool",
        gets: &["deadpool::managed::*get", "deadpool::unmanaged::*get"],
        inside: &["deadpool::", "deadpool_runtime::", "tokio::"],
        awaited: &["tokio::sync::batch_semaphore::Acquire"],
    },
    Pool {
        name: "bb8",
        of_crate: "bb8",
        gets: &["bb8::*get", "bb8::*get_owned"],
        inside: &["bb8::", "tokio::"],
        awaited: &["tokio::sync::notify::Notified", "tokio::sync::oneshot::Receiver<"],
    },
    // What this function awaits is a closure, beside the semaphore the end of the pool.
    Pool {
        name: "sqlx",
        of_crate: "sqlx_core",
        gets: &["sqlx_core::pool::*acquire_permit"],
        inside: &["sqlx_core::", "tokio::", "futures_"],
        awaited: &[""],
    },
];

/// The libraries of pools of async code that are among the crates of a program.
pub fn pools_among(crates: &[String]) -> Vec<&'static str> {
    let is_there = |pool: &&Pool| crates.iter().any(|of| of == pool.of_crate);
    POOLS.iter().filter(is_there).map(|pool| pool.name).collect()
}

impl AwaitChain {
    /// The library of a pool of async code, if a task that is suspended here waits until somebody gives an object back.
    ///
    /// The functions of a pool also make objects, and try whether they still work. They await functions of others then.
    pub fn pool(&self) -> Option<&'static str> {
        let begins = |with: &[&str], name: &str| with.iter().any(|begin| name.starts_with(begin));
        let awaits_object = |pool: &&Pool| {
            let mut inside = self.steps.iter().rev().take_while(|step| begins(pool.inside, &step.function));
            let is_get = |step: &AwaitStep| is_one_of(pool.gets, &step.function.replace("::{{closure}}", ""));
            begins(pool.awaited, &self.awaited) && inside.any(is_get)
        };
        POOLS.iter().find(awaits_object).map(|pool| pool.name)
    }
}

impl AwaitChain {
    /// The functions of the program's own; if no source file tells, the outermost one.
    fn own_functions(&self) -> Vec<&str> {
        let is_own = |step: &AwaitStep| step.file.as_deref().is_some_and(is_users);
        let mut own: Vec<&str> =
            self.steps.iter().filter(|step| is_own(step)).map(|step| &*step.function).collect();
        if own.is_empty() {
            own.extend(self.steps.first().map(|step| &*step.function));
        }
        own.sort_unstable();
        own.dedup();
        own
    }
}

impl TokioTasks {
    /// Those that are in one function, if all that are in it await objects of pools, and did so in both readings.
    /// `is_final`: there is one reading, and nothing changes any more.
    ///
    /// The task of a server runs a function of a library, which calls one of the program's own for each request.
    pub fn waits_for_pools(&self, is_final: bool) -> Vec<PoolWait> {
        let pools: Vec<Option<&'static str>> = self.chains.iter().map(AwaitChain::pool).collect();
        let own: Vec<Vec<&str>> = self.chains.iter().map(AwaitChain::own_functions).collect();
        // None for a function if a task that is in it does something else.
        let mut of_functions: BTreeMap<&str, Option<PoolWait>> = BTreeMap::new();
        let mut wait = |function, pool: Option<&'static str>, first| {
            let begun =
                || pool.map(|pool| PoolWait { pool, function: str::to_owned(function), first, tasks: 0 });
            match of_functions.entry(function).or_insert_with(begun) {
                Some(of) if pool.is_some() => of.tasks += 1,
                of => *of = None,
            }
        };
        // The function that a task begins with: what a task does whose place is not known.
        let mut begins: BTreeMap<usize, &str> = BTreeMap::new();
        for (first, task) in self.tasks.iter().enumerate() {
            let Some(chain) = task.chain.filter(|&chain| chain < self.chains.len()) else { continue };
            let pool = pools[chain].filter(|_| task.is_still.unwrap_or(is_final));
            own[chain].iter().for_each(|function| wait(function, pool, first));
            let begin = self.chains[chain].steps.first().map(|step| &*step.function);
            begins
                .extend(begin.filter(|begin| own[chain].contains(begin)).map(|begin| (task.function, begin)));
        }
        for (first, task) in self.tasks.iter().enumerate().filter(|(_, task)| task.chain.is_none()) {
            begins.get(&task.function).iter().for_each(|function| wait(function, None, first));
        }
        of_functions.into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::TokioTask;
    use super::*;

    #[test]
    fn pools_are_found_among_the_crates_of_a_program() {
        let of = |crates: &[&str]| pools_among(&crates.iter().map(|of| (*of).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["bb8", "sqlx_core", "tokio"]), ["bb8", "sqlx"]);
        assert!(of(&["bb8_postgres", "tokio"]).is_empty());
    }

    #[test]
    fn tasks_of_a_function_wait_for_a_pool_if_each_of_them_does() {
        let step = |function: &str| AwaitStep { function: function.to_owned(), file: None, line: None };
        let chain = |steps: &[&str], awaited: &str| AwaitChain {
            steps: steps.iter().map(|function| step(function)).collect(),
            awaited: awaited.to_owned(),
            is_open: false,
        };
        let at_pool = chain(&["app::handle", "bb8::api::get"], "tokio::sync::notify::Notified");
        let [ticks, works] = ["app::tick", "app::handle"].map(|of| chain(&[of], "tokio::time::sleep::Sleep"));
        let chains = vec![ticks, at_pool, works];
        // The function of each task, and its chain.
        let waits = |all: &[(usize, Option<usize>)], is_still: Option<bool>, is_final: bool| {
            let task = |&(function, chain): &(usize, Option<usize>)| TokioTask {
                function,
                is_still,
                wakers: 1,
                chain,
                ..TokioTask::default()
            };
            let tasks = all.iter().map(task).collect();
            TokioTasks { tasks, chains: chains.clone(), ..TokioTasks::default() }.waits_for_pools(is_final)
        };
        let two = [PoolWait { pool: "bb8", function: "app::handle".to_owned(), first: 1, tasks: 2 }];
        let all = [(0, Some(0)), (1, Some(1)), (1, Some(1))];
        assert_eq!(waits(&all, Some(true), false), two);
        assert_eq!(waits(&all, None, true), two, "a core file is one reading");
        assert_eq!(waits(&all, None, false), [], "one reading of a living process");
        assert_eq!(waits(&all, Some(false), false), [], "they went on");
        for other in [Some(2), None] {
            assert_eq!(waits(&[(1, Some(1)), (1, other), (1, Some(1))], Some(true), false), [], "{other:?}");
            assert_eq!(waits(&[(1, other), (1, Some(1))], Some(true), false), [], "{other:?}");
        }
    }

    /// A connection of a server may be idle, or be in another function of the program.
    #[test]
    fn a_function_counts_and_not_the_library_that_calls_it() {
        let step = |function: &str, file: &str| AwaitStep {
            function: function.to_owned(),
            file: Some(file.to_owned()),
            line: None,
        };
        const AXUM: &str = "/root/.cargo/registry/src/i/axum-0.8.0/serve.rs";
        let chain = |functions: &[&str], awaited: &str| AwaitChain {
            steps: [step("axum::serve", AXUM)]
                .into_iter()
                .chain(functions.iter().map(|function| step(function, "/src/shop.rs")))
                .chain(awaited.starts_with("tokio::sync").then(|| step("bb8::api::get", AXUM)))
                .collect(),
            awaited: awaited.to_owned(),
            is_open: false,
        };
        const NOTIFIED: &str = "tokio::sync::notify::Notified";
        let chains = vec![
            chain(&["shop::orders"], NOTIFIED),
            chain(&["shop::orders", "shop::audit"], NOTIFIED),
            chain(&[], "hyper::Connection"),
            chain(&["shop::audit"], "tokio::time::Sleep"),
        ];
        let waits = |all: &[Option<usize>]| {
            let task = |&chain: &Option<usize>| TokioTask {
                is_still: Some(true),
                wakers: 1,
                chain,
                ..TokioTask::default()
            };
            let tasks = all.iter().map(task).collect();
            let tasks = TokioTasks { tasks, chains: chains.clone(), ..TokioTasks::default() };
            let waits = tasks.waits_for_pools(false).into_iter();
            waits.map(|wait| (wait.function, wait.tasks)).collect::<Vec<_>>()
        };
        let [orders, audit] = ["shop::orders", "shop::audit"].map(str::to_owned);
        assert_eq!(waits(&[Some(0), Some(1), Some(2), None]), [(audit, 1), (orders.clone(), 2)]);
        assert_eq!(waits(&[Some(0), Some(1), Some(3)]), [(orders, 2)], "an audit does something else");
    }

    /// The names are as the debug information of programs has them, without the parts that say how they are compiled.
    #[test]
    fn a_task_awaits_an_object_of_a_pool_if_nothing_else_is_awaited_in_it() {
        let pool = |functions: &[&str], awaited: &str| {
            let step = |&function: &&str| AwaitStep { function: function.to_owned(), file: None, line: None };
            let steps = functions.iter().map(step).collect();
            AwaitChain { steps, awaited: awaited.to_owned(), is_open: false }.pool()
        };
        const ACQUIRE: &str = "tokio::sync::batch_semaphore::Acquire";
        let deadpool = [
            "app::handle",
            "deadpool::managed::pool::get",
            "deadpool::managed::pool::timeout_get",
            "deadpool::managed::pool::apply_timeout",
            "deadpool_runtime::timeout",
            "deadpool::managed::pool::timeout_get::{{closure}}",
            "tokio::sync::semaphore::acquire",
        ];
        assert_eq!(pool(&deadpool, ACQUIRE), Some("deadpool"));
        assert_eq!(pool(&["app::handle", "deadpool::managed::get"], ACQUIRE), Some("deadpool"));
        let unmanaged =
            ["deadpool::unmanaged::get", "deadpool::unmanaged::timeout_get", "deadpool_runtime::timeout"];
        assert_eq!(pool(&unmanaged, ACQUIRE), Some("deadpool"));
        let creates = ["deadpool::managed::pool::timeout_get", "deadpool::managed::pool::try_create"];
        assert_eq!(
            pool(&creates, "core::pin::Pin<alloc::boxed::Box<dyn core::future::future::Future>>"),
            None
        );
        let connects = [&creates[..], &["app::connect", "tokio::sync::semaphore::acquire"]].concat();
        assert_eq!(pool(&connects, ACQUIRE), None, "the driver waits");

        const NOTIFIED: &str = "tokio::sync::notify::Notified";
        let bb8 = ["app::handle", "bb8::api::get", "bb8::inner::get", "bb8::inner::get::{{closure}}"];
        assert_eq!(pool(&bb8, NOTIFIED), Some("bb8"));
        assert_eq!(pool(&["bb8::api::get_owned", "bb8::inner::get"], NOTIFIED), Some("bb8"));
        assert_eq!(pool(&[&bb8[..], &["bb8_postgres::is_valid"]].concat(), NOTIFIED), None);
        assert_eq!(pool(&bb8, "tokio::time::sleep::Sleep"), None);

        let sqlx = [
            "app::handle",
            "sqlx_core::pool::acquire",
            "sqlx_core::pool::inner::acquire",
            "sqlx_core::rt::timeout",
            "sqlx_core::pool::inner::acquire::{{closure}}",
        ];
        let polls = "core::future::poll_fn::PollFn<sqlx_core::pool::{impl#3}::do_until::{async_fn#0}::{closure_env#1}<\
                     core::pin::Pin<&mut futures_util::future::future::fuse::Fuse<\
                     sqlx_core::sync::{impl#0}::acquire::{async_fn_env#0}>>>>";
        let permit = ["sqlx_core::pool::inner::acquire_permit", "sqlx_core::pool::do_until"];
        assert_eq!(pool(&[&sqlx[..], &permit].concat(), polls), Some("sqlx"));
        let connects = [&sqlx[..], &["sqlx_core::pool::inner::connect", "sqlx_core::rt::timeout"]].concat();
        assert_eq!(pool(&connects, "sqlx_core::net::socket::SocketIntoBox"), None, "a slow database");
        assert_eq!(pool(&[&sqlx[..], &["sqlx_core::pool::inner::check_idle_conn"]].concat(), ACQUIRE), None);
        assert_eq!(pool(&["app::get", "tokio::sync::semaphore::acquire"], ACQUIRE), None, "no pool");
    }
}
