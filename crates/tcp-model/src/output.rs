//! Sending: new data, retransmissions, pure ACKs. Follows tcp_output.c.

use crate::clock::timestamp;
use crate::endpoint::{Endpoint, Fin, Stage, context};
use crate::sample::Event;
use crate::scoreboard::{Sent, tag};
use crate::segment::{Segment, flags};
use crate::shared::Member;
use crate::timers::Pending;
use wirepaint_congestion_native::{CaEvent, CaState};

/// Largest burst that is handed to the device as one (sk_gso_max_size).
pub(crate) const GSO_MAX: u64 = 65_536;
/// tcp_tso_rtt_log: the burst's allowance halves with each 512 us of round-trip time.
const TSO_RTT_LOG: u32 = 9;
/// sysctl tcp_tso_win_divisor.
const TSO_WINDOW_DIVISOR: u64 = 3;
const MILLISECOND_NS: u64 = 1_000_000;

/// How much tcp_write_xmit sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Push {
    /// As far as the windows allow.
    All,
    /// The same, small segments too (TCP_NAGLE_OFF).
    WithoutNagle,
    /// One segment, beyond the congestion window if need be.
    Probe,
}

impl Endpoint {
    // ---- unsent data --------------------------------------------------------------------------

    /// Data or the FIN wait unsent.
    pub(crate) fn has_unsent(&self) -> bool {
        self.written > self.nxt || self.fin == Fin::Queued
    }

    /// The segment at the head of the queue: payload, and whether the FIN goes with it.
    fn next_segment(&self) -> (u32, bool) {
        let unsent = self.unsent();
        let options = if self.agreed.sack { self.rcv.sack_option_bytes(self.agreed.timestamps) } else { 0 };
        let len = unsent.min(u64::from(self.mss - options)) as u32;
        (len, u64::from(len) == unsent && self.fin == Fin::Queued)
    }

    /// tcp_snd_wnd_test: the next segment lies in the other side's window.
    pub(crate) fn fits_window(&self) -> bool {
        self.nxt + u64::from(self.next_segment().0) <= self.una + self.snd_wnd
    }

    /// There is a new segment and the other side has room for it.
    pub(crate) fn sendable(&self) -> bool {
        self.has_unsent() && self.fits_window()
    }

    // ---- new data -----------------------------------------------------------------------------

    /// tcp_push_pending_frames.
    pub(crate) fn push_pending(&mut self) {
        if self.has_unsent() && self.stage == Stage::Established && self.write_xmit(Push::All) {
            self.check_probe_timer();
        }
    }

    pub(crate) fn push_without_nagle(&mut self) {
        if self.has_unsent() && self.write_xmit(Push::WithoutNagle) {
            self.check_probe_timer();
        }
    }

    pub(crate) fn write_probe(&mut self) {
        self.write_xmit(Push::Probe);
    }

    /// tcp_write_xmit; true if data wait and nothing is in flight whose ACK would release them.
    fn write_xmit(&mut self, push: Push) -> bool {
        let burst = self.burst_segments();
        self.report_flight();
        let (mut limited, mut waits) = (false, false);
        let mut sent = 0;
        while self.has_unsent() {
            if self.must_pace() {
                break;
            }
            let quota = match self.free_window() {
                0 if push == Push::Probe => 1,
                0 => {
                    waits = self.fits_window() && self.wait_for_turn();
                    break;
                }
                free => free.min((self.cc.tp.snd_cwnd / 2).max(1)).min(burst),
            };
            if !self.fits_window() {
                break;
            }
            let (len, fin) = self.next_segment();
            let several = self.unsent() > u64::from(len);
            if !several && !fin && push == Push::All && self.must_coalesce(len) {
                break;
            }
            if several && push != Push::Probe && self.should_defer(burst, &mut limited) {
                break;
            }
            sent += self.send_burst(quota, push);
            self.report_sent();
            if push == Push::Probe {
                break;
            }
        }
        let tp = &self.cc.tp;
        limited |= waits || tp.in_flight() >= tp.snd_cwnd;
        if sent > 0 || limited {
            self.validate_cwnd(limited);
        }
        if sent > 0 {
            if self.in_reduction() {
                self.prr.out += sent;
            }
            if push != Push::Probe {
                self.schedule_loss_probe(false);
            }
            return false;
        }
        self.cc.tp.packets_out == 0 && self.has_unsent() && !waits
    }

    /// Sends up to `quota` segments as one burst of the device (one skb of Linux). Returns their number.
    fn send_burst(&mut self, quota: u32, push: Push) -> u32 {
        let before = (self.cc.tp.packets_out, self.nxt);
        let prior_wstamp = self.stamp_departure();
        while self.cc.tp.packets_out - before.0 < quota && self.sendable() {
            let (len, fin) = self.next_segment();
            let first = self.cc.tp.packets_out == before.0;
            if !first && !fin && push == Push::All && self.must_coalesce(len) {
                break;
            }
            self.send_new(len, fin, first);
        }
        let sent = self.cc.tp.packets_out - before.0;
        if (1..quota).contains(&sent) {
            self.fill_window(push);
        }
        self.pace_after(self.nxt - before.1, prior_wstamp);
        let sent = self.cc.tp.packets_out - before.0;
        if sent > 0 {
            self.board.end_burst();
        }
        if let (2.., Some(last)) = (sent, self.out.back_mut()) {
            last.flags |= flags::PSH; // Linux marks the end of every burst
        }
        if sent > 0 && (before.0 == 0 || self.timers.pending == Pending::Probe) {
            self.rearm_rto();
        }
        sent
    }

    /// tcp_mss_split_point: a burst that the other side's window cuts short ends in a segment that fills it.
    fn fill_window(&mut self, push: Push) {
        let room = (self.una + self.snd_wnd).saturating_sub(self.nxt);
        let (len, _) = self.next_segment();
        if room > 0 && room < u64::from(len) && (push != Push::All || !self.must_coalesce(room as u32)) {
            self.send_new(room as u32, false, false);
        }
    }

    /// Sends one new segment; `first`: it is the first of its burst.
    fn send_new(&mut self, len: u32, fin: bool, first: bool) {
        let seq = self.nxt;
        let mut bits = if fin { flags::FIN } else { 0 };
        if len > 0 && seq + u64::from(len) == self.written {
            bits |= flags::PSH;
        }
        if self.agreed.ecn && len > 0 {
            bits |= flags::ECT;
            if std::mem::take(&mut self.send_cwr) {
                bits |= flags::CWR;
            }
        }
        let sent_us = self.emit(seq, len, bits);
        if len > 0 && first {
            self.note_data_sent();
        }
        if len > 0 {
            self.cc.tp.data_segs_out += 1;
            self.cc.tp.bytes_sent += u64::from(len);
        }
        let mut sent = Sent::new(seq, len, fin);
        self.stamp_rate(&mut sent, sent_us);
        let id = self.board.push(sent);
        self.board.list_newest(id);
        self.nxt += u64::from(len) + u64::from(fin);
        if fin {
            self.fin = Fin::Sent;
        }
        if len < self.mss {
            self.small_end = self.nxt;
        }
        let tp = &mut self.cc.tp;
        tp.snd_nxt = self.nxt as u32;
        tp.packets_out += 1;
    }

    /// tcp_event_data_sent.
    fn note_data_sent(&mut self) {
        if self.cc.tp.in_flight() == 0 {
            self.cc.cwnd_event(CaEvent::TxStart);
        }
        self.cc.tp.lsndtime = self.cc.tp.cc_jiffies;
        self.rcv.note_sent(self.clock);
    }

    /// tcp_nagle_check with Minshall's modification: a small segment waits while another small one
    /// is unacknowledged.
    fn must_coalesce(&self, len: u32) -> bool {
        len < self.mss
            && !self.config.nodelay
            && self.cc.tp.packets_out > 0
            && self.small_end > self.una
            && self.small_end <= self.nxt
    }

    /// tcp_tso_segs: segments that leave as one burst; the congestion control is asked first.
    pub(crate) fn burst_segments(&mut self) -> u32 {
        let least = self.cc.min_tso_segs();
        let tp = &self.cc.tp;
        let mut bytes = tp.sk_pacing_rate >> tp.sk_pacing_shift;
        let halvings = self.rtt.min.get() >> TSO_RTT_LOG;
        if halvings < 32 {
            bytes = bytes.saturating_add(GSO_MAX >> halvings);
        }
        let segments = (bytes.min(GSO_MAX) / u64::from(self.mss)) as u32;
        segments.max(least).min(self.config.gso_max_segs)
    }

    /// tcp_tso_should_defer: a burst that is not full waits for the next ACK where that is near.
    fn should_defer(&self, burst: u32, limited: &mut bool) -> bool {
        let tp = &self.cc.tp;
        if self.config.gso_max_segs == 1
            || self.shared.is_some() // other connections use the rest
            || self.ca_state() >= CaState::Recovery
            || self.clock.ns > tp.tcp_wstamp_ns + MILLISECOND_NS
        {
            return false;
        }
        let mss = u64::from(self.mss);
        let window = (self.una + self.snd_wnd).saturating_sub(self.nxt);
        let congestion = u64::from(tp.snd_cwnd - tp.in_flight().min(tp.snd_cwnd)) * mss;
        let limit = window.min(congestion);
        let queued = self.unsent().min(GSO_MAX / mss * mss);
        let last = queued == self.unsent();
        if limit >= u64::from(burst) * mss || (!last && limit >= queued) {
            return false;
        }
        if limit >= self.snd_wnd.min(u64::from(tp.snd_cwnd) * mss) / TSO_WINDOW_DIVISOR {
            return false;
        }
        let Some(head) = self.board.head() else { return false };
        let srtt_ns = self.rtt.srtt_us * 125;
        let expected = head.sent_us * 1_000 + srtt_ns;
        if expected > self.clock.ns + (srtt_ns / 2).min(MILLISECOND_NS) {
            return false;
        }
        if congestion < window && congestion <= queued {
            *limited = true;
            return true;
        }
        if congestion >= window && window <= queued {
            return true;
        }
        !(last && self.fin == Fin::Queued)
    }

    /// tcp_cwnd_validate: remembers whether the window was used.
    fn validate_cwnd(&mut self, limited: bool) {
        let tp = &mut self.cc.tp;
        if self.una >= self.cwnd_usage_end
            || limited
            || (tp.is_cwnd_limited == 0 && tp.packets_out > tp.max_packets_out)
        {
            tp.is_cwnd_limited = u8::from(limited);
            tp.max_packets_out = tp.packets_out;
            self.cwnd_usage_end = self.nxt;
        }
        let slow_start = tp.snd_cwnd < tp.snd_ssthresh && tp.snd_cwnd < 2 * tp.max_packets_out;
        if tp.is_cwnd_limited != 0 || slow_start {
            self.cwnd_used = 0;
            tp.snd_cwnd_stamp = tp.cc_jiffies;
            return;
        }
        self.cwnd_used = self.cwnd_used.max(tp.packets_out);
        let unused = tp.cc_jiffies.wrapping_sub(tp.snd_cwnd_stamp) as i32;
        if self.config.slow_start_after_idle && unused >= tp.icsk_rto as i32 && !self.cc.has_cong_control() {
            self.decay_unused();
        }
    }

    /// tcp_cwnd_application_limited (RFC 2861): the window was not used for a timeout.
    fn decay_unused(&mut self) {
        if self.ca_state() == CaState::Open && !self.wants_space {
            let used = self.cwnd_used.max(self.config.initial_window);
            if used < self.cc.tp.snd_cwnd {
                self.cc.tp.snd_ssthresh = self.current_ssthresh();
                self.cc.tp.snd_cwnd = (self.cc.tp.snd_cwnd + used) >> 1;
            }
            self.cwnd_used = 0;
        }
        self.cc.tp.snd_cwnd_stamp = self.cc.tp.cc_jiffies;
    }

    /// tcp_slow_start_after_idle_check and tcp_cwnd_restart.
    pub(crate) fn restart_after_idle(&mut self) {
        let tp = &self.cc.tp;
        if !self.config.slow_start_after_idle || tp.packets_out > 0 || self.cc.has_cong_control() {
            return;
        }
        let mut idle = tp.cc_jiffies.wrapping_sub(tp.lsndtime) as i32;
        let rto = tp.icsk_rto as i32;
        if self.stage != Stage::Established || idle <= rto {
            return;
        }
        let mut cwnd = tp.snd_cwnd;
        self.cc.cwnd_event(CaEvent::CwndRestart);
        self.cc.tp.snd_ssthresh = self.current_ssthresh();
        let restart = self.config.initial_window.min(cwnd);
        idle -= rto;
        while idle > 0 && cwnd > restart {
            cwnd >>= 1;
            idle -= rto;
        }
        let tp = &mut self.cc.tp;
        tp.snd_cwnd = cwnd.max(restart);
        tp.snd_cwnd_stamp = tp.cc_jiffies;
        self.cwnd_used = 0;
    }

    // ---- retransmissions ----------------------------------------------------------------------

    /// tcp_xmit_retransmit_queue: as far as the window allows, lowest number first.
    pub(crate) fn retransmit_lost(&mut self) {
        if self.cc.tp.packets_out == 0 {
            return;
        }
        self.burst_segments(); // only for the congestion control's hook
        self.report_flight();
        let mut rearm = false;
        loop {
            if self.must_pace() || self.cc.tp.retrans_out >= self.cc.tp.lost_out {
                break;
            }
            if self.free_window() == 0 && !self.repairs_at_once() {
                self.wait_for_turn();
                break;
            }
            let Some(id) = self.board.first_waiting() else { break };
            if self.board.get(id).seq >= self.una + self.snd_wnd && id != self.board.ids().start {
                break; // the other side has shrunk its window
            }
            self.retransmit(id);
            self.report_sent();
            if self.in_reduction() {
                self.prr.out += 1;
            }
            rearm |= id == self.board.ids().start && self.timers.pending != Pending::Reorder;
        }
        if rearm {
            self.arm(Pending::Retransmit, u64::from(self.cc.tp.icsk_rto));
        }
    }

    /// tcp_retransmit_skb.
    pub(crate) fn retransmit(&mut self, id: u32) {
        self.repeat(id);
        let sent = self.board.get_mut(id);
        let stamp = timestamp(sent.sent_us);
        // After an undo a timeout may repeat a segment that is already in flight twice; Linux's counter leaks
        // then.
        self.cc.tp.retrans_out += u32::from(!sent.has(tag::RETRANSMITTED));
        sent.tags |= tag::RETRANSMITTED;
        if self.undo.stamp == 0 {
            self.undo.stamp = stamp;
        }
        self.undo.retrans = self.undo.retrans.max(0) + 1;
    }

    /// __tcp_retransmit_skb: a segment leaves once more, also as a tail-loss probe.
    pub(crate) fn repeat(&mut self, id: u32) {
        let prior_wstamp = self.stamp_departure();
        let mut sent = *self.board.get(id);
        let fin = if sent.has(tag::FIN) { flags::FIN } else { 0 };
        let push = if sent.end() == self.written { flags::PSH } else { 0 };
        let sent_us = self.emit(sent.seq, sent.len, fin | push | flags::RETRANSMISSION);
        let len = u64::from(sent.len);
        if len > 0 {
            self.note_data_sent();
            self.cc.tp.data_segs_out += 1;
            self.cc.tp.bytes_sent += len;
        }
        self.stamp_rate(&mut sent, sent_us);
        sent.tags |= tag::EVER_RETRANSMITTED;
        *self.board.get_mut(id) = sent;
        self.board.list_newest(id);
        self.cc.tp.total_retrans += 1;
        self.cc.tp.bytes_retrans += len;
        self.pace_after(len, prior_wstamp);
        self.sample(Event::Retransmit);
    }

    // ---- zero window ----------------------------------------------------------------------------

    /// tcp_write_wakeup: sends data that fit into the window, else an old sequence number that elicits an
    /// ACK.
    pub(crate) fn write_wakeup(&mut self) {
        let room = (self.una + self.snd_wnd).saturating_sub(self.nxt);
        if room > 0 || (self.written == self.nxt && self.fin == Fin::Queued) {
            let (len, fin) = self.next_segment();
            let fits = u64::from(len) <= room;
            let len = u64::from(len).min(room) as u32;
            let prior_wstamp = self.stamp_departure();
            self.send_new(len, fin && fits, true);
            self.board.end_burst();
            self.pace_after(u64::from(len), prior_wstamp);
            self.rearm_rto();
        } else {
            self.emit(self.una - 1, 0, 0);
        }
    }

    // ---- transmission ---------------------------------------------------------------------------

    /// tcp_send_ack.
    pub(crate) fn send_ack(&mut self) {
        self.emit(self.nxt, 0, 0);
    }

    /// __tcp_transmit_skb: emits a segment. Returns its departure in microseconds.
    fn emit(&mut self, seq: u64, len: u32, bits: u16) -> u64 {
        let sent_us = if len > 0 || bits & flags::FIN != 0 {
            self.cc.tp.tcp_wstamp_ns / 1_000
        } else {
            self.clock.us()
        };
        let mut segment = Segment { seq: seq as u32, len, flags: bits, ..Segment::default() };
        if self.agreed.timestamps {
            segment.flags |= flags::TIMESTAMPS;
            segment.tsval = timestamp(sent_us);
        }
        self.rcv.acknowledge(&mut segment, context!(self));
        self.out.push_back(segment);
        sent_us
    }

    /// tcp_rate_skb_sent; also sets the time of the transmission.
    fn stamp_rate(&mut self, sent: &mut Sent, sent_us: u64) {
        let tp = &mut self.cc.tp;
        if tp.packets_out == 0 {
            self.first_tx_us = sent_us;
            tp.delivered_mstamp = sent_us;
        }
        self.transmissions = self.shared.as_ref().map_or(self.transmissions + 1, Member::stamp);
        sent.order = self.transmissions;
        sent.sent_us = sent_us;
        sent.first_tx_us = self.first_tx_us;
        sent.delivered_us = tp.delivered_mstamp;
        sent.delivered = tp.delivered;
        sent.tags &= !tag::APP_LIMITED;
        if tp.app_limited != 0 {
            sent.tags |= tag::APP_LIMITED;
        }
    }

    /// tcp_rate_check_app_limited: less than a segment waits and the window has room.
    pub(crate) fn check_application_limited(&mut self) {
        let unsent = self.unsent();
        let tp = &mut self.cc.tp;
        if unsent < u64::from(self.mss) && tp.in_flight() < tp.snd_cwnd && tp.lost_out <= tp.retrans_out {
            tp.app_limited = (tp.delivered + tp.in_flight()).max(1);
        }
    }

    // ---- pacing ---------------------------------------------------------------------------------

    /// tcp_update_pacing_rate.
    pub(crate) fn update_pacing_rate(&mut self) {
        let tp = &mut self.cc.tp;
        let percent = if tp.snd_cwnd < tp.snd_ssthresh / 2 {
            self.config.pacing_ss_percent
        } else {
            self.config.pacing_ca_percent
        };
        let mut rate = u64::from(tp.mss_cache) * 80_000 * percent;
        rate = rate.saturating_mul(u64::from(tp.snd_cwnd.max(tp.packets_out)));
        rate = rate.checked_div(self.rtt.srtt_us).unwrap_or(rate);
        tp.sk_pacing_rate = rate.min(tp.sk_max_pacing_rate);
    }

    /// tcp_pacing_check: the next segment must wait; the pacing timer is set.
    fn must_pace(&mut self) -> bool {
        let tp = &self.cc.tp;
        if tp.sk_pacing_status == 0 || tp.tcp_wstamp_ns <= self.clock.ns {
            return false;
        }
        self.timers.pacing_ns = self.timers.pacing_ns.min(tp.tcp_wstamp_ns);
        true
    }

    /// Stamps the departure of the next burst. Returns the previous one.
    fn stamp_departure(&mut self) -> u64 {
        let tp = &mut self.cc.tp;
        let prior = tp.tcp_wstamp_ns;
        tp.tcp_wstamp_ns = prior.max(self.clock.ns);
        prior
    }

    /// tcp_update_skb_after_send: the next segment leaves after these bytes' time at the pacing rate.
    fn pace_after(&mut self, bytes: u64, prior_wstamp: u64) {
        let tp = &mut self.cc.tp;
        let rate = tp.sk_pacing_rate;
        if tp.sk_pacing_status == 0 || rate == 0 || rate == u64::MAX || tp.data_segs_out < 10 {
            return;
        }
        let cost = bytes * 1_000_000_000 / rate;
        let credit = tp.tcp_wstamp_ns - prior_wstamp;
        tp.tcp_wstamp_ns += cost - (cost / 2).min(credit);
    }

    /// tcp_tsq_handler after the pacing timer: retransmissions, then new data.
    pub(crate) fn resume_paced(&mut self) {
        if self.stage != Stage::Established {
            return;
        }
        let tp = &self.cc.tp;
        if tp.lost_out > tp.retrans_out && (tp.snd_cwnd > tp.in_flight() || self.shared.is_some()) {
            self.retransmit_lost();
        }
        if self.has_unsent() {
            let push = if self.config.nodelay { Push::WithoutNagle } else { Push::All };
            self.write_xmit(push);
        }
    }
}
