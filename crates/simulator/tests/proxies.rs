//! Page visits through proxies.

use serde_json::{Value, json};
use std::path::Path;
use wirepaint_page_model::catalogue::chromium;
use wirepaint_run::Run;
use wirepaint_simulator::{AheadSummary, Engine, Summary};

const UNTIL: u64 = 120_000_000_000;
const MS: u64 = 1_000_000;

/// A document of 12 kB and `images` images of `bytes` bytes, all on one host.
fn page(images: u32, bytes: u64) -> Value {
    let origin = json!({"host": "a.test", "address": "10.65.0.1", "port": 443, "encrypted": true});
    let resource = |number: u32, kind: &str, bytes: u64, cause: Value| {
        json!({"url": format!("https://a.test/{number}"), "origin": 0, "status": 200, "type": kind,
               "wire_bytes": bytes, "decoded_bytes": bytes, "cause": cause, "cacheable": true})
    };
    let markup = |number: u32| json!({"kind": "markup", "by": 0, "at": 400 + number, "element": "image"});
    let mut resources = vec![resource(0, "html", 12_000, Value::Null)];
    resources.extend((1..=images).map(|number| resource(number, "image", bytes, markup(number))));
    json!({"origins": [origin], "resources": resources})
}

/// A segment with equal links each way.
fn segment(name: &str, bit_per_s: u64, delay_ms: u64, packets: u64) -> Value {
    let direction = json!({"capacity": {"kind": "rate", "bit_per_s": bit_per_s}, "delay_ns": delay_ms * MS,
                           "queue": {"kind": "droptail", "packets": packets}});
    json!({"name": name, "down": direction, "up": direction})
}

fn host(name: &str, role: &str) -> Value {
    json!({"name": name, "role": role, "congestion": "std"})
}

/// A run of one visit. `changes` are keys of the run description.
fn description(page: Value, segments: Value, changes: Value) -> Value {
    let mut run = json!({
        "format": 5, "id": "t", "seed": 3, "trace_dir": "", "work_dir": "",
        "hosts": [host("client", "client"), host("proxy", "proxy"), host("far", "proxy"), host("server", "server")],
        "segments": segments,
        "congestion": [{"algorithm": "std", "name": "std"}],
        "browsers": {"chromium": chromium()}, "pages": {"page": page},
        "visits": [{"user_agent": "desktop", "name": "page", "timeout_ns": UNTIL, "page": "page",
                    "browser": "chromium"}],
        "until_ns": UNTIL,
    });
    run.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    run
}

fn engine(run: &Value) -> Result<Engine, String> {
    let place = Path::new("run.json");
    let run = Run::parse(run.to_string().as_bytes(), place).map_err(|e| e.to_string())?;
    Engine::new(&run, place).map_err(|e| e.to_string())
}

fn simulate(run: &Value) -> Summary {
    let summary = engine(run).unwrap().run();
    assert!(summary.faults.is_empty(), "{:?}", summary.faults);
    for visit in &summary.visits {
        assert_eq!(visit.loaded, visit.objects);
    }
    summary
}

/// The load event of the only visit, in ms.
fn load_ms(run: &Value) -> f64 {
    simulate(run).visits[0].load_event.unwrap() as f64 / 1e6
}

fn split(host: &str) -> Value {
    json!({"kind": "split", "host": host, "buffer_bytes": 262_144})
}

fn squid(changes: Value) -> Value {
    let mut squid = json!({"kind": "squid", "host": "proxy", "port": 3128, "cache": "memory",
                           "cache_bytes": 1 << 28, "warm": false, "tls": "tunnel"});
    squid.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    squid
}

#[test]
fn a_split_in_the_middle_shortens_slow_start_on_a_long_fat_path() {
    // One image of 2 MB: slow start from 10 segments takes 8 round trips of 200 ms, or of 100 ms twice at once.
    let page = page(1, 2_000_000);
    let segments =
        json!([segment("near", 1_000_000_000, 50, 10_000), segment("far", 1_000_000_000, 50, 10_000)]);
    let whole = load_ms(&description(page.clone(), segments.clone(), json!({})));
    let proxied = json!({"proxies": [split("proxy")], "path": ["near", "proxy", "far"]});
    let halved = load_ms(&description(page, segments, proxied));
    assert!((0.5..0.8).contains(&(halved / whole)), "{halved} of {whole} ms");
}

#[test]
fn a_split_beside_the_servers_sends_as_much_in_a_round_trip_as_they_do() {
    // The second answer has more segments than a relay's first send buffer holds if each was a write of its own.
    let mut page = page(1, 58_000);
    page["resources"][0]["wire_bytes"] = json!(42_000);
    let segments = json!([segment("access", 20_000_000, 300, 1_000)]);
    let whole = load_ms(&description(page.clone(), segments.clone(), json!({})));
    let proxied = json!({"proxies": [split("proxy")], "path": ["access", "proxy"]});
    let relayed = load_ms(&description(page, segments, proxied));
    assert!((relayed - whole).abs() < 30.0, "{relayed} beside {whole} ms");
}

#[test]
fn several_relays_in_a_row_load_the_same_objects() {
    let page = page(10, 30_000);
    let segments = json!([segment("near", 5_000_000, 20, 30), segment("back", 20_000_000, 20, 30)]);
    for proxies in [
        json!({"proxies": [split("proxy"), split("far")], "path": ["near", "proxy", "back", "far"]}),
        json!({"proxies": [squid(json!({})), split("far")], "path": ["near", "proxy", "far", "back"]}),
        json!({"proxies": [split("far"), squid(json!({}))], "path": ["near", "far", "back", "proxy"]}),
    ] {
        let mut run = description(page.clone(), segments.clone(), proxies);
        for http in ["h1", "h2"] {
            run["transport"] = json!({"http": http});
            simulate(&run);
        }
    }
}

#[test]
fn a_tunnel_costs_a_round_trip_before_the_first_request() {
    let mut page = page(0, 0);
    // A larger one would not fit the server's first window, which a tunnel widens.
    page["resources"][0]["wire_bytes"] = json!(2_000);
    let segments = json!([segment("access", 100_000_000, 50, 1_000)]);
    let whole = load_ms(&description(page.clone(), segments.clone(), json!({})));
    let proxied = json!({"proxies": [squid(json!({}))], "path": ["access", "proxy"]});
    let tunnelled = load_ms(&description(page, segments, proxied));
    assert!((99.0..104.0).contains(&(tunnelled - whole)), "{whole} ms, {tunnelled} ms");
}

/// Bytes that crossed the segment `back` down, for a visit through squid, and its load event in ms.
fn behind_squid(page: &Value, changes: Value) -> (u64, f64) {
    let segments = json!([segment("access", 5_000_000, 20, 50), segment("back", 50_000_000, 20, 50)]);
    let proxied = json!({"proxies": [squid(changes)], "path": ["access", "proxy", "back"], "transport": {"http": "h1"}});
    let summary = simulate(&description(page.clone(), segments, proxied));
    (summary.links["back.down"].delivered_bytes, summary.visits[0].load_event.unwrap() as f64 / 1e6)
}

#[test]
fn a_warm_squid_needs_no_server_and_a_cold_one_fetches_everything_once() {
    let mut page = page(20, 20_000);
    for encrypted in [true, false] {
        page["origins"][0]["encrypted"] = json!(encrypted);
        let warm = behind_squid(&page, json!({"warm": true, "tls": "terminate"}));
        let cold = behind_squid(&page, json!({"tls": "terminate"}));
        assert_eq!(warm.0, 0);
        // 412 kB, 21 heads and the packets' own.
        assert!((415_000..480_000).contains(&cold.0), "{}", cold.0);
        assert!(warm.1 < cold.1, "{} ms warm, {} ms cold", warm.1, cold.1);
    }
}

#[test]
fn squid_keeps_what_may_be_kept_and_what_fits() {
    let whole = page(20, 20_000);
    let mut part = whole.clone();
    part["resources"].as_array_mut().unwrap().iter_mut().step_by(2).for_each(|resource| {
        resource["cacheable"] = json!(false);
    });
    let warm = |page: &Value, changes: Value| {
        let mut settings = json!({"warm": true, "tls": "terminate"});
        settings.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        behind_squid(page, settings).0
    };
    // The document and ten images are asked for.
    assert!((212_000..250_000).contains(&warm(&part, json!({}))));
    // The first visit left the last five, and each answer on the way to them displaces one of these.
    assert!(warm(&whole, json!({"cache_bytes": 110_000})) > 412_000);
    assert_eq!(warm(&whole, json!({"cache_bytes": 420_000})), 0);
    assert!(warm(&whole, json!({"cache": "none"})) > 412_000);
    // A tunnel hides what it carries.
    assert!(warm(&whole, json!({"tls": "tunnel"})) > 412_000);
}

#[test]
fn a_second_user_finds_what_the_first_one_fetched() {
    let page = page(20, 20_000);
    let segments = json!([segment("access", 5_000_000, 20, 50), segment("back", 50_000_000, 20, 50)]);
    let proxied = json!({"proxies": [squid(json!({"tls": "terminate"}))], "path": ["access", "proxy", "back"],
                         "transport": {"http": "h1"}});
    let mut run = description(page, segments, proxied);
    let mut second = run["visits"][0].clone();
    second["after"] = json!(0);
    run["visits"].as_array_mut().unwrap().push(second);
    let fetched = simulate(&run).links["back.down"].delivered_bytes;
    assert!((415_000..480_000).contains(&fetched), "{fetched}");
}

#[test]
fn a_path_that_does_not_fit_its_proxies_is_refused_by_place() {
    let segments = json!([segment("access", 1_000_000, 50, 100)]);
    let refusal = |changes: Value| engine(&description(page(0, 0), segments.clone(), changes)).err().unwrap();
    for (changes, found) in [
        (json!({"path": ["access"]}), "path: found [\"access\"], accepted: nothing in a run without proxies"),
        (
            json!({"proxies": [split("proxy")], "path": ["access"]}),
            "path: found [\"access\"], accepted: \"proxy\", the host of a proxy, too",
        ),
        (
            json!({"proxies": [split("proxy")], "path": ["access", "far"]}),
            "path[1]: found \"far\", accepted: \"proxy\", the next host of a proxy, or a segment, each once",
        ),
        (
            json!({"proxies": [split("server")], "path": ["access", "server"]}),
            "hosts, server: role: found server, accepted: proxy",
        ),
    ] {
        assert_eq!(refusal(changes), format!("run.json: {found}"));
    }
    let ends = json!({"proxies": [squid(json!({"tls": "terminate"}))], "path": ["access", "proxy"]});
    let accepted = "tunnel, or h1 as transport.http: squid ends HTTP/1.1 alone";
    assert_eq!(refusal(ends), format!("run.json: proxies[0].tls: found terminate, accepted: {accepted}"));
    let group = json!([{"user_agent": "desktop", "name": "page", "timeout_ns": UNTIL, "page": "page",
                        "browser": "chromium", "group": "g"}]);
    let error = refusal(json!({"proxies": [split("proxy")], "path": ["access", "proxy"], "visits": group}));
    assert!(error.starts_with("run.json: visits[0]: found group, accepted: neither"), "{error}");
}

fn pep(changes: Value) -> Value {
    let mut pep = json!({"kind": "pep", "remote": "proxy", "ground": "far", "port": 4000, "connections": 4,
                         "multiplexed": false, "compression": "none", "schedule": "arrival", "ahead": "rehearsed",
                         "buffer_bytes": 4_000_000});
    pep.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    pep
}

/// A page of 30 images of 10 kB over a satellite; `None` for no proxy.
fn over_satellite(bit_per_s: u64, proxy: Option<Value>) -> Value {
    let segments = json!([segment("satellite", bit_per_s, 300, 100)]);
    let changes =
        proxy.map_or(json!({}), |proxy| json!({"proxies": [proxy], "path": ["proxy", "satellite", "far"]}));
    let mut run = description(page(30, 10_000), segments, changes);
    run["transport"] = json!({"http": "h1"});
    // The proxy's connections are there by then.
    run["visits"][0]["start_ns"] = json!(3_000 * MS);
    run
}

#[test]
fn objects_ahead_of_the_browser_shorten_a_page_load_over_a_satellite() {
    for (bit_per_s, most) in [(256_000, 0.95), (2_000_000, 0.8)] {
        let whole = load_ms(&over_satellite(bit_per_s, None)) - 3_000.0;
        for ahead in ["markup", "rehearsed"] {
            let ahead = load_ms(&over_satellite(bit_per_s, Some(pep(json!({"ahead": ahead}))))) - 3_000.0;
            assert!(ahead < most * whole, "{bit_per_s} bit/s: {ahead} of {whole} ms");
        }
    }
}

/// Load times in ms of four users who ask for the same page at once.
fn of_four_users(schedule: &str) -> Vec<f64> {
    // The first user fills the buffers of each connection before the others' requests have come.
    let settings = json!({"schedule": schedule, "ahead": "markup", "connections": 1});
    let mut run = over_satellite(1_000_000, Some(pep(settings)));
    // Without losses: a lost frame stops the users who wait for it.
    run["segments"][0] = segment("satellite", 1_000_000, 300, 10_000);
    for user in 1..4 {
        let (name, mut visit) = (format!("client{user}"), run["visits"][0].clone());
        visit["client"] = json!(name);
        run["visits"].as_array_mut().unwrap().push(visit);
        run["hosts"].as_array_mut().unwrap().push(host(&name, "client"));
    }
    simulate(&run).visits.iter().map(|visit| visit.load_event.unwrap() as f64 / 1e6 - 3_000.0).collect()
}

/// Jain's index: 1 if all are equal, 1/n if one has everything.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), v| (sum + v, squares + v * v));
    sum * sum / (values.len() as f64 * squares)
}

#[test]
fn the_fair_order_serves_equal_users_equally_and_the_papers_one_serves_some_better() {
    let [fair, arrival] = ["fair", "arrival"].map(of_four_users);
    assert!(jain(&fair) >= 0.98, "{fair:?}");
    assert!(jain(&arrival) < 0.95, "{arrival:?}");
}

#[test]
fn both_orders_and_all_settings_load_the_page() {
    for (schedule, multiplexed) in [("arrival", false), ("arrival", true), ("fair", false), ("fair", true)] {
        for ahead in ["none", "markup", "rehearsed"] {
            for (http, buffer_bytes) in [("h1", 20_000), ("h2", 4_000_000)] {
                let settings = json!({"schedule": schedule, "multiplexed": multiplexed, "ahead": ahead,
                                      "buffer_bytes": buffer_bytes});
                let mut run = over_satellite(1_000_000, Some(pep(settings)));
                run["transport"]["http"] = json!(http);
                simulate(&run);
            }
        }
    }
}

#[test]
fn what_was_sent_ahead_and_not_asked_for_is_counted() {
    let run = over_satellite(1_000_000, Some(pep(json!({}))));
    let all = simulate(&run).ahead.unwrap();
    assert_eq!((all.answers, all.unused_answers, all.unused_bytes), (30, 0, 0));
    assert!((300_000..305_000).contains(&all.bytes), "{}", all.bytes);
    // The browser gives up before it has the document. The ground side has sent the rest for it.
    let mut given_up = run.clone();
    given_up["visits"][0]["timeout_ns"] = json!(500 * MS);
    let mut second = given_up["visits"][0].clone();
    second["after"] = json!(0);
    second["timeout_ns"] = json!(UNTIL);
    given_up["visits"].as_array_mut().unwrap().push(second);
    let unused = engine(&given_up).unwrap().run().ahead.unwrap();
    assert_eq!(unused.answers - unused.unused_answers, 30, "{unused:?}");
    assert!((1..=30).contains(&unused.unused_answers), "{unused:?}");
    let mut none = run;
    none["proxies"][0]["ahead"] = json!("none");
    assert_eq!(simulate(&none).ahead.unwrap(), AheadSummary::default());
}

#[test]
fn compression_takes_load_off_the_satellite_for_texts_that_their_server_did_not_code() {
    let crossed = |headers: Value, compression: &str| {
        let mut run = over_satellite(1_000_000, Some(pep(json!({"compression": compression}))));
        run["pages"]["page"]["resources"][0]["wire_bytes"] = json!(200_000);
        run["pages"]["page"]["resources"][0]["headers"] = headers;
        simulate(&run).links["satellite.down"].delivered_bytes
    };
    let text = json!([["content-type", "text/html; charset=utf-8"]]);
    let coded = json!([["content-type", "text/html"], ["content-encoding", "gzip"]]);
    assert!(crossed(text.clone(), "gzip") + 120_000 < crossed(text, "none"));
    assert_eq!(crossed(coded.clone(), "gzip"), crossed(coded, "none"));
}

#[test]
fn squid_before_a_pep_fetches_through_it() {
    let proxies = json!({"proxies": [squid(json!({"tls": "terminate"})), pep(json!({"remote": "near"}))],
                         "path": ["proxy", "near", "satellite", "far"], "transport": {"http": "h1"}});
    let mut run = over_satellite(1_000_000, None);
    run.as_object_mut().unwrap().extend(proxies.as_object().unwrap().clone());
    run["hosts"].as_array_mut().unwrap().push(host("near", "proxy"));
    simulate(&run);
}

#[test]
fn a_page_through_proxies_loads_at_the_same_time_again() {
    for proxy in [pep(json!({"schedule": "fair"})), pep(json!({"ahead": "markup"}))] {
        let run = over_satellite(1_000_000, Some(proxy));
        assert_eq!(load_ms(&run), load_ms(&run));
    }
}
