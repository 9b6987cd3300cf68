//! Sizes of requests and of the heads of answers.
//!
//! HPACK sizes are those of an encoder with a large table and Huffman codes (RFC 7541): one or two bytes for
//! a field that the connection has carried before, else the literal.

use crate::page::{Kind, Page, Resource};

/// Frame header of HTTP/2 (RFC 9113, 4.1).
pub const FRAME_HEADER: u64 = 9;
/// Weight and dependency, which Chromium puts into each HEADERS frame of a request.
const PRIORITY_FIELDS: u64 = 5;

/// Names of HPACK's static table that answers use (RFC 7541, appendix A).
const STATIC_NAMES: &[&str] = &[
    "accept-ranges",
    "access-control-allow-origin",
    "age",
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
    "via",
];
/// Fields that the server's encoder does not index, because their values rarely repeat.
const NOT_KEPT: &[&str] = &["age", "content-length", "etag", "location", "set-cookie"];
/// Bytes of `content-length` and `:status` for HTTP/2; `date` is sent in full once per connection.
const STATUS_AND_LENGTH: u32 = 1 + 7;
const DATE: u32 = 24;

/// Bits of HPACK's Huffman code for a character (RFC 7541, appendix B; rare ones rounded).
fn huffman_bits(byte: u8) -> u32 {
    match byte {
        b'0'..=b'2' | b'a' | b'c' | b'e' | b'i' | b'o' | b's' | b't' => 5,
        b' ' | b'%' | b'-' | b'.' | b'/' | b'3'..=b'9' | b'=' | b'A' | b'_' => 6,
        b'b' | b'd' | b'f' | b'g' | b'h' | b'l' | b'm' | b'n' | b'p' | b'r' | b'u' => 6,
        b'&' | b'*' | b',' | b';' | b'X' | b'Z' => 8,
        b':' | b'B'..=b'Y' | b'j' | b'k' | b'q' | b'v'..=b'z' => 7,
        b'!' | b'"' | b'(' | b')' | b'?' => 10,
        b'\'' | b'+' | b'|' => 11,
        b'#' | b'>' => 12,
        b'$' | b'@' | b'[' | b']' | b'~' => 13,
        _ => 15,
    }
}

/// Bytes of a string with its length in HPACK.
fn string_bytes(text: &str) -> u32 {
    let coded = text.bytes().map(huffman_bits).sum::<u32>().div_ceil(8).min(text.len() as u32);
    coded + if coded < 127 { 1 } else { 2 }
}

/// The sizes of a page's headers.
#[derive(Debug)]
pub struct Headers {
    answers: Vec<Answer>,
    /// Bytes of the request's path and host in HPACK, and of the request's head in HTTP/1.1.
    requests: Vec<(u32, u32)>,
    /// Distinct fields.
    fields: usize,
}

#[derive(Debug)]
struct Answer {
    /// Bytes of the head in HTTP/1.1.
    plain: u32,
    /// Number of the field, whether the encoder indexes it, bytes as a literal.
    fields: Vec<(u32, bool, u32)>,
}

impl Headers {
    /// Counts the headers of `page`.
    pub fn new(page: &Page) -> Headers {
        let mut numbers = std::collections::BTreeMap::new();
        let mut answers = Vec::with_capacity(page.resources.len());
        for resource in &page.resources {
            let fields = resource.headers.iter().map(|(name, value)| {
                let name = name.to_ascii_lowercase();
                let next = numbers.len() as u32;
                let number = *numbers.entry((name.clone(), value.clone())).or_insert(next);
                let known = STATIC_NAMES.contains(&name.as_str());
                let literal = 1 + if known { 0 } else { string_bytes(&name) } + string_bytes(value);
                (number, !NOT_KEPT.contains(&name.as_str()), literal)
            });
            let fields = fields.collect();
            let text =
                resource.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
            answers.push(Answer { plain: text as u32 + head_around(resource), fields });
        }
        let requests = page.resources.iter().map(|resource| request_sizes(page, resource)).collect();
        Headers { answers, requests, fields: numbers.len() }
    }

    /// Bytes of a request with HTTP/1.1.
    pub fn request_plain(&self, resource: u32) -> u64 {
        u64::from(self.requests[resource as usize].1)
    }

    /// Bytes of the head of an answer with HTTP/1.1.
    pub fn answer_plain(&self, resource: u32) -> u64 {
        u64::from(self.answers[resource as usize].plain)
    }
}

/// Status line, `content-length`, `date` and the empty line.
fn head_around(resource: &Resource) -> u32 {
    let digits = resource.wire_bytes.max(1).ilog10() + 1;
    17 + 18 + digits + 37 + 2
}

/// The part of `url` behind the host.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// Bytes that Chromium adds to a request in HTTP/1.1 beside method, path, host and referrer: user agent,
/// accept, client hints, fetch metadata, encodings.
const CHROMIUM_HEADERS: usize = 430;

fn request_sizes(page: &Page, resource: &Resource) -> (u32, u32) {
    let host = &page.origins[resource.origin as usize].host;
    let path = path(&resource.url);
    let referrer = if resource.cause.is_some() { page.resources[0].url.len().min(100) + 11 } else { 0 };
    let plain = resource.method.len() + path.len() + host.len() + 22 + CHROMIUM_HEADERS + referrer;
    (string_bytes(path) + 1, plain as u32)
}

/// The header compression of one HTTP/2 connection, both ways.
#[derive(Debug)]
pub struct Compression {
    /// Fields of answers that it has carried.
    carried: Vec<bool>,
    dated: bool,
    /// Kinds of requests that it has carried, as bits.
    asked: u16,
}

/// Fields that do not change between the requests of a page to a host, on their first use: user
/// agent, client hints, languages, encodings, authority, referrer.
const REQUEST_CONSTANT: u32 = 215;
/// Fields that depend on the kind of resource, on their first use: accept, fetch metadata, priority.
const REQUEST_KIND: u32 = 75;
/// The same for a document, which accepts more types and sends `upgrade-insecure-requests`.
const REQUEST_DOCUMENT: u32 = 205;
/// A request whose fields are all known.
const REQUEST_KNOWN: u32 = 16;

impl Compression {
    /// State of a new connection.
    pub fn new(headers: &Headers) -> Compression {
        Compression { carried: vec![false; headers.fields], dated: false, asked: 0 }
    }

    /// Bytes of the HEADERS frame of a request.
    pub fn request(&mut self, headers: &Headers, resource: u32, kind: Kind) -> u64 {
        let bit = 1 << kind as u16;
        let mut block = REQUEST_KNOWN + headers.requests[resource as usize].0;
        if self.asked == 0 {
            block += REQUEST_CONSTANT;
        }
        if self.asked & bit == 0 {
            block += if kind == Kind::Html { REQUEST_DOCUMENT } else { REQUEST_KIND };
        }
        self.asked |= bit;
        FRAME_HEADER + PRIORITY_FIELDS + u64::from(block)
    }

    /// Bytes of the HEADERS frame of an answer.
    pub fn answer(&mut self, headers: &Headers, resource: u32) -> u64 {
        let mut block = STATUS_AND_LENGTH + if self.dated { 1 } else { DATE };
        self.dated = true;
        for &(field, kept, literal) in &headers.answers[resource as usize].fields {
            let carried = &mut self.carried[field as usize];
            block += if *carried && kept { 2 } else { literal };
            *carried = true;
        }
        FRAME_HEADER + u64::from(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huffman_codes_have_the_lengths_of_the_rfc() {
        // RFC 7541, C.4.1: "www.example.com" takes 12 bytes; C.6.1: "private" 5, the date 22.
        assert_eq!(string_bytes("www.example.com"), 1 + 12);
        assert_eq!(string_bytes("private"), 1 + 5);
        assert_eq!(string_bytes("Mon, 21 Oct 2013 20:13:21 GMT"), 1 + 22);
    }
}
