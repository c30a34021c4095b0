//! The clock of timed events.
//!
//! A time is a number of ticks in the lower 48 bits of a word. [`Header::clock_source`](crate::Header::clock_source)
//! says which clock ticks. [`Header::clock_base_ticks`](crate::Header::clock_base_ticks) and
//! [`Header::clock_base_boottime_ns`](crate::Header::clock_base_boottime_ns) are one moment on both clocks.

/// [`Header::clock_level`](crate::Header::clock_level): no event has a time.
pub const CLOCK_LEVEL_OFF: u32 = 0;
/// [`Header::clock_level`](crate::Header::clock_level): an event has a time where a thread waits, where it releases a
/// lock that it waited for, and where it has a shape or belongs to a span.
pub const CLOCK_LEVEL_CONTENDED: u32 = 1;
/// [`Header::clock_level`](crate::Header::clock_level): as `CLOCK_LEVEL_CONTENDED`, and slots have
/// [`sampled`](crate::sampled) times.
pub const CLOCK_LEVEL_TICKS: u32 = 2;
/// [`Header::clock_level`](crate::Header::clock_level): as `CLOCK_LEVEL_TICKS`, and every lock event has a time.
pub const CLOCK_LEVEL_ALL: u32 = 3;

/// [`Header::clock_source`](crate::Header::clock_source): the processor's counter (TSC, CNTVCT).
pub const CLOCK_SOURCE_COUNTER: u32 = 1;
/// [`Header::clock_source`](crate::Header::clock_source): `CLOCK_MONOTONIC`, ns.
pub const CLOCK_SOURCE_MONOTONIC: u32 = 2;
