//! The split proxy on loopback: clients and servers see what they would see without it.

mod support;

use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use support::{Folder, Split, address, free_port, skips, split_run};

/// Bytes that show where they belong.
fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at + seed) % 251) as u8).collect()
}

fn reset(stream: &TcpStream) {
    SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

/// What can be read before the end, and the error of an end that is none.
fn read_to_end(stream: &mut TcpStream) -> (Vec<u8>, Option<ErrorKind>) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut bytes = Vec::new();
    let error = stream.read_to_end(&mut bytes).err().map(|error| error.kind());
    (bytes, error)
}

/// The error that a connection has within so many seconds, though nobody reads.
fn error_within(seconds: u64, stream: &TcpStream) -> Option<ErrorKind> {
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        if let Some(error) = stream.take_error().unwrap() {
            return Some(error.kind());
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn a_half_closed_connection_still_carries_the_answer() {
    if skips() {
        return;
    }
    let (split, server) = Split::start(65_536);
    let (request, answer) = (pattern(1, 3_000_000), pattern(2, 5_000_000));
    let serving = thread::spawn({
        let (request, answer) = (request.clone(), answer.clone());
        move || {
            let (mut stream, _) = server.accept().unwrap();
            assert_eq!(read_to_end(&mut stream), (request, None));
            stream.write_all(&answer).unwrap();
        }
    });
    let mut client = TcpStream::connect(split.origin).unwrap();
    let local = client.local_addr().unwrap();
    client.write_all(&request).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut client), (answer, None));
    serving.join().unwrap();
    thread::sleep(Duration::from_millis(100));
    let summary = split.running.stop();
    let expected = [("accepted", 1), ("opened", 1), ("refused", 0), ("reset", 0), ("congestion_differs", 0)];
    for (key, count) in expected {
        assert_eq!(summary[key], count, "{key} of {summary}");
    }
    let records = split.folder.records("split");
    let [accepted, opened] = [&records["connections"][0], &records["connections"][1]];
    assert_eq!((&accepted["direction"], &opened["direction"]), (&"accepted".into(), &"opened".into()));
    assert_eq!(accepted["client_port"], local.port());
    assert_eq!(accepted["server_port"], split.origin.port());
    assert_eq!(accepted["server_address"], split.origin.ip().to_string());
    assert_eq!((&accepted["congestion"], &accepted["congestion_end"]), (&"reno".into(), &"reno".into()));
    assert_eq!((&opened["congestion"], &opened["congestion_end"]), (&"cubic".into(), &"cubic".into()));
    assert_eq!(
        (&accepted["bytes_received"], &accepted["bytes_sent"]),
        (&3_000_000.into(), &5_000_000.into())
    );
    assert_eq!((&opened["bytes_sent"], &opened["bytes_received"]), (&3_000_000.into(), &5_000_000.into()));
    assert_eq!(opened["carries"], serde_json::json!([0]));
    assert!(accepted["closed"].as_u64() > accepted["accepted"].as_u64());
    assert!(opened["tcp"]["bytes_acked"].as_u64() >= Some(3_000_000));
}

#[test]
fn the_bytes_before_a_reset_arrive_and_then_the_reset() {
    if skips() {
        return;
    }
    let (split, server) = Split::start(65_536);
    let mut client = TcpStream::connect(split.origin).unwrap();
    let (mut stream, _) = server.accept().unwrap();
    let answer = pattern(3, 100_000);
    stream.write_all(&answer).unwrap();
    thread::sleep(Duration::from_millis(100));
    reset(&stream);
    drop(stream);
    assert_eq!(read_to_end(&mut client), (answer, Some(ErrorKind::ConnectionReset)));
    assert_eq!(split.running.stop()["reset"], 2);
}

#[test]
fn bytes_before_a_reset_arrive_however_slowly_they_are_read() {
    if skips() {
        return;
    }
    let (split, server) = Split::start(4 << 20);
    let mut client = TcpStream::connect(split.origin).unwrap();
    SockRef::from(&client).set_recv_buffer_size(32_768).unwrap();
    let (mut stream, _) = server.accept().unwrap();
    let answer = pattern(4, 1_600_000);
    stream.write_all(&answer).unwrap();
    thread::sleep(Duration::from_millis(300));
    reset(&stream);
    drop(stream);
    // It takes 8 s.
    let (mut bytes, mut part) = (Vec::new(), [0; 20_000]);
    while bytes.len() < answer.len() {
        client.read_exact(&mut part).unwrap_or_else(|error| panic!("{error} after {} bytes", bytes.len()));
        bytes.extend(part);
        thread::sleep(Duration::from_millis(100));
    }
    assert!(bytes == answer);
    assert_eq!(read_to_end(&mut client), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    drop(client);
    split.running.stop();
    assert_eq!(split.folder.records("split")["connections"][0]["ended"], "reset");
}

#[test]
fn a_reset_goes_on_soon_where_the_other_end_reads_nothing() {
    if skips() {
        return;
    }
    for (buffer, at_once) in [(65_536, 100_000), (32 << 20, 8_000_000)] {
        let (split, server) = Split::start(buffer);
        let mut client = TcpStream::connect(split.origin).unwrap();
        let (stream, _) = server.accept().unwrap();
        // With the small buffer the proxy reads no more and cannot read of the reset.
        client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        client.write_all(&pattern(0, at_once)).unwrap();
        while buffer == 65_536 && client.write(&pattern(0, at_once)).is_ok() {}
        reset(&client);
        drop(client);
        assert_eq!(error_within(8, &stream), Some(ErrorKind::ConnectionReset), "buffer {buffer}");
        assert_eq!(split.running.stop()["reset"], 2);
        let records = split.folder.records("split");
        let ended = [0, 1].map(|place| records["connections"][place]["ended"].as_str().unwrap().to_owned());
        assert_eq!(ended, ["reset", "stalled"], "buffer {buffer}");
    }
}

#[test]
fn a_client_that_resets_after_its_last_byte_resets_the_servers_connection() {
    if skips() {
        return;
    }
    let (split, server) = Split::start(65_536);
    let mut client = TcpStream::connect(split.origin).unwrap();
    let (mut stream, _) = server.accept().unwrap();
    client.write_all(&pattern(5, 1000)).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut stream), (pattern(5, 1000), None));
    reset(&client);
    drop(client);
    assert_eq!(error_within(2, &stream), Some(ErrorKind::BrokenPipe));
}

#[test]
fn a_client_that_resets_in_mid_answer_resets_the_servers_connection() {
    if skips() {
        return;
    }
    let (split, server) = Split::start(65_536);
    let mut client = TcpStream::connect(split.origin).unwrap();
    let (mut stream, _) = server.accept().unwrap();
    let mut some = [0; 1000];
    stream.write_all(&pattern(0, 1000)).unwrap();
    client.read_exact(&mut some).unwrap();
    reset(&client);
    drop(client);
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    let error = loop {
        if let Err(error) = stream.write_all(&pattern(0, 100_000)) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
}

#[test]
fn a_destination_that_refuses_is_a_reset() {
    if skips() {
        return;
    }
    // It is bound and does not listen: it refuses, and no other test can have its port.
    let refusing = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any_port: SocketAddr = format!("{}:0", address(1)).parse().unwrap();
    refusing.bind(&any_port.into()).unwrap();
    let target = refusing.local_addr().unwrap().as_socket().unwrap();
    let split = Split::before(target.port(), 65_536);
    // The reset may come before this process hears that the connection is open: then connect has it.
    let seen = match TcpStream::connect(split.origin) {
        Ok(mut client) => read_to_end(&mut client),
        Err(error) => (Vec::new(), Some(error.kind())),
    };
    assert_eq!(seen, (Vec::new(), Some(ErrorKind::ConnectionReset)));
    assert_eq!(split.running.stop()["refused"], 1);
    let records = split.folder.records("split");
    assert_eq!(
        (&records["refused"][0]["carries"], &records["connections"][0]["ended"]),
        (&0.into(), &"reset".into())
    );
}

#[test]
fn readers_that_stop_cost_no_more_than_their_buffers_and_lose_nothing() {
    if skips() {
        return;
    }
    const FLOWS: usize = 40;
    const BUFFER: u64 = 256 * 1024;
    let (split, server) = Split::start(BUFFER);
    let before = split.running.resident();
    let length = 24_000_000;
    let mut clients: Vec<_> = (0..FLOWS).map(|_| TcpStream::connect(split.origin).unwrap()).collect();
    let serving: Vec<_> = (0..FLOWS)
        .map(|_| {
            let (mut stream, _) = server.accept().unwrap();
            thread::spawn(move || stream.write_all(&pattern(0, length)).unwrap())
        })
        .collect();
    thread::sleep(Duration::from_secs(1));
    assert!(serving.iter().all(|thread| !thread.is_finished()), "the senders are held back");
    let grown = split.running.resident() - before;
    assert!(grown < FLOWS as u64 * BUFFER * 5 / 4 + (8 << 20), "{grown} bytes more");
    for client in &mut clients {
        let mut bytes = vec![0; length];
        client.read_exact(&mut bytes).unwrap();
        assert!(bytes == pattern(0, length));
    }
    serving.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn five_hundred_connections_at_once_keep_their_bytes_apart() {
    if skips() {
        return;
    }
    const FLOWS: usize = 500;
    wirepaint_run::process::allow_many_files();
    let (split, server) = Split::start(65_536);
    let serving = thread::spawn(move || {
        let streams: Vec<_> = (0..FLOWS).map(|_| server.accept().unwrap().0).collect();
        for mut stream in streams {
            let mut number = [0; 2];
            stream.read_exact(&mut number).unwrap();
            stream.write_all(&pattern(u16::from_be_bytes(number).into(), 20_000)).unwrap();
        }
    });
    let mut clients: Vec<_> = (0..FLOWS).map(|_| TcpStream::connect(split.origin).unwrap()).collect();
    for (number, client) in clients.iter_mut().enumerate().rev() {
        client.write_all(&(number as u16).to_be_bytes()).unwrap();
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(read_to_end(client), (pattern(number, 20_000), None));
    }
    serving.join().unwrap();
    drop(clients);
    thread::sleep(Duration::from_millis(200));
    let summary = split.running.stop();
    assert_eq!([&summary["accepted"], &summary["opened"], &summary["reset"]], [500, 500, 0]);
}

#[test]
fn a_wrong_description_is_refused_with_its_key() {
    let folder = Folder::new();
    let run = split_run(&folder, free_port(), 1, 65_536);
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = run.clone();
        change(&mut changed);
        changed
    };
    let cases = [
        (run.clone(), "other", "hosts: found no host \"other\", accepted: one of [\"split\", \"server\"]"),
        (run.clone(), "server", "hosts[1].role: found server, accepted: proxy"),
        (with(&|run| drop(run["hosts"][0]["upstream"].take())), "split", "hosts[0].upstream: found nothing"),
        (
            with(&|run| run["proxies"] = serde_json::json!([])),
            "split",
            "proxies: found none of kind \"split\"",
        ),
        (
            with(&|run| run["proxies"][0]["buffer_bytes"] = 1.into()),
            "split",
            "proxies[0].buffer_bytes: found 1,",
        ),
        (with(&|run| run["sites"] = serde_json::json!({})), "split", "sites: found no origin"),
    ];
    for (run, host, text) in cases {
        let (code, message) = folder.refused("split", &run, host);
        assert!(code == 2 && message.contains(text) && message.lines().count() == 1, "{code}: {message}");
    }
    let unknown = with(&|run| run["hosts"][0]["congestion"] = "nowhere".into());
    let (code, message) = folder.refused("split", &unknown, "split");
    assert!(code == 1 && message.contains("hosts.congestion: congestion control \"nowhere\""), "{message}");
}
