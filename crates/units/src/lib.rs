//! Physical quantities that every other crate speaks in.
//!
//! [`Time`] and [`Duration`] are integer nanoseconds on the clock of one run (0 = the run's
//! epoch); [`BitRate`] is bits per second. Sizes are plain `u64` bytes. No floating point enters
//! a time: a simulated run must repeat byte for byte.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Sub};

/// An instant: nanoseconds since the epoch of the run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A span of time in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Duration(pub u64);

/// A capacity or sending rate in bits per second.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct BitRate(pub u64);

impl Time {
    /// The epoch of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every instant of a run; the answer "never" to "when next?".
    pub const MAX: Time = Time(u64::MAX);

    /// Time elapsed since `earlier`, zero when `earlier` lies in the future.
    pub fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// A span of whole microseconds.
    pub const fn from_micros(us: u64) -> Duration {
        Duration(us * 1_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms * 1_000_000)
    }

    /// A span of whole seconds.
    pub const fn from_secs(s: u64) -> Duration {
        Duration(s * 1_000_000_000)
    }

    /// The span in seconds, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, rhs: Duration) -> Time {
        Time(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, rhs: Duration) -> Time {
        Time(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, rhs: Duration) -> Duration {
        Duration(self.0.saturating_add(rhs.0))
    }
}

impl BitRate {
    /// Time in which `bytes` cross a link of this rate, rounded to the nearest nanosecond.
    /// A rate of zero never finishes.
    pub fn transmission_time(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration(u64::MAX);
        }
        let bit_ns = u128::from(bytes) * 8 * 1_000_000_000;
        let rate = u128::from(self.0);
        Duration(u64::try_from((bit_ns + rate / 2) / rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_takes_484_48_microseconds_at_25_megabit() {
        assert_eq!(BitRate(25_000_000).transmission_time(1514), Duration(484_480));
    }

    #[test]
    fn a_link_of_rate_zero_never_finishes() {
        assert_eq!(Time::ZERO + BitRate(0).transmission_time(1), Time::MAX);
    }
}
