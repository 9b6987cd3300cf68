//! What a run description says of a link. Times in nanoseconds, rates in bits per second.
//!
//! [`Link::new`](crate::Link::new) refuses what cannot be carried out.

pub use crate::packet::Counted;
pub use crate::queue::{Limits, Queue};
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
    /// The delay and an exponentially distributed time, cut at ten means.
    Exponential {
        /// Mean of that time.
        mean_ns: Duration,
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
