//! TCP sockets whose settings and state are read back from the kernel, the wait for them, and the clock of their
//! records.

mod observed;
mod poll;

pub use observed::Observed;
pub use poll::Poll;

use libc::c_int;
use serde::Serialize;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Least bound of the unsent bytes in the kernel of an HTTP/2 connection.
const LEAST_UNSENT: u32 = 32 * 1024;
/// Request for the number of unacknowledged bytes, SIOCOUTQ (linux/sockios.h).
const SIOCOUTQ: libc::Ioctl = 0x5411;

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec, and CLOCK_MONOTONIC always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Chooses the congestion control of a socket; one that listens hands it on to those that it accepts.
pub fn set_congestion(socket: &impl AsRawFd, name: &str) -> io::Result<()> {
    set(socket, libc::TCP_CONGESTION, name.as_bytes())
}

/// Lets a socket that listens accept connections to any address; needs CAP_NET_ADMIN.
pub fn set_transparent(socket: &impl AsRawFd) -> io::Result<()> {
    set_at(socket, libc::SOL_IP, libc::IP_TRANSPARENT, &1i32.to_ne_bytes())
}

/// Marks what a socket sends with a code point (RFC 2474), 0 to 63.
pub fn set_code_point(socket: &impl AsRawFd, code_point: u8) -> io::Result<()> {
    set_at(socket, libc::SOL_IP, libc::IP_TOS, &(i32::from(code_point) << 2).to_ne_bytes())
}

/// A second descriptor of a connection, for queries independent of the owner of the first.
pub struct Socket(OwnedFd);

/// The kernel's account of a connection, `TCP_INFO` (linux/tcp.h).
#[derive(Clone, Debug, Serialize)]
pub struct TcpInfo {
    /// Least round-trip time seen, microseconds.
    pub min_rtt_us: u32,
    /// Segments retransmitted.
    pub total_retrans: u32,
    /// Bytes acknowledged by the client.
    pub bytes_acked: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// Segment size in bytes.
    pub snd_mss: u32,
    /// Segments marked lost now.
    pub lost: u32,
    /// Time in which the client's receive window limited sending, microseconds.
    pub rwnd_limited_us: u64,
    /// Segments delivered.
    pub delivered: u32,
    /// Congestion window, segments.
    #[serde(skip)]
    pub snd_cwnd: u32,
}

impl Socket {
    /// Duplicates the descriptor of `connection`.
    pub fn of(connection: BorrowedFd<'_>) -> io::Result<Socket> {
        connection.try_clone_to_owned().map(Socket)
    }

    /// Name of the congestion control in use.
    pub fn congestion(&self) -> io::Result<String> {
        let mut name = [0u8; 16];
        let length = get(&self.0, libc::TCP_CONGESTION, &mut name)?;
        let name = name[..length].split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// The present `TCP_INFO`.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        let mut raw = [0u8; 256];
        let length = get(&self.0, libc::TCP_INFO, &mut raw)?;
        if length < 216 {
            return Err(io::Error::other(format!("TCP_INFO has {length} bytes, at least 216 are needed")));
        }
        let u32_at = |at: usize| u32::from_ne_bytes(raw[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_ne_bytes(raw[at..at + 8].try_into().expect("eight bytes"));
        Ok(TcpInfo {
            snd_mss: u32_at(16),
            lost: u32_at(32),
            snd_cwnd: u32_at(80),
            total_retrans: u32_at(100),
            bytes_acked: u64_at(120),
            min_rtt_us: u32_at(148),
            rwnd_limited_us: u64_at(176),
            delivered: u32_at(192),
            bytes_sent: u64_at(200),
            bytes_retrans: u64_at(208),
        })
    }

    /// Whether a close resets the connection and forgets it at once.
    ///
    /// It does while the connection is served: if the server is killed, a socket that still tries to send
    /// would hold its namespace and its BPF congestion control for minutes.
    pub fn reset_when_closed(&self, reset: bool) {
        let linger = libc::linger { l_onoff: c_int::from(reset), l_linger: 0 };
        // SAFETY: `linger` is valid for its length. Where the kernel refuses, the close takes longer.
        unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            );
        }
    }

    /// Bytes that were written and that the other end has not acknowledged. Of a connection that was reset they stay.
    pub fn unacknowledged(&self) -> io::Result<u32> {
        let mut bytes: c_int = 0;
        // SAFETY: the request writes one int to a valid pointer.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), SIOCOUTQ, &mut bytes) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes.max(0) as u32) }
    }

    /// Keeps the unsent backlog in the kernel to half the congestion window.
    ///
    /// A more urgent response cannot overtake bytes in the kernel. With too few of these, the window is not
    /// filled when this process wakes late, and the congestion control would regard the connection as
    /// application-limited. The kernel wakes a writer below half the bound (`sk_stream_write_space`). A
    /// quarter of the window is left then, which lasts a twelfth of a round trip even while the window
    /// triples. An urgent response waits half a round trip at most.
    pub fn bound_unsent(&self) -> io::Result<()> {
        self.bound_unsent_to(LEAST_UNSENT)
    }

    /// The same with another least bound in bytes.
    pub fn bound_unsent_to(&self, least: u32) -> io::Result<()> {
        let info = self.tcp_info()?;
        let half = u64::from(info.snd_cwnd) * u64::from(info.snd_mss) / 2;
        let bound = u32::try_from(half).unwrap_or(u32::MAX).max(least);
        set(&self.0, libc::TCP_NOTSENT_LOWAT, &bound.to_ne_bytes())
    }
}

fn set(socket: &impl AsRawFd, option: c_int, value: &[u8]) -> io::Result<()> {
    set_at(socket, libc::IPPROTO_TCP, option, value)
}

fn set_at(socket: &impl AsRawFd, level: c_int, option: c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which outlives the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn get(socket: &impl AsRawFd, option: libc::c_int, value: &mut [u8]) -> io::Result<usize> {
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`; the kernel writes at most `length` bytes.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            value.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}
