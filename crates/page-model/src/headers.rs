//! The heads of a page's requests and answers.

use crate::page::{Kind, Page, Resource};
use wirepaint_http_model::{Heads, Message};

/// Measures the heads of all requests of `page` and their answers.
pub fn heads(page: &Page) -> Heads {
    let conditions: Vec<_> = page.resources.iter().map(Resource::conditions).collect();
    Heads::new(page.resources.iter().zip(&conditions).map(|(resource, conditions)| Message {
        method: &resource.method,
        host: &page.origins[resource.origin as usize].host,
        path: path(&resource.url),
        referrer: if resource.cause.is_some() { page.resources[0].url.len().min(100) + 11 } else { 0 },
        kind: resource.kind as u8,
        is_document: resource.kind == Kind::Html,
        fields: &resource.headers,
        body: resource.wire_bytes,
        conditions,
    }))
}

/// The part of `url` behind the host.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}
