//! Properties of every configuration of a link and every sequence of arrivals.

use proptest::prelude::*;
use wirepaint_link_model::config::{
    Action, Capacity, Change, Counted, Direction, Jitter, Limits, Loss, Queue, Scripted,
};
use wirepaint_link_model::queue::classes::{self, ServiceClass};
use wirepaint_link_model::queue::{codel, fq_codel, pie};
use wirepaint_link_model::{Link, LinkModel, Packet};
use wirepaint_units::{BitRate, Duration, Time};

#[derive(Clone, Debug)]
struct Numbered {
    number: u64,
    bytes: u32,
    ecn: bool,
}

impl Packet for Numbered {
    fn ip_bytes(&self) -> u32 {
        self.bytes
    }
    fn is_ecn_capable(&self) -> bool {
        self.ecn
    }
    fn mark_congestion(&mut self) {}
    fn flow(&self) -> u64 {
        self.number % 5
    }
    fn dscp(&self) -> u8 {
        (self.number % 3) as u8
    }
    fn counted_as(&self) -> Option<Counted> {
        Some(if self.bytes > 60 { Counted::Data } else { Counted::Bare })
    }
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        Just(Capacity::Unlimited),
        (10_000_u64..2_000_000_000).prop_map(|rate| Capacity::Rate { bit_per_s: BitRate(rate) }),
        (prop::collection::vec(0_u64..50, 1..40), 0_u64..60).prop_map(|(mut opportunities_ms, offset_ms)| {
            opportunities_ms.push(50);
            opportunities_ms.sort_unstable();
            Capacity::Trace { opportunities_ms, offset_ms }
        }),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let range = || (0_u64..20_000_000).prop_map(Duration);
    prop_oneof![
        Just(Jitter::None),
        (range(), any::<bool>()).prop_map(|(range_ns, reorder)| Jitter::Uniform { range_ns, reorder }),
        (range(), any::<bool>()).prop_map(|(mean_ns, reorder)| Jitter::Exponential { mean_ns, reorder }),
        (range(), any::<bool>()).prop_map(|(stddev_ns, reorder)| Jitter::Normal { stddev_ns, reorder }),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (0.0..1.0).prop_map(|probability| Loss::Independent { probability }),
        (0.0..1.0, 0.0..1.0).prop_map(|(good_to_bad, bad_to_good)| Loss::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_in_bad: 0.7,
            loss_in_good: 0.01
        }),
    ]
}

fn queue() -> impl Strategy<Value = Queue> {
    let ms = Duration::from_millis;
    prop_oneof![
        (1_u64..60).prop_map(|packets| Queue::Droptail(Limits { packets: Some(packets), bytes: None })),
        (1514_u64..90_000).prop_map(|bytes| Queue::Droptail(Limits { packets: None, bytes: Some(bytes) })),
        any::<bool>().prop_map(move |ecn| Queue::Codel(codel::Config {
            target_ns: ms(5),
            interval_ns: ms(20),
            packets: 60,
            ecn
        })),
        any::<bool>().prop_map(move |ecn| Queue::FqCodel(fq_codel::Config {
            flows: 4,
            quantum: 300,
            target_ns: ms(5),
            interval_ns: ms(20),
            packets: 60,
            ecn
        })),
        any::<bool>().prop_map(move |ecn| Queue::Pie(pie::Config {
            target_ns: ms(5),
            update_ns: ms(5),
            packets: 60,
            ecn
        })),
        (1_u32..5, 0_u32..2).prop_map(|(weight, priority)| Queue::Classes(classes::Config {
            classes: vec![
                ServiceClass { packets: Some(20), ..class(&[1], 0, weight) },
                ServiceClass { bytes: Some(30_000), ..class(&[2], priority, 2) },
                ServiceClass { packets: Some(20), ..class(&[], 1, 3) },
            ]
        })),
    ]
}

fn class(dscp: &[u8], priority: u32, weight: u32) -> ServiceClass {
    let dscp = dscp.to_vec();
    ServiceClass { dscp, priority, weight, packets: None, bytes: None, queue: None, ceiling_bit_per_s: None }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (0_u64..400_000_000, prop::option::of(capacity()), prop::option::of(0_u64..40_000_000));
    prop::collection::vec(change, 0..4).prop_map(|mut changes| {
        changes.sort_by_key(|(at, _, _)| *at);
        let change = |(at, capacity, delay): (u64, _, Option<u64>)| Change {
            at_ns: Time(at),
            capacity,
            delay_ns: delay.map(Duration),
            jitter: None,
            loss: None,
        };
        changes.into_iter().map(change).collect()
    })
}

fn script() -> impl Strategy<Value = Vec<Scripted>> {
    let action = prop_oneof![
        Just(Action::Drop),
        Just(Action::Mark),
        (1_u64..30_000_000).prop_map(|extra| Action::Hold { extra_ns: Duration(extra) }),
    ];
    prop::collection::btree_map(1_u64..300, action, 0..6).prop_map(|script| {
        script.into_iter().map(|(nth, action)| Scripted { what: Counted::Data, nth, action }).collect()
    })
}

fn direction() -> impl Strategy<Value = Direction> {
    (capacity(), 0_u64..40_000_000, jitter(), loss(), queue(), changes(), script()).prop_map(
        |(capacity, delay, jitter, loss, queue, changes, scripted)| Direction {
            capacity,
            delay_ns: Duration(delay),
            jitter,
            loss,
            queue,
            changes,
            scripted,
            overhead_bytes: 14,
        },
    )
}

/// Gaps in ns, sizes in bytes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
    prop::collection::vec((0_u64..2_000_000, 28_u32..1501, any::<bool>()), 1..300)
}

/// Pushes all arrivals and pops `late` ns after each `next_departure`.
fn drive(link: &mut Link<Numbered>, arrivals: &[(u64, u32, bool)], late: u64) -> Vec<(Time, u64)> {
    let (mut now, mut popped) = (Time::ZERO, Vec::new());
    let pop_until = |link: &mut Link<Numbered>, until: Time, popped: &mut Vec<(Time, u64)>| {
        while let Some(next) = link.next_departure().filter(|next| *next + Duration(late) <= until) {
            while let Some((due, packet)) = link.pop(next + Duration(late)) {
                assert!(due >= next, "departed at {due:?}, although nothing was to depart before {next:?}");
                popped.push((due, packet.number));
            }
        }
    };
    for (number, (gap, bytes, ecn)) in arrivals.iter().enumerate() {
        now += Duration(*gap);
        pop_until(link, now, &mut popped);
        link.push(now, Numbered { number: number as u64, bytes: *bytes, ecn: *ecn });
    }
    pop_until(link, Time(u64::MAX - late - 1), &mut popped);
    popped
}

fn reorders(direction: &Direction) -> bool {
    direction.jitter.reorders()
        || direction.scripted.iter().any(|scripted| matches!(scripted.action, Action::Hold { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_delivered_or_dropped_once(direction in direction(), arrivals in arrivals()) {
        let mut link = Link::new(&direction, 1).unwrap();
        let mut seen: Vec<u64> = drive(&mut link, &arrivals, 0).into_iter().map(|(_, n)| n).collect();
        let delivered = seen.len() as u64;
        while let Some(drop) = link.take_dropped() {
            seen.push(drop.packet.number);
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..arrivals.len() as u64).collect::<Vec<_>>());
        let counters = link.counters();
        prop_assert_eq!(counters.delivered_packets, delivered);
        prop_assert_eq!(counters.offered_packets, counters.accounted_packets());
        prop_assert_eq!(counters.offered_bytes, counters.delivered_bytes + counters.dropped_bytes);
        prop_assert_eq!(counters.inside_packets, 0);
    }

    #[test]
    fn due_times_never_run_back_and_order_holds_without_reordering(
        direction in direction(), arrivals in arrivals()
    ) {
        let popped = drive(&mut Link::new(&direction, 2).unwrap(), &arrivals, 0);
        prop_assert!(popped.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let one_queue = !matches!(direction.queue, Queue::FqCodel(..) | Queue::Classes(..));
        if one_queue && !reorders(&direction) {
            prop_assert!(popped.windows(2).all(|pair| pair[0].1 < pair[1].1));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_departures_however_late_the_caller(
        direction in direction(), arrivals in arrivals(), late in 0_u64..30_000_000
    ) {
        let punctual = drive(&mut Link::new(&direction, 3).unwrap(), &arrivals, 0);
        let tardy = drive(&mut Link::new(&direction, 3).unwrap(), &arrivals, late);
        prop_assert_eq!(punctual, tardy);
    }

    #[test]
    fn an_arrival_read_late_by_less_than_the_delay_departs_as_if_read_at_once(
        rate in 100_000_u64..2_000_000_000, arrivals in arrivals(), late in 0_u64..10_000_000
    ) {
        let direction = Direction {
            capacity: Capacity::Rate { bit_per_s: BitRate(rate) },
            delay_ns: Duration(10_000_000),
            jitter: Jitter::None,
            loss: Loss::None,
            queue: Queue::Droptail(Limits { packets: Some(20), bytes: None }),
            changes: vec![],
            scripted: vec![],
            overhead_bytes: 14,
        };
        let punctual = drive(&mut Link::new(&direction, 4).unwrap(), &arrivals, 0);
        // This caller pops up to `late` after an arrival before it pushes it.
        let mut link = Link::<Numbered>::new(&direction, 4).unwrap();
        let (mut now, mut tardy) = (Time::ZERO, Vec::new());
        for (number, (gap, bytes, ecn)) in arrivals.iter().enumerate() {
            now += Duration(*gap);
            while let Some((due, packet)) = link.pop(now + Duration(late)) {
                tardy.push((due, packet.number));
            }
            link.push(now, Numbered { number: number as u64, bytes: *bytes, ecn: *ecn });
        }
        while let Some((due, packet)) = link.pop(Time(u64::MAX / 2)) {
            tardy.push((due, packet.number));
        }
        prop_assert_eq!(punctual, tardy);
    }

    #[test]
    fn a_busy_link_delivers_its_rate_to_the_nanosecond(
        rate in 10_000_u64..10_000_000_000, sizes in prop::collection::vec(28_u32..1501, 2..500)
    ) {
        let direction = Direction {
            capacity: Capacity::Rate { bit_per_s: BitRate(rate) },
            delay_ns: Duration(1_000),
            jitter: Jitter::None,
            loss: Loss::None,
            queue: Queue::Droptail(Limits { packets: None, bytes: None }),
            changes: vec![],
            scripted: vec![],
            overhead_bytes: 14,
        };
        let burst: Vec<_> = sizes.iter().map(|bytes| (0, *bytes, false)).collect();
        let popped = drive(&mut Link::new(&direction, 5).unwrap(), &burst, 0);
        let bits: u128 = sizes.iter().map(|bytes| (u128::from(*bytes) + 14) * 8).sum();
        let exact = (bits * 1_000_000_000).div_ceil(u128::from(rate)) + 1_000;
        prop_assert_eq!(u128::from(popped.last().unwrap().0.0), exact);
    }
}
