//! A persistent connection between the two sides: frames in, frames out.

use super::wire::{Frame, Malformed};
use crate::records::{ConnectionId, Ended, Records};
use bytes::{Buf, BytesMut};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;
use wirepaint_observed_sockets::Socket;

/// Bytes of one read.
const READ: usize = 256 * 1024;
/// Least bound of the unsent bytes in the kernel where they are bounded: the time of an urgent answer behind them is
/// a part of the round-trip time of slow links.
const LEAST_UNSENT: u32 = 4 * 1024;
/// The bound follows the window every time this many bytes have been handed over.
const BOUND_EVERY: usize = 16 * 1024;

/// Frames that wait for the kernel.
pub struct Out {
    frames: RefCell<BytesMut>,
    /// Bytes that the writer has taken and the kernel has not.
    taken: Cell<usize>,
    wake: Notify,
    /// The connection ended.
    is_closed: Cell<bool>,
    /// The connection's record.
    pub id: ConnectionId,
}

impl Out {
    pub fn new(id: ConnectionId) -> Rc<Out> {
        let (frames, taken, is_closed) = (RefCell::default(), Cell::new(0), Cell::new(false));
        Rc::new(Out { frames, taken, wake: Notify::new(), is_closed, id })
    }

    /// Appends a frame.
    pub fn put(&self, frame: &Frame) {
        if !self.is_closed.get() {
            frame.put(&mut self.frames.borrow_mut());
            self.wake.notify_one();
        }
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.taken.get() + self.frames.borrow().len()
    }

    /// The connection ended; frames are discarded from here on.
    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    fn close(&self) {
        self.is_closed.set(true);
        self.frames.borrow_mut().clear();
    }
}

/// Who gets the frames of a connection.
pub trait Receiver {
    /// A frame arrived.
    fn frame(self: &Rc<Self>, frame: Frame) -> Result<(), Malformed>;
    /// Fewer bytes wait on a connection than before.
    fn room(self: &Rc<Self>) {}
    /// A connection ended; `reason` is `None` if the other side closed it between two frames or reset it, as it does
    /// when it is told to stop.
    fn ended(self: &Rc<Self>, reason: Option<String>);
}

/// Serves a connection until its end, then resets it: `socket` resets when it is closed. `arrived` holds bytes that
/// have been read already. With `bounded` the kernel holds few unsent bytes.
pub async fn serve<R: Receiver>(
    mut stream: TcpStream,
    socket: Rc<Socket>,
    out: Rc<Out>,
    arrived: BytesMut,
    bounded: bool,
    receiver: Rc<R>,
    records: Rc<Records>,
) {
    // Owned halves would end it with a FIN when they are dropped.
    let (from, to) = stream.split();
    let bounded = bounded.then(|| socket.clone());
    let reason = tokio::select! {
        reason = read(from, arrived, out.id, &receiver, &records) => reason,
        error = write(to, &out, bounded, &receiver, &records) => reason(error),
    };
    out.close();
    records.closed(out.id, Ended::Reset);
    receiver.ended(reason);
}

async fn read<R: Receiver>(
    mut from: ReadHalf<'_>,
    mut arrived: BytesMut,
    id: ConnectionId,
    receiver: &Rc<R>,
    records: &Records,
) -> Option<String> {
    loop {
        loop {
            match Frame::take(&mut arrived).and_then(|frame| match frame {
                Some(frame) => receiver.frame(frame).map(|()| true),
                None => Ok(false),
            }) {
                Ok(true) => {}
                Ok(false) => break,
                Err(Malformed(what)) => return Some(format!("{what} is not accepted")),
            }
        }
        arrived.reserve(READ);
        match from.read_buf(&mut arrived).await {
            Ok(0) if arrived.is_empty() => return None,
            Ok(0) => return Some("it was closed in the middle of a frame".to_owned()),
            Ok(count) => records.received(id, count),
            Err(error) => return reason(error),
        }
    }
}

fn reason(error: io::Error) -> Option<String> {
    let is_reset = matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
    (!is_reset).then(|| error.to_string())
}

async fn write<R: Receiver>(
    to: WriteHalf<'_>,
    out: &Out,
    bounded: Option<Rc<Socket>>,
    receiver: &Rc<R>,
    records: &Records,
) -> io::Error {
    let mut unbounded = BOUND_EVERY;
    loop {
        let mut frames = out.frames.borrow_mut().split();
        if frames.is_empty() {
            out.wake.notified().await;
            continue;
        }
        out.taken.set(frames.len());
        while !frames.is_empty() {
            if let (Some(socket), true) = (&bounded, unbounded >= BOUND_EVERY) {
                // Without the bound, answers only follow their order less strictly.
                let _ = socket.bound_unsent_to(LEAST_UNSENT);
                unbounded = 0;
            }
            match to.try_write(&frames) {
                Ok(count) => {
                    frames.advance(count);
                    unbounded += count;
                    records.sent(out.id, count);
                    out.taken.set(frames.len());
                    receiver.room();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Err(error) = to.writable().await {
                        return error;
                    }
                }
                Err(error) => return error,
            }
        }
    }
}
