//! The side near the clients: browsers' requests, and answers that came ahead.
//!
//! ```text
//! accepting ─► http1, http2 ─► asking ─► Remote     browsers; one request; what arrives
//! ```

mod accepting;
mod asking;
mod http1;
mod http2;

pub use accepting::begin;

use super::REQUESTS;
use super::exchange::{AnswerHead, Request, Serves, serves, varies};
use super::limits::{FIELDS_LIMIT, HEAD_LIMIT};
use super::link::{Out, Receiver};
use super::parts;
use super::wire::{End, Frame, Malformed};
use crate::records::{Exchange, From, Records};
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use wirepaint_pep_model::Policy;

/// Bytes of a request's body that the ground side takes before it gives credit.
pub const BODY_WINDOW: u32 = 64 * 1024;

/// How long an answer that was sent ahead waits for its request, in ns: the longest visits take 20 minutes.
const AHEAD_TIME: u64 = 30 * 60 * 1_000_000_000;

/// Most closed answers that are remembered one by one: as many as the ground side has under way.
const CLOSED: usize = 8 * 1024;

/// What the tasks of the remote side share.
pub struct Remote {
    policy: Policy,
    /// Class of each user's address.
    classes: BTreeMap<Ipv4Addr, usize>,
    /// Connections to the ground side, those of class 0 first.
    outs: Vec<Rc<Out>>,
    buffer_bytes: u64,
    streams: RefCell<BTreeMap<u32, Stream>>,
    closed: RefCell<Closed>,
    /// Number of the next request.
    next: Cell<u32>,
    /// Bytes that arrived and that no browser has taken.
    held: Cell<u64>,
    /// Requests that may begin.
    permits: Arc<Semaphore>,
    records: Rc<Records>,
}

/// An answer that arrives.
#[derive(Default)]
struct Stream {
    class: usize,
    /// Bytes behind a gap, by their offset.
    behind: BTreeMap<u64, Bytes>,
    /// Offset of the next byte in order.
    next: u64,
    head_bytes: BytesMut,
    head: Option<AnswerHead>,
    /// Bytes of the body in order that no browser has taken.
    ready: VecDeque<Bytes>,
    /// Offset of the end, and how it ends.
    end: Option<(u64, End)>,
    /// The request that the ground side made up for it.
    promise: Option<Request>,
    /// When the promise came.
    promised: u64,
    /// A browser asked for it.
    is_wanted: bool,
    /// Nobody will take what still arrives.
    is_dropped: bool,
    /// The request of a browser that the ground side was asked for.
    asked: Option<Request>,
    /// Who serves it instead.
    served_by: Option<ServedBy>,
    /// Bytes of the request's body that may be sent.
    credit: u32,
    /// Wakes who waits for the answer.
    wake: Rc<Notify>,
    /// Wakes who sends the request's body.
    upload: Rc<Notify>,
}

/// An answer that was sent ahead serves a request unless it varies with one of the fields.
#[derive(Clone)]
struct ServedBy {
    stream: u32,
    unless: BTreeSet<String>,
    /// The ground side said so: nothing follows on the request's own stream.
    told: bool,
}

impl Stream {
    fn is_over(&self) -> bool {
        self.end.is_some_and(|(offset, _)| offset == self.next)
    }

    /// A browser waits for its first byte.
    fn waits(&self) -> bool {
        self.head.is_none() && self.served_by.is_none() && !self.is_dropped && !self.is_over()
    }
}

/// Numbers of answers that came ahead and are closed. Frames on other connections may still name them.
#[derive(Default)]
struct Closed {
    numbers: BTreeSet<u32>,
    /// The ground side counts up, so all numbers up to this one have had their time.
    up_to: u32,
}

impl Closed {
    fn insert(&mut self, stream: u32) {
        self.numbers.insert(stream);
        if self.numbers.len() > CLOSED {
            self.up_to = self.numbers.pop_first().unwrap_or(self.up_to);
        }
    }

    fn contains(&self, stream: u32) -> bool {
        stream <= self.up_to || self.numbers.contains(&stream)
    }
}

impl Remote {
    fn new(
        policy: Policy,
        classes: BTreeMap<Ipv4Addr, usize>,
        outs: Vec<Rc<Out>>,
        buffer_bytes: u64,
        records: Rc<Records>,
    ) -> Rc<Remote> {
        Rc::new(Remote {
            policy,
            classes,
            outs,
            buffer_bytes,
            streams: RefCell::default(),
            closed: RefCell::default(),
            next: Cell::new(1),
            held: Cell::new(0),
            permits: Arc::new(Semaphore::new(REQUESTS)),
            records,
        })
    }

    /// The class of a user; the last one of an address that the run does not know.
    fn class(&self, user: Ipv4Addr) -> usize {
        self.classes.get(&user).copied().unwrap_or(self.policy.class_count() - 1)
    }

    /// The connection on which the ground side is told of a stream.
    fn out(&self, stream: u32, class: usize) -> &Out {
        let per_class = self.policy.connections;
        &self.outs[class * per_class + stream as usize / 2 % per_class]
    }

    /// Opens the stream of a request.
    fn open(&self, class: usize, asked: &Request) -> u32 {
        let stream = self.next.get();
        self.next.set(stream + 2);
        let asked = Some(asked.clone()).filter(|asked| !asked.fresh);
        let state = Stream { class, is_wanted: true, credit: BODY_WINDOW, asked, ..Stream::default() };
        self.streams.borrow_mut().insert(stream, state);
        stream
    }

    /// An answer that was sent ahead, or is, and that serves a request; it is the browser's from now on. The fields
    /// are those that it must not vary with.
    fn claim(&self, asked: &Request) -> Option<(u32, BTreeSet<String>)> {
        let mut streams = self.streams.borrow_mut();
        let found = streams.iter().find_map(|(&stream, state)| {
            let promise = state.promise.as_ref().filter(|_| !state.is_wanted && !state.is_dropped)?;
            match serves(promise, asked) {
                Serves::Yes => Some((stream, BTreeSet::new())),
                Serves::Unless(fields) if state.head.as_ref().is_some_and(|head| varies(head, &fields)) => {
                    None
                }
                Serves::Unless(fields) => Some((stream, fields)),
                Serves::No => None,
            }
        });
        if let Some((stream, _)) = &found {
            streams.get_mut(stream).expect("it was found").is_wanted = true;
        }
        found
    }

    /// Claims a certain answer that is sent ahead; false if it was dropped or closed.
    fn claim_stream(&self, stream: u32, class: usize) -> bool {
        let mut streams = self.streams.borrow_mut();
        // Its first bytes may come after this word, on another connection.
        let Some(state) = self.state_of_ahead(&mut streams, stream) else { return false };
        state.class = class;
        let free = !state.is_wanted && !state.is_dropped;
        state.is_wanted |= free;
        free
    }

    /// The state of an answer that is sent ahead, which may be new; `None` if it is closed.
    fn state_of_ahead<'a>(
        &self,
        streams: &'a mut BTreeMap<u32, Stream>,
        stream: u32,
    ) -> Option<&'a mut Stream> {
        let is_closed = !streams.contains_key(&stream) && self.closed.borrow().contains(stream);
        (!is_closed).then(|| streams.entry(stream).or_default())
    }

    /// Drops what was sent ahead and is too old, and for this user's earlier page.
    fn forget_ahead(&self, user: Option<Ipv4Addr>) {
        let since = self.records.now().saturating_sub(AHEAD_TIME);
        let is_stale = |state: &Stream| {
            let promise = state.promise.as_ref();
            promise.is_some_and(|promise| state.promised < since || Some(*promise.user.ip()) == user)
        };
        let streams = self.streams.borrow();
        let stale: Vec<u32> = streams
            .iter()
            .filter(|(_, state)| !state.is_wanted && !state.is_dropped && is_stale(state))
            .map(|(&stream, _)| stream)
            .collect();
        drop(streams);
        stale.into_iter().for_each(|stream| self.drop_stream(stream));
    }

    /// Nobody wants an answer any more. Bytes that still come are counted and passed over.
    fn drop_stream(&self, stream: u32) {
        let mut streams = self.streams.borrow_mut();
        let Some(state) = streams.get_mut(&stream).filter(|state| !state.is_dropped) else { return };
        state.is_dropped = true;
        state.upload.notify_one();
        let ready: u64 = state.ready.drain(..).map(|bytes| bytes.len() as u64).sum();
        let (class, is_over, unused) = (state.class, state.is_over(), !state.is_wanted);
        if !is_over || unused {
            self.out(stream, class).put(&Frame::Cancel { stream, unused });
        }
        if is_over {
            self.close(&mut streams, stream);
        }
        drop(streams);
        self.passed_on(stream, class, ready);
    }

    /// Forgets a stream of which nothing follows; notes it if it came ahead for nobody.
    fn close(&self, streams: &mut BTreeMap<u32, Stream>, stream: u32) {
        if let Some(state) = streams.remove(&stream) {
            state.upload.notify_one();
            self.note_unused(&state);
            if stream.is_multiple_of(2) {
                self.closed.borrow_mut().insert(stream);
            }
        }
    }

    fn note_unused(&self, state: &Stream) {
        if let (Some(promise), false) = (&state.promise, state.is_wanted) {
            self.records.exchange(Exchange {
                time: state.promised,
                client_address: *promise.user.ip(),
                client_port: promise.user.port(),
                method: promise.method.to_string(),
                url: promise.url(),
                from: From::Ahead,
                wanted: false,
                status: state.head.as_ref().map(|head| head.status.as_u16()),
                body_bytes: 0,
                link_bytes: state.next + state.behind.values().map(|bytes| bytes.len() as u64).sum::<u64>(),
                connection: None,
                whole: state.is_over(),
            });
        }
    }

    /// Notes what is here at the end of the run and was for nobody.
    pub fn note_rest(&self) {
        self.streams.borrow().values().for_each(|state| self.note_unused(state));
    }

    /// Bytes of a stream left this side's memory: the ground side may send as many more.
    fn passed_on(&self, stream: u32, class: usize, bytes: u64) {
        if bytes > 0 {
            self.held.set(self.held.get().saturating_sub(bytes));
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.out(stream, class).put(&Frame::Credit { stream, bytes });
        }
    }

    fn data(&self, stream: u32, offset: u64, end: Option<End>, bytes: Bytes) -> Result<(), Malformed> {
        let mut streams = self.streams.borrow_mut();
        let state = if stream.is_multiple_of(2) {
            self.state_of_ahead(&mut streams, stream)
        } else {
            streams.get_mut(&stream)
        };
        let state = state.ok_or(Malformed("stream of an answer"))?;
        let length = bytes.len() as u64;
        let behind_end = state.end.is_some_and(|(last, _)| offset + length > last || end.is_some());
        if offset < state.next || behind_end || self.held.get() + length > self.buffer_bytes {
            return Err(Malformed("offset of an answer"));
        }
        if let Some(end) = end {
            state.end = Some((offset + length, end));
        }
        if length > 0 {
            self.held.set(self.held.get() + length);
            // What has to wait there keeps no more memory than its own.
            let bytes = if offset == state.next { bytes } else { Bytes::copy_from_slice(&bytes) };
            if state.behind.insert(offset, bytes).is_some() {
                return Err(Malformed("offset of an answer"));
            }
        }
        let mut passed = 0;
        while let Some(mut bytes) = state.behind.remove(&state.next) {
            state.next += bytes.len() as u64;
            if state.is_dropped {
                passed += bytes.len() as u64;
                continue;
            }
            if state.head.is_none() {
                passed += take_head(state, &mut bytes)?;
            }
            if !bytes.is_empty() {
                parts::append(&mut state.ready, bytes);
            }
        }
        state.wake.notify_one();
        state.upload.notify_one();
        let class = state.class;
        if state.is_dropped && state.is_over() {
            self.close(&mut streams, stream);
        }
        drop(streams);
        self.passed_on(stream, class, passed);
        Ok(())
    }

    fn promise(&self, stream: u32, request: &[u8]) -> Result<(), Malformed> {
        if stream % 2 == 1 {
            return Err(Malformed("stream of a promise"));
        }
        let request = Request::take(request)?;
        let mut streams = self.streams.borrow_mut();
        let Some(state) = self.state_of_ahead(&mut streams, stream) else { return Ok(()) };
        state.class = self.class(*request.user.ip());
        state.promise = Some(request.clone());
        state.promised = self.records.now();
        if state.is_wanted || state.is_dropped {
            return Ok(());
        }
        // The ground side will say so, too, but maybe behind all that waits for the link.
        for waiting in streams.values_mut().filter(|state| state.waits()) {
            let unless = match waiting.asked.as_ref().map(|asked| serves(&request, asked)) {
                Some(Serves::Yes) => BTreeSet::new(),
                Some(Serves::Unless(fields)) => fields,
                Some(Serves::No) | None => continue,
            };
            waiting.served_by = Some(ServedBy { stream, unless, told: false });
            waiting.wake.notify_one();
            break;
        }
        Ok(())
    }
}

/// Takes the head of an answer from its first bytes. Returns how many it took.
fn take_head(state: &mut Stream, bytes: &mut Bytes) -> Result<u64, Malformed> {
    const LARGEST: usize = HEAD_LIMIT + 8 * FIELDS_LIMIT + 64;
    let before = bytes.len();
    while state.head.is_none() && !bytes.is_empty() {
        let length = match state.head_bytes.first_chunk::<4>() {
            Some(length) => u32::from_be_bytes(*length) as usize,
            None => 0,
        };
        if length > LARGEST {
            return Err(Malformed("length of a head"));
        }
        let wanted = 4 + length - state.head_bytes.len();
        let taken = bytes.split_to(wanted.min(bytes.len()));
        state.head_bytes.extend_from_slice(&taken);
        let Some(length) = state.head_bytes.first_chunk::<4>() else { continue };
        if state.head_bytes.len() == 4 + u32::from_be_bytes(*length) as usize {
            state.head = Some(AnswerHead::take(&state.head_bytes[4..])?);
            state.head_bytes = BytesMut::new();
        }
    }
    Ok((before - bytes.len()) as u64)
}

impl Receiver for Remote {
    fn frame(self: &Rc<Self>, frame: Frame) -> Result<(), Malformed> {
        match frame {
            Frame::Data { stream, offset, end, bytes } => self.data(stream, offset, end, bytes),
            Frame::Promise { stream, request } => self.promise(stream, &request),
            Frame::Serve { stream, by, unless } => {
                let mut streams = self.streams.borrow_mut();
                // A request that was given up is answered nevertheless.
                if let Some(state) = streams.get_mut(&stream) {
                    state.served_by = Some(ServedBy { stream: by, unless, told: true });
                    state.wake.notify_one();
                    if state.is_dropped {
                        streams.remove(&stream);
                    }
                }
                Ok(())
            }
            Frame::Credit { stream, bytes } => {
                if let Some(state) = self.streams.borrow_mut().get_mut(&stream) {
                    state.credit = state.credit.saturating_add(bytes).min(BODY_WINDOW);
                    state.upload.notify_one();
                }
                Ok(())
            }
            _ => Err(Malformed("kind of a frame")),
        }
    }

    fn ended(self: &Rc<Self>, reason: Option<String>) {
        // This side is told to stop first, so the other one ends no connection that it still serves.
        self.records.lost(reason.unwrap_or_else(|| "the ground side closed it".to_owned()));
        let mut streams = self.streams.borrow_mut();
        // Every answer may have bytes on this connection.
        for state in streams.values_mut().filter(|state| !state.is_over()) {
            state.behind.clear();
            state.end = Some((state.next, End::Broken));
            state.wake.notify_one();
            state.upload.notify_one();
        }
    }
}
