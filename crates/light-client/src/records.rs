//! What a visit saw, as one JSON object. Times are nanoseconds since the run's epoch.

use serde::Serialize;
use std::net::Ipv4Addr;
use wirepaint_page_model::Page;
use wirepaint_page_model::page::{Cached, Kind};
use wirepaint_page_model::rows::{ConnectionRow, ObjectRow, Rows};
use wirepaint_units::Time;

/// File with one JSON object per visit, in the order in which they end.
pub const VISITS: &str = "light-visits.jsonl";

/// A visit.
#[derive(Debug, Serialize)]
pub struct Visit {
    /// Its number in the run.
    pub visit: usize,
    pub user_agent: String,
    pub page: String,
    pub timeout_ns: u64,
    /// Newest HTTP version.
    pub http: &'static str,
    /// Why it failed; `None` for one whose load event fired.
    pub failed: Option<String>,
    pub navigation_start: u64,
    pub dom_content_loaded: Option<u64>,
    pub load_event: Option<u64>,
    pub first_paint: Option<u64>,
    pub largest_contentful_paint: Option<u64>,
    pub viewport_complete: Option<u64>,
    pub ended: u64,
    /// Longest time by which an effect of computing came late.
    pub late_ns: u64,
    /// Number of the request that the document answered.
    pub document: u32,
    pub requests: Vec<Request>,
    pub connections: Vec<Connection>,
}

/// A request and its answer.
#[derive(Debug, Serialize)]
pub struct Request {
    /// The page's number.
    pub number: u32,
    pub url: String,
    pub method: String,
    #[serde(rename = "type")]
    pub kind: Kind,
    pub initiator: Option<String>,
    pub initiator_type: &'static str,
    pub priority: &'static str,
    pub discovered: u64,
    pub queued: Option<u64>,
    pub sent: Option<u64>,
    pub first_byte: Option<u64>,
    pub last_byte: Option<u64>,
    pub status: Option<u16>,
    pub protocol: Option<&'static str>,
    pub connection: Option<u32>,
    /// Bytes of the answer without TLS, head included.
    pub encoded_bytes: u64,
    pub decoded_bytes: u64,
    pub in_viewport: bool,
    /// What the cache held of it.
    pub cached: Option<Cached>,
    /// Time and bytes of what arrived together.
    pub chunks: Vec<(u64, u64)>,
}

/// A connection, used or not.
#[derive(Debug, Serialize)]
pub struct Connection {
    pub number: u32,
    pub host: String,
    pub encrypted: bool,
    pub client_address: Ipv4Addr,
    pub client_port: Option<u16>,
    pub server_address: Ipv4Addr,
    pub server_port: u16,
    pub opened: u64,
    pub connected: Option<u64>,
    pub tls_done: Option<u64>,
    pub closed: Option<u64>,
    /// `None` until it is agreed.
    pub protocol: Option<&'static str>,
    pub tls: Option<String>,
    pub resumed: bool,
    /// Bytes of TCP's payload.
    pub received: u64,
    pub sent: u64,
    pub requests: u32,
    /// The client's congestion control by the kernel, once it was connected; `None` for one that never was.
    pub congestion: Option<String>,
    /// The same as the client closed it.
    pub congestion_end: Option<String>,
}

/// What the sockets tell of a connection beside its row.
#[derive(Clone, Debug, Default)]
pub struct OfSocket {
    pub port: Option<u16>,
    pub tls: Option<(String, bool)>,
    pub received: u64,
    pub sent: u64,
    pub congestion: Option<String>,
    pub congestion_end: Option<String>,
}

/// The requests of a visit; `statuses` holds what the servers said, by the page's number.
pub fn requests(page: &Page, rows: &Rows, statuses: &[Option<u16>]) -> Vec<Request> {
    let mut requests: Vec<Request> =
        rows.objects.iter().map(|object| request(page, rows, statuses, object)).collect();
    let mut place = vec![None; page.resources.len()];
    for (at, request) in requests.iter().enumerate() {
        place[request.number as usize] = Some(at);
    }
    for chunk in &rows.chunks {
        if let Some(at) = place[chunk.request as usize] {
            requests[at].chunks.push((chunk.time.0, chunk.bytes));
        }
    }
    requests
}

fn request(page: &Page, rows: &Rows, statuses: &[Option<u16>], object: &ObjectRow) -> Request {
    let resource = &page.resources[object.resource as usize];
    let carrier = object.connection.map(|number| &rows.connections[number as usize]);
    Request {
        number: object.resource,
        url: resource.url.clone(),
        method: resource.method.clone(),
        kind: resource.kind,
        initiator: object.initiator.map(|by| page.resources[by as usize].url.clone()),
        initiator_type: object.initiator_type,
        priority: object.priority.name(),
        discovered: object.discovered.0,
        queued: ns(object.queued),
        sent: ns(object.sent),
        first_byte: ns(object.first_byte),
        last_byte: ns(object.last_byte),
        status: match resource.cached {
            // What the page sees; that a server said 304 was checked.
            Some(_) => object.last_byte.map(|_| resource.status),
            None => statuses[object.resource as usize],
        },
        protocol: carrier.map(protocol),
        connection: object.connection,
        encoded_bytes: object.encoded_bytes,
        decoded_bytes: object.last_byte.map_or(0, |_| resource.decoded_bytes),
        in_viewport: object.in_viewport,
        cached: resource.cached,
        chunks: Vec::new(),
    }
}

/// A connection of a visit.
pub fn connection(page: &Page, row: &ConnectionRow, client: Ipv4Addr, socket: &OfSocket) -> Connection {
    let origin = &page.origins[row.origin as usize];
    let (tls, resumed) = socket.tls.clone().unzip();
    Connection {
        number: row.connection,
        host: origin.host.clone(),
        encrypted: row.encrypted,
        client_address: client,
        client_port: socket.port,
        server_address: origin.address,
        server_port: origin.port,
        opened: row.opened.0,
        connected: ns(row.connected),
        tls_done: ns(row.tls_done),
        closed: ns(row.closed),
        protocol: row.tls_done.map(|_| protocol(row)),
        tls,
        resumed: resumed.unwrap_or_default(),
        received: socket.received,
        sent: socket.sent,
        requests: row.objects,
        congestion: socket.congestion.clone(),
        congestion_end: socket.congestion_end.clone(),
    }
}

fn protocol(row: &ConnectionRow) -> &'static str {
    row.version.protocol().alpn()
}

/// A time as it is written.
pub fn ns(time: Option<Time>) -> Option<u64> {
    time.map(|time| time.0)
}
