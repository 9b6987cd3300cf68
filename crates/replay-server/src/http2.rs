//! HTTP/2 on one connection (RFC 9113), responses in the order of their priorities.
//!
//! The h2 crate does framing and flow control, but sends queued data in turns. So it gets one DATA frame at a
//! time, and the next only when that one has reached the kernel, whose unsent backlog is bounded
//! ([`Socket::bound_unsent`]). A response that becomes urgent waits for no more than that. Headers are sent
//! at once, as most servers do.

use crate::answer::{Answer, Ask};
use crate::clock::{Timer, monotonic};
use crate::http1::IDLE_TIME;
use crate::matching::{Matched, Target};
use crate::records::{Asked, ConnectionId, RequestId};
use crate::site::{Origins, Site};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response, StatusCode, request};
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, timeout};
use wirepaint_http_model::{Change, Priority, Schedule};
use wirepaint_observed_sockets::Socket;
use wirepaint_serving::{Seen, Tap};

/// Time for the client's preface.
const OPENING_TIME: Duration = Duration::from_secs(30);
/// Streams that a client may have open at once; nginx has the same.
const STREAMS: u32 = 128;
/// Largest list of request headers in bytes, as RFC 9113 counts them.
const HEADER_LIST: u32 = 64 * 1024;
/// Most payload of a DATA frame: with the frame's header of nine bytes, one full TLS record.
const FRAME: usize = 16_384 - 9;
/// The bound of the unsent backlog is updated every time this many bytes have been handed over.
const BOUND_EVERY: usize = 16 * 1024;
/// Most changes of priority that are kept for future requests.
const EARLY_CHANGES: usize = 128;

/// Serves requests until the connection ends. The socket's unsent backlog is bounded from here on.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    io: S,
    site: &Site,
    origins: &Origins,
    id: ConnectionId,
    socket: Rc<Socket>,
) {
    let (tap, seen) = Tap::new(io);
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(STREAMS).max_header_list_size(HEADER_LIST);
    let Ok(Ok(connection)) = timeout(OPENING_TIME, builder.handshake(tap)).await else { return };
    let mut session = Session {
        site,
        origins,
        id,
        socket,
        seen,
        connection,
        uploads: Vec::new(),
        waiting: BTreeMap::new(),
        sending: HashMap::new(),
        schedule: Schedule::default(),
        unwritten: Vec::new(),
        early: HashMap::new(),
        newest: 0,
        unbounded: BOUND_EVERY,
        timer: Timer::default(),
        idle: Box::pin(tokio::time::sleep(IDLE_TIME)),
    };
    std::future::poll_fn(|cx| session.poll(cx)).await
}

/// A request whose body has not arrived in full.
struct Upload {
    head: request::Parts,
    body: RecvStream,
    respond: SendResponse<Bytes>,
}

/// An answer whose think time is running.
struct Waiting {
    request: RequestId,
    answer: Answer,
    respond: SendResponse<Bytes>,
    priority: Priority,
}

/// A response that has bytes to send.
struct Sending {
    request: RequestId,
    stream: SendStream<Bytes>,
    rest: Bytes,
}

/// A byte whose time of writing is recorded.
enum Mark {
    First(RequestId),
    Last(RequestId),
}

struct Session<'a, S> {
    site: &'a Site,
    origins: &'a Origins,
    id: ConnectionId,
    socket: Rc<Socket>,
    seen: Rc<Seen>,
    connection: h2::server::Connection<Tap<S>, Bytes>,
    uploads: Vec<Upload>,
    /// Ordered by their begin and their stream.
    waiting: BTreeMap<(u64, u32), Waiting>,
    sending: HashMap<u32, Sending>,
    schedule: Schedule,
    /// Marks on bytes in the h2 crate that may not have reached the kernel.
    unwritten: Vec<Mark>,
    /// Changes of priority of streams that have not been opened, or whose request is not complete.
    early: HashMap<u32, Change>,
    newest: u32,
    /// Bytes handed over since the unsent backlog was bounded.
    unbounded: usize,
    timer: Timer,
    idle: Pin<Box<Sleep>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<'_, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // Reads, writes and flushes until the transport blocks.
            while let Poll::Ready(next) = self.connection.poll_accept(cx) {
                match next {
                    Some(Ok((request, respond))) => self.accept(request, respond),
                    Some(Err(_)) | None => return Poll::Ready(()),
                }
            }
            if self.seen.is_flushed() {
                self.stamp();
            }
            self.reprioritise();
            let mut progress = self.receive(cx) | self.begin_due(cx);
            if self.seen.is_flushed() {
                progress |= self.hand_out(cx);
            }
            if !progress {
                return self.poll_idle(cx);
            }
        }
    }

    fn accept(&mut self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.newest = self.newest.max(respond.stream_id().as_u32());
        let (head, body) = request.into_parts();
        if body.is_end_stream() {
            self.answer(head, respond);
        } else {
            self.uploads.push(Upload { head, body, respond });
        }
    }

    /// Reads request bodies; true when one is complete.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        let mut i = 0;
        while i < self.uploads.len() {
            let upload = &mut self.uploads[i];
            match upload.body.poll_data(cx) {
                Poll::Pending => i += 1,
                Poll::Ready(Some(Ok(data))) => {
                    // An error means that the stream is gone, which the next poll reports.
                    let _ = upload.body.flow_control().release_capacity(data.len());
                }
                Poll::Ready(Some(Err(_))) => {
                    let cancelled = self.uploads.swap_remove(i);
                    self.early.remove(&cancelled.respond.stream_id().as_u32());
                }
                Poll::Ready(None) => {
                    let Upload { head, respond, .. } = self.uploads.swap_remove(i);
                    self.answer(head, respond);
                    progress = true;
                }
            }
        }
        progress
    }

    /// Chooses the answer to a complete request; it begins after its think time.
    fn answer(&mut self, head: request::Parts, respond: SendResponse<Bytes>) {
        let at = monotonic();
        let mut ask = Ask { method: head.method.as_str().to_owned(), ..Ask::default() };
        for (name, value) in &head.headers {
            ask.note(name.as_str(), value.as_bytes());
        }
        let authority = head.uri.authority().map(|authority| authority.as_str());
        let host = || head.headers.get("host").and_then(|host| host.to_str().ok());
        let target = authority.or_else(host).and_then(|authority| {
            let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
            Target::new(self.origins.scheme(), authority, path)
        });
        let (answer, url) = match &target {
            Some(target) => (self.site.answer(self.origins, &ask, target), target.to_string()),
            None => (Answer::empty(StatusCode::BAD_REQUEST, Matched::None), String::new()),
        };
        let stream = respond.stream_id().as_u32();
        let header = ask.priority.as_deref().map(Priority::parse).unwrap_or_default();
        let priority = self.early.remove(&stream).map_or(header, |change| change.apply(header));
        let Ask { method, priority: header, .. } = ask;
        let asked = Asked { at, method, url, priority: header };
        let request = self.site.records.asked(self.id, asked, &answer);
        let begin = (at.saturating_add(answer.think_ns), stream);
        self.waiting.insert(begin, Waiting { request, answer, respond, priority });
    }

    /// Begins every answer whose think time is over and sets the timer for the next. True if any began.
    fn begin_due(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while let Some((&(time, _), _)) = self.waiting.first_key_value() {
            match self.timer.poll_until(cx, time) {
                Poll::Pending => break,
                // A failed timer counts as expired: late answers would be worse than early ones.
                Poll::Ready(_) => {
                    if let Some(((_, stream), waiting)) = self.waiting.pop_first() {
                        self.begin(stream, waiting);
                        progress = true;
                    }
                }
            }
        }
        progress
    }

    /// Sends the headers and puts the body into the schedule.
    fn begin(&mut self, id: u32, waiting: Waiting) {
        let Waiting { request, answer, mut respond, priority } = waiting;
        self.site.records.began(request);
        let mut response = Response::new(());
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.header_map();
        // A refusal means that the client has cancelled the stream; its record stays unfinished.
        let Ok(stream) = respond.send_response(response, answer.body.is_empty()) else { return };
        self.unwritten.push(Mark::First(request));
        if answer.body.is_empty() {
            self.unwritten.push(Mark::Last(request));
        } else {
            self.sending.insert(id, Sending { request, stream, rest: answer.body });
            self.schedule.add(id, priority);
        }
    }

    /// Gives the h2 crate its next DATA frame; false when no response can send.
    fn hand_out(&mut self, cx: &mut Context<'_>) -> bool {
        self.schedule.unblock();
        while let Some(id) = self.schedule.next() {
            let Some(sending) = self.sending.get_mut(&id) else {
                unreachable!("every scheduled response is sending")
            };
            sending.stream.reserve_capacity(sending.rest.len().min(FRAME));
            let size = sending.stream.capacity().min(sending.rest.len()).min(FRAME);
            if size == 0 {
                // Keeps no reservation: capacity of a window goes by priority.
                sending.stream.reserve_capacity(0);
                match sending.stream.poll_reset(cx) {
                    Poll::Pending => self.schedule.block(id),
                    Poll::Ready(_) => self.drop_response(id),
                }
                continue;
            }
            let data = sending.rest.split_to(size);
            let (request, done) = (sending.request, sending.rest.is_empty());
            if sending.stream.send_data(data, done).is_err() {
                self.drop_response(id);
                continue;
            }
            self.schedule.served(id);
            if done {
                self.unwritten.push(Mark::Last(request));
                self.drop_response(id);
            }
            self.site.records.sent(request, size);
            self.bound_unsent(size);
            return true;
        }
        false
    }

    fn bound_unsent(&mut self, handed: usize) {
        self.unbounded += handed;
        if self.unbounded >= BOUND_EVERY {
            self.unbounded = 0;
            // Without the bound, responses only follow their priorities less strictly.
            let _ = self.socket.bound_unsent();
        }
    }

    fn drop_response(&mut self, id: u32) {
        self.schedule.remove(id);
        self.sending.remove(&id);
    }

    /// Notes the time for all bytes that have now reached the kernel.
    fn stamp(&mut self) {
        for mark in self.unwritten.drain(..) {
            match mark {
                Mark::First(request) => self.site.records.first_byte(request),
                Mark::Last(request) => self.site.records.last_byte(request),
            }
        }
    }

    fn reprioritise(&mut self) {
        for (stream, change) in self.seen.changes() {
            self.schedule.change(stream, change);
            if let Some((_, waiting)) = self.waiting.iter_mut().find(|((_, id), _)| *id == stream) {
                waiting.priority = change.apply(waiting.priority);
            } else if self.is_uploading(stream) || (stream > self.newest && self.early.len() < EARLY_CHANGES)
            {
                self.early.insert(stream, change);
            }
        }
    }

    fn is_uploading(&self, stream: u32) -> bool {
        self.uploads.iter().any(|upload| upload.respond.stream_id().as_u32() == stream)
    }

    /// Ends the connection after a long time without traffic and without an answer in its think time.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.idle.as_mut().poll(cx).is_ready() {
            let until = self.seen.active() + IDLE_TIME;
            if until <= Instant::now() && self.waiting.is_empty() {
                return Poll::Ready(());
            }
            self.idle.as_mut().reset(until.max(Instant::now() + Duration::from_secs(1)));
        }
        Poll::Pending
    }
}
