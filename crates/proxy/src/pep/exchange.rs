//! Requests and heads of answers as the two sides hand them over, and which answers serve which requests.

use super::limits::FIELDS_LIMIT;
use super::wire::{LARGEST_HEAD, Malformed, Take};
use http::header::{HeaderName, HeaderValue, VARY};
use http::{Method, StatusCode};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use wirepaint_http_model::Priority;
use wirepaint_run::Compression;

/// Header fields in order, without those that belong to one connection.
pub type Fields = Vec<(HeaderName, HeaderValue)>;

/// Length of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// There is no body.
    Nothing,
    /// So many bytes.
    Known(u64),
    /// Its end tells.
    Unknown,
}

/// A browser's request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The user's end of the connection.
    pub user: SocketAddrV4,
    /// Where the user connected to.
    pub destination: SocketAddrV4,
    /// The scheme is https.
    pub encrypted: bool,
    /// The other side may not answer it with what it sent ahead.
    pub fresh: bool,
    pub method: Method,
    /// Host, and the port where it is not the scheme's own.
    pub authority: String,
    /// Path and query.
    pub path: String,
    pub fields: Fields,
    pub priority: Priority,
    pub body: Length,
}

impl Request {
    /// Full address.
    pub fn url(&self) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.fields, name)
    }

    /// Whether an answer that was stored will not do (RFC 9111, sections 5.2.1.4 and 5.4).
    fn refuses_stored(&self) -> bool {
        let words = |name| self.field(name).unwrap_or_default().to_ascii_lowercase();
        words("cache-control").contains("no-cache") || words("pragma").contains("no-cache")
    }

    /// True for a request for a page. Where a browser does not say what it fetches for (`sec-fetch-dest`), a page is
    /// HTML that no other page refers to.
    pub fn is_navigation(&self) -> bool {
        self.method == Method::GET
            && match self.field("sec-fetch-dest") {
                Some(dest) => dest == "document",
                None => {
                    self.field("referer").is_none()
                        && self.field("accept").is_some_and(|accept| accept.contains("text/html"))
                }
            }
    }

    /// Whether the other side takes it: its head keeps to the limits.
    pub fn fits(&self) -> bool {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        self.fields.len() <= FIELDS_LIMIT && bytes.len() <= LARGEST_HEAD
    }

    /// Writes it.
    pub fn put(&self, out: &mut Vec<u8>) {
        for end in [self.user, self.destination] {
            out.extend(end.ip().octets());
            out.extend(end.port().to_be_bytes());
        }
        out.push(u8::from(self.encrypted) | u8::from(self.fresh) << 1);
        out.push(priority_byte(self.priority));
        let (kind, length) = match self.body {
            Length::Nothing => (0, 0),
            Length::Known(length) => (1, length),
            Length::Unknown => (2, 0),
        };
        out.push(kind);
        out.extend(length.to_be_bytes());
        for text in [self.method.as_str(), &self.authority, &self.path] {
            put_text(out, text.as_bytes());
        }
        put_fields(out, &self.fields);
    }

    /// Reads what [`put`](Self::put) wrote.
    pub fn take(bytes: &[u8]) -> Result<Request, Malformed> {
        let mut take = Take(bytes);
        let mut end = || -> Result<SocketAddrV4, Malformed> {
            Ok(SocketAddrV4::new(Ipv4Addr::from(take.u32()?), take.u16()?))
        };
        let (user, destination) = (end()?, end()?);
        let flags = take.u8()?;
        let priority = priority_of(take.u8()?)?;
        let body = match (take.u8()?, take.u64()?) {
            (0, 0) => Length::Nothing,
            (1, length) => Length::Known(length),
            (2, 0) => Length::Unknown,
            _ => return Err(Malformed("length of a body")),
        };
        let method = Method::from_bytes(take.text()?).map_err(|_| Malformed("method"))?;
        let authority = take.string("authority")?;
        let path = take.string("path")?;
        let fields = take_fields(&mut take)?;
        take.end()?;
        let (encrypted, fresh) = (flags & 1 != 0, flags & 2 != 0);
        Ok(Request { user, destination, encrypted, fresh, method, authority, path, fields, priority, body })
    }
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerHead {
    pub status: StatusCode,
    pub fields: Fields,
    /// The origin's `content-length`.
    pub length: Option<u64>,
    /// What the other side has to undo.
    pub coding: Compression,
}

impl AnswerHead {
    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.fields, name)
    }

    /// Writes it behind its length.
    pub fn put(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        out.extend(self.status.as_u16().to_be_bytes());
        out.push(self.coding as u8);
        out.push(u8::from(self.length.is_some()));
        out.extend(self.length.unwrap_or(0).to_be_bytes());
        put_fields(&mut out, &self.fields);
        let length = out.len() as u32 - 4;
        out[..4].copy_from_slice(&length.to_be_bytes());
        out
    }

    /// Reads what [`put`](Self::put) wrote, without its length.
    pub fn take(bytes: &[u8]) -> Result<AnswerHead, Malformed> {
        let mut take = Take(bytes);
        let status = StatusCode::from_u16(take.u16()?).map_err(|_| Malformed("status"))?;
        let coding = match take.u8()? {
            0 => Compression::None,
            1 => Compression::Gzip,
            2 => Compression::Br,
            3 => Compression::Zstd,
            _ => return Err(Malformed("content coding")),
        };
        let length = match (take.u8()?, take.u64()?) {
            (0, 0) => None,
            (1, length) => Some(length),
            _ => return Err(Malformed("length of an answer")),
        };
        let fields = take_fields(&mut take)?;
        take.end()?;
        Ok(AnswerHead { status, fields, length, coding })
    }
}

/// A priority in a byte.
pub fn priority_byte(priority: Priority) -> u8 {
    priority.urgency | u8::from(priority.incremental) << 3
}

/// The priority in a byte.
pub fn priority_of(byte: u8) -> Result<Priority, Malformed> {
    if byte > 15 {
        return Err(Malformed("priority"));
    }
    Ok(Priority { urgency: byte & 7, incremental: byte & 8 != 0 })
}

fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.to_str().ok())
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u32).to_be_bytes());
    out.extend(text);
}

fn put_fields(out: &mut Vec<u8>, fields: &Fields) {
    out.extend((fields.len() as u16).to_be_bytes());
    for (name, value) in fields {
        put_text(out, name.as_str().as_bytes());
        put_text(out, value.as_bytes());
    }
}

fn take_fields(take: &mut Take<'_>) -> Result<Fields, Malformed> {
    let count = usize::from(take.u16()?);
    if count > FIELDS_LIMIT {
        return Err(Malformed("number of fields"));
    }
    (0..count)
        .map(|_| {
            let name = HeaderName::from_bytes(take.text()?).map_err(|_| Malformed("name of a field"))?;
            let value = HeaderValue::from_bytes(take.text()?).map_err(|_| Malformed("value of a field"))?;
            Ok((name, value))
        })
        .collect()
}

/// Whether an answer to one request serves another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serves {
    Yes,
    /// Unless the answer's `vary` names one of these fields (RFC 9110, section 12.5.5).
    Unless(BTreeSet<String>),
    No,
}

/// Fields by which servers choose answers, whatever their `vary` says.
const DECISIVE: [&str; 12] = [
    "accept-encoding",
    "accept-language",
    "authorization",
    "cookie",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "origin",
    "range",
    "user-agent",
];

/// Whether the answer to `ahead`, which the ground side made up, serves what a browser asks.
pub fn serves(ahead: &Request, asked: &Request) -> Serves {
    let same = ahead.method == Method::GET
        && asked.method == Method::GET
        && asked.body == Length::Nothing
        && ahead.user.ip() == asked.user.ip()
        && ahead.destination == asked.destination
        && ahead.url() == asked.url();
    // A browser that asks for a new answer gets none that was fetched for one that would take a stored one.
    if !same || asked.refuses_stored() && !ahead.refuses_stored() {
        return Serves::No;
    }
    let values = |request: &Request, name: &HeaderName| -> Vec<HeaderValue> {
        request.fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
    };
    let names: BTreeSet<&str> =
        [ahead, asked].iter().flat_map(|request| &request.fields).map(|(name, _)| name.as_str()).collect();
    let differing: BTreeSet<String> = names
        .into_iter()
        .filter(|name| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("it was one");
            values(ahead, &name) != values(asked, &name)
        })
        .map(str::to_owned)
        .collect();
    if differing.iter().any(|name| DECISIVE.contains(&name.as_str())) {
        Serves::No
    } else if differing.is_empty() {
        Serves::Yes
    } else {
        Serves::Unless(differing)
    }
}

/// Whether an answer varies with one of these fields.
pub fn varies(head: &AnswerHead, fields: &BTreeSet<String>) -> bool {
    head.fields.iter().filter(|(name, _)| name == VARY).any(|(_, value)| {
        // A value that is no text is taken for `*`.
        value
            .to_str()
            .unwrap_or("*")
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
            .any(|name| name == "*" || fields.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&'static str, &'static str)]) -> Request {
        Request {
            user: "10.0.0.1:40000".parse().unwrap(),
            destination: "10.1.0.1:443".parse().unwrap(),
            encrypted: true,
            fresh: false,
            method: Method::GET,
            authority: "a.test".to_owned(),
            path: "/x?y".to_owned(),
            fields: fields
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect(),
            priority: Priority { urgency: 5, incremental: true },
            body: Length::Nothing,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let one = Request { body: Length::Known(7), ..request(&[("cookie", "a=b"), ("accept", "*/*")]) };
        let mut bytes = Vec::new();
        one.put(&mut bytes);
        assert_eq!(Request::take(&bytes).unwrap(), one);
        for cut in 0..bytes.len() {
            assert!(Request::take(&bytes[..cut]).is_err());
        }
        bytes.push(0);
        assert!(Request::take(&bytes).is_err(), "bytes behind the end");
        let head = AnswerHead {
            status: StatusCode::OK,
            fields: one.fields,
            length: Some(9),
            coding: Compression::Zstd,
        };
        assert_eq!(AnswerHead::take(&head.put()[4..]).unwrap(), head);
    }

    #[test]
    fn an_answer_serves_a_request_only_with_the_same_cookies_and_what_it_varies_with() {
        let ahead = request(&[("cookie", "a=b"), ("accept", "image/*"), ("user-agent", "x")]);
        assert_eq!(serves(&ahead, &ahead), Serves::Yes);
        let other = request(&[("cookie", "a=c"), ("accept", "image/*"), ("user-agent", "x")]);
        assert_eq!(serves(&ahead, &other), Serves::No);
        let accept = request(&[("cookie", "a=b"), ("accept", "*/*"), ("user-agent", "x")]);
        let Serves::Unless(fields) = serves(&ahead, &accept) else { panic!() };
        assert_eq!(fields, BTreeSet::from(["accept".to_owned()]));
        let head = |vary| AnswerHead {
            status: StatusCode::OK,
            fields: vec![(VARY, HeaderValue::from_static(vary))],
            length: None,
            coding: Compression::None,
        };
        let cases = [("accept-encoding, Accept", true), ("*", true), ("cookie", false)];
        for (vary, expected) in cases {
            assert_eq!(varies(&head(vary), &fields), expected, "{vary}");
        }
        let new =
            request(&[("cookie", "a=b"), ("accept", "image/*"), ("user-agent", "x"), ("pragma", "no-cache")]);
        assert_eq!(serves(&ahead, &new), Serves::No);
        assert_eq!(serves(&new, &new), Serves::Yes);
        for other in [
            Request { path: "/y".to_owned(), ..ahead.clone() },
            Request { method: Method::HEAD, ..ahead.clone() },
            Request { user: "10.0.0.2:1".parse().unwrap(), ..ahead.clone() },
        ] {
            assert_eq!(serves(&ahead, &other), Serves::No);
        }
    }

    #[test]
    fn a_page_is_told_by_what_it_is_fetched_for_or_by_its_type_and_referrer() {
        assert!(request(&[("sec-fetch-dest", "document"), ("referer", "x")]).is_navigation());
        assert!(!request(&[("sec-fetch-dest", "iframe"), ("accept", "text/html")]).is_navigation());
        assert!(request(&[("accept", "text/html,*/*")]).is_navigation());
        assert!(!request(&[("accept", "text/html"), ("referer", "x")]).is_navigation());
        assert!(!request(&[("accept", "image/*")]).is_navigation());
    }
}
