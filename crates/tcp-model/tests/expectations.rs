//! The window sequences of congestion/scripts and tests/conformance, here through two endpoints.
//!
//! Names in the comments are those of the scripts.

mod harness;

use harness::{Fate, MS, Path, Side, congestion, linux};
use wirepaint_tcp_model::{Config, Event, Sample};

const RTT: u64 = 100 * MS;

/// Linux's defaults, with bursts or with each segment on its own.
fn server(name: &str, parameters: &[(&str, i64)], bursts: bool) -> Config {
    let mut config = Config::linux(congestion(name, parameters));
    config.gso_max_segs = if bursts { 65_535 } else { 1 };
    config.sndbuf = Some(u64::MAX);
    config.nodelay = true;
    config.slow_start_after_idle = name != "std"; // std has its own rule
    config
}

/// A connection with large buffers, and samples from its first data on.
fn open(server: Config, rtt: u64) -> Path {
    let mut client = linux("std");
    client.rmem = [4_096, 64 << 20, 64 << 20]; // SO_RCVBUF
    client.moderate_rcvbuf = false;
    let mut path = Path::connected(client, server, rtt / 2);
    path.server.take_samples();
    path
}

/// cwnd once `acked` data segments were acknowledged, not counting the SYN.
fn windows_at<const N: usize>(samples: &[Sample], acked: [u32; N]) -> [u32; N] {
    acked.map(|count| {
        let found = samples.iter().rfind(|s| s.event == Event::Ack && s.delivered == count + 1);
        found.unwrap_or_else(|| panic!("no ACK found {count} segments acknowledged")).cwnd
    })
}

/// Segments of payload that left in each round trip from `start` on.
fn flights(path: &Path, start: u64, rtt: u64, count: usize) -> Vec<usize> {
    let sent = path.data_sent();
    (0..count as u64)
        .map(|n| {
            let inside = |time: u64| time >= start + n * rtt && time < start + (n + 1) * rtt;
            sent.iter().filter(|(time, _)| inside(time.0)).count()
        })
        .collect()
}

#[test]
fn fld_triples_its_window_each_round_trip() {
    // FLD-1
    for bursts in [false, true] {
        let mut path = open(server("fld", &[], bursts), RTT);
        let start = path.now.0;
        path.write(1_210 * 1448);
        path.finish();
        let samples: Vec<Sample> = path.server.drain_samples().collect();
        assert_eq!(windows_at(&samples, [10, 40, 130, 400]), [30, 90, 270, 810]);
        assert_eq!(flights(&path, start, RTT, 5), [10, 30, 90, 270, 810]);
    }
}

#[test]
fn std_doubles_its_window_each_round_trip() {
    // STD-1
    for bursts in [false, true] {
        let mut path = open(server("std", &[], bursts), RTT);
        let start = path.now.0;
        path.write(1_270 * 1448);
        path.finish();
        let samples: Vec<Sample> = path.server.drain_samples().collect();
        assert_eq!(windows_at(&samples, [10, 30, 70, 150, 310, 630]), [20, 40, 80, 160, 320, 640]);
        assert_eq!(flights(&path, start, RTT, 7), [10, 20, 40, 80, 160, 320, 640]);
    }
}

#[test]
fn a_flow_needs_as_many_round_trips_as_its_size_says() {
    // FLD-2, STD-1b
    for (segments, fld, std) in
        [(34, 2, 3), (67, 3, 3), (130, 3, 4), (200, 4, 5), (334, 4, 6), (667, 5, 7), (1200, 5, 7)]
    {
        for (name, expected) in [("fld", fld), ("std", std)] {
            let mut path = open(server(name, &[], true), RTT);
            let start = path.now.0;
            path.write(segments * 1448);
            while path.received < segments * 1448 {
                path.step(wirepaint_units::Time::MAX);
            }
            let round_trips = (path.now.0 - start + RTT / 2) / RTT;
            assert_eq!(round_trips, expected, "{name}, {segments} segments");
        }
    }
}

/// Three segments of a flight of 100 are lost, then bulk data (tests/conformance, three_losses).
fn three_losses(parameters: &[(&str, i64)]) -> Vec<Sample> {
    let rtt = 2 * RTT;
    let mut path = open(Config { initial_window: 100, ..server("fld", parameters, true) }, rtt);
    for _ in 0..6 {
        path.write(30 * 1448);
        path.advance(rtt);
    }
    path.advance(2 * rtt);
    let lost = path.server.sock().data_segs_out as u64;
    path.fates = Box::new(move |side, number, _| {
        let hit = side == Side::Server && number > lost && number <= lost + 3;
        if hit { Fate::Lose } else { Fate::Arrive }
    });
    path.write(3 * 1448);
    path.advance(60 * MS);
    path.write(900 * 1448);
    path.finish();
    assert_eq!(path.server.info().lost, 3);
    path.server.drain_samples().collect()
}

/// ssthresh in Recovery, and the windows from its end on.
fn after_recovery(samples: &[Sample]) -> (Vec<u32>, Vec<u32>) {
    let entered = samples.iter().position(|s| s.event == Event::State && s.state as u8 == 3).unwrap();
    let later = &samples[entered..];
    let mut thresholds: Vec<u32> = later.iter().filter(|s| s.state as u8 == 3).map(|s| s.ssthresh).collect();
    thresholds.dedup();
    let open = later.iter().filter(|s| s.event == Event::Ack && s.state as u8 == 0);
    let mut windows: Vec<u32> = open.map(|s| s.cwnd).collect();
    windows.dedup();
    (thresholds, windows)
}

#[test]
fn fld_loses_only_what_was_lost() {
    // FLD-3
    let (thresholds, windows) = after_recovery(&three_losses(&[]));
    assert_eq!(thresholds, [97]);
    assert_eq!(windows[..5], [97, 98, 99, 100, 101]);
}

#[test]
fn fld_halves_once_the_flow_is_long() {
    // FLD-4
    let (_, windows) = after_recovery(&three_losses(&[("fld_threshold", 200_000)]));
    assert_eq!(windows[..3], [50, 51, 52]);
}

#[test]
fn std_grows_while_the_application_is_the_limit() {
    // STD-2
    let mut path = open(server("std", &[], true), RTT);
    for _ in 0..31 {
        path.write(1448);
        path.advance(120 * MS);
    }
    let samples: Vec<Sample> = path.server.drain_samples().collect();
    let windows: Vec<u32> = (1..31).map(|acked| windows_at(&samples, [acked])[0]).collect();
    assert_eq!(windows, (11..41).collect::<Vec<_>>());
}

#[test]
fn std_restarts_from_its_initial_window_after_idle() {
    // STD-3
    let mut path = open(server("std", &[], true), RTT);
    path.write(310 * 1448);
    path.finish();
    path.advance(1_200 * MS);
    assert!(path.server.sock().snd_cwnd >= 150);
    let start = path.now.0;
    path.write(150 * 1448);
    assert_eq!(path.server.sock().in_flight(), 10);
    path.finish();
    let samples: Vec<Sample> = path.server.drain_samples().collect();
    assert_eq!(flights(&path, start, RTT, 2), [10, 20]);
    assert_eq!(windows_at(&samples, [320]), [20]);
}

/// ssthresh on entering Recovery, after the loss of a flight's first segment.
fn ssthresh_after_loss(initial_window: u32, flight: u64, parameters: &[(&str, i64)]) -> (u32, Path) {
    let mut path = open(Config { initial_window, ..server("std", parameters, false) }, RTT);
    path.fates = Box::new(
        |side, number, _| {
            if side == Side::Server && number == 1 { Fate::Lose } else { Fate::Arrive }
        },
    );
    path.write(flight * 1448);
    while path.server.info().state as u8 != 3 {
        assert!(path.step(wirepaint_units::Time::MAX));
    }
    (path.server.sock().snd_ssthresh, path)
}

#[test]
fn std_halves_the_flight_and_then_grows_by_one_per_round_trip() {
    // STD-4
    let (ssthresh, mut path) = ssthresh_after_loss(40, 40, &[]);
    assert_eq!(ssthresh, 20);
    path.finish();
    assert_eq!(path.server.sock().snd_cwnd, 20);
    path.server.drain_samples().for_each(drop);
    path.write(200 * 1448);
    path.finish();
    let samples: Vec<Sample> = path.server.drain_samples().collect();
    assert_eq!(windows_at(&samples, [60, 81, 103]), [21, 22, 23]);
}

#[test]
fn std_halves_the_flight_not_the_window() {
    // STD-5
    assert_eq!(ssthresh_after_loss(100, 4, &[]).0, 2);
    assert_eq!(ssthresh_after_loss(100, 4, &[("std_flight", 1)]).0, 50);
}
