//! The proxy's records, written at its end as one JSON object into `proxy-HOST.json`.
//!
//! Records stay in memory during the run, so that the proxy never waits for a disk between packets. Times are
//! nanoseconds since the run's epoch.

use crate::Failure;
use serde::Serialize;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::rc::Rc;
use wirepaint_observed_sockets::{Observed, Socket, monotonic};

/// Index of a connection's record, and its number in `carries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionId(usize);

/// Who opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Opened {
    /// A client or the other side of the proxy: this proxy accepted it.
    Accepted,
    /// This proxy.
    Opened,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// With a FIN of each end, or it was open at the end of the run.
    Ordinarily,
    /// With a reset by either end.
    Reset,
    /// With a reset that discarded bytes which its receiver had not taken for 5 s.
    Stalled,
}

#[derive(Serialize)]
struct Connection {
    direction: Opened,
    #[serde(flatten)]
    seen: Observed,
    ended: Ended,
    /// Payload bytes that the proxy has read from it.
    bytes_received: u64,
    /// Payload bytes that the proxy has handed to the kernel.
    bytes_sent: u64,
    /// Positions in this list of the accepted connections whose bytes an opened one carries.
    carries: Vec<ConnectionId>,
}

/// A connection that could not be opened, or was not accepted.
#[derive(Serialize)]
struct Refused {
    address: SocketAddrV4,
    time: u64,
    reason: String,
    /// Position of the accepted connection that was reset for it; null for a request, which the PEP resets in turn.
    carries: Option<ConnectionId>,
}

/// Why the PEP fetched something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// A browser asked for it.
    Asked,
    /// It is sent ahead of the browser.
    Ahead,
}

/// A request at one side of the PEP: at the remote side of a browser, and answers that came ahead and that no browser
/// asked for; at the ground side to an origin.
#[derive(Serialize)]
pub struct Exchange {
    /// When it began.
    pub time: u64,
    /// Of the user's connection.
    pub client_address: Ipv4Addr,
    /// Of the user's connection; of something sent ahead, of the one that asked for its page.
    pub client_port: u16,
    /// HTTP method.
    pub method: String,
    /// Full address.
    pub url: String,
    /// Whether the answer came ahead.
    pub from: From,
    /// A browser asked for it.
    pub wanted: bool,
    /// HTTP status of the answer; null if it had none.
    pub status: Option<u16>,
    /// Bytes of the answer's body as the origin sends it.
    pub body_bytes: u64,
    /// Bytes of the same between the two sides, after compression, with the head.
    pub link_bytes: u64,
    /// Position in `connections`: at the remote side the browser's, at the ground side the one to the origin.
    pub connection: Option<ConnectionId>,
    /// The answer ended as its origin ended it.
    pub whole: bool,
}

/// Index of an exchange's record.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeId(usize);

/// What went over the connections between the sides of the PEP, as one side counts it.
#[derive(Debug, Serialize)]
pub struct Ahead {
    /// Answers that were sent ahead.
    pub objects: usize,
    /// Bytes of these.
    pub bytes: u64,
    /// Answers that were sent ahead and that no browser asked for.
    pub unused_objects: usize,
    /// Bytes of these.
    pub unused_bytes: u64,
}

/// The line that a proxy prints at its end.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Connections accepted.
    pub accepted: usize,
    /// Connections opened.
    pub opened: usize,
    /// Connections that could not be opened.
    pub refused: usize,
    /// Connections that ended with a reset.
    pub reset: usize,
    /// Connections with another congestion control than asked for, at their start or end.
    pub congestion_differs: usize,
    /// Connections with another initial window than asked for.
    pub initial_window_differs: usize,
    /// Requests; of the PEP.
    pub exchanges: usize,
    /// Of the PEP.
    pub ahead: Ahead,
    /// Connections between the sides of the PEP that broke or ended too early, each with the reason.
    pub lost: Vec<String>,
}

/// How the connections of each direction are asked to send: congestion control, initial window.
pub struct AskedFor {
    /// Of accepted connections.
    pub accepted: (String, u32),
    /// Of opened ones.
    pub opened: (String, u32),
}

/// All records of a proxy's host.
pub struct Records {
    epoch: u64,
    host: String,
    asked_for: AskedFor,
    inner: RefCell<Inner>,
}

#[derive(Default, Serialize)]
struct Inner {
    connections: Vec<Connection>,
    refused: Vec<Refused>,
    exchanges: Vec<Exchange>,
    lost: Vec<String>,
}

impl Records {
    /// Empty records of a host, with times since `epoch` (CLOCK_MONOTONIC, nanoseconds).
    pub fn new(host: &str, epoch: u64, asked_for: AskedFor) -> Rc<Records> {
        Rc::new(Records { epoch, host: host.to_owned(), asked_for, inner: RefCell::default() })
    }

    /// Nanoseconds since the epoch.
    pub fn now(&self) -> u64 {
        monotonic().saturating_sub(self.epoch)
    }

    /// The proxy accepted a connection.
    pub fn accepted(&self, client: SocketAddrV4, server: SocketAddrV4, socket: Rc<Socket>) -> ConnectionId {
        self.add(Opened::Accepted, client, server, socket)
    }

    /// The proxy opened a connection, from `client` to `server`.
    pub fn opened(&self, client: SocketAddrV4, server: SocketAddrV4, socket: Rc<Socket>) -> ConnectionId {
        self.add(Opened::Opened, client, server, socket)
    }

    fn add(
        &self,
        direction: Opened,
        client: SocketAddrV4,
        server: SocketAddrV4,
        socket: Rc<Socket>,
    ) -> ConnectionId {
        let seen = Observed::new(client, server, self.now(), socket);
        let connections = &mut self.inner.borrow_mut().connections;
        connections.push(Connection {
            direction,
            seen,
            ended: Ended::Ordinarily,
            bytes_received: 0,
            bytes_sent: 0,
            carries: Vec::new(),
        });
        ConnectionId(connections.len() - 1)
    }

    /// An opened connection carries bytes of an accepted one.
    pub fn carries(&self, opened: ConnectionId, accepted: ConnectionId) {
        let carries = &mut self.inner.borrow_mut().connections[opened.0].carries;
        if !carries.contains(&accepted) {
            carries.push(accepted);
        }
    }

    /// A connection could not be opened, or `carries` was not accepted; it is the accepted one that it was for.
    pub fn refused(&self, address: SocketAddrV4, carries: Option<ConnectionId>, reason: String) {
        let time = self.now();
        self.inner.borrow_mut().refused.push(Refused { address, time, reason, carries });
    }

    /// A request begins.
    pub fn exchange(&self, exchange: Exchange) -> ExchangeId {
        let exchanges = &mut self.inner.borrow_mut().exchanges;
        exchanges.push(exchange);
        ExchangeId(exchanges.len() - 1)
    }

    /// Changes the record of a request.
    pub fn note(&self, id: ExchangeId, change: impl FnOnce(&mut Exchange)) {
        change(&mut self.inner.borrow_mut().exchanges[id.0]);
    }

    /// A connection between the sides of the PEP ended.
    pub fn lost(&self, reason: String) {
        self.inner.borrow_mut().lost.push(reason);
    }

    /// So many bytes were read from a connection.
    pub fn received(&self, id: ConnectionId, bytes: usize) {
        self.inner.borrow_mut().connections[id.0].bytes_received += bytes as u64;
    }

    /// So many bytes were handed to the kernel.
    pub fn sent(&self, id: ConnectionId, bytes: usize) {
        self.inner.borrow_mut().connections[id.0].bytes_sent += bytes as u64;
    }

    /// A connection ends now; asks the kernel once more. Call it before the socket is closed.
    pub fn closed(&self, id: ConnectionId, ended: Ended) {
        let now = self.now();
        let connection = &mut self.inner.borrow_mut().connections[id.0];
        connection.seen.closed = Some(now);
        connection.ended = ended;
        connection.seen.ask_for_the_last_time();
    }

    /// Opens the file in `folder`, before the proxy gives up its rights.
    pub fn create(&self, folder: &Path) -> Result<File, Failure> {
        let path = folder.join(format!("proxy-{}.json", self.host));
        File::create(&path).map_err(Failure::system(path.display().to_string()))
    }

    /// Writes and syncs the file and returns the summary. Connections that are open have no closing time.
    pub fn finish(&self, file: File) -> Result<Summary, Failure> {
        let inner = &mut *self.inner.borrow_mut();
        inner.connections.iter_mut().for_each(|connection| connection.seen.ask_for_the_last_time());
        let attempt = || -> std::io::Result<()> {
            let mut file = BufWriter::new(file);
            serde_json::to_writer(&mut file, inner)?;
            file.flush()?;
            file.get_ref().sync_all()
        };
        attempt().map_err(Failure::system(format!("proxy-{}.json", self.host)))?;
        let of = |direction| inner.connections.iter().filter(move |each| each.direction == direction);
        let differs = |of: &dyn Fn(&Connection, &(String, u32)) -> bool| {
            let asked_for = |each: &Connection| match each.direction {
                Opened::Accepted => &self.asked_for.accepted,
                Opened::Opened => &self.asked_for.opened,
            };
            inner.connections.iter().filter(|each| of(each, asked_for(each))).count()
        };
        let ahead = || inner.exchanges.iter().filter(|each| each.from == From::Ahead);
        let unused = || ahead().filter(|each| !each.wanted);
        Ok(Summary {
            exchanges: inner.exchanges.len(),
            ahead: Ahead {
                objects: ahead().count(),
                bytes: ahead().map(|each| each.link_bytes).sum(),
                unused_objects: unused().count(),
                unused_bytes: unused().map(|each| each.link_bytes).sum(),
            },
            lost: inner.lost.clone(),
            accepted: of(Opened::Accepted).count(),
            opened: of(Opened::Opened).count(),
            refused: inner.refused.len(),
            reset: inner.connections.iter().filter(|each| each.ended != Ended::Ordinarily).count(),
            congestion_differs: differs(&|each, asked| each.seen.congestion_differs(&asked.0)),
            initial_window_differs: differs(&|each, asked| each.seen.initial_window_differs(asked.1)),
        })
    }
}
