//! Frames in memory, and their headers.

use crate::clients::Clients;
use std::net::Ipv4Addr;
use wirepaint_link_model::Packet;
use wirepaint_link_model::config::Counted;
use wirepaint_units::Time;

/// Length of an Ethernet header.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// Memory of one frame; a longer frame is oversized anyway.
pub(crate) const SLOT_BYTES: usize = 2048;
/// Slots by which the store grows: 128 KiB, so that locking new memory takes microseconds.
const CHUNK_SLOTS: usize = 64;
/// Slots reserved at the start.
const RESERVED_SLOTS: usize = 4096;
/// Most memory for frames inside the model.
const MOST_SLOTS: usize = (1 << 30) / SLOT_BYTES;

const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// FIN, SYN and RST.
const FLAGS_OF_NO_COUNT: u8 = 0b111;
/// The two low bits of the traffic class (RFC 3168).
const ECN_MASK: u8 = 0b11;

/// A frame that is inside the link model; its bytes lie in a [`Store`].
#[derive(Debug)]
pub(crate) struct Frame {
    pub slot: u32,
    pub bytes: u16,
    pub arrival: Time,
    flow: u64,
    counted_as: Option<Counted>,
    ecn_capable: bool,
    dscp: u8,
    /// Its client's place among the clients.
    pub client: Option<u16>,
    /// The model marked it: [`mark_congestion`] is due before it is sent.
    pub marked: bool,
}

impl Frame {
    /// A frame from a client (`up`) or to one.
    pub fn new(slot: u32, data: &[u8], arrival: Time, clients: &Clients, up: bool) -> Frame {
        let header = Header::parse(data);
        let client = header
            .as_ref()
            .and_then(|header| clients.at(if up { header.source } else { header.destination }));
        let traffic_class = if header.is_some() { data[ETHERNET_BYTES + 1] } else { 0 };
        Frame {
            slot,
            bytes: data.len() as u16,
            arrival,
            flow: header.as_ref().map_or(0, Header::flow),
            counted_as: header.and_then(|header| header.transport).and_then(Transport::counted_as),
            ecn_capable: traffic_class & ECN_MASK != 0,
            dscp: client.and_then(|client| clients.dscp(client)).unwrap_or(traffic_class >> 2),
            client,
            marked: false,
        }
    }
}

impl Packet for Frame {
    fn ip_bytes(&self) -> u32 {
        u32::from(self.bytes) - ETHERNET_BYTES as u32
    }
    fn is_ecn_capable(&self) -> bool {
        self.ecn_capable
    }
    fn mark_congestion(&mut self) {
        self.marked = true;
    }
    fn flow(&self) -> u64 {
        self.flow
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn counted_as(&self) -> Option<Counted> {
        self.counted_as
    }
}

/// Memory of the frames inside the model.
#[derive(Debug, Default)]
pub(crate) struct Store {
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl Store {
    pub fn new() -> Store {
        let mut store = Store::default();
        while store.chunks.len() * CHUNK_SLOTS < RESERVED_SLOTS {
            store.grow();
        }
        store
    }

    fn grow(&mut self) {
        let first = (self.chunks.len() * CHUNK_SLOTS) as u32;
        self.chunks.push(vec![0; CHUNK_SLOTS * SLOT_BYTES].into());
        self.free.extend((first..first + CHUNK_SLOTS as u32).rev());
    }

    /// Stores a copy of a frame of at most `SLOT_BYTES`; `None` when the memory for frames is used up.
    pub fn put(&mut self, data: &[u8]) -> Option<u32> {
        if self.free.is_empty() {
            if self.chunks.len() * CHUNK_SLOTS >= MOST_SLOTS {
                return None;
            }
            self.grow();
        }
        let slot = self.free.pop()?;
        self.slot(slot)[..data.len()].copy_from_slice(data);
        Some(slot)
    }

    /// The bytes of a frame.
    pub fn frame_mut(&mut self, frame: &Frame) -> &mut [u8] {
        &mut self.slot(frame.slot)[..usize::from(frame.bytes)]
    }

    fn slot(&mut self, slot: u32) -> &mut [u8] {
        let start = slot as usize % CHUNK_SLOTS * SLOT_BYTES;
        &mut self.chunks[slot as usize / CHUNK_SLOTS][start..start + SLOT_BYTES]
    }

    pub fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

/// Addresses of an IPv4 packet and, for TCP and UDP, of its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    /// `None` for another protocol, a later fragment or a cut header.
    pub transport: Option<Transport>,
}

/// Header of a TCP segment or UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transport {
    pub source_port: u16,
    pub destination_port: u16,
    pub payload_bytes: u32,
    pub tcp: Option<Tcp>,
}

/// Fields of a TCP header beyond its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub sequence: u32,
    pub acknowledgement: u32,
    pub flags: u8,
}

fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at + 2)?.try_into().ok()?))
}

fn be32(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

impl Header {
    /// Reads an Ethernet frame; `None` when it does not carry IPv4.
    pub fn parse(frame: &[u8]) -> Option<Header> {
        let ip = frame.get(ETHERNET_BYTES..)?;
        if frame[12..14] != ETHERTYPE_IPV4 || ip.len() < 20 || ip[0] >> 4 != 4 {
            return None;
        }
        Some(Header {
            source: Ipv4Addr::from(be32(ip, 12)?),
            destination: Ipv4Addr::from(be32(ip, 16)?),
            transport: Transport::parse(ip),
        })
    }

    fn flow(&self) -> u64 {
        let ports =
            self.transport.map_or(0, |t| u64::from(t.source_port) << 16 | u64::from(t.destination_port));
        let addresses = u64::from(u32::from(self.source)) << 32 | u64::from(u32::from(self.destination));
        // Two rounds of multiplication and folding (as in SplitMix64) spread every bit.
        let mixed = (addresses ^ ports << 20).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 31 ^ ports).wrapping_mul(0x94D0_49BB_1331_11EB)
    }
}

impl Transport {
    fn counted_as(self) -> Option<Counted> {
        match self.tcp {
            Some(tcp) if tcp.flags & FLAGS_OF_NO_COUNT != 0 => None,
            _ if self.payload_bytes > 0 => Some(Counted::Data),
            tcp => tcp.and(Some(Counted::Bare)),
        }
    }

    fn parse(ip: &[u8]) -> Option<Transport> {
        let header_bytes = usize::from(ip[0] & 0xF) * 4;
        let fragment_offset = be16(ip, 6)? & 0x1FFF;
        let data = ip.get(header_bytes..usize::from(be16(ip, 2)?))?;
        if fragment_offset != 0 {
            return None;
        }
        let (tcp, header) = match ip[9] {
            PROTOCOL_TCP => {
                let tcp =
                    Tcp { sequence: be32(data, 4)?, acknowledgement: be32(data, 8)?, flags: *data.get(13)? };
                (Some(tcp), usize::from(data[12] >> 4) * 4)
            }
            PROTOCOL_UDP => (None, 8),
            _ => return None,
        };
        Some(Transport {
            source_port: be16(data, 0)?,
            destination_port: be16(data, 2)?,
            payload_bytes: data.len().checked_sub(header)? as u32,
            tcp,
        })
    }
}

/// Sets Congestion Experienced in an IPv4 frame and updates its header checksum (RFC 1624).
pub(crate) fn mark_congestion(frame: &mut [u8]) {
    let ip = &mut frame[ETHERNET_BYTES..];
    let old = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] |= ECN_MASK;
    let new = u16::from_be_bytes([ip[0], ip[1]]);
    let checksum = u16::from_be_bytes([ip[10], ip[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP segment with four bytes of payload, ECT(0), and a correct header checksum.
    fn segment() -> Vec<u8> {
        let mut frame = vec![0_u8; 12];
        frame.extend(ETHERTYPE_IPV4);
        frame.extend([0x45, 0x02, 0, 44, 0, 1, 0x40, 0, 64, PROTOCOL_TCP, 0, 0, 10, 64, 0, 2, 10, 1, 2, 3]);
        frame.extend([0x9C, 0x40, 0x01, 0xBB, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x12, 0, 0, 0, 0, 0, 0]);
        frame.extend(b"data");
        let checksum = !sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 =
            header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_segment_is_read_with_its_addresses_numbers_and_payload() {
        let header = Header::parse(&segment()).unwrap();
        assert_eq!(header.source, Ipv4Addr::new(10, 64, 0, 2));
        let transport = header.transport.unwrap();
        assert_eq!((transport.source_port, transport.destination_port), (40_000, 443));
        assert_eq!(transport.payload_bytes, 4);
        assert_eq!(transport.tcp, Some(Tcp { sequence: 7, acknowledgement: 9, flags: 0x12 }));
    }

    #[test]
    fn a_cut_or_foreign_frame_is_no_header_and_no_panic() {
        let whole = segment();
        for length in 0..whole.len() {
            if let Some(header) = Header::parse(&whole[..length]) {
                assert_eq!(header.transport, None, "cut at {length}");
            }
        }
        let mut arp = whole;
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        assert_eq!(Header::parse(&arp), None);
    }

    #[test]
    fn a_script_counts_payload_and_pure_acknowledgements_but_no_syn_fin_or_rst() {
        let counted = |flags: u8, payload_bytes| {
            let tcp = Some(Tcp { sequence: 0, acknowledgement: 0, flags });
            Transport { source_port: 1, destination_port: 2, payload_bytes, tcp }.counted_as()
        };
        assert_eq!([counted(0x18, 4), counted(0x10, 0)], [Some(Counted::Data), Some(Counted::Bare)]);
        assert_eq!([0x02, 0x12, 0x11, 0x04].map(|flags| counted(flags, 0)), [None; 4]);
        assert_eq!(counted(0x19, 4), None, "a FIN with payload");
        let datagram =
            |payload_bytes| Transport { source_port: 1, destination_port: 2, payload_bytes, tcp: None };
        assert_eq!([4, 0].map(|bytes| datagram(bytes).counted_as()), [Some(Counted::Data), None]);
    }

    #[test]
    fn marking_sets_ce_and_keeps_the_checksum_right() {
        let mut frame = segment();
        mark_congestion(&mut frame);
        assert_eq!(frame[15] & ECN_MASK, ECN_MASK);
        assert_eq!(sum(&frame[14..34]), 0xFFFF, "the sum over a right header is all ones");
    }

    #[test]
    fn a_released_slot_is_used_again() {
        let mut store = Store::new();
        let slot = store.put(b"one").unwrap();
        store.release(slot);
        assert_eq!(store.put(b"two"), Some(slot));
        assert_eq!(&store.slot(slot)[..3], b"two");
    }
}
