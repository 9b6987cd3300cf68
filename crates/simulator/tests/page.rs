//! Page visits as runs.

use serde_json::{Value, json};
use std::path::Path;
use wirepaint_page_model::catalogue::chromium;
use wirepaint_run::Run;
use wirepaint_simulator::{Engine, Summary};

const UNTIL: u64 = 60_000_000_000;

/// A document of 12 kB with a stylesheet and `images` images of 60 kB, on two hosts.
fn page(images: u32) -> Value {
    let origin = |host: &str, number: u8| json!({"host": host, "address": format!("10.65.0.{number}"), "port": 443, "encrypted": true});
    let resource = |url: String, origin: u32, kind: &str, bytes: u64, cause: Value| {
        json!({"url": url, "origin": origin, "status": 200, "type": kind, "wire_bytes": bytes,
               "decoded_bytes": bytes, "think_ns": 2_000_000, "cause": cause})
    };
    let markup = |at: u64, element: &str| json!({"kind": "markup", "by": 0, "at": at, "element": element});
    let mut resources = vec![
        resource("https://a.test/".to_owned(), 0, "html", 12_000, Value::Null),
        resource("https://b.test/s.css".to_owned(), 1, "css", 30_000, markup(100, "stylesheet")),
    ];
    resources.extend((0..images).map(|i| {
        resource(
            format!("https://a.test/{i}.jpg"),
            i % 2,
            "image",
            60_000,
            markup(500 + u64::from(i), "image"),
        )
    }));
    resources[0]["document"] = json!({"body_at": 400});
    json!({"origins": [origin("a.test", 1), origin("b.test", 2)], "resources": resources})
}

fn visit(images: u32) -> Value {
    json!({"user_agent": "desktop", "name": "page", "timeout_ns": UNTIL, "page": page(images),
           "browser": "chromium"})
}

/// The pages of visits, by the place of the visit, and the visits with that name in place of the page.
fn apart(visits: &[Value]) -> (Value, Vec<Value>) {
    let mut visits = visits.to_vec();
    let pages = visits.iter_mut().enumerate().map(|(place, visit)| {
        let name = place.to_string();
        (name.clone(), std::mem::replace(&mut visit["page"], json!(name)))
    });
    (pages.collect(), visits)
}

/// `rate` in bit/s, `None` for no bottleneck; the queue holds `queue` packets.
fn simulate(http: &str, rate: Option<u64>, delay_ms: u64, queue: u64, visits: &[Value]) -> Summary {
    let capacity =
        rate.map_or(json!({"kind": "unlimited"}), |rate| json!({"kind": "rate", "bit_per_s": rate}));
    let direction = json!({"capacity": capacity, "delay_ns": delay_ms * 1_000_000,
                           "queue": {"kind": "droptail", "packets": queue}});
    let (pages, visits) = apart(visits);
    let run = json!({
        "format": 5, "id": "t", "seed": 3, "trace_dir": "", "work_dir": "",
        "hosts": [{"name": "client", "role": "client", "congestion": "std"},
                  {"name": "server", "role": "server", "congestion": "std"}],
        "segments": [{"name": "access", "down": direction, "up": direction}],
        "congestion": [{"algorithm": "std", "name": "std"}],
        "transport": {"http": http},
        "browsers": {"chromium": chromium()}, "pages": pages, "visits": visits, "until_ns": UNTIL,
    });
    let place = Path::new("run.json");
    let run = Run::parse(run.to_string().as_bytes(), place).unwrap();
    Engine::new(&run, place).unwrap().run()
}

fn assert_loaded(summary: &Summary, objects: usize) {
    assert!(summary.faults.is_empty(), "{:?}", summary.faults);
    for visit in &summary.visits {
        assert_eq!((visit.loaded, visit.objects), (objects, objects));
        assert!(visit.load_event.is_some());
    }
}

#[test]
fn a_page_loads_over_each_http_version_and_through_loss() {
    for http in ["h1", "h2"] {
        // 1.2 MB at 8 Mbit/s take 1.2 s; a queue of 12 packets makes slow start lose some.
        let summary = simulate(http, Some(8_000_000), 20, 12, &[visit(20)]);
        assert_loaded(&summary, 22);
        assert!(summary.links["access.down"].queue_drops > 0, "the path was meant to lose packets");
        let load = summary.visits[0].load_event.unwrap();
        assert!((1_300_000_000..4_000_000_000).contains(&load), "{load} ns with {http}");
    }
}

#[test]
fn a_page_loads_over_a_path_that_adds_nothing() {
    for http in ["h1", "h2"] {
        let summary = simulate(http, None, 0, 1000, &[visit(40)]);
        assert_loaded(&summary, 42);
        assert!(summary.visits[0].load_event.unwrap() < 1_000_000_000);
    }
}

#[test]
fn two_users_share_the_bottleneck() {
    let alone = simulate("h2", Some(8_000_000), 20, 60, &[visit(20)]);
    let both = simulate("h2", Some(8_000_000), 20, 60, &[visit(20), visit(20)]);
    assert_loaded(&both, 22);
    let (alone, last) = (&alone.visits[0], both.visits.iter().map(|visit| visit.load_event).max().unwrap());
    assert!(last.unwrap() > alone.load_event.unwrap() * 3 / 2);
}

#[test]
fn a_visit_whose_time_is_up_is_unfinished_also_at_the_end_of_the_run() {
    let late = json!({"timeout_ns": 150_000_000});
    let mut asked = visit(20);
    asked.as_object_mut().unwrap().extend(late.as_object().unwrap().clone());
    let summary = simulate("h2", Some(1_000_000), 20, 50, &[asked]);
    assert_eq!((summary.unfinished, summary.visits[0].load_event), (1, None));
}
