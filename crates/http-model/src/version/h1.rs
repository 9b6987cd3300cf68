//! HTTP/1.1 (RFC 9112): one answer after another, heads as text.

use crate::heads::{Heads, RequestHeads};
use crate::protocol::{Coding, Protocol};

/// HTTP/1.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct H1;

impl Protocol for H1 {
    fn alpn(&self) -> &'static str {
        "http/1.1"
    }

    fn is_multiplexed(&self) -> bool {
        false
    }

    fn server_settings(&self) -> u64 {
        0
    }

    fn acknowledgement(&self) -> u64 {
        0
    }

    fn priority_change(&self) -> u64 {
        0
    }

    fn most_written(&self) -> u64 {
        16 * 1024
    }

    fn framing(&self, _body: u64) -> u64 {
        0
    }

    fn coding(&self, _heads: &Heads, client: RequestHeads) -> Box<dyn Coding> {
        Box::new(Plain { client })
    }
}

/// Heads as text.
#[derive(Debug)]
struct Plain {
    client: RequestHeads,
}

impl Coding for Plain {
    fn request(&mut self, heads: &Heads, message: u32) -> u64 {
        let RequestHeads { plain_bytes, plain_document_bytes, .. } = self.client;
        let request = &heads.requests[message as usize];
        request.plain + u64::from(if request.is_document { plain_document_bytes } else { plain_bytes })
    }

    fn answer(&mut self, heads: &Heads, message: u32) -> u64 {
        heads.answers[message as usize].plain
    }
}
