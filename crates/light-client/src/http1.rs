//! HTTP/1.1 on one connection (RFC 9112): requests one behind the other, answers in their order.

use crate::event::{Event, Fault};
use crate::requests::Request;
use bytes::{Buf, BytesMut};
use std::collections::VecDeque;
use std::io::Write;

/// Largest head of an answer in bytes, as Chromium has it.
const HEAD_LIMIT: usize = 256 * 1024;
/// Most fields of an answer.
const FIELDS_LIMIT: usize = 512;

/// The client's side of a connection.
#[derive(Default)]
pub struct Http1 {
    /// Bytes to send.
    pub output: Vec<u8>,
    /// The server has said that it will close, and the answers until then are complete.
    pub is_over: bool,
    /// Requests without a complete answer, oldest first; true for those whose answer has no body (HEAD).
    asked: VecDeque<(u32, bool)>,
    buffer: BytesMut,
    body: Option<Body>,
}

/// The body that is arriving.
struct Body {
    /// Bytes to come; `None` until the connection ends.
    left: Option<u64>,
    /// The connection ends behind it.
    closes: bool,
}

impl Http1 {
    /// Writes a request.
    pub fn ask(&mut self, request: &Request) {
        self.asked.push_back((request.number, request.method == "HEAD"));
        let Request { method, path, authority, fields, body, .. } = request;
        // A Vec takes all that is written.
        let _ = write!(
            self.output,
            "{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: keep-alive\r\n"
        );
        for (name, value) in fields.iter().filter(|(name, _)| *name != "priority") {
            let _ = write!(self.output, "{name}: {value}\r\n");
        }
        self.output.extend_from_slice(b"\r\n");
        self.output.resize(self.output.len() + *body as usize, 0);
    }

    /// Reads what the server has sent.
    pub fn receive(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Fault> {
        self.buffer.extend_from_slice(bytes);
        while !self.buffer.is_empty() && !self.is_over {
            let Some(&(request, _)) = self.asked.front() else {
                return Err(Fault::new("the server sent bytes that answer no request"));
            };
            if let Some(body) = &mut self.body {
                let here = self.buffer.len() as u64;
                let payload = body.left.map_or(here, |left| left.min(here));
                self.buffer.advance(payload as usize);
                body.left = body.left.map(|left| left - payload);
                events.push(Event::Body { request, bytes: payload, payload });
            } else if !self.head(request, events)? {
                return Ok(());
            }
            if matches!(self.body, Some(Body { left: Some(0), .. })) {
                self.complete(request, events);
            }
        }
        Ok(())
    }

    /// The server sends no more.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        if let (Some(Body { left: None, .. }), Some(&(request, _))) = (&self.body, self.asked.front()) {
            self.complete(request, events);
        }
        self.is_over = true;
    }

    fn complete(&mut self, request: u32, events: &mut Vec<Event>) {
        self.asked.pop_front();
        self.is_over = self.body.take().is_some_and(|body| body.closes);
        events.push(Event::Complete { request });
    }

    /// Reads a head; false while it is incomplete.
    fn head(&mut self, request: u32, events: &mut Vec<Event>) -> Result<bool, Fault> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_LIMIT];
        let mut answer = httparse::Response::new(&mut fields);
        let bad = |error| Fault::new(format!("the head of an answer is not HTTP/1.1: {error}"));
        let length = match answer.parse(&self.buffer).map_err(bad)? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial if self.buffer.len() < HEAD_LIMIT => return Ok(false),
            httparse::Status::Partial => {
                return Err(Fault::new(format!("the head of an answer is longer than {HEAD_LIMIT} bytes")));
            }
        };
        let status = answer.code.unwrap_or_default();
        let (mut left, mut closes) = (None, answer.version == Some(0));
        for field in answer.headers.iter() {
            let text = std::str::from_utf8(field.value).map(str::trim).unwrap_or_default();
            match field.name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                    let value = text.parse::<u64>().ok().filter(|_| digits);
                    if value.is_none() || left.is_some_and(|left| Some(left) != value) {
                        return Err(Fault::new(format!("content-length of an answer: found {text:?}")));
                    }
                    left = value;
                }
                "transfer-encoding" => {
                    return Err(Fault::new(format!("transfer-encoding: found {text:?}, accepted: none")));
                }
                "connection" => closes |= text.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        self.buffer.advance(length);
        if (100..200).contains(&status) {
            return Ok(true);
        }
        let is_bodiless = self.asked.front().is_some_and(|asked| asked.1) || matches!(status, 204 | 304);
        let left = if is_bodiless { Some(0) } else { left };
        self.body = Some(Body { left, closes: closes || left.is_none() });
        events.push(Event::Head { request, status, bytes: length as u64 });
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirepaint_http_model::Priority;
    use wirepaint_page_model::catalogue::chromium;
    use wirepaint_page_model::page::{Cause, Element, Kind, Origin, Resource};
    use wirepaint_page_model::{Page, Prepared};

    fn asked(requests: &[(u32, &str)]) -> Http1 {
        let mut http = Http1::default();
        for &(number, method) in requests {
            let (method, authority, path) = (method.to_owned(), "a.test".to_owned(), "/".to_owned());
            http.ask(&Request { number, method, authority, path, fields: Vec::new(), body: 0 });
        }
        http
    }

    fn heard(http: &mut Http1, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        http.receive(text.as_bytes(), &mut events).unwrap();
        events
    }

    #[test]
    fn a_post_carries_as_many_bytes_as_it_says() {
        let mut http = Http1::default();
        let (method, authority, path) = ("POST".to_owned(), "a.test".to_owned(), "/x".to_owned());
        let fields = vec![("content-length", "3".to_owned()), ("priority", "u=1".to_owned())];
        http.ask(&Request { number: 0, method, authority, path, fields, body: 3 });
        let text =
            "POST /x HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive\r\ncontent-length: 3\r\n\r\n\0\0\0";
        assert_eq!(String::from_utf8(http.output).unwrap(), text);
    }

    #[test]
    fn pipelined_answers_come_in_order_wherever_they_are_cut() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 304 Not Modified\r\n\r\n";
        let mut http = asked(&[(7, "GET"), (9, "GET")]);
        let mut events = heard(&mut http, &text[..39]);
        events.extend(heard(&mut http, &text[39..]));
        let head = |request, status, bytes| Event::Head { request, status, bytes };
        let body = |request| Event::Body { request, bytes: 1, payload: 1 };
        let done = |request| Event::Complete { request };
        let all = [head(7, 200, 38), body(7), body(7), done(7), head(9, 304, 29), done(9)];
        assert_eq!(events, all);
        assert!(!http.is_over);
    }

    #[test]
    fn the_end_of_the_connection_ends_a_body_without_length() {
        let mut http = asked(&[(1, "GET"), (2, "GET")]);
        let mut events = heard(&mut http, "HTTP/1.1 200 OK\r\n\r\nabc");
        assert_eq!(events.len(), 2);
        http.end(&mut events);
        assert_eq!(events.last(), Some(&Event::Complete { request: 1 }));
        assert!(http.is_over);
    }

    #[test]
    fn an_answer_to_head_has_a_length_and_no_body() {
        let mut http = asked(&[(1, "HEAD")]);
        let events = heard(&mut http, "HTTP/1.1 200 OK\r\ncontent-length: 500\r\nConnection: close\r\n\r\n");
        assert_eq!(events.last(), Some(&Event::Complete { request: 1 }));
        assert!(http.is_over, "the server said that it closes");
    }

    #[test]
    fn bad_answers_are_refused_in_a_line() {
        let cases = [
            ("HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n", "content-length of an answer: found \"+1\""),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                "transfer-encoding: found \"chunked\", accepted: none",
            ),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nx", "the server sent bytes that answer no request"),
        ];
        for (text, refusal) in cases {
            let fault = asked(&[(0, "GET")]).receive(text.as_bytes(), &mut Vec::new()).unwrap_err();
            assert_eq!(fault.0, refusal);
        }
        let endless = "x-pad: y\r\n".repeat(HEAD_LIMIT / 10 + 1);
        let text = format!("HTTP/1.1 200 OK\r\n{endless}");
        assert!(asked(&[(0, "GET")]).receive(text.as_bytes(), &mut Vec::new()).is_err());
    }

    #[test]
    fn requests_without_tls_have_the_modelled_sizes() {
        let resource = |path: &str, kind: Kind, cause: Option<Cause>| {
            let json = serde_json::json!({
                "url": format!("http://a.test/{path}"), "origin": 0, "status": 200, "type": kind, "cause": cause,
                "wire_bytes": 9, "decoded_bytes": 9, "headers": [],
            });
            serde_json::from_value::<Resource>(json).unwrap()
        };
        let origin =
            Origin { host: "a.test".to_owned(), address: [10, 65, 0, 1].into(), port: 80, encrypted: false };
        let image = Some(Cause::Markup { by: 0, at: 1, element: Element::Image });
        let page = Page {
            origins: vec![origin],
            resources: vec![resource("", Kind::Html, None), resource("a.png", Kind::Image, image)],
            paints: Default::default(),
            processor_ns: None,
        };
        let modelled = Prepared::new(page.clone());
        for number in [0, 1] {
            let mut http = Http1::default();
            http.ask(&Request::new(&page, number, Priority::default()));
            assert_eq!(http.output.len() as u64, modelled.plain_request(number, chromium().heads));
        }
    }
}
