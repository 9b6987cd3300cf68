//! Bytes of an answer that wait, in parts that take little more memory than they have bytes.

use bytes::Bytes;
use std::collections::VecDeque;

/// Smaller parts are copied. They may lie in a buffer of up to 256 KiB that was read into, and would keep all of it.
const OWN: usize = 32 * 1024;
/// Parts are joined up to this: one for each byte would take thirty times the memory.
const JOINED: usize = 4 * 1024;

/// Appends bytes.
pub fn append(parts: &mut VecDeque<Bytes>, bytes: Bytes) {
    if bytes.len() >= OWN {
        return parts.push_back(bytes);
    }
    match parts.pop_back().map(Bytes::try_into_mut) {
        Some(Ok(mut last)) if last.len() + bytes.len() <= JOINED => {
            last.extend_from_slice(&bytes);
            return parts.push_back(last.freeze());
        }
        Some(Ok(last)) => parts.push_back(last.freeze()),
        // Somebody else has it too.
        Some(Err(last)) => parts.push_back(last),
        None => {}
    }
    parts.push_back(Bytes::copy_from_slice(&bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_parts_are_joined_and_keep_no_larger_buffer() {
        let buffer = Bytes::from(vec![7; 256 * 1024]);
        let mut parts = VecDeque::new();
        for at in 0..10_000 {
            append(&mut parts, buffer.slice(at..at + 1));
        }
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [4096, 4096, 1808]);
        assert!(buffer.is_unique());
        append(&mut parts, buffer.slice(..OWN));
        assert_eq!((parts.len(), buffer.is_unique()), (4, false));
    }

    #[test]
    fn a_part_that_somebody_else_has_stays_as_it_is() {
        let mut parts = VecDeque::from([Bytes::from_static(b"a"), Bytes::from(vec![b'b'])]);
        let other = parts[1].clone();
        append(&mut parts, Bytes::from_static(b"c"));
        assert_eq!(
            (parts.iter().flatten().copied().collect::<Vec<u8>>(), &other[..]),
            (b"abc".to_vec(), &b"b"[..])
        );
    }
}
