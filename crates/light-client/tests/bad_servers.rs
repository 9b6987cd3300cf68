//! Servers that close, refuse and answer wrongly: a visit says why it failed, and the others go on.

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;
use support::{Run, Site, address, browser, visit};
use wirepaint_page_model::Browser;

/// A server at an address of this process. For every connection, `answer` gets the number of the connection and of
/// the request on it; it returns what to write, and whether to close then.
fn serve(number: u8, answer: fn(usize, usize) -> (Vec<u8>, bool)) {
    let listener = TcpListener::bind((address(number), 8443)).unwrap();
    std::thread::spawn(move || {
        for (connection, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let (mut asked, mut text) = (0, Vec::new());
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() {
                    text.push(byte[0]);
                    if text.ends_with(b"\r\n\r\n") {
                        text.clear();
                        let (bytes, closes) = answer(connection, asked);
                        asked += 1;
                        stream.write_all(&bytes).unwrap();
                        if closes {
                            return;
                        }
                    }
                }
            });
        }
    });
}

fn whole(bytes: usize, more: &str) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n{more}\r\n").into_bytes();
    answer.resize(answer.len() + bytes, b'x');
    answer
}

/// A document of 5,000 bytes and four images of the same size, over one connection.
fn run(number: u8, pipeline: u8) -> Run {
    let mut site = Site::new(&[number], false, 5_000);
    for _ in 0..4 {
        site.element(0, "image", 5_000, "image");
    }
    let browser = Browser { connections_per_origin: 1, pipeline, ..browser() };
    Run::new(&site, &browser, "h1")
}

#[test]
fn requests_that_a_closed_connection_left_are_asked_for_again() {
    // Each connection carries two answers and closes without a word, or with one.
    serve(1, |_, asked| (whole(5_000, ""), asked == 1));
    serve(2, |_, asked| (whole(5_000, if asked == 1 { "connection: close\r\n" } else { "" }), asked == 1));
    for (number, pipeline) in [(1, 1), (1, 4), (2, 1), (2, 4)] {
        let told = run(number, pipeline).visit(None);
        let visit = told.loaded();
        let requests = visit["requests"].as_array().unwrap();
        assert_eq!(requests.iter().filter(|request| request["last_byte"] != Value::Null).count(), 5);
        let carried =
            visit["connections"].as_array().unwrap().iter().map(|c| c["requests"].as_u64().unwrap());
        assert_eq!(carried.collect::<Vec<_>>(), [2, 2, 1], "{number}, {pipeline}");
    }
}

#[test]
fn a_body_may_last_until_the_connection_ends() {
    serve(3, |_, _| {
        let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        answer.resize(answer.len() + 5_000, b'x');
        (answer, true)
    });
    run(3, 1).visit(None).loaded();
}

#[test]
fn bad_answers_fail_the_visit_with_their_cause_and_the_next_one_goes_on() {
    type Answer = fn(usize, usize) -> (Vec<u8>, bool);
    let cases: [(u8, Answer, &str); 7] = [
        (
            10,
            |_, _| (Vec::new(), true),
            "the server closed it before the answer to http://host10.test:8443/0",
        ),
        (
            11,
            |_, _| (whole(5_000, "")[..3_000].to_vec(), true),
            "the server closed it before the answer to http://host11.test:8443/0",
        ),
        (12, |_, _| (b"SSH-2.0-x\r\n\r\n".to_vec(), false), "the head of an answer is not HTTP/1.1: "),
        (
            13,
            |_, _| (whole(5_001, ""), false),
            "the answer to http://host13.test:8443/0 is longer than the page's",
        ),
        (
            14,
            |_, _| (whole(4_999, ""), false),
            "the answer to http://host14.test:8443/0 is shorter than the page's",
        ),
        (
            15,
            |_, _| (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(), false),
            "GET http://host15.test:8443/0 was answered with 404, recorded: 200",
        ),
        (
            16,
            |_, _| ([whole(5_000, ""), b"more".to_vec()].concat(), false),
            "the server sent bytes that answer no request",
        ),
    ];
    for (number, answer, cause) in cases {
        serve(number, answer);
        serve(number + 10, |_, _| (whole(5_000, ""), false));
        let good = run(number + 10, 1);
        let mut bad = run(number, 1);
        bad.description["pages"]["good"] = good.description["pages"]["page"].clone();
        let mut next = visit();
        next["page"] = json!("good");
        let told = bad.visits([visit(), next]).visit(None);
        let place = format!("connection 0 to host{number}.test ({}:8443): ", address(number));
        assert!(told.cause(0).starts_with(&place), "{}", told.cause(0));
        assert!(told.cause(0).contains(cause), "{}", told.cause(0));
        assert_eq!(told.visits[1]["failed"], Value::Null);
        assert_eq!([&told.summary["visits"], &told.summary["failed"]], [2, 1]);
    }
}

#[test]
fn a_server_that_does_not_listen_is_named() {
    let cause = run(5, 1).visit(None).cause(0).to_owned();
    assert!(cause.ends_with(":8443): connecting: Connection refused (os error 111)"), "{cause}");
}

#[test]
fn a_server_that_dies_fails_the_visit_with_its_cause() {
    for (number, http) in [(6, "h1"), (7, "h2")] {
        let mut site = Site::new(&[number], true, 5_000);
        let slow = site.element(0, "js", 5_000, "script");
        site.resource(slow)["think_ns"] = json!(5_000_000_000_u64);
        let run = Run::new(&site, &browser(), http);
        let server = run.serve();
        let authority = server.authority.clone();
        let killer = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            drop(server);
        });
        let cause = run.visit(Some(&authority)).cause(0).to_owned();
        killer.join().unwrap();
        // The connection had answered before, so the script is asked for again, maybe while the server dies.
        let ends = ["Connection refused (os error 111)", "Connection reset by peer (os error 104)"];
        let ended = ends.iter().any(|end| cause.ends_with(&format!("connecting: {end}")));
        assert!(ended, "{http}: {cause}");
    }
}
