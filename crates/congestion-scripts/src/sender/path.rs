//! The path, the receiver and the clock. A segment's ACK arrives one round-trip time after it was sent.

use super::{JIFFY_US, Sender};
use crate::entry::What;
use std::collections::BTreeSet;

/// One passage of a segment over the path.
pub(super) struct Transmission {
    pub segment: u64,
    pub due_us: u64,
    /// Its number among the sender's data packets, from 1.
    pub number: u32,
}

/// Findings of the state machine and cleaning about the current ACK.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    pub una_advanced: bool,
    pub data_sacked: bool,
    pub duplicate: bool,
    pub ece: bool,
    pub lost_retransmission: bool,
}

/// The receiver's acknowledgement.
pub(super) struct Ack {
    /// First segment that has not arrived.
    pub next: u64,
    /// Segments beyond it that have arrived.
    pub sacked: Vec<u64>,
    /// Number of segments that had arrived before (DSACK).
    pub duplicates: u32,
    pub ece: bool,
}

#[derive(Default)]
pub(super) struct Receiver {
    /// First segment that has not arrived.
    next: u64,
    /// Segments beyond it that have arrived.
    beyond: BTreeSet<u64>,
}

impl Receiver {
    /// Segments arrive and are answered by one ACK.
    fn answer(&mut self, segments: impl IntoIterator<Item = u64>, ece: bool) -> Ack {
        let mut duplicates = 0;
        for segment in segments {
            if segment < self.next || !self.beyond.insert(segment) {
                duplicates += 1;
            }
            while self.beyond.remove(&self.next) {
                self.next += 1;
            }
        }
        Ack { next: self.next, sacked: self.beyond.iter().copied().collect(), duplicates, ece }
    }
}

impl Sender {
    /// Segments on their way to the receiver and back.
    pub fn on_the_way(&self) -> u64 {
        self.path.len() as u64
    }

    /// When the next segment arrives or the reordering timer fires.
    pub fn due_us(&self) -> Option<u64> {
        self.path.front().map(|t| t.due_us).into_iter().chain(self.rack.timer_us).min()
    }

    /// Sets the round-trip time of segments sent from now on; false below the path's first round-trip time.
    pub fn set_rtt(&mut self, us: u64) -> bool {
        let allowed = us >= self.config.rtt_us;
        if allowed {
            self.rtt_us = us;
        }
        allowed
    }

    /// Time passes; segments that arrive within it are acknowledged.
    pub fn advance(&mut self, us: u64) {
        self.advance_to(self.now_us + us);
    }

    /// Like [`advance`](Self::advance), until a time; does nothing if that has passed.
    pub fn advance_to(&mut self, end: u64) {
        while self.step(end) {}
        self.set_clock(end);
    }

    /// Carries out the next event due until `end`; false when there is none.
    pub(crate) fn step(&mut self, end: u64) -> bool {
        let arrival = self.path.front().map_or(u64::MAX, |t| t.due_us);
        let timer = self.rack.timer_us.unwrap_or(u64::MAX);
        if arrival.min(timer) > end {
            return false;
        }
        if arrival <= timer {
            self.arrive(1, false);
        } else {
            self.set_clock(timer);
            self.reorder_timeout();
        }
        true
    }

    /// The next `arrivals` segments arrive, one ACK each; false if nothing was in flight.
    pub fn ack(&mut self, arrivals: u64, ece: bool) -> bool {
        for _ in 0..arrivals {
            let Some(due) = self.path.front().map(|t| t.due_us) else { return false };
            while self.rack.timer_us.is_some_and(|timer| timer < due) {
                self.step(due);
            }
            self.arrive(1, ece);
        }
        true
    }

    /// The next `arrivals` segments arrive and are answered by a single ACK.
    pub fn stretch(&mut self, arrivals: u64, ece: bool) -> bool {
        let enough = self.path.len() as u64 >= arrivals;
        if enough {
            self.arrive(arrivals, ece);
        }
        enough
    }

    /// Loses `count` transmissions in flight, from the `at`-th on (from 1).
    pub fn lose(&mut self, count: usize, at: usize) -> bool {
        let Some(taken) = self.take(count, at) else { return false };
        self.note(What::Lose(taken.iter().map(|t| t.number).collect()));
        true
    }

    /// Like [`lose`](Self::lose), but they arrive at [`release_held`](Self::release_held).
    pub fn hold(&mut self, count: usize, at: usize) -> bool {
        let Some(taken) = self.take(count, at) else { return false };
        self.note(What::Hold(taken.iter().map(|t| (t.number, t.due_us)).collect()));
        self.held.extend(taken);
        true
    }

    /// The held segments arrive now.
    pub fn release_held(&mut self) {
        self.note(What::Release);
        for transmission in std::mem::take(&mut self.held) {
            self.note(What::Arrive { data: vec![transmission.number], ece: false });
            let ack = self.receiver.answer([transmission.segment], false);
            self.on_ack(ack);
        }
    }

    fn take(&mut self, count: usize, at: usize) -> Option<Vec<Transmission>> {
        let range = (at - 1)..(at - 1 + count);
        (range.end <= self.path.len()).then(|| self.path.drain(range).collect())
    }

    /// Time passes until `us`; it never runs back.
    pub(super) fn set_clock(&mut self, us: u64) {
        let us = self.now_us.max(us);
        self.now_us = us;
        let tp = &mut self.connection.tp;
        tp.cc_clock_us = us;
        tp.tcp_mstamp = us;
        tp.tcp_clock_cache = us * 1000;
        tp.cc_jiffies = (us / JIFFY_US) as u32;
    }

    fn arrive(&mut self, count: u64, ece: bool) {
        let arrived: Vec<Transmission> = self.path.drain(..count as usize).collect();
        self.set_clock(arrived[arrived.len() - 1].due_us);
        self.note(What::Arrive { data: arrived.iter().map(|t| t.number).collect(), ece });
        let ack = self.receiver.answer(arrived.iter().map(|t| t.segment), ece);
        self.on_ack(ack);
    }
}
