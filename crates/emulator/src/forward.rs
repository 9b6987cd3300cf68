//! The loop: read arrivals, send frames that are due, sleep until the next departure.

use crate::Error;
use crate::clients::Clients;
use crate::clock::RunClock;
use crate::frame::{ETHERNET_BYTES, SLOT_BYTES, Store};
use crate::histogram::Histogram;
use crate::lane::{Lane, Shared};
use crate::port::Port;
use crate::realtime::{Conditions, cpu_time_ns};
use crate::recorder::Recorder;
use crate::summary::{Lateness, Pause, Summary};
use std::path::Path;
use wirepaint_link_model::Link;
use wirepaint_link_model::config::Direction;
use wirepaint_run::Run;
use wirepaint_run::signals::Signals;
use wirepaint_units::{Duration, Time};

/// The thread aims to wake at most this long before a departure.
const SPIN_NS: u64 = 5_000;
/// Most by which the timer is set earlier than that. A wake-up takes 2 to 50 µs, depending on the processor's
/// idle state.
const LONGEST_LEAD_NS: u64 = 50_000;
/// Step by which the lead grows after a late wake-up. It shrinks by half a step after an early one, so that
/// two wake-ups out of three are in time.
const LEAD_STEP_NS: u64 = 400;
/// Window over which the thread's rest (sleep) is counted.
const REST_WINDOW_NS: u64 = 10_000_000;
/// The thread spins only while it has rested a fifth of the present window so far.
const SPIN_REST_SHARE: u64 = 5;
/// Part of each sleep that does not count as rest: the time to fall asleep and wake.
const SWITCH_NS: u64 = 5_000;
/// Rest that the thread always takes in every window: a tenth. If a real-time thread leaves others less than
/// 50 ms per second, Linux takes 50 ms from it at once, and again each second until the processor has been
/// idle (`fair_server` of 6.18).
const LEAST_REST_NS: u64 = REST_WINDOW_NS / 10;
/// Longest delay of a sample after its nominal time.
const LONGEST_GRACE: Duration = Duration::from_millis(5);
/// Shortest pause that is reported, and most pauses reported.
const SHORTEST_PAUSE_NS: u64 = 2_000_000;
const MOST_PAUSES: usize = 1000;
/// Longest sleep, which is also the interval of checks for a stop signal.
const LONGEST_SLEEP_NS: u64 = 10_000_000;

/// Largest MTU that fits into rings and slots beside the kernel's header.
const LARGEST_MTU: u32 = 1900;
const _: () = assert!(SLOT_BYTES >= LARGEST_MTU as usize + ETHERNET_BYTES);

/// Both directions and what they share.
pub(crate) struct Forwarder {
    /// Towards the client, towards the server.
    ports: [Port; 2],
    /// Down, up: a lane reads the port of [`INPUTS`] and sends to the other.
    lanes: [Lane; 2],
    shared: Shared,
    sample_interval: Duration,
    next_sample: Time,
    /// Delay of samples after their nominal time, so that a frame still unread in the ring meets the queue of
    /// its arrival time.
    sample_grace: Duration,
    /// The origin of the links' changes is still to come on standard input.
    changes_wait: bool,
    rest: Rest,
    pauses: Vec<Pause>,
    /// When the thread last woke.
    awake: Time,
    started: Time,
}

/// Index of the port that each lane reads.
const INPUTS: [usize; 2] = [1, 0];

/// Time that the thread leaves to others.
struct Rest {
    /// Begin of the present window.
    window: Time,
    /// Rest in this window so far, in nanoseconds.
    rested: u64,
    /// How much before a departure the timer is set.
    lead: u64,
}

impl Forwarder {
    /// Opens the interfaces of a run's segment, each with a ring of so many frames; `path` is named in errors.
    pub fn new(run: &Run, path: &Path, ring_frames: u32) -> Result<Forwarder, Error> {
        let (segment, interfaces) = run.emulated(path)?;
        let sample_interval = Duration(segment.sample_interval_ns);
        if sample_interval < Duration::from_micros(100) {
            return Err(Error::Usage(format!(
                "{}: segments.sample_interval_ns: found {}, accepted: at least 100000",
                path.display(),
                sample_interval.0
            )));
        }
        if !(68..=LARGEST_MTU).contains(&segment.mtu) {
            return Err(Error::Usage(format!(
                "{}: segments.mtu: found {}, accepted: 68 to {LARGEST_MTU}",
                path.display(),
                segment.mtu
            )));
        }
        let clock = RunClock::new(run.epoch_ns);
        let started = clock.now();
        let lane =
            |name, direction: &Direction, seed| {
                let mut link = Link::with_mtu(direction, segment.mtu, seed)
                    .map_err(|source| Error::Config { path: path.to_owned(), direction: name, source })?;
                if segment.changes_wait {
                    link.hold_changes();
                }
                Ok::<_, Error>(Lane::new(name, link, direction.overhead_bytes, (started, sample_interval)))
            };
        // Each direction has its own seed; the second is the bitwise complement of the first.
        let lanes = [lane("down", &segment.down, run.seed)?, lane("up", &segment.up, !run.seed)?];
        let open = |interface| Port::open(interface, ring_frames);
        let ports = [open(&interfaces.client)?, open(&interfaces.server)?];
        let shared = Shared {
            clock,
            store: Store::new(),
            clients: Clients::new(&run.hosts, path)?,
            recorder: Recorder::new(&segment.name, segment.packet_trace),
            lateness: Histogram::new(),
            largest_frame: segment.mtu as usize + ETHERNET_BYTES,
        };
        let sample_grace = lanes.iter().map(|lane| lane.link.lag()).min().unwrap_or_default();
        Ok(Forwarder {
            ports,
            lanes,
            shared,
            sample_interval,
            next_sample: started,
            sample_grace: sample_grace.min(LONGEST_GRACE),
            changes_wait: segment.changes_wait,
            rest: Rest { window: started, rested: 0, lead: LONGEST_LEAD_NS / 2 },
            pauses: Vec::new(),
            awake: started,
            started,
        })
    }

    /// Forwards until a stop signal.
    pub fn run(&mut self, stop: &Signals) -> Result<(), Error> {
        let mut look = self.started;
        loop {
            let now = self.now();
            if now >= look {
                if stop.wait_for(std::time::Duration::ZERO) {
                    break;
                }
                look = now + Duration(LONGEST_SLEEP_NS);
                self.hear()?;
            }
            self.shared.clock.refresh();
            for (lane, input) in self.lanes.iter_mut().zip(INPUTS) {
                lane.read(&mut self.ports[input], &mut self.shared);
            }
            for (lane, input) in self.lanes.iter_mut().zip(INPUTS) {
                lane.send(&self.ports[1 - input], &mut self.shared);
            }
            self.sample();
            self.sleep()?;
        }
        // The last sample is of the end, so that it agrees with the summary.
        let now = self.now();
        while self.next_sample < now {
            self.sample_at(self.next_sample);
            self.next_sample += self.sample_interval;
        }
        self.sample_at(now);
        Ok(())
    }

    fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// Takes the origin of the links' changes, once it was told.
    fn hear(&mut self) -> Result<(), Error> {
        if !self.changes_wait {
            return Ok(());
        }
        let mut waiting = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor is given, and it does not wait.
        if unsafe { libc::poll(&mut waiting, 1, 0) } <= 0 {
            return Ok(());
        }
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map_err(|_| Error::last("reading standard input"))?;
        let origin = line.trim().parse().map_err(|_| {
            Error::Usage(format!(
                "standard input: found {line:?}, accepted: nanoseconds since the run's epoch"
            ))
        })?;
        self.lanes.iter_mut().for_each(|lane| lane.link.count_changes_from(Time(origin)));
        self.changes_wait = false;
        Ok(())
    }

    /// Takes the samples that are due.
    fn sample(&mut self) {
        let now = self.now();
        while self.next_sample + self.sample_grace <= now {
            self.sample_at(self.next_sample);
            self.next_sample += self.sample_interval;
        }
    }

    fn sample_at(&mut self, time: Time) {
        for lane in &mut self.lanes {
            self.shared.recorder.link(lane.sample(time));
        }
    }

    /// Sleeps until a frame arrives or is due.
    fn sleep(&mut self) -> Result<(), Error> {
        let now = self.now();
        // A pause here or in the sleep below shows in no packet if none was sent, so it is measured by the
        // clock.
        self.see_pause(self.awake, now);
        self.rest.take(now);
        let now = self.now();
        let sample = self.next_sample + self.sample_grace;
        let due = self.lanes.iter().filter_map(Lane::next_departure).min();
        let next = due.map_or(sample, |due| due.min(sample));
        let left = next.since(now).0;
        let may_spin = self.rest.may_spin(now);
        if left <= if may_spin { SPIN_NS } else { 0 } {
            self.awake = now;
            return Ok(());
        }
        // At least an eighth of a short wait is slept, so that the lead never becomes one long spin.
        let lead = if may_spin { self.rest.lead.min(left - left / 8) } else { 0 };
        let full_lead = lead == self.rest.lead;
        let left = (left - lead).min(LONGEST_SLEEP_NS);
        let mut waiting =
            [0, 1].map(|port| libc::pollfd { fd: self.ports[port].fd(), events: libc::POLLIN, revents: 0 });
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: left as i64 };
        // SAFETY: the descriptors and the timeout are valid for the call; no signal mask is passed.
        let ready = unsafe { libc::ppoll(waiting.as_mut_ptr(), 2, &timeout, std::ptr::null()) };
        let awake = self.now();
        self.see_pause(now + Duration(left), awake);
        self.awake = awake;
        self.rest.rested += awake.since(now).0.saturating_sub(SWITCH_NS);
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

    fn see_pause(&mut self, wanted: Time, now: Time) {
        let length = now.since(wanted).0;
        if length >= SHORTEST_PAUSE_NS && self.pauses.len() < MOST_PAUSES {
            self.pauses.push(Pause { length, at: now.0 });
        }
    }

    /// The summary of the run.
    pub fn summary(&mut self, conditions: &Conditions) -> Result<Summary, Error> {
        let mut faults = Vec::new();
        let mut directions = Vec::new();
        for (lane, input) in self.lanes.iter().zip(INPUTS) {
            let summary = lane.summary(&mut self.ports[input])?;
            faults.extend(summary.faults(lane.name));
            directions.push(summary);
        }
        let [down, up] = directions.try_into().expect("two lanes");
        Ok(Summary {
            conditions: conditions.clone(),
            duration: self.now().since(self.started).0,
            cpu_time: cpu_time_ns(),
            down,
            up,
            lateness: Lateness::of(&self.shared.lateness),
            clock_steps: self.shared.clock.steps(),
            pauses: self.pauses.clone(),
            faults,
        })
    }

    /// Writes the table `link` and, if requested, `packet`.
    pub fn write_tables(&self, folder: &Path) -> Result<(), Error> {
        self.shared.recorder.write(folder, self.shared.clients.rows()).map_err(Error::Trace)
    }
}

impl Rest {
    /// Begins a new window when the present one is over, after the least rest.
    fn take(&mut self, now: Time) {
        if now.since(self.window).0 < REST_WINDOW_NS {
            return;
        }
        if self.rested < LEAST_REST_NS {
            std::thread::sleep(std::time::Duration::from_nanos(LEAST_REST_NS - self.rested));
        }
        self.rested = 0;
        self.window = now;
    }

    fn may_spin(&self, now: Time) -> bool {
        self.rested >= now.since(self.window).0 / SPIN_REST_SHARE
    }

    /// Adapts the lead after a wake-up by the timer.
    fn adapt(&mut self, due: Time, awake: Time) {
        if awake > due {
            self.lead = (self.lead + LEAD_STEP_NS).min(LONGEST_LEAD_NS + SPIN_NS);
        } else if due.since(awake).0 > SPIN_NS {
            self.lead = (self.lead - LEAD_STEP_NS / 2).max(SPIN_NS);
        }
    }
}
