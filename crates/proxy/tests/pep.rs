//! The PEP on loopback before servers of the tests' own, which may be hostile.

mod support;

use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use support::origin::{LIMIT, answer, answering, before, connect, get, head, html, with_length};
use support::{Folder, free_port, pep_run, skips};

#[test]
fn pipelined_requests_are_answered_in_their_order_with_the_origins_bytes() {
    if skips() {
        return;
    }
    let of = |path: &str| -> Vec<u8> { path.repeat(5_000).into_bytes() };
    let serve = answering(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        if path == "/0" {
            thread::sleep(Duration::from_millis(200));
        }
        with_length(&of(path))
    });
    let (pep, origin) = before(serve, |_| {});
    let mut client = connect(origin);
    let requests: String = (0..10).map(|number| get(&format!("/{number}"))).collect();
    client.write_all(requests.as_bytes()).unwrap();
    for number in 0..10 {
        let (head, body) = answer(&mut client);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nx-origin: yes\r\n"), "{head}");
        assert!(body == of(&format!("/{number}")), "answer {number}");
    }
    let local = client.local_addr().unwrap();
    drop(client);
    let summary = pep.remote.stop();
    assert_eq!([&summary["accepted"], &summary["opened"], &summary["exchanges"]], [1, 3, 10]);
    assert_eq!([&summary["congestion_differs"], &summary["ahead"]["objects"]], [0, 0]);
    assert_eq!(pep.ground.stop()["congestion_differs"], 0);
    let (remote, ground) = (pep.folder.records("remote"), pep.folder.records("ground"));
    for records in [&remote, &ground] {
        for exchange in records["exchanges"].as_array().unwrap() {
            assert_eq!((&exchange["client_port"], &exchange["whole"]), (&local.port().into(), &true.into()));
            assert_eq!((&exchange["body_bytes"], &exchange["status"]), (&10_000.into(), &200.into()));
        }
    }
    let place = ground["exchanges"][0]["connection"].as_u64().unwrap() as usize;
    assert_eq!(ground["connections"][place]["direction"], "opened");
}

#[test]
fn a_pipelined_request_that_may_change_something_is_carried_out_alone() {
    if skips() {
        return;
    }
    let (note, notes) = mpsc::channel();
    let note = std::sync::Arc::new(std::sync::Mutex::new(note));
    let serve = answering(move |request| {
        let name = request.split(" HTTP").next().unwrap().to_owned();
        let tell = |what: &str| note.lock().unwrap().send(format!("{what} {name}")).unwrap();
        tell("begin");
        thread::sleep(Duration::from_millis(100));
        tell("end");
        with_length(name.as_bytes())
    });
    let (_pep, origin) = before(serve, |_| {});
    let mut client = connect(origin);
    let post = "POST /1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
    let requests = [get("/0"), post.to_owned(), get("/2"), get("/3")].concat();
    client.write_all(requests.as_bytes()).unwrap();
    for name in ["GET /0", "POST /1", "GET /2", "GET /3"] {
        assert_eq!(answer(&mut client).1, name.as_bytes());
    }
    let order: Vec<String> = notes.try_iter().collect();
    assert_eq!(order[..4], ["begin GET /0", "end GET /0", "begin POST /1", "end POST /1"], "{order:?}");
    assert!(order[4..6].iter().all(|note| note.starts_with("begin")), "both at once: {order:?}");
}

#[test]
fn a_request_that_may_change_something_meets_no_connection_that_its_origin_has_closed() {
    if skips() {
        return;
    }
    // It says nothing of the close, as at the end of its time for idle connections.
    let serve = |mut stream: TcpStream, number| {
        head(&mut stream);
        stream.write_all(&with_length(format!("connection {number}").as_bytes())).unwrap();
    };
    let (_pep, origin) = before(serve, |_| {});
    let mut client = connect(origin);
    for number in 0..3 {
        let post = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
        client.write_all(post.as_bytes()).unwrap();
        assert_eq!(answer(&mut client).1, format!("connection {number}").into_bytes());
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn an_address_that_no_head_can_hold_is_not_fetched_ahead_and_harms_nobody() {
    if skips() {
        return;
    }
    let serve = answering(|request| match request.split(' ').nth(1).unwrap() {
        "/" => html(&format!(r#"<img src="/{}"><img src="/small">"#, "x".repeat(70_000))),
        path => with_length(path.as_bytes()),
    });
    let (pep, origin) = before(serve, |run| run["proxies"][0]["ahead"] = "markup".into());
    let mut client = connect(origin);
    let mut ask = |path: &str, accept: &str| {
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: a.test:{}\r\nAccept: {accept}\r\n\r\n", origin.port());
        client.write_all(head.as_bytes()).unwrap();
        answer(&mut client).1
    };
    assert!(ask("/", "text/html").len() > 70_000);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(ask("/small", "*/*"), b"/small");
    assert_eq!(ask("/other", "*/*"), b"/other");
    let summary = pep.remote.stop();
    assert_eq!([&summary["ahead"]["objects"], &summary["ahead"]["unused_objects"]], [1, 0], "{summary}");
}

#[test]
fn bodies_of_requests_arrive_whole_with_a_length_and_in_chunks() {
    if skips() {
        return;
    }
    let serve = |mut stream: TcpStream, _| {
        while let Some(head) = head(&mut stream) {
            let length: Option<usize> = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map(|length| length.parse().unwrap());
            let mut sum = 0_u64;
            let mut add = |bytes: &[u8]| sum += bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
            match length {
                Some(length) => {
                    let mut body = vec![0; length];
                    stream.read_exact(&mut body).unwrap();
                    add(&body);
                }
                None => loop {
                    let mut line = String::new();
                    while !line.ends_with("\r\n") {
                        let mut byte = [0];
                        stream.read_exact(&mut byte).unwrap();
                        line.push(byte[0] as char);
                    }
                    let mut chunk = vec![0; usize::from_str_radix(line.trim(), 16).unwrap() + 2];
                    stream.read_exact(&mut chunk).unwrap();
                    add(&chunk[..chunk.len() - 2]);
                    if chunk.len() == 2 {
                        break;
                    }
                },
            }
            stream.write_all(&with_length(sum.to_string().as_bytes())).unwrap();
        }
    };
    let (_pep, origin) = before(serve, |_| {});
    let body: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 7) as u8).collect();
    let sum: u64 = body.iter().map(|&byte| u64::from(byte)).sum();
    let mut client = connect(origin);
    let head = format!("POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n", body.len());
    client.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    assert_eq!(answer(&mut client).1, sum.to_string().into_bytes());
    client.write_all(b"POST /a HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    for part in body.chunks(100_000) {
        client.write_all(&[format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()).unwrap();
    }
    client.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(answer(&mut client).1, sum.to_string().into_bytes());
}

#[test]
fn what_is_no_answer_becomes_a_reset_and_harms_no_other_request() {
    if skips() {
        return;
    }
    let serve = |mut stream: TcpStream, _| {
        while let Some(request) = head(&mut stream) {
            let answer: Vec<u8> = match request.split(' ').nth(1).unwrap() {
                "/good" => with_length(b"good"),
                "/short" => b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort".to_vec(),
                "/both" => {
                    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                        .to_vec()
                }
                "/twice" => {
                    b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde".to_vec()
                }
                "/folded" => b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX: a\r\n b\r\n\r\nabcd".to_vec(),
                "/chunk" => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX".to_vec(),
                "/nonsense" => b"nonsense\r\n\r\n".to_vec(),
                "/closed" => Vec::new(),
                "/endless" => {
                    while stream.write_all(b"x-endless: yes\r\n").is_ok() {}
                    return;
                }
                "/headless" => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ");
                    while stream.write_all(&[b'y'; 4096]).is_ok() {}
                    return;
                }
                other => panic!("{other}"),
            };
            stream.write_all(&answer).unwrap();
            if !request.starts_with("GET /good") {
                return;
            }
        }
    };
    let (pep, origin) = before(serve, |_| {});
    let bad =
        ["/short", "/both", "/twice", "/folded", "/chunk", "/nonsense", "/closed", "/endless", "/headless"];
    for path in bad {
        let mut client = connect(origin);
        client.write_all((get("/good") + &get(path)).as_bytes()).unwrap();
        assert_eq!(answer(&mut client).1, b"good", "{path}");
        let mut rest = Vec::new();
        let error = client.read_to_end(&mut rest).expect_err(path).kind();
        assert_eq!(error, ErrorKind::ConnectionReset, "{path}");
        let rest = String::from_utf8(rest).unwrap();
        assert!(rest.is_empty() || ["/short", "/chunk"].contains(&path), "{path}: {rest:?}");
    }
    let mut client = connect(origin);
    client.write_all(get("/good").as_bytes()).unwrap();
    assert_eq!(answer(&mut client).1, b"good");
    assert!(pep.ground.resident() < 64 << 20);
    assert_eq!(pep.remote.stop()["lost"], json!([]));
}

#[test]
fn smuggled_requests_reach_no_origin() {
    if skips() {
        return;
    }
    let (asked, requests) = mpsc::channel();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(asked));
    let serve = answering(move |request| {
        asked.lock().unwrap().send(request.to_owned()).unwrap();
        with_length(b"answer")
    });
    let (_pep, origin) = before(serve, |_| {});
    let hidden = "GET /hidden HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let cases = [
        format!(
            "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n{hidden}"
        ),
        format!(
            "POST /x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: xchunked\r\nContent-Length: 44\r\n\r\n{hidden}"
        ),
        format!("GET /x HTTP/1.1\r\nHost: a.test\r\nX: y\r\n Content-Length: 44\r\n\r\n{hidden}"),
        format!("GET /x HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n{hidden}"),
        format!("GET /x HTTP/1.1\r\n\r\n{hidden}"),
        format!("GET /x HTTP/1.1\r\nHost: a.test\r\nContent-Length : 44\r\n\r\n{hidden}"),
        format!("GET http://user@a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n{hidden}"),
        format!("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n{hidden}"),
        format!("GET /x HTTP/1.1\r\nHost: a.test\r\nx: {}\r\n\r\n", "y".repeat(70_000)),
    ];
    for text in &cases {
        let mut client = connect(origin);
        client.write_all(text.as_bytes()).unwrap();
        let mut said = Vec::new();
        let _ = client.read_to_end(&mut said);
        let said = String::from_utf8(said).unwrap();
        let status: u16 =
            said.get(9..12).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{text}: {said}"));
        assert!((400..502).contains(&status), "{text}: {said}");
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{text}: {said}");
    }
    let rest: Vec<String> = requests.try_iter().collect();
    assert!(rest.is_empty(), "{rest:?}");
}

#[test]
fn browsers_that_do_not_read_neither_stop_others_nor_cost_more_than_the_buffers() {
    if skips() {
        return;
    }
    const BIG: usize = 20_000_000;
    let serve =
        answering(|request| with_length(&vec![b'z'; if request.contains("/big") { BIG } else { 30_000 }]));
    let (pep, origin) = before(serve, |_| {});
    let mut slow: Vec<_> = (0..30)
        .map(|_| {
            let mut client = connect(origin);
            client.write_all(get("/big").as_bytes()).unwrap();
            client
        })
        .collect();
    thread::sleep(Duration::from_secs(1));
    for _ in 0..5 {
        let mut client = connect(origin);
        client.write_all(get("/small").as_bytes()).unwrap();
        assert_eq!(answer(&mut client).1.len(), 30_000);
    }
    for side in [&pep.remote, &pep.ground] {
        assert!(side.resident() < 64 << 20, "{} bytes", side.resident());
    }
    for client in &mut slow {
        let (_, body) = answer(client);
        assert!(body.len() == BIG && body.iter().all(|&byte| byte == b'z'));
    }
    drop(slow);
    let summary = pep.remote.stop();
    assert_eq!(
        ([&summary["exchanges"], &summary["reset"]], &summary["lost"]),
        ([&json!(35), &json!(0)], &json!([]))
    );
}

#[test]
fn a_browser_that_gives_up_ends_the_fetch() {
    if skips() {
        return;
    }
    let (ended, end) = mpsc::channel();
    let ended = std::sync::Arc::new(std::sync::Mutex::new(ended));
    let serve = move |mut stream: TcpStream, _| {
        if let Some(request) = head(&mut stream) {
            if request.contains("/big") {
                stream.set_write_timeout(LIMIT).unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").unwrap();
                while stream.write_all(&[0; 100_000]).is_ok() {}
                ended.lock().unwrap().send(()).unwrap();
            } else {
                stream.write_all(&with_length(b"x")).unwrap();
            }
        }
    };
    let (pep, origin) = before(serve, |_| {});
    let mut client = connect(origin);
    client.write_all(get("/big").as_bytes()).unwrap();
    client.read_exact(&mut [0; 100_000]).unwrap();
    drop(client);
    end.recv_timeout(Duration::from_secs(20)).expect("the origin's connection ends");
    let mut client = connect(origin);
    client.write_all(get("/x").as_bytes()).unwrap();
    assert_eq!(answer(&mut client).1, b"x");
    assert_eq!(pep.remote.stop()["lost"], json!([]));
}

#[test]
fn an_answer_without_a_length_goes_on_in_chunks_and_ends_with_its_origin() {
    if skips() {
        return;
    }
    let serve = |mut stream: TcpStream, _| {
        if head(&mut stream).is_some() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end").unwrap();
        }
    };
    for compression in ["none", "gzip", "br", "zstd"] {
        let (_pep, origin) = before(serve, |run| run["proxies"][0]["compression"] = compression.into());
        let mut client = connect(origin);
        client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("transfer-encoding: chunked") && !head.contains("content-encoding"), "{head}");
        assert!(body.starts_with("d\r\nuntil the end\r\n") && body.ends_with("0\r\n\r\n"), "{body:?}");
    }
}

#[test]
fn what_came_ahead_serves_only_the_same_request_and_the_rest_is_counted() {
    if skips() {
        return;
    }
    let (asked, requests) = mpsc::channel();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(asked));
    let serve = answering(move |request| {
        let path = request.split(' ').nth(1).unwrap();
        asked.lock().unwrap().send(path.to_owned()).unwrap();
        let value = |name: &str| request.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("none");
        if path == "/" {
            let page =
                r#"<img src="same"><img src="cookie"><img src="vary"><img src="late"><img src="never">"#;
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}", page.len());
            return format!("{head}\r\n\r\n{page}").into_bytes();
        }
        if path == "/late" {
            thread::sleep(Duration::from_millis(900));
        }
        let body = format!("{path} {} {}", value("cookie: "), value("accept: "));
        let vary = if ["/vary", "/late"].contains(&path) { "Vary: Accept\r\n" } else { "" };
        format!("HTTP/1.1 200 OK\r\n{vary}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    });
    let (pep, origin) = before(serve, |run| run["proxies"][0]["ahead"] = "markup".into());
    let mut client = connect(origin);
    let mut ask = |path: &str, cookie: &str, accept: &str| {
        let host = format!("Host: a.test:{}", origin.port());
        let fields = format!("User-Agent: x\r\nCookie: {cookie}\r\nAccept: {accept}");
        client.write_all(format!("GET {path} HTTP/1.1\r\n{host}\r\n{fields}\r\n\r\n").as_bytes()).unwrap();
        String::from_utf8(answer(&mut client).1).unwrap()
    };
    ask("/", "k=1", "text/html");
    thread::sleep(Duration::from_millis(300));
    let ahead = "image/jxl,image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";
    assert_eq!(ask("/same", "k=1", "*/*"), format!("/same k=1 {ahead}"));
    assert_eq!(ask("/cookie", "k=2", "*/*"), "/cookie k=2 */*");
    assert_eq!(ask("/vary", "k=1", "*/*"), "/vary k=1 */*");
    // Its head is not there yet.
    assert_eq!(ask("/late", "k=1", "*/*"), "/late k=1 */*");
    let summary = pep.remote.stop();
    let unused = &summary["ahead"];
    assert_eq!([&unused["objects"], &unused["unused_objects"]], [5, 4], "{summary}");
    assert!(unused["unused_bytes"].as_u64() > Some(100), "{unused}");
    let ground = pep.ground.stop();
    assert_eq!(ground["ahead"]["unused_objects"], 4, "{ground}");
    let mut paths: Vec<String> = requests.try_iter().collect();
    paths.sort();
    assert_eq!(paths, ["/", "/cookie", "/cookie", "/late", "/late", "/never", "/same", "/vary", "/vary"]);
    let records = pep.folder.records("remote");
    let from = |path: &str| {
        let exchanges = records["exchanges"].as_array().unwrap();
        let of = exchanges.iter().filter(|each| each["url"].as_str().unwrap().ends_with(path));
        of.map(|each| (each["from"].as_str().unwrap(), each["wanted"].as_bool().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(from("/same"), [("ahead", true)]);
    assert_eq!(from("/cookie"), [("asked", true), ("ahead", false)]);
    assert_eq!(from("/never"), [("ahead", false)]);
}

#[test]
fn a_wrong_description_is_refused_with_its_key() {
    let folder = Folder::new();
    let run = pep_run(&folder, &[("http", "a.test")], free_port(), 1);
    let cases = [
        ("/proxies/0/connections", json!(65), "proxies[0].connections: found 65, accepted: 1 to 64"),
        ("/proxies/0/buffer_bytes", json!(10), "proxies[0].buffer_bytes: found 10,"),
        ("/proxies/0/ground", json!("x"), "proxies[0].ground: found x"),
        ("/hosts/2/address", json!(null), "hosts[2].address: found nothing"),
        ("/proxies", json!([]), "proxies: found none of kind \"pep\""),
        ("/proxies/0/classes", json!([{"dscp": 70, "share": 1.0}]), "proxies[0].classes[0].dscp: found 70"),
        ("/proxies/0/classes", json!([{"dscp": 1, "share": 0.0}]), "proxies[0].classes[0].share: found 0"),
        ("/proxies/0/classes", json!([{"dscp": 1, "share": 9.0}]), "hosts[0].dscp: found None"),
    ];
    for (key, value, text) in cases {
        let mut changed = run.clone();
        *changed.pointer_mut(key).unwrap() = value;
        let (code, message) = folder.refused("pep", &changed, "remote");
        assert!(code == 2 && message.contains(text) && message.lines().count() == 1, "{code}: {message}");
    }
}
