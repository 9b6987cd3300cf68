//! CoDel (RFC 8289).

use super::{Backlog, Configured, Discipline, Fates, Fifo, Queued};
use crate::packet::{Drop, Packet};
use crate::random::Stream;
use crate::refused::{ConfigError, at_least_one, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use wirepaint_units::{Duration, Time};

/// CoDel (RFC 8289).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Acceptable standing delay.
    #[serde(default = "target")]
    pub target_ns: Duration,
    /// Time in which the delay must fall below the target once.
    #[serde(default = "interval")]
    pub interval_ns: Duration,
    /// Hard limit in packets.
    #[serde(default = "packets")]
    pub packets: u64,
    /// Mark instead of drop where the packet is ECN-capable.
    #[serde(default)]
    pub ecn: bool,
}

pub(super) fn target() -> Duration {
    Duration::from_millis(5)
}
pub(super) fn interval() -> Duration {
    Duration::from_millis(100)
}
pub(super) fn packets() -> u64 {
    1000
}

impl Configured for Config {
    fn check(&self, _full_frame: u32) -> Result<(), ConfigError> {
        time("queue.target_ns", self.target_ns, false)?;
        time("queue.interval_ns", self.interval_ns, false)?;
        at_least_one("queue.packets", self.packets)
    }

    fn build<P: Packet + Debug + 'static>(&self, full_frame: u64, _: Stream) -> Box<dyn Discipline<P>> {
        let Config { target_ns: target, interval_ns: interval, packets, ecn } = *self;
        Box::new(Codel::new(Parameters { target, interval, ecn, full_frame }, packets))
    }
}

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    /// Acceptable standing delay.
    pub target: Duration,
    /// Time in which the delay must fall below the target once.
    pub interval: Duration,
    /// Mark instead of drop where the packet is ECN-capable.
    pub ecn: bool,
    /// Wire length of the largest packet. No drop while at most this many bytes wait (RFC 8289 section 5.4,
    /// `maxpacket_`).
    pub full_frame: u64,
}

/// CoDel's control state of one queue (RFC 8289 section 5). Drops happen at dequeue:
///
/// ```text
/// when the sojourn time has been above TARGET for INTERVAL: drop, then drop again after
/// INTERVAL / sqrt(count), until it falls below TARGET
/// ```
///
/// With ECN a mark replaces a drop and ends the round, as in Linux: the marked packet is sent.
#[derive(Debug, Default)]
pub(crate) struct Controller {
    /// When the sojourn time will have been above the target for an interval; `None` while below.
    first_above: Option<Time>,
    drop_next: Time,
    count: u64,
    last_count: u64,
    dropping: bool,
}

impl Controller {
    /// Takes the next packet to transmit out of `fifo`.
    pub(super) fn dequeue<P: Packet>(
        &mut self,
        now: Time,
        p: &Parameters,
        fifo: &mut Fifo<P>,
        fates: &mut Fates<P>,
    ) -> Option<Queued<P>> {
        let (mut packet, mut ok_to_drop) = self.take(now, p, fifo)?;
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if p.ecn && fates.mark(&mut packet.packet) {
                    self.drop_next = control_law(self.drop_next, p.interval, self.count);
                    break;
                }
                fates.drop(now, Drop::Aqm, packet);
                match self.take(now, p, fifo) {
                    None => {
                        self.dropping = false;
                        return None;
                    }
                    Some(next) => (packet, ok_to_drop) = next,
                }
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, p.interval, self.count);
                } else {
                    self.dropping = false;
                }
            }
            return Some(packet);
        }
        if !ok_to_drop {
            return Some(packet);
        }
        self.dropping = true;
        // Soon after the last dropping state, continue at its drop rate.
        let delta = self.count - self.last_count;
        let recent = now.since(self.drop_next) < Duration(16 * p.interval.0);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, p.interval, self.count);
        self.last_count = self.count;
        if p.ecn && fates.mark(&mut packet.packet) {
            return Some(packet);
        }
        fates.drop(now, Drop::Aqm, packet);
        self.take(now, p, fifo).map(|(packet, _)| packet)
    }

    /// The head of the queue and whether it may be dropped (`dodequeue` of the RFC).
    fn take<P>(&mut self, now: Time, p: &Parameters, fifo: &mut Fifo<P>) -> Option<(Queued<P>, bool)> {
        let Some(packet) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(packet.entered) < p.target || fifo.bytes <= p.full_frame {
            self.first_above = None;
            return Some((packet, false));
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + p.interval);
                Some((packet, false))
            }
            Some(first_above) => Some((packet, now >= first_above)),
        }
    }
}

/// Time of the next drop: `INTERVAL / sqrt(count)` after `time`.
fn control_law(time: Time, interval: Duration, count: u64) -> Time {
    time + Duration((interval.0 as f64 / (count as f64).sqrt()) as u64)
}

/// CoDel over one queue (RFC 8289).
#[derive(Debug)]
pub(crate) struct Codel<P> {
    parameters: Parameters,
    limit: u64,
    controller: Controller,
    fifo: Fifo<P>,
}

impl<P> Codel<P> {
    /// `limit` is the hard limit in packets.
    pub fn new(parameters: Parameters, limit: u64) -> Codel<P> {
        Codel { parameters, limit, controller: Controller::default(), fifo: Fifo::default() }
    }
}

impl<P: Packet + Debug> Discipline<P> for Codel<P> {
    fn enqueue(&mut self, now: Time, packet: Queued<P>, fates: &mut Fates<P>) {
        if self.fifo.backlog().packets < self.limit {
            self.fifo.push(packet);
        } else {
            fates.drop(now, Drop::Queue, packet);
        }
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates<P>) -> Option<Queued<P>> {
        self.controller.dequeue(now, &self.parameters, &mut self.fifo, fates)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Numbered, ms, queued};
    use super::*;

    fn codel(ecn: bool) -> Codel<Numbered> {
        let parameters = Parameters {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn,
            full_frame: 1514,
        };
        Codel::new(parameters, 1000)
    }

    /// A queue in which each packet waits 50 ms and one leaves per millisecond.
    fn drops(queue: &mut Codel<Numbered>, until_ms: u64, ecn: bool) -> (Vec<u64>, Vec<u64>) {
        let mut fates = Fates::default();
        let mut marked = Vec::new();
        let mut number = 0;
        for now in 0..until_ms {
            // Keeps 50 packets waiting. Each enters 50 ms before it leaves.
            while queue.backlog().packets < 50 {
                let mut packet = queued(number, 0, Time(ms(now).0.saturating_sub(50_000_000)));
                packet.packet.ecn = ecn;
                queue.enqueue(ms(now), packet, &mut fates);
                number += 1;
            }
            if queue.dequeue(ms(now), &mut fates).unwrap().packet.marked {
                marked.push(now);
            }
        }
        (fates.dropped.iter().map(|d| d.time.0 / 1_000_000).collect(), marked)
    }

    #[test]
    fn the_first_drop_comes_an_interval_after_the_delay_went_above_the_target() {
        let mut queue = codel(false);
        let (times, _) = drops(&mut queue, 2000, false);
        // The sojourn time reaches the target at 5 ms. From then on INTERVAL / sqrt(count).
        let mut expected = vec![105];
        let mut next = 105.0 + 100.0;
        for count in 2..8 {
            expected.push(f64::ceil(next) as u64);
            next += 100.0 / f64::from(count).sqrt();
        }
        assert_eq!(times[..7], expected[..], "drop times in ms");
    }

    #[test]
    fn an_ecn_capable_packet_is_marked_at_the_time_at_which_another_is_dropped() {
        let (dropped, _) = drops(&mut codel(false), 1000, false);
        let (none, marked) = drops(&mut codel(true), 1000, true);
        assert!(none.is_empty());
        assert_eq!(marked, dropped);
    }

    #[test]
    fn a_short_queue_is_left_alone_however_old_its_packet() {
        let mut queue = codel(false);
        let mut fates = Fates::default();
        for round in 0..1000 {
            queue.enqueue(ms(round), queued(round, 0, ms(0)), &mut fates);
            assert_eq!(queue.dequeue(ms(round), &mut fates).unwrap().packet.number, round);
        }
        assert_eq!(fates.aqm_drops, 0);
    }
}
