//! The two clocks of the kernel: the run's (CLOCK_MONOTONIC) and that of arrival stamps
//! (CLOCK_REALTIME).

/// Age at which the offset between the clocks is measured again. A clock that is slewed by the
/// largest rate that Linux allows (500 ppm) drifts 0.5 µs in this time.
const OFFSET_AGE_NS: u64 = 1_000_000;
/// A change of the offset by more than slewing explains is a step of the wall clock.
const STEP_NS: i64 = 50_000;

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
    /// How often the wall clock was set during the run: stamps around it may be wrong.
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

    /// A stamp in nanoseconds of CLOCK_REALTIME, on CLOCK_MONOTONIC.
    pub fn monotonic(&self, realtime: u64) -> u64 {
        realtime.saturating_add_signed(-self.offset)
    }
}

/// The offset out of the tightest of three readings.
fn measure_offset() -> i64 {
    (0..3)
        .map(|_| {
            let before = monotonic();
            let realtime = read(libc::CLOCK_REALTIME);
            let after = monotonic();
            (after - before, realtime as i64 - ((before + after) / 2) as i64)
        })
        .min()
        .expect("three readings")
        .1
}

#[cfg(test)]
mod tests {
    use super::*;

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
