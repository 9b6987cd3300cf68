//! One interface: a packet socket with a receive ring in memory that it shares with the kernel.

use crate::Error;
use libc::{c_int, c_void};
use std::ffi::CString;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Frames of the ring: 54 ms at 300,000 packets per second.
pub(crate) const RING_FRAMES: u32 = 16_384;
/// Frames where other runs go beside this one, which runs on fast links may not: 20 ms at 100,000 packets per second.
/// The kernel clears a ring in one go, and a large one may hold up the servers of those runs for more than 50 ms.
pub(crate) const SMALL_RING_FRAMES: u32 = 2_048;
/// Room per frame, with the kernel's header before it.
const RING_FRAME_BYTES: u32 = 2048;
const RING_BLOCK_BYTES: u32 = 64 * 1024;
/// Half of the memory for frames waiting at the far end (Linux doubles it and counts a full frame as 2304
/// bytes: 113 frames; a sent frame belongs to its socket until the far end's IP takes it). The far end's
/// receive backlog holds 1000 packets per CPU, which the user's senders on that CPU share; a packet that
/// finds it full is lost. With 8 MiB here, a bulk transfer filled it and lost 1 % of its own packets.
const SEND_BUFFER_BYTES: c_int = 128 << 10;
/// Most frames of one `sendmmsg`.
pub(crate) const BATCH: usize = 32;
/// A packet socket bound to one interface.
pub(crate) struct Port {
    socket: OwnedFd,
    ring: *mut u8,
    ring_frames: u32,
    next: u32,
    /// Drops of the ring so far; the kernel's own counter is reset by reading.
    ring_drops: u64,
    interface: String,
    /// Receive drops of the interface before it was opened.
    earlier_drops: u64,
}

/// Why a frame was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The far end is full; there will be room later.
    NoRoom,
    /// The interface refused it.
    Refused,
}

/// A frame in the ring.
pub(crate) struct Received<'a> {
    pub data: &'a [u8],
    /// Length on the wire; longer than `data` when the frame did not fit.
    pub wire_bytes: usize,
    /// Arrival on CLOCK_REALTIME.
    pub stamp: u64,
    /// The sender left the checksum to a device that does not exist.
    pub unfinished_checksum: bool,
}

fn set<T>(socket: &OwnedFd, level: c_int, option: c_int, value: T, name: &str) -> Result<(), Error> {
    // SAFETY: `value` is a plain value of the length that is passed.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast::<c_void>(),
            size_of::<T>() as u32,
        )
    };
    if done == 0 { Ok(()) } else { Err(Error::last(format!("setsockopt {name}"))) }
}

impl Port {
    /// Opens an interface of the present network namespace, with a ring of so many frames.
    pub fn open(interface: &str, ring_frames: u32) -> Result<Port, Error> {
        let name = CString::new(interface)
            .map_err(|_| Error::Usage(format!("interface {interface:?}: found a zero byte")))?;
        // SAFETY: `name` is a C string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(Error::last(format!("interface {interface}")));
        }
        // Protocol 0 receives nothing until the socket is bound to its interface.
        // SAFETY: a plain system call; the descriptor is owned from here.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(Error::last("socket AF_PACKET"));
        }
        // SAFETY: the descriptor is new and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let packet = libc::SOL_PACKET;
        set(
            &socket,
            packet,
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as c_int,
            "PACKET_VERSION",
        )?;
        set(&socket, packet, libc::PACKET_IGNORE_OUTGOING, 1 as c_int, "PACKET_IGNORE_OUTGOING")?;
        set(&socket, packet, libc::PACKET_QDISC_BYPASS, 1 as c_int, "PACKET_QDISC_BYPASS")?;
        // Makes the kernel stamp a frame when it arrives, not when it is put into the ring.
        set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1 as c_int, "SO_TIMESTAMPNS")?;
        set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER_BYTES, "SO_SNDBUFFORCE")?;
        let request = libc::tpacket_req {
            tp_block_size: RING_BLOCK_BYTES,
            tp_block_nr: ring_frames * RING_FRAME_BYTES / RING_BLOCK_BYTES,
            tp_frame_size: RING_FRAME_BYTES,
            tp_frame_nr: ring_frames,
        };
        set(&socket, packet, libc::PACKET_RX_RING, request, "PACKET_RX_RING")?;
        // SAFETY: maps the ring that was just made; unmapped in drop.
        let ring = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (ring_frames * RING_FRAME_BYTES) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if ring == libc::MAP_FAILED {
            return Err(Error::last("mmap of the receive ring"));
        }
        let earlier_drops = receive_drops(interface)?;
        let interface = interface.to_owned();
        let port =
            Port { socket, ring: ring.cast(), ring_frames, next: 0, ring_drops: 0, interface, earlier_drops };
        // SAFETY: an all-zero address is valid and is filled here.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: `address` is a sockaddr_ll of the length that is passed.
        let bound = unsafe {
            libc::bind(port.fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
        };
        if bound != 0 {
            return Err(Error::last(format!("bind to {}", port.interface)));
        }
        Ok(port)
    }

    pub fn fd(&self) -> c_int {
        self.socket.as_raw_fd()
    }

    fn header(&self) -> *mut libc::tpacket2_hdr {
        // SAFETY: `next` is below `ring_frames`, so this lies inside the mapping, and frames are
        // aligned to their size.
        unsafe { self.ring.add((self.next * RING_FRAME_BYTES) as usize).cast() }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the status word is an aligned u32 inside the mapping that only this reference
        // and the kernel touch.
        unsafe {
            &*self.header().cast::<u8>().add(offset_of!(libc::tpacket2_hdr, tp_status)).cast::<AtomicU32>()
        }
    }

    /// Passes the next frame of the ring to `take` and frees its place; false when there is none.
    pub fn receive(&mut self, take: impl FnOnce(Received<'_>)) -> bool {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the kernel filled the header and the bytes it points to before it set
        // TP_STATUS_USER and leaves them alone until the status is given back.
        let received = unsafe {
            let header = &*self.header();
            let data = self.header().cast::<u8>().add(usize::from(header.tp_mac));
            Received {
                data: std::slice::from_raw_parts(data, header.tp_snaplen as usize),
                wire_bytes: header.tp_len as usize,
                stamp: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
                unfinished_checksum: status & libc::TP_STATUS_CSUMNOTREADY != 0,
            }
        };
        take(received);
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.ring_frames;
        true
    }

    /// Sends frames in order, at most [`BATCH`], and returns how many left, at least one. Never waits.
    pub fn send(&self, frames: &mut [libc::iovec]) -> Result<usize, NotSent> {
        debug_assert!(frames.len() <= BATCH);
        // SAFETY: all-zero message headers are valid; each gets one iovec that outlives the call.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        for (message, frame) in messages.iter_mut().zip(frames.iter_mut()) {
            message.msg_hdr.msg_iov = frame;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: as many headers are initialised as are passed, and their buffers are alive.
        let sent = unsafe {
            libc::sendmmsg(self.fd(), messages.as_mut_ptr(), frames.len() as u32, libc::MSG_DONTWAIT)
        };
        if sent > 0 {
            return Ok(sent as usize);
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR | libc::ENOMEM) => Err(NotSent::NoRoom),
            _ => Err(NotSent::Refused),
        }
    }

    /// Frames that found the ring full since it was opened.
    pub fn ring_drops(&mut self) -> Result<u64, Error> {
        // SAFETY: an all-zero tpacket_stats is valid and is filled by the call.
        let mut statistics: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: the buffer has the length that is passed.
        let done = unsafe {
            libc::getsockopt(
                self.fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        };
        if done != 0 {
            return Err(Error::last("getsockopt PACKET_STATISTICS"));
        }
        self.ring_drops += u64::from(statistics.tp_drops);
        Ok(self.ring_drops)
    }

    /// Frames towards this interface that found the receive backlog of a CPU full
    /// (`net.core.netdev_max_backlog`) since the port was opened: they never reached the ring.
    pub fn backlog_drops(&self) -> Result<u64, Error> {
        Ok(receive_drops(&self.interface)?.saturating_sub(self.earlier_drops))
    }
}

/// Receive drops of an interface of the present network namespace, as Linux counts them.
fn receive_drops(interface: &str) -> Result<u64, Error> {
    const TABLE: &str = "/proc/thread-self/net/dev";
    let table = std::fs::read_to_string(TABLE)
        .map_err(|source| Error::System { attempt: format!("reading {TABLE}"), source })?;
    column(&table, interface).ok_or_else(|| Error::System {
        attempt: format!("reading the receive drops of {interface} in {TABLE}"),
        source: std::io::ErrorKind::InvalidData.into(),
    })
}

/// The fourth number behind the interface's name: bytes, packets, errors, drops.
fn column(table: &str, interface: &str) -> Option<u64> {
    table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == interface)
        .and_then(|(_, numbers)| numbers.split_whitespace().nth(3)?.parse().ok())
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: unmaps what `open` mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.ring.cast(), (self.ring_frames * RING_FRAME_BYTES) as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receive_drops_are_those_of_the_interface_that_is_named() {
        let table = "Inter-|   Receive      |  Transmit\n face |bytes packets errs drop fifo\n\
                     \u{20}  c1: 100  2    0    3    0     0          0         0        4 5 0 6\n\
                     \u{20}  c10:7    8    9   10    0     0          0         0        4 5 0 6\n";
        assert_eq!(column(table, "c1"), Some(3));
        assert_eq!(column(table, "c10"), Some(10));
        assert_eq!(column(table, "c"), None);
        assert!(receive_drops("lo").is_ok(), "Linux shows the table");
    }

    #[test]
    fn a_small_ring_passes_more_frames_than_it_holds() {
        let mut port = match Port::open("lo", SMALL_RING_FRAMES) {
            Ok(port) => port,
            Err(error) => return eprintln!("skipped: AF_PACKET needs root ({error})"),
        };
        let to = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let from = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mark = format!("frames of {}", from.local_addr().unwrap());
        let mut seen = 0;
        for sent in 1..=2 * SMALL_RING_FRAMES + 1 {
            from.send_to(mark.as_bytes(), to.local_addr().unwrap()).unwrap();
            let patience = std::time::Instant::now() + std::time::Duration::from_secs(5);
            while seen < sent && std::time::Instant::now() < patience {
                // Others use this interface, too.
                port.receive(|frame| seen += u32::from(frame.data.ends_with(mark.as_bytes())));
            }
            assert_eq!(seen, sent);
        }
    }
}
