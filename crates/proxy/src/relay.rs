//! Bytes of one connection go to another, both ways, as they come.
//!
//! - A direction holds at most a bound of bytes that its receiver does not take; then it stops reading, and the
//!   sender's window closes.
//! - The end of a direction (FIN) follows its last byte; the other direction goes on.
//! - A reset ends both connections with a reset, after the bytes that came before it: an end-to-end path would
//!   have delivered them. If none of them is acknowledged for [`STALL_TIME`], they are given up and the records say so.

use crate::records::{ConnectionId, Ended, Records};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use wirepaint_observed_sockets::Socket;

/// Bytes of one read: few calls at full rate. Others were not measured.
const READ: usize = 256 * 1024;
/// Time without a byte that moves after which those before a reset are given up.
pub const STALL_TIME: Duration = Duration::from_secs(5);
/// Interval of looking at what was acknowledged; the kernel has no event for it.
pub const DRAIN_LOOK: Duration = Duration::from_millis(2);

thread_local! {
    /// Bytes on their way between two sockets. Connections without a slow receiver need no memory of their own.
    static TRANSIT: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// One of the two connections.
pub struct End {
    /// The connection.
    pub stream: TcpStream,
    /// Its second descriptor.
    pub socket: Rc<Socket>,
    /// Its record.
    pub id: ConnectionId,
    /// It was reset, or a write to it failed.
    broken: Cell<bool>,
    /// Bytes that were handed to the kernel.
    written: Cell<u64>,
    /// Bytes before a reset were given up.
    stalled: Cell<bool>,
}

impl End {
    /// An open connection. While it is relayed, closing it resets it.
    pub fn new(stream: TcpStream, socket: Rc<Socket>, id: ConnectionId) -> End {
        socket.reset_when_closed(true);
        End { stream, socket, id, broken: Cell::new(false), written: Cell::new(0), stalled: Cell::new(false) }
    }

    /// Bytes that the other end of this connection has acknowledged.
    fn taken(&self) -> u64 {
        self.written.get().saturating_sub(self.socket.unacknowledged().unwrap_or(0).into())
    }

    /// Waits until this connection is reset, whether or not anybody reads it.
    async fn is_reset(&self) {
        if !self.broken.get() {
            // Fails only at the end of the run.
            let _ = self.stream.ready(Interest::ERROR).await;
        }
    }

    /// Waits until nobody takes bytes from this connection any more: it is reset, or none was acknowledged for
    /// [`STALL_TIME`].
    async fn takes_no_more(&self) {
        tokio::select! {
            () = self.is_reset() => {}
            () = self.stalls() => self.stalled.set(true),
        }
    }

    async fn stalls(&self) {
        let (mut taken, mut since) = (self.taken(), Instant::now());
        while since.elapsed() < STALL_TIME {
            sleep(DRAIN_LOOK).await;
            if self.taken() != taken {
                (taken, since) = (self.taken(), Instant::now());
            }
        }
    }
}

/// Relays until both directions have ended or one connection is reset, then closes both.
pub async fn relay(client: End, server: End, buffer_bytes: usize, records: &Records) {
    let down = Direction { from: &server, to: &client, buffer_bytes, records };
    let up = Direction { from: &client, to: &server, buffer_bytes, records };
    let (mut down, mut up) = (std::pin::pin!(down.carry()), std::pin::pin!(up.carry()));
    let both = tokio::select! {
        result = &mut down => followed(result, up, &server).await,
        result = &mut up => followed(result, down, &client).await,
    };
    for end in [&client, &server] {
        // After an ordinary end the kernel sends the remaining bytes.
        end.socket.reset_when_closed(both.is_err());
        let ended = match both {
            Ok(()) => Ended::Ordinarily,
            Err(_) if end.stalled.get() => Ended::Stalled,
            Err(_) => Ended::Reset,
        };
        records.closed(end.id, ended);
    }
}

/// The end of both directions, the first of which ended with `result`; the other one sends to `to`.
async fn followed(
    result: Result<(), Broken>,
    other: impl Future<Output = Result<(), Broken>>,
    to: &End,
) -> Result<(), Broken> {
    match result {
        Ok(()) => other.await,
        Err(Broken::Sender) => result,
        Err(Broken::Receiver) => {
            // The other direction carries what the receiver had sent before it was gone.
            tokio::select! {
                _ = other => {}
                () = to.takes_no_more() => {}
            }
            result
        }
    }
}

/// Which connection of a direction was reset.
enum Broken {
    Sender,
    Receiver,
}

struct Direction<'a> {
    from: &'a End,
    to: &'a End,
    buffer_bytes: usize,
    records: &'a Records,
}

impl Direction<'_> {
    /// Carries bytes until the end of `from`, then ends `to`.
    async fn carry(&self) -> Result<(), Broken> {
        let mut held = Held::default();
        let mut ended = false;
        loop {
            if held.is_empty() {
                if ended {
                    break;
                }
                tokio::select! {
                    readable = self.from.stream.readable() => readable.map_err(|_| Broken::Sender)?,
                    // After its end nobody reads from it.
                    () = self.to.is_reset() => return Err(Broken::Receiver),
                }
            } else {
                let may_read = !ended && held.len() < self.buffer_bytes;
                tokio::select! {
                    writable = self.to.stream.writable() => {
                        writable.map_err(|_| Broken::Receiver)?;
                        self.write_held(&mut held)?;
                        continue;
                    }
                    readable = self.from.stream.readable(), if may_read => {
                        readable.map_err(|_| Broken::Sender)?;
                    }
                    () = self.is_given_up() => return Err(Broken::Sender),
                }
            }
            match self.pass(&mut held) {
                Ok(_) if self.to.broken.get() => return Err(Broken::Receiver),
                Ok(0) => ended = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => {
                    self.from.broken.set(true);
                    ended = true;
                }
            }
        }
        if self.from.broken.get() {
            self.drain().await;
            return Err(Broken::Sender);
        }
        // Fails if the connection was reset, which the other direction reads.
        let _ = socket2::SockRef::from(&self.to.stream).shutdown(std::net::Shutdown::Write);
        Ok(())
    }

    /// Reads once; bytes that `to` does not take at once are held. Returns what was read.
    fn pass(&self, held: &mut Held) -> io::Result<usize> {
        TRANSIT.with_borrow_mut(|transit| {
            let most = (self.buffer_bytes - held.len()).min(READ);
            let read = self.from.stream.try_read(&mut transit[..most])?;
            self.records.received(self.from.id, read);
            let taken = if held.is_empty() { self.write(&transit[..read]) } else { 0 };
            held.push(&transit[taken..read]);
            Ok(read)
        })
    }

    fn write_held(&self, held: &mut Held) -> Result<(), Broken> {
        held.take(self.write(held.rest()));
        // Nobody will take the rest, and the sender should know.
        if self.to.broken.get() { Err(Broken::Receiver) } else { Ok(()) }
    }

    /// Writes what the kernel takes.
    fn write(&self, bytes: &[u8]) -> usize {
        match self.to.stream.try_write(bytes) {
            Ok(taken) => {
                self.records.sent(self.to.id, taken);
                self.to.written.set(self.to.written.get() + taken as u64);
                taken
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.to.broken.set(true);
                0
            }
        }
    }

    /// Waits until `from` is reset and `to` takes no more. A full buffer is not read, so no read tells of the reset.
    async fn is_given_up(&self) {
        self.from.is_reset().await;
        self.to.takes_no_more().await;
    }

    /// Waits until the bytes before a reset have been acknowledged: it would discard the others, also those that were
    /// sent and lost.
    async fn drain(&self) {
        let taken = async {
            while self.to.socket.unacknowledged().is_ok_and(|bytes| bytes > 0) {
                sleep(DRAIN_LOOK).await;
            }
        };
        tokio::select! {
            () = taken => {}
            () = self.to.takes_no_more() => {}
        }
    }
}

/// Bytes that a receiver did not take yet. It gives its memory back when it is empty.
#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    taken: usize,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.reserve_exact(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.is_empty() {
            *self = Held::default();
        }
    }
}
