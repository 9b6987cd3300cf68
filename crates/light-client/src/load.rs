//! One visit: the page model's client above connections.

use crate::connection::{Connection, Ends, Seen};
use crate::event::{Event, Fault};
use crate::records::{self, OfSocket, ns};
use crate::requests::Request;
use crate::tls::{Settings, Trust};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use wirepaint_http_model::HttpVersion;
use wirepaint_observed_sockets::Poll;
use wirepaint_page_model::page::{Origin, Resource};
use wirepaint_page_model::{Browser, Client, Heard, Order, Prepared};
use wirepaint_run::{Host, Run, Visit as Asked};
use wirepaint_units::{Duration, Time};

/// What all visits share.
pub struct Shared {
    pub poll: Poll,
    /// The visit, by its place, and the connection behind each number of the poll.
    pub watched: Vec<(usize, u32)>,
    pub buffer: Vec<u8>,
}

/// A visit.
pub struct Load {
    number: usize,
    /// Its place among the visits of light users.
    place: usize,
    asked: Asked,
    address: Ipv4Addr,
    congestion: String,
    prepared: Prepared,
    version: HttpVersion,
    tls: Settings,
    client: Client,
    stage: Stage,
    /// Counted from the load event of the visit that it waits for, if any.
    start: Time,
    /// By the client's number; `None` once closed.
    connections: Vec<Option<Connection>>,
    of_sockets: Vec<OfSocket>,
    /// By the client's number: position of the origin that it was opened for.
    origins: Vec<u32>,
    /// By the page's number: the status, and the bytes of the body that have not come.
    statuses: Vec<Option<u16>>,
    left: Vec<u64>,
    late: Duration,
    failed: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Another visit has to end first.
    After,
    Waiting,
    Loading,
    Over(Time),
}

impl Load {
    /// A visit of a run whose page and browser were checked.
    pub fn new(
        (number, asked): (usize, &Asked),
        run: &Run,
        place: usize,
        (host, address): (&Host, Ipv4Addr),
        prepared: &Prepared,
        browser: Arc<Browser>,
        trust: &Trust,
    ) -> Result<Load, rustls::Error> {
        let seed = run.seed.wrapping_add(SEED_STEP.wrapping_mul(number as u64 + 1));
        let count = prepared.page().resources.len();
        Ok(Load {
            number,
            place,
            asked: asked.clone(),
            address,
            congestion: host.congestion.clone(),
            prepared: prepared.clone(),
            version: browser.http,
            tls: trust.settings(&run.transport, &browser)?,
            client: Client::new(prepared, browser, seed),
            stage: if asked.after.is_some() { Stage::After } else { Stage::Waiting },
            start: asked.start_ns,
            connections: Vec::new(),
            of_sockets: Vec::new(),
            origins: Vec::new(),
            statuses: vec![None; count],
            left: vec![0; count],
            late: Duration::ZERO,
            failed: None,
        })
    }

    /// The times of the visits count from `begin`.
    pub fn begin(&mut self, begin: Time) {
        if self.asked.after.is_none() {
            self.start = begin + self.start.since(Time::ZERO);
        }
    }

    /// The visit that it waited for is over; its load event was at `loaded`.
    pub fn follow(&mut self, now: Time, loaded: Time) {
        self.start = now.max(loaded + self.start.since(Time::ZERO));
        self.stage = Stage::Waiting;
    }

    /// When the load event fired, or else when the visit ended.
    pub fn loaded(&self, now: Time) -> Time {
        self.client.load_event().unwrap_or(now)
    }

    /// True once nothing more happens.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// True for one without a load event.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Longest time by which an effect of computing came late.
    pub fn late(&self) -> Duration {
        self.late
    }

    /// When to call [`Load::wake`].
    pub fn next(&self) -> Option<Time> {
        match self.stage {
            Stage::Waiting => Some(self.start),
            Stage::Loading => {
                Some(self.client.next_timeout().map_or(self.deadline(), |at| at.min(self.deadline())))
            }
            Stage::After | Stage::Over(_) => None,
        }
    }

    fn deadline(&self) -> Time {
        self.start + self.asked.timeout_ns
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Time, shared: &mut Shared) {
        if self.stage == Stage::Waiting && now >= self.start {
            self.start = now;
            self.stage = Stage::Loading;
            self.client.start(now);
            self.act(now, shared);
        }
        // Each effect at its own time, so that the work that follows it does not begin late as well.
        while self.stage == Stage::Loading
            && let Some(due) = self.client.next_timeout().filter(|&due| due <= now)
        {
            self.late = self.late.max(now.since(due));
            self.client.timeout(due);
            self.act(now, shared);
        }
        if self.stage == Stage::Loading && now >= self.deadline() {
            if self.client.load_event().is_none() {
                self.failed =
                    Some(format!("no load event within {} s", self.asked.timeout_ns.0 as f64 / 1e9));
            }
            self.finish(now);
        }
    }

    /// A socket has changed.
    pub fn changed(&mut self, now: Time, number: u32, shared: &mut Shared) {
        self.wake(now, shared);
        let Some(Some(connection)) = self.connections.get_mut(number as usize) else { return };
        let mut seen = Seen::default();
        let looked = connection.look(&mut shared.buffer, &mut seen);
        self.tell(now, number, seen).and(looked).unwrap_or_else(|fault| self.fail(now, number, fault));
        self.act(now, shared);
    }

    /// Ends the visit before its time.
    pub fn cut_off(&mut self, now: Time) {
        if !self.is_over() {
            self.failed = Some("the run ended before the page was loaded".to_owned());
            self.finish(now);
        }
    }

    /// Tells the client what was seen of a connection.
    fn tell(&mut self, now: Time, number: u32, seen: Seen) -> Result<(), Fault> {
        if seen.connected {
            self.of_sockets[number as usize].port = self.connection(number).and_then(|own| own.port());
            self.client.connected(now, number);
        }
        let mut heard = Vec::with_capacity(seen.events.len() + 2);
        heard.extend(seen.handshake.map(|bytes| Heard::Handshake { bytes }));
        for event in seen.events {
            heard.extend(self.checked(event)?);
        }
        heard.extend(seen.ended.then_some(Heard::End));
        if !heard.is_empty() {
            self.client.heard(now, number, &heard);
        }
        if seen.ended {
            self.close(number);
        }
        Ok(())
    }

    /// Compares an answer with the page's.
    fn checked(&mut self, event: Event) -> Result<Option<Heard>, Fault> {
        match event {
            Event::Head { request, status, bytes } => {
                let resource = &self.prepared.page().resources[request as usize];
                let recorded = resource.answer_status();
                if status / 100 != recorded / 100 {
                    let Resource { method, url, .. } = resource;
                    let text = format!("{method} {url} was answered with {status}, recorded: {recorded}");
                    return Err(Fault(text));
                }
                self.statuses[request as usize] = Some(status);
                self.left[request as usize] = self.client.body(request);
                Ok(Some(Heard::Head { request, bytes }))
            }
            Event::Body { request, bytes, payload } => {
                let left = self.left[request as usize].checked_sub(payload);
                self.left[request as usize] =
                    left.ok_or_else(|| self.wrong_length(request, "longer than"))?;
                Ok(Some(Heard::Body { request, bytes, payload }))
            }
            Event::Complete { request } if self.left[request as usize] > 0 => {
                Err(self.wrong_length(request, "shorter than"))
            }
            Event::Complete { .. } => Ok(None),
        }
    }

    fn wrong_length(&self, request: u32, relation: &str) -> Fault {
        let url = &self.prepared.page().resources[request as usize].url;
        Fault(format!("the answer to {url} is {relation} the page's {} bytes", self.client.body(request)))
    }

    /// Carries out the client's orders.
    fn act(&mut self, now: Time, shared: &mut Shared) {
        while self.stage == Stage::Loading
            && let Some(order) = self.client.poll()
        {
            let (number, done) = match order {
                Order::Connect { connection, origin } => (connection, self.open(connection, origin, shared)),
                Order::Handshake { connection } => (connection, self.secure(connection)),
                Order::Request { connection, request, priority } => {
                    let request = Request::new(self.prepared.page(), request, priority);
                    let mut seen = Seen::default();
                    let asked = match self.connection(connection) {
                        Some(own) => own.ask(request, priority, &mut seen),
                        None => Ok(()),
                    };
                    (connection, asked.and_then(|()| self.tell(now, connection, seen)))
                }
                Order::Raise { connection, request, priority } => match self.connection(connection) {
                    Some(own) => (connection, own.raise(request, priority)),
                    None => continue,
                },
                Order::Close { connection } => {
                    self.close(connection);
                    continue;
                }
                Order::Unanswered { request, connection } => {
                    let url = &self.prepared.page().resources[request as usize].url;
                    (connection, Err(Fault(format!("the server closed it before the answer to {url}"))))
                }
                Order::Done => return self.finish(now),
            };
            if let Err(fault) = done {
                self.fail(now, number, fault);
            }
        }
    }

    fn open(&mut self, number: u32, origin: u32, shared: &mut Shared) -> Result<(), Fault> {
        let Origin { address, port, encrypted, .. } = self.prepared.page().origins[origin as usize];
        let server = SocketAddrV4::new(address, port);
        let ends = Ends { client: self.address, congestion: &self.congestion, server };
        let version = if encrypted { self.version } else { HttpVersion::H1 };
        let opened = Connection::open(&ends, encrypted, version, &shared.poll, shared.watched.len());
        shared.watched.push((self.place, number));
        self.of_sockets.push(OfSocket::default());
        self.origins.push(origin);
        let (connection, result) = match opened {
            Ok(connection) => (Some(connection), Ok(())),
            Err(fault) => (None, Err(fault)),
        };
        self.connections.push(connection);
        result
    }

    fn secure(&mut self, number: u32) -> Result<(), Fault> {
        let host = self.origin(number).host.clone();
        let Load { connections, tls, .. } = self;
        connections[number as usize].as_mut().map_or(Ok(()), |own| own.begin_tls(tls, &host))
    }

    /// Whom a connection was opened for.
    fn origin(&self, number: u32) -> &Origin {
        &self.prepared.page().origins[self.origins[number as usize] as usize]
    }

    fn connection(&mut self, number: u32) -> Option<&mut Connection> {
        self.connections[number as usize].as_mut()
    }

    /// Closes a connection, and keeps what its socket tells.
    fn close(&mut self, number: u32) {
        if let Some(own) = self.connections[number as usize].take() {
            let of_socket = &mut self.of_sockets[number as usize];
            of_socket.port = of_socket.port.or(own.port());
            of_socket.tls = own.tls();
            (of_socket.received, of_socket.sent) = (own.received, own.sent);
            of_socket.congestion_end = own.congestion.as_ref().and_then(|_| own.present_congestion());
            of_socket.congestion = own.congestion;
        }
    }

    fn fail(&mut self, now: Time, number: u32, Fault(cause): Fault) {
        if self.is_over() {
            return;
        }
        let Origin { host, address, port, .. } = self.origin(number);
        self.failed = Some(format!("connection {number} to {host} ({address}:{port}): {cause}"));
        self.finish(now);
    }

    fn finish(&mut self, now: Time) {
        self.stage = Stage::Over(now);
        for number in 0..self.connections.len() {
            self.close(number as u32);
        }
    }

    /// What it saw; call it once it is over.
    pub fn record(&self) -> records::Visit {
        let rows = self.client.rows();
        let page = self.prepared.page();
        let Stage::Over(ended) = self.stage else { unreachable!("the caller has looked") };
        records::Visit {
            visit: self.number,
            user_agent: self.asked.user_agent.clone(),
            page: self.asked.name.clone(),
            timeout_ns: self.asked.timeout_ns.0,
            http: self.version.protocol().alpn(),
            failed: self.failed.clone(),
            navigation_start: rows.page.navigation_start.0,
            dom_content_loaded: ns(rows.page.dom_content_loaded),
            load_event: ns(rows.page.load_event),
            first_paint: ns(rows.page.first_paint),
            largest_contentful_paint: ns(rows.page.largest_contentful_paint),
            viewport_complete: ns(rows.page.viewport_complete),
            ended: ended.0,
            late_ns: self.late.0,
            document: rows.page.base,
            requests: records::requests(page, &rows, &self.statuses),
            connections: rows
                .connections
                .iter()
                .zip(&self.of_sockets)
                .map(|(row, of_socket)| records::connection(page, row, self.address, of_socket))
                .collect(),
        }
    }
}

/// Distance between the seeds of visits; odd.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
