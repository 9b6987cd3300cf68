//! Timers: retransmission, tail-loss probe, reordering and zero-window probe share one (`icsk_pending`);
//! pacing has its own. The receiving half has its own.

use crate::clock::{JIFFY_US, jiffies_of, run_time, wheel};
use crate::endpoint::{Endpoint, Stage, context};
use crate::rtt::RTO_MAX;
use wirepaint_congestion_native::CaState;
use wirepaint_units::Time;

/// TCP_TIMEOUT_MIN_US.
pub(crate) const TIMEOUT_MIN_US: u64 = 2_000;
/// TCP_RTO_MIN in jiffies.
const RTO_MIN: u64 = 50;

/// Purpose of the retransmission timer (ICSK_TIME_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pending {
    #[default]
    Nothing,
    /// SYN or SYN-ACK.
    Handshake,
    /// Retransmission timeout.
    Retransmit,
    /// Tail-loss probe.
    Probe,
    /// RACK waits for reordered segments.
    Reorder,
    /// Zero-window probe.
    WindowProbe,
}

/// The sending half's timers.
pub(crate) struct Timers {
    pub pending: Pending,
    fires_ns: u64,
    /// When the next paced segment may leave; `u64::MAX` while nothing waits for it.
    pub pacing_ns: u64,
    /// Doublings of the timeout without a round-trip sample since.
    pub backoff: u32,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers { pending: Pending::Nothing, fires_ns: u64::MAX, pacing_ns: u64::MAX, backoff: 0 }
    }
}

impl Timers {
    pub fn disarm(&mut self) {
        self.pending = Pending::Nothing;
        self.fires_ns = u64::MAX;
    }
}

impl Endpoint {
    /// When [`timeout`](Self::timeout) is to be called next; `None` where nothing is pending.
    pub fn next_timeout(&self) -> Option<Time> {
        let next = self.timers.fires_ns.min(self.timers.pacing_ns).min(self.rcv.next_timeout());
        (next < u64::MAX).then(|| run_time(next))
    }

    /// Carries out what is due by `now`.
    pub fn timeout(&mut self, now: Time) {
        self.refresh(now);
        if self.rcv.next_timeout() <= self.clock.ns && self.rcv.timeout(context!(self)) {
            self.send_ack();
        }
        if self.timers.pacing_ns <= self.clock.ns {
            self.timers.pacing_ns = u64::MAX;
            self.resume_paced();
        }
        if self.timers.fires_ns <= self.clock.ns {
            self.timers.fires_ns = u64::MAX;
            // Probe and reordering stay pending while they are handled, as in Linux.
            match self.timers.pending {
                Pending::Nothing => {}
                Pending::Handshake => self.handshake_timeout(),
                Pending::Reorder => self.reorder_timeout(),
                Pending::Probe => self.send_loss_probe(),
                Pending::Retransmit => {
                    self.timers.pending = Pending::Nothing;
                    self.retransmission_timeout();
                }
                Pending::WindowProbe => {
                    self.timers.pending = Pending::Nothing;
                    self.window_probe_timeout();
                }
            }
        }
        self.settle_shared();
    }

    /// inet_csk_reset_xmit_timer with tcp_pacing_delay, in jiffies from now.
    pub(crate) fn arm(&mut self, pending: Pending, jiffies: u64) {
        let ahead_ns = self.cc.tp.tcp_wstamp_ns.saturating_sub(self.clock.ns);
        let when = (jiffies + ahead_ns / (JIFFY_US * 1_000)).min(RTO_MAX);
        let now = self.clock.jiffies();
        self.timers.pending = pending;
        self.timers.fires_ns = wheel(now, now + when);
    }

    pub(crate) fn arm_handshake(&mut self, jiffies: u64) {
        self.arm(Pending::Handshake, jiffies);
    }

    pub(crate) fn set_rto(&mut self, jiffies: u64) {
        self.cc.tp.icsk_rto = jiffies as u32;
    }

    /// Microseconds until one timeout has passed since the first segment was last sent.
    fn rto_delta_us(&self) -> i64 {
        let sent = self.board.head().map_or(self.clock.us(), |head| head.sent_us);
        (sent + u64::from(self.cc.tp.icsk_rto) * JIFFY_US) as i64 - self.clock.us() as i64
    }

    /// tcp_rearm_rto.
    pub(crate) fn rearm_rto(&mut self) {
        if self.cc.tp.packets_out == 0 {
            return self.timers.disarm();
        }
        let rto = if matches!(self.timers.pending, Pending::Reorder | Pending::Probe) {
            jiffies_of(self.rto_delta_us().max(1) as u64)
        } else {
            u64::from(self.cc.tp.icsk_rto)
        };
        self.arm(Pending::Retransmit, rto);
    }

    /// tcp_set_xmit_timer.
    pub(crate) fn set_transmission_timer(&mut self) {
        if !self.schedule_loss_probe(true) {
            self.rearm_rto();
        }
    }

    /// tcp_schedule_loss_probe: two round trips from now, or at the timeout where that is earlier.
    pub(crate) fn schedule_loss_probe(&mut self, advancing_rto: bool) -> bool {
        let tp = &self.cc.tp;
        let eligible = matches!(self.ca_state(), CaState::Open | CaState::Cwr);
        if !self.config.tlp || tp.packets_out == 0 || !self.agreed.sack || !eligible {
            return false;
        }
        let mut timeout = if self.rtt.srtt_us > 0 {
            let more = if tp.packets_out == 1 { u64::from(self.config.rto_min_us) } else { TIMEOUT_MIN_US };
            jiffies_of((self.rtt.srtt_us >> 2) + more)
        } else {
            crate::rtt::RTO_INIT
        };
        let rto_us =
            if advancing_rto { i64::from(tp.icsk_rto) * JIFFY_US as i64 } else { self.rto_delta_us() };
        if rto_us > 0 {
            timeout = timeout.min(jiffies_of(rto_us as u64));
        }
        self.arm(Pending::Probe, timeout);
        true
    }

    /// tcp_send_loss_probe.
    fn send_loss_probe(&mut self) {
        if self.tlp.high.is_none() && self.probe_tail() {
            self.tlp.high = Some(self.nxt);
            self.timers.pending = Pending::Nothing;
        }
        self.rearm_rto();
    }

    /// Sends new data, else the last segment again; true where a segment left.
    fn probe_tail(&mut self) -> bool {
        self.tlp.retransmitted = false;
        if self.sendable() {
            let before = self.cc.tp.packets_out;
            self.write_probe();
            return self.cc.tp.packets_out > before;
        }
        if self.board.is_empty() {
            return false;
        }
        self.repeat(self.board.ids().end - 1);
        self.tlp.retransmitted = true;
        true
    }

    /// tcp_retransmit_timer.
    fn retransmission_timeout(&mut self) {
        if self.cc.tp.packets_out == 0 {
            return;
        }
        let window_closed = self.snd_wnd == 0;
        if !window_closed && self.timeouts >= self.config.retries {
            return self.end(true);
        }
        self.enter_loss();
        if !window_closed {
            self.timeouts += 1;
            self.total_timeouts += 1;
        }
        self.retransmit(self.board.ids().start);
        self.timers.backoff += 1;
        let rto = (u64::from(self.cc.tp.icsk_rto) * 2).min(RTO_MAX);
        self.set_rto(rto);
        self.arm(Pending::Retransmit, rto);
    }

    /// tcp_check_probe_timer: data wait and nothing is in flight whose ACK would release them.
    pub(crate) fn check_probe_timer(&mut self) {
        if self.cc.tp.packets_out == 0 && self.timers.pending == Pending::Nothing {
            self.arm(Pending::WindowProbe, u64::from(self.cc.tp.icsk_rto).max(RTO_MIN));
        }
    }

    /// tcp_probe_timer and tcp_send_probe0.
    fn window_probe_timeout(&mut self) {
        if self.cc.tp.packets_out > 0 || !self.has_unsent() {
            return;
        }
        self.write_wakeup();
        if self.cc.tp.packets_out > 0 || !self.has_unsent() {
            self.timers.backoff = 0;
            return;
        }
        self.timers.backoff = (self.timers.backoff + 1).min(self.config.retries);
        let base = u64::from(self.cc.tp.icsk_rto).max(RTO_MIN);
        self.arm(Pending::WindowProbe, (base << self.timers.backoff.min(15)).min(RTO_MAX));
    }

    /// The window opened again (tcp_ack_probe).
    pub(crate) fn note_window(&mut self) {
        if !self.has_unsent() || self.stage != Stage::Established {
            return;
        }
        if self.fits_window() {
            self.timers.backoff = 0;
            if self.timers.pending == Pending::WindowProbe {
                self.timers.disarm();
            }
        } else {
            let base = u64::from(self.cc.tp.icsk_rto).max(RTO_MIN);
            self.arm(Pending::WindowProbe, (base << self.timers.backoff.min(15)).min(RTO_MAX));
        }
    }
}
