//! The samples of a run, and the tables of its trace.

use crate::apps::Application;
use crate::error::Error;
use crate::fabric::{Crossing, EndpointId, LinkId};
use crate::flow::{Flow, FlowState};
use crate::link_name::LinkName;
use crate::page::Load;
use crate::page::rows::Tables;
use crate::pep::Pep;
use crate::world::{Connection, Dial, World, is_client, server_end};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use wirepaint_congestion_native::{CaState, GroupRecord, INFINITE_SSTHRESH, Instance};
use wirepaint_flow_model::Message;
use wirepaint_link_model::Counters;
use wirepaint_run::{Run, default_sample_interval};
use wirepaint_tcp_model::{BOOT_NS, Event, Sample, Segment, flags};
use wirepaint_trace::{Collected, Row, RowsDigest, TableWriter, TraceError, Value, row, schema};
use wirepaint_units::{BitRate, Duration, Time};

/// Tables that a simulated run can have. The table `run` is written by itself.
const TABLES: [&str; 12] = [
    "page",
    "object",
    "chunk",
    "connection",
    "tcp",
    "group",
    "link",
    "client",
    "packet",
    "flow",
    "message",
    "host",
];
/// Letters of a segment's flags, in the order of the testbed's table.
const FLAG_LETTERS: [(u16, char); 6] = [
    (flags::FIN, 'F'),
    (flags::SYN, 'S'),
    (flags::PSH, 'P'),
    (flags::ACK, 'A'),
    (flags::ECE, 'E'),
    (flags::CWR, 'W'),
];

/// Where the tables of a run go, and the digest of all their rows.
pub(crate) struct Output<'a> {
    to: Kept<'a>,
    digest: RowsDigest,
}

/// Where they go.
pub(crate) enum Kept<'a> {
    /// Into files of a folder.
    Folder(&'a Path),
    /// Into memory: those named.
    Collected(&'a mut Collected, &'a [String]),
}

impl<'a> Output<'a> {
    pub fn new(to: Kept<'a>) -> Output<'a> {
        Output { to, digest: RowsDigest::default() }
    }

    /// The digest of what was saved.
    pub fn digest(self) -> String {
        self.digest.finish()
    }

    fn save<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), TraceError> {
        let Output { to, digest } = self;
        digest.table::<R>();
        let rows = rows.into_iter().inspect(|row| digest.row(row));
        match to {
            Kept::Folder(folder) => return TableWriter::save(folder, rows),
            Kept::Collected(collected, wanted) if wanted.iter().any(|name| name == R::TABLE.name) => {
                collected.save(rows);
            }
            Kept::Collected(..) => rows.for_each(drop),
        }
        Ok(())
    }
}

struct LinkSample {
    time: Time,
    link: LinkId,
    counters: Counters,
}

struct FlowSample {
    time: Time,
    /// Number of the flow in the description.
    flow: usize,
    rate: Option<BitRate>,
    received: u64,
    /// Segments retransmitted so far.
    retransmitted: u64,
}

/// Something that is sampled at equal intervals.
struct Clock {
    interval: Duration,
    next: Option<Time>,
}

impl Clock {
    fn new(interval: Duration, wanted: bool) -> Clock {
        Clock { interval, next: wanted.then_some(Time::ZERO + interval) }
    }

    /// Whether the end of the run needs a sample: not if one was just taken.
    fn ends(&self, now: Time) -> bool {
        self.next.is_some_and(|next| next != now + self.interval)
    }

    /// Whether a sample is due. If so, schedules the next one.
    fn strikes(&mut self, now: Time) -> bool {
        let due = self.next.is_some_and(|next| next <= now);
        if due {
            self.next = Some(now + self.interval);
        }
        due
    }
}

/// Keeps the samples of a run and writes its tables.
pub(crate) struct Recorder {
    tables: Vec<&'static str>,
    link_clock: Clock,
    flow_clock: Clock,
    links: Vec<LinkSample>,
    flows: Vec<FlowSample>,
    /// Bytes received by each flow at its last sample.
    received: Vec<u64>,
    /// Number of sampled links: all but the nameless wire.
    sampled_links: usize,
}

impl Recorder {
    /// A recorder of the tables in a description.
    pub fn new(run: &Run, place: &Path) -> Result<Recorder, Error> {
        let packet_trace = run.segments.iter().any(|segment| segment.packet_trace);
        let mut tables = Vec::new();
        for name in &run.tables {
            let known = TABLES.into_iter().find(|table| table == name && !tables.contains(table));
            tables.push(known.ok_or_else(|| {
                let accepted = format!("each once of {}", TABLES.join(", "));
                Error::value(place, "tables".to_owned(), format!("{name:?}"), accepted)
            })?);
        }
        if tables.is_empty() {
            let present = |table: &&str| match *table {
                "packet" => packet_trace,
                "flow" | "message" => !run.flows.is_empty(),
                "page" | "object" | "chunk" => !run.visits.is_empty(),
                _ => true,
            };
            tables = TABLES.into_iter().filter(present).collect();
        }
        let intervals = run.segments.iter().map(|segment| segment.sample_interval_ns);
        let link_interval = Duration(intervals.min().unwrap_or_else(default_sample_interval));
        let intervals =
            [("segments.sample_interval_ns", link_interval), ("flow_interval_ns", run.flow_interval_ns)];
        if let Some((key, _)) = intervals.into_iter().find(|(_, interval)| *interval == Duration(0)) {
            return Err(Error::value(place, key.to_owned(), "0".to_owned(), "at least 1 ns".to_owned()));
        }
        let wants = |table: &str| tables.contains(&table);
        Ok(Recorder {
            link_clock: Clock::new(link_interval, wants("link")),
            flow_clock: Clock::new(run.flow_interval_ns, wants("flow") && !run.flows.is_empty()),
            tables,
            links: Vec::new(),
            flows: Vec::new(),
            received: vec![0; run.flows.len()],
            sampled_links: 2 * run.segments.len(),
        })
    }

    /// True when the table is wanted.
    pub fn wants(&self, table: &str) -> bool {
        self.tables.contains(&table)
    }

    /// When the next sample is due.
    pub fn next(&self) -> Option<Time> {
        self.link_clock.next.into_iter().chain(self.flow_clock.next).min()
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self, world: &mut World, apps: &[Application]) {
        if self.link_clock.strikes(world.now) {
            self.sample_links(world);
        }
        if self.flow_clock.strikes(world.now) {
            self.sample_flows(world, apps);
        }
    }

    /// The run is over: takes the last samples.
    pub fn finish(&mut self, world: &mut World, apps: &[Application]) {
        if self.link_clock.ends(world.now) {
            self.sample_links(world);
        }
        if self.flow_clock.ends(world.now) {
            self.sample_flows(world, apps);
        }
    }

    fn sample_links(&mut self, world: &mut World) {
        let time = world.now;
        for link in 0..self.sampled_links {
            let counters = world.fabric.counters(link, time);
            self.links.push(LinkSample { time, link, counters });
        }
    }

    /// Samples the flows that have begun and had not ended at their last sample.
    fn sample_flows(&mut self, world: &World, apps: &[Application]) {
        let time = world.now;
        for ((place, flow), before) in flows(apps).enumerate().zip(&mut self.received) {
            let state = flow.state();
            let silent = state.ended.is_some() && state.received == *before;
            if let (Some(sender), false) = (flow.sending_end(), silent) {
                self.flows.push(FlowSample {
                    time,
                    flow: place,
                    rate: state.rate,
                    received: state.received - *before,
                    retransmitted: world.tcp(sender).info().retransmitted.into(),
                });
                *before = state.received;
            }
        }
    }

    /// Writes the tables.
    pub fn write(
        &self,
        world: &mut World,
        apps: &[Application],
        links: &[LinkName],
        output: &mut Output,
    ) -> Result<(), Error> {
        let visits = visits(world, apps);
        let flows: Vec<&Flow> = flows(apps).collect();
        let states: Vec<FlowState> = flows.iter().map(|flow| flow.state()).collect();
        let groups = world.drain_group_records();
        for name in &self.tables {
            // As in the testbed, there is no table `group` unless a congestion control has groups.
            if *name == "group" && groups.is_empty() {
                continue;
            }
            match *name {
                "link" => output.save(self.links.iter().map(|s| link_row(s, &links[s.link])))?,
                "flow" => {
                    output.save(self.flows.iter().map(|s| flow_row(s, flows[s.flow], &states[s.flow])))?;
                }
                "message" => {
                    let of_flow = |(flow, state): (&&'_ Flow, &FlowState)| {
                        let row = |message| message_row(message, flow.name(), state.connection);
                        flow.messages().iter().map(row).collect::<Vec<_>>()
                    };
                    output.save(flows.iter().zip(&states).flat_map(of_flow))?;
                }
                "client" => output.save(clients(world).map(client_row))?,
                "page" => output.save(visits.iter().map(|visit| visit.page.clone()))?,
                "object" => output.save(visits.iter().flat_map(|visit| visit.objects.clone()))?,
                "chunk" => output.save(visits.iter().flat_map(|visit| visit.chunks.clone()))?,
                "packet" => {
                    let crossings = world.fabric.crossings().iter();
                    output.save(crossings.into_iter().map(|c| packet_row(c, world, links)))?;
                }
                "connection" => {
                    let of_flows = states.iter().filter_map(|state| state.connection);
                    let of_flows = of_flows.map(|id| connection_row(id as usize, None, world));
                    let of_pep = apps.iter().filter_map(Application::pep).flat_map(Pep::connections);
                    let of_pep = of_pep.map(|id| connection_row(id as usize, Some("pep"), world));
                    let of_visits = visits.iter().flat_map(|visit| visit.connections.clone());
                    output.save(of_flows.chain(of_pep).chain(of_visits))?;
                }
                "tcp" => {
                    let samples = world.drain_samples();
                    output.save(samples.iter().map(|(end, sample)| tcp_row(*end, sample, world)))?;
                }
                "group" => output.save(groups.iter().map(|record| group_row(record, world)))?,
                // No machine can disturb a simulated run.
                "host" => output.save([schema::Host::default()])?,
                _ => unreachable!("one of TABLES"),
            }
        }
        Ok(())
    }
}

fn flows(apps: &[Application]) -> impl Iterator<Item = &Flow> {
    apps.iter().filter_map(Application::flow)
}

/// What a client sent and received: packets and IP bytes.
struct ClientCount {
    dial: Dial,
    sent: (u64, u64),
    received: (u64, u64),
}

/// The clients that opened connections, in the order of their addresses.
fn clients(world: &World) -> impl Iterator<Item = ClientCount> {
    let mut found: BTreeMap<Ipv4Addr, ClientCount> = BTreeMap::new();
    let of_clients = world.connections().iter().filter(|connection| !connection.dial.of_proxy);
    for Connection { dial, sent, received, .. } in of_clients {
        let empty = || ClientCount { dial: dial.clone(), sent: (0, 0), received: (0, 0) };
        let of = found.entry(dial.client_address).or_insert_with(empty);
        of.sent = (of.sent.0 + sent.0, of.sent.1 + sent.1);
        of.received = (of.received.0 + received.0, of.received.1 + received.1);
    }
    found.into_values()
}

fn client_row(client: ClientCount) -> schema::Client {
    row!(schema::Client {
        host: &*client.dial.hosts[0],
        address: client.dial.client_address.to_string(),
        dscp: client.dial.marked.map(u64::from),
        sent_packets: client.sent.0,
        sent_bytes: client.sent.1,
        received_packets: client.received.0,
        received_bytes: client.received.1,
    })
}

/// The rows of all visits. If there are several, the names of their requests begin with a number.
fn visits(world: &World, apps: &[Application]) -> Vec<Tables> {
    let loads: Vec<&Load> = apps.iter().filter_map(Application::load).collect();
    let name = |number: usize| if loads.len() > 1 { format!("{number}:") } else { String::new() };
    loads.iter().enumerate().map(|(number, load)| load.tables(world, number, &name(number))).collect()
}

fn link_row(sample: &LinkSample, name: &LinkName) -> schema::Link {
    let c = &sample.counters;
    row!(schema::Link {
        time: sample.time.0,
        segment: name.segment.as_str(),
        direction: name.direction,
        queue_packets: c.queue_packets,
        queue_bytes: c.queue_bytes,
        offered_packets: c.offered_packets,
        offered_bytes: c.offered_bytes,
        delivered_packets: c.delivered_packets,
        delivered_bytes: c.delivered_bytes,
        queue_drops: c.queue_drops + c.aqm_drops,
        random_losses: c.random_losses,
        lateness_max: 0_u64,
        capacity_bytes: c.capacity_bytes,
    })
}

fn flow_row(sample: &FlowSample, flow: &Flow, state: &FlowState) -> schema::Flow {
    row!(schema::Flow {
        flow: flow.name(),
        sender: flow.sender().name(),
        connection: state.connection,
        started: state.started.map(|time| time.0),
        ended: state.ended.map(|time| time.0),
        rate_asked: sample.rate.map(|rate| rate.0),
        bytes: state.received,
        time: sample.time.0,
        received_bytes: sample.received,
        retransmitted: sample.retransmitted,
    })
}

fn message_row(message: &Message, name: &str, connection: Option<u32>) -> schema::Message {
    row!(schema::Message {
        flow: name,
        connection: connection,
        due: message.due.0,
        read: message.read.0,
        bytes: message.bytes,
    })
}

fn packet_row(crossing: &Crossing<Segment>, world: &World, links: &[LinkName]) -> schema::Packet {
    let segment = &crossing.body;
    let id = crossing.to / 2;
    let connection = &world.connections()[id as usize];
    let client = (connection.dial.client_address, connection.client_port);
    let server = (connection.dial.server_address, connection.dial.server_port);
    let (from, to) = if is_client(crossing.to) { (server, client) } else { (client, server) };
    let due = crossing.left.ok().map(|time| time.0);
    let flags: String =
        FLAG_LETTERS.iter().filter(|(bit, _)| segment.flags & bit != 0).map(|(_, letter)| letter).collect();
    row!(schema::Packet {
        segment: links[crossing.link].segment.as_str(),
        direction: links[crossing.link].direction,
        time_in: crossing.entered.0,
        time_due: due,
        time_out: due,
        dropped: crossing.left.err().map(|cause| cause.name()),
        wire_bytes: crossing.wire_bytes,
        connection: id,
        source_address: from.0.to_string(),
        source_port: from.1,
        destination_address: to.0.to_string(),
        destination_port: to.1,
        sequence: segment.seq,
        acknowledgement: segment.ack,
        payload_bytes: segment.len,
        flags: flags,
    })
}

/// The row of a sample, as the testbed's probe writes it.
fn tcp_row(endpoint: EndpointId, sample: &Sample, world: &World) -> schema::Tcp {
    let connection = &world.connections()[endpoint as usize / 2];
    let event = match sample.event {
        Event::Ack => "ack",
        Event::State => "state",
        Event::Retransmit => "retransmit",
    };
    let state = match sample.state {
        CaState::Open => "Open",
        CaState::Disorder => "Disorder",
        CaState::Cwr => "CWR",
        CaState::Recovery => "Recovery",
        CaState::Loss => "Loss",
    };
    // All ones: paced, but without a limit.
    let paced = sample.pacing_rate > 0 && sample.pacing_rate < u64::MAX;
    let side = usize::from(!is_client(endpoint));
    row!(schema::Tcp {
        time: sample.time.0,
        connection: endpoint / 2,
        host: &*connection.dial.hosts[side],
        side: ["client", "server"][side],
        server_address: connection.dial.server_address.to_string(),
        server_port: connection.dial.server_port,
        client_address: connection.dial.client_address.to_string(),
        client_port: connection.client_port,
        event: event,
        cwnd: sample.cwnd,
        ssthresh: (sample.ssthresh < INFINITE_SSTHRESH).then_some(sample.ssthresh),
        srtt: (sample.srtt_us > 0).then_some(u64::from(sample.srtt_us) * 1000 / 8),
        in_flight: sample.in_flight,
        state: state,
        delivered: sample.delivered,
        lost: sample.lost,
        retransmitted: sample.retransmitted,
        pacing_rate: paced.then(|| sample.pacing_rate * 8),
    })
}

/// The row of an event of a group, as the testbed's loader writes it.
fn group_row(
    (endpoint, instance, record): &(EndpointId, Arc<Instance>, GroupRecord),
    world: &World,
) -> schema::Group {
    let connection = &world.connections()[*endpoint as usize / 2];
    let known = |segments: u32| (1..INFINITE_SSTHRESH).contains(&segments).then_some(segments);
    row!(schema::Group {
        time: record.time_ns - BOOT_NS,
        algorithm: instance.algorithm.name(),
        // No name is registered.
        congestion: Value::Null,
        prefix: record.key.to_string(),
        server: record.key.server(),
        slot: u32::from(record.key.slot),
        event: record.event(),
        connection: endpoint / 2,
        server_address: connection.dial.server_address.to_string(),
        server_port: connection.dial.server_port,
        client_address: connection.dial.client_address.to_string(),
        client_port: connection.client_port,
        members: record.members,
        cwnd_sum: record.cwnd_sum,
        ssthresh_sum: record.ssthresh_sum,
        cwnd: known(record.cwnd),
        ssthresh: known(record.ssthresh),
    })
}

/// The row of a connection that a flow or a proxy opened.
fn connection_row(id: usize, protocol: Option<&'static str>, world: &World) -> schema::Connection {
    let connection: &Connection = &world.connections()[id];
    let dial = &connection.dial;
    let info = world.tcp(server_end(id as u32)).info();
    row!(schema::Connection {
        visit: Value::Null,
        connection: id,
        client_address: dial.client_address.to_string(),
        client_port: connection.client_port,
        server_address: dial.server_address.to_string(),
        server_port: dial.server_port,
        host: Value::Null,
        protocol: protocol,
        encrypted: false,
        congestion: dial.server.congestion.algorithm.name(),
        initial_window: info.opened_cwnd,
        opened: connection.opened.0,
        connected: connection.connected.map(|time| time.0),
        tls_done: Value::Null,
        first_request: Value::Null,
        last_byte: connection.last_byte.map(|time| time.0),
        closed: Value::Null,
        bytes_received: connection.bytes_received,
        bytes_sent: connection.bytes_sent,
        objects: Value::Null,
        retransmitted_segments: info.retransmitted,
        min_rtt: info.min_rtt_us.map(|us| u64::from(us) * 1000),
        mss: dial.server.full_segment(),
        reason: Value::Null,
    })
}
