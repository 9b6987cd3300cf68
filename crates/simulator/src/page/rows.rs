//! A visit's rows of the tables page, object, chunk and connection.

use super::Load;
use crate::world::{ConnectionId, World, server_end};
use wirepaint_page_model::page::{Cached, Kind, Origin, Resource};
use wirepaint_page_model::rows::{ConnectionRow, ObjectRow, Rows};
use wirepaint_trace::{Value, row, schema};
use wirepaint_units::Time;

/// A visit's rows.
#[derive(Debug, Default)]
pub struct Tables {
    /// Row of the table `page`.
    pub page: schema::Page,
    /// Rows of the table `object`.
    pub objects: Vec<schema::Object>,
    /// Rows of the table `chunk`.
    pub chunks: Vec<schema::Chunk>,
    /// Rows of the table `connection`, with the world's ids.
    pub connections: Vec<schema::Connection>,
}

/// The state of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Requests of the page.
    pub objects: usize,
    /// Requests answered.
    pub loaded: usize,
    /// Load event.
    pub load_event: Option<Time>,
    /// Its connections, each with the protocol negotiated.
    pub connections: Vec<(ConnectionId, Option<&'static str>)>,
}

impl Load {
    /// Its state.
    pub fn standing(&self) -> Standing {
        let Rows { page, objects, connections, .. } = self.rows();
        let loaded = objects.iter().filter(|object| object.last_byte.is_some()).count();
        let connections = connections.iter().map(|row| (self.connection(row.connection), negotiated(row)));
        Standing {
            objects: self.page().resources.len(),
            loaded,
            load_event: page.load_event,
            connections: connections.collect(),
        }
    }

    /// Its rows as the run's visit of that number. `name` makes the ids of its requests unique in the run.
    pub fn tables(&self, world: &World, number: usize, name: &str) -> Tables {
        let rows = self.rows();
        Tables {
            page: self.page_row(&rows, number),
            objects: rows.objects.iter().map(|object| self.object_row(object, &rows, number, name)).collect(),
            chunks: rows
                .chunks
                .iter()
                .map(|chunk| {
                    row!(schema::Chunk {
                        visit: number,
                        request: format!("{name}{}", chunk.request),
                        connection: self.connection(chunk.connection),
                        time: chunk.time.0,
                        bytes: chunk.bytes,
                    })
                })
                .collect(),
            connections: rows.connections.iter().map(|row| self.connection_row(row, world, number)).collect(),
        }
    }

    fn page_row(&self, rows: &Rows, number: usize) -> schema::Page {
        let resources = &self.page().resources;
        let page = &rows.page;
        let base = rows.objects.iter().find(|object| object.resource == page.base);
        let loaded: Vec<&ObjectRow> =
            rows.objects.iter().filter(|object| object.last_byte.is_some()).collect();
        let used = rows.connections.iter().filter(|connection| connection.objects > 0).count();
        row!(schema::Page {
            visit: number,
            user_agent: self.user_agent.as_str(),
            page: self.name.as_str(),
            url: resources[page.base as usize].url.as_str(),
            navigation_start: page.navigation_start.0,
            base_request_sent: ns(base.and_then(|object| object.sent)),
            base_first_byte: ns(base.and_then(|object| object.first_byte)),
            base_last_byte: ns(base.and_then(|object| object.last_byte)),
            first_paint: ns(page.first_paint),
            first_contentful_paint: ns(page.first_paint),
            largest_contentful_paint: ns(page.largest_contentful_paint),
            viewport_complete: ns(page.viewport_complete),
            dom_content_loaded: ns(page.dom_content_loaded),
            load_event: ns(page.load_event),
            speed_index: Value::Null,
            objects: loaded.len(),
            failed_objects: rows.objects.len() - loaded.len(),
            expected_objects: resources.len(),
            encoded_bytes: loaded.iter().map(|object| object.encoded_bytes).sum::<u64>(),
            decoded_bytes: loaded
                .iter()
                .map(|object| resources[object.resource as usize].decoded_bytes)
                .sum::<u64>(),
            connections: used,
            surplus_connections: rows.connections.len() - used,
        })
    }

    fn object_row(&self, object: &ObjectRow, rows: &Rows, number: usize, name: &str) -> schema::Object {
        let resource = &self.page().resources[object.resource as usize];
        let carrier = object.connection.map(|number| &rows.connections[number as usize]);
        let initiator = object.initiator.map(|by| self.page().resources[by as usize].url.as_str());
        row!(schema::Object {
            visit: number,
            request: format!("{name}{}", object.resource),
            page: self.name.as_str(),
            url: resource.url.as_str(),
            host: self.origin(resource).host.as_str(),
            kind: kind_name(resource.kind),
            method: resource.method.as_str(),
            status: resource.status,
            protocol: carrier.map(protocol),
            connection: object.connection.map(|number| self.connection(number)),
            first_on_connection: object.connection.map(|_| object.first_on_connection),
            initiator: initiator,
            initiator_type: object.initiator_type,
            priority: object.priority.name(),
            in_viewport: object.in_viewport,
            served_by: served_by(resource, object, self.served_by(object.resource)),
            discovered: object.discovered.0,
            queued: ns(object.queued),
            sent: ns(object.sent),
            first_byte: ns(object.first_byte),
            last_byte: ns(object.last_byte),
            encoded_bytes: object.encoded_bytes,
            decoded_bytes: object.last_byte.map(|_| resource.decoded_bytes),
            failed: object.last_byte.is_none().then_some("not finished when the visit ended"),
        })
    }

    fn connection_row(&self, connection: &ConnectionRow, world: &World, number: usize) -> schema::Connection {
        let id = self.connection(connection.connection);
        let known = &world.connections()[id as usize];
        let info = world.tcp(server_end(id)).info();
        let dial = &known.dial;
        let (asked, answered) = self.tunnel_bytes(connection.connection);
        row!(schema::Connection {
            visit: number,
            connection: id,
            client_address: dial.client_address.to_string(),
            client_port: known.client_port,
            server_address: dial.server_address.to_string(),
            server_port: dial.server_port,
            host: self.page().origins[connection.origin as usize].host.as_str(),
            protocol: negotiated(connection),
            encrypted: connection.encrypted,
            congestion: dial.server.congestion.algorithm.name(),
            initial_window: info.opened_cwnd,
            opened: connection.opened.0,
            connected: ns(known.connected),
            tls_done: ns(connection.tls_done),
            first_request: ns(connection.first_request),
            last_byte: ns(connection.last_byte),
            closed: ns(connection.closed),
            bytes_received: connection.bytes_received + answered,
            bytes_sent: connection.bytes_sent + asked,
            objects: connection.objects,
            retransmitted_segments: info.retransmitted,
            min_rtt: info.min_rtt_us.map(|us| u64::from(us) * 1000),
            mss: dial.server.full_segment(),
            reason: if connection.objects > 0 { "request" } else { "surplus" },
        })
    }

    fn origin(&self, resource: &Resource) -> &Origin {
        &self.page().origins[resource.origin as usize]
    }
}

fn ns(time: Option<Time>) -> Option<u64> {
    time.map(|time| time.0)
}

fn negotiated(connection: &ConnectionRow) -> Option<&'static str> {
    let negotiated = connection.tls_done.is_some() || !connection.encrypted;
    negotiated.then(|| protocol(connection))
}

fn protocol(connection: &ConnectionRow) -> &'static str {
    connection.version.protocol().alpn()
}

/// Where an answer came from, if `beyond` says it of the network; `None` for one that has not come.
fn served_by(resource: &Resource, object: &ObjectRow, beyond: &'static str) -> Option<&'static str> {
    match resource.cached {
        Some(Cached::Fresh) => object.last_byte.map(|_| "browser cache"),
        Some(Cached::Stale) if beyond == "origin" => object.connection.map(|_| "revalidated"),
        _ => object.connection.map(|_| beyond),
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Html => "html",
        Kind::Css => "css",
        Kind::Js => "js",
        Kind::Image => "image",
        Kind::Font => "font",
        Kind::Media => "media",
        Kind::Data => "data",
        Kind::Other => "other",
    }
}
