//! One side of a connection: its state, the application's calls and the end.

use crate::clock::{Clock, run_time};
use crate::config::{Config, LossDetection, Peer};
use crate::loss::Rack;
use crate::output::GSO_MAX;
use crate::receiver::Receiver;
use crate::rtt::{RTO_INIT, RttEstimator};
use crate::sacks::Rate;
use crate::sample::{Event, Info, Sample};
use crate::scoreboard::Scoreboard;
use crate::segment::{Segment, flags};
use crate::shared::{Member, SharedWindows};
use crate::timers::Timers;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_congestion_native::{CaState, Connection, INFINITE_SSTHRESH, TcpSock};
use wirepaint_units::Time;

/// Memory that a burst needs for headers, in bytes: `MAX_TCP_HEADER` of a kernel without drivers for wireless
/// networks and Hyper-V, as on the testbed's machine (320 with them), and `struct skb_shared_info`.
const BURST_HEAD: u64 = 256 + 320;
/// Memory of `struct sk_buff`.
const BURST_BUFFER: u64 = 256;

/// Stages of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Listen,
    SynSent,
    SynReceived,
    Established,
    Closed,
}

/// The end of what we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    /// The application may still write.
    Open,
    /// It has closed; the FIN waits behind the data.
    Queued,
    /// Sent.
    Sent,
}

/// Options that the other side agreed to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Agreed {
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
}

/// One side of a TCP connection. See the crate's description for the calling contract.
pub struct Endpoint {
    pub(crate) config: Arc<Config>,
    /// Socket and congestion control.
    pub(crate) cc: Connection,
    pub(crate) stage: Stage,
    pub(crate) failed: bool,
    pub(crate) clock: Clock,
    pub(crate) out: VecDeque<Segment>,
    pub(crate) agreed: Agreed,
    pub(crate) rcv: Receiver,
    // Numbers of what we send. The SYN is 0.
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// One past the last byte written.
    pub(crate) written: u64,
    pub(crate) fin: Fin,
    /// Payload of a full segment.
    pub(crate) mss: u32,
    // The other side's window.
    pub(crate) snd_wnd: u64,
    pub(crate) max_window: u64,
    pub(crate) wl1: u64,
    /// End of the last segment that was smaller than a full one (Minshall's variant of Nagle).
    pub(crate) small_end: u64,
    pub(crate) sndbuf: u64,
    notsent_lowat: u64,
    pub(crate) wants_space: bool,
    // Retransmission.
    pub(crate) board: Scoreboard,
    pub(crate) rtt: RttEstimator,
    pub(crate) rack: Rack,
    /// Segments sent that may be retransmitted, repeats included.
    pub(crate) transmissions: u32,
    pub(crate) timers: Timers,
    /// One past the highest number SACKed, where anything is.
    pub(crate) highest_sack: u64,
    pub(crate) reordering: Reordering,
    pub(crate) high_seq: u64,
    /// Every segment below is SACKed or marked lost (RFC 6675).
    pub(crate) lost_below: u32,
    pub(crate) undo: Undo,
    pub(crate) tlp: Tlp,
    pub(crate) frto: bool,
    pub(crate) prr: Prr,
    /// Timeouts since data were last acknowledged.
    pub(crate) timeouts: u32,
    pub(crate) total_timeouts: u32,
    /// cwnd with which it was established; 0 before.
    pub(crate) opened_cwnd: u32,
    pub(crate) handshake_retransmissions: u32,
    pub(crate) cwnd_usage_end: u64,
    pub(crate) cwnd_used: u32,
    // Delivery rate.
    pub(crate) first_tx_us: u64,
    pub(crate) last_rate: Rate,
    // ECN.
    pub(crate) send_cwr: bool,
    /// The timestamp that the last segment echoed; `None` where it had none.
    pub(crate) echoed: Option<u32>,
    pub(crate) samples: Option<Vec<Sample>>,
    // A window shared with other connections, and where such windows are found.
    pub(crate) shared: Option<Member>,
    pub(crate) windows: Option<(Rc<SharedWindows>, u32)>,
}

/// How far the path reorders. Invariant: `degree` is at most the larger of tcp_reordering and tcp_max_reordering.
#[derive(Debug)]
pub(crate) struct Reordering {
    /// Segments by which the path is assumed to reorder.
    pub degree: u32,
    /// Times that reordering was seen.
    pub seen: u32,
    /// DSACKs seen.
    pub duplicates: u32,
}

/// What an undo needs of the present episode. Invariant: without a marker there is nothing to undo.
#[derive(Debug)]
pub(crate) struct Undo {
    /// First number that was not acknowledged when the episode began.
    pub marker: Option<u64>,
    /// Retransmissions that no DSACK has reported; -1 where there were none to undo.
    pub retrans: i64,
    /// Timestamp of the first retransmission of the episode; 0 before it.
    pub stamp: u32,
}

/// The tail-loss probe under way (RFC 8985, section 7). Invariant: at most one is.
#[derive(Debug)]
pub(crate) struct Tlp {
    /// End of the data sent when it left; `None` without a probe.
    pub high: Option<u64>,
    /// It repeated a segment, and did not send new data.
    pub retransmitted: bool,
}

/// Proportional rate reduction (RFC 6937, RFC 9937). Invariant: both count from the begin of the last reduction.
#[derive(Debug)]
pub(crate) struct Prr {
    /// Segments delivered in the episode.
    pub delivered: u32,
    /// Segments sent in the episode.
    pub out: u32,
}

/// What the receiving half needs from this side.
macro_rules! context {
    ($endpoint:expr) => {
        $crate::receiver::Context {
            config: &$endpoint.config,
            clock: $endpoint.clock,
            rto: u64::from($endpoint.cc.tp.icsk_rto),
            srtt_us: $endpoint.rtt.srtt_us,
        }
    };
}
pub(crate) use context;

impl Endpoint {
    /// Connects: the SYN waits in [`transmit`](Self::transmit).
    pub fn client(config: &Arc<Config>, peer: Peer, now: Time) -> Endpoint {
        let mut endpoint = Endpoint::new(config, peer, Stage::SynSent, now);
        endpoint.send_syn();
        endpoint.arm_handshake(RTO_INIT);
        endpoint
    }

    /// Waits for a SYN.
    pub fn server(config: &Arc<Config>, peer: Peer, now: Time) -> Endpoint {
        Endpoint::new(config, peer, Stage::Listen, now)
    }

    fn new(config: &Arc<Config>, peer: Peer, stage: Stage, now: Time) -> Endpoint {
        let clock = Clock::at(now);
        let congestion = config.congestion.clone();
        let mut cc = match peer.groups {
            Some(groups) => Connection::among(congestion, groups),
            None => Connection::new(congestion),
        };
        let tp = &mut cc.tp;
        tp.set_addresses(peer.local, peer.remote);
        tp.cc_netns = peer.host;
        tp.cc_random_state = peer.seed;
        tp.snd_cwnd = 10;
        tp.snd_ssthresh = INFINITE_SSTHRESH;
        tp.snd_cwnd_clamp = u32::MAX;
        tp.icsk_rto = RTO_INIT as u32;
        tp.sk_pacing_rate = u64::MAX;
        tp.sk_max_pacing_rate = config.max_pacing_rate.unwrap_or(u64::MAX);
        tp.sk_pacing_status = u32::from(config.max_pacing_rate.is_some());
        tp.sk_pacing_shift = 10;
        tp.cc_rtt_min_us = u32::MAX;
        let mut endpoint = Endpoint {
            cc,
            stage,
            failed: false,
            clock,
            out: VecDeque::new(),
            agreed: Agreed::default(),
            rcv: Receiver::new(config),
            una: 0,
            nxt: 1,
            written: 1,
            fin: Fin::Open,
            mss: config.mss,
            snd_wnd: 0,
            max_window: 0,
            wl1: 0,
            small_end: 0,
            sndbuf: config.sndbuf.unwrap_or(config.wmem[1]),
            notsent_lowat: config.notsent_lowat,
            wants_space: false,
            board: Scoreboard::new(),
            rtt: RttEstimator::default(),
            rack: Rack::default(),
            transmissions: 0,
            timers: Timers::default(),
            highest_sack: 0,
            reordering: Reordering { degree: config.reordering, seen: 0, duplicates: 0 },
            high_seq: 0,
            lost_below: 0,
            undo: Undo { marker: None, retrans: -1, stamp: 0 },
            tlp: Tlp { high: None, retransmitted: false },
            frto: false,
            prr: Prr { delivered: 0, out: 0 },
            timeouts: 0,
            total_timeouts: 0,
            opened_cwnd: 0,
            handshake_retransmissions: 0,
            cwnd_usage_end: 0,
            cwnd_used: 0,
            first_tx_us: 0,
            last_rate: Rate::default(),
            send_cwr: false,
            echoed: None,
            samples: None,
            shared: None,
            windows: peer.windows,
            config: config.clone(),
        };
        endpoint.refresh(now);
        endpoint
    }

    // ---- the path -----------------------------------------------------------------------------

    /// The next segment to put on the path; call until it returns `None`.
    pub fn transmit(&mut self, _now: Time) -> Option<Segment> {
        self.out.pop_front()
    }

    /// A segment arrives.
    pub fn receive(&mut self, now: Time, segment: &Segment) {
        self.refresh(now);
        match self.stage {
            Stage::Established => self.receive_established(segment),
            Stage::SynSent => self.receive_syn_ack(segment),
            Stage::Listen if segment.has(flags::SYN) && !segment.has(flags::ACK) => self.accept_syn(segment),
            Stage::SynReceived => self.receive_handshake_ack(segment),
            // A lost last ACK makes the other side repeat its FIN.
            Stage::Closed if !self.failed && segment.sequence_space() > 0 => self.send_ack(),
            Stage::Listen | Stage::Closed => {}
        }
        self.settle_shared();
    }

    // ---- the application ----------------------------------------------------------------------

    /// The application writes. Returns the bytes that the send buffer took.
    ///
    /// If it took fewer, write again when [`is_writable`](Self::is_writable).
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.refresh(now);
        if self.fin != Fin::Open {
            return 0;
        }
        let mut taken = 0;
        loop {
            let next = self.burst_room().min(bytes - taken);
            if next == 0 {
                break;
            }
            if taken == 0 {
                self.check_application_limited();
                self.restart_after_idle();
            }
            self.written += next;
            taken += next;
            self.note_write_seq();
            if self.stage == Stage::Established {
                self.push_pending();
            }
        }
        self.wants_space = taken < bytes;
        taken
    }

    /// Bytes that still fit into the last burst in the queue, or into a new one if there is room for it.
    fn burst_room(&self) -> u64 {
        let (goal, unsent) = (self.size_goal(), self.unsent());
        let rest = unsent.next_multiple_of(goal) - unsent;
        if rest > 0 { rest } else { goal.min(self.writable()) }
    }

    /// Most bytes that a write takes: it fills up the last burst in the queue (tcp_xmit_size_goal), and adds
    /// bursts while there is any room (sk_stream_memory_free).
    pub fn writable(&self) -> u64 {
        if self.fin != Fin::Open {
            return 0;
        }
        let (goal, unsent) = (self.size_goal(), self.unsent());
        let rest = unsent.next_multiple_of(goal) - unsent;
        let room = self.sndbuf.saturating_sub(self.queued_memory() + rest);
        let quota = self.notsent_lowat.saturating_sub(unsent + rest);
        let bursts = room.div_ceil(goal + BURST_HEAD + BURST_BUFFER).min(quota.div_ceil(goal));
        rest.saturating_add(bursts.saturating_mul(goal))
    }

    /// True where poll() would wake a writer: a third of the buffer is free, and half of
    /// TCP_NOTSENT_LOWAT (sk_stream_is_writeable, tcp_stream_memory_free).
    pub fn is_writable(&self) -> bool {
        let queued = self.queued_memory();
        self.fin == Fin::Open
            && self.sndbuf.saturating_sub(queued) >= queued / 2
            && self.unsent().saturating_mul(2) < self.notsent_lowat
    }

    /// Memory limit for written data (sk_sndbuf), in bytes.
    pub fn send_buffer(&self) -> u64 {
        self.sndbuf
    }

    /// The application waits until [`is_writable`](Self::is_writable) (SOCK_NOSPACE): the buffer may grow.
    pub fn wait_for_space(&mut self) {
        self.wants_space = true;
    }

    /// The application waits and has not been woken.
    pub fn waits_for_space(&self) -> bool {
        self.wants_space
    }

    /// Sets TCP_NOTSENT_LOWAT ([`Config::notsent_lowat`] is its first value).
    pub fn bound_unsent(&mut self, bytes: u64) {
        self.notsent_lowat = bytes;
    }

    /// Bytes of a burst in the queue (tcp_xmit_size_goal).
    fn size_goal(&self) -> u64 {
        let mss = u64::from(self.mss);
        (GSO_MAX.min(self.max_window / 2) / mss).max(1) * mss
    }

    /// Memory of written and unacknowledged data (sk_wmem_queued).
    ///
    /// DEVIATION: SACK blocks and retransmissions split a burst without additional memory.
    fn queued_memory(&self) -> u64 {
        let bursts = u64::from(self.board.bursts()) + self.unsent().div_ceil(self.size_goal());
        self.unacknowledged() + bursts * (BURST_HEAD + BURST_BUFFER)
    }

    /// Bytes written and not sent once.
    pub fn unsent(&self) -> u64 {
        self.written - self.nxt.min(self.written)
    }

    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.written - self.una.max(1).min(self.written)
    }

    /// Bytes that arrived in order and were not read.
    pub fn readable(&self) -> u64 {
        self.rcv.readable()
    }

    /// The application reads at most `bytes` bytes. Returns how many it got.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        self.refresh(now);
        let taken = bytes.min(self.rcv.readable());
        if taken > 0 && self.rcv.read(taken, context!(self)) {
            self.send_ack();
        }
        taken
    }

    /// The application writes no more: a FIN follows the data.
    pub fn close(&mut self, now: Time) {
        self.refresh(now);
        if self.fin != Fin::Open || self.stage == Stage::Closed {
            return;
        }
        if matches!(self.stage, Stage::Listen | Stage::SynSent) {
            return self.end(false);
        }
        self.fin = Fin::Queued;
        self.note_write_seq();
        if self.stage == Stage::Established {
            self.push_pending();
        }
    }

    /// Ends the connection at once, without a segment to the other side.
    pub fn abort(&mut self, now: Time) {
        self.refresh(now);
        if self.stage != Stage::Closed {
            self.end(true);
        }
    }

    /// True from the end of the handshake until both sides have closed.
    pub fn is_established(&self) -> bool {
        self.stage == Stage::Established
    }

    /// True once both sides have closed, or the connection failed.
    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// True where the connection was given up: too many timeouts, or [`abort`](Self::abort).
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// True once the other side's FIN and all data before it have arrived.
    pub fn is_finished(&self) -> bool {
        self.rcv.finished()
    }

    /// The sender's side of the socket, as the congestion control sees it.
    pub fn sock(&self) -> &TcpSock {
        &self.cc.tp
    }

    /// Changes the congestion control of the living connection (setsockopt TCP_CONGESTION).
    pub fn switch(&mut self, now: Time, congestion: Arc<wirepaint_congestion_native::Instance>) {
        self.refresh(now);
        self.cc.switch(congestion);
        self.join_shared_window();
    }

    /// What TCP_INFO would say.
    pub fn info(&self) -> Info {
        let tp = &self.cc.tp;
        let rate = &self.last_rate;
        let known = |value: u32| (value != u32::MAX).then_some(value);
        Info {
            state: self.ca_state(),
            srtt_us: (self.rtt.srtt_us > 0).then_some((self.rtt.srtt_us >> 3) as u32),
            min_rtt_us: known(self.rtt.min.get()),
            rto_us: u64::from(tp.icsk_rto) * crate::clock::JIFFY_US,
            delivered: tp.delivered,
            lost: tp.lost,
            retransmitted: tp.total_retrans,
            bytes_acked: tp.bytes_acked,
            pacing_rate: tp.sk_pacing_rate,
            delivery_rate: rate.bytes_per_second(self.mss),
            reordering: self.reordering.degree,
            timeouts: self.total_timeouts,
            opened_cwnd: (self.opened_cwnd > 0).then_some(self.opened_cwnd),
        }
    }

    /// Compares the socket's counters with the retransmission queue, segment by segment. For tests:
    /// it walks the whole queue.
    pub fn check(&self) -> Result<(), String> {
        let tp = &self.cc.tp;
        let [out, sacked, lost, retransmitted] = self.board.count();
        let counted = [out, if self.agreed.sack { sacked } else { tp.sacked_out }, lost, retransmitted];
        let kept = [tp.packets_out, tp.sacked_out, tp.lost_out, tp.retrans_out];
        if kept != counted {
            return Err(format!("out, SACKed, lost, retransmitted: {kept:?} kept, {counted:?} in the queue"));
        }
        if tp.sacked_out + tp.lost_out > tp.packets_out {
            return Err(format!("more left the network than was sent: {kept:?}"));
        }
        if tp.snd_cwnd == 0 {
            return Err("the window is zero".to_owned());
        }
        if tp.packets_out > 0 && self.timers.pending == crate::timers::Pending::Nothing {
            return Err("segments are outstanding and no timer is set".to_owned());
        }
        Ok(())
    }

    /// Begins to take samples; see [`drain_samples`](Self::drain_samples).
    pub fn take_samples(&mut self) {
        self.samples.get_or_insert_default();
    }

    /// The samples since the last call, in order of time.
    pub fn drain_samples(&mut self) -> impl Iterator<Item = Sample> {
        self.samples.iter_mut().flat_map(|samples| samples.drain(..))
    }

    /// The connection ends.
    pub(crate) fn end(&mut self, failed: bool) {
        let opened = !matches!(self.stage, Stage::Listen | Stage::SynSent | Stage::SynReceived);
        self.stage = Stage::Closed;
        self.failed = failed;
        self.timers.disarm();
        self.timers.pacing_ns = u64::MAX;
        if opened {
            self.cc.release();
            self.shared = None;
        }
    }

    // ---- helpers of all parts -------------------------------------------------------------------

    /// tcp_mstamp_refresh.
    pub(crate) fn refresh(&mut self, now: Time) {
        self.clock = Clock::at(now);
        let tp = &mut self.cc.tp;
        tp.tcp_clock_cache = self.clock.ns;
        tp.tcp_mstamp = self.clock.us();
        tp.cc_clock_us = self.clock.us();
        tp.cc_jiffies = self.clock.jiffies() as u32;
    }

    pub(crate) fn ca_state(&self) -> CaState {
        match self.cc.tp.icsk_ca_state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }

    pub(crate) fn uses_rack(&self) -> bool {
        self.config.loss_detection == LossDetection::Rack
    }

    pub(crate) fn note_write_seq(&mut self) {
        self.cc.tp.write_seq = (self.written + u64::from(self.fin != Fin::Open)) as u32;
    }

    /// tcp_sndbuf_expand.
    pub(crate) fn expand_sndbuf(&mut self) {
        if self.config.sndbuf.is_some() {
            return;
        }
        let windows = u64::from(self.cc.sndbuf_expand());
        let segments = u64::from(self.cc.tp.snd_cwnd.max(10).max(self.reordering.degree + 1));
        let of_segment = (u64::from(self.config.mss) + BURST_HEAD).next_power_of_two() + BURST_BUFFER;
        let wanted = (windows * segments * of_segment).min(self.config.wmem[2]);
        self.sndbuf = self.sndbuf.max(wanted);
    }

    pub(crate) fn sample(&mut self, event: Event) {
        let Some(samples) = &mut self.samples else { return };
        let tp = &self.cc.tp;
        let state = match tp.icsk_ca_state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        };
        samples.push(Sample {
            time: run_time(self.clock.ns),
            event,
            state,
            cwnd: tp.snd_cwnd,
            ssthresh: tp.snd_ssthresh,
            srtt_us: tp.srtt_us,
            in_flight: tp.in_flight(),
            delivered: tp.delivered,
            lost: tp.lost,
            retransmitted: tp.total_retrans,
            pacing_rate: tp.sk_pacing_rate,
        });
    }
}
