use crate::bottleneck::{WORK_PER_BYTE, done_at, work_done};
use crate::config::{Capacity, Direction, Limits, Queue};
use crate::delay::Latency;
use crate::queue::Backlog;
use std::collections::VecDeque;
use wirepaint_units::{BitRate, Duration, Time};

/// A drop-tail queue, a constant rate and a delay that keeps the order. Later arrivals do not change a
/// packet's departure, so it is computed on arrival, and a packet is stored once.
///
/// Most links of a simulation are of this kind. Its departures equal those of the separate parts of
/// [`Link`](crate::Link) to the nanosecond, at less cost.
#[derive(Debug)]
pub(crate) struct Plain<P> {
    rate: BitRate,
    latency: Latency,
    most: Backlog,
    /// Packets waiting, in transmission and under way, in this order from the back.
    inside: VecDeque<Inside<P>>,
    /// Number of packets in `inside` whose transmission has begun.
    begun: usize,
    waiting_bytes: u64,
    last: Transmission,
}

#[derive(Debug)]
struct Inside<P> {
    /// When its transmission begins.
    start: Time,
    due: Time,
    bytes: u64,
    packet: P,
}

/// The last transmission, with its work in bit nanoseconds.
#[derive(Debug, Default)]
struct Transmission {
    start: Time,
    work: u64,
    done: Time,
}

impl<P> Plain<P> {
    /// The link of a configuration, if it is of this kind.
    pub fn new(config: &Direction, latency: Latency) -> Option<Plain<P>> {
        let (Capacity::Rate { bit_per_s: rate }, Queue::Droptail(Limits { packets, bytes })) =
            (&config.capacity, &config.queue)
        else {
            return None;
        };
        let constant = rate.0 > 0 && config.changes.is_empty() && config.scripted.is_empty();
        (constant && !config.jitter.reorders()).then(|| Plain {
            rate: *rate,
            latency,
            most: Backlog { packets: packets.unwrap_or(u64::MAX), bytes: bytes.unwrap_or(u64::MAX) },
            inside: VecDeque::new(),
            begun: 0,
            waiting_bytes: 0,
            last: Transmission::default(),
        })
    }

    /// Evaluates the queue up to `now`. Returns when a transmission last began or ended.
    pub fn evaluate(&mut self, now: Time) -> Time {
        let mut latest = Time::ZERO;
        while let Some(next) = self.inside.get(self.begun).filter(|next| next.start <= now) {
            latest = next.start;
            self.waiting_bytes -= next.bytes;
            self.begun += 1;
        }
        if self.last.done <= now { self.last.done } else { latest }
    }

    /// Accepts a packet of `bytes` wire bytes, or returns it. `now` is not before any earlier event.
    pub fn push(&mut self, now: Time, packet: P, bytes: u64) -> Result<(), P> {
        // No more waits now than when the queue was last evaluated.
        if !self.fits(bytes) {
            self.evaluate(now);
            if !self.fits(bytes) {
                return Err(packet);
            }
        }
        let idle = self.last.done <= now;
        let (start, work) = if idle {
            (now, bytes * WORK_PER_BYTE)
        } else {
            // This packet gets the part of a nanosecond that the previous one did not need.
            let last = &self.last;
            let ahead = work_done(self.rate, last.done.since(last.start)) - last.work;
            (last.done, (bytes * WORK_PER_BYTE).saturating_sub(ahead))
        };
        let done = done_at(self.rate, start, work);
        self.last = Transmission { start, work, done };
        let due = self.latency.due(done);
        self.inside.push_back(Inside { start, due, bytes, packet });
        if idle {
            self.begun = self.inside.len();
            self.waiting_bytes = 0;
        } else {
            self.waiting_bytes += bytes;
        }
        Ok(())
    }

    fn fits(&self, bytes: u64) -> bool {
        let backlog = self.backlog();
        backlog.packets < self.most.packets && backlog.bytes.saturating_add(bytes) <= self.most.bytes
    }

    /// The next packet that is due by `now`, with its due time and wire bytes.
    pub fn pop(&mut self, now: Time) -> Option<(Time, u64, P)> {
        self.inside.front().filter(|first| first.due <= now)?;
        let first = self.inside.pop_front()?;
        if self.begun > 0 {
            self.begun -= 1;
        } else {
            self.waiting_bytes -= first.bytes;
        }
        Some((first.due, first.bytes, first.packet))
    }

    pub fn next_due(&self) -> Option<Time> {
        self.inside.front().map(|first| first.due).filter(|due| *due < Time::MAX)
    }

    /// When the packet that came last is due.
    pub fn last_due(&self) -> Time {
        self.latency.last_due()
    }

    pub fn departures(&self) -> impl Iterator<Item = (Time, &P)> {
        self.inside.iter().map(|inside| (inside.due, &inside.packet))
    }

    /// Shortest transit time of a packet of `bytes` through the empty link.
    pub fn least_transit(&self, bytes: u64) -> Duration {
        done_at(self.rate, Time::ZERO, bytes * WORK_PER_BYTE).since(Time::ZERO) + self.latency.least()
    }

    /// The packet that is due next.
    pub fn front(&self) -> Option<&P> {
        self.inside.front().map(|first| &first.packet)
    }

    /// The backlog at the time up to which the queue was evaluated.
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: (self.inside.len() - self.begun) as u64, bytes: self.waiting_bytes }
    }

    pub fn len(&self) -> usize {
        self.inside.len()
    }
}
