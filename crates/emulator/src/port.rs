//! One interface: a packet socket with a receive ring in memory that it shares with the kernel.

use crate::Error;
use libc::{c_int, c_void};
use std::ffi::CString;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Frames of the ring: 27 ms at 300,000 packets per second.
const RING_FRAMES: u32 = 8192;
/// Room per frame, with the kernel's header before it.
const RING_FRAME_BYTES: u32 = 2048;
const RING_BLOCK_BYTES: u32 = 64 * 1024;
/// Most frames of one `sendmmsg`.
pub(crate) const BATCH: usize = 32;
/// How often a full receive backlog of the far end is tried again, 10 µs apart.
const SEND_ATTEMPTS: u32 = 200;

/// A packet socket bound to one interface.
pub(crate) struct Port {
    socket: OwnedFd,
    ring: *mut u8,
    next: u32,
    /// Drops of the ring so far; the kernel's own counter is reset by reading.
    ring_drops: u64,
}

/// A frame as it lies in the ring.
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
    /// Opens an interface of the present network namespace.
    pub fn open(interface: &str) -> Result<Port, Error> {
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
        // SAFETY: the descriptor was just made and is nobody else's.
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
        set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, (8 << 20) as c_int, "SO_SNDBUFFORCE")?;
        let request = libc::tpacket_req {
            tp_block_size: RING_BLOCK_BYTES,
            tp_block_nr: RING_FRAMES * RING_FRAME_BYTES / RING_BLOCK_BYTES,
            tp_frame_size: RING_FRAME_BYTES,
            tp_frame_nr: RING_FRAMES,
        };
        set(&socket, packet, libc::PACKET_RX_RING, request, "PACKET_RX_RING")?;
        // SAFETY: maps the ring that was just made; unmapped in drop.
        let ring = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (RING_FRAMES * RING_FRAME_BYTES) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if ring == libc::MAP_FAILED {
            return Err(Error::last("mmap of the receive ring"));
        }
        let port = Port { socket, ring: ring.cast(), next: 0, ring_drops: 0 };
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
            return Err(Error::last(format!("bind to {interface}")));
        }
        Ok(port)
    }

    pub fn fd(&self) -> c_int {
        self.socket.as_raw_fd()
    }

    fn header(&self) -> *mut libc::tpacket2_hdr {
        // SAFETY: `next` is below RING_FRAMES, so this lies inside the mapping, and frames are
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

    /// Hands the next frame of the ring to `take` and gives its place back; false when there is none.
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
        self.next = (self.next + 1) % RING_FRAMES;
        true
    }

    /// Sends frames in order, at most [`BATCH`], and returns how many left. When the receive
    /// backlog of the far end is full it waits up to 2 ms rather than lose a packet.
    pub fn send(&self, frames: &mut [libc::iovec]) -> usize {
        debug_assert!(frames.len() <= BATCH);
        // SAFETY: all-zero message headers are valid; each gets one iovec that outlives the call.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
        for (message, frame) in messages.iter_mut().zip(frames.iter_mut()) {
            message.msg_hdr.msg_iov = frame;
            message.msg_hdr.msg_iovlen = 1;
        }
        let (mut sent, mut attempts) = (0, 0);
        while sent < frames.len() && attempts < SEND_ATTEMPTS {
            let left = &mut messages[sent..frames.len()];
            // SAFETY: `left` are initialised headers whose buffers are alive.
            let done = unsafe { libc::sendmmsg(self.fd(), left.as_mut_ptr(), left.len() as u32, 0) };
            if done > 0 {
                sent += done as usize;
            } else {
                attempts += 1;
                std::thread::sleep(std::time::Duration::from_micros(10));
            }
        }
        sent
    }

    /// Frames that the ring had no room for, since it was opened.
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
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: unmaps what `open` mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.ring.cast(), (RING_FRAMES * RING_FRAME_BYTES) as usize) };
    }
}
