//! A segment arrives on an open connection: tcp_rcv_established, tcp_ack and what follows from them,
//! in the kernel's order of callbacks.

use crate::endpoint::{Endpoint, Fin, context};
use crate::sacks::Rate;
use crate::sample::Event;
use crate::segment::{Segment, flags};
use wirepaint_congestion_native::ack_flags;

/// Findings about the current ACK (FLAG_* of tcp_input.c).
pub(crate) mod flag {
    pub const DATA: u32 = 1 << 0;
    pub const WIN_UPDATE: u32 = 1 << 1;
    pub const DATA_ACKED: u32 = 1 << 2;
    pub const RETRANS_DATA_ACKED: u32 = 1 << 3;
    pub const DATA_SACKED: u32 = 1 << 5;
    pub const ECE: u32 = 1 << 6;
    pub const LOST_RETRANS: u32 = 1 << 7;
    pub const SLOWPATH: u32 = 1 << 8;
    pub const ORIG_SACK_ACKED: u32 = 1 << 9;
    pub const UNA_ADVANCED: u32 = 1 << 10;
    pub const DSACKING: u32 = 1 << 11;
    pub const SET_XMIT_TIMER: u32 = 1 << 12;
    pub const ACK_MAYBE_DELAYED: u32 = 1 << 16;
    pub const DSACK_TLP: u32 = 1 << 17;
    pub const NOT_DUP: u32 = DATA | WIN_UPDATE | DATA_ACKED;
    pub const CA_ALERT: u32 = DATA_SACKED | ECE | DSACKING;
}

/// How lost segments are repaired once the window is set.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Repair {
    #[default]
    Nothing,
    /// Retransmit what is lost.
    Lost,
    /// F-RTO sends new data first.
    New,
}

/// The current ACK (struct tcp_sacktag_state and the locals of tcp_ack).
#[derive(Default)]
pub(crate) struct Ack {
    pub number: u64,
    pub flag: u32,
    pub prior_una: u64,
    pub prior_highest_sack: u64,
    /// Transmission of the first and the last segment SACKed for the first time; 0 where none was.
    pub first_sacked_us: u64,
    pub last_sacked_us: u64,
    /// Lowest number that shows reordering.
    pub reordered: u64,
    pub sack_delivered: u32,
    pub duplicates: u32,
    pub repair: Repair,
    pub rate: Rate,
}

impl Ack {
    pub fn is(&self, flag: u32) -> bool {
        self.flag & flag != 0
    }
}

impl Endpoint {
    /// tcp_rcv_established.
    pub(crate) fn receive_established(&mut self, segment: &Segment) {
        self.sample(Event::Ack);
        let seq = {
            let distance = segment.seq.wrapping_sub(self.rcv.nxt as u32) as i32;
            self.rcv.nxt.saturating_add_signed(i64::from(distance))
        };
        let end = seq + u64::from(segment.sequence_space());
        if segment.has(flags::TIMESTAMPS) {
            self.echoed = Some(segment.tsecr);
        }
        if segment.has(flags::SYN) || !self.rcv.acceptable(seq, end) {
            self.rcv.refuse(seq, end);
            return self.send_ack();
        }
        let predicted = self.rcv.predicts(seq)
            && u64::from(segment.window) == self.snd_wnd
            && segment.sack_blocks == 0
            && !segment.has(flags::ECE)
            && !segment.has(flags::FIN);
        if !self.acknowledged(segment, seq, end, !predicted) {
            return;
        }
        if segment.sequence_space() > 0 {
            self.rcv.measure_rtt(segment, self.clock);
            if self.rcv.must_flush(seq, end) {
                self.send_ack();
            }
            self.rcv.receive(seq, segment, context!(self));
        }
        let before = self.cc.tp.in_flight();
        self.push_pending();
        self.make_space(before);
        if self.rcv.check_ack(context!(self)) {
            self.send_ack();
        }
        self.check_end();
    }

    /// tcp_check_space: while the application waits and the window is not full, the buffer grows.
    ///
    /// `before` was in flight before new data were sent. Only the first burst of the new data counts: the
    /// other bursts wait for the device (TCP Small Queues) until after this check.
    pub(crate) fn make_space(&mut self, before: u32) {
        if !self.wants_space {
            return;
        }
        let burst = self.burst_segments();
        let tp = &self.cc.tp;
        if tp.in_flight().min(before + burst) < tp.snd_cwnd {
            self.expand_sndbuf();
            self.cc.tp.snd_cwnd_stamp = self.cc.tp.cc_jiffies;
        }
        self.wants_space = !self.is_writable();
    }

    /// Both directions are done: TIME_WAIT or CLOSE.
    fn check_end(&mut self) {
        if self.fin == Fin::Sent && self.una == self.nxt && self.rcv.finished() {
            self.end(false);
        }
    }

    /// tcp_ack; false where the segment is to be ignored.
    fn acknowledged(&mut self, segment: &Segment, seq: u64, end: u64, slow: bool) -> bool {
        let prior_una = self.una;
        let distance = segment.ack.wrapping_sub(prior_una as u32) as i32;
        let mut ack = Ack {
            number: prior_una.saturating_add_signed(i64::from(distance)),
            prior_una,
            flag: if slow { flag::SLOWPATH } else { 0 },
            ..Ack::default()
        };
        if ack.number < prior_una {
            return self.acknowledged_late(segment, seq, ack);
        }
        if ack.number > self.nxt {
            return false;
        }
        if ack.number > prior_una {
            ack.flag |= flag::UNA_ADVANCED;
            self.timeouts = 0;
        }
        ack.prior_highest_sack = if self.agreed.sack { self.highest_sack_seq() } else { self.una };
        let prior_in_flight = self.cc.tp.in_flight();
        ack.rate.sample.prior_in_flight = prior_in_flight;
        let (prior_packets, prior_delivered) = (self.cc.tp.packets_out, self.cc.tp.delivered);
        let prior_lost = self.cc.tp.lost;
        if segment.has(flags::TIMESTAMPS) {
            self.rcv.note_timestamp(seq, segment.tsval);
        }
        if !slow && ack.is(flag::UNA_ADVANCED) {
            self.wl1 = seq;
            self.advance_una(ack.number);
            ack.flag |= flag::WIN_UPDATE;
        } else {
            if seq != end {
                ack.flag |= flag::DATA;
            }
            self.update_window(segment, seq, &mut ack);
            if segment.sack_blocks > 0 && self.agreed.sack {
                self.tag_sacks(segment, &mut ack);
            }
            if segment.has(flags::ECE) && self.agreed.ecn {
                ack.flag |= flag::ECE;
            }
            self.cc.tp.delivered += ack.sack_delivered;
        }
        if segment.has(flags::CWR) {
            self.rcv.accept_cwr(seq != end);
        }
        if prior_packets == 0 {
            self.acknowledged_idle(&mut ack);
            return true;
        }
        self.clean(&mut ack);
        self.update_reorder_window(&ack);
        self.tell_ack(&ack);
        self.process_probe_ack(&ack);
        if ack.flag & flag::NOT_DUP == 0 || ack.is(flag::CA_ALERT) || self.cc.tp.icsk_ca_state != 0 {
            if !ack.is(flag::UNA_ADVANCED | flag::NOT_DUP | flag::DSACKING) {
                ack.duplicates = 1;
            }
            self.state_machine(&mut ack);
        }
        if ack.is(flag::SET_XMIT_TIMER) {
            self.set_transmission_timer();
        }
        let delivered = self.cc.tp.delivered - prior_delivered;
        let lost = self.cc.tp.lost - prior_lost;
        self.finish_rate(delivered, lost, &mut ack);
        self.control_congestion(&ack);
        self.repair(ack.repair);
        true
    }

    /// An ACK older than one already received; its SACK blocks may be new.
    fn acknowledged_late(&mut self, segment: &Segment, seq: u64, mut ack: Ack) -> bool {
        let limit = self.max_window.min(self.cc.tp.bytes_acked);
        if ack.number + limit < ack.prior_una {
            return false;
        }
        if segment.has(flags::TIMESTAMPS) {
            self.rcv.note_timestamp(seq, segment.tsval);
        }
        if segment.sack_blocks > 0 && self.agreed.sack {
            self.tag_sacks(segment, &mut ack);
            self.state_machine(&mut ack);
            self.repair(ack.repair);
        }
        true
    }

    /// Nothing was outstanding.
    fn acknowledged_idle(&mut self, ack: &mut Ack) {
        self.tell_ack(ack);
        if ack.is(flag::DSACKING) {
            self.state_machine(ack);
        }
        self.note_window();
        self.process_probe_ack(ack);
    }

    /// tcp_snd_una_update.
    fn advance_una(&mut self, number: u64) {
        let tp = &mut self.cc.tp;
        tp.bytes_acked += number - self.una;
        tp.snd_una = number as u32;
        self.una = number;
    }

    /// tcp_ack_update_window.
    fn update_window(&mut self, segment: &Segment, seq: u64, ack: &mut Ack) {
        let window = u64::from(segment.window);
        let newer = ack.number > self.una || seq > self.wl1;
        if newer || (seq == self.wl1 && (window > self.snd_wnd || window == 0)) {
            ack.flag |= flag::WIN_UPDATE;
            self.wl1 = seq;
            if window != self.snd_wnd {
                self.snd_wnd = window;
                self.cc.tp.snd_wnd = segment.window;
                if self.has_unsent() {
                    self.restart_after_idle();
                }
                self.max_window = self.max_window.max(window);
            }
        }
        self.advance_una(ack.number);
    }

    /// tcp_in_ack_event.
    fn tell_ack(&mut self, ack: &Ack) {
        let mut told = 0;
        if ack.is(flag::WIN_UPDATE) {
            told |= ack_flags::WIN_UPDATE;
        }
        if ack.is(flag::SLOWPATH) {
            told |= ack_flags::SLOWPATH;
            if ack.is(flag::ECE) {
                told |= ack_flags::ECE;
            }
        }
        self.cc.in_ack_event(told);
    }

    /// tcp_cong_control.
    fn control_congestion(&mut self, ack: &Ack) {
        if self.cc.has_cong_control() {
            return self.cc.cong_control(ack.number as u32, ack.flag as i32, ack.rate.sample);
        }
        if self.in_reduction() {
            self.reduce_cwnd(
                ack.rate.sample.acked_sacked,
                ack.rate.sample.losses,
                ack.is(flag::UNA_ADVANCED),
            );
        } else {
            // With much reordering the window grows with every delivery (tcp_may_raise_cwnd).
            let progress = if self.reordering.degree > self.config.reordering {
                flag::DATA_ACKED | flag::DATA_SACKED
            } else {
                flag::DATA_ACKED
            };
            if ack.is(progress) {
                self.cc.cong_avoid(ack.number as u32, ack.rate.sample.acked_sacked);
                self.cc.tp.snd_cwnd_stamp = self.cc.tp.cc_jiffies;
            }
        }
        self.update_pacing_rate();
    }

    /// tcp_xmit_recovery.
    fn repair(&mut self, repair: Repair) {
        match repair {
            Repair::Nothing => return,
            Repair::New => {
                self.push_without_nagle();
                if self.nxt > self.high_seq {
                    return;
                }
                self.frto = false;
            }
            Repair::Lost => {}
        }
        self.retransmit_lost();
    }
}
