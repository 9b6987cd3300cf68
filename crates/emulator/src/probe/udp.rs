use super::{End, Finally, Probes, Quantiles, accept, inside, io};
use crate::Error;
use crate::clock::{StampConverter, monotonic};
use libc::c_int;
use serde::Serialize;
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// IPv4 and UDP header.
const HEADER_BYTES: usize = 28;
/// Payload of a probe: number, time sent, and in an echo time received and time sent back.
const PAYLOAD_BYTES: usize = 32;
/// Longest packet; beyond 1500 it would be cut into fragments.
const LONGEST: usize = 1500;
/// Longest time of all departures, and longest wait for an arrival: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Receive buffer for arrivals while the receiver does not run.
const BUFFER_BYTES: c_int = 256 << 20;
/// Below the emulator's priority, above ordinary tasks.
const PRIORITY: i32 = 40;
/// A punctual sender first wakes this early,
const WAKE_EARLY_NS: u64 = 60_000;
/// then sleeps half of the remaining time until this is left, and spins the rest.
const SPIN_NS: u64 = 5_000;

/// The packets to send.
pub struct Plan {
    packets: u64,
    payload_bytes: usize,
    interval_ns: u64,
    linger_ns: u64,
    punctual: bool,
    dscp: u8,
}

impl Plan {
    /// Refuses probes that cannot be sent.
    pub fn check(probes: &Probes) -> Result<Plan, Error> {
        let Probes { packets, ip_bytes, interval_ns, linger_ns, punctual, dscp } = *probes;
        accept("dscp", dscp.into(), 0..=63)?;
        accept("ip_bytes", ip_bytes as u64, (HEADER_BYTES + PAYLOAD_BYTES) as u64..=LONGEST as u64)?;
        accept("packets", packets, 1..=10_000_000)?;
        accept("linger_ns", linger_ns, 0..=LONGEST_NS)?;
        accept("interval_ns", interval_ns, 0..=LONGEST_NS / packets)?;
        Ok(Plan { packets, payload_bytes: ip_bytes - HEADER_BYTES, interval_ns, linger_ns, punctual, dscp })
    }
}

/// Result of a stream. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Serialize)]
pub struct StreamResult {
    sent: u64,
    received: u64,
    /// Packets that arrived after one that was sent later.
    reordered: u64,
    first_sent: u64,
    last_sent: u64,
    first_arrival: Option<u64>,
    last_arrival: Option<u64>,
    /// IP bytes that arrived, the first packet excluded: with the time between the first and the
    /// last arrival this gives the rate.
    ip_bytes_after_first: u64,
    /// One-way delay: from before the send call to the arrival at the far interface.
    delay: Quantiles,
    /// Time of every arrival, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    arrivals: Option<Vec<u64>>,
}

/// Result of an echo.
#[derive(Debug, Serialize)]
pub struct EchoResult {
    sent: u64,
    received: u64,
    /// Round-trip time without the far end's time to answer, which depends on the machine, not on the path.
    rtt: Quantiles,
}

/// A probe that arrived.
struct Arrival {
    time: u64,
    number: u64,
    /// Time sent, and in an echo time received and time sent back at the far end.
    sent: u64,
    turned: u64,
    returned: u64,
}

/// A UDP socket whose arrivals are stamped by the kernel.
struct Stamped {
    socket: UdpSocket,
    stamps: StampConverter,
}

impl Stamped {
    fn open(end: &End) -> Result<Stamped, Error> {
        let socket = inside(end, || UdpSocket::bind((end.address, 0)).map_err(io("binding a UDP socket")))?;
        socket.set_nonblocking(true).map_err(io("making a socket non-blocking"))?;
        for (option, value) in [(libc::SO_TIMESTAMPNS, 1), (libc::SO_RCVBUFFORCE, BUFFER_BYTES)] {
            // SAFETY: passes an int of its length.
            unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const value).cast(),
                    size_of::<c_int>() as u32,
                )
            };
        }
        Ok(Stamped { socket, stamps: StampConverter::new() })
    }

    fn address(&self) -> Result<SocketAddr, Error> {
        self.socket.local_addr().map_err(io("reading a socket's address"))
    }

    /// Waits until something arrives or `until`.
    fn wait(&self, until: u64) {
        let left = until.saturating_sub(monotonic());
        let timeout =
            libc::timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        let mut waiting = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid descriptor and a valid timeout.
        unsafe { libc::ppoll(&mut waiting, 1, &timeout, std::ptr::null()) };
    }

    /// The next probe that arrived; `None` when there is none yet.
    fn receive(&mut self) -> Option<Arrival> {
        self.stamps.refresh(monotonic());
        let mut data = [0_u8; LONGEST];
        let mut control = [0_u64; 8];
        // SAFETY: all buffers outlive the call and have the lengths that are passed; control
        // messages are read through the C library's own macros.
        let (length, stamp) = unsafe {
            let mut part = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
            let mut message: libc::msghdr = zeroed();
            message.msg_iov = &mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control) as _;
            let length = libc::recvmsg(self.socket.as_raw_fd(), &mut message, 0);
            if length < PAYLOAD_BYTES as isize {
                return None;
            }
            let first = libc::CMSG_FIRSTHDR(&message);
            if first.is_null() || (*first).cmsg_type != libc::SO_TIMESTAMPNS {
                return None;
            }
            let time = libc::CMSG_DATA(first).cast::<libc::timespec>().read_unaligned();
            (length as usize, time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
        };
        let word =
            |index: usize| u64::from_le_bytes(data[index * 8..index * 8 + 8].try_into().expect("8 bytes"));
        debug_assert!(length >= PAYLOAD_BYTES);
        Some(Arrival {
            time: self.stamps.monotonic(stamp),
            number: word(0),
            sent: word(1),
            turned: word(2),
            returned: word(3),
        })
    }
}

fn payload(length: usize, words: [u64; 4]) -> Vec<u8> {
    let mut data = vec![0; length];
    for (place, word) in data.chunks_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    data
}

/// Sends the plan's packets at their times; returns the first and the last time of departure.
fn send_all(socket: &UdpSocket, to: SocketAddr, plan: &Plan) -> Result<(u64, u64), Error> {
    // SAFETY: plain system calls; without the right the sender is merely less punctual.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize);
        let parameters = libc::sched_param { sched_priority: PRIORITY };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters);
    }
    stay_off_the_last_cpu();
    let most = if plan.punctual { 1 } else { segments_per_send(socket, plan.payload_bytes) };
    let mut data = vec![0; most as usize * plan.payload_bytes];
    let begin = monotonic() + 1_000_000;
    let (mut first, mut last, mut number) = (begin, begin, 0);
    while number < plan.packets {
        sleep_until(begin + number * plan.interval_ns, plan.punctual);
        last = monotonic();
        if number == 0 {
            first = last;
        }
        let due = (last - begin).checked_div(plan.interval_ns).map_or(plan.packets, |sent| sent + 1);
        let count = (due.min(plan.packets) - number).clamp(1, most);
        for (packet, number) in data.chunks_mut(plan.payload_bytes).zip(number..number + count) {
            packet[..8].copy_from_slice(&number.to_le_bytes());
            packet[8..16].copy_from_slice(&last.to_le_bytes());
        }
        while let Err(error) = socket.send_to(&data[..count as usize * plan.payload_bytes], to) {
            if !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) {
                return Err(io("sending a probe")(error));
            }
        }
        number += count;
    }
    Ok((first, last))
}

/// Packets per send call. The kernel splits them into single packets (UDP_SEGMENT), which is several times
/// faster than one call each.
fn segments_per_send(socket: &UdpSocket, payload_bytes: usize) -> u64 {
    let size = payload_bytes as c_int;
    // SAFETY: passes an int of its length.
    let granted = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const size).cast(),
            size_of::<c_int>() as u32,
        ) == 0
    };
    if granted { (60_000 / payload_bytes).min(64) as u64 } else { 1 }
}

/// Gives the packets of a socket a code point.
fn mark(socket: &UdpSocket, dscp: u8) -> Result<(), Error> {
    let field = c_int::from(dscp) << 2;
    // SAFETY: passes an int of its length.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_TOS,
            (&raw const field).cast(),
            size_of::<c_int>() as u32,
        )
    };
    if done < 0 { Err(io("marking packets")(std::io::Error::last_os_error())) } else { Ok(()) }
}

/// Keeps this thread off the last CPU, on which the emulator runs.
fn stay_off_the_last_cpu() {
    // SAFETY: the set is a plain bit mask of the size that is passed.
    unsafe {
        let mut allowed: libc::cpu_set_t = zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut allowed) != 0
            || libc::CPU_COUNT(&allowed) < 2
        {
            return;
        }
        if let Some(last) = (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &allowed))
        {
            libc::CPU_CLR(last, &mut allowed);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &allowed);
        }
    }
}

fn sleep_until(due: u64, punctual: bool) {
    loop {
        let now = monotonic();
        let left = due.saturating_sub(now);
        if left == 0 {
            return;
        }
        if punctual && left <= SPIN_NS {
            std::hint::spin_loop();
            continue;
        }
        let early = if punctual { WAKE_EARLY_NS.min(left / 2) } else { 0 };
        let wake = due - early;
        let time =
            libc::timespec { tv_sec: (wake / 1_000_000_000) as i64, tv_nsec: (wake % 1_000_000_000) as i64 };
        // SAFETY: a valid absolute time.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut())
        };
    }
}

/// Collects arrivals until all have arrived or the wait is over.
fn collect(receiver: &mut Stamped, plan: &Plan, last_sent: &AtomicU64) -> Vec<Arrival> {
    let mut arrivals = Vec::with_capacity(plan.packets as usize);
    while (arrivals.len() as u64) < plan.packets {
        if let Some(arrival) = receiver.receive() {
            arrivals.push(arrival);
            continue;
        }
        let now = monotonic();
        let last_arrival = arrivals.last().map_or(0, |arrival: &Arrival| arrival.time);
        let end = last_sent.load(Ordering::Acquire).max(last_arrival).saturating_add(plan.linger_ns);
        if now >= end {
            break;
        }
        receiver.wait(end.min(now + 20_000_000));
    }
    arrivals
}

/// Sends in another thread while this one collects at `receiver`.
fn send_and_collect(
    sender: &UdpSocket,
    to: SocketAddr,
    receiver: &mut Stamped,
    plan: &Plan,
) -> Result<(u64, u64, Vec<Arrival>), Error> {
    let last_sent = AtomicU64::new(u64::MAX);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let _sent = Finally(|| last_sent.store(monotonic(), Ordering::Release));
            send_all(sender, to, plan)
        });
        let arrivals = collect(receiver, plan, &last_sent);
        let (first, last) = sending.join().expect("sending does not panic")?;
        Ok((first, last, arrivals))
    })
}

/// Sends a stream from `source` to `destination`; `list` keeps every arrival.
pub fn stream(source: &End, destination: &End, plan: &Plan, list: bool) -> Result<StreamResult, Error> {
    let sender = Stamped::open(source)?;
    mark(&sender.socket, plan.dscp)?;
    let mut receiver = Stamped::open(destination)?;
    let to = receiver.address()?;
    let (first_sent, last_sent, arrivals) = send_and_collect(&sender.socket, to, &mut receiver, plan)?;
    let received = arrivals.len() as u64;
    Ok(StreamResult {
        sent: plan.packets,
        received,
        reordered: arrivals.windows(2).filter(|pair| pair[1].number < pair[0].number).count() as u64,
        first_sent,
        last_sent,
        first_arrival: arrivals.first().map(|arrival| arrival.time),
        last_arrival: arrivals.last().map(|arrival| arrival.time),
        ip_bytes_after_first: received.saturating_sub(1) * (plan.payload_bytes + HEADER_BYTES) as u64,
        delay: Quantiles::of(arrivals.iter().map(|a| a.time as i64 - a.sent as i64).collect()),
        arrivals: list.then(|| arrivals.iter().map(|arrival| arrival.time).collect()),
    })
}

/// Sends packets from `source`; `destination` returns them.
pub fn echo(source: &End, destination: &End, plan: &Plan) -> Result<EchoResult, Error> {
    let mut near = Stamped::open(source)?;
    let mut far = Stamped::open(destination)?;
    let (home, to) = (near.address()?, far.address()?);
    let sender = near.socket.try_clone().map_err(io("duplicating a socket"))?;
    let done = AtomicBool::new(false);
    let (_, _, arrivals) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                while let Some(probe) = far.receive() {
                    let words = [probe.number, probe.sent, probe.time, monotonic()];
                    // A reply that is lost here is missing at the other end.
                    let _ = far.socket.send_to(&payload(plan.payload_bytes, words), home);
                }
                far.wait(monotonic() + 20_000_000);
            }
        });
        let _done = Finally(|| done.store(true, Ordering::Release));
        send_and_collect(&sender, to, &mut near, plan)
    })?;
    let rtt = |a: &Arrival| (a.time as i64 - a.sent as i64) - (a.returned as i64 - a.turned as i64);
    Ok(EchoResult {
        sent: plan.packets,
        received: arrivals.len() as u64,
        rtt: Quantiles::of(arrivals.iter().map(rtt).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_more_than_an_hour_is_refused_by_key() {
        let probes =
            Probes { packets: 100, ip_bytes: 60, interval_ns: 0, linger_ns: 0, punctual: false, dscp: 0 };
        let refused = |probes: &Probes| Plan::check(probes).err().map(|error| error.to_string());
        assert_eq!(refused(&probes), None);
        assert_eq!(
            refused(&Probes { interval_ns: 36_000_000_001, ..probes.clone() }).unwrap(),
            "probe request: interval_ns: found 36000000001, accepted: 0 to 36000000000"
        );
        assert_eq!(
            refused(&Probes { linger_ns: u64::MAX, ..probes.clone() }).unwrap(),
            format!("probe request: linger_ns: found {}, accepted: 0 to 3600000000000", u64::MAX)
        );
        assert_eq!(
            refused(&Probes { packets: 0, ..probes }).unwrap(),
            "probe request: packets: found 0, accepted: 1 to 10000000"
        );
    }

    #[test]
    fn a_thread_that_waits_for_another_is_let_go_when_that_panics() {
        let done = AtomicBool::new(false);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Acquire) {
                        std::thread::yield_now();
                    }
                });
                let _done = Finally(|| done.store(true, Ordering::Release));
                panic!("as a measurement may");
            })
        }));
        assert!(ended.is_err());
    }
}
