//! Single links as dialogues: packets in, departures out.

use wirepaint_link_model::config::{
    Action, Capacity, Change, Counted, Direction, Jitter, Limits, Loss, Queue, Scripted,
};
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
    fn dscp(&self) -> u8 {
        0
    }
    fn counted_as(&self) -> Option<Counted> {
        Some(if self.0 > 40 { Counted::Data } else { Counted::Bare })
    }
}

fn direction(capacity: Capacity) -> Direction {
    Direction {
        capacity,
        delay_ns: Duration::ZERO,
        jitter: Jitter::None,
        loss: Loss::None,
        queue: Queue::Droptail(Limits { packets: Some(100), bytes: None }),
        changes: vec![],
        scripted: vec![],
        overhead_bytes: 14,
    }
}

fn rate(bit_per_s: u64) -> Capacity {
    Capacity::Rate { bit_per_s: BitRate(bit_per_s) }
}

fn trace(ms: &[u64]) -> Capacity {
    Capacity::Trace { opportunities_ms: ms.to_vec(), offset_ms: 0 }
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
    let one = Direction {
        queue: Queue::Droptail(Limits { packets: Some(1), bytes: None }),
        ..direction(rate(8_000_000))
    };
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
    // Both opportunities of 10 ms are over when the packet arrives at 10 ms. It uses 25; the next follows the
    // wrap.
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
fn exponential_jitter_adds_its_mean_to_the_delay() {
    let mean = 1000.0;
    let mut jittery = direction(rate(1_000_000_000_000));
    jittery.delay_ns = Duration::from_millis(20);
    jittery.jitter = Jitter::Exponential { mean_ns: Duration::from_micros(mean as u64), reorder: true };
    let arrivals: Vec<_> = (0..20_000).map(|number| (number, 100)).collect();
    let mut added: Vec<_> = Vec::new();
    for (number, at) in departures_us(&jittery, &arrivals).into_iter().enumerate() {
        added.push(at as f64 - (number as f64 * 1000.0 + 20_000.0));
    }
    let of_all = added.iter().sum::<f64>() / added.len() as f64;
    assert!((of_all / mean - 1.0).abs() < 0.03, "{of_all}");
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

fn scripted(what: Counted, nth: u64, action: Action) -> Scripted {
    Scripted { what, nth, action }
}

#[test]
fn an_arrival_pushed_after_the_link_was_popped_past_it_is_shifted_by_what_the_delay_does_not_cover() {
    let third_due_and_shift = |delay_ms| {
        let delay_ns = Duration::from_millis(delay_ms);
        let mut link = Link::new(&Direction { delay_ns, ..direction(rate(8_000_000)) }, 1).unwrap();
        link.push(ms(0), Sized(986));
        link.push(ms(0), Sized(986));
        while link.pop(ms(4)).is_some() {}
        link.push(ms(1), Sized(986));
        let last = std::iter::from_fn(|| link.pop(ms(100))).last().unwrap().0;
        (last, link.counters().largest_shift)
    };
    // Both packets had left by 2 ms: the arrival of 1 ms is taken as one of 2 ms.
    assert_eq!(third_due_and_shift(0), (ms(3), Duration::from_millis(1)));
    assert_eq!(third_due_and_shift(3), (ms(6), Duration::ZERO));
}

#[test]
fn a_script_drops_exactly_the_packets_that_it_names_and_counts_data_and_bare_packets_apart() {
    let thinned = Direction {
        scripted: vec![
            scripted(Counted::Data, 2, Action::Drop),
            scripted(Counted::Bare, 1, Action::Drop),
            scripted(Counted::Data, 3, Action::Drop),
            scripted(Counted::Bare, 3, Action::Drop),
        ],
        ..direction(Capacity::Unlimited)
    };
    let mut link = Link::new(&thinned, 1).unwrap();
    for (at, bytes) in [(0, 40), (1, 100), (2, 40), (3, 101), (4, 40), (5, 102), (6, 103), (7, 40)] {
        link.push(ms(at), Sized(bytes));
    }
    let dropped: Vec<_> =
        std::iter::from_fn(|| link.take_dropped()).map(|d| (d.time, d.cause, d.packet.0)).collect();
    assert_eq!(
        dropped,
        [(0, 40), (3, 101), (4, 40), (5, 102)].map(|(at, bytes)| (ms(at), Drop::Loss, bytes))
    );
    assert_eq!(link.counters().random_losses, 4);
}

#[test]
fn a_held_packet_is_exactly_that_much_later_and_holds_up_no_other() {
    let hold = Action::Hold { extra_ns: Duration::from_millis(2) };
    let held = Direction {
        delay_ns: Duration::from_millis(10),
        scripted: vec![scripted(Counted::Data, 2, hold)],
        ..direction(rate(8_000_000))
    };
    let mut link = Link::new(&held, 1).unwrap();
    for bytes in [986, 985, 984, 983] {
        link.push(ms(0), Sized(bytes));
    }
    let departures: Vec<_> =
        std::iter::from_fn(|| link.pop(ms(100))).map(|(due, packet)| (packet.0, due.0 / 1000)).collect();
    assert_eq!(departures, [(986, 11_000), (984, 12_997), (983, 13_994), (985, 13_999)]);
}

#[test]
fn a_script_leaves_the_random_losses_where_they_are() {
    let lossy = Direction { loss: Loss::Independent { probability: 0.3 }, ..direction(Capacity::Unlimited) };
    let script = (1..=20).map(|n| scripted(Counted::Data, 5 * n, Action::Drop)).collect();
    let lost = |direction: &Direction| -> Vec<u32> {
        let mut link = Link::new(direction, 9).unwrap();
        (0..100).for_each(|n| link.push(ms(0), Sized(1000 + n)));
        std::iter::from_fn(|| link.take_dropped()).map(|dropped| dropped.packet.0 - 1000).collect()
    };
    let (random, both) = (lost(&lossy), lost(&Direction { scripted: script, ..lossy.clone() }));
    let expected: Vec<u32> = (0..100).filter(|n| random.contains(n) || n % 5 == 4).collect();
    assert_eq!(both, expected);
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
            queue: Queue::Droptail(Limits { packets: Some(0), bytes: None }),
            ..direction(Capacity::Unlimited)
        }),
        "queue.packets: found 0, accepted: at least 1"
    );
    let bytes = |bytes, mtu, overhead_bytes| {
        let queue = Queue::Droptail(Limits { packets: None, bytes: Some(bytes) });
        let short = Direction { queue, overhead_bytes, ..direction(Capacity::Unlimited) };
        Link::<Sized>::with_mtu(&short, mtu, 1).err().map(|error| error.to_string())
    };
    assert_eq!([bytes(1514, 1500, 14), bytes(1000, 960, 40)], [None, None]);
    assert_eq!(
        bytes(1514, 1500, 40).unwrap(),
        "queue.bytes: found 1514, accepted: at least 1540, a full frame"
    );
    let script = |entries: &[(u64, Action)]| {
        let scripted = entries.iter().map(|(nth, action)| scripted(Counted::Bare, *nth, *action)).collect();
        refused(Direction { scripted, ..direction(Capacity::Unlimited) })
    };
    let ascending = "accepted: at least 1, ascending among those that count the same packets";
    assert_eq!(script(&[(0, Action::Drop)]), format!("scripted[0].nth: found 0, {ascending}"));
    assert_eq!(
        script(&[(7, Action::Drop), (7, Action::Mark)]),
        format!("scripted[1].nth: found 7, {ascending}")
    );
    assert_eq!(
        script(&[(1, Action::Hold { extra_ns: Duration::ZERO })]),
        "scripted[0].action.extra_ns: found 0, accepted: at least 1 ns"
    );
}
