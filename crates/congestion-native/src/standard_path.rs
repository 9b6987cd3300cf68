//! The standard path, on which a congestion control is drawn: 10 Mbit/s, 100 ms, a drop-tail queue of
//! one bandwidth-delay product, and one of each thing that a sender meets.
//!
//! A bulk transfer for 30 s. What a flight has beyond the path and its queue is lost at its end; a
//! single segment is lost at 12 s, the application pauses for 1.5 s at 17 s, and all that is in
//! flight is lost at 24 s (a timeout).
//!
//! DEVIATION: the script sender's path has one constant round-trip time, so the queue is seen by its
//! losses, not by its delay.

use crate::sender::{Config, Sender};
use crate::{INFINITE_SSTHRESH, Instance};
use serde_json::{Value, json};
use std::sync::Arc;

const RTT_US: u64 = 100_000;
/// 10 Mbit/s x 100 ms in segments of 1500 bytes.
const BDP: u32 = 83;
const ROUNDS: u64 = 300;
const LOSS_ROUND: u64 = 120;
const PAUSE_ROUNDS: std::ops::Range<u64> = 170..185;
const TIMEOUT_ROUND: u64 = 240;

/// The sender at each round-trip time: `time_us`, `cwnd`, `ssthresh` (null while infinite), `flight`,
/// `state`.
pub fn samples(instance: Arc<Instance>) -> Value {
    let mut sender = Sender::open(instance, Config { rtt_us: RTT_US, ..Config::default() });
    let start_us = sender.connection.tp.cc_clock_us;
    sender.write(None);
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        samples.push(sample(&sender, start_us));
        let flight = sender.connection.tp.in_flight();
        let room = 2 * BDP;
        match round {
            LOSS_ROUND if flight > 0 => _ = sender.lose(1, 1),
            TIMEOUT_ROUND if flight > 0 => {
                sender.lose(flight as usize, 1);
                sender.timeout();
                continue;
            }
            _ if flight > room => _ = sender.lose((flight - room) as usize, room as usize + 1),
            _ => {}
        }
        if round == PAUSE_ROUNDS.start {
            sender.stop_writing();
        } else if round == PAUSE_ROUNDS.end {
            sender.write(None);
        }
        sender.round();
        if sender.connection.tp.in_flight() == 0 && !PAUSE_ROUNDS.contains(&round) {
            // Only a timeout helps a sender whose last segments were lost.
            sender.timeout();
        }
    }
    json!({"bdp": BDP, "queue": BDP, "rtt_us": RTT_US, "samples": samples})
}

fn sample(sender: &Sender, start_us: u64) -> Value {
    let tp = &sender.connection.tp;
    json!({
        "time_us": tp.cc_clock_us - start_us,
        "cwnd": tp.snd_cwnd,
        "ssthresh": (tp.snd_ssthresh < INFINITE_SSTHRESH).then_some(tp.snd_ssthresh),
        "flight": tp.in_flight(),
        "state": format!("{:?}", sender.state()),
    })
}
