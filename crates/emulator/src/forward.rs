//! The loop: read what came in, send what is due, sleep until the next departure.

use crate::Error;
use crate::clock::{StampConverter, monotonic};
use crate::frame::{ETHERNET_BYTES, Frame, Header, SLOT_BYTES, Store, mark_congestion};
use crate::histogram::Histogram;
use crate::port::{BATCH, Port};
use crate::realtime::{Conditions, cpu_time_ns};
use crate::recorder::{LinkSample, Outcome, PacketRecord, Recorder};
use crate::summary::{DirectionSummary, Lateness, Summary};
use std::path::Path;
use wirepaint_link_model::config::Direction;
use wirepaint_link_model::{Link, LinkModel, Packet};
use wirepaint_run::Network;
use wirepaint_run::signals::Signals;
use wirepaint_units::{Duration, Time};

/// The thread means to be awake at most this long before a departure.
const SPIN_NS: u64 = 5_000;
/// How much earlier than that the timer is set at most: a wake-up takes 2 to 50 µs, depending on
/// how deeply the processor sleeps.
const LONGEST_LEAD_NS: u64 = 50_000;
/// Step by which the lead grows after a late wake-up, and by half of which it shrinks after an
/// early one: two wake-ups out of three are to be in time.
const LEAD_STEP_NS: u64 = 400;
/// Period over which sleep is counted.
const REST_WINDOW_NS: u64 = 10_000_000;
/// Sleep in a window below which the thread no longer spins: a fifth.
const SPIN_REST_NS: u64 = REST_WINDOW_NS / 5;
/// Sleep that the thread takes in every window, however much there is to do: a tenth. Linux takes
/// 50 ms at once from a real-time thread that leaves the others less than 50 ms of a second, and
/// once it began it goes on each second until the processor has been idle (`fair_server` of 6.18).
const LEAST_REST_NS: u64 = REST_WINDOW_NS / 10;
/// Frames that are read of one direction before something is sent.
const READ_BUDGET: usize = 64;
/// A sample is taken at most this much later than the time it is of.
const LONGEST_GRACE: Duration = Duration::from_millis(5);
/// Longest sleep, and how often the thread looks for a stop signal.
const LONGEST_SLEEP_NS: u64 = 10_000_000;

/// What the rings and the slots hold beside the kernel's header.
const LARGEST_MTU: u32 = 1900;
const _: () = assert!(SLOT_BYTES >= LARGEST_MTU as usize + ETHERNET_BYTES);

/// One direction: in through one port, through the model, out through the other.
struct Lane {
    name: &'static str,
    /// Index of the port that it reads.
    input: usize,
    link: Link<Frame>,
    overhead_bytes: u32,
    lateness_since_sample: Duration,
    received: u64,
    oversized: u64,
    no_memory: u64,
    unfinished_checksums: u64,
    send_failures: u64,
}

/// Both directions and what they share.
pub(crate) struct Forwarder {
    /// Towards the client, towards the server.
    ports: [Port; 2],
    /// Down, up.
    lanes: [Lane; 2],
    clock: Clock,
    store: Store,
    mtu: usize,
    recorder: Recorder,
    lateness: Histogram,
    sample_interval: Duration,
    next_sample: Time,
    /// Samples are taken this much later than the time they are of, so that a frame that is still
    /// unread in the ring finds the queue as it was at its arrival.
    sample_grace: Duration,
    rest: Rest,
    started: Time,
}

/// Time of the run, and arrival stamps on it.
struct Clock {
    epoch_ns: u64,
    stamps: StampConverter,
}

impl Clock {
    fn now(&self) -> Time {
        Time(monotonic().saturating_sub(self.epoch_ns))
    }
}

/// How much the thread slept in the present window.
struct Rest {
    window: Time,
    slept: u64,
    /// Whether the window before left room to spin.
    may_spin: bool,
    /// How much before a departure the timer is set.
    lead: u64,
}

impl Forwarder {
    /// Opens the interfaces. `seed` is the run's, `epoch_ns` its time zero on CLOCK_MONOTONIC.
    pub fn new(network: &Network, seed: u64, epoch_ns: u64, path: &Path) -> Result<Forwarder, Error> {
        let lane = |name, input, direction: &Direction, seed| {
            let link = Link::new(direction, seed).map_err(|source| Error::Config {
                path: path.to_owned(),
                direction: name,
                source,
            })?;
            Ok::<_, Error>(Lane {
                name,
                input,
                link,
                overhead_bytes: direction.overhead_bytes,
                lateness_since_sample: Duration::ZERO,
                received: 0,
                oversized: 0,
                no_memory: 0,
                unfinished_checksums: 0,
                send_failures: 0,
            })
        };
        let sample_interval = Duration(network.sample_interval_ns);
        if sample_interval < Duration::from_micros(100) {
            return Err(Error::Usage(format!(
                "{}: network.sample_interval_ns: found {}, accepted: at least 100000",
                path.display(),
                sample_interval.0
            )));
        }
        if !(68..=LARGEST_MTU).contains(&network.mtu) {
            return Err(Error::Usage(format!(
                "{}: network.mtu: found {}, accepted: 68 to {LARGEST_MTU}",
                path.display(),
                network.mtu
            )));
        }
        // The directions have seeds of their own; the second is the bitwise opposite.
        let lanes = [lane("down", 1, &network.down, seed)?, lane("up", 0, &network.up, !seed)?];
        let ports = [Port::open(&network.client_interface)?, Port::open(&network.server_interface)?];
        let clock = Clock { epoch_ns, stamps: StampConverter::new() };
        let started = clock.now();
        let sample_grace = lanes.iter().map(|lane| lane.link.lag()).min().unwrap_or_default();
        Ok(Forwarder {
            ports,
            lanes,
            store: Store::new(),
            mtu: network.mtu as usize,
            recorder: Recorder::new(network.packet_trace),
            lateness: Histogram::new(),
            sample_interval,
            next_sample: started,
            sample_grace: sample_grace.min(LONGEST_GRACE),
            rest: Rest { window: started, slept: 0, may_spin: true, lead: LONGEST_LEAD_NS / 2 },
            started,
            clock,
        })
    }

    /// Forwards until a stop signal.
    pub fn run(&mut self, stop: &Signals) -> Result<(), Error> {
        let mut look = self.started;
        loop {
            let now = self.clock.now();
            if now >= look {
                if stop.wait_for(std::time::Duration::ZERO) {
                    break;
                }
                look = now + Duration(LONGEST_SLEEP_NS);
            }
            self.clock.stamps.refresh(monotonic());
            for lane in 0..2 {
                self.read(lane);
            }
            for lane in 0..2 {
                self.send(lane);
            }
            self.sample();
            self.sleep()?;
        }
        // The last sample is of the end, so that it agrees with the summary.
        self.sample_at(self.clock.now());
        Ok(())
    }

    fn read(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        let (store, clock, mtu) = (&mut self.store, &self.clock, self.mtu);
        for _ in 0..READ_BUDGET {
            let more = self.ports[lane.input].receive(|frame| {
                lane.received += 1;
                lane.unfinished_checksums += u64::from(frame.unfinished_checksum);
                if frame.wire_bytes > mtu + ETHERNET_BYTES || frame.wire_bytes != frame.data.len() {
                    lane.oversized += 1;
                    return;
                }
                let Some(slot) = store.put(frame.data) else {
                    lane.no_memory += 1;
                    return;
                };
                let arrival = Time(clock.stamps.monotonic(frame.stamp).saturating_sub(clock.epoch_ns));
                // A stamp from before a step of the wall clock may lie in the future.
                let arrival = arrival.min(clock.now());
                lane.link.push(arrival, Frame::new(slot, frame.data, arrival));
            });
            if !more {
                break;
            }
        }
        self.bury();
    }

    /// Gives back the memory of dropped packets.
    fn bury(&mut self) {
        for lane in &mut self.lanes {
            while let Some(dropped) = lane.link.take_dropped() {
                let frame = dropped.packet;
                let data = &self.store.slot(frame.slot)[..usize::from(frame.bytes)];
                self.recorder.packet(|| PacketRecord {
                    direction: lane.name,
                    arrival: frame.arrival,
                    outcome: Outcome::Dropped(dropped.cause),
                    wire_bytes: frame.ip_bytes() + lane.overhead_bytes,
                    header: Header::parse(data),
                });
                self.store.release(frame.slot);
            }
        }
    }

    /// Sends all that is due, in batches.
    fn send(&mut self, lane: usize) {
        let mut now = self.clock.now();
        loop {
            let mut batch: [Option<(Time, Frame)>; BATCH] = [const { None }; BATCH];
            // SAFETY: an all-zero iovec is valid; only those that are filled are used.
            let mut buffers: [libc::iovec; BATCH] = unsafe { std::mem::zeroed() };
            let lane = &mut self.lanes[lane];
            let mut count = 0;
            while count < BATCH {
                let Some((due, frame)) = lane.link.pop(now) else { break };
                let data = &mut self.store.slot(frame.slot)[..usize::from(frame.bytes)];
                if frame.marked {
                    mark_congestion(data);
                }
                buffers[count] = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
                batch[count] = Some((due, frame));
                count += 1;
            }
            if count == 0 {
                break;
            }
            let before = self.clock.now();
            let sent = self.ports[1 - lane.input].send(&mut buffers[..count]);
            let after = self.clock.now();
            lane.send_failures += (count - sent) as u64;
            let each = after.since(before).0 / count as u64;
            for (place, (due, frame)) in batch.into_iter().flatten().enumerate() {
                let out = before + Duration(each * place as u64);
                let late = out.since(due);
                self.lateness.add(late.0);
                lane.lateness_since_sample = lane.lateness_since_sample.max(late);
                let data = &self.store.slot(frame.slot)[..usize::from(frame.bytes)];
                self.recorder.packet(|| PacketRecord {
                    direction: lane.name,
                    arrival: frame.arrival,
                    outcome: Outcome::Delivered { due, out },
                    wire_bytes: frame.ip_bytes() + lane.overhead_bytes,
                    header: Header::parse(data),
                });
                self.store.release(frame.slot);
            }
            if count < BATCH {
                break;
            }
            now = after;
        }
        self.bury();
    }

    /// Takes the samples that fell due.
    fn sample(&mut self) {
        let now = self.clock.now();
        while self.next_sample + self.sample_grace <= now {
            self.sample_at(self.next_sample);
            self.next_sample += self.sample_interval;
        }
    }

    fn sample_at(&mut self, time: Time) {
        for lane in &mut self.lanes {
            lane.link.evaluate(time);
            self.recorder.link(LinkSample {
                time,
                direction: lane.name,
                counters: lane.link.counters(),
                lateness_max: std::mem::take(&mut lane.lateness_since_sample),
            });
        }
    }

    /// Sleeps until something comes in or is due.
    fn sleep(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        self.rest.take(now);
        let now = self.clock.now();
        let sample = self.next_sample + self.sample_grace;
        let due = self.lanes.iter().filter_map(|lane| lane.link.next_departure()).min();
        let next = due.map_or(sample, |due| due.min(sample));
        let left = next.since(now).0;
        if left <= if self.rest.may_spin { SPIN_NS } else { 0 } {
            return Ok(());
        }
        // Of a short wait at least an eighth is slept, so that the lead never becomes one long spin.
        let lead = if self.rest.may_spin { self.rest.lead.min(left - left / 8) } else { 0 };
        let full_lead = lead == self.rest.lead;
        let left = (left - lead).min(LONGEST_SLEEP_NS);
        let mut waiting =
            [0, 1].map(|port| libc::pollfd { fd: self.ports[port].fd(), events: libc::POLLIN, revents: 0 });
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: left as i64 };
        // SAFETY: the descriptors and the timeout are valid for the call; no signal mask is passed.
        let ready = unsafe { libc::ppoll(waiting.as_mut_ptr(), 2, &timeout, std::ptr::null()) };
        let awake = self.clock.now();
        self.rest.slept += awake.since(now).0;
        match (ready, due) {
            (0, Some(due)) if due < sample && full_lead => self.rest.adapt(due, awake),
            (..0, _) => return Err(Error::last("ppoll")),
            _ => {}
        }
        if waiting.iter().any(|port| port.revents & (libc::POLLERR | libc::POLLNVAL) != 0) {
            return Err(Error::Usage("an interface of the network went away during the run".to_owned()));
        }
        Ok(())
    }

    /// The books of the run.
    pub fn summary(&mut self, conditions: &Conditions) -> Result<Summary, Error> {
        let mut faults = Vec::new();
        let mut directions = Vec::new();
        for lane in &self.lanes {
            let summary = DirectionSummary {
                received_packets: lane.received,
                ring_drops: self.ports[lane.input].ring_drops()?,
                send_failures: lane.send_failures,
                oversized: lane.oversized,
                no_memory: lane.no_memory,
                unfinished_checksums: lane.unfinished_checksums,
                ..DirectionSummary::new(&lane.link.counters())
            };
            faults.extend(summary.faults(lane.name));
            directions.push(summary);
        }
        let [down, up] = directions.try_into().expect("two lanes");
        Ok(Summary {
            conditions: conditions.clone(),
            duration: self.clock.now().since(self.started).0,
            cpu_time: cpu_time_ns(),
            down,
            up,
            lateness: Lateness::of(&self.lateness),
            clock_steps: self.clock.stamps.steps,
            faults,
        })
    }

    /// Writes the tables `link` and, when asked for, `packet`.
    pub fn write_tables(&self, folder: &Path) -> Result<(), Error> {
        self.recorder.write(folder).map_err(Error::Trace)
    }
}

impl Rest {
    /// Begins a new window when the present one is over, after the least rest.
    fn take(&mut self, now: Time) {
        if now.since(self.window).0 < REST_WINDOW_NS {
            return;
        }
        if self.slept < LEAST_REST_NS {
            std::thread::sleep(std::time::Duration::from_nanos(LEAST_REST_NS - self.slept));
        }
        self.may_spin = self.slept >= SPIN_REST_NS;
        self.slept = 0;
        self.window = now;
    }

    /// Learns from a wake-up by the timer.
    fn adapt(&mut self, due: Time, awake: Time) {
        if awake > due {
            self.lead = (self.lead + LEAD_STEP_NS).min(LONGEST_LEAD_NS + SPIN_NS);
        } else if due.since(awake).0 > SPIN_NS {
            self.lead = (self.lead - LEAD_STEP_NS / 2).max(SPIN_NS);
        }
    }
}
