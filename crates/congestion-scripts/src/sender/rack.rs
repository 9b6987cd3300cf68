//! Loss detection by time: RACK (RFC 8985, tcp_recovery.c).

use super::Sender;
use super::path::Found;
use wirepaint_congestion_native::CaState;

/// SACKed segments from which on no reordering is tolerated (tcp_reordering).
const DUP_THRESH: u32 = 3;

/// The newest delivered transmission, as RACK remembers it.
#[derive(Clone, Copy, Default)]
pub(super) struct Rack {
    pub sent_us: u64,
    pub segment: u64,
    pub rtt_us: u64,
    /// When the reordering timer fires.
    pub timer_us: Option<u64>,
}

impl Sender {
    /// tcp_rack_detect_loss.
    pub(super) fn detect_loss(&mut self, found: &mut Found) {
        let tp = &self.connection.tp;
        let strict = self.state() >= CaState::Recovery || tp.sacked_out >= DUP_THRESH;
        let window = if strict { 0 } else { (self.min_rtt_us / 4).min(u64::from(tp.srtt_us >> 3)) };
        self.rack.timer_us = None;
        if self.rack.sent_us == 0 {
            return;
        }
        for index in 0..self.queue.len() {
            let segment = &self.queue[index];
            let newer = (segment.sent_us, self.first + index as u64) > (self.rack.sent_us, self.rack.segment);
            if segment.sacked || newer || (segment.lost && !segment.retransmitted) {
                continue;
            }
            let deadline = segment.sent_us + self.rack.rtt_us + window;
            if deadline <= self.now_us {
                found.lost_retransmission |= segment.retransmitted;
                self.mark_lost(index);
            } else {
                self.rack.timer_us = Some(self.rack.timer_us.unwrap_or(0).max(deadline));
            }
        }
    }

    /// tcp_mark_skb_lost.
    pub(super) fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.queue[index];
        let tp = &mut self.connection.tp;
        if segment.sacked {
            return;
        }
        if segment.lost {
            if std::mem::take(&mut segment.retransmitted) {
                tp.retrans_out -= 1;
                tp.lost += 1;
            }
        } else {
            segment.lost = true;
            tp.lost_out += 1;
            tp.lost += 1;
        }
    }

    /// tcp_rack_reo_timeout.
    pub(super) fn reorder_timeout(&mut self) {
        self.rack.timer_us = None;
        let before = self.connection.tp.in_flight();
        self.detect_loss(&mut Found::default());
        if self.connection.tp.in_flight() != before {
            if self.state() != CaState::Recovery {
                self.enter_recovery(false);
                if !self.connection.has_cong_control() {
                    self.reduce_cwnd(1, true, false);
                }
            }
            self.retransmit_lost();
        }
    }
}
