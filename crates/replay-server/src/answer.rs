//! From a request to its response, for any HTTP version.

use crate::conditions::Conditions;
use crate::headers::Fields;
use crate::matching::{Group, Matched, Target};
use crate::ranges::{ContentRange, Wanted};
use crate::recording::{Recorded, Recording};
use bytes::Bytes;
use http::StatusCode;
use http::header::HeaderMap;
use std::rc::Rc;

/// The parts of a request that decide its answer.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// HTTP method.
    pub method: String,
    /// `range` header.
    pub range: Option<String>,
    /// `origin` header.
    pub origin: Option<String>,
    /// `access-control-request-method` header.
    pub preflight_method: Option<String>,
    /// `access-control-request-headers` header.
    pub preflight_headers: Option<String>,
    /// `priority` header.
    pub priority: Option<String>,
    /// What a cache asks.
    pub conditions: Conditions,
}

impl Ask {
    /// Keeps a request's header if it needs it; call for each.
    pub fn note(&mut self, name: &str, value: &[u8]) {
        let field = match name.to_ascii_lowercase().as_str() {
            "range" => &mut self.range,
            "origin" => &mut self.origin,
            "access-control-request-method" => &mut self.preflight_method,
            "access-control-request-headers" => &mut self.preflight_headers,
            "priority" => &mut self.priority,
            "if-none-match" => &mut self.conditions.none_match,
            "if-modified-since" => &mut self.conditions.modified_since,
            _ => return,
        };
        *field = std::str::from_utf8(value).ok().map(str::to_owned);
    }
}

/// A response, except its parts that depend on the HTTP version.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers, without the following ones.
    pub fields: Rc<Fields>,
    /// `content-range`.
    pub content_range: Option<String>,
    /// `access-control-allow-origin`.
    pub allow_origin: Option<String>,
    /// `content-length`; `None` where the status forbids it.
    pub content_length: Option<u64>,
    /// Bytes behind the headers; empty for HEAD.
    pub body: Bytes,
    /// Nanoseconds to wait before the first byte.
    pub think_ns: u64,
    /// How the recorded response was found.
    pub matched: Matched,
    /// Its number; `None` if it was not recorded.
    pub response: Option<usize>,
}

impl Answer {
    /// A response without body that was not recorded.
    pub fn empty(status: StatusCode, matched: Matched) -> Answer {
        Answer {
            status,
            fields: Rc::default(),
            content_range: None,
            allow_origin: None,
            content_length: (status != StatusCode::NO_CONTENT).then_some(0),
            body: Bytes::new(),
            think_ns: 0,
            matched,
            response: None,
        }
    }

    /// The headers for HTTP/2.
    pub fn header_map(&self) -> HeaderMap {
        let mut map = self.fields.map.clone();
        if let Some(range) = self.content_range.as_ref().and_then(|range| range.parse().ok()) {
            map.insert("content-range", range);
        }
        if let Some(origin) = self.allow_origin.as_ref().and_then(|origin| origin.parse().ok()) {
            map.insert("access-control-allow-origin", origin);
        }
        if let Some(length) = self.content_length {
            map.insert("content-length", length.into());
        }
        map.insert("date", now().parse().expect("a date is a header value"));
        map
    }

    /// The head for HTTP/1.1; `keep` says whether the connection stays.
    pub fn head(&self, keep: bool) -> String {
        use std::fmt::Write;
        let mut head = String::with_capacity(self.fields.text.len() + 160);
        let reason = self.status.canonical_reason().unwrap_or("Unnamed");
        let _ = write!(head, "HTTP/1.1 {} {reason}\r\n{}", self.status.as_u16(), self.fields.text);
        if let Some(range) = &self.content_range {
            let _ = write!(head, "content-range: {range}\r\n");
        }
        if let Some(origin) = &self.allow_origin {
            let _ = write!(head, "access-control-allow-origin: {origin}\r\n");
        }
        if let Some(length) = self.content_length {
            let _ = write!(head, "content-length: {length}\r\n");
        }
        let connection = if keep { "" } else { "connection: close\r\n" };
        let _ = write!(head, "date: {}\r\n{connection}\r\n", now());
        head
    }
}

fn now() -> String {
    httpdate::fmt_http_date(std::time::SystemTime::now())
}

impl Recording {
    /// Answers a request; a repeated address moves on to its next recorded response.
    pub fn answer(&self, ask: &Ask, target: &Target) -> Answer {
        let Some((group, matched)) = self.index.find(&ask.method, target) else {
            return self
                .preflight(ask, target)
                .unwrap_or_else(|| Answer::empty(StatusCode::NOT_FOUND, Matched::None));
        };
        let mut answer = match self.part(ask, group) {
            Some(Ok((number, part))) => cut(number, &self.responses[number], part, ask.range.is_some()),
            Some(Err(total)) => Answer {
                content_range: total.map(|total| format!("bytes */{total}")),
                ..Answer::empty(StatusCode::RANGE_NOT_SATISFIABLE, Matched::None)
            },
            None => {
                let number = group.take();
                whole(number, &self.responses[number])
            }
        };
        if answer.matched != Matched::None {
            answer.matched = matched;
        }
        if let (Some(allowed), Some(origin)) = (&mut answer.allow_origin, &ask.origin)
            && allowed != "*"
        {
            // The recorded request was allowed; its origin may have been another one.
            allowed.clone_from(origin);
        }
        let is_whole = answer.status == StatusCode::OK && matches!(&*ask.method, "GET" | "HEAD");
        if is_whole && ask.conditions.hold_for(&answer.fields) {
            answer.status = StatusCode::NOT_MODIFIED;
            answer.fields = Rc::new(answer.fields.of_unchanged());
            answer.content_length = None;
            answer.body = Bytes::new();
        }
        if ask.method == "HEAD" {
            answer.body = Bytes::new();
        }
        answer
    }

    /// The answer to a CORS preflight that was not recorded: it allows the request if that has an answer
    /// (Fetch standard, "CORS-preflight fetch"). Browsers differ in when they send preflights.
    fn preflight(&self, ask: &Ask, target: &Target) -> Option<Answer> {
        if ask.method != "OPTIONS" {
            return None;
        }
        let method = ask.preflight_method.as_deref()?;
        let (_, matched) = self.index.find(method, target)?;
        let mut recorded = vec![
            ("access-control-allow-methods", method),
            ("access-control-allow-credentials", "true"),
            ("access-control-max-age", "600"),
            ("vary", "origin"),
        ];
        recorded
            .extend(ask.preflight_headers.as_deref().map(|names| ("access-control-allow-headers", names)));
        let recorded: Vec<_> = recorded.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        let fields = Fields::new(&recorded, std::time::SystemTime::now()).ok()?;
        let answer = Answer::empty(StatusCode::NO_CONTENT, matched);
        Some(Answer { fields: Rc::new(fields), allow_origin: Some(ask.origin.clone()?), ..answer })
    }

    /// The recorded part that answers a request, for an address that was recorded in parts.
    ///
    /// `None`: it was not, or the request has no range and the recording has a better response. `Err`: no
    /// recorded part has the wanted first byte; holds the size of the whole.
    fn part(&self, ask: &Ask, group: &Group) -> Option<Result<(usize, ContentRange), Option<u64>>> {
        let parts = || group.responses.iter().filter_map(|&i| self.responses[i].part.map(|part| (i, part)));
        let (_, any) = parts().next()?;
        match ask.range.as_deref().and_then(Wanted::parse) {
            None => parts().find(|(_, part)| part.is_whole()).map(Ok),
            Some(wanted) => {
                let fitting = parts().filter_map(|(number, part)| Some((number, wanted.within(part)?)));
                let longest = fitting.max_by_key(|(_, part)| part.length());
                Some(longest.ok_or(any.total))
            }
        }
    }
}

/// The whole recorded response.
fn whole(number: usize, recorded: &Recorded) -> Answer {
    let bodiless = matches!(recorded.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let body = if bodiless { Bytes::new() } else { recorded.body.clone() };
    Answer {
        status: recorded.status,
        fields: recorded.fields.clone(),
        content_range: recorded.fields.content_range.clone(),
        allow_origin: recorded.fields.allow_origin.clone(),
        content_length: (!bodiless).then_some(body.len() as u64),
        body,
        think_ns: recorded.think_ns,
        matched: Matched::Exact,
        response: Some(number),
    }
}

/// `part` of a recorded 206; without a range in the request, the whole as 200.
fn cut(number: usize, recorded: &Recorded, part: ContentRange, ranged: bool) -> Answer {
    if !ranged {
        return Answer { status: StatusCode::OK, content_range: None, ..whole(number, recorded) };
    }
    let start = part.first - recorded.part.map_or(0, |recorded| recorded.first);
    let body = recorded.body.slice(start as usize..(start + part.length()) as usize);
    Answer {
        content_range: Some(part.to_string()),
        content_length: Some(body.len() as u64),
        body,
        ..whole(number, recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::atomic::{AtomicU32, Ordering};
    use wirepaint_run::Response;

    /// Method, address, status, headers, body.
    type Row<'a> = (&'a str, &'a str, u16, &'a [(&'a str, &'a str)], &'a str);

    fn recording(responses: &[Row]) -> Recording {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("wirepaint-answer-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let responses: Vec<_> = responses
            .iter()
            .enumerate()
            .map(|(i, (method, url, status, headers, body))| {
                let file = folder.join(i.to_string());
                std::fs::write(&file, body).unwrap();
                Response {
                    method: method.to_string(),
                    url: url.to_string(),
                    patterns: vec![],
                    status: *status,
                    headers: headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
                    body: Some(file),
                    body_sha256: None,
                    think_ns: 0,
                }
            })
            .collect();
        let recording = Recording::load(Path::new("run.json"), "a", &responses).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        recording
    }

    fn ask(recording: &Recording, ask: Ask, url: &str) -> Answer {
        recording.answer(&ask, &Target::parse(url).unwrap())
    }

    fn get() -> Ask {
        Ask { method: "GET".to_owned(), ..Ask::default() }
    }

    #[test]
    fn a_head_has_the_headers_of_the_get_and_no_body() {
        let recording = recording(&[("GET", "http://a/", 200, &[("content-type", "text/html")], "hello")]);
        let head = ask(&recording, Ask { method: "HEAD".to_owned(), ..Ask::default() }, "http://a/");
        assert_eq!((head.content_length, head.body.len()), (Some(5), 0));
        assert!(
            head.head(true)
                .starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\ndate: ")
        );
        assert!(head.head(false).ends_with("\r\nconnection: close\r\n\r\n"));
    }

    #[test]
    fn a_304_and_a_204_have_neither_length_nor_body() {
        let recording =
            recording(&[("GET", "http://a/", 304, &[], "x"), ("GET", "http://a/b", 204, &[], "")]);
        for url in ["http://a/", "http://a/b"] {
            let answer = ask(&recording, get(), url);
            assert_eq!((answer.content_length, answer.body.len()), (None, 0), "{url}");
        }
    }

    #[test]
    fn a_stored_response_that_is_the_recorded_one_is_answered_with_304_and_no_body() {
        let headers = [
            ("Content-Type", "text/css"),
            ("Cache-Control", "no-cache"),
            ("ETag", "\"1\""),
            ("Access-Control-Allow-Origin", "*"),
        ];
        let recording = recording(&[("GET", "http://a/", 200, &headers, "hello")]);
        let with = |tag: &str| {
            let conditions = Conditions { none_match: Some(tag.to_owned()), ..Conditions::default() };
            ask(&recording, Ask { conditions, ..get() }, "http://a/")
        };
        let unchanged = with("\"1\"");
        assert_eq!((unchanged.status.as_u16(), unchanged.body.len()), (304, 0));
        assert_eq!((unchanged.matched, unchanged.response), (Matched::Exact, Some(0)));
        let names: Vec<_> = unchanged.header_map().keys().map(|name| name.to_string()).collect();
        for name in ["cache-control", "etag", "access-control-allow-origin", "date"] {
            assert!(names.iter().any(|one| one == name), "{names:?}");
        }
        assert_eq!(names.len(), 4);
        assert_eq!((with("\"2\"").status.as_u16(), with("\"2\"").body.len()), (200, 5));
    }

    #[test]
    fn a_whole_recording_is_answered_whole_whatever_the_range() {
        let recording = recording(&[("GET", "http://a/", 200, &[], "0123456789")]);
        let answer = ask(&recording, Ask { range: Some("bytes=2-3".to_owned()), ..get() }, "http://a/");
        assert_eq!((answer.status, answer.body.as_ref()), (StatusCode::OK, b"0123456789".as_ref()));
    }

    #[test]
    fn a_recorded_part_answers_ranges_within_it() {
        let range = [("Content-Range", "bytes 0-9/10")];
        let recording = recording(&[("GET", "http://a/", 206, &range, "0123456789")]);
        let part = |range: &str| ask(&recording, Ask { range: Some(range.to_owned()), ..get() }, "http://a/");
        let answer = part("bytes=2-3");
        assert_eq!((answer.status.as_u16(), answer.body.as_ref()), (206, b"23".as_ref()));
        assert_eq!(answer.content_range.as_deref(), Some("bytes 2-3/10"));
        assert_eq!(part("bytes=0-").content_range.as_deref(), Some("bytes 0-9/10"));
        let beyond = part("bytes=10-");
        assert_eq!((beyond.status.as_u16(), beyond.matched), (416, Matched::None));
        assert_eq!(beyond.content_range.as_deref(), Some("bytes */10"));
        let without = ask(&recording, get(), "http://a/");
        assert_eq!((without.status.as_u16(), without.content_range), (200, None));
    }

    #[test]
    fn a_preflight_that_was_not_recorded_is_granted_for_what_was() {
        let recording = recording(&[("PUT", "http://a/x?q=1", 200, &[], "")]);
        let preflight = |url: &str| {
            let preflight = Ask {
                method: "OPTIONS".to_owned(),
                origin: Some("https://b".to_owned()),
                preflight_method: Some("PUT".to_owned()),
                preflight_headers: Some("x-token".to_owned()),
                ..Ask::default()
            };
            ask(&recording, preflight, url)
        };
        let answer = preflight("http://a/x?q=2");
        assert_eq!((answer.status.as_u16(), answer.matched), (204, Matched::Query));
        assert_eq!(answer.header_map()["access-control-allow-origin"], "https://b");
        assert_eq!(answer.header_map()["access-control-allow-headers"], "x-token");
        assert_eq!(preflight("http://a/y").status.as_u16(), 404);
    }
}
