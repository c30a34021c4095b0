//! What many lines have: addresses, moments, threads, and what locks are called. It computes nothing.

use read_rip_model::locks::Lock;
use read_rip_ring::Slot;
use serde::{Serialize, Serializer};

use crate::names::LockNames;

/// An address, in hexadecimal.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Address(
    #[serde(serialize_with = "hexadecimal")]
    #[cfg_attr(test, schemars(with = "String", extend("pattern" = "^0x[0-9a-f]+$")))]
    pub(super) u64,
);

/// A moment in ns, as decimal digits: it can exceed 2^53, which JSON parsers may round.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Moment(
    #[serde(serialize_with = "decimal")]
    #[cfg_attr(test, schemars(with = "String", extend("pattern" = "^[0-9]+$")))]
    pub(super) u64,
);

fn hexadecimal<S: Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{address:#x}"))
}

fn decimal<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(ns)
}

/// A thread or task.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Thread"))]
pub(super) struct JsonThread<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Its process, as its own PID namespace numbers it.
    pub(super) pid: u32,
    /// Its thread id there. From 2147483648 on, it is no thread but a task: 2147483648 more than its number.
    pub(super) tid: u32,
}

impl<'a> From<&'a Slot> for JsonThread<'a> {
    fn from(slot: &'a Slot) -> Self {
        JsonThread { name: &slot.name, pid: slot.pid, tid: slot.tid }
    }
}

/// What a lock is called.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LockLabels<'a> {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// given: by the program; symbol: of a static; location: the function that acquired it first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = ["given", "symbol", "location"])))]
    name_from: Option<&'static str>,
    /// Its class, as its marks say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
}

impl<'a> LockLabels<'a> {
    pub(super) fn of(lock: &'a Lock, names: &LockNames<'a>) -> Self {
        let (name, name_from) = names.origin(&lock.name).unzip();
        LockLabels { name, name_from, class: lock.class.as_deref() }
    }
}
