use crate::config::{Direction, Jitter};
use crate::queue::Queued;
use crate::random::Stream;
use std::collections::VecDeque;
use wirepaint_units::{Duration, Time};

/// Standard deviations at which normal jitter is cut.
const CUT: f64 = 4.0;
/// Means at which exponential jitter is cut.
const CUT_MEANS: f64 = 10.0;

impl Jitter {
    /// Whether packets overtake each other.
    pub fn reorders(self) -> bool {
        match self {
            Jitter::None => false,
            Jitter::Uniform { reorder, .. }
            | Jitter::Exponential { reorder, .. }
            | Jitter::Normal { reorder, .. } => reorder,
        }
    }

    /// Smallest delay that can be drawn around `delay`.
    fn least(self, delay: Duration) -> Duration {
        let below = match self {
            Jitter::None | Jitter::Exponential { .. } => 0,
            Jitter::Uniform { range_ns, .. } => range_ns.0,
            Jitter::Normal { stddev_ns, .. } => (stddev_ns.0 as f64 * CUT) as u64 + 1,
        };
        Duration(delay.0.saturating_sub(below))
    }
}

/// Smallest delay of any packet at any time of the run.
pub(crate) fn least_delay(config: &Direction) -> Duration {
    let (mut delay, mut jitter) = (config.delay_ns, config.jitter);
    let mut least = jitter.least(delay);
    for change in &config.changes {
        delay = change.delay_ns.unwrap_or(delay);
        jitter = change.jitter.unwrap_or(jitter);
        least = least.min(jitter.least(delay));
    }
    least
}

/// Draws how long each packet is under way.
#[derive(Debug)]
pub(crate) struct Latency {
    pub delay: Duration,
    pub jitter: Jitter,
    stream: Stream,
    /// Due time of the packet that entered last; the next must not overtake it.
    last_due: Time,
}

impl Latency {
    pub fn new(delay: Duration, jitter: Jitter, stream: Stream) -> Latency {
        Latency { delay, jitter, stream, last_due: Time::ZERO }
    }

    /// When a packet that enters at `now` is due.
    pub fn due(&mut self, now: Time) -> Time {
        let (offset, reorder) = match self.jitter {
            Jitter::None => (0, false),
            Jitter::Uniform { range_ns, reorder } => {
                (((2.0 * self.stream.unit() - 1.0) * range_ns.0 as f64).round() as i64, reorder)
            }
            Jitter::Exponential { mean_ns, reorder } => {
                let means = -(1.0 - self.stream.unit()).ln();
                ((means.min(CUT_MEANS) * mean_ns.0 as f64).round() as i64, reorder)
            }
            Jitter::Normal { stddev_ns, reorder } => {
                ((self.stream.normal().clamp(-CUT, CUT) * stddev_ns.0 as f64).round() as i64, reorder)
            }
        };
        let due = now + Duration(self.delay.0.saturating_add_signed(offset));
        if reorder {
            return due;
        }
        self.last_due = due.max(self.last_due);
        self.last_due
    }

    /// When the packet that entered last is due, if packets keep their order.
    pub fn last_due(&self) -> Time {
        self.last_due
    }

    /// Shortest time that can be drawn.
    pub fn least(&self) -> Duration {
        self.jitter.least(self.delay)
    }
}

/// The part of the path behind the bottleneck: packets under way, in order of their due times.
#[derive(Debug)]
pub(crate) struct Delay<P> {
    pub latency: Latency,
    under_way: VecDeque<(Time, Queued<P>)>,
}

impl<P> Delay<P> {
    pub fn new(latency: Latency) -> Delay<P> {
        Delay { latency, under_way: VecDeque::new() }
    }

    /// A packet leaves the bottleneck at `now`. A hold delays this packet only.
    pub fn enter(&mut self, now: Time, packet: Queued<P>) {
        let due = self.latency.due(now) + packet.hold;
        if self.under_way.back().is_none_or(|(last, _)| *last <= due) {
            self.under_way.push_back((due, packet));
            return;
        }
        // It overtakes others; few packets are due after it.
        let place = self.under_way.iter().rposition(|(other, _)| *other <= due).map_or(0, |at| at + 1);
        self.under_way.insert(place, (due, packet));
    }

    /// The packet that is due next.
    pub fn front(&self) -> Option<&P> {
        self.under_way.front().map(|(_, queued)| &queued.packet)
    }

    pub fn next_due(&self) -> Option<Time> {
        self.under_way.front().map(|(due, _)| *due)
    }

    pub fn pop(&mut self, now: Time) -> Option<(Time, Queued<P>)> {
        if self.next_due()? <= now { self.under_way.pop_front() } else { None }
    }

    pub fn len(&self) -> usize {
        self.under_way.len()
    }
}
