//! The receiving half: acknowledgements and the offered window.
//!
//! Follows Linux 6.18: tcp_data_queue, tcp_event_data_recv (tcp_input.c), tcp_select_window (tcp_output.c),
//! tcp_cleanup_rbuf (tcp.c).
//!
//! DEVIATION: received segments are never merged or dropped to save memory (tcp_collapse, tcp_prune_queue),
//! since the offered window never exceeds the buffer. DEVIATION: sequence checks beyond the window (PAWS,
//! challenge ACKs) are left out, since there are no attackers.

mod acknowledging;
mod window;

use crate::clock::Clock;
use crate::config::Config;
use crate::reassembly::Reassembly;
use crate::segment::{Segment, flags};

/// TCP_ATO_MIN and TCP_DELACK_MIN in jiffies: 40 ms.
const ATO_MIN: u64 = 10;
/// TCP_DELACK_MAX in jiffies: 200 ms.
const DELACK_MAX: u64 = 50;
/// TCP_MAX_QUICKACKS.
pub(crate) const MAX_QUICKACKS: u32 = 16;
/// TCP_FASTRETRANS_THRESH.
const FASTRETRANS_THRESH: u32 = 3;
/// TCP_MSS_DEFAULT.
const MSS_DEFAULT: u32 = 536;
/// sysctl tcp_pingpong_thresh.
const PINGPONG_THRESH: u32 = 1;

/// Bits of `icsk_ack.pending`.
mod pending {
    pub const SCHEDULED: u8 = 1;
    pub const TIMER: u8 = 2;
    pub const PUSHED: u8 = 4;
    pub const PUSHED2: u8 = 8;
    pub const NOW: u8 = 16;
}

/// What the receiving half needs from the sending half.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub config: &'a Config,
    pub clock: Clock,
    /// Retransmission timeout in jiffies.
    pub rto: u64,
    /// Smoothed round-trip time in eighths of a microsecond.
    pub srtt_us: u64,
}

/// tcp_select_initial_window: half the buffer, in whole segments, limited by the window field of a SYN.
fn initial_window(config: &Config, mss: u64) -> u64 {
    let full = config.rmem[1] / 2;
    if full > mss { full - full % mss } else { full }
}

/// The receiving half of a connection.
pub(crate) struct Receiver {
    /// Next byte expected.
    pub nxt: u64,
    /// `nxt` when the window was last offered.
    wup: u64,
    /// Window last offered, in bytes.
    wnd: u64,
    /// Next byte that the application reads.
    copied: u64,
    /// Number of the other side's FIN, once known.
    fin: Option<u64>,
    queue: Reassembly,
    ts_recent: u32,
    shift: u32,
    advertised_mss: u64,
    header_bytes: u32,
    // Buffer.
    rcvbuf: u64,
    clamp: u64,
    ssthresh: u64,
    ratio: u64,
    in_order_memory: u64,
    out_of_order_memory: u64,
    out_of_order_bytes: u64,
    // Autotuning.
    rtt_us: u64,
    rtt_seq: u64,
    rtt_time: u64,
    last_tsecr: u32,
    space: u64,
    space_seq: u64,
    space_time: u64,
    // Acknowledging.
    pending: u8,
    quick: u32,
    pingpong: u32,
    ato: u64,
    last_received: u64,
    last_size: u32,
    rcv_mss: u32,
    delayed_timeout: u64,
    delayed_fires_ns: u64,
    compressed: u32,
    compressed_nxt: u64,
    duplicate_acks: u32,
    compressed_fires_ns: u64,
    // ECN.
    echo: bool,
    seen_ect: bool,
}

impl Receiver {
    /// Before the other side's SYN is known.
    pub fn new(config: &Config) -> Receiver {
        let mss = u64::from(config.mss);
        let wnd = initial_window(config, mss);
        Receiver {
            nxt: 0,
            wup: 0,
            wnd,
            copied: 0,
            fin: None,
            queue: Reassembly::default(),
            ts_recent: 0,
            shift: 0,
            advertised_mss: mss,
            header_bytes: 20,
            rcvbuf: config.rmem[1],
            clamp: u64::MAX,
            ssthresh: wnd,
            ratio: 128,
            in_order_memory: 0,
            out_of_order_memory: 0,
            out_of_order_bytes: 0,
            rtt_us: 0,
            rtt_seq: 0,
            rtt_time: 0,
            last_tsecr: 0,
            space: 0,
            space_seq: 0,
            space_time: 0,
            pending: 0,
            quick: 0,
            pingpong: 0,
            ato: 0,
            last_received: 0,
            last_size: 0,
            rcv_mss: MSS_DEFAULT,
            delayed_timeout: 0,
            delayed_fires_ns: u64::MAX,
            compressed: 0,
            compressed_nxt: 0,
            duplicate_acks: 0,
            compressed_fires_ns: u64::MAX,
            echo: false,
            seen_ect: false,
        }
    }

    /// The other side's SYN arrived: its number is 0, data begin at 1. `passive`: ours has not left yet.
    pub fn synchronise(&mut self, syn: &Segment, timestamps: bool, passive: bool, config: &Config) {
        self.nxt = 1;
        self.wup = 1;
        self.copied = 1;
        self.shift = config.window_shift();
        if timestamps {
            self.header_bytes = 32;
            self.advertised_mss -= 12;
            self.ts_recent = syn.tsval;
        }
        if passive {
            self.wnd = initial_window(config, self.advertised_mss);
            self.ssthresh = self.wnd;
        }
    }

    /// Fills in the offers of a SYN or SYN-ACK; the window of a SYN is never scaled.
    pub fn offer(&self, syn: &mut Segment) {
        syn.ack = self.nxt as u32;
        syn.window = self.wnd.min(65_535) as u32;
        syn.tsecr = self.ts_recent;
    }

    /// tcp_init_buffer_space and tcp_initialize_rcv_mss: the connection is established.
    pub fn establish(&mut self, mss: u32, clock: Clock) {
        self.rcv_mss = mss.min((self.wnd / 2) as u32).clamp(88, MSS_DEFAULT);
        let full = self.full_space();
        self.clamp = self.clamp.min(full);
        if self.clamp > 2 * self.advertised_mss && self.clamp + self.advertised_mss > full {
            self.clamp = (2 * self.advertised_mss).max(full - self.advertised_mss); // room for one segment
        }
        self.ssthresh = self.ssthresh.min(self.clamp);
        self.space = self.ssthresh.min(self.wnd).min(10 * self.advertised_mss);
        self.space_seq = self.copied;
        self.space_time = clock.us();
        self.last_received = clock.jiffies();
    }

    // ---- what the application sees ------------------------------------------------------------

    /// Bytes in order that were not read.
    pub fn readable(&self) -> u64 {
        let fin_arrived = self.fin.is_some_and(|fin| self.nxt > fin);
        self.nxt - u64::from(fin_arrived) - self.copied
    }

    /// True once everything arrived and the other side sends no more.
    pub fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// The application reads. Returns whether an ACK must be sent (tcp_rcv_space_adjust, tcp_cleanup_rbuf).
    pub fn read(&mut self, bytes: u64, cx: Context) -> bool {
        let unread = self.readable();
        let bytes = bytes.min(unread);
        if bytes == 0 {
            return false;
        }
        self.in_order_memory -= if bytes == unread {
            self.in_order_memory
        } else {
            (u128::from(self.in_order_memory) * u128::from(bytes) / u128::from(unread)) as u64
        };
        // Linux measures after each copied segment; those behind the first are unread then.
        let first = bytes.min(u64::from(self.rcv_mss));
        self.copied += first;
        self.adjust_space(cx);
        self.copied += bytes - first;
        if self.pending & pending::SCHEDULED != 0 {
            let pushed = self.pending & pending::PUSHED2 != 0
                || (self.pending & pending::PUSHED != 0 && !self.in_pingpong());
            if self.nxt - self.wup > u64::from(self.rcv_mss) || (pushed && self.memory() == 0) {
                return true;
            }
        }
        let offered = self.window();
        if self.finished() || 2 * offered > self.clamp {
            return false;
        }
        let new = self.select_window();
        new > 0 && new >= 2 * offered
    }

    // ---- what arrives -------------------------------------------------------------------------

    /// Could the segment lie in the window (tcp_sequence)?
    pub fn acceptable(&self, seq: u64, end: u64) -> bool {
        end >= self.wup && seq <= self.nxt + self.window()
    }

    /// True where an arriving data segment can take Linux's fast path (header prediction).
    pub fn predicts(&self, seq: u64) -> bool {
        seq == self.nxt && self.queue.is_empty() && self.wnd > 0
    }

    /// tcp_replace_ts_recent.
    pub fn note_timestamp(&mut self, seq: u64, tsval: u32) {
        if seq <= self.wup && tsval.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = tsval;
        }
    }

    /// An ACK that was held back must leave before this segment is queued.
    pub fn must_flush(&self, seq: u64, end: u64) -> bool {
        self.compressed > 0 && seq > self.nxt && self.queue.displaces((seq, end))
    }

    /// tcp_data_queue.
    pub fn receive(&mut self, seq: u64, segment: &Segment, cx: Context) {
        let end = seq + u64::from(segment.sequence_space());
        if seq == end {
            return;
        }
        self.queue.duplicate = None;
        if end <= self.nxt {
            self.queue.duplicate = Some((seq, end));
            return self.acknowledge_quickly();
        }
        let window = self.window();
        if seq >= self.nxt + window && !(seq == self.nxt && segment.len == 0) {
            return self.acknowledge_quickly();
        }
        if segment.has(flags::FIN) {
            self.fin = Some(end - 1);
        }
        if seq > self.nxt {
            self.receive_out_of_order(seq, end, segment, cx);
        } else {
            if seq < self.nxt {
                self.queue.duplicate = Some((seq, self.nxt));
            }
            self.receive_in_order(end, segment, cx);
        }
    }

    /// A segment outside the window: tcp_send_dupack.
    pub fn refuse(&mut self, seq: u64, end: u64) {
        if end != seq && seq < self.nxt {
            self.enter_quickack(MAX_QUICKACKS);
            self.queue.duplicate = Some((seq, end.min(self.nxt)));
        }
    }

    fn receive_in_order(&mut self, end: u64, segment: &Segment, cx: Context) {
        self.nxt = end;
        if segment.len > 0 {
            self.in_order_memory += cx.config.truesize(segment.len);
            self.note_data(segment, cx);
        } else {
            self.pending |= pending::SCHEDULED;
        }
        if !self.queue.is_empty() {
            self.nxt = self.queue.advance(self.nxt);
            let filled = self.nxt - end;
            if filled > 0 {
                let moved = if self.queue.is_empty() {
                    self.out_of_order_memory
                } else {
                    let share = u128::from(self.out_of_order_memory) * u128::from(filled);
                    (share / u128::from(self.out_of_order_bytes.max(filled))) as u64
                };
                self.out_of_order_memory -= moved;
                self.in_order_memory += moved;
                self.out_of_order_bytes = self.out_of_order_bytes.saturating_sub(filled);
            }
            if self.queue.is_empty() {
                self.out_of_order_bytes = 0;
                self.pending |= pending::NOW; // RFC 5681 section 4.2: a hole was filled
            }
        }
        if self.finished() {
            // tcp_fin: the stream ends.
            self.pending |= pending::SCHEDULED;
            self.pingpong = PINGPONG_THRESH;
        }
    }

    /// tcp_data_queue_ofo.
    fn receive_out_of_order(&mut self, seq: u64, end: u64, segment: &Segment, cx: Context) {
        self.check_ce(segment);
        self.measure_mss(segment, cx);
        self.pending |= pending::SCHEDULED;
        let news = self.queue.insert((seq, end));
        if news > 0 {
            self.out_of_order_memory += cx.config.truesize(segment.len);
            self.out_of_order_bytes += news;
            if cx.config.sack {
                self.grow_window(segment, cx);
            }
            self.grow_buffer(self.space, cx);
        }
    }

    /// tcp_event_data_recv.
    fn note_data(&mut self, segment: &Segment, cx: Context) {
        self.pending |= pending::SCHEDULED;
        self.measure_mss(segment, cx);
        if self.rtt_time == 0 || self.nxt >= self.rtt_seq {
            if self.rtt_time != 0 {
                self.update_rtt((cx.clock.us() - self.rtt_time).max(1), true);
            }
            self.rtt_seq = self.nxt + self.wnd;
            self.rtt_time = cx.clock.us();
        }
        let now = cx.clock.jiffies();
        if self.ato == 0 {
            self.raise_quickack(MAX_QUICKACKS);
            self.ato = ATO_MIN;
        } else {
            let gap = now - self.last_received;
            if gap <= ATO_MIN / 2 {
                self.ato = self.ato / 2 + ATO_MIN / 2;
            } else if gap < self.ato {
                self.ato = (self.ato / 2 + gap).min(cx.rto);
            } else if gap > cx.rto {
                self.raise_quickack(MAX_QUICKACKS);
            }
        }
        self.last_received = now;
        self.check_ce(segment);
        if segment.len >= 128 {
            self.grow_window(segment, cx);
        }
    }

    /// tcp_measure_rcv_mss.
    fn measure_mss(&mut self, segment: &Segment, cx: Context) {
        let last = std::mem::take(&mut self.last_size);
        let len = segment.len;
        if len >= self.rcv_mss {
            if len != self.rcv_mss {
                self.set_ratio(len, cx);
                self.rcv_mss = len.min(self.advertised_mss as u32);
            }
            if segment.has(flags::PSH) {
                self.pending |= pending::PUSHED;
            }
            return;
        }
        let with_header = len + self.header_bytes;
        if with_header >= MSS_DEFAULT + 20 || (with_header >= 88 + 20 && !segment.has(flags::PSH)) {
            self.last_size = with_header - self.header_bytes;
            if self.last_size == last {
                self.rcv_mss = self.last_size;
                return;
            }
        }
        if self.pending & pending::PUSHED != 0 {
            self.pending |= pending::PUSHED2;
        }
        self.pending |= pending::PUSHED;
    }

    fn check_ce(&mut self, segment: &Segment) {
        if segment.has(flags::CE) {
            if !self.echo {
                self.enter_quickack(2);
                self.echo = true;
            }
            self.seen_ect = true;
        } else if segment.has(flags::ECT) {
            self.seen_ect = true;
        } else if self.seen_ect {
            self.enter_quickack(2); // probably a retransmission
        }
    }

    /// tcp_ecn_accept_cwr.
    pub fn accept_cwr(&mut self, data: bool) {
        self.echo = false;
        if data {
            self.pending |= pending::NOW;
        }
    }
}
