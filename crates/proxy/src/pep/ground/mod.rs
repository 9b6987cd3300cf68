//! The side near the servers: it fetches, looks ahead and decides what goes over the connections next.
//!
//! ```text
//! accepting ─► Ground ◄─ fetching ─► pool     requests; what is to be sent; one request to an origin
//!                            └─────► markup, ahead     what a page needs
//!                 └────► memory                       how much of each answer may wait
//! ```

mod accepting;
mod ahead;
mod fetching;
mod markup;
mod memory;
mod pool;

pub use accepting::begin;

use super::exchange::{Request, Serves, priority_of, serves, varies};
use super::link::{Out, Receiver};
use super::parts;
use super::remote::BODY_WINDOW;
use super::wire::{End, Frame, Malformed};
use super::{Hosts, Settings};
use crate::records::{ExchangeId, Records};
use bytes::{Bytes, BytesMut};
use http::Method;
use memory::Memory;
use pool::Pool;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;
use tokio::time::sleep;
use wirepaint_http_model::Priority;
use wirepaint_pep_model::{Grant, PepSchedule, SMALL_FRAME, Scheduler, Wanted};
use wirepaint_run::{Ahead, Compression};

/// Bytes that wait on a connection before its next turn: with the fair order few, so that urgent answers overtake.
const ROOM_FAIR: usize = 4 * SMALL_FRAME as usize;
const ROOM_ARRIVAL: usize = 128 * 1024;
/// Most addresses of a page that are fetched ahead.
const MOST: usize = 1024;
/// Parts of a request's body that wait for the origin: as many bytes as the remote side may send.
const PARTS: usize = BODY_WINDOW as usize;

/// What the tasks of the ground side share.
pub struct Ground {
    inner: RefCell<Inner>,
    /// Bytes left this side's memory, or the remote side's.
    room: Notify,
    /// A browser asked for what is fetched ahead.
    asked: Notify,
    /// The rate holds something back.
    held_back: Notify,
    pool: Pool,
    /// Hosts of each origin's site.
    hosts: BTreeMap<SocketAddrV4, Rc<Hosts>>,
    classes: BTreeMap<Ipv4Addr, usize>,
    compression: Compression,
    ahead: Ahead,
    rehearsed: BTreeMap<(SocketAddrV4, String), Vec<String>>,
    records: Rc<Records>,
}

struct Inner {
    scheduler: Scheduler,
    /// `None` until the remote side has opened it.
    outs: Vec<Option<Rc<Out>>>,
    streams: BTreeMap<u32, Stream>,
    /// Streams with bytes for which the remote side has no room.
    waiting: BTreeSet<u32>,
    /// Number of the next answer that is sent ahead.
    next: u32,
    /// Records of what is, or was, fetched ahead.
    ahead: BTreeMap<u32, ExchangeId>,
    /// This side's memory: what answers have queued.
    here: Memory,
    /// The remote side's: what is sent, or about to be, and was not passed on.
    there: Memory,
    /// Addresses that were asked for, or fetched ahead, by user; of the present page.
    looked_at: BTreeMap<Ipv4Addr, BTreeSet<String>>,
}

/// An answer.
struct Stream {
    user: Ipv4Addr,
    class: usize,
    wanted: Wanted,
    /// Of one sent ahead: the request that was made up, and the answer's head once it is known.
    promise: Option<Request>,
    head: Option<super::exchange::AnswerHead>,
    /// The scheduler knows it.
    is_scheduled: bool,
    queue: VecDeque<Bytes>,
    queued: u64,
    /// Bytes that the scheduler may send.
    offered: u64,
    /// Bytes that are sent and that the remote side has not passed on.
    outstanding: u64,
    offset: u64,
    end: Option<End>,
    /// The end is sent.
    is_over: bool,
    /// Takes parts of the request's body.
    upload: Option<mpsc::Sender<Option<Bytes>>>,
    fetch: Option<AbortHandle>,
}

impl Stream {
    fn is_ahead(&self) -> bool {
        self.wanted == Wanted::Ahead
    }

    /// Bytes in the remote side's memory, or about to be.
    fn there(&self) -> u64 {
        self.offered + self.outstanding
    }
}

impl Inner {
    /// Notes that a user's page asks for an address; false if it did before, or asks for too many.
    fn note_asked(&mut self, request: &Request) -> bool {
        let looked_at = self.looked_at.entry(*request.user.ip()).or_default();
        looked_at.len() <= MOST && looked_at.insert(request.url())
    }
}

impl Ground {
    fn new(settings: &Settings, pool: Pool, records: Rc<Records>) -> Rc<Ground> {
        let inner = Inner {
            scheduler: Scheduler::new(settings.policy.clone()),
            outs: vec![None; settings.policy.connection_count()],
            streams: BTreeMap::new(),
            waiting: BTreeSet::new(),
            next: 2,
            ahead: BTreeMap::new(),
            here: Memory::new(settings.buffer_bytes),
            there: Memory::new(settings.buffer_bytes),
            looked_at: BTreeMap::new(),
        };
        Rc::new(Ground {
            inner: RefCell::new(inner),
            room: Notify::new(),
            asked: Notify::new(),
            held_back: Notify::new(),
            pool,
            hosts: settings.hosts.clone(),
            classes: settings.classes.clone(),
            compression: settings.compression,
            ahead: settings.ahead,
            rehearsed: settings.rehearsed.clone(),
            records,
        })
    }

    /// The class of a user; the last one of an address that the run does not know.
    fn class(&self, user: Ipv4Addr) -> usize {
        let last = self.inner.borrow().scheduler.policy().class_count() - 1;
        self.classes.get(&user).copied().unwrap_or(last)
    }

    /// Adds a stream whose answer is fetched.
    fn add(&self, stream: u32, user: Ipv4Addr, wanted: Wanted, promise: Option<Request>) {
        let class = self.class(user);
        let state = Stream {
            user,
            class,
            wanted,
            promise,
            head: None,
            is_scheduled: false,
            queue: VecDeque::new(),
            queued: 0,
            offered: 0,
            outstanding: 0,
            offset: 0,
            end: None,
            is_over: false,
            upload: None,
            fetch: None,
        };
        self.inner.borrow_mut().streams.insert(stream, state);
    }

    /// Waits until bytes of an answer may be read; returns how many.
    async fn may_read(&self, stream: u32) -> usize {
        loop {
            let room = self.room.notified();
            {
                let inner = self.inner.borrow();
                let Some(state) = inner.streams.get(&stream) else { return 1 };
                let allowed = inner.here.allows(state.is_ahead(), state.queued);
                if allowed > 0 {
                    return usize::try_from(allowed).unwrap_or(usize::MAX);
                }
            }
            room.await;
        }
    }

    /// Waits until a browser asks for an answer.
    async fn asked_for(&self, stream: u32) {
        loop {
            let asked = self.asked.notified();
            if !self.inner.borrow().streams.get(&stream).is_some_and(Stream::is_ahead) {
                return;
            }
            asked.await;
        }
    }

    /// More bytes of an answer are to be sent; `end` says that none follow.
    fn push(&self, stream: u32, bytes: Bytes, end: Option<End>) {
        let inner = &mut *self.inner.borrow_mut();
        let Some(state) = inner.streams.get_mut(&stream).filter(|state| state.end.is_none()) else { return };
        if !state.is_scheduled {
            state.is_scheduled = true;
            inner.scheduler.add(stream, state.user.to_bits(), state.class, state.wanted);
        }
        let count = bytes.len() as u64;
        if count > 0 {
            parts::append(&mut state.queue, bytes);
            inner.here.change(state.is_ahead(), state.queued, state.queued + count);
            state.queued += count;
        }
        state.end = end;
        self.offer(inner, stream);
        self.pump(inner);
    }

    /// Offers the scheduler what the remote side has room for.
    fn offer(&self, inner: &mut Inner, stream: u32) {
        let Some(state) = inner.streams.get_mut(&stream) else { return };
        if !state.is_scheduled || state.is_over {
            return;
        }
        let (is_ahead, there) = (state.is_ahead(), state.there());
        let count = (state.queued - state.offered).min(inner.there.allows(is_ahead, there));
        if count > 0 {
            inner.there.change(is_ahead, there, there + count);
            state.offered += count;
            inner.scheduler.offer(stream, count);
        }
        if state.offered < state.queued {
            inner.waiting.insert(stream);
            return;
        }
        inner.waiting.remove(&stream);
        if state.end.is_some() {
            inner.scheduler.finish(stream);
        }
    }

    /// Offers what waited for the remote side's memory, of which some is free again.
    fn offer_waiting(&self, inner: &mut Inner) {
        for stream in inner.waiting.clone() {
            self.offer(inner, stream);
        }
        self.pump(inner);
    }

    /// Sends as long as the scheduler finds somebody.
    fn pump(&self, inner: &mut Inner) {
        let limit = match inner.scheduler.policy().schedule {
            PepSchedule::Fair => ROOM_FAIR,
            PepSchedule::Arrival => ROOM_ARRIVAL,
        };
        let mut sent = false;
        loop {
            let outs = &inner.outs;
            let has_room = |connection: usize| {
                outs[connection].as_ref().is_some_and(|out| !out.is_closed() && out.waiting() < limit)
            };
            let Some(Grant { connection, answer, bytes, last }) =
                inner.scheduler.pick(self.records.now(), has_room)
            else {
                break;
            };
            let Some(out) = outs[connection].clone() else { unreachable!("a closed connection has no room") };
            let Some(state) = inner.streams.get_mut(&answer) else {
                unreachable!("a scheduled answer is known")
            };
            let end = if last { state.end } else { None };
            let data = take(&mut state.queue, bytes as usize);
            out.put(&Frame::Data { stream: answer, offset: state.offset, end, bytes: data });
            inner.here.change(state.is_ahead(), state.queued, state.queued - bytes);
            state.offset += bytes;
            state.queued -= bytes;
            state.offered -= bytes;
            state.outstanding += bytes;
            state.is_over = last;
            if last && state.outstanding == 0 {
                inner.streams.remove(&answer);
            }
            sent = true;
        }
        if sent {
            self.room.notify_waiters();
        }
        if inner.scheduler.next().is_some() {
            self.held_back.notify_one();
        }
    }

    /// Sends what the rate held back, when it may go.
    async fn pace(self: Rc<Self>) {
        loop {
            self.held_back.notified().await;
            loop {
                let Some(at) = self.inner.borrow().scheduler.next() else { break };
                sleep(Duration::from_nanos(at.saturating_sub(self.records.now()))).await;
                self.pump(&mut self.inner.borrow_mut());
            }
        }
    }

    fn credit(&self, stream: u32, bytes: u64) -> Result<(), Malformed> {
        let inner = &mut *self.inner.borrow_mut();
        let state = inner.streams.get_mut(&stream).ok_or(Malformed("stream of a credit"))?;
        let there = state.there();
        state.outstanding = state.outstanding.checked_sub(bytes).ok_or(Malformed("bytes of a credit"))?;
        inner.there.change(state.is_ahead(), there, there - bytes);
        if state.is_over && state.outstanding == 0 {
            inner.streams.remove(&stream);
        }
        self.offer_waiting(inner);
        Ok(())
    }

    /// The browser asks for an answer that is sent ahead, or changes its priority.
    fn want(&self, stream: u32, priority: Priority) {
        let inner = &mut *self.inner.borrow_mut();
        let Some(state) = inner.streams.get_mut(&stream) else { return };
        if state.is_ahead() {
            for (memory, bytes) in [(&mut inner.here, state.queued), (&mut inner.there, state.there())] {
                memory.change(true, bytes, 0);
                memory.change(false, 0, bytes);
            }
            self.asked.notify_waiters();
        }
        state.wanted = Wanted::Asked(priority);
        inner.scheduler.want(stream, state.wanted);
        self.note_wanted(inner, stream, true);
        self.offer_waiting(inner);
        self.room.notify_waiters();
    }

    fn note_wanted(&self, inner: &Inner, stream: u32, wanted: bool) {
        if let Some(&exchange) = inner.ahead.get(&stream) {
            self.records.note(exchange, |record| record.wanted = wanted);
        }
    }

    /// Nobody wants an answer any more: what is not sent is discarded. `unused`: no browser has had anything of it.
    fn cancel(&self, stream: u32, unused: bool) {
        let inner = &mut *self.inner.borrow_mut();
        if unused {
            self.note_wanted(inner, stream, false);
        }
        let Some(state) = inner.streams.get_mut(&stream).filter(|state| !state.is_over) else { return };
        state.promise = None;
        if let Some(fetch) = state.fetch.take() {
            fetch.abort();
        }
        state.upload = None;
        inner.here.change(state.is_ahead(), state.queued, 0);
        inner.there.change(state.is_ahead(), state.there(), state.outstanding);
        state.queue.clear();
        (state.queued, state.offered) = (0, 0);
        state.end = Some(End::Broken);
        // The scheduler knows of bytes that are gone.
        inner.scheduler.remove(stream);
        inner.scheduler.add(stream, state.user.to_bits(), state.class, state.wanted);
        inner.scheduler.finish(stream);
        state.is_scheduled = true;
        inner.waiting.remove(&stream);
        self.offer_waiting(inner);
        self.room.notify_waiters();
    }

    /// An answer sent ahead, or about to be, that serves a request unless it varies with one of the fields.
    fn serving(&self, asked: &Request) -> Option<(u32, BTreeSet<String>)> {
        let inner = self.inner.borrow();
        inner.streams.iter().find_map(|(&stream, state)| {
            let promise = state.promise.as_ref().filter(|_| state.is_ahead())?;
            let unless = match serves(promise, asked) {
                Serves::Yes => BTreeSet::new(),
                Serves::Unless(fields) => fields,
                Serves::No => return None,
            };
            let varies = state.head.as_ref().is_some_and(|head| varies(head, &unless));
            (!varies).then_some((stream, unless))
        })
    }

    fn request(self: &Rc<Self>, stream: u32, request: &[u8]) -> Result<(), Malformed> {
        let request = Request::take(request)?;
        if stream.is_multiple_of(2) || self.inner.borrow().streams.contains_key(&stream) {
            return Err(Malformed("stream of a request"));
        }
        let class = self.class(*request.user.ip());
        if let Some((by, unless)) =
            Some(&request).filter(|request| !request.fresh).and_then(|asked| self.serving(asked))
        {
            self.tell(stream, class, &Frame::Serve { stream, by, unless });
            self.want(by, request.priority);
            return Ok(());
        }
        let wanted = Wanted::Asked(request.priority);
        self.add(stream, *request.user.ip(), wanted, None);
        if request.is_navigation() {
            self.inner.borrow_mut().looked_at.insert(*request.user.ip(), BTreeSet::from([request.url()]));
            self.look_ahead_rehearsed(&request);
        } else if request.method == Method::GET {
            // A script may ask before the page's text names it.
            self.inner.borrow_mut().note_asked(&request);
        }
        self.fetch(stream, request, 0);
        Ok(())
    }

    /// Tells the remote side of a stream.
    fn tell(&self, stream: u32, class: usize, frame: &Frame) {
        let inner = self.inner.borrow();
        let per_class = inner.scheduler.policy().connections;
        let pool = &inner.outs[class * per_class..(class + 1) * per_class];
        let open: Vec<_> = pool.iter().flatten().filter(|out| !out.is_closed()).collect();
        if !open.is_empty() {
            open[stream as usize / 2 % open.len()].put(frame);
        }
    }
}

/// Takes bytes from the front.
fn take(queue: &mut VecDeque<Bytes>, mut count: usize) -> Bytes {
    if count == 0 {
        return Bytes::new();
    }
    if let Some(first) = queue.front_mut().filter(|first| first.len() > count) {
        return first.split_to(count);
    }
    if queue.front().is_some_and(|first| first.len() == count) {
        return queue.pop_front().unwrap_or_default();
    }
    let mut bytes = BytesMut::with_capacity(count);
    while count > 0 {
        let Some(mut first) = queue.pop_front() else { unreachable!("no more is granted than was offered") };
        let part = first.split_to(first.len().min(count));
        count -= part.len();
        bytes.extend_from_slice(&part);
        if !first.is_empty() {
            queue.push_front(first);
        }
    }
    bytes.freeze()
}

impl Receiver for Ground {
    fn frame(self: &Rc<Self>, frame: Frame) -> Result<(), Malformed> {
        match frame {
            Frame::Request { stream, request } => self.request(stream, &request),
            Frame::Body { stream, last, bytes } => {
                let upload = self.inner.borrow().streams.get(&stream).and_then(|state| state.upload.clone());
                let Some(upload) = upload else { return Ok(()) };
                // More parts than bytes of the window: the remote side does not keep to it.
                let full = |_| Malformed("bytes of a body");
                let send = |part| match upload.try_send(part) {
                    Err(mpsc::error::TrySendError::Full(part)) => Err(full(part)),
                    _ => Ok(()),
                };
                if !bytes.is_empty() {
                    send(Some(bytes))?;
                }
                if last { send(None) } else { Ok(()) }
            }
            Frame::Credit { stream, bytes } => self.credit(stream, bytes.into()),
            Frame::Cancel { stream, unused } => {
                self.cancel(stream, unused);
                Ok(())
            }
            Frame::Priority { stream, priority } => {
                self.want(stream, priority_of(priority)?);
                Ok(())
            }
            _ => Err(Malformed("kind of a frame")),
        }
    }

    fn room(self: &Rc<Self>) {
        self.pump(&mut self.inner.borrow_mut());
    }

    fn ended(self: &Rc<Self>, reason: Option<String>) {
        reason.into_iter().for_each(|reason| self.records.lost(reason));
    }
}
