//! The state machine: recovery, loss, and undo by DSACK (tcp_fastretrans_alert).

use super::Sender;
use super::path::Found;
use wirepaint_congestion_native::{CaEvent, CaState};

/// State that shows whether a reduction was unnecessary.
#[derive(Default)]
pub(super) struct Undo {
    /// snd_una when it began; `None` if nothing can be undone.
    pub marker: Option<u32>,
    /// Retransmissions that no DSACK has reported yet.
    pub retrans: i64,
}

impl Sender {
    /// tcp_fastretrans_alert; true if lost segments are to be retransmitted.
    pub(super) fn state_machine(&mut self, mut found: Found) -> bool {
        if found.ece {
            self.connection.tp.prior_ssthresh = 0;
        }
        let (una, high) = (self.connection.tp.snd_una, self.connection.tp.high_seq);
        match self.state() {
            CaState::Cwr if una > high => {
                self.end_reduction();
                self.set_state(CaState::Open);
            }
            CaState::Recovery if una >= high => {
                self.undo_recovery();
                self.end_reduction();
            }
            _ => {}
        }
        match self.state() {
            CaState::Recovery => {
                if self.undo_by_dsack() {
                    self.try_to_open(found);
                }
                self.detect_loss(&mut found);
                if self.state() != CaState::Recovery {
                    if self.connection.tp.lost_out == 0 {
                        return false;
                    }
                    self.enter_recovery(found.ece);
                }
                return true;
            }
            CaState::Loss => {
                self.process_loss(found);
                self.detect_loss(&mut found);
                if self.state() != CaState::Open && !found.lost_retransmission {
                    return true;
                }
            }
            _ => {}
        }
        if self.state() <= CaState::Disorder {
            self.undo_by_dsack();
        }
        self.detect_loss(&mut found);
        if self.connection.tp.lost_out == 0 {
            self.try_to_open(found);
            return false;
        }
        self.enter_recovery(found.ece);
        true
    }

    fn process_loss(&mut self, found: Found) {
        if found.una_advanced && self.may_undo() {
            self.undo_reduction(true);
            self.set_state(CaState::Open);
        } else if self.connection.tp.snd_una >= self.connection.tp.high_seq {
            self.undo_recovery();
        }
    }

    /// tcp_enter_recovery.
    pub(super) fn enter_recovery(&mut self, ece: bool) {
        self.connection.tp.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_reduction() {
            if !ece {
                self.connection.tp.prior_ssthresh = self.current_ssthresh();
            }
            self.init_reduction();
        }
        self.set_state(CaState::Recovery);
    }

    /// tcp_enter_cwr.
    pub(super) fn enter_cwr(&mut self) {
        self.connection.tp.prior_ssthresh = 0;
        if self.state() < CaState::Cwr {
            self.undo.marker = None;
            self.init_reduction();
            self.set_state(CaState::Cwr);
        }
    }

    /// tcp_enter_loss.
    pub(super) fn enter_loss(&mut self) {
        for index in 0..self.queue.len() {
            let recent = self.queue[index].sent_us + self.rack.rtt_us > self.now_us;
            if index == 0 || !recent {
                self.mark_lost(index);
            }
        }
        let tp = &self.connection.tp;
        let again = self.state() == CaState::Loss && self.timeouts == 0;
        if self.state() <= CaState::Disorder || tp.high_seq <= tp.snd_una || again {
            let prior = self.current_ssthresh();
            let tp = &mut self.connection.tp;
            tp.prior_ssthresh = prior;
            tp.prior_cwnd = tp.snd_cwnd;
            self.connection.tp.snd_ssthresh = self.connection.ssthresh();
            self.connection.cwnd_event(CaEvent::Loss);
            self.init_undo();
        }
        let tp = &mut self.connection.tp;
        tp.snd_cwnd = tp.in_flight() + 1;
        tp.snd_cwnd_cnt = 0;
        self.stamp_cwnd();
        self.set_state(CaState::Loss);
        let tp = &mut self.connection.tp;
        tp.high_seq = tp.snd_nxt;
    }

    /// tcp_try_to_open.
    fn try_to_open(&mut self, found: Found) {
        if found.ece {
            self.enter_cwr();
        }
        if self.state() != CaState::Cwr {
            self.keep_open();
        }
    }

    /// tcp_try_keep_open.
    pub(super) fn keep_open(&mut self) {
        let tp = &self.connection.tp;
        let repaired = self.queue.front().is_some_and(|segment| segment.ever_retransmitted);
        let disorder = tp.sacked_out + tp.lost_out + tp.retrans_out > 0 || repaired;
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if state != self.state() {
            self.set_state(state);
            let tp = &mut self.connection.tp;
            tp.high_seq = tp.snd_nxt;
        }
    }

    pub(super) fn set_state(&mut self, state: CaState) {
        self.connection.set_state(state as u8);
        self.connection.tp.icsk_ca_state = state as u8;
    }

    fn init_undo(&mut self) {
        let tp = &self.connection.tp;
        self.undo.marker = Some(tp.snd_una);
        self.undo.retrans = if tp.retrans_out > 0 { i64::from(tp.retrans_out) } else { -1 };
    }

    fn may_undo(&self) -> bool {
        self.undo.marker.is_some() && self.undo.retrans == 0
    }

    /// tcp_undo_cwnd_reduction.
    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.queue.iter_mut().for_each(|segment| segment.lost = false);
            self.connection.tp.lost_out = 0;
        }
        if self.connection.tp.prior_ssthresh > 0 {
            self.connection.tp.snd_cwnd = self.connection.undo_cwnd();
            let tp = &mut self.connection.tp;
            tp.snd_ssthresh = tp.snd_ssthresh.max(tp.prior_ssthresh);
        }
        self.stamp_cwnd();
        self.undo.marker = None;
    }

    /// tcp_try_undo_recovery.
    fn undo_recovery(&mut self) {
        if self.may_undo() {
            self.undo_reduction(false);
        }
        self.set_state(CaState::Open);
    }

    /// tcp_try_undo_dsack.
    fn undo_by_dsack(&mut self) -> bool {
        let undo = self.may_undo();
        if undo {
            self.undo_reduction(false);
        }
        undo
    }
}
