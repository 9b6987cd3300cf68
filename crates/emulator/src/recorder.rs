//! Rows of the tables `link` and `packet`, kept in memory until the run ends.

use crate::frame::{Header, Tcp};
use std::path::Path;
use wirepaint_link_model::Counters;
use wirepaint_trace::schema::{Client, Link, Packet};
use wirepaint_trace::{TableWriter, TraceError, Value, row};
use wirepaint_units::{Duration, Time};

/// Rows per allocation: few, so that locking its memory delays no packet.
const CHUNK_ROWS: usize = 1024;
/// Letters of the TCP flags from the lowest bit: FIN SYN RST PSH ACK URG ECE CWR.
const FLAG_LETTERS: &[u8; 8] = b"FSRPAUEW";

/// A sample of one direction.
#[derive(Debug)]
pub(crate) struct LinkSample {
    pub time: Time,
    pub direction: &'static str,
    pub counters: Counters,
    pub lateness_max: Duration,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Delivered {
        due: Time,
        out: Time,
    },
    /// Why.
    Dropped(&'static str),
}

/// One packet.
#[derive(Debug)]
pub(crate) struct PacketRecord {
    pub direction: &'static str,
    pub arrival: Time,
    pub outcome: Outcome,
    pub wire_bytes: u32,
    pub header: Option<Header>,
}

/// A list that appends without moving its items.
#[derive(Debug)]
struct Chunks<T>(Vec<Vec<T>>);

impl<T> Chunks<T> {
    fn push(&mut self, value: T) {
        if self.0.last().is_none_or(|chunk| chunk.len() == CHUNK_ROWS) {
            self.0.push(Vec::with_capacity(CHUNK_ROWS));
        }
        self.0.last_mut().expect("just made").push(value);
    }
}

/// Keeps the rows of the trace.
#[derive(Debug)]
pub(crate) struct Recorder {
    segment: String,
    links: Chunks<LinkSample>,
    packets: Option<Chunks<PacketRecord>>,
}

impl Recorder {
    pub fn new(segment: &str, packet_trace: bool) -> Recorder {
        let packets = packet_trace.then(|| Chunks(Vec::new()));
        Recorder { segment: segment.to_owned(), links: Chunks(Vec::new()), packets }
    }

    pub fn link(&mut self, sample: LinkSample) {
        self.links.push(sample);
    }

    /// Records a packet when packets are wanted; `record` is not called otherwise.
    pub fn packet(&mut self, record: impl FnOnce() -> PacketRecord) {
        if let Some(packets) = &mut self.packets {
            packets.push(record());
        }
    }

    /// Writes the tables into `folder`.
    pub fn write(&self, folder: &Path, clients: impl Iterator<Item = Client>) -> Result<(), TraceError> {
        TableWriter::save(folder, clients)?;
        TableWriter::save(folder, self.links.0.iter().flatten().map(|sample| self.link_row(sample)))?;
        let Some(packets) = &self.packets else { return Ok(()) };
        TableWriter::save(folder, packets.0.iter().flatten().map(|packet| self.packet_row(packet)))
    }

    fn link_row(&self, sample: &LinkSample) -> Link {
        let c = &sample.counters;
        row!(Link {
            time: sample.time.0,
            segment: self.segment.as_str(),
            direction: sample.direction,
            queue_packets: c.queue_packets,
            queue_bytes: c.queue_bytes,
            offered_packets: c.offered_packets,
            offered_bytes: c.offered_bytes,
            delivered_packets: c.delivered_packets,
            delivered_bytes: c.delivered_bytes,
            queue_drops: c.queue_drops + c.aqm_drops,
            random_losses: c.random_losses,
            lateness_max: sample.lateness_max.0,
            capacity_bytes: c.capacity_bytes,
        })
    }

    fn packet_row(&self, packet: &PacketRecord) -> Packet {
        let (due, out, dropped) = match packet.outcome {
            Outcome::Delivered { due, out } => (Some(due.0), Some(out.0), None),
            Outcome::Dropped(cause) => (None, None, Some(cause)),
        };
        let transport = packet.header.and_then(|header| header.transport);
        let tcp = transport.and_then(|transport| transport.tcp);
        row!(Packet {
            segment: self.segment.as_str(),
            direction: packet.direction,
            time_in: packet.arrival.0,
            time_due: due,
            time_out: out,
            dropped: dropped,
            wire_bytes: packet.wire_bytes,
            connection: Value::Null,
            source_address: packet.header.map(|header| header.source.to_string()),
            source_port: transport.map(|transport| transport.source_port),
            destination_address: packet.header.map(|header| header.destination.to_string()),
            destination_port: transport.map(|transport| transport.destination_port),
            sequence: tcp.map(|tcp| tcp.sequence),
            acknowledgement: tcp.map(|tcp| tcp.acknowledgement),
            payload_bytes: transport.map(|transport| transport.payload_bytes),
            flags: tcp.map(flag_letters),
        })
    }
}

fn flag_letters(tcp: Tcp) -> String {
    (0..8).filter(|bit| tcp.flags >> bit & 1 == 1).map(|bit| char::from(FLAG_LETTERS[bit])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_named_by_letter() {
        let tcp = |flags| Tcp { sequence: 0, acknowledgement: 0, flags };
        assert_eq!(flag_letters(tcp(0x12)), "SA");
        assert_eq!(flag_letters(tcp(0xC2)), "SEW");
    }
}
