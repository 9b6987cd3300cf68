//! HTTP/1.1 in plain and over TLS, the records, and refusals.

mod support;

use serde_json::json;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use support::{Dice, Folder, address, connect, connect_tls, say};

fn get(path: &str, more: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: origin.test:8080\r\n{more}\r\n").into_bytes()
}

/// Reads one response with a body of `length` bytes: head and body.
fn response(stream: &mut impl Read, length: usize) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (String::from_utf8(head).unwrap(), body)
}

#[test]
fn a_connection_serves_request_after_request_and_its_records_say_so() {
    let (folder, address) = (Folder::new(), &address(1));
    let body: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    let run = folder.run(
        &[&format!("{address}:8080 http origin.test")],
        &[
            ("GET", "http://origin.test:8080/page", 200, json!([["Content-Type", "text/html"]]), b"first"),
            ("GET", "http://origin.test:8080/page", 200, json!([["Content-Type", "text/html"]]), b"later"),
            ("GET", "http://origin.test:8080/large?v=1", 200, json!([["ETag", "\"1\""]]), &body),
            ("GET", "http://origin.test:8080/away", 302, json!([["Location", "/page"]]), b""),
        ],
    );
    let server = folder.start(&run);
    let mut stream = connect(&format!("{address}:8080"));
    stream.write_all(&get("/page", "")).unwrap();
    let (head, first) = response(&mut stream, 5);
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\ncontent-length: 5\r\ndate: "),
        "{head}"
    );
    assert_eq!(first, b"first");
    // Two requests in one write: the second is answered after the first.
    stream.write_all(&[get("/page", ""), get("/large?v=2", "Priority: u=1\r\n")].concat()).unwrap();
    assert_eq!(response(&mut stream, 5).1, b"later");
    assert_eq!(response(&mut stream, body.len()).1, body);
    stream.write_all(&get("/away", "")).unwrap();
    assert!(response(&mut stream, 0).0.contains("\r\nLocation: /page\r\n"));
    stream.write_all(&get("/nowhere", "")).unwrap();
    assert!(response(&mut stream, 0).0.starts_with("HTTP/1.1 404 "));
    let port = stream.local_addr().unwrap().port();
    drop(stream);
    std::thread::sleep(Duration::from_millis(100));
    let open = connect(&format!("{address}:8080"));
    std::thread::sleep(Duration::from_millis(100));
    let left = server.stop();
    drop(open);

    assert_eq!(left.summary["connections"], 2);
    assert_eq!(left.summary["requests"], 5);
    assert_eq!(left.summary["unmatched"], 1);
    assert_eq!(left.summary["matched_by_query"], 1);
    assert_eq!(left.summary["congestion_differs"], 0);
    let connection = &left.connections[0];
    assert_eq!(connection["client_port"], port);
    assert_eq!(connection["server_address"], address.as_str());
    assert_eq!(connection["protocol"], "http/1.1");
    assert_eq!((&connection["congestion"], &connection["congestion_end"]), (&json!("reno"), &json!("reno")));
    assert_eq!(connection["initial_window"], 10);
    assert_eq!(connection["requests"], 5);
    assert_eq!(connection["body_bytes_sent"], 10 + body.len());
    assert!(connection["closed"].as_u64() > connection["accepted"].as_u64());
    assert!(connection["tls_done"].is_null() && connection["host"].is_null());
    assert!(connection["tcp"]["bytes_acked"].as_u64().unwrap() > body.len() as u64);
    assert!(connection["tcp"]["min_rtt_us"].as_u64().unwrap() < 1_000_000);
    assert!(left.connections[1]["closed"].is_null(), "still open at the end");
    assert!(left.connections[1]["tcp"]["snd_mss"].as_u64().unwrap() > 0);

    let matched: Vec<_> = left.requests.iter().map(|request| request["matched"].as_str().unwrap()).collect();
    assert_eq!(matched, ["exact", "exact", "query", "exact", "none"]);
    let large = &left.requests[2];
    assert_eq!(large["url"], "http://origin.test:8080/large?v=2");
    assert_eq!((&large["priority"], &large["wire_bytes"]), (&json!("u=1"), &json!(body.len())));
    let times = ["time", "first_byte", "last_byte"].map(|key| large[key].as_u64().unwrap());
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn only_the_asked_version_of_tls_is_spoken_to_a_client_that_offers_both() {
    use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};
    let (folder, address) = (Folder::new(), &address(14));
    let mut run = folder.run(&[&format!("{address}:8443 https one.test")], &[]);
    for (asked, spoken) in [(None, TLSv1_3), (Some("1.2"), TLSv1_2), (Some("1.3"), TLSv1_3)] {
        if let Some(version) = asked {
            run["transport"]["tls"] = json!(version);
        }
        let server = folder.start(&run);
        let tls = connect_tls(connect(&format!("{address}:8443")), "one.test", &["h2", "http/1.1"]);
        assert_eq!(tls.conn.protocol_version(), Some(spoken), "{asked:?}");
        server.stop();
    }
}

#[test]
fn tls_serves_http11_to_a_client_that_offers_no_h2_in_records_of_the_asked_size() {
    let (folder, address) = (Folder::new(), &address(2));
    let mut run = folder.run(
        &[&format!("{address}:8443 https one.test"), &format!("{address}:8443 https two.test")],
        &[("GET", "https://two.test:8443/", 200, json!([]), &[b'z'; 5000])],
    );
    run["transport"]["tls_record_bytes"] = json!(1000);
    let server = folder.start(&run);
    let tcp = connect(&format!("{address}:8443"));
    let mut tls = connect_tls(tcp, "two.test", &["http/1.1"]);
    tls.write_all(b"GET / HTTP/1.1\r\nHost: two.test:8443\r\n\r\n").unwrap();
    // The records as they are on the wire: five bytes of header, the last two of them the length.
    let (mut wire, mut buffer) = (Vec::new(), [0; 20_000]);
    let lengths = loop {
        let count = tls.sock.read(&mut buffer).unwrap();
        wire.extend_from_slice(&buffer[..count]);
        let (mut lengths, mut at) = (Vec::new(), 0);
        while let Some(header) = wire.get(at..at + 5) {
            lengths.push(u16::from_be_bytes([header[3], header[4]]) as usize);
            at += 5 + lengths[lengths.len() - 1];
        }
        if lengths.iter().sum::<usize>() > 5000 && at == wire.len() {
            break lengths;
        }
    };
    // TLS 1.3 adds one byte of type and sixteen of authentication.
    assert_eq!(lengths.iter().filter(|&&length| length == 1017).count(), 5, "{lengths:?}");
    assert!(lengths.iter().all(|&length| length <= 1017), "{lengths:?}");
    let left = server.stop();
    assert_eq!(left.connections[0]["host"], "two.test");
    assert!(left.connections[0]["tls_done"].as_u64() > left.connections[0]["accepted"].as_u64());
}

#[test]
fn a_tls_client_that_names_another_host_or_speaks_plain_http_is_turned_away() {
    let (folder, address) = (Folder::new(), &address(3));
    let server = folder.start(&folder.run(&[&format!("{address}:8443 https one.test")], &[]));
    let plain = say(&format!("{address}:8443"), b"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n");
    assert!(!plain.contains("HTTP/1.1 200"), "{plain}");
    let refused = std::panic::catch_unwind(|| {
        connect_tls(connect(&format!("{address}:8443")), "other.test", &[]);
    });
    assert!(refused.is_err());
    let left = server.stop();
    assert_eq!(left.summary["connections"], 2);
    assert!(left.connections.iter().all(|connection| connection["protocol"].is_null()));
}

#[test]
fn the_think_time_passes_between_request_and_response_and_no_millisecond_more() {
    let (folder, address) = (Folder::new(), &address(4));
    let url = "http://origin.test:8080/";
    let mut run =
        folder.run(&[&format!("{address}:8080 http origin.test")], &[("GET", url, 200, json!([]), b"x")]);
    run["sites"]["a"]["responses"][0]["think_ns"] = json!(3_400_000);
    let server = folder.start(&run);
    let mut stream = connect(&format!("{address}:8080"));
    for _ in 0..20 {
        let asked = Instant::now();
        stream.write_all(&get("/", "")).unwrap();
        response(&mut stream, 1);
        assert!(asked.elapsed() >= Duration::from_nanos(3_400_000));
    }
    let left = server.stop();
    let mut waits: Vec<u64> = left
        .requests
        .iter()
        .map(|request| request["first_byte"].as_u64().unwrap() - request["time"].as_u64().unwrap())
        .collect();
    waits.sort_unstable();
    // A timer of whole milliseconds would give 4 ms and more; a busy machine gives 0.1 ms more.
    assert!(waits[0] >= 3_400_000 && waits[10] < 3_900_000, "{waits:?}");
}

#[test]
fn malformed_requests_get_a_4xx_and_the_server_goes_on() {
    let (folder, address) = (Folder::new(), &format!("{}:8080", address(5)));
    let url = "http://origin.test:8080/";
    let run = folder.run(&[&format!("{address} http origin.test")], &[("GET", url, 200, json!([]), b"fine")]);
    let server = folder.start(&run);
    let long = "a".repeat(70_000);
    let host = "Host: origin.test:8080\r\n";
    for (what, request, status) in [
        ("no HTTP", "hello\r\n\r\n".to_owned(), 400),
        ("HTTP/2 in plain", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 400),
        ("no host", "GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("two hosts", format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), 400),
        ("half a request", format!("GET / HTTP/1.1\r\n{host}"), 400),
        (
            "two lengths",
            format!("GET / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx"),
            400,
        ),
        ("a signed length", format!("GET / HTTP/1.1\r\n{host}Content-Length: +1\r\n\r\nx"), 400),
        (
            "length and chunks",
            format!(
                "GET / HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
            400,
        ),
        ("another coding", format!("GET / HTTP/1.1\r\n{host}Transfer-Encoding: gzip\r\n\r\n"), 501),
        ("a bad chunk", format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400),
        (
            "a chunk too long",
            format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"),
            400,
        ),
        ("a space before the colon", format!("GET / HTTP/1.1\r\n{host}A : b\r\n\r\n"), 400),
        ("a folded header", format!("GET / HTTP/1.1\r\n{host}A: b\r\n c\r\n\r\n"), 400),
        ("a huge header", format!("GET / HTTP/1.1\r\n{host}A: {long}\r\n\r\n"), 431),
        ("many headers", format!("GET / HTTP/1.1\r\n{host}{}\r\n", "A: b\r\n".repeat(200)), 431),
        ("a huge target", format!("GET /{long} HTTP/1.1\r\n{host}\r\n"), 431),
        ("another host", "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n".to_owned(), 421),
        ("CONNECT", format!("CONNECT origin.test:8080 HTTP/1.1\r\n{host}\r\n"), 400),
    ] {
        let answer = say(address, request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer:.80}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{what}: one answer");
    }
    for (what, request) in [
        ("absolute target", format!("GET http://origin.test:8080/ HTTP/1.1\r\n{host}\r\n")),
        ("HTTP/1.0", "GET / HTTP/1.0\r\n\r\n".to_owned()),
        ("unknown range", format!("GET / HTTP/1.1\r\n{host}Range: bytes=0-0,2-2\r\n\r\n")),
        ("leading line end", format!("\r\nGET / HTTP/1.1\r\n{host}\r\n")),
    ] {
        let answer = say(address, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("fine"), "{what}: {answer:.80}");
    }
    let left = server.stop();
    assert_eq!(left.summary["requests"], 22);
    assert_eq!(left.summary["unmatched"], 18);
}

#[test]
fn damaged_requests_neither_stop_nor_hang_the_server() {
    let (folder, address) = (Folder::new(), &format!("{}:8080", address(8)));
    let url = "http://origin.test:8080/";
    let run =
        folder.run(&[&format!("{address} http origin.test")], &[("POST", url, 200, json!([]), b"fine")]);
    let server = folder.start(&run);
    let whole =
        b"POST /?q=1 HTTP/1.1\r\nHost: origin.test:8080\r\nRange: bytes=0-9\r\nExpect: 100-continue\r\n\
        Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n";
    let mut dice = Dice(1);
    for _ in 0..300 {
        let mut request = whole.to_vec();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(request.len());
            match dice.roll(4) {
                0 => request[at] = dice.roll(256) as u8,
                1 => request.truncate(at + 1),
                2 => drop(request.remove(at)),
                _ => request.splice(at..at, whole[dice.roll(whole.len())..].iter().copied()).for_each(drop),
            }
            if request.is_empty() {
                request.push(0);
            }
        }
        // Fails after five seconds without an answer or a close.
        let answer = say(address, &request);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 "), "{answer:.80}");
    }
    assert!(say(address, whole).ends_with("fine"));
    drop(server.stop());
}

#[test]
fn bodies_of_requests_are_passed_over_exactly() {
    let (folder, address) = (Folder::new(), &format!("{}:8080", address(6)));
    let url = "http://origin.test:8080/";
    let run = folder.run(
        &[&format!("{address} http origin.test")],
        &[("GET", url, 200, json!([]), b"got"), ("POST", url, 200, json!([]), b"posted")],
    );
    let server = folder.start(&run);
    let post = |more: &str| format!("POST / HTTP/1.1\r\nHost: origin.test:8080\r\n{more}");
    let answer = say(
        address,
        [
            post("Content-Length: 11\r\n\r\nGET / HTTP/"),
            post("Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nGET /\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: origin.test:8080\r\nConnection: close\r\n\r\n".to_owned(),
            post("Content-Length: 0\r\n\r\n"),
        ]
        .concat()
        .as_bytes(),
    );
    assert_eq!(answer.matches("posted").count(), 2, "{answer}");
    assert!(answer.ends_with("connection: close\r\n\r\ngot"), "nothing after close: {answer}");

    let mut stream = connect(address);
    stream.write_all(post("Expect: 100-continue\r\nContent-Length: 4\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(response(&mut stream, 0).0, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"body").unwrap();
    assert_eq!(response(&mut stream, 6).1, b"posted");
    drop(server.stop());
}

#[test]
fn a_server_that_cannot_be_what_is_asked_does_not_start() {
    let folder = Folder::new();
    let run = folder.run(&[&format!("{}:8080 http origin.test", address(7))], &[]);
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut run = run.clone();
        change(&mut run);
        let (code, text) = folder.refused(&run);
        assert_eq!(text.lines().count(), 1, "{text}");
        (code, text)
    };
    let (code, text) = with(&|run| run["hosts"][0]["congestion"] = json!("nosuch"));
    assert_eq!(code, 1);
    assert!(text.starts_with("congestion control \"nosuch\" cannot be set on 127."), "{text}");
    assert!(text.contains("reno"), "{text}");
    let (code, text) = with(&|run| run["sites"]["a"]["origins"][0]["address"] = json!("192.0.2.1"));
    assert!((code, text.starts_with("listening on 192.0.2.1:8080: ")) == (1, true), "{text}");
    let (code, text) = with(&|run| run["transport"]["tls_record_bytes"] = json!(20_000));
    assert!(
        (code, text.contains("transport.tls_record_bytes: found 20000, accepted: 64 to 16384")) == (2, true),
        "{text}"
    );
    let (code, text) = with(&|run| run["sites"]["a"]["origins"][0]["host"] = json!("a/b"));
    assert!((code, text.contains("sites.a.origins[0].host: found \"a/b\"")) == (2, true), "{text}");
    let (code, text) = with(&|run| drop(run.as_object_mut().unwrap().remove("sites")));
    assert!((code, text.contains("sites: found no origin")) == (2, true), "{text}");
}
