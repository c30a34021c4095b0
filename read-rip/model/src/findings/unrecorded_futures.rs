//! Futures that belong to no recorded task: how much the record has of them, and who spawns them. It is no analysis,
//! and finds nothing.
//!
//! Servers spawn their requests themselves. What such a future holds and waits for is known, and who waits for whom is
//! not: any thread may poll it.

use serde::Serialize;

use super::named::named;
use super::runtimes::executor;
use crate::locks::{Lock, LockModel, ThreadLocks};

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
        let polled_by = |thread: &&ThreadLocks| thread.of_futures > 0;
        let executor = model.threads.iter().filter(polled_by).find_map(executor);
        if executor.is_none() && !model.locks.iter().any(is_stuck) {
            return None;
        }
        let is_watched = |thread: &ThreadLocks| {
            thread.task.as_deref().is_some_and(|task| task.runtime.is_some() && !task.counts_wakes)
        };
        Some(UnrecordedFutures {
            events: model.threads.iter().map(|thread| thread.of_futures).sum(),
            executor,
            is_watched: model.threads.iter().any(is_watched),
            frameworks: Vec::new(),
        })
    }

    /// With the frameworks among the crates of the program, which are sorted.
    pub fn with_crates(self, crates: &[String]) -> UnrecordedFutures {
        UnrecordedFutures { frameworks: Framework::among(crates), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
