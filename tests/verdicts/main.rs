//! `read-rip check` about real programs: what it must find, and what it must not.
//!
//! Each test asks about its scenario three times: alive, killed by SIGKILL, and alive once more as text. It expects the
//! whole list of findings, so that it fails on a false alarm as well as on a missing finding.

#![allow(missing_docs, reason = "tests")]

/// Tests by the function `finds` of a module: `name: scenario => findings, threads and locks of the first finding`.
macro_rules! verdicts {
    ($($name:ident: $($scenario:literal => [$($finding:literal),*]
        $(threads [$($thread:literal),*])? $(locks [$($lock:literal),*])?),+;)+) => {$(
        #[test]
        fn $name() {
            $(finds($scenario, &[$($finding),*], |_answer| {
                $(assert_eq!(_answer.threads(0), [$($thread),*]);)?
                $(assert_eq!(_answer.locks(0), [$($lock),*]);)?
            });)+
        }
    )+};
}

mod ask;
mod ci;
mod conditions;
mod drop_ins;
mod examples;
mod joined;
mod saved;
mod tasks;
mod torture;
mod users_line;
mod verdicts;
mod waits;
