//! Converts ticks to times: ticks are the low 48 bits of a counter whose value is known for one moment.
//!
//! It reads no clock.

use std::mem::offset_of;

use librip_format::Header as Raw;

use super::Defect;
use super::bytes::Bytes;

/// What the ticks of a ring mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Which events have times.
    pub level: ClockLevel,
    /// What ticks.
    pub source: ClockSource,
    /// The source's reading is shifted right by this to make ticks.
    pub shift: u32,
    /// The clock when the ring was made, ticks, all 64 bits.
    pub base_ticks: u64,
    /// That moment, ns since boot.
    pub base_boottime_ns: u64,
    /// Ticks in 1000 s, as the recorder measured them.
    pub ticks_per_kilosecond: u64,
}

/// Which events have times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockLevel {
    /// None.
    Off,
    /// Those of threads that wait, and of locks that were waited for.
    Contended,
    /// Those, and sampled ones.
    Ticks,
    /// Those, and all lock events.
    All,
    /// A level that this version does not know.
    Unknown(u32),
}

impl From<u32> for ClockLevel {
    /// Decodes the level of the format.
    fn from(raw: u32) -> ClockLevel {
        match raw {
            librip_format::CLOCK_LEVEL_OFF => ClockLevel::Off,
            librip_format::CLOCK_LEVEL_CONTENDED => ClockLevel::Contended,
            librip_format::CLOCK_LEVEL_TICKS => ClockLevel::Ticks,
            librip_format::CLOCK_LEVEL_ALL => ClockLevel::All,
            _ => ClockLevel::Unknown(raw),
        }
    }
}

/// What ticks. Times of a source that this version does not know mean nothing: such a ring has no [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The processor's counter (TSC, CNTVCT).
    Counter,
    /// `CLOCK_MONOTONIC`, ns.
    Monotonic,
}

impl ClockSource {
    /// Decodes the source of the format.
    fn from_raw(raw: u32) -> Option<ClockSource> {
        match raw {
            librip_format::CLOCK_SOURCE_COUNTER => Some(ClockSource::Counter),
            librip_format::CLOCK_SOURCE_MONOTONIC => Some(ClockSource::Monotonic),
            _ => None,
        }
    }
}

/// 1000 s in ns.
const KILOSECOND_NS: u128 = 1_000_000_000_000;
/// No clock ticks faster: a thousand ticks a nanosecond.
const RATE_MAX: u64 = 1_000_000_000_000_000;
/// The number of ticks that the recorded bits of a time tell apart.
const PERIOD_TICKS: u128 = 1 << 48;
/// How far the clocks of two processors may be apart, and two measurements of their rate. A time that seems too
/// early or too late by no more than this is used as it is.
const SLACK_NS: u128 = 60_000_000_000;

impl Clock {
    /// The header's clock; `None` if the ring has no times.
    pub(super) fn read(header: &Bytes<'_>) -> Result<Option<Clock>, Defect> {
        let Some(source) = ClockSource::from_raw(header.u32(offset_of!(Raw, clock_source))) else {
            return Ok(None);
        };
        let clock = Clock {
            level: ClockLevel::from(header.u32(offset_of!(Raw, clock_level))),
            source,
            shift: header.u32(offset_of!(Raw, clock_shift)),
            base_ticks: header.u64(offset_of!(Raw, clock_base_ticks)),
            base_boottime_ns: header.u64(offset_of!(Raw, clock_base_boottime_ns)),
            ticks_per_kilosecond: header.u64(offset_of!(Raw, clock_ticks_per_kilosecond)),
        };
        if clock.ticks_per_kilosecond == 0 {
            return Ok(None);
        }
        if clock.shift >= u64::BITS {
            return Err(Defect::Clock { what: "the clock's shift", found: clock.shift.into() });
        }
        if clock.ticks_per_kilosecond > RATE_MAX {
            let found = clock.ticks_per_kilosecond;
            return Err(Defect::Clock { what: "the number of ticks in 1000 s", found });
        }
        Ok(Some(clock))
    }

    /// A length of time, ns.
    pub fn length_ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * KILOSECOND_NS / u128::from(self.ticks_per_kilosecond.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// A recorded time, ns since boot; `None` for 0, which means that the time is not known.
    ///
    /// 48 bits of ticks wrap, after 26 days for ticks of 8 ns. So they can mean several moments. The result is the
    /// last of them that is not after `now_ns`. If `now_ns` is not known, because the process died at an unknown
    /// time, the result is the first that is neither before `from_ns`, when the thread began to record, nor before
    /// the ring was made. That is right unless the thread has recorded for longer than one period.
    ///
    /// `CLOCK_MONOTONIC` and the counters of some processors stand still while the machine is suspended. Times are too
    /// early by the length of the suspension then.
    pub fn boottime_ns(&self, ticks: u64, from_ns: u64, now_ns: Option<u64>) -> Option<u64> {
        if ticks == 0 {
            return None;
        }
        let rate = u128::from(self.ticks_per_kilosecond);
        let ns = |ticks: u128| ticks * KILOSECOND_NS / rate;
        let since_base = ticks.wrapping_sub(self.base_ticks) & librip_format::PAYLOAD_MASK;
        let base = u128::from(self.base_boottime_ns);
        let before_base = ns(PERIOD_TICKS - u128::from(since_base));
        // These ticks can mean `first`, and one moment each period after it.
        let period = ns(PERIOD_TICKS).max(1);
        let first = if before_base <= SLACK_NS {
            base.saturating_sub(before_base)
        } else {
            base + ns(u128::from(since_base))
        };
        let time = match now_ns {
            Some(now) => {
                let latest = u128::from(now) + SLACK_NS;
                first + latest.saturating_sub(first) / period * period
            }
            None => {
                let earliest = u128::from(from_ns).saturating_sub(SLACK_NS);
                first + earliest.saturating_sub(first).div_ceil(period) * period
            }
        };
        u64::try_from(time).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock with ticks of 8 ns.
    fn clock(base_ticks: u64) -> Clock {
        Clock {
            level: ClockLevel::All,
            source: ClockSource::Counter,
            shift: 4,
            base_ticks,
            base_boottime_ns: 1_000_000_000,
            ticks_per_kilosecond: 125_000_000_000,
        }
    }

    #[test]
    fn ticks_count_from_the_base_across_a_wrap() {
        for base in [1000, librip_format::PAYLOAD_MASK - 3, u64::MAX - 7] {
            let ticks = base.wrapping_add(125) & librip_format::PAYLOAD_MASK;
            assert_eq!(clock(base).boottime_ns(ticks, 0, None), Some(1_000_001_000), "{base}");
            assert_eq!(clock(base).boottime_ns(ticks, 0, Some(2_000_000_000)), Some(1_000_001_000));
        }
        assert_eq!(clock(1000).boottime_ns(0, 0, None), None);
    }

    #[test]
    fn a_time_shortly_before_the_base_is_not_a_period_later() {
        assert_eq!(clock(1000).boottime_ns(875, 0, None), Some(999_999_000));
    }

    #[test]
    fn after_a_period_the_time_of_the_reading_decides() {
        let period_ns = (1u64 << 48) * 8;
        let now = 1_000_000_000 + 3 * period_ns + 5_000_000_000;
        assert_eq!(clock(1000).boottime_ns(1125, 0, Some(now)), Some(1_000_001_000 + 3 * period_ns));
        assert_eq!(clock(1000).boottime_ns(1125, now, None), Some(1_000_001_000 + 3 * period_ns));
        assert_eq!(
            clock(1000).boottime_ns(1125, now + (period_ns >> 1), None),
            Some(1_000_001_000 + 4 * period_ns)
        );
    }

    #[test]
    fn extreme_clocks_and_times_do_not_panic() {
        for rate in [1, RATE_MAX] {
            let clock = Clock { ticks_per_kilosecond: rate, ..clock(u64::MAX) };
            for (ticks, from, now) in [(1, 0, None), (u64::MAX, u64::MAX, Some(0)), (7, 0, Some(u64::MAX))] {
                clock.boottime_ns(ticks, from, now);
            }
        }
    }
}
