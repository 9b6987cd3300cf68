//! Messages of HTTP/1.1 (RFC 9112), read strictly: where the length of a message is ambiguous it is refused, so
//! that two parties never see different numbers of messages in the same bytes.

use super::exchange::Fields;
use super::limits::{FIELDS_LIMIT, HEAD_LIMIT};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::io::Write;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest line or trailer section of a chunked body in bytes.
const CHUNK_LINE_LIMIT: usize = 8 * 1024;
/// Bytes of a body that are read at once.
const READ: usize = 64 * 1024;

/// Why a message cannot be read.
#[derive(Debug)]
pub enum Unread {
    /// The connection ended in the middle of it, or broke.
    Broken,
    /// It is refused; a client is answered with this status.
    Refused(StatusCode),
}

impl From<std::io::Error> for Unread {
    fn from(_: std::io::Error) -> Unread {
        Unread::Broken
    }
}

const BAD: Unread = Unread::Refused(StatusCode::BAD_REQUEST);
const TOO_LARGE: Unread = Unread::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);

/// How the end of a body is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes are left.
    Length(u64),
    /// A chunk's size comes next.
    Chunked,
    /// So many bytes are left of a chunk.
    Chunk(u64),
    /// The end of the connection.
    UntilClose,
}

/// The first line of a request, and its fields without those of the connection.
#[derive(Debug)]
pub struct RequestHead {
    pub method: Method,
    /// As it stands in the first line.
    pub target: String,
    pub host: Option<String>,
    pub fields: Fields,
    pub framing: Framing,
    /// Value of `content-length`.
    pub length: Option<u64>,
    /// The connection stays open.
    pub keep: bool,
    /// The client understands HTTP/1.1.
    pub newest: bool,
    pub expects_continue: bool,
}

/// The first line of an answer, and its fields without those of the connection.
#[derive(Debug)]
pub struct ResponseHead {
    pub status: StatusCode,
    pub fields: Fields,
    pub framing: Framing,
    pub length: Option<u64>,
    pub keep: bool,
}

/// A connection's incoming messages.
pub struct Reader<S> {
    pub io: S,
    buffer: BytesMut,
}

impl<S: AsyncRead + Unpin> Reader<S> {
    pub fn new(io: S) -> Reader<S> {
        Reader { io, buffer: BytesMut::new() }
    }

    /// True if bytes of the next message have been read.
    pub fn has_bytes(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The next request; `None` if the connection ends before it.
    pub async fn request(&mut self) -> Result<Option<RequestHead>, Unread> {
        loop {
            if !self.buffer.is_empty() {
                if let Some((head, length)) = parse_request(&self.buffer)? {
                    self.buffer.advance(length);
                    return Ok(Some(head));
                }
                if self.buffer.len() >= HEAD_LIMIT {
                    return Err(TOO_LARGE);
                }
            }
            if self.more_of_head().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(Unread::Broken) };
            }
        }
    }

    /// The answer to a request of this method. Interim answers are skipped.
    pub async fn response(&mut self, method: &Method) -> Result<ResponseHead, Unread> {
        let mut interim = 0;
        loop {
            if let Some((head, length)) = parse_response(&self.buffer, method)? {
                self.buffer.advance(length);
                if !head.status.is_informational() {
                    return Ok(head);
                }
                interim += 1;
                if interim > 16 || head.status == StatusCode::SWITCHING_PROTOCOLS {
                    return Err(BAD);
                }
                continue;
            }
            if self.buffer.len() >= HEAD_LIMIT {
                return Err(TOO_LARGE);
            }
            if self.more_of_head().await? == 0 {
                return Err(Unread::Broken);
            }
        }
    }

    /// The next bytes of a body, at most so many; `None` at its end.
    pub async fn body(&mut self, framing: &mut Framing, most: usize) -> Result<Option<Bytes>, Unread> {
        let most = most.min(READ);
        loop {
            match framing {
                Framing::Length(0) => return Ok(None),
                Framing::Length(left) | Framing::Chunk(left) if *left > 0 => {
                    if self.buffer.is_empty() && self.more(most).await? == 0 {
                        return Err(Unread::Broken);
                    }
                    let count = self.buffer.len().min(usize::try_from(*left).unwrap_or(usize::MAX)).min(most);
                    *left -= count as u64;
                    return Ok(Some(self.taken(count)));
                }
                Framing::UntilClose => {
                    if self.buffer.is_empty() && self.more(most).await? == 0 {
                        *framing = Framing::Length(0);
                        return Ok(None);
                    }
                    return Ok(Some(self.taken(self.buffer.len().min(most))));
                }
                Framing::Chunk(_) => {
                    while self.buffer.len() < 2 {
                        self.some_more().await?;
                    }
                    if &self.buffer[..2] != b"\r\n" {
                        return Err(BAD);
                    }
                    self.buffer.advance(2);
                    *framing = Framing::Chunked;
                }
                Framing::Chunked => match httparse::parse_chunk_size(&self.buffer).map_err(|_| BAD)? {
                    httparse::Status::Complete((line, 0)) => {
                        self.buffer.advance(line);
                        self.trailers().await?;
                        *framing = Framing::Length(0);
                    }
                    httparse::Status::Complete((line, size)) => {
                        self.buffer.advance(line);
                        *framing = Framing::Chunk(size);
                    }
                    httparse::Status::Partial if self.buffer.len() > CHUNK_LINE_LIMIT => return Err(BAD),
                    httparse::Status::Partial => self.some_more().await?,
                },
                Framing::Length(_) => unreachable!("a length above zero has been treated"),
            }
        }
    }

    /// Skips the trailers of a chunked body: they are of no message that goes on.
    async fn trailers(&mut self) -> Result<(), Unread> {
        loop {
            let mut trailers = [httparse::EMPTY_HEADER; FIELDS_LIMIT];
            match httparse::parse_headers(&self.buffer, &mut trailers).map_err(|_| BAD)? {
                httparse::Status::Complete((length, _)) => {
                    self.buffer.advance(length);
                    return Ok(());
                }
                httparse::Status::Partial if self.buffer.len() > CHUNK_LINE_LIMIT => return Err(BAD),
                httparse::Status::Partial => self.some_more().await?,
            }
        }
    }

    /// Bytes of a body. An empty buffer keeps no memory: the next read may be long in coming.
    fn taken(&mut self, count: usize) -> Bytes {
        if count == self.buffer.len() {
            return std::mem::take(&mut self.buffer).freeze();
        }
        self.buffer.split_to(count).freeze()
    }

    async fn some_more(&mut self) -> Result<(), Unread> {
        if self.more(4096).await? == 0 { Err(Unread::Broken) } else { Ok(()) }
    }

    /// Reads on, to the largest head at most.
    async fn more_of_head(&mut self) -> std::io::Result<usize> {
        self.more(4096.min(HEAD_LIMIT - self.buffer.len())).await
    }

    async fn more(&mut self, most: usize) -> std::io::Result<usize> {
        self.buffer.reserve(most);
        self.io.read_buf(&mut (&mut self.buffer).limit(most)).await
    }
}

fn parse_request(buffer: &[u8]) -> Result<Option<(RequestHead, usize)>, Unread> {
    let mut headers = [httparse::EMPTY_HEADER; FIELDS_LIMIT];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(buffer).map_err(refusal)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let newest = request.version == Some(1);
    let fields = Message::read(request.headers, newest)?;
    let method = Method::from_bytes(request.method.unwrap_or_default().as_bytes()).map_err(|_| BAD)?;
    if newest && fields.host.is_none() || method == Method::CONNECT {
        return Err(BAD);
    }
    let framing = match (fields.chunked, fields.length) {
        (true, _) => Framing::Chunked,
        (false, length) => Framing::Length(length.unwrap_or(0)),
    };
    let head = RequestHead {
        method,
        target: request.path.unwrap_or_default().to_owned(),
        host: fields.host,
        fields: fields.kept,
        framing,
        length: fields.length,
        keep: newest && !fields.closes,
        newest,
        expects_continue: newest && fields.expects_continue,
    };
    Ok(Some((head, length)))
}

fn parse_response(buffer: &[u8], method: &Method) -> Result<Option<(ResponseHead, usize)>, Unread> {
    let mut headers = [httparse::EMPTY_HEADER; FIELDS_LIMIT];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(buffer).map_err(refusal)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let newest = response.version == Some(1);
    let fields = Message::read(response.headers, newest)?;
    let status = StatusCode::from_u16(response.code.unwrap_or_default()).map_err(|_| BAD)?;
    let is_bodiless = *method == Method::HEAD || matches!(status.as_u16(), 100..=199 | 204 | 304);
    let framing = match (is_bodiless, fields.chunked, fields.length) {
        (true, _, _) => Framing::Length(0),
        (_, true, _) => Framing::Chunked,
        (_, _, Some(length)) => Framing::Length(length),
        (_, _, None) => Framing::UntilClose,
    };
    let keep = newest && !fields.closes && framing != Framing::UntilClose;
    let head = ResponseHead { status, fields: fields.kept, framing, length: fields.length, keep };
    Ok(Some((head, length)))
}

fn refusal(error: httparse::Error) -> Unread {
    if error == httparse::Error::TooManyHeaders { TOO_LARGE } else { BAD }
}

/// Fields that belong to a connection, not to a message (RFC 9110, section 7.6.1).
const OF_CONNECTION: [&str; 9] = [
    "connection",
    "content-length",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// True for a field that does not go on to the next connection.
pub fn is_of_connection(name: &HeaderName) -> bool {
    OF_CONNECTION.contains(&name.as_str())
}

#[derive(Default)]
struct Message {
    kept: Fields,
    host: Option<String>,
    length: Option<u64>,
    chunked: bool,
    closes: bool,
    expects_continue: bool,
}

impl Message {
    fn read(headers: &[httparse::Header<'_>], newest: bool) -> Result<Message, Unread> {
        let mut message = Message::default();
        let mut dropped: Vec<String> = Vec::new();
        for header in headers {
            let text = || std::str::from_utf8(header.value).map(str::trim).map_err(|_| BAD);
            match header.name.to_ascii_lowercase().as_str() {
                "host" if message.host.is_some() => return Err(BAD),
                "host" => message.host = Some(text()?.to_owned()),
                "content-length" => {
                    let value = text()?;
                    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                    let value = value.parse().ok().filter(|_| digits && message.length.is_none());
                    message.length = Some(value.ok_or(BAD)?);
                }
                "transfer-encoding" if message.chunked => return Err(BAD),
                "transfer-encoding" if text()?.eq_ignore_ascii_case("chunked") => message.chunked = true,
                "transfer-encoding" => return Err(Unread::Refused(StatusCode::NOT_IMPLEMENTED)),
                "connection" => {
                    for option in text()?.split(',').map(|option| option.trim().to_ascii_lowercase()) {
                        message.closes |= option == "close";
                        dropped.push(option);
                    }
                }
                "expect" => message.expects_continue = text()?.eq_ignore_ascii_case("100-continue"),
                _ => {
                    let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| BAD)?;
                    let value = HeaderValue::from_bytes(header.value).map_err(|_| BAD)?;
                    if !is_of_connection(&name) {
                        message.kept.push((name, value));
                    }
                }
            }
        }
        message.kept.retain(|(name, _)| !dropped.iter().any(|other| other == name.as_str()));
        if message.chunked && (message.length.is_some() || !newest) {
            return Err(BAD);
        }
        Ok(message)
    }
}

/// Writes a head: its first line, then the fields, then those of the connection.
pub fn write_head(first: &str, fields: &Fields, own: &[(&str, String)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    // A Vec takes all that is written.
    let _ = write!(out, "{first}\r\n");
    for (name, value) in fields {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in own {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// Writes the frame of a chunk around `bytes`.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// The last chunk.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    async fn answers(text: &str) -> Result<Vec<(u16, Vec<u8>)>, Unread> {
        let mut reader = Reader::new(text.as_bytes());
        let mut all = Vec::new();
        loop {
            let mut head = reader.response(&Method::GET).await?;
            let mut body = Vec::new();
            while let Some(bytes) = reader.body(&mut head.framing, 64).await? {
                body.extend_from_slice(&bytes);
            }
            all.push((head.status.as_u16(), body));
            if !reader.has_bytes() {
                return Ok(all);
            }
        }
    }

    #[tokio::test]
    async fn bodies_end_where_their_lengths_or_chunks_say() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
                    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nde\r\n1\r\nf\r\n0\r\nT: u\r\n\r\n\
                    HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n\r\nrest";
        let all = answers(text).await.unwrap();
        let expected = [(200, "abc"), (200, "def"), (304, ""), (200, "rest")];
        assert_eq!(all, expected.map(|(status, body)| (status, body.as_bytes().to_vec())));
    }

    #[tokio::test]
    async fn ambiguous_lengths_are_refused() {
        let cases = [
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Content-Length: 3\r\nContent-Length: 3",
            "Content-Length: 3\r\nContent-Length: 4",
            "Content-Length: 3, 3",
            "Content-Length: +3",
            "Content-Length: ",
            "Content-Length: 99999999999999999999",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding : chunked",
            "X: a\r\n folded",
        ];
        for fields in cases {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nabc");
            assert!(matches!(answers(&text).await, Err(Unread::Refused(_))), "{fields:?}");
            let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\nabc");
            let read = Reader::new(text.as_bytes()).request().await;
            assert!(matches!(read, Err(Unread::Refused(_))), "{fields:?}");
        }
        let old = answers("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").await;
        assert!(matches!(old, Err(Unread::Refused(_))));
    }

    #[tokio::test]
    async fn endless_and_cut_messages_are_refused() {
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "x: y\r\n".repeat(FIELDS_LIMIT + 1));
        assert!(matches!(answers(&endless).await, Err(Unread::Refused(_))));
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(HEAD_LIMIT));
        assert!(matches!(answers(&long).await, Err(Unread::Refused(_))));
        for text in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc"] {
            assert!(matches!(answers(text).await, Err(Unread::Broken)), "{text:?}");
        }
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(matches!(
            answers(&format!("{chunks}3\r\nabcX")).await,
            Err(Unread::Broken | Unread::Refused(_))
        ));
        assert!(matches!(answers(&format!("{chunks}fffffffffffffffff\r\n")).await, Err(Unread::Refused(_))));
    }

    #[tokio::test]
    async fn fields_of_the_connection_do_not_go_on() {
        let text = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close, X-One\r\nX-One: 1\r\nX-Two: 2\r\nUpgrade: h2c\r\n\
                    \r\n";
        let head = Reader::new(text.as_bytes()).request().await.unwrap().unwrap();
        let names: Vec<_> = head.fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, head.keep, head.host.as_deref()), (vec!["x-two"], false, Some("a")));
    }
}
