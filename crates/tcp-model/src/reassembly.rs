//! Segments that arrived out of order, and the SACK blocks that report them.

use std::collections::VecDeque;

/// Blocks that are remembered (TCP_NUM_SACKS).
const BLOCKS: usize = 4;
/// Blocks that are expected to reach the sender in one ACK (TCP_SACK_BLOCKS_EXPECTED).
const BLOCKS_EXPECTED: usize = 2;

/// A range of sequence numbers: first, and one past the last.
pub(crate) type Range = (u64, u64);

/// The out-of-order queue as runs, and its SACK blocks in the order of RFC 2018.
#[derive(Default)]
pub(crate) struct Reassembly {
    runs: VecDeque<Range>,
    blocks: [Range; BLOCKS],
    used: usize,
    /// A duplicate to be reported in the next ACK (RFC 2883).
    pub duplicate: Option<Range>,
}

fn extend(block: &mut Range, with: Range) -> bool {
    let touches = with.0 <= block.1 && block.0 <= with.1;
    if touches {
        *block = (block.0.min(with.0), block.1.max(with.1));
    }
    touches
}

impl Reassembly {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// One past the last byte that arrived.
    pub fn end(&self) -> Option<u64> {
        self.runs.back().map(|run| run.1)
    }

    /// SACK blocks, the newest first.
    pub fn blocks(&self) -> &[Range] {
        &self.blocks[..self.used]
    }

    /// tcp_dsack_extend.
    fn report_duplicate(&mut self, range: Range) {
        match &mut self.duplicate {
            Some(duplicate) => {
                extend(duplicate, range);
            }
            None => self.duplicate = Some(range),
        }
    }

    /// Queues data beyond a hole (tcp_data_queue_ofo). Returns the number of new bytes.
    pub fn insert(&mut self, range: Range) -> u64 {
        let at = self.runs.partition_point(|run| run.1 < range.0);
        let mut merged = range;
        let mut known = 0;
        let mut last = at;
        while let Some(&run) = self.runs.get(last).filter(|run| run.0 <= range.1) {
            let overlap = (run.0.max(range.0), run.1.min(range.1));
            if overlap.0 < overlap.1 {
                known += overlap.1 - overlap.0;
                self.report_duplicate(overlap);
            }
            merged = (merged.0.min(run.0), merged.1.max(run.1));
            last += 1;
        }
        if last == at {
            self.runs.insert(at, merged);
        } else {
            self.runs[at] = merged;
            self.runs.drain(at + 1..last);
        }
        self.report(range);
        range.1 - range.0 - known
    }

    /// True if the report of `range` would displace a block that the sender may not have received. A
    /// held-back ACK must leave first then (tcp_sack_new_ofo_skb).
    pub fn displaces(&self, range: Range) -> bool {
        let known = self.blocks().iter().position(|block| range.0 <= block.1 && block.0 <= range.1);
        known.unwrap_or(self.used) >= BLOCKS_EXPECTED
    }

    /// tcp_sack_new_ofo_skb: the block that holds `range` comes first.
    fn report(&mut self, range: Range) {
        let known = self.blocks[..self.used].iter_mut().position(|block| extend(block, range));
        match known {
            Some(at) => {
                self.blocks[..=at].rotate_right(1);
                self.coalesce();
            }
            None => {
                self.used = (self.used + 1).min(BLOCKS);
                self.blocks[..self.used].rotate_right(1);
                self.blocks[0] = range;
            }
        }
    }

    /// tcp_sack_maybe_coalesce.
    fn coalesce(&mut self) {
        let mut at = 1;
        while at < self.used {
            let block = self.blocks[at];
            if extend(&mut self.blocks[0], block) {
                self.blocks[at..self.used].rotate_left(1);
                self.used -= 1;
            } else {
                at += 1;
            }
        }
    }

    /// The next expected byte is `next`: takes the run that continues there (tcp_ofo_queue) and removes
    /// covered blocks (tcp_sack_remove). Returns the new next byte.
    pub fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(&run) = self.runs.front().filter(|run| run.0 <= next) {
            if run.0 < next {
                self.report_duplicate((run.0, run.1.min(next)));
            }
            next = next.max(run.1);
            self.runs.pop_front();
        }
        if self.runs.is_empty() {
            self.used = 0;
        }
        let mut kept = 0;
        for at in 0..self.used {
            if self.blocks[at].0 > next {
                self.blocks[kept] = self.blocks[at];
                kept += 1;
            }
        }
        self.used = kept;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_report_the_newest_first_and_grow_together() {
        let mut queue = Reassembly::default();
        for range in [(10, 20), (30, 40), (50, 60), (70, 80)] {
            assert_eq!(queue.insert(range), 10);
        }
        assert_eq!(queue.blocks(), [(70, 80), (50, 60), (30, 40), (10, 20)]);
        queue.insert((90, 100)); // the oldest block is dropped, not its bytes
        assert_eq!(queue.blocks(), [(90, 100), (70, 80), (50, 60), (30, 40)]);
        queue.insert((40, 50));
        assert_eq!(queue.blocks(), [(30, 60), (90, 100), (70, 80)]);
        assert_eq!(queue.advance(10), 20);
        assert_eq!(queue.advance(30), 60);
        assert_eq!(queue.blocks(), [(90, 100), (70, 80)]);
    }

    #[test]
    fn duplicates_are_reported_and_not_counted_as_news() {
        let mut queue = Reassembly::default();
        queue.insert((10, 20));
        assert_eq!(queue.insert((10, 20)), 0);
        assert_eq!(queue.duplicate.take(), Some((10, 20)));
        assert_eq!(queue.insert((15, 30)), 10);
        assert_eq!(queue.duplicate.take(), Some((15, 20)));
        assert_eq!(queue.advance(12), 30);
        assert_eq!(queue.duplicate, Some((10, 12)));
        assert!(queue.is_empty() && queue.blocks().is_empty());
    }

    #[test]
    fn a_third_block_sends_the_ack_that_was_held_back() {
        let mut queue = Reassembly::default();
        queue.insert((10, 20));
        queue.insert((30, 40));
        assert!(!queue.displaces((40, 50)));
        assert!(queue.displaces((60, 70)));
    }
}
