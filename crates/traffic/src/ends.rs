//! The two sockets of a flow.

use crate::Failure;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Shutdown, SocketAddrV4};
use std::os::fd::AsRawFd;
use wirepaint_flow_model::{End, Ends};
use wirepaint_observed_sockets::{Poll, set_congestion};
use wirepaint_run::Side;

/// What is written: content does not matter.
static ZEROS: [u8; 256 * 1024] = [0; 256 * 1024];
/// Most bytes of one read.
const READ: usize = 1 << 30;

/// Where a socket is bound, and its settings.
pub(crate) struct Place<'a> {
    pub address: SocketAddrV4,
    pub congestion: &'a str,
    /// Code point of its packets.
    pub dscp: u8,
    /// Small writes are sent at once.
    pub nodelay: bool,
}

impl Place<'_> {
    /// A bound socket.
    pub fn socket(&self) -> Result<Socket, Failure> {
        let attempt = || format!("a socket at {}", self.address);
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            socket.set_reuse_address(true)?;
            socket.set_tos_v4(u32::from(self.dscp) << 2)?;
            socket.set_tcp_nodelay(self.nodelay)?;
            socket.bind(&self.address.into())?;
            Ok(socket)
        };
        let socket = open().map_err(Failure::system(attempt()))?;
        // An accepted socket inherits its listener's settings.
        set_congestion(&socket, self.congestion).map_err(Failure::system(format!(
            "congestion control {:?} of {}",
            self.congestion,
            attempt()
        )))?;
        Ok(socket)
    }
}

/// Both sockets of a flow, from before it connects.
pub(crate) struct Sockets {
    listener: Socket,
    client: Socket,
    server: Option<Socket>,
    connected: bool,
    sender: Side,
    /// What broke the connection.
    broken: Option<io::Error>,
}

impl Sockets {
    pub fn new(listener: Socket, client: Socket, sender: Side) -> Sockets {
        Sockets { listener, client, server: None, connected: false, sender, broken: None }
    }

    /// Begins to connect; changes come under two numbers, that of the client and the next.
    pub fn connect(&self, server: SocketAddrV4, poll: &Poll, number: usize) -> io::Result<()> {
        match self.client.connect(&server.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        poll.watch(&self.client, number)?;
        poll.watch(&self.listener, number + 1)
    }

    /// Takes note of ends that are connected now. Returns the client's and the server's socket if it is new.
    pub fn establish(&mut self, poll: &Poll, number: usize) -> io::Result<[bool; 2]> {
        let mut new = [false; 2];
        if !self.connected {
            if let Some(error) = self.client.take_error()? {
                return Err(error);
            }
            self.connected = self.client.peer_addr().is_ok();
            new[0] = self.connected;
        }
        if self.server.is_none() {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    socket.set_nonblocking(true)?;
                    poll.watch(&socket, number + 1)?;
                    self.server = Some(socket);
                    new[1] = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(new)
    }

    /// The client's address and port, once it connects.
    pub fn client_address(&self) -> io::Result<SocketAddrV4> {
        let address = self.client.local_addr()?;
        address.as_socket_ipv4().ok_or_else(|| io::Error::other("no IPv4 address"))
    }

    /// The socket of a side, once it is connected.
    pub fn of(&self, side: Side) -> Option<&Socket> {
        match side {
            Side::Client => Some(&self.client).filter(|_| self.connected),
            Side::Server => self.server.as_ref(),
        }
    }

    /// The side of an end.
    pub fn side(&self, end: End) -> Side {
        match (end, self.sender) {
            (End::Sender, side) => side,
            (End::Receiver, Side::Server) => Side::Client,
            (End::Receiver, Side::Client) => Side::Server,
        }
    }

    /// Reads, and forgets, all that has arrived at a side; returns the number of bytes.
    pub fn read(&mut self, side: Side) -> u64 {
        let Some(socket) = self.of(side) else { return 0 };
        let mut bytes = 0;
        loop {
            // SAFETY: MSG_TRUNC discards the bytes of a TCP socket (tcp(7)), so the buffer is not used.
            let read = unsafe {
                let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
                libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), READ, flags)
            };
            match read {
                0 => return bytes,
                1.. => bytes += read as u64,
                _ => {
                    self.broken = fault(io::Error::last_os_error());
                    return bytes;
                }
            }
        }
    }

    /// What broke the connection since the last call.
    pub fn broken(&mut self) -> Option<io::Error> {
        self.broken.take()
    }
}

impl Ends for Sockets {
    fn write(&mut self, end: End, bytes: u64) -> u64 {
        let Some(socket) = self.of(self.side(end)) else { return 0 };
        let mut left = bytes;
        while left > 0 {
            let most = ZEROS.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match socket.send_with_flags(&ZEROS[..most], libc::MSG_NOSIGNAL) {
                Ok(taken) => left -= taken as u64,
                Err(error) => {
                    self.broken = fault(error);
                    break;
                }
            }
        }
        bytes - left
    }

    fn close(&mut self) -> bool {
        let Some(socket) = self.of(self.side(End::Sender)) else { return false };
        if let Err(error) = socket.shutdown(Shutdown::Write) {
            self.broken = fault(error);
        }
        true
    }
}

/// The error, unless it only says that there is nothing to read or no room.
fn fault(error: io::Error) -> Option<io::Error> {
    Some(error).filter(|error| error.kind() != io::ErrorKind::WouldBlock)
}
