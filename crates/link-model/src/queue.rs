//! Queue disciplines: one file each, chosen by [`build`].

mod classes;
mod codel;
mod droptail;
mod fq_codel;
mod pie;

use crate::config::Queue;
use crate::packet::{Drop, Dropped, Packet};
use crate::random::Stream;
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

    /// The packet to transmit next; `None` when the queue is empty.
    fn dequeue(&mut self, now: Time, fates: &mut Fates<P>) -> Option<Queued<P>>;

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

/// Builds the discipline of a run description. `full_frame` is the wire length of the largest packet.
pub(crate) fn build<P: Packet + Debug + 'static>(
    config: &Queue,
    full_frame: u64,
    stream: Stream,
) -> Box<dyn Discipline<P>> {
    match *config {
        Queue::Classes { ref classes } => Box::new(classes::Classes::new(classes)),
        Queue::Droptail { packets, bytes } => Box::new(droptail::DropTail::new(packets, bytes)),
        Queue::Codel { target_ns, interval_ns, packets, ecn } => Box::new(codel::Codel::new(
            codel::Parameters { target: target_ns, interval: interval_ns, ecn, full_frame },
            packets,
        )),
        Queue::FqCodel { flows, quantum, target_ns, interval_ns, packets, ecn } => {
            let codel = codel::Parameters { target: target_ns, interval: interval_ns, ecn, full_frame };
            Box::new(fq_codel::FqCodel::new(codel, flows, quantum, packets, stream))
        }
        Queue::Pie { target_ns, update_ns, packets, ecn } => {
            Box::new(pie::Pie::new(target_ns, update_ns, packets, ecn, stream))
        }
    }
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
