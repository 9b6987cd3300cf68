//! Serves recorded pages: one address and port per origin, HTTP/1.1 in plain and TLS, HTTP/2.
//!
//! A run description gives the responses, their congestion control and their think times. The server writes
//! two files of JSON lines, one row per connection and one per request. One thread serves everything, because
//! it shares a small machine with the browser and the emulator.
//!
//! ```text
//! server ─► recording ─► matching, headers, ranges     the response
//!    ├────► http1 ──────────────┐
//!    └────► http2 ─► priority   ├─► answer             its sending
//!           socket, clock, records             the kernel, time, results
//! ```
//!
//! Start at [`server`].

mod answer;
mod clock;
mod conditions;
mod headers;
mod http1;
mod http2;
mod matching;
mod ranges;
mod recording;
mod records;
mod server;
mod site;
mod socket;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wirepaint_run::{Run, RunError};
use wirepaint_serving::CertificateError;

/// Why the server could not be started or could not finish.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run description is not readable or not one.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A value of the run description is not accepted.
    #[error("{path}: {key}: found {found}, accepted: {accepted}")]
    Value {
        /// The run description.
        path: PathBuf,
        /// Key in the document.
        key: String,
        /// What it held.
        found: String,
        /// What it may hold.
        accepted: &'static str,
    },
    /// The kernel lacks the congestion control or refuses it to this process.
    #[error("congestion control {name:?} cannot be set on {origin}: {source}; the kernel offers: {offered}")]
    Congestion {
        /// Requested name.
        name: String,
        /// Listening address.
        origin: std::net::SocketAddrV4,
        /// The kernel's error.
        source: std::io::Error,
        /// Names that the kernel knows now.
        offered: String,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

impl Failure {
    /// 2 for bad input, 1 for a failure.
    fn exit_code(&self) -> u8 {
        match self {
            Failure::Run(_) | Failure::Value { .. } => 2,
            _ => 1,
        }
    }

    fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
        let what = what.into();
        move |source| Failure::System { what, source }
    }
}

/// The verb `replay`: serves the run's origins until SIGTERM or SIGINT.
///
/// Prints `{"ready": true, "ca_spki_sha256": ...}` when every origin listens and one line with a
/// summary at the end. Writes `server-connections.jsonl` and `server-requests.jsonl` into the run's
/// work folder. An error goes to stderr in one line.
pub fn command(path: &Path) -> ExitCode {
    match Run::read(path).map_err(Failure::from).and_then(|run| server::serve(path, &run)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
