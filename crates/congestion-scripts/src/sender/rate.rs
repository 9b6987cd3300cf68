//! Delivery-rate samples for `cong_control`, as tcp_rate.c takes them
//! (draft-cheng-iccrg-delivery-rate-estimation).

use wirepaint_congestion_native::{RateSample, TcpSock};

/// State of delivery at the time of a transmission.
#[derive(Clone, Copy, Default)]
pub(super) struct Stamp {
    /// Departure of the first segment of the flight that the sample measures.
    first_us: u64,
    delivered_us: u64,
    delivered: u32,
    app_limited: bool,
}

/// The sender's side of the estimate.
#[derive(Default)]
pub(super) struct Rate {
    first_us: u64,
    /// The newest transmission that the current ACK delivers: its departure, segment and stamp.
    newest: Option<(u64, u64, Stamp)>,
}

impl Rate {
    /// A data segment leaves; `packets_out` does not count it yet (tcp_rate_skb_sent).
    pub fn sent(&mut self, tp: &mut TcpSock, now_us: u64) -> Stamp {
        if tp.packets_out == 0 {
            self.first_us = now_us;
            tp.delivered_mstamp = now_us;
        }
        Stamp {
            first_us: self.first_us,
            delivered_us: tp.delivered_mstamp,
            delivered: tp.delivered,
            app_limited: tp.app_limited != 0,
        }
    }

    /// A segment is acknowledged or SACKed for the first time (tcp_rate_skb_delivered).
    pub fn delivered(&mut self, segment: u64, sent_us: u64, stamp: Stamp) {
        if self.newest.is_none_or(|(sent, number, _)| (sent_us, segment) > (sent, number)) {
            self.newest = Some((sent_us, segment, stamp));
            self.first_us = sent_us;
        }
    }

    /// The sample of an ACK that delivered `delivered` segments and marked `losses` lost (tcp_rate_gen).
    pub fn sample(
        &mut self,
        tp: &mut TcpSock,
        now_us: u64,
        delivered: u32,
        losses: u32,
        prior_in_flight: u32,
        rtt_us: Option<u64>,
    ) -> RateSample {
        if tp.app_limited != 0 && tp.delivered > tp.app_limited {
            tp.app_limited = 0;
        }
        if delivered > 0 {
            tp.delivered_mstamp = now_us;
        }
        let mut sample = RateSample {
            delivered: -1,
            interval_us: -1,
            rtt_us: rtt_us.map_or(-1, |rtt| rtt as i64),
            losses: losses as i32,
            acked_sacked: delivered,
            prior_in_flight,
            ..RateSample::default()
        };
        if let Some((sent_us, _, stamp)) = self.newest.take() {
            sample.prior_delivered = stamp.delivered;
            sample.delivered = (tp.delivered - stamp.delivered) as i32;
            sample.is_app_limited = stamp.app_limited;
            let interval = (sent_us - stamp.first_us).max(now_us - stamp.delivered_us);
            // Shorter than any round trip: the ACK is for an earlier transmission.
            sample.interval_us = if interval < u64::from(tp.cc_rtt_min_us) { -1 } else { interval as i64 };
        }
        sample
    }
}

/// The application has no more to send while the window is open (tcp_rate_check_app_limited).
pub(super) fn check_app_limited(tp: &mut TcpSock, nothing_waits: bool) {
    if nothing_waits && tp.in_flight() < tp.snd_cwnd && tp.lost_out <= tp.retrans_out {
        tp.app_limited = (tp.delivered + tp.in_flight()).max(1);
    }
}
