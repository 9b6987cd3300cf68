//! The samples of a run, and the tables of its trace.

use crate::apps::Application;
use crate::error::Error;
use crate::fabric::{Crossing, EndpointId, LinkId};
use crate::flow::{Flow, FlowState};
use crate::page::Load;
use crate::page::rows::Tables;
use crate::world::{Connection, World, is_client, server_end};
use std::path::Path;
use std::sync::Arc;
use wirepaint_congestion_native::{CaState, GroupRecord, INFINITE_SSTHRESH, Instance};
use wirepaint_link_model::Counters;
use wirepaint_run::Run;
use wirepaint_run::simulation::Simulation;
use wirepaint_tcp_model::{BOOT_NS, Event, Sample, Segment, flags};
use wirepaint_trace::{TableWriter, Value, row};
use wirepaint_units::{BitRate, Duration, Time};

/// Tables that a simulated run can have. The caller writes the table `run`.
const TABLES: [&str; 10] =
    ["page", "object", "chunk", "connection", "tcp", "group", "link", "packet", "flow", "host"];
/// Letters of a segment's flags, in the order of the testbed's table.
const FLAG_LETTERS: [(u16, char); 6] = [
    (flags::FIN, 'F'),
    (flags::SYN, 'S'),
    (flags::PSH, 'P'),
    (flags::ACK, 'A'),
    (flags::ECE, 'E'),
    (flags::CWR, 'W'),
];

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
    /// A recorder of the tables in a description. `links` are the links' names, the nameless wire last.
    pub fn new(
        run: &Run,
        simulation: &Simulation,
        links: &[String],
        place: &Path,
    ) -> Result<Recorder, Error> {
        let packet_trace = run.network.as_ref().is_some_and(|network| network.packet_trace);
        let mut tables = Vec::new();
        for name in &simulation.tables {
            let known = TABLES.into_iter().find(|table| table == name && !tables.contains(table));
            tables.push(known.ok_or_else(|| {
                let accepted = format!("each once of {}", TABLES.join(", "));
                Error::value(place, "simulation.tables".to_owned(), format!("{name:?}"), accepted)
            })?);
        }
        if tables.is_empty() {
            let present = |table: &&str| match *table {
                "packet" => packet_trace,
                "flow" => !simulation.flows.is_empty(),
                "page" | "object" | "chunk" => !simulation.visits.is_empty(),
                _ => true,
            };
            tables = TABLES.into_iter().filter(present).collect();
        }
        let link_interval = run.network.as_ref().map_or(10_000_000, |network| network.sample_interval_ns);
        let intervals = [
            ("network.sample_interval_ns", Duration(link_interval)),
            ("simulation.flow_interval_ns", simulation.flow_interval_ns),
        ];
        if let Some((key, _)) = intervals.into_iter().find(|(_, interval)| *interval == Duration(0)) {
            return Err(Error::value(place, key.to_owned(), "0".to_owned(), "at least 1 ns".to_owned()));
        }
        let wants = |table: &str| tables.contains(&table);
        Ok(Recorder {
            link_clock: Clock::new(Duration(link_interval), wants("link")),
            flow_clock: Clock::new(
                simulation.flow_interval_ns,
                wants("flow") && !simulation.flows.is_empty(),
            ),
            tables,
            links: Vec::new(),
            flows: Vec::new(),
            received: vec![0; simulation.flows.len()],
            sampled_links: links.len() - 1,
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
            self.sample_flows(world.now, apps);
        }
    }

    /// The run is over: takes the last samples.
    pub fn finish(&mut self, world: &mut World, apps: &[Application]) {
        if self.link_clock.ends(world.now) {
            self.sample_links(world);
        }
        if self.flow_clock.ends(world.now) {
            self.sample_flows(world.now, apps);
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
    fn sample_flows(&mut self, time: Time, apps: &[Application]) {
        let states = flows(apps).map(Flow::state).enumerate();
        for ((flow, state), before) in states.zip(&mut self.received) {
            let silent = state.ended.is_some() && state.received == *before;
            if state.connection.is_some() && !silent {
                self.flows.push(FlowSample {
                    time,
                    flow,
                    rate: state.rate,
                    received: state.received - *before,
                });
                *before = state.received;
            }
        }
    }

    /// Writes the tables into a folder.
    pub fn write(
        &self,
        world: &mut World,
        apps: &[Application],
        links: &[String],
        folder: &Path,
    ) -> Result<(), Error> {
        let visits = visits(world, apps);
        let states: Vec<FlowState> = flows(apps).map(Flow::state).collect();
        let groups = world.drain_group_records();
        for name in &self.tables {
            // As in the testbed, there is no table `group` unless a congestion control has groups.
            if *name == "group" && groups.is_empty() {
                continue;
            }
            let mut table = TableWriter::create(folder, name)?;
            match *name {
                "link" => self.links.iter().try_for_each(|s| table.push(&link_row(s, &links[s.link])))?,
                "flow" => {
                    self.flows.iter().try_for_each(|s| table.push(&flow_row(s, &states[s.flow])))?;
                }
                "page" => visits.iter().try_for_each(|visit| table.push(&visit.page))?,
                "object" => visits.iter().flat_map(|visit| &visit.objects).try_for_each(|r| table.push(r))?,
                "chunk" => visits.iter().flat_map(|visit| &visit.chunks).try_for_each(|r| table.push(r))?,
                "packet" => {
                    let crossings = world.fabric.crossings().iter();
                    crossings.into_iter().try_for_each(|c| table.push(&packet_row(c, world, links)))?;
                }
                "connection" => {
                    let of_flows = states.iter().filter_map(|state| state.connection);
                    let of_flows = of_flows.map(|id| connection_row(id as usize, world));
                    let of_visits = visits.iter().flat_map(|visit| &visit.connections);
                    of_flows.into_iter().try_for_each(|row| table.push(&row))?;
                    of_visits.into_iter().try_for_each(|(_, row)| table.push(row))?;
                }
                "tcp" => {
                    let samples = world.drain_samples();
                    samples.iter().try_for_each(|(end, sample)| table.push(&tcp_row(*end, sample, world)))?;
                }
                "group" => groups.iter().try_for_each(|record| table.push(&group_row(record, world)))?,
                // No machine can disturb a simulated run.
                "host" => {
                    let columns = wirepaint_trace::schema::table("host").expect("declared").columns.len();
                    table.push(&vec![Value::Null; columns])?;
                }
                _ => unreachable!("one of TABLES"),
            }
            table.finish()?;
        }
        Ok(())
    }
}

fn flows(apps: &[Application]) -> impl Iterator<Item = &Flow> {
    apps.iter().filter_map(Application::flow)
}

/// The rows of all visits. If there are several, the names of their requests begin with a number.
fn visits(world: &World, apps: &[Application]) -> Vec<Tables> {
    let loads: Vec<&Load> = apps.iter().filter_map(Application::load).collect();
    let name = |number: usize| if loads.len() > 1 { format!("{number}:") } else { String::new() };
    loads.iter().enumerate().map(|(number, load)| load.tables(world, &name(number))).collect()
}

fn link_row(sample: &LinkSample, name: &str) -> Vec<Value> {
    let c = &sample.counters;
    row![
        sample.time.0,
        name,
        Option::<&str>::None,
        c.queue_packets,
        c.queue_bytes,
        c.offered_packets,
        c.offered_bytes,
        c.delivered_packets,
        c.delivered_bytes,
        c.queue_drops + c.aqm_drops,
        c.random_losses,
        0_u64,
        c.capacity_bytes
    ]
    .to_vec()
}

fn flow_row(sample: &FlowSample, state: &FlowState) -> Vec<Value> {
    row![
        state.connection,
        state.started.0,
        state.ended.map(|time| time.0),
        sample.rate.map(|rate| rate.0),
        state.received,
        sample.time.0,
        sample.received
    ]
    .to_vec()
}

fn packet_row(crossing: &Crossing<Segment>, world: &World, links: &[String]) -> Vec<Value> {
    let segment = &crossing.body;
    let id = crossing.to / 2;
    let connection = &world.connections()[id as usize];
    let client = (connection.dial.client_address, connection.client_port);
    let server = (connection.dial.server_address, connection.dial.server_port);
    let (from, to) = if is_client(crossing.to) { (server, client) } else { (client, server) };
    let due = crossing.left.ok().map(|time| time.0);
    let flags: String =
        FLAG_LETTERS.iter().filter(|(bit, _)| segment.flags & bit != 0).map(|(_, letter)| letter).collect();
    row![
        links[crossing.link].as_str(),
        crossing.entered.0,
        due,
        due,
        crossing.left.err().map(|cause| cause.name()),
        crossing.wire_bytes,
        id,
        from.0.to_string(),
        from.1,
        to.0.to_string(),
        to.1,
        segment.seq,
        segment.ack,
        segment.len,
        flags
    ]
    .to_vec()
}

/// The row of a sample, as the testbed's probe writes it.
fn tcp_row(endpoint: EndpointId, sample: &Sample, world: &World) -> Vec<Value> {
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
    row![
        sample.time.0,
        endpoint / 2,
        if is_client(endpoint) { "client" } else { "server" },
        connection.dial.server_address.to_string(),
        connection.dial.server_port,
        connection.dial.client_address.to_string(),
        connection.client_port,
        event,
        sample.cwnd,
        (sample.ssthresh < INFINITE_SSTHRESH).then_some(sample.ssthresh),
        (sample.srtt_us > 0).then_some(u64::from(sample.srtt_us) * 1000 / 8),
        sample.in_flight,
        state,
        sample.delivered,
        sample.lost,
        sample.retransmitted,
        paced.then(|| sample.pacing_rate * 8)
    ]
    .to_vec()
}

/// The row of an event of a group, as the testbed's loader writes it.
fn group_row(
    (endpoint, instance, record): &(EndpointId, Arc<Instance>, GroupRecord),
    world: &World,
) -> Vec<Value> {
    let connection = &world.connections()[*endpoint as usize / 2];
    let known = |segments: u32| (1..INFINITE_SSTHRESH).contains(&segments).then_some(segments);
    row![
        record.time_ns - BOOT_NS,
        instance.algorithm.name(),
        // No name is registered.
        Value::Null,
        record.key.to_string(),
        record.key.server(),
        u32::from(record.key.slot),
        record.event(),
        endpoint / 2,
        connection.dial.server_address.to_string(),
        connection.dial.server_port,
        connection.dial.client_address.to_string(),
        connection.client_port,
        record.members,
        record.cwnd_sum,
        record.ssthresh_sum,
        known(record.cwnd),
        known(record.ssthresh)
    ]
    .to_vec()
}

/// The row of a connection that a flow opened.
fn connection_row(id: usize, world: &World) -> Vec<Value> {
    let connection: &Connection = &world.connections()[id];
    let dial = &connection.dial;
    let info = world.tcp(server_end(id as u32)).info();
    row![
        id,
        dial.client_address.to_string(),
        connection.client_port,
        dial.server_address.to_string(),
        dial.server_port,
        Value::Null,
        Value::Null,
        false,
        dial.server.congestion.algorithm.name(),
        info.opened_cwnd,
        connection.opened.0,
        connection.connected.map(|time| time.0),
        Value::Null,
        Value::Null,
        connection.last_byte.map(|time| time.0),
        Value::Null,
        connection.bytes_received,
        connection.bytes_sent,
        Value::Null,
        info.retransmitted,
        info.min_rtt_us.map(|us| u64::from(us) * 1000),
        dial.server.full_segment(),
        Value::Null
    ]
    .to_vec()
}
