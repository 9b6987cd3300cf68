//! Pages that light users load through both sides of the PEP, from the real replay server.

mod support;

use serde_json::{Value, json};
use std::process::Command;
use support::{Folder, Pep, address, free_port, pep_run, skips};
use wirepaint_page_model::{Browser, catalogue::chromium};

const IMAGES: usize = 8;
const HOSTS: [&str; 2] = ["a.test", "b.test"];

/// A page with a style sheet, which has an image, a script and images of two hosts: address, type, body, cause.
fn page(scheme: &str, port: u16) -> Vec<(String, &'static str, String, Value)> {
    let url = |host: usize, path: &str| format!("{scheme}://{}:{port}/{path}", HOSTS[host]);
    let element = |at: usize, element: &str| json!({"kind": "markup", "by": 0, "at": at, "element": element});
    let mut document = String::from(r#"<!doctype html><link rel="stylesheet" href="/style.css">"#);
    document += &format!(r#"<script src="{}"></script>"#, url(1, "script.js"));
    let images: Vec<_> = (0..IMAGES).map(|number| url(number % 2, &format!("image{number}.png"))).collect();
    images.iter().for_each(|image| document += &format!(r#"<img src="{image}">"#));
    document += &"<p>text of the page</p>".repeat(500);
    let style = "body { background: url(back.png) }".to_owned() + &"p { margin: 1px }\n".repeat(500);
    let mut all = vec![
        (url(0, ""), "html", document, Value::Null),
        (url(0, "style.css"), "css", style, element(20, "stylesheet")),
        (url(1, "script.js"), "js", "var x = 1;\n".repeat(2000), element(30, "script")),
        (
            url(0, "back.png"),
            "image",
            "b".repeat(5000),
            json!({"kind": "markup", "by": 0, "at": 40, "element": "image"}),
        ),
    ];
    for (number, image) in images.into_iter().enumerate() {
        all.push((image, "image", "x".repeat(9_000 + number), element(50 + number, "image")));
    }
    all
}

/// What came of visits through the PEP.
struct Told {
    visits: Vec<Value>,
    remote: Value,
    ground: Value,
    remote_records: Value,
    asked: Vec<String>,
}

fn load(encrypted: bool, http: &str, users: u8, change: impl Fn(&mut Value)) -> Told {
    let (folder, port) = (Folder::new(), free_port());
    let scheme = if encrypted { "https" } else { "http" };
    let mut run = pep_run(&folder, &[(scheme, HOSTS[0]), (scheme, HOSTS[1])], port, free_port());
    let types =
        [("html", "text/html"), ("css", "text/css"), ("js", "text/javascript"), ("image", "image/png")];
    let (mut resources, mut responses) = (Vec::new(), Vec::new());
    for (number, (url, kind, body, cause)) in page(scheme, port).into_iter().enumerate() {
        let file = folder.0.join(format!("body{number}"));
        std::fs::write(&file, &body).unwrap();
        let kind_of = types.iter().find(|(name, _)| *name == kind).unwrap().1;
        let headers = json!([["content-type", kind_of]]);
        let host = usize::from(url.contains(HOSTS[1]));
        responses.push(json!({"method": "GET", "url": url, "status": 200, "headers": headers, "body": file}));
        resources.push(json!({"url": url, "origin": host, "status": 200, "type": kind, "cause": cause,
                              "headers": headers, "wire_bytes": body.len(), "decoded_bytes": body.len()}));
    }
    resources[0]["document"] = json!({"body_at": 45});
    let origins: Vec<_> = (0..2)
        .map(|host| json!({"host": HOSTS[host], "address": address(host as u8 + 1), "port": port, "encrypted": encrypted}))
        .collect();
    run["pages"] = json!({"page": {"origins": origins, "resources": resources}});
    run["browsers"] = json!({"light": Browser { compute_noise_percent: 0, ..chromium() }});
    run["sites"]["a"]["responses"] = responses.into();
    run["transport"] = json!({"http": http});
    run["hosts"].as_array_mut().unwrap().remove(0);
    for user in 0..users {
        let client = json!({"name": format!("client{user}"), "role": "client", "address": format!("127.0.0.{}", user + 1),
                            "congestion": "cubic"});
        run["hosts"].as_array_mut().unwrap().push(client);
    }
    let congestion = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    for host in run["hosts"].as_array_mut().unwrap().iter_mut().filter(|host| host["role"] == "client") {
        host["congestion"] = congestion.trim().into();
    }
    run["visits"] = (0..users)
        .map(|user| {
            json!({"user_agent": "light", "name": "page", "timeout_ns": 20_000_000_000_u64, "page": "page",
                           "browser": "light", "client": format!("client{user}")})
        })
        .collect();
    change(&mut run);
    let server = folder.start("replay", &run, "");
    let authority = server.ready["ca_spki_sha256"].as_str().unwrap().to_owned();
    let pep = Pep::start(folder, &run);
    let mut light: Command = pep.folder.command("light", &run, &authority);
    let output = light.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = |name: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(pep.folder.0.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let visits = lines("light-visits.jsonl");
    let (remote, ground) = (pep.remote.stop(), pep.ground.stop());
    server.stop();
    let asked =
        lines("server-requests.jsonl").iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect();
    Told { visits, remote, ground, remote_records: pep.folder.records("remote"), asked }
}

impl Told {
    /// Every visit had every resource with all its bytes.
    fn is_complete(&self, users: usize) {
        assert_eq!(self.visits.len(), users);
        for visit in &self.visits {
            assert_eq!(visit["failed"], Value::Null, "{visit}");
            let requests = visit["requests"].as_array().unwrap();
            assert_eq!(requests.len(), 4 + IMAGES);
            for request in requests {
                assert_eq!(request["status"], 200, "{request}");
                assert!(request["encoded_bytes"].as_u64() > request["decoded_bytes"].as_u64(), "{request}");
            }
        }
        for side in [&self.remote, &self.ground] {
            assert_eq!((&side["refused"], &side["congestion_differs"]), (&json!(0), &json!(0)), "{side}");
        }
        assert_eq!((&self.remote["lost"], &self.ground["lost"]), (&json!([]), &json!([])));
    }

    /// Bytes of a resource between the sides, and those that the browser got.
    fn bytes(&self, name: &str) -> [u64; 2] {
        let exchanges = self.remote_records["exchanges"].as_array().unwrap();
        let of = exchanges.iter().find(|each| each["url"].as_str().unwrap().ends_with(name)).unwrap();
        ["link_bytes", "body_bytes"].map(|key| of[key].as_u64().unwrap())
    }
}

#[test]
fn a_page_is_loaded_over_each_version_of_http_and_what_came_ahead_is_used() {
    if skips() {
        return;
    }
    for (encrypted, http) in [(false, "h1"), (true, "h1"), (true, "h2")] {
        let told = load(encrypted, http, 1, |run| run["proxies"][0]["ahead"] = "markup".into());
        told.is_complete(1);
        let ahead = &told.remote["ahead"];
        assert_eq!(ahead["unused_objects"], 0, "{http}: {ahead}");
        assert!(ahead["objects"].as_u64() >= Some(6), "{http}: {ahead}");
        let mut asked = told.asked.clone();
        asked.sort();
        asked.dedup();
        assert_eq!((asked.len(), told.asked.len()), (4 + IMAGES, 4 + IMAGES), "nothing is fetched twice");
    }
}

#[test]
fn nothing_is_sent_ahead_where_nothing_is_asked_for() {
    if skips() {
        return;
    }
    let told = load(true, "h2", 1, |_| {});
    told.is_complete(1);
    assert_eq!(told.remote["ahead"]["objects"], 0);
}

#[test]
fn text_is_compressed_between_the_sides_and_images_are_not() {
    if skips() {
        return;
    }
    for compression in ["gzip", "br", "zstd"] {
        let told = load(false, "h1", 1, |run| {
            run["proxies"][0]["compression"] = compression.into();
            run["proxies"][0]["ahead"] = "markup".into();
        });
        told.is_complete(1);
        let [link, body] = told.bytes("script.js");
        assert!(body == 22_000 && link < 2_000, "{compression}: {link} of {body}");
        let [link, body] = told.bytes("image3.png");
        assert!(body == 9_003 && link > body, "{compression}: {link} of {body}");
    }
}

#[test]
fn several_users_have_the_paper_s_order_or_the_fair_one() {
    if skips() {
        return;
    }
    for (schedule, multiplexed) in [("arrival", false), ("arrival", true), ("fair", false), ("fair", true)] {
        let told = load(false, "h1", 4, |run| {
            run["proxies"][0]["ahead"] = "markup".into();
            run["proxies"][0]["schedule"] = schedule.into();
            run["proxies"][0]["multiplexed"] = multiplexed.into();
        });
        told.is_complete(4);
        assert_eq!(told.remote["ahead"]["unused_objects"], 0, "{schedule}");
    }
}

#[test]
fn what_rehearsals_asked_for_is_sent_ahead() {
    if skips() {
        return;
    }
    let told = load(true, "h2", 1, |run| run["proxies"][0]["ahead"] = "rehearsed".into());
    told.is_complete(1);
    assert_eq!(told.remote["ahead"]["objects"], 3 + IMAGES, "{}", told.remote["ahead"]);
    assert_eq!(told.remote["ahead"]["unused_objects"], 0);
}

#[test]
fn classes_have_connections_of_their_own() {
    if skips() {
        return;
    }
    let told = load(false, "h1", 2, |run| {
        run["proxies"][0]["classes"] = json!([{"dscp": 46, "share": 70.0}, {"dscp": 0, "share": 30.0}]);
        let hosts = run["hosts"].as_array_mut().unwrap();
        hosts.iter_mut().find(|host| host["name"] == "client0").unwrap()["dscp"] = 46.into();
    });
    told.is_complete(2);
    let connections = told.remote_records["connections"].as_array().unwrap();
    let opened: Vec<_> = connections.iter().filter(|each| each["direction"] == "opened").collect();
    assert_eq!(opened.len(), 6);
    for pool in [&opened[..3], &opened[3..]] {
        let received: u64 = pool.iter().map(|each| each["bytes_received"].as_u64().unwrap()).sum();
        assert!((120_000..140_000).contains(&received), "{received} bytes of one user");
    }
}
