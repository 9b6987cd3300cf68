//! The replay server on one connection: the order of its writes, and their limit.
//!
//! HTTP/2: the heads of answers go at once, bodies in DATA frames by the rules of RFC 9218, section 10: lower
//! urgency values first; within an urgency the answers that are not incremental one after another, then the
//! incremental ones in turns. The server writes one frame at a time while the socket accepts it. The socket
//! holds little unsent data ([`unsent_bound`]), because no later frame can overtake them. HTTP/1.1: one
//! answer after another, as fast as the socket accepts it.

use crate::headers::FRAME_HEADER;
use crate::pipe::Pipe;
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

/// Most payload of a DATA frame; with the frame's header it is one full TLS record.
pub const FRAME: u64 = 16_384 - FRAME_HEADER;
/// Least value of [`unsent_bound`].
const LEAST_UNSENT: u64 = 32 * 1024;
/// Bytes of one write with HTTP/1.1.
const STEP: u64 = 16 * 1024;

/// How an answer is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// 0 (first) to 7.
    pub urgency: u8,
    /// True when it takes turns with the others of its urgency.
    pub incremental: bool,
}

#[derive(Debug)]
struct Answer {
    request: u32,
    rank: Rank,
    /// Order of the requests on the connection.
    order: u32,
    /// When it last had its turn.
    turn: u64,
    /// When its think time is over.
    begins: Time,
    head: u64,
    body: u64,
}

/// The server's side of a connection.
#[derive(Debug)]
pub struct Server {
    http2: bool,
    /// Answers in their think time, or, with HTTP/1.1, behind an earlier answer.
    waiting: Vec<Answer>,
    /// Answers with bytes to send.
    sending: Vec<Answer>,
    orders: u32,
    turns: u64,
    /// Bytes that the kernel accepts, and whether this was reported since the last write.
    room: u64,
    told: bool,
    /// The kernel is full, and the server waits.
    pub blocked: bool,
    parts: Vec<(Down, u64, u64)>,
}

impl Server {
    /// The server's side of a new connection.
    pub fn new(http2: bool) -> Server {
        Server {
            http2,
            waiting: Vec::new(),
            sending: Vec::new(),
            orders: 0,
            turns: 0,
            room: LEAST_UNSENT,
            told: false,
            blocked: false,
            parts: Vec::new(),
        }
    }

    /// A request is complete; its answer begins at `begins` and has `head` and `body` bytes.
    pub fn ask(&mut self, request: u32, rank: Rank, begins: Time, head: u64, body: u64) {
        self.orders += 1;
        let answer = Answer { request, rank, order: self.orders, turn: 0, begins, head, body };
        self.waiting.push(answer);
    }

    /// The client changes a request's urgency.
    pub fn raise(&mut self, request: u32, urgency: u8) {
        let both = self.waiting.iter_mut().chain(self.sending.iter_mut());
        for answer in both.filter(|answer| answer.request == request) {
            answer.rank.urgency = urgency;
        }
    }

    /// Reports the state of the kernel's send buffer.
    pub fn acknowledged(&mut self, backlog: Backlog) {
        (self.room, self.told) = (backlog.room, true);
        self.blocked &= !backlog.is_writable;
    }

    /// The next end of a think time.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.http2 {
            return self.waiting.iter().map(|answer| answer.begins).min();
        }
        if self.sending.is_empty() { self.waiting.first().map(|answer| answer.begins) } else { None }
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
        if self.http2 {
            self.frames()
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
        if !self.http2 {
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
                self.sending.push(answer);
            }
        }
    }

    /// Heads of answers that begin, and the next DATA frame.
    fn frames(&mut self) {
        let next = self.sending.iter_mut().min_by_key(|answer| {
            let turn = if answer.rank.incremental { answer.turn } else { 0 };
            (answer.rank, turn, answer.order)
        });
        let Some(answer) = next else { return };
        let payload = answer.body.min(FRAME);
        self.parts.push((Down::Body(answer.request), FRAME_HEADER + payload, payload));
        answer.body -= payload;
        self.turns += 1;
        answer.turn = self.turns;
        if answer.body == 0 {
            let done = answer.order;
            self.sending.retain(|answer| answer.order != done);
        }
    }

    /// The next bytes of the one answer that is being sent.
    fn stretch(&mut self) {
        let Some(answer) = self.sending.first_mut() else { return };
        if answer.head > 0 {
            self.parts.push((Down::Head(answer.request), answer.head, 0));
        }
        let body = answer.body.min(STEP - answer.head.min(STEP));
        if body > 0 {
            self.parts.push((Down::Body(answer.request), body, body));
        }
        (answer.head, answer.body) = (0, answer.body - body);
        if answer.body == 0 {
            self.sending.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(0);

    fn ask(server: &mut Server, request: u32, urgency: u8, incremental: bool, body: u64) {
        server.ask(request, Rank { urgency, incremental }, NOW, 100, body);
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
        let mut server = Server::new(true);
        ask(&mut server, 1, 3, true, 40_000);
        ask(&mut server, 2, 3, true, 20_000);
        ask(&mut server, 3, 3, false, 20_000);
        ask(&mut server, 4, 0, false, 20_000);
        assert_eq!(order(&mut server), [4, 4, 3, 3, 1, 2, 1, 2, 1]);
    }

    #[test]
    fn a_raised_answer_overtakes() {
        let mut server = Server::new(true);
        ask(&mut server, 1, 3, false, 10_000);
        ask(&mut server, 2, 3, false, 10_000);
        server.raise(2, 1);
        assert_eq!(order(&mut server), [2, 1]);
    }

    #[test]
    fn a_server_writes_while_there_is_room_and_goes_on_when_it_is_woken() {
        let mut server = Server::new(true);
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
    fn http1_answers_in_the_order_of_the_requests_after_their_think_times() {
        let mut server = Server::new(false);
        let mut pipe = Pipe::new(None);
        server.ask(1, Rank { urgency: 3, incremental: false }, Time(50), 100, 1_000);
        server.ask(2, Rank { urgency: 0, incremental: false }, Time(10), 100, 1_000);
        assert_eq!(server.next_timeout(), Some(Time(50)));
        assert_eq!(server.write(Time(49), &mut pipe), 0);
        assert_eq!(server.write(Time(50), &mut pipe), 1_100);
        assert_eq!(pipe.read(), None);
        pipe.arrive(1_100, |_, _| {});
        assert_eq!(pipe.read().unwrap().meaning, Down::Head(1));
    }
}
