//! An inner connection: requests from the remote side to the ground side, frames of answers back.

use crate::fabric::EndpointId;
use crate::post::Request;
use crate::world::{ConnectionId, Dial, World, client_end, server_end};
use std::collections::VecDeque;
use wirepaint_http_model::Priority;
use wirepaint_page_model::unsent_bound;

/// Bytes before the payload of a frame and of a request: numbers, lengths, flags.
pub const FRAME_HEADER: u64 = 16;

/// What has come over a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// At the ground side: a request.
    Ask(Request, Priority),
    /// At the remote side: bytes of an answer.
    Bytes(u32, u64),
}

/// A connection.
pub struct Line {
    id: ConnectionId,
    /// Requests on their way, each with the bytes that have not come.
    asked: VecDeque<(u64, Request, Priority)>,
    /// Frames on their way: answer, bytes of the header and of the payload that have not come.
    frames: VecDeque<(u32, u64, u64)>,
    /// Bytes that wait for room in the send buffers of remote and ground side.
    pending: [u64; 2],
}

impl Line {
    /// The remote side opens it.
    pub fn open(world: &mut World, dial: Dial) -> Line {
        let id = world.connect(dial);
        Line { id, asked: VecDeque::new(), frames: VecDeque::new(), pending: [0; 2] }
    }

    /// Whether an endpoint is one of its two.
    pub fn is_at(&self, endpoint: EndpointId) -> bool {
        endpoint / 2 == self.id
    }

    /// The remote side sends a request of so many bytes.
    pub fn ask(&mut self, world: &mut World, bytes: u64, request: Request, priority: Priority) {
        self.asked.push_back((FRAME_HEADER + bytes, request, priority));
        self.pending[0] += FRAME_HEADER + bytes;
        self.write(world);
    }

    /// Whether the ground side may send a frame: the kernel would take it.
    pub fn has_room(&self, world: &mut World) -> bool {
        let ground = server_end(self.id);
        if self.pending[1] > 0 || !world.tcp(ground).is_established() {
            return false;
        }
        // As the replay server does: what the kernel holds unsent, nothing can overtake.
        let sock = world.tcp(ground).sock();
        let window = u64::from(sock.snd_cwnd) * u64::from(sock.mss_cache);
        world.bound_unsent(ground, unsent_bound(window));
        let has_room = world.tcp(ground).is_writable();
        if !has_room {
            world.wait_for_space(ground);
        }
        has_room
    }

    /// The ground side sends a frame.
    pub fn send(&mut self, world: &mut World, answer: u32, bytes: u64) {
        self.frames.push_back((answer, FRAME_HEADER, bytes));
        self.pending[1] += FRAME_HEADER + bytes;
        self.write(world);
    }

    /// Something happened at one of its endpoints. Returns what has come.
    pub fn activity(&mut self, world: &mut World, endpoint: EndpointId) -> Vec<Message> {
        self.write(world);
        let bytes = world.read(endpoint, u64::MAX);
        if endpoint == server_end(self.id) { self.read_requests(bytes) } else { self.read_frames(bytes) }
    }

    fn read_requests(&mut self, mut bytes: u64) -> Vec<Message> {
        let mut come = Vec::new();
        while let Some((left, request, priority)) = self.asked.front_mut() {
            let taken = bytes.min(*left);
            *left -= taken;
            bytes -= taken;
            if *left > 0 {
                break;
            }
            come.push(Message::Ask(*request, *priority));
            self.asked.pop_front();
        }
        come
    }

    fn read_frames(&mut self, mut bytes: u64) -> Vec<Message> {
        let mut come = Vec::new();
        while bytes > 0 {
            let Some((answer, header, payload)) = self.frames.front_mut() else {
                unreachable!("bytes came that nobody sent")
            };
            let of_header = bytes.min(*header);
            let of_payload = (bytes - of_header).min(*payload);
            *header -= of_header;
            *payload -= of_payload;
            bytes -= of_header + of_payload;
            if of_payload > 0 {
                come.push(Message::Bytes(*answer, of_payload));
            }
            if *header + *payload == 0 {
                self.frames.pop_front();
            }
        }
        come
    }

    fn write(&mut self, world: &mut World) {
        for (end, pending) in [client_end(self.id), server_end(self.id)].into_iter().zip(&mut self.pending) {
            let takes = world.tcp(end).is_established() && !world.tcp(end).waits_for_space();
            while takes && *pending > 0 {
                match world.write(end, *pending) {
                    0 => break,
                    taken => *pending -= taken,
                }
            }
        }
    }
}
