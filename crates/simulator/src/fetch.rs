//! Fetching: a proxy's own connections to the servers, or to the next proxy that answers in their place.
//!
//! HTTP/1.1, one request at a time on a connection. An idle connection of the origin is used again, the one used last
//! first; else a new one is opened, within a limit.
//!
//! - DEVIATION: proxies and their servers take no CPU time beside that until a proxy reads; the think time of a server
//!   is the page's.
//! - DEVIATION: sessions of TLS are not resumed.

use crate::fabric::EndpointId;
use crate::post::{Post, Request};
use crate::relay::{Chain, Ends, Legs, Relaying};
use crate::visited::Visited;
use crate::world::{AppId, ConnectionId, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddrV4;
use std::rc::Rc;
use wirepaint_http_model::Priority;
use wirepaint_page_model::{Step, Upstream};
use wirepaint_units::{Duration, Time};

/// A proxy reads what has come so long after the first of it: segments of one burst are one read, as Linux hands them
/// over in one piece (GRO) and a process takes a while to wake. About the time of a wake-up; not measured.
const READ_AFTER: Duration = Duration::from_micros(50);

/// Settings of a proxy's connections to servers.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// An idle connection is closed after this time, if ever.
    pub idle: Option<Duration>,
    /// Most connections to one origin.
    pub per_origin: usize,
    /// Bytes that the proxy adds to the head of a request.
    pub request_bytes: u32,
    /// Most bytes of the read that gets the head of an answer.
    pub head_read: u64,
}

/// What a proxy has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Of which request.
    pub request: Request,
    /// Bytes of the body; the first report of a request also says that its head has come.
    pub bytes: u64,
    /// The answer is complete.
    pub last: bool,
}

/// The connections of a proxy towards the servers.
pub struct Fetcher {
    app: AppId,
    pool: Pool,
    legs: Legs,
    visits: Rc<BTreeMap<AppId, Visited>>,
    lines: Vec<Line>,
    /// All hops of its connections, each with the connection's number, in ascending order.
    hops: Vec<(ConnectionId, u32)>,
    relaying: Relaying,
    /// Requests without a connection, oldest first.
    waiting: VecDeque<Request>,
    /// Ends of think times and of idle times, with the connection's number.
    timers: BTreeSet<(Time, u32)>,
    /// When to read, with the connection's number.
    reads: BTreeSet<(Time, u32)>,
    came: VecDeque<Came>,
    paused: bool,
}

/// One connection.
struct Line {
    chain: Chain,
    upstream: Upstream,
    /// Host and port.
    origin: (String, u16),
    connected: bool,
    /// It may carry requests.
    ready: bool,
    closed: bool,
    /// The next read gets the head of an answer.
    is_head_due: bool,
    stage: Stage,
    /// Bytes that wait for room in the send buffers of proxy and server.
    pending: [u64; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Since when it carries no request.
    Idle(Time),
    /// A request that is not sent yet, or not read by the server.
    Asking(Request),
    /// The server's answer is due.
    Thinking(Request, Time),
    /// Bytes of the body that have not come.
    Answering(Request, u64),
}

impl Stage {
    fn request(self) -> Option<Request> {
        match self {
            Stage::Idle(_) => None,
            Stage::Asking(request) | Stage::Thinking(request, _) | Stage::Answering(request, _) => {
                Some(request)
            }
        }
    }
}

impl Fetcher {
    /// Without connections. `app` is the proxy.
    pub fn new(app: AppId, pool: Pool, legs: Legs, visits: Rc<BTreeMap<AppId, Visited>>) -> Fetcher {
        Fetcher {
            app,
            pool,
            legs,
            visits,
            lines: Vec::new(),
            hops: Vec::new(),
            relaying: Relaying::default(),
            waiting: VecDeque::new(),
            timers: BTreeSet::new(),
            reads: BTreeSet::new(),
            came: VecDeque::new(),
            paused: false,
        }
    }

    /// Fetches an answer. Take what comes from [`Fetcher::came`].
    pub fn ask(&mut self, world: &mut World, request: Request) {
        self.waiting.push_back(request);
        self.dispatch(world);
    }

    /// What has come; call it after each other call, until `None`.
    pub fn came(&mut self) -> Option<Came> {
        self.came.pop_front()
    }

    /// Whether [`Fetcher::came`] has something.
    pub fn has_come(&self) -> bool {
        !self.came.is_empty()
    }

    /// Reads nothing more from the servers until it is told to.
    pub fn pause(&mut self, world: &mut World, paused: bool) {
        if std::mem::replace(&mut self.paused, paused) && !paused {
            (0..self.lines.len()).for_each(|number| self.read(world, number));
            self.dispatch(world);
        }
    }

    /// When to call [`Fetcher::wake`].
    pub fn next(&self) -> Option<Time> {
        let (timer, read) = (self.timers.first(), self.reads.first());
        [timer, read].into_iter().flatten().map(|(time, _)| *time).chain(self.relaying.next()).min()
    }

    /// A time of [`Fetcher::next`] is reached.
    pub fn wake(&mut self, world: &mut World) {
        for number in self.relaying.take() {
            if let Some(hop) = self.lines[number as usize].chain.relay(world) {
                self.hops.push((hop, number));
            }
        }
        // What is left after a read is one more read: the proxy passes on what it has in between.
        let later = self.reads.split_off(&(world.now, u32::MAX));
        for (_, number) in std::mem::replace(&mut self.reads, later) {
            self.read(world, number as usize);
        }
        while let Some((_, number)) = self.timers.first().copied().filter(|(time, _)| *time <= world.now) {
            self.timers.pop_first();
            let line = &mut self.lines[number as usize];
            match line.stage {
                Stage::Thinking(request, due) if due <= world.now => {
                    let (head, body) = self.visits[&request.visit].answer(request.resource);
                    line.stage = Stage::Answering(request, body);
                    line.is_head_due = true;
                    line.upstream.answer(head, body);
                    self.step(world, number as usize);
                }
                Stage::Idle(since)
                    if !line.closed && self.pool.idle.is_some_and(|idle| since + idle <= world.now) =>
                {
                    line.closed = true;
                    line.chain.close(world);
                }
                _ => {}
            }
        }
        self.dispatch(world);
    }

    /// The next proxy has `bytes` more of an answer that this one asked for.
    pub fn answered(&mut self, world: &mut World, request: Request, bytes: u64) {
        let Some(number) = self.lines.iter().position(|line| line.stage.request() == Some(request)) else {
            return;
        };
        let (head, body) = self.visits[&request.visit].answer(request.resource);
        let line = &mut self.lines[number];
        if let Stage::Answering(..) = line.stage {
            line.upstream.answer(0, bytes);
        } else {
            line.stage = Stage::Answering(request, body);
            line.is_head_due = true;
            line.upstream.answer(head, bytes);
        }
        self.step(world, number);
        self.dispatch(world);
    }

    /// A segment reached one of its endpoints, or a timer fired there; other endpoints are ignored.
    pub fn activity(&mut self, world: &mut World, endpoint: EndpointId) {
        let Ok(place) = self.hops.binary_search_by_key(&(endpoint / 2), |(hop, _)| *hop) else { return };
        let number = self.hops[place].1;
        let line = &mut self.lines[number as usize];
        if line.chain.has_relays() {
            self.relaying.add(world.now, number);
        }
        if endpoint == line.chain.client() {
            if !line.connected {
                line.connected = line.chain.is_open(world);
                if !line.connected {
                    return;
                }
                line.upstream.connected();
                self.step(world, number as usize);
            }
            let is_noted = self.reads.iter().any(|(_, waiting)| *waiting == number);
            if !is_noted && world.tcp(endpoint).readable() > 0 {
                self.reads.insert((world.now + READ_AFTER, number));
            }
        } else if line.chain.server() == Some(endpoint) {
            let bytes = world.read(endpoint, u64::MAX);
            if bytes > 0 {
                line.upstream.server_received(bytes);
            }
            if world.tcp(endpoint).is_finished() {
                world.close(endpoint);
            }
        }
        self.step(world, number as usize);
        self.dispatch(world);
    }

    fn read(&mut self, world: &mut World, number: usize) {
        let line = &mut self.lines[number];
        if self.paused || !line.connected || line.closed {
            return;
        }
        let client = line.chain.client();
        let most = if std::mem::take(&mut line.is_head_due) { self.pool.head_read } else { u64::MAX };
        let bytes = world.read(client, most);
        if bytes > 0 {
            line.upstream.client_received(bytes);
            if world.tcp(client).readable() > 0 {
                self.reads.insert((world.now, number as u32));
            }
            self.step(world, number);
        }
    }

    /// Carries out what follows on a connection.
    fn step(&mut self, world: &mut World, number: usize) {
        while let Some(step) = self.lines[number].upstream.poll() {
            let line = &mut self.lines[number];
            match (step, line.stage) {
                (Step::ClientWrites(bytes), _) => line.pending[0] += bytes,
                (Step::ServerWrites(bytes), _) => line.pending[1] += bytes,
                (Step::Ready, stage) => {
                    line.ready = true;
                    if let Stage::Asking(request) = stage {
                        line.upstream.ask(
                            self.visits[&request.visit].request(request.resource, self.pool.request_bytes),
                        );
                    }
                }
                (Step::Asked, Stage::Asking(request)) => {
                    let visited = &self.visits[&request.visit];
                    let leg = self.legs.of(visited.is_encrypted(request.resource));
                    if let Ends::AtProxy { app, .. } = leg.ends {
                        let priority = Priority::default();
                        world.post(self.app, app, Post::Ask { request, priority });
                    } else {
                        let due = world.now + visited.think(request.resource);
                        line.stage = Stage::Thinking(request, due);
                        self.timers.insert((due, number as u32));
                    }
                }
                (Step::Head, Stage::Answering(request, left)) => {
                    self.progress(world, number, request, 0, left)
                }
                (Step::Body(bytes), Stage::Answering(request, left)) => {
                    self.progress(world, number, request, bytes, left - bytes);
                }
                (step, stage) => unreachable!("{step:?} while {stage:?}"),
            }
        }
        self.write(world, number);
    }

    /// `bytes` of an answer have come, and `left` of them have not.
    fn progress(&mut self, world: &World, number: usize, request: Request, bytes: u64, left: u64) {
        let line = &mut self.lines[number];
        line.stage = Stage::Answering(request, left);
        if left == 0 {
            line.stage = Stage::Idle(world.now);
            if let Some(idle) = self.pool.idle {
                self.timers.insert((world.now + idle, number as u32));
            }
        }
        self.came.push_back(Came { request, bytes, last: left == 0 });
    }

    fn write(&mut self, world: &mut World, number: usize) {
        let line = &mut self.lines[number];
        let ends = [Some(line.chain.client()), line.chain.server()];
        for (end, pending) in ends.into_iter().zip(&mut line.pending) {
            let Some(end) = end.filter(|end| !world.tcp(*end).waits_for_space()) else { continue };
            while *pending > 0 {
                match world.write(end, *pending) {
                    0 => break,
                    taken => *pending -= taken,
                }
            }
        }
    }

    /// Gives waiting requests to connections.
    fn dispatch(&mut self, world: &mut World) {
        let mut left = VecDeque::new();
        while let Some(request) = self.waiting.pop_front() {
            let visits = self.visits.clone();
            let visited = &visits[&request.visit];
            let origin = visited.origin(request.resource);
            let same = |line: &Line| {
                (&*line.origin.0, line.origin.1) == (&*origin.host, origin.port) && !line.closed
            };
            let free =
                |(_, line): &(usize, &Line)| same(line) && line.ready && matches!(line.stage, Stage::Idle(_));
            let used = |(_, line): &(usize, &Line)| {
                if let Stage::Idle(since) = line.stage { since } else { Time::ZERO }
            };
            if let Some((number, _)) = self.lines.iter().enumerate().filter(free).max_by_key(used) {
                self.lines[number].stage = Stage::Asking(request);
                let bytes = visited.request(request.resource, self.pool.request_bytes);
                self.lines[number].upstream.ask(bytes);
                self.step(world, number);
            } else if self.lines.iter().filter(|line| same(line)).count() < self.pool.per_origin {
                let number = self.lines.len() as u32;
                let place = SocketAddrV4::new(origin.address, origin.port);
                let chain = Chain::open(self.legs.of(origin.encrypted), place, &origin.host, world);
                self.hops.push((chain.hops()[0], number));
                self.lines.push(Line {
                    chain,
                    upstream: Upstream::new(&origin.host, origin.encrypted.then_some(visited.tls)),
                    origin: (origin.host.clone(), origin.port),
                    connected: false,
                    ready: false,
                    closed: false,
                    is_head_due: false,
                    stage: Stage::Asking(request),
                    pending: [0; 2],
                });
            } else {
                left.push_back(request);
            }
        }
        self.waiting = left;
    }
}
