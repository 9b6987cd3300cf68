//! HTTP/2 between a browser and the remote side, frame by frame; the test is the ground side too.

#[path = "../../replay-server/tests/support/frames.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod frames;
mod support;

use frames::{Client, get, request};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use support::link::{self, Link};
use support::origin::connect;
use support::{Folder, Running, skips};
use wirepaint_run::Transport;
use wirepaint_serving::{AUTHORITY, Authority};

type Tls = StreamOwned<ClientConnection, TcpStream>;
type Browser = Client<Tls>;

/// A browser on a connection with the remote side, and the link to the test.
fn start() -> (Folder, Running, Link, Browser, String) {
    let (folder, running, link, tls, host) = secured();
    (folder, running, link, Client::new(tls, 1 << 30), host)
}

/// The same before the first byte of HTTP/2.
fn secured() -> (Folder, Running, Link, Tls, String) {
    let authority = Authority::new().unwrap();
    let (folder, running, link, origin) = link::remote("https", |folder, run| {
        std::fs::write(folder.0.join(AUTHORITY), &authority.pem).unwrap();
        run["transport"] = serde_json::json!({"http": "h2"});
    });
    (folder, running, link, handshake(&authority, origin), format!("a.test:{}", origin.port()))
}

fn handshake(authority: &Authority, origin: SocketAddr) -> Tls {
    let mut config = (*authority.client(&Transport::default()).unwrap()).clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("a.test").unwrap();
    let mut tls = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), connect(origin));
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    tls
}

/// The next request: its stream on the link and its payload.
fn asked(link: &mut Link) -> (u32, Vec<u8>) {
    let frame = link.next_of(link::REQUEST);
    (frame.stream, frame.payload)
}

/// Two answers of ten bytes each have begun, and the browser has their first bytes. Returns their streams on the link.
fn two_begun(link: &mut Link, browser: &mut Browser, host: &str) -> [u32; 2] {
    browser.send(&[get(1, host, "/a", None), get(3, host, "/b", None)]);
    let streams = [asked(link).0, asked(link).0];
    for stream in streams {
        link.answer(stream, 0, 0, &[link::head(200, 10), b"begin".to_vec()].concat());
    }
    let mut begun = 0;
    while begun < 2 {
        begun += usize::from(browser.next().unwrap().kind == frames::DATA);
    }
    streams
}

/// Bytes of an answer that have come ahead of the rest of its body.
fn begun() -> usize {
    link::head(200, 10).len() + 5
}

#[test]
fn what_is_no_preface_ends_the_connection_without_a_reset() {
    if skips() {
        return;
    }
    let (_folder, running, _link, mut tls, _) = secured();
    tls.write_all(b"INVALID CONNECTION PREFACE\r\n\r\n").unwrap();
    tls.flush().unwrap();
    tls.sock.read_to_end(&mut Vec::new()).expect("an end");
    drop(tls);
    assert_eq!(running.stop()["reset"], 0);
}

#[test]
fn a_body_goes_on_as_the_ground_side_takes_it() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, mut browser, host) = start();
    let body: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let sent = body.clone();
    let uploading = thread::spawn(move || {
        browser.send(&[request(1, "POST", &host, "/", None, 0)]);
        // Both windows are as RFC 9113 has them; the browser's own connection needs no other stream.
        let (mut windows, mut at) = ([65_535_usize; 2], 0);
        while at < sent.len() {
            let count = windows[0].min(windows[1]).min(16_384).min(sent.len() - at);
            if count > 0 {
                let end = if at + count == sent.len() { frames::END_STREAM } else { 0 };
                browser.send(&[frames::Frame::new(frames::DATA, end, 1, &sent[at..at + count])]);
                windows.iter_mut().for_each(|window| *window -= count);
                at += count;
                continue;
            }
            let frame = browser.next().expect("a larger window");
            if frame.kind == frames::WINDOW_UPDATE {
                let more = u32::from_be_bytes(frame.payload.try_into().unwrap()) as usize;
                windows[usize::from(frame.stream != 0)] += more;
            }
        }
        browser.until_ended(1)
    });
    let (stream, _) = asked(&mut link);
    let (mut came, mut taken) = (Vec::<u8>::new(), 0);
    loop {
        let frame = link.next();
        assert_eq!((frame.kind, frame.stream), (link::BODY, stream));
        came.extend(frame.payload);
        assert!(came.len() - taken <= 65_536, "no more than the ground side takes");
        if frame.flags == 1 {
            break;
        }
        if came.len() - taken == 65_536 {
            taken = came.len();
            link.send(link::CREDIT, 0, stream, &65_536_u32.to_be_bytes());
        }
    }
    assert!(came == body);
    link.answer(stream, link::WHOLE, 0, &link::head(204, 0));
    assert!(uploading.join().unwrap().iter().all(|frame| frame.kind != frames::RST_STREAM));
}

#[test]
fn a_request_with_too_many_fields_is_refused_and_the_other_goes_on() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, mut browser, host) = start();
    let mut large = get(1, &host, "/large", None);
    for _ in 0..300 {
        large.payload.extend([0, 1, b'x', 1, b'y']);
    }
    browser.send(&[large, get(3, &host, "/other", None)]);
    let (stream, request) = asked(&mut link);
    assert!(
        request.windows(6).any(|part| part == b"/other"),
        "the first request does not reach the ground side"
    );
    link.answer(stream, 1, 0, &[link::head(200, 5), b"bytes".to_vec()].concat());
    let frames = browser.until_ended(2);
    let refused = frames.iter().find(|frame| frame.stream == 1 && frame.kind == frames::HEADERS).unwrap();
    assert!(refused.ends_stream());
    assert!(frames.iter().any(|frame| frame.stream == 3 && frame.payload == b"bytes"));
}

#[test]
fn a_stream_that_the_browser_resets_is_cancelled_and_the_other_goes_on() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, mut browser, host) = start();
    let [first, second] = two_begun(&mut link, &mut browser, &host);
    const CANCEL: [u8; 4] = 8_u32.to_be_bytes();
    browser.send(&[frames::Frame::new(frames::RST_STREAM, 0, 1, &CANCEL)]);
    assert_eq!(link.next_of(link::CANCEL).stream, first);
    for stream in [first, second] {
        link.answer(stream, link::WHOLE, begun(), b" end.");
    }
    let frames = browser.until_ended(1);
    assert!(frames.iter().all(|frame| frame.stream != 1), "{frames:?}");
    let bytes: Vec<u8> = frames.into_iter().flat_map(|frame| frame.payload).collect();
    assert_eq!(bytes, b" end.");
}

#[test]
fn an_answer_that_breaks_resets_its_stream_and_the_other_goes_on() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, mut browser, host) = start();
    let [first, second] = two_begun(&mut link, &mut browser, &host);
    link.answer(first, link::BROKEN, begun(), b"");
    let reset = browser.next().unwrap();
    const INTERNAL_ERROR: [u8; 4] = 2_u32.to_be_bytes();
    assert_eq!((reset.kind, reset.stream, &reset.payload[..]), (frames::RST_STREAM, 1, &INTERNAL_ERROR[..]));
    link.answer(second, link::WHOLE, begun(), b" end.");
    assert!(browser.until_ended(1).iter().all(|frame| frame.stream == 3));
}

#[test]
fn priorities_reach_the_ground_side_whenever_the_browser_tells_them() {
    if skips() {
        return;
    }
    let (_folder, _running, mut link, mut browser, host) = start();
    let change = |stream: u8, value: &str| {
        let payload = [&[0, 0, 0, stream], value.as_bytes()].concat();
        frames::Frame::new(frames::PRIORITY_UPDATE, 0, 0, &payload)
    };
    browser.send(&[
        change(3, "u=1"),
        get(1, &host, "/a", Some("u=5, i")),
        get(3, &host, "/b", Some("u=4")),
        get(5, &host, "/c", None),
        change(5, "u=2"),
    ]);
    let requests = [(); 3].map(|()| asked(&mut link));
    const INCREMENTAL: u8 = 8;
    let priorities = requests.each_ref().map(|(_, request)| request[link::PRIORITY_AT]);
    assert_eq!(priorities, [5 | INCREMENTAL, 1, 2]);
    browser.send(&[change(1, "u=0")]);
    let changed = link.next_of(link::PRIORITY);
    assert_eq!((changed.stream, changed.payload), (requests[0].0, vec![0]));
}
