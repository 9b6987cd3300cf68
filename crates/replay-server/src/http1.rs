//! HTTP/1.1 on one connection (RFC 9112).
//!
//! It is strict about message boundaries, so that two parties cannot see different numbers of messages in the
//! same bytes: a request of ambiguous length gets 400 and the connection closes.

use crate::answer::{Answer, Ask};
use crate::clock::{Timer, monotonic};
use crate::matching::{Matched, Target};
use crate::records::{Asked, ConnectionId};
use crate::site::{Origins, Site};
use bytes::{Buf, BytesMut};
use http::StatusCode;
use std::io::{self, IoSlice};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

/// Largest head of a request in bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// Most headers of a request.
const HEADERS_LIMIT: usize = 128;
/// Longest line or trailer section of a chunked body in bytes.
const CHUNK_LINE_LIMIT: usize = 8 * 1024;
/// Time from the first byte of a request until its head must be complete.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// Time without traffic after which a connection is closed.
pub const IDLE_TIME: Duration = Duration::from_secs(300);
/// Time for a client to read an error before the connection is closed.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// Why a connection ends.
enum End {
    /// The client closed it, or it broke, or it was idle.
    Closed,
    /// The client's request was refused.
    Refused(StatusCode),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> End {
        End::Closed
    }
}

const BAD: End = End::Refused(StatusCode::BAD_REQUEST);

/// How the end of a request's body is determined.
enum Framing {
    Length(u64),
    Chunked,
}

/// The head of a request.
struct Head {
    ask: Ask,
    target: Target,
    framing: Framing,
    keep: bool,
    expects_continue: bool,
    /// Bytes of the head.
    length: usize,
}

/// Serves requests until the connection ends.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    io: S,
    site: &Site,
    origins: &Origins,
    id: ConnectionId,
) {
    let mut connection = Connection { io, buffer: BytesMut::with_capacity(8 * 1024), site, origins, id };
    let mut timer = Timer::default();
    loop {
        match connection.exchange(&mut timer).await {
            Ok(true) => {}
            Ok(false) => return connection.linger().await,
            Err(End::Closed) => return,
            Err(End::Refused(status)) => {
                let asked =
                    Asked { at: monotonic(), method: String::new(), url: String::new(), priority: None };
                let answer = Answer::empty(status, Matched::None);
                if connection.send(asked, answer, false).await.is_ok() {
                    connection.linger().await;
                }
                return;
            }
        }
    }
}

struct Connection<'a, S> {
    io: S,
    buffer: BytesMut,
    site: &'a Site,
    origins: &'a Origins,
    id: ConnectionId,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    /// One request and its response. Returns whether the connection stays open.
    async fn exchange(&mut self, timer: &mut Timer) -> Result<bool, End> {
        let head = self.head().await?;
        self.buffer.advance(head.length);
        if head.expects_continue && self.buffer.is_empty() {
            self.io.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
            self.io.flush().await?;
        }
        match head.framing {
            Framing::Length(length) => self.discard(length).await?,
            Framing::Chunked => self.discard_chunks().await?,
        }
        let at = monotonic();
        let answer = self.site.answer(self.origins, &head.ask, &head.target);
        if answer.think_ns > 0 {
            timer.until(at.saturating_add(answer.think_ns)).await?;
        }
        let Ask { method, priority, .. } = head.ask;
        let asked = Asked { at, method, url: head.target.to_string(), priority };
        self.send(asked, answer, head.keep).await?;
        Ok(head.keep)
    }

    /// Reads until the head of a request is complete.
    async fn head(&mut self) -> Result<Head, End> {
        let mut deadline = None;
        loop {
            if !self.buffer.is_empty() {
                if let Some(head) = parse(&self.buffer, self.origins)? {
                    return Ok(head);
                }
                if self.buffer.len() >= HEAD_LIMIT {
                    return Err(End::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
                }
            }
            let until = match deadline {
                None => Instant::now() + if self.buffer.is_empty() { IDLE_TIME } else { HEAD_TIME },
                Some(until) => until,
            };
            if !self.buffer.is_empty() {
                deadline = Some(until);
            }
            match timeout_at(until, self.io.read_buf(&mut self.buffer)).await {
                Ok(Ok(0)) if self.buffer.is_empty() => return Err(End::Closed),
                Ok(Ok(0)) => return Err(BAD),
                Ok(read) => read?,
                Err(_) if self.buffer.is_empty() => return Err(End::Closed),
                Err(_) => return Err(End::Refused(StatusCode::REQUEST_TIMEOUT)),
            };
        }
    }

    /// Reads more of a body.
    async fn more(&mut self) -> Result<(), End> {
        match timeout(HEAD_TIME, self.io.read_buf(&mut self.buffer)).await {
            Ok(Ok(0)) => Err(BAD),
            Ok(read) => Ok(read.map(drop)?),
            Err(_) => Err(End::Refused(StatusCode::REQUEST_TIMEOUT)),
        }
    }

    async fn discard(&mut self, mut length: u64) -> Result<(), End> {
        loop {
            let here = length.min(self.buffer.len() as u64);
            self.buffer.advance(here as usize);
            length -= here;
            if length == 0 {
                return Ok(());
            }
            self.more().await?;
        }
    }

    /// Skips a chunked body (RFC 9112, section 7.1) with its trailers.
    async fn discard_chunks(&mut self) -> Result<(), End> {
        loop {
            let size = match httparse::parse_chunk_size(&self.buffer).map_err(|_| BAD)? {
                httparse::Status::Complete((line, size)) => {
                    self.buffer.advance(line);
                    size
                }
                httparse::Status::Partial if self.buffer.len() > CHUNK_LINE_LIMIT => return Err(BAD),
                httparse::Status::Partial => {
                    self.more().await?;
                    continue;
                }
            };
            if size == 0 {
                return self.discard_trailers().await;
            }
            self.discard(size).await?;
            while self.buffer.len() < 2 {
                self.more().await?;
            }
            if &self.buffer[..2] != b"\r\n" {
                return Err(BAD);
            }
            self.buffer.advance(2);
        }
    }

    async fn discard_trailers(&mut self) -> Result<(), End> {
        loop {
            let mut trailers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
            match httparse::parse_headers(&self.buffer, &mut trailers).map_err(|_| BAD)? {
                httparse::Status::Complete((length, _)) => {
                    self.buffer.advance(length);
                    return Ok(());
                }
                httparse::Status::Partial if self.buffer.len() > CHUNK_LINE_LIMIT => return Err(BAD),
                httparse::Status::Partial => self.more().await?,
            }
        }
    }

    async fn send(&mut self, asked: Asked, answer: Answer, keep: bool) -> Result<(), End> {
        let records = &self.site.records;
        let body = &answer.body;
        let request = records.asked(self.id, asked, &answer);
        records.began(request);
        let head = answer.head(keep);
        let head = head.as_bytes();
        let (mut written, total) = (0, head.len() + body.len());
        while written < total {
            let rest_of_head = &head[written.min(head.len())..];
            let body_at = written.saturating_sub(head.len());
            let parts = [IoSlice::new(rest_of_head), IoSlice::new(&body[body_at..])];
            let count =
                timeout(IDLE_TIME, self.io.write_vectored(&parts)).await.map_err(|_| End::Closed)??;
            if count == 0 {
                return Err(End::Closed);
            }
            if written == 0 {
                records.first_byte(request);
            }
            written += count;
            records.sent(request, written.saturating_sub(head.len()) - body_at);
        }
        timeout(IDLE_TIME, self.io.flush()).await.map_err(|_| End::Closed)??;
        records.last_byte(request);
        Ok(())
    }

    /// Closes without losing sent bytes: a close with unread bytes would reset the connection.
    async fn linger(mut self) {
        let _ = self.io.shutdown().await;
        let _ = timeout(LINGER_TIME, async {
            while self.io.read_buf(&mut self.buffer).await.is_ok_and(|count| count > 0) {
                self.buffer.clear();
            }
        })
        .await;
    }
}

/// Reads the head of a request; `None` if it is incomplete.
fn parse(buffer: &[u8], origins: &Origins) -> Result<Option<Head>, End> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(End::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        Err(_) => return Err(BAD),
    };
    let newest = request.version == Some(1);
    let mut ask = Ask { method: request.method.unwrap_or_default().to_owned(), ..Ask::default() };
    let (mut host, mut body_length, mut chunked) = (None, None, false);
    let (mut keep, mut expects_continue) = (newest, false);
    for header in request.headers.iter() {
        let text = || std::str::from_utf8(header.value).map(str::trim).map_err(|_| BAD);
        match header.name.to_ascii_lowercase().as_str() {
            "host" if host.is_some() => return Err(BAD),
            "host" => host = Some(text()?),
            "content-length" => {
                let value = text()?;
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let value = value.parse::<u64>().ok().filter(|_| digits).ok_or(BAD)?;
                if body_length.is_some_and(|length| length != value) {
                    return Err(BAD);
                }
                body_length = Some(value);
            }
            "transfer-encoding" if chunked => return Err(BAD),
            "transfer-encoding" if text()?.eq_ignore_ascii_case("chunked") => chunked = true,
            "transfer-encoding" => return Err(End::Refused(StatusCode::NOT_IMPLEMENTED)),
            "connection" => {
                for option in text()?.split(',').map(str::trim) {
                    if option.eq_ignore_ascii_case("close") {
                        keep = false;
                    }
                }
            }
            "expect" => expects_continue = newest && text()?.eq_ignore_ascii_case("100-continue"),
            name => ask.note(name, header.value),
        }
    }
    if chunked && (body_length.is_some() || !newest) || newest && host.is_none() {
        return Err(BAD);
    }
    let path = request.path.unwrap_or_default();
    let target = if path.starts_with('/') {
        // HTTP/1.0 may omit the host; then it is the first host of this address.
        Target::new(origins.scheme(), host.unwrap_or_else(|| origins.first_authority()), path)
    } else {
        Target::parse(path)
    };
    let framing = if chunked { Framing::Chunked } else { Framing::Length(body_length.unwrap_or(0)) };
    Ok(Some(Head { ask, target: target.ok_or(BAD)?, framing, keep, expects_continue, length }))
}
