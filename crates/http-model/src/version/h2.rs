//! HTTP/2 (RFC 9113): requests side by side, bodies in DATA frames.

use crate::heads::{Heads, RequestHeads};
use crate::protocol::{Coding, Protocol};

/// Header of a frame (RFC 9113, 4.1).
const FRAME_HEADER: u64 = 9;

/// Bytes of `content-length` and `:status` for HTTP/2; `date` is sent in full once per connection.
const STATUS_AND_LENGTH: u32 = 1 + 7;
const DATE: u32 = 24;

/// HTTP/2.
#[derive(Clone, Copy, Debug)]
pub(super) struct H2;

impl Protocol for H2 {
    fn alpn(&self) -> &'static str {
        "h2"
    }

    fn is_multiplexed(&self) -> bool {
        true
    }

    /// SETTINGS with two values, as the replay server sends it.
    fn server_settings(&self) -> u64 {
        FRAME_HEADER + 2 * 6
    }

    fn acknowledgement(&self) -> u64 {
        FRAME_HEADER
    }

    /// A PRIORITY frame (RFC 9113, 6.3).
    fn priority_change(&self) -> u64 {
        FRAME_HEADER + 5
    }

    /// With the frame's header, one full TLS record.
    fn most_written(&self) -> u64 {
        16_384 - FRAME_HEADER
    }

    fn framing(&self, body: u64) -> u64 {
        body.div_ceil(self.most_written()) * FRAME_HEADER
    }

    fn coding(&self, heads: &Heads, client: RequestHeads) -> Box<dyn Coding> {
        Box::new(Compression::new(heads, client))
    }
}

/// HPACK on one connection, both ways: an encoder with a large table writes one or two bytes for a field that the
/// connection has carried before, else the literal.
#[derive(Debug)]
struct Compression {
    client: RequestHeads,
    /// Fields of answers that it has carried.
    carried: Vec<bool>,
    dated: bool,
    /// Kinds of requests that it has carried, as bits.
    asked: u16,
}

impl Compression {
    /// State of a new connection.
    fn new(heads: &Heads, client: RequestHeads) -> Compression {
        Compression { client, carried: vec![false; heads.distinct], dated: false, asked: 0 }
    }
}

impl Coding for Compression {
    fn request(&mut self, heads: &Heads, message: u32) -> u64 {
        let head = &heads.requests[message as usize];
        let bit = 1 << head.kind;
        let mut block = self.client.known_bytes + head.path;
        if self.asked == 0 {
            block += self.client.constant_bytes;
        }
        if self.asked & bit == 0 {
            block += if head.is_document { self.client.document_bytes } else { self.client.kind_bytes };
        }
        self.asked |= bit;
        FRAME_HEADER + u64::from(self.client.priority_bytes) + u64::from(block)
    }

    fn answer(&mut self, heads: &Heads, message: u32) -> u64 {
        let mut block = STATUS_AND_LENGTH + if self.dated { 1 } else { DATE };
        self.dated = true;
        for &(field, kept, literal) in &heads.answers[message as usize].fields {
            let carried = &mut self.carried[field as usize];
            block += if *carried && kept { 2 } else { literal };
            *carried = true;
        }
        FRAME_HEADER + u64::from(block)
    }
}
