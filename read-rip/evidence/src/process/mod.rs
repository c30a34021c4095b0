//! What the running system knows: which processes live, and where rings are.
//!
//! No other layer asks the system about processes. This one reads the headers and slots of rings, and no events.
//!
//! | file | question |
//! |---|---|
//! | `observer` | what can this reader see of the system? |
//! | `state` | what becomes of the process with this pid? |
//! | `liveness` | is the process alive that made a ring? |
//! | `children`, `mapped` | may a forked child record in it? which processes have it mapped? |
//! | `find` | where are rings? |
//! | `descendants` | which processes are beneath this one? |
//! | `ends` | when did the children of this process end? |
//! | `thread_name` | what does the kernel call a thread? |
//! | `load` | how many threads of the machine want to run? |
//! | `live` | what do the kernel and the memory of a process say of it? |
//! | `remove` | is this name still that of the ring that was judged? |
//! | `unfinished` | which rings did a process that was killed begin to make? |

mod children;
mod descendants;
mod ends;
mod find;
pub mod live;
mod liveness;
mod load;
mod mapped;
mod observer;
mod remove;
mod state;
mod thread_name;
mod unfinished;

pub use children::{Child, children_in, ended_children, liveness_of_child, liveness_of_children};
pub use descendants::{Descendant, children, descendants};
pub use ends::Ends;
pub use find::{
    Found, Unreadable, directories_of_processes, newest_first, rings_in, rings_of_process, unreadable_in,
};
pub use liveness::{
    Liveness, RunControl, boottime_in_ring_ns, has_threads, is_of_another_boot, liveness, living_threads,
    settled_liveness,
};
pub use load::ready_threads;
pub use mapped::MappedFiles;
pub use observer::own_machine;
pub(crate) use observer::{is_in_first_pid_namespace, monotonic_offset_ns, sees_ids_of};
pub use remove::{Removal, remove};
pub(crate) use thread_name::innermost_id;
pub use thread_name::thread_name;
pub use unfinished::{Unfinished, unfinished_in};
