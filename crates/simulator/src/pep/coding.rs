//! Bytes of an answer on the inner connections: its head, and its body in the content coding of the proxy.

use crate::visited::Visited;
use wirepaint_page_model::page::{Kind, Resource};
use wirepaint_pep_model::is_text;
use wirepaint_run::Compression;

/// An answer's bytes, as the server sends them and as they cross the inner connections.
#[derive(Debug)]
pub struct Coded {
    head: u64,
    body: u64,
    /// Bytes of the body in the proxy's coding.
    coded: u64,
    /// Bytes of the body that the ground side has; `None` before the head.
    come: Option<u64>,
}

impl Coded {
    /// Nothing of it has come.
    pub fn new(visited: &Visited, resource: u32, compression: Compression) -> Coded {
        let (_, body) = visited.answer(resource);
        // Its length, status, coding, the body's length, number of fields, and each with two lengths; with the date.
        let fields = visited.resource(resource).headers.iter();
        let head =
            4 + 2 + 1 + 9 + 2 + 41 + fields.map(|(name, value)| name.len() + value.len() + 8).sum::<usize>();
        let head = head as u64;
        let share = per_mille(visited.resource(resource), compression);
        let coded = body * share / 1000;
        Coded { head, body, coded: coded.max(u64::from(body > 0)), come: None }
    }

    /// All bytes of it on the inner connections.
    pub fn all(&self) -> u64 {
        self.head + self.coded
    }

    /// The head or `bytes` more of the body have come from the server. Returns the bytes that can be sent on.
    pub fn more(&mut self, bytes: u64) -> u64 {
        let come = self.come.unwrap_or(0) + bytes;
        self.come = Some(come);
        self.head + scaled(come, self.coded, self.body)
    }

    /// Bytes of the body that have come from the server.
    pub fn body_come(&self) -> u64 {
        self.come.unwrap_or(0)
    }

    /// Bytes of the body in the first `sent` bytes; `None` before the end of the head.
    pub fn body_of(&self, sent: u64) -> Option<u64> {
        Some(scaled(sent.checked_sub(self.head)?, self.body, self.coded))
    }
}

/// `part` of `whole`, as a part of `other`; all of it for the whole.
fn scaled(part: u64, other: u64, whole: u64) -> u64 {
    if whole == 0 { other } else { (u128::from(part) * u128::from(other) / u128::from(whole)) as u64 }
}

/// Coded bytes for 1000 of a body. Bodies that their server has coded stay as they are, and so do images, fonts and
/// media; vector images are text.
///
/// DEVIATION: a body is compressed as a whole, not in the parts that come, and brotli and zstd save more or less than
/// gzip by one ratio for all texts of a kind.
fn per_mille(resource: &Resource, compression: Compression) -> u64 {
    let field = |name: &str| {
        let of_name = |(key, _): &&(String, String)| key.eq_ignore_ascii_case(name);
        resource.headers.iter().find(of_name).map_or("", |(_, value)| value)
    };
    let is_plain = matches!(field("content-encoding"), "" | "identity") && resource.status != 206;
    if !is_plain || !is_text(field("content-type")) {
        return 1000;
    }
    let [gzip, brotli, zstd] = shares(resource.kind);
    let usual = match compression {
        Compression::None => return 1000,
        Compression::Gzip => gzip,
        Compression::Br => brotli,
        Compression::Zstd => zstd,
    };
    match resource.gzip_bytes {
        Some(bytes) if resource.wire_bytes > 0 => bytes * 1000 * usual / gzip / resource.wire_bytes,
        _ => usual,
    }
}

/// Of 1000 decoded bytes, what gzip of level 6, brotli of quality 5 and zstd of level 3 leave, the testbed's: measured over the 28 texts
/// (3.3 MB) of the shipped pages agency, kit and photos, each compressed alone. Other kinds have the share of all.
fn shares(kind: Kind) -> [u64; 3] {
    match kind {
        Kind::Html => [136, 124, 148],
        Kind::Css => [131, 117, 143],
        Kind::Js => [327, 284, 318],
        _ => [261, 228, 259],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_has_its_own_share_and_what_is_coded_or_no_text_stays() {
        let share = |kind: &str, headers: &[(&str, &str)], gzip_bytes: Option<u64>, compression| {
            let resource = json!({"url": "http://a.test/", "origin": 0, "status": 200, "type": kind, "headers": headers,
                "wire_bytes": 2000, "decoded_bytes": 2000, "gzip_bytes": gzip_bytes});
            per_mille(&serde_json::from_value(resource).unwrap(), compression)
        };
        let text = ("content-type", "text/html; charset=utf-8");
        assert_eq!(share("html", &[text], Some(600), Compression::Gzip), 300);
        assert_eq!(share("html", &[text], Some(600), Compression::Br), 300 * 124 / 136);
        assert_eq!(share("html", &[text], Some(600), Compression::None), 1000);
        assert_eq!(share("html", &[text], None, Compression::Gzip), 136);
        assert_eq!(share("html", &[text, ("Content-Encoding", "gzip")], Some(600), Compression::Gzip), 1000);
        let linked_data = ("content-type", "application/ld+json");
        assert_eq!(share("data", &[linked_data], Some(600), Compression::Gzip), 1000);
        assert_eq!(share("image", &[("content-type", "image/png")], Some(600), Compression::Gzip), 1000);
    }
}
