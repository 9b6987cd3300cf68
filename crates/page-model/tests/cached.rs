//! Visits of a browser whose cache holds a part of the page.

#[expect(dead_code)]
mod pages;
#[expect(dead_code)]
mod transport;

use pages::{browser, geo, load, markup, of, page, resource};
use wirepaint_http_model::HttpVersion;
use wirepaint_page_model::Browser;
use wirepaint_page_model::page::{Cached, Element, Kind, Resource};

const ROUND_TRIP_NS: u64 = 600_000_000;

fn still(http: HttpVersion) -> Browser {
    Browser { compute_noise_percent: 0, ..browser(http) }
}

fn held(resource: Resource, cached: Cached) -> Resource {
    let headers = vec![("Last-Modified".to_owned(), "Sat, 26 Oct 1985 08:15:00 GMT".to_owned())];
    Resource { cached: Some(cached), headers, ..resource }
}

fn image(origin: u32, bytes: u64) -> Resource {
    resource(Kind::Image, origin, bytes, markup(100, Element::Image))
}

#[test]
fn what_is_fresh_needs_no_request_and_no_connection() {
    for http in [HttpVersion::H1, HttpVersion::H2] {
        let script = resource(Kind::Js, 1, 80_000, markup(50, Element::Script));
        let resources = vec![held(script, Cached::Fresh), held(image(1, 50_000), Cached::Fresh)];
        let carried = load(page(2, 0, resources), still(http), geo());
        for number in [1, 2] {
            let row = of(&carried, number);
            assert_eq!((row.connection, row.queued, row.sent, row.first_byte), (None, None, None, None));
            assert_eq!(row.encoded_bytes, 0);
            assert!(row.last_byte.unwrap().since(row.discovered).0 < ROUND_TRIP_NS / 4);
        }
        assert!(carried.rows.connections.iter().all(|connection| connection.origin == 0));
    }
}

#[test]
fn a_page_that_is_fresh_loads_without_the_network() {
    let mut page = page(1, 0, vec![held(image(0, 50_000), Cached::Fresh)]);
    page.resources[0] = held(page.resources[0].clone(), Cached::Fresh);
    let carried = load(page, still(HttpVersion::H2), geo());
    assert!(carried.rows.connections.is_empty());
    let load_event = carried.rows.page.load_event.unwrap();
    assert!(load_event.since(carried.rows.page.navigation_start).0 < ROUND_TRIP_NS / 4);
}

#[test]
fn what_is_stale_takes_a_round_trip_and_no_body() {
    for http in [HttpVersion::H1, HttpVersion::H2] {
        let [row, full] = [Some(Cached::Stale), None].map(|cached| {
            let image = Resource { cached, ..held(image(0, 500_000), Cached::Stale) };
            let carried = load(page(1, 0, vec![image]), still(http), geo());
            of(&carried, 1)
        });
        assert!((40..300).contains(&row.encoded_bytes), "{}", row.encoded_bytes);
        assert!(full.encoded_bytes > 500_000);
        let took = row.last_byte.unwrap().since(row.sent.unwrap()).0;
        assert!((ROUND_TRIP_NS..ROUND_TRIP_NS + 20_000_000).contains(&took), "{took}");
        assert_eq!(row.first_byte, row.last_byte);
    }
}

#[test]
fn a_conditional_request_is_longer_by_its_condition() {
    for http in [HttpVersion::H1, HttpVersion::H2] {
        let sent = [Some(Cached::Stale), None].map(|cached| {
            let image = Resource { cached, ..held(image(0, 1_000), Cached::Stale) };
            let carried = load(page(1, 0, vec![image]), still(http), geo());
            carried.rows.connections.iter().map(|connection| connection.bytes_sent).sum::<u64>()
        });
        // "if-modified-since: " and a date of 29 characters; 24 bytes of them in HPACK.
        assert!((20..=52).contains(&(sent[0] - sent[1])), "{sent:?}");
    }
}

#[test]
fn a_stale_document_is_parsed_from_the_cache() {
    let mut page = page(1, 0, vec![image(0, 20_000)]);
    page.resources[0] = held(page.resources[0].clone(), Cached::Stale);
    let carried = load(page, still(HttpVersion::H2), geo());
    let (document, image) = (of(&carried, 0), of(&carried, 1));
    assert!(document.encoded_bytes < 300);
    assert!(image.discovered > document.last_byte.unwrap());
    assert!(image.encoded_bytes > 20_000);
}
