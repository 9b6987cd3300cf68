//! The emulated path: capacity, delay, jitter, loss and queue of one direction, as pure state.
//!
//! Reads no clock, does no I/O, starts no thread: time is passed in and [`LinkModel::next_departure`]
//! answers "when next?". The emulator drives it with the real clock, the simulator with a virtual one.
//!
//! A packet passes, in this order: random loss ([`config::Loss`]) and the script of single packets
//! ([`config::Scripted`]), the queue discipline ([`mod@queue`]), the bottleneck ([`config::Capacity`]), the
//! delay with its jitter. The bottleneck is evaluated lazily on the times that are passed in, so a caller
//! that wakes late gets the same departures as one that is punctual.
//!
//! Start at [`Link`]; [`config`] is its part of a run description.

mod bottleneck;
mod carriable;
mod check;
pub mod config;
mod delay;
mod link;
mod loss;
mod packet;
mod plain;
pub mod queue;
mod random;
mod refused;
mod script;

pub use link::{Counters, Link};
pub use packet::{Drop, Dropped, Packet};
pub use refused::ConfigError;

use wirepaint_units::Time;

/// One direction of a path.
///
/// The caller pushes each packet when it arrives and pops until `None` whenever
/// [`next_departure`](Self::next_departure) has come. Popping too early or too often is harmless;
/// popping late only delays the caller, never changes a due time. Departures that are due at the
/// time of an arrival happen before it.
pub trait LinkModel<P> {
    /// A packet arrives at `now`. If `now` precedes the latest event at the queue, that event's time counts
    /// instead ([`Counters::largest_shift`]).
    fn push(&mut self, now: Time, packet: P);

    /// The next packet that is due by `now`, with its due time; due times never run back.
    fn pop(&mut self, now: Time) -> Option<(Time, P)>;

    /// Nothing departs before this time unless something is pushed; `None`: the link is empty. It may be too
    /// early: `pop` then returns nothing and the next answer is later.
    fn next_departure(&self) -> Option<Time>;
}
