//! The JSON output: one object a line, `{"type": ..., "data": {...}}`.
//!
//! These types and what is written above their fields are the description of the output: a test makes
//! `read-rip/json-schema.json` of them, and others validate the output against it. Lines of type `ring` and `removed`
//! have the version of the schema. Within a version fields and types are only added. All fields but `type` are
//! optional: a field that does not apply or is not known is left out. Addresses are strings in hexadecimal with `0x`.
//! Moments are strings of decimal digits, because nanoseconds exceed 2^53, the largest integer that every JSON parser
//! reads exactly. Lengths of time and counts are integers. Paths and names have U+FFFD where they are not UTF-8, and
//! escapes for characters that control a terminal. Nothing is computed here.

mod difference;
mod doing;
mod findings;
mod location;
mod locks;
mod log;
mod polls;
mod ring;
#[cfg(test)]
mod schema;
mod standing;
mod tasks;
mod threads;
mod tokio_tasks;
mod values;
mod writer;

use serde::Serialize;

pub use location::kind_name;
pub use log::LogText;
pub use ring::{clock_level_name, process_state_name};
pub use tasks::{task_kind_name, task_state_name};
pub use threads::thread_state_name;
pub use writer::Json;

/// The version of the schema.
const SCHEMA: u32 = 1;

/// A line of `read-rip --json`. Within a version, fields and types are only added. All fields but `type` are optional.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
enum Line<'a> {
    Ring(ring::Ring<'a>),
    Info(ring::Info<'a>),
    Function(threads::Function<'a>),
    Thread(threads::ThreadHistory<'a>),
    Capture(threads::JsonCapture<'a>),
    Difference(difference::JsonDifference<'a>),
    Task(tasks::Task<'a>),
    Worker(tasks::Worker<'a>),
    Polls(polls::PollsOfPlace<'a>),
    LongPoll(polls::LongPoll<'a>),
    SeenTasks(tokio_tasks::SeenTasks<'a>),
    SeenTask(tokio_tasks::SeenTask<'a>),
    Locks(locks::Locks),
    Lock(locks::Lock<'a>),
    Finding(findings::JsonFinding<'a>),
    Checked(findings::JsonChecked<'a>),
    Unjudged(&'a crate::Unjudged),
    Examined(&'a crate::Examined),
    Problem(ring::Problem<'a>),
    Removed(ring::Removed<'a>),
    Core(standing::JsonCore<'a>),
    Standing(standing::Standing<'a>),
    Stack(standing::JsonStack<'a>),
    Event(log::JsonEntry<'a>),
    Span(log::JsonSpan<'a>),
}
