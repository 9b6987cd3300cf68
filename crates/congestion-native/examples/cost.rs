//! Nanoseconds per ACK of each congestion control, natively: only the hooks of an ACK, in the kernel's order.
//!
//! Prints one JSON object: per algorithm, the least of several measurements.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;
use wirepaint_congestion_native::{AckSample, Connection, INFINITE_SSTHRESH, RateSample, algorithms};

const ACKS: u32 = 200_000;
const ROUNDS: usize = 7;
const WINDOW: u32 = 100;
const MSS: u32 = 1448;
const RTT_US: u32 = 50_000;
const JIFFY_US: u64 = 4_000;

fn main() {
    let costs: BTreeMap<&str, f64> = algorithms()
        .iter()
        .map(|algorithm| {
            let instance = algorithm.instance(&BTreeMap::new()).expect("defaults are accepted");
            let least = (0..ROUNDS)
                .map(|_| {
                    let mut connection = established(Connection::new(instance.clone()));
                    let begun = Instant::now();
                    (0..ACKS).for_each(|_| acknowledge(&mut connection));
                    begun.elapsed().as_secs_f64() * 1e9 / f64::from(ACKS)
                })
                .fold(f64::INFINITY, f64::min);
            (algorithm.name(), least)
        })
        .collect();
    println!("{}", serde_json::to_string(&costs).expect("plain numbers"));
}

fn established(mut connection: Connection) -> Connection {
    let tp = &mut connection.tp;
    tp.cc_clock_us = 1_000_000;
    tp.tcp_mstamp = tp.cc_clock_us;
    tp.snd_cwnd = WINDOW;
    tp.snd_ssthresh = INFINITE_SSTHRESH;
    tp.snd_cwnd_clamp = u32::MAX;
    tp.mss_cache = MSS;
    tp.srtt_us = RTT_US * 8;
    tp.cc_rtt_min_us = RTT_US;
    tp.sk_max_pacing_rate = u64::MAX;
    tp.sk_pacing_shift = 10;
    tp.icsk_rto = 75;
    tp.is_cwnd_limited = 1;
    connection.init();
    connection.tp.snd_ssthresh = WINDOW / 2;
    connection
}

/// One segment is acknowledged and one sent, in congestion avoidance; the window is held in place.
fn acknowledge(connection: &mut Connection) {
    let tp = &mut connection.tp;
    tp.cc_clock_us += u64::from(RTT_US / WINDOW);
    tp.tcp_mstamp = tp.cc_clock_us;
    tp.delivered_mstamp = tp.cc_clock_us;
    tp.tcp_clock_cache = tp.cc_clock_us * 1000;
    tp.cc_jiffies = (tp.cc_clock_us / JIFFY_US) as u32;
    tp.lsndtime = tp.cc_jiffies;
    tp.snd_cwnd = WINDOW;
    tp.packets_out = WINDOW;
    tp.max_packets_out = WINDOW;
    tp.delivered += 1;
    tp.bytes_acked += u64::from(MSS);
    tp.bytes_sent = tp.bytes_acked + u64::from(WINDOW * MSS);
    tp.snd_una = tp.snd_una.wrapping_add(MSS);
    tp.snd_nxt = tp.snd_una.wrapping_add(WINDOW * MSS);
    tp.write_seq = tp.snd_nxt.wrapping_add(MSS);
    connection.pkts_acked(AckSample { pkts_acked: 1, rtt_us: RTT_US as i32, in_flight: WINDOW });
    connection.in_ack_event(0);
    if connection.has_cong_control() {
        connection.cong_control(
            connection.tp.snd_una,
            0,
            RateSample {
                prior_delivered: connection.tp.delivered.saturating_sub(WINDOW),
                delivered: WINDOW as i32,
                interval_us: i64::from(RTT_US),
                rtt_us: i64::from(RTT_US),
                acked_sacked: 1,
                prior_in_flight: WINDOW,
                ..RateSample::default()
            },
        );
    } else {
        connection.cong_avoid(connection.tp.snd_una, 1);
    }
    black_box(connection.min_tso_segs());
}
