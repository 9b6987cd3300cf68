//! Paints: the largest contentful paint, and the images that are urgent for it.

mod transport;

use transport::{Carried, Path, carry};
use wirepaint_page_model::browser::Compute;
use wirepaint_page_model::catalogue::chromium;
use wirepaint_page_model::page::{
    Cause, Document, Element, Follows, InlineBox, InlineFlow, Kind, Origin, Paints, Resource,
};
use wirepaint_page_model::{Browser, Page, Prepared, Priority};
use wirepaint_units::{BitRate, Duration, Time};

const UNTIL: Time = Time(60_000_000_000);
const FLOW: InlineFlow = InlineFlow { top: 150, used: 0, width: 1248, descent: 6, viewport: 800 };

fn resource(kind: Kind, bytes: u64, cause: Option<Cause>) -> Resource {
    let json = serde_json::json!({
        "url": format!("https://host.test/{kind:?}-{bytes}"), "origin": 0, "status": 200, "type": kind,
        "cause": cause, "wire_bytes": bytes, "decoded_bytes": bytes, "headers": [],
    });
    serde_json::from_value(json).unwrap()
}

fn image(at: u64, bytes: u64) -> Resource {
    resource(Kind::Image, bytes, Some(Cause::Markup { by: 0, at, element: Element::Image }))
}

/// An image that counts `area` pixels.
fn placed(at: u64, bytes: u64, area: u64) -> Resource {
    Resource { area, in_viewport: area > 0, ..image(at, bytes) }
}

fn inline(width: u64, height: u64, reserved: bool, resource: Resource) -> Resource {
    Resource { inline_box: Some(InlineBox { width, height, margin: 2, reserved }), ..resource }
}

fn scripted(bytes: u64, after_ms: u64) -> Resource {
    let after_ns = Duration::from_millis(after_ms);
    resource(Kind::Image, bytes, Some(Cause::Script { by: 0, after_ns }))
}

fn load(document: Document, resources: Vec<Resource>) -> Carried {
    load_on(&chromium(), document, resources)
}

fn load_on(browser: &Browser, document: Document, resources: Vec<Resource>) -> Carried {
    load_painting(browser, document, resources, Paints::default())
}

fn load_painting(browser: &Browser, document: Document, resources: Vec<Resource>, paints: Paints) -> Carried {
    let mut base = resource(Kind::Html, 10_000, None);
    base.document = Some(document);
    let origin =
        Origin { host: "host.test".to_owned(), address: [10, 65, 0, 1].into(), port: 443, encrypted: true };
    let resources = std::iter::once(base).chain(resources).collect();
    let page = Page { origins: vec![origin], resources, paints, processor_ns: None };
    page.check().unwrap();
    let path = Path { down: BitRate(5_000_000), up: BitRate(5_000_000), delay: Duration::from_millis(20) };
    let carried = carry(&Prepared::new(page), browser, path, 1, UNTIL);
    assert!(carried.done, "the visit did not end");
    carried
}

fn last_byte(carried: &Carried, resource: u32) -> Time {
    let object = carried.rows.objects.iter().find(|object| object.resource == resource).unwrap();
    object.last_byte.unwrap()
}

/// Time from the last byte of a resource to the largest contentful paint, without the time from layout to
/// pixels, in ms.
fn lag_ms(carried: &Carried, resource: u32) -> i64 {
    let painted = carried.rows.page.largest_contentful_paint.unwrap();
    let lag = painted.0 as i64 - last_byte(carried, resource).0 as i64;
    (lag - chromium().compute.paint_ns.0 as i64) / 1_000_000
}

#[test]
fn the_largest_area_counts_and_not_the_largest_file() {
    let document = Document { text_area: 40_000, ..Document::default() };
    let large = load(document.clone(), vec![placed(100, 50_000, 90_000), placed(200, 400_000, 60_000)]);
    assert!((0..30).contains(&lag_ms(&large, 1)), "{}", lag_ms(&large, 1));
    assert!(lag_ms(&large, 2) < 0);
    let text = load(document, vec![placed(100, 400_000, 30_000)]);
    assert_eq!(text.rows.page.largest_contentful_paint, text.rows.page.first_paint);
}

#[test]
fn of_equals_the_first_counts() {
    let carried = load(Document::default(), vec![placed(100, 400_000, 60_000), placed(200, 50_000, 60_000)]);
    assert!(last_byte(&carried, 2) < last_byte(&carried, 1), "images of one priority take turns");
    assert!((0..30).contains(&lag_ms(&carried, 2)), "{}", lag_ms(&carried, 2));
}

#[test]
fn what_may_be_an_image_of_unknown_place_has_no_time() {
    let document = |unplaced_area| Document { text_area: 40_000, unplaced_area, ..Document::default() };
    let known = |unplaced_area| {
        load(document(unplaced_area), vec![scripted(90_000, 10)]).rows.page.largest_contentful_paint
    };
    assert!(known(39_999).is_some());
    assert_eq!(known(40_001), None);
    assert_eq!(load(Document::default(), vec![]).rows.page.largest_contentful_paint, None);
}

#[test]
fn style_asks_for_images_and_discovers_fonts_whose_requests_leave_after_the_layout() {
    // Cores for all threads and no noise: durations equal the costs.
    let compute = Compute { cores: 16, ..chromium().compute };
    let browser = Browser { compute: compute.clone(), compute_noise_percent: 0, ..chromium() };
    let sheet = Cause::Markup { by: 0, at: 50, element: Element::Stylesheet };
    let styled = |kind| resource(kind, 5_000, Some(Cause::Style { by: 1 }));
    // Since the stylesheet: the image and the font discovered, both requests.
    let after_sheet = |document| {
        let sheet = resource(Kind::Css, 20_000, Some(sheet));
        let carried = load_on(&browser, document, vec![sheet, styled(Kind::Image), styled(Kind::Font)]);
        let object =
            |resource| carried.rows.objects.iter().find(|object| object.resource == resource).unwrap();
        let (image, font) = (object(2), object(3));
        [image.discovered, font.discovered, image.queued.unwrap(), font.queued.unwrap()]
            .map(|time| time.since(last_byte(&carried, 1)).0)
    };
    let document = |elements| Document { body_at: 100, elements, ..Document::default() };
    let few = after_sheet(document(0));
    assert_eq!(few[0], few[1]);
    assert_eq!(few[3] - few[2], compute.layout_ns.0 * 3 / 4 + compute.ask_ns.0);
    let later = |document| {
        let times = after_sheet(document);
        [0, 1, 2, 3].map(|at| times[at] - few[at])
    };
    let all = 1000 * compute.layout_ns_per_element.0;
    assert_eq!(later(document(1000)), [all / 4, all / 4, all / 4, all]);
    let named = Document { names_fonts: true, ..document(1000) };
    assert_eq!(later(named.clone()), [all / 4, all / 4, all / 4, all + compute.fonts_ns.0]);
    let said = Document {
        style_ns_per_element: Some(Duration(30_000)),
        style_wait_ns: Duration::from_millis(8),
        layout_wait_ns: Some(Duration::from_millis(70)),
        ..named
    };
    let style = 1000 * 30_000 + 8_000_000 - compute.layout_ns.0 / 4;
    assert_eq!(later(said), [style, style, style, all + 78_000_000]);
}

#[test]
fn a_visible_image_overtakes_one_below_also_when_it_is_asked_for_by_the_layout() {
    let styled = Resource {
        in_viewport: true,
        area: 900_000,
        ..resource(Kind::Image, 100_000, Some(Cause::Style { by: 0 }))
    };
    let carried = load(Document::default(), vec![placed(100, 400_000, 0), styled.clone()]);
    let object = carried.rows.objects.iter().find(|object| object.resource == 2).unwrap();
    assert_eq!(object.priority, Priority::High);
    let (took, left) = (object.last_byte.unwrap().0 - object.sent.unwrap().0, 100_000 * 8 * 200);
    // First come the other image's bytes in the kernel (a window of 79 kB, half of it and a frame: 216 ms)
    // and the request's way; then this image has the link alone.
    assert!(took < left + 256_000_000, "{took}");
    let hidden = Resource { in_viewport: false, ..styled };
    let hidden = load(Document::default(), vec![placed(100, 400_000, 0), hidden]);
    assert!(last_byte(&hidden, 2) > last_byte(&hidden, 1), "the server keeps to the order");
    assert!(last_byte(&carried, 2) < last_byte(&carried, 1), "the server is told");
}

#[test]
fn the_view_port_is_complete_when_its_last_image_element_is_painted() {
    let document = Document { text_area: 40_000, ..Document::default() };
    let paint = chromium().compute.paint_ns;
    let element = Resource { in_viewport: true, ..image(100, 200_000) };
    let carried = load(document.clone(), vec![element]);
    assert!(carried.rows.page.viewport_complete.unwrap() >= last_byte(&carried, 1) + paint);
    // As on the testbed, whose browser reports no paint of it.
    let styled =
        Resource { in_viewport: true, ..resource(Kind::Image, 200_000, Some(Cause::Style { by: 0 })) };
    let carried = load(document, vec![styled]);
    assert_eq!(carried.rows.page.viewport_complete, Some(last_byte(&carried, 1)));
}

#[test]
fn the_server_is_told_of_an_image_that_a_later_layout_shows() {
    let sent = |first, area| {
        let sheet = Some(Cause::Markup { by: 0, at: 50, element: Element::Stylesheet });
        let resources =
            vec![resource(Kind::Css, 20_000, sheet), placed(90, 400_000, first), placed(100, 400_000, area)];
        let carried = load(Document { body_at: 80, ..Document::default() }, resources);
        carried.bytes.iter().flat_map(|[client, _]| &client.0).sum::<u64>()
    };
    assert!(sent(0, 900_000) > sent(0, 0));
    assert_eq!(sent(900_000, 0), sent(0, 0), "it is the first already");
    assert_eq!(sent(900_000, 900_000), sent(0, 900_000), "one of two is told of");
}

#[test]
fn on_a_line_an_image_counts_where_it_stands_when_it_has_come() {
    let document = Document { text_area: 40_000, flow: Some(FLOW), ..Document::default() };
    // Nine images of 300 x 225 with stated sizes fill two lines and begin a third: 160 of 225 are seen there.
    let stated = |at| inline(300, 225, true, image(at, 30_000 + at));
    let mut resources: Vec<Resource> = (1..=9).map(stated).collect();
    resources.push(inline(300, 225, false, scripted(200_000, 0)));
    let carried = load(document.clone(), resources);
    assert!(carried.rows.objects.iter().all(|object| object.in_viewport || object.resource == 0));
    assert_eq!(carried.rows.objects.iter().filter(|object| object.in_viewport).count(), 10);
    assert!(last_byte(&carried, 10) > last_byte(&carried, 1));
    assert!(carried.rows.page.largest_contentful_paint.unwrap() < last_byte(&carried, 10));
    // Without stated sizes, the image requested last, which arrives first, stands on the first line.
    let unstated = |bytes, after| inline(300, 225, false, scripted(bytes, after));
    let mut resources: Vec<Resource> = (0..12).map(|i| unstated(300_000 + i, 0)).collect();
    resources.push(unstated(5_000, 1));
    let carried = load(document, resources);
    assert!((0..40).contains(&lag_ms(&carried, 13)), "{}", lag_ms(&carried, 13));
    assert!(!carried.rows.objects.iter().find(|object| object.resource == 13).unwrap().in_viewport);
}

#[test]
fn a_paint_follows_the_last_bytes_of_scripts_or_their_runs() {
    let script = || {
        let cause = Cause::Markup { by: 0, at: 500, element: Element::Script };
        Resource { compute_ns: Some(Duration::from_millis(300)), ..resource(Kind::Js, 20_000, Some(cause)) }
    };
    let painted = |run| {
        let first = Follows { by: vec![1], run, after_ns: Duration::from_millis(10) };
        let paints = Paints { first: Some(first), largest: None };
        let browser = Browser { compute_noise_percent: 0, ..chromium() };
        let carried = load_painting(&browser, Document::default(), vec![script()], paints);
        let after = carried.rows.page.first_paint.unwrap().0 - last_byte(&carried, 1).0;
        after / 1_000_000
    };
    assert_eq!(painted(false), 10);
    assert!((310..330).contains(&painted(true)), "{}", painted(true));
}
