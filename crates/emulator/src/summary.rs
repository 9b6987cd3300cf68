use crate::histogram::Histogram;
use crate::realtime::Conditions;
use serde::Serialize;
use wirepaint_link_model::Counters;

/// The emulator's summary of a run. Times are nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub conditions: Conditions,
    /// Length of the emulation.
    pub duration: u64,
    /// CPU time that the emulator used.
    pub cpu_time: u64,
    pub down: DirectionSummary,
    pub up: DirectionSummary,
    /// Actual departure minus due departure, over both directions.
    pub lateness: Lateness,
    /// Number of steps of the wall clock; arrival stamps near a step may be wrong.
    pub clock_steps: u64,
    /// Pauses of the emulator itself.
    pub pauses: Vec<Pause>,
    /// Failed checks; empty when nothing is wrong.
    pub faults: Vec<Fault>,
}

/// Summary of one direction. `offered_packets = accounted_packets() + send_failures`, and `received_packets =
/// offered_packets + oversized + no_memory`.
#[derive(Debug, Serialize)]
pub(crate) struct DirectionSummary {
    /// The link's counters; frames that the far interface refused do not count as delivered.
    #[serde(flatten)]
    pub counters: Counters,
    /// Frames read from the receive ring.
    pub received_packets: u64,
    /// Frames that found the receive ring full.
    pub ring_drops: u64,
    /// Frames that Linux dropped before the receive ring: the receive backlog of a CPU was full.
    pub backlog_drops: u64,
    /// Packets that the model delivered but the far interface refused.
    pub send_failures: u64,
    /// Frames above the MTU.
    pub oversized: u64,
    /// Frames for which there was no memory.
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

/// A time in which the thread did not run although it was due.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Pause {
    /// Nanoseconds beyond the requested sleep.
    pub length: u64,
    /// When it ended, nanoseconds since the run's epoch.
    pub at: u64,
}

/// A failed check.
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
    /// Packets that the counters do not account for; zero unless the emulator has a bug.
    fn unaccounted(&self) -> u64 {
        let c = &self.counters;
        let before_model = c.offered_packets + self.oversized + self.no_memory;
        c.offered_packets.abs_diff(c.accounted_packets() + self.send_failures)
            + self.received_packets.abs_diff(before_model)
    }

    /// Failed checks of this direction.
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
