//! An ACK: tags, cleaning, hooks in the kernel's order (tcp_input.c).

use super::path::{Ack, Found};
use super::rack::Rack;
use super::{JIFFY_US, Sender};
use wirepaint_congestion_native::{AckSample, CaState, ack_flags};

/// The tail-loss probe under way.
#[derive(Default)]
pub(super) struct Tlp {
    /// snd_nxt when it was sent.
    pub high_seq: Option<u32>,
    /// It repeated a segment instead of sending a new one.
    pub retransmitted: bool,
}

impl Sender {
    /// tcp_ack.
    pub(super) fn on_ack(&mut self, ack: Ack) {
        let before = self.connection.tp.clone();
        let mut found = Found { ece: ack.ece, duplicate: ack.duplicates > 0, ..Found::default() };
        self.undo.retrans -= i64::from(ack.duplicates).min(self.undo.retrans.max(0));
        // tcp_dsack_seen: a needless retransmission counts as delivered.
        self.connection.tp.delivered += ack.duplicates;

        let mut rtt_us = None;
        for &segment in &ack.sacked {
            found.data_sacked |= self.sack(segment, &mut rtt_us);
        }
        let acked = self.clean(ack.next, &mut rtt_us);
        found.una_advanced = acked > 0;
        if let Some(rtt) = rtt_us {
            self.min_rtt_us = self.min_rtt_us.min(rtt);
            let tp = &mut self.connection.tp;
            tp.cc_rtt_min_us = self.min_rtt_us as u32;
            tp.srtt_us = tp.srtt_us - tp.srtt_us / 8 + rtt as u32;
        }
        if before.packets_out > 0 {
            self.connection.pkts_acked(AckSample {
                pkts_acked: acked,
                rtt_us: rtt_us.map_or(-1, |rtt| rtt as i32),
                in_flight: before.in_flight(),
            });
        }
        let slow = !ack.sacked.is_empty() || ack.ece || acked == 0;
        self.connection.in_ack_event(
            if slow { ack_flags::SLOWPATH } else { ack_flags::WIN_UPDATE }
                | if ack.ece { ack_flags::ECE } else { 0 },
        );

        self.process_probe_ack(found);
        let dubious = !found.una_advanced || found.data_sacked || found.ece || found.duplicate;
        let repair = (dubious || self.state() != CaState::Open) && self.state_machine(found);
        let tp = &mut self.connection.tp;
        let (delivered, lost) = (tp.delivered - before.delivered, tp.lost - before.lost);
        let sample = self.rate.sample(tp, self.now_us, delivered, lost, before.in_flight(), rtt_us);
        if before.packets_out > 0 {
            if self.connection.has_cong_control() {
                let number = self.connection.tp.snd_una;
                self.connection.cong_control(number, 0, sample);
            } else if self.in_reduction() {
                self.reduce_cwnd(delivered, lost > 0, found.una_advanced);
            } else if found.una_advanced {
                let number = self.connection.tp.snd_una;
                self.connection.cong_avoid(number, delivered);
                self.stamp_cwnd();
            }
        }
        if repair {
            self.retransmit_lost();
        }
        self.send();
    }

    /// tcp_sacktag_one; true if the SACK is new.
    fn sack(&mut self, number: u64, rtt_us: &mut Option<u64>) -> bool {
        let Some(segment) =
            number.checked_sub(self.first).and_then(|index| self.queue.get_mut(index as usize))
        else {
            return false;
        };
        if segment.sacked {
            return false;
        }
        let tp = &mut self.connection.tp;
        segment.sacked = true;
        tp.sacked_out += 1;
        tp.delivered += 1;
        if std::mem::take(&mut segment.lost) {
            tp.lost_out -= 1;
        }
        if std::mem::take(&mut segment.retransmitted) {
            tp.retrans_out -= 1;
        }
        let (sent, repeated) = (segment.sent_us, segment.ever_retransmitted);
        self.rate.delivered(number, sent, segment.stamp);
        self.note_delivery(number, sent, repeated, rtt_us);
        true
    }

    /// tcp_clean_rtx_queue; the number of segments newly acknowledged.
    fn clean(&mut self, next: u64, rtt_us: &mut Option<u64>) -> u32 {
        let mut acked = 0;
        while self.first < next {
            let segment = self.queue.pop_front().expect("only what was sent is acknowledged");
            let tp = &mut self.connection.tp;
            tp.packets_out -= 1;
            tp.lost_out -= u32::from(segment.lost);
            tp.retrans_out -= u32::from(segment.retransmitted);
            tp.sacked_out -= u32::from(segment.sacked);
            tp.delivered += u32::from(!segment.sacked);
            tp.snd_una += tp.mss_cache;
            tp.bytes_acked += u64::from(tp.mss_cache);
            if !segment.sacked {
                self.rate.delivered(self.first, segment.sent_us, segment.stamp);
                self.note_delivery(self.first, segment.sent_us, segment.ever_retransmitted, rtt_us);
            }
            self.first += 1;
            acked += 1;
        }
        if acked > 0 {
            self.timeouts = 0;
            self.connection.tp.icsk_rto = (self.config.rto_us / JIFFY_US) as u32;
        }
        acked
    }

    /// tcp_rack_advance and the round-trip sample (Karn: none from a repeated segment).
    fn note_delivery(&mut self, segment: u64, sent_us: u64, repeated: bool, rtt_us: &mut Option<u64>) {
        let rtt = self.now_us - sent_us;
        if repeated && rtt < self.min_rtt_us {
            return; // the ACK is for an earlier transmission
        }
        if !repeated {
            *rtt_us = Some(rtt);
        }
        if (sent_us, segment) > (self.rack.sent_us, self.rack.segment) {
            self.rack = Rack { sent_us, segment, rtt_us: rtt, ..self.rack };
        }
    }

    /// tcp_process_tlp_ack.
    fn process_probe_ack(&mut self, found: Found) {
        let Some(high) = self.tlp.high_seq else { return };
        let una = self.connection.tp.snd_una;
        if una < high {
            return;
        }
        if !self.tlp.retransmitted || found.duplicate {
            self.tlp.high_seq = None;
        } else if una > high {
            self.init_reduction();
            self.set_state(CaState::Cwr);
            self.end_reduction();
            self.keep_open();
        }
    }
}
