//! Transfers without a browser, and changes of routes.

use crate::visit::{client, server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_units::{BitRate, Duration, Time};

/// From a time on, the packets of a group take another route. Packets under way stay on theirs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reroute {
    /// When.
    pub at_ns: Time,
    /// The group of the flows and visits that it concerns.
    pub group: String,
    /// The segments of the new route, from the server to the client.
    pub through: Vec<String>,
}

/// A transfer over one connection without a browser.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// What is transferred.
    pub kind: FlowKind,
    /// When the client connects.
    #[serde(default)]
    pub start_ns: Time,
    /// When the sender closes; null when the transfer itself has an end or the run ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_ns: Option<Time>,
    /// Which side sends the data.
    #[serde(default)]
    pub sender: Side,
    /// The host that connects; flows of one host share its address.
    #[serde(default = "client")]
    pub client: String,
    /// The host that accepts.
    #[serde(default = "server")]
    pub server: String,
    /// `name` in the run's `congestion`, for the sender; null for its host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Segments that its packets cross, from the server to the client. Null: all of the run, in their order;
    /// empty: a path without delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Vec<String>>,
    /// Group for reroutes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Code point of its packets (RFC 2474), both ways, 0 to 63: their service class.
    #[serde(default)]
    pub dscp: u8,
}

/// One side of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The side that accepts the connection.
    #[default]
    Server,
    /// The side that opens it.
    Client,
}

/// What a flow transfers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FlowKind {
    /// As much as TCP lets through.
    Bulk {
        /// Bytes; null for no end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// Writes of equal size at equal intervals.
    Cbr {
        /// Bytes of a write.
        write_bytes: u32,
        /// Payload rates, each from its time on, in order of time; rate 0 is idle.
        rates: Vec<RateFrom>,
    },
    /// The receiver asks, the sender answers, again and again.
    RequestResponse {
        /// Bytes of a request.
        request_bytes: u64,
        /// Bytes of an answer.
        response_bytes: u64,
        /// Number of exchanges; null for no end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
        /// Time between the last byte of an answer and the next request.
        #[serde(default)]
        pause_ns: Duration,
    },
}

/// A rate from a time on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateFrom {
    /// From when, counted from the run's epoch.
    pub at_ns: Time,
    /// The rate of payload.
    pub bit_per_s: BitRate,
}
