//! One direction: in through one port, through the model, out through the other.

use crate::clients::Clients;
use crate::clock::RunClock;
use crate::frame::{Frame, Header, Store, mark_congestion};
use crate::histogram::Histogram;
use crate::port::{BATCH, NotSent, Port};
use crate::recorder::{LinkSample, Outcome, PacketRecord, Recorder};
use crate::summary::DirectionSummary;
use std::collections::VecDeque;
use wirepaint_link_model::{Counters, Link, LinkModel, Packet};
use wirepaint_units::{Duration, Time};

/// Frames read before a batch is sent: two batches, so that under overload they wait here, where there is
/// room, and not in the ring, which would overflow.
const READ_BUDGET: usize = 2 * BATCH;
/// Time before a retry when the far end has no room. Its CPU accepts some tens of packets in that time.
const RETRY: Duration = Duration::from_micros(50);
/// Time after which frames that find no room are dropped.
const PATIENCE: Duration = Duration::from_millis(100);
/// Cause in the table `packet` for frames that the model delivered and the far end refused.
const REFUSED: &str = "host";

/// State that both directions share.
pub(crate) struct Shared {
    pub clock: RunClock,
    pub store: Store,
    pub clients: Clients,
    pub recorder: Recorder,
    /// Actual departure minus due departure.
    pub lateness: Histogram,
    /// Largest frame with its Ethernet header.
    pub largest_frame: usize,
}

/// One direction.
pub(crate) struct Lane {
    pub name: &'static str,
    /// Its packets come from clients.
    is_up: bool,
    pub link: Link<Frame>,
    overhead_bytes: u32,
    /// Arrival of the last frame; frames arrive in the order of the ring.
    last_arrival: Time,
    /// Frames that are due and not sent yet, with their due times; at most a batch.
    outbox: VecDeque<(Time, Frame)>,
    /// Since when the far end has had no room.
    stuck_since: Option<Time>,
    retry_at: Time,
    lateness_since_sample: Duration,
    /// Time of the next sample.
    next_sample: Time,
    sample_interval: Duration,
    /// Samples that are taken and not recorded yet.
    samples: VecDeque<LinkSample>,
    /// Next time of a sample at which departures are counted.
    next_count: Time,
    /// Packets and bytes that had left at the times of the samples that are not recorded yet.
    left: VecDeque<(u64, u64)>,
    received: u64,
    oversized: u64,
    no_memory: u64,
    unfinished_checksums: u64,
    refused: u64,
    refused_bytes: u64,
}

impl Lane {
    /// `samples` are the time of the first sample and the interval.
    pub fn new(
        name: &'static str,
        link: Link<Frame>,
        overhead_bytes: u32,
        samples: (Time, Duration),
    ) -> Lane {
        Lane {
            name,
            is_up: name == "up",
            link,
            overhead_bytes,
            last_arrival: Time::ZERO,
            outbox: VecDeque::with_capacity(BATCH),
            stuck_since: None,
            retry_at: Time::ZERO,
            lateness_since_sample: Duration::ZERO,
            next_sample: samples.0,
            sample_interval: samples.1,
            samples: VecDeque::new(),
            next_count: samples.0,
            left: VecDeque::new(),
            received: 0,
            oversized: 0,
            no_memory: 0,
            unfinished_checksums: 0,
            refused: 0,
            refused_bytes: 0,
        }
    }

    /// Pushes at most `READ_BUDGET` frames that arrived.
    pub fn read(&mut self, port: &mut Port, shared: &mut Shared) {
        for _ in 0..READ_BUDGET {
            let more = port.receive(|frame| {
                self.received += 1;
                self.unfinished_checksums += u64::from(frame.unfinished_checksum);
                if frame.wire_bytes > shared.largest_frame || frame.wire_bytes != frame.data.len() {
                    self.oversized += 1;
                    return;
                }
                let Some(slot) = shared.store.put(frame.data) else {
                    self.no_memory += 1;
                    return;
                };
                // A sender that is preempted between a frame's stamp and the ring is overtaken by others.
                let arrival = shared.clock.arrival(frame.stamp).max(self.last_arrival);
                self.last_arrival = arrival;
                // A sample is recorded some ms after its time. Then frames of later times are in the queue.
                while self.next_sample < arrival {
                    let sample = self.taken(self.next_sample);
                    self.samples.push_back(sample);
                    self.next_sample += self.sample_interval;
                }
                let frame = Frame::new(slot, frame.data, arrival, &shared.clients, self.is_up);
                if let Some(client) = frame.client.filter(|_| self.is_up) {
                    shared.clients.sent(client, frame.ip_bytes());
                }
                self.link.push(arrival, frame);
            });
            if !more {
                break;
            }
        }
        self.bury(shared);
    }

    /// Sends at most a batch of frames that are due, as far as there is room.
    pub fn send(&mut self, port: &Port, shared: &mut Shared) {
        let now = shared.clock.now();
        if now < self.retry_at {
            return;
        }
        while self.outbox.len() < BATCH {
            // Not beyond the time of a sample, so that it counts what had left by then and no more.
            let until = now.min(self.next_count);
            if let Some(due) = self.link.pop(until) {
                self.outbox.push_back(due);
            } else if self.next_count <= now {
                let Counters { delivered_packets, delivered_bytes, .. } = self.link.counters();
                self.left.push_back((delivered_packets - self.refused, delivered_bytes - self.refused_bytes));
                self.next_count += self.sample_interval;
            } else {
                break;
            }
        }
        self.bury(shared);
        let count = self.outbox.len();
        if count == 0 {
            return;
        }
        // SAFETY: an all-zero iovec is valid; only those that are filled are used.
        let mut buffers: [libc::iovec; BATCH] = unsafe { std::mem::zeroed() };
        for (buffer, (_, frame)) in buffers.iter_mut().zip(&mut self.outbox) {
            let data = shared.store.frame_mut(frame);
            if std::mem::take(&mut frame.marked) {
                mark_congestion(data);
            }
            *buffer = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
        }
        let before = shared.clock.now();
        let sent = port.send(&mut buffers[..count]);
        let after = shared.clock.now();
        if sent != Err(NotSent::NoRoom) {
            self.stuck_since = None;
        }
        match sent {
            Ok(sent) => self.depart(sent, before, after, shared),
            Err(NotSent::Refused) => self.refuse(1, shared),
            Err(NotSent::NoRoom) => {
                let since = *self.stuck_since.get_or_insert(before);
                if after.since(since) >= PATIENCE {
                    self.stuck_since = None;
                    self.refuse(count, shared);
                }
                self.retry_at = after + RETRY;
            }
        }
    }

    /// Records frames that left one after the other between two times.
    fn depart(&mut self, count: usize, before: Time, after: Time, shared: &mut Shared) {
        let each = after.since(before).0 / count as u64;
        for (place, (due, frame)) in self.outbox.drain(..count).enumerate() {
            let out = before + Duration(each * place as u64);
            let late = out.since(due);
            shared.lateness.add(late.0);
            self.lateness_since_sample = self.lateness_since_sample.max(late);
            if let Some(client) = frame.client.filter(|_| !self.is_up) {
                shared.clients.received(client, frame.ip_bytes());
            }
            shared.end(self.name, self.overhead_bytes, &frame, Outcome::Delivered { due, out });
        }
    }

    /// Drops frames that the far interface does not accept.
    fn refuse(&mut self, count: usize, shared: &mut Shared) {
        for (_, frame) in self.outbox.drain(..count) {
            self.refused += 1;
            self.refused_bytes += u64::from(frame.ip_bytes() + self.overhead_bytes);
            shared.end(self.name, self.overhead_bytes, &frame, Outcome::Dropped(REFUSED));
        }
    }

    /// Records dropped packets and frees their memory.
    fn bury(&mut self, shared: &mut Shared) {
        while let Some(dropped) = self.link.take_dropped() {
            let outcome = Outcome::Dropped(dropped.cause.name());
            shared.end(self.name, self.overhead_bytes, &dropped.packet, outcome);
        }
    }

    /// When the lane must act, unless a frame arrives before.
    pub fn next_departure(&self) -> Option<Time> {
        if self.outbox.is_empty() { self.link.next_departure() } else { Some(self.retry_at) }
    }

    /// A sample of the table `link`: of the next time, or at the end of the run.
    pub fn sample(&mut self, time: Time) -> LinkSample {
        let mut sample = match self.samples.pop_front() {
            Some(sample) => sample,
            None => {
                if time == self.next_sample {
                    self.next_sample += self.sample_interval;
                }
                self.taken(time)
            }
        };
        debug_assert_eq!(sample.time, time);
        if let Some((packets, bytes)) = self.left.pop_front() {
            (sample.counters.delivered_packets, sample.counters.delivered_bytes) = (packets, bytes);
        }
        sample
    }

    fn taken(&mut self, time: Time) -> LinkSample {
        self.link.evaluate(time);
        LinkSample {
            time,
            direction: self.name,
            counters: self.counters(),
            lateness_max: std::mem::take(&mut self.lateness_since_sample),
        }
    }

    /// The model's counters. Frames that the far interface has not accepted yet count as inside; those that
    /// it refused do not count as delivered.
    fn counters(&self) -> Counters {
        let mut counters = self.link.counters();
        let waiting_bytes: u64 =
            self.outbox.iter().map(|(_, frame)| u64::from(frame.ip_bytes() + self.overhead_bytes)).sum();
        counters.delivered_packets -= self.refused + self.outbox.len() as u64;
        counters.delivered_bytes -= self.refused_bytes + waiting_bytes;
        counters.inside_packets += self.outbox.len() as u64;
        counters
    }

    /// The summary of the run; `input` is the port that the lane reads.
    pub fn summary(&self, input: &mut Port) -> Result<DirectionSummary, crate::Error> {
        Ok(DirectionSummary {
            counters: self.counters(),
            received_packets: self.received,
            ring_drops: input.ring_drops()?,
            backlog_drops: input.backlog_drops()?,
            send_failures: self.refused,
            oversized: self.oversized,
            no_memory: self.no_memory,
            unfinished_checksums: self.unfinished_checksums,
        })
    }
}

impl Shared {
    /// Records a frame's fate and frees its memory.
    fn end(&mut self, direction: &'static str, overhead_bytes: u32, frame: &Frame, outcome: Outcome) {
        let data = self.store.frame_mut(frame);
        self.recorder.packet(|| PacketRecord {
            direction,
            arrival: frame.arrival,
            outcome,
            wire_bytes: frame.ip_bytes() + overhead_bytes,
            header: Header::parse(data),
        });
        self.store.release(frame.slot);
    }
}
