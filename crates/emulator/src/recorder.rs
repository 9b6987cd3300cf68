//! Rows of the tables `link` and `packet`, kept in memory until the run ends.

use crate::frame::{Header, Tcp};
use std::path::Path;
use wirepaint_link_model::Counters;
use wirepaint_trace::{TableWriter, TraceError, row};
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
    links: Chunks<LinkSample>,
    packets: Option<Chunks<PacketRecord>>,
}

impl Recorder {
    pub fn new(packet_trace: bool) -> Recorder {
        Recorder { links: Chunks(Vec::new()), packets: packet_trace.then(|| Chunks(Vec::new())) }
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
    pub fn write(&self, folder: &Path) -> Result<(), TraceError> {
        let mut table = TableWriter::create(folder, "link")?;
        for sample in self.links.0.iter().flatten() {
            let c = &sample.counters;
            table.push(row![
                sample.time.0,
                sample.direction,
                Option::<&str>::None,
                c.queue_packets,
                c.queue_bytes,
                c.offered_packets,
                c.offered_bytes,
                c.delivered_packets,
                c.delivered_bytes,
                c.queue_drops + c.aqm_drops,
                c.random_losses,
                sample.lateness_max.0,
                c.capacity_bytes
            ])?;
        }
        table.finish()?;
        let Some(packets) = &self.packets else { return Ok(()) };
        let mut table = TableWriter::create(folder, "packet")?;
        for packet in packets.0.iter().flatten() {
            write_packet(&mut table, packet)?;
        }
        table.finish()
    }
}

fn write_packet(table: &mut TableWriter, packet: &PacketRecord) -> Result<(), TraceError> {
    let (due, out, dropped) = match packet.outcome {
        Outcome::Delivered { due, out } => (Some(due.0), Some(out.0), None),
        Outcome::Dropped(cause) => (None, None, Some(cause)),
    };
    let transport = packet.header.and_then(|header| header.transport);
    let tcp = transport.and_then(|transport| transport.tcp);
    table.push(row![
        packet.direction,
        packet.arrival.0,
        due,
        out,
        dropped,
        packet.wire_bytes,
        Option::<i64>::None,
        packet.header.map(|header| header.source.to_string()),
        transport.map(|transport| transport.source_port),
        packet.header.map(|header| header.destination.to_string()),
        transport.map(|transport| transport.destination_port),
        tcp.map(|tcp| tcp.sequence),
        tcp.map(|tcp| tcp.acknowledgement),
        transport.map(|transport| transport.payload_bytes),
        tcp.map(flag_letters)
    ])
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
