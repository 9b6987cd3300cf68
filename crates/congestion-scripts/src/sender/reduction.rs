//! Proportional rate reduction, PRR (RFC 9937).

use super::Sender;
use wirepaint_congestion_native::{CaEvent, CaState, INFINITE_SSTHRESH};

/// Segments delivered and sent since the reduction began.
#[derive(Default)]
pub(super) struct Prr {
    pub delivered: u32,
    pub out: u32,
}

impl Sender {
    pub(super) fn in_reduction(&self) -> bool {
        matches!(self.state(), CaState::Cwr | CaState::Recovery)
    }

    /// tcp_init_cwnd_reduction.
    pub(super) fn init_reduction(&mut self) {
        self.tlp.high_seq = None;
        self.prr = Prr::default();
        let tp = &mut self.connection.tp;
        tp.high_seq = tp.snd_nxt;
        tp.snd_cwnd_cnt = 0;
        tp.prior_cwnd = tp.snd_cwnd;
        self.connection.tp.snd_ssthresh = self.connection.ssthresh();
    }

    /// tcp_end_cwnd_reduction.
    pub(super) fn end_reduction(&mut self) {
        if self.connection.has_cong_control() {
            return;
        }
        let cwr = self.state() == CaState::Cwr;
        let tp = &mut self.connection.tp;
        if tp.snd_ssthresh < INFINITE_SSTHRESH && (cwr || self.undo.marker.is_some()) {
            tp.snd_cwnd = tp.snd_ssthresh;
            tp.snd_cwnd_stamp = tp.cc_jiffies;
        }
        self.connection.cwnd_event(CaEvent::CompleteCwr);
    }

    /// tcp_cwnd_reduction: proportional rate reduction (RFC 9937).
    pub(super) fn reduce_cwnd(&mut self, delivered: u32, marked: bool, una_advanced: bool) {
        if delivered == 0 {
            return;
        }
        self.prr.delivered += delivered;
        let tp = &mut self.connection.tp;
        let pipe = i64::from(tp.in_flight());
        let ssthresh = i64::from(tp.snd_ssthresh);
        let (done, out) = (i64::from(self.prr.delivered), i64::from(self.prr.out));
        let allowance = if pipe > ssthresh {
            (ssthresh * done + i64::from(tp.prior_cwnd) - 1) / i64::from(tp.prior_cwnd) - out
        } else {
            let slow_start = i64::from(una_advanced && !marked);
            ((done - out).max(i64::from(delivered)) + slow_start).min(ssthresh - pipe)
        };
        tp.snd_cwnd = (pipe + allowance.max(i64::from(out == 0))).max(1) as u32;
    }

    pub(super) fn current_ssthresh(&self) -> u32 {
        let tp = &self.connection.tp;
        if self.in_reduction() {
            tp.snd_ssthresh
        } else {
            tp.snd_ssthresh.max((tp.snd_cwnd >> 1) + (tp.snd_cwnd >> 2))
        }
    }

    pub(super) fn stamp_cwnd(&mut self) {
        let tp = &mut self.connection.tp;
        tp.snd_cwnd_stamp = tp.cc_jiffies;
    }
}
