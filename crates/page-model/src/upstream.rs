//! A proxy's connection to a server: HTTP/1.1, one request at a time, over TLS or not, as lengths.
//!
//! Both sides live here, as those of a [`Visit`](crate::Visit). After each call, carry out the steps that
//! [`Upstream::poll`] gives.

use crate::browser::Tls;
use crate::pipe::Pipe;
use crate::tls::{self, Hello};
use std::collections::VecDeque;
use wirepaint_http_model::HttpVersion;

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The proxy writes bytes.
    ClientWrites(u64),
    /// The server writes bytes.
    ServerWrites(u64),
    /// The proxy may send its first request.
    Ready,
    /// The server has read a request.
    Asked,
    /// The proxy has read the head of an answer.
    Head,
    /// The proxy has read bytes of the body.
    Body(u64),
}

#[derive(Clone, Copy, Debug)]
enum Up {
    Hello,
    Finished,
    Request,
}

#[derive(Clone, Copy, Debug)]
enum Down {
    Flight,
    Tickets,
    Head,
    Body,
}

/// Bytes of the messages of a TLS handshake.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    hello: u64,
    flight: u64,
    finished: u64,
    tickets: u64,
}

/// A client hello of OpenSSL 3 with its default ciphers and groups, without the server's name; the key of TLS 1.2 and
/// the finished message. Counted from OpenSSL's list of extensions, not measured.
const HELLO: u64 = 302;
const FINISHED: u64 = 80;
const FINISHED_TLS12: u64 = 126;

/// A connection.
#[derive(Debug)]
pub struct Upstream {
    handshake: Option<Handshake>,
    up: Pipe<Up>,
    down: Pipe<Down>,
    steps: VecDeque<Step>,
}

impl Upstream {
    /// A connection to `host` that is not established; `tls` is the version of TLS, if any.
    pub fn new(host: &str, tls: Option<Tls>) -> Upstream {
        let handshake = tls.map(|version| {
            // The server's sizes do not depend on the client's.
            let hello = Hello::default();
            let sizes =
                tls::Handshake { version, http: HttpVersion::H1, host, resumed: false, hello: &hello };
            Handshake {
                hello: HELLO + host.len() as u64,
                flight: sizes.server_flight(),
                finished: if version == Tls::V12 { FINISHED_TLS12 } else { FINISHED },
                tickets: sizes.server_finished(),
            }
        });
        let record = tls.map(|version| (16_384, tls::record_overhead(version)));
        Upstream { handshake, up: Pipe::new(record), down: Pipe::new(record), steps: VecDeque::new() }
    }

    /// The next step.
    pub fn poll(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// The TCP connection is established.
    pub fn connected(&mut self) {
        self.steps.push_back(match self.handshake {
            Some(Handshake { hello, .. }) => Step::ClientWrites(self.up.write_raw(Up::Hello, hello)),
            None => Step::Ready,
        });
    }

    /// The proxy sends a request of so many bytes.
    pub fn ask(&mut self, bytes: u64) {
        self.steps.push_back(Step::ClientWrites(self.up.write(&[(Up::Request, bytes, 0)])));
    }

    /// The server sends bytes of an answer. Its head goes with its first part.
    pub fn answer(&mut self, head: u64, body: u64) {
        self.steps.push_back(Step::ServerWrites(
            self.down.write(&[(Down::Head, head, 0), (Down::Body, body, body)]),
        ));
    }

    /// `bytes` more have arrived in order at the server.
    pub fn server_received(&mut self, bytes: u64) {
        self.up.arrive(bytes, |_, _| {});
        while let Some(piece) = self.up.read() {
            match (piece.meaning, self.handshake) {
                _ if !piece.last => {}
                (Up::Hello, Some(Handshake { flight, .. })) => {
                    self.steps.push_back(Step::ServerWrites(self.down.write_raw(Down::Flight, flight)));
                }
                (Up::Finished, Some(Handshake { tickets, .. })) => {
                    self.steps.push_back(Step::ServerWrites(self.down.write_raw(Down::Tickets, tickets)));
                }
                _ => self.steps.push_back(Step::Asked),
            }
        }
    }

    /// `bytes` more have arrived in order at the proxy.
    pub fn client_received(&mut self, bytes: u64) {
        self.down.arrive(bytes, |_, _| {});
        while let Some(piece) = self.down.read() {
            match (piece.meaning, self.handshake) {
                (Down::Flight, Some(Handshake { finished, .. })) => {
                    self.steps.push_back(Step::ClientWrites(self.up.write_raw(Up::Finished, finished)));
                    self.steps.push_back(Step::Ready);
                }
                (Down::Head, _) if piece.last => self.steps.push_back(Step::Head),
                (Down::Body, _) => self.steps.push_back(Step::Body(piece.bytes.into())),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries all bytes at once and answers each request with `answer`. Returns what the proxy learned.
    fn carry(upstream: &mut Upstream, answer: (u64, u64)) -> Vec<Step> {
        let mut seen = Vec::new();
        while let Some(step) = upstream.poll() {
            match step {
                Step::ClientWrites(bytes) => upstream.server_received(bytes),
                Step::ServerWrites(bytes) => upstream.client_received(bytes),
                Step::Asked => upstream.answer(answer.0, answer.1),
                _ => seen.push(step),
            }
        }
        seen
    }

    #[test]
    fn requests_follow_the_handshake_and_bodies_come_whole() {
        for tls in [None, Some(Tls::V13), Some(Tls::V12)] {
            let mut upstream = Upstream::new("a.test", tls);
            upstream.connected();
            assert_eq!(carry(&mut upstream, (0, 0)), [Step::Ready]);
            for body in [0, 40_000] {
                upstream.ask(300);
                let seen = carry(&mut upstream, (200, body));
                assert_eq!(seen[0], Step::Head);
                let bodies =
                    seen[1..].iter().map(|step| if let Step::Body(bytes) = step { *bytes } else { 0 });
                assert_eq!(bodies.sum::<u64>(), body, "{tls:?}");
            }
        }
    }
}
