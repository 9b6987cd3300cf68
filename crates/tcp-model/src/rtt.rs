//! Round-trip time and retransmission timeout (RFC 6298 as Linux computes it).

use crate::clock::jiffies_of;

/// TCP_RTO_MAX in jiffies: 120 s.
pub(crate) const RTO_MAX: u64 = 30_000;
/// TCP_TIMEOUT_INIT in jiffies: 1 s.
pub(crate) const RTO_INIT: u64 = 250;
/// TCP_TIMEOUT_FALLBACK in jiffies: 3 s, where the handshake gave no sample.
pub(crate) const RTO_FALLBACK: u64 = 750;

/// Smoothed round-trip time and its deviation, in the scales of Linux.
#[derive(Default)]
pub(crate) struct RttEstimator {
    /// Smoothed, in eighths of a microsecond; 0 before the first sample.
    pub srtt_us: u64,
    mdev_us: u64,
    mdev_max_us: u64,
    rttvar_us: u64,
    /// End of the window in which the largest deviation is sought.
    window_end: u64,
    /// Smallest sample of the last minutes.
    pub min: MinFilter,
}

impl RttEstimator {
    /// tcp_rtt_estimator: Jacobson's filter; deviations downwards count an eighth.
    pub fn sample(&mut self, rtt_us: u64, una: u64, nxt: u64, rto_min_us: u64) {
        if self.srtt_us == 0 {
            self.srtt_us = (rtt_us << 3).max(1);
            self.mdev_us = rtt_us << 1;
            self.rttvar_us = self.mdev_us.max(rto_min_us);
            self.mdev_max_us = self.rttvar_us;
            self.window_end = nxt;
            return;
        }
        let error = rtt_us as i64 - (self.srtt_us >> 3) as i64;
        self.srtt_us = (self.srtt_us as i64 + error).max(1) as u64;
        let mut change = error.abs() - (self.mdev_us >> 2) as i64;
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev_us = (self.mdev_us as i64 + change) as u64;
        if self.mdev_us > self.mdev_max_us {
            self.mdev_max_us = self.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
        if una > self.window_end {
            if self.mdev_max_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
            }
            self.window_end = nxt;
            self.mdev_max_us = rto_min_us;
        }
    }

    /// Continues with another connection's values (RFC 9040), in the scales of these fields.
    pub fn seed(&mut self, srtt_us: u64, rttvar_us: u64) {
        self.srtt_us = srtt_us;
        self.rttvar_us = rttvar_us;
        self.mdev_us = rttvar_us;
        self.mdev_max_us = rttvar_us;
    }

    /// The variation in the timeout, in microseconds.
    pub fn variation_us(&self) -> u64 {
        self.rttvar_us
    }

    /// RFC 6298 section 5.7: the handshake gave no sample.
    pub fn fall_back(&mut self) {
        self.rttvar_us = RTO_FALLBACK * crate::clock::JIFFY_US;
        self.mdev_us = self.rttvar_us;
        self.mdev_max_us = self.rttvar_us;
    }

    /// __tcp_set_rto, in jiffies.
    pub fn rto(&self) -> u64 {
        jiffies_of((self.srtt_us >> 3) + self.rttvar_us).min(RTO_MAX)
    }
}

/// A sample and when it was taken, in jiffies.
#[derive(Clone, Copy)]
struct Stamped {
    at: u64,
    value: u32,
}

/// Minimum over a sliding window with three samples (Kathleen Nichols; lib/win_minmax.c).
pub(crate) struct MinFilter([Stamped; 3]);

impl Default for MinFilter {
    fn default() -> MinFilter {
        MinFilter([Stamped { at: 0, value: u32::MAX }; 3])
    }
}

impl MinFilter {
    /// The minimum; `u32::MAX` before the first sample.
    pub fn get(&self) -> u32 {
        self.0[0].value
    }

    /// A sample at `now`; `window` and times in jiffies.
    pub fn sample(&mut self, now: u64, window: u64, value: u32) {
        let new = Stamped { at: now, value };
        let best = &mut self.0;
        if value <= best[0].value || now - best[2].at > window {
            *best = [new; 3];
            return;
        }
        if value <= best[1].value {
            best[1] = new;
            best[2] = new;
        } else if value <= best[2].value {
            best[2] = new;
        }
        let age = now - best[0].at;
        if age > window {
            *best = [best[1], best[2], new];
            if now - best[0].at > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].at == best[0].at && age > window / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].at == best[1].at && age > window / 2 {
            best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_makes_the_timeout_three_round_trips_and_at_least_200_ms_more() {
        let mut rtt = RttEstimator::default();
        rtt.sample(100_000, 1, 1, 200_000);
        assert_eq!((rtt.srtt_us >> 3, rtt.rto()), (100_000, 75));
        let mut long = RttEstimator::default();
        long.sample(600_000, 1, 1, 200_000);
        assert_eq!(long.rto(), 450);
    }

    #[test]
    fn a_steady_path_of_100_ms_has_a_timeout_of_304_ms() {
        let mut rtt = RttEstimator::default();
        for n in 0..400 {
            rtt.sample(100_010, n, n, 200_000);
        }
        assert_eq!(rtt.rto(), 76); // as measured on Linux
    }

    #[test]
    fn the_minimum_expires() {
        let mut min = MinFilter::default();
        for (now, value, expected) in [(0, 50, 50), (10, 80, 50), (60, 70, 50), (95, 75, 50), (130, 90, 70)] {
            min.sample(now, 100, value);
            assert_eq!(min.get(), expected, "at {now}");
        }
    }
}
