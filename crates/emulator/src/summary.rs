use crate::histogram::Histogram;
use crate::realtime::Conditions;
use serde::Serialize;
use wirepaint_link_model::Counters;

/// What the emulator says at the end of a run. Times are nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub conditions: Conditions,
    /// Length of the emulation.
    pub duration: u64,
    /// CPU time that the emulator used.
    pub cpu_time: u64,
    pub down: DirectionSummary,
    pub up: DirectionSummary,
    /// Departure in fact minus departure due, over both directions.
    pub lateness: Lateness,
    /// How often the wall clock was set: arrival stamps around it may be wrong.
    pub clock_steps: u64,
    /// Why the run is not what was asked for; empty when nothing is wrong.
    pub faults: Vec<Fault>,
}

/// What happened in one direction. `offered = delivered + queue_drops + aqm_drops + random_losses
/// + send_failures + inside`, and `received = offered + oversized + no_memory`.
#[derive(Debug, Serialize)]
pub(crate) struct DirectionSummary {
    /// Frames that came out of the receive ring.
    pub received_packets: u64,
    pub offered_packets: u64,
    pub offered_bytes: u64,
    pub delivered_packets: u64,
    pub delivered_bytes: u64,
    pub queue_drops: u64,
    pub aqm_drops: u64,
    pub random_losses: u64,
    pub ecn_marks: u64,
    /// Packets in the queue, in transmission or under way at the end.
    pub inside_packets: u64,
    /// Frames that the receive ring had no room for.
    pub ring_drops: u64,
    /// Frames that Linux dropped before the receive ring: the receive backlog of a CPU was full.
    pub backlog_drops: u64,
    /// Packets that the model delivered but the far interface refused.
    pub send_failures: u64,
    /// Frames above the MTU.
    pub oversized: u64,
    /// Frames that found no memory.
    pub no_memory: u64,
    /// Frames whose sender left the checksum to a device.
    pub unfinished_checksums: u64,
    /// Most that an arrival was taken later than it came because it was read too late.
    pub largest_shift: u64,
}

/// Quantiles of the lateness.
#[derive(Debug, Serialize)]
pub(crate) struct Lateness {
    pub packets: u64,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub max: u64,
}

/// Something that must not happen in a run.
#[derive(Debug, Serialize)]
pub(crate) struct Fault {
    pub check: &'static str,
    pub direction: &'static str,
    pub packets: u64,
}

impl Lateness {
    pub fn of(histogram: &Histogram) -> Lateness {
        Lateness {
            packets: histogram.count(),
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            max: histogram.max(),
        }
    }
}

impl DirectionSummary {
    /// Packets that the books do not account for; zero unless the emulator has a bug.
    fn unaccounted(&self) -> u64 {
        let dropped = self.queue_drops + self.aqm_drops + self.random_losses + self.send_failures;
        let inside_model = self.delivered_packets + dropped + self.inside_packets;
        let before_model = self.offered_packets + self.oversized + self.no_memory;
        self.offered_packets.abs_diff(inside_model) + self.received_packets.abs_diff(before_model)
    }

    /// What went wrong in this direction.
    pub fn faults(&self, direction: &'static str) -> impl Iterator<Item = Fault> + use<> {
        [
            ("packet conservation", self.unaccounted()),
            ("ring drops", self.ring_drops),
            ("backlog drops", self.backlog_drops),
            ("send failures", self.send_failures),
            ("frames above the MTU", self.oversized),
            ("frames without memory", self.no_memory),
            ("unfinished checksums", self.unfinished_checksums),
        ]
        .into_iter()
        .filter(|(_, packets)| *packets > 0)
        .map(move |(check, packets)| Fault { check, direction, packets })
    }

    /// The model's counters with those of the ports.
    pub fn new(c: &Counters) -> DirectionSummary {
        DirectionSummary {
            received_packets: 0,
            offered_packets: c.offered_packets,
            offered_bytes: c.offered_bytes,
            delivered_packets: c.delivered_packets,
            delivered_bytes: c.delivered_bytes,
            queue_drops: c.queue_drops,
            aqm_drops: c.aqm_drops,
            random_losses: c.random_losses,
            ecn_marks: c.marks,
            inside_packets: c.inside_packets,
            ring_drops: 0,
            backlog_drops: 0,
            send_failures: 0,
            oversized: 0,
            no_memory: 0,
            unfinished_checksums: 0,
            largest_shift: c.largest_shift.0,
        }
    }
}
