//! What the servers of a page answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The origins of a page, and what they answer (testbed only).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Where to listen.
    pub origins: Vec<Origin>,
    /// What is answered.
    pub responses: Vec<Response>,
}

/// One address and port, and whom it answers for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Address inside the server's namespace.
    pub address: Ipv4Addr,
    /// Port.
    pub port: u16,
    /// Port of the socket where it is another one: a rehearsal without root cannot listen on 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_port: Option<u16>,
    /// True for TLS.
    pub encrypted: bool,
    /// Host name; the certificate carries it.
    pub host: String,
}

/// One recorded response.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Response {
    /// HTTP method of the request.
    pub method: String,
    /// Full address of the request.
    pub url: String,
    /// Further addresses of requests that it answers; `*` stands for any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// HTTP status.
    pub status: u16,
    /// Response headers in order; lengths and connection headers are the server's own.
    pub headers: Vec<(String, String)>,
    /// File with the body exactly as it goes on the wire (after content-encoding); null for none.
    pub body: Option<PathBuf>,
    /// SHA-256 of the body in hexadecimal; a file with another is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<String>,
    /// Time between the request's last byte and the response's first.
    #[serde(default)]
    pub think_ns: u64,
}
