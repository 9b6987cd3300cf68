//! The server's records: one per connection and per request.
//!
//! Records stay in memory during the run and are written when the server stops, so that the server never
//! waits for a disk between packets. All times are nanoseconds since the run's epoch.

use crate::Failure;
use crate::answer::Answer;
use crate::clock::monotonic;
use crate::matching::Matched;
use serde::Serialize;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::rc::Rc;
use wirepaint_observed_sockets::{Observed, Socket};

/// File with one JSON object per accepted connection.
pub const CONNECTIONS: &str = "server-connections.jsonl";
/// File with one JSON object per request.
pub const REQUESTS: &str = "server-requests.jsonl";

/// Index of a connection's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(usize);

/// Index of a request's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(usize);

/// One accepted connection.
#[derive(Serialize)]
struct ConnectionRecord {
    /// Name of the site.
    site: String,
    #[serde(flatten)]
    seen: Observed,
    host: Option<String>,
    encrypted: bool,
    protocol: Option<&'static str>,
    tls_done: Option<u64>,
    /// TLS version and cipher suite that were negotiated.
    tls: Option<String>,
    requests: u64,
    body_bytes_sent: u64,
}

/// One request and its response.
#[derive(Serialize)]
struct Request {
    /// Name of the site, to which `response` belongs.
    site: String,
    time: u64,
    client_address: Ipv4Addr,
    client_port: u16,
    server_address: Ipv4Addr,
    server_port: u16,
    method: String,
    url: String,
    status: u16,
    matched: Matched,
    response: Option<usize>,
    think_ns: u64,
    /// When the think time ended and the response began.
    began: Option<u64>,
    priority: Option<String>,
    wire_bytes: u64,
    /// Bytes of the head in HTTP/1.1; HTTP/2 needs fewer.
    head_bytes: usize,
    first_byte: Option<u64>,
    last_byte: Option<u64>,
    /// Number of the connection's record.
    connection: usize,
}

/// A request as its connection received it.
pub struct Asked {
    /// When its last byte had been read, on [`monotonic`]'s clock.
    pub at: u64,
    /// HTTP method; empty when the request was malformed.
    pub method: String,
    /// Full address; empty when the request was malformed.
    pub url: String,
    /// Value of the `priority` header.
    pub priority: Option<String>,
}

/// The line that the server prints at its end.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Connections accepted.
    pub connections: usize,
    /// Requests answered.
    pub requests: usize,
    /// Requests that the recording has no answer for.
    pub unmatched: usize,
    /// Requests answered by a recording with another query.
    pub matched_by_query: usize,
    /// Responses whose last byte was not handed to the kernel.
    pub unfinished: usize,
    /// Body bytes handed to the kernel.
    pub body_bytes_sent: u64,
    /// Connections with another congestion control than requested, at their start or end.
    pub congestion_differs: usize,
    /// Connections with another initial window than requested.
    pub initial_window_differs: usize,
    /// Pauses of the event loop.
    pub pauses: Vec<Pause>,
}

/// All records of a run.
pub struct Records {
    epoch: u64,
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    connections: Vec<ConnectionRecord>,
    requests: Vec<Request>,
    pauses: Vec<Pause>,
}

/// Shortest pause that is reported, and most pauses reported.
const SHORTEST_PAUSE_NS: u64 = 5_000_000;
const MOST_PAUSES: usize = 1000;

/// A time in which the event loop did not serve its timer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Pause {
    /// Nanoseconds beyond the timer.
    pub length: u64,
    /// When it ended, nanoseconds since the run's epoch.
    pub at: u64,
}

impl Records {
    /// Empty records with times since `epoch` (CLOCK_MONOTONIC, nanoseconds).
    pub fn new(epoch: u64) -> Records {
        Records { epoch, inner: RefCell::default() }
    }

    fn since_epoch(&self, time: u64) -> u64 {
        time.saturating_sub(self.epoch)
    }

    fn now(&self) -> u64 {
        self.since_epoch(monotonic())
    }

    /// A connection was accepted; asks the kernel for its congestion control and initial window.
    pub fn accepted(
        &self,
        site: &str,
        client: SocketAddrV4,
        server: SocketAddrV4,
        encrypted: bool,
        socket: Rc<Socket>,
    ) -> ConnectionId {
        let seen = Observed::new(client, server, self.now(), socket);
        let connections = &mut self.inner.borrow_mut().connections;
        connections.push(ConnectionRecord {
            site: site.to_owned(),
            seen,
            host: None,
            encrypted,
            protocol: None,
            tls_done: None,
            tls: None,
            requests: 0,
            body_bytes_sent: 0,
        });
        ConnectionId(connections.len() - 1)
    }

    /// The TLS handshake is complete.
    pub fn tls_done(&self, id: ConnectionId, host: Option<&str>, tls: String) {
        let now = self.now();
        let connection = &mut self.inner.borrow_mut().connections[id.0];
        connection.tls_done = Some(now);
        connection.tls = Some(tls);
        connection.host = host.map(str::to_owned);
    }

    /// The connection speaks `protocol`.
    pub fn speaks(&self, id: ConnectionId, protocol: &'static str) {
        self.inner.borrow_mut().connections[id.0].protocol = Some(protocol);
    }

    /// The connection ended; asks the kernel once more.
    pub fn closed(&self, id: ConnectionId) {
        let now = self.now();
        let connection = &mut self.inner.borrow_mut().connections[id.0];
        connection.seen.closed = Some(now);
        connection.seen.ask_for_the_last_time();
    }

    /// A request is complete and will be answered.
    pub fn asked(&self, id: ConnectionId, asked: Asked, answer: &Answer) -> RequestId {
        let time = self.since_epoch(asked.at);
        let Inner { connections, requests, .. } = &mut *self.inner.borrow_mut();
        let connection = &mut connections[id.0];
        connection.requests += 1;
        requests.push(Request {
            site: connection.site.clone(),
            time,
            client_address: connection.seen.client_address,
            client_port: connection.seen.client_port,
            server_address: connection.seen.server_address,
            server_port: connection.seen.server_port,
            method: asked.method,
            url: asked.url,
            status: answer.status.as_u16(),
            matched: answer.matched,
            response: answer.response,
            think_ns: answer.think_ns,
            began: None,
            priority: asked.priority,
            wire_bytes: answer.body.len() as u64,
            head_bytes: answer.head(true).len(),
            first_byte: None,
            last_byte: None,
            connection: id.0,
        });
        RequestId(requests.len() - 1)
    }

    /// The think time of a request is over and its response begins.
    pub fn began(&self, id: RequestId) {
        let now = self.now();
        self.inner.borrow_mut().requests[id.0].began = Some(now);
    }

    /// The event loop woke `late` nanoseconds after its timer.
    pub fn woke(&self, late: u64) {
        let at = self.now();
        let pauses = &mut self.inner.borrow_mut().pauses;
        if late >= SHORTEST_PAUSE_NS && pauses.len() < MOST_PAUSES {
            pauses.push(Pause { length: late, at });
        }
    }

    /// The first byte of the response has been handed to the kernel.
    pub fn first_byte(&self, id: RequestId) {
        let now = self.now();
        self.inner.borrow_mut().requests[id.0].first_byte.get_or_insert(now);
    }

    /// The last byte of the response has been handed to the kernel.
    pub fn last_byte(&self, id: RequestId) {
        let now = self.now();
        self.inner.borrow_mut().requests[id.0].last_byte = Some(now);
    }

    /// `bytes` more of the response's body have been handed over.
    pub fn sent(&self, id: RequestId, bytes: usize) {
        let Inner { connections, requests, .. } = &mut *self.inner.borrow_mut();
        connections[requests[id.0].connection].body_bytes_sent += bytes as u64;
    }

    /// Writes and syncs both files and returns the summary. Connections that are still open are queried now
    /// and have no closing time.
    pub fn finish(&self, files: Files, congestion: &str, initial_window: u32) -> Result<Summary, Failure> {
        let Inner { connections, requests, pauses } = &mut *self.inner.borrow_mut();
        for connection in connections.iter_mut() {
            connection.seen.ask_for_the_last_time();
        }
        write_lines(files.connections, CONNECTIONS, connections)?;
        write_lines(files.requests, REQUESTS, requests)?;
        Ok(Summary {
            connections: connections.len(),
            requests: requests.len(),
            unmatched: requests.iter().filter(|r| r.matched == Matched::None).count(),
            matched_by_query: requests.iter().filter(|r| r.matched == Matched::Query).count(),
            unfinished: requests.iter().filter(|r| r.last_byte.is_none()).count(),
            body_bytes_sent: connections.iter().map(|c| c.body_bytes_sent).sum(),
            congestion_differs: connections.iter().filter(|c| c.seen.congestion_differs(congestion)).count(),
            initial_window_differs: connections
                .iter()
                .filter(|c| c.seen.initial_window_differs(initial_window))
                .count(),
            pauses: std::mem::take(pauses),
        })
    }
}

/// Both files, opened before the server gives up its rights.
pub struct Files {
    connections: File,
    requests: File,
}

/// Opens both files in `folder`.
pub fn files(folder: &Path) -> Result<Files, Failure> {
    let create = |name| {
        let path = folder.join(name);
        File::create(&path).map_err(Failure::system(path.display().to_string()))
    };
    Ok(Files { connections: create(CONNECTIONS)?, requests: create(REQUESTS)? })
}

fn write_lines<T: Serialize>(file: File, name: &str, rows: &[T]) -> Result<(), Failure> {
    let attempt = || -> std::io::Result<()> {
        let mut file = BufWriter::new(file);
        for row in rows {
            serde_json::to_writer(&mut file, row)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        file.get_ref().sync_all()
    };
    attempt().map_err(Failure::system(name.to_owned()))
}
