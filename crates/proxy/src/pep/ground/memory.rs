//! How much of a memory each answer may take, so that answers nobody reads leave room for the others.
//!
//! Half of the memory is kept for small parts, one for each answer that a browser asked for. Of the other half an
//! answer may take as much beyond its part as is left to the others; one that nobody asked for yet takes half of
//! that at most, and all such together half of it.

use crate::pep::REQUESTS;

/// The memory of a side.
pub struct Memory {
    bytes: u64,
    /// Bytes that answers hold beyond their parts.
    beyond: u64,
    /// Bytes of answers that nobody asked for; they have no part.
    ahead: u64,
}

impl Memory {
    /// An empty one.
    pub fn new(bytes: u64) -> Memory {
        Memory { bytes, beyond: 0, ahead: 0 }
    }

    fn part(&self, is_ahead: bool) -> u64 {
        if is_ahead { 0 } else { self.bytes / 2 / REQUESTS as u64 }
    }

    /// An answer held `before` bytes and holds `after` now.
    pub fn change(&mut self, is_ahead: bool, before: u64, after: u64) {
        let part = self.part(is_ahead);
        self.beyond = self.beyond + after.saturating_sub(part) - before.saturating_sub(part);
        if is_ahead {
            self.ahead = self.ahead + after - before;
        }
    }

    /// Bytes that an answer which holds `held` may add.
    pub fn allows(&self, is_ahead: bool, held: u64) -> u64 {
        let part = self.part(is_ahead);
        let others = self.beyond - held.saturating_sub(part);
        let left = (self.bytes / 2).saturating_sub(others);
        if is_ahead {
            let of_all = (self.bytes / 4).saturating_sub(self.ahead);
            (left / 4).saturating_sub(held).min(of_all)
        } else {
            (part + left / 2).saturating_sub(held)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 4 << 20;

    #[test]
    fn answers_that_nobody_reads_leave_room_for_others_and_keep_within_the_memory() {
        let (mut memory, mut held) = (Memory::new(BYTES), 0);
        for _ in 0..REQUESTS {
            let more = memory.allows(false, 0);
            assert!(more >= 4096, "{more}");
            memory.change(false, 0, more);
            assert_eq!(memory.allows(false, more), 0);
            held += more;
        }
        assert!(held <= BYTES, "{held}");
    }

    #[test]
    fn what_nobody_asked_for_takes_a_quarter_and_may_become_somebodys() {
        let mut memory = Memory::new(BYTES);
        let all: Vec<u64> = (0..100)
            .map(|_| {
                let more = memory.allows(true, 0);
                memory.change(true, 0, more);
                more
            })
            .collect();
        assert!(all.iter().sum::<u64>() <= BYTES / 4);
        assert!(memory.allows(false, 0) > BYTES / 8);
        memory.change(true, all[0], 0);
        memory.change(false, 0, all[0]);
        assert!(memory.allows(false, all[0]) > 0);
    }

    #[test]
    fn an_answer_alone_may_have_a_quarter_at_a_time() {
        let memory = Memory::new(BYTES);
        assert!(memory.allows(false, 0) >= BYTES / 4);
    }
}
