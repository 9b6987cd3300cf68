//! What differs between the versions of HTTP.

use crate::heads::{Heads, RequestHeads};
use std::fmt::Debug;

/// One version of HTTP on a connection. Lengths are bytes of plaintext.
pub trait Protocol: Debug + Sync {
    /// Its name in ALPN (RFC 7301).
    fn alpn(&self) -> &'static str;

    /// True when one connection carries any number of requests at once, and its answers go in the order of
    /// their priorities.
    fn is_multiplexed(&self) -> bool;

    /// The server's settings at the start of a connection; 0 for none.
    fn server_settings(&self) -> u64;

    /// Either side's acknowledgement of the other's settings; 0 for none.
    fn acknowledgement(&self) -> u64;

    /// The client's message that changes a request's priority; 0 where the version has none.
    fn priority_change(&self) -> u64;

    /// Most bytes of a body that a server writes at once.
    fn most_written(&self) -> u64;

    /// Bytes of frame headers around `body` bytes of an answer.
    fn framing(&self, body: u64) -> u64;

    /// The coding of heads on a new connection of a client that puts `client` into its requests.
    fn coding(&self, heads: &Heads, client: RequestHeads) -> Box<dyn Coding>;
}

/// The lengths of heads on one connection, in the order in which they are written.
pub trait Coding: Debug + Send {
    /// Bytes of a request's head.
    fn request(&mut self, heads: &Heads, message: u32) -> u64;

    /// Bytes of the head of its answer.
    fn answer(&mut self, heads: &Heads, message: u32) -> u64;
}
