//! Timetables: acknowledgement scripts for a real path and a real application.
//!
//! A script is played natively first ([`crate::script::play`]). A journal notes the sender's writes and the
//! path's actions on each data packet. [`timetable`] turns the journal into instructions for the running
//! kernel behind the emulator, where the sender cannot be controlled:
//!
//! * connections that share groups share a path, on which data leave in the order of sending;
//! * applications open, write, switch and close a given time after given numbers of segments have been
//!   delivered and sent on each of these connections;
//! * packets are dropped, held or marked by their number, and acknowledgements by theirs;
//! * each check states the point of the connection at which to observe.
//!
//! Events that a path cannot carry out (a drop in the sender's own queue) are listed under `impossible`.

use crate::entry::{Entry, What};
use crate::script::{Check, Exchange, Look, Opened, Played};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wirepaint_congestion_native::{Instance, external};

/// Real time that a connection may take in the kernel.
const LONGEST_TRANSFER_US: u64 = 60_000_000;

/// Longest pause: long enough for an application that polls each millisecond, short enough for RACK.
const LONGEST_PAUSE_US: u64 = 5_000;

/// A played script, as JSON: `exchange` (the events with the sender after them) and `transfers`. A transfer
/// has connections that share groups, the actions of applications and path, and the checks.
pub fn timetable(played: &Played) -> Value {
    let transfers = together(played).into_iter().map(|members| Transfer::new(played, members).described());
    let exchange = played
        .exchange
        .iter()
        .map(|Exchange { line, event, sender }| json!({"line": line, "event": event, "sender": sender}));
    json!({
        "exchange": exchange.collect::<Vec<_>>(),
        "transfers": transfers.collect::<Vec<_>>(),
    })
}

/// Places of connections; those in groups of one prefix are together.
fn together(played: &Played) -> Vec<Vec<usize>> {
    let mut transfer: Vec<usize> = (0..played.connections.len()).collect();
    let same = |one: &Membership, other: &Membership| Arc::ptr_eq(&one.1, &other.1) && one.2 == other.2;
    for (index, member) in played.memberships.iter().enumerate() {
        for other in played.memberships[..index].iter().filter(|other| same(member, other)) {
            let (from, to) = (transfer[member.0], transfer[other.0]);
            transfer.iter_mut().filter(|place| **place == from).for_each(|place| *place = to);
        }
    }
    let mut transfers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, transfer) in transfer.into_iter().enumerate() {
        transfers.entry(transfer).or_default().push(place);
    }
    transfers.into_values().collect()
}

/// Connections that share groups, on one path.
struct Transfer<'a> {
    opened: Vec<&'a Opened>,
    /// Events of all until the last check is seen, each with the place of its connection.
    journal: Vec<(usize, &'a Entry)>,
    checks: Vec<(usize, &'a Check)>,
    /// Looks at groups, by their places in [`Played::looks`].
    looks: BTreeMap<usize, &'a Look>,
    /// Each connection's data packets, by their numbers on the path.
    numbers: Vec<Vec<u32>>,
    /// Round-trip time of the path; single connections may have a longer one.
    rtt_us: u64,
    /// Duration of the transfer.
    takes_us: u64,
}

impl<'a> Transfer<'a> {
    fn new(played: &'a Played, members: Vec<usize>) -> Transfer<'a> {
        let opened: Vec<&Opened> = members.iter().map(|place| &played.connections[*place]).collect();
        let ours = |look: &Look| {
            let groups = || played.memberships.iter();
            let in_it =
                |member: &&Membership| Arc::ptr_eq(&member.1, &look.instance) && member.2 == look.prefix;
            // If no connection was ever in the group, the check belongs to its connection's transfer.
            groups().find(in_it).map(|member| members.contains(&member.0))
        };
        let mut checks = Vec::new();
        let mut looks = BTreeMap::new();
        for check in &played.checks {
            let look = check.look.map(|look| &played.looks[look]);
            let place = members.iter().position(|place| *place == check.connection);
            if look.and_then(ours).unwrap_or(place.is_some()) {
                checks.push((place.unwrap_or(0), check));
                looks.extend(check.look.zip(look));
            }
        }
        let rtt_us = opened.iter().map(|opened| opened.config.rtt_us).min().expect("there is a connection");
        let mut journal: Vec<(usize, &Entry)> = Vec::new();
        for (place, opened) in opened.iter().enumerate() {
            journal.extend(opened.sender.journal.iter().map(|entry| (place, entry)));
        }
        journal.sort_by_key(|(_, entry)| entry.order);
        let (begin, end) = (journal[0].1.at_us, opened.iter().map(|opened| opened.sender.now_us()).max());
        // Events after the ACKs that the last check observes do not matter.
        let last = checks.last().map_or((0, 0), |(_, check)| (check.order, check.at_us + 2 * rtt_us));
        journal.retain(|(_, entry)| entry.order < last.0 || entry.at_us <= last.1);
        let takes_us = end.unwrap_or(begin).min(last.1).saturating_sub(begin);
        let numbers = numbers(&opened);
        Transfer { opened, journal, checks, looks, numbers, rtt_us, takes_us }
    }

    fn described(&self) -> Value {
        let (down, up) = self.path();
        json!({
            "line": self.opened[0].line,
            "connections": self.opened.iter().map(|opened| json!({
                "line": opened.line,
                "congestion": described(&opened.instance),
                "to": opened.config.to.ip().to_string(),
                "server": opened.config.server,
                "initial_window": opened.config.initial_window,
                "mss": opened.config.mss,
            })).collect::<Vec<_>>(),
            "rtt_us": self.rtt_us,
            "rto_us": self.opened[0].config.rto_us,
            "spacing_us": self.spacing_us(),
            "after_idle": self.after_idle(),
            "ecn": self.any(|what| matches!(what, What::Arrive { ece: true, .. })),
            "tail_loss_probe": self.any(|what| matches!(what, What::Probe)),
            "acts": self.acts(),
            "until": {"reached": self.reached(u64::MAX), "us": self.takes_us},
            "down": down,
            "up": up,
            "checks": self.checks.iter().map(|(place, check)| self.observation(*place, check)).collect::<Vec<_>>(),
            "impossible": self.impossible(),
        })
    }

    fn any(&self, wanted: impl Fn(&What) -> bool) -> bool {
        self.journal.iter().any(|(_, entry)| wanted(&entry.what))
    }

    fn several(&self) -> bool {
        self.opened.len() > 1
    }

    /// Several connections are established before they are opened and must not count as idle by then. So the
    /// kernel's restart after idle is off if it changed nothing.
    fn after_idle(&self) -> bool {
        let restarted = || self.opened.iter().any(|opened| opened.sender.restarted);
        self.opened[0].config.after_idle && (!self.several() || restarted())
    }

    fn impossible(&self) -> Vec<String> {
        let mut why: BTreeSet<&str> = BTreeSet::new();
        let mut refuse = |when: bool, reason| when.then(|| why.insert(reason));
        let paced = self.opened.iter().any(|opened| opened.sender.connection.has_cong_control());
        refuse(paced, "paces itself in the kernel: the script's sender sends whole windows at once");
        refuse(
            self.any(|what| matches!(what, What::LocalDrop)),
            "local-drop: the queue of the sender's own host cannot be told which segment to refuse",
        );
        refuse(
            self.any(|what| matches!(what, What::ReceiveWindow)),
            "rwnd: Linux's receiver chooses its window itself",
        );
        refuse(self.takes_us > LONGEST_TRANSFER_US, "takes more than a minute of real time");
        let beside = |opened: &&Opened| !opened.lives && !opened.closed() && !opened.sender.finished();
        refuse(
            self.several() && self.opened.iter().any(beside),
            "a connection goes on beside those after it in the kernel: close it",
        );
        let stretched = |what: &What| matches!(what, What::Arrive { data, .. } if data.len() > 1);
        refuse(self.several() && self.any(stretched), "stretch: of a single connection only");
        for (place, entry) in &self.journal {
            let steered = matches!(
                entry.what,
                What::Lose(_) | What::Hold(_) | What::Delay(..) | What::Arrive { ece: true, .. }
            );
            refuse(
                steered && !is_ipv4(self.opened[*place]),
                "the emulator tells packets of IPv4 apart, not those of IPv6",
            );
            if let What::NativeOnly(reason) = &entry.what {
                refuse(true, reason);
            }
        }
        why.into_iter().map(str::to_owned).collect()
    }

    /// Segments delivered and sent by each connection before the event of this order.
    fn reached(&self, order: u64) -> Vec<(u32, u32)> {
        let last = self.journal.last().map_or(0, |(_, entry)| entry.order);
        let reached = |opened: &&Opened| {
            let next = opened.sender.journal.iter().find(|entry| entry.order >= order.min(last + 1));
            let tp = &opened.sender.connection.tp;
            next.map_or((tp.delivered, tp.data_segs_out), |entry| (entry.delivered, entry.sent))
        };
        self.opened.iter().map(reached).collect()
    }

    /// Acts of applications, and looks at groups, in order. Each act happens `after_us` after each connection
    /// has `reached` its numbers of segments delivered and sent.
    fn acts(&self) -> Vec<Value> {
        let mut acts = BTreeMap::new();
        let mut written = vec![0; self.opened.len()];
        for (at, (place, entry)) in self.journal.iter().enumerate() {
            let mut act = match &entry.what {
                // The listener's congestion control opens the first.
                What::Open if at > 0 => {
                    json!({"kind": "open", "congestion": described(&self.opened[*place].instance)})
                }
                What::Write(amount) => {
                    let segments = segments(self.opened[*place], entry, *amount, written[*place]);
                    written[*place] += segments;
                    json!({"kind": "write", "segments": segments})
                }
                What::Switch(instance) => json!({"kind": "switch", "congestion": described(instance)}),
                What::Close => json!({"kind": "close"}),
                _ => continue,
            };
            act["connection"] = (*place).into();
            acts.insert(entry.order, self.timed(act, entry.order, entry.at_us));
        }
        for look in self.looks.values() {
            let act = json!({"kind": "look"});
            acts.insert(look.order, self.timed(act, look.order, look.at_us));
        }
        acts.into_values().collect()
    }

    fn timed(&self, mut act: Value, order: u64, at_us: u64) -> Value {
        let earlier = |(_, entry): &&(usize, &Entry)| entry.order < order && advances(&entry.what);
        let since = self.journal.iter().rfind(earlier);
        act["reached"] = json!(self.reached(order));
        act["after_us"] = since.map_or(0, |(_, entry)| at_us.saturating_sub(entry.at_us)).into();
        act
    }

    /// Actions on data packets on the way down, and on acknowledgements on the way up.
    fn path(&self) -> (Vec<Value>, Vec<Value>) {
        let mut held: BTreeMap<u32, u64> = self.pauses();
        let mut dropped = BTreeSet::new();
        let mut marked = BTreeSet::new();
        let mut waiting: Vec<(u32, u64)> = Vec::new();
        let mut up = Vec::new();
        for (place, opened) in self.opened.iter().enumerate() {
            let longer_us = opened.config.rtt_us - self.rtt_us;
            for number in self.numbers[place].iter().filter(|_| longer_us > 0) {
                *held.entry(*number).or_default() += longer_us;
            }
        }
        // The handshake's last acknowledgement counts as the first.
        let mut acknowledgements = 1;
        for (place, entry) in &self.journal {
            let on_path = |number: &u32| self.number(*place, *number);
            match &entry.what {
                What::Lose(numbers) => dropped.extend(numbers.iter().map(on_path)),
                What::Hold(packets) => {
                    waiting.extend(packets.iter().map(|(number, due_us)| (on_path(number), *due_us)));
                }
                What::Release => {
                    for (number, due_us) in waiting.drain(..) {
                        let late_us = entry.at_us.saturating_sub(due_us);
                        *held.entry(number).or_default() +=
                            real_delay_us(late_us, self.rtt_us, self.spacing_us());
                    }
                }
                What::Delay(number, extra_us) => *held.entry(on_path(number)).or_default() += extra_us,
                What::Arrive { data, ece } => {
                    let answered = acknowledgements + data.len() as u32;
                    up.extend(
                        (acknowledgements + 1..answered)
                            .map(|number| json!({"what": "bare", "nth": number, "action": {"kind": "drop"}})),
                    );
                    acknowledgements = answered;
                    marked.extend(data.last().filter(|_| *ece).map(on_path));
                }
                _ => {}
            }
        }
        // Packets that are never released are lost.
        dropped.extend(waiting.into_iter().map(|(number, _)| number));
        let numbers: BTreeSet<u32> = held.keys().chain(&dropped).chain(&marked).copied().collect();
        let down = numbers.iter().filter(|number| **number > 0).map(|number| {
            let action = match held.get(number) {
                _ if dropped.contains(number) => json!({"kind": "drop"}),
                _ if marked.contains(number) => json!({"kind": "mark"}),
                extra_us => json!({"kind": "hold", "extra_ns": 1000 * extra_us.unwrap_or(&0)}),
            };
            json!({"nth": number, "action": action})
        });
        (down.collect(), up)
    }

    /// A data packet's number on the path; 0 if the path does not count it.
    fn number(&self, place: usize, number: u32) -> u32 {
        self.numbers[place][number as usize - 1]
    }

    /// Additional delays of packets, by their numbers. They make room for actions that take no time natively:
    /// an act between two arrivals of one flight, and the burst after an acknowledgement of several segments,
    /// which TCP Small Queues spread out.
    fn pauses(&self) -> BTreeMap<u32, u64> {
        let flight_us = self.rtt_us / 4;
        let pause_us = LONGEST_PAUSE_US.min(self.rtt_us / 6);
        let arrival = |(_, entry): &&(usize, &Entry)| matches!(entry.what, What::Arrive { .. });
        let acts = self.journal.iter().filter_map(|(_, entry)| match &entry.what {
            What::Write(_) | What::Switch(_) | What::Open | What::Close => {
                Some((entry.order, entry.at_us, pause_us))
            }
            What::Arrive { data, .. } if data.len() > 1 => {
                Some((entry.order + 1, entry.at_us, pause_us.min(data.len() as u64 * self.spacing_us())))
            }
            _ => None,
        });
        let looks = self.looks.values().map(|look| (look.order, look.at_us, pause_us));
        let mut pauses = BTreeMap::new();
        for (order, at_us, pause_us) in acts.chain(looks) {
            let (before, after) =
                self.journal.split_at(self.journal.partition_point(|(_, e)| e.order < order));
            let in_flight = before.iter().rfind(arrival).is_some_and(|(_, e)| e.at_us + flight_us > at_us);
            for (place, later) in after.iter().filter(arrival).filter(|_| in_flight) {
                if let What::Arrive { data, .. } = &later.what
                    && later.at_us < at_us + flight_us
                {
                    for number in data {
                        *pauses.entry(self.number(*place, *number)).or_default() += pause_us;
                    }
                }
            }
        }
        pauses
    }

    /// Distance between packets on the real path. Natively they are a microsecond apart. The kernel needs
    /// time to handle each acknowledgement before the next one, and the longest flight must be short relative
    /// to a round trip.
    fn spacing_us(&self) -> u64 {
        let longest = |opened: &&Opened| {
            let journal = opened.sender.journal.iter();
            u64::from(journal.map(|entry| entry.sent.saturating_sub(entry.delivered)).max().unwrap_or(0))
        };
        let flights: u64 = self.opened.iter().map(longest).sum();
        (self.rtt_us / 5 / flights.max(1)).clamp(10, 60)
    }

    /// A check, and when to observe it. `until` is the next native event: `arrival` (the sender's state when
    /// the `repeat`-th acknowledgement, from 0, at this number of deliveries arrives), `act` or `timer` (its
    /// state before that), or `end`. `acts` is the number of writes and switches before it. A check of a
    /// group has the number of its look in `look`.
    fn observation(&self, place: usize, check: &Check) -> Value {
        let mut value = json!({
            "line": check.line,
            "event": check.event,
            "key": check.key,
            "expected": check.expected,
            "native": check.found,
        });
        if let Some(index) = check.look {
            let look = self.looks[&index];
            value["group"] = json!({
                "congestion": described(&look.instance),
                "prefix": look.prefix,
                "server": look.server,
                "slot": look.slot,
                "look": self.looks.keys().filter(|other| **other < index).count(),
            });
            return value;
        }
        let (before, after) = self.opened[place].sender.journal.split_at(check.entries);
        let until = after.iter().find_map(|entry| match entry.what {
            What::Arrive { .. } => Some("arrival"),
            What::Write(_) | What::Switch(_) => Some("act"),
            What::Timeout | What::Probe => Some("timer"),
            _ => None,
        });
        let again =
            |entry: &&Entry| matches!(entry.what, What::Arrive { .. }) && entry.delivered == check.delivered;
        let acts = |entry: &&Entry| matches!(entry.what, What::Write(_) | What::Switch(_));
        value["connection"] = place.into();
        value["acts"] = before.iter().filter(acts).count().into();
        value["delivered"] = check.delivered.into();
        value["sent"] = check.sent.into();
        value["retransmitted"] = check.retransmitted.into();
        value["until"] = until.unwrap_or("end").into();
        value["repeat"] = before.iter().filter(again).count().into();
        value
    }
}

impl Opened {
    fn closed(&self) -> bool {
        self.sender.journal.iter().any(|entry| matches!(entry.what, What::Close))
    }
}

type Membership = (usize, Arc<Instance>, String);

fn is_ipv4(opened: &Opened) -> bool {
    opened.config.to.ip().is_ipv4() || opened.config.to.ip().to_canonical().is_ipv4()
}

/// Numbers on the path of each connection's data packets; the path counts only IPv4.
fn numbers(opened: &[&Opened]) -> Vec<Vec<u32>> {
    let mut sent: Vec<(u64, usize)> = Vec::new();
    for (place, opened) in opened.iter().enumerate().filter(|(_, opened)| is_ipv4(opened)) {
        sent.extend(opened.sender.transmissions.iter().map(|order| (*order, place)));
    }
    sent.sort_unstable();
    let mut numbers: Vec<Vec<u32>> = vec![Vec::new(); opened.len()];
    for (index, (_, place)) in sent.into_iter().enumerate() {
        numbers[place].push(index as u32 + 1);
    }
    for (numbers, opened) in numbers.iter_mut().zip(opened) {
        numbers.resize(opened.sender.transmissions.len(), 0);
    }
    numbers
}

/// Number of segments of a write, after `written` earlier ones. An endless write counts the segments sent
/// until the application stopped, or more than will be sent.
fn segments(opened: &Opened, write: &Entry, amount: Option<u64>, written: u64) -> u64 {
    let sent = |sent: u32, repeated: u32| u64::from(sent - repeated).saturating_sub(written);
    let tp = &opened.sender.connection.tp;
    let later = || opened.sender.journal.iter().filter(|entry| entry.order > write.order);
    let stop = || later().find(|entry| matches!(entry.what, What::StopWriting));
    let until_stop = || stop().map(|stop| sent(stop.sent, stop.retransmitted));
    let endless = || 3 * sent(tp.data_segs_out, tp.total_retrans) + 3 * u64::from(tp.snd_cwnd);
    amount.or_else(until_stop).unwrap_or_else(endless)
}

fn described(instance: &Instance) -> Value {
    let named = instance.algorithm.parameters().map(|parameter| parameter.name().to_owned());
    let values = instance.values().iter().map(|value| Value::from(*value));
    json!({
        "algorithm": external::name_or_path(instance.algorithm),
        "parameters": named.zip(values).collect::<Map<String, Value>>(),
    })
}

/// True for events that are visible from outside; time is measured from them.
fn advances(what: &What) -> bool {
    !matches!(
        what,
        What::StopWriting
            | What::Lose(_)
            | What::Hold(_)
            | What::Release
            | What::Delay(..)
            | What::ReceiveWindow
            | What::NativeOnly(_)
            | What::LocalDrop
    )
}

/// Converts a native delay (packets of a flight, round trips) to the real path, so that it ends behind the
/// same packet.
fn real_delay_us(native_us: u64, rtt_us: u64, spacing_us: u64) -> u64 {
    let packets = native_us % rtt_us;
    let within_flight = packets < rtt_us / 4;
    if within_flight { native_us + packets * (spacing_us - 1) + spacing_us / 2 } else { native_us }
}
