//! Modules, inline scripts, handlers, and the resources that hold the load event.

#[expect(dead_code)]
mod pages;
#[expect(dead_code)]
mod transport;

use pages::{browser, load, lte, markup, of, page, resource};
use wirepaint_http_model::HttpVersion;
use wirepaint_page_model::catalogue::chromium;
use wirepaint_page_model::page::{Cause, Element, Holds, Kind, Resource};
use wirepaint_page_model::{Browser, Page};
use wirepaint_units::{Duration, Time};

/// A resource that a script requests, `after_ms` after `by`.
fn scripted(kind: Kind, bytes: u64, by: u32, after_ms: u64) -> Resource {
    resource(kind, 0, bytes, Some(Cause::Script { by, after_ns: Duration::from_millis(after_ms) }))
}

fn exact(page: Page) -> transport::Carried {
    load(page, Browser { compute_noise_percent: 0, ..browser(HttpVersion::H2) }, lte())
}

fn ms(from: Time, to: Time) -> u64 {
    to.since(from).0 / 1_000_000
}

#[test]
fn modules_are_asked_for_when_the_importing_one_has_come_and_run_before_it() {
    let mut sheet = resource(Kind::Css, 0, 4_000, markup(50, Element::Stylesheet));
    sheet.think_ns = Duration::from_secs(2);
    let main = resource(Kind::Js, 0, 2_000, markup(100, Element::DeferredScript));
    let imported = resource(Kind::Js, 0, 2_100, Some(Cause::Import { by: 2 }));
    let mut leaf = resource(Kind::Js, 0, 2_200, Some(Cause::Import { by: 3 }));
    leaf.compute_ns = Some(Duration::from_millis(100));
    let carried = exact(page(1, 400, vec![sheet, main, imported, leaf]));
    let [main, imported, leaf] = [2, 3, 4].map(|number| of(&carried, number));
    assert!(ms(main.last_byte.unwrap(), imported.discovered) < 10);
    assert!(ms(imported.last_byte.unwrap(), leaf.discovered) < 10);
    // The document's module waits for the stylesheet, and runs with what it imports.
    let content_loaded = carried.rows.page.dom_content_loaded.unwrap();
    let sheet = of(&carried, 1).last_byte.unwrap();
    assert!(sheet > leaf.last_byte.unwrap());
    assert!((100..150).contains(&ms(sheet, content_loaded)), "{}", ms(sheet, content_loaded));
}

#[test]
fn a_module_waits_for_the_last_of_what_it_imports() {
    let main = resource(Kind::Js, 0, 2_000, markup(100, Element::DeferredScript));
    let other = resource(Kind::Js, 0, 2_100, Some(Cause::Import { by: 1 }));
    let mut slow = resource(Kind::Js, 0, 2_200, Some(Cause::Import { by: 1 }));
    slow.also = vec![2];
    slow.think_ns = Duration::from_secs(1);
    let image = scripted(Kind::Image, 3_000, 1, 0);
    let carried = exact(page(1, 400, vec![main, other, slow, image]));
    let slow = of(&carried, 3).last_byte.unwrap();
    assert!(of(&carried, 4).discovered > slow);
    assert!(carried.rows.page.dom_content_loaded.unwrap() > slow);
}

#[test]
fn the_first_of_several_scripts_asks() {
    let fast = resource(Kind::Js, 0, 2_000, markup(100, Element::AsyncScript));
    let mut slow = resource(Kind::Js, 0, 2_100, markup(200, Element::AsyncScript));
    slow.think_ns = Duration::from_secs(1);
    let mut image = scripted(Kind::Image, 3_000, 2, 20);
    image.also = vec![1];
    image.after_first = true;
    let carried = exact(page(1, 400, vec![fast, slow, image]));
    let waited = ms(of(&carried, 1).last_byte.unwrap(), of(&carried, 3).discovered);
    assert!((20..30).contains(&waited), "{waited}");
}

#[test]
fn a_delay_can_count_from_the_run_of_the_script() {
    let waited = |after_run| {
        // The script arrives early and runs when the stylesheet before it has arrived.
        let mut sheet = resource(Kind::Css, 0, 2_000, markup(100, Element::Stylesheet));
        sheet.think_ns = Duration::from_secs(1);
        let script = resource(Kind::Js, 0, 2_000, markup(200, Element::Script));
        let mut image = scripted(Kind::Image, 3_000, 2, 300);
        image.after_run = after_run;
        let carried = exact(page(1, 400, vec![sheet, script, image]));
        ms(of(&carried, 1).last_byte.unwrap(), of(&carried, 3).discovered)
    };
    assert!(waited(false) < 30, "{}", waited(false));
    assert!((300..330).contains(&waited(true)), "{}", waited(true));
}

#[test]
fn a_script_in_the_text_and_handlers_take_their_time() {
    let content_loaded = |inline_ms: u64, handlers_ms: u64| {
        let mut page = page(1, 100, vec![]);
        let document = page.resources[0].document.as_mut().unwrap();
        document.inline_scripts = vec![500];
        document.inline_ns = vec![Duration::from_millis(inline_ms)];
        document.content_loaded_ns = Duration::from_millis(handlers_ms);
        document.load_ns = Duration::from_millis(handlers_ms);
        let rows = exact(page).rows.page;
        (rows.dom_content_loaded.unwrap(), rows.load_event.unwrap())
    };
    let (none, none_loaded) = content_loaded(0, 0);
    assert!((295..=320).contains(&ms(none, content_loaded(300, 0).0)));
    assert!((195..=220).contains(&ms(none, content_loaded(0, 200).0)));
    assert!((390..=430).contains(&ms(none_loaded, content_loaded(0, 200).1)));
}

#[test]
fn what_leads_to_a_resource_can_hold_the_load_event_and_its_answer_not() {
    let loaded_after = |holds_load| {
        let script = resource(Kind::Js, 0, 2_000, markup(100, Element::Script));
        let mut image = scripted(Kind::Image, 3_000, 1, 500);
        (image.think_ns, image.holds_load) = (Duration::from_secs(1), holds_load);
        let carried = exact(page(1, 400, vec![script, image]));
        let load = carried.rows.page.load_event.unwrap();
        (load >= of(&carried, 2).discovered, load >= of(&carried, 2).last_byte.unwrap())
    };
    assert_eq!(loaded_after(Holds::Always), (true, true));
    assert_eq!(loaded_after(Holds::Begun), (true, false));
    assert_eq!(loaded_after(Holds::Never), (false, false));
}

#[test]
fn the_first_layout_waits_for_fonts_as_long_as_its_page_says() {
    let first_paint = |wait_ms: Option<u64>| {
        let mut page = page(1, 100, vec![]);
        let document = page.resources[0].document.as_mut().unwrap();
        document.names_fonts = true;
        document.layout_wait_ns = wait_ms.map(Duration::from_millis);
        exact(page).rows.page.first_paint.unwrap()
    };
    let usual = chromium().compute.fonts_ns.0 / 1_000_000;
    assert_eq!(ms(first_paint(Some(0)), first_paint(None)), usual);
    assert_eq!(ms(first_paint(Some(0)), first_paint(Some(70))), 70);
}

#[test]
fn a_rule_in_the_text_needs_no_script_to_run() {
    let mut page = page(1, 100, vec![resource(Kind::Image, 0, 3_000, Some(Cause::Style { by: 0 }))]);
    let document = page.resources[0].document.as_mut().unwrap();
    document.inline_scripts = vec![20_000];
    document.inline_ns = vec![Duration::from_millis(500)];
    document.layout_wait_ns = Some(Duration::from_millis(300));
    let carried = exact(page);
    let first_paint = carried.rows.page.first_paint.unwrap();
    assert!(of(&carried, 1).discovered < first_paint, "asked for before the layout, not after the script");
}
