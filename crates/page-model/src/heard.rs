//! What a client hears of real servers.

/// What has arrived from a server. Bytes are without TLS, frame headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The server's part of the TLS handshake, which is now complete.
    Handshake {
        /// Bytes of its records.
        bytes: u64,
    },
    /// The head of an answer.
    Head {
        /// The request.
        request: u32,
        /// Bytes on the connection.
        bytes: u64,
    },
    /// More of an answer's body.
    Body {
        /// The request.
        request: u32,
        /// Bytes on the connection.
        bytes: u64,
        /// Bytes of the body in them.
        payload: u64,
    },
    /// The server sends no more; the last of a connection.
    End,
}
