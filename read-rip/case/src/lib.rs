#![doc = include_str!("../README.md")]
//!
//! # Files
//!
//! | file | question |
//! |---|---|
//! | `subject` | what is read? |
//! | `options` | how? |
//! | `reading` | what is known of a subject at one moment? |
//! | `inspection`, `stopped` | what do the kernel and the memory say of a living process, in two readings? |
//! | `partners` | with which other processes may it be stuck? |
//! | `forks` | which of its forked children are stuck because of it? |
//! | `triage` | which of many processes may be stuck? |
//! | `cores` | what is known from a core file, and from the ring in it? |
//! | `saved`, `answers` | what does a saved ring keep besides its bytes? |
//! | `readings` | what has changed between two readings? |
//! | `thread_names`, `processes` | what are threads called now, and of which process are they? |
//! | `case` | what follows? |

mod answers;
mod case;
mod cores;
mod error;
mod forks;
mod inspection;
mod options;
mod partners;
mod processes;
mod reading;
mod readings;
mod saved;
mod stopped;
mod subject;
mod thread_names;
mod triage;

use std::time::{SystemTime, UNIX_EPOCH};

pub use answers::answers;
pub use case::{Case, Judgement};
pub use error::Error;
pub use inspection::Inspection;
pub use options::Options;
pub use partners::{GROUPS_MAX, groups_among, groups_of, stuck_groups};
pub use processes::Process;
pub use reading::{CoreRest, Reading, present_ns};
pub use readings::{Begun, First, Readings};
pub use saved::Context;
pub use subject::Subject;
pub use triage::{Second, Triage};

/// The time, ns since 1970.
pub fn now_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}
