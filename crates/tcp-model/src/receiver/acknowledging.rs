//! Quick, delayed and compressed ACKs.
//!
//! Follows __tcp_ack_snd_check, tcp_event_data_sent (tcp_input.c, tcp_output.c), tcp_send_delayed_ack
//! (tcp_output.c) and tcp_delack_timer_handler (tcp_timer.c) of Linux 6.18.

use super::{
    ATO_MIN, Context, DELACK_MAX, FASTRETRANS_THRESH, MAX_QUICKACKS, PINGPONG_THRESH, Receiver, pending,
};
use crate::clock::{Clock, jiffies_of, wheel};
use crate::segment::{Segment, flags};

impl Receiver {
    pub(super) fn in_pingpong(&self) -> bool {
        self.pingpong >= PINGPONG_THRESH
    }

    /// tcp_incr_quickack.
    pub(super) fn raise_quickack(&mut self, most: u32) {
        let quick = (self.wnd / (2 * u64::from(self.rcv_mss))).clamp(0, u64::from(most)) as u32;
        let quick = if quick == 0 { most.min(2) } else { quick };
        self.quick = self.quick.max(quick);
    }

    /// tcp_enter_quickack_mode.
    pub(super) fn enter_quickack(&mut self, most: u32) {
        self.raise_quickack(most);
        self.pingpong = 0;
        self.ato = ATO_MIN;
    }

    pub(super) fn acknowledge_quickly(&mut self) {
        self.enter_quickack(MAX_QUICKACKS);
        self.pending |= pending::SCHEDULED;
    }

    /// Data leave: a reply soon after what was received makes the session interactive
    /// (tcp_event_data_sent).
    pub fn note_sent(&mut self, clock: Clock) {
        if clock.jiffies() - self.last_received < self.ato {
            self.pingpong = (self.pingpong + 1).min(255);
        }
    }

    /// __tcp_ack_snd_check: true where an ACK must leave now; otherwise a timer is set.
    pub fn check_ack(&mut self, cx: Context) -> bool {
        if self.pending & pending::SCHEDULED == 0 {
            return false;
        }
        let two_segments = self.nxt - self.wup > u64::from(self.rcv_mss)
            && (self.nxt == self.copied || self.select_window() >= self.wnd);
        let quick = cx.config.quickack || (self.quick > 0 && !self.in_pingpong());
        if two_segments || quick || self.pending & pending::NOW != 0 {
            return true;
        }
        if self.queue.is_empty() {
            return self.delay_ack(cx);
        }
        if !cx.config.sack || self.compressed >= cx.config.comp_sack_nr {
            return true;
        }
        if self.compressed_nxt != self.nxt {
            self.compressed_nxt = self.nxt;
            self.duplicate_acks = 0;
        }
        if self.duplicate_acks < FASTRETRANS_THRESH {
            self.duplicate_acks += 1;
            return true;
        }
        self.compressed += 1;
        if self.compressed_fires_ns == u64::MAX {
            let known = cx.srtt_us > 0 && cx.srtt_us < self.rtt_us;
            let rtt = if known { cx.srtt_us } else { self.rtt_us };
            let delay = cx.config.comp_sack_delay_ns.min(rtt * 125 / 20); // 5 % of it
            self.compressed_fires_ns = cx.clock.ns + delay + cx.config.comp_sack_slack_ns;
        }
        false
    }

    /// tcp_send_delayed_ack: true if the ACK is nearly due and leaves now.
    fn delay_ack(&mut self, cx: Context) -> bool {
        let now = cx.clock.jiffies();
        let mut ato = self.ato;
        if ato > ATO_MIN {
            let mut most = 125;
            if self.in_pingpong() || self.pending & pending::PUSHED != 0 {
                most = DELACK_MAX;
            }
            if cx.srtt_us > 0 {
                most = most.min(jiffies_of(cx.srtt_us >> 3).max(ATO_MIN));
            }
            ato = ato.min(most);
        }
        ato = ato.min(DELACK_MAX).min(jiffies_of(u64::from(cx.config.rto_min_us)).max(2) - 1);
        let mut timeout = now + ato;
        if self.pending & pending::TIMER != 0 {
            if self.delayed_timeout <= now + ato / 4 {
                return true;
            }
            timeout = timeout.min(self.delayed_timeout);
        }
        self.pending |= pending::TIMER;
        self.delayed_timeout = timeout;
        self.delayed_fires_ns = wheel(now, timeout);
        false
    }

    /// When a timer of this half fires, in nanoseconds since boot.
    pub fn next_timeout(&self) -> u64 {
        self.delayed_fires_ns.min(self.compressed_fires_ns)
    }

    /// Timers that are due; true where an ACK must leave (tcp_delack_timer_handler).
    pub fn timeout(&mut self, cx: Context) -> bool {
        if self.compressed_fires_ns <= cx.clock.ns {
            self.compressed_fires_ns = u64::MAX;
            return std::mem::take(&mut self.compressed) > 0;
        }
        if self.delayed_fires_ns > cx.clock.ns {
            return false;
        }
        self.delayed_fires_ns = u64::MAX;
        self.pending &= !pending::TIMER;
        if self.compressed > 0 {
            return true;
        }
        if self.pending & pending::SCHEDULED == 0 {
            return false;
        }
        if self.in_pingpong() {
            self.pingpong = 0;
            self.ato = ATO_MIN;
        } else {
            self.ato = (self.ato * 2).min(cx.rto).min(DELACK_MAX);
        }
        true
    }

    /// Fills in the acknowledgement fields of any segment and clears the pending ACKs
    /// (tcp_established_options, tcp_event_ack_sent).
    pub fn acknowledge(&mut self, segment: &mut Segment, cx: Context) {
        segment.flags |= flags::ACK;
        segment.ack = self.nxt as u32;
        segment.window = self.offer_window();
        if self.echo {
            segment.flags |= flags::ECE;
        }
        if segment.has(flags::TIMESTAMPS) {
            segment.tsecr = self.ts_recent;
        }
        if cx.config.sack {
            let most = if segment.has(flags::TIMESTAMPS) { 3 } else { 4 };
            let duplicate = self.queue.duplicate.take();
            let blocks = duplicate.iter().chain(self.queue.blocks()).take(most);
            for (slot, block) in segment.sack.iter_mut().zip(blocks) {
                *slot = (block.0 as u32, block.1 as u32);
                segment.sack_blocks += 1;
            }
        }
        if self.compressed > 0 {
            self.compressed = 0;
            self.compressed_fires_ns = u64::MAX;
        }
        if self.quick > 0 {
            self.quick -= u32::from(self.pending & pending::SCHEDULED != 0);
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        self.pending = 0;
        self.delayed_fires_ns = u64::MAX;
    }

    /// Bytes of SACK option that the next segment will carry.
    pub fn sack_option_bytes(&self, timestamps: bool) -> u32 {
        let most = if timestamps { 3 } else { 4 };
        let blocks =
            (self.queue.blocks().len() + usize::from(self.queue.duplicate.is_some())).min(most) as u32;
        if blocks > 0 { 4 + 8 * blocks } else { 0 }
    }
}
