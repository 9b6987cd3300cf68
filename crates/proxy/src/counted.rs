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

/// The connection. Its record ends when it is dropped; then it is reset, unless it was said to end in order. So no
/// task that is stopped leaves a socket that still tries to send.
pub struct Counted {
    stream: TcpStream,
    socket: Rc<Socket>,
    records: Rc<Records>,
    id: ConnectionId,
    in_order: Rc<Cell<bool>>,
}

impl Counted {
    /// An open connection that `records` knows.
    pub fn new(stream: TcpStream, socket: Rc<Socket>, records: Rc<Records>, id: ConnectionId) -> Counted {
        // A failure here shows in the first write.
        let _ = stream.set_nodelay(true);
        socket.reset_when_closed(true);
        Counted { stream, socket, records, id, in_order: Rc::new(Cell::new(false)) }
    }

    /// Set it to true, and the connection ends with a FIN after its last byte.
    pub fn in_order(&self) -> Rc<Cell<bool>> {
        self.in_order.clone()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let in_order = self.in_order.get();
        // After an end in order the kernel sends the remaining bytes.
        self.socket.reset_when_closed(!in_order);
        self.records.closed(self.id, if in_order { Ended::Ordinarily } else { Ended::Reset });
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
