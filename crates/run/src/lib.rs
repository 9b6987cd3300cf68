//! Door 2: what a run is asked to do, complete and resolved.
//!
//! One JSON document describes a run; every verb of the data plane reads the part that is its
//! own, so a run can be repeated piece by piece at a shell. The types here are the only
//! declaration; `dataplane schema` writes them as `schema/run.schema.json`.

pub mod signals;
pub mod simulation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use wirepaint_link_model::config::Direction;
pub use wirepaint_page_model::settings::Tls;

/// Version of the document; a program refuses another one.
pub const FORMAT: u32 = 1;

/// A run description.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Version of this document: 1.
    pub format: u32,
    /// Short unique id (at most 8 characters of a-z0-9); everything the run owns carries it.
    pub id: String,
    /// Seed of every random element.
    pub seed: u64,
    /// CLOCK_MONOTONIC in nanoseconds at the time 0 of the trace (testbed only).
    #[serde(default)]
    pub epoch_ns: u64,
    /// Folder into which the trace's tables are written.
    pub trace_dir: PathBuf,
    /// Folder for files that pass between the parts of this run.
    pub work_dir: PathBuf,
    /// The path between client and server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The origins that answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// Congestion controls that the run loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<Congestion>,
    /// What of the kernel's TCP is sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// What the simulator carries out (simulator only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<simulation::Simulation>,
}

/// The path between client and server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Server to client.
    pub down: Direction,
    /// Client to server.
    pub up: Direction,
    /// Interface towards the client, inside the emulator's namespace.
    pub client_interface: String,
    /// Interface towards the server, inside the emulator's namespace.
    pub server_interface: String,
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

fn default_mtu() -> u32 {
    1500
}
fn default_sample_interval() -> u64 {
    10_000_000
}

/// The origins that answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Where to listen.
    pub origins: Vec<Origin>,
    /// Newest HTTP version offered on encrypted origins.
    pub http: HttpVersion,
    /// Name under which the kernel knows the congestion control of accepted sockets.
    pub congestion: String,
    /// Initial window that accepted sockets must report; set by the route, checked here.
    pub initial_window: u32,
    /// What is answered.
    pub responses: Vec<Response>,
    /// TLS version that is spoken on encrypted origins; no other is.
    #[serde(default)]
    pub tls: Tls,
    /// Largest TLS record in bytes of plaintext; null for the standard 16384.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_record_bytes: Option<u32>,
}

/// HTTP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpVersion {
    /// HTTP/1.1.
    H1,
    /// HTTP/2, HTTP/1.1 for a client that does not offer it.
    H2,
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

/// One congestion control to load.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// Name of the algorithm's file in congestion/algorithms.
    pub algorithm: String,
    /// Name to register under, at most 15 characters, unique on the host.
    pub name: String,
    /// Parameters that differ from their defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, i64>,
}

/// What of the kernel's TCP is sampled.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Inode of the server's network namespace: only its sockets are sampled.
    pub namespace_inode: u32,
}

/// Why a run description was refused.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file could not be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The document is not a run description.
    #[error("{path}: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// A field has a value that is not accepted.
    #[error("{path}: {key}: found {found}, accepted: {accepted}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Key in the document.
        key: &'static str,
        /// What it held.
        found: String,
        /// What it may hold.
        accepted: &'static str,
    },
}

impl Run {
    /// Reads and checks a run description.
    pub fn read(path: &Path) -> Result<Run, RunError> {
        let bytes = std::fs::read(path).map_err(|source| RunError::Io { path: path.to_owned(), source })?;
        Run::parse(&bytes, path)
    }

    /// The run description in `text`; `path` is named in errors.
    pub fn parse(text: &[u8], path: &Path) -> Result<Run, RunError> {
        let run: Run = serde_json::from_slice(text)
            .map_err(|source| RunError::Json { path: path.to_owned(), source })?;
        let refuse = |key, found: String, accepted| {
            Err(RunError::Value { path: path.to_owned(), key, found, accepted })
        };
        if run.format != FORMAT {
            return refuse("format", run.format.to_string(), "1");
        }
        let id_ok = (1..=8).contains(&run.id.len())
            && run.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !id_ok {
            return refuse("id", format!("{:?}", run.id), "1 to 8 characters of a-z and 0-9");
        }
        Ok(run)
    }

    /// The part of a verb, or the error that names it.
    pub fn part<'a, T>(
        &'a self,
        path: &Path,
        key: &'static str,
        part: &'a Option<T>,
    ) -> Result<&'a T, RunError> {
        part.as_ref().ok_or_else(|| RunError::Value {
            path: path.to_owned(),
            key,
            found: "nothing".to_owned(),
            accepted: "an object (see schema/run.schema.json)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Run, RunError> {
        let path = std::env::temp_dir().join(format!("wirepaint-run-{}-{}", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        let result = Run::read(&path);
        std::fs::remove_file(&path).unwrap();
        result
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let error =
            read(r#"{"format":1,"id":"a","seed":1,"trace_dir":"t","work_dir":"w","colour":2}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `colour`"), "{error}");
    }

    #[test]
    fn an_id_that_could_leave_its_folder_is_refused() {
        let error = read(r#"{"format":1,"id":"../x","seed":1,"trace_dir":"t","work_dir":"w"}"#).unwrap_err();
        assert!(error.to_string().contains("1 to 8 characters"), "{error}");
    }
}
