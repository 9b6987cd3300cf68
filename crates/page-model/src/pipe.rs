//! One direction of a connection, as lengths of bytes with their meanings.
//!
//! Contents are never carried. The writer adds a [`Piece`] for each run of bytes with one meaning. The reader
//! gets it once the needed bytes have arrived: over TLS, all up to the end of the record. Without TLS it reads
//! payload as it comes.

use std::collections::VecDeque;

/// A run of bytes with one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<T> {
    /// Offset of its end in the stream.
    end: u64,
    /// Bytes of the stream that must arrive before the reader can use it.
    ready: u64,
    /// What it means.
    pub meaning: T,
    /// Payload in it.
    pub bytes: u32,
    /// The last piece of one write with this meaning.
    pub last: bool,
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Pipe<T> {
    written: u64,
    arrived: u64,
    /// Largest plaintext of a record, and its overhead; `None` for plain TCP.
    record: Option<(u64, u64)>,
    /// Not yet read in full; the first `counted` have arrived in full.
    pieces: VecDeque<Piece<T>>,
    counted: usize,
}

impl<T: Copy> Pipe<T> {
    /// An empty direction. `record` is the largest plaintext of a TLS record and its overhead; `None` for
    /// plain TCP.
    pub fn new(record: Option<(u32, u64)>) -> Pipe<T> {
        let record = record.map(|(most, overhead)| (u64::from(most), overhead));
        Pipe { written: 0, arrived: 0, record, pieces: VecDeque::new(), counted: 0 }
    }

    /// Writes a message of the TLS handshake; `bytes` includes its records. Returns `bytes`.
    pub fn write_raw(&mut self, meaning: T, bytes: u64) -> u64 {
        self.written += bytes;
        self.pieces.push_back(Piece {
            end: self.written,
            ready: self.written,
            meaning,
            bytes: bytes as u32,
            last: true,
        });
        bytes
    }

    /// Writes `parts` at once: meaning, plaintext bytes, and how many of these, at the end, are payload.
    /// Returns the bytes on the wire.
    pub fn write(&mut self, parts: &[(T, u64, u64)]) -> u64 {
        let before = self.written;
        let is_plain = self.record.is_none();
        let (step, overhead) = self.record.unwrap_or((u32::MAX.into(), 0));
        let mut left: u64 = parts.iter().map(|part| part.1).sum();
        let mut room = 0; // of the record that is being filled
        let mut record_end = self.written;
        for &(meaning, mut plain, payload) in parts {
            let mut ahead = plain - payload; // bytes of this part that are no payload
            while plain > 0 {
                if room == 0 {
                    room = left.min(step);
                    left -= room;
                    record_end = self.written + room + overhead;
                }
                let take = plain.min(room);
                plain -= take;
                room -= take;
                let idle = ahead.min(take);
                ahead -= idle;
                self.written += take;
                if room == 0 {
                    self.written = record_end;
                }
                let bytes = (take - idle) as u32;
                let last = plain == 0;
                let end = self.written;
                let ready = if is_plain { end } else { record_end };
                self.pieces.push_back(Piece { end, ready, meaning, bytes, last });
            }
        }
        self.written - before
    }

    /// `bytes` more have arrived in order. Calls `seen` for each piece that they belong to, with the number
    /// of its bytes.
    pub fn arrive(&mut self, bytes: u64, mut seen: impl FnMut(T, u64)) {
        let mut at = self.arrived;
        self.arrived += bytes;
        debug_assert!(self.arrived <= self.written, "more bytes arrived than were written");
        while let Some(piece) = self.pieces.get(self.counted) {
            let until = piece.end.min(self.arrived);
            if until > at {
                seen(piece.meaning, until - at);
            }
            at = until.max(at);
            if piece.end > self.arrived {
                break;
            }
            self.counted += 1;
        }
    }

    /// The next piece that the reader can use.
    pub fn read(&mut self) -> Option<Piece<T>> {
        let is_plain = self.record.is_none();
        let front = self.pieces.front_mut()?;
        if is_plain && front.end > self.arrived {
            let left = (front.end - self.arrived) as u32; // of the payload, which is at the end
            let bytes = front.bytes.saturating_sub(left);
            front.bytes -= bytes;
            return (bytes > 0).then_some(Piece { end: self.arrived, bytes, last: false, ..*front });
        }
        if front.ready > self.arrived || self.counted == 0 {
            return None;
        }
        self.counted -= 1;
        self.pieces.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(pipe: &mut Pipe<u8>) -> Vec<(u8, u32)> {
        std::iter::from_fn(|| pipe.read()).map(|piece| (piece.meaning, piece.bytes)).collect()
    }

    #[test]
    fn a_record_is_readable_when_all_of_it_has_come() {
        let mut pipe = Pipe::new(Some((16_384, 22)));
        assert_eq!(pipe.write(&[(1, 50, 0), (2, 20_009, 20_000)]), 20_059 + 2 * 22);
        pipe.arrive(16_405, |_, _| {});
        assert_eq!(readable(&mut pipe), []);
        pipe.arrive(1, |_, _| {});
        assert_eq!(readable(&mut pipe), [(1, 0), (2, 16_384 - 50 - 9)]);
        pipe.arrive(20_059 + 44 - 16_406, |_, _| {});
        assert_eq!(readable(&mut pipe), [(2, 20_009 - 16_384 + 50)]);
    }

    #[test]
    fn arriving_bytes_are_told_by_what_they_belong_to() {
        let mut pipe = Pipe::new(Some((100, 22)));
        pipe.write(&[(1, 30, 30), (2, 70, 70)]);
        let mut seen = Vec::new();
        for bytes in [10, 50, 62] {
            pipe.arrive(bytes, |meaning, bytes| seen.push((meaning, bytes)));
        }
        assert_eq!(seen, [(1, 10), (1, 20), (2, 30), (2, 62)]);
    }

    #[test]
    fn a_part_of_several_records_has_one_last_piece() {
        let mut pipe = Pipe::new(Some((100, 22)));
        let bytes = pipe.write(&[(1, 250, 0), (2, 10, 0)]);
        pipe.arrive(bytes, |_, _| {});
        let lasts = std::iter::from_fn(|| pipe.read()).map(|piece| (piece.meaning, piece.last));
        assert_eq!(lasts.collect::<Vec<_>>(), [(1, false), (1, false), (1, true), (2, true)]);
    }

    #[test]
    fn without_tls_payload_is_readable_as_it_comes() {
        let mut pipe = Pipe::new(None);
        assert_eq!(pipe.write(&[(1, 10_000, 9_900), (2, 50, 0)]), 10_050);
        pipe.arrive(100, |_, _| {});
        assert_eq!(readable(&mut pipe), []);
        pipe.arrive(1_348, |_, _| {});
        assert_eq!(readable(&mut pipe), [(1, 1_348)]);
        assert_eq!(readable(&mut pipe), []);
        pipe.arrive(8_572, |_, _| {});
        assert_eq!(readable(&mut pipe), [(1, 8_552)]);
        pipe.arrive(30, |_, _| {});
        assert_eq!(readable(&mut pipe), [(2, 0)]);
    }
}
