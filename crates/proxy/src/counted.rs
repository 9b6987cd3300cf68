//! A TCP connection whose bytes are counted in the records.

use crate::records::{ConnectionId, Ended, Records};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use wirepaint_observed_sockets::Socket;

/// The connection. Its record ends when it is dropped; then it is reset, unless it ended in order.
pub struct Counted {
    stream: TcpStream,
    socket: Rc<Socket>,
    records: Rc<Records>,
    id: ConnectionId,
    is_broken: Rc<Cell<bool>>,
}

impl Counted {
    /// An open connection that `records` knows.
    pub fn new(stream: TcpStream, socket: Rc<Socket>, records: Rc<Records>, id: ConnectionId) -> Counted {
        // A failure here shows in the first write.
        let _ = stream.set_nodelay(true);
        socket.reset_when_closed(true);
        Counted { stream, socket, records, id, is_broken: Rc::new(Cell::new(false)) }
    }

    /// Set it to true, and the end of the connection is a reset.
    pub fn broken(&self) -> Rc<Cell<bool>> {
        self.is_broken.clone()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let broken = self.is_broken.get();
        // After an ordinary end the kernel sends the remaining bytes.
        self.socket.reset_when_closed(broken);
        self.records.closed(self.id, if broken { Ended::Reset } else { Ended::Ordinarily });
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
