//! A process as its kernel and its memory describe it: tasks, what each sleeps in, memory, mappings, descriptors.
//!
//! These are values: of living processes, or of core files. Nothing here reads anything, and nothing here knows rings,
//! symbols or locks.
//!
//! *Target* is the debuggers' word for the process that is looked at.
//!
//! | file | what it has |
//! |---|---|
//! | `halted` | what keeps threads from running that wait for no other thread |
//! | `hidden` | why a part of it cannot be read |
//! | `task` | a thread of the target, at one moment |
//! | `syscall` | the system call that a thread sleeps in, and its arguments |
//! | `memory` | the target's memory, as something that can be read |
//! | `mapping` | the ranges of the target's memory |
//! | `region` | what kind of memory an address is in |
//! | `module` | the executable and the libraries that are mapped |
//! | `unstopped` | why threads were not stopped |
//! | `need` | what a thread needs from others, and who can bring it |
//! | `descriptor` | what is behind a file descriptor |
//! | `connections` | with whom it is connected, and what waits there |

mod connections;
mod descriptor;
mod halted;
mod hidden;
mod mapping;
mod memory;
mod module;
mod need;
mod region;
mod syscall;
mod task;
mod unstopped;

pub use connections::{ConnectedWith, Connections};
pub use descriptor::{Descriptor, DescriptorKind, Peer};
pub use halted::{Freezer, KernelWait, RemoteMount};
pub use hidden::Hidden;
pub use mapping::Mapping;
pub use memory::{Memory, Unreadable};
pub(crate) use module::{dynamic_section, has_note, modules_of};
pub use need::{FileLockKind, Helper, HelperState, MessageQueue, Need, Needed, Others, Party, SharedObject};
pub use region::{Region, Regions};
pub use syscall::{Architecture, Call, CallKind, Child, Futex, FutexOperation};
pub use task::{Registers, RunState, Schedule, Sleep, Task, Work};
pub use unstopped::Unstopped;

use read_rip_files::Module;
use serde::{Deserialize, Serialize};

/// A flag of the kernel's tasks: it was forked, and has run no program since (`PF_FORKNOEXEC`).
pub(crate) const FORKED_FLAG: u64 = 0x40;

/// What is known of a target at one moment. Its memory is read when it is needed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    /// Its process id in this reader's PID namespace. In a core file: the one that the file has.
    pub pid: u32,
    /// Its process id in its own PID namespace.
    pub own_pid: u32,
    pub name: String,
    /// The processor that it runs on.
    pub architecture: Architecture,
    /// When it started, clock ticks since boot; `None` in a core file.
    pub start_ticks: Option<u64>,
    /// When its tasks were read, ns since boot; `None` in a core file.
    pub taken_ns: Option<u64>,
    /// Its threads, by `tid`.
    pub tasks: Vec<Task>,
    /// Its memory's ranges, by address. Empty if this reader may not see them.
    /// A saved ring has those with objects that threads wait for.
    pub mappings: Vec<Mapping>,
    /// The executable and its libraries, from the mappings. Empty if this reader may not see them.
    pub modules: Vec<Module>,
    /// Why its memory, its mappings and what its threads sleep in cannot be read; `None` if they can.
    pub hidden: Option<Hidden>,
    /// What the freezer of control groups does to it; `None` if that is not known, and in a core file.
    #[serde(default)]
    pub freezer: Option<Freezer>,
    /// Whether it was made by fork and has run no program since: its memory began as a copy of its parent's. `None` if
    /// that is not known.
    #[serde(default)]
    pub is_fork: Option<bool>,
}
