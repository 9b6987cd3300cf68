//! What each mechanism does, told as a dialogue over a path.

mod harness;

use harness::{Fate, MS, Path, Side, linux, lose, open, state, until};
use wirepaint_congestion_native::{CaState, INFINITE_SSTHRESH};
use wirepaint_tcp_model::{Ecn, Event, LossDetection, Peer, Sample, flags};
use wirepaint_units::{BitRate, Time};

#[test]
fn a_handshake_takes_a_round_trip_and_gives_the_first_sample() {
    let mut path = Path::new(linux("std"), linux("std"), 25 * MS);
    path.advance(50 * MS);
    assert!(path.client.is_established());
    path.advance(25 * MS);
    assert!(path.server.is_established());
    assert_eq!(path.client.info().srtt_us, Some(50_000));
    assert_eq!(path.server.info().srtt_us, Some(50_000));
    assert_eq!(path.server.sock().snd_cwnd, 10);
    let sizes: Vec<u32> = path.log.iter().map(|(_, _, segment, _)| segment.wire_ip_bytes()).collect();
    assert_eq!(sizes, [60, 60, 52]);
    assert_eq!(path.log.iter().map(|(_, _, s, _)| s.window).collect::<Vec<_>>(), [64_240, 65_160, 64_512]);
}

#[test]
fn slow_start_doubles_with_every_round_trip() {
    let mut path = open(50);
    path.write(3_000 * 1448);
    let start = path.now;
    path.finish();
    let sent = path.data_sent();
    // Later the receiver's window is the limit now and then.
    let flights: Vec<usize> = (0..5)
        .map(|n| {
            let of = |t: &wirepaint_units::Time| (t.0 - start.0) / (100 * MS);
            sent.iter().filter(|(time, _)| of(time) == n).count()
        })
        .collect();
    assert_eq!(flights, [10, 20, 40, 80, 160]);
    assert!(sent.iter().all(|(_, segment)| segment.wire_ip_bytes() == 1500));
}

/// Pauses between the server's data segments from number `from` on, in us.
fn pauses(path: &Path, from: usize) -> Vec<u64> {
    let sent = path.data_sent();
    sent[from..].windows(2).map(|pair| (pair[1].0.0 - pair[0].0.0) / 1_000).collect()
}

// ---- handshake --------------------------------------------------------------------------------------

#[test]
fn a_lost_syn_is_repeated_after_a_second() {
    let mut path = Path::new(linux("std"), linux("std"), 25 * MS);
    let mut first = true;
    path.fates = Box::new(move |_, _, _| if std::mem::take(&mut first) { Fate::Lose } else { Fate::Arrive });
    path.advance(5_000 * MS);
    let syns: Vec<u64> = path.log.iter().filter(|l| l.1 == Side::Client).map(|l| l.0.0 / MS).collect();
    assert_eq!(syns, [0, 1_024, 1_074]); // 1 s, and the timer wheel's 8 jiffies
    assert_eq!(path.client.sock().snd_cwnd, 10, "one repetition costs nothing");
    assert_eq!(path.client.info().srtt_us, Some(50_000), "the timestamp tells which SYN was answered");
}

#[test]
fn after_a_lost_syn_ack_the_window_may_be_one_segment() {
    // The server's timer and the client's second SYN come at the same time but for the timer wheel. Where
    // the timer is first, the SYN-ACK is repeated twice, and that costs the initial window.
    for (delay_ms, expected) in [(10, (1, 2)), (25, (10, 1))] {
        let mut path = Path::new(linux("std"), linux("std"), delay_ms * MS);
        let mut answers = 0;
        path.fates = Box::new(move |side, _, _| {
            answers += u32::from(side == Side::Server);
            if side == Side::Server && answers == 1 { Fate::Lose } else { Fate::Arrive }
        });
        while !path.server.is_established() {
            assert!(path.step(Time::MAX));
        }
        assert_eq!((path.server.sock().snd_cwnd, path.server.info().retransmitted), expected);
    }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let mut path = Path::new(linux("std"), linux("std"), 25 * MS);
    path.fates = Box::new(|_, _, _| Fate::Lose);
    while path.step(Time::MAX) {}
    assert!(path.client.is_closed() && path.client.has_failed());
    let seconds: Vec<u64> = path.log.iter().map(|l| l.0.0 / 1_000 / MS).collect();
    assert_eq!(seconds, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 69]); // a second each, then they double
}

// ---- loss recovery ----------------------------------------------------------------------------------

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
    // The ninth segment's ACK was delayed by 44 ms. Two round trips and 200 ms for the delayed ACK of a
    // lone segment are more than the timeout, so the probe leaves when that would have come.
    assert!((144 + 276..144 + 304).contains(&probe), "{probe} ms");
    assert_eq!(path.server.info().timeouts, 0);
    // Only what comes next shows that the original never arrived: no duplicate is reported.
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
    // F-RTO with timestamps off: only the ACK of data that were sent once can tell.
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

/// Ten segments of 40 come late by `late` ms; timestamps or not.
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

// ---- acknowledgements ---------------------------------------------------------------------------------

fn acks(path: &Path) -> Vec<(u64, u32)> {
    let pure = path.log.iter().filter(|(_, side, s, _)| *side == Side::Client && s.len == 0);
    pure.map(|(time, _, s, _)| (time.0, s.ack)).collect()
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one_and_later_ones_in_pairs() {
    let mut path = open(50);
    // The sender is slow enough for each segment to come alone.
    for _ in 0..60 {
        path.write(1448);
        path.advance(2 * MS);
    }
    path.finish();
    let acked: Vec<u32> = acks(&path).iter().map(|&(_, ack)| (ack - 1) / 1448).collect();
    let steps: Vec<u32> = acked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps[..14].iter().all(|&step| step == 1), "{steps:?}");
    // Where the receiver's window grows, single ones again.
    assert!(steps[14..].contains(&2), "{steps:?}");
    assert!(steps.iter().all(|&step| step <= 2), "{steps:?}");
}

#[test]
fn a_lone_segment_in_an_interactive_session_is_acknowledged_after_40_ms() {
    let mut path = open(50);
    for _ in 0..3 {
        // Request and answer: the client's next request says that the session is interactive.
        path.client.write(path.now, 300);
        path.collect();
        path.advance(50 * MS);
        path.write(300);
        path.advance(50 * MS);
    }
    path.client.write(path.now, 300);
    path.collect();
    path.advance(50 * MS);
    path.log.clear();
    path.write(300);
    path.advance(50 * MS);
    let arrived = path.now.0;
    path.advance(100 * MS);
    let (time, _) = acks(&path)[0];
    assert!((40..=44).contains(&((time - arrived) / MS)), "{} ms", (time - arrived) / MS);
}

#[test]
fn out_of_order_segments_and_filled_holes_are_acknowledged_at_once() {
    let mut path = open(50);
    lose(&mut path, [2]);
    path.write(6 * 1448);
    path.advance(50 * MS);
    let blocks: Vec<Vec<(u32, u32)>> = path
        .log
        .iter()
        .filter(|(_, side, s, _)| *side == Side::Client && s.len == 0)
        .map(|(_, _, s, _)| s.blocks().to_vec())
        .collect();
    let hole_end = 1 + 2 * 1448;
    let expected: Vec<Vec<(u32, u32)>> =
        [vec![]].into_iter().chain((3..=5).map(|n| vec![(hole_end, 1 + n * 1448)])).collect();
    assert_eq!(blocks[..4], expected[..], "the fourth duplicate may be compressed");
}

#[test]
fn duplicate_acks_beyond_the_third_are_compressed() {
    let mut server = linux("std");
    server.initial_window = 60;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    lose(&mut path, [1]);
    path.write(60 * 1448);
    path.advance(52 * MS);
    let count = acks(&path).len();
    assert!((4..=8).contains(&count), "{count} ACKs for 59 segments beyond the hole");
}

#[test]
fn a_compressed_ack_with_news_of_several_holes_is_no_reordering() {
    let mut server = linux("std");
    server.initial_window = 60;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    lose(&mut path, [1, 20, 23, 26]);
    path.write(60 * 1448);
    path.finish();
    let info = path.server.info();
    assert_eq!((info.retransmitted, info.reordering), (4, 3));
}

// ---- flow control ---------------------------------------------------------------------------------------

#[test]
fn the_send_buffer_grows_with_the_window_and_says_when_it_has_room() {
    let mut path = Path::connected(linux("std"), linux("std"), 50 * MS);
    // 2 x 10 x 4352 = 87,040 bytes as on Linux, in bursts of half the other side's window.
    assert_eq!(path.server.writable(), 3 * 22 * 1448);
    let taken = path.server.write(path.now, 1_000_000);
    assert_eq!((taken, path.server.writable()), (3 * 22 * 1448, 0));
    path.collect();
    while !path.server.is_writable() {
        assert!(path.step(Time::MAX));
    }
    path.finish();
    assert!(path.server.writable() > 3 * 22 * 1448);
}

#[test]
fn a_sender_may_be_held_to_little_unsent_data() {
    let mut server = linux("std");
    server.notsent_lowat = 16_384;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    path.write(10 * 1448 + 20_000);
    assert_eq!((path.server.unsent(), path.server.writable()), (20_000, 0));
    path.finish();
    assert!(path.server.writable() > 0);
}

#[test]
fn small_writes_wait_for_each_other_unless_told_not_to() {
    for nodelay in [false, true] {
        let mut server = linux("std");
        server.nodelay = nodelay;
        let mut path = Path::connected(linux("std"), server, 50 * MS);
        for _ in 0..5 {
            path.write(100);
        }
        let flight: Vec<u32> = path.data_sent().iter().map(|(_, s)| s.len).collect();
        assert_eq!(flight, if nodelay { vec![100; 5] } else { vec![100] });
        path.finish();
        assert_eq!(path.data_sent().len(), if nodelay { 5 } else { 2 });
    }
}

// ---- sending ----------------------------------------------------------------------------------------------

#[test]
fn after_idle_the_window_halves_with_every_timeout_unless_told_not_to() {
    for (after_idle, expected) in [(true, 10), (false, 40)] {
        let mut server = linux("fld"); // without a rule of its own
        server.slow_start_after_idle = after_idle;
        server.initial_window = 10;
        server.sndbuf = Some(u64::MAX);
        let mut path = Path::connected(linux("std"), server, 50 * MS);
        path.write(10 * 1448);
        path.finish();
        path.write(15 * 1448);
        path.finish();
        let before = path.server.sock().snd_cwnd;
        assert!(before >= 30);
        path.advance(3_000 * MS);
        path.write(100 * 1448);
        let in_flight = path.server.sock().in_flight();
        assert_eq!(in_flight.min(40), expected.min(before), "before: {before}");
    }
}

#[test]
fn a_paced_sender_spaces_its_segments() {
    let mut server = linux("std");
    server.max_pacing_rate = Some(1_000_000);
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    path.write(200 * 1448);
    path.finish();
    // 1448 bytes at 1 MB/s, once the window is large enough.
    assert!(pauses(&path, 100).iter().all(|&pause| pause == 1_448));
}

#[test]
fn bbr_paces_itself_to_the_bottleneck() {
    let mut server = linux("bbr1");
    server.sndbuf = Some(u64::MAX);
    server.gso_max_segs = 65_535;
    let mut path = Path::connected(linux("std"), server, 20 * MS);
    path.rate = Some((BitRate(10_000_000), 1_000));
    path.write(6_000_000);
    let start = path.now.0;
    path.finish();
    let seconds = (path.now.0 - start) as f64 / 1e9;
    let rate = 6_000_000.0 * 8.0 / seconds;
    assert!(rate > 8.5e6, "{rate:.0} bit/s of 10 Mbit/s");
    assert_eq!(path.server.info().lost, 0);
    let measured = path.server.info().delivery_rate as f64 * 8.0;
    assert!((9.0e6..9.8e6).contains(&measured), "{measured:.0}");
}

#[test]
fn bursts_leave_together_where_the_device_takes_them() {
    let mut server = linux("std");
    server.gso_max_segs = 65_535;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    path.rate = Some((BitRate(20_000_000), 1_000));
    path.write(1_000 * 1448);
    path.finish();
    let late = pauses(&path, 600);
    let together = late.iter().filter(|&&pause| pause == 0).count();
    assert!(together * 2 >= late.len() - 2, "{together} of {} follow at once", late.len());
    assert_eq!(path.received, 1_000 * 1448);
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_slowed_down() {
    let mut client = linux("std");
    client.ecn = Ecn::On;
    let mut server = linux("std"); // accepts what the client asks for
    server.sndbuf = Some(u64::MAX);
    server.initial_window = 20;
    let mut path = Path::connected(client, server, 50 * MS);
    path.fates = Box::new(
        |side, number, _| {
            if side == Side::Server && number == 5 { Fate::Mark } else { Fate::Arrive }
        },
    );
    path.write(200 * 1448);
    until(&mut path, CaState::Cwr);
    let ssthresh = path.server.sock().snd_ssthresh;
    assert!(ssthresh < 20);
    path.finish();
    assert_eq!(path.server.info().retransmitted, 0);
    let told = path.log.iter().filter(|(_, side, s, _)| *side == Side::Server && s.has(flags::CWR)).count();
    assert_eq!(told, 1);
    let last = path.log.iter().rfind(|(_, side, _, _)| *side == Side::Client).unwrap().2;
    assert!(!last.has(flags::ECE), "the echo ends");
    assert!(path.data_sent().iter().all(|(_, s)| s.has(flags::ECT)));
}

#[test]
fn a_switched_congestion_control_takes_over_the_living_connection() {
    let mut path = open(50);
    path.write(10 * 1448);
    path.finish();
    let before = path.server.sock().snd_cwnd;
    path.server.switch(path.now, harness::congestion("fld", &[]));
    assert_eq!(path.server.sock().snd_cwnd, before);
    path.write(200 * 1448);
    path.advance(100 * MS);
    assert_eq!(path.server.sock().snd_cwnd, 3 * before);
}

// ---- end ------------------------------------------------------------------------------------------------------

#[test]
fn both_sides_close_and_a_repeated_fin_is_still_answered() {
    let mut path = open(50);
    path.write(5_000);
    path.server.close(path.now);
    assert_eq!(path.server.write(path.now, 1), 0);
    path.collect();
    path.advance(60 * MS);
    assert!(path.client.is_finished() && !path.client.is_closed());
    // The server's FIN is acknowledged; the ACK of the client's FIN is lost once.
    path.client.close(path.now);
    let mut lost = false;
    path.fates = Box::new(move |side, _, _| {
        let hit = side == Side::Server && !std::mem::replace(&mut lost, true);
        if hit { Fate::Lose } else { Fate::Arrive }
    });
    path.collect();
    path.advance(5_000 * MS);
    assert!(path.server.is_closed() && path.client.is_closed());
    assert!(!path.server.has_failed() && !path.client.has_failed());
    assert_eq!((path.server.next_timeout(), path.client.next_timeout()), (None, None));
}

#[test]
fn samples_show_the_sender_as_the_ack_found_it() {
    let mut path = open(50);
    path.server.take_samples();
    lose(&mut path, [3]);
    path.write(12 * 1448);
    path.finish();
    let samples: Vec<Sample> = path.server.drain_samples().collect();
    assert_eq!((samples[0].event, samples[0].cwnd, samples[0].in_flight), (Event::Ack, 10, 10));
    let entered = samples.iter().find(|s| s.event == Event::State && s.state == CaState::Recovery).unwrap();
    assert!(entered.ssthresh < 10 && entered.cwnd >= 10, "ssthresh is new, cwnd not yet reduced");
    assert_eq!(samples.iter().filter(|s| s.event == Event::Retransmit).count(), 1);
    assert!(samples.windows(2).all(|pair| pair[0].time <= pair[1].time));
}

#[test]
fn connections_of_a_run_share_their_groups_and_leave_them_when_they_end() {
    let instance = harness::congestion("heracles", &[]);
    let groups = wirepaint_congestion_native::Groups::new();
    let members = || groups.of(&instance).iter().map(|(_, group)| group.members).sum::<u32>();
    let open = || {
        let mut server = linux("heracles");
        server.congestion = instance.clone();
        server.sndbuf = Some(u64::MAX);
        let end = Peer { groups: Some(groups.clone()), ..harness::peer(Side::Server) };
        let mut path = Path::between(linux("std"), server, 50 * MS, end);
        path.advance(100 * MS);
        path.write(40 * 1448);
        path.finish();
        path
    };
    let mut first = open();
    assert_eq!(members(), 1);
    let mut second = open();
    assert_eq!(members(), 2);
    first.server.abort(first.now);
    assert_eq!(members(), 1);
    second.server.close(second.now);
    second.client.close(second.now);
    second.advance(1_000 * MS);
    assert!(second.server.is_closed());
    assert_eq!(members(), 0);
}
