//! Transfers without a browser, and changes of routes.

use crate::visit::{client, server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_flow_model::FlowKind;
use wirepaint_units::Time;

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
///
/// Its times count from the beginning of the flows, which is the run's epoch in the simulator. Those of a flow
/// with `after` count from the end of that flow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name in the trace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Name of an earlier flow of the description: this one begins when that one has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// True for traffic beside which something else is measured: the run does not wait for its end.
    #[serde(default)]
    pub background: bool,
    /// True sends small writes at once (TCP_NODELAY); else they wait for acknowledgements (RFC 896).
    #[serde(default)]
    pub nodelay: bool,
    /// Who carries it out.
    #[serde(default)]
    pub tool: Tool,
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

/// What carries a flow out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// The data plane.
    #[default]
    Wirepaint,
    /// The program iperf3 (testbed only). The data plane leaves the flow to it.
    Iperf3,
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

impl Side {
    /// Its name in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            Side::Server => "server",
            Side::Client => "client",
        }
    }
}

impl Flow {
    /// Refuses values that are not accepted: key, found value, accepted values.
    pub fn check(&self) -> Result<(), (&'static str, String, &'static str)> {
        if self.stop_ns.is_some_and(|stop| stop <= self.start_ns) {
            return Err(("stop_ns", "a time before start_ns".to_owned(), "a later one"));
        }
        self.kind.check()
    }
}
