//! Sending: new data, retransmissions, validation of the window (tcp_output.c).

use super::path::Transmission;
use super::{Segment, Sender};
use crate::entry::What;
use wirepaint_congestion_native::CaEvent;

impl Sender {
    /// tcp_write_xmit: sends new data as far as the window allows.
    pub(super) fn send(&mut self) {
        self.note_write_seq();
        if self.unsent == Some(0) {
            return;
        }
        self.connection.min_tso_segs();
        let mut sent = 0;
        while self.unsent != Some(0) && self.connection.tp.in_flight() < self.connection.tp.snd_cwnd {
            let tp = &self.connection.tp;
            if tp.snd_wnd - (tp.snd_nxt - tp.snd_una).min(tp.snd_wnd) < tp.mss_cache {
                break;
            }
            self.transmit_new();
            sent += 1;
        }
        if self.in_reduction() {
            self.prr.out += sent;
        }
        let limited = self.connection.tp.in_flight() >= self.connection.tp.snd_cwnd;
        if sent > 0 || limited {
            self.validate_cwnd(limited);
        }
    }

    pub(super) fn transmit_new(&mut self) {
        let segment = self.first + self.queue.len() as u64;
        self.queue.push_back(Segment::default());
        self.transmit(segment);
        self.unsent = self.unsent.map(|unsent| unsent - 1);
        let tp = &mut self.connection.tp;
        tp.packets_out += 1;
        tp.snd_nxt += tp.mss_cache;
        self.note_write_seq();
    }

    /// write_seq: at least one segment ahead of snd_nxt while there is more to send.
    pub(super) fn note_write_seq(&mut self) {
        let tp = &mut self.connection.tp;
        tp.write_seq = tp.snd_nxt + self.unsent.unwrap_or(1).min(1) as u32 * tp.mss_cache;
    }

    fn transmit(&mut self, segment: u64) {
        if self.connection.tp.in_flight() == 0 {
            self.connection.cwnd_event(CaEvent::TxStart);
        }
        let tp = &mut self.connection.tp;
        tp.lsndtime = tp.cc_jiffies;
        tp.data_segs_out += 1;
        tp.bytes_sent += u64::from(tp.mss_cache);
        let stamp = self.rate.sent(tp, self.now_us);
        let sent = &mut self.queue[(segment - self.first) as usize];
        sent.sent_us = self.now_us;
        sent.stamp = stamp;
        let earliest = self.path.back().map_or(0, |last| last.due_us + 1);
        let due_us = earliest.max(self.wire.due_us(self.now_us, self.rtt_us));
        let number = self.connection.tp.data_segs_out;
        self.transmissions.push(self.wire.next());
        self.path.push_back(Transmission { segment, due_us, number });
        if self.rtt_us > self.config.rtt_us {
            self.note(What::Delay(number, self.rtt_us - self.config.rtt_us));
        }
    }

    /// tcp_retransmit_skb of the queue's `index`-th segment.
    pub(super) fn retransmit(&mut self, index: usize) {
        self.repeat(index);
        self.queue[index].retransmitted = true;
        self.connection.tp.retrans_out += 1;
        self.undo.retrans = self.undo.retrans.max(0) + 1;
    }

    /// __tcp_retransmit_skb: sends a segment again, also as a tail-loss probe.
    pub(super) fn repeat(&mut self, index: usize) {
        self.transmit(self.first + index as u64);
        self.queue[index].ever_retransmitted = true;
        let tp = &mut self.connection.tp;
        tp.total_retrans += 1;
        tp.bytes_retrans += u64::from(tp.mss_cache);
    }

    /// tcp_xmit_retransmit_queue: retransmits lost segments as far as the window allows.
    pub(super) fn retransmit_lost(&mut self) {
        if self.connection.tp.packets_out == 0 {
            return;
        }
        self.connection.min_tso_segs();
        for index in 0..self.queue.len() {
            let tp = &self.connection.tp;
            if tp.in_flight() >= tp.snd_cwnd || tp.retrans_out >= tp.lost_out {
                break;
            }
            if self.queue[index].lost && !self.queue[index].retransmitted {
                self.retransmit(index);
                if self.in_reduction() {
                    self.prr.out += 1;
                }
            }
        }
    }

    /// tcp_cwnd_validate without its idle decay, which never happens while ACKs arrive.
    fn validate_cwnd(&mut self, limited: bool) {
        let tp = &mut self.connection.tp;
        if tp.snd_una >= self.cwnd_usage_seq
            || limited
            || (tp.is_cwnd_limited == 0 && tp.packets_out > tp.max_packets_out)
        {
            tp.is_cwnd_limited = limited.into();
            tp.max_packets_out = tp.packets_out;
            self.cwnd_usage_seq = tp.snd_nxt;
        }
    }

    /// tcp_cwnd_restart: the kernel's own decay after `idle` jiffies.
    pub(super) fn restart_after_idle(&mut self, idle: u32) {
        let cwnd = self.connection.tp.snd_cwnd;
        self.connection.cwnd_event(CaEvent::CwndRestart);
        let ssthresh = self.current_ssthresh();
        let tp = &mut self.connection.tp;
        let floor = self.config.initial_window.min(cwnd);
        let halvings = idle.saturating_sub(1) / tp.icsk_rto;
        tp.snd_cwnd = (cwnd >> halvings.min(31)).max(floor);
        self.restarted |= tp.snd_cwnd != cwnd || tp.snd_ssthresh != ssthresh;
        tp.snd_ssthresh = ssthresh;
        tp.snd_cwnd_stamp = tp.cc_jiffies;
    }
}
