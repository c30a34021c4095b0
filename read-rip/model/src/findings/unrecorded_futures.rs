//! Futures that belong to no recorded task: how much the record has of them, and who spawns them. It is no analysis,
//! and finds nothing.
//!
//! Servers spawn their requests themselves. What such a future holds and waits for is known, and who waits for whom is
//! not: any thread may poll it.

use serde::Serialize;

use super::named::named;
use super::runtimes::executor;
use crate::locations::LocationId;
use crate::locks::{Lock, LockModel, TaskFacts, ThreadLocks};

named! {
    /// A library that spawns the tasks of a server itself.
    pub enum Framework {
        /// `axum`.
        Axum = "axum",
        /// `tonic`.
        Tonic = "tonic",
        /// `actix-web`.
        Actix = "actix-web",
        /// `hyper`, in a program that has none of the others.
        Hyper = "hyper",
    }
}

impl Framework {
    /// The frameworks among the crates of a program, which are sorted.
    fn among(crates: &[String]) -> Vec<Framework> {
        let has = |name: &str| crates.binary_search_by(|known| known.as_str().cmp(name)).is_ok();
        let known = [("axum", Framework::Axum), ("tonic", Framework::Tonic), ("actix_web", Framework::Actix)];
        let found: Vec<Framework> = known.into_iter().filter(|(name, _)| has(name)).map(|of| of.1).collect();
        match found[..] {
            [] if has("hyper") => vec![Framework::Hyper],
            _ => found,
        }
    }
}

/// What the record has of futures that belong to no recorded task.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnrecordedFutures {
    /// How many of their acquisitions and waits are in the histories of the threads that polled them.
    pub events: u64,
    /// The executor that polls them, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<&'static str>,
    /// Whether a runtime says of all of its tasks when it polls them.
    #[serde(rename = "watched", skip_serializing_if = "std::ops::Not::not")]
    pub is_watched: bool,
    /// Whether requests of a server are recorded tasks.
    #[serde(rename = "knows_requests", skip_serializing_if = "std::ops::Not::not")]
    pub knows_requests: bool,
    /// Whether none of them has acquired a lock or waited for one: they wait for messages, notifications and ends of
    /// tasks.
    #[serde(rename = "without_locks", skip_serializing_if = "std::ops::Not::not")]
    pub is_without_locks: bool,
    /// Where one of them acquired or waited last, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// Which libraries may spawn them, as far as the program's packages tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frameworks: Vec<Framework>,
}

impl UnrecordedFutures {
    /// Those of a process, if a worker of an executor has polled some, or a wait or hold of one lasts.
    ///
    /// A main future may use a lock for a moment, and waits for messages or for the ends of tasks: that alone is no
    /// reason to judge nothing.
    pub fn of(model: &LockModel) -> Option<UnrecordedFutures> {
        let is_stuck = |lock: &Lock| {
            let mut waits = lock.futures_waiting.iter().filter(|_| !lock.nature.lock_type.is_unowned());
            lock.holds_of_futures().any(|hold| hold.is_steady) || waits.any(|wait| wait.is_steady)
        };
        let has_stuck = model.locks.iter().any(is_stuck);
        let polled =
            || model.threads.iter().map(|thread| (thread, &thread.of_futures)).filter(|of| of.1.events > 0);
        let executor = polled().find_map(|(thread, _)| executor(thread));
        if executor.is_none() && !has_stuck {
            return None;
        }
        let is_request = |thread: &ThreadLocks| thread.task.as_deref().is_some_and(TaskFacts::is_request);
        let is_watched = |thread: &ThreadLocks| {
            thread.task.as_deref().is_some_and(|task| task.runtime.is_some() && !task.counts_wakes)
        };
        Some(UnrecordedFutures {
            events: polled().map(|(_, of)| of.events).sum(),
            executor,
            is_watched: model.threads.iter().any(is_watched),
            knows_requests: model.threads.iter().any(is_request),
            is_without_locks: !has_stuck && polled().all(|(_, of)| of.at_locks == 0),
            last: polled().find_map(|(_, of)| of.last),
            frameworks: Vec::new(),
        })
    }

    /// Whether what they do may keep others from going on, so that nothing can be said of these.
    ///
    /// Who only waits for messages has nothing that others need. Where nobody has made tasks of the requests, a request
    /// may be what waits. A server whose requests are tasks has other futures, such as the one that says when to stop.
    pub fn may_keep_others(&self) -> bool {
        !(self.is_without_locks && self.knows_requests)
    }

    /// With the frameworks among the crates of the program, which are sorted.
    pub fn with_crates(self, crates: &[String]) -> UnrecordedFutures {
        UnrecordedFutures { frameworks: Framework::among(crates), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};
    use crate::findings::{Balance, Outcome};
    use crate::locks::OfFutures;

    #[test]
    fn futures_that_only_wait_for_messages_keep_nobody_from_being_judged_where_requests_are_tasks() {
        let of_one = |at_locks: u64, is_request: bool| {
            let mut scene = Scene::new();
            let worker = scene.thread("tokio-rt-worker");
            scene.model.threads[worker].of_futures = OfFutures { events: 3, at_locks, last: None };
            let request = scene.task("GET /orders/{id}");
            scene.facts(request).is_of_kind = is_request;
            scene.facts(request).runtime.as_mut().unwrap().workers = 0;
            scene.model.threads[request].claimed_ns = NOW - SECOND;
            scene.with_view(|view| Balance::of(view, &[])).outcome
        };
        assert_eq!(of_one(0, true), Outcome::NothingFound);
        assert_eq!(of_one(0, false), Outcome::UnrecordedFutures, "one may be a request");
        assert_eq!(of_one(1, true), Outcome::UnrecordedFutures, "it may have the lock");
    }

    #[test]
    fn hyper_is_named_where_nothing_upon_it_is() {
        let among = |crates: &[&str]| {
            let crates: Vec<String> = crates.iter().map(|&name| name.to_owned()).collect();
            Framework::among(&crates)
        };
        assert_eq!(among(&["hyper", "tokio"]), [Framework::Hyper]);
        assert_eq!(among(&["axum", "hyper", "tonic"]), [Framework::Axum, Framework::Tonic]);
        assert_eq!(among(&["actix_web"]), [Framework::Actix]);
        assert_eq!(among(&["axum_core", "tokio"]), []);
    }
}
