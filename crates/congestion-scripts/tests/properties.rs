//! Properties of every algorithm under any behaviour of the application and the path.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirepaint_congestion_native::{Algorithm, CaState, Connection, Instance, algorithms, find};
use wirepaint_congestion_scripts::sender::{Config, Sender};

/// The receiver's window in segments, which keeps flights small.
const RECEIVE_WINDOW: u32 = 60;
const RTT_US: u64 = 50_000;

/// An event of the application or the path. Counts beyond the flight size do nothing.
#[derive(Clone, Debug)]
enum Event {
    Write(u64),
    Bulk,
    Stop,
    Ack(u64, bool),
    Stretch(u64),
    Round,
    Lose(usize, usize),
    Hold(usize, usize),
    Release,
    Timeout,
    Probe,
    LocalDrop,
    Wait(u64),
    Rtt(u64),
    Switch(usize),
}

fn event() -> impl Strategy<Value = Event> {
    use Event::*;
    prop_oneof![
        4 => (1u64..100).prop_map(Write),
        1 => Just(Bulk),
        1 => Just(Stop),
        6 => (1u64..40, prop::bool::weighted(0.1)).prop_map(|(count, ece)| Ack(count, ece)),
        2 => (1u64..10).prop_map(Stretch),
        4 => Just(Round),
        3 => (1usize..8, 1usize..40).prop_map(|(count, at)| Lose(count, at)),
        1 => (1usize..5, 1usize..40).prop_map(|(count, at)| Hold(count, at)),
        1 => Just(Release),
        1 => Just(Timeout),
        1 => Just(Probe),
        1 => Just(LocalDrop),
        3 => (1_000u64..3_000_000).prop_map(Wait),
        1 => (100_000_000u64..900_000_000).prop_map(Wait),
        1 => (RTT_US..10 * RTT_US).prop_map(Rtt),
        1 => any::<usize>().prop_map(Switch),
    ]
}

fn perform(sender: &mut Sender, event: &Event) {
    let outstanding = sender.connection.tp.packets_out > 0;
    match *event {
        Event::Write(segments) => sender.write(Some(segments)),
        Event::Bulk => sender.write(None),
        Event::Stop => sender.stop_writing(),
        Event::Ack(count, ece) => drop(sender.ack(count, ece)),
        Event::Stretch(count) => drop(sender.stretch(count, false)),
        Event::Round => sender.round(),
        Event::Lose(count, at) => drop(sender.lose(count, at)),
        Event::Hold(count, at) => drop(sender.hold(count, at)),
        Event::Release => sender.release_held(),
        Event::Timeout if outstanding => sender.timeout(),
        Event::Probe if outstanding && sender.state() == CaState::Open => sender.probe(),
        Event::LocalDrop => sender.local_drop(),
        // An endless transfer would fill long waits with round trips.
        Event::Wait(us) => sender.advance(if sender.finished() { us } else { us.min(4 * RTT_US) }),
        Event::Rtt(us) => drop(sender.set_rtt(us)),
        Event::Switch(to) => sender.switch(defaults(find(playable()[to % playable().len()]).unwrap())),
        Event::Timeout | Event::Probe => {}
    }
}

fn defaults(algorithm: &'static Algorithm) -> Arc<Instance> {
    algorithm.instance(&BTreeMap::new()).unwrap()
}

/// Names of the algorithms that the sender supports: it has no rate samples for `cong_control`.
fn playable() -> Vec<&'static str> {
    let all = algorithms().iter();
    let plays = |algorithm: &&&'static Algorithm| !Connection::new(defaults(algorithm)).has_cong_control();
    all.filter(plays).map(|algorithm| algorithm.name()).collect()
}

type Given = (&'static str, BTreeMap<String, i64>);

/// An algorithm whose parameters are each the default, the smallest or the largest value.
fn given() -> impl Strategy<Value = Given> {
    (prop::sample::select(playable()), prop::collection::vec(0..4usize, 32)).prop_map(|(name, choices)| {
        let chosen = find(name).unwrap().parameters().zip(choices).map(|(parameter, choice)| {
            let value = [parameter.default, parameter.default, parameter.min, parameter.max][choice];
            (parameter.name().to_owned(), value as i64)
        });
        (name, chosen.collect())
    })
}

fn open(instance: Arc<Instance>, initial_window: u32, after_idle: bool) -> Sender {
    let mut sender =
        Sender::open(instance, Config { initial_window, rtt_us: RTT_US, after_idle, ..Config::default() });
    sender.set_receive_window(RECEIVE_WINDOW);
    sender
}

/// Least ssthresh after a reduction: two segments (RFC 5681), one in newCWV's own recovery.
fn least_ssthresh(algorithm: &Algorithm) -> u32 {
    if algorithm.name() == "newcwv" { 1 } else { 2 }
}

/// The windows after each event; panics where one is out of bounds.
fn windows(mut sender: Sender, events: &[Event]) -> Vec<(u32, u32, u32)> {
    let mut seen = Vec::new();
    for event in events {
        let before = sender.state();
        perform(&mut sender, event);
        let algorithm = sender.connection.algorithm();
        let (name, state, tp) = (algorithm.name(), sender.state(), &sender.connection.tp);
        assert!(tp.snd_cwnd >= 1, "{name}: cwnd 0 after {event:?}");
        assert!(tp.snd_cwnd <= tp.snd_cwnd_clamp, "{name}: cwnd {} after {event:?}", tp.snd_cwnd);
        assert!(tp.snd_ssthresh >= 1, "{name}: ssthresh 0 after {event:?}");
        if state > CaState::Disorder && before <= CaState::Disorder {
            let least = least_ssthresh(algorithm);
            assert!(tp.snd_ssthresh >= least, "{name}: ssthresh {} after {event:?}", tp.snd_ssthresh);
        }
        seen.push((tp.snd_cwnd, tp.snd_ssthresh, tp.in_flight()));
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_stay_in_bounds_and_the_same_events_give_the_same_windows(
        (name, parameters) in given(),
        initial_window in 1u32..60,
        after_idle: bool,
        events in prop::collection::vec(event(), 1..60),
    ) {
        let instance = find(name).unwrap().instance(&parameters).unwrap();
        let once = windows(open(instance.clone(), initial_window, after_idle), &events);
        let again = windows(open(instance, initial_window, after_idle), &events);
        prop_assert_eq!(once, again);
    }

    #[test]
    fn gated_windows_do_not_grow_while_the_application_limits_the_flight(
        name in prop::sample::select(GATED),
        initial_window in 4u32..60,
        events in prop::collection::vec(event(), 0..30),
    ) {
        let algorithm = find(name).unwrap();
        let mut sender = open(defaults(algorithm), initial_window, false);
        for event in events.iter().filter(|event| !matches!(event, Event::Switch(_))) {
            perform(&mut sender, event);
        }
        // Everything arrives, and the window is opened beyond what is sent from here on.
        sender.stop_writing();
        for _ in 0..100 {
            sender.release_held();
            if sender.finished() {
                break;
            }
            sender.timeout();
            sender.round();
        }
        prop_assume!(sender.finished());
        sender.write(Some(300));
        for _ in 0..100 {
            if !sender.finished() {
                sender.round();
            }
        }
        prop_assume!(sender.finished() && sender.connection.tp.snd_cwnd >= 8);
        sender.write(Some(1));
        sender.round();
        let before = sender.connection.tp.snd_cwnd;
        for _ in 0..30 {
            sender.write(Some(1));
            sender.round();
            prop_assert!(sender.connection.tp.snd_cwnd <= before, "{}: grew to {}", name, sender.connection.tp.snd_cwnd);
        }
    }
}

/// Algorithms that do not grow with a single segment in flight. std and newcwv grow as in RFC 5681, Vegas as
/// in Linux.
const GATED: &[&str] = &["bic", "cubic9438", "cwv", "fld", "hybla", "westwood"];
