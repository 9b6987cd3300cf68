//! A small TCP sender that calls the hooks in the kernel's order.
//!
//! It follows Linux 6.18 (net/ipv4/tcp_input.c, tcp_output.c, tcp_recovery.c): SACK tagging,
//! queue cleaning, `pkts_acked`, `in_ack_event`, tail-loss probe, the state machine with RACK
//! (RFC 8985) and undo by DSACK, PRR (RFC 9937) or `cong_avoid`, retransmissions, new data. It
//! exists for the acknowledgement scripts: one connection, full segments, a path that delivers
//! everything after one constant round-trip time unless told to lose or hold it, and a receiver
//! that answers each segment at once.
//!
//! DEVIATION: no F-RTO (as with tcp_frto=0), no timestamps (undo only by DSACK), no pacing, whatever
//! sk_pacing_rate says; the receiver's window only changes, and timeouts and tail-loss probes only
//! happen, when the script says so.

use crate::concurrent::Wire;
use crate::rate::{Rate, Stamp, check_app_limited};
use crate::timetable::{Entry, What};
use crate::{AckSample, CaEvent, CaState, Connection, Groups, INFINITE_SSTHRESH, Instance, ack_flags};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// Microseconds of a jiffy: HZ is 250.
const JIFFY_US: u64 = 4_000;
/// SACKed segments from which on RACK tolerates no reordering (tcp_reordering).
const DUP_THRESH: u32 = 3;
const CWND_CLAMP: u32 = u32::MAX;

/// What a connection starts with.
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
        }
    }
}

/// The sender's address towards a receiver.
fn local_address(to: SocketAddr) -> IpAddr {
    match to {
        SocketAddr::V4(_) => Ipv4Addr::new(10, 0, 0, 1).into(),
        SocketAddr::V6(_) => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into(),
    }
}

/// A segment that is not acknowledged by number.
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

/// One passage of a segment over the path.
struct Transmission {
    segment: u64,
    due_us: u64,
    /// Which of the sender's data packets it is, from 1.
    number: u32,
}

#[derive(Default)]
struct Receiver {
    /// First segment that has not arrived.
    next: u64,
    /// Segments beyond it that have.
    beyond: BTreeSet<u64>,
}

#[derive(Default)]
struct Ack {
    next: u64,
    sacked: Vec<u64>,
    duplicates: u32,
    ece: bool,
}

/// What the state machine and cleaning found in the ACK at hand.
#[derive(Clone, Copy, Default)]
struct Found {
    una_advanced: bool,
    data_sacked: bool,
    duplicate: bool,
    ece: bool,
    lost_retransmission: bool,
}

/// The newest delivered transmission, as RACK remembers it.
#[derive(Clone, Copy, Default)]
struct Rack {
    sent_us: u64,
    segment: u64,
    rtt_us: u64,
}

/// The sender, its path and its receiver.
pub struct Sender {
    /// The socket and its congestion control.
    pub connection: Connection,
    config: Config,
    now_us: u64,
    /// Round-trip time of the path from now on.
    rtt_us: u64,
    queue: VecDeque<Segment>,
    /// Number of the queue's first segment.
    first: u64,
    /// Segments that the application wrote and TCP has not sent; `None` never ends.
    unsent: Option<u64>,
    path: VecDeque<Transmission>,
    held: Vec<Transmission>,
    receiver: Receiver,
    rack: Rack,
    rate: Rate,
    reorder_timer_us: Option<u64>,
    min_rtt_us: u64,
    cwnd_usage_seq: u32,
    undo_marker: Option<u32>,
    undo_retrans: i64,
    tlp_high_seq: Option<u32>,
    tlp_retransmitted: bool,
    prr_delivered: u32,
    prr_out: u32,
    timeouts: u32,
    /// Round trips that [`round`](Self::round) has passed.
    pub rounds: u64,
    /// What the application and the path did so far, for a timetable.
    pub journal: Vec<Entry>,
    /// Place of each transmission in the order of all that happened.
    pub transmissions: Vec<u64>,
    /// True once the kernel's own restart after idle has changed a window.
    pub restarted: bool,
    wire: Rc<Wire>,
}

impl Sender {
    /// A connection that has just been established and has nothing to send.
    pub fn open(instance: Arc<Instance>, config: Config) -> Sender {
        // Not zero: jiffies and times of "never" must differ from the start.
        Sender::open_among(instance, config, Groups::new(), Rc::default(), 1_000_000)
    }

    /// As [`open`](Self::open), at a time and together with the other connections of `groups` and `wire`.
    pub fn open_among(
        instance: Arc<Instance>,
        config: Config,
        groups: Rc<Groups>,
        wire: Rc<Wire>,
        now_us: u64,
    ) -> Sender {
        let mut connection = Connection::among(instance, groups);
        connection.tp.set_addresses((local_address(config.to), 443).into(), config.to);
        let tp = &mut connection.tp;
        tp.snd_cwnd = config.initial_window;
        tp.snd_ssthresh = INFINITE_SSTHRESH;
        tp.snd_cwnd_clamp = CWND_CLAMP;
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
            reorder_timer_us: None,
            min_rtt_us: config.rtt_us,
            cwnd_usage_seq: 0,
            undo_marker: None,
            undo_retrans: 0,
            tlp_high_seq: None,
            tlp_retransmitted: false,
            prr_delivered: 0,
            prr_out: 0,
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

    // ---- what a script does -------------------------------------------------------------------

    /// The application writes `segments`, or without end.
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

    /// The application has nothing more to write; what waits is forgotten.
    pub fn stop_writing(&mut self) {
        self.note(What::StopWriting);
        self.unsent = Some(0);
        self.note_write_seq();
    }

    /// Time passes; what arrives within it is acknowledged.
    pub fn advance(&mut self, us: u64) {
        self.advance_to(self.now_us + us);
    }

    /// As [`advance`](Self::advance), until a time; nothing where it has passed.
    pub fn advance_to(&mut self, end: u64) {
        while self.step(end) {}
        self.set_clock(end);
    }

    /// The sender's clock.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// When the next segment arrives or the reordering timer fires.
    pub fn due_us(&self) -> Option<u64> {
        self.path.front().map(|t| t.due_us).into_iter().chain(self.reorder_timer_us).min()
    }

    /// Round-trip time of what is sent now.
    pub fn rtt_us(&self) -> u64 {
        self.rtt_us
    }

    /// Segments on their way to the receiver and back.
    pub fn on_the_way(&self) -> u64 {
        self.path.len() as u64
    }

    /// The connection ends.
    pub fn close(&mut self) {
        self.note(What::Close);
        self.connection.release();
    }

    /// The next `arrivals` segments arrive, one ACK each; false where nothing was in flight.
    pub fn ack(&mut self, arrivals: u64, ece: bool) -> bool {
        for _ in 0..arrivals {
            let Some(due) = self.path.front().map(|t| t.due_us) else { return false };
            while self.reorder_timer_us.is_some_and(|timer| timer < due) {
                self.step(due);
            }
            self.arrive(1, ece);
        }
        true
    }

    /// The next `arrivals` segments arrive and are answered by a single ACK.
    pub fn stretch(&mut self, arrivals: u64, ece: bool) -> bool {
        let enough = self.path.len() as u64 >= arrivals;
        if enough {
            self.arrive(arrivals, ece);
        }
        enough
    }

    /// All that is in flight arrives, one ACK each.
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

    /// `count` transmissions in flight vanish, the first being the `at`-th (from 1).
    pub fn lose(&mut self, count: usize, at: usize) -> bool {
        let Some(taken) = self.take(count, at) else { return false };
        self.note(What::Lose(taken.iter().map(|t| t.number).collect()));
        true
    }

    /// As [`lose`](Self::lose), but they arrive at [`release_held`](Self::release_held).
    pub fn hold(&mut self, count: usize, at: usize) -> bool {
        let Some(taken) = self.take(count, at) else { return false };
        self.note(What::Hold(taken.iter().map(|t| (t.number, t.due_us)).collect()));
        self.held.extend(taken);
        true
    }

    /// What was held arrives now.
    pub fn release_held(&mut self) {
        self.note(What::Release);
        for transmission in std::mem::take(&mut self.held) {
            self.note(What::Arrive { data: vec![transmission.number], ece: false });
            let ack = self.receive([transmission.segment]);
            self.on_ack(ack);
        }
    }

    fn take(&mut self, count: usize, at: usize) -> Option<Vec<Transmission>> {
        let range = (at - 1)..(at - 1 + count);
        (range.end <= self.path.len()).then(|| self.path.drain(range).collect())
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

    /// The tail-loss probe fires after two round trips: new data where there is some, else the
    /// last segment again.
    pub fn probe(&mut self) {
        self.set_clock(self.now_us + 2 * self.rtt_us);
        self.note(What::Probe);
        self.tlp_retransmitted = self.unsent == Some(0);
        if self.tlp_retransmitted {
            self.repeat(self.queue.len() - 1);
        } else {
            self.connection.min_tso_segs();
            self.transmit_new();
        }
        self.tlp_high_seq = Some(self.connection.tp.snd_nxt);
    }

    /// What is sent from now on takes `us` to be acknowledged; false below the path's first
    /// round-trip time.
    pub fn set_rtt(&mut self, us: u64) -> bool {
        let allowed = us >= self.config.rtt_us;
        if allowed {
            self.rtt_us = us;
        }
        allowed
    }

    /// The receiver offers a window of so many segments.
    pub fn set_receive_window(&mut self, segments: u32) {
        self.note(What::ReceiveWindow);
        let tp = &mut self.connection.tp;
        tp.snd_wnd = segments.saturating_mul(tp.mss_cache);
        self.send();
    }

    /// What follows is for this sender alone: a real path would do something else.
    pub fn native_only(&mut self, reason: String) {
        self.note(What::NativeOnly(reason));
    }

    /// The queue of the sender's own host refused a segment (NET_XMIT_CN).
    pub fn local_drop(&mut self) {
        self.note(What::LocalDrop);
        self.enter_cwr();
    }

    /// Changes the congestion control of the living connection.
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

    // ---- the path and the clock ---------------------------------------------------------------

    /// Time passes until `us`; it never runs back.
    fn set_clock(&mut self, us: u64) {
        let us = self.now_us.max(us);
        self.now_us = us;
        let tp = &mut self.connection.tp;
        tp.cc_clock_us = us;
        tp.tcp_mstamp = us;
        tp.tcp_clock_cache = us * 1000;
        tp.cc_jiffies = (us / JIFFY_US) as u32;
    }

    /// Carries out the next thing that is due until `end`; false when there is none.
    pub(crate) fn step(&mut self, end: u64) -> bool {
        let arrival = self.path.front().map_or(u64::MAX, |t| t.due_us);
        let timer = self.reorder_timer_us.unwrap_or(u64::MAX);
        if arrival.min(timer) > end {
            return false;
        }
        if arrival <= timer {
            self.arrive(1, false);
        } else {
            self.set_clock(timer);
            self.reorder_timeout();
        }
        true
    }

    fn arrive(&mut self, count: u64, ece: bool) {
        let arrived: Vec<Transmission> = self.path.drain(..count as usize).collect();
        self.set_clock(arrived[arrived.len() - 1].due_us);
        self.note(What::Arrive { data: arrived.iter().map(|t| t.number).collect(), ece });
        let ack = Ack { ece, ..self.receive(arrived.iter().map(|t| t.segment)) };
        self.on_ack(ack);
    }

    fn receive(&mut self, segments: impl IntoIterator<Item = u64>) -> Ack {
        let receiver = &mut self.receiver;
        let mut duplicates = 0;
        for segment in segments {
            if segment < receiver.next || !receiver.beyond.insert(segment) {
                duplicates += 1;
            }
            while receiver.beyond.remove(&receiver.next) {
                receiver.next += 1;
            }
        }
        Ack { next: receiver.next, sacked: receiver.beyond.iter().copied().collect(), duplicates, ece: false }
    }

    // ---- sending ------------------------------------------------------------------------------

    /// tcp_write_xmit: sends new data as far as the window allows.
    fn send(&mut self) {
        self.note_write_seq();
        if self.unsent == Some(0) {
            return;
        }
        self.connection.min_tso_segs();
        let mut sent = 0;
        while self.unsent != Some(0) && self.connection.tp.in_flight() < self.connection.tp.snd_cwnd {
            let tp = &self.connection.tp;
            if tp.snd_wnd - (tp.snd_nxt - tp.snd_una).min(tp.snd_wnd) < tp.mss_cache {
                break;
            }
            self.transmit_new();
            sent += 1;
        }
        if self.in_reduction() {
            self.prr_out += sent;
        }
        let limited = self.connection.tp.in_flight() >= self.connection.tp.snd_cwnd;
        if sent > 0 || limited {
            self.validate_cwnd(limited);
        }
    }

    fn transmit_new(&mut self) {
        let segment = self.first + self.queue.len() as u64;
        self.queue.push_back(Segment::default());
        self.transmit(segment);
        self.unsent = self.unsent.map(|unsent| unsent - 1);
        let tp = &mut self.connection.tp;
        tp.packets_out += 1;
        tp.snd_nxt += tp.mss_cache;
        self.note_write_seq();
    }

    /// write_seq: at least one segment ahead of snd_nxt while there is more to send.
    fn note_write_seq(&mut self) {
        let tp = &mut self.connection.tp;
        tp.write_seq = tp.snd_nxt + self.unsent.unwrap_or(1).min(1) as u32 * tp.mss_cache;
    }

    fn transmit(&mut self, segment: u64) {
        if self.connection.tp.in_flight() == 0 {
            self.connection.cwnd_event(CaEvent::TxStart);
        }
        let tp = &mut self.connection.tp;
        tp.lsndtime = tp.cc_jiffies;
        tp.data_segs_out += 1;
        tp.bytes_sent += u64::from(tp.mss_cache);
        let stamp = self.rate.sent(tp, self.now_us);
        let sent = &mut self.queue[(segment - self.first) as usize];
        sent.sent_us = self.now_us;
        sent.stamp = stamp;
        let earliest = self.path.back().map_or(0, |last| last.due_us + 1);
        let due_us = earliest.max(self.wire.due_us(self.now_us, self.rtt_us));
        let number = self.connection.tp.data_segs_out;
        self.transmissions.push(self.wire.next());
        self.path.push_back(Transmission { segment, due_us, number });
        if self.rtt_us > self.config.rtt_us {
            self.note(What::Delay(number, self.rtt_us - self.config.rtt_us));
        }
    }

    /// tcp_retransmit_skb of the queue's `index`-th segment.
    fn retransmit(&mut self, index: usize) {
        self.repeat(index);
        self.queue[index].retransmitted = true;
        self.connection.tp.retrans_out += 1;
        self.undo_retrans = self.undo_retrans.max(0) + 1;
    }

    /// __tcp_retransmit_skb: sends a segment again, also as a tail-loss probe.
    fn repeat(&mut self, index: usize) {
        self.transmit(self.first + index as u64);
        self.queue[index].ever_retransmitted = true;
        let tp = &mut self.connection.tp;
        tp.total_retrans += 1;
        tp.bytes_retrans += u64::from(tp.mss_cache);
    }

    /// tcp_xmit_retransmit_queue: retransmits what is lost as far as the window allows.
    fn retransmit_lost(&mut self) {
        if self.connection.tp.packets_out == 0 {
            return;
        }
        self.connection.min_tso_segs();
        for index in 0..self.queue.len() {
            let tp = &self.connection.tp;
            if tp.in_flight() >= tp.snd_cwnd || tp.retrans_out >= tp.lost_out {
                break;
            }
            if self.queue[index].lost && !self.queue[index].retransmitted {
                self.retransmit(index);
                if self.in_reduction() {
                    self.prr_out += 1;
                }
            }
        }
    }

    /// tcp_cwnd_validate without its idle decay, which never fires while ACKs come.
    fn validate_cwnd(&mut self, limited: bool) {
        let tp = &mut self.connection.tp;
        if tp.snd_una >= self.cwnd_usage_seq
            || limited
            || (tp.is_cwnd_limited == 0 && tp.packets_out > tp.max_packets_out)
        {
            tp.is_cwnd_limited = limited.into();
            tp.max_packets_out = tp.packets_out;
            self.cwnd_usage_seq = tp.snd_nxt;
        }
    }

    /// tcp_cwnd_restart: the kernel's own decay after `idle` jiffies.
    fn restart_after_idle(&mut self, idle: u32) {
        let cwnd = self.connection.tp.snd_cwnd;
        self.connection.cwnd_event(CaEvent::CwndRestart);
        let ssthresh = self.current_ssthresh();
        let tp = &mut self.connection.tp;
        let floor = self.config.initial_window.min(cwnd);
        let halvings = idle.saturating_sub(1) / tp.icsk_rto;
        self.restarted |= (cwnd >> halvings.min(31)).max(floor) != cwnd || tp.snd_ssthresh != ssthresh;
        tp.snd_ssthresh = ssthresh;
        tp.snd_cwnd = (cwnd >> halvings.min(31)).max(floor);
        tp.snd_cwnd_stamp = tp.cc_jiffies;
    }

    // ---- an ACK -------------------------------------------------------------------------------

    /// tcp_ack.
    fn on_ack(&mut self, ack: Ack) {
        let before = self.connection.tp.clone();
        let mut found = Found { ece: ack.ece, duplicate: ack.duplicates > 0, ..Found::default() };
        self.undo_retrans -= i64::from(ack.duplicates).min(self.undo_retrans.max(0));
        // tcp_dsack_seen: a needless retransmission counts as delivered.
        self.connection.tp.delivered += ack.duplicates;

        let mut rtt_us = None;
        for &segment in &ack.sacked {
            found.data_sacked |= self.sack(segment, &mut rtt_us);
        }
        let acked = self.clean(ack.next, &mut rtt_us);
        found.una_advanced = acked > 0;
        if let Some(rtt) = rtt_us {
            self.min_rtt_us = self.min_rtt_us.min(rtt);
            let tp = &mut self.connection.tp;
            tp.cc_rtt_min_us = self.min_rtt_us as u32;
            tp.srtt_us = tp.srtt_us - tp.srtt_us / 8 + rtt as u32;
        }
        if before.packets_out > 0 {
            self.connection.pkts_acked(AckSample {
                pkts_acked: acked,
                rtt_us: rtt_us.map_or(-1, |rtt| rtt as i32),
                in_flight: before.in_flight(),
            });
        }
        let slow = !ack.sacked.is_empty() || ack.ece || acked == 0;
        self.connection.in_ack_event(
            if slow { ack_flags::SLOWPATH } else { ack_flags::WIN_UPDATE }
                | if ack.ece { ack_flags::ECE } else { 0 },
        );

        self.process_probe_ack(found);
        let dubious = !found.una_advanced || found.data_sacked || found.ece || found.duplicate;
        let repair = (dubious || self.state() != CaState::Open) && self.state_machine(found);
        let tp = &mut self.connection.tp;
        let (delivered, lost) = (tp.delivered - before.delivered, tp.lost - before.lost);
        let sample = self.rate.sample(tp, self.now_us, delivered, lost, before.in_flight(), rtt_us);
        if before.packets_out > 0 {
            if self.connection.has_cong_control() {
                let number = self.connection.tp.snd_una;
                self.connection.cong_control(number, 0, sample);
            } else if self.in_reduction() {
                self.reduce_cwnd(delivered, lost > 0, found.una_advanced);
            } else if found.una_advanced {
                let number = self.connection.tp.snd_una;
                self.connection.cong_avoid(number, delivered);
                self.stamp_cwnd();
            }
        }
        if repair {
            self.retransmit_lost();
        }
        self.send();
    }

    /// tcp_sacktag_one; true where the SACK is news.
    fn sack(&mut self, number: u64, rtt_us: &mut Option<u64>) -> bool {
        let Some(segment) =
            number.checked_sub(self.first).and_then(|index| self.queue.get_mut(index as usize))
        else {
            return false;
        };
        if segment.sacked {
            return false;
        }
        let tp = &mut self.connection.tp;
        segment.sacked = true;
        tp.sacked_out += 1;
        tp.delivered += 1;
        if std::mem::take(&mut segment.lost) {
            tp.lost_out -= 1;
        }
        if std::mem::take(&mut segment.retransmitted) {
            tp.retrans_out -= 1;
        }
        let (sent, repeated) = (segment.sent_us, segment.ever_retransmitted);
        self.rate.delivered(number, sent, segment.stamp);
        self.note_delivery(number, sent, repeated, rtt_us);
        true
    }

    /// tcp_clean_rtx_queue; the number of segments newly acknowledged.
    fn clean(&mut self, next: u64, rtt_us: &mut Option<u64>) -> u32 {
        let mut acked = 0;
        while self.first < next {
            let segment = self.queue.pop_front().expect("only what was sent is acknowledged");
            let tp = &mut self.connection.tp;
            tp.packets_out -= 1;
            tp.lost_out -= u32::from(segment.lost);
            tp.retrans_out -= u32::from(segment.retransmitted);
            tp.sacked_out -= u32::from(segment.sacked);
            tp.delivered += u32::from(!segment.sacked);
            tp.snd_una += tp.mss_cache;
            tp.bytes_acked += u64::from(tp.mss_cache);
            if !segment.sacked {
                self.rate.delivered(self.first, segment.sent_us, segment.stamp);
                self.note_delivery(self.first, segment.sent_us, segment.ever_retransmitted, rtt_us);
            }
            self.first += 1;
            acked += 1;
        }
        if acked > 0 {
            self.timeouts = 0;
            self.connection.tp.icsk_rto = (self.config.rto_us / JIFFY_US) as u32;
        }
        acked
    }

    /// tcp_rack_advance and the round-trip sample (Karn: none from a repeated segment).
    fn note_delivery(&mut self, segment: u64, sent_us: u64, repeated: bool, rtt_us: &mut Option<u64>) {
        let rtt = self.now_us - sent_us;
        if repeated && rtt < self.min_rtt_us {
            return; // the ACK is for an earlier transmission
        }
        if !repeated {
            *rtt_us = Some(rtt);
        }
        if (sent_us, segment) > (self.rack.sent_us, self.rack.segment) {
            self.rack = Rack { sent_us, segment, rtt_us: rtt };
        }
    }

    /// tcp_process_tlp_ack.
    fn process_probe_ack(&mut self, found: Found) {
        let Some(high) = self.tlp_high_seq else { return };
        let una = self.connection.tp.snd_una;
        if una < high {
            return;
        }
        if !self.tlp_retransmitted || found.duplicate {
            self.tlp_high_seq = None;
        } else if una > high {
            self.init_reduction();
            self.set_state(CaState::Cwr);
            self.end_reduction();
            self.keep_open();
        }
    }

    /// tcp_fastretrans_alert; true where lost segments are to be retransmitted.
    fn state_machine(&mut self, found: Found) -> bool {
        let mut found = found;
        if found.ece {
            self.connection.tp.prior_ssthresh = 0;
        }
        let (una, high) = (self.connection.tp.snd_una, self.connection.tp.high_seq);
        match self.state() {
            CaState::Cwr if una > high => {
                self.end_reduction();
                self.set_state(CaState::Open);
            }
            CaState::Recovery if una >= high => {
                self.undo_recovery();
                self.end_reduction();
            }
            _ => {}
        }
        match self.state() {
            CaState::Recovery => {
                if self.undo_by_dsack() {
                    self.try_to_open(found);
                }
                self.detect_loss(&mut found);
                if self.state() != CaState::Recovery {
                    if self.connection.tp.lost_out == 0 {
                        return false;
                    }
                    self.enter_recovery(found.ece);
                }
                return true;
            }
            CaState::Loss => {
                self.process_loss(found);
                self.detect_loss(&mut found);
                if self.state() != CaState::Open && !found.lost_retransmission {
                    return true;
                }
            }
            _ => {}
        }
        if self.state() <= CaState::Disorder {
            self.undo_by_dsack();
        }
        self.detect_loss(&mut found);
        if self.connection.tp.lost_out == 0 {
            self.try_to_open(found);
            return false;
        }
        self.enter_recovery(found.ece);
        true
    }

    fn process_loss(&mut self, found: Found) {
        if found.una_advanced && self.may_undo() {
            self.undo_reduction(true);
            self.set_state(CaState::Open);
        } else if self.connection.tp.snd_una >= self.connection.tp.high_seq {
            self.undo_recovery();
        }
    }

    // ---- loss detection (RACK) ----------------------------------------------------------------

    /// tcp_rack_detect_loss.
    fn detect_loss(&mut self, found: &mut Found) {
        let tp = &self.connection.tp;
        let strict = self.state() >= CaState::Recovery || tp.sacked_out >= DUP_THRESH;
        let window = if strict { 0 } else { (self.min_rtt_us / 4).min(u64::from(tp.srtt_us >> 3)) };
        self.reorder_timer_us = None;
        if self.rack.sent_us == 0 {
            return;
        }
        for index in 0..self.queue.len() {
            let segment = &self.queue[index];
            let newer = (segment.sent_us, self.first + index as u64) > (self.rack.sent_us, self.rack.segment);
            if segment.sacked || newer || (segment.lost && !segment.retransmitted) {
                continue;
            }
            let deadline = segment.sent_us + self.rack.rtt_us + window;
            if deadline <= self.now_us {
                found.lost_retransmission |= segment.retransmitted;
                self.mark_lost(index);
            } else {
                self.reorder_timer_us = Some(self.reorder_timer_us.unwrap_or(0).max(deadline));
            }
        }
    }

    /// tcp_mark_skb_lost.
    fn mark_lost(&mut self, index: usize) {
        let segment = &mut self.queue[index];
        let tp = &mut self.connection.tp;
        if segment.sacked {
            return;
        }
        if segment.lost {
            if std::mem::take(&mut segment.retransmitted) {
                tp.retrans_out -= 1;
                tp.lost += 1;
            }
        } else {
            segment.lost = true;
            tp.lost_out += 1;
            tp.lost += 1;
        }
    }

    /// tcp_rack_reo_timeout.
    fn reorder_timeout(&mut self) {
        self.reorder_timer_us = None;
        let before = self.connection.tp.in_flight();
        self.detect_loss(&mut Found::default());
        if self.connection.tp.in_flight() != before {
            if self.state() != CaState::Recovery {
                self.enter_recovery(false);
                if !self.connection.has_cong_control() {
                    self.reduce_cwnd(1, true, false);
                }
            }
            self.retransmit_lost();
        }
    }

    // ---- reductions ---------------------------------------------------------------------------

    fn in_reduction(&self) -> bool {
        matches!(self.state(), CaState::Cwr | CaState::Recovery)
    }

    fn set_state(&mut self, state: CaState) {
        self.connection.set_state(state as u8);
        self.connection.tp.icsk_ca_state = state as u8;
    }

    fn stamp_cwnd(&mut self) {
        let tp = &mut self.connection.tp;
        tp.snd_cwnd_stamp = tp.cc_jiffies;
    }

    fn current_ssthresh(&self) -> u32 {
        let tp = &self.connection.tp;
        if self.in_reduction() {
            tp.snd_ssthresh
        } else {
            tp.snd_ssthresh.max((tp.snd_cwnd >> 1) + (tp.snd_cwnd >> 2))
        }
    }

    /// tcp_init_cwnd_reduction.
    fn init_reduction(&mut self) {
        self.tlp_high_seq = None;
        self.prr_delivered = 0;
        self.prr_out = 0;
        let tp = &mut self.connection.tp;
        tp.high_seq = tp.snd_nxt;
        tp.snd_cwnd_cnt = 0;
        tp.prior_cwnd = tp.snd_cwnd;
        self.connection.tp.snd_ssthresh = self.connection.ssthresh();
    }

    /// tcp_end_cwnd_reduction.
    fn end_reduction(&mut self) {
        if self.connection.has_cong_control() {
            return;
        }
        let cwr = self.state() == CaState::Cwr;
        let tp = &mut self.connection.tp;
        if tp.snd_ssthresh < INFINITE_SSTHRESH && (cwr || self.undo_marker.is_some()) {
            tp.snd_cwnd = tp.snd_ssthresh;
            tp.snd_cwnd_stamp = tp.cc_jiffies;
        }
        self.connection.cwnd_event(CaEvent::CompleteCwr);
    }

    /// tcp_cwnd_reduction: proportional rate reduction (RFC 9937).
    fn reduce_cwnd(&mut self, delivered: u32, marked: bool, una_advanced: bool) {
        if delivered == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let tp = &mut self.connection.tp;
        let pipe = i64::from(tp.in_flight());
        let ssthresh = i64::from(tp.snd_ssthresh);
        let (done, out) = (i64::from(self.prr_delivered), i64::from(self.prr_out));
        let allowance = if pipe > ssthresh {
            (ssthresh * done + i64::from(tp.prior_cwnd) - 1) / i64::from(tp.prior_cwnd) - out
        } else {
            let slow_start = i64::from(una_advanced && !marked);
            ((done - out).max(i64::from(delivered)) + slow_start).min(ssthresh - pipe)
        };
        tp.snd_cwnd = (pipe + allowance.max(i64::from(out == 0))).max(1) as u32;
    }

    fn init_undo(&mut self) {
        let tp = &self.connection.tp;
        self.undo_marker = Some(tp.snd_una);
        self.undo_retrans = if tp.retrans_out > 0 { i64::from(tp.retrans_out) } else { -1 };
    }

    /// tcp_enter_recovery.
    fn enter_recovery(&mut self, ece: bool) {
        self.connection.tp.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_reduction() {
            if !ece {
                self.connection.tp.prior_ssthresh = self.current_ssthresh();
            }
            self.init_reduction();
        }
        self.set_state(CaState::Recovery);
    }

    /// tcp_enter_cwr.
    fn enter_cwr(&mut self) {
        self.connection.tp.prior_ssthresh = 0;
        if self.state() < CaState::Cwr {
            self.undo_marker = None;
            self.init_reduction();
            self.set_state(CaState::Cwr);
        }
    }

    /// tcp_enter_loss.
    fn enter_loss(&mut self) {
        for index in 0..self.queue.len() {
            let recent = self.queue[index].sent_us + self.rack.rtt_us > self.now_us;
            if index == 0 || !recent {
                self.mark_lost(index);
            }
        }
        let tp = &self.connection.tp;
        let again = self.state() == CaState::Loss && self.timeouts == 0;
        if self.state() <= CaState::Disorder || tp.high_seq <= tp.snd_una || again {
            let prior = self.current_ssthresh();
            let tp = &mut self.connection.tp;
            tp.prior_ssthresh = prior;
            tp.prior_cwnd = tp.snd_cwnd;
            self.connection.tp.snd_ssthresh = self.connection.ssthresh();
            self.connection.cwnd_event(CaEvent::Loss);
            self.init_undo();
        }
        let tp = &mut self.connection.tp;
        tp.snd_cwnd = tp.in_flight() + 1;
        tp.snd_cwnd_cnt = 0;
        self.stamp_cwnd();
        self.set_state(CaState::Loss);
        let tp = &mut self.connection.tp;
        tp.high_seq = tp.snd_nxt;
    }

    /// tcp_try_to_open.
    fn try_to_open(&mut self, found: Found) {
        if found.ece {
            self.enter_cwr();
        }
        if self.state() != CaState::Cwr {
            self.keep_open();
        }
    }

    /// tcp_try_keep_open.
    fn keep_open(&mut self) {
        let tp = &self.connection.tp;
        let repaired = self.queue.front().is_some_and(|segment| segment.ever_retransmitted);
        let disorder = tp.sacked_out + tp.lost_out + tp.retrans_out > 0 || repaired;
        let state = if disorder { CaState::Disorder } else { CaState::Open };
        if state != self.state() {
            self.set_state(state);
            let tp = &mut self.connection.tp;
            tp.high_seq = tp.snd_nxt;
        }
    }

    // ---- undo ---------------------------------------------------------------------------------

    fn may_undo(&self) -> bool {
        self.undo_marker.is_some() && self.undo_retrans == 0
    }

    /// tcp_undo_cwnd_reduction.
    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.queue.iter_mut().for_each(|segment| segment.lost = false);
            self.connection.tp.lost_out = 0;
        }
        if self.connection.tp.prior_ssthresh > 0 {
            self.connection.tp.snd_cwnd = self.connection.undo_cwnd();
            let tp = &mut self.connection.tp;
            tp.snd_ssthresh = tp.snd_ssthresh.max(tp.prior_ssthresh);
        }
        self.stamp_cwnd();
        self.undo_marker = None;
    }

    /// tcp_try_undo_recovery.
    fn undo_recovery(&mut self) {
        if self.may_undo() {
            self.undo_reduction(false);
        }
        self.set_state(CaState::Open);
    }

    /// tcp_try_undo_dsack.
    fn undo_by_dsack(&mut self) -> bool {
        let undo = self.may_undo();
        if undo {
            self.undo_reduction(false);
        }
        undo
    }
}
