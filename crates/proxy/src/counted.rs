//! A TCP connection whose bytes are counted in the records.

use crate::records::{ConnectionId, Ended, Records};
use crate::relay::{DRAIN_LOOK, STALL_TIME};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use wirepaint_observed_sockets::Socket;

/// The connection. Its record ends when it is dropped; then it is reset, unless [`Ending`] says otherwise. So no task
/// that is stopped leaves a socket that still tries to send.
pub struct Counted {
    stream: TcpStream,
    socket: Rc<Socket>,
    records: Rc<Records>,
    id: ConnectionId,
    ended: Rc<Cell<Ended>>,
}

/// How a connection ends when it is dropped.
#[derive(Clone)]
pub struct Ending {
    socket: Rc<Socket>,
    ended: Rc<Cell<Ended>>,
}

impl Ending {
    /// It ends with a FIN after its last byte.
    pub fn in_order(&self) {
        self.ended.set(Ended::Ordinarily);
    }

    /// Waits until what was written is acknowledged: the reset would discard the rest. Gives up if none of it is for
    /// [`STALL_TIME`].
    pub async fn drain(&self) {
        let unacknowledged = || self.socket.unacknowledged().unwrap_or(0);
        let (mut left, mut since) = (unacknowledged(), Instant::now());
        while left > 0 {
            if since.elapsed() >= STALL_TIME {
                return self.ended.set(Ended::Stalled);
            }
            sleep(DRAIN_LOOK).await;
            if unacknowledged() != left {
                (left, since) = (unacknowledged(), Instant::now());
            }
        }
    }
}

impl Counted {
    /// An open connection that `records` knows.
    pub fn new(stream: TcpStream, socket: Rc<Socket>, records: Rc<Records>, id: ConnectionId) -> Counted {
        // A failure here shows in the first write.
        let _ = stream.set_nodelay(true);
        socket.reset_when_closed(true);
        Counted { stream, socket, records, id, ended: Rc::new(Cell::new(Ended::Reset)) }
    }

    /// Says how it ends.
    pub fn ending(&self) -> Ending {
        Ending { socket: self.socket.clone(), ended: self.ended.clone() }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let ended = self.ended.get();
        // After an end in order the kernel sends the remaining bytes.
        self.socket.reset_when_closed(ended != Ended::Ordinarily);
        self.records.closed(self.id, ended);
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.records.received(self.id, buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.records.sent(self.id, written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts))?;
        self.records.sent(self.id, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
