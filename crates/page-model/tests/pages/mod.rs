//! Pages of a few resources, and their visits.

use crate::transport::{Carried, Path, carry};
use wirepaint_http_model::HttpVersion;
use wirepaint_page_model::catalogue::chromium;
use wirepaint_page_model::page::{Cause, Document, Element, Kind, Origin, Resource};
use wirepaint_page_model::{Browser, Page, Prepared};
use wirepaint_units::{BitRate, Duration, Time};

pub const UNTIL: Time = Time(300_000_000_000);

pub fn lte() -> Path {
    Path { down: BitRate(25_000_000), up: BitRate(25_000_000), delay: Duration::from_millis(13) }
}

pub fn geo() -> Path {
    Path { down: BitRate(20_000_000), up: BitRate(5_000_000), delay: Duration::from_millis(300) }
}

pub fn browser(http: HttpVersion) -> Browser {
    Browser { http, ..chromium() }
}

pub fn resource(kind: Kind, origin: u32, bytes: u64, cause: Option<Cause>) -> Resource {
    let url = format!("https://host{origin}.test/{kind:?}-{bytes}");
    let json = serde_json::json!({
        "url": url, "origin": origin, "status": 200, "type": kind, "cause": cause,
        "wire_bytes": bytes, "decoded_bytes": bytes * 3, "headers": [["content-type", "x/y"]],
    });
    serde_json::from_value(json).unwrap()
}

pub fn markup(at: u64, element: Element) -> Option<Cause> {
    Some(Cause::Markup { by: 0, at, element })
}

/// A page of `origins` hosts; `resources` follow the document.
pub fn page(origins: u32, body_at: u64, resources: Vec<Resource>) -> Page {
    let mut document = resource(Kind::Html, 0, 10_000, None);
    document.document = Some(Document { body_at, ..Document::default() });
    let origins = (0..origins).map(|i| Origin {
        host: format!("host{i}.test"),
        address: [10, 65, 0, i as u8 + 1].into(),
        port: 443,
        encrypted: true,
    });
    Page {
        origins: origins.collect(),
        resources: std::iter::once(document).chain(resources).collect(),
        paints: Default::default(),
        processor_ns: None,
    }
}

pub fn load(page: Page, browser: Browser, path: Path) -> Carried {
    page.check().unwrap();
    let carried = carry(&Prepared::new(page), &browser, path, 1, UNTIL);
    assert!(carried.done, "the visit did not end");
    carried
}

/// The row of a resource.
pub fn of(carried: &Carried, resource: u32) -> wirepaint_page_model::rows::ObjectRow {
    carried.rows.objects.iter().find(|object| object.resource == resource).unwrap().clone()
}
