//! The evidence of an ACK about single segments: SACK tagging, cleaning of the queue, samples of round-trip
//! time and delivery rate. Follows tcp_sacktag_write_queue, tcp_clean_rtx_queue (tcp_input.c) and tcp_rate.c.

use crate::endpoint::Endpoint;
use crate::input::{Ack, flag};
use crate::scoreboard::{Sent, tag};
use crate::segment::Segment;
use wirepaint_congestion_native::{AckSample, CaState, RateSample};

/// A delivery-rate sample in the making (struct rate_sample).
#[derive(Clone, Copy, Default)]
pub(crate) struct Rate {
    pub sample: RateSample,
    /// `delivered_mstamp` when the newest acknowledged segment left; 0 without one.
    prior_us: u64,
    /// The newest acknowledged transmission.
    order: u32,
}

impl Rate {
    /// The rate itself; 0 where the sample is not valid.
    pub fn bytes_per_second(&self, mss: u32) -> u64 {
        let RateSample { delivered, interval_us, .. } = self.sample;
        if delivered <= 0 || interval_us <= 0 {
            return 0;
        }
        delivered as u64 * u64::from(mss) * 1_000_000 / interval_us as u64
    }

    /// tcp_rate_skb_delivered.
    fn note(&mut self, sent: &mut Sent, first_tx_us: &mut u64) {
        if sent.delivered_us == 0 {
            return;
        }
        if self.sample.prior_delivered == 0 || sent.order > self.order {
            self.sample.prior_delivered = sent.delivered;
            self.prior_us = sent.delivered_us;
            self.sample.is_app_limited = sent.has(tag::APP_LIMITED);
            self.order = sent.order;
            *first_tx_us = sent.sent_us;
            self.sample.interval_us = (sent.sent_us - sent.first_tx_us.min(sent.sent_us)) as i64;
        }
        if sent.has(tag::SACKED) {
            sent.delivered_us = 0; // not again when it is acknowledged by number
        }
    }
}

impl Endpoint {
    /// tcp_highest_sack_seq.
    pub(crate) fn highest_sack_seq(&self) -> u64 {
        if self.cc.tp.sacked_out == 0 { self.una } else { self.highest_sack }
    }

    /// Extends a sequence number of the wire to the full sequence space, near `una`.
    fn full_number(&self, wire: u32) -> u64 {
        let distance = wire.wrapping_sub(self.una as u32) as i32;
        self.una.saturating_add_signed(i64::from(distance))
    }

    /// tcp_sacktag_write_queue.
    pub(crate) fn tag_sacks(&mut self, segment: &Segment, ack: &mut Ack) {
        ack.reordered = self.nxt;
        let mut blocks = [(0, 0); 4];
        for (block, wire) in blocks.iter_mut().zip(segment.blocks()) {
            *block = (self.full_number(wire.0), self.full_number(wire.1));
        }
        let blocks = &blocks[..usize::from(segment.sack_blocks)];
        let duplicate = self.check_duplicate(blocks, ack);
        if self.cc.tp.packets_out == 0 {
            return;
        }
        // Blocks are taken in the order of the data: a compressed ACK has several new blocks, and data of an
        // earlier block must not look like a hole below a later one.
        let mut order = [0, 1, 2, 3];
        let order = &mut order[..blocks.len()];
        order.sort_unstable_by_key(|&i| blocks[i].0);
        for (i, &(start, end)) in order.iter().map(|&i| (i, &blocks[i])) {
            if start <= self.una || start >= end || end > self.nxt {
                continue;
            }
            let duplicate = duplicate && i == 0;
            let mut id = self.first_within(start);
            loop {
                if !duplicate {
                    id = self.board.next_unsacked(id);
                }
                if id >= self.board.ids().end || self.board.get(id).end() > end {
                    break;
                }
                self.tag_one(id, duplicate, ack);
                id += 1;
            }
        }
        if self.ca_state() != CaState::Loss || self.undo.marker.is_some() {
            self.check_reordering(ack.reordered);
        }
    }

    /// The first segment that begins at `seq` or later.
    fn first_within(&self, seq: u64) -> u32 {
        let id = self.board.find(seq);
        let partial = id < self.board.ids().end && self.board.get(id).seq < seq;
        id + u32::from(partial)
    }

    /// tcp_check_dsack: does the first block report a duplicate (RFC 2883)?
    fn check_duplicate(&mut self, blocks: &[(u64, u64)], ack: &mut Ack) -> bool {
        let Some(&(start, end)) = blocks.first() else { return false };
        let inside_second = blocks.get(1).is_some_and(|second| start >= second.0 && end <= second.1);
        if start >= ack.number && !inside_second {
            return false;
        }
        let Some(count) = self.note_duplicate(start, end, ack) else { return false };
        let counts = end <= ack.prior_una && self.undo.marker.is_some_and(|marker| end > marker);
        if counts && self.undo.retrans > 0 {
            self.undo.retrans = (self.undo.retrans - i64::from(count)).max(0);
        }
        true
    }

    /// tcp_dsack_seen: the number of duplicate segments; `None` where we cannot have caused them.
    fn note_duplicate(&mut self, start: u64, end: u64, ack: &mut Ack) -> Option<u32> {
        let len = end.checked_sub(start).filter(|&len| len > 0 && len <= self.max_window)?;
        let mut count = 1;
        if len > u64::from(self.mss) {
            count = len.div_ceil(u64::from(self.mss)) as u32;
        } else if self.tlp.high == Some(end) {
            ack.flag |= flag::DSACK_TLP;
        }
        self.reordering.duplicates += count;
        if self.reordering.duplicates > self.cc.tp.total_retrans {
            return None;
        }
        if self.reordering.seen > 0 && ack.flag & flag::DSACK_TLP == 0 {
            self.rack.duplicate_seen = true;
        }
        ack.flag |= flag::DSACKING;
        ack.sack_delivered += count;
        Some(count)
    }

    /// tcp_sacktag_one.
    fn tag_one(&mut self, id: u32, duplicate: bool, ack: &mut Ack) {
        let sent = *self.board.get(id);
        let ever = sent.was_repeated();
        if duplicate && ever {
            if self.undo.retrans > 0 && self.undo.marker.is_some_and(|marker| sent.end() > marker) {
                self.undo.retrans -= 1;
            }
            if sent.has(tag::SACKED) {
                ack.reordered = ack.reordered.min(sent.seq);
            }
        }
        if !sent.has(tag::SACKED) {
            self.advance_rack(&sent);
            let mut clear = 0;
            if sent.has(tag::RETRANSMITTED) {
                // Unless it was marked lost, the retransmission counts as in flight.
                if sent.has(tag::LOST) {
                    clear = tag::LOST | tag::RETRANSMITTED;
                    self.cc.tp.retrans_out -= 1;
                }
            } else {
                if !ever {
                    if sent.seq < self.highest_sack_seq() {
                        ack.reordered = ack.reordered.min(sent.seq); // a hole that was never repaired
                    }
                    if sent.end() <= self.high_seq {
                        ack.flag |= flag::ORIG_SACK_ACKED;
                    }
                    if ack.first_sacked_us == 0 {
                        ack.first_sacked_us = sent.sent_us;
                    }
                    ack.last_sacked_us = sent.sent_us;
                }
                clear = tag::LOST & sent.tags;
            }
            if clear & tag::LOST != 0 {
                self.cc.tp.lost_out -= 1;
            }
            self.board.get_mut(id).tags &= !clear;
            self.board.set_sacked(id);
            ack.flag |= flag::DATA_SACKED;
            ack.sack_delivered += 1;
            if self.cc.tp.sacked_out == 0 {
                self.highest_sack = 0;
            }
            self.cc.tp.sacked_out += 1;
            self.highest_sack = self.highest_sack.max(sent.end());
        }
        let sent = self.board.get_mut(id);
        if duplicate && sent.has(tag::RETRANSMITTED) {
            sent.tags &= !tag::RETRANSMITTED;
            self.cc.tp.retrans_out -= 1;
        }
        ack.rate.note(sent, &mut self.first_tx_us);
    }

    /// tcp_check_sack_reordering: data never sent twice arrived below what had arrived before.
    pub(crate) fn check_reordering(&mut self, low: u64) {
        let highest = self.highest_sack_seq();
        if low >= highest {
            return;
        }
        let metric = highest - low;
        let mss = u64::from(self.mss);
        if metric > u64::from(self.reordering.degree) * mss {
            self.reordering.degree = (metric.div_ceil(mss) as u32).min(self.config.max_reordering);
        }
        self.reordering.seen += 1;
    }

    /// tcp_clean_rtx_queue: removes what is acknowledged by number, samples, `pkts_acked`.
    pub(crate) fn clean(&mut self, ack: &mut Ack) {
        let prior_sacked = self.cc.tp.sacked_out;
        let mut reordered = self.nxt;
        let mut removed = 0;
        let (mut first_us, mut last_us) = (0, 0);
        while self.board.head().is_some_and(|head| head.end() <= self.una) {
            let mut sent = self.board.pop();
            removed += 1;
            let tp = &mut self.cc.tp;
            if sent.was_repeated() {
                tp.retrans_out -= u32::from(sent.has(tag::RETRANSMITTED));
                ack.flag |= flag::RETRANS_DATA_ACKED;
            } else if !sent.has(tag::SACKED) {
                last_us = sent.sent_us;
                if first_us == 0 {
                    first_us = last_us;
                }
                reordered = reordered.min(sent.seq);
                if sent.end() <= self.high_seq {
                    ack.flag |= flag::ORIG_SACK_ACKED;
                }
            }
            if sent.has(tag::SACKED) {
                tp.sacked_out -= 1;
            } else if self.agreed.sack {
                tp.delivered += 1;
                if !self.was_spurious(&sent) {
                    self.advance_rack(&sent);
                }
            }
            let tp = &mut self.cc.tp;
            tp.lost_out -= u32::from(sent.has(tag::LOST));
            tp.packets_out -= 1;
            ack.rate.note(&mut sent, &mut self.first_tx_us);
            ack.flag |= flag::DATA_ACKED;
        }
        let now = self.clock.us();
        let (mut seq_rtt, mut sack_rtt, mut ca_rtt) = (None, None, None);
        if first_us != 0 && ack.flag & flag::RETRANS_DATA_ACKED == 0 {
            seq_rtt = Some(now - first_us);
            ca_rtt = Some(now - last_us);
            let alone = removed == 1 && prior_sacked == 0 && self.una - ack.prior_una < u64::from(self.mss);
            if alone
                && ack.rate.sample.prior_delivered + 1 == self.cc.tp.delivered
                && ack.flag & flag::CA_ALERT == 0
            {
                ack.flag |= flag::ACK_MAYBE_DELAYED;
            }
        }
        if ack.first_sacked_us != 0 {
            sack_rtt = Some(now - ack.first_sacked_us);
            ca_rtt = Some(now - ack.last_sacked_us);
        }
        let updated = self.update_rtt(seq_rtt, sack_rtt, ca_rtt, ack);
        if removed > 0 {
            ack.flag |= flag::SET_XMIT_TIMER;
            if !self.agreed.sack {
                self.remove_reno_sacks(removed);
                if ack.flag & flag::RETRANS_DATA_ACKED != 0 {
                    ack.flag &= !flag::ORIG_SACK_ACKED;
                }
            } else if reordered < ack.prior_highest_sack {
                self.check_reordering(reordered);
            }
        } else if let (true, Some(rtt), Some(head)) = (updated, sack_rtt, self.board.head()) {
            // Not if the head was retransmitted since: that would postpone the timeout for ever.
            if rtt > now.saturating_sub(head.sent_us) {
                ack.flag |= flag::SET_XMIT_TIMER;
            }
        }
        let delivered = self.cc.tp.delivered - ack.rate.sample.prior_delivered;
        self.cc.pkts_acked(AckSample {
            pkts_acked: removed,
            rtt_us: ack.rate.sample.rtt_us as i32,
            in_flight: self.mss.wrapping_mul(delivered),
        });
    }

    /// tcp_ack_update_rtt: from the segments themselves, else from the timestamp. Returns whether it took a
    /// sample.
    fn update_rtt(&mut self, seq: Option<u64>, sack: Option<u64>, ca: Option<u64>, ack: &mut Ack) -> bool {
        let mut rtt = seq.or(sack);
        let mut ca = ca;
        if rtt.is_none() && ack.flag & flag::DATA_ACKED != 0 {
            rtt = self.rtt_by_timestamp();
            ca = rtt;
        }
        ack.rate.sample.rtt_us = ca.map_or(-1, |rtt| rtt as i64);
        let Some(rtt) = rtt else { return false };
        self.sample_rtt(rtt, ca.unwrap_or(rtt), ack.flag & flag::ACK_MAYBE_DELAYED != 0);
        true
    }

    /// tcp_rtt_tsopt_us: the age of the timestamp that the other side echoed, at least 1 ms.
    pub(crate) fn rtt_by_timestamp(&self) -> Option<u64> {
        let echo = self.echoed.filter(|&echo| echo != 0)?;
        let age_ms = self.clock.timestamp().wrapping_sub(echo);
        (age_ms < u32::MAX / 2).then(|| u64::from(age_ms.max(1)) * 1_000)
    }

    /// A round-trip sample updates the estimator, the recent minimum and the timeout.
    pub(crate) fn sample_rtt(&mut self, rtt_us: u64, ca_rtt_us: u64, maybe_delayed: bool) {
        let ca = ca_rtt_us.max(1).min(u64::from(u32::MAX - 1)) as u32;
        if !(maybe_delayed && ca > self.rtt.min.get()) {
            let window = u64::from(self.config.min_rtt_window_s) * 250;
            self.rtt.min.sample(self.clock.jiffies(), window, ca);
        }
        self.rtt.sample(rtt_us, self.una, self.nxt, u64::from(self.config.rto_min_us));
        let rto = self.rtt.rto();
        self.set_rto(rto);
        self.timers.backoff = 0;
        let tp = &mut self.cc.tp;
        tp.srtt_us = self.rtt.srtt_us as u32;
        tp.cc_rtt_min_us = self.rtt.min.get();
        tp.cc_rttvar_us = self.rtt.variation_us() as u32;
    }

    /// tcp_rate_gen.
    pub(crate) fn finish_rate(&mut self, delivered: u32, lost: u32, ack: &mut Ack) {
        let tp = &mut self.cc.tp;
        if tp.app_limited != 0 && tp.delivered.wrapping_sub(tp.app_limited) as i32 > 0 {
            tp.app_limited = 0;
        }
        if delivered > 0 {
            tp.delivered_mstamp = tp.tcp_mstamp;
        }
        let rate = &mut ack.rate;
        let sample = &mut rate.sample;
        sample.acked_sacked = delivered;
        sample.losses = lost as i32;
        sample.is_ack_delayed = ack.flag & flag::ACK_MAYBE_DELAYED != 0;
        if rate.prior_us == 0 {
            sample.delivered = -1;
            sample.interval_us = -1;
            return;
        }
        sample.delivered = (tp.delivered - sample.prior_delivered) as i32;
        sample.interval_us = sample.interval_us.max((tp.tcp_mstamp - rate.prior_us) as i64);
        if sample.interval_us < i64::from(self.rtt.min.get()) {
            sample.interval_us = -1;
            return;
        }
        // Keeps the last rate that the application did not limit, or the largest that it did limit.
        let last = &self.last_rate.sample;
        let product = |delivered: i32, interval: i64| i128::from(delivered) * i128::from(interval);
        if !sample.is_app_limited
            || product(sample.delivered, last.interval_us) >= product(last.delivered, sample.interval_us)
        {
            self.last_rate = *rate;
        }
    }
}
