//! Sizes of TLS handshakes between Chromium and the replay server, records included, and the overhead of a
//! record.
//!
//! Measured on the testbed. Chromium's hello is large because of its post-quantum key share, which the server
//! does not use. The server's chain is a leaf and the run's authority, both ECDSA P-256; the leaf names its
//! host twice.
//!
//! ```text
//! TLS 1.3   hello ►   ◄ hello .. finished   finished, request ►   ◄ tickets, answer
//! TLS 1.2   hello ►   ◄ hello .. done       key, finished, request ►   ◄ ticket, finished, answer
//!           resumed:  ◄ hello, ticket, finished    finished, request ►
//! ```
//! TLS 1.2 needs no additional round trip: Chromium sends its requests with its own finished (False Start,
//! RFC 7918), since the server agrees on ECDHE, AES-GCM and ALPN.

use crate::settings::{Http, Tls};

/// Properties of a connection that determine the sizes.
#[derive(Clone, Copy, Debug)]
pub struct Handshake<'a> {
    /// TLS version that the server speaks.
    pub version: Tls,
    /// Newest HTTP version of the two.
    pub http: Http,
    /// The server's name.
    pub host: &'a str,
    /// The client holds a ticket.
    pub resumed: bool,
}

/// Bytes by which the protocol name `http/1.1` is longer than `h2`.
const LONGER_NAME: u64 = 6;

impl Handshake<'_> {
    fn name(&self) -> u64 {
        if self.http == Http::H1 { LONGER_NAME } else { 0 }
    }

    /// Client's hello: the host's name is in it once, and Chromium pads its GREASE extension by 0, 32, 64
    /// or 96 bytes at random. A ticket and its binder come with it.
    pub fn client_hello(&self, padding: u8) -> u64 {
        let offered = if self.http == Http::H1 { 1_738 } else { 1_750 };
        let ticket = match (self.resumed, self.version) {
            (false, _) => 0,
            (true, Tls::V13) => 214,
            (true, Tls::V12) => 183,
        };
        offered + self.host.len() as u64 + 32 * u64::from(padding % 4) + ticket
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
        match (self.version, self.resumed) {
            (Tls::V13, _) => 64,
            (Tls::V12, false) => 93,
            (Tls::V12, true) => 51,
        }
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

/// HTTP/2: the server's SETTINGS.
pub const SERVER_SETTINGS: u64 = 21;

/// HTTP/2: either side's acknowledgement of SETTINGS.
pub const SETTINGS_ACK: u64 = 9;

/// HTTP/2: the client's preface, SETTINGS and WINDOW_UPDATE.
pub const CLIENT_PREFACE: u64 = 24 + 9 + 24 + 13;

/// HTTP/2: a PRIORITY frame.
pub const PRIORITY_FRAME: u64 = 9 + 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_packets_on_the_testbed() {
        // A load of the page agency over HTTP/2 and HTTP/1.1, one capture of each version.
        let of = |version, http, host, resumed| Handshake { version, http, host, resumed };
        let sizes =
            |shake: Handshake| (shake.server_flight(), shake.client_finished(), shake.server_finished());
        assert_eq!(sizes(of(Tls::V13, Http::H2, "cdn.jsdelivr.net", false)), (1_099, 64, 358));
        assert_eq!(sizes(of(Tls::V13, Http::H1, "agency.startbootstrap.test", true)), (218, 64, 390));
        assert_eq!(sizes(of(Tls::V12, Http::H2, "use.fontawesome.com", false)), (1_039, 93, 204));
        assert_eq!(sizes(of(Tls::V12, Http::H1, "agency.startbootstrap.test", true)), (326, 51, 0));
        let hello = of(Tls::V13, Http::H2, "agency.startbootstrap.test", false);
        assert_eq!(hello.client_hello(1), 1_448 + 360);
        let padded = of(Tls::V12, Http::H1, "agency.startbootstrap.test", true).client_hello(1);
        assert_eq!(padded, 1_448 + 531);
    }
}
