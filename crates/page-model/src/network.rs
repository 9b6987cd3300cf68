//! The browser's network process and the servers: connections, their requests and their bytes.
//!
//! A model of a browser's socket pools, sessions and limit on delayable requests, after Chromium's (`net/socket`,
//! `services/network/resource_scheduler`), as the testbed drives it: cold, no proxy, no QUIC.
//!
//! ```text
//! ask ─► delayable? ─► group of the origin ─► idle connection, session, or connect
//!                                                 │ TCP ─► TLS ─► request ─► Server ─► answer
//! Note::{Data, Done} ◄───────────────────────────┘
//! ```
//!
//! - DEVIATION: no flow-control windows of HTTP/2. Chromium grants 15 MiB to a connection and 6 MiB to a
//!   stream. No network of the catalogue holds that much (geo-satellite 3 MiB with its queue), and no shipped
//!   page has an object that large.
//! - DEVIATION: the kernel takes a server's write as a whole or not at all; Linux may take a part.
//! - DEVIATION: no HTTP/3.

use crate::action::{Action, Message};
use crate::agenda::Agenda;
use crate::browser::Browser;
use crate::machine::Thread;
use crate::noise::Noise;
use crate::page::{Cause, Page};
use crate::pipe::{Piece, Pipe};
use crate::priority::Priority;
use crate::rows::{ChunkRow, ConnectionRow};
use crate::server::{Backlog, Down, Server};
use chain::Chain;
use std::collections::VecDeque;
use std::sync::Arc;
use wirepaint_http_model::{Coding, Heads, Protocol};
use wirepaint_units::{Duration, Time};

mod chain;
mod connections;
mod real;
mod serving;
mod waiting;

/// The one byte stream of a connection over TCP.
pub const STREAM: u32 = 0;

/// A report of the network process about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Bytes of a document's body have arrived.
    Data(u32, u64),
    /// The answer is complete.
    Done(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// SYN sent.
    Connecting,
    /// TCP connected, TLS not done.
    Securing,
    /// Accepts requests.
    Ready,
    Closed,
}

#[derive(Debug)]
struct Connection {
    group: usize,
    stage: Stage,
    resumed: bool,
    protocol: &'static dyn Protocol,
    up: Pipe<Message>,
    down: Pipe<Down>,
    server: Server,
    /// Time of the server's event in the agenda.
    alarm: Option<Time>,
    coding: Box<dyn Coding>,
    /// Preface and settings were sent.
    opened_session: bool,
    /// Multiplexed: requests that are written together.
    outbox: Vec<u32>,
    /// Multiplexed: requests under way.
    chain: Chain,
    /// Otherwise: requests under way.
    busy: u8,
    /// Time of its last use; zero for never.
    used: Time,
}

/// Requests to one origin that may share connections.
#[derive(Debug)]
struct Group {
    origin: u32,
    pool: u32,
    /// Requests without a connection, oldest first.
    waiting: Vec<u32>,
    /// DNS look-ups, each for a connection; they end in the order in which they began.
    look_ups: usize,
    /// Look-ups, oldest first, whose connection is no longer wanted.
    given_up: usize,
    connections: Vec<usize>,
    session: Option<usize>,
    /// A TLS ticket has arrived, so that further connections can resume.
    ticket: bool,
}

/// A request as the network process sees it.
#[derive(Clone, Debug)]
pub struct Transfer {
    priority: Priority,
    /// Urgency known to the server.
    urgency: u8,
    group: usize,
    /// Bytes of the body that have not arrived.
    left: u64,
    delayable: bool,
    stage: Progress,
    /// Connection that carries it.
    pub connection: Option<u32>,
    /// True for the first request of its connection.
    pub first: bool,
    /// The request began to wait for a connection.
    pub queued: Option<Time>,
    /// The request was written.
    pub sent: Option<Time>,
    /// First byte of the answer.
    pub first_byte: Option<Time>,
    /// Last byte of the answer.
    pub last_byte: Option<Time>,
    /// Bytes of the answer on the wire without TLS, head included.
    pub encoded: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Unknown,
    /// Held back, because too many delayable requests are under way.
    Delayed,
    Waiting,
    /// Also: it is read from the cache.
    OnWire,
    Done,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A look-up of a group is over.
    Resolved(usize),
    /// The backup timer of a group's first connect.
    Backup(usize),
    /// A think time is over.
    Server(usize),
    /// The body of a request has been read from the cache.
    FromCache(u32),
}

/// Work of a thread that has an effect at its end; see [`NetworkProcess::worked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The browser makes its ClientHello.
    Hello(usize),
    /// The server answers a ClientHello.
    Flight(usize),
    /// The browser checks the server's part of the handshake and completes its own.
    Finish(usize),
    /// The browser writes the requests of a session.
    Write(usize),
    /// The server finds the answer to a request.
    Answer(usize, u32),
}

/// Network process and servers of one visit.
#[derive(Debug)]
pub struct NetworkProcess {
    page: Arc<Page>,
    heads: Arc<Heads>,
    browser: Arc<Browser>,
    noise: Noise,
    agenda: Agenda<Event>,
    groups: Vec<Group>,
    connections: Vec<Connection>,
    /// Rows of the table `connection`.
    pub rows: Vec<ConnectionRow>,
    /// Rows of the table `chunk`.
    pub chunks: Vec<ChunkRow>,
    /// By resource.
    pub transfers: Vec<Transfer>,
    delayed: Vec<u32>,
    /// Origins that are known to schedule by priority.
    schedules: Vec<bool>,
    /// Actions for the caller.
    pub actions: VecDeque<Action>,
    /// Reports to the page.
    pub notes: VecDeque<Note>,
    /// Requests that a server left without an answer, each with its connection; nobody asks again.
    pub unanswered: VecDeque<(u32, u32)>,
    /// Jobs for threads, until the caller takes them. `None`: nobody waits for this work.
    pub works: VecDeque<(Thread, Duration, Option<Work>)>,
    pieces: Vec<Piece<Down>>,
    /// The proxy that ends connections.
    ends: EndsAtProxy,
}

/// Which connections end at a proxy that answers in the servers' place, and how its answers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndsAtProxy {
    /// Those with TLS: bytes that it adds to the head of an answer.
    pub encrypted: Option<u64>,
    /// The same of those without.
    pub plain: Option<u64>,
}

impl NetworkProcess {
    /// The state before the first request.
    pub fn new(page: Arc<Page>, heads: Arc<Heads>, browser: Arc<Browser>, noise: Noise) -> NetworkProcess {
        let transfer = Transfer {
            priority: Priority::Low,
            urgency: Priority::Low.urgency(),
            group: 0,
            left: 0,
            delayable: false,
            stage: Progress::Unknown,
            connection: None,
            first: false,
            queued: None,
            sent: None,
            first_byte: None,
            last_byte: None,
            encoded: 0,
        };
        NetworkProcess {
            transfers: vec![transfer; page.resources.len()],
            schedules: vec![false; page.origins.len()],
            page,
            heads,
            browser,
            noise,
            agenda: Agenda::default(),
            groups: Vec::new(),
            connections: Vec::new(),
            rows: Vec::new(),
            chunks: Vec::new(),
            delayed: Vec::new(),
            actions: VecDeque::new(),
            notes: VecDeque::new(),
            unanswered: VecDeque::new(),
            works: VecDeque::new(),
            pieces: Vec::new(),
            ends: EndsAtProxy::default(),
        }
    }

    /// Connections end at a proxy. Call it before the first request.
    pub fn end_at_proxy(&mut self, ends: EndsAtProxy) {
        self.ends = ends;
    }

    /// A request of the page.
    pub fn ask(&mut self, now: Time, request: u32, priority: Priority) {
        let group = self.group(request);
        let known = self.schedules[self.groups[group].origin as usize];
        let resource = &self.page.resources[request as usize];
        // A redirected request keeps its state: it is not held back again.
        let redirected = match resource.cause {
            Some(Cause::Redirect { by }) => Some(self.transfers[by as usize].delayable),
            _ => None,
        };
        let transfer = &mut self.transfers[request as usize];
        transfer.priority = priority;
        transfer.group = group;
        transfer.left = resource.answer_bytes();
        transfer.delayable = redirected.unwrap_or(priority < Priority::High && !known);
        if redirected.is_some() {
            self.queue(now, request);
            return;
        }
        transfer.stage = Progress::Delayed;
        self.delayed.push(request);
        self.start_delayed(now);
    }

    /// The page changes a request's priority.
    pub fn raise(&mut self, now: Time, request: u32, priority: Priority) {
        let transfer = &mut self.transfers[request as usize];
        transfer.priority = priority;
        transfer.delayable &= priority < Priority::High;
        match (transfer.stage, transfer.connection) {
            (Progress::Delayed, _) => self.start_delayed(now),
            (Progress::OnWire, Some(number)) => {
                let connection = &mut self.connections[number as usize];
                let change = connection.protocol.priority_change();
                // DEVIATION: the frame that tells of the next stream in the chain is left out.
                if change > 0 && connection.chain.change(request, priority) {
                    self.client_frame(number as usize, Message::Raise(request, priority.urgency()), change);
                }
            }
            _ => {}
        }
    }

    /// The client's side of a connection is established.
    pub fn connected(&mut self, now: Time, number: u32) {
        let at = number as usize;
        self.rows[at].connected = Some(now);
        if self.connections[at].stage != Stage::Connecting {
            return;
        }
        self.connections[at].stage = Stage::Securing;
        if self.rows[at].encrypted {
            self.work(Thread::Network, self.browser.compute.tls_ns, Work::Hello(at));
        } else {
            self.ready(now, at);
        }
    }

    /// `bytes` more bytes from the server have arrived at the client in order.
    pub fn client_received(&mut self, now: Time, number: u32, bytes: u64) {
        let at = number as usize;
        let row = &mut self.rows[at];
        row.bytes_received += bytes;
        row.last_received = Some(now);
        let (transfers, chunks) = (&mut self.transfers, &mut self.chunks);
        let connection = &mut self.connections[at];
        connection.down.arrive(bytes, |meaning, bytes| {
            if let Down::Head(request) | Down::Body(request) = meaning {
                let transfer = &mut transfers[request as usize];
                transfer.first_byte.get_or_insert(now);
                ChunkRow { request, connection: number, time: now, bytes }.add_to(chunks);
            }
        });
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.extend(std::iter::from_fn(|| connection.down.read()));
        for piece in pieces.drain(..) {
            self.read(now, at, piece);
        }
        self.pieces = pieces;
    }

    /// `bytes` more bytes from the client have arrived at the server in order.
    pub fn server_received(&mut self, now: Time, number: u32, bytes: u64) {
        let at = number as usize;
        self.connections[at].up.arrive(bytes, |_, _| {});
        while let Some(piece) = self.connections[at].up.read() {
            if piece.last {
                self.serve(at, piece.meaning);
            }
        }
        self.server_writes(now, at);
    }

    /// True when a connection carries many requests at once.
    pub fn is_multiplexed(&self, number: u32) -> bool {
        self.connections[number as usize].protocol.is_multiplexed()
    }

    /// How much the server's kernel takes on a connection; call after each change.
    pub fn server_acknowledged(&mut self, now: Time, number: u32, backlog: Backlog) {
        self.connections[number as usize].server.acknowledged(backlog);
        self.server_writes(now, number as usize);
    }

    /// The time of the next event.
    pub fn next_timeout(&self) -> Option<Time> {
        self.agenda.next()
    }

    /// Handles the events that are due.
    pub fn timeout(&mut self, now: Time) {
        while let Some((_, event)) = self.agenda.due(now) {
            match event {
                Event::Resolved(group) => self.resolved(now, group),
                Event::Backup(group) => self.backup(now, group),
                Event::Server(at) => {
                    self.connections[at].alarm = None;
                    self.server_writes(now, at);
                }
                Event::FromCache(request) => self.complete(now, request),
            }
        }
    }

    /// A thread has finished a job of [`NetworkProcess::works`].
    pub fn worked(&mut self, now: Time, work: Work) {
        match work {
            Work::Hello(at) => self.hello(at),
            Work::Flight(at) => self.flight(at),
            Work::Finish(at) => {
                if self.connections[at].stage == Stage::Securing {
                    self.rows[at].tls_done = Some(now);
                    let bytes = self.handshake(at).client_finished();
                    self.client_raw(at, Message::Finished, bytes);
                    self.ready(now, at);
                }
            }
            Work::Write(at) => {
                for request in std::mem::take(&mut self.connections[at].outbox) {
                    self.write(now, at, request);
                }
            }
            Work::Answer(at, request) => {
                self.answer(now, at, request);
                self.server_writes(now, at);
            }
        }
    }

    fn work(&mut self, thread: Thread, usual: Duration, work: Work) {
        let time = self.noise.vary(usual);
        self.works.push_back((thread, time, Some(work)));
    }

    // Requests.

    /// Gives a request to a connection.
    fn send(&mut self, now: Time, at: usize, request: u32) {
        if !self.connections[at].protocol.is_multiplexed() {
            self.write(now, at, request);
            return;
        }
        if !std::mem::replace(&mut self.connections[at].opened_session, true) {
            self.client_frame(at, Message::Settings, self.browser.hello.http2_opening);
        }
        self.connections[at].outbox.push(request);
        if self.connections[at].outbox.len() == 1 {
            self.works.push_back((Thread::Network, Duration::ZERO, Some(Work::Write(at))));
        }
    }

    /// Writes a request.
    fn write(&mut self, now: Time, at: usize, request: u32) {
        let connection = &mut self.connections[at];
        let resource = &self.page.resources[request as usize];
        let message = Message::Request(request, self.transfers[request as usize].priority.urgency());
        let head = connection.coding.request(&self.heads, request);
        let body = resource.post_bytes + connection.protocol.framing(resource.post_bytes);
        let bytes = connection.up.write(&[(message, head + body, 0)]);
        if connection.protocol.is_multiplexed() {
            connection.chain.add(request, self.transfers[request as usize].priority);
        } else {
            connection.busy += 1;
            connection.used = now;
        }
        let connection = at as u32;
        self.actions.push_back(Action::ClientWrite { connection, stream: STREAM, bytes, message });
        let row = &mut self.rows[at];
        let transfer = &mut self.transfers[request as usize];
        transfer.first = row.objects == 0;
        transfer.connection = Some(at as u32);
        transfer.sent = Some(now);
        transfer.stage = Progress::OnWire;
        row.bytes_sent += bytes;
        row.objects += 1;
        row.first_request.get_or_insert(now);
    }

    /// Writes HTTP/2 control frames, in their own record and segment.
    fn client_frame(&mut self, at: usize, message: Message, plain: u64) {
        let bytes = self.connections[at].up.write(&[(message, plain, 0)]);
        self.rows[at].bytes_sent += bytes;
        let connection = at as u32;
        self.actions.push_back(Action::ClientWrite { connection, stream: STREAM, bytes, message });
    }

    fn client_raw(&mut self, at: usize, message: Message, bytes: u64) {
        self.connections[at].up.write_raw(message, bytes);
        self.rows[at].bytes_sent += bytes;
        let connection = at as u32;
        self.actions.push_back(Action::ClientWrite { connection, stream: STREAM, bytes, message });
    }

    /// The browser reads a piece from a server.
    fn read(&mut self, now: Time, at: usize, piece: Piece<Down>) {
        match piece.meaning {
            Down::Flight => self.work(Thread::Network, self.browser.compute.tls_ns, Work::Finish(at)),
            Down::Control => {
                let group = self.connections[at].group;
                self.groups[group].ticket = true;
            }
            Down::Settings => {
                // It takes room in the first window until the server's TCP acknowledges it.
                if self.connections[at].opened_session {
                    let acknowledgement = self.connections[at].protocol.acknowledgement();
                    self.client_frame(at, Message::Acknowledgement, acknowledgement);
                }
            }
            Down::Head(request) => self.received(now, at, request, 0),
            Down::Body(request) => self.received(now, at, request, u64::from(piece.bytes)),
            Down::End => self.ended(now, at),
        }
    }

    fn received(&mut self, now: Time, at: usize, request: u32, bytes: u64) {
        let transfer = &mut self.transfers[request as usize];
        transfer.left -= bytes;
        if bytes > 0 && self.page.resources[request as usize].is_parsed_as_it_comes() {
            self.notes.push_back(Note::Data(request, bytes));
        }
        if transfer.left > 0 || transfer.stage == Progress::Done {
            return;
        }
        self.rows[at].last_byte = Some(now);
        self.complete(now, request);
        if self.connections[at].protocol.is_multiplexed() {
            self.connections[at].chain.remove(request);
        } else {
            self.connections[at].busy -= 1;
            self.connections[at].used = now;
            self.dispatch(now, self.connections[at].group);
        }
    }

    /// An answer is complete; a stored one gives its body as a whole.
    fn complete(&mut self, now: Time, request: u32) {
        let transfer = &mut self.transfers[request as usize];
        transfer.stage = Progress::Done;
        transfer.last_byte = Some(now);
        let resource = &self.page.resources[request as usize];
        if resource.cached.is_some() && resource.is_parsed_as_it_comes() {
            self.notes.push_back(Note::Data(request, resource.body_bytes()));
        }
        self.notes.push_back(Note::Done(request));
        self.start_delayed(now);
    }
}
