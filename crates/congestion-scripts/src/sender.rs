//! A small TCP sender that calls the hooks in the kernel's order.
//!
//! It follows Linux 6.18 (net/ipv4/tcp_input.c, tcp_output.c, tcp_recovery.c): SACK tagging, queue cleaning,
//! `pkts_acked`, `in_ack_event`, tail-loss probe, the state machine with RACK (RFC 8985) and undo by DSACK,
//! PRR (RFC 9937) or `cong_avoid`, retransmissions, new data. It exists for the acknowledgement scripts: one
//! connection, full segments, a path that delivers every segment after a constant round-trip time unless the
//! script loses or holds it, and a receiver that acknowledges each segment at once.
//!
//! DEVIATION: no F-RTO (as with tcp_frto=0), no timestamps (undo only by DSACK), no pacing (sk_pacing_rate is
//! ignored). Changes of the receiver's window, timeouts and tail-loss probes happen only by the script.
//!
//! This file has the events of a script. `path` carries its segments, `input` takes the ACKs, which go to
//! `rack` (loss detection), `recovery` (the state machine) and `reduction` (PRR), `output` sends.

mod input;
mod output;
mod path;
mod rack;
mod rate;
mod recovery;
mod reduction;

use crate::entry::{Entry, What};
use crate::wire::Wire;
use input::Tlp;
use path::{Receiver, Transmission};
use rack::Rack;
use rate::{Rate, Stamp, check_app_limited};
use recovery::Undo;
use reduction::Prr;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_congestion_native::{CaState, Connection, Groups, INFINITE_SSTHRESH, Instance};

/// Start of time. Not zero, because zero jiffies mean "never".
pub const START_US: u64 = 1_000_000;
/// Microseconds of a jiffy: HZ is 250.
const JIFFY_US: u64 = 4_000;

/// Settings of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Initial window in segments.
    pub initial_window: u32,
    /// Payload of a segment in bytes.
    pub mss: u32,
    /// Round-trip time of the path.
    pub rtt_us: u64,
    /// Retransmission timeout; not adapted.
    pub rto_us: u64,
    /// The kernel's own restart after idle (tcp_slow_start_after_idle).
    pub after_idle: bool,
    /// The receiver.
    pub to: SocketAddr,
    /// Number of the sender's server; senders of one server share groups.
    pub server: u8,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            initial_window: 10,
            mss: 1448,
            rtt_us: 100_000,
            rto_us: 304_000,
            after_idle: true,
            to: (Ipv4Addr::new(10, 0, 0, 2), 50_000).into(),
            server: 0,
        }
    }
}

/// The address of a server towards a receiver.
pub fn local_address(server: u8, to: SocketAddr) -> IpAddr {
    match to {
        // A mapped IPv4 address stays IPv4.
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => {
            Ipv4Addr::new(10, 0, server, 1).to_ipv6_mapped().into()
        }
        SocketAddr::V4(_) => Ipv4Addr::new(10, 0, server, 1).into(),
        SocketAddr::V6(_) => Ipv6Addr::new(0xfd00, 0, 0, server.into(), 0, 0, 0, 1).into(),
    }
}

/// The network of a server's addresses, as in the names of groups.
pub fn network(server: u8, ipv6: bool) -> String {
    if ipv6 {
        let network = Ipv6Addr::new(0xfd00, 0, 0, server.into(), 0, 0, 0, 0);
        return format!("{network}/64");
    }
    format!("10.0.{server}.0/24")
}

/// A segment that is not cumulatively acknowledged.
#[derive(Default)]
struct Segment {
    sent_us: u64,
    sacked: bool,
    lost: bool,
    /// A retransmission of it is in flight.
    retransmitted: bool,
    ever_retransmitted: bool,
    stamp: Stamp,
}

/// The sender, its path and its receiver.
pub struct Sender {
    /// The socket and its congestion control.
    pub connection: Connection,
    config: Config,
    now_us: u64,
    /// Round-trip time of segments sent now.
    rtt_us: u64,
    queue: VecDeque<Segment>,
    /// Number of the queue's first segment.
    first: u64,
    /// Segments written and not sent; `None` is endless.
    unsent: Option<u64>,
    path: VecDeque<Transmission>,
    held: Vec<Transmission>,
    receiver: Receiver,
    rack: Rack,
    rate: Rate,
    min_rtt_us: u64,
    cwnd_usage_seq: u32,
    undo: Undo,
    tlp: Tlp,
    prr: Prr,
    /// Retransmission timeouts since an ACK last advanced.
    timeouts: u32,
    /// Round trips that [`round`](Self::round) has passed.
    pub rounds: u64,
    /// Events of the application and the path so far, for a timetable.
    pub journal: Vec<Entry>,
    /// Place of each transmission in the order of all events.
    pub transmissions: Vec<u64>,
    /// True once the kernel's own restart after idle has changed a window.
    pub restarted: bool,
    wire: Rc<Wire>,
}

impl Sender {
    /// A new, established connection with nothing to send.
    pub fn open(instance: Arc<Instance>, config: Config) -> Sender {
        Sender::open_among(instance, config, Groups::new(), Rc::default(), START_US)
    }

    /// Like [`open`](Self::open), but at a given time and with the other connections of `groups` and `wire`.
    pub fn open_among(
        instance: Arc<Instance>,
        config: Config,
        groups: Rc<Groups>,
        wire: Rc<Wire>,
        now_us: u64,
    ) -> Sender {
        let mut connection = Connection::among(instance, groups);
        connection.tp.set_addresses((local_address(config.server, config.to), 443).into(), config.to);
        let tp = &mut connection.tp;
        tp.snd_cwnd = config.initial_window;
        tp.snd_ssthresh = INFINITE_SSTHRESH;
        tp.snd_cwnd_clamp = u32::MAX;
        tp.mss_cache = config.mss;
        tp.snd_wnd = u32::MAX;
        tp.srtt_us = (config.rtt_us * 8) as u32;
        tp.cc_rtt_min_us = config.rtt_us as u32;
        tp.sk_max_pacing_rate = u64::MAX;
        tp.sk_pacing_shift = 10;
        tp.icsk_rto = (config.rto_us / JIFFY_US) as u32;
        let mut sender = Sender {
            connection,
            config,
            rtt_us: config.rtt_us,
            now_us,
            queue: VecDeque::new(),
            first: 0,
            unsent: Some(0),
            path: VecDeque::new(),
            held: Vec::new(),
            receiver: Receiver::default(),
            rack: Rack { rtt_us: config.rtt_us, ..Rack::default() },
            rate: Rate::default(),
            min_rtt_us: config.rtt_us,
            cwnd_usage_seq: 0,
            undo: Undo::default(),
            tlp: Tlp::default(),
            prr: Prr::default(),
            timeouts: 0,
            rounds: 0,
            journal: Vec::new(),
            transmissions: Vec::new(),
            restarted: false,
            wire,
        };
        sender.set_clock(sender.now_us);
        sender.connection.tp.lsndtime = sender.connection.tp.cc_jiffies;
        sender.note(What::Open);
        sender.connection.init();
        sender
    }

    /// The application writes `segments`; `None` is endless.
    pub fn write(&mut self, segments: Option<u64>) {
        self.note(What::Write(segments));
        let own_rule = self.connection.has_cong_control();
        let tp = &mut self.connection.tp;
        check_app_limited(tp, self.unsent == Some(0));
        if self.config.after_idle && !own_rule && tp.packets_out == 0 {
            let idle = tp.cc_jiffies - tp.lsndtime;
            if idle > tp.icsk_rto {
                self.restart_after_idle(idle);
            }
        }
        self.unsent = match (self.unsent, segments) {
            (Some(waiting), Some(more)) => Some(waiting + more),
            _ => None,
        };
        self.send();
    }

    /// The application stops writing; unsent segments are dropped.
    pub fn stop_writing(&mut self) {
        self.note(What::StopWriting);
        self.unsent = Some(0);
        self.note_write_seq();
    }

    /// The sender's clock.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Round-trip time of segments sent now.
    pub fn rtt_us(&self) -> u64 {
        self.rtt_us
    }

    /// The connection ends.
    pub fn close(&mut self) {
        self.note(What::Close);
        self.connection.release();
    }

    /// All segments in flight arrive, one ACK each.
    pub fn round(&mut self) {
        self.rounds += 1;
        match self.on_the_way() {
            0 => self.advance(self.rtt_us),
            arrivals => drop(self.ack(arrivals, false)),
        }
    }

    /// True once everything written is acknowledged.
    pub fn finished(&self) -> bool {
        self.unsent == Some(0) && self.queue.is_empty()
    }

    /// When the retransmission timer fires: one timeout after the last segment was sent.
    pub fn timeout_us(&self) -> u64 {
        self.now_us.max(u64::from(self.connection.tp.lsndtime) * JIFFY_US + self.config.rto_us)
    }

    /// The retransmission timer fires.
    pub fn timeout(&mut self) {
        self.set_clock(self.timeout_us());
        self.note(What::Timeout);
        self.enter_loss();
        self.timeouts += 1;
        self.retransmit(0);
        self.connection.tp.icsk_rto *= 2;
    }

    /// The tail-loss probe fires after two round trips: it sends new data, or else the last segment again.
    pub fn probe(&mut self) {
        self.set_clock(self.now_us + 2 * self.rtt_us);
        self.note(What::Probe);
        self.tlp.retransmitted = self.unsent == Some(0);
        if self.tlp.retransmitted {
            self.repeat(self.queue.len() - 1);
        } else {
            self.connection.min_tso_segs();
            self.transmit_new();
        }
        self.tlp.high_seq = Some(self.connection.tp.snd_nxt);
    }

    /// The receiver offers a window of `segments` segments.
    pub fn set_receive_window(&mut self, segments: u32) {
        self.note(What::ReceiveWindow);
        let tp = &mut self.connection.tp;
        tp.snd_wnd = segments.saturating_mul(tp.mss_cache);
        self.send();
    }

    /// The rest of the script is for this sender only; a real path would behave differently.
    pub fn native_only(&mut self, reason: String) {
        self.note(What::NativeOnly(reason));
    }

    /// The queue of the sender's own host refused a segment (NET_XMIT_CN).
    pub fn local_drop(&mut self) {
        self.note(What::LocalDrop);
        self.enter_cwr();
    }

    /// Changes the congestion control of the open connection.
    pub fn switch(&mut self, instance: Arc<Instance>) {
        self.note(What::Switch(instance.clone()));
        self.connection.switch(instance);
    }

    fn note(&mut self, what: What) {
        let tp = &self.connection.tp;
        self.journal.push(Entry {
            order: self.wire.next(),
            at_us: self.now_us,
            delivered: tp.delivered,
            sent: tp.data_segs_out,
            retransmitted: tp.total_retrans,
            what,
        });
    }

    /// Current state.
    pub fn state(&self) -> CaState {
        match self.connection.tp.icsk_ca_state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }
}
