//! Service classes.

use super::droptail::Limits;
use super::{Backlog, Configured, Discipline, Fates, Queue, Queued};
use crate::packet::Packet;
use crate::random::{Element, Stream};
use crate::refused::{ConfigError, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use wirepaint_units::{BitRate, Time};

/// Most service classes of a queue.
const MOST_CLASSES: usize = 8;

/// Service classes by the packets' code point: a drop-tail queue each, strict priority between levels, weighted
/// shares within one (start-time fair queueing, Goyal, Vin, Cheng 1996).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The classes; exactly one names no code points and takes all that the others do not.
    pub classes: Vec<ServiceClass>,
}

/// A service class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceClass {
    /// Code points of its packets (RFC 2474), 0 to 63; the one class that names none has all others.
    #[serde(default)]
    pub dscp: Vec<u8>,
    /// Its level: one with a lower number is served first, whatever waits in the others.
    #[serde(default)]
    pub priority: u32,
    /// Its share among the classes of its level, in bytes.
    #[serde(default = "one")]
    pub weight: u32,
    /// Limit of its drop-tail queue in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Limit in wire bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Another discipline in place of the drop-tail queue; any but classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Box<Queue>>,
    /// Its most, in wire bits per second, whatever the others leave; null for all that they leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_bit_per_s: Option<BitRate>,
}

fn one() -> u32 {
    1
}

impl Configured for Config {
    fn check(&self, full_frame: u32) -> Result<(), ConfigError> {
        let classes = &self.classes;
        if !(1..=MOST_CLASSES).contains(&classes.len()) {
            return refuse("queue.classes", format!("{} classes", classes.len()), "1 to 8 classes");
        }
        let rest = classes.iter().filter(|class| class.dscp.is_empty()).count();
        if rest != 1 {
            let found = format!("{rest} classes without dscp");
            return refuse("queue.classes", found, "exactly one, which takes all other code points");
        }
        let mut taken = [false; 64];
        for (index, class) in classes.iter().enumerate() {
            let key = format!("queue.classes[{index}]");
            if !(1..=1000).contains(&class.weight) {
                return refuse(&format!("{key}.weight"), class.weight, "1 to 1000");
            }
            for dscp in &class.dscp {
                match taken.get_mut(usize::from(*dscp)) {
                    Some(taken) if !*taken => *taken = true,
                    _ => return refuse(&format!("{key}.dscp"), dscp, "0 to 63, each in one class"),
                }
            }
            Limits { packets: class.packets, bytes: class.bytes }.check_at(&key, full_frame)?;
            match &class.queue {
                Some(queue) if matches!(**queue, Queue::Classes(_)) => {
                    return refuse(&format!("{key}.queue"), "classes", "another discipline");
                }
                Some(_) if class.packets.or(class.bytes).is_some() => {
                    let accepted = "a limit in packets or bytes, or a queue with its own";
                    return refuse(&format!("{key}.queue"), "both", accepted);
                }
                Some(queue) => queue.check(full_frame)?,
                None => {}
            }
            if class.ceiling_bit_per_s == Some(BitRate(0)) {
                return refuse(&format!("{key}.ceiling_bit_per_s"), 0, "at least 1 bit/s");
            }
        }
        Ok(())
    }

    fn build<P: Packet + Debug + 'static>(&self, full_frame: u64, stream: Stream) -> Box<dyn Discipline<P>> {
        let mut seeds = stream;
        let queue = |class: &ServiceClass| {
            let own = Stream::new(seeds.bits(), Element::Queue);
            match &class.queue {
                Some(queue) => queue.build(full_frame, own),
                None => Limits { packets: class.packets, bytes: class.bytes }.build(full_frame, own),
            }
        };
        Box::new(Classes::new(&self.classes, queue))
    }
}

/// Code points of the DiffServ field (RFC 2474).
const CODE_POINTS: usize = 64;

/// Service classes: a queue each, strict priority between levels, weighted shares within one, ceilings.
///
/// ```text
/// the highest level that has packets is served; within it the class with the least start tag
/// start tag  = max(virtual time of the level, finish tag of the class)    when it is served
/// finish tag = start tag + bytes / weight;    virtual time = start tag of the packet last served
/// ```
///
/// This is start-time fair queueing (Goyal, Vin, Cheng 1996). While two classes of a level both have packets,
/// their bytes per weight differ by at most a packet of each. Tags are whole numbers, in units that every
/// weight divides.
///
/// A class with a ceiling is passed over until the time that its last packet takes at the ceiling is over. So it
/// sends without bursts, and what it leaves goes to the others. It keeps its tag meanwhile.
#[derive(Debug)]
pub(crate) struct Classes<P> {
    /// In order of priority.
    classes: Vec<Class<P>>,
    /// The class of each code point.
    of_code_point: [u8; CODE_POINTS],
    backlog: Backlog,
}

#[derive(Debug)]
struct Class<P> {
    level: u32,
    /// Increment of the tag per byte.
    step: u128,
    queue: Box<dyn Discipline<P>>,
    ceiling: Option<BitRate>,
    /// No packet leaves before.
    ready: Time,
    finish: u128,
    /// The virtual time of its level when it was last empty, or when it was last served.
    start: u128,
}

impl<P: Packet + Debug> Classes<P> {
    /// `config` was checked: one class names no code points and takes those that no other class names. `queue`
    /// makes the queue of a class.
    pub fn new(
        config: &[ServiceClass],
        mut queue: impl FnMut(&ServiceClass) -> Box<dyn Discipline<P>>,
    ) -> Classes<P> {
        let mut config: Vec<&ServiceClass> = config.iter().collect();
        config.sort_by_key(|class| class.priority);
        let unit = config.iter().fold(1, |unit, class| least_common_multiple(unit, class.weight.into()));
        let rest = config.iter().position(|class| class.dscp.is_empty()).expect("one takes the rest");
        let mut of_code_point = [rest as u8; CODE_POINTS];
        for (index, class) in config.iter().enumerate() {
            class.dscp.iter().for_each(|dscp| of_code_point[usize::from(*dscp)] = index as u8);
        }
        let class = |class: &&ServiceClass| Class {
            level: class.priority,
            step: unit / u128::from(class.weight),
            queue: queue(class),
            ceiling: class.ceiling_bit_per_s,
            ready: Time::ZERO,
            finish: 0,
            start: 0,
        };
        Classes { classes: config.iter().map(class).collect(), of_code_point, backlog: Backlog::default() }
    }

    /// The virtual time of a level: the largest start tag that was served in it.
    fn virtual_time(&self, level: u32) -> u128 {
        let of_level = self.classes.iter().filter(|class| class.level == level);
        of_level.map(|class| class.start).max().unwrap_or(0)
    }

    /// Counts all packets again: a discipline may drop packets whenever it is called.
    fn count(&mut self) {
        let backlogs = || self.classes.iter().map(|class| class.queue.backlog());
        self.backlog = Backlog {
            packets: backlogs().map(|backlog| backlog.packets).sum(),
            bytes: backlogs().map(|backlog| backlog.bytes).sum(),
        };
    }
}

impl<P: Packet + Debug> Discipline<P> for Classes<P> {
    fn enqueue(&mut self, now: Time, packet: Queued<P>, fates: &mut Fates<P>) {
        let index = usize::from(self.of_code_point[usize::from(packet.packet.dscp()) % CODE_POINTS]);
        let was_empty = self.classes[index].queue.backlog().packets == 0;
        let virtual_time = self.virtual_time(self.classes[index].level);
        let class = &mut self.classes[index];
        class.queue.enqueue(now, packet, fates);
        if was_empty {
            // A class gains no credit while it is empty.
            class.finish = class.finish.max(virtual_time);
        }
        self.count();
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates<P>) -> Option<Queued<P>> {
        let packet = loop {
            let waiting = self
                .classes
                .iter_mut()
                .filter(|class| class.queue.backlog().packets > 0 && class.ready <= now);
            let Some(class) = waiting.min_by_key(|class| (class.level, class.finish)) else { break None };
            // A discipline that drops its last packets gives none: then another class is served.
            if let Some(packet) = class.queue.dequeue(now, fates) {
                class.start = class.finish;
                class.finish += u128::from(packet.bytes) * class.step;
                if let Some(ceiling) = class.ceiling {
                    class.ready = class.ready.max(now) + ceiling.transmission_time(packet.bytes);
                }
                break Some(packet);
            }
        };
        self.count();
        packet
    }

    fn ready(&self) -> Option<Time> {
        let waiting = self.classes.iter().filter(|class| class.queue.backlog().packets > 0);
        waiting.map(|class| class.ready).min()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

fn least_common_multiple(a: u128, b: u128) -> u128 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

#[cfg(test)]
mod tests {
    use super::super::codel;
    use super::super::testing::{Numbered, ms};
    use super::*;
    use proptest::prelude::*;
    use wirepaint_units::Duration;

    fn class(dscp: &[u8], priority: u32, weight: u32) -> ServiceClass {
        let dscp = dscp.to_vec();
        ServiceClass {
            dscp,
            priority,
            weight,
            packets: None,
            bytes: None,
            queue: None,
            ceiling_bit_per_s: None,
        }
    }

    fn classes(config: &[ServiceClass]) -> Box<dyn Discipline<Numbered>> {
        Config { classes: config.to_vec() }.build(1514, Stream::new(1, Element::Queue))
    }

    /// The `number` of a test's packet is its code point.
    fn packet(dscp: u8, bytes: u64) -> Queued<Numbered> {
        let packet = Numbered { number: dscp.into(), flow: 0, ecn: false, marked: false };
        Queued { packet, entered: ms(0), bytes, hold: Duration::ZERO }
    }

    fn filled(config: &[ServiceClass], packets: &[(u8, u64)]) -> Box<dyn Discipline<Numbered>> {
        let (mut queue, mut fates) = (classes(config), Fates::default());
        for (dscp, bytes) in packets {
            queue.enqueue(ms(0), packet(*dscp, *bytes), &mut fates);
        }
        queue
    }

    fn served(queue: &mut Box<dyn Discipline<Numbered>>, count: usize) -> Vec<u64> {
        let mut fates = Fates::default();
        let next = || queue.dequeue(ms(1), &mut fates).map(|queued| queued.packet.number);
        std::iter::from_fn(next).take(count).collect()
    }

    #[test]
    fn gold_silver_and_bronze_share_50_to_30_to_20() {
        let config = [class(&[10], 0, 50), class(&[20], 0, 30), class(&[], 0, 20)];
        let packets: Vec<(u8, u64)> = (0..300).map(|n| ([10, 20, 0][n % 3], 1514)).collect();
        let sent = served(&mut filled(&config, &packets), 100);
        let count = |dscp| sent.iter().filter(|seen| **seen == dscp).count();
        assert_eq!([count(10), count(20), count(0)], [50, 30, 20]);
    }

    #[test]
    fn a_lower_level_waits_until_the_higher_ones_are_empty() {
        let config = [class(&[], 1, 1), class(&[46], 0, 1)];
        let mut queue = filled(&config, &[(0, 100), (46, 1514), (0, 100), (46, 1514)]);
        assert_eq!(served(&mut queue, 9), [46, 46, 0, 0]);
        assert_eq!(queue.backlog(), Backlog::default());
    }

    #[test]
    fn each_class_has_a_limit_of_its_own() {
        let config = [ServiceClass { packets: Some(2), ..class(&[46], 0, 1) }, class(&[], 0, 1)];
        let (mut queue, mut fates) = (classes(&config), Fates::default());
        for dscp in [46, 0, 46, 46, 0, 0] {
            queue.enqueue(ms(0), packet(dscp, 1514), &mut fates);
        }
        assert_eq!((queue.backlog().packets, fates.queue_drops), (5, 1));
        assert_eq!(fates.dropped[0].packet.number, 46);
    }

    #[test]
    fn a_class_sends_no_faster_than_its_ceiling_and_the_others_get_the_rest() {
        let second = 1_000_000_000;
        let capped = ServiceClass { ceiling_bit_per_s: Some(BitRate(8_000_000)), ..class(&[46], 0, 9) };
        let packets: Vec<(u8, u64)> = (0..4000).map(|n| ([46, 0][n % 2], 1000)).collect();
        let (mut queue, mut fates) = (filled(&[capped, class(&[], 0, 1)], &packets), Fates::default());
        // A link of 16 Mbit/s for a second: 2,000 packets of 1,000 bytes, 1,000 of them at the ceiling.
        let take = |n: u64| queue.dequeue(Time(n * second / 2000), &mut fates).unwrap().packet.number;
        let sent: Vec<u64> = (0..2000).map(take).collect();
        assert_eq!(sent.iter().filter(|dscp| **dscp == 46).count(), 1000);
        // Alone, it waits for its time.
        let mut queue = filled(
            &[
                ServiceClass { ceiling_bit_per_s: Some(BitRate(8_000)), ..class(&[46], 0, 1) },
                class(&[], 0, 1),
            ],
            &[(46, 1000), (46, 1000)],
        );
        assert!(queue.dequeue(ms(0), &mut fates).is_some() && queue.dequeue(ms(1), &mut fates).is_none());
        assert_eq!(queue.ready(), Some(Time(second)));
        assert!(queue.dequeue(Time(second), &mut fates).is_some());
    }

    #[test]
    fn each_class_may_have_a_discipline_of_its_own() {
        let (target_ns, interval_ns) = (Duration::from_millis(5), Duration::from_millis(100));
        let codel = Queue::Codel(codel::Config { target_ns, interval_ns, packets: 1000, ecn: false });
        let managed = ServiceClass { queue: Some(Box::new(codel)), ..class(&[46], 0, 1) };
        let packets: Vec<(u8, u64)> = (0..2000).map(|n| ([46, 0][n % 2], 1514)).collect();
        let mut queue = filled(&[managed.clone(), class(&[], 0, 1)], &packets);
        let mut fates = Fates::default();
        // A packet a millisecond: CoDel's second half waits for a second and more, and it drops.
        let left = (0..).map_while(|n| queue.dequeue(ms(n), &mut fates)).count() as u64;
        assert!(fates.aqm_drops > 0 && fates.dropped.iter().all(|drop| drop.packet.number == 46));
        assert_eq!((left + fates.aqm_drops, queue.backlog()), (2000, Backlog::default()));
        let inner = ServiceClass { packets: Some(9), ..managed };
        assert!(Config { classes: vec![inner, class(&[], 0, 1)] }.check(1514).is_err());
    }

    #[test]
    fn a_class_that_was_idle_claims_nothing_for_that_time() {
        let config = [class(&[46], 0, 1), class(&[], 0, 1)];
        let mut queue = filled(&config, &[(0, 1000); 20]);
        assert_eq!(served(&mut queue, 10), [0; 10]);
        let mut fates = Fates::default();
        (0..10).for_each(|_| queue.enqueue(ms(2), packet(46, 1000), &mut fates));
        let sent = served(&mut queue, 10);
        // Half of them, or one more: it may be that packet ahead.
        assert!((5..=6).contains(&sent.iter().filter(|seen| **seen == 46).count()), "{sent:?}");
    }

    proptest! {
        #[test]
        fn two_classes_with_packets_differ_per_weight_by_at_most_a_packet_of_each(
            weights in prop::collection::vec(1_u32..1001, 2..6),
            sizes in prop::collection::vec(28_u64..1515, 40..200),
        ) {
            let config: Vec<ServiceClass> = weights.iter().enumerate()
                .map(|(n, weight)| class(if n == 0 { &[] } else { std::slice::from_ref(&CODES[n]) }, 0, *weight))
                .collect();
            let packets: Vec<(u8, u64)> = sizes.iter().flat_map(|bytes| {
                (0..weights.len()).map(|n| (CODES[n], *bytes))
            }).collect();
            let mut queue = filled(&config, &packets);
            let mut left: Vec<usize> = vec![sizes.len(); weights.len()];
            let mut bytes: Vec<u64> = vec![0; weights.len()];
            let mut fates = Fates::default();
            while left.iter().all(|packets| *packets > 0) {
                let sent = queue.dequeue(ms(1), &mut fates).unwrap();
                let n = CODES.iter().position(|code| u64::from(*code) == sent.packet.number).unwrap();
                bytes[n] += sent.bytes;
                left[n] -= 1;
                for a in 0..weights.len() {
                    for b in 0..a {
                        let (wa, wb) = (u64::from(weights[a]), u64::from(weights[b]));
                        // | bytes_a / w_a - bytes_b / w_b | <= 1514 / w_a + 1514 / w_b
                        prop_assert!((bytes[a] * wb).abs_diff(bytes[b] * wa) <= 1514 * (wa + wb));
                    }
                }
            }
        }
    }

    const CODES: [u8; 6] = [0, 8, 16, 24, 32, 46];
}
