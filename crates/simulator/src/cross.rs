//! The verb `cross`: given packets over one link, without endpoints, in virtual time.
//!
//! Feeds the arrivals at an emulated link (table `packet`) to the simulator's link, so that the two can be
//! compared.

use crate::agenda::Agenda;
use crate::error::Error;
use crate::fabric::{Envelope, Fabric};
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, Write};
use std::path::Path;
use wirepaint_link_model::config::{Counted, Direction};
use wirepaint_run::Run;
use wirepaint_trace::TraceError;
use wirepaint_units::Time;

/// The link's event on the agenda is its index.
const LINK: u32 = 0;
const PACKET: u32 = 1;

/// A packet that arrives at the link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Offered {
    at_ns: Time,
    ip_bytes: u16,
    /// Equal for the packets of one flow.
    flow: u32,
    #[serde(default)]
    ecn_capable: bool,
    #[serde(default)]
    counted: Option<Counted>,
    #[serde(default)]
    dscp: u8,
}

/// Sends packets over the direction `down` of a run's first segment. `packets` has one JSON object a line, in order
/// of arrival: `at_ns`, `ip_bytes`, `flow`, and, where the link uses them, `ecn_capable`, `counted` and
/// `dscp`. Writes one line per packet in the order of departure or drop: its number from 0 as `packet`, and
/// `due_ns` or `dropped`. Returns the exit code.
pub fn command(run: &Path, packets: impl BufRead, lines: impl Write) -> u8 {
    match cross(run, packets, lines) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            error.exit_code()
        }
    }
}

fn cross(place: &Path, packets: impl BufRead, mut lines: impl Write) -> Result<(), Error> {
    let run = Run::read(place)?;
    let refuse = |key: &str, found: String, accepted: &str| {
        Error::value(place, key.to_owned(), found, accepted.to_owned())
    };
    let segment = run.segments.first().ok_or_else(|| refuse("segments", "none".to_owned(), "the path"))?;
    let mut offered = Vec::new();
    for (index, line) in packets.lines().enumerate() {
        let packet = line
            .map_err(|error| error.to_string())
            .and_then(|line| serde_json::from_str::<Offered>(&line).map_err(|error| error.to_string()));
        let packet = packet.map_err(|error| {
            Error::value(
                "stdin".as_ref(),
                format!("line {}", index + 1),
                error,
                "a packet as JSON".to_owned(),
            )
        })?;
        offered.push(packet);
    }
    if !offered.is_sorted_by_key(|packet| packet.at_ns) {
        return Err(Error::value(
            "stdin".as_ref(),
            "at_ns".to_owned(),
            "a time that runs back".to_owned(),
            "packets in order of arrival".to_owned(),
        ));
    }
    let fates = carry(&segment.down, run.seed, &offered)
        .map_err(|error| refuse("segments[0].down", error.to_string(), "a link"))?;
    for (packet, fate) in fates {
        let line = match fate {
            Ok(due) => json!({"packet": packet, "due_ns": due}),
            Err(cause) => json!({"packet": packet, "dropped": cause}),
        };
        writeln!(lines, "{line}").map_err(|source| TraceError::Io { path: "stdout".into(), source })?;
    }
    Ok(())
}

type Fate = (usize, Result<Time, &'static str>);

fn carry(
    config: &Direction,
    seed: u64,
    offered: &[Offered],
) -> Result<Vec<Fate>, wirepaint_link_model::ConfigError> {
    let mut fabric: Fabric<usize> =
        Fabric::new(std::iter::once((config, seed))).map_err(|(_, error)| error)?;
    fabric.watch(LINK as usize);
    let route = fabric.add_route(vec![LINK as usize]);
    let mut agenda = Agenda::default();
    let mut waiting = offered.iter().enumerate().peekable();
    if let Some((_, first)) = waiting.peek() {
        agenda.push(first.at_ns, PACKET);
    }
    while let Some((now, event)) = agenda.pop() {
        if event == LINK {
            if fabric.goes_off(LINK as usize, now) {
                while fabric.next_arrival(now, &mut agenda, LINK as usize).is_some() {}
            }
            continue;
        }
        let (number, packet) = waiting.next().expect("one event per packet");
        let &Offered { ip_bytes, ecn_capable, counted, dscp, .. } = packet;
        let envelope = Envelope { ip_bytes, ecn_capable, counted, dscp };
        fabric.send(now, &mut agenda, route, packet.flow, number, envelope);
        if let Some((_, next)) = waiting.peek() {
            agenda.push(next.at_ns, PACKET);
        }
    }
    let fates = fabric.crossings().iter();
    Ok(fates.map(|one| (one.body, one.left.map_err(wirepaint_link_model::Drop::name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn run_file(name: &str) -> PathBuf {
        let way = |queue| json!({"capacity": {"kind": "rate", "bit_per_s": 12_112_000}, "delay_ns": 5_000_000, "queue": queue});
        let run = json!({
            "format": 5, "id": "cross", "seed": 1, "trace_dir": "", "work_dir": "",
            "segments": [{
                "name": "access",
                "down": way(json!({"kind": "droptail", "packets": 1})),
                "up": way(json!({"kind": "droptail"})),
            }],
        });
        let file = std::env::temp_dir().join(format!("wirepaint-{name}-{}.json", std::process::id()));
        std::fs::write(&file, run.to_string()).unwrap();
        file
    }

    #[test]
    fn packets_leave_at_the_rate_and_a_full_queue_drops() {
        let file = run_file("cross");
        // 1500 + 14 bytes at 12.112 Mbit/s take 1 ms: the third finds the queue full.
        let packets: String = [0, 100, 200, 3_000_000]
            .iter()
            .map(|at| format!("{{\"at_ns\": {at}, \"ip_bytes\": 1500, \"flow\": 1}}\n"))
            .collect();
        let mut said = Vec::new();
        assert_eq!(command(&file, packets.as_bytes(), &mut said), 0);
        std::fs::remove_file(&file).unwrap();
        let mut said: Vec<serde_json::Value> = String::from_utf8(said)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        said.sort_by_key(|line| line["packet"].as_u64());
        assert_eq!(
            said,
            [
                json!({"packet": 0, "due_ns": 6_000_000}),
                json!({"packet": 1, "due_ns": 7_000_000}),
                json!({"packet": 2, "dropped": "queue"}),
                json!({"packet": 3, "due_ns": 9_000_000}),
            ]
        );
    }

    #[test]
    fn a_line_that_is_no_packet_is_refused() {
        let file = run_file("no-packet");
        assert_eq!(command(&file, &b"{}\n"[..], std::io::sink()), 2);
        let back =
            "{\"at_ns\": 2, \"ip_bytes\": 40, \"flow\": 1}\n{\"at_ns\": 1, \"ip_bytes\": 40, \"flow\": 1}\n";
        assert_eq!(command(&file, back.as_bytes(), std::io::sink()), 2);
        std::fs::remove_file(&file).unwrap();
    }
}
