//! HTTP/2 with a browser. The ground side orders the answers; here each goes on as the browser takes it.

use super::Remote;
use super::asking::{Answer, Broken, Upload};
use super::http1::Browser;
use crate::pep::exchange::{Fields, Length, Request};
use crate::pep::http1::is_of_connection;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, Method, Response, StatusCode};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::timeout;
use wirepaint_http_model::{Change, Priority};
use wirepaint_serving::Tap;

/// Time for the client's preface.
const OPENING_TIME: Duration = Duration::from_secs(30);
/// Streams that a client may have open at once; nginx has the same.
const STREAMS: u32 = 128;
/// Largest list of request headers in bytes, as RFC 9113 counts them.
const HEADER_LIST: u32 = 64 * 1024;
/// Most bytes of an answer that wait in the h2 crate.
const SEND_BUFFER: usize = 64 * 1024;
/// Parts of a request's body that wait for the ground side.
const PARTS: usize = 4;
/// Time without a request after which a connection is closed, and without room for an answer after which the answer is.
const IDLE_TIME: Duration = Duration::from_secs(300);

/// Most changes of priority that are kept for future requests.
const EARLY_CHANGES: usize = 128;

/// Requests under way, by the browser's streams: the answer's stream once it is known, and the priority.
type UnderWay = Rc<RefCell<BTreeMap<u32, (Option<u32>, Priority)>>>;

/// Serves requests until the connection ends.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(io: S, remote: Rc<Remote>, browser: Browser) {
    let (tap, seen) = Tap::new(io);
    let mut builder = h2::server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_LIST)
        .max_send_buffer_size(SEND_BUFFER);
    // It has the connection until the end of this function, which says how that ends.
    let mut opening = std::pin::pin!(builder.handshake(tap));
    let mut connection = match timeout(OPENING_TIME, opening.as_mut()).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) if error.is_io() => return,
        // The client has sent what is no preface. It reads an end, not a reset (RFC 9113, section 3.4).
        Ok(Err(_)) => return browser.ending.in_order(),
        Err(_) => return,
    };
    let under_way = UnderWay::default();
    // Changes may come before their requests, and with them.
    let (mut early, mut newest) = (BTreeMap::new(), 0);
    loop {
        let accepted = poll_fn(|cx| {
            let accepted = connection.poll_accept(cx);
            if let Poll::Ready(Some(Ok((request, respond)))) = &accepted {
                newest = respond.stream_id().as_u32();
                let priority = priority(request.headers());
                let priority =
                    early.remove(&newest).map_or(priority, |change: Change| change.apply(priority));
                under_way.borrow_mut().insert(newest, (None, priority));
            }
            for (stream, change) in seen.changes() {
                if stream <= newest {
                    reprioritise(&remote, &under_way, stream, change);
                } else if early.len() < EARLY_CHANGES {
                    early.insert(stream, change);
                }
            }
            accepted
        });
        match timeout(IDLE_TIME, accepted).await {
            Ok(Some(Ok((request, respond)))) => {
                let (remote, browser, under_way) = (remote.clone(), browser.clone(), under_way.clone());
                spawn_local(async move {
                    let stream = respond.stream_id().as_u32();
                    exchange(request, respond, &remote, &browser, &under_way).await;
                    under_way.borrow_mut().remove(&stream);
                });
            }
            Err(_) if !under_way.borrow().is_empty() => {}
            // The client reads what an error of the protocol was.
            Ok(Some(Err(error))) if error.is_io() => return,
            Ok(Some(Err(_)) | None) | Err(_) => return browser.ending.in_order(),
        }
    }
}

fn reprioritise(remote: &Remote, under_way: &UnderWay, stream: u32, change: Change) {
    if let Some((answer, priority)) = under_way.borrow_mut().get_mut(&stream) {
        *priority = change.apply(*priority);
        if let Some(answer) = answer {
            remote.prioritise(*answer, *priority);
        }
    }
}

async fn exchange(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    remote: &Rc<Remote>,
    browser: &Browser,
    under_way: &UnderWay,
) {
    let stream = respond.stream_id().as_u32();
    let (head, body) = request.into_parts();
    let Some(request) = translated(head, &body, browser) else {
        return respond.send_reset(Reason::PROTOCOL_ERROR);
    };
    if !request.fits() {
        let mut refused = Response::new(());
        *refused.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let _ = respond.send_response(refused, true);
        return;
    }
    let is_head = request.method == Method::HEAD;
    let upload: Option<Upload> = (request.body != Length::Nothing).then(|| {
        let (parts, upload) = mpsc::channel(PARTS);
        spawn_local(read(body, parts));
        upload
    });
    let told = |answer| {
        let mut under_way = under_way.borrow_mut();
        let (known, priority) = under_way.get_mut(&stream).expect("it is under way until its answer ends");
        *known = Some(answer);
        *priority
    };
    let answer = tokio::select! {
        answer = remote.ask(request, upload, browser.id, told) => answer,
        // The browser gave it up.
        _ = poll_fn(|cx| respond.poll_reset(cx)) => return,
    };
    let Ok(answer) = answer else { return respond.send_reset(Reason::INTERNAL_ERROR) };
    let mut response = Response::new(());
    *response.status_mut() = answer.head.status;
    for (name, value) in &answer.head.fields {
        response.headers_mut().append(name, value.clone());
    }
    if let Some(length) = answer.head.length {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    let ends = is_head || answer.length() == Length::Nothing;
    let Ok(mut sending) = respond.send_response(response, ends) else { return };
    if send(&mut sending, answer, ends).await.is_err() {
        sending.send_reset(Reason::INTERNAL_ERROR);
    }
}

fn priority(headers: &HeaderMap) -> Priority {
    let value = headers.get("priority").and_then(|value| value.to_str().ok());
    value.map(Priority::parse).unwrap_or_default()
}

/// Sends the body as the browser takes it.
async fn send(sending: &mut SendStream<Bytes>, mut answer: Answer, ends: bool) -> Result<(), Broken> {
    loop {
        let next = tokio::select! {
            next = answer.next() => next?,
            _ = poll_fn(|cx| sending.poll_reset(cx)), if !ends => return Err(Broken),
        };
        let Some(mut bytes) = next else { break };
        while !bytes.is_empty() {
            sending.reserve_capacity(bytes.len());
            let capacity = timeout(IDLE_TIME, poll_fn(|cx| sending.poll_capacity(cx))).await;
            let capacity = capacity.map_err(|_| Broken)?.ok_or(Broken)?.map_err(|_| Broken)?;
            let part = bytes.split_to(capacity.min(bytes.len()));
            sending.send_data(part, false).map_err(|_| Broken)?;
        }
    }
    if ends { Ok(()) } else { sending.send_data(Bytes::new(), true).map_err(|_| Broken) }
}

/// Passes a request's body on; without the end if it breaks.
async fn read(mut body: RecvStream, parts: mpsc::Sender<Option<Bytes>>) {
    while let Some(data) = body.data().await {
        let Ok(bytes) = data else { return };
        let count = bytes.len();
        if parts.send(Some(bytes)).await.is_err() {
            return;
        }
        let _ = body.flow_control().release_capacity(count);
    }
    let _ = parts.send(None).await;
}

/// The request; `None` if it names no host.
fn translated(head: http::request::Parts, body: &RecvStream, browser: &Browser) -> Option<Request> {
    let of_uri = head.uri.authority().map(|authority| authority.as_str().to_owned());
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let authority = of_uri.or(host)?.to_ascii_lowercase();
    let valid = authority.parse::<http::uri::Authority>().is_ok_and(|name| !name.as_str().contains('@'));
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut fields: Fields = head
        .headers
        .iter()
        .filter(|(name, _)| *name != HOST && !is_of_connection(name) && *name != "cookie")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // HTTP/2 may send a cookie in pieces (RFC 9113, section 8.2.3).
    let cookies: Vec<_> = head.headers.get_all("cookie").iter().map(|value| value.as_bytes()).collect();
    if !cookies.is_empty() {
        fields.push((http::header::COOKIE, cookies.join(&b"; "[..]).try_into().ok()?));
    }
    if !valid || head.method == Method::CONNECT {
        return None;
    }
    Some(Request {
        user: browser.user,
        destination: browser.destination,
        encrypted: browser.encrypted,
        fresh: false,
        method: head.method,
        authority,
        path: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        fields,
        priority: priority(&head.headers),
        body: match (body.is_end_stream(), length) {
            (true, _) => Length::Nothing,
            (false, Some(length)) => Length::Known(length),
            (false, None) => Length::Unknown,
        },
    })
}
