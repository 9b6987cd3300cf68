//! A transport under an HTTP/2 connection. It knows two things that the h2 crate does not report: whether all
//! written bytes have reached the kernel, and which priorities the client changed.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;
use wirepaint_http_model::Change;

/// Length of the client's connection preface (RFC 9113, section 3.4).
const PREFACE: usize = 24;
/// Length of a frame's header (RFC 9113, section 4.1).
const FRAME_HEADER: usize = 9;
/// Type of a PRIORITY frame (RFC 9113, section 6.3).
const PRIORITY: u8 = 0x2;
/// Type of a PRIORITY_UPDATE frame (RFC 9218, section 7.1).
const PRIORITY_UPDATE: u8 = 0x10;
/// Longest PRIORITY_UPDATE that is read, and most pending changes.
const LIMIT: usize = 256;

/// The state of the transport.
pub struct Seen {
    unflushed: Cell<bool>,
    active: Cell<Instant>,
    changes: RefCell<Vec<(u32, Change)>>,
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

    /// Changes of priority since the last call, each with its stream.
    pub fn changes(&self) -> Vec<(u32, Change)> {
        self.changes.take()
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
            changes: RefCell::default(),
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
        tap.frames.feed(&buf.filled()[before..], |stream, change| {
            let mut changes = tap.seen.changes.borrow_mut();
            if changes.len() < LIMIT {
                changes.push((stream, change));
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

/// Finds frames of the client that change a priority. It only reads along: the h2 crate gets every byte too
/// and validates the frames.
struct Frames {
    /// Bytes to skip before the next frame's header.
    skip: usize,
    /// The frame's header, then the payload if it is of interest.
    held: Vec<u8>,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames { skip: PREFACE, held: Vec::with_capacity(FRAME_HEADER) }
    }
}

impl Frames {
    fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(u32, Change)) {
        while !bytes.is_empty() {
            let passed = self.skip.min(bytes.len());
            self.skip -= passed;
            bytes = &bytes[passed..];
            let wanted = FRAME_HEADER + self.payload().unwrap_or(0);
            let taken = (wanted - self.held.len()).min(bytes.len());
            self.held.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.held.len() < FRAME_HEADER {
                continue;
            }
            match self.payload() {
                None => {
                    self.skip = self.length();
                    self.held.clear();
                }
                Some(length) if self.held.len() == FRAME_HEADER + length => {
                    if let Some((stream, change)) = self.change() {
                        found(stream, change);
                    }
                    self.held.clear();
                }
                Some(_) => {}
            }
        }
    }

    fn length(&self) -> usize {
        u32::from_be_bytes([0, self.held[0], self.held[1], self.held[2]]) as usize
    }

    /// Length of the payload if the header is complete and the frame of interest.
    fn payload(&self) -> Option<usize> {
        let kind = *self.held.get(3).filter(|_| self.held.len() >= FRAME_HEADER)?;
        match (kind, self.length()) {
            (PRIORITY, 5) => Some(5),
            (PRIORITY_UPDATE, length @ 4..=LIMIT) => Some(length),
            _ => None,
        }
    }

    /// The change in a complete frame.
    fn change(&self) -> Option<(u32, Change)> {
        let (header, payload) = self.held.split_at(FRAME_HEADER);
        let stream = |at: &[u8]| Some(u32::from_be_bytes(at.get(..4)?.try_into().ok()?) & 0x7fff_ffff);
        match header[3] {
            PRIORITY => Some((stream(&header[5..])?, Change::from_weight(u16::from(*payload.get(4)?) + 1))),
            _ => Some((stream(payload)?, Change::parse(std::str::from_utf8(&payload[4..]).ok()?))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, stream], payload].concat()
    }

    #[test]
    fn changes_of_priority_are_found_however_the_bytes_are_cut() {
        let stream = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, &[0; 6]),
            frame(PRIORITY_UPDATE, 0, b"\0\0\0\x05u=1, i"),
            frame(PRIORITY_UPDATE, 0, b"\0"),
            frame(4, 0, b""),
            frame(PRIORITY, 3, &[0x80, 0, 0, 1, 219]),
            frame(0, 1, &[PRIORITY_UPDATE; 70]),
            frame(PRIORITY_UPDATE, 0, b"\0\0\0\x07u=6"),
        ]
        .concat();
        for step in 1..stream.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for part in stream.chunks(step) {
                frames.feed(part, |stream, change| found.push((stream, change)));
            }
            let expected =
                [(5, Change::parse("u=1,i")), (3, Change::from_weight(220)), (7, Change::parse("u=6"))];
            assert_eq!(found, expected, "step {step}");
        }
    }
}
