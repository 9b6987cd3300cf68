//! A visit's rows of the tables page, object, chunk and connection.

use super::Load;
use crate::world::{World, server_end};
use wirepaint_page_model::page::{Kind, Origin, Resource};
use wirepaint_page_model::rows::{Connection, Object, Rows};
use wirepaint_trace::{Value, row};
use wirepaint_units::Time;

/// A visit's rows, each with its columns in the table's order.
#[derive(Debug, Default)]
pub struct Tables {
    /// Row of the table `page`.
    pub page: Vec<Value>,
    /// Rows of the table `object`.
    pub objects: Vec<Vec<Value>>,
    /// Rows of the table `chunk`.
    pub chunks: Vec<Vec<Value>>,
    /// Rows of the table `connection`, with the world's ids.
    pub connections: Vec<(u32, Vec<Value>)>,
}

/// The state of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Requests of the page.
    pub objects: usize,
    /// Requests answered.
    pub loaded: usize,
    /// Load event.
    pub load_event: Option<Time>,
}

impl Load {
    /// Its state.
    pub fn standing(&self) -> Standing {
        let Rows { page, objects, .. } = self.rows();
        let loaded = objects.iter().filter(|object| object.last_byte.is_some()).count();
        Standing { objects: self.page().resources.len(), loaded, load_event: page.load_event }
    }

    /// Its rows. The visit's `name` is unique in the run and makes the ids of its requests unique.
    pub fn tables(&self, world: &World, name: &str) -> Tables {
        let rows = self.rows();
        Tables {
            page: self.page_row(&rows),
            objects: rows.objects.iter().map(|object| self.object_row(object, &rows, name)).collect(),
            chunks: rows
                .chunks
                .iter()
                .map(|chunk| {
                    let request = format!("{name}{}", chunk.request);
                    row![request, self.connection(chunk.connection), chunk.time.0, chunk.bytes].to_vec()
                })
                .collect(),
            connections: rows
                .connections
                .iter()
                .map(|row| (self.connection(row.connection), self.connection_row(row, world)))
                .collect(),
        }
    }

    fn page_row(&self, rows: &Rows) -> Vec<Value> {
        let resources = &self.page().resources;
        let page = &rows.page;
        let base = rows.objects.iter().find(|object| object.resource == page.base);
        let loaded: Vec<&Object> = rows.objects.iter().filter(|object| object.last_byte.is_some()).collect();
        let used = rows.connections.iter().filter(|connection| connection.objects > 0).count();
        row![
            self.user_agent.as_str(),
            self.name.as_str(),
            resources[page.base as usize].url.as_str(),
            page.navigation_start.0,
            ns(base.and_then(|object| object.sent)),
            ns(base.and_then(|object| object.first_byte)),
            ns(base.and_then(|object| object.last_byte)),
            ns(page.first_paint),
            ns(page.first_paint),
            ns(page.largest_contentful_paint),
            ns(page.viewport_complete),
            ns(page.dom_content_loaded),
            ns(page.load_event),
            Value::Null,
            loaded.len(),
            rows.objects.len() - loaded.len(),
            resources.len(),
            loaded.iter().map(|object| object.encoded_bytes).sum::<u64>(),
            loaded.iter().map(|object| resources[object.resource as usize].decoded_bytes).sum::<u64>(),
            used,
            rows.connections.len() - used
        ]
        .to_vec()
    }

    fn object_row(&self, object: &Object, rows: &Rows, name: &str) -> Vec<Value> {
        let resource = &self.page().resources[object.resource as usize];
        let carrier = object.connection.map(|number| &rows.connections[number as usize]);
        let initiator = object.initiator.map(|by| self.page().resources[by as usize].url.as_str());
        row![
            format!("{name}{}", object.resource),
            self.name.as_str(),
            resource.url.as_str(),
            self.origin(resource).host.as_str(),
            kind_name(resource.kind),
            resource.method.as_str(),
            resource.status,
            carrier.map(protocol),
            object.connection.map(|number| self.connection(number)),
            object.connection.map(|_| object.first_on_connection),
            initiator,
            object.initiator_type,
            object.priority.name(),
            object.in_viewport,
            object.connection.map(|_| "origin"),
            object.discovered.0,
            ns(object.queued),
            ns(object.sent),
            ns(object.first_byte),
            ns(object.last_byte),
            object.encoded_bytes,
            object.last_byte.map(|_| resource.decoded_bytes),
            object.last_byte.is_none().then_some("not finished when the visit ended")
        ]
        .to_vec()
    }

    fn connection_row(&self, connection: &Connection, world: &World) -> Vec<Value> {
        let id = self.connection(connection.connection);
        let known = &world.connections()[id as usize];
        let info = world.tcp(server_end(id)).info();
        let dial = &known.dial;
        let negotiated = connection.tls_done.is_some() || !connection.encrypted;
        row![
            id,
            dial.client_address.to_string(),
            known.client_port,
            dial.server_address.to_string(),
            dial.server_port,
            self.page().origins[connection.origin as usize].host.as_str(),
            negotiated.then(|| protocol(connection)),
            connection.encrypted,
            dial.server.congestion.algorithm.name(),
            info.opened_cwnd,
            connection.opened.0,
            ns(connection.connected),
            ns(connection.tls_done),
            ns(connection.first_request),
            ns(connection.last_byte),
            ns(connection.closed),
            connection.bytes_received,
            connection.bytes_sent,
            connection.objects,
            info.retransmitted,
            info.min_rtt_us.map(|us| u64::from(us) * 1000),
            dial.server.full_segment(),
            if connection.objects > 0 { "request" } else { "surplus" }
        ]
        .to_vec()
    }

    fn origin(&self, resource: &Resource) -> &Origin {
        &self.page().origins[resource.origin as usize]
    }
}

fn ns(time: Option<Time>) -> Option<u64> {
    time.map(|time| time.0)
}

fn protocol(connection: &Connection) -> &'static str {
    if connection.http2 { "h2" } else { "http/1.1" }
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
