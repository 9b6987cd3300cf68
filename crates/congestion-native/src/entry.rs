//! What happened to a sender, as a script plays it.

use crate::Instance;
use std::sync::Arc;

/// Something that the application or the path did.
pub struct Entry {
    /// Place in the order of all that happened in the script.
    pub order: u64,
    /// The sender's clock.
    pub at_us: u64,
    /// Segments delivered before it.
    pub delivered: u32,
    /// Data segments sent before it, retransmissions included.
    pub sent: u32,
    /// Retransmissions before it.
    pub retransmitted: u32,
    /// What it was.
    pub what: What,
}

/// What the application or the path did. Packets have the numbers of their transmissions, from 1.
pub enum What {
    /// The connection is established and has its congestion control.
    Open,
    /// The application wrote so many segments, or without end.
    Write(Option<u64>),
    /// The application has nothing more to write; what was not sent is forgotten.
    StopWriting,
    /// Packets in flight vanished.
    Lose(Vec<u32>),
    /// Packets in flight are late; their numbers and when they were due.
    Hold(Vec<(u32, u64)>),
    /// The late packets arrive: an `Arrive` each follows.
    Release,
    /// Packets arrive and are answered by one acknowledgement.
    Arrive {
        /// Their numbers.
        data: Vec<u32>,
        /// The acknowledgement carries an ECN echo.
        ece: bool,
    },
    /// This packet takes so much longer than the path's round-trip time.
    Delay(u32, u64),
    /// The receiver offers another window.
    ReceiveWindow,
    /// A real path cannot do what the script says, for this reason.
    NativeOnly(String),
    /// The retransmission timer fires.
    Timeout,
    /// The tail-loss probe fires.
    Probe,
    /// The sender's own host refuses a segment.
    LocalDrop,
    /// The connection ends.
    Close,
    /// Another congestion control is chosen.
    Switch(Arc<Instance>),
}
