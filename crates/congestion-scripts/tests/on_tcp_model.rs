//! The acknowledgement scripts on the simulator's TCP: the same values at the same acknowledgements.
//!
//! A script's timetable ([`wirepaint_congestion_scripts::timetable`]) is carried out by endpoints of tcp-model over a
//! path of its own. Nothing is near here: a value is the script's, or the script is in [`DIFFERENT`] with the finding.

use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_congestion_native::{Groups, INFINITE_SSTHRESH, Instance, find};
use wirepaint_congestion_scripts::script;
use wirepaint_congestion_scripts::sender::{local_address, network};
use wirepaint_congestion_scripts::timetable::timetable;
use wirepaint_tcp_model::{Config, Ecn, Endpoint, Peer, Segment, flags};
use wirepaint_units::{Duration, Time};

/// Scripts whose values differ on tcp-model, each with the finding.
const DIFFERENT: [(&str, &str); 1] = [(
    "westwood-2-random-loss",
    "the share is measured over time: packets that are 60 us apart give one segment of 91 less than packets that the \
     script's path puts 1 us apart; the kernel gives that, too",
)];

/// The sender's numbers at one moment.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    delivered: u64,
    sent: u64,
    retransmitted: u64,
    values: BTreeMap<&'static str, String>,
}

struct Connection {
    server: Endpoint,
    client: Endpoint,
    mss: u64,
    /// As each ACK found the sender.
    acks: Vec<Seen>,
    /// After each event, without repetitions.
    samples: Vec<Seen>,
    /// The sample before each write and switch.
    before_acts: Vec<usize>,
    congestion: Vec<&'static str>,
    closed: bool,
}

impl Connection {
    fn seen(&self) -> Seen {
        let tp = self.server.sock();
        let info = self.server.info();
        let ssthresh = match tp.snd_ssthresh {
            INFINITE_SSTHRESH.. => "inf".to_owned(),
            ssthresh => ssthresh.to_string(),
        };
        Seen {
            delivered: u64::from(tp.delivered) - 1, // the SYN
            sent: tp.data_segs_out.into(),
            retransmitted: tp.total_retrans.into(),
            values: BTreeMap::from([
                ("cwnd", tp.snd_cwnd.to_string()),
                ("ssthresh", ssthresh),
                ("flight", tp.in_flight().to_string()),
                ("state", format!("{:?}", info.state)),
                ("lost", tp.lost.to_string()),
                ("retransmitted", tp.total_retrans.to_string()),
                ("sent_kb", (tp.bytes_sent / 1000).to_string()),
            ]),
        }
    }

    fn sample(&mut self) {
        let now = self.seen();
        if !self.closed && self.samples.last() != Some(&now) {
            self.samples.push(now);
        }
    }
}

/// Where a segment goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    Client(usize),
    Server(usize),
}

/// A group: prefix, network of its servers, slot; members, sums of cwnd and ssthresh.
type Look = (String, String, u8, [u64; 3]);

struct Transfer<'a> {
    asked: &'a Value,
    now: Time,
    connections: Vec<Connection>,
    groups: Rc<Groups>,
    instances: Vec<(Value, Arc<Instance>)>,
    looks: Vec<Vec<Look>>,
    flying: BinaryHeap<Reverse<(Time, u64)>>,
    segments: BTreeMap<u64, (To, Segment)>,
    sequence: u64,
    /// When the bottleneck is free.
    free: Time,
    /// Actions on data down and on bare ACKs up, by their numbers.
    actions: [BTreeMap<u64, Value>; 2],
    counts: [u64; 2],
    acts: VecDeque<&'a Value>,
    /// When the next act is due, once each connection has reached its numbers.
    due: Option<Time>,
}

impl<'a> Transfer<'a> {
    fn new(asked: &'a Value) -> Transfer<'a> {
        let actions = ["down", "up"].map(|way| {
            let listed = asked[way].as_array().unwrap().iter();
            listed.map(|one| (one["nth"].as_u64().unwrap(), one["action"].clone())).collect()
        });
        let mut transfer = Transfer {
            asked,
            now: Time::ZERO,
            connections: Vec::new(),
            groups: Groups::new(),
            instances: Vec::new(),
            looks: Vec::new(),
            flying: BinaryHeap::new(),
            segments: BTreeMap::new(),
            sequence: 0,
            free: Time::ZERO,
            actions,
            counts: [0; 2],
            acts: asked["acts"].as_array().unwrap().iter().collect(),
            due: None,
        };
        for (place, connection) in asked["connections"].as_array().unwrap().iter().enumerate() {
            transfer.connect(place, connection);
        }
        transfer
    }

    fn instance(&mut self, congestion: &Value) -> Arc<Instance> {
        if let Some((_, known)) = self.instances.iter().find(|(known, _)| known == congestion) {
            return known.clone();
        }
        let parameters: BTreeMap<String, i64> =
            serde_json::from_value(congestion["parameters"].clone()).unwrap();
        let made = find(congestion["algorithm"].as_str().unwrap()).unwrap().instance(&parameters).unwrap();
        self.instances.push((congestion.clone(), made.clone()));
        made
    }

    fn config(&self, congestion: Arc<Instance>, mss: u32, initial_window: u32) -> Config {
        let asked = self.asked;
        let us = |key: &str| asked[key].as_u64().unwrap() as u32;
        let buffer = 1 << 30;
        Config {
            mss,
            initial_window,
            timestamps: false,
            frto: false,
            comp_sack_nr: 0,
            nodelay: true,
            quickack: true,
            gso_max_segs: 1,
            tlp: asked["tail_loss_probe"].as_bool().unwrap(),
            slow_start_after_idle: asked["after_idle"].as_bool().unwrap(),
            ecn: if asked["ecn"].as_bool().unwrap() { Ecn::On } else { Ecn::Off },
            rto_min_us: us("rto_us") - us("rtt_us"),
            pacing_ss_percent: 1000,
            pacing_ca_percent: 1000,
            rmem: [buffer; 3],
            moderate_rcvbuf: false,
            sndbuf: Some(u64::MAX),
            ..Config::linux(congestion)
        }
    }

    fn connect(&mut self, place: usize, asked: &Value) {
        let mss = asked["mss"].as_u64().unwrap();
        let opens_later = self.asked["acts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|act| act["kind"] == "open" && act["connection"].as_u64() == Some(place as u64));
        let own = self.instance(&asked["congestion"]);
        let first = if opens_later { find("std").unwrap().instance(&BTreeMap::new()).unwrap() } else { own };
        let window = asked["initial_window"].as_u64().unwrap() as u32;
        let config = Arc::new(self.config(first.clone(), mss as u32, window));
        let plain = find("std").unwrap().instance(&BTreeMap::new()).unwrap();
        let of_client = Arc::new(self.config(plain, mss as u32, 10));
        let to: IpAddr = asked["to"].as_str().unwrap().parse().unwrap();
        let server = asked["server"].as_u64().unwrap() as u8;
        let to = SocketAddr::new(to, 50_000 + place as u16);
        let local = SocketAddr::new(local_address(server, to), 443);
        let peer = Peer { groups: Some(self.groups.clone()), host: server.into(), ..Peer::new(local, to) };
        self.connections.push(Connection {
            client: Endpoint::client(&of_client, Peer::new(to, local), self.now),
            server: Endpoint::server(&config, peer, self.now),
            mss,
            acks: Vec::new(),
            samples: Vec::new(),
            before_acts: Vec::new(),
            congestion: vec![first.algorithm.name()],
            closed: false,
        });
        self.collect();
        while !self.connections[place].server.is_established()
            || !self.connections[place].client.is_established()
        {
            assert!(self.step(Time::MAX), "no connection");
        }
        self.connections[place].sample();
    }

    /// Puts what the endpoints send on the path.
    fn collect(&mut self) {
        for place in 0..self.connections.len() {
            while let Some(segment) = self.connections[place].server.transmit(self.now) {
                self.put(To::Client(place), segment);
            }
            while let Some(segment) = self.connections[place].client.transmit(self.now) {
                self.put(To::Server(place), segment);
            }
        }
    }

    fn put(&mut self, to: To, mut segment: Segment) {
        let half = Duration(self.asked["rtt_us"].as_u64().unwrap() * 500);
        let down = matches!(to, To::Client(_));
        let counted = if down { segment.len > 0 } else { segment.len == 0 && !segment.has(flags::SYN) };
        let way = usize::from(!down);
        self.counts[way] += u64::from(counted);
        let action = if counted { self.actions[way].remove(&self.counts[way]) } else { None };
        let mut due = self.now + half;
        if down {
            let spacing = self.asked["spacing_us"].as_u64().unwrap() * 1000;
            let bytes = u64::from(segment.len) + 54;
            let full = self.connections.iter().map(|connection| connection.mss).max().unwrap_or(1448) + 54;
            self.free = self.free.max(self.now) + Duration(spacing * bytes / full);
            due = self.free + half;
        }
        match action.as_ref().and_then(|action| action["kind"].as_str()) {
            Some("drop") => return,
            Some("hold") => due += Duration(action.unwrap()["extra_ns"].as_u64().unwrap()),
            Some("mark") => segment.flags |= flags::CE,
            _ => {}
        }
        self.sequence += 1;
        self.flying.push(Reverse((due, self.sequence)));
        self.segments.insert(self.sequence, (to, segment));
    }

    /// Carries out the next event due by `until`; false if there is none.
    fn step(&mut self, until: Time) -> bool {
        let arrival = self.flying.peek().map(|Reverse((due, _))| *due);
        let timers = self.connections.iter().flat_map(|c| [c.server.next_timeout(), c.client.next_timeout()]);
        let Some(next) = timers.chain([arrival]).flatten().min().filter(|&next| next <= until) else {
            return false;
        };
        self.now = next;
        if arrival == Some(next) {
            let Reverse((_, sequence)) = self.flying.pop().unwrap();
            let (to, segment) = self.segments.remove(&sequence).unwrap();
            match to {
                To::Client(place) => {
                    let client = &mut self.connections[place].client;
                    client.receive(next, &segment);
                    client.read(next, u64::MAX);
                }
                To::Server(place) => {
                    let connection = &mut self.connections[place];
                    if connection.server.is_established() {
                        connection.acks.push(connection.seen());
                    }
                    connection.server.receive(next, &segment);
                }
            }
        } else {
            for connection in &mut self.connections {
                for end in [&mut connection.server, &mut connection.client] {
                    if end.next_timeout().is_some_and(|due| due <= next) {
                        end.timeout(next);
                    }
                }
            }
        }
        self.collect();
        for connection in self.connections.iter_mut().filter(|c| c.server.is_established()) {
            connection.sample();
        }
        true
    }

    fn reached(&self, numbers: &Value) -> bool {
        let numbers = numbers.as_array().unwrap().iter();
        self.connections.iter().zip(numbers).all(|(connection, wanted)| {
            let now = connection.seen();
            now.delivered >= wanted[0].as_u64().unwrap() && now.sent >= wanted[1].as_u64().unwrap()
        })
    }

    fn act(&mut self, act: &Value) {
        let place = act["connection"].as_u64().unwrap_or(0) as usize;
        let now = self.now;
        match act["kind"].as_str().unwrap() {
            "look" => {
                let mut seen = Vec::new();
                for (_, instance) in &self.instances {
                    seen.extend(self.groups.of(instance).into_iter().map(|(key, group)| {
                        let sums = [group.members.into(), group.cwnd_sum, group.ssthresh_sum];
                        (key.to_string(), key.server(), key.slot, sums)
                    }));
                }
                self.looks.push(seen);
            }
            "write" => {
                let connection = &mut self.connections[place];
                connection.before_acts.push(connection.samples.len() - 1);
                let bytes = act["segments"].as_u64().unwrap() * connection.mss;
                assert_eq!(connection.server.write(now, bytes), bytes);
            }
            kind @ ("switch" | "open") => {
                let instance = self.instance(&act["congestion"]);
                let connection = &mut self.connections[place];
                if kind == "switch" {
                    connection.before_acts.push(connection.samples.len() - 1);
                } else {
                    connection.congestion.clear();
                }
                connection.congestion.push(instance.algorithm.name());
                connection.server.switch(now, instance);
            }
            "close" => {
                self.connections[place].closed = true;
                self.connections[place].server.abort(now);
            }
            other => panic!("act {other}"),
        }
        self.collect();
        self.connections.iter_mut().for_each(Connection::sample);
    }

    /// Carries out all acts, then what is left of the transfer's time.
    fn carry_out(&mut self) -> Result<(), String> {
        let takes = Duration(self.asked["until"]["us"].as_u64().unwrap() * 1000);
        let rtt = Duration(self.asked["rtt_us"].as_u64().unwrap() * 1000);
        let end = self.now + takes + Duration(rtt.0 * 3 + takes.0 / 2);
        loop {
            while let Some(&act) = self.acts.front() {
                if self.due.is_none() && self.reached(&act["reached"]) {
                    self.due = Some(self.now + Duration(act["after_us"].as_u64().unwrap() * 1000));
                }
                if self.due.is_none_or(|due| due > self.now) {
                    break;
                }
                self.due = None;
                self.acts.pop_front();
                self.act(act);
            }
            let until = self.due.unwrap_or(end);
            if !self.step(until) {
                match self.due {
                    Some(due) => self.now = due,
                    None => break,
                }
            }
        }
        match self.acts.front() {
            None => Ok(()),
            Some(act) => Err(format!("line {}: never reached {}", self.asked["line"], act["reached"])),
        }
    }

    /// What the check observes; `None` where the model has no such value.
    fn value(&self, check: &Value) -> Option<String> {
        let key = check["key"].as_str().unwrap();
        if let Some(group) = check.get("group").filter(|group| !group.is_null()) {
            let prefix = group["prefix"].as_str().unwrap();
            let server = network(group["server"].as_u64().unwrap() as u8, prefix.contains(':'));
            let look = &self.looks[group["look"].as_u64().unwrap() as usize];
            let slot = group["slot"].as_u64().unwrap() as u8;
            let found = look.iter().find(|(p, s, n, _)| p == prefix && *s == server && *n == slot);
            let place = ["members", "cwnd_sum", "ssthresh_sum"].iter().position(|name| *name == key).unwrap();
            return Some(found.map_or(0, |(_, _, _, sums)| sums[place]).to_string());
        }
        let number = |name: &str| check[name].as_u64().unwrap();
        if key == "cc" {
            let acts = self.asked["acts"].as_array().unwrap().iter();
            let of_it = acts.filter(|act| act["connection"] == check["connection"]);
            let of_it = of_it.filter(|act| act["kind"] == "write" || act["kind"] == "switch");
            let switches = of_it.take(number("acts") as usize).filter(|act| act["kind"] == "switch").count();
            return Some(self.connections[number("connection") as usize].congestion[switches].to_owned());
        }
        let connection = &self.connections[number("connection") as usize];
        let polled = connection.samples.iter().rfind(|seen| {
            (seen.delivered, seen.sent, seen.retransmitted)
                == (number("delivered"), number("sent"), number("retransmitted"))
        });
        let of_ack: Vec<&Seen> =
            connection.acks.iter().filter(|seen| seen.delivered == number("delivered")).collect();
        let of_ack = of_ack.get((number("repeat") as usize).min(of_ack.len().max(1) - 1)).copied();
        let seen = match check["until"].as_str().unwrap() {
            "act" => connection.before_acts.get(number("acts") as usize).map(|&at| &connection.samples[at]),
            "timer" => polled.or(of_ack),
            _ => of_ack.or(polled),
        };
        match seen {
            None => Some(format!("never so ({} delivered, {} sent)", number("delivered"), number("sent"))),
            Some(seen) => seen.values.get(key).cloned(),
        }
    }
}

/// Differences of a script, and the number of its checks that were compared.
fn differences(path: &Path) -> (Vec<String>, usize) {
    let played = script::play(path).unwrap();
    let (mut differences, mut checks) = (Vec::new(), 0);
    for asked in timetable(&played)["transfers"].as_array().unwrap() {
        if !asked["impossible"].as_array().unwrap().is_empty() {
            continue;
        }
        let mut transfer = Transfer::new(asked);
        if let Err(stuck) = transfer.carry_out() {
            differences.push(stuck);
            continue;
        }
        for check in asked["checks"].as_array().unwrap() {
            let Some(found) = transfer.value(check) else { continue };
            checks += 1;
            let expected = check["expected"].as_str().unwrap();
            if !found.eq_ignore_ascii_case(expected) {
                let [line, event, key] = ["line", "event", "key"].map(|key| &check[key]);
                differences.push(format!("line {line}: {event}: {key} {expected}, found {found}"));
            }
        }
    }
    (differences, checks)
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../congestion/scripts");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|of| of == "ack")).collect();
    paths.sort();
    paths
}

#[test]
fn scripts_hold_on_the_simulators_tcp() {
    let known = BTreeMap::from(DIFFERENT);
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for path in scripts() {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (differences, checks) = differences(&path);
        compared += checks;
        if known.contains_key(name.as_str()) == differences.is_empty() {
            wrong.push(format!(
                "{name}: {} of {checks} differ\n  {}",
                differences.len(),
                differences.join("\n  ")
            ));
        }
    }
    assert!(compared > 1_000, "{compared} checks were compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
