//! PCs become locations: file and line of a site from the ring, function and inlined callers from debug information.
//!
//! It prints nothing, and opens no file: `symbols` does that.
//!
//! | file | question |
//! |---|---|
//! | `module_map` | which module covers an address? |
//! | `meaning` | what do the marks at a PC mean? |
//! | `function_name`, `file_names` | how are long names shortened? |
//! | `shared_names` | how are names kept once? |
//! | `wrapper` | where was a wrapper around a lock called, by debug information? |
//! | `place` | where in the program does a thread stand, by its stack? |
//! | `users_line` | which frame of a location is the user's? |
//! | `calls` | which addresses are callers of wrappers, and which line is that? |
//! | `guards` | where did a dropped guard come from? |
//! | `location`, `look_up`, `table` | where is a PC? |
//! | `operands` | what do the operands of an event say? |
//! | `when` | when was a mark that has no time? |

mod calls;
mod file_names;
mod function_name;
mod guards;
mod interior;
mod location;
mod look_up;
mod meaning;
mod module_map;
mod operands;
mod place;
mod shared_names;
mod table;
mod users_line;
mod when;
mod wrapper;

pub use file_names::FileNames;
pub use function_name::without_arguments;
pub use guards::{Guards, history};
pub use location::{Location, LocationId, is_no_function, is_shared_name};
pub use meaning::{MARKS_MAX, Meaning};
pub use table::{Locations, SourceProof};
pub use users_line::{Spot, UsersLine};
pub use when::{Dated, Horizon, Limits, When, dated_history, exited_ns, latest_ns, whens};
