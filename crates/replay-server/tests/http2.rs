//! HTTP/2 as a client sees it, frame by frame.

mod support;

use serde_json::json;
use std::io::Write;
use support::frames::*;
use support::{Dice, Folder, Recorded, Server, address, connect, connect_tls};

const HOST: &str = "origin.test:8443";
const LARGE: usize = 300_000;
/// A flow-control window that never matters.
const WIDE: u32 = 1 << 30;

fn start(folder: &Folder, address: &str, large: usize) -> Server {
    let url = format!("https://{HOST}");
    let (body, small) = (vec![b'x'; large], vec![b'y'; 900]);
    let urls: Vec<String> = ["/a", "/b", "/c", "/small"].iter().map(|path| format!("{url}{path}")).collect();
    let body_of = |url: &str| if url.ends_with("small") { &small[..] } else { &body[..] };
    let responses: Vec<Recorded> =
        urls.iter().map(|url| ("GET", url.as_str(), 200, json!([]), body_of(url))).collect();
    folder.start(&folder.run(&[&format!("{address}:8443 https origin.test")], &responses))
}

fn client(address: &str, window: u32) -> Client<support::Tls> {
    let tls = connect_tls(connect(&format!("{address}:8443")), "origin.test", &["h2"]);
    assert_eq!(tls.conn.alpn_protocol(), Some(&b"h2"[..]));
    Client::new(tls, window)
}

fn received(frames: &[Frame], stream: u32) -> usize {
    frames.iter().filter(|frame| frame.kind == DATA && frame.stream == stream).map(|f| f.payload.len()).sum()
}

#[test]
fn urgency_then_order_of_request_decides_who_sends() {
    let (folder, address) = (Folder::new(), &address(1));
    let server = start(&folder, address, LARGE);
    let mut client = client(address, WIDE);
    client.send(&[
        get(1, HOST, "/a", None),
        get(3, HOST, "/b", Some("u=3")),
        get(5, HOST, "/c", Some("u=5")),
        get(7, HOST, "/a", Some("u=1")),
        get(9, HOST, "/small", Some("u=0")),
    ]);
    let frames = client.until_ended(5);
    assert_eq!(order(&frames), [9, 7, 1, 3, 5]);
    for stream in [1, 3, 5, 7] {
        assert_eq!(received(&frames, stream), LARGE);
    }
    let left = server.stop();
    assert_eq!(left.summary["requests"], 5);
    assert_eq!(left.summary["unfinished"], 0);
    assert_eq!(left.connections[0]["body_bytes_sent"], 4 * LARGE + 900);
    assert_eq!(left.requests[4]["priority"], "u=0");
}

#[test]
fn incremental_responses_take_turns() {
    let (folder, address) = (Folder::new(), &address(2));
    let server = start(&folder, address, LARGE);
    let mut client = client(address, WIDE);
    client.send(&[get(1, HOST, "/a", Some("u=2, i")), get(3, HOST, "/b", Some("u=2, i"))]);
    let order = order(&client.until_ended(2));
    let turns = LARGE.div_ceil(16_384 - 9);
    assert_eq!(order, [1, 3].repeat(turns), "one record each in turn");
    drop(server.stop());
}

#[test]
fn an_urgent_request_overtakes_a_large_response_under_way() {
    let (folder, address) = (Folder::new(), &address(3));
    let large = 20_000_000;
    let server = start(&folder, address, large);
    let mut client = client(address, WIDE);
    client.send(&[get(1, HOST, "/a", Some("u=4"))]);
    let mut before = 0;
    while before < 500_000 {
        let frame = client.next().unwrap();
        before += if frame.kind == DATA { frame.payload.len() } else { 0 };
    }
    client.send(&[get(3, HOST, "/small", Some("u=0"))]);
    let between = received(&client.until_ended(1), 1);
    // Bytes in the kernel between the processes: a receive buffer, and a bounded unsent backlog.
    assert!(before + between < large / 2, "{between} bytes of the large response came first");
    drop(server.stop());
}

#[test]
fn a_priority_update_moves_a_response_that_waits() {
    let (folder, address) = (Folder::new(), &address(4));
    let server = start(&folder, address, LARGE);
    let mut client = client(address, WIDE);
    client.send(&[
        Frame::new(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=1"),
        get(1, HOST, "/a", None),
        get(3, HOST, "/b", None),
        get(5, HOST, "/c", None),
        Frame::new(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=2"),
    ]);
    assert_eq!(order(&client.until_ended(3)), [5, 3, 1]);
    drop(server.stop());
}

#[test]
fn a_weight_moves_a_response_as_chromium_means_it() {
    let (folder, address) = (Folder::new(), &address(9));
    let server = start(&folder, address, LARGE);
    let mut client = client(address, WIDE);
    client.send(&[
        get(1, HOST, "/a", Some("i")),
        get(3, HOST, "/b", Some("i")),
        // An image that came into view: weight 220 stands for u=1.
        Frame::new(PRIORITY, 0, 3, &[0x80, 0, 0, 0, 219]),
    ]);
    assert_eq!(order(&client.until_ended(2)), [3, 1]);
    drop(server.stop());
}

#[test]
fn a_response_can_be_moved_while_its_request_body_still_arrives() {
    let (folder, address) = (Folder::new(), &address(11));
    let url = |path| format!("https://{HOST}{path}");
    let (post, other, body) = (url("/post"), url("/a"), vec![b'x'; LARGE]);
    let run = folder.run(
        &[&format!("{address}:8443 https origin.test")],
        &[("POST", &post, 200, json!([]), &body), ("GET", &other, 200, json!([]), &body)],
    );
    let server = folder.start(&run);
    let mut client = client(address, WIDE);
    // The answer to a PING shows that the server has read everything before it.
    let mut send_and_see = |frames: &[Frame]| {
        client.send(frames);
        client.send(&[Frame::new(PING, 0, 0, &[7; 8])]);
        while client.next().unwrap().kind != PING {}
    };
    send_and_see(&[request(1, "POST", HOST, "/post", Some("u=5"), 0)]);
    send_and_see(&[Frame::new(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1")]);
    client.send(&[Frame::new(DATA, END_STREAM, 1, b"form"), get(3, HOST, "/a", Some("u=3"))]);
    assert_eq!(order(&client.until_ended(2)), [1, 3]);
    drop(server.stop());
}

#[test]
fn a_full_window_of_one_response_lets_the_next_pass() {
    let (folder, address) = (Folder::new(), &address(5));
    let server = start(&folder, address, LARGE);
    let mut client = client(address, 100_000);
    client.send(&[get(1, HOST, "/a", Some("u=0")), get(3, HOST, "/small", Some("u=5"))]);
    let frames = client.until_ended(1);
    assert_eq!((received(&frames, 1), received(&frames, 3)), (100_000, 900));
    client.send(&[Frame::new(WINDOW_UPDATE, 0, 1, &200_000u32.to_be_bytes())]);
    assert_eq!(received(&client.until_ended(1), 1), LARGE - 100_000);
    drop(server.stop());
}

#[test]
fn a_cancelled_response_gives_way_and_stays_unfinished() {
    let (folder, address) = (Folder::new(), &address(6));
    let server = start(&folder, address, LARGE);
    let mut client = client(address, 50_000);
    client.send(&[get(1, HOST, "/a", None)]);
    let mut got = 0;
    while got < 50_000 {
        got += client.next().unwrap().payload.len();
    }
    client.send(&[Frame::new(RST_STREAM, 0, 1, &8u32.to_be_bytes()), get(3, HOST, "/small", None)]);
    assert_eq!(order(&client.until_ended(1)), [3]);
    let left = server.stop();
    assert_eq!(left.summary["unfinished"], 1);
    assert!(left.requests[0]["last_byte"].is_null());
    assert_eq!(left.connections[0]["body_bytes_sent"], 50_900);
}

#[test]
fn a_request_body_is_taken_in_before_the_answer() {
    let (folder, address) = (Folder::new(), &address(7));
    let url = format!("https://{HOST}/post");
    let run =
        folder.run(&[&format!("{address}:8443 https origin.test")], &[("POST", &url, 201, json!([]), b"ok")]);
    let server = folder.start(&run);
    let mut client = client(address, WIDE);
    client.send(&[request(1, "POST", HOST, "/post", None, 0)]);
    // Together more than the initial windows of 65535 bytes: the server must give some back.
    let part = |end| Frame::new(DATA, end, 1, &[0; 16_000]);
    client.send(&[part(0), part(0), part(0), part(0)]);
    let mut given_back = [false; 2];
    while given_back != [true; 2] {
        let frame = client.next().unwrap();
        if frame.kind == WINDOW_UPDATE {
            given_back[frame.stream as usize] = true;
        }
    }
    client.send(&[part(END_STREAM)]);
    let frames = client.until_ended(1);
    assert_eq!(received(&frames, 1), 2);
    assert_eq!(server.stop().requests[0]["status"], 201);
}

#[test]
fn what_breaks_the_protocol_ends_the_connection_or_the_stream_and_nothing_else() {
    let (folder, address) = (Folder::new(), &address(8));
    let server = start(&folder, address, LARGE);
    let ends_with = |frames: &[Frame]| {
        let mut client = client(address, WIDE);
        client.send(frames);
        loop {
            match client.next() {
                Some(frame) if frame.kind == GOAWAY && frame.payload[7] != 0 => return "GOAWAY",
                Some(frame) if frame.kind == RST_STREAM => return "RST_STREAM",
                Some(frame) if frame.kind == HEADERS && frame.ends_stream() => return "HEADERS",
                Some(frame) if frame.kind == PING => return "PING",
                Some(_) => {}
                None => return "end",
            }
        }
    };
    let upper = |name: &[u8]| [&[0, name.len() as u8][..], name, &[1, b'v']].concat();
    let with = |extra: &[u8]| {
        let mut frame = get(1, HOST, "/small", None);
        frame.payload.extend(extra);
        frame
    };
    for (what, frames, end) in [
        ("DATA on stream 0", vec![Frame::new(DATA, 0, 0, b"x")], "GOAWAY"),
        ("DATA on an idle stream", vec![Frame::new(DATA, 0, 1, b"x")], "GOAWAY"),
        ("an even stream", vec![get(2, HOST, "/small", None)], "GOAWAY"),
        (
            "a stream id that goes back",
            vec![get(5, HOST, "/small", None), get(3, HOST, "/small", None)],
            "GOAWAY",
        ),
        ("a frame over the limit", vec![Frame::new(DATA, 0, 1, &[0; 16_385])], "GOAWAY"),
        ("SETTINGS of odd length", vec![Frame::new(SETTINGS, 0, 0, &[0; 5])], "GOAWAY"),
        ("SETTINGS on a stream", vec![Frame::new(SETTINGS, 0, 1, &[])], "GOAWAY"),
        ("a window over 2^31-1", vec![Frame::new(SETTINGS, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])], "GOAWAY"),
        ("a PING of 7 bytes", vec![Frame::new(PING, 0, 0, &[0; 7])], "GOAWAY"),
        ("WINDOW_UPDATE of nothing", vec![Frame::new(WINDOW_UPDATE, 0, 0, &[0; 4])], "GOAWAY"),
        ("broken HPACK", vec![Frame::new(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 9])], "GOAWAY"),
        ("an upper-case header name", vec![with(&upper(b"Bad"))], "GOAWAY or RST_STREAM"),
        ("a connection header", vec![with(&upper(b"connection"))], "GOAWAY or RST_STREAM"),
        ("a pseudo-header of responses", vec![with(&upper(b":status"))], "GOAWAY or RST_STREAM"),
        ("a wrong host", vec![get(1, "other.test:8443", "/a", None)], "HEADERS"),
        (
            "an unknown frame type, then PING",
            vec![Frame::new(0xee, 0, 0, b"?"), Frame::new(PING, 0, 0, &[1; 8])],
            "PING",
        ),
    ] {
        let found = ends_with(&frames);
        // A malformed request may end its stream or the connection (RFC 9113, section 8.1.1).
        assert!(end.split(" or ").any(|end| end == found), "{what}: {found}, not {end}");
    }
    let mut client = client(address, WIDE);
    client.send(&[get(1, HOST, "/small", None)]);
    assert_eq!(received(&client.until_ended(1), 1), 900);
    let left = server.stop();
    assert!(left.requests.iter().any(|request| request["status"] == 421 && request["matched"] == "none"));
}

#[test]
fn damaged_frames_neither_stop_nor_hang_the_server() {
    let (folder, address) = (Folder::new(), &address(10));
    let server = start(&folder, address, LARGE);
    let mut dice = Dice(2);
    for _ in 0..150 {
        let mut client = client(address, WIDE);
        let mut frames =
            vec![get(1, HOST, "/small", Some("u=1")), Frame::new(PRIORITY, 0, 1, &[0, 0, 0, 0, 9])];
        for _ in 0..dice.roll(6) {
            let payload: Vec<u8> = (0..dice.roll(40)).map(|_| dice.roll(256) as u8).collect();
            let at = dice.roll(frames.len() + 1);
            frames.insert(
                at,
                Frame::new(dice.roll(18) as u8, dice.roll(64) as u8, dice.roll(6) as u32, &payload),
            );
        }
        let mut bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        let at = dice.roll(bytes.len());
        bytes[at] ^= 1 << dice.roll(8);
        // The server may have closed by now; then there is nothing to send to.
        let _ = client.io.write_all(&bytes).and_then(|()| client.io.flush());
        client.io.conn.send_close_notify();
        let _ = client.io.flush();
        while client.next().is_some() {}
    }
    let mut client = client(address, WIDE);
    client.send(&[get(1, HOST, "/small", None)]);
    assert_eq!(received(&client.until_ended(1), 1), 900);
    assert_eq!(server.stop().summary["connections"], 151);
}
