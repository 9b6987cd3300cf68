//! What the ground side fetches before a browser asks.
//!
//! It never sends a request ahead that may change something: GET alone (RFC 9110, section 9.2.1).

use std::ops::Range;
use wirepaint_page_model::Page;
use wirepaint_page_model::page::{Cause, Element, Kind, Resource};

/// All that rehearsals of the page asked for, in the page's order, its document apart.
pub fn rehearsed(page: &Page) -> Vec<u32> {
    resources(page).filter(|(_, resource)| resource.cause.is_some()).map(|(number, _)| number).collect()
}

/// Documents and style sheets between a page and what is fetched ahead, at most.
pub const DEPTH: u32 = 3;

/// Whether a request is one for the page itself, which a browser tells (`sec-fetch-dest`).
pub fn is_navigation(page: &Page, resource: u32) -> bool {
    match page.resources[resource as usize].cause {
        None => true,
        Some(Cause::Redirect { by }) => is_navigation(page, by),
        Some(_) => false,
    }
}

/// What a document or style sheet names in markup and style rules, as far as the bytes `come` of it on the wire tell
/// and those before did not; `whole` if all have come. The ground side leaves lazy elements to the browser and follows
/// no redirects.
///
/// DEVIATION: it also leaves images with a `srcset` and what `video`, `audio`, `source` and `object` name, which the page
/// model does not tell from others.
pub fn named(page: &Page, by: u32, come: Range<u64>, whole: bool) -> Vec<u32> {
    let Resource { kind, wire_bytes, decoded_bytes, status, .. } = &page.resources[by as usize];
    if !matches!(kind, Kind::Html | Kind::Css) || !(200..300).contains(status) {
        return Vec::new();
    }
    let decoded =
        |bytes: u64| u128::from(bytes) * u128::from(*decoded_bytes) / u128::from((*wire_bytes).max(1));
    let (before, read) = (decoded(come.start), decoded(come.end));
    let is_named = |resource: &Resource| match resource.cause {
        Some(Cause::Markup { element: Element::Lazy, .. }) => false,
        Some(Cause::Markup { by: parent, at, .. }) => {
            parent == by && before <= u128::from(at) && (whole || u128::from(at) < read)
        }
        // Most style sheets declare more fonts than are used.
        Some(Cause::Style { by: parent }) => parent == by && whole && resource.kind != Kind::Font,
        // Modules import too, but the ground side reads no scripts.
        Some(Cause::Import { by: parent }) => parent == by && *kind == Kind::Css && whole,
        Some(Cause::Redirect { .. } | Cause::Script { .. }) | None => false,
    };
    resources(page).filter(|(_, resource)| is_named(resource)).map(|(number, _)| number).collect()
}

fn resources(page: &Page) -> impl Iterator<Item = (u32, &Resource)> {
    // DEVIATION: the testbed's proxy also sends what the browser has in its cache, in vain.
    let is_new = |resource: &Resource| resource.method == "GET" && resource.cached.is_none();
    (0..).zip(&page.resources).filter(move |(_, resource)| is_new(resource))
}
