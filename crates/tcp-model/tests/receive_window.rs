//! The window that the receiver offers, and the sender's use of it.

mod harness;

use harness::{MS, Path, Side, linux, lose, open, until};
use wirepaint_congestion_native::CaState;
use wirepaint_units::Time;

#[test]
fn a_reader_that_stops_closes_the_window_and_is_probed() {
    let mut path = open(10);
    path.reads = false;
    path.write(400_000);
    path.advance(5_000 * MS);
    let stuck = path.server.unacknowledged();
    assert!(stuck > 0 && path.server.sock().packets_out == 0);
    let last = path.log.iter().rfind(|(_, side, _, _)| *side == Side::Client).unwrap().2;
    assert_eq!(last.window, 0);
    let probes = path
        .log
        .iter()
        .filter(|(time, side, s, _)| *side == Side::Server && s.len == 0 && time.0 > 1_000 * MS);
    assert!(probes.count() >= 2);
    path.reads = true;
    path.received += path.client.read(path.now, u64::MAX);
    path.finish();
    assert_eq!(path.received, 400_000);
}

#[test]
fn the_offered_window_grows_with_the_flow_up_to_the_largest_buffer() {
    let mut largest = Vec::new();
    for most in [262_144, 33_554_432] {
        let mut client = linux("std");
        client.rmem[2] = most;
        let mut server = linux("std");
        server.sndbuf = Some(u64::MAX);
        let mut path = Path::connected(client, server, 50 * MS);
        path.write(20_000_000);
        path.finish();
        assert_eq!(path.received, 20_000_000);
        largest.push(path.log.iter().filter(|l| l.1 == Side::Client).map(|l| l.2.window).max().unwrap());
    }
    assert!((100_000..262_144).contains(&largest[0]), "{largest:?}");
    assert!(largest[1] > 3_000_000, "{largest:?}");
}

#[test]
fn what_a_filled_hole_makes_readable_at_once_does_not_widen_the_window_yet() {
    let mut path = open(50);
    lose(&mut path, [60]);
    path.write(3_000 * 1448);
    until(&mut path, CaState::Recovery);
    let largest =
        |path: &Path| path.log.iter().filter(|l| l.1 == Side::Client).map(|l| l.2.window).max().unwrap();
    let before = largest(&path);
    while path.received < 100 * 1448 {
        path.step(Time::MAX);
    }
    path.advance(90 * MS);
    assert!(largest(&path) < before + 4 * 1448);
}

#[test]
fn a_burst_that_the_offered_window_cuts_short_ends_in_a_segment_that_fills_it() {
    let mut client = linux("std");
    client.rmem[1] = 128_000; // half of it in whole segments of 1460, in units of 1024: 63,488
    let mut server = linux("std");
    server.gso_max_segs = 65_535;
    server.initial_window = 60;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(client, server, 50 * MS);
    path.write(500 * 1448);
    let mut expected = vec![1448; 43];
    expected.push(63_488 - 43 * 1448);
    let sent: Vec<u32> = path.data_sent().iter().map(|(_, segment)| segment.len).collect();
    assert_eq!(sent, expected);
    // Minshall's rule: no other small segment until this one is acknowledged.
    let start = path.now;
    path.finish();
    let small = path.data_sent().into_iter().filter(|(_, segment)| segment.len < 1448);
    let early = small.filter(|(time, _)| time.0 < start.0 + 100 * MS).count();
    assert_eq!(early, 1);
    assert_eq!(path.received, 500 * 1448);
}
