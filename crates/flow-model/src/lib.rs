//! What a flow without a browser writes, and when: the same for the simulator and for real sockets.
//!
//! A [`Transfer`] is a flow's application on both sides of its connection. It reads no clock and has no sockets:
//! it is told the time and what was read, and it writes through [`Ends`].

mod kind;
mod messages;
mod transfer;

pub use kind::{FlowKind, RateFrom};
pub use messages::Message;
pub use transfer::{End, Ends, Transfer};
