//! The rows of a visit in the trace's tables page, object, chunk and connection.
//!
//! Times are the run's. Values that only the transport knows (ports, congestion control, round-trip times,
//! retransmissions) are not here.

use crate::priority::Priority;
use wirepaint_http_model::HttpVersion;
use wirepaint_units::{Duration, Time};

/// A page visit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRow {
    /// Navigation start.
    pub navigation_start: Time,
    /// Resource that answered with the document, after redirects.
    pub base: u32,
    /// First paint; equal to the first contentful paint, since a page that paints has text.
    pub first_paint: Option<Time>,
    /// Estimate: the first paint of the largest text or image; `None` if that may be an image of unknown
    /// place.
    pub largest_contentful_paint: Option<Time>,
    /// Last object of the first view port loaded and painted.
    pub viewport_complete: Option<Time>,
    /// DOMContentLoaded.
    pub dom_content_loaded: Option<Time>,
    /// Load event.
    pub load_event: Option<Time>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Position of the resource in the page.
    pub resource: u32,
    /// True if it paints in the first view port.
    pub in_viewport: bool,
    /// Last priority.
    pub priority: Priority,
    /// Kind of its initiator, as in the trace: parser, script, preload, redirect or other.
    pub initiator_type: &'static str,
    /// Position of the resource that requested it.
    pub initiator: Option<u32>,
    /// ConnectionRow that carried it.
    pub connection: Option<u32>,
    /// True for the first request of its connection.
    pub first_on_connection: bool,
    /// The page discovered it.
    pub discovered: Time,
    /// It began to wait for a connection.
    pub queued: Option<Time>,
    /// Request written.
    pub sent: Option<Time>,
    /// First byte of the answer.
    pub first_byte: Option<Time>,
    /// Last byte of the answer.
    pub last_byte: Option<Time>,
    /// Bytes of the answer as transferred, head included, without TLS.
    pub encoded_bytes: u64,
}

/// Bytes of an object arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRow {
    /// Resource.
    pub request: u32,
    /// ConnectionRow.
    pub connection: u32,
    /// Arrival of the last byte.
    pub time: Time,
    /// Bytes on the wire, TLS included.
    pub bytes: u64,
}

impl ChunkRow {
    /// Appends to `chunks`, or adds to the last one if that is of the same object and millisecond, as exact
    /// as on the testbed.
    pub(crate) fn add_to(self, chunks: &mut Vec<ChunkRow>) {
        const STEP: Duration = Duration::from_millis(1);
        match chunks.last_mut() {
            Some(last)
                if (last.request, last.connection) == (self.request, self.connection)
                    && last.time.0 / STEP.0 == self.time.0 / STEP.0 =>
            {
                last.time = self.time;
                last.bytes += self.bytes;
            }
            _ => chunks.push(self),
        }
    }
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRow {
    /// Number, unique in the visit, from 0 in order of opening.
    pub connection: u32,
    /// Position of the origin that it was opened for.
    pub origin: u32,
    /// True with TLS.
    pub encrypted: bool,
    /// HTTP version.
    pub version: HttpVersion,
    /// SYN sent.
    pub opened: Time,
    /// TCP handshake done.
    pub connected: Option<Time>,
    /// TLS handshake done.
    pub tls_done: Option<Time>,
    /// First request sent.
    pub first_request: Option<Time>,
    /// Last byte of an answer received.
    pub last_byte: Option<Time>,
    /// Last byte of any kind received.
    pub last_received: Option<Time>,
    /// Closed by the browser during the visit.
    pub closed: Option<Time>,
    /// Bytes received by the client, TLS included.
    pub bytes_received: u64,
    /// Bytes sent by the client, TLS included.
    pub bytes_sent: u64,
    /// Requests that it carried; a connection without any is surplus.
    pub objects: u32,
}

impl ConnectionRow {
    pub(crate) fn new(
        connection: u32,
        origin: u32,
        encrypted: bool,
        version: HttpVersion,
        opened: Time,
    ) -> ConnectionRow {
        ConnectionRow {
            connection,
            origin,
            encrypted,
            version,
            opened,
            connected: None,
            tls_done: None,
            first_request: None,
            last_byte: None,
            last_received: None,
            closed: None,
            bytes_received: 0,
            bytes_sent: 0,
            objects: 0,
        }
    }
}

/// All rows of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The visit.
    pub page: PageRow,
    /// Requests in the order of discovery.
    pub objects: Vec<ObjectRow>,
    /// Arrivals in order of time.
    pub chunks: Vec<ChunkRow>,
    /// Connections in the order of opening.
    pub connections: Vec<ConnectionRow>,
}
