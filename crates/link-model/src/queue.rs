//! Queue disciplines: one file each, and a line of `disciplines!`.

pub mod classes;
pub mod codel;
mod droptail;
pub mod fq_codel;
pub mod pie;

pub use droptail::Limits;

use crate::packet::{Drop, Dropped, Packet};
use crate::random::Stream;
use crate::refused::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Debug;
use wirepaint_units::{Duration, Time};

/// A packet in the queue.
#[derive(Debug)]
pub struct Queued<P> {
    /// The packet.
    pub packet: P,
    /// When it entered.
    pub entered: Time,
    /// Its wire bytes: IP bytes plus the link's overhead.
    pub bytes: u64,
    /// Additional delay; zero unless a script holds the packet.
    pub hold: Duration,
}

/// A queue discipline. The packet in transmission is no longer in the queue.
///
/// Times passed in never run back.
pub trait Discipline<P>: Debug {
    /// Takes a packet in, or drops it or others into `fates`.
    fn enqueue(&mut self, now: Time, packet: Queued<P>, fates: &mut Fates<P>);

    /// The packet to transmit next; `None` when the queue is empty, or when all that wait must wait longer.
    fn dequeue(&mut self, now: Time, fates: &mut Fates<P>) -> Option<Queued<P>>;

    /// When a packet may be transmitted, if all that wait must wait.
    fn ready(&self) -> Option<Time> {
        None
    }

    /// Packets and wire bytes waiting.
    fn backlog(&self) -> Backlog;
}

/// Packets and bytes waiting in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Wire bytes.
    pub bytes: u64,
}

/// A discipline's part of a run description.
pub(crate) trait Configured {
    /// Refuses values that the discipline does not support; `full_frame` is the wire length of the largest packet.
    fn check(&self, full_frame: u32) -> Result<(), ConfigError>;

    /// The empty queue.
    fn build<P: Packet + Debug + 'static>(&self, full_frame: u64, stream: Stream) -> Box<dyn Discipline<P>>;
}

macro_rules! disciplines {
    ($($(#[doc = $doc:literal])* $name:ident($config:ty),)*) => {
        /// Queue discipline.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum Queue {
            $($(#[doc = $doc])* $name($config),)*
        }

        impl Queue {
            /// Refuses values that the discipline does not support.
            pub(crate) fn check(&self, full_frame: u32) -> Result<(), ConfigError> {
                match self {
                    $(Queue::$name(config) => config.check(full_frame),)*
                }
            }

            /// The empty queue.
            pub(crate) fn build<P: Packet + Debug + 'static>(
                &self,
                full_frame: u64,
                stream: Stream,
            ) -> Box<dyn Discipline<P>> {
                match self {
                    $(Queue::$name(config) => config.build(full_frame, stream),)*
                }
            }
        }
    };
}

disciplines! {
    /// Drop-tail; give one limit or both. Without a limit nothing is dropped. The packet in
    /// transmission does not count, in any discipline.
    Droptail(Limits),
    /// CoDel (RFC 8289).
    Codel(codel::Config),
    /// FQ-CoDel (RFC 8290).
    FqCodel(fq_codel::Config),
    /// Service classes by the packets' code point: a drop-tail queue each, strict priority between
    /// levels, weighted shares within one (start-time fair queueing, Goyal, Vin, Cheng 1996).
    Classes(classes::Config),
    /// PIE (RFC 8033).
    Pie(pie::Config),
}

/// Packets that disciplines dropped, and counters of drops and marks.
#[derive(Debug)]
pub struct Fates<P> {
    /// Dropped packets that the caller has not taken yet.
    pub dropped: VecDeque<Dropped<P>>,
    /// Drops because the queue was full.
    pub queue_drops: u64,
    /// Drops before it was full.
    pub aqm_drops: u64,
    /// Packets lost by the loss model.
    pub losses: u64,
    /// Wire bytes of all dropped packets.
    pub dropped_bytes: u64,
    /// Packets marked with Congestion Experienced.
    pub marks: u64,
}

impl<P> Default for Fates<P> {
    fn default() -> Fates<P> {
        Fates {
            dropped: VecDeque::new(),
            queue_drops: 0,
            aqm_drops: 0,
            losses: 0,
            dropped_bytes: 0,
            marks: 0,
        }
    }
}

impl<P: Packet> Fates<P> {
    /// Drops the packet.
    pub fn drop(&mut self, time: Time, cause: Drop, queued: Queued<P>) {
        match cause {
            Drop::Queue => self.queue_drops += 1,
            Drop::Aqm => self.aqm_drops += 1,
            Drop::Loss => self.losses += 1,
        }
        self.dropped_bytes += queued.bytes;
        self.dropped.push_back(Dropped { time, cause, packet: queued.packet });
    }

    /// Marks the packet if it may be marked. Returns whether it did.
    pub fn mark(&mut self, packet: &mut P) -> bool {
        let capable = packet.is_ecn_capable();
        if capable {
            packet.mark_congestion();
            self.marks += 1;
        }
        capable
    }
}

/// First in, first out, with its length in bytes.
#[derive(Debug)]
struct Fifo<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u64,
}

impl<P> Default for Fifo<P> {
    fn default() -> Fifo<P> {
        Fifo { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P> Fifo<P> {
    fn push(&mut self, packet: Queued<P>) {
        self.bytes += packet.bytes;
        self.packets.push_back(packet);
    }

    fn pop(&mut self) -> Option<Queued<P>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= packet.bytes;
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }
}

#[cfg(test)]
mod testing {
    use super::*;
    use crate::config::Counted;

    /// A packet with a number, a flow and an ECN field.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Numbered {
        pub number: u64,
        pub flow: u64,
        pub ecn: bool,
        pub marked: bool,
    }

    impl Packet for Numbered {
        fn ip_bytes(&self) -> u32 {
            1500
        }
        fn is_ecn_capable(&self) -> bool {
            self.ecn
        }
        fn mark_congestion(&mut self) {
            self.marked = true;
        }
        fn flow(&self) -> u64 {
            self.flow
        }
        fn dscp(&self) -> u8 {
            self.number as u8
        }
        fn counted_as(&self) -> Option<Counted> {
            Some(Counted::Data)
        }
    }

    pub fn queued(number: u64, flow: u64, entered: Time) -> Queued<Numbered> {
        let packet = Numbered { number, flow, ecn: false, marked: false };
        Queued { packet, entered, bytes: 1514, hold: Duration::ZERO }
    }

    pub fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }
}
