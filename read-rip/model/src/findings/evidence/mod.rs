//! What findings are based on, as data: ids of the model's threads, locks and locations, counts and times.
//!
//! It contains no text and draws no conclusions. `--json` writes these types as they are, with the names of their
//! fields.
//!
//! | file | evidence of |
//! |---|---|
//! | `facts` | what several kinds of evidence have: holds, waits, and the past of a lock |
//! | `deadlock` | threads that wait for one another in a cycle |
//! | `lost_owner` | locks whose owners are gone |
//! | `misuse` | calls on locks that are wrong whatever other threads do |
//! | `order` | orders of acquisition in which threads can block one another |
//! | `livelock` | threads that run and make no progress |
//! | `standstill` | threads that wait for what does not move, and holders that do nothing |
//! | `tasks` | tasks that nobody polls, and polls that do not return |
//! | `contention` | locks and lines at which threads queue |

mod contention;
mod deadlock;
mod facts;
mod livelock;
mod lost_owner;
mod misuse;
mod order;
mod standstill;
mod tasks;

use serde::Serialize;

pub use contention::*;
pub use deadlock::*;
pub use facts::*;
pub use livelock::*;
pub use lost_owner::*;
pub use misuse::*;
pub use order::*;
pub use standstill::*;
pub use tasks::*;

/// What a finding is based on. Each analysis has its own type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "each type says it")]
pub enum Evidence {
    WaitCycle(WaitCycle),
    DeadHolder(DeadHolder),
    Orphan(Orphan),
    DestroyedWhileHeld(DestroyedWhileHeld),
    RefusedCall(RefusedCall),
    StrayRelease(StrayRelease),
    SecondAcquisition(SecondAcquisition),
    OrderCycle(OrderCycle),
    NestedReads(NestedReads),
    MutualFailure(MutualFailure),
    BusyLoops(BusyLoops),
    Standstill(Standstill),
    Abandoned(Abandoned),
    Unheard(Unheard),
    BusyRuntime(BusyRuntime),
    Unpolled(Unpolled),
    /// Tasks that nobody can wake.
    NeverWoken(NeverWoken),
    /// Tasks that wait for room which nobody makes.
    FullChannel(FullChannel),
    Stall(Stall),
    Queue(Queue),
    IdleHolder(IdleHolder),
    Overtaken(Overtaken),
    Contended(Contended),
    CrowdedLine(CrowdedLine),
}
