//! The light client and the page model of one page agree where the path costs nothing.

#[allow(dead_code, reason = "the tests of the model use the rest")]
#[path = "../../page-model/tests/transport/mod.rs"]
mod transport;

mod support;

use serde_json::json;
use support::{Run, Site, browser, load_ms};
use transport::{Path, carry};
use wirepaint_http_model::HttpVersion;
use wirepaint_page_model::{Browser, Prepared};
use wirepaint_units::{BitRate, Duration, Time};

/// Largest accepted difference of the page load times, in per cent.
const MOST: f64 = 3.0;

/// Chains of requests with think times, which together are most of the load time.
fn chains(number: u8) -> Site {
    let mut site = Site::new(&[number], true, 30_000);
    let sheet = site.element(0, "css", 10_000, "stylesheet");
    let script = site.element(0, "js", 20_000, "script");
    for _ in 0..10 {
        let image = site.element(0, "image", 10_000, "image");
        site.resource(image)["think_ns"] = json!(100_000_000);
    }
    let by_script = |by| json!({"kind": "script", "by": by, "after_ns": 100_000_000});
    let late = site.add(0, "js", 5_000, by_script(script));
    let last = site.add(0, "image", 5_000, by_script(late));
    for slow in [0, sheet, late, last] {
        site.resource(slow)["think_ns"] = json!(500_000_000);
    }
    site
}

#[test]
fn a_page_of_think_times_loads_as_fast_as_it_is_modelled() {
    let free = Path { down: BitRate(0), up: BitRate(0), delay: Duration::from_micros(20) };
    for (number, http) in [(1, HttpVersion::H1), (2, HttpVersion::H2)] {
        let site = chains(number);
        let browser = Browser { http, ..browser() };
        let page = serde_json::from_value(site.page()).unwrap();
        let modelled = carry(&Prepared::new(page), &browser, free, 1, Time(60_000_000_000)).rows.page;
        let modelled = modelled.load_event.unwrap().since(modelled.navigation_start).0 as f64 / 1e6;
        let name = http.protocol().alpn().replace("http/1.1", "h1");
        let light = load_ms(Run::new(&site, &browser, &name).carry_out().loaded());
        let differs = (light / modelled - 1.0) * 100.0;
        println!("{name}: light {light:.1} ms, modelled {modelled:.1} ms, {differs:+.2} %");
        assert!(differs.abs() <= MOST, "{name}: light {light} ms, modelled {modelled} ms");
    }
}
