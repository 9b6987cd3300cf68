//! What the simulator is asked to carry out: topology, flows, page visits, TCP's settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wirepaint_link_model::config::Direction;
use wirepaint_page_model::{Page, Settings};
use wirepaint_units::{BitRate, Duration, Time};

/// A simulated run. Times count from the run's epoch.
///
/// The two directions of the run's `network` are links of the names `down` and `up`; they are the
/// path of whatever names no route. The run ends when every flow and every visit is over, at the latest
/// at `until_ns`; a flow without end never is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// Further links by name. A link is one direction; nodes are implicit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, Direction>,
    /// Flows without a browser.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// Page visits, one or more users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<Visit>,
    /// Changes of a group's route, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reroutes: Vec<Reroute>,
    /// Settings of every TCP endpoint.
    #[serde(default)]
    pub tcp: Tcp,
    /// Latest end of the run.
    pub until_ns: Time,
    /// Tables to write; empty for every table that has rows, with `packet` only where the network
    /// asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Links whose packets the table `packet` holds; empty for every link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packet_links: Vec<String>,
    /// Period of the rows of the table `flow`.
    #[serde(default = "default_flow_interval")]
    pub flow_interval_ns: Duration,
}

fn default_flow_interval() -> Duration {
    Duration::from_millis(100)
}

/// Names of the links that a packet crosses, in order, each way. An empty list is a path without
/// delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// From the server to the client.
    pub down: Vec<String>,
    /// From the client to the server.
    pub up: Vec<String>,
}

impl Default for Route {
    /// The run's network.
    fn default() -> Route {
        Route { down: vec!["down".to_owned()], up: vec!["up".to_owned()] }
    }
}

/// From a time on, the packets of a group take another route. Packets under way stay on theirs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reroute {
    /// When.
    pub at_ns: Time,
    /// The group of the flows and visits that it concerns.
    pub group: String,
    /// The new route.
    pub route: Route,
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
    /// `name` in the run's `congestion`, for the sender; the other side runs the first of them.
    pub congestion: String,
    /// Initial window of the sender in segments.
    #[serde(default = "default_initial_window")]
    pub initial_window: u32,
    /// Path of the connection.
    #[serde(default)]
    pub route: Route,
    /// Group for reroutes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Number of the client's host: flows of one host share its address.
    #[serde(default)]
    pub client: u16,
    /// Number of the server's host.
    #[serde(default)]
    pub server: u16,
    /// Code point of its packets (RFC 2474), both ways, 0 to 63: their service class.
    #[serde(default)]
    pub dscp: u8,
}

fn default_initial_window() -> u32 {
    10
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

/// TCP of every endpoint: Linux's, with the settings that a testbed run would make by sysctl.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Kernel settings by name, such as `net.ipv4.tcp_slow_start_after_idle`; one that the model
    /// does not have is refused. Linux's defaults where nothing is said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// Smallest retransmission timeout (a route's `rto_min`); null for Linux's 200 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rto_min_ns: Option<Duration>,
    /// Every segment is acknowledged at once (a route's `quickack`), never late or every second one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quickack: bool,
    /// Largest IP packet in bytes; null for the network's MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
}

/// One visit of one page by one user.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Name of the user agent.
    pub user_agent: String,
    /// Name of the page.
    pub name: String,
    /// Navigation start.
    #[serde(default)]
    pub start_ns: Time,
    /// When the browser gives up.
    pub timeout_ns: Duration,
    /// Path of all its connections.
    #[serde(default)]
    pub route: Route,
    /// Group for reroutes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Number of the user's host: the users' connections have its address.
    #[serde(default)]
    pub client: u16,
    /// Code point of its packets (RFC 2474), both ways, 0 to 63: its service class.
    #[serde(default)]
    pub dscp: u8,
    /// `name` in the run's `congestion`, for the servers; the browser's side runs the first of them.
    pub congestion: String,
    /// Initial window of the servers in segments.
    #[serde(default = "default_initial_window")]
    pub initial_window: u32,
    /// What is loaded.
    pub page: Page,
    /// Browser and servers.
    #[serde(default)]
    pub settings: Settings,
}
