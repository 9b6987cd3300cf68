//! The summary of a simulated run. Times are nanoseconds.

use crate::apps::Application;
use crate::flow::Flow;
use crate::link_name::LinkName;
use crate::page::Load;
use crate::page::rows::Standing;
use crate::pep::{AheadSummary, Pep};
use crate::world::{ConnectionId, World, server_end};
use serde::Serialize;
use std::collections::BTreeMap;
use wirepaint_flow_model::Message;
use wirepaint_link_model::Counters;

/// The line that the verb `simulate` prints per run.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Id of the run.
    pub id: String,
    /// When the run ended.
    pub duration: u64,
    /// Flows and visits that had not ended by then, and visits that timed out.
    pub unfinished: usize,
    /// Flows, in the order of the description.
    pub flows: Vec<FlowSummary>,
    /// Visits, in the order of the description.
    pub visits: Vec<VisitSummary>,
    /// How the senders of connections were set up, each way once, in the order of the table `connection`.
    pub connections: Vec<ConnectionSummary>,
    /// What the remote side of a PEP got ahead; null without a PEP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<AheadSummary>,
    /// Links by name, such as `access.down`.
    pub links: BTreeMap<String, Counters>,
    /// Events handled.
    pub events: u64,
    /// Packets that entered a link, summed over all links.
    pub packet_hops: u64,
    /// Failed checks; empty unless the simulator has a bug.
    pub faults: Vec<Fault>,
}

/// A flow at the end.
#[derive(Debug, Serialize)]
pub struct FlowSummary {
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// When it connected; null if it waited to the end for another flow.
    pub started: Option<u64>,
    /// When its last byte was received; null when it did not end.
    pub ended: Option<u64>,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Of a flow with messages or exchanges, once one was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_delay: Option<MessageDelay>,
}

/// How the server's end of connections was set up.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionSummary {
    /// Name of the flow; null for a connection of a visit or of a proxy.
    pub flow: Option<String>,
    /// Negotiated by a browser, or `pep` between the sides of a PEP.
    pub protocol: Option<&'static str>,
    /// Name of the congestion control.
    pub congestion: &'static str,
    /// Initial window in segments; null if the handshake did not end.
    pub initial_window: Option<u32>,
    /// Whether it retransmitted anything.
    pub retransmitted: bool,
}

impl ConnectionSummary {
    fn new(
        world: &World,
        id: ConnectionId,
        flow: Option<&Flow>,
        protocol: Option<&'static str>,
    ) -> ConnectionSummary {
        let info = world.tcp(server_end(id)).info();
        ConnectionSummary {
            flow: flow.map(|flow| flow.name().to_owned()),
            protocol,
            congestion: world.connections()[id as usize].dial.server.congestion.algorithm.name(),
            initial_window: info.opened_cwnd,
            retransmitted: info.retransmitted > 0,
        }
    }
}

/// Delay of messages, from the time at which the write was due until the reader has the last byte; of exchanges
/// from the request to the last byte of the answer. It includes the wait for room in the send buffer.
#[derive(Debug, Serialize)]
pub struct MessageDelay {
    /// Messages that were read in full.
    pub messages: usize,
    /// Median; for an even number of messages, the upper one.
    pub p50: u64,
    /// 99th percentile: at least 99 of 100 messages took no longer.
    pub p99: u64,
    /// Longest.
    pub max: u64,
}

impl MessageDelay {
    fn new(flow: &Flow) -> Option<MessageDelay> {
        let mut delays: Vec<_> = flow.messages().iter().map(Message::delay).collect();
        delays.sort_unstable();
        let max = delays.last()?.0;
        let messages = delays.len();
        let p99 = delays[(messages * 99).div_ceil(100) - 1].0;
        Some(MessageDelay { messages, p50: delays[messages / 2].0, p99, max })
    }
}

/// A visit at the end.
#[derive(Debug, Serialize)]
pub struct VisitSummary {
    /// Requests of the page.
    pub objects: usize,
    /// Requests answered.
    pub loaded: usize,
    /// Load event; null when it did not come.
    pub load_event: Option<u64>,
}

/// A failed check.
#[derive(Debug, Serialize)]
pub struct Fault {
    /// What was checked.
    pub check: &'static str,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl Summary {
    /// Summarises a world and its applications.
    pub(crate) fn new(
        world: &mut World,
        apps: &[Application],
        names: &[LinkName],
        events: u64,
        unfinished: usize,
    ) -> Summary {
        let mut faults = Vec::new();
        let mut inside = 0;
        let mut links = BTreeMap::new();
        for (link, name) in names.iter().enumerate() {
            let c = world.fabric.counters(link, world.now);
            inside += c.inside_packets;
            let accounted = c.accounted_packets();
            if accounted != c.offered_packets {
                faults.push(Fault {
                    check: "packet conservation",
                    found: format!("{accounted} packets accounted for on link {name}"),
                    expected: format!("{} offered", c.offered_packets),
                });
            }
            if !name.segment.is_empty() {
                links.insert(name.to_string(), c);
            }
        }
        if inside != world.fabric.under_way() as u64 {
            faults.push(Fault {
                check: "packets under way",
                found: format!("{inside} on the links"),
                expected: format!("{}", world.fabric.under_way()),
            });
        }
        let visits: Vec<Standing> = apps.iter().filter_map(Application::load).map(Load::standing).collect();
        let mut connections: Vec<ConnectionSummary> = Vec::new();
        for flow in apps.iter().filter_map(Application::flow) {
            let id = flow.state().connection;
            connections.extend(id.map(|id| ConnectionSummary::new(world, id, Some(flow), None)));
        }
        let of_pep = apps.iter().filter_map(Application::pep).flat_map(Pep::connections);
        let of_visits = visits.iter().flat_map(|visit| visit.connections.iter().copied());
        for (id, protocol) in of_pep.map(|id| (id, Some("pep"))).chain(of_visits) {
            let found = ConnectionSummary::new(world, id, None, protocol);
            if !connections.contains(&found) {
                connections.push(found);
            }
        }
        let visits = visits.iter().map(|visit| VisitSummary {
            objects: visit.objects,
            loaded: visit.loaded,
            load_event: visit.load_event.map(|time| time.0),
        });
        let flows = apps.iter().filter_map(Application::flow).map(|flow| {
            let state = flow.state();
            FlowSummary {
                name: flow.name().to_owned(),
                started: state.started.map(|time| time.0),
                ended: state.ended.map(|time| time.0),
                received_bytes: state.received,
                message_delay: MessageDelay::new(flow),
            }
        });
        Summary {
            id: String::new(),
            duration: world.now.0,
            unfinished,
            flows: flows.collect(),
            visits: visits.collect(),
            connections,
            ahead: apps.iter().find_map(Application::pep).map(Pep::ahead),
            links,
            events,
            packet_hops: world.fabric.hops(),
            faults,
        }
    }
}
