//! TCP endpoints without sockets, as Linux 6.18 implements them.
//!
//! An [`Endpoint`] is one side of a connection. It reads no clock and sends nothing itself:
//!
//! * time goes in with every call and never runs back;
//! * after each call, call [`Endpoint::transmit`] until it returns `None` and put its segments on the path;
//! * if connections may share a window, then ask [`SharedWindows::next`] which other endpoint must act;
//! * [`Endpoint::next_timeout`] says when to call [`Endpoint::timeout`]. Calling it early or once too
//!   often is harmless, so a timer need not be cancelled: look again when it fires.
//!
//! Bytes have no contents: [`write`](Endpoint::write) and [`read`](Endpoint::read) take numbers of bytes. The
//! congestion control is one of `congestion/`, called as the kernel calls it.
//!
//! * [`Config`]: sysctls and socket options; [`Segment`]: a segment on the path;
//! * `endpoint` (the application's side), `handshake`, `input` (an ACK from arrival to answer), `sacks` and
//!   `scoreboard` (what is known of each segment), `recovery` (state machine, undo, PRR), `loss` (RACK, RFC
//!   6675, NewReno), `output` (sending), `timers`, `receiver` and `reassembly` (the other half), `shared`
//!   (windows that connections share, which Linux lacks). Each function names its counterpart in Linux, if it
//!   has one.
//!
//! `DEVIATION` marks where Linux behaves differently, with the reason. General deviations:
//!
//! * DEVIATION: nothing waits in the sending host. Linux holds a flow to about a millisecond of data between
//!   socket and device (TCP small queues). That matters when several ACKs arrive within microseconds; behind a
//!   bottleneck they do not.
//! * DEVIATION: copying takes the application no time. While Linux's reader copies, arriving segments wait
//!   (the backlog) and are acknowledged together, and its receive buffer grows a little less.
//! * DEVIATION: retransmitted segments are never merged (tcp_retrans_try_collapse), so lost small writes are
//!   repaired one by one.
//! * DEVIATION: jiffies begin with the run; on Linux their phase is random, and timers shift by up to 4 ms
//!   (32 ms beyond a quarter of a second). Visits of an evaluation begin at any time between two ticks.
//! * DEVIATION: the client's SYN-ACK calls no hook of the congestion control before `init`.
//! * Left out, as the testbed uses none of it: fast open, urgent data, path MTU discovery, keep-alive,
//!   TCP_CORK, TCP_USER_TIMEOUT, resets, SACK reneging, autocorking.

mod clock;
mod config;
mod endpoint;
mod handshake;
mod input;
mod loss;
mod output;
mod reassembly;
mod receiver;
mod recovery;
mod rtt;
mod sacks;
mod sample;
mod scoreboard;
mod segment;
mod shared;
mod timers;

pub use clock::BOOT_NS;
pub use config::{Config, Ecn, LossDetection, Peer};
pub use endpoint::Endpoint;
pub use sample::{Event, Info, Sample};
pub use segment::{Segment, flags};
pub use shared::SharedWindows;
