//! How things are shown. Nothing is computed here: values in, text out.
//!
//! Results go to standard output, plain enough for a pipe. What accompanies them (what is lost, damaged or
//! missing) goes to standard error, so that a script never reads it for a result.

mod check;
mod info;
mod json;
mod list;
mod locks;
mod printable;
mod text;

pub use check::{Checked, findings, subjects};
pub use info::info;
pub use json::Json;
pub use list::{ended, list};
pub use locks::{LockNames, locks};
pub use printable::{age, counted, duration, printable};
pub use text::{LocationTexts, condensed, location_texts, thread};
