//! A minimal transport for a visit: a first-come-first-served link each way, slow start from ten segments, no
//! loss. Connections share the links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wirepaint_page_model::{Action, Backlog, Browser, Prepared, Rows, Visit, unsent_bound};
use wirepaint_units::{BitRate, Duration, Time};

const MSS: u64 = 1448;
const HEADERS: u64 = 66;
const UNSHAPED: BitRate = BitRate(10_000_000_000);

/// A path: rate each way (0 for unshaped) and one-way delay.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub down: BitRate,
    pub up: BitRate,
    pub delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Syn(u32),
    SynAck(u32),
    /// Connection, towards the client, bytes.
    Data(u32, bool, u64),
    Ack(u32, bool, u64),
    Visit,
}

#[derive(Clone, Debug, Default)]
struct Sender {
    window: u64,
    unsent: u64,
    in_flight: u64,
    received: u64,
    /// Of what was received.
    read: u64,
    writes: Vec<u64>,
}

/// The results of a visit.
pub struct Carried {
    pub rows: Rows,
    /// Bytes of each connection, write by write, and how many arrived: client's, server's.
    pub bytes: Vec<[(Vec<u64>, u64); 2]>,
    pub done: bool,
    /// Most bytes of a connection that had arrived when the browser read it.
    #[allow(dead_code, reason = "not every test asks")]
    pub most_unread: u64,
}

pub struct Transport {
    path: Path,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    /// When the link of each direction is free: up, down.
    free: [Time; 2],
    /// Of each connection: the client's sender, the server's.
    senders: Vec<[Sender; 2]>,
    established: Vec<bool>,
    most_unread: u64,
    visit: Visit,
    wake: Option<Time>,
}

/// Carries a visit to its end, or to `until`.
pub fn carry(prepared: &Prepared, browser: &Browser, path: Path, seed: u64, until: Time) -> Carried {
    let mut transport = Transport {
        path,
        now: Time::ZERO,
        events: BinaryHeap::new(),
        count: 0,
        free: [Time::ZERO; 2],
        senders: Vec::new(),
        established: Vec::new(),
        most_unread: 0,
        visit: Visit::new(prepared, browser.clone(), seed),
        wake: None,
    };
    transport.visit.start(Time::ZERO);
    transport.act();
    while let Some(Reverse((time, _, event))) = transport.events.pop() {
        if time > until {
            break;
        }
        transport.now = time;
        transport.handle(event);
        transport.act();
        if transport.visit.is_done() {
            break;
        }
    }
    let bytes = transport.senders.into_iter().map(|both| both.map(|sender| (sender.writes, sender.received)));
    Carried {
        rows: transport.visit.rows(),
        bytes: bytes.collect(),
        done: transport.visit.is_done(),
        most_unread: transport.most_unread,
    }
}

impl Transport {
    fn at(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count, event)));
    }

    /// Sends a packet; `down` is the direction.
    fn packet(&mut self, down: bool, bytes: u64, event: Event) {
        let rate = if down { self.path.down } else { self.path.up };
        let rate = if rate.0 == 0 { UNSHAPED } else { rate };
        let free = &mut self.free[usize::from(down)];
        *free = (*free).max(self.now) + rate.transmission_time(bytes);
        let arrival = *free + self.path.delay;
        self.at(arrival, event);
    }

    fn act(&mut self) {
        while let Some(action) = self.visit.poll() {
            match action {
                Action::Connect { connection, .. } => {
                    assert_eq!(connection as usize, self.senders.len());
                    let sender = Sender { window: 10 * MSS, ..Sender::default() };
                    self.senders.push([sender.clone(), sender]);
                    self.established.push(false);
                    self.packet(false, 74, Event::Syn(connection));
                }
                Action::ClientWrite { connection, bytes, .. } => self.write(connection, false, bytes),
                Action::ServerWrite { connection, bytes, .. } => self.write(connection, true, bytes),
                Action::ClientRead { connection, bytes, .. } => {
                    let sender = &mut self.senders[connection as usize][1];
                    self.most_unread = self.most_unread.max(sender.received - sender.read);
                    sender.read += bytes;
                    assert!(sender.read <= sender.received, "more was read than had come");
                }
                Action::ServerWaits { .. } | Action::Ask { .. } | Action::Close { .. } | Action::Done => {}
            }
        }
        if let Some(next) = self.visit.next_timeout()
            && self.wake.is_none_or(|wake| next < wake)
        {
            self.wake = Some(next);
            self.at(next, Event::Visit);
        }
    }

    fn write(&mut self, connection: u32, down: bool, bytes: u64) {
        assert!(bytes > 0 && self.established[connection as usize]);
        let sender = &mut self.senders[connection as usize][usize::from(down)];
        sender.unsent += bytes;
        sender.writes.push(bytes);
        self.send(connection, down);
        if down {
            self.tell(connection);
        }
    }

    /// The server may have half a window unsent.
    fn tell(&mut self, connection: u32) {
        let sender = &self.senders[connection as usize][1];
        let bound = unsent_bound(sender.window);
        let room = bound.saturating_sub(sender.unsent);
        let backlog = Backlog { room, is_writable: 2 * sender.unsent < bound };
        self.visit.server_acknowledged(self.now, connection, backlog);
    }

    fn send(&mut self, connection: u32, down: bool) {
        loop {
            let sender = &mut self.senders[connection as usize][usize::from(down)];
            let bytes = sender.unsent.min(MSS);
            if bytes == 0 || sender.in_flight + bytes > sender.window {
                return;
            }
            sender.unsent -= bytes;
            sender.in_flight += bytes;
            self.packet(down, bytes + HEADERS, Event::Data(connection, down, bytes));
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Syn(connection) => self.packet(true, 74, Event::SynAck(connection)),
            Event::SynAck(connection) => {
                self.established[connection as usize] = true;
                self.visit.connected(now, connection);
            }
            Event::Data(connection, down, bytes) => {
                self.senders[connection as usize][usize::from(down)].received += bytes;
                self.packet(!down, HEADERS, Event::Ack(connection, down, bytes));
                if down {
                    self.visit.client_received(now, connection, bytes);
                } else {
                    self.visit.server_received(now, connection, bytes);
                }
            }
            Event::Ack(connection, down, bytes) => {
                let limit = self.path.down.0 / 8 * self.path.delay.0 * 4 / 1_000_000_000 + 20 * MSS;
                let sender = &mut self.senders[connection as usize][usize::from(down)];
                sender.in_flight -= bytes;
                sender.window = (sender.window + bytes).min(limit.max(sender.window));
                self.send(connection, down);
                if down {
                    self.tell(connection);
                }
            }
            Event::Visit if self.wake == Some(now) => {
                self.wake = None;
                self.visit.timeout(now);
            }
            Event::Visit => {}
        }
    }
}
