//! The congestion state machine: entering and leaving Disorder, CWR, Recovery and Loss, undo, PRR.
//! Follows tcp_fastretrans_alert and its helpers (tcp_input.c).

use crate::clock::timestamp;
use crate::endpoint::Endpoint;
use crate::input::{Ack, Repair, flag};
use crate::sample::Event;
use crate::scoreboard::{Sent, tag};
use wirepaint_congestion_native::{CaEvent, CaState, INFINITE_SSTHRESH};

impl Endpoint {
    /// tcp_fastretrans_alert.
    pub(crate) fn state_machine(&mut self, ack: &mut Ack) {
        let ece = ack.is(flag::ECE);
        let mut mark = ack.duplicates > 0 || (ack.is(flag::DATA_SACKED) && self.far_beyond());
        if self.cc.tp.packets_out == 0 {
            self.cc.tp.sacked_out = 0;
        }
        if ece {
            self.cc.tp.prior_ssthresh = 0; // a reduction by ECN is not undone
        }
        let mut entering = false;
        match self.ca_state() {
            CaState::Open => self.undo.stamp = 0,
            CaState::Cwr if self.una > self.high_seq => {
                self.end_reduction();
                self.set_state(CaState::Open);
            }
            CaState::Recovery if self.una >= self.high_seq => {
                if !self.agreed.sack {
                    self.cc.tp.sacked_out = 0;
                }
                if self.try_undo_recovery() {
                    return;
                }
                self.end_reduction();
            }
            _ => {}
        }
        match self.ca_state() {
            CaState::Recovery => {
                if !ack.is(flag::UNA_ADVANCED) {
                    if !self.agreed.sack {
                        self.add_reno_sack(ack.duplicates);
                    }
                } else if self.try_undo_partial(ack, &mut mark) {
                    return;
                }
                if self.try_undo_by_duplicates() {
                    self.try_to_open(ece);
                }
                self.identify_loss(ack);
                if self.ca_state() != CaState::Recovery {
                    if !self.time_to_recover() {
                        return;
                    }
                    self.enter_recovery(ece);
                }
            }
            CaState::Loss => {
                self.process_loss(ack);
                self.identify_loss(ack);
                if self.ca_state() != CaState::Open && !ack.is(flag::LOST_RETRANS) {
                    return;
                }
                if !self.look_for_loss(ack, ece) {
                    return;
                }
                entering = true;
            }
            _ => {
                if !self.look_for_loss(ack, ece) {
                    return;
                }
                entering = true;
            }
        }
        if !self.uses_rack() && mark {
            self.update_scoreboard(entering);
        }
        ack.repair = Repair::Lost;
    }

    /// The state machine outside of Recovery. Returns whether it entered Recovery.
    fn look_for_loss(&mut self, ack: &mut Ack, ece: bool) -> bool {
        if !self.agreed.sack {
            if ack.is(flag::UNA_ADVANCED) {
                self.cc.tp.sacked_out = 0;
            }
            self.add_reno_sack(ack.duplicates);
        }
        if self.ca_state() <= CaState::Disorder {
            self.try_undo_by_duplicates();
        }
        self.identify_loss(ack);
        if !self.time_to_recover() {
            self.try_to_open(ece);
            return false;
        }
        self.enter_recovery(ece);
        true
    }

    /// tcp_process_loss, with F-RTO (RFC 5682 section 3, its variant with SACK).
    fn process_loss(&mut self, ack: &mut Ack) {
        let recovered = self.una >= self.high_seq;
        if ack.is(flag::UNA_ADVANCED) && self.try_undo_loss(false) {
            return;
        }
        if self.frto {
            // Step 3.b: a segment that was sent only once has arrived, so the timeout was spurious.
            if ack.is(flag::ORIG_SACK_ACKED) && self.try_undo_loss(true) {
                return;
            }
            if self.nxt > self.high_seq {
                if ack.is(flag::DATA_SACKED) || ack.duplicates > 0 {
                    self.frto = false; // step 3.a: the loss was real
                }
            } else if ack.is(flag::UNA_ADVANCED) && !recovered {
                self.high_seq = self.nxt;
                // Step 2.b: new data first, where there are any and the window allows it.
                if self.has_unsent() && self.una + self.snd_wnd > self.nxt {
                    ack.repair = Repair::New;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return;
        }
        if !self.agreed.sack {
            if self.nxt > self.high_seq && ack.duplicates > 0 {
                self.add_reno_sack(ack.duplicates);
            } else if ack.is(flag::UNA_ADVANCED) {
                self.cc.tp.sacked_out = 0;
            }
        }
        ack.repair = Repair::Lost;
    }

    /// tcp_process_tlp_ack: an ACK's evidence about the tail-loss probe.
    pub(crate) fn process_probe_ack(&mut self, ack: &Ack) {
        let Some(high) = self.tlp.high else { return };
        if ack.number < high {
            return;
        }
        if !self.tlp.retransmitted || ack.is(flag::DSACK_TLP) {
            self.tlp.high = None; // new data were acknowledged, or both copies arrived
        } else if ack.number > high {
            // The probe repaired a loss.
            self.init_reduction();
            self.set_state(CaState::Cwr);
            self.end_reduction();
            self.try_keep_open();
        } else if !ack.is(flag::UNA_ADVANCED | flag::NOT_DUP | flag::DATA_SACKED) {
            self.tlp.high = None;
        }
    }

    // ---- entering -----------------------------------------------------------------------------

    /// tcp_in_cwnd_reduction.
    pub(crate) fn in_reduction(&self) -> bool {
        matches!(self.ca_state(), CaState::Cwr | CaState::Recovery)
    }

    /// tcp_set_ca_state.
    pub(crate) fn set_state(&mut self, state: CaState) {
        if self.samples.is_some() {
            let old = std::mem::replace(&mut self.cc.tp.icsk_ca_state, state as u8);
            self.sample(Event::State);
            self.cc.tp.icsk_ca_state = old;
        }
        self.cc.set_state(state as u8);
        self.cc.tp.icsk_ca_state = state as u8;
    }

    /// tcp_current_ssthresh.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        let tp = &self.cc.tp;
        if self.in_reduction() {
            tp.snd_ssthresh
        } else {
            tp.snd_ssthresh.max((tp.snd_cwnd >> 1) + (tp.snd_cwnd >> 2))
        }
    }

    pub(crate) fn set_high_seq(&mut self) {
        self.high_seq = self.nxt;
        self.cc.tp.high_seq = self.nxt as u32;
    }

    /// tcp_init_cwnd_reduction.
    fn init_reduction(&mut self) {
        self.set_high_seq();
        self.tlp.high = None;
        self.prr.delivered = 0;
        self.prr.out = 0;
        self.cc.tp.snd_cwnd_cnt = 0;
        self.cc.tp.prior_cwnd = self.cc.tp.snd_cwnd;
        self.cc.tp.snd_ssthresh = self.cc.ssthresh();
        self.queue_cwr();
    }

    fn queue_cwr(&mut self) {
        self.send_cwr |= self.agreed.ecn;
    }

    /// tcp_cwnd_reduction: proportional rate reduction (RFC 9937).
    pub(crate) fn reduce_cwnd(&mut self, delivered: u32, lost: i32, una_advanced: bool) {
        let tp = &mut self.cc.tp;
        if delivered == 0 || tp.prior_cwnd == 0 {
            return;
        }
        self.prr.delivered += delivered;
        let pipe = i64::from(tp.in_flight());
        let (ssthresh, prior) = (i64::from(tp.snd_ssthresh), i64::from(tp.prior_cwnd));
        let (done, out) = (i64::from(self.prr.delivered), i64::from(self.prr.out));
        let allowance = if pipe > ssthresh {
            (ssthresh * done + prior - 1) / prior - out
        } else {
            let slow_start = i64::from(una_advanced && lost == 0);
            ((done - out).max(i64::from(delivered)) + slow_start).min(ssthresh - pipe)
        };
        tp.snd_cwnd = (pipe + allowance.max(i64::from(out == 0))).max(1) as u32;
    }

    /// tcp_end_cwnd_reduction.
    fn end_reduction(&mut self) {
        if self.cc.has_cong_control() {
            return;
        }
        let cwr = self.ca_state() == CaState::Cwr;
        let tp = &mut self.cc.tp;
        if tp.snd_ssthresh < INFINITE_SSTHRESH && (cwr || self.undo.marker.is_some()) {
            tp.snd_cwnd = tp.snd_ssthresh;
            tp.snd_cwnd_stamp = tp.cc_jiffies;
        }
        self.cc.cwnd_event(CaEvent::CompleteCwr);
    }

    /// tcp_init_undo.
    fn init_undo(&mut self) {
        self.undo.marker = Some(self.una);
        let probe = self.tlp.high.is_some() && self.tlp.retransmitted;
        self.undo.retrans = i64::from(self.cc.tp.retrans_out) + i64::from(probe);
        if self.undo.retrans == 0 {
            self.undo.retrans = -1;
        }
    }

    /// tcp_enter_recovery.
    pub(crate) fn enter_recovery(&mut self, ece: bool) {
        self.clean_retrans_stamp();
        self.cc.tp.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_reduction() {
            if !ece {
                self.cc.tp.prior_ssthresh = self.current_ssthresh();
            }
            self.init_reduction();
        }
        self.lost_below = 0;
        self.set_state(CaState::Recovery);
    }

    /// tcp_enter_cwr.
    pub(crate) fn enter_cwr(&mut self) {
        self.cc.tp.prior_ssthresh = 0;
        if self.ca_state() < CaState::Cwr {
            self.undo.marker = None;
            self.init_reduction();
            self.set_state(CaState::Cwr);
        }
    }

    /// tcp_enter_loss.
    pub(crate) fn enter_loss(&mut self) {
        let state = self.ca_state();
        self.mark_timed_out();
        let fresh = state <= CaState::Disorder
            || self.high_seq <= self.una
            || (state == CaState::Loss && self.timeouts == 0);
        if fresh {
            self.cc.tp.prior_ssthresh = self.current_ssthresh();
            self.cc.tp.prior_cwnd = self.cc.tp.snd_cwnd;
            self.cc.tp.snd_ssthresh = self.cc.ssthresh();
            self.cc.cwnd_event(CaEvent::Loss);
            self.init_undo();
        }
        let tp = &mut self.cc.tp;
        tp.snd_cwnd = tp.in_flight() + 1;
        tp.snd_cwnd_cnt = 0;
        tp.snd_cwnd_stamp = tp.cc_jiffies;
        if state <= CaState::Disorder && tp.sacked_out >= self.config.reordering {
            self.reordering.degree = self.reordering.degree.min(self.config.reordering);
        }
        self.set_state(CaState::Loss);
        self.set_high_seq();
        self.tlp.high = None;
        self.queue_cwr();
        self.frto = self.config.frto && (state < CaState::Recovery || self.timeouts > 0);
    }

    /// tcp_timeout_mark_lost: the first segment, and those that RACK deems timed out.
    fn mark_timed_out(&mut self) {
        if !self.agreed.sack {
            self.cc.tp.sacked_out = 0;
        }
        let (first, now) = (self.board.ids().start, self.clock.us());
        for id in self.board.ids() {
            let recent = self.board.get(id).sent_us + self.rack.rtt_us > now;
            if id == first || !recent || !self.uses_rack() {
                self.mark_lost(id);
            }
        }
    }

    /// tcp_try_to_open.
    fn try_to_open(&mut self, ece: bool) {
        self.clean_retrans_stamp();
        if ece {
            self.enter_cwr();
        }
        if self.ca_state() != CaState::Cwr {
            self.try_keep_open();
        }
    }

    /// tcp_try_keep_open.
    fn try_keep_open(&mut self) {
        let tp = &self.cc.tp;
        let disorder = tp.sacked_out + tp.lost_out > 0 || self.any_retransmitted();
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if self.ca_state() != state {
            self.set_state(state);
            self.set_high_seq();
        }
    }

    /// tcp_any_retrans_done.
    fn any_retransmitted(&self) -> bool {
        self.cc.tp.retrans_out > 0 || self.board.head().is_some_and(Sent::was_repeated)
    }

    fn clean_retrans_stamp(&mut self) {
        if !self.any_retransmitted() {
            self.undo.stamp = 0;
        }
    }

    // ---- undo ---------------------------------------------------------------------------------

    /// tcp_tsopt_ecr_before: the ACK echoes a segment sent before `stamp` (Eifel, RFC 3522).
    fn echo_is_before(&self, stamp: u32) -> bool {
        self.echoed.is_some_and(|echo| echo != 0 && (echo.wrapping_sub(stamp) as i32) < 0)
    }

    /// tcp_skb_spurious_retrans.
    pub(crate) fn was_spurious(&self, sent: &Sent) -> bool {
        sent.was_repeated() && self.echo_is_before(timestamp(sent.sent_us))
    }

    /// tcp_packet_delayed: nothing was retransmitted yet, or the original was answered.
    fn was_delayed(&self) -> bool {
        if self.undo.stamp != 0 {
            return self.echo_is_before(self.undo.stamp);
        }
        self.agreed.sack || self.una < self.high_seq
    }

    /// tcp_may_undo.
    fn may_undo(&self) -> bool {
        self.undo.marker.is_some() && (self.undo.retrans == 0 || self.was_delayed())
    }

    /// tcp_undo_cwnd_reduction.
    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            for id in self.board.ids() {
                self.board.get_mut(id).tags &= !tag::LOST;
            }
            self.cc.tp.lost_out = 0;
            // After an undo, RACK ignores a segment that it had marked lost until it is retransmitted.
            // Segments that a timeout marked are listed again.
            if self.ca_state() == CaState::Loss {
                self.board.relist();
            }
        }
        if self.cc.tp.prior_ssthresh > 0 {
            self.cc.tp.snd_cwnd = self.cc.undo_cwnd();
            let tp = &mut self.cc.tp;
            if tp.prior_ssthresh > tp.snd_ssthresh {
                tp.snd_ssthresh = tp.prior_ssthresh;
                self.send_cwr = false;
            }
        }
        self.cc.tp.snd_cwnd_stamp = self.cc.tp.cc_jiffies;
        self.undo.marker = None;
        self.rack.advanced = true; // look at all segments again
    }

    /// tcp_is_non_sack_preventing_reopen: without SACK the state is kept until something beyond is
    /// acknowledged (RFC 6582).
    fn must_stay(&mut self) -> bool {
        let stays = self.una == self.high_seq && !self.agreed.sack;
        if stays {
            self.clean_retrans_stamp();
        }
        stays
    }

    /// tcp_try_undo_recovery; true where the state stays.
    fn try_undo_recovery(&mut self) -> bool {
        if self.may_undo() {
            self.undo_reduction(false);
        } else if self.rack.persist > 0 {
            self.rack.persist -= 1;
        }
        if self.must_stay() {
            return true;
        }
        self.set_state(CaState::Open);
        false
    }

    /// tcp_try_undo_dsack: every retransmission was reported as a duplicate.
    fn try_undo_by_duplicates(&mut self) -> bool {
        let undo = self.undo.marker.is_some() && self.undo.retrans == 0;
        if undo {
            self.rack.confirm();
            self.undo_reduction(false);
        }
        undo
    }

    /// tcp_try_undo_loss.
    fn try_undo_loss(&mut self, spurious: bool) -> bool {
        if !spurious && !self.may_undo() {
            return false;
        }
        self.undo_reduction(true);
        self.timeouts = 0;
        if !self.must_stay() && (spurious || self.agreed.sack) {
            self.set_state(CaState::Open);
        }
        true
    }

    /// tcp_try_undo_partial: the original filled a hole. Returns true if nothing else is to be done.
    fn try_undo_partial(&mut self, ack: &Ack, mark: &mut bool) -> bool {
        if self.undo.marker.is_none() || !self.was_delayed() {
            *mark = self.far_beyond();
            return false;
        }
        self.check_reordering(ack.prior_una);
        if self.cc.tp.retrans_out > 0 {
            return true;
        }
        self.clean_retrans_stamp();
        self.undo_reduction(true);
        self.try_keep_open();
        false
    }
}
