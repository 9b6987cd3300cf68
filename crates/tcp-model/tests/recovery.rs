//! Whole connections that lose, delay or reorder: loss detection, recovery, timeouts and undo.

mod harness;

use harness::{Fate, MS, Path, Side, linux, lose, open, pauses, state, until};
use wirepaint_congestion_native::{CaState, INFINITE_SSTHRESH};
use wirepaint_tcp_model::{LossDetection, flags};
use wirepaint_units::{BitRate, Time};

#[test]
fn a_lost_segment_is_repaired_within_a_round_trip() {
    let mut path = open(50);
    lose(&mut path, [5]);
    path.write(40 * 1448);
    path.finish();
    let info = path.server.info();
    assert_eq!((info.retransmitted, info.lost, info.timeouts), (1, 1, 0));
    assert_eq!(path.received, 40 * 1448);
    assert_eq!(path.log.iter().filter(|(_, _, s, _)| s.has(flags::RETRANSMISSION)).count(), 1);
}

#[test]
fn a_lost_tail_is_probed_for_and_counts_as_congestion() {
    let mut path = open(50);
    path.write(10 * 1448);
    path.finish();
    lose(&mut path, [20]);
    let start = path.now.0;
    path.write(10 * 1448);
    path.finish();
    let sent = path.data_sent();
    let probe = (sent[20].0.0 - start) / MS;
    // The ninth segment's ACK was delayed by 44 ms. Two round trips and 200 ms for the delayed ACK of a lone
    // segment exceed the timeout, so the probe leaves at the time of the timeout.
    assert!((144 + 276..144 + 304).contains(&probe), "{probe} ms");
    assert_eq!(path.server.info().timeouts, 0);
    // No duplicate is reported: only the next segment shows that the original never arrived.
    assert_eq!(path.server.sock().snd_ssthresh, INFINITE_SSTHRESH);
    path.write(10 * 1448);
    path.finish();
    assert_eq!(state(&path), CaState::Open);
    assert!(path.server.sock().snd_ssthresh <= 5);
}

#[test]
fn a_probe_that_was_not_needed_changes_nothing() {
    let mut path = open(50);
    path.write(10 * 1448);
    path.finish();
    let cwnd = path.server.sock().snd_cwnd;
    path.fates = Box::new(|side, _, segment| {
        // The ACKs are held up for half a second.
        if side == Side::Client && !segment.has(flags::SYN) { Fate::Late(300 * MS) } else { Fate::Arrive }
    });
    path.write(3 * 1448);
    path.finish();
    assert!(path.server.info().retransmitted > 0);
    path.advance(1_000 * MS);
    assert_eq!(state(&path), CaState::Open);
    assert!(path.server.sock().snd_cwnd >= cwnd);
    assert_eq!(path.server.sock().snd_ssthresh, INFINITE_SSTHRESH);
}

#[test]
fn timeouts_double_and_the_window_falls_to_one() {
    let mut path = open(50);
    path.fates = Box::new(|side, _, _| if side == Side::Server { Fate::Lose } else { Fate::Arrive });
    path.write(10 * 1448);
    path.advance(10_000 * MS);
    assert_eq!((state(&path), path.server.sock().snd_cwnd), (CaState::Loss, 1));
    assert_eq!(path.server.sock().snd_ssthresh, 5);
    let repeats = pauses(&path, 10); // after the probe
    for pair in repeats.windows(2).skip(1) {
        let ratio = pair[1] as f64 / pair[0] as f64;
        assert!((1.9..2.2).contains(&ratio), "{repeats:?}");
    }
    path.fates = Box::new(|_, _, _| Fate::Arrive);
    path.finish();
    assert_eq!(path.received, 10 * 1448);
    assert_eq!(state(&path), CaState::Open);
}

#[test]
fn a_timeout_that_a_delay_caused_is_undone() {
    // F-RTO with timestamps off: only the ACK of data sent once is evidence.
    let mut server = linux("std");
    server.timestamps = false;
    server.tlp = false;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    path.write(10 * 1460);
    path.finish();
    let cwnd = path.server.sock().snd_cwnd;
    let mut late = 0;
    path.fates = Box::new(move |side, number, _| {
        late += u32::from(side == Side::Server && number > 0);
        if side == Side::Server && late <= 20 { Fate::Late(400 * MS) } else { Fate::Arrive }
    });
    path.write(60 * 1460);
    until(&mut path, CaState::Loss);
    assert_eq!(path.server.sock().snd_cwnd, 1);
    until(&mut path, CaState::Open);
    assert!(path.server.sock().snd_cwnd >= cwnd, "{}", path.server.sock().snd_cwnd);
    path.finish();
    assert_eq!(path.server.info().timeouts, 1);
}

/// Ten of 40 segments arrive `late` ms late, with or without timestamps.
fn late_segments(late: u64, timestamps: bool) -> Path {
    let mut server = linux("std");
    server.timestamps = timestamps;
    server.initial_window = 40;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    path.fates = Box::new(move |side, number, segment| {
        let hit = side == Side::Server && number <= 10 && !segment.has(flags::RETRANSMISSION);
        if hit { Fate::Late(late * MS) } else { Fate::Arrive }
    });
    path
}

#[test]
fn a_timestamp_tells_at_once_that_the_original_came_late() {
    let mut path = late_segments(20, true);
    path.write(80 * 1448);
    until(&mut path, CaState::Recovery);
    assert!(path.server.sock().snd_ssthresh < 40);
    until(&mut path, CaState::Open);
    assert_eq!(path.server.sock().snd_ssthresh, INFINITE_SSTHRESH);
    assert!(path.server.sock().snd_cwnd >= 40);
    path.finish();
}

/// Linux removes a segment that RACK marks from RACK's list (list_del_init in tcp_mark_skb_lost's caller,
/// tcp_rack_detect_loss). An undo does not put it back.
#[test]
fn a_loss_that_an_undo_took_back_waits_for_the_timeout() {
    let mut path = late_segments(30, true);
    path.rate = Some((BitRate(5_000_000), 1000));
    path.fates = Box::new(move |side, number, segment| match number {
        _ if side == Side::Client || segment.has(flags::RETRANSMISSION) => Fate::Arrive,
        1..=9 => Fate::Late(30 * MS),
        10 => Fate::Lose,
        _ => Fate::Arrive,
    });
    path.write(80 * 1448);
    until(&mut path, CaState::Recovery);
    path.finish();
    let info = path.server.info();
    assert_eq!((info.timeouts, path.received), (1, 80 * 1448));
}

#[test]
fn reported_duplicates_undo_a_reduction_without_timestamps() {
    let mut path = late_segments(20, false);
    path.write(80 * 1460);
    until(&mut path, CaState::Recovery);
    path.finish();
    path.advance(500 * MS);
    assert_eq!(state(&path), CaState::Open);
    assert_eq!(path.server.sock().snd_ssthresh, INFINITE_SSTHRESH);
    let duplicates = path.log.iter().filter(|(_, side, s, _)| {
        *side == Side::Client && s.blocks().first().is_some_and(|block| block.0 < s.ack)
    });
    assert!(duplicates.count() > 0);
}

#[test]
fn once_reordering_was_seen_it_is_waited_for() {
    let mut path = late_segments(20, true);
    path.write(80 * 1448);
    path.finish();
    let before = path.server.info().retransmitted;
    assert!(before > 0);
    // A quarter of the smallest round trip is 25 ms.
    path.fates =
        Box::new(
            |side, number, _| {
                if side == Side::Server && number % 10 == 0 { Fate::Late(20 * MS) } else { Fate::Arrive }
            },
        );
    path.write(200 * 1448);
    path.finish();
    assert_eq!(path.server.info().retransmitted, before);
}

#[test]
fn rack_finds_a_lost_retransmission_and_rfc_6675_waits_for_the_timeout() {
    let mut timeouts = Vec::new();
    for detection in [LossDetection::Rack, LossDetection::Rfc6675] {
        let mut server = linux("std");
        server.loss_detection = detection;
        server.sndbuf = Some(u64::MAX);
        let mut path = Path::connected(linux("std"), server, 50 * MS);
        let mut hits = 0;
        path.fates = Box::new(move |side, _, segment| {
            let hit = side == Side::Server && segment.len > 0 && segment.seq == 1 + 4 * 1448 && hits < 2;
            hits += u32::from(hit);
            if hit { Fate::Lose } else { Fate::Arrive }
        });
        path.write(200 * 1448);
        path.finish();
        timeouts.push(path.server.info().timeouts);
    }
    assert_eq!(timeouts, [0, 1]);
}

#[test]
fn rfc_6675_holds_a_segment_for_lost_when_three_beyond_it_have_arrived() {
    let mut server = linux("std");
    server.loss_detection = LossDetection::Rfc6675;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    lose(&mut path, [1, 3]);
    path.write(6 * 1448); // two and four beyond
    while path.server.sock().sacked_out < 4 {
        path.step(Time::MAX);
    }
    assert_eq!((state(&path), path.server.sock().lost), (CaState::Recovery, 2));
    path.finish();
    assert_eq!(path.server.info().timeouts, 0);
}

#[test]
fn without_sack_duplicate_acks_repair_one_segment_per_round_trip() {
    let mut server = linux("std");
    server.sack = false;
    server.sndbuf = Some(u64::MAX);
    server.initial_window = 20;
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    lose(&mut path, [1, 5, 9]);
    let start = path.now.0;
    path.write(20 * 1448);
    path.finish();
    let info = path.server.info();
    assert_eq!((info.retransmitted, info.timeouts, path.received), (3, 0, 20 * 1448));
    assert!((path.now.0 - start) / MS >= 400, "a round trip for each");
}

#[test]
fn without_sack_a_request_that_comes_twice_leaves_segments_full() {
    let mut server = linux("std");
    server.sack = false;
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    path.fates = Box::new(|side, _, _| if side == Side::Client { Fate::Twice } else { Fate::Arrive });
    path.client.write(path.now, 100);
    path.collect();
    path.advance(60 * MS);
    path.log.clear();
    path.write(5 * 1448);
    assert_eq!(path.data_sent().iter().map(|(_, segment)| segment.len).collect::<Vec<_>>(), [1448; 5]);
}

#[test]
fn the_window_shrinks_in_proportion_to_what_is_delivered() {
    let mut server = linux("std");
    server.initial_window = 40;
    server.sndbuf = Some(u64::MAX);
    let mut client = linux("std");
    client.comp_sack_nr = 0;
    client.rmem = [4_096, 1 << 20, 1 << 20];
    let mut path = Path::connected(client, server, 50 * MS);
    path.server.take_samples();
    lose(&mut path, [1]);
    path.write(400 * 1448);
    until(&mut path, CaState::Recovery);
    path.server.drain_samples().for_each(drop);
    until(&mut path, CaState::Open);
    let in_flight: Vec<u32> = path.server.drain_samples().map(|s| s.in_flight).collect();
    assert!(in_flight.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{in_flight:?}");
    let ssthresh = path.server.sock().snd_ssthresh;
    assert_eq!(path.server.sock().snd_cwnd, ssthresh);
    assert!(in_flight.iter().all(|&count| count + 2 >= ssthresh), "{in_flight:?}");
}
