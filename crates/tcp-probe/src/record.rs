//! A record of probe.bpf.c and its row of the table `tcp`.

use std::net::Ipv4Addr;
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
    /// Reads a record as the ring buffer delivers it.
    pub fn read(bytes: &[u8]) -> Record {
        assert!(bytes.len() >= size_of::<Record>(), "the ring buffer holds whole records");
        // SAFETY: long enough, and every bit pattern is a record.
        unsafe { bytes.as_ptr().cast::<Record>().read_unaligned() }
    }

    /// The row of the table `tcp`, in the order of the schema; times from the run's epoch.
    pub fn row(&self, epoch_ns: u64) -> Vec<Value> {
        let address = |network_order: u32| Ipv4Addr::from(u32::from_be(network_order)).to_string();
        // All ones: paced, but without a limit.
        let paced = self.pacing_rate > 0 && self.pacing_rate < u64::MAX;
        row![
            self.time_ns as i64 - epoch_ns as i64,
            Value::Null,
            "server",
            address(self.local_address),
            self.local_port,
            address(self.remote_address),
            self.remote_port,
            EVENTS[usize::from(self.event)],
            self.cwnd,
            (self.ssthresh < INFINITE_SSTHRESH).then_some(self.ssthresh),
            (self.srtt_us > 0).then_some(i64::from(self.srtt_us) * 1000 / 8),
            self.in_flight,
            STATES[usize::from(self.state)],
            self.delivered,
            self.lost,
            self.retransmitted,
            paced.then(|| self.pacing_rate * 8),
        ]
        .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirepaint_trace::schema::table;

    fn cell(record: Record, column: &str) -> Value {
        let columns = table("tcp").unwrap().columns;
        let index = columns.iter().position(|c| c.name == column).unwrap();
        record.row(1_000)[index].clone()
    }

    #[test]
    fn a_row_has_the_columns_of_the_table() {
        assert_eq!(Record::default().row(0).len(), table("tcp").unwrap().columns.len());
    }

    #[test]
    fn what_is_not_known_yet_is_null() {
        let fresh = Record { ssthresh: 0x7fff_ffff, pacing_rate: u64::MAX, ..Record::default() };
        for column in ["ssthresh", "srtt", "pacing_rate", "connection"] {
            assert_eq!(cell(fresh, column), Value::Null, "{column}");
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
        assert_eq!(cell(record, "time"), Value::Int(4_000));
        assert_eq!(cell(record, "srtt"), Value::Int(100_000_000));
        assert_eq!(cell(record, "pacing_rate"), Value::Int(1_000_000));
        assert_eq!(cell(record, "server_address"), Value::Text("10.1.2.3".into()));
        assert_eq!(cell(record, "server_port"), Value::Int(443));
        assert_eq!(cell(record, "state"), Value::Text("Recovery".into()));
        assert_eq!(cell(record, "event"), Value::Text("retransmit".into()));
    }
}
