//! Events and held-lock tables become locks, holders and waiters. It does no input or output.
//!
//! | file | question |
//! |---|---|
//! | `model` | the answer, as values |
//! | `lock`, `hold`, `thread_locks`, `task`, `step` | the parts of the answer |
//! | `awaited` | what does a thread or task wait for? |
//! | `marks` | what does the mark at a PC mean for locks? |
//! | `ledger` | which locks exist, and what was done with them? |
//! | `replay` | what did a thread do, step by step? |
//! | `between` | what is new since an earlier reading? |
//! | `steps` | how are a thread's steps kept? |
//! | `build`, `entry` | which threads hold or wait for each lock now? |
//! | `task_facts` | what do the futures of a task wait for and hold, and who polls it? |
//! | `observe` | what do the kernel and the memory add? |
//! | `halt` | what keeps threads from running that wait for no other thread? |
//! | `between_processes` | which threads of several processes wait for one another? |
//! | `knots` | who can never go on, in several processes? |
//! | `task_groups` | what do all tasks wait for, in few lines? |
//! | `polls` | how long did polls of tasks take? |
//! | `tokio_tasks` | what do the tasks do that nobody recorded? |
//! | `unserved` | what waits in the connections of a process? |
//! | `overview` | which locks are shown first? |

mod awaited;
mod between;
mod between_processes;
mod build;
mod entry;
mod halt;
mod hold;
mod knots;
mod ledger;
mod lock;
mod marks;
mod merge;
mod model;
mod observe;
mod overview;
mod peer;
mod polls;
mod replay;
mod step;
mod steps;
mod task;
mod task_facts;
mod task_groups;
mod thread_locks;
mod tokio_tasks;
mod unserved;

pub use awaited::{Awaited, Object};
pub use between::{Rate, per_second};
pub(crate) use between_processes::has_ticked;
pub use between_processes::{
    Knot, Link, LostLock, OnlyHelper, StoppedPartner, StoppedPartners, graph_of, knots_of, lost_locks,
    only_helpers, waits_between,
};
pub use build::{Input, build, build_of_words};
pub use halt::{Halt, HaltCause, halts};
pub use hold::{Hold, HoldState, Wait};
pub use knots::{Graph, Stand, Who};
pub use lock::{AbsentOwner, Lock, LockName, Nature, OwnerInMemory, Ownership, Record};
pub use model::{LockId, LockIncident, LockModel, ThreadId};
pub use observe::{doing, observe_all, waits_for_nobody};
pub use overview::{Holders, Overview, Quantiles, Summary, Waiters, keep_within, overview};
pub use peer::Peer;
pub use polls::{PollPlace, Polls, PollsAt, SlowPoll};
pub use step::{Step, StepKind};
pub use steps::{Steps, StepsIter};
pub use task::{TaskFacts, TaskFuture, TaskHold, TaskJoin, TaskWait};
pub use task_groups::{
    TaskDoes, TaskGroup, TaskPlace, task_awaits, task_does, task_groups, task_place, task_since,
};
pub use thread_locks::{
    ConditionCalls, Doing, EndOfCondition, Job, Join, LastCall, OfFutures, Rest, Seen, Signal, ThreadLocks,
};
pub use tokio_tasks::{
    AwaitCircle, AwaitTask, EndCircle, EndTask, PoolAwaits, TokioDoes, TokioGroup, TokioPart, UsedUpPermits,
    pool_awaits, task_function, tokio_groups, tokio_lock_type, used_up_permits, users_await,
};
pub use unserved::{FormerClients, Unserved};
