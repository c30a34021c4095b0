//! Calls on locks that are wrong whatever other threads do.

use serde::Serialize;

use super::facts::HoldFact;
use crate::findings::kind::Refusal;
use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId};

/// A lock that was destroyed while a thread held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DestroyedWhileHeld {
    /// The hold.
    pub hold: HoldFact,
    /// A new lock was initialised in its place, and nothing else destroyed it.
    #[serde(rename = "initialised", skip_serializing_if = "std::ops::Not::not")]
    pub is_initialised: bool,
}
/// A call on a lock that failed, or that is forbidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedCall {
    /// Why.
    pub what: Refusal,
    /// The thread that called first; `None`: its slot has another owner now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The id of that thread.
    pub tid: u32,
    /// The lock of the first call.
    pub lock: LockId,
    /// Where the call is.
    pub location: LocationId,
    /// How often it failed there.
    pub count: u32,
    /// How long ago it failed first; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ago_ns: Option<u64>,
}
/// A release of a lock that the thread did not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrayRelease {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread released it.
    pub location: LocationId,
    /// The thread released the same lock before.
    pub released_before: bool,
}
/// A lock acquired by the thread that already held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SecondAcquisition {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it first.
    pub first: LocationId,
    /// Where the thread acquired it again; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<LocationId>,
}
