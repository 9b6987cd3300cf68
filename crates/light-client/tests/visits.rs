//! Light users against the real replay server on loopback.

mod support;

use serde_json::{Value, json};
use support::{Run, Site, browser, load_ms, request, visit};
use wirepaint_observed_sockets::monotonic;
use wirepaint_page_model::Browser;

/// A document with a style sheet, a script and images, from two hosts.
fn usual(hosts: [u8; 2], encrypted: bool) -> Site {
    let mut site = Site::new(&hosts, encrypted, 20_000);
    site.element(0, "css", 10_000, "stylesheet");
    site.element(1, "js", 30_000, "script");
    for _ in 0..8 {
        site.element(1, "image", 25_000, "image");
    }
    site
}

fn connections(visit: &Value) -> Vec<&Value> {
    visit["connections"].as_array().unwrap().iter().collect()
}

#[test]
fn a_page_is_loaded_over_each_version_of_http() {
    let cases = [(false, "h1", "http/1.1", 6), (true, "h1", "http/1.1", 6), (true, "h2", "h2", 1)];
    for (encrypted, http, protocol, most) in cases {
        let hosts = [most as u8 + u8::from(encrypted) * 2, most as u8 + 1 + u8::from(encrypted) * 2];
        let told = Run::new(&usual(hosts, encrypted), &browser(), http).carry_out();
        let visit = told.loaded();
        let requests = visit["requests"].as_array().unwrap();
        assert_eq!(requests.len(), 11);
        for request in requests {
            assert_eq!([&request["status"], &request["protocol"]], [&json!(200), &json!(protocol)]);
            let order = ["discovered", "queued", "sent", "first_byte", "last_byte"];
            let order =
                order.map(|key| request[key].as_u64().unwrap_or_else(|| panic!("{key} of {request}")));
            assert!(order.is_sorted(), "{request}");
            let [encoded, decoded] =
                ["encoded_bytes", "decoded_bytes"].map(|key| request[key].as_u64().unwrap());
            assert!((decoded + 20..decoded + 500).contains(&encoded), "{request}");
        }
        let used: Vec<_> = connections(visit).into_iter().filter(|c| c["requests"] != 0).collect();
        for host in ["host0.test", "host1.test"] {
            assert!(used.iter().filter(|connection| connection["host"] == host).count() <= most);
        }
        for connection in used {
            assert_eq!(connection["tls"], if encrypted { json!("TLS 1.3") } else { Value::Null });
            assert_eq!(connection["protocol"], if encrypted { json!(protocol) } else { Value::Null });
            assert!(
                connection["received"].as_u64() > Some(10_000) && connection["client_port"] != Value::Null
            );
            // As the kernel tells it: the run asks for the namespace's own.
            let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
            for key in ["congestion", "congestion_end"] {
                assert_eq!(connection[key], default.trim());
            }
        }
        let mut asked: Vec<_> = told.asked.iter().map(|request| request["url"].to_string()).collect();
        asked.sort();
        asked.dedup();
        assert_eq!((asked.len(), told.asked.len()), (11, 11));
        assert!(told.asked.iter().all(|request| request["matched"] == "exact"));
    }
}

#[test]
fn parallel_connections_resume_the_session_of_the_first() {
    let mut site = Site::new(&[20], true, 5_000);
    for _ in 0..12 {
        site.element(0, "image", 20_000, "image");
    }
    let told = Run::new(&site, &browser(), "h1").carry_out();
    let resumed = connections(told.loaded()).iter().filter(|c| c["resumed"] == true).count();
    assert!((1..6).contains(&resumed), "{resumed} of {}", connections(told.loaded()).len());
}

#[test]
fn a_pipelined_request_does_not_wait_for_the_answer_before_it() {
    let mut site = Site::new(&[21], false, 5_000);
    for _ in 0..6 {
        let image = site.element(0, "image", 5_000, "image");
        site.resource(image)["think_ns"] = json!(60_000_000);
    }
    let time = |pipeline| {
        let browser = Browser { connections_per_origin: 1, pipeline, ..browser() };
        let told = Run::new(&site, &browser, "h1").carry_out();
        let visit = told.loaded();
        assert_eq!(connections(visit).len(), 1);
        let early = (1..6)
            .filter(|&n| request(visit, n + 1)["sent"].as_u64() < request(visit, n)["first_byte"].as_u64());
        early.count()
    };
    assert_eq!([time(1), time(8)], [0, 5]);
}

#[test]
fn redirects_posts_and_answers_without_a_body_are_followed() {
    for http in ["h1", "h2"] {
        let n = if http == "h1" { 22 } else { 23 };
        let mut site = Site::new(&[n], true, 5_000);
        let script = site.element(0, "js", 3_000, "script");
        let by_script = json!({"kind": "script", "by": script});
        let post = site.add(0, "data", 100, by_script.clone());
        site.resource(post)["method"] = json!("POST");
        site.resource(post)["post_bytes"] = json!(100_000);
        let beacon = site.add(0, "data", 0, by_script);
        site.resource(beacon)["status"] = json!(204);
        let moved = site.element(0, "image", 0, "image");
        site.resource(moved)["status"] = json!(302);
        site.resource(moved)["headers"] = json!([["location", "/target"]]);
        let target = site.add(0, "image", 9_000, json!({"kind": "redirect", "by": moved}));
        let told = Run::new(&site, &browser(), http).carry_out();
        let visit = told.loaded();
        let statuses: Vec<_> = (0..6).map(|n| request(visit, n)["status"].as_u64().unwrap()).collect();
        assert_eq!(statuses, [200, 200, 200, 204, 302, 200], "{http}");
        assert_eq!(request(visit, target)["initiator_type"], "redirect");
        assert!(request(visit, target)["discovered"].as_u64() >= request(visit, moved)["last_byte"].as_u64());
        let methods: Vec<_> = told.asked.iter().map(|asked| asked["method"].as_str().unwrap()).collect();
        assert_eq!(methods.iter().filter(|method| **method == "POST").count(), 1, "{http}");
    }
}

#[test]
fn what_the_cache_holds_is_not_asked_for_or_only_confirmed() {
    for (encrypted, http) in [(false, "h1"), (true, "h1"), (true, "h2")] {
        let host = if encrypted { 41 } else { 40 } + u8::from(http == "h2");
        let mut site = Site::new(&[host], encrypted, 5_000);
        for (number, cached) in [(1, "fresh"), (2, "stale")] {
            site.element(0, "image", 30_000, "image");
            let image = site.resource(number);
            image["headers"] = json!([["last-modified", "Sat, 26 Oct 1985 08:15:00 GMT"]]);
            image["cached"] = json!(cached);
        }
        let told = Run::new(&site, &browser(), http).carry_out();
        let visit = told.loaded();
        let [fresh, stale] = [1, 2].map(|number| request(visit, number));
        assert_eq!([&fresh["connection"], &fresh["sent"]], [&Value::Null; 2]);
        assert_eq!([&fresh["status"], &stale["status"]], [&json!(200); 2]);
        assert!(fresh["last_byte"].is_u64() && fresh["encoded_bytes"] == 0);
        assert!((20..300).contains(&stale["encoded_bytes"].as_u64().unwrap()), "{stale}");
        assert_eq!(told.asked.len(), 2, "document and confirmation");
    }
}

#[test]
fn the_server_learns_the_priorities_of_http2() {
    let told = Run::new(&usual([24, 25], true), &browser(), "h2").carry_out();
    let priority = |number: usize| {
        let ends = |asked: &&Value| asked["url"].as_str().unwrap().ends_with(&format!("/{number}"));
        told.asked.iter().find(ends).unwrap()["priority"].clone()
    };
    assert_eq!([priority(0), priority(1), priority(2)], [json!("u=0, i"), json!("u=0"), json!("u=1")]);
    assert_eq!(priority(10), json!("i"));
}

#[test]
fn a_slow_answer_takes_its_time_and_ends_a_visit_at_its_timeout() {
    let mut site = Site::new(&[26], true, 5_000);
    let slow = site.element(0, "js", 5_000, "script");
    site.resource(slow)["think_ns"] = json!(300_000_000);
    let short = json!({"user_agent": "light", "name": "page", "timeout_ns": 200_000_000, "page": "page",
                       "browser": "light"});
    let told = Run::new(&site, &browser(), "h2").visits([visit(), short]).carry_out();
    let times = ["sent", "first_byte"].map(|key| request(&told.visits[0], slow)[key].as_u64().unwrap());
    assert!((300_000_000..600_000_000).contains(&(times[1] - times[0])));
    assert_eq!(told.visits[0]["failed"], Value::Null);
    assert_eq!(told.cause(1), "no load event within 0.2 s");
    assert_eq!(request(&told.visits[1], slow)["last_byte"], Value::Null);
    assert_eq!([&told.summary["visits"], &told.summary["failed"]], [2, 1]);
}

#[test]
fn a_visit_begins_after_the_load_event_of_the_one_that_it_waits_for() {
    let later = json!({"user_agent": "light", "name": "page", "timeout_ns": 9_000_000_000_u64, "page": "page",
                       "browser": "light", "after": 0, "start_ns": 50_000_000});
    let site = Site::new(&[27], false, 5_000);
    let told = Run::new(&site, &browser(), "h1").visits([visit(), later]).carry_out();
    let wait =
        told.visits[1]["navigation_start"].as_u64().unwrap() - told.visits[0]["load_event"].as_u64().unwrap();
    assert!((50_000_000..150_000_000).contains(&wait), "{wait}");
}

#[test]
fn only_the_authority_of_the_run_is_trusted() {
    let run = Run::new(&Site::new(&[28], true, 5_000), &browser(), "h2");
    let server = run.serve();
    let other = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for authority in [None, Some(other)] {
        let cause = run.visit(authority).visits[0]["failed"].as_str().unwrap().to_owned();
        assert!(cause.contains("host28.test"), "{cause}");
        assert!(cause.ends_with("TLS: invalid peer certificate: UnknownIssuer"), "{cause}");
    }
    drop(server);
    let output = run.light(Some("short"));
    assert_eq!(output.status.code(), Some(2));
    let message = "--ca-spki-sha256: found \"short\", accepted: base64 of 32 bytes\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
}

#[test]
fn a_name_that_the_certificate_lacks_is_refused() {
    let mut run = Run::new(&Site::new(&[29], true, 5_000), &browser(), "h2");
    // The server answers a hello without a known name with no certificate at all.
    run.description["pages"]["page"]["origins"][0]["host"] = json!("other.test");
    let cause = run.carry_out().cause(0).to_owned();
    assert!(cause.contains("other.test") && cause.contains("TLS: "), "{cause}");
}

#[test]
fn two_hundred_users_load_their_pages_at_once() {
    let site = usual([30, 31], true);
    let started = |n: u64| {
        let mut visit = visit();
        visit["start_ns"] = json!(n * 20_000_000);
        visit
    };
    let told = Run::new(&site, &browser(), "h2").visits((0..200).map(started)).carry_out();
    assert_eq!([&told.summary["visits"], &told.summary["failed"]], [200, 0]);
    assert_eq!(told.asked.len(), 200 * 11);
    println!("longest lateness: {} ms", told.summary["late_ns"].as_f64().unwrap() / 1e6);
    let mut times: Vec<f64> = told.visits.iter().map(load_ms).collect();
    times.sort_by(f64::total_cmp);
    println!("load times: {:.1} to {:.1} ms, median {:.1}", times[0], times[199], times[100]);
}

#[test]
fn a_wrong_description_is_refused_by_key() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 5] = [
        (|run| run["visits"][0]["page"] = json!("b"), "visits[0].page: found \"b\", accepted: \"page\""),
        (
            |run| run["visits"][0]["browser"] = json!("b"),
            "visits[0].browser: found \"b\", accepted: \"light\"",
        ),
        (
            |run| run["hosts"][1]["address"] = Value::Null,
            "hosts, client: address: found nothing, accepted: an IPv4 address",
        ),
        (
            |run| run["pages"]["page"]["resources"][0]["url"] = json!("/x"),
            "pages.page.resources[0].url: found /x, accepted: an address with scheme and host",
        ),
        (
            |run| run["browsers"]["light"]["pipeline"] = json!(0),
            "browsers.light.pipeline: found 0, accepted: 1 to 255",
        ),
    ];
    for (change, refusal) in cases {
        let mut run = Run::new(&Site::new(&[32], false, 5_000), &browser(), "h1");
        change(&mut run.description);
        let output = run.light(None);
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.trim_end().ends_with(refusal), "{message}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn visits_count_from_the_time_that_is_told() {
    let mut later = visit();
    later["start_ns"] = json!(30_000_000);
    let run = Run::new(&Site::new(&[33], false, 5_000), &browser(), "h1").visits([later]);
    let server = run.serve();
    let begin = monotonic() + 200_000_000;
    let output = run.told(&format!("{begin}\n"));
    assert!(output.stdout.starts_with(b"{\"ready\":true}\n"));
    let late = run.visited()[0]["navigation_start"].as_u64().unwrap() - (begin + 30_000_000);
    assert!(late < 50_000_000, "{late} ns");
    drop(server);
    let refusal = run.told("soon\n");
    assert_eq!(refusal.status.code(), Some(2));
    let message = "standard input: found \"soon\", accepted: nanoseconds of the run\n";
    assert_eq!(String::from_utf8(refusal.stderr).unwrap(), message);
}
