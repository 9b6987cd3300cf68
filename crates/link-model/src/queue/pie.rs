//! PIE (RFC 8033).

use super::{Backlog, Configured, Discipline, Fates, Fifo, Queued};
use crate::packet::{Drop, Packet};
use crate::random::Stream;
use crate::refused::{ConfigError, at_least_one, refuse, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use wirepaint_units::{Duration, Time};

/// PIE (RFC 8033).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Target queueing delay.
    #[serde(default = "target")]
    pub target_ns: Duration,
    /// Period of the probability's update.
    #[serde(default = "update")]
    pub update_ns: Duration,
    /// Hard limit in packets.
    #[serde(default = "super::codel::packets")]
    pub packets: u64,
    /// Mark instead of drop where the packet is ECN-capable.
    #[serde(default)]
    pub ecn: bool,
}

fn target() -> Duration {
    Duration::from_millis(15)
}
fn update() -> Duration {
    Duration::from_millis(15)
}

impl Configured for Config {
    fn check(&self, _full_frame: u32) -> Result<(), ConfigError> {
        time("queue.target_ns", self.target_ns, false)?;
        if self.update_ns < Duration::from_micros(100) {
            return refuse("queue.update_ns", self.update_ns.0, "at least 100000");
        }
        time("queue.update_ns", self.update_ns, false)?;
        at_least_one("queue.packets", self.packets)
    }

    fn build<P: Packet + Debug + 'static>(&self, _full_frame: u64, stream: Stream) -> Box<dyn Discipline<P>> {
        Box::new(Pie::new(self.target_ns, self.update_ns, self.packets, self.ecn, stream))
    }
}

/// Weight of the deviation from the target, per second of delay (RFC 8033 section 4.2).
const ALPHA: f64 = 0.125;
/// Weight of the delay's trend, per second of delay.
const BETA: f64 = 1.25;
/// No drop for this long after an idle time (section 4.4).
const MAX_BURST: Duration = Duration::from_millis(150);
/// No drop while at most this many bytes wait: two packets of mean size (section 4.1).
const SMALL_BACKLOG_BYTES: u64 = 2 * 1024;
/// Above this probability an ECN-capable packet is dropped as well (section 5.1, `mark_ecnth`).
const MARK_LIMIT: f64 = 0.1;
/// De-randomisation: no drop before and always a drop after this sum of probabilities (section 5.4).
const ACCUMULATED_MIN: f64 = 0.85;
const ACCUMULATED_MAX: f64 = 8.5;

/// PIE (RFC 8033): drops at arrival with a probability that a controller updates periodically
/// from the queueing delay:
///
/// ```text
/// p += ALPHA * (delay - target) + BETA * (delay - delay_old)    scaled down while p is small
/// ```
///
/// The delay is the sojourn time of the packet that left last, as the RFC allows (section 5.2) and
/// Linux does by default, not an estimate from the departure rate.
#[derive(Debug)]
pub(crate) struct Pie<P> {
    target: Duration,
    update: Duration,
    limit: u64,
    ecn: bool,
    fifo: Fifo<P>,
    stream: Stream,
    probability: f64,
    accumulated: f64,
    delay: Duration,
    delay_old: Duration,
    burst_allowance: Duration,
    next_update: Time,
}

impl<P> Pie<P> {
    /// `limit` is the hard limit in packets.
    pub fn new(target: Duration, update: Duration, limit: u64, ecn: bool, stream: Stream) -> Pie<P> {
        Pie {
            target,
            update,
            limit,
            ecn,
            fifo: Fifo::default(),
            stream,
            probability: 0.0,
            accumulated: 0.0,
            delay: Duration::ZERO,
            delay_old: Duration::ZERO,
            burst_allowance: MAX_BURST,
            next_update: Time::ZERO + update,
        }
    }

    /// Carries out the updates due since the last call; the queue did not change in between.
    fn update_until(&mut self, now: Time) {
        while self.next_update <= now {
            let at_rest = self.probability == 0.0
                && self.fifo.packets.is_empty()
                && self.delay_old == Duration::ZERO
                && self.burst_allowance == MAX_BURST;
            if at_rest {
                let missed = now.since(self.next_update).0 / self.update.0;
                self.next_update += Duration(missed * self.update.0);
            }
            self.update_probability();
            self.next_update += self.update;
        }
    }

    fn update_probability(&mut self) {
        let delay = if self.fifo.packets.is_empty() { Duration::ZERO } else { self.delay };
        let (d, old) = (delay.as_secs_f64(), self.delay_old.as_secs_f64());
        let step = ALPHA * (d - self.target.as_secs_f64()) + BETA * (d - old);
        // Section 4.2: small probabilities move in small steps.
        let divisor = match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        let mut step = step / divisor;
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        if delay > Duration::from_millis(250) {
            step += 0.02;
        }
        self.probability += step;
        if delay == Duration::ZERO && self.delay_old == Duration::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        let half = Duration(self.target.0 / 2);
        if self.probability == 0.0 && delay < half && self.delay_old < half {
            self.burst_allowance = MAX_BURST;
        } else {
            self.burst_allowance = Duration(self.burst_allowance.0.saturating_sub(self.update.0));
        }
        self.delay_old = delay;
    }

    fn drops_early(&mut self) -> bool {
        if self.burst_allowance > Duration::ZERO {
            return false;
        }
        let calm = self.delay_old < Duration(self.target.0 / 2) && self.probability < 0.2;
        if calm || self.fifo.bytes <= SMALL_BACKLOG_BYTES {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < ACCUMULATED_MIN {
            return false;
        }
        let drops = self.accumulated >= ACCUMULATED_MAX || self.stream.chance(self.probability);
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

impl<P: Packet + Debug> Discipline<P> for Pie<P> {
    fn enqueue(&mut self, now: Time, mut packet: Queued<P>, fates: &mut Fates<P>) {
        self.update_until(now);
        if self.fifo.backlog().packets >= self.limit {
            return fates.drop(now, Drop::Queue, packet);
        }
        if self.drops_early() {
            let marked = self.ecn && self.probability <= MARK_LIMIT && fates.mark(&mut packet.packet);
            if !marked {
                return fates.drop(now, Drop::Aqm, packet);
            }
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, now: Time, _fates: &mut Fates<P>) -> Option<Queued<P>> {
        self.update_until(now);
        let packet = self.fifo.pop()?;
        self.delay = now.since(packet.entered);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Numbered, ms, queued};
    use super::*;
    use crate::random::Element;
    use std::ops::Range;

    fn pie(ecn: bool) -> Pie<Numbered> {
        let ms = Duration::from_millis;
        Pie::new(ms(15), ms(15), 1000, ecn, Stream::new(3, Element::Queue))
    }

    /// Two arrivals and one departure per millisecond: an overload of two.
    fn overload(queue: &mut Pie<Numbered>, times_ms: Range<u64>, ecn: bool) -> (Fates<Numbered>, u64) {
        let mut fates = Fates::default();
        for now in times_ms {
            for number in 0..2 {
                let mut packet = queued(number, 0, ms(now));
                packet.packet.ecn = ecn;
                queue.enqueue(ms(now), packet, &mut fates);
            }
            queue.dequeue(ms(now), &mut fates);
        }
        let delay = queue.delay.0 / 1_000_000;
        (fates, delay)
    }

    #[test]
    fn the_burst_allowance_of_150_ms_passes_without_a_drop() {
        let (fates, delay) = overload(&mut pie(false), 0..150, false);
        assert_eq!(fates.aqm_drops, 0);
        assert!(delay > 60, "the queue did stand: {delay} ms");
    }

    #[test]
    fn an_overload_of_two_settles_at_the_target_with_half_of_the_arrivals_dropped() {
        let mut queue = pie(false);
        overload(&mut queue, 0..60_000, false);
        let (mut drops, mut delays) = (0, Vec::new());
        for begin in (60_000..80_000).step_by(20) {
            let (fates, delay) = overload(&mut queue, begin..begin + 20, false);
            drops += fates.aqm_drops;
            delays.push(delay);
            assert_eq!(fates.queue_drops, 0);
        }
        assert!((19_500..20_500).contains(&drops), "half of 40,000, found {drops}");
        delays.sort_unstable();
        assert!((12..=18).contains(&delays[500]), "target 15 ms, found {} ms", delays[500]);
    }

    #[test]
    fn an_ecn_capable_packet_is_marked_only_up_to_ten_percent() {
        let mut queue = pie(true);
        let (fates, _) = overload(&mut queue, 0..60_000, true);
        assert!(fates.marks > 0, "it marked while the probability was small");
        assert!(fates.aqm_drops > 10_000, "it dropped once marking was not enough: {}", fates.aqm_drops);
    }

    #[test]
    fn a_long_pause_leaves_the_controller_at_rest() {
        let mut queue = pie(false);
        overload(&mut queue, 0..5_000, false);
        let mut fates = Fates::default();
        while queue.dequeue(ms(5_000), &mut fates).is_some() {}
        queue.enqueue(ms(86_400_000), queued(0, 0, ms(86_400_000)), &mut fates);
        assert_eq!(queue.probability, 0.0);
        assert_eq!(queue.burst_allowance, MAX_BURST);
        assert!(queue.next_update > ms(86_400_000));
    }
}
