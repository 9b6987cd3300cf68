//! Recorded response headers, prepared for serving.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Write;
use std::time::SystemTime;

/// Headers that the server does not repeat. Either it sets them itself (framing, connection, date), or they
/// would lead the browser away from the path under test (another protocol, another port, reports to third
/// parties about this visit).
const DROPPED: [&str; 22] = [
    "access-control-allow-origin", // depends on the request: see `Answer`
    "alt-svc",
    "connection",
    "content-length",
    "content-security-policy-report-only",
    "date",
    "expect-ct",
    "http2-settings",
    "keep-alive",
    "nel",
    "proxy-authenticate",
    "proxy-connection",
    "public-key-pins",
    "public-key-pins-report-only",
    "report-to",
    "reporting-endpoints",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-range", // made anew for each answer: see `ranges`
];

/// Headers of a 304: those that a cache updates (RFC 9110, 15.4.5), and the validator that it may lack.
const OF_UNCHANGED: [&str; 6] =
    ["cache-control", "content-location", "etag", "expires", "last-modified", "vary"];

/// The headers of one recorded response in both notations.
#[derive(Debug, Default)]
pub struct Fields {
    /// Header lines of HTTP/1.1, each with its line end, names as recorded.
    pub text: String,
    /// The same for HTTP/2.
    pub map: HeaderMap,
    /// Recorded `content-range`.
    pub content_range: Option<String>,
    /// Recorded `access-control-allow-origin`.
    pub allow_origin: Option<String>,
}

/// A header that cannot be served, with its text.
#[derive(Debug, PartialEq, Eq)]
pub struct BadHeader(pub String);

impl Fields {
    /// Takes over recorded headers.
    ///
    /// Pseudo-headers (`:status`) and those of [`DROPPED`] are left out. A value with line breaks, which
    /// recorders write for a repeated header, becomes several. `expires` keeps its distance from `date`,
    /// which is the present one: a response that was fresh for an hour then is fresh for an hour now.
    pub fn new(recorded: &[(String, String)], now: SystemTime) -> Result<Fields, BadHeader> {
        let named = |name: &str| {
            let hit = recorded.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            hit.map(|(_, value)| value.trim())
        };
        let recorded_at = named("date").and_then(|date| httpdate::parse_http_date(date).ok());
        let mut fields = Fields {
            content_range: named("content-range").map(str::to_owned),
            allow_origin: named("access-control-allow-origin").map(str::to_owned),
            ..Fields::default()
        };
        for (name, value) in recorded {
            if name.starts_with(':') || DROPPED.iter().any(|dropped| name.eq_ignore_ascii_case(dropped)) {
                continue;
            }
            for value in value.split('\n').map(|line| line.trim_matches([' ', '\t', '\r'])) {
                let moved =
                    name.eq_ignore_ascii_case("expires").then(|| moved(value, recorded_at, now)).flatten();
                fields.push(name, moved.as_deref().unwrap_or(value))?;
            }
        }
        Ok(fields)
    }

    /// Those that a 304 has instead.
    pub fn of_unchanged(&self) -> Fields {
        let mut fields = Fields { allow_origin: self.allow_origin.clone(), ..Fields::default() };
        for name in OF_UNCHANGED {
            for value in self.map.get_all(name).iter().filter_map(|value| value.to_str().ok()) {
                fields.push(name, value).expect("it was pushed before");
            }
        }
        fields
    }

    fn push(&mut self, name: &str, value: &str) -> Result<(), BadHeader> {
        let bad = || BadHeader(format!("{name:?}: {value:?}"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let val = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| bad())?;
        self.map.append(key, val);
        let _ = write!(self.text, "{name}: {value}\r\n");
        Ok(())
    }
}

/// `expires` as far from `now` as it was from the recorded date; `None` if it holds no date.
fn moved(expires: &str, recorded_at: Option<SystemTime>, now: SystemTime) -> Option<String> {
    let expires = httpdate::parse_http_date(expires).ok()?;
    let moved = match expires.duration_since(recorded_at?) {
        Ok(ahead) => now.checked_add(ahead)?,
        Err(behind) => now.checked_sub(behind.duration())?,
    };
    // The format has four digits for the year.
    let year_9999 = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(253_402_300_799);
    Some(httpdate::fmt_http_date(moved.min(year_9999)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn fields(recorded: &[(&str, &str)]) -> Result<Fields, BadHeader> {
        let recorded: Vec<_> = recorded.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        Fields::new(&recorded, UNIX_EPOCH + Duration::from_secs(1_000_000_000))
    }

    #[test]
    fn what_would_lead_the_browser_off_the_path_is_left_out() {
        let kept = fields(&[
            (":status", "200"),
            ("Alt-Svc", "h3=\":443\""),
            ("Strict-Transport-Security", "max-age=1"),
            ("Transfer-Encoding", "chunked"),
            ("Content-Type", "text/html"),
        ])
        .unwrap();
        assert_eq!(kept.text, "Content-Type: text/html\r\n");
        assert_eq!(kept.map.len(), 1);
    }

    #[test]
    fn a_repeated_header_in_one_value_becomes_several() {
        let kept = fields(&[("set-cookie", "a=1\nb=2")]).unwrap();
        assert_eq!(kept.text, "set-cookie: a=1\r\nset-cookie: b=2\r\n");
        assert_eq!(kept.map.get_all("set-cookie").iter().count(), 2);
    }

    #[test]
    fn an_expiry_keeps_its_distance_from_the_date() {
        let kept = fields(&[
            ("date", "Tue, 01 Jan 2019 00:00:00 GMT"),
            ("expires", "Tue, 01 Jan 2019 01:00:00 GMT"),
        ])
        .unwrap();
        assert_eq!(kept.text, "expires: Sun, 09 Sep 2001 02:46:40 GMT\r\n");
        assert_eq!(fields(&[("expires", "0")]).unwrap().text, "expires: 0\r\n");
    }

    #[test]
    fn a_name_that_would_end_the_header_is_refused() {
        assert_eq!(fields(&[("a b", "c")]).unwrap_err(), BadHeader("\"a b\": \"c\"".to_owned()));
        assert!(fields(&[("a", "x\0y")]).is_err());
    }
}
