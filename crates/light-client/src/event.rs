//! What HTTP tells of answers, whatever its version.

/// A fact about an answer. Requests have the page's numbers.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Its head has come.
    Head {
        /// The request.
        request: u32,
        /// Its status.
        status: u16,
        /// Bytes on the connection, without TLS.
        bytes: u64,
    },
    /// More of its body.
    Body {
        /// The request.
        request: u32,
        /// Bytes on the connection, without TLS.
        bytes: u64,
        /// Bytes of the body in them.
        payload: u64,
    },
    /// It is complete.
    Complete {
        /// The request.
        request: u32,
    },
}

/// Why a connection or an answer is of no use: one line.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl Fault {
    /// A fault with this text.
    pub fn new(text: impl Into<String>) -> Fault {
        Fault(text.into())
    }
}
