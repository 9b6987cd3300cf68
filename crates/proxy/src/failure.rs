//! Why a proxy could not be started or could not finish.

use std::net::SocketAddrV4;
use std::path::Path;
use wirepaint_run::RunError;
use wirepaint_serving::CertificateError;

/// Why a proxy could not be started or could not finish.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run description is not readable, not one, or has a wrong value.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The kernel lacks the congestion control or refuses it to this process.
    #[error("{key}: congestion control {name:?} cannot be set: {source}; the kernel offers: {offered}")]
    Congestion {
        /// Key in the run description.
        key: &'static str,
        /// Requested name.
        name: String,
        /// The kernel's error.
        source: std::io::Error,
        /// Names that the kernel knows now.
        offered: String,
    },
    /// The kernel refuses to accept connections to addresses that are not the host's.
    #[error("IP_TRANSPARENT on {address}: {source}; it needs CAP_NET_ADMIN")]
    Transparent {
        /// Listening address.
        address: SocketAddrV4,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Failure {
    /// 2 for bad input, 1 for a failure.
    pub(crate) fn exit_code(&self) -> u8 {
        if matches!(self, Failure::Run(_)) { 2 } else { 1 }
    }

    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
        let what = what.into();
        move |source| Failure::System { what, source }
    }

    pub(crate) fn value(
        path: &Path,
        key: impl Into<String>,
        found: impl Into<String>,
        accepted: impl Into<String>,
    ) -> Failure {
        Failure::Run(RunError::Part {
            path: path.to_owned(),
            key: key.into(),
            found: found.into(),
            accepted: accepted.into(),
        })
    }

    pub(crate) fn congestion(key: &'static str, name: &str, source: std::io::Error) -> Failure {
        let offered = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .map_or_else(|error| error.to_string(), |names| names.trim().to_owned());
        Failure::Congestion { key, name: name.to_owned(), source, offered }
    }
}
