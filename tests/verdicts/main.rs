//! `read-rip check` about real programs: what it must find, and what it must not.
//!
//! Every scenario is asked about three times: alive, dead by SIGKILL, and alive once more in words. What is expected is
//! the whole list of findings, so that a false alarm fails as well as a silence.

#![allow(missing_docs, reason = "tests")]

mod ask;
mod torture;
mod verdicts;
