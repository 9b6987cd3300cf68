//! The versions of HTTP: one file each, and a line here.

mod h1;
mod h2;

use crate::protocol::Protocol;
use h1::H1;
use h2::H2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// HTTP version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpVersion {
    /// HTTP/1.1.
    H1,
    /// HTTP/2, HTTP/1.1 for a client that does not offer it.
    #[default]
    H2,
}

impl HttpVersion {
    /// What this version puts on a connection.
    pub fn protocol(self) -> &'static dyn Protocol {
        match self {
            HttpVersion::H1 => &H1,
            HttpVersion::H2 => &H2,
        }
    }

    /// The protocol names of this version and the older ones, as ALPN offers them (RFC 7301): newest first.
    pub fn offered(self) -> impl Iterator<Item = &'static str> {
        let older = [HttpVersion::H2, HttpVersion::H1].into_iter().filter(move |other| *other <= self);
        older.map(|version| version.protocol().alpn())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_offered_with_the_older_ones() {
        assert_eq!(HttpVersion::H1.offered().collect::<Vec<_>>(), ["http/1.1"]);
        assert_eq!(HttpVersion::H2.offered().collect::<Vec<_>>(), ["h2", "http/1.1"]);
    }
}
