//! Single links, told as a dialogue: packets in, departures out.

use wirepaint_link_model::config::{Capacity, Change, Direction, Jitter, Loss, Queue};
use wirepaint_link_model::{Drop, Link, LinkModel, Packet};
use wirepaint_units::{BitRate, Duration, Time};

#[derive(Debug)]
struct Sized(u32);

impl Packet for Sized {
    fn ip_bytes(&self) -> u32 {
        self.0
    }
    fn is_ecn_capable(&self) -> bool {
        false
    }
    fn mark_congestion(&mut self) {
        unreachable!("not capable");
    }
    fn flow(&self) -> u64 {
        0
    }
}

fn direction(capacity: Capacity) -> Direction {
    Direction {
        capacity,
        delay_ns: Duration::ZERO,
        jitter: Jitter::None,
        loss: Loss::None,
        queue: Queue::Droptail { packets: Some(100), bytes: None },
        changes: vec![],
        overhead_bytes: 14,
    }
}

fn rate(bit_per_s: u64) -> Capacity {
    Capacity::Rate { bit_per_s: BitRate(bit_per_s) }
}

fn trace(ms: &[u64]) -> Capacity {
    Capacity::Trace { opportunities_ms: ms.to_vec() }
}

fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// Pushes packets `(ms, IP bytes)` and returns when each departs, in microseconds.
fn departures_us(direction: &Direction, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let mut link = Link::new(direction, 1).unwrap();
    for (at, bytes) in arrivals {
        link.push(ms(*at), Sized(*bytes));
    }
    std::iter::from_fn(|| link.pop(Time(u64::MAX / 2))).map(|(due, _)| due.0 / 1_000).collect()
}

#[test]
fn a_packet_takes_its_wire_bytes_at_the_rate_plus_the_delay() {
    let lte = Direction { delay_ns: Duration::from_millis(13), ..direction(rate(25_000_000)) };
    assert_eq!(departures_us(&lte, &[(0, 1500), (0, 1500), (100, 40)]), [13_484, 13_968, 113_017]);
}

#[test]
fn the_packet_in_transmission_is_not_in_the_queue() {
    let mut link = Link::new(&direction(rate(1_000_000)), 1).unwrap();
    for _ in 0..150 {
        link.push(ms(0), Sized(1500));
    }
    let counters = link.counters();
    assert_eq!((counters.queue_packets, counters.inside_packets, counters.queue_drops), (100, 101, 49));
    let dropped = link.take_dropped().unwrap();
    assert_eq!((dropped.cause, dropped.time), (Drop::Queue, ms(0)));
}

#[test]
fn a_departure_makes_room_for_an_arrival_at_the_same_instant() {
    let one =
        Direction { queue: Queue::Droptail { packets: Some(1), bytes: None }, ..direction(rate(8_000_000)) };
    // 1000 bytes take 1 ms: at 1 ms the first is sent, the second starts, the third finds room.
    assert_eq!(departures_us(&one, &[(0, 986), (0, 986), (1, 986)]), [1_000, 2_000, 3_000]);
}

#[test]
fn one_opportunity_carries_one_full_packet_and_a_small_packet_leaves_room() {
    let capacity = trace(&[10, 20, 30, 40]);
    assert_eq!(departures_us(&direction(capacity.clone()), &[(0, 1500), (0, 1500)]), [10_000, 20_000]);
    // 746 + 4 bytes: two fit into the 1504 of an opportunity, the third finds 4 bytes left.
    assert_eq!(
        departures_us(&direction(capacity), &[(0, 746), (0, 746), (0, 746)]),
        [10_000, 10_000, 20_000]
    );
}

#[test]
fn an_opportunity_is_lost_when_the_queue_is_empty_and_the_trace_wraps_at_its_last() {
    let capacity = trace(&[10, 10, 25]);
    // Both of 10 ms are gone when the packet comes at 10 ms; it takes 25; the next comes after the wrap.
    assert_eq!(departures_us(&direction(capacity), &[(10, 1500), (30, 1500)]), [25_000, 35_000]);
}

#[test]
fn a_rate_that_changes_during_a_transmission_sends_the_rest_at_the_new_rate() {
    let change = |at, bit_per_s| Change {
        at_ns: ms(at),
        capacity: Some(rate(bit_per_s)),
        delay_ns: None,
        jitter: None,
        loss: None,
    };
    // 1000 bytes at 1 Mbit/s would take 8 ms. After 4 ms an outage of 10 ms, then 8 Mbit/s.
    let changing =
        Direction { changes: vec![change(4, 0), change(14, 8_000_000)], ..direction(rate(1_000_000)) };
    assert_eq!(departures_us(&changing, &[(0, 986), (0, 986)]), [14_500, 15_500]);
}

#[test]
fn a_shorter_delay_lets_no_packet_overtake() {
    let change = Change {
        at_ns: ms(1),
        capacity: None,
        delay_ns: Some(Duration::from_millis(1)),
        jitter: None,
        loss: None,
    };
    let shorter = Direction {
        delay_ns: Duration::from_millis(50),
        changes: vec![change],
        ..direction(Capacity::Unlimited)
    };
    assert_eq!(departures_us(&shorter, &[(0, 100), (2, 100), (60, 100)]), [50_000, 50_000, 61_000]);
}

#[test]
fn an_empty_link_never_wakes_its_caller() {
    let link = Link::<Sized>::new(&direction(trace(&[1, 2])), 1).unwrap();
    assert_eq!(link.next_departure(), None);
}

#[test]
fn what_cannot_be_carried_out_is_refused_by_key() {
    let refused = |direction: Direction| Link::<Sized>::new(&direction, 1).unwrap_err().to_string();
    assert_eq!(
        refused(Direction { loss: Loss::Independent { probability: 1.5 }, ..direction(Capacity::Unlimited) }),
        "loss.probability: found 1.5, accepted: 0 to 1"
    );
    assert_eq!(
        refused(direction(trace(&[]))),
        "capacity.opportunities_ms: found 0 times, accepted: at least one time above 0"
    );
    assert_eq!(
        refused(direction(trace(&[5, 4]))),
        "capacity.opportunities_ms: found 4 after 5, accepted: times in ascending order"
    );
    let change = |at| Change { at_ns: ms(at), capacity: None, delay_ns: None, jitter: None, loss: None };
    assert_eq!(
        refused(Direction { changes: vec![change(2), change(1)], ..direction(Capacity::Unlimited) }),
        "changes[1].at_ns: found 1000000, accepted: times in ascending order"
    );
    assert_eq!(
        refused(Direction {
            queue: Queue::Droptail { packets: Some(0), bytes: None },
            ..direction(Capacity::Unlimited)
        }),
        "queue.packets: found 0, accepted: at least 1"
    );
}
