//! The stretches of a path.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_link_model::config::Direction;

/// A stretch of a path: a link each way.
///
/// Its links are named after it: `access.down` and `access.up` of the segment `access`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Name, unique in the run.
    pub name: String,
    /// Server to client.
    pub down: Direction,
    /// Client to server.
    pub up: Direction,
    /// Where the emulator finds its ends (testbed only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Interfaces>,
    /// True if the changes of the links count from a time that the emulator is told on its standard input: a line
    /// with nanoseconds since the run's epoch (testbed only).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes_wait: bool,
    /// Largest IP packet in bytes; a larger one makes the run invalid.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// Period of the samples of the table `link`.
    #[serde(default = "default_sample_interval")]
    pub sample_interval_ns: u64,
    /// True records every packet in the table `packet`.
    #[serde(default)]
    pub packet_trace: bool,
}

/// Interfaces inside the emulator's namespace.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interfaces {
    /// The one towards the client.
    pub client: String,
    /// The one towards the server.
    pub server: String,
}

/// MTU of a segment that names none, and of a path without segments.
pub fn default_mtu() -> u32 {
    1500
}

/// Period of the samples where a segment names none.
pub fn default_sample_interval() -> u64 {
    10_000_000
}
