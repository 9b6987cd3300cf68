//! Properties of groups under any behaviour of their members: sums, numbers, and no members at the end.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_congestion_native::{Connection, Group, GroupKey, Groups, Instance, find};
use wirepaint_congestion_scripts::concurrent;
use wirepaint_congestion_scripts::sender::{Config, Sender};
use wirepaint_congestion_scripts::wire::Wire;

const MEMBERS_MAX: usize = 64;
const RTT_US: u64 = 50_000;

/// An event of all connections, or of one, chosen by a number modulo their count.
#[derive(Clone, Debug)]
enum Event {
    Open { host: u8, ipv6: bool, initial_window: u32 },
    Round,
    Wait(u64),
    Of(usize, Deed),
}

#[derive(Clone, Debug)]
enum Deed {
    Close,
    Write(u64),
    Lose(usize, usize),
    Timeout,
    Ece,
    LocalDrop,
    Rtt(u64),
}

fn event() -> impl Strategy<Value = Event> {
    use Deed::*;
    let open = (0u8..8, any::<bool>(), 1u32..40);
    let deed = prop_oneof![
        2 => Just(Close),
        8 => (1u64..60).prop_map(Write),
        3 => (1usize..4, 1usize..10).prop_map(|(count, at)| Lose(count, at)),
        1 => Just(Timeout),
        1 => Just(Ece),
        1 => Just(LocalDrop),
        2 => (RTT_US..5 * RTT_US).prop_map(Rtt),
    ];
    prop_oneof![
        6 => open.prop_map(|(host, ipv6, initial_window)| Event::Open { host, ipv6, initial_window }),
        6 => Just(Event::Round),
        2 => (1_000u64..2_000_000).prop_map(Event::Wait),
        18 => (any::<usize>(), deed).prop_map(|(which, deed)| Event::Of(which, deed)),
    ]
}

/// Two networks of four hosts, in both families.
fn address(host: u8, ipv6: bool) -> IpAddr {
    match ipv6 {
        false => Ipv4Addr::new(10, 1, host / 4, host % 4).into(),
        true => Ipv6Addr::new(0xfd00, 0, 0, u16::from(host / 4), 0, 0, 0, u16::from(host % 4)).into(),
    }
}

/// The server of a host: one of two.
fn server(to: IpAddr) -> u8 {
    match to {
        IpAddr::V4(v4) => v4.octets()[3] % 2,
        IpAddr::V6(v6) => v6.octets()[15] % 2,
    }
}

/// `struct cc_member`, with which the state of each of these algorithms begins.
struct Member {
    cwnd: u32,
    ssthresh: u32,
    slot: u8,
    in_group: bool,
}

fn member(connection: &Connection) -> Member {
    let bytes: Vec<u8> = connection.tp.icsk_ca_priv.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    Member { cwnd: word(0), ssthresh: word(4), slot: bytes[28], in_group: bytes[29] != 0 }
}

/// The connections of one run under one instance, each with its host.
struct World {
    instance: Arc<Instance>,
    groups: Rc<Groups>,
    wire: Rc<Wire>,
    members: Vec<(IpAddr, Sender)>,
    now_us: u64,
}

impl World {
    fn senders(&mut self) -> Vec<&mut Sender> {
        self.members.iter_mut().map(|(_, sender)| sender).collect()
    }

    fn perform(&mut self, event: &Event) {
        match event {
            Event::Open { host, ipv6, initial_window } if self.members.len() < MEMBERS_MAX => {
                let to = address(*host, *ipv6);
                let config = Config {
                    initial_window: *initial_window,
                    rtt_us: RTT_US,
                    to: (to, 5001).into(),
                    server: server(to),
                    ..Config::default()
                };
                let groups = Rc::clone(&self.groups);
                let sender = Sender::open_among(
                    Arc::clone(&self.instance),
                    config,
                    groups,
                    Rc::clone(&self.wire),
                    self.now_us,
                );
                self.members.push((to, sender));
            }
            Event::Round => {
                let arrivals = self.members.iter().map(|(_, sender)| sender.on_the_way()).collect();
                concurrent::ack(&mut self.senders(), arrivals, false);
            }
            Event::Wait(us) => self.now_us += us,
            Event::Of(which, deed) if !self.members.is_empty() => {
                let which = which % self.members.len();
                match deed {
                    Deed::Close => self.members.remove(which).1.close(),
                    deed => do_it(&mut self.members[which].1, deed),
                }
            }
            Event::Open { .. } | Event::Of(..) => {}
        }
        self.now_us = self.members.iter().map(|(_, sender)| sender.now_us()).fold(self.now_us, u64::max);
        let now = self.now_us;
        concurrent::advance_to(&mut self.senders(), now);
    }

    /// Expected members and sums of the groups, by their names and slots, from the members themselves.
    fn expected(&self, plen4: u8, plen6: u8) -> BTreeMap<(String, u8), (u32, u64, u64)> {
        let mut expected = BTreeMap::new();
        for (to, sender) in &self.members {
            let member = member(&sender.connection);
            if member.in_group {
                let entry = expected.entry((name(*to, plen4, plen6), member.slot)).or_insert((0, 0, 0));
                entry.0 += 1;
                entry.1 += u64::from(member.cwnd);
                entry.2 += u64::from(member.ssthresh);
            }
        }
        expected
    }
}

fn do_it(sender: &mut Sender, deed: &Deed) {
    match *deed {
        Deed::Write(segments) => sender.write(Some(segments)),
        Deed::Lose(count, at) => {
            sender.lose(count, at);
        }
        Deed::Timeout if sender.connection.tp.packets_out > 0 => sender.timeout(),
        Deed::Ece => {
            sender.ack(1, true);
        }
        Deed::LocalDrop => sender.local_drop(),
        Deed::Rtt(us) => {
            sender.set_rtt(us);
        }
        Deed::Timeout | Deed::Close => {}
    }
}

/// Server and prefix of the group of connections to an address.
fn name(address: IpAddr, plen4: u8, plen6: u8) -> String {
    let server = server(address);
    match address {
        IpAddr::V4(v4) => {
            let bits = u32::from(v4) & (u32::MAX << (32 - plen4));
            format!("10.0.{server}.0/24 to {}/{plen4}", Ipv4Addr::from(bits))
        }
        IpAddr::V6(v6) => {
            let bits = u128::from(v6) & (u128::MAX << (128 - plen6));
            let own = Ipv6Addr::new(0xfd00, 0, 0, server.into(), 0, 0, 0, 0);
            format!("{own}/64 to {}/{plen6}", Ipv6Addr::from(bits))
        }
    }
}

fn found(groups: &[(GroupKey, Group)]) -> BTreeMap<(String, u8), (u32, u64, u64)> {
    let living = groups.iter().filter(|(_, group)| group.members > 0);
    living
        .map(|(key, group)| {
            let name = format!("{} to {key}", key.server());
            ((name, key.slot), (group.members, group.cwnd_sum, group.ssthresh_sum))
        })
        .collect()
}

/// An algorithm with groups, the prefix lengths (IPv4, IPv6), and parameters that change its behaviour.
type Case = (&'static str, u8, u8, &'static [(&'static str, i64)]);

const CASES: &[Case] = &[
    ("heracles", 24, 64, &[]),
    ("heracles", 24, 64, &[("her_loss_mode", 1), ("her_leave_mode", 1), ("her_undo_event", 1)]),
    (
        "heracles",
        24,
        64,
        &[("her_loss_mode", 2), ("her_leave_on", 1), ("her_slots", 2), ("her_group_rtt", 2)],
    ),
    ("heracles", 24, 64, &[("her_join_others", 1), ("her_event_order", 1), ("her_loss_down_only", 0)]),
    ("tcbt", 32, 128, &[]),
    ("tcbe", 32, 128, &[]),
    ("tcbe", 32, 128, &[("tcb_conserve", 0), ("tcb_min_cwnd", 0)]),
    ("tcpint", 32, 128, &[]),
    ("dcac", 32, 128, &[]),
    ("dcac", 32, 128, &[("dca_ssthresh", 0), ("dca_min_range_us", 0)]),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn sums_are_those_of_the_members_and_nothing_is_left_when_all_have_closed(
        case in 0..CASES.len(),
        events in prop::collection::vec(event(), 1..250),
    ) {
        let (name, plen4, plen6, parameters) = CASES[case];
        let given = parameters.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        let instance = find(name).unwrap().instance(&given).unwrap();
        let mut world = World { instance, groups: Groups::new(), wire: Rc::default(), members: Vec::new(), now_us: 1_000_000 };
        for event in &events {
            world.perform(event);
            let groups = world.groups.of(&world.instance);
            prop_assert_eq!(found(&groups), world.expected(plen4, plen6), "{} after {:?}", name, event);
            for (_, sender) in &world.members {
                prop_assert!(sender.connection.tp.snd_cwnd >= 1, "{} after {:?}", name, event);
            }
        }
        for (_, sender) in &mut world.members {
            sender.close();
        }
        for (key, group) in world.groups.of(&world.instance) {
            prop_assert_eq!((group.members, group.cwnd_sum, group.ssthresh_sum), (0, 0, 0), "{} {}", name, key);
            if name == "tcpint" {
                prop_assert_eq!(&group.own[5..8], &[0, 0, 0], "seats and active members of {}", key);
            }
        }
    }
}

#[test]
fn a_full_table_leaves_connections_without_a_group() {
    let instance = find("heracles").unwrap().instance(&BTreeMap::new()).unwrap();
    let groups = Groups::new();
    for network in 0..4097_u32 {
        let to = Ipv4Addr::from(0x0a00_0001 + (network << 8));
        let config = Config { to: (to, 5001).into(), ..Config::default() };
        let mut sender =
            Sender::open_among(Arc::clone(&instance), config, Rc::clone(&groups), Rc::default(), 1_000_000);
        sender.write(Some(20));
        sender.round();
        assert_eq!(member(&sender.connection).in_group, network < 4096, "network {network}");
        assert_eq!(sender.connection.tp.snd_cwnd, 20, "Reno all the same");
    }
}

#[test]
fn instances_have_groups_of_their_own() {
    let groups = Groups::new();
    let config = Config::default();
    for _ in 0..2 {
        let instance = find("tcbe").unwrap().instance(&BTreeMap::new()).unwrap();
        let first =
            Sender::open_among(Arc::clone(&instance), config, Rc::clone(&groups), Rc::default(), 1_000_000);
        let second = Sender::open_among(instance, config, Rc::clone(&groups), Rc::default(), 1_000_000);
        assert_eq!((first.connection.tp.snd_cwnd, second.connection.tp.snd_cwnd), (10, 5));
    }
}

#[test]
fn each_change_of_a_group_is_recorded_with_its_connection() {
    let instance = find("heracles").unwrap().instance(&BTreeMap::new()).unwrap();
    let groups = Groups::new();
    let config =
        Config { initial_window: 20, to: (Ipv4Addr::new(10, 1, 2, 3), 40_001).into(), ..Config::default() };
    let mut sender = Sender::open_among(instance, config, Rc::clone(&groups), Rc::default(), 1_000_000);
    sender.write(Some(9));
    sender.round();
    sender.write(Some(9));
    sender.lose(1, 1);
    sender.round();
    sender.close();
    let records: Vec<_> = groups.take_records().into_iter().map(|(_, record)| record).collect();
    let told: Vec<_> = records.iter().map(|r| (r.event(), r.members, r.cwnd_sum, r.cwnd)).collect();
    assert_eq!(told, [("join", 1, 20, 20), ("loss", 1, 10, 10), ("leave", 0, 0, 0)]);
    assert_eq!(records[0].time_ns, 1_100_002_000);
    assert_eq!(records[0].key.to_string(), "10.1.2.0/24");
    assert_eq!(records[0].key.server(), "10.0.0.0/24");
    assert_eq!(records[0].remote().to_string(), "10.1.2.3:40001");
    assert_eq!(records[0].local().to_string(), "10.0.0.1:443");
    assert!(groups.take_records().is_empty());
}
