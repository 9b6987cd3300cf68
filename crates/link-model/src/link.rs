use crate::LinkModel;
use crate::bottleneck::{Bottleneck, OPPORTUNITY_WORK, done_at, work_done};
use crate::carriable::Carriable;
use crate::config::{Action, Change, Direction};
use crate::delay::{Delay, Latency, least_delay};
use crate::loss::LossModel;
use crate::packet::{Drop, Dropped, Packet};
use crate::plain::Plain;
use crate::queue::{Backlog, Discipline, Fates, Queued};
use crate::random::{Element, Stream};
use crate::refused::ConfigError;
use crate::script::Script;
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt::Debug;
use wirepaint_units::{Duration, Time};

/// The model of one direction.
///
/// `offered = delivered + dropped by cause + inside` holds at every moment ([`Counters`]). Dropped
/// packets wait for [`take_dropped`](Self::take_dropped).
#[derive(Debug)]
pub struct Link<P> {
    overhead_bytes: u32,
    loss: LossModel,
    script: Script,
    /// Replaces the queue, the bottleneck and the delay if they are simple enough.
    plain: Option<Plain<P>>,
    queue: Box<dyn Discipline<P>>,
    bottleneck: Bottleneck,
    transmission: Option<Transmission<P>>,
    /// When the next packet may be sent, if all that wait must wait.
    ready: Option<Time>,
    delay: Delay<P>,
    /// Smallest delay of the run. The bottleneck is evaluated that far behind the clock, so that an arrival
    /// that is read late still meets the state of its own time.
    lag: Duration,
    changes: VecDeque<Change>,
    /// Changes whose origin is not known yet.
    held: Vec<Change>,
    /// Time of the latest event at the queue or the bottleneck; no arrival is earlier.
    latest: Time,
    largest_shift: Duration,
    fates: Fates<P>,
    offered: Backlog,
    delivered: Backlog,
    carriable: Carriable,
    /// Time up to which the queue and the bottleneck were evaluated.
    evaluated: Time,
    /// Time up to which a plain link was popped; it must be evaluated up to then before any other event.
    popped: Time,
}

/// The packet that the bottleneck is sending.
#[derive(Debug)]
struct Transmission<P> {
    packet: Queued<P>,
    /// Work left at `since`, in bit nanoseconds.
    work: u64,
    since: Time,
    /// When it will be done at the present rate; unused with a trace.
    done: Time,
}

/// Counters of a link so far, printed in summaries of runs. Bytes are wire bytes: IP bytes plus the link's
/// overhead. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets that arrived.
    pub offered_packets: u64,
    /// Bytes that arrived.
    pub offered_bytes: u64,
    /// Packets that left at the far end.
    pub delivered_packets: u64,
    /// Bytes that left at the far end.
    pub delivered_bytes: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets dropped by the queue discipline before it was full.
    pub aqm_drops: u64,
    /// Packets that the loss model dropped.
    pub random_losses: u64,
    /// Bytes of all dropped packets.
    pub dropped_bytes: u64,
    /// Packets marked with Congestion Experienced.
    pub ecn_marks: u64,
    /// Packets in the queue, in transmission or under way.
    pub inside_packets: u64,
    /// Packets waiting in the queue.
    pub queue_packets: u64,
    /// Bytes waiting in the queue.
    pub queue_bytes: u64,
    /// Largest shift of an arrival to a later time because its caller had already popped past it
    /// ([`LinkModel::push`]). Zero unless the caller reads arrivals later than [`Link::lag`].
    pub largest_shift: Duration,
    /// Bytes that the bottleneck could have carried; `None` if its capacity was ever unlimited.
    pub capacity_bytes: Option<u64>,
}

impl Counters {
    /// Packets delivered, dropped or inside. Equal to the offered packets unless the model has a bug.
    pub fn accounted_packets(&self) -> u64 {
        self.delivered_packets + self.queue_drops + self.aqm_drops + self.random_losses + self.inside_packets
    }
}

enum Event {
    Transmission,
    Ready,
    Change,
}

impl<P: Packet + Debug + 'static> Link<P> {
    /// A link at time zero for IP packets of at most 1500 bytes, as on Ethernet. `seed` sets all of
    /// its random elements; give the two directions of a path different ones.
    pub fn new(config: &Direction, seed: u64) -> Result<Link<P>, ConfigError> {
        Link::with_mtu(config, 1500, seed)
    }

    /// The same for another largest IP packet.
    pub fn with_mtu(config: &Direction, mtu: u32, seed: u64) -> Result<Link<P>, ConfigError> {
        config.check(mtu)?;
        let full_frame = u64::from(mtu + config.overhead_bytes);
        let latency = || Latency::new(config.delay_ns, config.jitter, Stream::new(seed, Element::Jitter));
        Ok(Link {
            overhead_bytes: config.overhead_bytes,
            loss: LossModel::new(config.loss, Stream::new(seed, Element::Loss)),
            script: Script::new(&config.scripted),
            plain: Plain::new(config, latency()),
            queue: config.queue.build(full_frame, Stream::new(seed, Element::Queue)),
            bottleneck: Bottleneck::new(&config.capacity, Time::ZERO),
            transmission: None,
            ready: None,
            delay: Delay::new(latency()),
            lag: least_delay(config),
            changes: config.changes.iter().cloned().collect(),
            held: Vec::new(),
            latest: Time::ZERO,
            largest_shift: Duration::ZERO,
            fates: Fates::default(),
            offered: Backlog::default(),
            delivered: Backlog::default(),
            carriable: Carriable::new(config),
            evaluated: Time::ZERO,
            popped: Time::ZERO,
        })
    }

    /// Holds the scheduled changes back until [`count_changes_from`](Self::count_changes_from). Call before
    /// anything else.
    pub fn hold_changes(&mut self) {
        self.held = self.changes.drain(..).collect();
        self.carriable.change(&[]);
    }

    /// Schedules the changes that are held, at their times after `origin`. Those that are due act with the next
    /// call.
    pub fn count_changes_from(&mut self, origin: Time) {
        let later = origin.since(Time::ZERO);
        let held = std::mem::take(&mut self.held);
        self.changes =
            held.into_iter().map(|change| Change { at_ns: change.at_ns + later, ..change }).collect();
        self.carriable.change(self.changes.make_contiguous());
    }

    /// How far the queue may be evaluated behind `now` without missing a departure. Packets that are read
    /// that late still meet the state of their time.
    pub fn lag(&self) -> Duration {
        self.lag
    }

    /// Evaluates the queue and the bottleneck up to `now`, so that their [`counters`](Self::counters) are as
    /// of that time. Not needed for anything else.
    pub fn evaluate(&mut self, now: Time) {
        let now = now.max(std::mem::take(&mut self.popped));
        self.evaluated = self.evaluated.max(now);
        if let Some(plain) = &mut self.plain {
            self.latest = self.latest.max(plain.evaluate(now));
            return;
        }
        while let Some((time, event)) = self.next_event().filter(|(time, _)| *time <= now) {
            self.latest = self.latest.max(time);
            match event {
                Event::Transmission => self.transmit(time),
                Event::Ready => self.start(time, 0),
                Event::Change => self.change(time),
            }
        }
    }

    /// Whether a packet's departure is final when it arrives.
    pub fn settles_at_once(&self) -> bool {
        self.plain.is_some()
    }

    /// Departure of the packet that was accepted last. Only for a link that [settles at
    /// once](Self::settles_at_once).
    pub fn last_departure(&self) -> Option<Time> {
        self.plain.as_ref().map(Plain::last_due)
    }

    /// The packets inside with their departures, in order. Only for such links.
    pub fn departures(&self) -> impl Iterator<Item = (Time, &P)> {
        self.plain.iter().flat_map(Plain::departures)
    }

    /// Transit time of a packet through the empty link, its least. Only for such links.
    pub fn least_transit(&self, packet: &P) -> Duration {
        let bytes = u64::from(packet.ip_bytes()) + u64::from(self.overhead_bytes);
        self.plain.as_ref().map_or(Duration::ZERO, |plain| plain.least_transit(bytes))
    }

    /// The packet behind the bottleneck that will be popped next, if it is known yet.
    pub fn front(&self) -> Option<&P> {
        match &self.plain {
            Some(plain) => plain.front(),
            None => self.delay.front(),
        }
    }

    /// Whether dropped packets wait to be taken.
    pub fn has_dropped(&self) -> bool {
        !self.fates.dropped.is_empty()
    }

    /// Takes the oldest dropped packet. Call until `None` after each `push` and `pop`.
    pub fn take_dropped(&mut self) -> Option<Dropped<P>> {
        self.fates.dropped.pop_front()
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        let (backlog, inside_packets) = match &self.plain {
            Some(plain) => (plain.backlog(), plain.len() as u64),
            None => {
                let backlog = self.queue.backlog();
                let sending = u64::from(self.transmission.is_some());
                (backlog, backlog.packets + sending + self.delay.len() as u64)
            }
        };
        Counters {
            offered_packets: self.offered.packets,
            offered_bytes: self.offered.bytes,
            delivered_packets: self.delivered.packets,
            delivered_bytes: self.delivered.bytes,
            queue_drops: self.fates.queue_drops,
            aqm_drops: self.fates.aqm_drops,
            random_losses: self.fates.losses,
            dropped_bytes: self.fates.dropped_bytes,
            ecn_marks: self.fates.marks,
            inside_packets,
            queue_packets: backlog.packets,
            queue_bytes: backlog.bytes,
            largest_shift: self.largest_shift,
            capacity_bytes: self.carriable.bytes(self.evaluated),
        }
    }

    /// The next event at the bottleneck. At equal times a transmission ends first.
    fn next_event(&self) -> Option<(Time, Event)> {
        let change = self.changes.front().map(|change| change.at_ns);
        let transmission = match &self.bottleneck {
            Bottleneck::Trace(opportunities) if self.is_busy() => Some(opportunities.time()),
            Bottleneck::Trace(_) => None,
            _ => self.transmission.as_ref().map(|t| t.done).or(self.ready),
        };
        let sends = if self.transmission.is_some() || self.ready.is_none() {
            Event::Transmission
        } else {
            Event::Ready
        };
        match (transmission, change) {
            (Some(t), Some(c)) if c < t => Some((c, Event::Change)),
            (Some(t), _) => Some((t, sends)),
            (None, Some(c)) => Some((c, Event::Change)),
            (None, None) => None,
        }
    }

    fn is_busy(&self) -> bool {
        self.transmission.is_some() || self.queue.backlog().packets > 0
    }

    /// Ends the transmission of a packet, or uses an opportunity of a trace.
    fn transmit(&mut self, now: Time) {
        match &mut self.bottleneck {
            Bottleneck::Unlimited => unreachable!("nothing waits for an unlimited bottleneck"),
            Bottleneck::Rate(rate) => {
                let rate = *rate;
                let sent = self.transmission.take().expect("a transmission ends");
                // The packet left part of a nanosecond's work: the next one gets it, so that a busy link
                // stays exact.
                let ahead = work_done(rate, now.since(sent.since)) - sent.work;
                self.delay.enter(now, sent.packet);
                self.start(now, ahead);
            }
            Bottleneck::Trace(opportunities) => {
                opportunities.advance();
                self.use_opportunity(now);
            }
        }
    }

    /// Sends packets that fit into one opportunity. Its rest is lost when the queue is empty.
    fn use_opportunity(&mut self, now: Time) {
        let mut work = OPPORTUNITY_WORK;
        while work > 0 {
            if self.transmission.is_none() {
                self.start(now, 0);
            }
            let Some(transmission) = &mut self.transmission else { return };
            let done = work.min(transmission.work);
            transmission.work -= done;
            work -= done;
            if transmission.work == 0 {
                let sent = self.transmission.take().expect("just seen");
                self.delay.enter(now, sent.packet);
            }
        }
    }

    /// Takes the next packet from the queue into transmission; `ahead` of its work is done.
    fn start(&mut self, now: Time, ahead: u64) {
        self.ready = None;
        let Some(packet) = self.queue.dequeue(now, &mut self.fates) else {
            if matches!(self.bottleneck, Bottleneck::Rate(_)) {
                self.ready = self.queue.ready();
            }
            return;
        };
        let work = self.bottleneck.work(packet.packet.ip_bytes(), self.overhead_bytes).saturating_sub(ahead);
        let done = match &self.bottleneck {
            Bottleneck::Rate(rate) => done_at(*rate, now, work),
            _ => Time::MAX,
        };
        self.transmission = Some(Transmission { packet, work, since: now, done });
    }

    /// Applies the next scheduled change.
    fn change(&mut self, now: Time) {
        let change = self.changes.pop_front().expect("a change is due");
        let latency = &mut self.delay.latency;
        latency.delay = change.delay_ns.unwrap_or(latency.delay);
        latency.jitter = change.jitter.unwrap_or(latency.jitter);
        if let Some(loss) = change.loss {
            self.loss.change(loss);
        }
        let Some(capacity) = change.capacity else { return };
        if let (Bottleneck::Rate(rate), Some(t)) = (&self.bottleneck, &mut self.transmission) {
            t.work = t.work.saturating_sub(work_done(*rate, now.since(t.since)));
        }
        self.bottleneck = Bottleneck::new(&capacity, now);
        match &self.bottleneck {
            Bottleneck::Unlimited => {
                if let Some(sent) = self.transmission.take() {
                    self.delay.enter(now, sent.packet);
                }
                while let Some(packet) = self.queue.dequeue(now, &mut self.fates) {
                    self.delay.enter(now, packet);
                }
            }
            Bottleneck::Rate(rate) => match &mut self.transmission {
                Some(t) => {
                    t.since = now;
                    t.done = done_at(*rate, now, t.work);
                }
                None => self.start(now, 0),
            },
            Bottleneck::Trace(_) => {}
        }
    }
}

impl<P: Packet + Debug + 'static> LinkModel<P> for Link<P> {
    fn push(&mut self, now: Time, packet: P) {
        // A plain link evaluates earlier events itself, if they matter for this packet.
        if self.plain.is_none() || now < self.popped {
            self.evaluate(now);
        }
        let arrived = now;
        let now = now.max(self.latest);
        self.largest_shift = self.largest_shift.max(now.since(arrived));
        self.latest = now;
        self.evaluated = self.evaluated.max(now);
        let bytes = u64::from(packet.ip_bytes()) + u64::from(self.overhead_bytes);
        self.offered.packets += 1;
        self.offered.bytes += bytes;
        // Each element advances with each packet, independently of the other.
        let lost = self.loss.loses();
        let scripted = if self.script.is_over() { None } else { self.script.next(packet.counted_as()) };
        let queued = |packet| Queued { packet, entered: now, bytes, hold: Duration::ZERO };
        if lost || scripted == Some(Action::Drop) {
            return self.fates.drop(now, Drop::Loss, queued(packet));
        }
        if let Some(plain) = &mut self.plain {
            if let Err(packet) = plain.push(now, packet, bytes) {
                self.fates.drop(now, Drop::Queue, queued(packet));
            }
            return;
        }
        let mut packet = queued(packet);
        match scripted {
            Some(Action::Hold { extra_ns }) => packet.hold = extra_ns,
            Some(Action::Mark) => _ = self.fates.mark(&mut packet.packet),
            _ => {}
        }
        if matches!(self.bottleneck, Bottleneck::Unlimited) {
            return self.delay.enter(now, packet);
        }
        let idle = !self.is_busy();
        self.queue.enqueue(now, packet, &mut self.fates);
        match &mut self.bottleneck {
            Bottleneck::Trace(opportunities) if idle => opportunities.skip_past(now),
            Bottleneck::Rate(_) if self.transmission.is_none() => self.start(now, 0),
            _ => {}
        }
    }

    fn pop(&mut self, now: Time) -> Option<(Time, P)> {
        // A packet that leaves the bottleneck after `now - lag` is not due by `now`.
        let reached = Time(now.0.saturating_sub(self.lag.0));
        let (due, bytes, packet) = match &mut self.plain {
            Some(plain) => {
                self.popped = self.popped.max(reached);
                plain.pop(now)?
            }
            None => {
                self.evaluate(reached);
                self.delay.pop(now).map(|(due, queued)| (due, queued.bytes, queued.packet))?
            }
        };
        self.delivered.packets += 1;
        self.delivered.bytes += bytes;
        Some((due, packet))
    }

    fn next_departure(&self) -> Option<Time> {
        if let Some(plain) = &self.plain {
            return plain.next_due();
        }
        let event = if self.is_busy() { self.next_event() } else { None };
        let event = event.map(|(time, _)| time + self.lag).filter(|time| *time < Time::MAX);
        match (self.delay.next_due(), event) {
            (Some(due), Some(event)) => Some(due.min(event)),
            (due, event) => due.or(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Capacity, Counted, Jitter, Limits, Loss, Queue};
    use proptest::prelude::*;
    use wirepaint_units::BitRate;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Sized(u32);

    impl Packet for Sized {
        fn ip_bytes(&self) -> u32 {
            self.0
        }
        fn is_ecn_capable(&self) -> bool {
            false
        }
        fn mark_congestion(&mut self) {}
        fn flow(&self) -> u64 {
            0
        }
        fn dscp(&self) -> u8 {
            0
        }
        fn counted_as(&self) -> Option<Counted> {
            None
        }
    }

    /// A plain link, and a link with separate parts that must behave equally.
    fn both(
        rate: u64,
        (delay, jitter): (u64, Jitter),
        limits: (Option<u64>, Option<u64>),
        probability: f64,
    ) -> [Link<Sized>; 2] {
        let config = Direction {
            capacity: Capacity::Rate { bit_per_s: BitRate(rate) },
            delay_ns: Duration(delay),
            jitter,
            loss: Loss::Independent { probability },
            queue: Queue::Droptail(Limits { packets: limits.0, bytes: limits.1 }),
            changes: vec![],
            scripted: vec![],
            overhead_bytes: 14,
        };
        let plain = Link::new(&config, 7).unwrap();
        let mut parts = Link::new(&config, 7).unwrap();
        assert!(plain.plain.is_some());
        parts.plain = None;
        [plain, parts]
    }

    #[test]
    fn arrivals_read_later_than_a_pop_are_not_shifted() {
        let mut links = both(1_000_000, (0, Jitter::None), (None, None), 0.0);
        for link in &mut links {
            assert_eq!(link.pop(Time(2_000_000)), None);
            link.push(Time(0), Sized(100));
            link.push(Time(0), Sized(20));
            link.evaluate(Time(0));
            let counters = link.counters();
            assert_eq!((counters.largest_shift, counters.queue_packets), (Duration::ZERO, 1));
        }
    }

    proptest! {
        #[test]
        fn a_plain_link_does_what_its_parts_do(
            rate in prop_oneof![10_000_u64..1_000_000, 1_000_000_u64..100_000_000, 100_000_000_u64..1_000_000_000_001],
            delay in 0_u64..20_000_000,
            jitter in prop_oneof![
                Just(Jitter::None),
                (0_u64..3_000_000).prop_map(|ns| Jitter::Uniform { range_ns: Duration(ns), reorder: false }),
                (0_u64..1_000_000).prop_map(|ns| Jitter::Normal { stddev_ns: Duration(ns), reorder: false }),
            ],
            limits in (prop::option::of(1_u64..30), prop::option::of(1_514_u64..40_000)),
            probability in prop_oneof![Just(0.0), 0.0..0.3],
            // Gap to the next step, bytes of an arrival or `None` for a pop, its lateness, and whether the
            // link is evaluated after it.
            steps in prop::collection::vec(
                (0_u64..1_000_000, prop::option::of(20_u32..1501), 0_u64..3_000_000, any::<bool>()), 1..200
            ),
        ) {
            let [mut plain, mut parts] = both(rate, (delay, jitter), limits, probability);
            let mut now = Time::ZERO;
            for (gap, arrival, late, brought) in steps {
                now += Duration(gap);
                if let Some(bytes) = arrival {
                    plain.push(now, Sized(bytes));
                    parts.push(now, Sized(bytes));
                } else {
                    // Later arrivals may precede this pop, as when an emulator reads them late.
                    let until = now + Duration(late);
                    loop {
                        let departure = plain.pop(until);
                        prop_assert_eq!(departure, parts.pop(until));
                        if departure.is_none() { break }
                    }
                }
                loop {
                    let dropped = plain.take_dropped();
                    prop_assert_eq!(&dropped, &parts.take_dropped());
                    if dropped.is_none() { break }
                }
                if brought {
                    plain.evaluate(now);
                    parts.evaluate(now);
                    prop_assert_eq!(plain.counters(), parts.counters());
                    let next = [plain.next_departure(), parts.next_departure()];
                    // The parts draw a packet's jitter when its transmission ends.
                    prop_assert!(next[0] == next[1] || jitter != Jitter::None && next[1] < next[0]);
                }
            }
        }
    }
}
