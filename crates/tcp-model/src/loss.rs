//! Which segments are lost: RACK (RFC 8985; tcp_recovery.c), RFC 6675, NewReno.

use crate::clock::jiffies_of;
use crate::endpoint::Endpoint;
use crate::input::{Ack, flag};
use crate::scoreboard::{NONE, Sent, tag};
use crate::timers::{Pending, TIMEOUT_MIN_US};
use wirepaint_congestion_native::CaState;

/// Recoveries for which a widened reordering window is kept (TCP_RACK_RECOVERY_THRESH).
const RECOVERY_THRESH: u8 = 16;

/// The newest delivered transmission and the reordering window.
///
/// Transmissions are identified by their order. Linux uses their times in microseconds, and their sequence
/// numbers if the times are equal; there two ACKs never arrive in the same microsecond.
pub(crate) struct Rack {
    order: u32,
    pub rtt_us: u64,
    /// Something was delivered since losses were last looked for.
    pub advanced: bool,
    /// Reordering window in quarters of the smallest round-trip time.
    steps: u64,
    /// Recoveries until the window returns to one quarter.
    pub persist: u8,
    pub duplicate_seen: bool,
    last_delivered: u32,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            order: 0,
            rtt_us: 0,
            advanced: false,
            steps: 1,
            persist: 0,
            duplicate_seen: false,
            last_delivered: 0,
        }
    }
}

impl Rack {
    /// An undo by duplicate reports confirms the window for longer.
    pub fn confirm(&mut self) {
        self.persist = (self.persist + 1).min(RECOVERY_THRESH);
    }
}

impl Endpoint {
    /// tcp_rack_advance: a transmission was delivered.
    pub(crate) fn advance_rack(&mut self, sent: &Sent) {
        let rtt_us = self.clock.us().saturating_sub(sent.sent_us);
        if sent.was_repeated() && rtt_us < u64::from(self.rtt.min.get()) {
            return; // probably an earlier transmission's
        }
        let rack = &mut self.rack;
        rack.advanced = true;
        rack.rtt_us = rtt_us;
        rack.order = rack.order.max(sent.order);
        if let Some(member) = &self.shared {
            member.delivered(sent.order);
        }
    }

    /// tcp_rack_reo_wnd, in microseconds.
    fn reorder_window(&self) -> u64 {
        if self.reordering.seen == 0
            && (self.ca_state() >= CaState::Recovery || self.cc.tp.sacked_out >= self.reordering.degree)
        {
            return 0;
        }
        ((u64::from(self.rtt.min.get()) >> 2) * self.rack.steps).min(self.rtt.srtt_us >> 3)
    }

    /// tcp_rack_update_reo_wnd: duplicates after reordering widen the window.
    pub(crate) fn update_reorder_window(&mut self, ack: &Ack) {
        let prior = ack.rate.sample.prior_delivered;
        if prior == 0 {
            return;
        }
        let rack = &mut self.rack;
        if prior < rack.last_delivered {
            rack.duplicate_seen = false; // less than a round trip since the last change
        }
        if std::mem::take(&mut rack.duplicate_seen) {
            rack.steps = (rack.steps + 1).min(255);
            rack.last_delivered = self.cc.tp.delivered;
            rack.persist = RECOVERY_THRESH;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }

    /// tcp_rack_detect_loss: marks segments sent a round trip and the window before the newest delivered
    /// transmission. Returns the time until the last of the others would be lost.
    fn detect_by_time(&mut self) -> u64 {
        let window = self.reorder_window();
        let now = self.clock.us();
        let patience = self.rack.rtt_us + window;
        let mut id = self.board.oldest();
        while id != NONE {
            let sent = self.board.get(id);
            if sent.order >= self.rack.order {
                break;
            }
            if sent.sent_us + patience > now {
                // All segments sent after it must wait too, the last of them longest.
                let last = self.board.last_before(self.rack.order);
                return self.board.get(last).sent_us + patience - now;
            }
            let newer = self.board.newer(id);
            self.mark_lost(id);
            id = newer;
        }
        0
    }

    /// tcp_identify_packet_loss.
    pub(crate) fn identify_loss(&mut self, ack: &mut Ack) {
        if self.board.is_empty() {
            return;
        }
        if !self.agreed.sack {
            return self.detect_newreno(ack.is(flag::UNA_ADVANCED));
        }
        let prior_retransmissions = self.cc.tp.retrans_out;
        self.detect_overtaken();
        if self.uses_rack() && std::mem::take(&mut self.rack.advanced) {
            let wait = self.detect_by_time();
            if wait > 0 {
                self.arm(Pending::Reorder, jiffies_of(wait + TIMEOUT_MIN_US));
                ack.flag &= !flag::SET_XMIT_TIMER;
            }
        }
        if prior_retransmissions > self.cc.tp.retrans_out {
            ack.flag |= flag::LOST_RETRANS;
        }
    }

    /// tcp_rack_reo_timeout.
    pub(crate) fn reorder_timeout(&mut self) {
        let (lost, in_flight) = (self.cc.tp.lost, self.cc.tp.in_flight());
        self.detect_by_time();
        if self.cc.tp.in_flight() != in_flight {
            if self.ca_state() != CaState::Recovery {
                self.enter_recovery(false);
                if !self.cc.has_cong_control() {
                    self.reduce_cwnd(1, (self.cc.tp.lost - lost) as i32, false);
                }
            }
            self.retransmit_lost();
        }
        if self.timers.pending != Pending::Retransmit {
            self.rearm_rto();
        }
    }

    /// tcp_mark_skb_lost.
    pub(crate) fn mark_lost(&mut self, id: u32) {
        let sent = self.board.get_mut(id);
        if sent.has(tag::SACKED) {
            return;
        }
        let sent_us = sent.sent_us;
        if !sent.has(tag::LOST) {
            sent.tags |= tag::LOST;
            self.cc.tp.lost_out += 1;
        } else if sent.has(tag::RETRANSMITTED) {
            sent.tags &= !tag::RETRANSMITTED;
            self.cc.tp.retrans_out -= 1;
        } else {
            return;
        }
        self.cc.tp.lost += 1;
        self.board.unlist(id);
        self.board.wait(id);
        if let Some(member) = &self.shared {
            member.note_loss();
            self.cc.cc_lost(sent_us);
        }
    }

    // ---- RFC 6675 -----------------------------------------------------------------------------

    /// tcp_time_to_recover.
    pub(crate) fn time_to_recover(&self) -> bool {
        let tp = &self.cc.tp;
        tp.lost_out > 0 || (!self.uses_rack() && tp.sacked_out + 1 > self.reordering.degree)
    }

    /// tcp_force_fast_retransmit: more than DupThresh segments lie SACKed beyond the hole.
    pub(crate) fn far_beyond(&self) -> bool {
        self.highest_sack_seq() > self.una + u64::from(self.reordering.degree) * u64::from(self.mss)
    }

    /// Marks every segment with DupThresh SACKed segments beyond it (RFC 6675 section 4, IsLost;
    /// tcp_update_scoreboard of kernels before RACK became the only rule), else, on entering
    /// recovery, the first one.
    pub(crate) fn update_scoreboard(&mut self, entering: bool) {
        if !self.agreed.sack {
            return;
        }
        if self.cc.tp.sacked_out < self.reordering.degree {
            if entering {
                self.mark_first();
            }
            return;
        }
        let mut beyond = self.board.find(self.highest_sack - 1);
        let mut sacked = 0;
        loop {
            sacked += u32::from(self.board.get(beyond).has(tag::SACKED));
            if sacked == self.reordering.degree {
                break;
            }
            beyond -= 1;
        }
        let mut id = self.board.next_unsacked(self.lost_below.max(self.board.ids().start));
        while id < beyond {
            if !self.board.get(id).has(tag::LOST) {
                self.mark_lost(id);
            }
            id = self.board.next_unsacked(id + 1);
        }
        self.lost_below = self.lost_below.max(beyond);
    }

    fn mark_first(&mut self) {
        let first = self.board.ids().start;
        if !self.board.get(first).has(tag::LOST) {
            self.mark_lost(first);
        }
    }

    // ---- NewReno (RFC 6582): a connection without SACK ------------------------------------------

    /// tcp_newreno_mark_lost.
    fn detect_newreno(&mut self, una_advanced: bool) {
        let state = self.ca_state();
        let duplicates = state < CaState::Recovery && self.cc.tp.sacked_out >= self.reordering.degree;
        if duplicates || (state == CaState::Recovery && una_advanced) {
            self.mark_first();
        }
    }

    /// tcp_add_reno_sack: a duplicate ACK means that one more segment has arrived.
    pub(crate) fn add_reno_sack(&mut self, duplicates: u32) {
        if duplicates == 0 {
            return;
        }
        let prior = self.cc.tp.sacked_out;
        self.cc.tp.sacked_out += duplicates;
        self.limit_reno_sacks(0);
        self.cc.tp.delivered += self.cc.tp.sacked_out.saturating_sub(prior);
    }

    /// tcp_remove_reno_sacks: one acknowledged segment filled the hole, the others had arrived before.
    pub(crate) fn remove_reno_sacks(&mut self, acked: u32) {
        let tp = &mut self.cc.tp;
        tp.delivered += acked.saturating_sub(tp.sacked_out).max(1);
        tp.sacked_out = tp.sacked_out.saturating_sub(acked - 1);
        self.limit_reno_sacks(acked);
    }

    /// tcp_check_reno_reordering: more duplicate ACKs than segments could cause.
    fn limit_reno_sacks(&mut self, more: u32) {
        let tp = &mut self.cc.tp;
        let holes = tp.lost_out.max(1).min(tp.packets_out);
        if tp.sacked_out + holes > tp.packets_out {
            tp.sacked_out = tp.packets_out - holes;
            self.reordering.degree = (tp.packets_out + more).min(self.config.max_reordering);
            self.reordering.seen += 1;
        }
    }
}
