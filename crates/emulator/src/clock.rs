//! The two clocks of the kernel: the run's (CLOCK_MONOTONIC) and that of arrival stamps
//! (CLOCK_REALTIME).

use wirepaint_units::Time;

/// Age at which the offset between the clocks is measured again. A clock that is slewed by the
/// largest rate that Linux allows (500 ppm) drifts 0.5 µs in this time.
const OFFSET_AGE_NS: u64 = 1_000_000;
/// A change of the offset by more than this, which slewing cannot explain, is a step of the wall clock.
const STEP_NS: i64 = 50_000;
/// A reading of both clocks that took longer was interrupted and is repeated,
const LONGEST_READING_NS: u64 = 2_000;
/// at most this often. If a clock is always slow to read, the tightest reading counts.
const MOST_READINGS: usize = 20;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Converts stamps of CLOCK_REALTIME into CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct StampConverter {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    offset: i64,
    measured: u64,
    /// Number of steps of the wall clock during the run; stamps near a step may be wrong.
    pub steps: u64,
}

impl StampConverter {
    pub fn new() -> StampConverter {
        StampConverter { offset: measure_offset(), measured: monotonic(), steps: 0 }
    }

    /// Measures the offset again when it is old. Call at least every few milliseconds while
    /// stamps are converted.
    pub fn refresh(&mut self, now: u64) {
        if now.saturating_sub(self.measured) < OFFSET_AGE_NS {
            return;
        }
        let offset = measure_offset();
        let slewed = (now - self.measured) as i64 / 1000;
        if (offset - self.offset).abs() > STEP_NS + slewed {
            self.steps += 1;
        }
        self.offset = offset;
        self.measured = now;
    }

    /// Converts a stamp of CLOCK_REALTIME (ns) to CLOCK_MONOTONIC.
    pub fn monotonic(&self, realtime: u64) -> u64 {
        realtime.saturating_add_signed(-self.offset)
    }
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC.
fn measure_offset() -> i64 {
    tightest(std::iter::repeat_with(|| {
        let before = monotonic();
        let realtime = read(libc::CLOCK_REALTIME);
        let after = monotonic();
        (after - before, realtime as i64 - ((before + after) / 2) as i64)
    }))
}

/// Of readings `(duration, offset)`, the first offset read without interruption, else the one of the shortest
/// reading.
fn tightest(readings: impl Iterator<Item = (u64, i64)>) -> i64 {
    let mut best = (u64::MAX, 0);
    for reading in readings.take(MOST_READINGS) {
        best = best.min(reading);
        if best.0 <= LONGEST_READING_NS {
            break;
        }
    }
    best.1
}

/// Time of the run, and arrival stamps on it.
#[derive(Debug)]
pub(crate) struct RunClock {
    epoch_ns: u64,
    stamps: StampConverter,
}

impl RunClock {
    /// `epoch_ns` is the run's time zero on CLOCK_MONOTONIC.
    pub fn new(epoch_ns: u64) -> RunClock {
        RunClock { epoch_ns, stamps: StampConverter::new() }
    }

    pub fn now(&self) -> Time {
        Time(monotonic().saturating_sub(self.epoch_ns))
    }

    /// See [`StampConverter::refresh`].
    pub fn refresh(&mut self) {
        self.stamps.refresh(monotonic());
    }

    /// Time of an arrival stamped with CLOCK_REALTIME. Never in the future, although a stamp from before a
    /// step of the wall clock may be.
    pub fn arrival(&self, stamp: u64) -> Time {
        Time(self.stamps.monotonic(stamp).saturating_sub(self.epoch_ns)).min(self.now())
    }

    /// Number of steps of the wall clock.
    pub fn steps(&self) -> u64 {
        self.stamps.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_reading_is_repeated() {
        let interrupted = (3_000_000, 1_500_000);
        let readings = [interrupted; 7].into_iter().chain([(400, 20), (300, 10)]);
        assert_eq!(tightest(readings), 20, "the first that was not interrupted");
        assert_eq!(tightest([interrupted, (5_000, 30), (9_000, 40)].into_iter()), 30, "else the tightest");
        assert_eq!(tightest(std::iter::repeat(interrupted)), 1_500_000, "a clock that is always slow");
    }

    #[test]
    fn a_realtime_stamp_taken_between_two_monotonic_ones_lies_between_them() {
        let converter = StampConverter::new();
        // Preemption between the readings only widens the interval.
        let before = monotonic();
        let stamp = converter.monotonic(read(libc::CLOCK_REALTIME));
        let after = monotonic();
        assert!(before.saturating_sub(2_000) <= stamp && stamp <= after + 2_000, "{before} {stamp} {after}");
    }
}
