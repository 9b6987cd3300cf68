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
/// What a request has beside its text: both ends, flags, length of a body, lengths of method, host, path and about a
/// dozen fields. The fields' own lengths take 8 bytes, and a colon and the end of a line are spared.
const REQUEST: u64 = 12 + 2 + 9 + 3 * 4 + 2 + 12 * 4;

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

    /// The remote side sends a request that has `text` bytes as text.
    pub fn ask(&mut self, world: &mut World, text: u64, request: Request, priority: Priority) {
        self.up.push(REQUEST + text, Message::Ask(request, priority));
        self.up.write(world, client_end(self.id));
    }

    /// The remote side tells the ground side that the browser wants what was promised, how urgently.
    pub fn want(&mut self, world: &mut World, request: Request, priority: Priority) {
        self.up.push(1, Message::Ask(request, priority));
        self.up.write(world, client_end(self.id));
    }

    /// The ground side says which answer it sends ahead, by a request that has `text` bytes.
    pub fn promise(&mut self, answer: u32, text: u64) {
        self.down.push(REQUEST + text, Message::Promise(answer));
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
