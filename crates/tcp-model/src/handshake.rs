//! From the SYN to the established connection: tcp_connect, tcp_conn_request, tcp_check_req,
//! tcp_rcv_synsent_state_process, tcp_init_transfer.

use crate::config::Ecn;
use crate::endpoint::{Agreed, Endpoint, Stage};
use crate::rtt::{RTO_FALLBACK, RTO_INIT};
use crate::sample::Event;
use crate::segment::{Segment, flags};
use wirepaint_congestion_native::INFINITE_SSTHRESH;

impl Endpoint {
    pub(crate) fn send_syn(&mut self) {
        let syn_ack = self.stage == Stage::SynReceived;
        let offers = if syn_ack {
            self.agreed
        } else {
            Agreed {
                sack: self.config.sack,
                timestamps: self.config.timestamps,
                ecn: self.config.ecn == Ecn::On,
            }
        };
        let mut bits = flags::SYN;
        for (offered, flag) in [
            (offers.sack, flags::SACK_PERMITTED),
            (offers.timestamps, flags::TIMESTAMPS),
            (offers.ecn, flags::ECE),
            (offers.ecn && !syn_ack, flags::CWR),
            (syn_ack, flags::ACK),
            (self.handshake_retransmissions > 0, flags::RETRANSMISSION),
        ] {
            bits |= if offered { flag } else { 0 };
        }
        let mut syn = Segment { flags: bits, mss: self.config.mss as u16, ..Segment::default() };
        self.rcv.offer(&mut syn);
        if offers.timestamps {
            syn.tsval = self.clock.timestamp();
        }
        self.board_syn();
        self.out.push_back(syn);
    }

    /// When the SYN or SYN-ACK first left, for the round-trip sample.
    fn board_syn(&mut self) {
        if self.handshake_retransmissions == 0 {
            self.first_tx_us = self.clock.us();
            self.undo.stamp = self.clock.timestamp();
        }
    }

    /// The SYN's or SYN-ACK's timer fires.
    pub(crate) fn handshake_timeout(&mut self) {
        let config = &self.config;
        let (linear, retries) = if self.stage == Stage::SynSent {
            (config.syn_linear_timeouts, config.syn_linear_timeouts + config.syn_retries)
        } else {
            (0, config.synack_retries)
        };
        self.total_timeouts += 1;
        if self.total_timeouts > retries {
            return self.end(true);
        }
        self.undo.marker = Some(0);
        self.repeat_syn();
        let doublings = self.total_timeouts.saturating_sub(linear);
        self.arm_handshake(RTO_INIT << doublings);
    }

    fn repeat_syn(&mut self) {
        self.handshake_retransmissions += 1;
        self.cc.tp.total_retrans += 1;
        self.send_syn();
        self.sample(Event::Retransmit);
    }

    /// Sets the options that the other side's SYN or SYN-ACK allows.
    fn agree(&mut self, syn: &Segment) {
        let config = &self.config;
        self.agreed = Agreed {
            sack: config.sack && syn.has(flags::SACK_PERMITTED),
            timestamps: config.timestamps && syn.has(flags::TIMESTAMPS),
            ecn: match self.stage {
                Stage::SynSent => config.ecn == Ecn::On && syn.has(flags::ECE) && !syn.has(flags::CWR),
                _ => config.ecn != Ecn::Off && syn.has(flags::ECE | flags::CWR),
            },
        };
        self.mss = config.mss.min(u32::from(syn.mss)) - if self.agreed.timestamps { 12 } else { 0 };
        self.cc.tp.mss_cache = self.mss;
        self.echoed = syn.has(flags::TIMESTAMPS | flags::ACK).then_some(syn.tsecr);
    }

    pub(crate) fn accept_syn(&mut self, syn: &Segment) {
        self.agree(syn);
        self.rcv.synchronise(syn, self.agreed.timestamps, true, &self.config);
        self.stage = Stage::SynReceived;
        self.send_syn();
        self.arm_handshake(RTO_INIT);
    }

    pub(crate) fn receive_syn_ack(&mut self, segment: &Segment) {
        if !segment.has(flags::SYN | flags::ACK) || segment.ack != 1 {
            return;
        }
        self.agree(segment);
        self.rcv.synchronise(segment, self.agreed.timestamps, false, &self.config);
        self.cc.tp.bytes_acked = 1;
        self.snd_wnd = u64::from(segment.window);
        self.establish();
        self.send_ack();
    }

    pub(crate) fn receive_handshake_ack(&mut self, segment: &Segment) {
        if segment.has(flags::SYN) {
            // The other side repeats its SYN (tcp_check_req): we repeat our answer, and wait as long as before.
            self.repeat_syn();
            return self.arm_handshake(RTO_INIT << self.total_timeouts);
        }
        if segment.ack == 0 {
            return;
        }
        self.echoed = segment.has(flags::TIMESTAMPS).then_some(segment.tsecr);
        if segment.has(flags::TIMESTAMPS) {
            // tcp_check_req: the first data echo this timestamp, not the SYN's.
            self.rcv.note_timestamp(u64::from(segment.seq), segment.tsval);
        }
        self.snd_wnd = u64::from(segment.window);
        self.establish();
        if segment.sequence_space() > 0 {
            self.receive_established(segment);
        }
    }

    /// The handshake is complete: round-trip sample (tcp_synack_rtt_meas), initial window
    /// (tcp_init_transfer), congestion control.
    fn establish(&mut self) {
        self.stage = Stage::Established;
        self.timers.disarm();
        self.una = 1;
        self.max_window = self.snd_wnd;
        self.small_end = 1;
        self.highest_sack = 1;
        self.cc.tp.delivered = 1;
        let sample = if self.handshake_retransmissions == 0 {
            Some(self.clock.us() - self.first_tx_us)
        } else {
            self.rtt_by_timestamp()
        };
        match sample {
            Some(rtt) => self.sample_rtt(rtt, rtt, false),
            None => {
                self.rtt.fall_back();
                self.set_rto(RTO_FALLBACK);
            }
        }
        // tcp_try_undo_spurious_syn: the first SYN was answered after all.
        if self.echoed.is_some_and(|echo| echo == self.undo.stamp) {
            self.undo.marker = None;
        }
        let punished = self.handshake_retransmissions > 1 && self.undo.marker.is_some();
        self.undo.marker = None;
        self.undo.stamp = 0;
        self.total_timeouts = 0;
        let tp = &mut self.cc.tp;
        tp.snd_cwnd = if punished { 1 } else { self.config.initial_window };
        tp.snd_ssthresh = INFINITE_SSTHRESH;
        tp.snd_cwnd_stamp = tp.cc_jiffies;
        tp.lsndtime = tp.cc_jiffies;
        tp.snd_una = 1;
        tp.snd_nxt = 1;
        tp.snd_wnd = self.snd_wnd as u32;
        tp.max_packets_out = 0;
        self.cc.init();
        self.join_shared_window();
        self.opened_cwnd = self.cc.tp.snd_cwnd;
        let (srtt_us, rttvar_us) = (self.cc.tp.cc_seed_srtt_us, self.cc.tp.cc_seed_rttvar_us);
        if srtt_us > 0 {
            self.rtt.seed(srtt_us.into(), rttvar_us.into());
            self.set_rto(self.rtt.rto());
            self.cc.tp.srtt_us = srtt_us;
            self.cc.tp.cc_rttvar_us = rttvar_us;
        }
        self.expand_sndbuf();
        self.rcv.establish(self.mss, self.clock);
        if !self.cc.has_cong_control() {
            self.update_pacing_rate();
        }
        self.note_write_seq();
        self.push_pending();
    }
}
