//! How hosts speak: HTTP and TLS versions, settings of TCP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
pub use wirepaint_http_model::HttpVersion;
use wirepaint_page_model::Browser;
pub use wirepaint_page_model::browser::Tls;
use wirepaint_units::Duration;

/// What all connections of a run have in common.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Transport {
    /// Newest HTTP version offered on encrypted origins.
    pub http: HttpVersion,
    /// TLS version that is spoken on encrypted origins; no other is.
    pub tls: Tls,
    /// Largest TLS record of a server in bytes of plaintext; null for the standard 16384.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_record_bytes: Option<u32>,
    /// Kernel settings by name, such as `net.ipv4.tcp_slow_start_after_idle`; Linux's defaults where nothing is
    /// said. The simulator refuses one that its model does not have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// Smallest retransmission timeout (a route's `rto_min`; simulator only); null for Linux's 200 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_min_ns: Option<Duration>,
    /// Every segment is acknowledged at once (a route's `quickack`; simulator only), never late or every
    /// second one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quickack: bool,
}

impl Transport {
    /// A browser of the run, with what this transport tells.
    pub fn browser(&self, known: &Browser) -> Browser {
        Browser {
            http: self.http,
            tls: self.tls,
            record_bytes: self.tls_record_bytes.unwrap_or(known.record_bytes),
            ..known.clone()
        }
    }
}
