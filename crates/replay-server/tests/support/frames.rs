//! An HTTP/2 client of single frames: it shows the order of DATA frames, and may misbehave.

use std::io::{Read, Write};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const PRIORITY_UPDATE: u8 = 0x10;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn new(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Frame {
        Frame { kind, flags, stream, payload: payload.to_vec() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let length = (self.payload.len() as u32).to_be_bytes();
        let stream = self.stream.to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &stream, &self.payload].concat()
    }

    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

/// A GET with literal headers (RFC 7541, section 6.2.2), which need no table.
pub fn get(stream: u32, host: &str, path: &str, priority: Option<&str>) -> Frame {
    request(stream, "GET", host, path, priority, END_STREAM)
}

pub fn request(stream: u32, method: &str, host: &str, path: &str, priority: Option<&str>, end: u8) -> Frame {
    let mut block = Vec::new();
    let pseudo = [(":method", method), (":scheme", "https"), (":authority", host), (":path", path)];
    for (name, value) in pseudo.into_iter().chain(priority.map(|value| ("priority", value))) {
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend(text.bytes());
        }
    }
    Frame::new(HEADERS, END_HEADERS | end, stream, &block)
}

pub struct Client<S> {
    pub io: S,
}

impl<S: Read + Write> Client<S> {
    /// Opens with windows of `window` bytes per stream and a large one for the connection.
    pub fn new(mut io: S, window: u32) -> Client<S> {
        let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let setting = [&[0, 4][..], &window.to_be_bytes()].concat();
        opening.extend(Frame::new(SETTINGS, 0, 0, &setting).bytes());
        opening.extend(Frame::new(WINDOW_UPDATE, 0, 0, &(1u32 << 30).to_be_bytes()).bytes());
        io.write_all(&opening).unwrap();
        Client { io }
    }

    /// Sends frames in one write.
    pub fn send(&mut self, frames: &[Frame]) {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.io.write_all(&bytes).unwrap();
        self.io.flush().unwrap();
    }

    /// The next frame; `None` at the end of the connection.
    pub fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        match self.io.read_exact(&mut head) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("the server hangs"),
            read => read.ok()?,
        }
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.io.read_exact(&mut payload).ok()?;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// All frames until `streams` have ended.
    pub fn until_ended(&mut self, streams: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        while frames.iter().filter(|frame: &&Frame| frame.ends_stream()).count() < streams {
            frames.push(self.next().expect("the connection is open"));
        }
        frames
    }
}

/// Streams of the DATA frames in order of arrival, without repetitions.
pub fn order(frames: &[Frame]) -> Vec<u32> {
    let mut order: Vec<u32> = frames
        .iter()
        .filter(|frame| frame.kind == DATA && !frame.payload.is_empty())
        .map(|f| f.stream)
        .collect();
    order.dedup();
    order
}
