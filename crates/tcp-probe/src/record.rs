//! A record of probe.bpf.c and its row of the table `tcp`.

use std::net::Ipv4Addr;
use wirepaint_trace::schema::Tcp;
use wirepaint_trace::{Value, row};

/// `struct record` of probe.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Record {
    pub time_ns: u64,
    pub pacing_rate: u64,
    pub local_address: u32,
    pub remote_address: u32,
    pub local_port: u16,
    pub remote_port: u16,
    pub event: u8,
    pub state: u8,
    pub segments: u16,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub srtt_us: u32,
    pub in_flight: u32,
    pub delivered: u32,
    pub lost: u32,
    pub retransmitted: u32,
    pub segments_in: u32,
}

pub const EVENT_ACK: u8 = 0;
#[cfg(test)]
pub const EVENT_STATE: u8 = 1;
pub const EVENT_RETRANSMIT: u8 = 2;
/// A connection ends: no row of the table.
pub const EVENT_END: u8 = 3;
const EVENTS: [&str; 3] = ["ack", "state", "retransmit"];
const STATES: [&str; 5] = ["Open", "Disorder", "CWR", "Recovery", "Loss"];
/// ssthresh while no loss has set it.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl Record {
    /// The kernel skipped the hook that says ssthresh.
    pub fn lacks_ssthresh(&self) -> bool {
        self.ssthresh > INFINITE_SSTHRESH
    }

    /// Reads a record as the ring buffer delivers it.
    pub fn read(bytes: &[u8]) -> Record {
        assert!(bytes.len() >= size_of::<Record>(), "the ring buffer holds whole records");
        // SAFETY: long enough, and every bit pattern is a record.
        unsafe { bytes.as_ptr().cast::<Record>().read_unaligned() }
    }

    /// The row of the table `tcp` for the sender of `host`; times from the run's epoch.
    pub fn row(&self, host: &str, epoch_ns: u64) -> Tcp {
        let address = |network_order: u32| Ipv4Addr::from(u32::from_be(network_order)).to_string();
        // All ones: paced, but without a limit.
        let paced = self.pacing_rate > 0 && self.pacing_rate < u64::MAX;
        row!(Tcp {
            time: self.time_ns as i64 - epoch_ns as i64,
            connection: Value::Null,
            host: host,
            side: "server",
            server_address: address(self.local_address),
            server_port: self.local_port,
            client_address: address(self.remote_address),
            client_port: self.remote_port,
            event: EVENTS[usize::from(self.event)],
            cwnd: self.cwnd,
            ssthresh: (self.ssthresh < INFINITE_SSTHRESH).then_some(self.ssthresh),
            srtt: (self.srtt_us > 0).then_some(i64::from(self.srtt_us) * 1000 / 8),
            in_flight: self.in_flight,
            state: STATES[usize::from(self.state)],
            delivered: self.delivered,
            lost: self.lost,
            retransmitted: self.retransmitted,
            pacing_rate: paced.then(|| self.pacing_rate * 8),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_yet_is_null() {
        let fresh = Record { ssthresh: 0x7fff_ffff, pacing_rate: u64::MAX, ..Record::default() };
        let row = fresh.row("server", 1_000);
        for cell in [row.ssthresh, row.srtt, row.pacing_rate, row.connection] {
            assert_eq!(cell, Value::Null);
        }
    }

    #[test]
    fn units_are_those_of_the_schema() {
        let record = Record {
            time_ns: 5_000,
            srtt_us: 8 * 100_000,
            pacing_rate: 125_000,
            local_address: u32::from_ne_bytes([10, 1, 2, 3]),
            local_port: 443,
            state: 3,
            event: 2,
            ..Record::default()
        };
        let row = record.row("server", 1_000);
        assert_eq!(row.time, Value::Int(4_000));
        assert_eq!(row.srtt, Value::Int(100_000_000));
        assert_eq!(row.pacing_rate, Value::Int(1_000_000));
        assert_eq!(row.server_address, Value::Text("10.1.2.3".into()));
        assert_eq!(row.server_port, Value::Int(443));
        assert_eq!(row.state, Value::Text("Recovery".into()));
        assert_eq!(row.event, Value::Text("retransmit".into()));
        assert_eq!(row.host, Value::Text("server".into()));
    }
}
