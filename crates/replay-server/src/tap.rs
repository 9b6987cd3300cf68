//! A transport under an HTTP/2 connection that knows what the h2 crate does not tell: whether all that
//! was written has reached the kernel, and which priorities the client changed.

use crate::priority::Priority;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Length of the client's connection preface (RFC 9113, section 3.4).
const PREFACE: usize = 24;
/// Length of a frame's header (RFC 9113, section 4.1).
const FRAME_HEADER: usize = 9;
/// Type of a PRIORITY_UPDATE frame (RFC 9218, section 7.1).
const PRIORITY_UPDATE: u8 = 0x10;
/// Longest PRIORITY_UPDATE that is read, and most that may wait.
const LIMIT: usize = 256;

/// What is known about the transport.
pub struct Seen {
    unflushed: Cell<bool>,
    active: Cell<Instant>,
    updates: RefCell<Vec<(u32, Priority)>>,
}

impl Seen {
    /// True when everything written has reached the kernel.
    pub fn is_flushed(&self) -> bool {
        !self.unflushed.get()
    }

    /// When bytes last moved.
    pub fn active(&self) -> Instant {
        self.active.get()
    }

    /// Priority updates that came in since the last call: stream and priority.
    pub fn updates(&self) -> Vec<(u32, Priority)> {
        self.updates.take()
    }
}

/// The transport.
pub struct Tap<S> {
    io: S,
    frames: Frames,
    seen: Rc<Seen>,
}

impl<S> Tap<S> {
    /// Wraps a transport on which nothing has been read or written.
    pub fn new(io: S) -> (Tap<S>, Rc<Seen>) {
        let seen = Rc::new(Seen {
            unflushed: Cell::new(false),
            active: Cell::new(Instant::now()),
            updates: RefCell::default(),
        });
        (Tap { io, frames: Frames::default(), seen: seen.clone() }, seen)
    }

    fn wrote(&self) {
        self.seen.unflushed.set(true);
        self.seen.active.set(Instant::now());
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tap<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut tap.io).poll_read(cx, buf))?;
        tap.seen.active.set(Instant::now());
        tap.frames.feed(&buf.filled()[before..], |stream, priority| {
            let mut updates = tap.seen.updates.borrow_mut();
            if updates.len() < LIMIT {
                updates.push((stream, priority));
            }
        });
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        tap.wrote();
        Pin::new(&mut tap.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tap = self.get_mut();
        tap.wrote();
        Pin::new(&mut tap.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        ready!(Pin::new(&mut tap.io).poll_flush(cx))?;
        tap.seen.unflushed.set(false);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

/// Finds PRIORITY_UPDATE frames in what a client sends. It only listens: the h2 crate gets every byte
/// too and judges them.
struct Frames {
    /// Bytes to pass over before the next frame's header.
    skip: usize,
    /// The frame's header, then for a PRIORITY_UPDATE its payload.
    held: Vec<u8>,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames { skip: PREFACE, held: Vec::with_capacity(FRAME_HEADER) }
    }
}

impl Frames {
    fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(u32, Priority)) {
        while !bytes.is_empty() {
            if self.skip > 0 {
                let passed = self.skip.min(bytes.len());
                self.skip -= passed;
                bytes = &bytes[passed..];
                continue;
            }
            let wanted = FRAME_HEADER + if self.is_update() { self.length() } else { 0 };
            let taken = (wanted - self.held.len()).min(bytes.len());
            self.held.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.held.len() < FRAME_HEADER {
                continue;
            }
            if !self.is_update() {
                self.skip = self.length();
                self.held.clear();
            } else if self.held.len() == FRAME_HEADER + self.length() {
                let payload = &self.held[FRAME_HEADER..];
                let stream = u32::from_be_bytes([payload[0] & 0x7f, payload[1], payload[2], payload[3]]);
                if let Ok(value) = std::str::from_utf8(&payload[4..]) {
                    found(stream, Priority::parse(value));
                }
                self.held.clear();
            }
        }
    }

    fn length(&self) -> usize {
        u32::from_be_bytes([0, self.held[0], self.held[1], self.held[2]]) as usize
    }

    fn is_update(&self) -> bool {
        self.held.len() >= FRAME_HEADER
            && self.held[3] == PRIORITY_UPDATE
            && (4..=LIMIT).contains(&self.length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, 0], payload].concat()
    }

    #[test]
    fn a_priority_update_is_found_however_the_bytes_are_cut() {
        let mut stream = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        stream.extend(frame(4, &[0; 6]));
        stream.extend(frame(PRIORITY_UPDATE, b"\0\0\0\x05u=1, i"));
        stream.extend(frame(PRIORITY_UPDATE, b"\0"));
        stream.extend(frame(0, &[PRIORITY_UPDATE; 70]));
        stream.extend(frame(PRIORITY_UPDATE, b"\0\0\0\x07u=6"));
        for step in 1..stream.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for part in stream.chunks(step) {
                frames.feed(part, |stream, priority| found.push((stream, priority)));
            }
            assert_eq!(found, [(5, Priority::parse("u=1,i")), (7, Priority::parse("u=6"))], "step {step}");
        }
    }
}
