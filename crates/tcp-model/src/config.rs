//! Settings of a connection: Linux 6.18's sysctls and socket options, with their defaults.

use crate::shared::SharedWindows;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_congestion_native::{Groups, Instance};

/// How a connection with SACK tells lost segments from late ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// RACK-TLP (RFC 8985): by the time at which segments were sent. Linux 6.18 knows no other.
    Rack,
    /// RFC 6675: by three segments SACKed beyond. Lost retransmissions wait for the timeout.
    Rfc6675,
}

/// Explicit congestion notification (tcp_ecn).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// 0: refused.
    Off,
    /// 1: requested when connecting, accepted on request.
    On,
    /// 2: accepted on request; Linux's default.
    Passive,
}

/// One side's settings. Many endpoints share one.
#[derive(Clone)]
pub struct Config {
    /// Congestion control with its parameters.
    pub congestion: Arc<Instance>,
    /// Maximum segment size that is offered, in bytes: the MTU less 40. Timestamps take 12 of it.
    pub mss: u32,
    /// Initial window in segments (`initcwnd` of the route).
    pub initial_window: u32,
    /// tcp_sack.
    pub sack: bool,
    /// tcp_timestamps.
    pub timestamps: bool,
    /// tcp_ecn.
    pub ecn: Ecn,
    /// Loss detection with SACK.
    pub loss_detection: LossDetection,
    /// Tail-loss probes (tcp_early_retrans=3).
    pub tlp: bool,
    /// F-RTO (RFC 5682; tcp_frto).
    pub frto: bool,
    /// tcp_slow_start_after_idle.
    pub slow_start_after_idle: bool,
    /// tcp_rto_min_us.
    pub rto_min_us: u32,
    /// tcp_reordering: segments by which the path is assumed to reorder.
    pub reordering: u32,
    /// tcp_max_reordering.
    pub max_reordering: u32,
    /// tcp_min_rtt_wlen: seconds for which the smallest round-trip time is remembered.
    pub min_rtt_window_s: u32,
    /// tcp_pacing_ss_ratio in per cent.
    pub pacing_ss_percent: u64,
    /// tcp_pacing_ca_ratio in per cent.
    pub pacing_ca_percent: u64,
    /// Segments that leave as one burst, at most (gso_max_segs of the device); 1 sends each on its own.
    pub gso_max_segs: u32,
    /// The application asks for pacing (SO_MAX_PACING_RATE), in bytes per second.
    pub max_pacing_rate: Option<u64>,
    /// tcp_rmem: least, initial and largest receive buffer in bytes.
    pub rmem: [u64; 3],
    /// tcp_moderate_rcvbuf: the receive buffer grows with the flow.
    pub moderate_rcvbuf: bool,
    /// Memory that the kernel spends on a received segment, beside its payload, before it rounds up
    /// to a power of two: headers, headroom and `struct skb_shared_info`.
    pub receive_overhead: u32,
    /// tcp_wmem: least, initial and largest send buffer in bytes.
    pub wmem: [u64; 3],
    /// The application has fixed the send buffer (SO_SNDBUF), in bytes of the kernel's count.
    pub sndbuf: Option<u64>,
    /// Unsent bytes above which the application may not write (TCP_NOTSENT_LOWAT).
    pub notsent_lowat: u64,
    /// TCP_NODELAY: no Nagle.
    pub nodelay: bool,
    /// Every segment is acknowledged at once (route option `quickack`).
    pub quickack: bool,
    /// tcp_comp_sack_nr: duplicate ACKs that may be compressed into one; 0 compresses none.
    pub comp_sack_nr: u32,
    /// tcp_comp_sack_delay_ns.
    pub comp_sack_delay_ns: u64,
    /// tcp_comp_sack_slack_ns.
    pub comp_sack_slack_ns: u64,
    /// tcp_syn_retries: SYN timeouts that double before the connection is given up.
    pub syn_retries: u32,
    /// tcp_synack_retries.
    pub synack_retries: u32,
    /// tcp_syn_linear_timeouts: SYN timeouts before those that double.
    pub syn_linear_timeouts: u32,
    /// tcp_retries2: timeouts in a row after which the connection is given up.
    pub retries: u32,
}

impl Config {
    /// Linux 6.18's defaults (HZ 250, MTU 1500) under a congestion control.
    pub fn linux(congestion: Arc<Instance>) -> Config {
        Config {
            congestion,
            mss: 1460,
            initial_window: 10,
            sack: true,
            timestamps: true,
            ecn: Ecn::Passive,
            loss_detection: LossDetection::Rack,
            tlp: true,
            frto: true,
            slow_start_after_idle: true,
            rto_min_us: 200_000,
            reordering: 3,
            max_reordering: 300,
            min_rtt_window_s: 300,
            pacing_ss_percent: 200,
            pacing_ca_percent: 120,
            gso_max_segs: 65_535,
            max_pacing_rate: None,
            rmem: [4_096, 131_072, 33_554_432],
            moderate_rcvbuf: true,
            receive_overhead: 450,
            wmem: [4_096, 16_384, 4_194_304],
            sndbuf: None,
            notsent_lowat: u64::MAX,
            nodelay: false,
            quickack: false,
            comp_sack_nr: 44,
            comp_sack_delay_ns: 1_000_000,
            comp_sack_slack_ns: 100_000,
            syn_retries: 6,
            synack_retries: 5,
            syn_linear_timeouts: 4,
            retries: 15,
        }
    }

    /// Payload of a full segment in bytes, if both sides have these settings.
    pub fn full_segment(&self) -> u32 {
        self.mss - if self.timestamps { 12 } else { 0 }
    }

    /// The shift of the receive window (RFC 7323) that the largest receive buffer asks for
    /// (tcp_select_initial_window).
    pub(crate) fn window_shift(&self) -> u32 {
        let space = self.rmem[2].clamp(1, 65_535 << 14);
        space.ilog2().saturating_sub(15).min(14)
    }

    /// Memory that a received segment takes (`skb->truesize`): a buffer of a power of two and `struct
    /// sk_buff` of 256 bytes. A segment of 1448 bytes takes 2304, as on a virtual Ethernet pair written by a
    /// packet socket.
    pub(crate) fn truesize(&self, len: u32) -> u64 {
        u64::from((len + self.receive_overhead).next_power_of_two()) + 256
    }
}

/// The ends of a connection, and the state that it shares.
#[derive(Clone)]
pub struct Peer {
    /// Address and port of this side.
    pub local: SocketAddr,
    /// Address and port of the other side, of the same family.
    pub remote: SocketAddr,
    /// The host that this side runs on: connections of one host may share state.
    pub host: u32,
    /// Seed of the congestion control's random numbers.
    pub seed: u64,
    /// State that the run's connections share; `None` shares nothing.
    pub groups: Option<Rc<Groups>>,
    /// The run's shared windows, and this side's id there.
    pub windows: Option<(Rc<SharedWindows>, u32)>,
}

impl Peer {
    /// A connection that shares nothing.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Peer {
        Peer { local, remote, host: 0, seed: 0, groups: None, windows: None }
    }
}
