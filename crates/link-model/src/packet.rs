use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_units::Time;

/// The packets that a script counts. SYN, FIN and RST segments count in neither kind,
/// retransmissions like any other packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// TCP segments and UDP datagrams with payload.
    #[default]
    Data,
    /// TCP segments without payload: pure acknowledgements.
    Bare,
}

/// A packet as the model sees it: a frame in the emulator, a few words in the simulator.
pub trait Packet {
    /// Length of the IP packet in bytes, without any link header.
    fn ip_bytes(&self) -> u32;

    /// True when the packet may be marked instead of dropped (ECT(0), ECT(1) or CE; RFC 3168).
    fn is_ecn_capable(&self) -> bool;

    /// Sets Congestion Experienced. Only called when [`is_ecn_capable`](Self::is_ecn_capable).
    fn mark_congestion(&mut self);

    /// A number that is equal for the packets of one flow (a hash of the 5-tuple).
    fn flow(&self) -> u64;

    /// Its DSCP (RFC 2474), 0 to 63; 0 without one.
    fn dscp(&self) -> u8;

    /// How a script counts the packet; `None`: not at all (SYN, FIN, RST, no transport).
    fn counted_as(&self) -> Option<Counted>;
}

/// Why the model dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The queue was full.
    Queue,
    /// The queue discipline dropped it before the queue was full.
    Aqm,
    /// The loss model.
    Loss,
}

impl Drop {
    /// The word that the trace uses.
    pub fn name(self) -> &'static str {
        match self {
            Drop::Queue => "queue",
            Drop::Aqm => "aqm",
            Drop::Loss => "loss",
        }
    }
}

/// A packet that will not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// When it was dropped.
    pub time: Time,
    /// Why.
    pub cause: Drop,
    /// The packet.
    pub packet: P,
}
