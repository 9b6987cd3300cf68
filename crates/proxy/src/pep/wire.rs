//! The protocol between the two sides: frames on persistent TCP connections.
//!
//! A frame has a header of 9 bytes (kind, length of the payload in 3 bytes, flags, stream) and its payload.
//!
//! | kind | from | payload |
//! |---|---|---|
//! | hello | remote | version, class, number of the connection in its class |
//! | request | remote | a request with its head |
//! | body | both sides' streams: remote | bytes of a request's body; flag 1 for the last |
//! | credit | both | bytes that the receiver has passed on |
//! | cancel | remote | nothing: nobody wants the answer any more; flag 1 if nobody had anything of it |
//! | priority | remote | a byte: the browser wants the answer so urgently |
//! | promise | ground | the request whose answer is sent ahead |
//! | serve | ground | stream of the promised answer that serves the request, and the fields, with commas between them, that it must not vary with |
//! | data | ground | offset in 5 bytes, bytes of the answer; flag 1 for the last, 2 for a broken end |
//!
//! Requests have odd streams, promises even ones. An answer is the length of its head in 4 bytes, its head and its
//! body. Its frames may take different connections; their offsets order them.

use bytes::{Buf, Bytes, BytesMut};
use std::collections::BTreeSet;
use wirepaint_pep_model::LARGE_FRAME;

/// Version of the protocol.
pub const VERSION: u8 = 1;
/// Bytes of a frame's header.
const HEADER: usize = 9;
/// Bytes of an offset.
const OFFSET: usize = 5;
/// Largest payload of a request or promise: a head with the lengths of its parts.
pub const LARGEST_HEAD: usize = super::limits::HEAD_LIMIT + 8 * super::limits::FIELDS_LIMIT + 1024;
/// Most bytes of a frame of a request's body.
pub const BODY_FRAME: usize = 16 * 1024;

/// A frame or a part of one that is none; names what was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As its origin ended it.
    Whole,
    /// Its origin failed before its end.
    Broken,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Hello { version: u8, class: u8, number: u8 },
    Request { stream: u32, request: Bytes },
    Body { stream: u32, last: bool, bytes: Bytes },
    Credit { stream: u32, bytes: u32 },
    Cancel { stream: u32, unused: bool },
    Priority { stream: u32, priority: u8 },
    Promise { stream: u32, request: Bytes },
    Serve { stream: u32, by: u32, unless: BTreeSet<String> },
    Data { stream: u32, offset: u64, end: Option<End>, bytes: Bytes },
}

impl Frame {
    /// Appends the frame.
    pub fn put(&self, out: &mut BytesMut) {
        let word = |value: &u32| value.to_be_bytes().to_vec();
        let (kind, flags, stream, prefix, bytes): (u8, u8, u32, Vec<u8>, &[u8]) = match self {
            Frame::Hello { version, class, number } => (0, 0, 0, vec![*version, *class, *number], &[]),
            Frame::Request { stream, request } => (1, 0, *stream, Vec::new(), request),
            Frame::Body { stream, last, bytes } => (2, u8::from(*last), *stream, Vec::new(), bytes),
            Frame::Credit { stream, bytes } => (3, 0, *stream, word(bytes), &[]),
            Frame::Cancel { stream, unused } => (4, u8::from(*unused), *stream, Vec::new(), &[]),
            Frame::Priority { stream, priority } => (5, 0, *stream, vec![*priority], &[]),
            Frame::Promise { stream, request } => (6, 0, *stream, Vec::new(), request),
            Frame::Serve { stream, by, unless } => {
                let unless = unless.iter().map(String::as_str).collect::<Vec<_>>().join(",");
                (7, 0, *stream, [word(by), unless.into_bytes()].concat(), &[])
            }
            Frame::Data { .. } => return self.put_data(out),
        };
        header(out, kind, prefix.len() + bytes.len(), flags, stream);
        out.extend_from_slice(&prefix);
        out.extend_from_slice(bytes);
    }

    fn put_data(&self, out: &mut BytesMut) {
        let Frame::Data { stream, offset, end, bytes } = self else { return };
        let flags = match end {
            None => 0,
            Some(End::Whole) => 1,
            Some(End::Broken) => 2,
        };
        header(out, 8, OFFSET + bytes.len(), flags, *stream);
        out.extend_from_slice(&offset.to_be_bytes()[8 - OFFSET..]);
        out.extend_from_slice(bytes);
    }

    /// Takes the first frame of what arrived; `None` while it is incomplete.
    pub fn take(arrived: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let Some((header, _)) = arrived.split_at_checked(HEADER) else { return Ok(None) };
        let (kind, flags) = (header[0], header[4]);
        let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
        let stream = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        let accepted = match kind {
            0 => 3..=3,
            1 | 6 => 1..=LARGEST_HEAD,
            2 => 0..=BODY_FRAME,
            3 => 4..=4,
            7 => 4..=LARGEST_HEAD,
            4 => 0..=0,
            5 => 1..=1,
            8 => OFFSET..=OFFSET + LARGE_FRAME as usize,
            _ => return Err(Malformed("kind of a frame")),
        };
        if !accepted.contains(&length) {
            return Err(Malformed("length of a frame"));
        }
        if arrived.len() < HEADER + length {
            return Ok(None);
        }
        let mut payload = arrived.split_to(HEADER + length).freeze();
        payload.advance(HEADER);
        Ok(Some(match (kind, flags) {
            (0, 0) => Frame::Hello { version: payload[0], class: payload[1], number: payload[2] },
            (1, 0) => Frame::Request { stream, request: payload },
            (2, 0 | 1) => Frame::Body { stream, last: flags == 1, bytes: payload },
            (3, 0) => Frame::Credit { stream, bytes: payload.get_u32() },
            (4, 0 | 1) => Frame::Cancel { stream, unused: flags == 1 },
            (5, 0) => Frame::Priority { stream, priority: payload[0] },
            (6, 0) => Frame::Promise { stream, request: payload },
            (7, 0) => {
                let by = payload.get_u32();
                let names = std::str::from_utf8(&payload).map_err(|_| Malformed("name of a field"))?;
                let unless = names.split_terminator(',').map(str::to_owned).collect();
                Frame::Serve { stream, by, unless }
            }
            (8, 0..=2) => {
                let offset = payload.get_uint(OFFSET);
                let end = [None, Some(End::Whole), Some(End::Broken)][usize::from(flags)];
                Frame::Data { stream, offset, end, bytes: payload }
            }
            _ => return Err(Malformed("flags of a frame")),
        }))
    }
}

fn header(out: &mut BytesMut, kind: u8, length: usize, flags: u8, stream: u32) {
    let length = (length as u32).to_be_bytes();
    out.extend_from_slice(&[kind, length[1], length[2], length[3], flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// Reads the parts of a payload.
pub struct Take<'a>(pub &'a [u8]);

impl<'a> Take<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed("end of a payload"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.bytes(2)?.try_into().expect("two bytes")))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.bytes(4)?.try_into().expect("four bytes")))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.bytes(8)?.try_into().expect("eight bytes")))
    }

    /// Bytes behind their length.
    pub fn text(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u32()? as usize;
        self.bytes(length)
    }

    /// Text of visible ASCII behind its length.
    pub fn string(&mut self, name: &'static str) -> Result<String, Malformed> {
        let text = self.text()?;
        let visible = text.iter().all(|byte| (0x21..=0xff).contains(byte) && *byte != 0x7f);
        String::from_utf8(text.to_vec()).ok().filter(|_| visible).ok_or(Malformed(name))
    }

    /// Refuses bytes behind the last part.
    pub fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("end of a payload")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_wherever_they_are_cut() {
        let bytes = Bytes::from_static(b"abc");
        let frames = [
            Frame::Hello { version: 1, class: 2, number: 3 },
            Frame::Request { stream: 1, request: bytes.clone() },
            Frame::Body { stream: 1, last: true, bytes: Bytes::new() },
            Frame::Credit { stream: 2, bytes: 70_000 },
            Frame::Cancel { stream: 3, unused: true },
            Frame::Priority { stream: 4, priority: 9 },
            Frame::Promise { stream: 4, request: bytes.clone() },
            Frame::Serve { stream: 5, by: 4, unless: BTreeSet::new() },
            Frame::Serve { stream: 7, by: 4, unless: ["accept", "referer"].map(str::to_owned).into() },
            Frame::Data { stream: 4, offset: 1 << 33, end: Some(End::Broken), bytes },
        ];
        let mut all = BytesMut::new();
        frames.iter().for_each(|frame| frame.put(&mut all));
        for step in 1..all.len() {
            let (mut arrived, mut taken) = (BytesMut::new(), Vec::new());
            for part in all.chunks(step) {
                arrived.extend_from_slice(part);
                taken.extend(std::iter::from_fn(|| Frame::take(&mut arrived).unwrap()));
            }
            assert_eq!(taken, frames, "step {step}");
        }
    }

    #[test]
    fn a_frame_of_another_kind_or_length_is_refused_before_it_arrives() {
        for header in [[9, 0, 0, 0], [3, 0, 0, 5], [1, 255, 255, 255], [8, 0, 0, 4], [4, 0, 0, 1]] {
            let mut arrived = BytesMut::from(&[&header[..], &[0; 5]].concat()[..]);
            assert!(Frame::take(&mut arrived).is_err(), "{header:?}");
        }
    }
}
