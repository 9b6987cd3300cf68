//! The requests of a page, with the fields that Chromium puts into them, so that they have its sizes.

use http::Uri;
use std::fmt::Write;
use wirepaint_http_model::Priority;
use wirepaint_page_model::Page;
use wirepaint_page_model::page::{Cause, Element, Kind, Resource};

/// As long as Chromium's.
const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                          WirepaintLight/156.0.8078.108 Safari/537.36";
const BRANDS: &str = "\"Chromium\";v=\"156\", \"Not=A?Brand\";v=\"24\"";

/// A request, ready to be written in any version of HTTP.
#[derive(Debug)]
pub struct Request {
    /// The page's number.
    pub number: u32,
    /// HTTP method.
    pub method: String,
    /// Host, with the port where it is not the scheme's own.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Fields beside these, names in lower case.
    pub fields: Vec<(&'static str, String)>,
    /// Bytes of its body.
    pub body: u64,
}

/// A page's requests are written from its addresses; this refuses one that HTTP cannot carry.
pub fn check(page: &Page) -> Result<(), (String, String, &'static str)> {
    for (number, resource) in page.resources.iter().enumerate() {
        let key = |name| format!("resources[{number}].{name}");
        let uri = encoded(&resource.url).parse::<Uri>();
        if !uri.is_ok_and(|uri| uri.authority().is_some()) {
            return Err((key("url"), resource.url.clone(), "an address with scheme and host"));
        }
        if http::Method::from_bytes(resource.method.as_bytes()).is_err() {
            return Err((key("method"), resource.method.clone(), "a method of HTTP"));
        }
        if resource.post_bytes > MOST_POSTED {
            return Err((key("post_bytes"), resource.post_bytes.to_string(), "at most 67108864"));
        }
    }
    Ok(())
}

/// Largest body of a request.
const MOST_POSTED: u64 = 64 << 20;

impl Request {
    /// The request for a resource of a page that [`check`] accepts.
    pub fn new(page: &Page, number: u32, priority: Priority) -> Request {
        let resource = &page.resources[number as usize];
        let encrypted = page.origins[resource.origin as usize].encrypted;
        let address = encoded(&resource.url);
        let uri: Uri = address.parse().expect("the page was checked");
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let authority = uri.authority().expect("the page was checked").to_string();
        let mut fields: Vec<(&'static str, String)> = Vec::with_capacity(16);
        let mut field = |name, value: &str| fields.push((name, value.to_owned()));
        if resource.post_bytes > 0 || resource.method == "POST" {
            field("content-length", &resource.post_bytes.to_string());
            field("content-type", "text/plain;charset=UTF-8");
        }
        if encrypted {
            field("sec-ch-ua-platform", "\"Linux\"");
        }
        field("user-agent", USER_AGENT);
        if encrypted {
            field("sec-ch-ua", BRANDS);
            field("sec-ch-ua-mobile", "?0");
        }
        if resource.method == "OPTIONS" {
            field("access-control-request-method", "POST");
            field("origin", &origin(&page.resources[0].url));
        }
        field("accept", accepted(resource.kind));
        if resource.kind == Kind::Html {
            field("upgrade-insecure-requests", "1");
        }
        if encrypted {
            let same = resource.origin == page.resources[0].origin;
            field("sec-fetch-site", if same { "same-origin" } else { "cross-site" });
            let (mode, dest) = fetched(resource);
            field("sec-fetch-mode", mode);
            field("sec-fetch-dest", dest);
        }
        if resource.cause.is_some() {
            field("referer", &referrer(page, resource));
        }
        if resource.status == 206 {
            field("range", &format!("bytes=0-{}", resource.wire_bytes.saturating_sub(1)));
        }
        for (name, value) in resource.conditions() {
            field(name, value);
        }
        field("accept-encoding", if encrypted { "gzip, deflate, br, zstd" } else { "gzip, deflate" });
        if encrypted {
            field("priority", &value(priority));
        }
        Request {
            number,
            method: resource.method.clone(),
            authority,
            path,
            fields,
            body: resource.post_bytes,
        }
    }
}

/// The value of a `priority` header (RFC 9218, section 4). Chromium leaves out what is the default.
pub fn value(priority: Priority) -> String {
    let Priority { urgency, incremental } = priority;
    match (urgency == Priority::default().urgency, incremental) {
        (true, true) => "i".to_owned(),
        (_, true) => format!("u={urgency}, i"),
        (_, false) => format!("u={urgency}"),
    }
}

/// The address without its fragment, and with everything that a request line cannot hold in per cent.
fn encoded(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let mut text = String::with_capacity(url.len());
    for byte in url.bytes() {
        if byte.is_ascii_graphic()
            && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
        {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn origin(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    encoded(&url[..end])
}

/// Chromium's default: the whole address to the same origin, the origin alone to others.
fn referrer(page: &Page, resource: &Resource) -> String {
    let url = &page.resources[0].url;
    let same = resource.origin == page.resources[0].origin;
    if same { encoded(url) } else { format!("{}/", origin(url)) }
}

fn accepted(kind: Kind) -> &'static str {
    match kind {
        Kind::Html => {
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/jxl,image/avif,image/webp,image/apng,*/*;q=0.8,\
             application/signed-exchange;v=b3;q=0.7"
        }
        Kind::Css => "text/css,*/*;q=0.1",
        Kind::Image => "image/jxl,image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        _ => "*/*",
    }
}

/// Values of `sec-fetch-mode` and `sec-fetch-dest`.
fn fetched(resource: &Resource) -> (&'static str, &'static str) {
    let is_frame = matches!(resource.cause, Some(Cause::Markup { element: Element::Frame, .. }));
    match resource.kind {
        Kind::Html => ("navigate", if is_frame { "iframe" } else { "document" }),
        Kind::Css => ("no-cors", "style"),
        Kind::Js => ("no-cors", "script"),
        Kind::Image => ("no-cors", "image"),
        Kind::Font => ("cors", "font"),
        Kind::Media => ("no-cors", "video"),
        Kind::Data | Kind::Other => ("cors", "empty"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_line_cannot_hold_is_written_in_per_cent() {
        assert_eq!(encoded("https://a.test/ä b?q={1}#part"), "https://a.test/%C3%A4%20b?q=%7B1%7D");
    }

    #[test]
    fn a_default_urgency_is_left_out_where_the_value_says_more() {
        let value = |urgency, incremental| value(Priority { urgency, incremental });
        assert_eq!([value(3, true), value(1, true), value(0, false)], ["i", "u=1, i", "u=0"]);
        assert_eq!(value(3, false), "u=3");
    }

    #[test]
    fn only_the_same_origin_learns_the_whole_address() {
        assert_eq!(origin("https://a.test:8443/path"), "https://a.test:8443");
        assert_eq!(origin("http://a.test"), "http://a.test");
    }
}
