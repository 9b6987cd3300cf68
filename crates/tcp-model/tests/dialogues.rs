//! Each mechanism as a dialogue over a path.

mod harness;

use harness::{Fate, MS, Path, Side, linux, lose, open, pauses, until};
use wirepaint_congestion_native::CaState;
use wirepaint_tcp_model::{Ecn, Event, Peer, Sample, flags};
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
    // Later the receiver's window is sometimes the limit.
    let flights: Vec<usize> = (0..5)
        .map(|n| {
            let of = |t: &wirepaint_units::Time| (t.0 - start.0) / (100 * MS);
            sent.iter().filter(|(time, _)| of(time) == n).count()
        })
        .collect();
    assert_eq!(flights, [10, 20, 40, 80, 160]);
    assert!(sent.iter().all(|(_, segment)| segment.wire_ip_bytes() == 1500));
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
    // Apart from the timer wheel, the server's timer fires when the client's second SYN arrives. If the timer
    // is first, the SYN-ACK is repeated twice, which reduces the initial window.
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
fn a_server_waits_for_a_client_that_a_full_queue_keeps_asking() {
    // Each SYN of the client starts the server's timer anew, with the doublings that it has.
    let mut path = Path::new(linux("std"), linux("std"), 3_300 * MS);
    path.advance(15_000 * MS);
    assert!(path.client.is_established() && path.server.is_established());
    let timed_out = path.log.iter().filter(|l| l.1 == Side::Server && l.0.0 > 9_900 * MS && l.2.len == 0);
    assert_eq!(timed_out.count(), 0, "the handshake is over");
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

// ---- acknowledgements ---------------------------------------------------------------------------------

fn acks(path: &Path) -> Vec<(u64, u32)> {
    let pure = path.log.iter().filter(|(_, side, s, _)| *side == Side::Client && s.len == 0);
    pure.map(|(time, _, s, _)| (time.0, s.ack)).collect()
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one_and_later_ones_in_pairs() {
    let mut path = open(50);
    // The sender is so slow that each segment arrives alone.
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
        // Request and answer: the client's next request makes the session interactive.
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
    // 2 x 10 x 2304 = 46,080 bytes as on Linux, in bursts of half the other side's window.
    assert_eq!(path.server.writable(), 2 * 22 * 1448);
    // Ten segments leave in five bursts, each with 832 bytes of overhead. The write fills up the first burst;
    // then there is no room. Linux 6.18 took as much.
    let taken = path.server.write(path.now, 1_000_000);
    assert_eq!((taken, path.server.unsent()), (32 * 1448, 22 * 1448));
    assert_eq!(path.server.writable(), 0);
    path.collect();
    while !path.server.is_writable() {
        assert!(path.step(Time::MAX));
    }
    path.finish();
    assert!(path.server.writable() > 2 * 22 * 1448);
}

/// Sizes of the send buffer while 41,081 bytes are acknowledged. They are written as by an HTTP/2 server: at
/// most 32 KiB wait unsent. The client acknowledges every `every`th segment.
fn send_buffers(waits: bool, every: u64) -> Vec<u64> {
    let mut server = linux("std");
    (server.notsent_lowat, server.gso_max_segs) = (32_768, 64);
    let mut path = Path::connected(linux("std"), server, 15 * MS);
    path.rate = Some((BitRate(5_000_000), 1_000));
    let mut acks = 0;
    path.fates = Box::new(move |side, _, _| {
        acks += u64::from(side == Side::Client);
        if side == Side::Client && acks % every != 0 { Fate::Lose } else { Fate::Arrive }
    });
    for bytes in [16_949, 16_406, 7_726] {
        path.write(bytes);
    }
    assert!(!path.server.is_writable());
    if waits {
        path.server.wait_for_space();
    }
    let mut sizes = vec![path.server.send_buffer()];
    while path.server.unacknowledged() > 0 && path.step(Time::MAX) {
        sizes.push(path.server.send_buffer());
    }
    assert!(!path.server.waits_for_space(), "it was woken");
    sizes.dedup();
    sizes
}

#[test]
fn the_send_buffer_grows_only_for_an_application_that_waits() {
    assert_eq!(send_buffers(false, 1), [46_080]);
}

#[test]
fn the_send_buffer_grows_where_a_push_is_more_than_one_burst() {
    // Linux 6.18 with reno's slow start (`ss -tm`): 2 x 20 x 2304 bytes when all is sent; with two segments
    // an ACK 2 x 12 and 2 x 14, since the window is checked when two of four segments have left.
    assert_eq!(send_buffers(true, 1), [46_080, 92_160]);
    assert_eq!(send_buffers(true, 2), [46_080, 55_296, 64_512]);
}

#[test]
fn a_sender_may_be_held_to_little_unsent_data() {
    let mut server = linux("std");
    server.notsent_lowat = 16_384;
    server.sndbuf = Some(u64::MAX);
    let mut path = Path::connected(linux("std"), server, 50 * MS);
    path.write(10 * 1448 + 17_000);
    // The last burst in the queue is always filled up.
    assert_eq!((path.server.unsent(), path.server.writable()), (17_000, 22 * 1448 - 17_000));
    assert!(!path.server.is_writable());
    path.finish();
    assert!(path.server.is_writable());
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
