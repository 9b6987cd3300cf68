//! Two endpoints over a path with a constant delay each way, an optional bottleneck, and a fate for each
//! segment.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use wirepaint_congestion_native::CaState;
use wirepaint_tcp_model::{Config, Endpoint, Peer, Segment, flags};
use wirepaint_units::{BitRate, Duration, Time};

pub const MS: u64 = 1_000_000;

pub fn congestion(name: &str, parameters: &[(&str, i64)]) -> Arc<wirepaint_congestion_native::Instance> {
    let given = parameters.iter().map(|&(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>();
    wirepaint_congestion_native::find(name).unwrap().instance(&given).unwrap()
}

/// Linux's defaults without offloads: each segment leaves on its own.
pub fn linux(name: &str) -> Config {
    let mut config = Config::linux(congestion(name, &[]));
    config.gso_max_segs = 1;
    config
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Client,
    Server,
}

/// The fate of a segment on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrive,
    Lose,
    /// Its additional delay in nanoseconds.
    Late(u64),
    Twice,
    Mark,
}

/// `(from, number of the segment with payload from 1 or 0, segment) -> fate`.
pub type Fates = Box<dyn FnMut(Side, u64, &Segment) -> Fate>;

pub struct Path {
    pub now: Time,
    pub client: Endpoint,
    pub server: Endpoint,
    pub delay_ns: u64,
    /// Bottleneck from server to client, and its queue in packets.
    pub rate: Option<(BitRate, usize)>,
    pub fates: Fates,
    /// Every segment put on the path: when, by which side, and its fate.
    pub log: Vec<(Time, Side, Segment, Fate)>,
    /// The client's application reads at once.
    pub reads: bool,
    free_at: Time,
    queued: std::collections::VecDeque<Time>,
    flying: BinaryHeap<Reverse<(Time, u64)>>,
    segments: BTreeMap<u64, (Side, Segment)>,
    sequence: u64,
    data: [u64; 2],
    pub received: u64,
    pub dropped: u64,
}

pub fn peer(side: Side) -> Peer {
    let client = SocketAddr::from((Ipv4Addr::new(10, 1, 0, 2), 40_000));
    let server = SocketAddr::from((Ipv4Addr::new(10, 2, 0, 1), 443));
    if side == Side::Client { Peer::new(client, server) } else { Peer::new(server, client) }
}

impl Path {
    pub fn new(client: Config, server: Config, delay_ns: u64) -> Path {
        Path::between(client, server, delay_ns, peer(Side::Server))
    }

    /// The same with different settings for the server.
    pub fn between(client: Config, server: Config, delay_ns: u64, server_end: Peer) -> Path {
        let now = Time::ZERO;
        Path {
            now,
            client: Endpoint::client(&Arc::new(client), peer(Side::Client), now),
            server: Endpoint::server(&Arc::new(server), server_end, now),
            delay_ns,
            rate: None,
            fates: Box::new(|_, _, _| Fate::Arrive),
            log: Vec::new(),
            reads: true,
            free_at: now,
            queued: Default::default(),
            flying: BinaryHeap::new(),
            segments: BTreeMap::new(),
            sequence: 0,
            data: [0; 2],
            received: 0,
            dropped: 0,
        }
    }

    /// Connects, and stops the clock when the server is established.
    pub fn connected(client: Config, server: Config, delay_ns: u64) -> Path {
        let mut path = Path::new(client, server, delay_ns);
        while !path.server.is_established() {
            assert!(path.step(Time::MAX), "nothing happens before the connection is established");
        }
        path.log.clear();
        path
    }

    pub fn end(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// The server's application writes.
    pub fn write(&mut self, bytes: u64) {
        assert_eq!(self.server.write(self.now, bytes), bytes, "the send buffer is too small for the test");
        self.collect();
    }

    /// Puts the segments of both sides on the path.
    pub fn collect(&mut self) {
        for side in [Side::Client, Side::Server] {
            while let Some(segment) = {
                let now = self.now;
                self.end(side).transmit(now)
            } {
                self.put(side, segment);
            }
        }
    }

    fn put(&mut self, side: Side, mut segment: Segment) {
        let number = if segment.len > 0 {
            self.data[side as usize] += 1;
            self.data[side as usize]
        } else {
            0
        };
        let mut fate = (self.fates)(side, number, &segment);
        let mut due = self.now + Duration(self.delay_ns);
        if let (Side::Server, Some((rate, limit)), true) = (side, self.rate, fate != Fate::Lose) {
            while self.queued.front().is_some_and(|&left| left <= self.now) {
                self.queued.pop_front();
            }
            if self.queued.len() > limit {
                fate = Fate::Lose;
                self.dropped += 1;
            } else {
                self.free_at = self.free_at.max(self.now)
                    + rate.transmission_time(u64::from(segment.wire_ip_bytes()) + 14);
                self.queued.push_back(self.free_at);
                due = self.free_at + Duration(self.delay_ns);
            }
        }
        self.log.push((self.now, side, segment, fate));
        match fate {
            Fate::Lose => return,
            Fate::Late(more) => due += Duration(more),
            Fate::Twice => self.fly(due, side, segment),
            Fate::Mark if segment.has(flags::ECT) => segment.flags |= flags::CE,
            Fate::Mark | Fate::Arrive => {}
        }
        self.fly(due, side, segment);
    }

    fn fly(&mut self, due: Time, side: Side, segment: Segment) {
        self.sequence += 1;
        self.flying.push(Reverse((due, self.sequence)));
        self.segments.insert(self.sequence, (side, segment));
    }

    /// Carries out the next event due by `until`; false if there is none.
    pub fn step(&mut self, until: Time) -> bool {
        self.collect();
        let arrival = self.flying.peek().map_or(Time::MAX, |Reverse((due, _))| *due);
        let client = self.client.next_timeout().unwrap_or(Time::MAX);
        let server = self.server.next_timeout().unwrap_or(Time::MAX);
        let next = arrival.min(client).min(server);
        if next > until || next == Time::MAX {
            return false;
        }
        assert!(next >= self.now, "time runs back from {:?} to {next:?}", self.now);
        self.now = next;
        if arrival == next {
            let Reverse((_, sequence)) = self.flying.pop().unwrap();
            let (from, segment) = self.segments.remove(&sequence).unwrap();
            let to = if from == Side::Client { Side::Server } else { Side::Client };
            self.end(to).receive(next, &segment);
            self.read(to);
        } else if client == next {
            self.client.timeout(next);
        } else {
            self.server.timeout(next);
        }
        self.collect();
        true
    }

    fn read(&mut self, side: Side) {
        let now = self.now;
        if self.reads || side == Side::Server {
            let read = self.end(side).read(now, u64::MAX);
            if side == Side::Client {
                self.received += read;
            }
        }
    }

    /// Time passes.
    pub fn advance(&mut self, ns: u64) {
        let until = self.now + Duration(ns);
        while self.step(until) {}
        self.now = until;
    }

    /// Runs until everything written is acknowledged; panics if events run out before.
    pub fn finish(&mut self) {
        let mut steps = 0;
        while self.server.unacknowledged() > 0 || self.client.unacknowledged() > 0 {
            assert!(self.step(Time::MAX), "the connection hangs at {:?}", self.now);
            steps += 1;
            assert!(steps < 20_000_000, "no end in sight at {:?}", self.now);
        }
    }

    /// Data segments that the server sent since `index` of the log.
    pub fn data_sent(&self) -> Vec<(Time, Segment)> {
        self.log
            .iter()
            .filter(|(_, side, segment, _)| *side == Side::Server && segment.len > 0)
            .map(|(time, _, segment, _)| (*time, *segment))
            .collect()
    }
}

/// A connection of `std` with an unlimited send buffer.
pub fn open(delay_ms: u64) -> Path {
    let mut server = linux("std");
    server.sndbuf = Some(u64::MAX);
    Path::connected(linux("std"), server, delay_ms * MS)
}

/// The server's data segments of these numbers are lost, at their first transmission.
pub fn lose(path: &mut Path, numbers: impl Into<Vec<u64>>) {
    let numbers = numbers.into();
    path.fates =
        Box::new(
            move |side, number, _| {
                if side == Side::Server && numbers.contains(&number) { Fate::Lose } else { Fate::Arrive }
            },
        );
}

pub fn state(path: &Path) -> CaState {
    path.server.info().state
}

/// Steps until the server is in a state.
pub fn until(path: &mut Path, wanted: CaState) {
    while state(path) != wanted {
        assert!(path.step(Time::MAX), "{wanted:?} is never reached");
    }
}

/// Pauses between the server's data segments from number `from` on, in us.
pub fn pauses(path: &Path, from: usize) -> Vec<u64> {
    let sent = path.data_sent();
    sent[from..].windows(2).map(|pair| (pair[1].0.0 - pair[0].0.0) / 1_000).collect()
}
