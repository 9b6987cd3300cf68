use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is kept of the packets at the devices of each user and of the server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Bytes kept of each packet, with its Ethernet header; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snap_length: Option<u32>,
    /// Bytes of a file from which on it takes no more packets.
    pub size_limit: u64,
}
