//! Who takes part in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// A machine that sends and receives.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name, unique in the run; visits and flows refer to it.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// Its address. Null: the simulator numbers clients and servers in the order of this list, and a page's
    /// servers have the addresses of its origins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// `name` in the run's `congestion`: congestion control of its connections; of a proxy, of those that it accepts.
    pub congestion: String,
    /// Initial window of the same connections in segments.
    #[serde(default = "initial_window")]
    pub initial_window: u32,
    /// How the connections send that a proxy opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Sending>,
    /// Code point (RFC 2474), 0 to 63, that the path sees on all packets from and to this client, whatever they
    /// carry: its service class. Null: what the packets carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Inode of its network namespace: its sockets are sampled (testbed only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_inode: Option<u32>,
}

fn initial_window() -> u32 {
    10
}

/// How connections send.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sending {
    /// `name` in the run's `congestion`.
    pub congestion: String,
    /// Initial window in segments.
    #[serde(default = "initial_window")]
    pub initial_window: u32,
}

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Opens connections.
    Client,
    /// Accepts connections.
    Server,
    /// Accepts connections of clients and opens its own to servers.
    Proxy,
}

impl Role {
    /// Its name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Server => "server",
            Role::Proxy => "proxy",
        }
    }
}
