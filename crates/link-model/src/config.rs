//! What a run description says of a link. Times in nanoseconds, rates in bits per second.
//!
//! [`Link::new`](crate::Link::new) refuses what cannot be carried out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_units::{BitRate, Duration, Time};

/// One direction of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// Capacity of the bottleneck.
    pub capacity: Capacity,
    /// One-way propagation delay, added after the queue.
    pub delay_ns: Duration,
    /// Variation of the delay.
    #[serde(default)]
    pub jitter: Jitter,
    /// Loss that is not the queue's.
    #[serde(default)]
    pub loss: Loss,
    /// Queue discipline in front of the bottleneck.
    pub queue: Queue,
    /// Changes during the run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// What happens to single packets, chosen by number, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripted: Vec<Scripted>,
    /// Bytes counted per packet beyond its IP bytes (14: an Ethernet header).
    #[serde(default = "default_overhead")]
    pub overhead_bytes: u32,
}

fn default_overhead() -> u32 {
    14
}

/// Capacity of a bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Capacity {
    /// No bottleneck: only delay, jitter and loss.
    Unlimited,
    /// A constant rate.
    Rate {
        /// Wire bits per second; 0 is an outage.
        bit_per_s: BitRate,
    },
    /// Packet-delivery opportunities in Mahimahi's format: whole milliseconds, one opportunity of
    /// 1504 bytes each, wrapping at the last; a packet counts as its IP bytes + 4.
    Trace {
        /// Times of the opportunities, ascending, in milliseconds.
        opportunities_ms: Vec<u64>,
        /// Where in the trace the link begins.
        #[serde(default, skip_serializing_if = "is_zero")]
        offset_ms: u64,
    },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Variation of the one-way delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Jitter {
    /// The delay is constant.
    #[default]
    None,
    /// Uniform in `delay ± range`, never below zero.
    Uniform {
        /// Half the width of the interval.
        range_ns: Duration,
        /// True lets packets overtake each other; false keeps their order.
        #[serde(default)]
        reorder: bool,
    },
    /// Normal around the delay, cut at zero and at four deviations.
    Normal {
        /// Standard deviation.
        stddev_ns: Duration,
        /// True lets packets overtake each other; false keeps their order.
        #[serde(default)]
        reorder: bool,
    },
}

/// Loss that is not the queue's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Each packet alone.
    Independent {
        /// Probability of a loss, 0 to 1.
        probability: f64,
    },
    /// Bursty loss: a two-state Markov chain that steps with each packet (Gilbert 1960,
    /// Elliott 1963).
    GilbertElliott {
        /// Probability of the step from good to bad.
        good_to_bad: f64,
        /// Probability of the step from bad to good.
        bad_to_good: f64,
        /// Probability of a loss in the bad state.
        loss_in_bad: f64,
        /// Probability of a loss in the good state.
        #[serde(default)]
        loss_in_good: f64,
    },
}

/// Queue discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Queue {
    /// Drop-tail; give one limit or both. Without a limit nothing is dropped. The packet in
    /// transmission does not count, in any discipline.
    Droptail {
        /// Limit in packets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packets: Option<u64>,
        /// Limit in wire bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// CoDel (RFC 8289).
    Codel {
        /// Acceptable standing delay.
        #[serde(default = "codel_target")]
        target_ns: Duration,
        /// Time in which the delay must fall below the target once.
        #[serde(default = "codel_interval")]
        interval_ns: Duration,
        /// Hard limit in packets.
        #[serde(default = "codel_packets")]
        packets: u64,
        /// Mark instead of drop where the packet is ECN-capable.
        #[serde(default)]
        ecn: bool,
    },
    /// FQ-CoDel (RFC 8290).
    FqCodel {
        /// Number of hash buckets.
        #[serde(default = "fq_flows")]
        flows: u32,
        /// Bytes that a flow may send in one round.
        #[serde(default = "fq_quantum")]
        quantum: u32,
        /// CoDel target of each flow.
        #[serde(default = "codel_target")]
        target_ns: Duration,
        /// CoDel interval of each flow.
        #[serde(default = "codel_interval")]
        interval_ns: Duration,
        /// Hard limit in packets over all flows.
        #[serde(default = "fq_packets")]
        packets: u64,
        /// Mark instead of drop where the packet is ECN-capable.
        #[serde(default)]
        ecn: bool,
    },
    /// Service classes by the packets' code point: a drop-tail queue each, strict priority between
    /// levels, weighted shares within one (start-time fair queueing, Goyal, Vin, Cheng 1996).
    Classes {
        /// The classes; exactly one names no code points and takes all that the others do not.
        classes: Vec<ServiceClass>,
    },
    /// PIE (RFC 8033).
    Pie {
        /// Target queueing delay.
        #[serde(default = "pie_target")]
        target_ns: Duration,
        /// Period of the probability's update.
        #[serde(default = "pie_update")]
        update_ns: Duration,
        /// Hard limit in packets.
        #[serde(default = "codel_packets")]
        packets: u64,
        /// Mark instead of drop where the packet is ECN-capable.
        #[serde(default)]
        ecn: bool,
    },
}

/// A service class of [`Queue::Classes`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceClass {
    /// Code points of its packets (RFC 2474), 0 to 63; the one class that names none has all others.
    #[serde(default)]
    pub dscp: Vec<u8>,
    /// Its level: one with a lower number is served first, whatever waits in the others.
    #[serde(default)]
    pub priority: u32,
    /// Its share among the classes of its level, in bytes.
    #[serde(default = "one")]
    pub weight: u32,
    /// Limit of its drop-tail queue in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Limit in wire bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

fn one() -> u32 {
    1
}
fn codel_target() -> Duration {
    Duration::from_millis(5)
}
fn codel_interval() -> Duration {
    Duration::from_millis(100)
}
fn codel_packets() -> u64 {
    1000
}
fn fq_flows() -> u32 {
    1024
}
fn fq_quantum() -> u32 {
    1514
}
fn fq_packets() -> u64 {
    10_240
}
fn pie_target() -> Duration {
    Duration::from_millis(15)
}
fn pie_update() -> Duration {
    Duration::from_millis(15)
}

/// A change of the path at a time of the run; what is left out stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, from the run's epoch.
    pub at_ns: Time,
    /// New capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// New one-way delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<Duration>,
    /// New jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// New loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

/// Something that happens to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scripted {
    /// Which packets are counted.
    #[serde(default)]
    pub what: Counted,
    /// Which of them, from 1, over all flows of the direction.
    pub nth: u64,
    /// What happens to it.
    pub action: Action,
}

/// The packets that a script counts. SYN, FIN and RST segments count in neither kind,
/// retransmissions like any other packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// TCP segments and UDP datagrams with payload.
    #[default]
    Data,
    /// TCP segments without payload: pure acknowledgements.
    Bare,
}

/// What happens to a packet that a script names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Lost in front of the queue; booked as a loss.
    Drop,
    /// Delivered this much later than it would be; others overtake it.
    Hold {
        /// How much later.
        extra_ns: Duration,
    },
    /// Congestion Experienced is set if the packet is ECN-capable; otherwise nothing happens.
    Mark,
}
