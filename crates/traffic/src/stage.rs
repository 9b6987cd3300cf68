//! All flows of a run, and the loop that serves them.

use crate::Failure;
use crate::ends::{Place, Sockets};
use crate::records::{CONNECTIONS, Connection, End as Observed};
use serde::Serialize;
use socket2::Socket;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration as Pause;
use wirepaint_flow_model::{End, Transfer};
use wirepaint_observed_sockets::{Poll, Socket as Kernel, monotonic};
use wirepaint_run::signals::Signals;
use wirepaint_run::{Flow as Asked, FlowKind, Host, Run, RunError, Side, process};
use wirepaint_trace::{TableWriter, row, schema};
use wirepaint_units::{Duration, Time};

/// Port of the first flow's server; each has its own, so that a connection is known by its port.
const FIRST_PORT: u16 = 5001;
/// Longest time without a look at the signals.
const LONGEST_WAIT: Pause = Pause::from_millis(20);

/// A flow under way.
struct Flow {
    asked: Asked,
    transfer: Transfer,
    sockets: Sockets,
    server: SocketAddrV4,
    /// The flow waits for another one.
    waits: bool,
    record: Option<Connection>,
    /// The entry in the stage's alarms.
    alarm: Option<Time>,
    /// Bytes received at the last sample.
    sampled: u64,
    over: bool,
}

/// A row of the table `flow`, but for what is known at the end.
struct Sample {
    time: Time,
    flow: usize,
    rate: Option<u64>,
    received: u64,
    retransmitted: u32,
}

/// The flows of a run.
pub(crate) struct Stage {
    epoch: u64,
    begin: Time,
    until: Time,
    interval: Duration,
    poll: Poll,
    flows: Vec<Flow>,
    /// For each flow, those that begin when it has ended.
    successors: Vec<Vec<usize>>,
    alarms: BTreeSet<(Time, usize)>,
    samples: Vec<Sample>,
}

impl Stage {
    /// Opens all sockets; the servers listen.
    pub fn open(run: &Run, path: &Path, client_namespace: RawFd) -> Result<Stage, Failure> {
        let waits = run.flows_checked(path)?;
        let mut listeners = Vec::with_capacity(run.flows.len());
        for (place, flow) in run.flows.iter().enumerate() {
            let server = host(run, path, &flow.server, "server")?;
            let port = u16::try_from(place).ok().and_then(|place| FIRST_PORT.checked_add(place));
            let port = port.ok_or_else(|| {
                refused(path, "flows", format!("{} flows", run.flows.len()), "at most 60534")
            })?;
            let address = SocketAddrV4::new(server.1, port);
            let socket = Place {
                address,
                congestion: congestion(flow, Side::Server, server.0),
                dscp: flow.dscp,
                nodelay: flow.nodelay,
            }
            .socket()?;
            socket.listen(1).map_err(Failure::system(format!("listening on {address}")))?;
            listeners.push((socket, address));
        }
        // The servers' sockets are open: from here on only the clients' are opened.
        process::enter_network(client_namespace)
            .map_err(Failure::system("entering the client's namespace"))?;
        let mut flows = Vec::with_capacity(run.flows.len());
        for ((asked, (listener, server)), waits) in run.flows.iter().zip(listeners).zip(&waits) {
            let client = host(run, path, &asked.client, "client")?;
            let place = Place {
                address: SocketAddrV4::new(client.1, 0),
                congestion: congestion(asked, Side::Client, client.0),
                dscp: asked.dscp,
                nodelay: asked.nodelay,
            };
            flows.push(Flow {
                transfer: Transfer::new(&asked.kind, asked.start_ns, asked.stop_ns),
                sockets: Sockets::new(listener, place.socket()?, asked.sender),
                asked: asked.clone(),
                server,
                waits: waits.is_some(),
                record: None,
                alarm: None,
                sampled: 0,
                over: false,
            });
        }
        let mut successors = vec![Vec::new(); flows.len()];
        for (flow, before) in waits.into_iter().enumerate() {
            before.into_iter().for_each(|before| successors[before].push(flow));
        }
        Ok(Stage {
            epoch: run.epoch_ns,
            begin: Time::ZERO,
            until: run.until_ns,
            interval: run.flow_interval_ns,
            poll: Poll::new().map_err(Failure::system("epoll"))?,
            flows,
            successors,
            alarms: BTreeSet::new(),
            samples: Vec::new(),
        })
    }

    fn now(&self) -> Time {
        Time(monotonic() - self.epoch)
    }

    /// Begins; returns the time from which the flows count, in nanoseconds of the run.
    pub fn begin(&mut self) -> u64 {
        self.begin = self.now();
        self.until = self.begin + self.until.since(Time::ZERO);
        for place in 0..self.flows.len() {
            if !self.flows[place].waits {
                self.flows[place].transfer.begin(self.begin);
                self.settle(place);
            }
        }
        self.begin.0
    }

    /// Serves the flows to the end. Returns it, and the number of flows that did not reach their own.
    pub fn play(&mut self, signals: &Signals) -> Result<(u64, usize), Failure> {
        let mut touched = Vec::new();
        let mut sample = self.begin + self.interval;
        let mut stop = false;
        while !stop && self.now() < self.until && !self.is_over() {
            let due = self.alarms.first().map_or(sample, |(at, _)| sample.min(*at)).min(self.until);
            let wait = Pause::from_nanos(due.0.saturating_sub(self.now().0)).min(LONGEST_WAIT);
            touched.clear();
            self.poll.wait(wait, &mut touched).map_err(Failure::system("waiting for sockets"))?;
            touched.iter_mut().for_each(|number| *number /= 2);
            while let Some((_, place)) = self.alarms.first().filter(|(at, _)| *at <= self.now()).copied() {
                self.alarms.pop_first();
                self.flows[place].alarm = None;
                touched.push(place);
            }
            touched.sort_unstable();
            touched.dedup();
            for place in &touched {
                self.act(*place)?;
            }
            if self.now() >= sample {
                self.sample()?;
                sample += self.interval;
            }
            stop = signals.wait_for(Pause::ZERO);
        }
        self.sample()?;
        self.look_last()?;
        let unfinished = self
            .flows
            .iter()
            .filter(|flow| !flow.over && !flow.asked.background && has_end(&flow.asked))
            .count();
        Ok((self.now().0, unfinished))
    }

    /// True when every flow that the run waits for has ended; where it waits for none, when all have.
    fn is_over(&self) -> bool {
        let waited = |flow: &&Flow| !flow.asked.background;
        let mut flows = self.flows.iter().filter(waited).peekable();
        if flows.peek().is_some() {
            flows.all(|flow| flow.over)
        } else {
            self.flows.iter().all(|flow| flow.over)
        }
    }

    /// A flow connects, reads and writes what is possible now.
    fn act(&mut self, place: usize) -> Result<(), Failure> {
        let now = self.now();
        let flow = &mut self.flows[place];
        let of_flow = |flow: &Flow| format!("flow {:?} to {}", flow.asked.name, flow.server);
        if flow.waits || flow.over || flow.transfer.start() > now {
            self.settle(place);
            return Ok(());
        }
        let failed = |flow: &Flow| Failure::system(of_flow(flow));
        if flow.record.is_none() {
            flow.sockets.connect(flow.server, &self.poll, 2 * place).map_err(failed(flow))?;
            flow.record = Some(flow.opened(now).map_err(failed(flow))?);
        }
        let new = flow.sockets.establish(&self.poll, 2 * place).map_err(failed(flow))?;
        flow.connected(now, new).map_err(failed(flow))?;
        for end in [End::Receiver, End::Sender] {
            let side = flow.sockets.side(end);
            let bytes = flow.sockets.read(side);
            if bytes > 0 {
                flow.transfer.read(now, end, bytes);
                flow.arrived(now, side, bytes);
            }
        }
        flow.transfer.progress(now, &mut flow.sockets);
        if let Some(source) = flow.sockets.broken() {
            return Err(Failure::System { attempt: of_flow(flow), source });
        }
        if flow.transfer.ended().is_some() {
            flow.over = true;
            for next in std::mem::take(&mut self.successors[place]) {
                self.flows[next].waits = false;
                self.flows[next].transfer.begin(now);
                self.settle(next);
            }
        }
        self.settle(place);
        Ok(())
    }

    /// Sets the alarm of a flow.
    fn settle(&mut self, place: usize) {
        let flow = &mut self.flows[place];
        if let Some(before) = flow.alarm.take() {
            self.alarms.remove(&(before, place));
        }
        if flow.waits || flow.over {
            return;
        }
        flow.alarm = if flow.record.is_none() { Some(flow.transfer.start()) } else { flow.transfer.next() };
        self.alarms.extend(flow.alarm.map(|at| (at, place)));
    }

    /// Samples the flows that have begun and had not ended at their last sample.
    fn sample(&mut self) -> Result<(), Failure> {
        let time = self.now();
        for (place, flow) in self.flows.iter_mut().enumerate() {
            let received = flow.transfer.received();
            if flow.record.is_none() || (flow.over && received == flow.sampled) {
                continue;
            }
            let retransmitted = match flow.sockets.of(flow.asked.sender) {
                Some(socket) => info(socket)?.total_retrans,
                None => 0,
            };
            let rate = flow.transfer.rate().map(|rate| rate.0);
            let bytes = received - flow.sampled;
            self.samples.push(Sample { time, flow: place, rate, received: bytes, retransmitted });
            flow.sampled = received;
        }
        Ok(())
    }

    /// Notes the last state of all sockets.
    fn look_last(&mut self) -> Result<(), Failure> {
        for flow in &mut self.flows {
            let Some(record) = &mut flow.record else { continue };
            for (side, end) in [(Side::Client, &mut record.client), (Side::Server, &mut record.server)] {
                if let Some(socket) = flow.sockets.of(side) {
                    end.ends(socket).map_err(Failure::system("the state of a socket"))?;
                    // An open connection ends at once with this process.
                    reset_when_closed(socket)?;
                }
            }
        }
        Ok(())
    }

    /// Writes tables and records.
    pub fn write(&self, run: &Run) -> Result<(), Failure> {
        let names: Vec<&str> = self.flows.iter().map(|flow| flow.asked.name.as_str()).collect();
        TableWriter::save(
            &run.trace_dir,
            self.samples.iter().map(|sample| {
                let flow = &self.flows[sample.flow];
                row!(schema::Flow {
                    flow: names[sample.flow],
                    sender: flow.asked.sender.name(),
                    connection: sample.flow,
                    started: flow.transfer.start().0,
                    ended: flow.transfer.ended().map(|time| time.0),
                    rate_asked: sample.rate,
                    bytes: flow.transfer.received(),
                    time: sample.time.0,
                    received_bytes: sample.received,
                    retransmitted: sample.retransmitted,
                })
            }),
        )?;
        let messages = self.flows.iter().enumerate().flat_map(|(place, flow)| {
            let name = names[place];
            flow.transfer.messages().iter().map(move |message| {
                row!(schema::Message {
                    flow: name,
                    connection: place,
                    due: message.due.0,
                    read: message.read.0,
                    bytes: message.bytes,
                })
            })
        });
        TableWriter::save(&run.trace_dir, messages)?;
        let records: Vec<_> = self
            .flows
            .iter()
            .enumerate()
            .filter_map(|(place, flow)| Some((place, flow.record.as_ref()?)))
            .collect();
        lines(&run.work_dir.join(CONNECTIONS), &records)
    }
}

impl Flow {
    /// The record of a connection that begins to open.
    fn opened(&self, now: Time) -> std::io::Result<Connection> {
        let client = self.sockets.client_address()?;
        Ok(Connection {
            flow: self.asked.name.clone(),
            sender: self.asked.sender.name(),
            client_address: *client.ip(),
            client_port: client.port(),
            server_address: *self.server.ip(),
            server_port: self.server.port(),
            opened: now.0,
            connected: None,
            last_byte: None,
            bytes_received: 0,
            bytes_sent: 0,
            client: Observed::default(),
            server: Observed::default(),
        })
    }

    /// Notes what the kernel says of ends that are new.
    fn connected(&mut self, now: Time, [client, server]: [bool; 2]) -> std::io::Result<()> {
        let record = self.record.as_mut().expect("opened");
        if client {
            record.connected = Some(now.0);
            record.client = Observed::connected(self.sockets.of(Side::Client).expect("new"))?;
        }
        if server {
            record.server = Observed::connected(self.sockets.of(Side::Server).expect("new"))?;
        }
        Ok(())
    }

    fn arrived(&mut self, now: Time, side: Side, bytes: u64) {
        let record = self.record.as_mut().expect("opened");
        if side == Side::Client {
            record.bytes_received += bytes;
            record.last_byte = Some(now.0);
        } else {
            record.bytes_sent += bytes;
        }
    }
}

/// True for a flow that ends by itself.
fn has_end(asked: &Asked) -> bool {
    asked.stop_ns.is_some()
        || !matches!(
            asked.kind,
            FlowKind::Bulk { bytes: None } | FlowKind::RequestResponse { count: None, .. }
        )
}

/// Congestion control of a side of a flow: the flow's own for the sender, else its host's.
fn congestion<'a>(flow: &'a Asked, side: Side, host: &'a Host) -> &'a str {
    flow.congestion.as_deref().filter(|_| flow.sender == side).unwrap_or(&host.congestion)
}

/// A host with its address.
fn host<'a>(
    run: &'a Run,
    path: &Path,
    name: &str,
    side: &'static str,
) -> Result<(&'a Host, Ipv4Addr), Failure> {
    let found = run.hosts.iter().find(|host| host.name == name);
    let Some(found) = found else {
        let known: Vec<&str> = run.hosts.iter().map(|host| host.name.as_str()).collect();
        let accepted = format!("a name in hosts: {}", known.join(", "));
        return Err(refused(path, &format!("flows.{side}"), format!("{name:?}"), &accepted));
    };
    let missing =
        || refused(path, &format!("hosts, {name}: address"), "nothing".to_owned(), "an IPv4 address");
    Ok((found, found.address.ok_or_else(missing)?))
}

fn refused(path: &Path, key: &str, found: String, accepted: &str) -> Failure {
    let (path, key, accepted) = (path.to_owned(), key.to_owned(), accepted.to_owned());
    RunError::Part { path, key, found, accepted }.into()
}

fn info(socket: &Socket) -> Result<wirepaint_observed_sockets::TcpInfo, Failure> {
    use std::os::fd::AsFd;
    let look = || Kernel::of(socket.as_fd())?.tcp_info();
    look().map_err(Failure::system("the state of a socket"))
}

fn reset_when_closed(socket: &Socket) -> Result<(), Failure> {
    socket.set_linger(Some(Pause::ZERO)).map_err(Failure::system("SO_LINGER"))
}

/// A record with the number of its connection.
#[derive(Serialize)]
struct Numbered<'a> {
    connection: usize,
    #[serde(flatten)]
    record: &'a Connection,
}

fn lines(path: &Path, records: &[(usize, &Connection)]) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for (connection, record) in records {
            serde_json::to_writer(&mut file, &Numbered { connection: *connection, record })?;
            file.write_all(b"\n")?;
        }
        file.flush()
    };
    write().map_err(Failure::system(format!("writing {}", path.display())))
}
