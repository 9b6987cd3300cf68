//! Fetching what a page needs before its browser asks.

use super::Ground;
use super::markup::{Found, Use};
use crate::pep::exchange::{Length, Request};
use crate::pep::wire::Frame;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use std::rc::Rc;
use url::{Origin, Url};
use wirepaint_http_model::Priority;
use wirepaint_pep_model::Wanted;

/// Most answers under way, for all users, with which something more is sent ahead.
const STREAMS: usize = 8 * 1024;

/// Fields of the page's request that a browser repeats for what the page needs.
const REPEATED: [&str; 8] = [
    "accept-encoding",
    "accept-language",
    "cache-control",
    "pragma",
    "sec-ch-ua",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "user-agent",
];

impl Ground {
    /// Fetches what rehearsals of a page asked for.
    pub fn look_ahead_rehearsed(self: &Rc<Self>, page: &Request) {
        for address in self.rehearsed.get(&(page.destination, page.url())).into_iter().flatten() {
            if let Ok(url) = Url::parse(address) {
                let used_as = by_name(&url);
                self.look_ahead(page, Found { url, used_as, cors: used_as == Use::Font }, 0);
            }
        }
    }

    /// Fetches a resource of a page, unless it was before. `depth` counts the documents and style sheets between it
    /// and the page.
    pub fn look_ahead(self: &Rc<Self>, page: &Request, found: Found, depth: u32) {
        let user = *page.user.ip();
        let Some(request) = self.made_up(page, &found).filter(Request::fits) else { return };
        let stream = {
            let inner = &mut *self.inner.borrow_mut();
            if inner.streams.len() >= STREAMS || !inner.note_asked(&request) {
                return;
            }
            inner.next += 2;
            inner.next - 2
        };
        self.add(stream, user, Wanted::Ahead, Some(request.clone()));
        let mut bytes = Vec::new();
        request.put(&mut bytes);
        self.tell(stream, self.class(user), &Frame::Promise { stream, request: bytes.into() });
        self.fetch(stream, request, depth + 1);
    }

    /// The request that the browser will make; `None` for a host that the page's site does not have.
    fn made_up(&self, page: &Request, found: &Found) -> Option<Request> {
        let url = &found.url;
        let encrypted = url.scheme() == "https";
        let host = url.host_str()?.to_ascii_lowercase();
        let port = url.port_or_known_default()?;
        let destination = *self.hosts.get(&page.destination)?.get(&(encrypted, host.clone(), port))?;
        let base = Url::parse(&page.url()).ok()?;
        let same = base.origin() == url.origin();
        let cors = found.cors || matches!(found.used_as, Use::Module | Use::Font);
        let mut fields: Vec<_> = page
            .fields
            .iter()
            .filter(|(name, _)| REPEATED.contains(&name.as_str()))
            .filter(|(name, _)| encrypted || !name.as_str().starts_with("sec-"))
            .cloned()
            .collect();
        // A browser offers brotli and zstd on encrypted connections alone.
        if encrypted != page.encrypted {
            let offered = if encrypted { "gzip, deflate, br, zstd" } else { "gzip, deflate" };
            fields.retain(|(name, _)| name != "accept-encoding");
            fields.push((HeaderName::from_static("accept-encoding"), HeaderValue::from_static(offered)));
        }
        let mut add = |name: &'static str, value: &str| -> Option<()> {
            fields.push((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?));
            Some(())
        };
        add("accept", accepted(found.used_as))?;
        // Same-origin CORS requests of scripts and fonts name their origin only where it is another one.
        if cors && !same {
            add("origin", &base.origin().ascii_serialization())?;
        }
        if let Some(cookie) = page.field("cookie").filter(|_| same) {
            add("cookie", cookie)?;
        }
        let downgrade = page.encrypted && !encrypted;
        match (same, base.origin()) {
            (true, _) => add("referer", &page.url())?,
            (false, Origin::Tuple(..)) if !downgrade => {
                add("referer", &format!("{}/", base.origin().ascii_serialization()))?;
            }
            _ => {}
        }
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        };
        let path = url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        Some(Request {
            user: page.user,
            destination,
            encrypted,
            fresh: false,
            method: Method::GET,
            authority,
            path,
            fields,
            priority: Priority::default(),
            body: Length::Nothing,
        })
    }
}

/// What Chromium accepts for a use.
fn accepted(used_as: Use) -> &'static str {
    match used_as {
        Use::Style => "text/css,*/*;q=0.1",
        Use::Image => "image/jxl,image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        Use::Frame => {
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/jxl,image/avif,image/webp,image/apng,*/*;q=0.8"
        }
        Use::Script | Use::Module | Use::Font | Use::Other => "*/*",
    }
}

/// How a browser probably uses a resource, by the ending of its name.
fn by_name(url: &Url) -> Use {
    match url.path().rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "css" => Use::Style,
        "js" | "mjs" => Use::Script,
        "png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" => Use::Image,
        "woff" | "woff2" | "ttf" | "otf" => Use::Font,
        "html" | "htm" => Use::Frame,
        _ => Use::Other,
    }
}
