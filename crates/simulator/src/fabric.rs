//! The links of a run and the packets on them.
//!
//! A packet's body stays in one place; a [`Parcel`] of 16 bytes moves from queue to queue. Each link is a
//! FIFO with one pending event. So a packet needs one event per link, and none on links in series
//! ([`Fabric::join_series`]). A link with reordering jitter sorts its packets by due time itself.

mod parcel;

pub use parcel::Envelope;

use crate::agenda::{Agenda, Alarm, EventId};
use parcel::{Parcel, ROUTES};
use wirepaint_link_model::config::{Capacity, Direction, Jitter, Limits, Loss, Queue};
use wirepaint_link_model::{ConfigError, Counters, Drop, Link, LinkModel, Packet};
use wirepaint_units::{Duration, Time};

/// Index of a link.
pub type LinkId = usize;
/// Index of a route.
pub type RouteId = u32;
/// Index of a TCP endpoint.
pub type EndpointId = u32;

/// A packet at the end of its route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival<B> {
    /// For whom.
    pub to: EndpointId,
    /// The body that was sent.
    pub body: B,
    /// A link set Congestion Experienced.
    pub marked: bool,
}

/// A packet that crossed a watched link, or did not.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<B> {
    /// The link.
    pub link: LinkId,
    /// Arrival at the link.
    pub entered: Time,
    /// Departure, or why there was none.
    pub left: Result<Time, Drop>,
    /// Wire bytes: IP bytes plus the link's overhead.
    pub wire_bytes: u32,
    /// For whom.
    pub to: EndpointId,
    /// The packet.
    pub body: B,
}

#[derive(Debug)]
struct Lane {
    link: Link<Parcel>,
    alarm: Alarm,
    overhead_bytes: u32,
    watched: bool,
    /// The link that fetches the packets from this one.
    fetcher: Option<LinkId>,
    /// The last link of this link's series; the link itself where there is none.
    last: LinkId,
    /// The link from which this one fetches packets.
    source: Option<LinkId>,
}

/// A body in its own cache line, so that each of many packets costs one cache miss.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot<B>(B);

/// The links, the routes over them and all packets under way.
///
/// A link's event on the [`Agenda`] is its index. When it fires, take [`next_arrival`](Self::next_arrival)
/// until `None`.
#[derive(Debug)]
pub struct Fabric<B> {
    lanes: Vec<Lane>,
    routes: Vec<Box<[LinkId]>>,
    slots: Vec<Slot<B>>,
    /// Per slot: arrival at the present link, if that link is watched.
    entered: Vec<Time>,
    free: Vec<u32>,
    crossings: Vec<Crossing<B>>,
    hops: u64,
}

impl<B: Copy> Fabric<B> {
    /// Links from their configurations and seeds. An error has the index of its link.
    pub fn new<'a>(
        links: impl Iterator<Item = (&'a Direction, u64)>,
    ) -> Result<Fabric<B>, (LinkId, ConfigError)> {
        let lanes = links
            .enumerate()
            .map(|(number, (config, seed))| {
                Ok(Lane {
                    link: Link::new(config, seed).map_err(|error| (number, error))?,
                    alarm: Alarm::default(),
                    overhead_bytes: config.overhead_bytes,
                    watched: false,
                    fetcher: None,
                    last: number,
                    source: None,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Fabric {
            lanes,
            routes: Vec::new(),
            slots: Vec::new(),
            entered: Vec::new(),
            free: Vec::new(),
            crossings: Vec::new(),
            hops: 0,
        })
    }

    /// A link without bottleneck, delay or loss: the path between two neighbours.
    pub fn wire() -> Direction {
        Direction {
            capacity: Capacity::Unlimited,
            delay_ns: Duration::ZERO,
            jitter: Jitter::None,
            loss: Loss::None,
            queue: Queue::Droptail(Limits { packets: None, bytes: None }),
            scripted: Vec::new(),
            changes: Vec::new(),
            overhead_bytes: 0,
        }
    }

    /// Adds a route of 1 to 255 links, in order; at most 2^24 routes.
    pub fn add_route(&mut self, links: Vec<LinkId>) -> RouteId {
        assert!((1..=255).contains(&links.len()) && links.iter().all(|link| *link < self.lanes.len()));
        assert!((self.routes.len() as u64) < ROUTES);
        self.routes.push(links.into());
        (self.routes.len() - 1) as RouteId
    }

    /// Removes the events of links in series. Two links are in series if all packets of the first go on to
    /// the second, the second takes packets from the first alone, and the first [settles at
    /// once](Link::settles_at_once). The second then fetches packets when it needs them: to deliver, or for
    /// its counters. Watched links stay as they are, so that records come in order.
    pub fn join_series(&mut self) {
        /// A link's neighbour on all routes: `None` so far, `Some(Some(link))`, or `Some(None)` for several
        /// or a route's end.
        fn meet(known: &mut Option<Option<LinkId>>, neighbour: Option<LinkId>) {
            *known = Some(known.map_or(neighbour, |known| known.filter(|known| Some(*known) == neighbour)));
        }
        let mut before = vec![None; self.lanes.len()];
        let mut after = before.clone();
        for route in &self.routes {
            for (at, &link) in route.iter().enumerate() {
                meet(&mut before[link], at.checked_sub(1).map(|at| route[at]));
                meet(&mut after[link], route.get(at + 1).copied());
            }
        }
        for (link, after) in after.into_iter().enumerate() {
            let Some(Some(next)) = after else { continue };
            let seen = self.lanes[link].watched || self.lanes[next].watched;
            if before[next] == Some(Some(link)) && self.lanes[link].link.settles_at_once() && !seen {
                self.lanes[link].fetcher = Some(next);
                self.lanes[next].source = Some(link);
            }
        }
        for link in 0..self.lanes.len() {
            while let Some(next) = self.lanes[self.lanes[link].last].fetcher {
                self.lanes[link].last = next;
            }
        }
    }

    /// Keeps a record of every packet on the link.
    pub fn watch(&mut self, link: LinkId) {
        self.lanes[link].watched = true;
    }

    /// Records of watched links so far, in order of departure or drop.
    pub fn crossings(&self) -> &[Crossing<B>] {
        &self.crossings
    }

    /// Packets that entered a link so far, over all links.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Packets under way.
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The counters of a link until `now`.
    pub fn counters(&mut self, link: LinkId, now: Time) -> Counters {
        // Links later in the series fetch from this one too.
        self.fetch(self.lanes[link].last, now);
        let link = &mut self.lanes[link].link;
        link.evaluate(now);
        link.counters()
    }

    /// Sends a packet on a route.
    pub fn send(
        &mut self,
        now: Time,
        agenda: &mut Agenda,
        route: RouteId,
        to: EndpointId,
        body: B,
        envelope: Envelope,
    ) {
        let slot = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = Slot(body);
                index
            }
            None => {
                self.slots.push(Slot(body));
                self.entered.push(now);
                (self.slots.len() - 1) as u32
            }
        };
        let parcel = Parcel::new(slot, to, route, envelope);
        self.enter(now, agenda, self.routes[route as usize][0], parcel);
    }

    /// The next packet that ends its route on this link by `now`; others go on to their next link.
    pub fn next_arrival(&mut self, now: Time, agenda: &mut Agenda, link: LinkId) -> Option<Arrival<B>> {
        while let Some((due, mut parcel)) = self.lanes[link].link.pop(now) {
            if self.lanes[link].watched {
                self.record(link, &parcel, Ok(due));
            }
            parcel.take_hop();
            let (route, hop) = parcel.stage();
            match self.routes[route].get(hop) {
                Some(&next) => self.enter(due, agenda, next, parcel),
                None => {
                    self.free.push(parcel.slot());
                    let Slot(body) = self.slots[parcel.slot() as usize];
                    if let Some(next) = self.lanes[link].link.front() {
                        prefetch(&self.slots[next.slot() as usize]);
                    }
                    return Some(Arrival { to: parcel.to(), body, marked: parcel.is_marked() });
                }
            }
        }
        self.settle(agenda, link);
        None
    }

    /// Whether the link's event at `now` is its pending one. If so, the link fetches from its series.
    pub fn goes_off(&mut self, link: LinkId, now: Time) -> bool {
        let pending = self.lanes[link].alarm.goes_off(now);
        if pending {
            self.fetch(link, now);
        }
        pending
    }

    fn enter(&mut self, now: Time, agenda: &mut Agenda, link: LinkId, parcel: Parcel) {
        self.hops += 1;
        let lane = &mut self.lanes[link];
        if lane.watched {
            self.entered[parcel.slot() as usize] = now;
        }
        lane.link.push(now, parcel);
        match lane.fetcher {
            None => self.settle(agenda, link),
            Some(fetcher) => self.announce(agenda, link, fetcher, &parcel),
        }
    }

    /// A packet entered a link within a series. Ensures that the last link's event is no later than the
    /// packet's earliest arrival there.
    fn announce(&mut self, agenda: &mut Agenda, link: LinkId, fetcher: LinkId, parcel: &Parcel) {
        self.take_dropped(link);
        let last = self.lanes[link].last;
        let departure = self.lanes[link].link.last_departure().expect("it settles at once");
        if !self.lanes[last].alarm.is_set_by(departure) {
            let earliest = self.through(fetcher, departure, parcel);
            self.lanes[last].alarm.set(agenda, Some(earliest), last as EventId);
        }
    }

    /// Earliest time at which a packet that enters `link` at `earliest` leaves the last link of the series.
    fn through(&self, mut link: LinkId, mut earliest: Time, parcel: &Parcel) -> Time {
        loop {
            let lane = &self.lanes[link];
            earliest += lane.link.least_transit(parcel);
            match lane.fetcher {
                Some(next) => link = next,
                None => return earliest,
            }
        }
    }

    /// Fetches the packets that left the preceding links of the series by `now`.
    fn fetch(&mut self, link: LinkId, now: Time) {
        let Some(source) = self.lanes[link].source else { return };
        self.fetch(source, now);
        while let Some((due, mut parcel)) = self.lanes[source].link.pop(now) {
            parcel.take_hop();
            self.hops += 1;
            self.lanes[link].link.push(due, parcel);
        }
        self.take_dropped(link);
    }

    /// Earliest time at which a packet that is still on the preceding links of the series can leave `last`.
    fn earliest_fetched(&self, last: LinkId) -> Option<Time> {
        let (mut earliest, mut link) = (Time::MAX, last);
        while let Some(source) = self.lanes[link].source {
            let mut departures = self.lanes[source].link.departures();
            if let Some((departure, parcel)) = departures.next() {
                earliest = earliest.min(self.through(link, departure, parcel));
            }
            // If the first is dropped later on, a smaller packet behind it may arrive earlier.
            if let Some((departure, parcel)) = departures.next() {
                earliest = earliest.min(self.through(link, departure, &parcel.emptied()));
                break;
            }
            link = source;
        }
        (earliest < Time::MAX).then_some(earliest)
    }

    fn take_dropped(&mut self, link: LinkId) {
        if self.lanes[link].link.has_dropped() {
            self.bury_dropped(link);
        }
    }

    #[cold]
    fn bury_dropped(&mut self, link: LinkId) {
        while let Some(dropped) = self.lanes[link].link.take_dropped() {
            if self.lanes[link].watched {
                self.record(link, &dropped.packet, Err(dropped.cause));
            }
            self.free.push(dropped.packet.slot());
        }
    }

    /// Takes the packets that the link dropped and sets its alarm for the next departure.
    fn settle(&mut self, agenda: &mut Agenda, link: LinkId) {
        self.take_dropped(link);
        let fetched = self.earliest_fetched(link);
        let lane = &mut self.lanes[link];
        let departure = lane.link.next_departure().into_iter().chain(fetched).min();
        lane.alarm.set(agenda, departure, link as EventId);
    }

    fn record(&mut self, link: LinkId, parcel: &Parcel, left: Result<Time, Drop>) {
        let slot = parcel.slot() as usize;
        self.crossings.push(Crossing {
            link,
            entered: self.entered[slot],
            left,
            wire_bytes: parcel.ip_bytes() + self.lanes[link].overhead_bytes,
            to: parcel.to(),
            body: self.slots[slot].0,
        });
    }
}

/// Prefetches a value into the cache for an event that is due soon.
fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; the program reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Event;
    use proptest::prelude::*;
    use wirepaint_units::BitRate;

    fn lane(bit_per_s: u64, delay_us: u64) -> Direction {
        Direction {
            capacity: Capacity::Rate { bit_per_s: BitRate(bit_per_s) },
            delay_ns: Duration::from_micros(delay_us),
            ..Fabric::<u32>::wire()
        }
    }

    /// Sends packets (route, time, bytes), in order of time. Returns the arrivals until a time.
    fn carry(fabric: &mut Fabric<u32>, sent: &[(RouteId, Time, u16)], until: Time) -> Vec<(Time, u32)> {
        let (mut agenda, mut now, mut arrived) = (Agenda::default(), Time::ZERO, Vec::new());
        let mut left = (0..).zip(sent).peekable();
        loop {
            let pending = agenda.pop();
            // Packets are sent between events, in order of time.
            while let Some((number, &(route, at, ip_bytes))) =
                left.next_if(|(_, (_, at, _))| *at <= pending.map_or(until, |(time, _)| time.min(until)))
            {
                let envelope = Envelope { ip_bytes, ecn_capable: false, counted: None, dscp: 0 };
                fabric.send(at, &mut agenda, route, 0, number, envelope);
            }
            let Some((time, event)) = pending.filter(|(time, _)| *time <= until) else {
                if pending.is_some() || agenda.is_empty() {
                    return arrived;
                }
                continue;
            };
            assert!(time >= now, "time ran back");
            now = time;
            let Event::Link(link) = Event::of(event) else { unreachable!("only links") };
            if fabric.goes_off(link, now) {
                while let Some(arrival) = fabric.next_arrival(now, &mut agenda, link) {
                    arrived.push((now, arrival.body));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn packets_of_a_route_arrive_once_in_order_and_not_before_they_can(
            rates in prop::collection::vec((100_000_u64..10_000_000, 0_u64..50_000), 1..4),
            sent in prop::collection::vec((0_u64..5_000_000, 40_u16..1500), 1..60),
        ) {
            let lanes: Vec<Direction> = rates.iter().map(|(rate, delay)| lane(*rate, *delay)).collect();
            let mut fabric = Fabric::new(lanes.iter().map(|lane| (lane, 1))).unwrap();
            let route = fabric.add_route((0..lanes.len()).collect());
            let mut at = Time::ZERO;
            let sent: Vec<_> = { sent.into_iter() }.map(|(gap, bytes)| {
                at += Duration(gap);
                (route, at, bytes)
            }).collect();
            let arrived = carry(&mut fabric, &sent, Time::MAX);
            prop_assert_eq!(arrived.len(), sent.len());
            for (number, (&(when, body), &(_, at, bytes))) in arrived.iter().zip(&sent).enumerate() {
                prop_assert_eq!(body as usize, number);
                let way = rates.iter().map(|(rate, delay)| {
                    BitRate(*rate).transmission_time(u64::from(bytes)).0 + delay * 1000
                });
                // Each link rounds its transmission to a nanosecond.
                prop_assert!(when.0 >= at.0 + way.sum::<u64>() - rates.len() as u64);
            }
            prop_assert_eq!(fabric.under_way(), 0);
            prop_assert_eq!(fabric.hops(), (sent.len() * lanes.len()) as u64);
        }

        #[test]
        fn links_in_series_do_to_each_packet_what_they_do_one_by_one(
            rates in prop::collection::vec((100_000_u64..10_000_000, 0_u64..50_000), 6),
            (packets, probability) in (1_u64..20, prop_oneof![Just(0.0), 0.0..0.3]),
            jitter_us in prop_oneof![Just(0), 0_u64..3_000],
            sent in prop::collection::vec((0..4_u32, 0_u64..5_000_000, 40_u16..1500), 1..100),
            until in prop_oneof![Just(1 << 40), 0_u64..300_000_000],
        ) {
            let lanes = rates.iter().map(|(rate, delay)| Direction {
                queue: Queue::Droptail(Limits { packets: Some(packets), bytes: None }),
                loss: Loss::Independent { probability },
                jitter: Jitter::Uniform { range_ns: Duration::from_micros(jitter_us), reorder: false },
                ..lane(*rate, *delay)
            });
            let lanes: Vec<Direction> = lanes.collect();
            let mut at = Time::ZERO;
            let sent: Vec<_> = { sent.into_iter() }.map(|(route, gap, bytes)| {
                at += Duration(gap);
                (route, at, bytes)
            }).collect();
            let seen = [false, true].map(|joined| {
                let mut fabric = Fabric::new(lanes.iter().map(|lane| (lane, 1))).unwrap();
                // Links 0, 1 and 2 are in series; 3 takes packets from two, and on 5 some end their route.
                for route in [vec![0, 1, 2], vec![4, 3], vec![5, 3], vec![5]] {
                    fabric.add_route(route);
                }
                if joined {
                    fabric.join_series();
                    let sources: Vec<_> = fabric.lanes.iter().map(|lane| lane.source).collect();
                    assert_eq!(sources, [None, Some(0), Some(1), None, None, None]);
                }
                let until = Time(until);
                let mut arrived = carry(&mut fabric, &sent, until);
                // The order of arrivals at the same instant depends on the order of the links' events.
                arrived.sort_unstable();
                let counters: Vec<Counters> = (0..6).map(|link| fabric.counters(link, until)).collect();
                (arrived, counters, fabric.under_way(), fabric.hops())
            });
            prop_assert_eq!(&seen[0], &seen[1]);
        }
    }
}
