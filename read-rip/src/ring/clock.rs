//! Ticks become times: 48 bits of a counter, and where it stood when the ring was made.
//!
//! It reads no clock itself.

use std::mem::offset_of;

use librip_format::Header as Raw;

use super::Defect;
use super::parse::Bytes;

/// What the ticks of a ring mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Which events have times.
    pub level: ClockLevel,
    /// What ticks.
    pub source: ClockSource,
    /// By how much the source's reading is shifted to make ticks.
    pub shift: u32,
    /// The clock in ticks when the ring was made, all 64 bits.
    pub base_ticks: u64,
    /// That moment, ns since boot.
    pub base_boottime_ns: u64,
    /// Ticks in 1000 s, as measured.
    pub ticks_per_kilosecond: u64,
}

/// Which events have times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockLevel {
    /// None.
    Off,
    /// Those of threads that wait, and of locks that were waited for.
    Contended,
    /// All lock events.
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
/// No counter is faster, and no ticks: a thousand a nanosecond.
const RATE_MAX: u64 = 1_000_000_000_000_000;
/// The bits of a time that are recorded.
const PERIOD_TICKS: u128 = 1 << 48;
/// How far clocks of two processors, and of two moments of measuring, may be apart: what seems so much too early
/// or too late is taken as it is.
const SLACK_NS: u128 = 60_000_000_000;

impl Clock {
    /// The header's clock; `None` for a ring without times.
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

    /// A recorded time, ns since boot; `None` for 0, which stands for one that is not known.
    ///
    /// 48 bits of ticks come around, after 26 days for ticks of 8 ns. Of all moments that they can mean, it is
    /// the last that is not behind `now_ns`. Where that is not known, because the process is dead and nobody
    /// knows since when, it is the first that is not before `from_ns`, when the thread began to record, nor before
    /// the ring was made: right unless the thread recorded for longer than one such round.
    ///
    /// `CLOCK_MONOTONIC`, and some processors' counters, stand still while the machine is suspended; then times
    /// come out too early by so much.
    pub fn boottime_ns(&self, ticks: u64, from_ns: u64, now_ns: Option<u64>) -> Option<u64> {
        if ticks == 0 {
            return None;
        }
        let rate = u128::from(self.ticks_per_kilosecond);
        let ns = |ticks: u128| ticks * KILOSECOND_NS / rate;
        let since_base = ticks.wrapping_sub(self.base_ticks) & librip_format::PAYLOAD_MASK;
        let base = u128::from(self.base_boottime_ns);
        let before_base = ns(PERIOD_TICKS - u128::from(since_base));
        // Moments that these ticks can mean: `first`, and then one each round.
        let round = ns(PERIOD_TICKS).max(1);
        let first = if before_base <= SLACK_NS {
            base.saturating_sub(before_base)
        } else {
            base + ns(u128::from(since_base))
        };
        let time = match now_ns {
            Some(now) => {
                let latest = u128::from(now) + SLACK_NS;
                first + latest.saturating_sub(first) / round * round
            }
            None => {
                let earliest = u128::from(from_ns).saturating_sub(SLACK_NS);
                first + earliest.saturating_sub(first).div_ceil(round) * round
            }
        };
        u64::try_from(time).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 125 million ticks a second: 8 ns each.
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
    fn ticks_count_from_the_base_also_where_they_come_around() {
        for base in [1000, librip_format::PAYLOAD_MASK - 3, u64::MAX - 7] {
            let ticks = base.wrapping_add(125) & librip_format::PAYLOAD_MASK;
            assert_eq!(clock(base).boottime_ns(ticks, 0, None), Some(1_000_001_000), "{base}");
            assert_eq!(clock(base).boottime_ns(ticks, 0, Some(2_000_000_000)), Some(1_000_001_000));
        }
        assert_eq!(clock(1000).boottime_ns(0, 0, None), None);
    }

    #[test]
    fn a_processor_that_is_a_little_behind_is_not_26_days_ahead() {
        assert_eq!(clock(1000).boottime_ns(875, 0, None), Some(999_999_000));
    }

    #[test]
    fn after_a_round_the_moment_of_the_reading_decides() {
        let round_ns = (1u64 << 48) * 8;
        let now = 1_000_000_000 + 3 * round_ns + 5_000_000_000;
        assert_eq!(clock(1000).boottime_ns(1125, 0, Some(now)), Some(1_000_001_000 + 3 * round_ns));
        assert_eq!(clock(1000).boottime_ns(1125, now, None), Some(1_000_001_000 + 3 * round_ns));
        assert_eq!(
            clock(1000).boottime_ns(1125, now + (round_ns >> 1), None),
            Some(1_000_001_000 + 4 * round_ns)
        );
    }

    #[test]
    fn no_clock_makes_the_reader_panic() {
        for rate in [1, RATE_MAX] {
            let clock = Clock { ticks_per_kilosecond: rate, ..clock(u64::MAX) };
            for (ticks, from, now) in [(1, 0, None), (u64::MAX, u64::MAX, Some(0)), (7, 0, Some(u64::MAX))] {
                clock.boottime_ns(ticks, from, now);
            }
        }
    }
}
