//! One request of a browser, from asking to the last byte of its answer.

use super::{Remote, ServedBy};
use crate::pep::coding::Decoder;
use crate::pep::exchange::{AnswerHead, Length, Request, priority_byte, varies};
use crate::pep::wire::{BODY_FRAME, End, Frame};
use crate::records::{ConnectionId, Exchange, ExchangeId, From};
use bytes::Bytes;
use http::Method;
use std::collections::BTreeSet;
use std::rc::Rc;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use wirepaint_http_model::Priority;

/// Most bytes that a step of a decoder may give. Encoders of the ground side give less for what an origin sends in
/// one piece.
const DECODED_LIMIT: usize = 8 << 20;

/// The answer cannot be had, or not to its end: the connection or stream of the browser is reset.
#[derive(Debug)]
pub struct Broken;

/// Bytes of a request's body, then `None`. A body that ends without it is broken.
pub type Upload = mpsc::Receiver<Option<Bytes>>;

/// An answer on its way to a browser. Whoever drops it before its end gives it up.
pub struct Answer {
    pub head: AnswerHead,
    remote: Rc<Remote>,
    stream: u32,
    class: usize,
    decoder: Decoder,
    /// Bytes that arrived and were not decoded.
    coded: Bytes,
    /// Bytes of the body that are to come; `None` where only its end tells.
    left: Option<u64>,
    exchange: ExchangeId,
    is_over: bool,
    /// Others wait for it.
    permit: Option<OwnedSemaphorePermit>,
}

/// What became of waiting for a stream.
enum Came {
    Head,
    ServedBy(ServedBy),
    Broken,
}

impl Remote {
    /// Answers a request from what came ahead, else asks the ground side. `told` hears the stream of the answer, for
    /// later changes of its priority, and says which one the browser wants by now.
    pub async fn ask(
        self: &Rc<Remote>,
        mut request: Request,
        upload: Option<Upload>,
        connection: ConnectionId,
        told: impl Fn(u32) -> Priority,
    ) -> Result<Answer, Broken> {
        let exchange = self.records.exchange(Exchange {
            time: self.records.now(),
            client_address: *request.user.ip(),
            client_port: request.user.port(),
            method: request.method.to_string(),
            url: request.url(),
            from: From::Asked,
            wanted: true,
            status: None,
            body_bytes: 0,
            link_bytes: 0,
            connection: Some(connection),
            whole: false,
        });
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| Broken)?;
        self.forget_ahead(request.is_navigation().then(|| *request.user.ip()));
        while let Some((stream, fields)) = self.claim(&request) {
            request.priority = told(stream);
            if let Some(mut answer) = self.from_ahead(&request, stream, &fields, exchange).await {
                answer.permit = Some(permit);
                return Ok(answer);
            }
        }
        let mut answer = self.from_ground(request, upload, exchange, told).await?;
        answer.permit = Some(permit);
        Ok(answer)
    }

    /// The browser changes the priority of an answer.
    pub fn prioritise(&self, stream: u32, priority: Priority) {
        if let Some(state) = self.streams.borrow().get(&stream) {
            self.out(stream, state.class).put(&Frame::Priority { stream, priority: priority_byte(priority) });
        }
    }

    /// The answer of a claimed stream, unless it varies with one of `fields` or is broken.
    async fn from_ahead(
        self: &Rc<Remote>,
        request: &Request,
        stream: u32,
        fields: &BTreeSet<String>,
        exchange: ExchangeId,
    ) -> Option<Answer> {
        self.prioritise(stream, request.priority);
        let guard = Guard { remote: self, stream };
        match self.came(stream).await {
            Came::Head => {}
            Came::ServedBy(..) | Came::Broken => return None,
        }
        let head = self.streams.borrow_mut().get_mut(&stream)?.head.clone()?;
        if varies(&head, fields) {
            if let Some(state) = self.streams.borrow_mut().get_mut(&stream) {
                state.is_wanted = false;
            }
            return None;
        }
        std::mem::forget(guard);
        self.records.note(exchange, |record| record.from = From::Ahead);
        Some(self.answer(head, request, stream, exchange))
    }

    async fn from_ground(
        self: &Rc<Remote>,
        mut request: Request,
        mut upload: Option<Upload>,
        exchange: ExchangeId,
        told: impl Fn(u32) -> Priority,
    ) -> Result<Answer, Broken> {
        let class = self.class(*request.user.ip());
        loop {
            let stream = self.open(class, &request);
            request.priority = told(stream);
            let guard = Guard { remote: self, stream };
            if self.out(stream, class).is_closed() {
                return Err(Broken);
            }
            let mut bytes = Vec::new();
            request.put(&mut bytes);
            self.out(stream, class).put(&Frame::Request { stream, request: bytes.into() });
            if let Some(upload) = upload.take() {
                tokio::task::spawn_local(self.clone().upload(stream, class, upload));
            }
            match self.came(stream).await {
                Came::Head => {
                    let head =
                        self.streams.borrow_mut().get_mut(&stream).and_then(|state| state.head.clone());
                    let head = head.ok_or(Broken)?;
                    std::mem::forget(guard);
                    return Ok(self.answer(head, &request, stream, exchange));
                }
                Came::Broken => return Err(Broken),
                Came::ServedBy(by) => {
                    if by.told {
                        std::mem::forget(guard);
                        self.streams.borrow_mut().remove(&stream);
                    } else {
                        drop(guard);
                    }
                    if self.claim_stream(by.stream, class) {
                        request.priority = told(by.stream);
                        let answer = self.from_ahead(&request, by.stream, &by.unless, exchange).await;
                        if let Some(answer) = answer {
                            return Ok(answer);
                        }
                    }
                    request.fresh = true;
                }
            }
        }
    }

    /// Waits for the head of an answer, or for who serves it.
    async fn came(&self, stream: u32) -> Came {
        loop {
            let wake = match self.streams.borrow().get(&stream) {
                None => return Came::Broken,
                Some(state) if state.head.is_some() => return Came::Head,
                Some(state) if state.is_over() => return Came::Broken,
                Some(state) => match &state.served_by {
                    Some(by) => return Came::ServedBy(by.clone()),
                    None => state.wake.clone(),
                },
            };
            wake.notified().await;
        }
    }

    /// Sends a request's body as the ground side takes it.
    async fn upload(self: Rc<Remote>, stream: u32, class: usize, mut upload: Upload) {
        while let Some(part) = upload.recv().await {
            let Some(mut bytes) = part else {
                let end = Frame::Body { stream, last: true, bytes: Bytes::new() };
                return self.out(stream, class).put(&end);
            };
            while !bytes.is_empty() {
                let Some(credit) = self.credit(stream).await else { return };
                let bytes = bytes.split_to(bytes.len().min(credit as usize).min(BODY_FRAME));
                if let Some(state) = self.streams.borrow_mut().get_mut(&stream) {
                    state.credit -= bytes.len() as u32;
                }
                self.out(stream, class).put(&Frame::Body { stream, last: false, bytes });
            }
        }
        self.drop_stream(stream);
    }

    /// How many bytes of a body may be sent, at least one; `None` if the stream is over.
    async fn credit(&self, stream: u32) -> Option<u32> {
        loop {
            let wake = match self.streams.borrow().get(&stream) {
                None => return None,
                Some(state) if state.is_dropped || state.is_over() => return None,
                Some(state) if state.credit > 0 => return Some(state.credit),
                Some(state) => state.upload.clone(),
            };
            wake.notified().await;
        }
    }

    fn answer(
        self: &Rc<Remote>,
        head: AnswerHead,
        request: &Request,
        stream: u32,
        exchange: ExchangeId,
    ) -> Answer {
        self.records.note(exchange, |record| record.status = Some(head.status.as_u16()));
        let is_bodiless = request.method == Method::HEAD || matches!(head.status.as_u16(), 204 | 304);
        Answer {
            remote: self.clone(),
            stream,
            class: self.class(*request.user.ip()),
            decoder: Decoder::new(head.coding, DECODED_LIMIT),
            coded: Bytes::new(),
            left: if is_bodiless { Some(0) } else { head.length },
            head,
            exchange,
            is_over: false,
            permit: None,
        }
    }
}

/// Gives a stream up unless it is forgotten.
struct Guard<'a> {
    remote: &'a Remote,
    stream: u32,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.remote.drop_stream(self.stream);
    }
}

impl Answer {
    /// Length of the body that the browser gets.
    pub fn length(&self) -> Length {
        match self.left {
            Some(0) => Length::Nothing,
            Some(length) => Length::Known(length),
            None => Length::Unknown,
        }
    }

    /// The next bytes of the body as the origin sent them; `None` behind the last.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        loop {
            let plain = if matches!(self.decoder, Decoder::None) {
                std::mem::take(&mut self.coded)
            } else if self.coded.is_empty() {
                Bytes::new()
            } else {
                self.decoder.step(&mut self.coded).await.map_err(|_| Broken)?.into()
            };
            if !plain.is_empty() {
                let count = plain.len() as u64;
                if let Some(left) = &mut self.left {
                    *left = left.checked_sub(count).ok_or(Broken)?;
                }
                self.remote.records.note(self.exchange, |record| record.body_bytes += count);
                return Ok(Some(plain));
            }
            if self.coded.is_empty() {
                match self.arrived().await? {
                    Some(bytes) => self.coded = bytes,
                    None if self.left.is_some_and(|left| left > 0) => return Err(Broken),
                    None => {
                        self.is_over = true;
                        self.remote.records.note(self.exchange, |record| record.whole = true);
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// The next bytes that arrive from the ground side.
    async fn arrived(&mut self) -> Result<Option<Bytes>, Broken> {
        loop {
            let wake = {
                let mut streams = self.remote.streams.borrow_mut();
                let state = streams.get_mut(&self.stream).ok_or(Broken)?;
                if let Some(bytes) = state.ready.pop_front() {
                    drop(streams);
                    self.remote.passed_on(self.stream, self.class, bytes.len() as u64);
                    return Ok(Some(bytes));
                }
                match state.end {
                    Some((offset, end)) if offset == state.next => {
                        return if end == End::Whole { Ok(None) } else { Err(Broken) };
                    }
                    _ => state.wake.clone(),
                }
            };
            wake.notified().await;
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let mut streams = self.remote.streams.borrow_mut();
        let bytes = streams.get(&self.stream).map_or(0, |state| state.next);
        self.remote.records.note(self.exchange, |record| record.link_bytes = bytes);
        if self.is_over {
            self.remote.close(&mut streams, self.stream);
        } else {
            drop(streams);
            self.remote.drop_stream(self.stream);
        }
    }
}
