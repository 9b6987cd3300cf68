//! Segments that TCP processed without the BPF programs.
//!
//! A kernel may process segments without running BPF programs at the tracepoint. It then skips those of a BPF
//! congestion control too, whose window does not grow (docs/guide/congestion.md). It does not report this:
//! `recursion_misses` stays 0. But TCP itself counts arriving segments (`segs_in`) and retransmissions
//! (`total_retrans`), so the number without a record is known.

use crate::record::{EVENT_ACK, EVENT_END, EVENT_RETRANSMIT, Record};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Segments before the connection is established, which pass no tracepoint: the handshake's SYN and ACK.
const HANDSHAKE: u32 = 2;

/// Compares the kernel's counters with the records, connection by connection.
#[derive(Default)]
pub struct Unseen {
    open: BTreeMap<(u32, u16, u32, u16), Seen>,
    ended: Vec<Seen>,
}

/// A connection with unseen segments, as the summary prints it.
#[derive(Clone, Default, Debug, PartialEq, Serialize)]
pub struct Seen {
    server_address: String,
    server_port: u16,
    client_port: u16,
    /// Segments that were processed without a record.
    segments: u32,
    /// Retransmissions without a record, at least.
    retransmissions: u32,
    /// Segments that arrived while ssthresh was not what the congestion control said: it was not asked.
    without_ssthresh: u32,
    #[serde(skip)]
    recorded: u32,
    /// All retransmissions.
    retransmitted: u32,
}

impl Seen {
    fn new(record: &Record) -> Seen {
        Seen {
            server_address: Ipv4Addr::from(u32::from_be(record.local_address)).to_string(),
            server_port: record.local_port,
            client_port: record.remote_port,
            recorded: HANDSHAKE,
            // Retransmissions of the SYN-ACK.
            retransmitted: record.retransmitted,
            ..Seen::default()
        }
    }

    fn compare(&mut self, record: &Record) {
        if record.segments_in > 0 {
            self.segments = record.segments_in.saturating_sub(self.recorded);
        }
    }
}

impl Unseen {
    /// Counts a record. The records of one connection come in order.
    pub fn count(&mut self, record: &Record) {
        let key = (record.local_address, record.local_port, record.remote_address, record.remote_port);
        if record.event == EVENT_END {
            if let Some(mut connection) = self.open.remove(&key) {
                connection.compare(record);
                self.ended.push(connection);
            }
            return;
        }
        let connection = self.open.entry(key).or_insert_with(|| Seen::new(record));
        connection.recorded += u32::from(record.segments);
        if record.event == EVENT_ACK {
            connection.compare(record);
            connection.without_ssthresh += u32::from(record.lacks_ssthresh());
        }
        if record.event != EVENT_RETRANSMIT {
            connection.retransmissions += record.retransmitted.saturating_sub(connection.retransmitted);
        }
        connection.retransmitted = record.retransmitted;
    }

    /// The connections of which something was not seen.
    pub fn connections(self) -> Vec<Seen> {
        self.ended
            .into_iter()
            .chain(self.open.into_values())
            .filter(|one| one.segments + one.retransmissions + one.without_ssthresh > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::EVENT_STATE;

    fn ack(segments: u16, segments_in: u32) -> Record {
        Record {
            local_port: 443,
            remote_port: 7,
            event: EVENT_ACK,
            segments,
            segments_in,
            ..Record::default()
        }
    }

    fn end(segments_in: u32) -> Record {
        Record { event: EVENT_END, ..ack(0, segments_in) }
    }

    fn unseen(records: &[Record]) -> Vec<(u32, u32)> {
        let mut unseen = Unseen::default();
        records.iter().for_each(|record| unseen.count(record));
        unseen.connections().iter().map(|c| (c.segments, c.retransmissions)).collect()
    }

    #[test]
    fn nothing_is_unseen_when_each_segment_after_the_handshake_has_a_record() {
        assert_eq!(unseen(&[ack(1, 3), ack(1, 4), end(4)]), []);
    }

    #[test]
    fn segments_without_a_record_are_counted_at_the_start_later_and_at_the_end() {
        assert_eq!(unseen(&[ack(1, 13)]), [(10, 0)]);
        assert_eq!(unseen(&[ack(1, 3), ack(1, 4), ack(1, 35), ack(1, 36)]), [(30, 0)]);
        assert_eq!(unseen(&[ack(1, 3), ack(1, 4), end(24)]), [(20, 0)]);
    }

    #[test]
    fn segments_that_waited_for_the_owner_of_the_socket_are_no_gap() {
        // Three in the backlog, two of them as one; segs_in runs ahead and is not given meanwhile.
        assert_eq!(unseen(&[ack(1, 3), ack(1, 0), ack(2, 0), ack(1, 7), end(0)]), []);
    }

    #[test]
    fn a_retransmission_without_a_record_is_counted() {
        let with = |event, retransmitted| Record { event, retransmitted, ..ack(0, 0) };
        assert_eq!(unseen(&[with(EVENT_RETRANSMIT, 1), with(EVENT_STATE, 1)]), []);
        assert_eq!(unseen(&[with(EVENT_STATE, 0), with(EVENT_STATE, 1)]), [(0, 1)]);
    }

    #[test]
    fn segments_that_arrive_without_an_ssthresh_are_counted() {
        let mut unseen = Unseen::default();
        for ssthresh in [0x7fff_ffff, 0x8110_410b, 0x8110_410b, 2] {
            unseen.count(&Record { ssthresh, ..ack(0, 0) });
        }
        let [one] = &unseen.connections()[..] else { panic!("one connection") };
        assert_eq!(one.without_ssthresh, 2);
    }

    #[test]
    fn retransmissions_of_the_syn_ack_are_no_gap() {
        let after_two = Record { event: EVENT_STATE, retransmitted: 2, ..ack(0, 0) };
        assert_eq!(unseen(&[after_two, Record { retransmitted: 2, ..ack(1, 3) }]), []);
    }

    #[test]
    fn what_arrives_after_the_end_is_of_no_interest() {
        // CLOSE_WAIT, then LAST_ACK.
        assert_eq!(unseen(&[ack(1, 3), end(3), end(5)]), []);
    }

    #[test]
    fn a_port_that_is_used_again_begins_anew() {
        assert_eq!(unseen(&[ack(1, 3), ack(1, 9), end(9), ack(1, 3), end(3)]), [(5, 0)]);
    }

    #[test]
    fn a_connection_is_named_by_its_server_and_the_clients_port() {
        let mut unseen = Unseen::default();
        let local_address = u32::from_ne_bytes([10, 65, 0, 1]);
        unseen.count(&Record { local_address, ..ack(1, 4) });
        let [one] = &unseen.connections()[..] else { panic!("one connection") };
        assert_eq!((one.server_address.as_str(), one.server_port, one.client_port), ("10.65.0.1", 443, 7));
    }
}
