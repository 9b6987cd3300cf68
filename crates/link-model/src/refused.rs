//! How a configuration is refused.

use std::borrow::Cow;
use std::fmt::Display;
use wirepaint_units::Duration;

/// Longest delay, jitter or AQM time that is accepted: an hour.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// A value of a link's configuration that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: found {found}, accepted: {accepted}")]
pub struct ConfigError {
    /// Key within the direction, such as `loss.probability`.
    pub key: String,
    /// What it held.
    pub found: String,
    /// What it may hold.
    pub accepted: Cow<'static, str>,
}

pub(crate) fn refuse<T>(
    key: &str,
    found: impl Display,
    accepted: impl Into<Cow<'static, str>>,
) -> Result<T, ConfigError> {
    Err(ConfigError { key: key.to_owned(), found: found.to_string(), accepted: accepted.into() })
}

pub(crate) fn time(key: &str, value: Duration, zero_ok: bool) -> Result<(), ConfigError> {
    if value > LONGEST {
        return refuse(key, format!("{} ns", value.0), "at most 3600000000000 (an hour)");
    }
    if value == Duration::ZERO && !zero_ok { refuse(key, "0", "at least 1 ns") } else { Ok(()) }
}

pub(crate) fn at_least_one(key: &str, value: u64) -> Result<(), ConfigError> {
    if value == 0 { refuse(key, "0", "at least 1") } else { Ok(()) }
}
