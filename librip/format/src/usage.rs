//! What a thread has used while it went through a cycle of its work, or was in a span: the values of an event whose
//! site has [`SITE_USAGE`](crate::SITE_USAGE).
//!
//! The recorder asks the kernel at some moment before the cycle or span, and again after its end. The values are
//! differences of the two answers, in this order. Each is [`VALUE_UNSIGNED`](crate::VALUE_UNSIGNED), except for the
//! fifth, which is [`VALUE_I32`](crate::VALUE_I32). A greater value is recorded as the greatest one that there is room
//! for.
//!
//! | index | unit | meaning |
//! |---|---|---|
//! | [`USAGE_TOOK`] | us | how long the cycle or span took |
//! | [`USAGE_AROUND`] | us | how much longer the time between the answers is: the thread was not in it |
//! | [`USAGE_ON_CPU`] | us | how long the thread ran on a processor |
//! | [`USAGE_SYSTEM`] | us | how much of that it was in the kernel, as exactly as the kernel accounts for it |
//! | [`USAGE_READY`] | us | how long it could run, and had no processor; -1 if the kernel was not asked |
//! | [`USAGE_VOLUNTARY`] | | how often it gave up its processor, because it waited for something |
//! | [`USAGE_INVOLUNTARY`] | | how often its processor was taken from it |
//! | [`USAGE_MINOR`] | | page faults without reading from a disk |
//! | [`USAGE_MAJOR`] | | page faults with reading from a disk |
//!
//! A cycle that was kept and was not slow ends with this event. In a slow one, the event that says so follows. The
//! event of a span follows the span's end, in the same history, and its site has the name and the place of the span.

/// See the [module](self).
pub const USAGE_TOOK: usize = 0;
/// See the [module](self).
pub const USAGE_AROUND: usize = 1;
/// See the [module](self).
pub const USAGE_ON_CPU: usize = 2;
/// See the [module](self).
pub const USAGE_SYSTEM: usize = 3;
/// See the [module](self).
pub const USAGE_READY: usize = 4;
/// See the [module](self).
pub const USAGE_VOLUNTARY: usize = 5;
/// See the [module](self).
pub const USAGE_INVOLUNTARY: usize = 6;
/// See the [module](self).
pub const USAGE_MINOR: usize = 7;
/// See the [module](self).
pub const USAGE_MAJOR: usize = 8;
/// How many values there are.
pub const USAGE_VALUES: usize = 9;

/// How long before a cycle with this limit the first answer may be, ns. What is around the cycle beyond that is after
/// it: the thread was asking then, so it ran or was ready, and did not sleep.
pub const fn usage_age_max_ns(level: u32, limit_ns: u64) -> u64 {
    let (part, least_ns) = if level == USAGE_LEVEL_DELAYS { (4, 500_000) } else { (16, 100_000) };
    if limit_ns / part > least_ns { limit_ns / part } else { least_ns }
}

/// [`Header::usage_level`](crate::Header::usage_level): the kernel is not asked.
pub const USAGE_LEVEL_OFF: u32 = 0;
/// [`Header::usage_level`](crate::Header::usage_level): all but [`USAGE_READY`].
pub const USAGE_LEVEL_COUNTS: u32 = 1;
/// [`Header::usage_level`](crate::Header::usage_level): all.
pub const USAGE_LEVEL_DELAYS: u32 = 2;
