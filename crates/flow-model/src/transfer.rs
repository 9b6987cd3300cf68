//! A flow's application on both sides of its connection.

use crate::kind::{FlowKind, RateFrom};
use crate::messages::{Message, Messages};
use wirepaint_units::{BitRate, Duration, Time};

/// An end of a flow's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Sends the flow's data.
    Sender,
    /// Receives it.
    Receiver,
}

/// The connection under a flow.
pub trait Ends {
    /// Writes as many of `bytes` as fit into an end's send buffer; returns how many. None before the end is
    /// connected, or while it waits for room.
    fn write(&mut self, end: End, bytes: u64) -> u64;

    /// Ends the sender's direction; false before it is connected.
    fn close(&mut self) -> bool;
}

/// A flow's application.
///
/// Times are counted from the flow's beginning ([`Transfer::begin`]) until then, and absolute from then on.
pub struct Transfer {
    start: Time,
    /// When the sender closes; `None` afterwards.
    stop: Option<Time>,
    /// The time to stop has passed: nothing more is written.
    stopped: bool,
    writer: Writer,
    /// Bytes that wait for room in the send buffer.
    pending: u64,
    written: u64,
    received: u64,
    /// The sender will write no more.
    closed: bool,
    ended: Option<Time>,
    messages: Vec<Message>,
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

struct Exchange {
    request_bytes: u64,
    response_bytes: u64,
    count: u64,
    pause: Duration,
    /// Answers received in full.
    answered: u64,
    request_received: u64,
    /// When the open request was written.
    asked: Time,
    /// When the next request is due; `None` while one is open.
    next: Option<Time>,
    /// Bytes of the request that wait for the connection or for room in its send buffer.
    pending: u64,
}

impl Transfer {
    /// The flow of a checked description.
    pub fn new(kind: &FlowKind, start: Time, stop: Option<Time>) -> Transfer {
        let mut pending = 0;
        let writer = match kind {
            FlowKind::Bulk { bytes: None } => Writer::Endless,
            FlowKind::Bulk { bytes: Some(bytes) } => {
                pending = *bytes;
                Writer::Once
            }
            FlowKind::Cbr { write_bytes, rates } => Writer::Cbr {
                write_bytes: u64::from(*write_bytes),
                rates: rates.clone(),
                rate: BitRate(0),
                next: None,
                messages: Messages::default(),
            },
            FlowKind::RequestResponse { request_bytes, response_bytes, count, pause_ns } => {
                Writer::RequestResponse(Exchange {
                    request_bytes: *request_bytes,
                    response_bytes: *response_bytes,
                    count: count.unwrap_or(u64::MAX),
                    pause: *pause_ns,
                    answered: 0,
                    request_received: 0,
                    asked: Time::ZERO,
                    next: None,
                    pending: 0,
                })
            }
        };
        Transfer {
            start,
            stop,
            stopped: false,
            writer,
            pending,
            written: 0,
            received: 0,
            closed: false,
            ended: None,
            messages: Vec::new(),
        }
    }

    /// Counts the flow's times from `origin`. Call once, before anything else; returns when it connects.
    pub fn begin(&mut self, origin: Time) -> Time {
        let later = origin.since(Time::ZERO);
        self.start += later;
        self.stop = self.stop.map(|stop| stop + later);
        match &mut self.writer {
            Writer::Cbr { rates, next, .. } => {
                rates.iter_mut().for_each(|rate| rate.at_ns += later);
                *next = rates.first().map(|rate| rate.at_ns.max(self.start));
            }
            Writer::RequestResponse(exchange) => exchange.next = Some(self.start),
            Writer::Endless | Writer::Once => {}
        }
        self.start
    }

    /// An end has read `bytes`.
    pub fn read(&mut self, now: Time, end: End, bytes: u64) {
        match (end, &mut self.writer) {
            (End::Receiver, writer) => {
                self.received += bytes;
                if let Writer::Cbr { messages, .. } = writer {
                    messages.read(now, self.received, &mut self.messages);
                }
            }
            (End::Sender, Writer::RequestResponse(exchange)) => exchange.request_received += bytes,
            (End::Sender, _) => {}
        }
    }

    /// Writes what is possible now.
    pub fn progress(&mut self, now: Time, ends: &mut impl Ends) {
        if self.stop.take_if(|stop| *stop <= now).is_some() {
            self.stopped = true;
            self.pending = 0;
        }
        if self.stopped {
            self.close(ends);
        }
        match &mut self.writer {
            _ if self.stopped || self.closed => {}
            Writer::Endless => self.pending = u64::MAX / 2,
            Writer::Once => {}
            Writer::Cbr { write_bytes, rates, rate, next, messages } => {
                while let Some(due) = next.filter(|due| *due <= now) {
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
                    exchange.next = (complete < exchange.count).then(|| now + exchange.pause);
                    let (due, bytes) = (exchange.asked, exchange.response_bytes);
                    self.messages.push(Message { due, read: now, bytes });
                }
                if let Some(due) = exchange.next.take_if(|due| *due <= now) {
                    exchange.asked = due;
                    exchange.pending = exchange.request_bytes;
                }
                write(ends, End::Receiver, &mut exchange.pending);
                if exchange.request_received >= exchange.request_bytes {
                    exchange.request_received -= exchange.request_bytes;
                    self.pending += exchange.response_bytes;
                }
            }
        }
        self.written += write(ends, End::Sender, &mut self.pending);
        if self.has_written_all() {
            self.close(ends);
        }
        if self.ended.is_none() && self.closed && self.received == self.written {
            self.ended = Some(now);
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

    fn close(&mut self, ends: &mut impl Ends) {
        if !self.closed && ends.close() {
            self.closed = true;
        }
    }

    /// When it wants to act next, once connected.
    pub fn next(&self) -> Option<Time> {
        let own = match &self.writer {
            _ if self.stopped || self.closed => None,
            Writer::Cbr { next, .. } => *next,
            Writer::RequestResponse(exchange) => exchange.next,
            Writer::Endless | Writer::Once => None,
        };
        own.into_iter().chain(self.stop.filter(|_| !self.closed)).min()
    }

    /// When it connects.
    pub fn start(&self) -> Time {
        self.start
    }

    /// When its last byte was received, once nothing more will be written.
    pub fn ended(&self) -> Option<Time> {
        self.ended
    }

    /// Present rate of writing of a constant-rate flow.
    pub fn rate(&self) -> Option<BitRate> {
        if let Writer::Cbr { rate, .. } = &self.writer { Some(*rate) } else { None }
    }

    /// Payload bytes received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Messages of a constant-rate flow, and exchanges, that are complete; in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
}

/// Writes pending bytes; returns how many were taken.
fn write(ends: &mut impl Ends, end: End, pending: &mut u64) -> u64 {
    if *pending == 0 {
        return 0;
    }
    let taken = ends.write(end, *pending);
    *pending -= taken;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with as much room as `room` bytes for the sender; nothing arrives by itself.
    struct Pipe {
        room: u64,
        sent: [u64; 2],
        closed: bool,
    }

    impl Ends for Pipe {
        fn write(&mut self, end: End, bytes: u64) -> u64 {
            let taken = if end == End::Sender { bytes.min(self.room) } else { bytes };
            if end == End::Sender {
                self.room -= taken;
            }
            self.sent[usize::from(end == End::Receiver)] += taken;
            taken
        }

        fn close(&mut self) -> bool {
            self.closed = true;
            true
        }
    }

    fn pipe(room: u64) -> Pipe {
        Pipe { room, sent: [0, 0], closed: false }
    }

    #[test]
    fn a_bulk_flow_writes_into_the_room_that_there_is_and_ends_when_all_is_read() {
        let mut flow = Transfer::new(&FlowKind::Bulk { bytes: Some(1000) }, Time(5), None);
        assert_eq!(flow.begin(Time(100)), Time(105));
        let mut ends = pipe(600);
        flow.progress(Time(105), &mut ends);
        assert_eq!((ends.sent[0], ends.closed), (600, false));
        ends.room = 1000;
        flow.read(Time(110), End::Receiver, 600);
        flow.progress(Time(110), &mut ends);
        assert_eq!((ends.sent[0], ends.closed, flow.ended()), (1000, true, None));
        flow.read(Time(120), End::Receiver, 400);
        flow.progress(Time(120), &mut ends);
        assert_eq!(flow.ended(), Some(Time(120)));
    }

    #[test]
    fn rates_and_the_stop_count_from_the_beginning() {
        let second = 1_000_000_000;
        let rates = vec![RateFrom { at_ns: Time(0), bit_per_s: BitRate(8000) }];
        let kind = FlowKind::Cbr { write_bytes: 1000, rates };
        let mut flow = Transfer::new(&kind, Time(0), Some(Time(2 * second)));
        flow.begin(Time(7 * second));
        assert_eq!(flow.next(), Some(Time(7 * second)));
        let mut ends = pipe(u64::MAX);
        flow.progress(Time(7 * second), &mut ends);
        flow.progress(Time(8 * second), &mut ends);
        assert_eq!((ends.sent[0], flow.next()), (2000, Some(Time(9 * second))));
        flow.read(Time(8 * second + 5), End::Receiver, 1500);
        assert_eq!(
            flow.messages(),
            [Message { due: Time(7 * second), read: Time(8 * second + 5), bytes: 1000 }]
        );
        flow.progress(Time(9 * second), &mut ends);
        assert!(ends.closed);
    }

    #[test]
    fn an_exchange_takes_from_its_request_to_the_last_byte_of_the_answer() {
        let kind = FlowKind::RequestResponse {
            request_bytes: 10,
            response_bytes: 50,
            count: Some(2),
            pause_ns: Duration(3),
        };
        let mut flow = Transfer::new(&kind, Time(0), None);
        flow.begin(Time(0));
        let mut ends = pipe(u64::MAX);
        flow.progress(Time(0), &mut ends);
        flow.read(Time(4), End::Sender, 10);
        flow.progress(Time(4), &mut ends);
        assert_eq!(ends.sent, [50, 10]);
        flow.read(Time(9), End::Receiver, 50);
        flow.progress(Time(9), &mut ends);
        assert_eq!(flow.messages(), [Message { due: Time(0), read: Time(9), bytes: 50 }]);
        assert_eq!((flow.next(), flow.ended()), (Some(Time(12)), None));
    }
}
