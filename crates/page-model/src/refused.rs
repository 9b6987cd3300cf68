//! How bad input is refused.

/// Why a page or a browser was refused: key, what was found, what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: found {found}, accepted: {accepted}")]
pub struct Refused {
    /// Key in the page or the browser.
    pub key: String,
    /// What it held.
    pub found: String,
    /// What it may hold.
    pub accepted: String,
}
