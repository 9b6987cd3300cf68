//! What the PEP sends ahead: from where, and how much of it holds up what browsers asked for.

mod support;

use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use support::origin::{answer, answering, before, connect, head, html, origin, with_length};
use support::{Folder, Pep, address, free_port, pep_run, skips};

fn ask(client: &mut TcpStream, path: &str, port: u16) -> Vec<u8> {
    let accept = if path == "/" { "text/html" } else { "*/*" };
    let head = format!("GET {path} HTTP/1.1\r\nHost: a.test:{port}\r\nAccept: {accept}\r\n\r\n");
    client.write_all(head.as_bytes()).unwrap();
    answer(client).1
}

/// A page of `a.test` at an address, whose rehearsal asked for one image.
fn rehearsal(number: u8, port: u16, image: &str) -> Value {
    let url = |path: &str| format!("http://a.test:{port}/{path}");
    let resource = |path: &str, kind: &str, cause: Value| {
        json!({"url": url(path), "origin": 0, "status": 200, "type": kind, "cause": cause, "headers": [],
               "wire_bytes": 10, "decoded_bytes": 10})
    };
    let mut document = resource("", "html", Value::Null);
    document["document"] = json!({"body_at": 5});
    let cause = json!({"kind": "markup", "by": 0, "at": 7, "element": "image"});
    json!({"origins": [{"host": "a.test", "address": address(number), "port": port, "encrypted": false}],
           "resources": [document, resource(image, "image", cause)]})
}

#[test]
fn a_page_is_sent_ahead_from_its_own_site_where_sites_share_a_host() {
    if skips() {
        return;
    }
    for ahead in ["markup", "rehearsed"] {
        let (folder, port) = (Folder::new(), free_port());
        let (asked, requests) = mpsc::channel();
        let asked = Arc::new(Mutex::new(asked));
        let serving = |site: &'static str| {
            let asked = asked.clone();
            answering(move |request| {
                let path = request.split(' ').nth(1).unwrap().to_owned();
                asked.lock().unwrap().send(format!("{site}{path}")).unwrap();
                if path == "/" {
                    html(r#"<img src="one"><img src="two">"#)
                } else {
                    with_length(site.as_bytes())
                }
            })
        };
        let [first, second] = [origin(1, serving("first")), origin(2, serving("second"))];
        let mut run = pep_run(&folder, &[("http", "a.test")], port, first);
        run["proxies"][0]["ahead"] = ahead.into();
        let mut other = run["sites"]["a"].clone();
        other["origins"][0]["address"] = address(2).into();
        other["origins"][0]["listen_port"] = second.into();
        run["sites"]["b"] = other;
        // One page in two view ports, and another site's page with the same address.
        run["pages"] = json!({"large": rehearsal(1, port, "one"), "small": rehearsal(1, port, "two"),
                              "third": rehearsal(2, port, "three")});
        let pep = Pep::start(folder, &run);
        let mut client = connect(format!("{}:{port}", address(1)).parse().unwrap());
        ask(&mut client, "/", port);
        thread::sleep(Duration::from_millis(300));
        assert_eq!(ask(&mut client, "/one", port), b"first");
        let mut paths: Vec<String> = requests.try_iter().collect();
        paths.sort();
        assert_eq!(paths, ["first/", "first/one", "first/two"], "{ahead}");
        assert_eq!(pep.remote.stop()["ahead"]["unused_objects"], 1, "{ahead}");
    }
}

#[test]
fn what_browsers_asked_for_does_not_wait_for_what_is_fetched_ahead() {
    if skips() {
        return;
    }
    // As many as are fetched ahead at once never end.
    const ENDLESS: usize = 32;
    let serve = |mut stream: TcpStream, _| {
        while let Some(request) = head(&mut stream) {
            let path = request.split(' ').nth(1).unwrap();
            if path == "/" {
                let images: String = (0..40).map(|number| format!(r#"<img src="image{number}">"#)).collect();
                stream.write_all(&html(&images)).unwrap();
                continue;
            }
            let number = path.strip_prefix("/image").map_or(usize::MAX, |number| number.parse().unwrap());
            if number < ENDLESS {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin").unwrap();
                thread::sleep(Duration::from_secs(60));
            }
            stream.write_all(&with_length(path.as_bytes())).unwrap();
        }
    };
    let (pep, origin) = before(serve, |run| run["proxies"][0]["ahead"] = "markup".into());
    let mut client = connect(origin);
    ask(&mut client, "/", origin.port());
    thread::sleep(Duration::from_millis(300));
    assert_eq!(ask(&mut client, "/asked", origin.port()), b"/asked");
    assert_eq!(ask(&mut client, "/image39", origin.port()), b"/image39");
    let ahead = &pep.remote.stop()["ahead"];
    assert_eq!([&ahead["objects"], &ahead["unused_objects"]], [40, 39], "{ahead}");
}
