//! One request to an origin, and its answer on the way to the remote side.

use super::markup::{Finder, Found};
use super::pool::Connection;
use super::{Ground, PARTS};
use crate::pep::coding::{Decoder, Encoder, is_compressible};
use crate::pep::exchange::{AnswerHead, Length, Request};
use crate::pep::http1::{Framing, LAST_CHUNK, ResponseHead, Unread, chunk, write_head};
use crate::pep::wire::{End, Frame};
use crate::records::{Exchange, ExchangeId, From};
use bytes::Bytes;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::timeout;
use url::Url;
use wirepaint_run::{Ahead, Compression};

/// Time in which an origin must go on.
const ORIGIN_TIME: Duration = Duration::from_secs(300);
/// Documents and style sheets between a page and what is fetched ahead.
const DEPTH: u32 = 3;
/// Most plain bytes of a step of reading along; a document with more is read along no further.
const READ_ALONG_LIMIT: usize = 4 << 20;

/// The origin failed, or sent what is no answer.
struct Failed;

impl<E: std::error::Error> std::convert::From<E> for Failed {
    fn from(_: E) -> Failed {
        Failed
    }
}

impl Ground {
    /// Fetches the answer to a request; `depth` is 0 for what a browser asked for.
    pub fn fetch(self: &Rc<Self>, stream: u32, request: Request, depth: u32) {
        let (parts, upload) = mpsc::channel(PARTS);
        let exchange = self.note(&request, depth);
        let ground = self.clone();
        let fetch = tokio::task::spawn_local(async move {
            let done = ground.carry_out(stream, &request, upload, depth, exchange).await;
            let end = if done.is_ok() { End::Whole } else { End::Broken };
            ground.records.note(exchange, |record| record.whole = done.is_ok());
            ground.push(stream, Bytes::new(), Some(end));
        });
        let inner = &mut *self.inner.borrow_mut();
        if let Some(state) = inner.streams.get_mut(&stream) {
            state.fetch = Some(fetch.abort_handle());
            state.upload = Some(parts);
        }
        if depth > 0 {
            inner.ahead.insert(stream, exchange);
        }
    }

    fn note(&self, request: &Request, depth: u32) -> ExchangeId {
        self.records.exchange(Exchange {
            time: self.records.now(),
            client_address: *request.user.ip(),
            client_port: request.user.port(),
            method: request.method.to_string(),
            url: request.url(),
            from: if depth == 0 { From::Asked } else { From::Ahead },
            wanted: depth == 0,
            status: None,
            body_bytes: 0,
            link_bytes: 0,
            connection: None,
            whole: false,
        })
    }

    async fn carry_out(
        self: &Rc<Self>,
        stream: u32,
        request: &Request,
        mut upload: mpsc::Receiver<Option<Bytes>>,
        depth: u32,
        exchange: ExchangeId,
    ) -> Result<(), Failed> {
        let name = request.encrypted.then(|| host(&request.authority));
        let _permit = tokio::select! {
            permit = self.pool.permit(request.destination, name.clone()), if depth > 0 => permit,
            () = self.asked_for(stream) => None,
        };
        let mut again = false;
        let (mut connection, response) = loop {
            let mut connection = self.pool.take(request.destination, name.clone(), again).await?;
            self.records.note(exchange, |record| record.connection = Some(connection.id));
            let asked = self.ask(&mut connection, stream, request, &mut upload).await;
            match asked {
                Ok(response) => break (connection, response),
                // The origin may have closed an idle connection at the same time (RFC 9112, section 9.3.1).
                Err(Unread::Broken)
                    if connection.is_used && request.method.is_safe() && request.body == Length::Nothing =>
                {
                    connection.close();
                    again = true;
                }
                Err(_) => return Err(Failed),
            }
        };
        let keep = response.keep;
        self.records.note(exchange, |record| record.status = Some(response.status.as_u16()));
        let done = self.pass_on(&mut connection, stream, request, response, depth, exchange).await;
        match done {
            Ok(()) if keep => self.pool.give_back(connection),
            Ok(()) => connection.close(),
            Err(Failed) => {}
        }
        done
    }

    /// Sends a request and reads the head of the answer.
    async fn ask(
        &self,
        connection: &mut Connection,
        stream: u32,
        request: &Request,
        upload: &mut mpsc::Receiver<Option<Bytes>>,
    ) -> Result<ResponseHead, Unread> {
        let mut own = vec![("host", request.authority.clone())];
        match request.body {
            Length::Nothing => {}
            Length::Known(length) => own.push(("content-length", length.to_string())),
            Length::Unknown => own.push(("transfer-encoding", "chunked".to_owned())),
        }
        let first = format!("{} {} HTTP/1.1", request.method, request.path);
        let io = &mut connection.reader.io;
        io.write_all(&write_head(&first, &request.fields, &own)).await?;
        io.flush().await?;
        if request.body != Length::Nothing {
            self.send_body(io, stream, request, upload).await?;
        }
        timeout(ORIGIN_TIME, connection.reader.response(&request.method)).await.map_err(|_| Unread::Broken)?
    }

    async fn send_body(
        &self,
        io: &mut super::pool::Io,
        stream: u32,
        request: &Request,
        upload: &mut mpsc::Receiver<Option<Bytes>>,
    ) -> Result<(), Unread> {
        let mut left = match request.body {
            Length::Known(length) => Some(length),
            _ => None,
        };
        while let Some(part) = upload.recv().await {
            let Some(bytes) = part else {
                if left.is_some_and(|left| left > 0) {
                    return Err(Unread::Broken);
                }
                if left.is_none() {
                    io.write_all(LAST_CHUNK).await?;
                }
                return Ok(io.flush().await?);
            };
            let count = bytes.len() as u32;
            if let Some(left) = &mut left {
                *left = left.checked_sub(count.into()).ok_or(Unread::Broken)?;
                io.write_all(&bytes).await?;
            } else {
                io.write_all(&chunk(&bytes)).await?;
            }
            io.flush().await?;
            self.tell(stream, self.class(*request.user.ip()), &Frame::Credit { stream, bytes: count });
        }
        Err(Unread::Broken)
    }

    /// Passes an answer on, compressed where it is worth it, and looks into it for what comes next.
    async fn pass_on(
        self: &Rc<Self>,
        connection: &mut Connection,
        stream: u32,
        request: &Request,
        response: ResponseHead,
        depth: u32,
        exchange: ExchangeId,
    ) -> Result<(), Failed> {
        let ResponseHead { status, fields, mut framing, length, .. } = response;
        let mut head = AnswerHead { status, fields, length, coding: Compression::None };
        if framing != Framing::Length(0) && is_compressible(&head) {
            head.coding = self.compression;
        }
        let mut along = self.along(request, &head, depth);
        let mut encoder = Encoder::new(head.coding);
        let bytes = head.put();
        if let Some(state) = self.inner.borrow_mut().streams.get_mut(&stream) {
            state.head = Some(head);
        }
        let push = |bytes: Bytes| {
            self.records.note(exchange, |record| record.link_bytes += bytes.len() as u64);
            self.push(stream, bytes, None);
        };
        push(bytes.into());
        loop {
            let most = self.may_read(stream).await;
            let body = timeout(ORIGIN_TIME, connection.reader.body(&mut framing, most)).await?;
            let Some(bytes) = body.map_err(|_| Failed)? else { break };
            self.records.note(exchange, |record| record.body_bytes += bytes.len() as u64);
            // What the remote side gets first it may ask for first: references are promised before they arrive there.
            if let Some(reading) = &mut along {
                for found in reading.feed(bytes.clone()).await {
                    self.look_ahead(&reading.page, found, depth);
                }
            }
            let bytes =
                if matches!(encoder, Encoder::None) { bytes } else { encoder.encode(&bytes).await?.into() };
            if !bytes.is_empty() {
                push(bytes);
            }
        }
        if let Some(reading) = &mut along {
            for found in reading.finder.end() {
                self.look_ahead(&reading.page, found, depth);
            }
        }
        let rest = encoder.finish().await?;
        if !rest.is_empty() {
            push(rest.into());
        }
        Ok(())
    }

    /// What reads an answer along, if it is a document or style sheet of a page.
    fn along(&self, request: &Request, head: &AnswerHead, depth: u32) -> Option<Along> {
        let is_ahead = depth > 0 && depth < DEPTH;
        if self.ahead == Ahead::None || !(is_ahead || request.is_navigation()) || !head.status.is_success() {
            return None;
        }
        let address = Url::parse(&request.url()).ok()?;
        let kind = head.field("content-type")?.split(';').next()?.trim().to_ascii_lowercase();
        let finder = match kind.as_str() {
            "text/html" | "application/xhtml+xml" => Finder::html(&address),
            "text/css" => Finder::css(&address),
            _ => return None,
        };
        let decoder = Decoder::of_origin(head.field("content-encoding"), READ_ALONG_LIMIT)?;
        Some(Along { page: request.clone(), finder, decoder, failed: false })
    }
}

/// A document or style sheet that is read along.
struct Along {
    /// The request for it, from which those for its resources are made up.
    page: Request,
    finder: Finder,
    decoder: Decoder,
    /// It cannot be decoded; the browser may know better.
    failed: bool,
}

impl Along {
    async fn feed(&mut self, mut coded: Bytes) -> Vec<Found> {
        let mut found = Vec::new();
        while !coded.is_empty() && !self.failed {
            match self.decoder.step(&mut coded).await {
                Ok(plain) => found.extend(self.finder.feed(&plain)),
                Err(_) => self.failed = true,
            }
        }
        found
    }
}

fn host(authority: &str) -> String {
    authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_owned()
}
