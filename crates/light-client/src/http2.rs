//! HTTP/2 on one connection (RFC 9113), with the windows of Chromium.
//!
//! The h2 crate does framing, compression and flow control above memory: it is polled whenever bytes have come,
//! so no waker and no executor is needed. It cannot send a change of priority; those frames are put between its
//! own (RFC 9218, section 7.1).

use crate::event::{Event, Fault};
use crate::requests::{Request, value};
use bytes::{Buf, Bytes, BytesMut};
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wirepaint_http_model::Priority;

/// Chromium's settings (`net/spdy`, `net/http/http_network_session.cc`): windows of a stream and of the connection,
/// largest list of fields, table of HPACK.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;
const HEADER_LIST: u32 = 256 << 10;
const HEADER_TABLE: u32 = 64 << 10;

/// Bytes of a request's body that are handed over at once.
static ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];

/// Header of a frame, and types of frames (RFC 9113, 4.1 and 6; RFC 9218, 7.1).
const FRAME_HEADER: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const PRIORITY_UPDATE: u8 = 16;

/// The client's side of a connection.
pub struct Http2 {
    wire: Rc<RefCell<Wire>>,
    connection: Connection<Half, Bytes>,
    send: SendRequest<Bytes>,
    /// Requests that wait for a stream.
    waiting: VecDeque<(Request, Priority)>,
    streams: Vec<Stream>,
    frames: Frames,
    /// The connection has ended.
    pub is_over: bool,
}

struct Stream {
    request: u32,
    id: u32,
    answer: Answer,
    upload: Option<(SendStream<Bytes>, u64)>,
}

enum Answer {
    Head(ResponseFuture),
    Body(RecvStream),
    Complete,
}

impl Http2 {
    /// A connection whose preface and settings are ready to be sent.
    pub fn new() -> Result<Http2, Fault> {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let mut builder = Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_LIST)
            .header_table_size(HEADER_TABLE)
            .enable_push(false);
        let opening = pin!(builder.handshake::<_, Bytes>(Half(wire.clone())));
        match opening.poll(&mut context()) {
            Poll::Ready(Ok((send, connection))) => Ok(Http2 {
                wire,
                connection,
                send,
                waiting: VecDeque::new(),
                streams: Vec::new(),
                frames: Frames::default(),
                is_over: false,
            }),
            Poll::Ready(Err(error)) => Err(Fault::new(format!("HTTP/2: {error}"))),
            Poll::Pending => unreachable!("memory takes the preface at once"),
        }
    }

    /// Bytes to send.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.wire.borrow_mut().output)
    }

    /// Writes a request, or keeps it until the server allows one more stream.
    pub fn ask(&mut self, request: Request, priority: Priority) {
        self.waiting.push_back((request, priority));
    }

    /// Tells the server a new priority.
    pub fn raise(&mut self, request: u32, priority: Priority) {
        if let Some((_, waiting)) = self.waiting.iter_mut().find(|(waiting, _)| waiting.number == request) {
            *waiting = priority;
        } else if let Some(stream) = self.streams.iter().find(|stream| stream.request == request) {
            let value = value(priority);
            let length = (4 + value.len()) as u32;
            // All frames of the crate are whole: each poll writes until nothing is left.
            let output = &mut self.wire.borrow_mut().output;
            output.extend_from_slice(&length.to_be_bytes()[1..]);
            output.extend_from_slice(&[PRIORITY_UPDATE, 0, 0, 0, 0, 0]);
            output.extend_from_slice(&stream.id.to_be_bytes());
            output.extend_from_slice(value.as_bytes());
        }
    }

    /// Reads what the server has sent.
    pub fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Fault> {
        self.frames.count(bytes, &self.streams);
        self.wire.borrow_mut().input.extend_from_slice(bytes);
        self.drive(events)
    }

    /// The server sends no more.
    pub fn end(&mut self, events: &mut Vec<Event>) -> Result<(), Fault> {
        self.wire.borrow_mut().ended = true;
        self.drive(events)?;
        self.is_over = true;
        Ok(())
    }

    /// Lets the connection do all that it can do.
    pub fn drive(&mut self, events: &mut Vec<Event>) -> Result<(), Fault> {
        let cx = &mut context();
        loop {
            let mut progress = false;
            let mut ended = None;
            if !self.is_over
                && let Poll::Ready(end) = Pin::new(&mut self.connection).poll(cx)
            {
                self.is_over = true;
                ended = Some(end);
            }
            progress |= self.open_streams(cx)?;
            for stream in &mut self.streams {
                progress |= stream.upload(cx);
                progress |= stream.hear(cx, &mut self.frames, self.is_over, events)?;
            }
            self.streams.retain(|stream| !matches!(stream.answer, Answer::Complete));
            if let Some(Err(error)) = ended
                && !error.is_io()
                && !(error.is_go_away() && error.is_remote())
            {
                return Err(Fault::new(format!("HTTP/2: {error}")));
            }
            if !progress {
                return Ok(());
            }
        }
    }

    /// Writes the requests for which the server allows a stream; true if there were any.
    fn open_streams(&mut self, cx: &mut Context<'_>) -> Result<bool, Fault> {
        let mut progress = false;
        while !self.waiting.is_empty() && !self.is_over {
            match self.send.poll_ready(cx) {
                Poll::Pending => break,
                // The next poll of the connection says why.
                Poll::Ready(Err(_)) => break,
                Poll::Ready(Ok(())) => {}
            }
            let Some((request, priority)) = self.waiting.pop_front() else { break };
            let head = head(&request, priority)?;
            let sent = self.send.send_request(head, request.body == 0);
            let (response, stream) = sent.map_err(|error| Fault::new(format!("HTTP/2: {error}")))?;
            self.streams.push(Stream {
                request: request.number,
                id: response.stream_id().as_u32(),
                answer: Answer::Head(response),
                upload: (request.body > 0).then_some((stream, request.body)),
            });
            progress = true;
        }
        Ok(progress)
    }
}

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn head(request: &Request, priority: Priority) -> Result<http::Request<()>, Fault> {
    let uri = format!("https://{}{}", request.authority, request.path);
    let mut head = http::Request::builder().method(request.method.as_str()).uri(uri);
    for (name, text) in request.fields.iter().filter(|(name, _)| *name != "priority") {
        head = head.header(*name, text.as_str());
    }
    let head = head.header("priority", value(priority)).body(());
    head.map_err(|error| Fault::new(format!("the request to {}: {error}", request.authority)))
}

impl Stream {
    /// Hands over what the server's windows allow of the request's body; true if anything was.
    fn upload(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((stream, left)) = &mut self.upload else { return false };
        let wanted = ZEROS.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        stream.reserve_capacity(wanted);
        let _ = stream.poll_capacity(cx);
        let size = stream.capacity().min(wanted);
        if size == 0 {
            return false;
        }
        *left -= size as u64;
        let done = *left == 0;
        // A refusal means that the stream has ended, which its answer says.
        let refused = stream.send_data(Bytes::from_static(&ZEROS[..size]), done).is_err();
        if done || refused {
            self.upload = None;
        }
        true
    }

    /// Takes what has come of the answer; true if anything has.
    fn hear(
        &mut self,
        cx: &mut Context<'_>,
        frames: &mut Frames,
        is_over: bool,
        events: &mut Vec<Event>,
    ) -> Result<bool, Fault> {
        let request = self.request;
        let broken = |error: h2::Error| {
            // The end of the connection is no fault of the answer.
            if is_over { Ok(false) } else { Err(Fault::new(format!("HTTP/2, answer {request}: {error}"))) }
        };
        let mut progress = false;
        if let Answer::Head(response) = &mut self.answer {
            match Pin::new(response).poll(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Err(error)) => {
                    self.answer = Answer::Complete;
                    return broken(error);
                }
                Poll::Ready(Ok(answer)) => {
                    let status = answer.status().as_u16();
                    events.push(Event::Head { request, status, bytes: frames.head(self.id) });
                    self.answer = Answer::Body(answer.into_body());
                    progress = true;
                }
            }
        }
        while let Answer::Body(body) = &mut self.answer {
            match body.poll_data(cx) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(data))) => {
                    progress = true;
                    // An error means that the stream is gone, which the next poll says.
                    let _ = body.flow_control().release_capacity(data.len());
                    let payload = data.len() as u64;
                    let bytes = payload + frames.around(self.id);
                    events.push(Event::Body { request, bytes, payload });
                }
                Poll::Ready(Some(Err(error))) => {
                    self.answer = Answer::Complete;
                    return broken(error);
                }
                Poll::Ready(None) => {
                    progress = true;
                    self.answer = Answer::Complete;
                    frames.untold.remove(&self.id);
                    events.push(Event::Complete { request });
                }
            }
        }
        Ok(progress)
    }
}

/// Counts the bytes of frames by stream, which the h2 crate does not tell.
#[derive(Default)]
struct Frames {
    header: Vec<u8>,
    /// Bytes to come of the frame whose header was read.
    left: usize,
    /// Of an open stream: bytes of its head, and of the headers of DATA frames, that no event has told yet.
    untold: HashMap<u32, [u64; 2]>,
}

impl Frames {
    fn count(&mut self, mut bytes: &[u8], streams: &[Stream]) {
        while !bytes.is_empty() {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes.advance(skipped);
            let missing = (FRAME_HEADER - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..missing]);
            bytes.advance(missing);
            if let Ok([a, b, c, kind, _, d, e, f, g]) = <[u8; FRAME_HEADER]>::try_from(&self.header[..]) {
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                let id = u32::from_be_bytes([d & 0x7f, e, f, g]);
                if matches!(kind, DATA | HEADERS | CONTINUATION) && streams.iter().any(|s| s.id == id) {
                    let [head, around] = self.untold.entry(id).or_default();
                    match kind {
                        DATA => *around += FRAME_HEADER as u64,
                        _ => *head += (FRAME_HEADER + self.left) as u64,
                    }
                }
                self.header.clear();
            }
        }
    }

    /// Bytes of a stream's head.
    fn head(&mut self, stream: u32) -> u64 {
        self.untold.get_mut(&stream).map(|[head, _]| std::mem::take(head)).unwrap_or_default()
    }

    /// Bytes around the stream's body since the last call.
    fn around(&mut self, stream: u32) -> u64 {
        self.untold.get_mut(&stream).map(|[_, around]| std::mem::take(around)).unwrap_or_default()
    }
}

/// Both directions in memory.
#[derive(Default)]
struct Wire {
    input: BytesMut,
    output: Vec<u8>,
    ended: bool,
}

/// The h2 crate's end of them.
struct Half(Rc<RefCell<Wire>>);

impl AsyncRead for Half {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut wire = self.0.borrow_mut();
        if wire.input.is_empty() && !wire.ended {
            return Poll::Pending;
        }
        let size = wire.input.len().min(buffer.remaining());
        buffer.put_slice(&wire.input.split_to(size));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Half {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u32) -> Request {
        let [method, authority, path] = ["GET", "a.test", "/"].map(str::to_owned);
        Request { number, method, authority, path, fields: Vec::new(), body: 0 }
    }

    #[test]
    fn a_changed_priority_is_a_frame_of_its_own_behind_its_request() {
        let mut http = Http2::new().unwrap();
        let low = Priority { urgency: 3, incremental: true };
        http.ask(request(7), low);
        http.drive(&mut Vec::new()).unwrap();
        assert!(!http.output().is_empty());
        http.raise(7, Priority { urgency: 1, incremental: true });
        let frame = [&[0, 0, 10, PRIORITY_UPDATE, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], b"u=1, i"].concat();
        assert_eq!(http.output(), frame);
        http.raise(8, low);
        assert!(http.output().is_empty(), "nobody asked for it");
    }

    #[test]
    fn a_priority_that_changes_before_the_request_is_written_goes_with_it() {
        let mut http = Http2::new().unwrap();
        http.ask(request(7), Priority { urgency: 3, incremental: true });
        http.output();
        http.raise(7, Priority { urgency: 0, incremental: false });
        assert!(http.output().is_empty());
        assert_eq!(http.waiting[0].1, Priority { urgency: 0, incremental: false });
    }

    #[test]
    fn what_is_not_http2_is_a_fault() {
        let mut http = Http2::new().unwrap();
        let fault = http.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut Vec::new()).unwrap_err();
        assert!(fault.0.starts_with("HTTP/2: "), "{}", fault.0);
    }

    #[test]
    fn frames_are_counted_wherever_they_are_cut() {
        let mut http = Http2::new().unwrap();
        http.ask(request(7), Priority::default());
        http.drive(&mut Vec::new()).unwrap();
        let frame = |kind: u8, stream: u8, bytes: u8| {
            [&[0, 0, bytes, kind, 0, 0, 0, 0, stream][..], &vec![0; usize::from(bytes)]].concat()
        };
        let all = [frame(HEADERS, 1, 20), frame(DATA, 1, 50), frame(DATA, 3, 9), frame(DATA, 1, 1)].concat();
        for cut in 1..all.len() {
            let mut frames = Frames::default();
            all.chunks(cut).for_each(|bytes| frames.count(bytes, &http.streams));
            assert_eq!((frames.head(1), frames.around(1), frames.around(3)), (29, 18, 0), "{cut}");
        }
    }
}
