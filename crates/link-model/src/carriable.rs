use crate::bottleneck::OPPORTUNITY_BYTES;
use crate::config::{Capacity, Change, Direction};
use wirepaint_units::Time;

const NS_PER_MS: u64 = 1_000_000;
/// Bits per byte times nanoseconds per second.
const WORK_PER_BYTE: u128 = 8_000_000_000;

/// Bytes that a bottleneck could have carried if its queue had never been empty.
#[derive(Debug)]
pub(crate) struct Carriable {
    /// Capacities with their start times, in order of time.
    pieces: Vec<(Time, Capacity)>,
}

impl Carriable {
    pub fn new(config: &Direction) -> Carriable {
        let mut carriable = Carriable { pieces: vec![(Time::ZERO, config.capacity.clone())] };
        carriable.change(&config.changes);
        carriable
    }

    /// Replaces all capacities but the first by those of `changes`.
    pub fn change(&mut self, changes: &[Change]) {
        self.pieces.truncate(1);
        self.pieces
            .extend(changes.iter().filter_map(|change| Some((change.at_ns, change.capacity.clone()?))));
    }

    /// Bytes until `now`; `None` if the capacity was ever unlimited.
    pub fn bytes(&self, now: Time) -> Option<u64> {
        let ends = self.pieces.iter().skip(1).map(|(start, _)| *start).chain([Time::MAX]);
        self.pieces
            .iter()
            .zip(ends)
            .take_while(|((start, _), _)| *start <= now)
            .map(|((start, capacity), end)| bytes(capacity, end.min(now).since(*start).0))
            .sum()
    }
}

/// Bytes that one capacity carries in its first `span` nanoseconds.
fn bytes(capacity: &Capacity, span: u64) -> Option<u64> {
    match capacity {
        Capacity::Unlimited => None,
        Capacity::Rate { bit_per_s } => {
            let bytes = u128::from(bit_per_s.0) * u128::from(span) / WORK_PER_BYTE;
            Some(u64::try_from(bytes).unwrap_or(u64::MAX))
        }
        Capacity::Trace { opportunities_ms: times, offset_ms } => {
            let round = *times.last()?;
            let offset = offset_ms % round;
            let (rounds, into_round) =
                ((span / NS_PER_MS + offset) / round, (span / NS_PER_MS + offset) % round);
            let begun = times.partition_point(|ms| *ms <= into_round) as u64;
            let before = times.partition_point(|ms| *ms < offset) as u64;
            Some((rounds * times.len() as u64 + begun - before) * OPPORTUNITY_BYTES)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Jitter, Limits, Loss, Queue};
    use wirepaint_units::{BitRate, Duration};

    fn carriable(capacity: Capacity, changes: Vec<(u64, Capacity)>) -> Carriable {
        let change = |(ms, capacity)| Change {
            at_ns: Time(ms * NS_PER_MS),
            capacity: Some(capacity),
            delay_ns: None,
            jitter: None,
            loss: None,
        };
        Carriable::new(&Direction {
            capacity,
            delay_ns: Duration(0),
            jitter: Jitter::None,
            loss: Loss::None,
            queue: Queue::Droptail(Limits { packets: None, bytes: None }),
            changes: changes.into_iter().map(change).collect(),
            scripted: vec![],
            overhead_bytes: 14,
        })
    }

    fn rate(bit_per_s: u64) -> Capacity {
        Capacity::Rate { bit_per_s: BitRate(bit_per_s) }
    }

    #[test]
    fn a_rate_carries_its_bytes_and_a_change_counts_from_its_time_on() {
        let link = carriable(rate(8_000_000), vec![(10, rate(0)), (20, rate(16_000_000))]);
        let at = |ms| link.bytes(Time(ms * NS_PER_MS));
        assert_eq!([at(0), at(5), at(10), at(15), at(25)], [0, 5_000, 10_000, 10_000, 20_000].map(Some));
    }

    #[test]
    fn a_trace_carries_1504_bytes_an_opportunity_and_repeats() {
        let link = carriable(Capacity::Trace { opportunities_ms: vec![0, 3, 3, 10], offset_ms: 0 }, vec![]);
        let opportunities = |ms| link.bytes(Time(ms * NS_PER_MS)).unwrap() / 1504;
        assert_eq!([0, 2, 3, 9, 10, 13, 20].map(opportunities), [1, 1, 3, 3, 5, 7, 9]);
    }

    #[test]
    fn an_unlimited_capacity_has_no_number() {
        assert_eq!(carriable(Capacity::Unlimited, vec![]).bytes(Time(NS_PER_MS)), None);
        let later = carriable(rate(8_000), vec![(10, Capacity::Unlimited)]);
        assert_eq!(later.bytes(Time(9 * NS_PER_MS)), Some(9));
        assert_eq!(later.bytes(Time(11 * NS_PER_MS)), None);
    }
}
