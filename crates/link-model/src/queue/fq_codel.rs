//! FQ-CoDel (RFC 8290).

use super::codel::{Controller, Parameters};
use super::{Backlog, Configured, Discipline, Fates, Fifo, Queued};
use crate::packet::{Drop, Packet};
use crate::random::Stream;
use crate::refused::{ConfigError, at_least_one, refuse, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Debug;
use wirepaint_units::{Duration, Time};

/// FQ-CoDel (RFC 8290).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of hash buckets.
    #[serde(default = "flows")]
    pub flows: u32,
    /// Bytes that a flow may send in one round.
    #[serde(default = "quantum")]
    pub quantum: u32,
    /// CoDel target of each flow.
    #[serde(default = "super::codel::target")]
    pub target_ns: Duration,
    /// CoDel interval of each flow.
    #[serde(default = "super::codel::interval")]
    pub interval_ns: Duration,
    /// Hard limit in packets over all flows.
    #[serde(default = "packets")]
    pub packets: u64,
    /// Mark instead of drop where the packet is ECN-capable.
    #[serde(default)]
    pub ecn: bool,
}

fn flows() -> u32 {
    1024
}
fn quantum() -> u32 {
    1514
}
fn packets() -> u64 {
    10_240
}

impl Configured for Config {
    fn check(&self, _full_frame: u32) -> Result<(), ConfigError> {
        if !(1..=65_536).contains(&self.flows) {
            return refuse("queue.flows", self.flows, "1 to 65536");
        }
        // A deficit pays for whole packets, so a tiny quantum would loop for long.
        if !(64..=1_000_000).contains(&self.quantum) {
            return refuse("queue.quantum", self.quantum, "64 to 1000000 bytes");
        }
        time("queue.target_ns", self.target_ns, false)?;
        time("queue.interval_ns", self.interval_ns, false)?;
        at_least_one("queue.packets", self.packets)
    }

    fn build<P: Packet + Debug + 'static>(&self, full_frame: u64, stream: Stream) -> Box<dyn Discipline<P>> {
        let Config { flows, quantum, target_ns: target, interval_ns: interval, packets, ecn } = *self;
        let codel = Parameters { target, interval, ecn, full_frame };
        Box::new(FqCodel::new(codel, flows, quantum, packets, stream))
    }
}

/// Most packets that an overflow drops from the fattest flow at once (RFC 8290 section 4.1).
const DROP_BATCH: u64 = 64;

/// FQ-CoDel (RFC 8290): flows hashed into buckets, a deficit round robin over them that serves new
/// flows first, CoDel in each.
#[derive(Debug)]
pub(crate) struct FqCodel<P> {
    codel: Parameters,
    quantum: i64,
    limit: u64,
    flows: Vec<FlowQueue<P>>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    backlog: Backlog,
    /// Prevents two flows from sharing a bucket in every run.
    perturbation: u64,
}

#[derive(Debug)]
struct FlowQueue<P> {
    fifo: Fifo<P>,
    controller: Controller,
    /// Bytes that the flow may still send in this round.
    deficit: i64,
    /// True while the flow is in one of the two lists.
    listed: bool,
}

impl<P> FqCodel<P> {
    /// `limit` is the hard limit in packets over all flows, `quantum` in bytes.
    pub fn new(codel: Parameters, flows: u32, quantum: u32, limit: u64, mut stream: Stream) -> FqCodel<P> {
        let flow = |_| FlowQueue {
            fifo: Fifo::default(),
            controller: Controller::default(),
            deficit: 0,
            listed: false,
        };
        FqCodel {
            codel,
            quantum: i64::from(quantum),
            limit,
            flows: (0..flows).map(flow).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            backlog: Backlog::default(),
            perturbation: stream.bits(),
        }
    }

    fn bucket(&self, flow: u64) -> usize {
        // Multiplicative hashing (Knuth): the high bits of the product, scaled to the buckets.
        let hash = (flow ^ self.perturbation).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(hash) * self.flows.len() as u128) >> 64) as usize
    }
}

impl<P: Packet> FqCodel<P> {
    /// Drops half of the packets of the fattest flow, from its head, at most a batch.
    fn drop_from_fattest(&mut self, now: Time, fates: &mut Fates<P>) {
        // The first of equally fat flows, so that the choice is deterministic.
        let Some(fattest) = self.flows.iter_mut().rev().max_by_key(|flow| flow.fifo.bytes) else { return };
        let drops = fattest.fifo.backlog().packets.div_ceil(2).min(DROP_BATCH);
        for _ in 0..drops {
            let packet = fattest.fifo.pop().expect("no more than it has");
            self.backlog.packets -= 1;
            self.backlog.bytes -= packet.bytes;
            fates.drop(now, Drop::Queue, packet);
        }
    }
}

impl<P: Packet + Debug> Discipline<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Time, packet: Queued<P>, fates: &mut Fates<P>) {
        let bucket = self.bucket(packet.packet.flow());
        self.backlog.packets += 1;
        self.backlog.bytes += packet.bytes;
        let flow = &mut self.flows[bucket];
        flow.fifo.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new_flows.push_back(bucket);
        }
        if self.backlog.packets > self.limit {
            self.drop_from_fattest(now, fates);
        }
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates<P>) -> Option<Queued<P>> {
        loop {
            let from_new = !self.new_flows.is_empty();
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            let bucket = *list.front()?;
            let flow = &mut self.flows[bucket];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old_flows.push_back(bucket);
                continue;
            }
            let before = flow.fifo.backlog();
            let packet = flow.controller.dequeue(now, &self.codel, &mut flow.fifo, fates);
            let after = flow.fifo.backlog();
            self.backlog.packets -= before.packets - after.packets;
            self.backlog.bytes -= before.bytes - after.bytes;
            let Some(packet) = packet else {
                // An emptied new flow joins the old ones once. Otherwise it could become new again and starve
                // them (RFC 8290 section 4.2).
                list.pop_front();
                if from_new {
                    self.old_flows.push_back(bucket);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            flow.deficit -= packet.bytes as i64;
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Numbered, ms, queued};
    use super::*;
    use crate::random::Element;
    use wirepaint_units::Duration;

    fn fq(limit: u64) -> FqCodel<Numbered> {
        let codel = Parameters {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            full_frame: 1514,
        };
        FqCodel::new(codel, 1024, 1514, limit, Stream::new(1, Element::Queue))
    }

    fn order(queue: &mut FqCodel<Numbered>) -> Vec<u64> {
        let mut fates = Fates::default();
        std::iter::from_fn(|| queue.dequeue(ms(1), &mut fates)).map(|q| q.packet.number).collect()
    }

    #[test]
    fn backlogged_flows_take_turns_and_a_new_flow_goes_first() {
        let (mut queue, mut fates) = (fq(100), Fates::default());
        for (number, flow) in [(10, 1), (11, 1), (12, 1), (20, 2), (21, 2)] {
            queue.enqueue(ms(0), queued(number, flow, ms(0)), &mut fates);
        }
        assert_eq!(queue.dequeue(ms(0), &mut fates).unwrap().packet.number, 10);
        assert_eq!(queue.dequeue(ms(0), &mut fates).unwrap().packet.number, 20);
        queue.enqueue(ms(0), queued(30, 3, ms(0)), &mut fates);
        assert_eq!(order(&mut queue), [30, 11, 21, 12]);
        assert_eq!(queue.backlog(), Backlog::default());
    }

    #[test]
    fn an_overflow_takes_half_of_the_fattest_flow_from_its_head() {
        let (mut queue, mut fates) = (fq(10), Fates::default());
        queue.enqueue(ms(0), queued(100, 2, ms(0)), &mut fates);
        for number in 0..10 {
            queue.enqueue(ms(0), queued(number, 1, ms(0)), &mut fates);
        }
        let dropped: Vec<u64> = fates.dropped.iter().map(|d| d.packet.number).collect();
        assert_eq!(dropped, [0, 1, 2, 3, 4]);
        assert_eq!(order(&mut queue), [100, 5, 6, 7, 8, 9]);
    }
}
