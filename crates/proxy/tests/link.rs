//! Each side of the PEP alone: the test is the other side and chooses the order of frames.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use support::link::*;
use support::origin::{answer, answering, connect, get, head as request_head, html, with_length};
use support::skips;

/// A browser's first request, and how it comes over the link.
fn asked_for_x(link: &mut Link, origin: std::net::SocketAddr) -> (TcpStream, Frame) {
    let mut client = connect(origin);
    client.write_all(get("/x").as_bytes()).unwrap();
    let asked = link.next();
    assert_eq!((asked.kind, asked.stream), (REQUEST, 1));
    (client, asked)
}

#[test]
fn a_promise_that_comes_behind_its_answer_holds_up_no_later_request() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, origin) = remote("http", |_, _| {});
    let (mut client, asked) = asked_for_x(&mut link, origin);
    link.send(SERVE, 0, 1, &2_u32.to_be_bytes());
    link.answer(2, WHOLE, 0, &[head(200, 1), b"a".to_vec()].concat());
    assert_eq!(answer(&mut client).1, b"a");
    // Frames of other connections may be late.
    link.send(PROMISE, 0, 2, &asked.payload);
    thread::sleep(Duration::from_millis(100));
    client.write_all(get("/x").as_bytes()).unwrap();
    assert_eq!(link.next_of(REQUEST).stream, 3);
    link.send(SERVE, 0, 3, &2_u32.to_be_bytes());
    assert_eq!(link.next_of(REQUEST).stream, 5, "it is asked for anew");
    link.answer(5, WHOLE, 0, &[head(200, 1), b"b".to_vec()].concat());
    assert_eq!(answer(&mut client).1, b"b");
}

#[test]
fn a_promise_serves_a_request_that_is_on_its_way_and_needs_no_word_of_the_ground_side() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, origin) = remote("http", |_, _| {});
    let (mut client, asked) = asked_for_x(&mut link, origin);
    link.send(PROMISE, 0, 2, &asked.payload);
    assert_eq!(link.next_of(CANCEL).stream, 1);
    link.answer(2, WHOLE, 0, &[head(200, 1), b"a".to_vec()].concat());
    assert_eq!(answer(&mut client).1, b"a");
    // What the ground side said before it heard of that: who serves the request, or an answer of its own.
    link.send(SERVE, 0, 1, &2_u32.to_be_bytes());
    client.write_all(get("/x").as_bytes()).unwrap();
    let asked = link.next_of(REQUEST);
    assert_eq!(asked.stream, 3);
    link.send(PROMISE, 0, 4, &asked.payload);
    assert_eq!(link.next_of(CANCEL).stream, 3);
    link.answer(3, BROKEN, 0, &[head(200, 2), b"b".to_vec()].concat());
    link.answer(4, WHOLE, 0, &[head(200, 1), b"c".to_vec()].concat());
    assert_eq!(answer(&mut client).1, b"c");
    client.write_all(get("/y").as_bytes()).unwrap();
    assert_eq!(link.next_of(REQUEST).stream, 5, "the link still stands");
}

#[test]
fn an_answer_that_comes_before_its_requests_body_is_whole_reaches_the_browser() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, origin) = remote("http", |_, _| {});
    let mut client = connect(origin);
    let length = 100_000;
    let request = format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n");
    client.write_all(&[request.as_bytes(), &vec![0; length]].concat()).unwrap();
    assert_eq!(link.next().kind, REQUEST);
    let mut came = 0;
    while came < 65_536 {
        came += link.next_of(BODY).payload.len();
    }
    // The upload waits for credit now, as the answer's receiver waits for the answer.
    for _ in 0..5 {
        link.send(CREDIT, 0, 1, &1_u32.to_be_bytes());
        assert_eq!(link.next_of(BODY).payload.len(), 1);
    }
    link.answer(1, 0, 0, &[head(413, 4), b"lar".to_vec()].concat());
    let mut begun = Vec::new();
    while !begun.ends_with(b"lar") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("the answer's first bytes");
        begun.push(byte[0]);
    }
}

#[test]
fn a_side_that_stops_resets_its_connection_with_the_other() {
    if skips() {
        return;
    }
    let (_folder, running, mut link, _) = remote("http", |_, _| {});
    running.stop();
    assert_eq!(link.error(), ErrorKind::ConnectionReset);
    let (_folder, running, mut link, port) = ground(answering(|_| with_length(b"")), |_| ());
    link.send(REQUEST, 0, 1, &request(port, "/"));
    while link.next().flags != WHOLE {}
    running.stop();
    assert_eq!(link.error(), ErrorKind::ConnectionReset);
}

#[test]
fn what_a_cancelled_answer_leaves_of_the_memory_is_offered_to_the_next() {
    if skips() {
        return;
    }
    // With 4 MiB an answer has about half of what others leave of 2 MiB.
    const FIRST: usize = 1_000_000;
    const SECOND: usize = 560_000;
    let serve =
        answering(|request| with_length(&vec![0; if request.contains("/first") { FIRST } else { SECOND }]));
    // Slow enough that most of the first answer is here when it is cancelled.
    let (_folder, _running, mut link, port) =
        ground(serve, |run| run["proxies"][0]["rate_bit_per_s"] = 2_000_000.into());
    link.send(REQUEST, 0, 1, &request(port, "/first"));
    thread::sleep(Duration::from_millis(500));
    link.send(REQUEST, 0, 3, &request(port, "/second"));
    thread::sleep(Duration::from_millis(500));
    link.send(CANCEL, 0, 1, &[]);
    // Nothing is passed on, so no credit frees memory.
    let mut came = 0;
    loop {
        let frame = link.next_of(DATA);
        if frame.stream == 3 {
            came += frame.payload.len() - 5;
            if frame.flags == WHOLE {
                break;
            }
        }
    }
    assert!(came > SECOND);
}

#[test]
fn what_is_fetched_ahead_serves_a_request_that_comes_before_its_head() {
    if skips() {
        return;
    }
    let (asked, requests) = mpsc::channel();
    let (go_on, paused) = mpsc::channel();
    let paused = Arc::new(Mutex::new(paused));
    let serve = answering(move |request| {
        if request.starts_with("GET / ") {
            return html(r#"<img src="image">"#);
        }
        asked.send(request.to_owned()).unwrap();
        paused.lock().unwrap().recv().unwrap();
        with_length(b"image")
    });
    let (_folder, _running, mut link, port) =
        ground(serve, |run| run["proxies"][0]["ahead"] = "markup".into());
    link.send(REQUEST, 0, 1, &request_with(port, "/", &[("accept", "text/html")]));
    let promise = link.next_of(PROMISE);
    requests.recv().unwrap();
    // Over another connection the promise would come behind the page, so the browser's request may come first.
    link.send(REQUEST, 0, 3, &request(port, "/image"));
    let served = link.next_of(SERVE);
    let unless = &b"accept,referer"[..];
    assert_eq!((served.stream, served.payload), (3, [&promise.stream.to_be_bytes(), unless].concat()));
    go_on.send(()).unwrap();
    while link.next_of(DATA).stream != promise.stream {}
    assert!(requests.try_recv().is_err(), "it is fetched once");
}

#[test]
fn an_answer_that_varies_with_how_it_was_asked_for_ahead_is_asked_for_anew() {
    if skips() {
        return;
    }
    for (vary, is_anew) in [("cookie", false), ("cookie, accept", true), ("*", true)] {
        let (_folder, _running, mut link, origin) = remote("http", |_, _| {});
        let mut client = connect(origin);
        client.write_all(get("/x").as_bytes()).unwrap();
        link.next_of(REQUEST);
        link.send(SERVE, 0, 1, &[&2_u32.to_be_bytes()[..], b"accept,referer"].concat());
        link.answer(2, WHOLE, 0, &[head_with(200, 1, &[("vary", vary)]), b"a".to_vec()].concat());
        if is_anew {
            assert_eq!(link.next_of(REQUEST).stream, 3, "{vary}");
            link.answer(3, WHOLE, 0, &[head(200, 1), b"b".to_vec()].concat());
        }
        assert_eq!(answer(&mut client).1, if is_anew { b"b" } else { b"a" }, "{vary}");
    }
}

#[test]
fn what_a_browser_asked_for_is_not_fetched_ahead_when_the_page_names_it_later() {
    if skips() {
        return;
    }
    let (asked, requests) = mpsc::channel();
    let (go_on, paused) = mpsc::channel();
    let paused = Arc::new(Mutex::new(paused));
    let serve = move |mut stream: TcpStream, _| {
        while let Some(request) = request_head(&mut stream) {
            let page =
                html(r#"<script>new Image().src = "image"</script><img src="image"><img src="other">"#);
            let (first, rest) = page.split_at(page.len() - 40);
            if request.starts_with("GET / ") {
                stream.write_all(first).unwrap();
                paused.lock().unwrap().recv().unwrap();
                stream.write_all(rest).unwrap();
            } else {
                asked.send(request.split(' ').nth(1).unwrap().to_owned()).unwrap();
                stream.write_all(&with_length(b"image")).unwrap();
            }
        }
    };
    let (_folder, _running, mut link, port) =
        ground(serve, |run| run["proxies"][0]["ahead"] = "markup".into());
    link.send(REQUEST, 0, 1, &request_with(port, "/", &[("accept", "text/html")]));
    link.next_of(DATA);
    link.send(REQUEST, 0, 3, &request(port, "/image"));
    while link.next_of(DATA).stream != 3 {}
    go_on.send(()).unwrap();
    let promise = String::from_utf8_lossy(&link.next_of(PROMISE).payload).into_owned();
    assert!(promise.contains("/other"), "{promise:?}");
    while link.next_of(DATA).stream != 2 {}
    assert_eq!(requests.try_iter().collect::<Vec<_>>(), ["/image", "/other"]);
}
