//! Whole visits over a transport that loses nothing.

mod pages;
mod transport;

use pages::{UNTIL, browser, geo, load, lte, markup, of, page, resource};
use proptest::prelude::*;
use transport::{Path, carry};
use wirepaint_http_model::HttpVersion;
use wirepaint_page_model::browser::{Compute, Tls};
use wirepaint_page_model::catalogue::chromium;
use wirepaint_page_model::page::{Cause, Document, Element, Holds, Kind, Resource};
use wirepaint_page_model::{Browser, Page, Prepared, Priority};
use wirepaint_units::{BitRate, Duration, Time};

#[test]
fn a_document_takes_four_round_trips_and_its_transfer() {
    let carried = load(page(1, 0, vec![]), browser(HttpVersion::H2), geo());
    let document = of(&carried, 0);
    // TCP, TLS, and request: three round trips; its ten segments fit the first window.
    let (sent, last) = (document.sent.unwrap().0, document.last_byte.unwrap().0);
    assert!((1_200_000_000..1_220_000_000).contains(&sent), "{sent}");
    assert!((1_800_000_000..1_850_000_000).contains(&last), "{last}");
}

#[test]
fn the_first_stylesheet_takes_the_network_process_longer() {
    let queued_ms = |kind, element| {
        let asked = resource(kind, 0, 5_000, markup(100, element));
        let browser = Browser { compute_noise_percent: 0, ..browser(HttpVersion::H1) };
        let carried = load(page(1, 0, vec![asked]), browser, lte());
        let asked = of(&carried, 1);
        (asked.queued.unwrap().0 - asked.discovered.0) / 1_000_000
    };
    let longer = chromium().compute.first_code_ns.0 / 1_000_000;
    let [style, image] =
        [(Kind::Css, Element::Stylesheet), (Kind::Image, Element::Image)].map(|(k, e)| queued_ms(k, e));
    // Other threads share the cores for a part of it.
    assert!((longer..4 * longer).contains(&(style - image)), "{style} {image}");
}

#[test]
fn the_preload_scanner_passes_over_a_stylesheet_whose_media_query_does_not_hold() {
    let comes_first = |element| {
        let sheet = resource(Kind::Css, 0, 5_000, markup(50, element));
        let image = resource(Kind::Image, 0, 5_000, markup(200, Element::Image));
        let carried = load(page(1, 100, vec![sheet, image]), browser(HttpVersion::H2), lte());
        of(&carried, 1).discovered <= of(&carried, 2).discovered
    };
    assert!(comes_first(Element::Stylesheet));
    assert!(!comes_first(Element::Other));
}

#[test]
fn requests_that_are_asked_for_together_are_written_together() {
    let images = (0..12).map(|i| resource(Kind::Image, 0, 2_000 + i, markup(500 + i, Element::Image)));
    let browser = Browser { compute_noise_percent: 0, ..browser(HttpVersion::H2) };
    let carried = load(page(1, 0, images.collect()), browser, lte());
    let images: Vec<_> = (1..13).map(|i| of(&carried, i)).collect();
    let mut sent: Vec<Time> = images.iter().map(|image| image.sent.unwrap()).collect();
    sent.dedup();
    assert!((3..=6).contains(&sent.len()), "twelve requests, some at a time: {sent:?}");
    assert!(images.iter().all(|image| image.sent.unwrap().since(image.queued.unwrap()).0 < 10_000_000));
}

#[test]
fn a_script_is_parsed_by_other_threads_while_it_comes() {
    let ran_ms = |aside_ms_per_kib, path| {
        let script = resource(Kind::Js, 0, 100_000, markup(100, Element::Script));
        let aside_js_ns_per_kib = Duration::from_millis(aside_ms_per_kib);
        let compute = Compute { aside_js_ns_per_kib, ..chromium().compute };
        let browser = Browser { compute, compute_noise_percent: 0, ..browser(HttpVersion::H2) };
        let carried = load(page(1, 400, vec![script]), browser, path);
        carried.rows.page.dom_content_loaded.unwrap().since(of(&carried, 1).last_byte.unwrap()).0 / 1_000_000
    };
    // 300 ms of work on two cores; the transfer takes 8 s at 100 kbit/s or 8 ms at 100 Mbit/s.
    let slow = Path { down: BitRate(100_000), ..lte() };
    let fast = Path { down: BitRate(100_000_000), up: BitRate(100_000_000), delay: Duration::from_millis(1) };
    assert!(ran_ms(1, slow) < ran_ms(0, slow) + 5, "{} {}", ran_ms(1, slow), ran_ms(0, slow));
    assert!(ran_ms(1, fast) > ran_ms(0, fast) + 15, "{} {}", ran_ms(1, fast), ran_ms(0, fast));
}

#[test]
fn the_script_of_a_synthesised_page_holds_the_parser_up() {
    let ready = |driver| {
        let mut page = page(1, 4_000, vec![]);
        page.resources[0].document =
            Some(Document { body_at: 4_000, inline_scripts: vec![100], driver, ..Document::default() });
        let browser = Browser { compute_noise_percent: 0, ..browser(HttpVersion::H2) };
        load(page, browser, lte()).rows.page.dom_content_loaded.unwrap()
    };
    let longer = ready(true).since(ready(false)).0;
    let alone = chromium().compute.driver_ns.0;
    assert!((alone..4 * alone).contains(&longer), "{longer}");
}

#[test]
fn ten_images_of_unknown_servers_hold_an_eleventh_back_but_no_redirected_one() {
    let slow = |origin| Resource {
        think_ns: Duration::from_secs(2),
        ..resource(Kind::Image, origin, 2_000, markup(500, Element::Image))
    };
    let moved = resource(Kind::Image, 0, 0, markup(600, Element::Image));
    let target = resource(Kind::Image, 11, 2_000, Some(Cause::Redirect { by: 11 }));
    let eleventh = resource(Kind::Image, 12, 2_000, markup(700, Element::Image));
    let resources = (1..=10).map(slow).chain([moved, target, eleventh]).collect();
    let carried = load(page(13, 0, resources), browser(HttpVersion::H2), lte());
    let waited_ms = |number| {
        let image = of(&carried, number);
        image.queued.unwrap().since(image.discovered).0 / 1_000_000
    };
    assert!(waited_ms(12) < 50, "{}", waited_ms(12));
    assert!(waited_ms(13) > 1_500, "{}", waited_ms(13));
}

#[test]
fn the_network_process_reads_its_connections_between_requests() {
    // Forty images are requested while the document arrives: 40 ms of the network process.
    let images = (0..40).map(|at| resource(Kind::Image, 0, 100, markup(100 + at, Element::Image))).collect();
    let mut page = page(1, 0, images);
    (page.resources[0].wire_bytes, page.resources[0].decoded_bytes) = (100_000, 100_000);
    let compute = Compute { request_ns: Duration::from_millis(1), ..chromium().compute };
    let browser = Browser { compute, compute_noise_percent: 0, ..browser(HttpVersion::H2) };
    let carried = load(page, browser, lte());
    let asked = |at| of(&carried, at).queued.unwrap();
    let (begin, end) = (asked(5), asked(35));
    let between = |time| begin < time && time < end;
    let reads = carried.rows.chunks.iter().filter(|chunk| chunk.request == 0 && between(chunk.time)).count();
    assert!(reads > 2, "{reads}");
}

#[test]
fn a_busy_network_process_reads_later() {
    let most_unread = |first_code_ms| {
        let style = resource(Kind::Css, 0, 5_000, markup(100, Element::Stylesheet));
        let mut page = page(1, 0, vec![style]);
        (page.resources[0].wire_bytes, page.resources[0].decoded_bytes) = (200_000, 200_000);
        let first_code_ns = Duration::from_millis(first_code_ms);
        let compute = Compute { first_code_ns, ..chromium().compute };
        let browser = Browser { compute, compute_noise_percent: 0, ..browser(HttpVersion::H2) };
        load(page, browser, lte()).most_unread
    };
    // The second window of the document arrives in these 30 ms.
    let (free, busy) = (most_unread(0), most_unread(30));
    assert!(busy > 20_000 && busy > 2 * free, "{free} {busy}");
}

#[test]
fn tls_1_2_takes_no_round_trip_more_and_other_sizes() {
    let of_version = |tls| {
        let carried = load(page(1, 0, vec![]), Browser { tls, ..browser(HttpVersion::H2) }, geo());
        (of(&carried, 0).sent.unwrap().0, carried.rows.connections[0].bytes_received)
    };
    let (new, old) = (of_version(Tls::V13), of_version(Tls::V12));
    assert!(new.0.abs_diff(old.0) < 1_000_000, "{new:?} {old:?}");
    // "host0.test" has 10 letters; settings, their acknowledgement and the answer are three records.
    assert_eq!(new.1 - old.1, (1_087 + 346) - (1_021 + 195) - 3 * 7);
}

#[test]
fn every_frame_of_the_browser_is_a_write_and_settings_are_acknowledged() {
    let writes = |http| load(page(1, 0, vec![]), browser(http), geo()).bytes[0][0].0.clone();
    let (hello, finished, preface, acknowledgement) = (1_760, 64, 22 + 70, 22 + 9);
    let http2 = writes(HttpVersion::H2);
    assert!(http2[0] >= hello && http2.len() == 5, "{http2:?}");
    assert_eq!([http2[1], http2[2], http2[4]], [finished, preface, acknowledgement]);
    assert_eq!(writes(HttpVersion::H1).len(), 3);
}

#[test]
fn without_a_limit_the_cores_are_what_a_load_waits_for() {
    let images = (0..40).map(|i| resource(Kind::Image, 0, 5_000 + i, markup(500 + i, Element::Image)));
    let page = page(1, 400, images.collect());
    let path = Path { down: BitRate(0), up: BitRate(0), delay: Duration::ZERO };
    let time = |cores| {
        let compute = Compute { cores, ..chromium().compute };
        let carried = load(page.clone(), Browser { compute, ..browser(HttpVersion::H2) }, path);
        carried.rows.page.load_event.unwrap().0
    };
    let (one, two, many) = (time(1), time(2), time(32));
    assert!(one > two * 3 / 2 && two > many * 3 / 2, "{one} {two} {many}");
}

#[test]
fn the_browser_is_as_fast_as_the_machine_that_rehearsed_the_page() {
    let images = (0..40).map(|i| resource(Kind::Image, 0, 5_000 + i, markup(500 + i, Element::Image)));
    let page = page(1, 400, images.collect());
    let own = chromium().compute.processor_ns.0;
    let time = |processor_ns, compute| {
        let page = Page { processor_ns, ..page.clone() };
        let path = Path { down: BitRate(0), up: BitRate(0), delay: Duration::ZERO };
        load(page, Browser { compute, ..browser(HttpVersion::H2) }, path).rows.page.load_event.unwrap().0
    };
    let usual = time(None, chromium().compute);
    assert_eq!(time(Some(Duration(own)), chromium().compute), usual);
    let slow = Duration(own * 3 / 2);
    let slower = time(Some(slow), chromium().compute);
    assert_eq!(slower, time(None, chromium().compute.on(slow)));
    assert!((14..16).contains(&(slower * 10 / usual)), "{slower} {usual}");
    let none = Page { processor_ns: Some(Duration::ZERO), ..page.clone() };
    let refusal = "processor_ns: found 0, accepted: 1 to 60000000000 ns";
    assert_eq!(none.check().unwrap_err().to_string(), refusal);
}

#[test]
fn http1_opens_six_connections_to_a_host_and_http2_uses_one() {
    let images = || (0..20).map(|i| resource(Kind::Image, 0, 5_000 + i, markup(500 + i, Element::Image)));
    let h1 = load(page(1, 400, images().collect()), browser(HttpVersion::H1), lte());
    assert_eq!(h1.rows.connections.len(), 6);
    assert!(h1.rows.connections.iter().all(|connection| connection.objects > 0));
    let h2 = load(page(1, 400, images().collect()), browser(HttpVersion::H2), lte());
    assert_eq!(h2.rows.connections.iter().filter(|connection| connection.objects > 0).count(), 1);
    assert_eq!(h2.rows.connections[0].objects, 21);
}

#[test]
fn the_most_connections_to_a_host_can_be_set() {
    let images = (0..20).map(|i| resource(Kind::Image, 0, 5_000 + i, markup(500 + i, Element::Image)));
    let page = page(1, 400, images.collect());
    for most in 1..=8 {
        let browser = Browser { connections_per_origin: most, ..browser(HttpVersion::H1) };
        assert_eq!(load(page.clone(), browser, lte()).rows.connections.len(), usize::from(most));
    }
}

#[test]
fn pipelining_sends_requests_ahead_of_answers() {
    let images = (0..12).map(|i| resource(Kind::Image, 0, 500 + i, markup(500 + i, Element::Image)));
    let page = page(1, 400, images.collect());
    let with = |pipeline| Browser { connections_per_origin: 1, pipeline, ..browser(HttpVersion::H1) };
    let plain = load(page.clone(), with(1), geo()).rows.page.load_event.unwrap();
    let piped = load(page, with(4), geo()).rows.page.load_event.unwrap();
    assert!(piped.0 < plain.0 * 2 / 3, "{piped:?} of {plain:?}");
}

#[test]
fn a_pipeline_that_does_not_grow_is_filled_when_the_connection_is_idle() {
    let images = (0..12).map(|i| resource(Kind::Image, 0, 500 + i, markup(500 + i, Element::Image)));
    let page = page(1, 400, images.collect());
    let one = Browser { connections_per_origin: 1, pipeline: 4, ..browser(HttpVersion::H1) };
    let grown = load(page.clone(), one.clone(), geo());
    let filled = load(page, Browser { pipeline_grows: false, ..one }, geo());
    let mut sent: Vec<_> = (1..=12).map(|image| of(&filled, image).sent.unwrap()).collect();
    sent.sort();
    // A round trip lies between pipelines. The first image finds an idle connection and nothing beside it.
    let together = |before: &Time, after: &Time| after.since(*before) < Duration::from_millis(500);
    let lengths: Vec<usize> = sent.chunk_by(together).map(<[Time]>::len).collect();
    assert_eq!(lengths, [1, 4, 4, 3]);
    assert!(filled.rows.page.load_event > grown.rows.page.load_event);
}

#[test]
fn spare_connects_are_closed_when_the_first_speaks_http2() {
    let images = (0..6).map(|i| resource(Kind::Image, 1, 5_000 + i, markup(500 + i, Element::Image)));
    let carried = load(page(2, 400, images.collect()), browser(HttpVersion::H2), lte());
    let to_images = carried.rows.connections.iter().filter(|connection| connection.origin == 1);
    let (used, spare): (Vec<_>, Vec<_>) = to_images.partition(|connection| connection.objects > 0);
    assert_eq!((used.len(), spare.len()), (1, 5));
    assert!(spare.iter().all(|connection| connection.closed.is_some()));
}

#[test]
fn a_slow_connect_gets_a_second_one_beside_it() {
    let carried = load(page(1, 0, vec![]), browser(HttpVersion::H2), geo());
    let opened: Vec<u64> = carried.rows.connections.iter().map(|c| c.opened.0 / 1_000_000).collect();
    assert_eq!(opened.len(), 2);
    assert_eq!(opened[1] - opened[0], 250);
    assert_eq!(load(page(1, 0, vec![]), browser(HttpVersion::H2), lte()).rows.connections.len(), 1);
}

#[test]
fn a_connection_that_is_given_up_while_its_name_is_looked_up_is_none() {
    let script = |origin, bytes, after_ms| {
        let after_ns = Duration::from_millis(after_ms);
        resource(Kind::Data, origin, bytes, Some(Cause::Script { by: 0, after_ns }))
    };
    // The second request's look-up is under way when the first one's connection turns out to speak HTTP/2;
    // the last one's, to another host, begins then.
    let resources = vec![script(1, 1_000, 10), script(1, 1_001, 300), script(2, 1_002, 320)];
    let dns_ns = Duration::from_millis(500);
    let carried = load(page(3, 0, resources), Browser { dns_ns, ..browser(HttpVersion::H2) }, lte());
    let (first, second, other) = (of(&carried, 1), of(&carried, 2), of(&carried, 3));
    assert_eq!(first.connection, second.connection);
    assert!(first.connection.is_some() && other.connection != first.connection);
    let origins: Vec<u32> = carried.rows.connections.iter().map(|connection| connection.origin).collect();
    assert_eq!(origins, [0, 1, 2]);
    assert!(carried.rows.connections[1].opened.since(first.queued.unwrap()) == dns_ns);
}

#[test]
fn requests_without_credentials_have_a_connection_of_their_own() {
    let mut font = resource(Kind::Font, 1, 5_000, markup(100, Element::Preload));
    font.pool = 1;
    let image = resource(Kind::Image, 1, 5_000, markup(500, Element::Image));
    let carried = load(page(2, 400, vec![font, image]), browser(HttpVersion::H2), lte());
    assert_ne!(of(&carried, 1).connection, of(&carried, 2).connection);
}

#[test]
fn origins_of_one_address_share_a_connection_when_told_to() {
    let style = resource(Kind::Css, 0, 20_000, markup(100, Element::Stylesheet));
    let image = resource(Kind::Image, 1, 5_000, Some(Cause::Style { by: 1 }));
    let mut page = page(2, 400, vec![style, image]);
    page.origins[1].address = page.origins[0].address;
    let coalesced = Browser { coalesce: true, ..browser(HttpVersion::H2) };
    assert_eq!(load(page.clone(), coalesced, lte()).rows.connections.len(), 1);
    assert_eq!(load(page, browser(HttpVersion::H2), lte()).rows.connections.len(), 2);
}

#[test]
fn before_the_body_two_images_at_a_time_are_asked_for() {
    let script = resource(Kind::Js, 0, 200_000, markup(100, Element::Script));
    let images = (0..8).map(|i| resource(Kind::Image, 0, 20_000 + i, markup(500 + i, Element::Image)));
    let carried =
        load(page(1, 400, [script].into_iter().chain(images).collect()), browser(HttpVersion::H2), lte());
    let script_done = of(&carried, 1).last_byte.unwrap();
    let asked_before = (2..10).filter(|&i| of(&carried, i).queued.unwrap() < script_done).count();
    assert_eq!(asked_before, 2, "the others wait for the script that stands before the body");
    let discovered: Vec<Time> = (1..10).map(|i| of(&carried, i).discovered).collect();
    assert!(discovered.windows(2).all(|pair| pair[0] == pair[1]), "the preload scanner sees all at once");
}

#[test]
fn before_the_body_images_of_low_priority_wait_for_scripts_too() {
    let scripts = (0..2).map(|i| resource(Kind::Js, 0, 400_000 + i, markup(100 + i, Element::Script)));
    let images = (0..8).map(|i| resource(Kind::Image, 1, 2_000 + i, markup(500 + i, Element::Image)));
    let carried = load(page(2, 400, scripts.chain(images).collect()), browser(HttpVersion::H2), lte());
    let script_done = (1..3).filter_map(|i| of(&carried, i).last_byte).min();
    let waited: Vec<bool> = (3..11).map(|i| of(&carried, i).queued >= script_done).collect();
    // Chromium gives the first five medium priority; two of these at a time may always start.
    assert_eq!(waited, [false, false, false, false, false, true, true, true]);
}

#[test]
fn a_stylesheet_overtakes_an_image_that_was_asked_for_before() {
    let image = resource(Kind::Image, 0, 400_000, markup(500, Element::Image));
    let style = resource(Kind::Css, 0, 100_000, markup(600, Element::Stylesheet));
    let carried = load(page(1, 400, vec![image, style]), browser(HttpVersion::H2), lte());
    assert!(of(&carried, 1).queued < of(&carried, 2).queued);
    assert!(of(&carried, 2).last_byte < of(&carried, 1).last_byte);
    assert_eq!(of(&carried, 2).priority, Priority::VeryHigh);
}

#[test]
fn what_a_style_rule_names_is_asked_for_after_the_layout() {
    let style = resource(Kind::Css, 0, 20_000, markup(100, Element::Stylesheet));
    let font = resource(Kind::Font, 0, 20_000, Some(Cause::Style { by: 1 }));
    let carried = load(page(1, 400, vec![style, font]), browser(HttpVersion::H2), lte());
    assert!(of(&carried, 2).discovered > of(&carried, 1).last_byte.unwrap());
    assert!(carried.rows.page.first_paint.unwrap() > of(&carried, 1).last_byte.unwrap());
}

#[test]
fn deferred_scripts_run_before_dom_content_loaded_and_asynchronous_ones_need_not() {
    let deferred = resource(Kind::Js, 0, 20_000, markup(100, Element::DeferredScript));
    let mut slow = resource(Kind::Js, 0, 20_001, markup(200, Element::AsyncScript));
    slow.think_ns = Duration::from_secs(2);
    let carried = load(page(1, 400, vec![deferred, slow]), browser(HttpVersion::H2), lte());
    let ready = carried.rows.page.dom_content_loaded.unwrap();
    assert!(ready > of(&carried, 1).last_byte.unwrap());
    assert!(ready < of(&carried, 2).last_byte.unwrap());
    assert!(carried.rows.page.load_event.unwrap() > of(&carried, 2).last_byte.unwrap());
}

#[test]
fn a_script_asks_after_its_delay_and_a_fetch_does_not_hold_the_load_event() {
    let script = resource(Kind::Js, 0, 5_000, markup(100, Element::Script));
    let after_ns = Duration::from_millis(400);
    let mut fetch = resource(Kind::Data, 0, 1_000, Some(Cause::Script { by: 1, after_ns }));
    fetch.think_ns = Duration::from_secs(1);
    let carried = load(page(1, 400, vec![script, fetch]), browser(HttpVersion::H2), lte());
    let (script, fetch) = (of(&carried, 1), of(&carried, 2));
    let delay = fetch.discovered.since(script.last_byte.unwrap());
    assert!((400..410).contains(&(delay.0 / 1_000_000)), "{delay:?}");
    let load = carried.rows.page.load_event.unwrap();
    assert!(load >= fetch.discovered && load < fetch.last_byte.unwrap());
}

#[test]
fn what_waits_for_several_is_asked_for_after_the_last_of_them() {
    let mut slow = resource(Kind::Data, 0, 1_000, Some(Cause::Script { by: 1, after_ns: Duration::ZERO }));
    slow.think_ns = Duration::from_secs(1);
    let script = resource(Kind::Js, 0, 5_000, markup(100, Element::Script));
    let after_ns = Duration::from_millis(30);
    let mut image = resource(Kind::Image, 0, 2_000, Some(Cause::Script { by: 1, after_ns }));
    image.also = vec![2];
    let carried = load(page(1, 400, vec![script, slow, image]), browser(HttpVersion::H2), lte());
    let delay = of(&carried, 3).discovered.since(of(&carried, 2).last_byte.unwrap());
    assert!((30..40).contains(&(delay.0 / 1_000_000)), "{delay:?}");
}

#[test]
fn what_waits_for_dom_content_loaded_is_asked_for_after_it() {
    let script = resource(Kind::Js, 0, 5_000, markup(100, Element::Script));
    let mut late = resource(Kind::Js, 0, 6_000, markup(500, Element::DeferredScript));
    late.think_ns = Duration::from_secs(1);
    let after_ns = Duration::from_millis(20);
    let mut image = resource(Kind::Image, 0, 2_000, Some(Cause::Script { by: 1, after_ns }));
    image.after_content_loaded = true;
    let carried = load(page(1, 400, vec![script, late, image]), browser(HttpVersion::H2), lte());
    let delay = of(&carried, 3).discovered.since(carried.rows.page.dom_content_loaded.unwrap());
    assert!((20..30).contains(&(delay.0 / 1_000_000)), "{delay:?}");
}

#[test]
fn what_follows_the_load_event_is_asked_for_after_it() {
    let cause = Some(Cause::Script { by: 0, after_ns: Duration::from_millis(50) });
    let mut beacon = resource(Kind::Data, 0, 100, cause);
    beacon.after_load = true;
    let carried = load(page(1, 400, vec![beacon]), browser(HttpVersion::H2), lte());
    assert!(of(&carried, 1).discovered.since(carried.rows.page.load_event.unwrap()).0 >= 50_000_000);
}

#[test]
fn a_redirect_is_followed_and_keeps_its_place() {
    let script = resource(Kind::Js, 0, 0, markup(100, Element::Script));
    let target = resource(Kind::Js, 1, 5_000, Some(Cause::Redirect { by: 1 }));
    let image = resource(Kind::Image, 0, 5_000, markup(500, Element::Image));
    let carried = load(page(2, 400, vec![script, target, image]), browser(HttpVersion::H2), lte());
    assert!(of(&carried, 2).discovered > of(&carried, 1).last_byte.unwrap());
    assert!(carried.rows.page.dom_content_loaded.unwrap() > of(&carried, 2).last_byte.unwrap());
}

#[test]
fn pages_whose_parts_do_not_fit_are_refused_by_name() {
    let told = |page: Page| page.check().unwrap_err().to_string();
    let base = page(1, 0, vec![resource(Kind::Css, 0, 1, markup(0, Element::Stylesheet))]);
    let mut broken = base.clone();
    broken.resources[1].cause = Some(Cause::Style { by: 1 });
    assert_eq!(told(broken), "resources[1].cause.by: found 1, accepted: a resource before it, below 1");
    let mut broken = base.clone();
    broken.resources[1].origin = 3;
    assert_eq!(told(broken), "resources[1].origin: found 3, accepted: a position in origins, below 1");
    let mut broken = base.clone();
    broken.resources[1].cause = None;
    assert!(told(broken).starts_with("resources[1].cause: found null"));
    let mut broken = base.clone();
    broken.resources.clear();
    assert!(told(broken).starts_with("resources: found none"));
    let mut broken = base;
    broken.resources.push(resource(
        Kind::Image,
        0,
        1,
        Some(Cause::Markup { by: 1, at: 0, element: Element::Image }),
    ));
    assert!(told(broken).contains("only documents hold elements"));
}

fn any_resource(number: u32, origins: u32) -> impl Strategy<Value = Resource> {
    let kinds =
        [Kind::Html, Kind::Css, Kind::Js, Kind::Image, Kind::Font, Kind::Media, Kind::Data, Kind::Other];
    let elements = [
        Element::Stylesheet,
        Element::Script,
        Element::AsyncScript,
        Element::DeferredScript,
        Element::Image,
        Element::Lazy,
        Element::Frame,
        Element::Preload,
        Element::Other,
    ];
    let shape =
        (prop::sample::select(kinds.to_vec()), 0..origins, 0..60_000u64, 0..2u32, prop::bool::weighted(0.1));
    let cause = (0..number, 0..6u8, 0..40_000u64, prop::sample::select(elements.to_vec()), 0..300u64);
    let holds = [Holds::Always, Holds::Asked, Holds::Begun, Holds::Never];
    let set = (prop::option::of(0..number), any::<bool>(), prop::sample::select(holds.to_vec()));
    (shape, cause, 0..100u64, 0..30_000u64, set).prop_map(
        move |((kind, origin, bytes, pool, late), (by, how, at, element, after), think, post, set)| {
            let after_ns = Duration::from_millis(if after < 60 { 0 } else { after });
            let cause = match how {
                0 => Cause::Redirect { by },
                1 => Cause::Import { by },
                2 => Cause::Style { by },
                3 => Cause::Script { by, after_ns },
                _ => Cause::Markup { by: 0, at, element },
            };
            let mut made = resource(kind, origin, bytes, Some(cause));
            made.url = format!("{}/{number}", made.url);
            (made.pool, made.after_load) = (pool, late);
            let (also, first, holds_load) = set;
            made.holds_load = holds_load;
            if matches!(how, 1 | 3) {
                made.also.extend(also);
                made.after_first = first && how == 3;
                made.after_run = first && how == 1;
            }
            (made.think_ns, made.post_bytes) = (Duration::from_millis(think), post);
            made
        },
    )
}

fn any_page() -> impl Strategy<Value = Page> {
    (1..5u32, 1..25u32, 0..30_000u64).prop_flat_map(|(origins, count, body_at)| {
        let resources: Vec<_> = (1..count).map(|number| any_resource(number, origins)).collect();
        let inline = prop::collection::vec((0..30_000u64, 0..80u64), 0..3);
        (resources, inline).prop_map(move |(resources, inline)| {
            let mut made = page(origins, body_at, resources);
            let document = made.resources[0].document.as_mut().unwrap();
            document.inline_scripts = inline.iter().map(|&(at, _)| at).collect();
            document.inline_ns = inline.iter().map(|&(_, cost)| Duration::from_millis(cost)).collect();
            made
        })
    })
}

/// Resources that never arrived.
fn unfinished(page: &Page, rows: &wirepaint_page_model::Rows) -> String {
    let came = |resource: u32| {
        rows.objects.iter().any(|object| object.resource == resource && object.last_byte.is_some())
    };
    let missing = (0..).zip(&page.resources).filter(|(number, _)| !came(*number));
    let missing =
        missing.map(|(number, resource)| format!("{number}: {:?} {:?}", resource.kind, resource.cause));
    format!("load event {:?}, missing {:?}", rows.page.load_event, missing.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any page loads, times do not run back, no bytes are lost, and the visit repeats.
    #[test]
    fn any_page_loads(
        page in any_page(),
        h2: bool,
        pipeline in 1..4u8,
        connections_per_origin in 1..9u8,
        coalesce: bool,
        dns in prop::sample::select(vec![0u64, 20, 400]),
        down in prop::sample::select(vec![0u64, 1_000_000, 25_000_000]),
        delay in 0..400u64,
    ) {
        // Refused: two targets of one redirect, a navigation that leads to no document.
        prop_assume!(page.check().is_ok());
        let http = if h2 { HttpVersion::H2 } else { HttpVersion::H1 };
        let dns_ns = Duration::from_millis(dns);
        let browser =
            Browser { http, pipeline, connections_per_origin, coalesce, dns_ns, ..chromium() };
        let path = Path { down: BitRate(down), up: BitRate(down), delay: Duration::from_millis(delay) };
        let prepared = Prepared::new(page);
        let carried = carry(&prepared, &browser, path, 7, UNTIL);
        let rows = &carried.rows;
        prop_assert!(carried.done, "{}", unfinished(prepared.page(), rows));
        prop_assert_eq!(rows.objects.len(), prepared.page().resources.len());
        for object in &rows.objects {
            let times = [Some(object.discovered), object.queued, object.sent, object.first_byte, object.last_byte];
            prop_assert!(times.iter().all(Option::is_some), "{:?}", object);
            prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", object);
            let chunks = rows.chunks.iter().filter(|chunk| chunk.request == object.resource);
            prop_assert!(chunks.map(|chunk| chunk.bytes).sum::<u64>() >= object.encoded_bytes);
        }
        prop_assert!(rows.page.dom_content_loaded <= rows.page.load_event);
        for (row, [client, server]) in rows.connections.iter().zip(&carried.bytes) {
            prop_assert_eq!((row.bytes_sent, row.bytes_received), (client.0.iter().sum(), server.1));
            if row.closed.is_none() && row.objects > 0 {
                prop_assert!(server.1 <= server.0.iter().sum());
            }
        }
        let again = carry(&prepared, &browser, path, 7, UNTIL);
        prop_assert_eq!(&again.rows, rows);
    }
}
