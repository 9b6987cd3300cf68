//! Events of a sender in a script.

use std::sync::Arc;
use wirepaint_congestion_native::Instance;

/// An event of the application or the path, with the sender's state before it.
pub struct Entry {
    /// Place in the order of all events of the script.
    pub order: u64,
    /// The sender's clock.
    pub at_us: u64,
    /// Segments delivered before it.
    pub delivered: u32,
    /// Data segments sent before it, retransmissions included.
    pub sent: u32,
    /// Retransmissions before it.
    pub retransmitted: u32,
    /// The event.
    pub what: What,
}

/// An event of the application or the path. Packets have the numbers of their transmissions, from 1.
pub enum What {
    /// The connection is established and has its congestion control.
    Open,
    /// The application wrote N segments; `None` is endless.
    Write(Option<u64>),
    /// The application stops writing; unsent segments are dropped.
    StopWriting,
    /// Packets in flight were lost.
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
    /// A packet and its delay beyond the path's round-trip time, in microseconds.
    Delay(u32, u64),
    /// The receiver offers another window.
    ReceiveWindow,
    /// A real path cannot carry out the script, for this reason.
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
