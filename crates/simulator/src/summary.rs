//! What a simulated run says at its end. Times are nanoseconds.

use crate::engine::Application;
use crate::flow::Flow;
use crate::page::Load;
use crate::world::World;
use serde::Serialize;
use std::collections::BTreeMap;

/// The line that the verb `simulate` prints of a run.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Id of the run.
    pub id: String,
    /// When the run ended.
    pub duration: u64,
    /// Flows and visits that were not over by then.
    pub unfinished: usize,
    /// Flows, in the order of the description.
    pub flows: Vec<FlowSummary>,
    /// Visits, in the order of the description.
    pub visits: Vec<VisitSummary>,
    /// Links by name.
    pub links: BTreeMap<String, LinkSummary>,
    /// Events handled.
    pub events: u64,
    /// Packets that entered a link, over all links.
    pub packet_hops: u64,
    /// Why the run is not what was asked for; empty unless the simulator has a bug.
    pub faults: Vec<Fault>,
}

/// A flow at the end.
#[derive(Debug, Serialize)]
pub struct FlowSummary {
    /// When it connected.
    pub started: u64,
    /// When its last byte was received; null when it did not end.
    pub ended: Option<u64>,
    /// Payload bytes received.
    pub received_bytes: u64,
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

/// A link at the end: `offered = delivered + queue_drops + aqm_drops + random_losses + inside`.
#[derive(Debug, Serialize)]
pub struct LinkSummary {
    /// Packets that arrived.
    pub offered_packets: u64,
    /// Wire bytes that arrived.
    pub offered_bytes: u64,
    /// Packets that left.
    pub delivered_packets: u64,
    /// Wire bytes that left.
    pub delivered_bytes: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets dropped by the queue discipline before.
    pub aqm_drops: u64,
    /// Packets that the loss model dropped.
    pub random_losses: u64,
    /// Packets marked with Congestion Experienced.
    pub ecn_marks: u64,
    /// Packets in the queue, in transmission or under way.
    pub inside_packets: u64,
}

/// Something that must not happen.
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
    /// How a world and its applications stand now.
    pub(crate) fn new(
        world: &mut World,
        apps: &[Application],
        names: &[String],
        events: u64,
        unfinished: usize,
    ) -> Summary {
        let mut faults = Vec::new();
        let mut inside = 0;
        let mut links = BTreeMap::new();
        for (link, name) in names.iter().enumerate() {
            let c = world.fabric.counters(link, world.now);
            inside += c.inside_packets;
            let accounted =
                c.delivered_packets + c.queue_drops + c.aqm_drops + c.random_losses + c.inside_packets;
            if accounted != c.offered_packets {
                faults.push(Fault {
                    check: "packet conservation",
                    found: format!("{accounted} packets accounted for on link {name:?}"),
                    expected: format!("{} offered", c.offered_packets),
                });
            }
            if name.is_empty() {
                continue;
            }
            let summary = LinkSummary {
                offered_packets: c.offered_packets,
                offered_bytes: c.offered_bytes,
                delivered_packets: c.delivered_packets,
                delivered_bytes: c.delivered_bytes,
                queue_drops: c.queue_drops,
                aqm_drops: c.aqm_drops,
                random_losses: c.random_losses,
                ecn_marks: c.marks,
                inside_packets: c.inside_packets,
            };
            links.insert(name.clone(), summary);
        }
        if inside != world.fabric.under_way() as u64 {
            faults.push(Fault {
                check: "packets under way",
                found: format!("{inside} on the links"),
                expected: format!("{}", world.fabric.under_way()),
            });
        }
        let visits = apps.iter().filter_map(Application::load).map(Load::standing);
        let visits = visits.map(|visit| VisitSummary {
            objects: visit.objects,
            loaded: visit.loaded,
            load_event: visit.load_event.map(|time| time.0),
        });
        let flows = apps.iter().filter_map(Application::flow).map(Flow::state);
        let flows = flows.map(|flow| FlowSummary {
            started: flow.started.0,
            ended: flow.ended.map(|time| time.0),
            received_bytes: flow.received,
        });
        Summary {
            id: String::new(),
            duration: world.now.0,
            unfinished,
            flows: flows.collect(),
            visits: visits.collect(),
            links,
            events,
            packet_hops: world.fabric.hops(),
            faults,
        }
    }
}
