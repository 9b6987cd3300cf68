//! Samples of the sender, as the probe of the testbed takes them from the kernel: rows of the
//! table `tcp`.

use wirepaint_congestion_native::CaState;
use wirepaint_units::Time;

/// The cause of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A segment arrived; the row shows the sender as the segment found it (tracepoint tcp_probe).
    Ack,
    /// The congestion state changes to the one shown (tcp_cong_state_set).
    State,
    /// A segment was sent again (tcp_retransmit_skb).
    Retransmit,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When.
    pub time: Time,
    /// Why.
    pub event: Event,
    /// Congestion state.
    pub state: CaState,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `INFINITE_SSTHRESH` or more while no loss has set it.
    pub ssthresh: u32,
    /// Smoothed round-trip time in eighths of a microsecond; 0 before the first sample.
    pub srtt_us: u32,
    /// Segments in flight.
    pub in_flight: u32,
    /// Segments delivered so far, the SYN among them.
    pub delivered: u32,
    /// Segments marked lost so far.
    pub lost: u32,
    /// Segments retransmitted so far.
    pub retransmitted: u32,
    /// Pacing rate in bytes per second; 0 or `u64::MAX` where there is none.
    pub pacing_rate: u64,
}

/// What TCP_INFO would say of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Congestion state.
    pub state: CaState,
    /// Smoothed round-trip time in microseconds; `None` before the first sample.
    pub srtt_us: Option<u32>,
    /// Smallest round-trip time in microseconds; `None` before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Retransmission timeout in microseconds, with its backoff.
    pub rto_us: u64,
    /// Segments delivered so far.
    pub delivered: u32,
    /// Segments marked lost so far.
    pub lost: u32,
    /// Segments retransmitted so far.
    pub retransmitted: u32,
    /// Bytes acknowledged so far.
    pub bytes_acked: u64,
    /// Pacing rate in bytes per second.
    pub pacing_rate: u64,
    /// Last delivery rate in bytes per second (tcp_rate.c); 0 before the first.
    pub delivery_rate: u64,
    /// Segments by which the path is assumed to reorder.
    pub reordering: u32,
    /// Retransmission timeouts so far.
    pub timeouts: u32,
    /// The window in segments when it was established; `None` before. The congestion control or a lost SYN
    /// may have changed the configured one.
    pub opened_cwnd: Option<u32>,
}
