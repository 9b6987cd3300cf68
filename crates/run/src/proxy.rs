//! A proxy between clients and the servers of pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The proxy program and its settings (testbed only). Its host has the role `proxy`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// The program.
    pub kind: ProxyKind,
    /// Port on which it serves clients.
    pub port: u16,
    /// Where it keeps responses.
    pub cache: Cache,
    /// Size of the cache.
    pub cache_bytes: u64,
    /// True if a first visit of the page, which is not measured, fills the cache.
    pub warm: bool,
    /// What becomes of https.
    pub tls: ProxyTls,
}

/// A proxy program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyKind {
    /// Squid.
    Squid,
}

/// Where a proxy keeps responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// Nowhere.
    None,
    /// In memory.
    Memory,
    /// In files.
    Disk,
}

/// What a proxy does with https.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyTls {
    /// It passes the bytes on (CONNECT, RFC 9110 section 9.3.6).
    Tunnel,
    /// It ends the browser's TLS with certificates of the run's own authority, and opens TLS to the server.
    Terminate,
}
