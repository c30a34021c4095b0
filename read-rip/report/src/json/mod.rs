//! The JSON output: one object a line, `{"type": ..., "data": {...}}`.
//!
//! `read-rip/json-schema.json` describes every line, and the tests validate the output against it. Lines of type
//! `ring` and `removed` have the version of the schema. Within a version fields and types are only added. All
//! fields but `type` are optional: a field that does not apply or is not known is left out. Addresses are strings
//! in hexadecimal with `0x`. Moments are strings of decimal digits, because nanoseconds exceed 2^53, the largest
//! integer that every JSON parser reads exactly. Lengths of time and counts are integers. Paths and names have
//! U+FFFD where they are not UTF-8, and escapes for characters that control a terminal. Nothing is computed here.

mod difference;
mod doing;
mod findings;
mod location;
mod locks;
mod log;
mod ring;
mod standing;
mod tasks;
mod threads;
mod writer;

pub use location::kind_name;
pub use log::Said;
pub use ring::{clock_level_name, process_state_name};
pub use tasks::{task_kind_name, task_state_name};
pub use threads::thread_state_name;
pub use writer::Json;
