use std::path::PathBuf;
use wirepaint_link_model::ConfigError;
use wirepaint_run::RunError;
use wirepaint_trace::TraceError;

/// Why a verb of this crate failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run description was refused.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The link model refused a direction.
    #[error("{path}: segments.{direction}.{source}")]
    Config {
        /// The run description.
        path: PathBuf,
        /// `down` or `up`.
        direction: &'static str,
        /// Key, found, accepted.
        source: ConfigError,
    },
    /// The command line has a value that is not accepted.
    #[error("{0}")]
    Usage(String),
    /// A system call failed.
    #[error("{attempt}: {source}")]
    System {
        /// What was attempted.
        attempt: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A table could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Error {
    /// The last error of the system, with what was attempted.
    pub(crate) fn last(attempt: impl Into<String>) -> Error {
        Error::System { attempt: attempt.into(), source: std::io::Error::last_os_error() }
    }

    /// Exit code of the program: 2 for bad input, 1 for a failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Run(_) | Error::Config { .. } | Error::Usage(_) => 2,
            Error::System { .. } | Error::Trace(_) => 1,
        }
    }
}
