use std::path::{Path, PathBuf};
use wirepaint_congestion_native::Refusal;
use wirepaint_run::RunError;
use wirepaint_trace::TraceError;

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run description cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A value of the run description is not accepted.
    #[error("{place}: {key}: found {found}, accepted: {accepted}")]
    Value {
        /// The file.
        place: PathBuf,
        /// Key in the description.
        key: String,
        /// What it held.
        found: String,
        /// What it may hold.
        accepted: String,
    },
    /// A congestion control or its parameters.
    #[error("{place}: congestion[{index}]: {refusal}")]
    Congestion {
        /// The file.
        place: PathBuf,
        /// Position in the list.
        index: usize,
        /// What is wrong with it.
        refusal: Refusal,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Error {
    pub(crate) fn value(place: &Path, key: String, found: String, accepted: String) -> Error {
        Error::Value { place: place.to_owned(), key, found, accepted }
    }

    pub(crate) fn congestion(place: &Path, index: usize, refusal: &Refusal) -> Error {
        Error::Congestion { place: place.to_owned(), index, refusal: refusal.clone() }
    }

    /// The exit code: 2 for bad input, 1 for a failure.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Error::Trace(_)) { 1 } else { 2 }
    }
}
