//! Timetables: an acknowledgement script as a real path and a real application can carry it out.
//!
//! A script is played natively first ([`crate::script::play`]). What its sender wrote, and what the
//! path did to which data packet, are noted in a journal; [`timetable`] turns the journal into
//! instructions for the running kernel behind the emulator, where nothing can be told to the sender:
//!
//! * applications write and switch once so many segments have been delivered and sent, and so long
//!   after that;
//! * packets are dropped, held or marked by their number, and acknowledgements by theirs;
//! * each check says at which point of the connection it is to be observed.
//!
//! What a path cannot be told (a drop in the sender's own queue) is listed under `impossible`.

use crate::script::{Check, Exchange, Opened, Played};
use crate::{Instance, external, sender::Config};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Real time that a connection may take in the kernel.
const LONGEST_TRANSFER_US: u64 = 60_000_000;

/// Long enough to be seen by an application that looks each millisecond, short enough for RACK.
const LONGEST_PAUSE_US: u64 = 5_000;

/// Something that the application or the path did.
pub struct Entry {
    /// The sender's clock.
    pub at_us: u64,
    /// Segments delivered before it.
    pub delivered: u32,
    /// Data segments sent before it, retransmissions included.
    pub sent: u32,
    /// Retransmissions before it.
    pub retransmitted: u32,
    /// What it was.
    pub what: What,
}

/// What the application or the path did. Packets have the numbers of their transmissions, from 1.
pub enum What {
    /// The application wrote so many segments, or without end.
    Write(Option<u64>),
    /// The application has nothing more to write; what was not sent is forgotten.
    StopWriting,
    /// Packets in flight vanished.
    Lose(Vec<u32>),
    /// Packets in flight are late; their numbers and when they were due.
    Hold(Vec<(u32, u64)>),
    /// The late packets arrive: an `Arrive` each follows.
    Release,
    /// Packets arrive and are answered by one acknowledgement.
    Arrive {
        /// Their numbers.
        data: Vec<u32>,
        /// The acknowledgement carries an ECN echo.
        ece: bool,
    },
    /// This packet takes so much longer than the path's round-trip time.
    Delay(u32, u64),
    /// The receiver offers another window.
    ReceiveWindow,
    /// A real path cannot do what the script says, for this reason.
    NativeOnly(String),
    /// The retransmission timer fires.
    Timeout,
    /// The tail-loss probe fires.
    Probe,
    /// The sender's own host refuses a segment.
    LocalDrop,
    /// The connection ends.
    Close,
    /// Another congestion control is chosen.
    Switch(Arc<Instance>),
}

/// A played script, as JSON: `exchange` (the events with the sender after them) and `connections`, each
/// with what the application and the path are to do and with the checks.
pub fn timetable(played: &Played) -> Value {
    let connections = played.connections.iter().enumerate().map(|(index, opened)| {
        let checks = played.checks.iter().filter(|check| check.connection == index);
        let beside = played.connections.iter().filter(|other| Arc::ptr_eq(&other.instance, &opened.instance));
        let among_others = beside.count() > 1 && shares(&opened.instance);
        connection(opened, &checks.collect::<Vec<_>>(), among_others)
    });
    let exchange = played
        .exchange
        .iter()
        .map(|Exchange { line, event, sender }| json!({"line": line, "event": event, "sender": sender}));
    json!({
        "exchange": exchange.collect::<Vec<_>>(),
        "connections": connections.collect::<Vec<_>>(),
    })
}

/// Whether connections of an instance know of each other.
fn shares(instance: &Instance) -> bool {
    external::source(&external::name_or_path(instance.algorithm))
        .is_ok_and(|text| text.contains("cc_group.h"))
}

fn connection(opened: &Opened, checks: &[&Check], among_others: bool) -> Value {
    let Config { initial_window, mss, rtt_us, rto_us, after_idle, .. } = opened.config;
    let journal = &opened.sender.journal;
    let any = |wanted: fn(&What) -> bool| journal.iter().any(|entry| wanted(&entry.what));
    let tp = &opened.sender.connection.tp;
    let opened_us = journal.first().map_or(tp.cc_clock_us, |entry| entry.at_us);
    let spacing_us = spacing_us(journal, rtt_us);
    let (down, up) = path(journal, rtt_us, spacing_us);
    let mut impossible = Vec::new();
    if among_others {
        impossible.push("shares state with others: the kernel's arm carries out connections by themselves");
    }
    if opened.sender.connection.has_cong_control() {
        impossible.push("paces itself in the kernel: the script's sender sends whole windows at once");
    }
    if any(|what| matches!(what, What::LocalDrop)) {
        impossible
            .push("local-drop: the queue of the sender's own host cannot be told which segment to refuse");
    }
    impossible.extend(journal.iter().filter_map(|entry| match &entry.what {
        What::NativeOnly(reason) => Some(reason.as_str()),
        _ => None,
    }));
    if any(|what| matches!(what, What::ReceiveWindow)) {
        impossible.push("rwnd: Linux's receiver chooses its window itself");
    }
    let takes_us = tp.cc_clock_us - opened_us;
    if takes_us > LONGEST_TRANSFER_US {
        impossible.push("takes more than a minute of real time");
    }
    json!({
        "line": opened.line,
        "congestion": described(&opened.instance),
        "initial_window": initial_window,
        "mss": mss,
        "rtt_us": rtt_us,
        "rto_us": rto_us,
        "spacing_us": spacing_us,
        "after_idle": after_idle,
        "ecn": any(|what| matches!(what, What::Arrive { ece: true, .. })),
        "tail_loss_probe": any(|what| matches!(what, What::Probe)),
        "acts": acts(opened),
        "until": {"delivered": tp.delivered, "sent": tp.data_segs_out, "us": takes_us},
        "down": down,
        "up": up,
        "checks": checks.iter().map(|check| observation(check, journal)).collect::<Vec<_>>(),
        "impossible": impossible,
    })
}

fn described(instance: &Instance) -> Value {
    let named = instance.algorithm.parameters().map(|parameter| parameter.name().to_owned());
    let values = instance.parameters.iter().map(|value| Value::from(*value));
    json!({
        "algorithm": external::name_or_path(instance.algorithm),
        "parameters": named.zip(values).collect::<Map<String, Value>>(),
    })
}

/// What the application does. Each act comes once `delivered` segments have been delivered and
/// `sent` sent, and `after_us` later.
fn acts(opened: &Opened) -> Vec<Value> {
    let journal = &opened.sender.journal;
    let tp = &opened.sender.connection.tp;
    let mut written = 0;
    let mut acts = Vec::new();
    for (index, entry) in journal.iter().enumerate() {
        let mut act = match &entry.what {
            What::Write(amount) => {
                // What is written without end is what was sent until the application stopped, or
                // more than will be sent.
                let stop = journal[index..].iter().find(|later| matches!(later.what, What::StopWriting));
                let sent = |sent: u32, repeated: u32| u64::from(sent - repeated).saturating_sub(written);
                let segments = match (amount, stop) {
                    (Some(segments), _) => *segments,
                    (None, Some(stop)) => sent(stop.sent, stop.retransmitted),
                    (None, None) => 3 * sent(tp.data_segs_out, tp.total_retrans) + 3 * u64::from(tp.snd_cwnd),
                };
                written += segments;
                json!({"kind": "write", "segments": segments})
            }
            What::Switch(instance) => json!({"kind": "switch", "congestion": described(instance)}),
            _ => continue,
        };
        let since = journal[..index].iter().rfind(|earlier| advances(&earlier.what));
        act["delivered"] = entry.delivered.into();
        act["sent"] = entry.sent.into();
        act["after_us"] = since.map_or(0, |earlier| entry.at_us - earlier.at_us).into();
        acts.push(act);
    }
    acts
}

/// True for what can be seen from outside: time is measured from there.
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

/// What happens to which data packet on the way down, and to which acknowledgement on the way up.
fn path(journal: &[Entry], rtt_us: u64, spacing_us: u64) -> (Vec<Value>, Vec<Value>) {
    let mut held: BTreeMap<u32, u64> = pauses(journal, rtt_us);
    let mut dropped = BTreeSet::new();
    let mut marked = BTreeSet::new();
    let mut waiting: Vec<(u32, u64)> = Vec::new();
    let mut up = Vec::new();
    // The acknowledgement that ends the handshake counts as the first.
    let mut acknowledgements = 1;
    for entry in journal {
        match &entry.what {
            What::Lose(numbers) => dropped.extend(numbers),
            What::Hold(packets) => waiting.extend(packets),
            What::Release => {
                for (number, due_us) in waiting.drain(..) {
                    let late_us = entry.at_us.saturating_sub(due_us);
                    *held.entry(number).or_default() += real_delay_us(late_us, rtt_us, spacing_us);
                }
            }
            What::Delay(number, extra_us) => *held.entry(*number).or_default() += extra_us,
            What::Arrive { data, ece } => {
                let answered = acknowledgements + data.len() as u32;
                up.extend(
                    (acknowledgements + 1..answered)
                        .map(|number| json!({"what": "bare", "nth": number, "action": {"kind": "drop"}})),
                );
                acknowledgements = answered;
                marked.extend(data.last().filter(|_| *ece));
            }
            _ => {}
        }
    }
    // What is never released is lost.
    dropped.extend(waiting.into_iter().map(|(number, _)| number));
    let numbers: BTreeSet<u32> = held.keys().chain(&dropped).chain(&marked).copied().collect();
    let down = numbers.iter().map(|number| {
        let action = match held.get(number) {
            _ if dropped.contains(number) => json!({"kind": "drop"}),
            _ if marked.contains(number) => json!({"kind": "mark"}),
            extra_us => json!({"kind": "hold", "extra_ns": 1000 * extra_us.unwrap_or(&0)}),
        };
        json!({"nth": number, "action": action})
    });
    (down.collect(), up)
}

/// How much later packets arrive so that an act which natively comes between two of one flight has the
/// time to come there: those after it wait.
fn pauses(journal: &[Entry], rtt_us: u64) -> BTreeMap<u32, u64> {
    let flight_us = rtt_us / 4;
    let mut pauses = BTreeMap::new();
    for (index, act) in journal.iter().enumerate() {
        let arrival = |entry: &&Entry| matches!(entry.what, What::Arrive { .. });
        let before = journal[..index].iter().rfind(arrival);
        let in_flight = before.is_some_and(|entry| entry.at_us + flight_us > act.at_us);
        if !in_flight || !matches!(act.what, What::Write(_) | What::Switch(_)) {
            continue;
        }
        for later in journal[index..].iter().filter(arrival) {
            if let What::Arrive { data, .. } = &later.what
                && later.at_us < act.at_us + flight_us
            {
                data.iter().for_each(|number| {
                    *pauses.entry(*number).or_default() += LONGEST_PAUSE_US.min(rtt_us / 6)
                });
            }
        }
    }
    pauses
}

/// Distance between packets on the real path. Natively they are a microsecond apart; in the kernel each
/// acknowledgement needs some time to be answered before the next one comes, and the longest flight
/// must still be short beside a round trip.
fn spacing_us(journal: &[Entry], rtt_us: u64) -> u64 {
    let flights = journal.iter().map(|entry| u64::from(entry.sent - entry.delivered.min(entry.sent)));
    (rtt_us / 5 / flights.max().unwrap_or(0).max(1)).clamp(10, 60)
}

/// A delay in packets of a flight, and in round trips, on the real path: behind the same packet.
fn real_delay_us(native_us: u64, rtt_us: u64, spacing_us: u64) -> u64 {
    let packets = native_us % rtt_us;
    let within_flight = packets < rtt_us / 4;
    if within_flight { native_us + packets * (spacing_us - 1) + spacing_us / 2 } else { native_us }
}

/// A check, and when it is to be looked at. `until` says what natively happened next: `arrival` (the
/// sender as the `repeat`-th acknowledgement after so many deliveries finds it, from 0), `act` or
/// `timer` (as it is before that), or `end`. `acts` is the number of acts before it.
fn observation(check: &Check, journal: &[Entry]) -> Value {
    let until = journal[check.entries..].iter().find_map(|entry| match entry.what {
        What::Arrive { .. } => Some("arrival"),
        What::Write(_) | What::Switch(_) => Some("act"),
        What::Timeout | What::Probe => Some("timer"),
        _ => None,
    });
    let repeat = journal[..check.entries]
        .iter()
        .filter(|entry| matches!(entry.what, What::Arrive { .. }) && entry.delivered == check.delivered)
        .count();
    let acts = |entry: &&Entry| matches!(entry.what, What::Write(_) | What::Switch(_));
    json!({
        "acts": journal[..check.entries].iter().filter(acts).count(),
        "line": check.line,
        "event": check.event,
        "key": check.key,
        "expected": check.expected,
        "native": check.found,
        "delivered": check.delivered,
        "sent": check.sent,
        "retransmitted": check.retransmitted,
        "until": until.unwrap_or("end"),
        "repeat": repeat,
    })
}
