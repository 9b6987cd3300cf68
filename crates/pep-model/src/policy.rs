//! What a run description says of the order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// Order of what the ground side sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PepSchedule {
    /// First come, first served; connections by turns (HTTP-AE).
    Arrival,
    /// Deficit round robin over the users of a class, then the browser's priorities.
    Fair,
}

/// A service class of the proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PepClass {
    /// Code point of its users.
    pub dscp: u8,
    /// Its part of what the proxy sends while all classes have something to send, in per cent; other classes
    /// borrow what one leaves.
    pub share: f64,
}

/// The rules of a [`Scheduler`](crate::Scheduler).
#[derive(Clone, Debug)]
pub struct Policy {
    /// Order of what is sent.
    pub schedule: PepSchedule,
    /// Service classes; empty for one class.
    pub classes: Vec<PepClass>,
    /// Connections of each class, 1 or more.
    pub connections: usize,
    /// With `arrival`: answers of a connection take turns. With `fair`, where users always take turns: answers of
    /// one user that the browser can use in part take turns (RFC 9218, incremental).
    pub multiplexed: bool,
    /// Rate at which the answers leave, in bit/s; `None` for what the connections take. At the rate of the link what
    /// waits does so here, where users take turns, and not in the link's queue.
    pub rate_bit_per_s: Option<NonZeroU64>,
}

impl Policy {
    /// Classes; one where none is named.
    pub fn class_count(&self) -> usize {
        self.classes.len().max(1)
    }

    /// The class of users with this code point; `None` for a code point of no class.
    pub fn class_of(&self, dscp: u8) -> Option<usize> {
        if self.classes.is_empty() {
            Some(0)
        } else {
            self.classes.iter().position(|class| class.dscp == dscp)
        }
    }

    /// Connections of all classes. Those of class 0 come first.
    pub fn connection_count(&self) -> usize {
        self.class_count() * self.connections
    }

    /// The class of a connection.
    pub fn class_of_connection(&self, connection: usize) -> usize {
        connection / self.connections
    }

    /// Part of a class in per cent.
    pub(crate) fn share(&self, class: usize) -> f64 {
        self.classes.get(class).map_or(100.0, |class| class.share)
    }
}
