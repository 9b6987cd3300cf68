//! HTTP/1.1 with a browser. Requests may be pipelined: they are asked for at once and answered in their order. One that
//! may change something is carried out alone, between those before and behind it (RFC 9112, section 9.3.2).

use super::Remote;
use super::asking::{Answer, Broken};
use crate::counted::Ending;
use crate::pep::exchange::{Length, Request};
use crate::pep::http1::{Framing, LAST_CHUNK, Reader, RequestHead, Unread, chunk, write_head};
use crate::records::ConnectionId;
use http::header::{HOST, HeaderValue};
use http::{Method, StatusCode};
use std::net::SocketAddrV4;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;
use wirepaint_http_model::Priority;

/// Most requests of a connection whose answers have not begun.
const PIPELINE: usize = 64;
/// Parts of a request's body that wait for the ground side.
const PARTS: usize = 4;
/// Time without traffic after which a connection is closed.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// Time for a client to read an error before the connection is closed.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The ends of a browser's connection, and its record.
#[derive(Clone)]
pub struct Browser {
    pub user: SocketAddrV4,
    pub destination: SocketAddrV4,
    pub encrypted: bool,
    pub id: ConnectionId,
    /// How the connection ends; it is reset unless this says otherwise.
    pub ending: Ending,
}

/// An answer in the order of requests.
enum Turn {
    Answer {
        answer: JoinHandle<Result<Answer, Broken>>,
        keep: bool,
        newest: bool,
        is_head: bool,
    },
    /// The client is told to go on with its body.
    Continue,
    /// The request was refused, and the connection ends.
    Refused(StatusCode),
}

/// Why a connection carries no further answers.
enum Stopped {
    /// The browser takes none.
    Browser,
    /// This one broke, or cannot be had.
    Answer,
}

impl From<Broken> for Stopped {
    fn from(Broken: Broken) -> Stopped {
        Stopped::Answer
    }
}

/// Serves requests until the connection ends.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(io: S, remote: Rc<Remote>, browser: Browser) {
    let (from, to) = tokio::io::split(io);
    let (turns, order) = mpsc::channel(PIPELINE);
    let (given, answered) = watch::channel(0);
    let mut reader = Reader::new(from);
    let written = {
        let mut reading = std::pin::pin!(read(&mut reader, turns, answered, &remote, &browser));
        let mut writing = std::pin::pin!(write(to, order, given));
        tokio::select! {
            written = &mut writing => written,
            // After the last request its answer follows; a broken connection shows in the writing.
            () = &mut reading => writing.await,
        }
    };
    let mut to = match written {
        Ok(to) => to,
        // The browser gets what came before the reset, as it would without the proxy.
        Err(Stopped::Answer) => {
            tokio::select! {
                () = browser.ending.drain() => {}
                () = is_reset(&mut reader) => {}
            }
            return;
        }
        Err(Stopped::Browser) => return,
    };
    let _ = to.shutdown().await;
    let _ = timeout(LINGER_TIME, async {
        let mut rest = Framing::UntilClose;
        while let Ok(Some(_)) = reader.body(&mut rest, usize::MAX).await {}
    })
    .await;
    browser.ending.in_order();
}

/// Waits until the browser resets the connection.
async fn is_reset<S: AsyncRead + AsyncWrite + Unpin>(reader: &mut Reader<ReadHalf<S>>) {
    let mut rest = Framing::UntilClose;
    loop {
        match reader.body(&mut rest, usize::MAX).await {
            Ok(Some(_)) => {}
            Ok(None) => std::future::pending().await,
            Err(_) => return,
        }
    }
}

async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    reader: &mut Reader<ReadHalf<S>>,
    turns: mpsc::Sender<Turn>,
    mut answered: watch::Receiver<u64>,
    remote: &Rc<Remote>,
    browser: &Browser,
) {
    let (mut asked, mut after_change) = (0, false);
    loop {
        let head = match timeout(IDLE_TIME, reader.request()).await {
            Ok(Ok(Some(head))) => head,
            Ok(Err(Unread::Refused(status))) => return drop(turns.send(Turn::Refused(status)).await),
            _ => return,
        };
        let (mut framing, keep, newest) = (head.framing, head.keep, head.newest);
        let expects = head.expects_continue && !reader.has_bytes();
        let is_head = head.method == Method::HEAD;
        let Some(request) = request(head, browser) else {
            return drop(turns.send(Turn::Refused(StatusCode::BAD_REQUEST)).await);
        };
        if !request.fits() {
            let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return drop(turns.send(Turn::Refused(too_large)).await);
        }
        let is_change = !request.method.is_safe();
        if (is_change || after_change) && answered.wait_for(|&answered| answered == asked).await.is_err() {
            return;
        }
        (asked, after_change) = (asked + 1, is_change);
        let (parts, upload) = mpsc::channel(PARTS);
        let upload = (request.body != Length::Nothing).then_some(upload);
        let (asking, id, priority) = (remote.clone(), browser.id, request.priority);
        let answer = spawn_local(async move { asking.ask(request, upload, id, |_| priority).await });
        if expects && turns.send(Turn::Continue).await.is_err() {
            return;
        }
        if turns.send(Turn::Answer { answer, keep, newest, is_head }).await.is_err() {
            return;
        }
        loop {
            match timeout(IDLE_TIME, reader.body(&mut framing, usize::MAX)).await {
                // Nobody takes the rest of a body whose answer is given already.
                Ok(Ok(Some(bytes))) => drop(parts.send(Some(bytes)).await),
                Ok(Ok(None)) => break drop(parts.send(None).await),
                Ok(Err(Unread::Refused(status))) => return drop(turns.send(Turn::Refused(status)).await),
                _ => return,
            }
        }
        if !keep {
            return;
        }
    }
}

/// The request in a head; `None` if its address is none.
fn request(head: RequestHead, browser: &Browser) -> Option<Request> {
    let is_own = head.target.starts_with('/') || head.target == "*" && head.method == Method::OPTIONS;
    let (authority, path) = if is_own {
        (head.host?, head.target)
    } else {
        let uri: http::Uri = head.target.parse().ok()?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        (uri.authority()?.as_str().to_owned(), path)
    };
    let mut fields = head.fields;
    fields.retain(|(name, _)| name != HOST);
    let body = match (head.framing, head.length) {
        (Framing::Chunked, _) => Length::Unknown,
        (_, Some(length)) if length > 0 || head.method != Method::GET => Length::Known(length),
        _ => Length::Nothing,
    };
    let priority = fields.iter().find(|(name, _)| name == "priority");
    let priority =
        priority.and_then(|(_, value): &(_, HeaderValue)| value.to_str().ok()).map(Priority::parse);
    let valid = authority.parse::<http::uri::Authority>().is_ok_and(|name| !name.as_str().contains('@'));
    valid.then(|| Request {
        user: browser.user,
        destination: browser.destination,
        encrypted: browser.encrypted,
        fresh: false,
        method: head.method,
        authority: authority.to_ascii_lowercase(),
        path,
        fields,
        priority: priority.unwrap_or_default(),
        body,
    })
}

/// Writes answers in their order. Gives the connection back where it may end in order.
async fn write<S: AsyncRead + AsyncWrite + Unpin>(
    mut to: WriteHalf<S>,
    mut order: mpsc::Receiver<Turn>,
    given: watch::Sender<u64>,
) -> Result<WriteHalf<S>, Stopped> {
    let written = |result: std::io::Result<()>| result.map_err(|_| Stopped::Browser);
    while let Some(turn) = order.recv().await {
        match turn {
            Turn::Continue => written(to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await)?,
            Turn::Refused(status) => {
                let own = [("content-length", "0".to_owned()), ("connection", "close".to_owned())];
                let head = write_head(&first_line(status), &Vec::new(), &own);
                written(to.write_all(&head).await)?;
                return Ok(to);
            }
            Turn::Answer { answer, keep, newest, is_head } => {
                let mut answer = AbortOnDrop(answer);
                let answer = (&mut answer.0).await.map_err(|_| Broken)??;
                let keep = send(&mut to, answer, keep, newest, is_head).await?;
                if !keep {
                    return Ok(to);
                }
                given.send_modify(|answers| *answers += 1);
            }
        }
        written(to.flush().await)?;
    }
    Ok(to)
}

/// A request that nobody waits for is given up.
struct AbortOnDrop(JoinHandle<Result<Answer, Broken>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn first_line(status: StatusCode) -> String {
    format!("HTTP/1.1 {} {}", status.as_u16(), status.canonical_reason().unwrap_or("Unnamed"))
}

/// Writes an answer. Returns whether the connection stays open.
async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    to: &mut WriteHalf<S>,
    mut answer: Answer,
    keep: bool,
    newest: bool,
    is_head: bool,
) -> Result<bool, Stopped> {
    let mut own = Vec::new();
    if let Some(length) = answer.head.length {
        own.push(("content-length", length.to_string()));
    }
    let unknown = answer.length() == Length::Unknown && !is_head;
    let chunked = unknown && newest;
    if chunked {
        own.push(("transfer-encoding", "chunked".to_owned()));
    }
    let keep = keep && (chunked || !unknown);
    if !keep {
        own.push(("connection", "close".to_owned()));
    }
    let head = write_head(&first_line(answer.head.status), &answer.head.fields, &own);
    to.write_all(&head).await.map_err(|_| Stopped::Browser)?;
    while let Some(bytes) = answer.next().await? {
        let framed = if chunked { chunk(&bytes).into() } else { bytes };
        let written = timeout(IDLE_TIME, to.write_all(&framed)).await.map_err(|_| Stopped::Browser)?;
        written.map_err(|_| Stopped::Browser)?;
        // TLS may hold bytes back, and the next ones may be long in coming.
        to.flush().await.map_err(|_| Stopped::Browser)?;
    }
    if chunked {
        to.write_all(LAST_CHUNK).await.map_err(|_| Stopped::Browser)?;
    }
    Ok(keep)
}
