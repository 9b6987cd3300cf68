//! The replay server on one connection: the order of its writes, and their limit.
//!
//! On a multiplexed connection the heads of answers go at once, bodies frame by frame in the order of
//! [`Schedule`]. The server writes one frame at a time while the socket accepts it. The socket holds little
//! unsent data ([`unsent_bound`]), because no later frame can overtake them. Otherwise one answer goes after
//! another, as fast as the socket accepts it.

use crate::pipe::Pipe;
use wirepaint_http_model::{Change, Priority, Protocol, Schedule};
use wirepaint_units::Time;

/// Meaning of bytes from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// The server's part of the TLS handshake.
    Flight,
    /// Tickets, or the acknowledgement of the browser's settings; they belong to no request.
    Control,
    /// Settings.
    Settings,
    /// Head of the answer to a request.
    Head(u32),
    /// Body of the answer.
    Body(u32),
    /// The server sends no more. Modelled servers never say it.
    End,
}

/// State of the send buffer in the server's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes that it still accepts.
    pub room: u64,
    /// `poll()` would wake a writer.
    pub is_writable: bool,
}

/// Most unsent bytes in the kernel of an HTTP/2 connection with a congestion window of `window` bytes
/// (`TCP_NOTSENT_LOWAT`).
pub fn unsent_bound(window: u64) -> u64 {
    (window / 2).max(LEAST_UNSENT)
}

/// Least value of [`unsent_bound`].
const LEAST_UNSENT: u64 = 32 * 1024;

#[derive(Debug)]
struct Answer {
    request: u32,
    priority: Priority,
    /// Order of the requests on the connection.
    order: u32,
    /// When its think time is over.
    begins: Time,
    head: u64,
    body: u64,
    /// Bytes of `body` that the server has.
    ready: u64,
}

/// The server's side of a connection.
#[derive(Debug)]
pub struct Server {
    protocol: &'static dyn Protocol,
    /// Answers in their think time, or, on a connection that is not multiplexed, behind an earlier answer.
    waiting: Vec<Answer>,
    /// Answers with bytes to send.
    sending: Vec<Answer>,
    /// Their order, where they share the connection.
    schedule: Schedule,
    orders: u32,
    /// Bytes that the kernel accepts, and whether this was reported since the last write.
    room: u64,
    told: bool,
    /// The kernel is full, and the server waits.
    pub blocked: bool,
    parts: Vec<(Down, u64, u64)>,
}

impl Server {
    /// The server's side of a new connection.
    pub fn new(protocol: &'static dyn Protocol) -> Server {
        Server {
            protocol,
            waiting: Vec::new(),
            sending: Vec::new(),
            schedule: Schedule::default(),
            orders: 0,
            room: LEAST_UNSENT,
            told: false,
            blocked: false,
            parts: Vec::new(),
        }
    }

    /// A request is complete; its answer begins at `begins` and has `head` and `body` bytes.
    pub fn ask(&mut self, request: u32, priority: Priority, begins: Time, head: u64, body: u64) {
        self.orders += 1;
        let answer = Answer { request, priority, order: self.orders, begins, head, body, ready: body };
        self.waiting.push(answer);
    }

    /// As [`Server::ask`], of a proxy that has nothing of the answer yet.
    pub fn expect(&mut self, request: u32, priority: Priority, head: u64, body: u64) {
        self.ask(request, priority, Time::MAX, head, body);
        self.waiting.last_mut().expect("just asked").ready = 0;
    }

    /// The proxy has the head of an expected answer, and `bytes` more of its body.
    pub fn supply(&mut self, now: Time, request: u32, bytes: u64) {
        if let Some(answer) = self.waiting.iter_mut().find(|answer| answer.request == request) {
            answer.begins = answer.begins.min(now);
            answer.ready += bytes;
        } else if let Some(answer) = self.sending.iter_mut().find(|answer| answer.request == request) {
            answer.ready += bytes;
            if bytes > 0 {
                self.schedule.unblock_one(answer.order);
            }
        }
    }

    /// The client changes a request's urgency. Returns whether its answer is known and not sent in full.
    pub fn raise(&mut self, request: u32, urgency: u8) -> bool {
        let change = Change::urgency(urgency);
        if let Some(answer) = self.waiting.iter_mut().find(|answer| answer.request == request) {
            answer.priority = change.apply(answer.priority);
        } else if let Some(answer) = self.sending.iter().find(|answer| answer.request == request) {
            self.schedule.change(answer.order, change);
        } else {
            return false;
        }
        true
    }

    /// Reports the state of the kernel's send buffer.
    pub fn acknowledged(&mut self, backlog: Backlog) {
        (self.room, self.told) = (backlog.room, true);
        self.blocked &= !backlog.is_writable;
    }

    /// The next end of a think time.
    pub fn next_timeout(&self) -> Option<Time> {
        let next = if self.protocol.is_multiplexed() {
            self.waiting.iter().map(|answer| answer.begins).min()
        } else if self.sending.is_empty() {
            self.waiting.first().map(|answer| answer.begins)
        } else {
            None
        };
        next.filter(|begins| *begins < Time::MAX)
    }

    /// Writes once into `pipe`. Returns the bytes on the wire, 0 if there is nothing to write or no room.
    /// Call it until 0.
    pub fn write(&mut self, now: Time, pipe: &mut Pipe<Down>) -> u64 {
        let due = |answer: &Answer| answer.begins <= now;
        if self.blocked || (self.sending.is_empty() && !self.waiting.iter().any(due)) {
            return 0;
        }
        if self.room == 0 {
            self.blocked = self.told;
            return 0;
        }
        self.begin(now);
        if self.protocol.is_multiplexed() {
            self.frame()
        } else {
            self.stretch()
        }
        if self.parts.is_empty() {
            return 0;
        }
        let bytes = pipe.write(&self.parts);
        self.parts.clear();
        self.room = self.room.saturating_sub(bytes);
        self.told = false;
        bytes
    }

    /// Takes the answers whose think time is over.
    fn begin(&mut self, now: Time) {
        if !self.protocol.is_multiplexed() {
            let due = self.waiting.first().is_some_and(|answer| answer.begins <= now);
            if self.sending.is_empty() && due {
                self.sending.push(self.waiting.remove(0));
            }
            return;
        }
        while let Some(at) = (0..self.waiting.len())
            .filter(|&at| self.waiting[at].begins <= now)
            .min_by_key(|&at| (self.waiting[at].begins, self.waiting[at].order))
        {
            let answer = self.waiting.remove(at);
            self.parts.push((Down::Head(answer.request), answer.head, 0));
            if answer.body > 0 {
                self.schedule.add(answer.order, answer.priority);
                if answer.ready == 0 {
                    self.schedule.block(answer.order);
                }
                self.sending.push(answer);
            }
        }
    }

    /// The next frame of a body.
    fn frame(&mut self) {
        let Some(order) = self.schedule.next() else { return };
        let Some(at) = self.sending.iter().position(|answer| answer.order == order) else {
            unreachable!("every scheduled answer is being sent")
        };
        let answer = &mut self.sending[at];
        let payload = answer.ready.min(self.protocol.most_written());
        let part = (Down::Body(answer.request), self.protocol.framing(payload) + payload, payload);
        self.parts.push(part);
        answer.body -= payload;
        answer.ready -= payload;
        self.schedule.served(order);
        if answer.body == 0 {
            self.schedule.remove(order);
            self.sending.remove(at);
        } else if answer.ready == 0 {
            self.schedule.block(order);
        }
    }

    /// The next bytes of the one answer that is being sent.
    fn stretch(&mut self) {
        let Some(answer) = self.sending.first_mut() else { return };
        if answer.head > 0 {
            self.parts.push((Down::Head(answer.request), answer.head, 0));
        }
        let most = self.protocol.most_written();
        let body = answer.ready.min(most - answer.head.min(most));
        if body > 0 {
            self.parts.push((Down::Body(answer.request), body, body));
        }
        (answer.head, answer.body, answer.ready) = (0, answer.body - body, answer.ready - body);
        if answer.body == 0 {
            self.sending.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirepaint_http_model::HttpVersion;

    const NOW: Time = Time(0);

    fn server(version: HttpVersion) -> Server {
        Server::new(version.protocol())
    }

    fn ask(server: &mut Server, request: u32, urgency: u8, incremental: bool, body: u64) {
        server.ask(request, Priority { urgency, incremental }, NOW, 100, body);
    }

    /// Bodies in the order in which their frames are written.
    fn order(server: &mut Server) -> Vec<u32> {
        let mut pipe = Pipe::new(Some((16_384, 22)));
        server.room = 1 << 30;
        let mut bodies = Vec::new();
        loop {
            let bytes = server.write(NOW, &mut pipe);
            if bytes == 0 {
                return bodies;
            }
            pipe.arrive(bytes, |_, _| {});
            let mut frame = None;
            while let Some(piece) = pipe.read() {
                if let Down::Body(request) = piece.meaning {
                    frame = Some(request);
                }
            }
            bodies.extend(frame);
        }
    }

    #[test]
    fn urgent_ones_first_then_whole_ones_then_turns() {
        let mut server = server(HttpVersion::H2);
        ask(&mut server, 1, 3, true, 40_000);
        ask(&mut server, 2, 3, true, 20_000);
        ask(&mut server, 3, 3, false, 20_000);
        ask(&mut server, 4, 0, false, 20_000);
        assert_eq!(order(&mut server), [4, 4, 3, 3, 1, 2, 1, 2, 1]);
    }

    #[test]
    fn a_raised_answer_overtakes() {
        let mut server = server(HttpVersion::H2);
        ask(&mut server, 1, 3, false, 10_000);
        ask(&mut server, 2, 3, false, 10_000);
        server.raise(2, 1);
        assert_eq!(order(&mut server), [2, 1]);
    }

    #[test]
    fn a_server_writes_while_there_is_room_and_goes_on_when_it_is_woken() {
        let mut server = server(HttpVersion::H2);
        let mut pipe = Pipe::new(Some((16_384, 22)));
        ask(&mut server, 1, 3, false, 1_000_000);
        let fill = |server: &mut Server, pipe: &mut Pipe<Down>| {
            std::iter::from_fn(|| Some(server.write(NOW, pipe)).filter(|&bytes| bytes > 0)).sum::<u64>()
        };
        server.acknowledged(Backlog { room: 100_000, is_writable: true });
        let ahead = fill(&mut server, &mut pipe);
        assert!((100_000..100_000 + 16_500).contains(&ahead), "{ahead}");
        assert!(!server.blocked, "the kernel may take more than it said");
        server.acknowledged(Backlog { room: 0, is_writable: false });
        assert_eq!((fill(&mut server, &mut pipe), server.blocked), (0, true));
        server.acknowledged(Backlog { room: 20_000, is_writable: false });
        assert_eq!((fill(&mut server, &mut pipe), server.blocked), (0, true), "not woken yet");
        server.acknowledged(Backlog { room: 50_000, is_writable: true });
        assert!(fill(&mut server, &mut pipe) > 50_000);
        assert_eq!([unsent_bound(10_000), unsent_bound(200_000)], [LEAST_UNSENT, 100_000]);
    }

    #[test]
    fn a_proxy_writes_what_it_has_of_an_answer_and_others_meanwhile() {
        for version in [HttpVersion::H1, HttpVersion::H2] {
            let mut server = server(version);
            let mut pipe = Pipe::new(None);
            server.room = 1 << 30;
            let mut written = |server: &mut Server, at: u64| {
                std::iter::from_fn(|| Some(server.write(Time(at), &mut pipe)).filter(|&bytes| bytes > 0))
                    .sum::<u64>()
            };
            let framing = |body| server.protocol.framing(body);
            let (of_1000, of_3000) = (framing(1_000), framing(3_000));
            server.expect(1, Priority { urgency: 3, incremental: false }, 100, 4_000);
            assert_eq!((written(&mut server, 0), server.next_timeout()), (0, None));
            server.supply(Time(5), 1, 1_000);
            assert_eq!(written(&mut server, 5), 1_100 + of_1000);
            server.expect(2, Priority { urgency: 3, incremental: false }, 100, 1_000);
            server.supply(Time(6), 2, 1_000);
            let second = if server.protocol.is_multiplexed() { 1_100 + of_1000 } else { 0 };
            assert_eq!(written(&mut server, 6), second);
            server.supply(Time(7), 1, 3_000);
            assert_eq!(written(&mut server, 7), 3_000 + of_3000 + 1_100 + of_1000 - second);
        }
    }

    #[test]
    fn http1_answers_in_the_order_of_the_requests_after_their_think_times() {
        let mut server = server(HttpVersion::H1);
        let mut pipe = Pipe::new(None);
        server.ask(1, Priority { urgency: 3, incremental: false }, Time(50), 100, 1_000);
        server.ask(2, Priority { urgency: 0, incremental: false }, Time(10), 100, 1_000);
        assert_eq!(server.next_timeout(), Some(Time(50)));
        assert_eq!(server.write(Time(49), &mut pipe), 0);
        assert_eq!(server.write(Time(50), &mut pipe), 1_100);
        assert_eq!(pipe.read(), None);
        pipe.arrive(1_100, |_, _| {});
        assert_eq!(pipe.read().unwrap().meaning, Down::Head(1));
    }
}
