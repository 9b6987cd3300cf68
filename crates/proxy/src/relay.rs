//! Bytes of one connection go to another, both ways, as they come.
//!
//! - A direction holds at most a bound of bytes that its receiver does not take; then it stops reading, and the
//!   sender's window closes.
//! - The end of a direction (FIN) follows its last byte; the other direction goes on.
//! - A reset ends both connections with a reset, after the bytes that came before it: an end-to-end path would
//!   have delivered them.

use crate::records::{ConnectionId, Ended, Records};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use wirepaint_observed_sockets::Socket;

/// Bytes of one read: few calls at full rate. Others were not measured.
const READ: usize = 256 * 1024;
/// Longest time for bytes before a reset to leave the proxy.
const DRAIN_TIME: Duration = Duration::from_secs(5);
/// Interval of looking at them; the kernel has no event for it.
const DRAIN_LOOK: Duration = Duration::from_millis(2);

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
}

impl End {
    /// An open connection. While it is relayed, closing it resets it.
    pub fn new(stream: TcpStream, socket: Rc<Socket>, id: ConnectionId) -> End {
        socket.reset_when_closed(true);
        End { stream, socket, id, broken: Cell::new(false) }
    }
}

/// Relays until both directions have ended or one connection is reset, then closes both.
pub async fn relay(client: End, server: End, buffer_bytes: usize, records: &Records) {
    let down = Direction { from: &server, to: &client, buffer_bytes, records };
    let up = Direction { from: &client, to: &server, buffer_bytes, records };
    let (mut down, mut up) = (std::pin::pin!(down.carry()), std::pin::pin!(up.carry()));
    let both = tokio::select! {
        result = &mut down => followed(result, up).await,
        result = &mut up => followed(result, down).await,
    };
    let ended = if both.is_ok() { Ended::Ordinarily } else { Ended::Reset };
    for end in [&client, &server] {
        // After an ordinary end the kernel sends the remaining bytes.
        end.socket.reset_when_closed(both.is_err());
        records.closed(end.id, ended);
    }
}

/// The end of both directions, the first of which ended with `result`.
async fn followed(
    result: Result<(), Broken>,
    other: impl Future<Output = Result<(), Broken>>,
) -> Result<(), Broken> {
    match result {
        Ok(()) => other.await,
        Err(Broken::Sender) => result,
        Err(Broken::Receiver) => {
            // The other direction carries what the receiver had sent before it was gone.
            let _ = timeout(DRAIN_TIME, other).await;
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
                self.from.stream.readable().await.map_err(|_| Broken::Sender)?;
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
                taken
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(_) => {
                self.to.broken.set(true);
                0
            }
        }
    }

    /// Waits until the bytes before a reset have been sent: it would discard those that were not.
    async fn drain(&self) {
        let until = Instant::now() + DRAIN_TIME;
        while self.to.socket.unsent().is_ok_and(|bytes| bytes > 0) && Instant::now() < until {
            sleep(DRAIN_LOOK).await;
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
