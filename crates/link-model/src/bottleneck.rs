use crate::config::Capacity;
use wirepaint_units::{BitRate, Duration, Time};

/// Bytes of one delivery opportunity in Mahimahi's format.
pub(crate) const OPPORTUNITY_BYTES: u64 = 1504;
/// Bytes that Mahimahi counts per packet beyond its IP bytes (the header of its TUN device).
const TUN_HEADER_BYTES: u64 = 4;
const NS_PER_MS: u64 = 1_000_000;
/// Work is counted in bit nanoseconds, so that `rate x time` is exact in integers.
pub(crate) const WORK_PER_BYTE: u64 = 8 * 1_000_000_000;

/// The serving side of the capacity: the work that fits into a time.
#[derive(Debug)]
pub(crate) enum Bottleneck {
    Unlimited,
    Rate(BitRate),
    Trace(Opportunities),
}

impl Bottleneck {
    /// A trace is at its offset at `now`.
    pub fn new(config: &Capacity, now: Time) -> Bottleneck {
        match config {
            Capacity::Unlimited => Bottleneck::Unlimited,
            Capacity::Rate { bit_per_s } => Bottleneck::Rate(*bit_per_s),
            Capacity::Trace { opportunities_ms, offset_ms } => {
                Bottleneck::Trace(Opportunities::new(opportunities_ms.clone(), *offset_ms, now))
            }
        }
    }

    /// Work of a packet.
    pub fn work(&self, ip_bytes: u32, overhead_bytes: u32) -> u64 {
        let extra = match self {
            Bottleneck::Trace(_) => TUN_HEADER_BYTES,
            _ => u64::from(overhead_bytes),
        };
        (u64::from(ip_bytes) + extra) * WORK_PER_BYTE
    }
}

/// Work done by one opportunity of a trace.
pub(crate) const OPPORTUNITY_WORK: u64 = OPPORTUNITY_BYTES * WORK_PER_BYTE;

/// When `work` that begins at `since` is done at a rate.
pub(crate) fn done_at(rate: BitRate, since: Time, work: u64) -> Time {
    if rate.0 == 0 { Time::MAX } else { since + Duration(work.div_ceil(rate.0)) }
}

/// Work done at a rate in a span.
pub(crate) fn work_done(rate: BitRate, span: Duration) -> u64 {
    rate.0.saturating_mul(span.0)
}

/// A cursor over a packet-delivery trace, which repeats after its last millisecond.
#[derive(Debug)]
pub(crate) struct Opportunities {
    ms: Vec<u64>,
    /// Begin of the present round plus `offset`, because a trace with an offset began before time 0.
    start: Time,
    offset: Duration,
    index: usize,
}

impl Opportunities {
    /// A trace that is at millisecond `offset` at `now`. That millisecond's opportunity is unused.
    fn new(ms: Vec<u64>, offset: u64, now: Time) -> Opportunities {
        let offset = ms.last().map_or(0, |last| offset % last);
        let index = ms.partition_point(|ms| *ms < offset);
        Opportunities { ms, start: now, offset: Duration(offset * NS_PER_MS), index }
    }

    /// Time of the next unused opportunity.
    pub fn time(&self) -> Time {
        Time((self.start + Duration(self.ms[self.index] * NS_PER_MS)).0 - self.offset.0)
    }

    /// Uses the next opportunity.
    pub fn advance(&mut self) {
        self.index += 1;
        if self.index == self.ms.len() {
            self.index = 0;
            self.start += self.round();
        }
    }

    /// Loses every opportunity up to and including `now`: the queue was empty.
    pub fn skip_past(&mut self, now: Time) {
        if self.time() > now {
            return;
        }
        let now = now + self.offset;
        let rounds = now.since(self.start).0 / self.round().0;
        if rounds > 0 {
            self.start += Duration(rounds * self.round().0);
            self.index = 0;
        }
        let into_round = now.since(self.start).0 / NS_PER_MS;
        self.index += self.ms[self.index..].partition_point(|ms| *ms <= into_round);
        if self.index == self.ms.len() {
            self.index = 0;
            self.start += self.round();
            // An opportunity at millisecond 0 of a round falls on the last of the round before.
            self.skip_past(Time(now.0 - self.offset.0));
        }
    }

    fn round(&self) -> Duration {
        Duration(self.ms.last().expect("checked: a trace is not empty") * NS_PER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(ms: &[u64]) -> Opportunities {
        Opportunities::new(ms.to_vec(), 0, Time::ZERO)
    }

    #[test]
    fn a_trace_repeats_after_its_last_millisecond() {
        let mut cursor = trace(&[0, 3, 3, 10]);
        let times: Vec<u64> = (0..8)
            .map(|_| {
                let time = cursor.time().0 / NS_PER_MS;
                cursor.advance();
                time
            })
            .collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20]);
    }

    #[test]
    fn a_trace_that_is_under_way_goes_on_from_its_offset() {
        let times = |offset| {
            let mut cursor = Opportunities::new(vec![0, 3, 3, 10], offset, Time::ZERO);
            [(); 6].map(|()| {
                let time = cursor.time().0 / NS_PER_MS;
                cursor.advance();
                time
            })
        };
        assert_eq!(times(3), [0, 0, 7, 7, 10, 10]);
        assert_eq!(times(4), [6, 6, 9, 9, 16, 16]);
        assert_eq!(times(14), times(4));
        let mut skipped = Opportunities::new(vec![0, 3, 3, 10], 4, Time::ZERO);
        skipped.skip_past(Time(8 * NS_PER_MS));
        assert_eq!(skipped.time(), Time(9 * NS_PER_MS));
    }

    #[test]
    fn skipping_agrees_with_using_one_by_one() {
        for now in 0..45 {
            let now = Time(now * NS_PER_MS);
            let (mut stepped, mut skipped) = (trace(&[0, 3, 3, 10]), trace(&[0, 3, 3, 10]));
            while stepped.time() <= now {
                stepped.advance();
            }
            skipped.skip_past(now);
            assert_eq!((stepped.time(), stepped.index), (skipped.time(), skipped.index), "{now:?}");
        }
    }
}
