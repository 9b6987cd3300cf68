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
    /// Pauses of the emulator itself.
    pub pauses: Vec<Pause>,
    /// Why the run is not what was asked for; empty when nothing is wrong.
    pub faults: Vec<Fault>,
}

/// What happened in one direction. `offered_packets = accounted_packets() + send_failures`, and
/// `received_packets = offered_packets + oversized + no_memory`.
#[derive(Debug, Serialize)]
pub(crate) struct DirectionSummary {
    /// What the link did; what the far interface refused is not delivered.
    #[serde(flatten)]
    pub counters: Counters,
    /// Frames that came out of the receive ring.
    pub received_packets: u64,
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
}

/// Quantiles of the lateness.
#[derive(Debug, Serialize)]
pub(crate) struct Lateness {
    pub packets: u64,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub max: u64,
}

/// A time in which the thread did not come round although it wanted to.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Pause {
    /// Nanoseconds beyond what it had asked for.
    pub length: u64,
    /// When it ended, nanoseconds since the run's epoch.
    pub at: u64,
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
        let c = &self.counters;
        let before_model = c.offered_packets + self.oversized + self.no_memory;
        c.offered_packets.abs_diff(c.accounted_packets() + self.send_failures)
            + self.received_packets.abs_diff(before_model)
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
}
