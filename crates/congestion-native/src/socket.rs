//! The socket as the algorithms see it: `struct tcp_sock` of cc_native.h, field by field.
//!
//! The nested structs of C are flattened; a test compares each offset with C's own.

use crate::groups::{AF_INET, AF_INET6, Group, Store};
use std::net::{IpAddr, SocketAddr};

/// ssthresh of a connection that has not met a loss.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Flags of `in_ack_event`.
pub mod ack_flags {
    /// The ACK left the fast path: it carries SACK blocks, an ECN echo or no new data.
    pub const SLOWPATH: u32 = 1;
    /// The ACK may have updated the send window.
    pub const WIN_UPDATE: u32 = 2;
    /// The ACK carries an ECN echo.
    pub const ECE: u32 = 4;
}

/// Congestion state of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CaState {
    /// Nothing unusual.
    Open = 0,
    /// SACKs arrived, nothing is marked lost yet.
    Disorder = 1,
    /// The window shrinks after an ECN echo or a drop in the local queue.
    Cwr = 2,
    /// The window shrinks after a loss, which is being repaired.
    Recovery = 3,
    /// A retransmission timeout.
    Loss = 4,
}

/// Event of `cwnd_event`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum CaEvent {
    /// The first segment left while nothing was in flight.
    TxStart,
    /// The kernel restarts the window after an idle period.
    CwndRestart,
    /// The end of CWR or Recovery.
    CompleteCwr,
    /// A retransmission timeout.
    Loss,
    /// A segment arrived without a mark (ECN).
    EcnNoCe,
    /// A segment arrived with a mark (ECN).
    EcnIsCe,
}

/// Segments that an ACK removed from the retransmission queue.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AckSample {
    /// Segments newly acknowledged by the cumulative number.
    pub pkts_acked: u32,
    /// Round-trip time in microseconds; -1 without a sample.
    pub rtt_us: i32,
    /// Segments in flight before the ACK.
    pub in_flight: u32,
}

/// Delivery rate sample of an ACK (draft-cheng-iccrg-delivery-rate-estimation; tcp_rate.c).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RateSample {
    /// `delivered` when the acknowledged segment was sent.
    pub prior_delivered: u32,
    /// Segments delivered since then; -1 without a valid sample.
    pub delivered: i32,
    /// Time of their delivery; -1 without a valid sample.
    pub interval_us: i64,
    /// Round-trip time of this ACK; -1 without one.
    pub rtt_us: i64,
    /// Segments newly marked lost.
    pub losses: i32,
    /// Segments newly acknowledged or SACKed.
    pub acked_sacked: u32,
    /// Segments in flight before this ACK.
    pub prior_in_flight: u32,
    /// True where the application limited the rate.
    pub is_app_limited: bool,
    /// True where the receiver probably delayed the ACK.
    pub is_ack_delayed: bool,
}

macro_rules! tcp_sock {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $c:literal,)*) => {
        /// The sender's side of a socket. Windows in segments, `_us` in microseconds.
        #[derive(Clone, Debug)]
        #[repr(C)]
        pub struct TcpSock { $($(#[$doc])* pub $field: $type,)* }

        /// Offsets of the fields under their names in C.
        #[cfg(test)]
        const OFFSETS: &[(&str, usize)] = &[
            $(($c, std::mem::offset_of!(TcpSock, $field)),)*
            ("sizeof", size_of::<TcpSock>()),
        ];
    };
}

tcp_sock! {
    /// Address of the receiver in network order.
    skc_daddr: u32 = "inet_conn.icsk_inet.sk.__sk_common.skc_daddr",
    /// Address of the sender in network order.
    skc_rcv_saddr: u32 = "inet_conn.icsk_inet.sk.__sk_common.skc_rcv_saddr",
    /// Port of the receiver in network order.
    skc_dport: u16 = "inet_conn.icsk_inet.sk.__sk_common.skc_dport",
    /// Address family: 2 IPv4, 10 IPv6 (Linux).
    skc_family: u16 = "inet_conn.icsk_inet.sk.__sk_common.skc_family",
    /// The sending host; in the kernel, its network namespace.
    cc_netns: u32 = "inet_conn.icsk_inet.sk.__sk_common.cc_netns",
    /// Address of the receiver in network order, for IPv6.
    skc_v6_daddr: [u32; 4] = "inet_conn.icsk_inet.sk.__sk_common.skc_v6_daddr",
    /// Address of the sender in network order, for IPv6.
    skc_v6_rcv_saddr: [u32; 4] = "inet_conn.icsk_inet.sk.__sk_common.skc_v6_rcv_saddr",
    /// Pacing rate in bytes per second.
    sk_pacing_rate: u64 = "inet_conn.icsk_inet.sk.sk_pacing_rate",
    /// 0 none, 1 requested.
    sk_pacing_status: u32 = "inet_conn.icsk_inet.sk.sk_pacing_status",
    /// The clock in jiffies.
    cc_jiffies: u32 = "inet_conn.icsk_inet.sk.cc_jiffies",
    /// The clock in microseconds.
    cc_clock_us: u64 = "inet_conn.icsk_inet.sk.cc_clock_us",
    /// The instance's parameters.
    cc_parameters: *const u64 = "inet_conn.icsk_inet.sk.cc_parameters",
    /// The instance's groups.
    cc_groups: *const Store = "inet_conn.icsk_inet.sk.cc_groups",
    /// Seed and state of the algorithm's random numbers.
    cc_random_state: u64 = "inet_conn.icsk_inet.sk.cc_random_state",
    /// Largest pacing rate that the application allows, in bytes per second.
    sk_max_pacing_rate: u64 = "inet_conn.icsk_inet.sk.sk_max_pacing_rate",
    /// Bursts of a paced sender take a 2^-N th of a second (Linux: 10).
    sk_pacing_shift: u64 = "inet_conn.icsk_inet.sk.sk_pacing_shift",
    /// Port of the sender in network order.
    inet_sport: u64 = "inet_conn.icsk_inet.inet_sport",
    /// Retransmission timeout in jiffies.
    icsk_rto: u32 = "inet_conn.icsk_rto",
    /// A [`CaState`].
    icsk_ca_state: u8 = "inet_conn.icsk_ca_state",
    /// State of the algorithm.
    icsk_ca_priv: [u64; 13] = "inet_conn.icsk_ca_priv",
    /// Congestion window.
    snd_cwnd: u32 = "snd_cwnd",
    /// Acked segments counted towards the next step of the window.
    snd_cwnd_cnt: u32 = "snd_cwnd_cnt",
    /// Jiffies of the last change or use of the window.
    snd_cwnd_stamp: u32 = "snd_cwnd_stamp",
    /// Upper limit of the window.
    snd_cwnd_clamp: u32 = "snd_cwnd_clamp",
    /// Slow-start threshold.
    snd_ssthresh: u32 = "snd_ssthresh",
    /// Window at the start of the last reduction.
    prior_cwnd: u32 = "prior_cwnd",
    /// ssthresh before it, 0 where it must not be undone.
    prior_ssthresh: u32 = "prior_ssthresh",
    /// End of the last reduction's window.
    high_seq: u32 = "high_seq",
    /// Segments sent and not cumulatively acknowledged.
    packets_out: u32 = "packets_out",
    /// Maximum of `packets_out` in the last window.
    max_packets_out: u32 = "max_packets_out",
    /// Segments SACKed.
    sacked_out: u32 = "sacked_out",
    /// Segments marked lost and not acknowledged.
    lost_out: u32 = "lost_out",
    /// Retransmissions in flight.
    retrans_out: u32 = "retrans_out",
    /// Marks of loss so far, repeated ones included.
    lost: u32 = "lost",
    /// Segments delivered so far.
    delivered: u32 = "delivered",
    /// Retransmissions so far.
    total_retrans: u32 = "total_retrans",
    /// Data segments sent so far, retransmissions included.
    data_segs_out: u32 = "data_segs_out",
    /// Bytes acknowledged so far.
    bytes_acked: u64 = "bytes_acked",
    /// Bytes sent so far, retransmissions included.
    bytes_sent: u64 = "bytes_sent",
    /// Bytes retransmitted so far.
    bytes_retrans: u64 = "bytes_retrans",
    /// First unacknowledged byte.
    snd_una: u32 = "snd_una",
    /// Next byte to send.
    snd_nxt: u32 = "snd_nxt",
    /// End of the application's data.
    write_seq: u32 = "write_seq",
    /// Receiver's window in bytes.
    snd_wnd: u32 = "snd_wnd",
    /// Payload of a full segment in bytes.
    mss_cache: u32 = "mss_cache",
    /// Smoothed round-trip time, in eighths of a microsecond.
    srtt_us: u32 = "srtt_us",
    /// Clock of the current ACK in microseconds.
    tcp_mstamp: u64 = "tcp_mstamp",
    /// Jiffies at which the last data segment was sent.
    lsndtime: u32 = "lsndtime",
    /// 1 where the window limited the last flight.
    is_cwnd_limited: u8 = "is_cwnd_limited",
    /// `delivered` at which the application-limited phase ends, 0 outside of one (tcp_rate.c).
    app_limited: u32 = "app_limited",
    /// When `delivered` last rose, in microseconds.
    delivered_mstamp: u64 = "delivered_mstamp",
    /// Earliest departure of the next paced segment, in nanoseconds.
    tcp_wstamp_ns: u64 = "tcp_wstamp_ns",
    /// The clock in nanoseconds.
    tcp_clock_cache: u64 = "tcp_clock_cache",
    /// Smallest round-trip time in microseconds, `u32::MAX` before the first sample (tcp_min_rtt).
    cc_rtt_min_us: u32 = "cc_rtt_min_us",
    /// Variation of the round-trip time in the scale of Linux's rttvar_us; the owner keeps it.
    cc_rttvar_us: u32 = "cc_rttvar_us",
    /// Round-trip time with which the hook `init` seeds the connection, in the scale of `srtt_us`; 0 for
    /// none.
    cc_seed_srtt_us: u32 = "cc_seed_srtt_us",
    /// The variation with it.
    cc_seed_rttvar_us: u32 = "cc_seed_rttvar_us",
    /// The group whose window the connection shares segment by segment; null for none.
    cc_shared: *const Group = "cc_shared",
}

impl Default for TcpSock {
    fn default() -> TcpSock {
        // SAFETY: every field is an integer, an array of them or a raw pointer: zero is a value.
        unsafe { std::mem::zeroed() }
    }
}

impl TcpSock {
    /// Sets the addresses of both ends, which are of one family.
    pub fn set_addresses(&mut self, local: SocketAddr, remote: SocketAddr) {
        let v6 = |octets: [u8; 16]| {
            std::array::from_fn(|word| {
                u32::from_ne_bytes(std::array::from_fn(|byte| octets[4 * word + byte]))
            })
        };
        match (local.ip(), remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                self.skc_family = AF_INET;
                self.skc_rcv_saddr = u32::from_ne_bytes(local.octets());
                self.skc_daddr = u32::from_ne_bytes(remote.octets());
            }
            (IpAddr::V6(local), IpAddr::V6(remote)) => {
                self.skc_family = AF_INET6;
                self.skc_v6_rcv_saddr = v6(local.octets());
                self.skc_v6_daddr = v6(remote.octets());
                // The kernel keeps both forms of a mapped address.
                let v4 = |address: std::net::Ipv6Addr| {
                    address.to_ipv4_mapped().map_or(0, |v4| u32::from_ne_bytes(v4.octets()))
                };
                self.skc_rcv_saddr = v4(local);
                self.skc_daddr = v4(remote);
            }
            _ => panic!("{local} and {remote} are of two families"),
        }
        self.inet_sport = local.port().to_be().into();
        self.skc_dport = remote.port().to_be();
    }

    /// Segments in flight, as the kernel counts them.
    pub fn in_flight(&self) -> u32 {
        self.packets_out - self.sacked_out - self.lost_out + self.retrans_out
    }
}

/// Offsets as C lays them out (layout.c), under their names in C.
#[cfg(test)]
pub(crate) mod layout {
    use std::ffi::{CStr, c_char};

    #[repr(C)]
    struct Entry {
        name: *const c_char,
        offset: usize,
    }

    unsafe extern "C" {
        static cc_layout: Entry;
        static cc_group_layout: Entry;
    }

    /// The entries of a table up to its end mark.
    fn read(mut entry: *const Entry) -> Vec<(&'static str, usize)> {
        let mut entries = Vec::new();
        loop {
            // SAFETY: called with constants of layout.c only, each an array whose last name is NULL.
            let Entry { name, offset } = unsafe { entry.read() };
            if name.is_null() {
                return entries;
            }
            // SAFETY: a string literal of layout.c; the end mark has not been reached.
            let name = unsafe {
                entry = entry.add(1);
                CStr::from_ptr(name)
            };
            entries.push((name.to_str().unwrap(), offset));
        }
    }

    pub fn of_socket() -> Vec<(&'static str, usize)> {
        read(&raw const cc_layout)
    }

    pub fn of_groups() -> Vec<(&'static str, usize)> {
        read(&raw const cc_group_layout)
    }
}

#[cfg(test)]
mod tests {
    use super::{OFFSETS, layout};

    #[test]
    fn the_mirror_has_the_offsets_of_c() {
        assert_eq!(layout::of_socket(), OFFSETS);
    }
}
