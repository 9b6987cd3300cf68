//! Sizes of a TLS 1.3 handshake between Chromium and the replay server, records included.
//!
//! Measured on the testbed. Chromium's hello is large because of its post-quantum key share; the
//! server has no use for it. The server's chain is a leaf and the run's authority, both ECDSA P-256;
//! the leaf names its host twice.

/// Client's hello: the host's name is in it once, and Chromium pads its GREASE extension by 0, 32, 64
/// or 96 bytes at random.
pub fn client_hello(host: &str, padding: u8, resumed: bool) -> u64 {
    1_750 + host.len() as u64 + 32 * u64::from(padding % 4) + if resumed { TICKET_IDENTITY } else { 0 }
}

/// A ticket and its binder in the hello.
const TICKET_IDENTITY: u64 = 240;

/// Server's hello to finished.
pub fn server_flight(host: &str, resumed: bool) -> u64 {
    if resumed { 228 } else { 1_035 + 4 * host.len() as u64 }
}

/// Client's change of cipher and finished.
pub const CLIENT_FINISHED: u64 = 64;

/// The server's two session tickets, in one record.
pub const TICKETS: u64 = 360;

/// HTTP/2: the server's SETTINGS.
pub const SERVER_SETTINGS: u64 = 21;

/// HTTP/2: either side's acknowledgement of SETTINGS.
pub const SETTINGS_ACK: u64 = 9;

/// HTTP/2: the client's preface, SETTINGS and WINDOW_UPDATE.
pub const CLIENT_PREFACE: u64 = 24 + 9 + 24 + 13;

/// HTTP/2: a PRIORITY frame.
pub const PRIORITY_FRAME: u64 = 9 + 5;
