//! Connections that share one window segment by segment: TCP-Int with `tcpint_exact`.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use wirepaint_congestion_native::{Instance, find};
use wirepaint_link_model::config::{
    Action, Capacity, Counted, Direction, Jitter, Limits, Loss, Queue, Scripted,
};
use wirepaint_run::Side;
use wirepaint_simulator::fabric::{EndpointId, Fabric};
use wirepaint_simulator::world::{Dial, Event, Path, World, client_end, server_end};
use wirepaint_tcp_model::{Config, LossDetection};
use wirepaint_units::{BitRate, Duration, Time};

const MS: u64 = 1_000_000;
const SEGMENT: u64 = 1448;
const BULK: u64 = 1 << 23;

/// A server and a client, 40 ms apart, whose connections share a window; every segment is acknowledged.
struct Hosts {
    world: World,
    config: Arc<Config>,
    instance: Arc<Instance>,
    path: usize,
}

fn tcpint(exact: i64) -> Arc<Instance> {
    find("tcpint").unwrap().instance(&BTreeMap::from([("tcpint_exact".to_owned(), exact)])).unwrap()
}

/// Data segments of these numbers are lost, counted over all connections.
fn lossy(lost: &[u64]) -> Direction {
    Direction {
        capacity: Capacity::Rate { bit_per_s: BitRate(100_000_000) },
        delay_ns: Duration(20 * MS),
        scripted: lost
            .iter()
            .map(|&nth| Scripted { what: Counted::Data, nth, action: Action::Drop })
            .collect(),
        ..Fabric::<u32>::wire()
    }
}

impl Hosts {
    fn new(exact: i64, down: &Direction, change: impl Fn(&mut Config)) -> Hosts {
        let up = lossy(&[]);
        let mut fabric = Fabric::new([(down, 1), (&up, 2)].into_iter()).unwrap();
        let (down, up) = (fabric.add_route(vec![0]), fabric.add_route(vec![1]));
        let mut world = World::new(fabric, 1, false);
        let path = world.path(Path { group: String::new(), down, up });
        let instance = tcpint(exact);
        let mut config = Config::linux(instance.clone());
        (config.sndbuf, config.quickack, config.tlp) = (Some(u64::MAX / 2), true, false);
        change(&mut config);
        Hosts { world, config: Arc::new(config), instance, path }
    }

    /// Opens a connection, runs until it is established and returns the server's end.
    fn open(&mut self) -> EndpointId {
        let id = self.world.connect(Dial {
            hosts: ["client".into(), "server".into()],
            client: self.config.clone(),
            server: self.config.clone(),
            client_address: Ipv4Addr::new(10, 64, 0, 2),
            server_address: Ipv4Addr::new(10, 65, 0, 1),
            server_port: 443,
            path: self.path,
            dscp: 0,
            marked: None,
            app: 0,
            sender: Side::Server,
            sampled: true,
            of_proxy: false,
            accepted_on: 0,
        });
        while !self.world.tcp(server_end(id)).is_established() {
            assert!(self.step(Time::MAX), "nothing happens before the connection is established");
        }
        server_end(id)
    }

    fn write(&mut self, end: EndpointId, bytes: u64) {
        assert_eq!(self.world.write(end, bytes), bytes);
    }

    /// Handles the next event by `until`; false if there is none.
    fn step(&mut self, until: Time) -> bool {
        let world = &mut self.world;
        let Some((time, id)) = world.agenda.pop() else { return false };
        if time > until {
            world.agenda.push(time, id);
            return false;
        }
        world.now = time;
        match Event::of(id) {
            Event::Link(link) if world.fabric.goes_off(link, time) => {
                while let Some(arrival) = world.fabric.next_arrival(time, &mut world.agenda, link) {
                    world.deliver(arrival);
                }
            }
            Event::Endpoint(end) => {
                world.endpoint_event(end);
            }
            _ => {}
        }
        while world.take_served().is_some() {}
        for id in 0..world.connections().len() as u32 {
            world.read(client_end(id), u64::MAX);
        }
        true
    }

    fn pass(&mut self, ns: u64) {
        let until = self.world.now + Duration(ns);
        while self.step(until) {}
        self.world.now = until;
    }

    /// The servers' window and slow-start threshold.
    fn shared(&self) -> (u64, u64) {
        let groups = self.world.groups(&self.instance);
        let (_, group) = groups.iter().find(|(key, _)| key.server().starts_with("10.65.")).unwrap();
        (group.own[0], group.own[1])
    }

    fn flights(&self, ends: &[EndpointId]) -> Vec<u32> {
        ends.iter().map(|&end| self.world.tcp(end).sock().in_flight()).collect()
    }

    fn outstanding(&self) -> u64 {
        let servers = (0..self.world.connections().len() as u32).map(server_end);
        servers.map(|end| u64::from(self.world.tcp(end).sock().in_flight())).sum()
    }

    fn unacknowledged(&self, end: EndpointId) -> u64 {
        self.world.tcp(end).unacknowledged()
    }

    fn timeouts(&self, end: EndpointId) -> u32 {
        self.world.tcp(end).info().timeouts
    }
}

/// Three connections with C = 12 in congestion avoidance and nothing in flight. From here on the data
/// segments numbered `more` are lost.
fn three_at_12(more: &[u64]) -> (Hosts, [EndpointId; 3]) {
    // Of the first connection's 11 segments the first is lost, and repeated: 12 pass.
    let lost: Vec<u64> = [1].into_iter().chain(more.iter().map(|nth| nth + 12)).collect();
    let mut hosts = Hosts::new(1, &lossy(&lost), |config| config.initial_window = 24);
    let first = hosts.open();
    hosts.write(first, 11 * SEGMENT);
    hosts.pass(400 * MS);
    assert_eq!((hosts.shared(), hosts.unacknowledged(first)), ((12, 12), 0));
    let ends = [first, hosts.open(), hosts.open()];
    (hosts, ends)
}

#[test]
fn a_loss_halves_the_window_of_all_once_for_each_flight() {
    let (mut hosts, ends) = three_at_12(&[1, 5]);
    // INT-1: each may send 4 of the 12; the first segments of two connections are lost.
    ends.iter().for_each(|&end| hosts.write(end, 4 * SEGMENT));
    assert_eq!(hosts.flights(&ends), [4, 4, 4]);
    ends.iter().for_each(|&end| hosts.write(end, BULK));
    assert_eq!((hosts.flights(&ends), hosts.shared()), (vec![4, 4, 4], (12, 12)));
    hosts.pass(45 * MS);
    assert_eq!(hosts.shared(), (6, 6), "the second loss is of the same flight");
    assert_eq!(hosts.world.tcp(ends[1]).info().lost, 1);
    assert_eq!(hosts.outstanding(), 6);
    // In the flight after it: 2 each.
    hosts.pass(36 * MS + 800_000);
    assert_eq!((hosts.shared(), hosts.flights(&ends)), ((6, 6), vec![2, 2, 2]));
    // A row of the table tcp shows the part of C that the others leave.
    let windows: u32 = ends.iter().map(|&end| hosts.world.tcp(end).sock().snd_cwnd).sum();
    assert!((6..=8).contains(&windows), "{windows}");
    assert_eq!(ends.map(|end| hosts.timeouts(end)), [0; 3]);
}

#[test]
fn a_loss_of_the_next_flight_halves_the_window_again() {
    // Number 18 leaves after the reduction: 12, two in place of what was SACKed before it, the repeated one.
    let (mut hosts, ends) = three_at_12(&[1, 18]);
    ends.iter().for_each(|&end| hosts.write(end, 4 * SEGMENT));
    ends.iter().for_each(|&end| hosts.write(end, BULK));
    hosts.pass(200 * MS);
    assert_eq!(hosts.shared().1, 3);
}

#[test]
fn a_new_connection_takes_its_part_without_slow_start() {
    let (mut hosts, ends) = three_at_12(&[]);
    ends.iter().for_each(|&end| hosts.write(end, 4 * SEGMENT));
    ends.iter().for_each(|&end| hosts.write(end, BULK));
    let fourth = hosts.open();
    let (before, _) = hosts.shared();
    hosts.write(fourth, BULK);
    assert_eq!(hosts.flights(&[fourth]), [0], "the window is full");
    hosts.pass(43 * MS);
    let all = [ends[0], ends[1], ends[2], fourth];
    let flights = hosts.flights(&all);
    // INT-2: a quarter each of 12, or of what C has grown to meanwhile.
    let (c, ssthresh) = hosts.shared();
    assert!(c <= before + 2 && ssthresh == 12, "C {before} became {c}");
    assert_eq!(u64::from(flights.iter().sum::<u32>()), c);
    assert!(flights.iter().all(|&flight| (3..=4).contains(&flight)), "{flights:?}");
}

#[test]
fn three_connections_grow_as_one() {
    let (mut hosts, ends) = three_at_12(&[]);
    ends.iter().for_each(|&end| hosts.write(end, 4 * SEGMENT));
    ends.iter().for_each(|&end| hosts.write(end, BULK));
    let mut windows = Vec::new();
    for _ in 0..6 {
        // A round trip and the transmission of a segment.
        hosts.pass(40 * MS + 250_000);
        let (c, _) = hosts.shared();
        assert!(hosts.outstanding() <= c);
        windows.push(c);
    }
    // INT-3.
    let growth: Vec<u64> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(growth.iter().all(|&more| more <= 1) && windows[5] - windows[0] >= 4, "{windows:?}");
}

#[test]
fn the_members_are_served_in_turns() {
    let (mut hosts, ends) = three_at_12(&[]);
    // The first has taken all before the others have anything to send.
    hosts.write(ends[0], BULK);
    assert_eq!(hosts.flights(&ends), [12, 0, 0]);
    hosts.write(ends[1], BULK);
    hosts.write(ends[2], BULK);
    assert_eq!(hosts.flights(&ends), [12, 0, 0]);
    hosts.pass(43 * MS);
    let flights = hosts.flights(&ends);
    assert!(flights.iter().all(|flight| (4..=5).contains(flight)), "{flights:?}");
}

/// A long and a short connection send at once; the second of the short one's 3 segments is lost. Returns the
/// short one's time and timeouts.
fn short_beside_long(exact: i64, change: impl Fn(&mut Config)) -> (u64, u32) {
    // Ten of the long one are in flight before them, and some follow.
    let mut hosts = Hosts::new(exact, &lossy(&[12]), |config| {
        config.initial_window = 24;
        change(config);
    });
    let long = hosts.open();
    let short = hosts.open();
    hosts.write(long, 10 * SEGMENT);
    let begun = hosts.world.now;
    hosts.write(short, 3 * SEGMENT);
    hosts.write(long, 2000 * SEGMENT);
    while hosts.unacknowledged(short) > 0 {
        assert!(hosts.step(Time::MAX), "it hangs");
    }
    (hosts.world.now.since(begun).0 / MS, hosts.timeouts(short))
}

#[test]
fn acks_of_another_connection_find_a_loss_at_the_tail() {
    let rfc6675 = |config: &mut Config| config.loss_detection = LossDetection::Rfc6675;
    let (exact, timeouts) = short_beside_long(1, rfc6675);
    assert!(timeouts == 0 && exact < 150, "{exact} ms, {timeouts} timeouts");
    let (approximate, timeouts) = short_beside_long(0, rfc6675);
    assert!(timeouts == 1 && approximate > 240, "{approximate} ms, {timeouts} timeouts");
    // Without a shared window RACK waits for a quarter of a round trip.
    let [exact, approximate] = [1, 0].map(|exact| short_beside_long(exact, |_| {}));
    assert!(exact.1 == 0 && exact.0 < approximate.0, "{exact:?} exactly, {approximate:?} approximately");
}

/// C right after the timeout of a connection whose only segment is lost. Another connection sends `others`
/// segments.
fn after_timeout(others: u64) -> (u64, u64) {
    let mut hosts = Hosts::new(1, &lossy(&[1]), |config| config.initial_window = 16);
    let other = hosts.open();
    let unlucky = hosts.open();
    hosts.write(unlucky, SEGMENT);
    hosts.write(other, others * SEGMENT);
    let mut before = 0;
    while hosts.timeouts(unlucky) == 0 {
        before = hosts.shared().0;
        assert!(hosts.step(Time::MAX), "it hangs");
    }
    let after = hosts.shared().0;
    while hosts.unacknowledged(unlucky) > 0 {
        assert!(hosts.step(Time::MAX), "it hangs");
    }
    (before, after)
}

#[test]
fn a_timeout_beside_a_connection_that_makes_progress_is_a_loss() {
    let (before, after) = after_timeout(100_000);
    assert!(after == before / 2 && after > 8, "{before} became {after}");
    let (before, after) = after_timeout(0);
    assert_eq!((before, after), (16, 1), "nobody makes progress");
}

#[test]
fn what_a_closed_connection_had_in_flight_is_room_for_the_others() {
    let (mut hosts, ends) = three_at_12(&[]);
    hosts.write(ends[0], 12 * SEGMENT);
    hosts.write(ends[1], BULK);
    assert_eq!(hosts.flights(&ends), [12, 0, 0]);
    hosts.world.close(ends[0]);
    hosts.world.close(client_end(ends[0] / 2));
    hosts.pass(200 * MS);
    let (c, _) = hosts.shared();
    assert!(hosts.world.tcp(ends[0]).is_closed());
    assert_eq!(u64::from(hosts.flights(&ends)[1]), c);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// With any loss and reordering, all data arrive, and the count in flight returns to 0. Together the
    /// members never send beyond C; this is not checked where reordering causes spurious loss marks.
    #[test]
    fn the_members_never_send_beyond_the_window(
        sizes in prop::collection::vec(1_u64..150_000, 1..7), loss in 0.0..0.15, mbit in 1_u64..30,
        rack: bool, reorder: bool,
    ) {
        let down = Direction {
            capacity: Capacity::Rate { bit_per_s: BitRate(mbit * 1_000_000) },
            queue: Queue::Droptail(Limits { packets: Some(20), bytes: None }),
            loss: Loss::Independent { probability: loss },
            jitter: if reorder { Jitter::Uniform { range_ns: Duration(10 * MS), reorder } } else { Jitter::None },
            ..lossy(&[])
        };
        let mut hosts = Hosts::new(1, &down, |config| {
            let rule = if rack { LossDetection::Rack } else { LossDetection::Rfc6675 };
            (config.loss_detection, config.retries) = (rule, 60);
        });
        let ends: Vec<EndpointId> = sizes.iter().map(|&bytes| {
            let end = hosts.open();
            hosts.write(end, bytes);
            end
        }).collect();
        let mut before = hosts.outstanding();
        let mut counted: (u32, u32) = (0, 0);
        while ends.iter().any(|&end| hosts.unacknowledged(end) > 0) {
            prop_assert!(hosts.step(Time::MAX), "it hangs");
            let (c, _) = hosts.shared();
            let now = hosts.outstanding();
            let sent = ends.iter().map(|&end| hosts.world.tcp(end).sock().data_segs_out).sum();
            let timed_out = ends.iter().map(|&end| hosts.timeouts(end)).sum();
            // A timeout repeats a segment regardless of the window; an undo brings segments back and sends
            // nothing.
            let (prior_sent, prior_timed_out) = std::mem::replace(&mut counted, (sent, timed_out));
            let limit = c.max(before) + u64::from(timed_out - prior_timed_out);
            prop_assert!(
                reorder || sent == prior_sent || now <= limit,
                "{} outstanding after {}, C is {}", now, before, c,
            );
            before = now;
            for &end in &ends {
                hosts.world.tcp(end).check().map_err(TestCaseError::fail)?;
            }
        }
        prop_assert_eq!(hosts.world.groups(&hosts.instance)[0].1.cwnd_sum, 0);
    }
}
