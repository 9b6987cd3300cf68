//! An inner connection: requests from the remote side to the ground side, answers back, in frames.
//!
//! Frames are those of the testbed's proxy: a header of 9 bytes, and one is read when all of it has come.

use crate::fabric::EndpointId;
use crate::post::Request;
use crate::world::{ConnectionId, Dial, World, client_end, server_end};
use std::collections::VecDeque;
use wirepaint_http_model::Priority;
use wirepaint_pep_model::SMALL_FRAME;

/// Kind, length, flags and stream of a frame.
const HEADER: u64 = 9;
/// Offset of the bytes of an answer.
const OFFSET: u64 = 5;
/// What a request has beside its text: both ends, flags, length of a body, lengths of method, host and path, number of
/// fields. Spared are what surrounds method, host and path, and `connection`.
const REQUEST: u64 = 12 + 2 + 9 + 3 * 4 + 2;
const SPARED: u64 = 22 + 24;
/// A field has two lengths; a colon, a space and the end of a line are spared.
const FIELD: u64 = 8 - 4;
/// Fields of a request for a picture, with and without TLS.
const FIELDS_ENCRYPTED: u64 = 10;
const FIELDS_CLEAR: u64 = 4;
/// A made-up request lacks the three `sec-fetch-` fields, which have 77 bytes of text.
const MADE_UP: u64 = 3 * FIELD + 77;

/// Bytes of a request that the two sides hand over, from those of its text.
pub fn handed_over(text: u64, encrypted: bool, made_up: bool) -> u64 {
    let fields = if encrypted { FIELDS_ENCRYPTED } else { FIELDS_CLEAR };
    let lacks = if encrypted && made_up { MADE_UP } else { 0 };
    (REQUEST + fields * FIELD + text).saturating_sub(SPARED + lacks)
}

/// Bytes that wait for the kernel before a connection has its next turn.
const WAITING_FAIR: u64 = 4 * SMALL_FRAME;
const WAITING_ARRIVAL: u64 = 128 * 1024;
/// Least bound of the unsent bytes in the kernel where they are bounded; else it is half a window.
const LEAST_UNSENT: u64 = 4 * 1024;

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// Up: the browser asks, or asks with another priority.
    Ask(Request, Priority),
    /// Up: bytes of an answer have left the remote side.
    Credit,
    /// Down: an answer will be sent ahead.
    Promise(u32),
    /// Down: an answer, the offset of some bytes in it, and their number.
    Bytes(u32, u64, u64),
}

/// A frame on its way.
#[derive(Debug)]
struct Frame {
    /// Bytes that have not come.
    left: u64,
    message: Message,
}

/// One direction.
#[derive(Debug, Default)]
struct Way {
    frames: VecDeque<Frame>,
    /// Bytes that wait for room in the send buffer.
    pending: u64,
}

impl Way {
    fn push(&mut self, bytes: u64, message: Message) {
        self.frames.push_back(Frame { left: HEADER + bytes, message });
        self.pending += HEADER + bytes;
    }

    /// The frames that `bytes` more complete.
    fn read(&mut self, mut bytes: u64) -> Vec<Message> {
        let mut come = Vec::new();
        while let Some(frame) = self.frames.front_mut() {
            let taken = bytes.min(frame.left);
            frame.left -= taken;
            bytes -= taken;
            if frame.left > 0 {
                break;
            }
            come.push(frame.message);
            self.frames.pop_front();
        }
        debug_assert_eq!(bytes, 0, "bytes came that nobody sent");
        come
    }

    fn write(&mut self, world: &mut World, from: EndpointId) {
        let takes = world.tcp(from).is_established() && !world.tcp(from).waits_for_space();
        while takes && self.pending > 0 {
            match world.write(from, self.pending) {
                0 => break,
                taken => self.pending -= taken,
            }
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Line {
    id: ConnectionId,
    /// The kernel holds few unsent bytes, so that urgent answers overtake others.
    fair: bool,
    up: Way,
    down: Way,
}

impl Line {
    /// The remote side opens it.
    pub fn open(world: &mut World, dial: Dial, fair: bool) -> Line {
        Line { id: world.connect(dial), fair, up: Way::default(), down: Way::default() }
    }

    /// Its number in the world.
    pub fn connection(&self) -> ConnectionId {
        self.id
    }

    /// Whether an endpoint is one of its two.
    pub fn is_at(&self, endpoint: EndpointId) -> bool {
        endpoint / 2 == self.id
    }

    /// The remote side sends a request of so many bytes.
    pub fn ask(&mut self, world: &mut World, bytes: u64, request: Request, priority: Priority) {
        self.up.push(bytes, Message::Ask(request, priority));
        self.up.write(world, client_end(self.id));
    }

    /// The remote side tells the ground side that the browser wants what was promised, how urgently.
    pub fn want(&mut self, world: &mut World, request: Request, priority: Priority) {
        self.up.push(1, Message::Ask(request, priority));
        self.up.write(world, client_end(self.id));
    }

    /// The remote side says so often that bytes of answers have left it.
    pub fn credit(&mut self, world: &mut World, times: usize) {
        (0..times).for_each(|_| self.up.push(4, Message::Credit));
        self.up.write(world, client_end(self.id));
    }

    /// The ground side says which answer it sends ahead, by a request of so many bytes.
    pub fn promise(&mut self, answer: u32, bytes: u64) {
        self.down.push(bytes, Message::Promise(answer));
    }

    /// The ground side sends bytes of an answer from an offset on.
    pub fn send(&mut self, answer: u32, offset: u64, bytes: u64) {
        self.down.push(OFFSET + bytes, Message::Bytes(answer, offset, bytes));
    }

    /// The ground side writes what it has said: frames of a moment share segments. Written one by one, a page's promises
    /// would take the initial window that its document needs.
    pub fn flush(&mut self, world: &mut World) {
        self.down.write(world, server_end(self.id));
    }

    /// Whether the ground side may send bytes of an answer: few enough wait for the kernel.
    pub fn has_room(&self, world: &World) -> bool {
        let most = if self.fair { WAITING_FAIR } else { WAITING_ARRIVAL };
        self.down.pending < most && world.tcp(server_end(self.id)).is_established()
    }

    /// Something happened at one of its endpoints. Returns what has come there.
    pub fn activity(&mut self, world: &mut World, endpoint: EndpointId) -> Vec<Message> {
        let is_ground = endpoint == server_end(self.id);
        if is_ground && self.fair {
            let sock = world.tcp(endpoint).sock();
            let window = u64::from(sock.snd_cwnd) * u64::from(sock.mss_cache);
            world.bound_unsent(endpoint, (window / 2).max(LEAST_UNSENT));
        }
        if is_ground { &mut self.down } else { &mut self.up }.write(world, endpoint);
        let bytes = world.read(endpoint, u64::MAX);
        if is_ground { self.up.read(bytes) } else { self.down.read(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAR: [(&str, &str); 4] = [
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("accept", "image/*,*/*;q=0.8"),
        ("referer", "http://a.test/"),
        ("accept-encoding", "gzip, deflate"),
    ];
    const ENCRYPTED: [(&str, &str); 3] =
        [("sec-ch-ua", "\"Chromium\""), ("sec-ch-ua-mobile", "?0"), ("sec-ch-ua-platform", "\"Linux\"")];
    const FETCH: [(&str, &str); 3] =
        [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];

    /// As text, and as the testbed's proxy writes it.
    fn sizes(fields: &[(&str, &str)]) -> (u64, u64) {
        let text = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>();
        let text = format!("GET /a.png HTTP/1.1\r\nhost: a.test\r\nconnection: keep-alive\r\n{text}\r\n");
        let named = ["GET", "/a.png", "a.test"].map(|text| 4 + text.len()).iter().sum::<usize>();
        let fields = fields.iter().map(|(name, value)| 8 + name.len() + value.len()).sum::<usize>();
        (text.len() as u64, (12 + 2 + 9 + named + 2 + fields) as u64)
    }

    #[test]
    fn requests_have_the_sizes_of_the_testbeds_proxy() {
        let (text, bytes) = sizes(&CLEAR);
        assert_eq!(handed_over(text, false, false), bytes);
        assert_eq!(handed_over(text, false, true), bytes);
        let made_up = [&CLEAR[..], &ENCRYPTED].concat();
        let (text, bytes) = sizes(&[&made_up[..], &FETCH].concat());
        assert_eq!(handed_over(text, true, false), bytes);
        assert_eq!(handed_over(text, true, true), sizes(&made_up).1);
    }
}
