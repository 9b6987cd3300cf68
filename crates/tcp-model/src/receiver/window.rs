//! The offered window: buffer, memory, autotuning.
//!
//! Follows tcp_grow_window, tcp_rcv_space_adjust, tcp_rcvbuf_grow (tcp_input.c) and __tcp_select_window
//! (tcp_output.c) of Linux 6.18.

use super::{Context, Receiver};
use crate::clock::Clock;
use crate::segment::{Segment, flags};

/// TCP_RMEM_TO_WIN_SCALE: the scaling ratio counts in 1/256.
const RATIO_SHIFT: u32 = 8;
/// SOCK_MIN_RCVBUF / 2, the least window clamp: 2 (2048 + 256) / 2.
const MIN_CLAMP: u64 = 2_304;

impl Receiver {
    /// tcp_rcv_rtt_measure_ts: a full segment answers a new timestamp of ours.
    pub fn measure_rtt(&mut self, segment: &Segment, clock: Clock) {
        if !segment.has(flags::TIMESTAMPS) || segment.tsecr == self.last_tsecr {
            return;
        }
        self.last_tsecr = segment.tsecr;
        if segment.len >= self.rcv_mss {
            let delta_ms = clock.timestamp().wrapping_sub(segment.tsecr);
            if delta_ms > 0 && delta_ms < u32::MAX / 2 {
                self.update_rtt(u64::from(delta_ms) * 1_000, false);
            }
        }
    }

    /// tcp_rcv_rtt_update; a sample of a whole window can only be too long.
    pub(super) fn update_rtt(&mut self, sample_us: u64, whole_window: bool) {
        let sample = sample_us << 3;
        if self.rtt_us == 0 || sample < self.rtt_us {
            self.rtt_us = sample;
        } else if !whole_window && self.nxt == self.copied {
            self.rtt_us = self.rtt_us - (self.rtt_us >> 3) + sample_us;
        }
    }

    /// The share of a segment's memory that is payload changes (tcp_set_window_clamp).
    pub(super) fn set_ratio(&mut self, len: u32, cx: Context) {
        let ratio = ((u64::from(len) << RATIO_SHIFT) / cx.config.truesize(len)).clamp(1, 255);
        if ratio == self.ratio {
            return;
        }
        self.ratio = ratio;
        let clamp = self.full_space().max(MIN_CLAMP);
        if clamp < self.clamp {
            self.ssthresh = self.ssthresh.min(clamp);
        } else if clamp > self.clamp {
            self.ssthresh = self.ssthresh.max(self.wnd.min(clamp));
        }
        self.clamp = clamp;
        self.space = self.space.min(clamp);
    }

    pub(super) fn memory(&self) -> u64 {
        self.in_order_memory + self.out_of_order_memory
    }

    pub(super) fn window_from(&self, space: u64) -> u64 {
        (space * self.ratio) >> RATIO_SHIFT
    }

    /// tcp_full_space.
    pub(super) fn full_space(&self) -> u64 {
        self.window_from(self.rcvbuf)
    }

    /// tcp_space.
    pub(super) fn free_space(&self) -> u64 {
        self.window_from(self.rcvbuf.saturating_sub(self.memory()))
    }

    /// tcp_receive_window: what the other side may still send.
    pub(super) fn window(&self) -> u64 {
        (self.wup + self.wnd).saturating_sub(self.nxt)
    }

    /// tcp_grow_window.
    pub(super) fn grow_window(&mut self, segment: &Segment, cx: Context) {
        let room = self.clamp.min(self.free_space()).saturating_sub(self.ssthresh);
        if room == 0 {
            return;
        }
        let truesize = self.window_from(cx.config.truesize(segment.len));
        let len = u64::from(segment.len);
        let increment = if truesize <= len {
            2 * self.advertised_mss
        } else {
            self.cautious_growth(truesize / 2, len, cx)
        };
        if increment > 0 {
            self.ssthresh += room.min(increment.max(2 * len));
            self.quick |= 1;
        }
    }

    /// __tcp_grow_window: small segments may grow a window that is small beside the largest.
    pub(super) fn cautious_growth(&self, mut truesize: u64, len: u64, cx: Context) -> u64 {
        let mut window = self.window_from(cx.config.rmem[2]) / 2;
        while self.ssthresh <= window {
            if truesize <= len {
                return 2 * u64::from(self.rcv_mss);
            }
            truesize /= 2;
            window /= 2;
        }
        0
    }

    /// tcp_rcv_space_adjust: dynamic right-sizing, once per round-trip time.
    pub(super) fn adjust_space(&mut self, cx: Context) {
        let now = cx.clock.us();
        if self.rtt_us == 0 || now - self.space_time < self.rtt_us >> 3 {
            return;
        }
        let unread = self.nxt - self.copied;
        let copied = (self.copied - self.space_seq).saturating_sub(unread);
        if copied > self.space {
            self.grow_buffer(copied, cx);
        }
        self.space_seq = self.copied;
        self.space_time = now;
    }

    /// tcp_rcvbuf_grow.
    pub(super) fn grow_buffer(&mut self, new: u64, cx: Context) {
        let old = std::mem::replace(&mut self.space, new).max(1);
        if !cx.config.moderate_rcvbuf {
            return;
        }
        let mut window = new << 1;
        window += (u128::from(window) * u128::from(new - old.min(new)) / u128::from(old)) as u64 * 2;
        window += self.queue.end().map_or(0, |end| end - self.nxt);
        let rcvbuf = ((window << RATIO_SHIFT) / self.ratio).min(cx.config.rmem[2]);
        if rcvbuf > self.rcvbuf {
            self.rcvbuf = rcvbuf;
            self.clamp = self.full_space();
        }
    }

    /// __tcp_select_window.
    pub(super) fn select_window(&mut self) -> u64 {
        let allowed = self.full_space();
        let full = self.clamp.min(allowed);
        let mss = u64::from(self.rcv_mss).min(full);
        let mut free = self.free_space();
        let granule = 1 << self.shift;
        if free < full / 2 {
            self.quick = 0;
            free -= free % granule;
            if free < allowed >> 4 || free < mss {
                return 0;
            }
        }
        free = free.min(self.ssthresh);
        if self.shift > 0 {
            return free.next_multiple_of(granule);
        }
        let mut window = self.wnd;
        if window + mss <= free || window > free {
            window = free - free % mss.max(1);
        } else if mss == full && free > window + full / 2 {
            window = free;
        }
        window
    }

    /// tcp_select_window: the window that a segment offers; it never shrinks.
    pub(super) fn offer_window(&mut self) -> u32 {
        let current = self.window();
        let mut new = self.select_window();
        if new < current {
            new = current.next_multiple_of(1 << self.shift);
        }
        self.wnd = new;
        self.wup = self.nxt;
        new.min(65_535 << self.shift) as u32 >> self.shift << self.shift
    }
}
