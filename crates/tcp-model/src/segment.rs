//! A segment without its bytes.

/// TCP's flags and the ECN field of IP, as bits of [`Segment::flags`].
pub mod flags {
    /// Opens a connection.
    pub const SYN: u16 = 1 << 0;
    /// No more data follows.
    pub const FIN: u16 = 1 << 1;
    /// `ack` is valid.
    pub const ACK: u16 = 1 << 2;
    /// End of an application's write.
    pub const PSH: u16 = 1 << 3;
    /// ECN echo (RFC 3168).
    pub const ECE: u16 = 1 << 4;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u16 = 1 << 5;
    /// The IP packet may be marked instead of dropped: ECT(0).
    pub const ECT: u16 = 1 << 6;
    /// The IP packet was marked on its way; set by the link.
    pub const CE: u16 = 1 << 7;
    /// The segment carries the timestamp option (RFC 7323).
    pub const TIMESTAMPS: u16 = 1 << 8;
    /// A SYN that offers, or a SYN-ACK that accepts, selective acknowledgements (RFC 2018).
    pub const SACK_PERMITTED: u16 = 1 << 9;
    /// These bytes were sent before.
    pub const RETRANSMISSION: u16 = 1 << 10;
}

/// Bytes of an IPv4 header and a TCP header without options.
const HEADERS: u32 = 40;

/// A TCP segment: numbers and options as on the wire, the payload only as a length.
///
/// Sequence numbers have 32 bits and wrap; a connection's SYN has number 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Number of the first byte (of the SYN itself in a SYN).
    pub seq: u32,
    /// Payload in bytes.
    pub len: u32,
    /// Next byte expected from the other side.
    pub ack: u32,
    /// Receive window in bytes, after the rounding of window scaling.
    pub window: u32,
    /// SACK blocks, the newest first; the first may be a duplicate (RFC 2883).
    pub sack: [(u32, u32); 4],
    /// Timestamp in milliseconds.
    pub tsval: u32,
    /// Timestamp echoed.
    pub tsecr: u32,
    /// Bits of [`flags`].
    pub flags: u16,
    /// Maximum segment size offered; in a SYN only.
    pub mss: u16,
    /// SACK blocks in use.
    pub sack_blocks: u8,
}

impl Segment {
    /// True where all bits of `mask` are set.
    pub fn has(&self, mask: u16) -> bool {
        self.flags & mask == mask
    }

    /// The SACK blocks.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_blocks)]
    }

    /// Sequence space taken: payload, SYN and FIN.
    pub fn sequence_space(&self) -> u32 {
        self.len + u32::from(self.has(flags::SYN)) + u32::from(self.has(flags::FIN))
    }

    /// Bytes of TCP options as Linux lays them out (tcp_options_write): in a SYN maximum segment
    /// size 4, timestamps with SACK permitted 12 (NOPs alone where one of them is missing), window
    /// scale 4; otherwise timestamps 12 and SACK 4 + 8 per block.
    pub fn option_bytes(&self) -> u32 {
        let timestamps = if self.has(flags::TIMESTAMPS) { 12 } else { 0 };
        if self.has(flags::SYN) {
            let sack_alone = self.has(flags::SACK_PERMITTED) && timestamps == 0;
            8 + timestamps + if sack_alone { 4 } else { 0 }
        } else {
            let blocks = u32::from(self.sack_blocks);
            timestamps + if blocks > 0 { 4 + 8 * blocks } else { 0 }
        }
    }

    /// Size of the IPv4 packet in bytes: what a link counts before its own overhead.
    pub fn wire_ip_bytes(&self) -> u32 {
        HEADERS + self.option_bytes() + self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_as_long_as_linux_sends_them() {
        let syn =
            Segment { flags: flags::SYN | flags::TIMESTAMPS | flags::SACK_PERMITTED, ..Segment::default() };
        assert_eq!(syn.wire_ip_bytes(), 60);
        let data = Segment { flags: flags::ACK | flags::TIMESTAMPS, len: 1448, ..Segment::default() };
        assert_eq!(data.wire_ip_bytes(), 1500);
        let sack = Segment { flags: flags::ACK | flags::TIMESTAMPS, sack_blocks: 3, ..Segment::default() };
        assert_eq!(sack.wire_ip_bytes(), 80);
    }

    #[test]
    fn a_segment_is_small() {
        assert!(size_of::<Segment>() <= 64);
    }
}
