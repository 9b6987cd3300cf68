//! Linux's clocks: nanoseconds, microseconds (`tcp_mstamp`), jiffies and the timer wheel.
//!
//! HZ is 250, as on the machines of the testbed: a jiffy is 4 ms. Timers of the timer wheel fire on
//! a jiffy, never early, and late by the granularity of their level of the wheel (kernel/time/timer.c:
//! 1 jiffy up to 63 jiffies ahead, 8 up to 504, 64 up to 4032, ...).

use wirepaint_units::Time;

/// Microseconds of a jiffy.
pub(crate) const JIFFY_US: u64 = 4_000;
const JIFFY_NS: u64 = JIFFY_US * 1_000;
/// Boot precedes the run by this, because zero means "never" in many kernel fields.
pub const BOOT_NS: u64 = 1_000_000_000_000;

/// The current time, as Linux sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Clock {
    /// Nanoseconds since boot (`tcp_clock_cache`).
    pub ns: u64,
}

impl Clock {
    pub fn at(now: Time) -> Clock {
        Clock { ns: BOOT_NS + now.0 }
    }

    /// Microseconds (`tcp_mstamp`).
    pub fn us(self) -> u64 {
        self.ns / 1_000
    }

    pub fn jiffies(self) -> u64 {
        self.ns / JIFFY_NS
    }

    /// Timestamp option's clock: milliseconds (TCP_TS_HZ is 1000).
    pub fn timestamp(self) -> u32 {
        timestamp(self.us())
    }
}

/// The timestamp option's value at `us` microseconds.
pub(crate) fn timestamp(us: u64) -> u32 {
    (us / 1_000) as u32
}

/// Converts nanoseconds since boot to the run's time.
pub(crate) fn run_time(ns: u64) -> Time {
    Time(ns.saturating_sub(BOOT_NS))
}

/// `usecs_to_jiffies`: rounded up.
pub(crate) fn jiffies_of(us: u64) -> u64 {
    us.div_ceil(JIFFY_US)
}

/// When a timer of the wheel fires, in nanoseconds since boot. It is set at `now` to expire at `expires`
/// (both in jiffies).
pub(crate) fn wheel(now: u64, expires: u64) -> u64 {
    let delta = expires.saturating_sub(now);
    let mut shift = 0;
    while delta >= 63 << shift && shift < 24 {
        shift += 3;
    }
    (((expires.max(now) >> shift) + 1) << shift) * JIFFY_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_late_by_the_granularity_of_its_level() {
        let now = 250_000;
        let fires = |delta: u64| wheel(now, now + delta) / JIFFY_NS - now;
        assert_eq!(fires(10), 11); // a delayed ACK of 40 ms comes after 40 to 44 ms
        assert_eq!(fires(62), 63);
        assert_eq!(fires(63), 64); // the second level counts in eights
        assert_eq!(fires(75), 80);
        assert_eq!(fires(504), 560); // 250_000 lies 16 beyond a multiple of 64
    }

    #[test]
    fn microseconds_become_jiffies_rounded_up() {
        assert_eq!((jiffies_of(1), jiffies_of(4_000), jiffies_of(4_001)), (1, 1, 2));
    }
}
