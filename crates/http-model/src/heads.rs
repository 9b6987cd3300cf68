//! Heads of requests and answers, as text and as fields of HPACK.

use crate::hpack::{self, string_bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What of a request and its answer decides the lengths of their heads.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// The host as the request names it.
    pub host: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Bytes of the referrer; 0 for none.
    pub referrer: usize,
    /// Kind of the resource, below 16: requests of one kind share most fields.
    pub kind: u8,
    /// True for a document, which asks for more types.
    pub is_document: bool,
    /// Fields of the answer.
    pub fields: &'a [(String, String)],
    /// Bytes of the answer's body.
    pub body: u64,
    /// Fields that make the request conditional, names in lower case.
    pub conditions: &'a [(&'a str, &'a str)],
}

/// Bytes of the fields that a browser puts into its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestHeads {
    /// HTTP/1.1: all fields beside method, path, host and referrer.
    pub plain_bytes: u32,
    /// The same of a document.
    #[serde(default = "plain_document")]
    pub plain_document_bytes: u32,
    /// The same without TLS, where a browser leaves fields out.
    #[serde(default = "clear")]
    pub clear_bytes: u32,
    /// The same of a document without TLS.
    #[serde(default = "clear_document")]
    pub clear_document_bytes: u32,
    /// HPACK: fields that do not change between the requests of a page to a host, on their first use.
    pub constant_bytes: u32,
    /// HPACK: fields that depend on the kind of resource, on their first use.
    pub kind_bytes: u32,
    /// HPACK: the same for a document.
    pub document_bytes: u32,
    /// HPACK: a request whose fields are all known.
    pub known_bytes: u32,
    /// HTTP/2: weight and dependency in each HEADERS frame; 0 for none.
    pub priority_bytes: u32,
}

// Run descriptions of earlier builds lack these; the values are Chromium's of the catalogue.

fn plain_document() -> u32 {
    600
}

fn clear() -> u32 {
    268
}

fn clear_document() -> u32 {
    369
}

impl RequestHeads {
    /// On a connection without TLS.
    pub fn in_clear(self) -> RequestHeads {
        let RequestHeads { clear_bytes, clear_document_bytes, .. } = self;
        RequestHeads { plain_bytes: clear_bytes, plain_document_bytes: clear_document_bytes, ..self }
    }
}

/// The heads of a page's messages.
#[derive(Debug)]
pub struct Heads {
    pub(crate) requests: Vec<RequestHead>,
    pub(crate) answers: Vec<AnswerHead>,
    /// Distinct fields of answers.
    pub(crate) distinct: usize,
}

#[derive(Debug)]
pub(crate) struct RequestHead {
    /// Bytes of the head in HTTP/1.1, without what the browser adds.
    pub plain: u64,
    /// Bytes in HPACK of the path, and of the fields that no other request has.
    pub path: u32,
    pub kind: u8,
    pub is_document: bool,
}

#[derive(Debug)]
pub(crate) struct AnswerHead {
    /// Bytes of the head in HTTP/1.1.
    pub plain: u64,
    /// Number of the field, whether the encoder indexes it, bytes as a literal.
    pub fields: Vec<(u32, bool, u32)>,
}

impl Heads {
    /// Measures the heads of `messages`, which are numbered from 0.
    pub fn new<'a>(messages: impl IntoIterator<Item = Message<'a>>) -> Heads {
        let mut numbers = BTreeMap::new();
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        for message in messages {
            let Message { method, host, path, referrer, kind, is_document, fields, body, conditions } =
                message;
            let plain = conditions.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
            let coded = conditions.iter().map(|(name, value)| hpack::literal(name, value)).sum::<u32>();
            requests.push(RequestHead {
                plain: (method.len() + path.len() + host.len() + 22 + referrer + plain) as u64,
                path: string_bytes(path) + 1 + coded,
                kind,
                is_document,
            });
            let coded = fields.iter().map(|(name, value)| {
                let name = name.to_ascii_lowercase();
                let next = numbers.len() as u32;
                let number = *numbers.entry((name.clone(), value.clone())).or_insert(next);
                (number, hpack::is_kept(&name), hpack::literal(&name, value))
            });
            let coded = coded.collect();
            let text = fields.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
            answers.push(AnswerHead { plain: text as u64 + around(body), fields: coded });
        }
        Heads { requests, answers, distinct: numbers.len() }
    }
}

/// Status line, `content-length`, `date` and the empty line.
fn around(body: u64) -> u64 {
    let digits = body.max(1).ilog10() + 1;
    17 + 18 + u64::from(digits) + 37 + 2
}
