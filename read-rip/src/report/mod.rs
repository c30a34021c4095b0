//! How things are shown. Nothing is computed here: values in, text out.
//!
//! Results go to standard output, plain enough for a pipe. What accompanies them (what is lost, damaged or missing)
//! goes to standard error, so that a script never takes it for a result.
//!
//! | file | what it shows |
//! |---|---|
//! | `threads` | threads by function, and one by one |
//! | `locks` | locks, their holders and waiters |
//! | `findings/` | findings: all sentences about them are made there |
//! | `list`, `info` | rings, and what a ring says about itself |
//! | `json/` | all of these as JSON |
//! | `remarks` | what a result does not show |
//! | `names`, `units` | what things are called, and how numbers are written |

mod findings;
mod info;
mod json;
mod list;
mod locks;
mod names;
pub mod remarks;
mod threads;
mod units;

pub use crate::printable::printable;
pub use findings::findings;
pub use info::info;
pub use json::Json;
pub use list::{ended, list};
pub use locks::locks;
pub use names::{LocationTexts, LockNames, location_texts};
pub use remarks::{Checked, OneReading};
pub use threads::{condensed, thread};
pub use units::{age, counted, duration};
