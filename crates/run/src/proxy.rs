//! Proxies between clients and the servers of pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use wirepaint_pep_model::{PepClass, PepSchedule, Policy};

/// A proxy program and its settings. Its hosts have the role `proxy` and stand in the run's `path`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Proxy {
    /// Squid, a caching forward proxy.
    Squid(Squid),
    /// A transparent proxy that ends TCP connections and opens its own to the servers.
    Split(Split),
    /// A pair of transparent proxies; the one near the servers fetches a page's objects ahead of the browser.
    Pep(Pep),
}

/// Squid's settings.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Squid {
    /// Its host.
    pub host: String,
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

/// Settings of a split TCP proxy.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Its host.
    pub host: String,
    /// Most bytes that it holds of each direction of a connection, beside the kernel's buffers.
    pub buffer_bytes: u64,
}

/// Settings of the split performance-enhancing proxy (HTTP-AE, section IV-D).
///
/// The remote side ends the browsers' connections, TLS with the run's own authority. The ground side fetches from
/// the servers and streams answers over connections that the remote side has opened before the visits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pep {
    /// Host of the side near the clients.
    pub remote: String,
    /// Host of the side near the servers.
    pub ground: String,
    /// Port on which the ground side listens.
    pub port: u16,
    /// Persistent connections between the sides, 1 to 64; with classes so many for each.
    pub connections: u32,
    /// True if answers of a connection take turns; else one goes after another. With the schedule `fair` users
    /// always take turns, and this is said of one user's answers.
    pub multiplexed: bool,
    /// Content coding of answers that their server did not compress; images and the like stay as they are.
    pub compression: Compression,
    /// Who sends next over the connections.
    pub schedule: PepSchedule,
    /// Service classes, by the `dscp` of the users' hosts; empty for one class. Connections of a class carry its code
    /// point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<PepClass>,
    /// What the ground side fetches before a browser asks.
    pub ahead: Ahead,
    /// Most bytes of answers that each side holds.
    pub buffer_bytes: u64,
    /// Rate at which the ground side sends answers, in bit/s on the link; none for what the connections take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bit_per_s: Option<NonZeroU64>,
}

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// None.
    None,
    /// RFC 1952.
    Gzip,
    /// RFC 7932.
    Br,
    /// RFC 8878.
    Zstd,
}

/// What the ground side fetches ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ahead {
    /// Nothing.
    None,
    /// What it finds in HTML and CSS.
    Markup,
    /// That, and what the page's rehearsals asked for.
    Rehearsed,
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

impl Pep {
    /// Rules of the ground side's scheduler.
    pub fn policy(&self) -> Policy {
        Policy {
            schedule: self.schedule,
            classes: self.classes.clone(),
            connections: self.connections as usize,
            multiplexed: self.multiplexed,
            rate_bit_per_s: self.rate_bit_per_s,
        }
    }
}

impl Proxy {
    /// Its hosts, from the clients to the servers.
    pub fn hosts(&self) -> Vec<&str> {
        match self {
            Proxy::Squid(squid) => vec![&squid.host],
            Proxy::Split(split) => vec![&split.host],
            Proxy::Pep(pep) => vec![&pep.remote, &pep.ground],
        }
    }

    /// True if it ends the browsers' TLS with certificates of the run's authority.
    pub fn ends_tls(&self) -> bool {
        match self {
            Proxy::Squid(squid) => squid.tls == ProxyTls::Terminate,
            Proxy::Split(_) => false,
            Proxy::Pep(_) => true,
        }
    }
}
