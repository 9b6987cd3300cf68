//! Relays: proxies that pass bytes on from one TCP connection to the next.
//!
//! ```text
//! HTTP client ── hop 0 ── relay ── hop 1 ── relay ── hop 2 ── HTTP server
//! ```
//!
//! A [`Leg`] is the way between an HTTP client and the HTTP server that answers it, in settings; a [`Chain`] is one
//! connection that takes it. A relay reads at one endpoint and writes at another what both socket buffers and its own
//! let through, so a slow reader slows the writer. It passes the end of each direction on.
//!
//! - DEVIATION: no endpoint sends a reset, so a relay passes none on.
//! - DEVIATION: relays take no CPU time.

use crate::fabric::EndpointId;
use crate::world::{AppId, ConnectionId, Dial, World, client_end, server_end};
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::rc::Rc;
use wirepaint_tcp_model::Endpoint;
use wirepaint_units::Time;

/// The way of an HTTP client's connections.
pub struct Leg {
    /// Settings of its TCP connections, from the client on. Those that lead to an origin get its address and port
    /// when they are opened.
    pub hops: Vec<Dial>,
    /// Who relays from each hop to the next: one fewer.
    pub relays: Vec<RelaySettings>,
    /// Who answers.
    pub ends: Ends,
}

/// Who answers at the end of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The servers of the page.
    AtServers,
    /// A proxy in their place.
    AtProxy {
        /// The proxy.
        app: AppId,
        /// A forward proxy: clients connect to its address.
        is_asked: bool,
    },
}

/// The ways of an HTTP client's connections. A forward proxy treats those without TLS apart.
#[derive(Clone)]
pub struct Legs {
    /// With TLS.
    pub encrypted: Rc<Leg>,
    /// Without.
    pub plain: Rc<Leg>,
}

impl Legs {
    /// The way of connections with or without TLS.
    pub fn of(&self, encrypted: bool) -> &Rc<Leg> {
        if encrypted { &self.encrypted } else { &self.plain }
    }
}

/// The chains in whose relays something happened at this instant.
///
/// Relays act once for all that comes at an instant, as a program does that wakes and reads what its socket has.
/// Acting at each segment would write segment by segment, and the kernel counts the memory of many small writes: a
/// send buffer would then end before the window does.
#[derive(Debug, Default)]
pub struct Relaying {
    at: Option<Time>,
    chains: BTreeSet<u32>,
}

impl Relaying {
    /// Something happened in a chain, by its number.
    pub fn add(&mut self, now: Time, chain: u32) {
        self.at = Some(now);
        self.chains.insert(chain);
    }

    /// When to [`take`](Self::take).
    pub fn next(&self) -> Option<Time> {
        self.at
    }

    /// The chains to relay, in ascending order.
    pub fn take(&mut self) -> BTreeSet<u32> {
        self.at = None;
        std::mem::take(&mut self.chains)
    }
}

/// Settings of a relay.
#[derive(Clone, Copy, Debug)]
pub struct RelaySettings {
    /// Most bytes that it holds of each direction, beside the kernel's buffers.
    pub buffer_bytes: u64,
    /// A forward proxy: the client asks it for the way to the server (CONNECT, RFC 9110 section 9.3.6).
    pub is_asked: bool,
}

/// Squid's answer to CONNECT: `HTTP/1.1 200 Connection established`, empty line.
const TUNNEL_ANSWER: u64 = 39;
/// What Chromium's CONNECT holds beside twice the authority: the method and version, `Host`, `Proxy-Connection:
/// keep-alive`, and `User-Agent` with the 109 bytes of the headless shell's.
const TUNNEL_REQUEST: u64 = 19 + 8 + 30 + 14 + 109 + 2;

impl Leg {
    /// The settings of a hop on the way to `origin`.
    fn dial(&self, hop: usize, origin: SocketAddrV4) -> Dial {
        let dial = self.hops[hop].clone();
        // A forward proxy has its own address, all others are transparent.
        let is_asked = matches!(self.ends, Ends::AtProxy { is_asked: true, .. });
        if is_asked || self.relays.iter().skip(hop).any(|relay| relay.is_asked) {
            return dial;
        }
        Dial { server_address: *origin.ip(), server_port: origin.port(), ..dial }
    }
}

/// One connection of an HTTP client, with all hops that are open.
pub struct Chain {
    leg: Rc<Leg>,
    origin: SocketAddrV4,
    hops: Vec<ConnectionId>,
    relays: Vec<Relay>,
    /// The client's part of CONNECT.
    tunnel: Tunnel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tunnel {
    /// The client has not asked for it: bytes of the request.
    Unasked(u64),
    /// The answer has not come: bytes of the request.
    Asked(u64),
    /// Bytes of request and answer; 0 where no tunnel is needed.
    Open(u64, u64),
}

impl Chain {
    /// Opens its first hop. `host` is the server's name.
    pub fn open(leg: &Rc<Leg>, origin: SocketAddrV4, host: &str, world: &mut World) -> Chain {
        let authority = (host.len() + 1 + origin.port().to_string().len()) as u64;
        let tunnel = if leg.relays.iter().any(|relay| relay.is_asked) {
            Tunnel::Unasked(TUNNEL_REQUEST + 2 * authority)
        } else {
            Tunnel::Open(0, 0)
        };
        let first = world.connect(leg.dial(0, origin));
        let mut chain = Chain { leg: leg.clone(), origin, hops: Vec::new(), relays: Vec::new(), tunnel };
        chain.append(first);
        chain
    }

    /// Adds an open hop and the relay at its far end.
    fn append(&mut self, hop: ConnectionId) {
        if let Some(relaying) = self.leg.relays.get(self.hops.len()) {
            let asked = match self.tunnel {
                Tunnel::Unasked(bytes) | Tunnel::Asked(bytes) if relaying.is_asked => bytes,
                _ => 0,
            };
            self.relays.push(Relay::new(*relaying, server_end(hop), asked));
        }
        self.hops.push(hop);
    }

    /// Whether something relays on it.
    pub fn has_relays(&self) -> bool {
        !self.leg.relays.is_empty()
    }

    /// The hops that are open, from the client on.
    pub fn hops(&self) -> &[ConnectionId] {
        &self.hops
    }

    /// The HTTP client's endpoint.
    pub fn client(&self) -> EndpointId {
        client_end(self.hops[0])
    }

    /// The HTTP server's endpoint, once the last hop is open.
    pub fn server(&self) -> Option<EndpointId> {
        (self.hops.len() == self.leg.hops.len()).then(|| server_end(self.hops[self.hops.len() - 1]))
    }

    /// Bytes that the client has sent and received for its tunnel.
    pub fn tunnel_bytes(&self) -> (u64, u64) {
        match self.tunnel {
            Tunnel::Unasked(_) => (0, 0),
            Tunnel::Asked(sent) => (sent, 0),
            Tunnel::Open(sent, received) => (sent, received),
        }
    }

    /// Whether the client may send to the server. Its endpoint is established; the tunnel is asked for, if there is one.
    /// Call it after each activity of [`Chain::client`] until it says yes.
    pub fn is_open(&mut self, world: &mut World) -> bool {
        let client = self.client();
        match self.tunnel {
            _ if !world.tcp(client).is_established() => false,
            Tunnel::Unasked(bytes) => {
                world.write(client, bytes);
                self.tunnel = Tunnel::Asked(bytes);
                false
            }
            Tunnel::Asked(bytes) if world.tcp(client).readable() >= TUNNEL_ANSWER => {
                world.read(client, TUNNEL_ANSWER);
                self.tunnel = Tunnel::Open(bytes, TUNNEL_ANSWER);
                true
            }
            Tunnel::Asked(_) => false,
            Tunnel::Open(..) => true,
        }
    }

    /// Lets the relays do what they can. Returns the hop that was opened, if one was.
    pub fn relay(&mut self, world: &mut World) -> Option<ConnectionId> {
        for relay in &mut self.relays {
            relay.carry(world);
        }
        let wants = self.relays.last().is_some_and(|relay| relay.opened.is_none() && relay.wants(world));
        if !wants {
            return None;
        }
        let hop = world.connect(self.leg.dial(self.hops.len(), self.origin));
        self.relays.last_mut().expect("it wants to connect").opened = Some(client_end(hop));
        self.append(hop);
        Some(hop)
    }

    /// Closes all endpoints.
    pub fn close(&self, world: &mut World) {
        for &hop in &self.hops {
            world.close(client_end(hop));
            world.close(server_end(hop));
        }
    }
}

/// One relayed connection.
struct Relay {
    settings: RelaySettings,
    accepted: EndpointId,
    opened: Option<EndpointId>,
    /// Bytes of the client's CONNECT that have not come.
    asked: u64,
    /// The client was told that the tunnel is open, or there is none.
    answered: bool,
    up: Stream,
    down: Stream,
}

impl Relay {
    fn new(settings: RelaySettings, accepted: EndpointId, asked: u64) -> Relay {
        let (up, down) = (Stream::default(), Stream::default());
        Relay { settings, accepted, opened: None, asked, answered: !settings.is_asked, up, down }
    }

    /// Whether it opens its connection: it has accepted the client's and knows where to.
    fn wants(&self, world: &World) -> bool {
        world.tcp(self.accepted).is_established() && self.asked == 0
    }

    fn carry(&mut self, world: &mut World) {
        self.asked -= world.read(self.accepted, self.asked);
        let Some(opened) = self.opened.filter(|opened| world.tcp(*opened).is_established()) else { return };
        if !std::mem::replace(&mut self.answered, true) {
            self.down.held += TUNNEL_ANSWER;
        }
        self.up.carry(world, self.accepted, opened, self.settings.buffer_bytes);
        self.down.carry(world, opened, self.accepted, self.settings.buffer_bytes);
    }
}

/// One direction of a relay.
#[derive(Debug, Default)]
struct Stream {
    /// Bytes read and not written.
    held: u64,
    /// Its end was passed on.
    ended: bool,
}

impl Stream {
    fn carry(&mut self, world: &mut World, from: EndpointId, to: EndpointId, most: u64) {
        // After a write that found no room it waits for poll().
        let takes = |tcp: &Endpoint| !tcp.waits_for_space();
        loop {
            let read = world.read(from, most.saturating_sub(self.held));
            self.held += read;
            let written = if self.held > 0 && takes(world.tcp(to)) { world.write(to, self.held) } else { 0 };
            self.held -= written;
            if read == 0 && written == 0 {
                break;
            }
        }
        if self.held == 0 && world.tcp(from).is_finished() && !std::mem::replace(&mut self.ended, true) {
            world.close(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Engine;
    use serde_json::json;
    use std::path::Path;
    use wirepaint_page_model::catalogue::chromium;
    use wirepaint_run::Run;

    /// A run of one visit, of a document of `bytes` bytes, through a relay behind `access` of 1 Mbit/s.
    fn run(bytes: u64, proxy: serde_json::Value, until_ms: u64) -> Engine {
        let resource = json!({"url": "https://a.test/", "origin": 0, "status": 200, "type": "html",
                              "wire_bytes": bytes, "decoded_bytes": bytes});
        let origin = json!({"host": "a.test", "address": "10.65.0.1", "port": 443, "encrypted": true});
        let direction = |bit_per_s: u64| {
            json!({"capacity": {"kind": "rate", "bit_per_s": bit_per_s}, "delay_ns": 20_000_000,
                   "queue": {"kind": "droptail", "packets": 50}})
        };
        let segment =
            |name: &str, rate| json!({"name": name, "down": direction(rate), "up": direction(rate)});
        let host = |name: &str, role: &str| json!({"name": name, "role": role, "congestion": "std"});
        let run = json!({
            "format": 5, "id": "t", "seed": 3, "trace_dir": "", "work_dir": "",
            "hosts": [host("client", "client"), host("proxy", "proxy"), host("server", "server")],
            "segments": [segment("access", 1_000_000), segment("back", 100_000_000)],
            "congestion": [{"algorithm": "std", "name": "std"}],
            "transport": {"sysctls": {"net.ipv4.tcp_wmem": "4096 16384 65536", "net.ipv4.tcp_rmem": "4096 65536 65536"}},
            "proxies": [proxy], "path": ["access", "proxy", "back"],
            "browsers": {"chromium": chromium()},
            "pages": {"page": {"origins": [origin], "resources": [resource]}},
            "visits": [{"user_agent": "desktop", "name": "page", "timeout_ns": 60_000_000_000_u64, "page": "page",
                        "browser": "chromium"}],
            "until_ns": until_ms * 1_000_000,
        });
        let place = Path::new("run.json");
        let run = Run::parse(run.to_string().as_bytes(), place).unwrap();
        let mut engine = Engine::new(&run, place).unwrap();
        engine.run();
        engine
    }

    fn split(buffer_bytes: u64) -> serde_json::Value {
        json!({"kind": "split", "host": "proxy", "buffer_bytes": buffer_bytes})
    }

    #[test]
    fn every_byte_of_a_server_reaches_the_browser_and_every_byte_of_the_browser_the_server() {
        let squid = json!({"kind": "squid", "host": "proxy", "port": 3128, "cache": "none", "cache_bytes": 0,
                           "warm": false, "tls": "tunnel"});
        for proxy in [split(1), split(65_536), squid] {
            let engine = run(200_000, proxy, 60_000);
            let load = engine.apps[0].load().unwrap();
            assert!(load.load_event().is_some());
            let rows = load.rows();
            for row in &rows.connections {
                let hops = load.hops(row.connection);
                let (sent, received) = load.tunnel_bytes(row.connection);
                let [near, far] = [0, 1].map(|hop| &engine.world.connections()[hops[hop] as usize]);
                assert_eq!(near.bytes_received, far.bytes_received + received);
                assert_eq!(near.bytes_sent, far.bytes_sent + sent);
                assert_eq!(far.bytes_received, row.bytes_received);
                assert_eq!(far.bytes_sent, row.bytes_sent);
            }
            assert!(rows.connections.iter().map(|row| row.bytes_received).sum::<u64>() > 200_000);
        }
    }

    #[test]
    fn a_relay_holds_no_more_than_its_buffer_and_the_sockets_let() {
        // After five seconds the slow side has carried 0.6 MB of 3 MB.
        let held = |buffer_bytes| {
            let engine = run(3_000_000, split(buffer_bytes), 5_000);
            let load = engine.apps[0].load().unwrap();
            let [near, far] = [0, 1].map(|hop| &engine.world.connections()[load.hops(0)[hop] as usize]);
            assert!(near.bytes_received > 300_000);
            far.bytes_received - near.bytes_received
        };
        // The socket's buffer counts memory, so it holds less; its receiver and the link hold 65,536 more at most.
        for buffer_bytes in [10_000, 500_000] {
            let held = held(buffer_bytes);
            assert!((buffer_bytes..buffer_bytes + 2 * 65_536).contains(&held), "{held} of {buffer_bytes}");
        }
    }
}
