//! TCP and the network: links, endpoints and their timers, without applications.

use crate::agenda::{Agenda, Alarm, EventId};
use crate::fabric::{Arrival, EndpointId, Envelope, Fabric, LinkId, RouteId};
use crate::post::Post;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_congestion_native::{Group, GroupKey, GroupRecord, Groups, Instance};
use wirepaint_link_model::config::Counted;
use wirepaint_run::Side;
use wirepaint_tcp_model::{Config, Endpoint, Peer, Sample, Segment, SharedWindows, flags};
use wirepaint_units::Time;

pub use crate::post::AppId;

/// Index of a connection. Its client is endpoint `2 i`, its server `2 i + 1`.
pub type ConnectionId = u32;

/// An event of the agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet leaves a link.
    Link(LinkId),
    /// A timer of an endpoint.
    Endpoint(EndpointId),
    /// A timer of an application.
    App(AppId),
    /// The trace takes its samples.
    Sample,
    /// The next change of routes.
    Reroute,
}

/// Bits of an event's index.
const INDEX_BITS: u32 = 25;

impl Event {
    /// The event's id on the agenda. Links come first: a link's id is its index.
    pub fn id(self) -> EventId {
        let (kind, index) = match self {
            Event::Link(index) => (0, index as u32),
            Event::Endpoint(index) => (1, index),
            Event::App(index) => (2, index),
            Event::Sample => (3, 0),
            Event::Reroute => (4, 0),
        };
        kind << INDEX_BITS | index
    }

    /// The event of an id.
    pub fn of(id: EventId) -> Event {
        let index = id & ((1 << INDEX_BITS) - 1);
        match id >> INDEX_BITS {
            0 => Event::Link(index as LinkId),
            1 => Event::Endpoint(index),
            2 => Event::App(index),
            3 => Event::Sample,
            _ => Event::Reroute,
        }
    }
}

/// The present routes of a group of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Group for reroutes; empty for none.
    pub group: String,
    /// Server to client.
    pub down: RouteId,
    /// Client to server.
    pub up: RouteId,
}

/// A connection to open.
#[derive(Clone)]
pub struct Dial {
    /// Names of the hosts that connect and accept.
    pub hosts: [Arc<str>; 2],
    /// Settings of the side that connects.
    pub client: Arc<Config>,
    /// Settings of the side that accepts.
    pub server: Arc<Config>,
    /// Address of the client.
    pub client_address: Ipv4Addr,
    /// Address of the server.
    pub server_address: Ipv4Addr,
    /// Port of the server.
    pub server_port: u16,
    /// Index of the path.
    pub path: usize,
    /// Code point of its packets, both ways.
    pub dscp: u8,
    /// The code point that the path gives the client's packets, if any.
    pub marked: Option<u8>,
    /// The application that uses it.
    pub app: AppId,
    /// The side that sends most.
    pub sender: Side,
    /// The sender is sampled.
    pub sampled: bool,
    /// A proxy opens it.
    pub of_proxy: bool,
    /// Accepting ends with the same number share state in a congestion control: a proxy's address, or zero for all
    /// servers, which are one host, as in the testbed, where they share a network namespace.
    pub accepted_on: u32,
}

/// A connection that was opened.
#[derive(Clone)]
pub struct Connection {
    /// Its settings.
    pub dial: Dial,
    /// Port of the client, unique in the run.
    pub client_port: u16,
    /// SYN sent.
    pub opened: Time,
    /// The client's handshake was done.
    pub connected: Option<Time>,
    /// When the client last read something.
    pub last_byte: Option<Time>,
    /// Bytes that the client's application read.
    pub bytes_received: u64,
    /// Bytes that the client's application wrote.
    pub bytes_sent: u64,
    /// Packets and IP bytes that the client sent.
    pub sent: (u64, u64),
    /// Packets and IP bytes that the client received.
    pub received: (u64, u64),
}

/// First port of clients: Linux's `ip_local_port_range`.
const FIRST_PORT: u32 = 32_768;

struct Station {
    tcp: Endpoint,
    alarm: Alarm,
    path: u32,
    dscp: u8,
}

/// Links and endpoints under one clock.
pub struct World {
    /// Current time.
    pub now: Time,
    /// Pending events.
    pub agenda: Agenda,
    /// The links.
    pub fabric: Fabric<Segment>,
    paths: Vec<Path>,
    stations: Vec<Station>,
    connections: Vec<Connection>,
    /// State that connections share in a congestion control.
    groups: Rc<Groups>,
    /// Windows that connections share segment by segment.
    windows: Rc<SharedWindows>,
    /// Endpoints that may act because of another endpoint's window or ACK.
    served: BTreeSet<EndpointId>,
    /// What applications tell one another: from, to, what.
    posts: VecDeque<(AppId, AppId, Post)>,
    seed: u64,
    sampling: bool,
}

impl World {
    /// A world at time zero. `seed` sets the random numbers of its endpoints; `sampling` keeps
    /// samples of the senders that are to be sampled.
    pub fn new(fabric: Fabric<Segment>, seed: u64, sampling: bool) -> World {
        World {
            now: Time::ZERO,
            agenda: Agenda::default(),
            fabric,
            paths: Vec::new(),
            stations: Vec::new(),
            connections: Vec::new(),
            groups: Groups::new(),
            windows: SharedWindows::new(),
            served: BTreeSet::new(),
            posts: VecDeque::new(),
            seed,
            sampling,
        }
    }

    /// The index of a path. Adds it when it is new.
    pub fn path(&mut self, path: Path) -> usize {
        self.paths.iter().position(|known| *known == path).unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        })
    }

    /// Changes the routes of all paths of a group, for packets sent from now on.
    pub fn reroute(&mut self, group: &str, down: RouteId, up: RouteId) {
        for path in self.paths.iter_mut().filter(|path| path.group == group) {
            (path.down, path.up) = (down, up);
        }
    }

    /// Opens a connection; its SYN is on the way.
    pub fn connect(&mut self, dial: Dial) -> ConnectionId {
        let id = self.connections.len() as ConnectionId;
        // After 32768 connections, ports are used again, as on a real host with that many servers.
        let client_port = (FIRST_PORT + id % (65_536 - FIRST_PORT)) as u16;
        let at_client = SocketAddrV4::new(dial.client_address, client_port);
        let at_server = SocketAddrV4::new(dial.server_address, dial.server_port);
        let peer = |endpoint: EndpointId, local: SocketAddrV4, remote: SocketAddrV4| Peer {
            host: if is_client(endpoint) { u32::from(*local.ip()) } else { dial.accepted_on },
            seed: self.seed.wrapping_add(u64::from(endpoint).wrapping_mul(SPREAD)),
            groups: Some(self.groups.clone()),
            windows: Some((self.windows.clone(), endpoint)),
            ..Peer::new(local.into(), remote.into())
        };
        let mut client = Endpoint::client(&dial.client, peer(client_end(id), at_client, at_server), self.now);
        let mut server = Endpoint::server(&dial.server, peer(server_end(id), at_server, at_client), self.now);
        if self.sampling && dial.sampled {
            match dial.sender {
                Side::Client => client.take_samples(),
                Side::Server => server.take_samples(),
            }
        }
        let (path, dscp) = (dial.path as u32, dial.dscp);
        self.stations.push(Station { tcp: client, alarm: Alarm::default(), path, dscp });
        self.stations.push(Station { tcp: server, alarm: Alarm::default(), path, dscp });
        self.connections.push(Connection {
            dial,
            client_port,
            opened: self.now,
            connected: None,
            last_byte: None,
            bytes_received: 0,
            bytes_sent: 0,
            sent: (0, 0),
            received: (0, 0),
        });
        self.pump(client_end(id));
        id
    }

    /// The connections so far, by their ids.
    pub fn connections(&self) -> &[Connection] {
        &self.connections
    }

    /// An endpoint.
    pub fn tcp(&self, endpoint: EndpointId) -> &Endpoint {
        &self.stations[endpoint as usize].tcp
    }

    /// The application of an endpoint.
    pub fn app(&self, endpoint: EndpointId) -> AppId {
        self.connections[endpoint as usize / 2].dial.app
    }

    /// The samples of the senders so far, each with its endpoint, in order of time.
    pub fn drain_samples(&mut self) -> Vec<(EndpointId, Sample)> {
        let mut samples: Vec<(EndpointId, Sample)> = Vec::new();
        for (endpoint, station) in (0..).zip(&mut self.stations) {
            samples.extend(station.tcp.drain_samples().map(|sample| (endpoint, sample)));
        }
        samples.sort_by_key(|(_, sample)| sample.time);
        samples
    }

    /// The events of groups of connections so far, each with the endpoint that caused it, in order of time.
    pub fn drain_group_records(&mut self) -> Vec<(EndpointId, Arc<Instance>, GroupRecord)> {
        let records = self.groups.take_records();
        if records.is_empty() {
            return Vec::new();
        }
        let mut ends: BTreeMap<(SocketAddr, SocketAddr), EndpointId> = BTreeMap::new();
        for (id, connection) in (0..).zip(&self.connections) {
            let at_client = SocketAddrV4::new(connection.dial.client_address, connection.client_port);
            let at_server = SocketAddrV4::new(connection.dial.server_address, connection.dial.server_port);
            ends.insert((at_client.into(), at_server.into()), client_end(id));
            ends.insert((at_server.into(), at_client.into()), server_end(id));
        }
        let end = |record: &GroupRecord| ends[&(record.local(), record.remote())];
        records.into_iter().map(|(instance, record)| (end(&record), instance, record)).collect()
    }

    /// The application writes. Returns the bytes that the send buffer took.
    pub fn write(&mut self, endpoint: EndpointId, bytes: u64) -> u64 {
        let taken = self.stations[endpoint as usize].tcp.write(self.now, bytes);
        if taken > 0 {
            if is_client(endpoint) {
                self.connections[endpoint as usize / 2].bytes_sent += taken;
            }
            self.pump(endpoint);
        }
        taken
    }

    /// The application waits until it can write.
    pub fn wait_for_space(&mut self, endpoint: EndpointId) {
        self.stations[endpoint as usize].tcp.wait_for_space();
    }

    /// The application sets TCP_NOTSENT_LOWAT.
    pub fn bound_unsent(&mut self, endpoint: EndpointId, bytes: u64) {
        self.stations[endpoint as usize].tcp.bound_unsent(bytes);
    }

    /// The application reads at most `most` of the bytes that arrived in order. Returns how many it read.
    pub fn read(&mut self, endpoint: EndpointId, most: u64) -> u64 {
        let tcp = &mut self.stations[endpoint as usize].tcp;
        let bytes = tcp.readable().min(most);
        if bytes > 0 {
            tcp.read(self.now, bytes);
            if is_client(endpoint) {
                let connection = &mut self.connections[endpoint as usize / 2];
                connection.bytes_received += bytes;
                connection.last_byte = Some(self.now);
            }
            self.pump(endpoint);
        }
        bytes
    }

    /// The application has written all.
    pub fn close(&mut self, endpoint: EndpointId) {
        self.stations[endpoint as usize].tcp.close(self.now);
        self.pump(endpoint);
    }

    /// A packet reached its endpoint.
    pub fn deliver(&mut self, arrival: Arrival<Segment>) {
        let Arrival { to, mut body, marked } = arrival;
        if marked {
            body.flags |= flags::CE;
        }
        let tcp = &mut self.stations[to as usize].tcp;
        tcp.receive(self.now, &body);
        if is_client(to) {
            let connection = &mut self.connections[to as usize / 2];
            count(&mut connection.received, &body);
            if tcp.is_established() {
                connection.connected.get_or_insert(self.now);
            }
        }
        self.pump(to);
    }

    /// The event of an endpoint is due. Returns whether its timer fired.
    pub fn endpoint_event(&mut self, endpoint: EndpointId) -> bool {
        let station = &mut self.stations[endpoint as usize];
        if !station.alarm.goes_off(self.now) {
            return false;
        }
        let due = station.tcp.next_timeout().is_some_and(|deadline| deadline <= self.now);
        if due {
            station.tcp.timeout(self.now);
        }
        self.pump(endpoint);
        due
    }

    /// An endpoint that acted since the last call because of another one; it may have room to write.
    pub fn take_served(&mut self) -> Option<EndpointId> {
        self.served.pop_first()
    }

    /// An application tells another one something, at this instant.
    pub fn post(&mut self, from: AppId, to: AppId, post: Post) {
        self.posts.push_back((from, to, post));
    }

    /// The next thing that an application tells another one: from, to, what.
    pub fn take_post(&mut self) -> Option<(AppId, AppId, Post)> {
        self.posts.pop_front()
    }

    /// The groups of a congestion control so far.
    pub fn groups(&self, instance: &Arc<Instance>) -> Vec<(GroupKey, Group)> {
        self.groups.of(instance)
    }

    /// After a call of an endpoint: sends its segments, then those of endpoints that share its window.
    fn pump(&mut self, endpoint: EndpointId) {
        self.send(endpoint);
        while let Some(next) = self.windows.next() {
            self.stations[next as usize].tcp.take_turn(self.now);
            self.send(next);
            self.served.insert(next);
        }
    }

    /// Sends what an endpoint has to send and sets its alarm.
    fn send(&mut self, endpoint: EndpointId) {
        let station = &mut self.stations[endpoint as usize];
        while let Some(segment) = station.tcp.transmit(self.now) {
            let path = &self.paths[station.path as usize];
            let route = if is_client(endpoint) {
                count(&mut self.connections[endpoint as usize / 2].sent, &segment);
                path.up
            } else {
                path.down
            };
            self.fabric.send(
                self.now,
                &mut self.agenda,
                route,
                endpoint ^ 1,
                segment,
                envelope(&segment, station.dscp),
            );
        }
        let deadline = station.tcp.next_timeout();
        station.alarm.set(&mut self.agenda, deadline, Event::Endpoint(endpoint).id());
    }
}

/// Distance between the seeds of endpoints; odd. It differs from the step of `cc_random`: with that step all
/// endpoints would draw from one stream, each one number behind the last.
const SPREAD: u64 = 0xd134_2543_de82_ef95;

/// Whether an endpoint opened its connection.
pub fn is_client(endpoint: EndpointId) -> bool {
    endpoint & 1 == 0
}

/// The endpoint that opened a connection.
pub fn client_end(connection: ConnectionId) -> EndpointId {
    2 * connection
}

/// The endpoint that accepted it.
pub fn server_end(connection: ConnectionId) -> EndpointId {
    2 * connection + 1
}

/// Adds a packet to a count of packets and IP bytes.
fn count(so_far: &mut (u64, u64), segment: &Segment) {
    so_far.0 += 1;
    so_far.1 += u64::from(segment.wire_ip_bytes());
}

fn envelope(segment: &Segment, dscp: u8) -> Envelope {
    let counted = match segment.len {
        _ if segment.flags & (flags::SYN | flags::FIN) != 0 => None,
        0 => Some(Counted::Bare),
        _ => Some(Counted::Data),
    };
    Envelope { ip_bytes: segment.wire_ip_bytes() as u16, ecn_capable: segment.has(flags::ECT), counted, dscp }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_endpoint_draws_what_another_one_draws_later() {
        // The step of cc_random (congestion/include/cc_native.h).
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let apart: BTreeMap<u64, u64> = (1..10_000).map(|draws| (STEP.wrapping_mul(draws), draws)).collect();
        for endpoints in 1..10_000 {
            let seeds = SPREAD.wrapping_mul(endpoints);
            let same = apart.get(&seeds).or_else(|| apart.get(&seeds.wrapping_neg()));
            assert_eq!(same, None, "{endpoints} endpoints apart");
        }
    }

    #[test]
    fn an_event_is_found_again_by_its_name() {
        let events = [Event::Link(3), Event::Endpoint(1 << 20), Event::App(7), Event::Sample, Event::Reroute];
        for event in events {
            assert_eq!(Event::of(event.id()), event);
        }
    }
}
