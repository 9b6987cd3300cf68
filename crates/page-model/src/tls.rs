//! Sizes of TLS handshakes between a browser and the replay server, records included, and the overhead of a
//! record.
//!
//! The server's sizes are measured on the testbed; the browser's are numbers of the catalogue ([`Hello`]). The
//! server's chain is a leaf and the run's authority, both ECDSA P-256; the leaf names its host twice.
//!
//! ```text
//! TLS 1.3   hello ►   ◄ hello .. finished   finished, request ►   ◄ tickets, answer
//! TLS 1.2   hello ►   ◄ hello .. done       key, finished, request ►   ◄ ticket, finished, answer
//!           resumed:  ◄ hello, ticket, finished    finished, request ►
//! ```
//! TLS 1.2 needs no additional round trip: the browser sends its requests with its own finished (False Start,
//! RFC 7918), since the server agrees on ECDHE, AES-GCM and ALPN.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wirepaint_http_model::HttpVersion;

/// TLS version that servers speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Tls {
    /// TLS 1.3.
    #[default]
    #[serde(rename = "1.3")]
    V13,
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V12,
}

/// Sizes in bytes of what a browser sends in TLS handshakes and to open an HTTP/2 connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The hello without the host's name, by the newest HTTP version that it offers.
    pub offering: BTreeMap<HttpVersion, u32>,
    /// It is padded by none to three times this, at random.
    pub padding: u32,
    /// A ticket and its binder, in TLS 1.3.
    pub ticket: u32,
    /// A ticket in TLS 1.2.
    pub ticket_tls12: u32,
    /// Change of cipher and finished, in TLS 1.3.
    pub finished: u32,
    /// The same with the key, in TLS 1.2.
    pub finished_tls12: u32,
    /// The same of a resumed session, in TLS 1.2.
    pub finished_tls12_resumed: u32,
    /// HTTP/2's preface, SETTINGS and WINDOW_UPDATE.
    pub http2_opening: u64,
}

/// Properties of a connection that determine the sizes.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a> {
    /// TLS version that the server speaks.
    pub version: Tls,
    /// Newest HTTP version of the two.
    pub http: HttpVersion,
    /// The server's name.
    pub host: &'a str,
    /// The client holds a ticket.
    pub resumed: bool,
    /// The browser's sizes.
    pub hello: &'a Hello,
}

impl Handshake<'_> {
    /// Bytes by which the agreed protocol name is longer than `h2`.
    fn name(&self) -> u64 {
        self.http.protocol().alpn().len() as u64 - 2
    }

    /// Client's hello: the host's name is in it once, and the browser pads it at random. A ticket and its binder
    /// come with it.
    pub fn client_hello(&self, padding: u8) -> u64 {
        let Hello { offering, padding: step, ticket, ticket_tls12, .. } = self.hello;
        let ticket = match (self.resumed, self.version) {
            (false, _) => 0,
            (true, Tls::V13) => *ticket,
            (true, Tls::V12) => *ticket_tls12,
        };
        let offered = offering.get(&self.http).copied().unwrap_or_default();
        u64::from(offered + step * u32::from(padding % 4) + ticket) + self.host.len() as u64
    }

    /// The server's answer to the hello.
    pub fn server_flight(&self) -> u64 {
        let host = self.host.len() as u64;
        self.name()
            + match (self.version, self.resumed) {
                (Tls::V13, false) => 1_067 + 2 * host,
                (Tls::V13, true) => 212,
                (Tls::V12, false) => 1_001 + 2 * host,
                (Tls::V12, true) => 294 + host,
            }
    }

    /// Client's change of cipher and finished; in TLS 1.2 with its key.
    pub fn client_finished(&self) -> u64 {
        u64::from(match (self.version, self.resumed) {
            (Tls::V13, _) => self.hello.finished,
            (Tls::V12, false) => self.hello.finished_tls12,
            (Tls::V12, true) => self.hello.finished_tls12_resumed,
        })
    }

    /// The server's bytes after the client has finished: two session tickets in one record, or in TLS 1.2 one
    /// ticket and its own finished; 0 if they were sent before.
    pub fn server_finished(&self) -> u64 {
        let host = self.host.len() as u64;
        match (self.version, self.resumed) {
            (Tls::V13, _) => 326 + 2 * (host + self.name()),
            (Tls::V12, false) => 185 + host + self.name(),
            (Tls::V12, true) => 0,
        }
    }
}

/// Bytes that TLS adds to a record: header 5, AEAD tag 16, and in TLS 1.3 the content type (RFC 8446,
/// 5.2), in TLS 1.2 the explicit part of AES-GCM's nonce (RFC 5288, 3).
pub fn record_overhead(version: Tls) -> u64 {
    match version {
        Tls::V13 => 5 + 16 + 1,
        Tls::V12 => 5 + 16 + 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::chromium;

    #[test]
    fn sizes_are_those_of_packets_on_the_testbed() {
        // A load of the page agency over HTTP/2 and HTTP/1.1, one capture of each version.
        let chromium = chromium();
        let hello = &chromium.hello;
        let of = |version, http, host, resumed| Handshake { version, http, host, resumed, hello };
        let sizes =
            |shake: Handshake| (shake.server_flight(), shake.client_finished(), shake.server_finished());
        assert_eq!(sizes(of(Tls::V13, HttpVersion::H2, "cdn.jsdelivr.net", false)), (1_099, 64, 358));
        assert_eq!(sizes(of(Tls::V13, HttpVersion::H1, "agency.startbootstrap.test", true)), (218, 64, 390));
        assert_eq!(sizes(of(Tls::V12, HttpVersion::H2, "use.fontawesome.com", false)), (1_039, 93, 204));
        assert_eq!(sizes(of(Tls::V12, HttpVersion::H1, "agency.startbootstrap.test", true)), (326, 51, 0));
        let first = of(Tls::V13, HttpVersion::H2, "agency.startbootstrap.test", false);
        assert_eq!(first.client_hello(1), 1_448 + 360);
        let padded = of(Tls::V12, HttpVersion::H1, "agency.startbootstrap.test", true).client_hello(1);
        assert_eq!(padded, 1_448 + 531);
    }
}
