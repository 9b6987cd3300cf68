//! The retransmission queue: segments sent and not cumulatively acknowledged.
//!
//! Segments lie in a ring in the order of their numbers. The cost of an ACK's operations does not depend on
//! the window:
//!
//! * [`Scoreboard::next_unsacked`] skips runs of SACKed segments along shortened paths (union-find);
//! * a doubly linked list through the ring holds the order of transmission, which RACK walks
//!   (`tsorted_sent_queue` of Linux);
//! * a heap holds the segments that wait for retransmission; entries that have become obsolete are
//!   dropped when they surface.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No segment.
pub(crate) const NONE: u32 = u32::MAX;

/// Tags of a segment (`TCPCB_*` of Linux).
pub(crate) mod tag {
    /// The receiver has it.
    pub const SACKED: u8 = 1;
    /// A retransmission of it is in flight.
    pub const RETRANSMITTED: u8 = 2;
    /// It is marked lost.
    pub const LOST: u8 = 4;
    /// It was sent more than once.
    pub const EVER_RETRANSMITTED: u8 = 8;
    /// The application had nothing more to send when it left (rate sample).
    pub const APP_LIMITED: u8 = 16;
    /// It ends the stream.
    pub const FIN: u8 = 32;
    /// It is in the list of the order of transmission.
    pub const LISTED: u8 = 64;
    /// It is the last of a burst of the device (one skb of Linux).
    pub const BURST_END: u8 = 128;
}

/// One segment of the queue.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    /// First byte.
    pub seq: u64,
    /// Last transmission, in microseconds.
    pub sent_us: u64,
    /// `first_tx_mstamp`, `delivered_mstamp` and `delivered` at that time (tcp_rate.c);
    /// `delivered_us` is 0 once the sample was taken.
    pub first_tx_us: u64,
    pub delivered_us: u64,
    pub delivered: u32,
    /// Payload in bytes.
    pub len: u32,
    /// Order of the last transmission among all of the connection.
    pub order: u32,
    older: u32,
    newer: u32,
    /// Where the search for the next unsacked segment continues; meaningful while SACKed.
    skip: u32,
    /// Bits of [`tag`].
    pub tags: u8,
}

impl Sent {
    /// A segment that is about to leave for the first time.
    pub fn new(seq: u64, len: u32, fin: bool) -> Sent {
        Sent { seq, len, tags: if fin { tag::FIN } else { 0 }, ..Sent::default() }
    }

    pub fn has(&self, tag: u8) -> bool {
        self.tags & tag != 0
    }

    /// It was sent more than once.
    pub fn was_repeated(&self) -> bool {
        self.has(tag::RETRANSMITTED | tag::EVER_RETRANSMITTED)
    }

    /// One past its last number.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.has(tag::FIN))
    }
}

/// The queue. Its ids are consecutive numbers that are never reused.
pub(crate) struct Scoreboard {
    slots: Box<[Sent]>,
    first: u32,
    next: u32,
    oldest: u32,
    newest: u32,
    /// Where [`Scoreboard::last_before`] continues.
    frontier: u32,
    waiting: BinaryHeap<Reverse<u32>>,
    bursts: u32,
}

impl Scoreboard {
    pub fn new() -> Scoreboard {
        Scoreboard {
            slots: Box::default(),
            first: 0,
            next: 0,
            oldest: NONE,
            newest: NONE,
            frontier: NONE,
            waiting: BinaryHeap::new(),
            bursts: 0,
        }
    }

    pub fn len(&self) -> u32 {
        self.next - self.first
    }

    pub fn is_empty(&self) -> bool {
        self.first == self.next
    }

    /// The segments' ids.
    pub fn ids(&self) -> std::ops::Range<u32> {
        self.first..self.next
    }

    fn slot(&self, id: u32) -> usize {
        debug_assert!(self.ids().contains(&id), "segment {id} is not in {:?}", self.ids());
        id as usize & (self.slots.len() - 1)
    }

    pub fn get(&self, id: u32) -> &Sent {
        &self.slots[self.slot(id)]
    }

    pub fn get_mut(&mut self, id: u32) -> &mut Sent {
        let slot = self.slot(id);
        &mut self.slots[slot]
    }

    /// The segment that holds `snd_una`.
    pub fn head(&self) -> Option<&Sent> {
        (!self.is_empty()).then(|| self.get(self.first))
    }

    /// Appends a segment that is about to be sent.
    pub fn push(&mut self, sent: Sent) -> u32 {
        if self.len() as usize == self.slots.len() {
            self.grow();
        }
        let id = self.next;
        self.next += 1;
        *self.get_mut(id) = sent;
        id
    }

    /// Marks the segment that was pushed last as the last of a burst.
    pub fn end_burst(&mut self) {
        self.get_mut(self.next - 1).tags |= tag::BURST_END;
        self.bursts += 1;
    }

    /// Bursts in the queue. SACKed neighbours are merged (tcp_shift_skb_data).
    pub fn bursts(&self) -> u32 {
        self.bursts
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![Sent::default(); (self.slots.len() * 2).max(16)].into_boxed_slice();
        for id in self.ids() {
            slots[id as usize & (slots.len() - 1)] = *self.get(id);
        }
        self.slots = slots;
    }

    /// Removes the first segment.
    pub fn pop(&mut self) -> Sent {
        let id = self.first;
        self.unlist(id);
        let sent = *self.get(id);
        self.first += 1;
        self.bursts -= u32::from(sent.has(tag::BURST_END));
        if self.is_empty() {
            self.waiting.clear();
        }
        sent
    }

    /// The first segment that ends after `seq`, or one past the last.
    pub fn find(&self, seq: u64) -> u32 {
        let Some(head) = self.head() else { return self.next };
        if seq < head.end() {
            return self.first;
        }
        // Segments almost always have the length of the first.
        let guess = (seq - head.seq) / u64::from(head.len.max(1));
        if guess < u64::from(self.len()) {
            let id = self.first + guess as u32;
            let sent = self.get(id);
            if sent.seq <= seq && seq < sent.end() {
                return id;
            }
        }
        let (mut low, mut high) = (self.first, self.next);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).end() <= seq { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The first segment at or after `id` that is not SACKed, or one past the last.
    pub fn next_unsacked(&mut self, id: u32) -> u32 {
        let mut end = id;
        while end < self.next && self.get(end).has(tag::SACKED) {
            end = self.get(end).skip;
        }
        let mut step = id;
        while step < end {
            let sent = self.get_mut(step);
            step = sent.skip;
            sent.skip = end;
        }
        end
    }

    /// Tags a segment as SACKed.
    pub fn set_sacked(&mut self, id: u32) {
        self.unlist(id);
        let sent = self.get_mut(id);
        let ended_burst = sent.has(tag::BURST_END);
        sent.tags = sent.tags & !tag::BURST_END | tag::SACKED;
        sent.skip = id + 1;
        self.bursts -= u32::from(ended_burst);
    }

    /// Counts of the segments: all, SACKed, lost, retransmitted.
    pub fn count(&self) -> [u32; 4] {
        let mut counts = [0; 4];
        for id in self.ids() {
            counts[0] += 1;
            for (count, tag) in counts[1..].iter_mut().zip([tag::SACKED, tag::LOST, tag::RETRANSMITTED]) {
                *count += u32::from(self.get(id).has(tag));
            }
        }
        counts
    }

    // ---- the order of transmission ------------------------------------------------------------

    /// The listed segment with the oldest last transmission.
    pub fn oldest(&self) -> u32 {
        self.oldest
    }

    /// The next after `id` in the order of transmission.
    pub fn newer(&self, id: u32) -> u32 {
        self.get(id).newer
    }

    /// The newest segment whose last transmission was before the transmission `order`. `order` never falls
    /// from call to call, so each segment is passed once, not once per ACK.
    pub fn last_before(&mut self, order: u32) -> u32 {
        let mut next = if self.frontier == NONE { self.oldest } else { self.newer(self.frontier) };
        while next != NONE && self.get(next).order < order {
            self.frontier = next;
            next = self.newer(next);
        }
        self.frontier
    }

    /// Makes the segment, which leaves now, the newest.
    pub fn list_newest(&mut self, id: u32) {
        self.unlist(id);
        let older = self.newest;
        let sent = self.get_mut(id);
        sent.older = older;
        sent.newer = NONE;
        sent.tags |= tag::LISTED;
        match older {
            NONE => self.oldest = id,
            _ => self.get_mut(older).newer = id,
        }
        self.newest = id;
    }

    /// Takes the segment out of the order of transmission, until it is sent again.
    pub fn unlist(&mut self, id: u32) {
        let sent = self.get_mut(id);
        if !sent.has(tag::LISTED) {
            return;
        }
        sent.tags &= !tag::LISTED;
        let (older, newer) = (sent.older, sent.newer);
        if self.frontier == id {
            self.frontier = older;
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.get_mut(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.get_mut(newer).older = older,
        }
    }

    /// Lists every segment that is neither SACKed nor lost, by its last transmission.
    pub fn relist(&mut self) {
        let mut order: Vec<u32> =
            self.ids().filter(|&id| !self.get(id).has(tag::SACKED | tag::LOST)).collect();
        order.sort_by_key(|&id| self.get(id).order);
        for id in order {
            self.list_newest(id);
        }
        self.frontier = NONE;
    }

    // ---- waiting retransmissions --------------------------------------------------------------

    /// Adds a segment that was found lost.
    pub fn wait(&mut self, id: u32) {
        self.waiting.push(Reverse(id));
    }

    /// The first segment that is lost and not retransmitted.
    pub fn first_waiting(&mut self) -> Option<u32> {
        while let Some(&Reverse(id)) = self.waiting.peek() {
            let obsolete = tag::SACKED | tag::RETRANSMITTED;
            if id >= self.first && self.get(id).tags & (obsolete | tag::LOST) == tag::LOST {
                return Some(id);
            }
            self.waiting.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(lengths: &[u32]) -> Scoreboard {
        let mut board = Scoreboard::new();
        let mut seq = 1;
        for &len in lengths {
            let id = board.push(Sent::new(seq, len, false));
            board.list_newest(id);
            seq += u64::from(len);
        }
        board
    }

    #[test]
    fn a_number_is_found_in_segments_of_any_lengths() {
        for lengths in [vec![100; 50], vec![100, 1, 7, 300, 100, 100, 2]] {
            let board = board(&lengths);
            for id in board.ids() {
                let sent = board.get(id);
                assert_eq!(board.find(sent.seq), id);
                assert_eq!(board.find(sent.end() - 1), id);
            }
            assert_eq!(board.find(1_000_000), board.ids().end);
        }
    }

    #[test]
    fn sacked_runs_are_skipped_whatever_the_order_in_which_they_grew() {
        let mut board = board(&[10; 9]);
        for id in [4, 2, 3, 7, 0] {
            board.set_sacked(id);
        }
        let unsacked: Vec<u32> = (0..9).map(|id| board.next_unsacked(id)).collect();
        assert_eq!(unsacked, [1, 1, 5, 5, 5, 5, 6, 8, 8]);
        board.set_sacked(8);
        assert_eq!(board.next_unsacked(7), 9);
    }

    #[test]
    fn the_order_of_transmission_follows_retransmissions_and_sacks() {
        let mut board = board(&[10; 5]);
        board.list_newest(1);
        board.set_sacked(3);
        let mut order = vec![board.oldest()];
        while board.newer(order[order.len() - 1]) != NONE {
            order.push(board.newer(order[order.len() - 1]));
        }
        assert_eq!(order, [0, 2, 4, 1]);
        assert_eq!(board.pop().seq, 1);
        assert_eq!(board.oldest(), 2);
    }

    #[test]
    fn a_burst_counts_until_it_is_acknowledged_by_number_or_sacked() {
        let mut board = board(&[10; 2]);
        board.end_burst();
        for _ in 0..2 {
            board.push(Sent::new(21, 10, false));
            board.end_burst();
        }
        assert_eq!(board.bursts(), 3);
        board.set_sacked(2);
        assert_eq!(board.bursts(), 2);
        let left = [0; 4].map(|_| {
            board.pop();
            board.bursts()
        });
        assert_eq!(left, [2, 1, 1, 0]);
    }

    #[test]
    fn the_first_lost_segment_waits_at_the_front() {
        let mut board = board(&[10; 30]);
        for id in [5, 2, 9] {
            board.get_mut(id).tags |= tag::LOST;
            board.wait(id);
        }
        assert_eq!(board.first_waiting(), Some(2));
        board.get_mut(2).tags |= tag::RETRANSMITTED;
        assert_eq!(board.first_waiting(), Some(5));
        board.set_sacked(5);
        assert_eq!(board.first_waiting(), Some(9));
        board.get_mut(2).tags &= !tag::RETRANSMITTED; // lost again
        board.wait(2);
        assert_eq!(board.first_waiting(), Some(2));
    }
}
