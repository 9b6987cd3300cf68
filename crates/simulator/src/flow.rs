//! Flows: applications that write and read over one connection without a browser.

use crate::app::App;
use crate::fabric::EndpointId;
use crate::world::{ConnectionId, Dial, World, client_end, server_end};
use std::collections::VecDeque;
use wirepaint_run::{Flow as Asked, FlowKind, RateFrom, Side};
use wirepaint_units::{BitRate, Duration, Time};

/// A flow during a run.
pub struct Flow {
    dial: Dial,
    start: Time,
    /// When the sender closes; `None` afterwards.
    stop: Option<Time>,
    /// The time to stop has passed: nothing more is written.
    stopped: bool,
    writer: Writer,
    /// The sender's and the receiver's endpoint, once it is connected.
    ends: Option<(EndpointId, EndpointId)>,
    /// Bytes that wait for room in the send buffer.
    pending: u64,
    written: u64,
    received: u64,
    /// The sender will write no more.
    closed: bool,
    ended: Option<Time>,
}

/// Decides how much is written when.
enum Writer {
    Endless,
    /// All bytes were pending from the start.
    Once,
    Cbr {
        write_bytes: u64,
        rates: Vec<RateFrom>,
        rate: BitRate,
        next: Option<Time>,
        messages: Messages,
    },
    RequestResponse(Exchange),
}

/// The writes of a constant-rate flow and their delays to the reader.
#[derive(Default)]
struct Messages {
    /// Messages not read in full: one past the last byte of each, and when its write was due.
    under_way: VecDeque<(u64, Time)>,
    asked: u64,
    delays: Vec<Duration>,
}

impl Messages {
    fn write(&mut self, due: Time, bytes: u64) {
        self.asked += bytes;
        self.under_way.push_back((self.asked, due));
    }

    /// By `now`, `received` bytes of the flow were read.
    fn read(&mut self, now: Time, received: u64) {
        while let Some(&(_, due)) = self.under_way.front().filter(|(end, _)| *end <= received) {
            self.delays.push(now.since(due));
            self.under_way.pop_front();
        }
    }
}

struct Exchange {
    request_bytes: u64,
    response_bytes: u64,
    count: u64,
    pause: Duration,
    /// Answers received in full.
    answered: u64,
    request_received: u64,
    /// When the next request is due; `None` while one is open.
    next: Option<Time>,
    /// Bytes of the request that wait for the connection or for room in its send buffer.
    pending: u64,
}

impl Flow {
    /// Refuses values that are not accepted: key, found value, accepted values.
    pub fn check(asked: &Asked) -> Result<(), (&'static str, String, &'static str)> {
        let refuse = |key, found: String, accepted| Err((key, found, accepted));
        if asked.stop_ns.is_some_and(|stop| stop <= asked.start_ns) {
            return refuse("stop_ns", "a time before start_ns".to_owned(), "a later one");
        }
        match &asked.kind {
            FlowKind::Bulk { bytes: Some(0) } => {
                refuse("kind.bytes", "0".to_owned(), "at least 1, or null for no end")
            }
            FlowKind::Cbr { write_bytes: 0, .. } => refuse("kind.write_bytes", "0".to_owned(), "at least 1"),
            FlowKind::Cbr { rates, .. } if rates.is_empty() || !rates.is_sorted_by_key(|rate| rate.at_ns) => {
                refuse("kind.rates", format!("{} rates", rates.len()), "at least one, in order of time")
            }
            FlowKind::Cbr { write_bytes, rates }
                if rates.iter().any(|rate| too_fast(rate.bit_per_s, *write_bytes)) =>
            {
                refuse(
                    "kind.rates",
                    "more than a write a nanosecond".to_owned(),
                    "a lower rate, or larger writes",
                )
            }
            FlowKind::RequestResponse { request_bytes, response_bytes, count, .. }
                if *request_bytes == 0 || *response_bytes == 0 || *count == Some(0) =>
            {
                refuse("kind", "a size or count of 0".to_owned(), "at least 1")
            }
            _ => Ok(()),
        }
    }

    /// The flow of a description, over `dial`.
    pub fn new(asked: &Asked, dial: Dial) -> Flow {
        let mut pending = 0;
        let writer = match &asked.kind {
            FlowKind::Bulk { bytes: None } => Writer::Endless,
            FlowKind::Bulk { bytes: Some(bytes) } => {
                pending = *bytes;
                Writer::Once
            }
            FlowKind::Cbr { write_bytes, rates } => {
                let next = rates.first().map(|rate| rate.at_ns.max(asked.start_ns));
                let write_bytes = u64::from(*write_bytes);
                Writer::Cbr {
                    write_bytes,
                    rates: rates.clone(),
                    rate: BitRate(0),
                    next,
                    messages: Messages::default(),
                }
            }
            FlowKind::RequestResponse { request_bytes, response_bytes, count, pause_ns } => {
                Writer::RequestResponse(Exchange {
                    request_bytes: *request_bytes,
                    response_bytes: *response_bytes,
                    count: count.unwrap_or(u64::MAX),
                    pause: *pause_ns,
                    answered: 0,
                    request_received: 0,
                    next: Some(asked.start_ns),
                    pending: 0,
                })
            }
        };
        Flow {
            dial,
            start: asked.start_ns,
            stop: asked.stop_ns,
            stopped: false,
            writer,
            ends: None,
            pending,
            written: 0,
            received: 0,
            closed: false,
            ended: None,
        }
    }

    /// Writes and reads what is possible now.
    fn progress(&mut self, world: &mut World) {
        let (sender, receiver) = self.ends.expect("connected");
        if self.stop.take_if(|stop| *stop <= world.now).is_some() {
            self.stopped = true;
            self.pending = 0;
        }
        if self.stopped {
            self.close(world);
        }
        match &mut self.writer {
            _ if self.stopped || self.closed => {}
            Writer::Endless => self.pending = u64::MAX / 2,
            Writer::Once => {}
            Writer::Cbr { write_bytes, rates, rate, next, messages } => {
                while let Some(due) = next.filter(|due| *due <= world.now) {
                    let ahead = rates.partition_point(|entry| entry.at_ns <= due);
                    *rate = rates[ahead - 1].bit_per_s;
                    let change = rates.get(ahead).map(|entry| entry.at_ns);
                    let mut after = None;
                    if rate.0 > 0 {
                        self.pending += *write_bytes;
                        messages.write(due, *write_bytes);
                        after = Some(due + rate.transmission_time(*write_bytes));
                    }
                    *next = after.into_iter().chain(change).min();
                }
            }
            Writer::RequestResponse(exchange) => {
                let complete = self.received / exchange.response_bytes;
                if complete > exchange.answered {
                    exchange.answered = complete;
                    exchange.next = (complete < exchange.count).then(|| world.now + exchange.pause);
                }
                if exchange.next.is_some_and(|due| due <= world.now) {
                    exchange.next = None;
                    exchange.pending = exchange.request_bytes;
                }
                write(world, receiver, &mut exchange.pending);
                if exchange.request_received >= exchange.request_bytes {
                    exchange.request_received -= exchange.request_bytes;
                    self.pending += exchange.response_bytes;
                }
            }
        }
        self.written += write(world, sender, &mut self.pending);
        if self.has_written_all() {
            self.close(world);
        }
        if self.ended.is_none() && self.closed && self.received == self.written {
            self.ended = Some(world.now);
        }
    }

    fn has_written_all(&self) -> bool {
        self.pending == 0
            && match &self.writer {
                Writer::Endless => false,
                Writer::Once => true,
                Writer::Cbr { next, .. } => next.is_none(),
                Writer::RequestResponse(exchange) => exchange.answered >= exchange.count,
            }
    }

    fn close(&mut self, world: &mut World) {
        let (sender, _) = self.ends.expect("connected");
        if !self.closed && world.tcp(sender).is_established() {
            self.closed = true;
            world.close(sender);
        }
    }

    /// Delays of the messages read in full, in order; `None` unless the flow has a constant rate.
    pub fn message_delays(&self) -> Option<&[Duration]> {
        if let Writer::Cbr { messages, .. } = &self.writer { Some(&messages.delays) } else { None }
    }

    /// Its state.
    pub fn state(&self) -> FlowState {
        let rate = match &self.writer {
            Writer::Cbr { rate, .. } => Some(*rate),
            _ => None,
        };
        FlowState {
            connection: self.ends.map(|(sender, _)| sender / 2),
            started: self.start,
            ended: self.ended,
            rate,
            received: self.received,
        }
    }
}

fn too_fast(rate: BitRate, write_bytes: u32) -> bool {
    rate.transmission_time(u64::from(write_bytes)) == Duration(0)
}

/// Writes as much of the pending bytes as fits. After a write that found no room it waits for poll(). Returns
/// the bytes taken.
fn write(world: &mut World, endpoint: EndpointId, pending: &mut u64) -> u64 {
    let asked = *pending;
    while *pending > 0 && world.tcp(endpoint).is_established() && !world.tcp(endpoint).waits_for_space() {
        let taken = world.write(endpoint, *pending);
        if taken == 0 {
            break;
        }
        *pending -= taken;
    }
    asked - *pending
}

impl App for Flow {
    fn next(&self) -> Option<Time> {
        if self.ends.is_none() {
            return Some(self.start);
        }
        let own = match &self.writer {
            _ if self.stopped || self.closed => None,
            Writer::Cbr { next, .. } => *next,
            Writer::RequestResponse(exchange) => exchange.next,
            Writer::Endless | Writer::Once => None,
        };
        own.into_iter().chain(self.stop.filter(|_| !self.closed)).min()
    }

    fn wake(&mut self, world: &mut World) {
        if self.ends.is_none() {
            if world.now < self.start {
                return;
            }
            let connection = world.connect(self.dial.clone());
            let (client, server) = (client_end(connection), server_end(connection));
            self.ends = Some(match self.dial.sender {
                Side::Server => (server, client),
                Side::Client => (client, server),
            });
        }
        self.progress(world);
    }

    fn activity(&mut self, world: &mut World, endpoint: EndpointId) {
        let (_, receiver) = self.ends.expect("a connection that acts is open");
        let bytes = world.read(endpoint, u64::MAX);
        if endpoint == receiver {
            self.received += bytes;
            if let Writer::Cbr { messages, .. } = &mut self.writer {
                messages.read(world.now, self.received);
            }
        } else if let Writer::RequestResponse(exchange) = &mut self.writer {
            exchange.request_received += bytes;
        }
        self.progress(world);
    }

    fn is_over(&self) -> bool {
        self.ended.is_some()
    }
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Its connection, once there is one.
    pub connection: Option<ConnectionId>,
    /// When it connects.
    pub started: Time,
    /// When its last byte was received, once nothing more will be written.
    pub ended: Option<Time>,
    /// Present rate of writing.
    pub rate: Option<BitRate>,
    /// Payload bytes received.
    pub received: u64,
}
