//! Five hundred flows at once through each proxy: slow readers, resets and hostile ends beside flows that behave.

#[path = "support/crowd.rs"]
mod crowd;
mod support;

use crowd::{Client, FLOWS, LENGTH, head, pattern, reset, runtime, serve, slowly, start_together, taken};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use support::{Folder, Pep, Split, free_port, pep_run, skips};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Bytes that an origin sends before it breaks.
const BROKEN_AT: usize = 60_000;
/// What the proxies hold of each direction, or each side of the PEP of all answers.
const SPLIT_BUFFER: u64 = 65_536;
const PEP_BUFFER: u64 = 4 << 20;
/// Memory beside the buffers, as docs/guide/proxies.md states it: of a side, and for each connection.
const SIDE: u64 = 16 << 20;
const CONNECTION: u64 = 32 * 1024;

/// What an origin behind the split proxy does for the flow of a number.
async fn answer_split(mut stream: TcpStream) {
    let number = stream.read_u16().await.unwrap().into();
    match number % 10 {
        // The browser stops it.
        6 | 9 => while stream.write_all(pattern(number, LENGTH)).await.is_ok() {},
        7 => {
            stream.write_all(pattern(number, BROKEN_AT)).await.unwrap();
            taken(&stream).await;
            reset(stream);
        }
        _ => stream.write_all(pattern(number, LENGTH)).await.unwrap(),
    }
}

/// A flow through the split proxy; `all_done` changes when the others are done.
async fn flow_split(number: usize, mut client: TcpStream, mut all_done: watch::Receiver<bool>) {
    client.write_u16(number as u16).await.unwrap();
    let mut bytes = Vec::new();
    match number % 10 {
        6 | 9 => {
            bytes.resize(BROKEN_AT, 0);
            client.read_exact(&mut bytes).await.unwrap();
            assert!(bytes == pattern(number, BROKEN_AT), "{number}");
            // With an end or a reset, in the middle of the answer.
            if number % 10 == 6 {
                reset(client)
            } else {
                drop(client)
            }
            return;
        }
        7 => assert_eq!(slowly(&mut client, &mut bytes).await, Some(ErrorKind::ConnectionReset), "{number}"),
        8 => {
            all_done.wait_for(|done| *done).await.unwrap();
            client.read_to_end(&mut bytes).await.unwrap();
        }
        5 => assert_eq!(slowly(&mut client, &mut bytes).await, None, "{number}"),
        _ => drop(client.read_to_end(&mut bytes).await.unwrap()),
    }
    let length = if number % 10 == 7 { BROKEN_AT } else { LENGTH };
    assert!(bytes == pattern(number, length), "{number}: {} bytes", bytes.len());
}

#[test]
fn a_crowd_through_the_split_proxy_loses_nothing_and_costs_no_more_than_is_stated() {
    if skips() {
        return;
    }
    wirepaint_run::process::allow_many_files();
    let (split, server) = Split::start(SPLIT_BUFFER);
    runtime().block_on(async {
        serve(server, answer_split);
        let is_patient = |number: usize| number % 10 == 8;
        start_together(split.origin, is_patient, flow_split).await;
    });
    let peak = split.running.peak();
    eprintln!("split: {} kB", peak / 1024);
    assert!(peak < SIDE + FLOWS as u64 * (SPLIT_BUFFER + 2 * CONNECTION), "{peak} bytes");
    let summary = split.running.stop();
    let (flows, broken) = (FLOWS, 2 * FLOWS * 3 / 10);
    let counts =
        ["accepted", "opened", "refused", "reset"].map(|key| summary[key].as_u64().unwrap() as usize);
    assert_eq!(counts, [flows, flows, 0, broken], "{summary}");
    let records = split.folder.records("split").to_string();
    assert!(!records.contains("stalled"));
}

/// What is no answer. Of the last two the body's first bytes are one's.
const NO_ANSWERS: [&str; 9] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabcde",
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX: a\r\n b\r\n\r\nabcd",
    "nonsense\r\n\r\n",
    "endless fields",
    "an endless field",
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX",
];

const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: a.test\r\n\r\n";
/// Heads between which two parties may see different numbers of requests.
const SMUGGLING: [&str; 4] = [
    "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: a.test\r\nX: y\r\n Content-Length: 44\r\n\r\n",
    "GET /x HTTP/1.1\r\nHost: a.test\r\nContent-Length : 44\r\n\r\n",
];

/// What an origin behind the PEP answers: its path is `/`, the flow's number, and of a good one the request's.
async fn answer_pep(mut stream: TcpStream, asked: Arc<Mutex<Vec<String>>>) {
    while let Some(request) = head(&mut stream).await {
        let path = request.split(' ').nth(1).unwrap().to_owned();
        let mut parts = path[1..].split('/').map(|part| part.parse::<usize>().unwrap_or(usize::MAX));
        asked.lock().unwrap().push(path.clone());
        let (number, seed) = (parts.next().unwrap(), parts.sum::<usize>());
        let with_length = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        match number % 10 {
            6 => {
                let _ = stream.write_all(with_length(1_000_000_000).as_bytes()).await;
                while stream.write_all(pattern(number, LENGTH)).await.is_ok() {}
                return;
            }
            7 => {
                let head = with_length(LENGTH);
                stream.write_all(&[head.as_bytes(), pattern(number, BROKEN_AT)].concat()).await.unwrap();
                taken(&stream).await;
                // The number says whether it breaks with a reset or an end.
                return if number % 20 == 7 { reset(stream) } else { drop(stream) };
            }
            8 => {
                let answer = NO_ANSWERS[number / 10 % NO_ANSWERS.len()];
                let (first, rest): (&[u8], &[u8]) = match answer {
                    "endless fields" => (b"HTTP/1.1 200 OK\r\n", b"x-endless: yes\r\n"),
                    "an endless field" => (b"HTTP/1.1 200 OK\r\nx: ", &[b'y'; 4096]),
                    answer => (answer.as_bytes(), b""),
                };
                let _ = stream.write_all(first).await;
                while !rest.is_empty() && stream.write_all(rest).await.is_ok() {}
                return;
            }
            // In chunks of one byte.
            5 if number % 20 == 5 => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
                let chunk = |byte: &u8| [b"1\r\n", &[*byte][..], b"\r\n"].concat();
                let mut chunks: Vec<u8> = pattern(number, LENGTH).iter().flat_map(chunk).collect();
                chunks.extend(b"0\r\n\r\n");
                stream.write_all(&chunks).await.unwrap();
            }
            _ => {
                let body = pattern(number + seed, LENGTH);
                stream.write_all(&[with_length(LENGTH).as_bytes(), body].concat()).await.unwrap();
            }
        }
    }
}

/// A flow through the PEP; `all_done` changes when the others are done.
async fn flow_pep(number: usize, stream: TcpStream, mut all_done: watch::Receiver<bool>) {
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let mut client = Client(stream);
    match number % 10 {
        6 => {
            client.send(&get(&format!("/{number}"))).await;
            assert!(client.head().await.starts_with("HTTP/1.1 200 OK\r\n"));
            assert!(client.take(BROKEN_AT).await == pattern(number, BROKEN_AT), "{number}");
            reset(client.0);
        }
        7 => {
            // Before the answer that breaks comes a whole one.
            client.send(&(get(&format!("/{}/1", number - 7)) + &get(&format!("/{number}")))).await;
            let mut bytes = Vec::new();
            assert_eq!(slowly(&mut client.0, &mut bytes).await, Some(ErrorKind::ConnectionReset), "{number}");
            let mut client = Client(&bytes[..]);
            client.head().await;
            assert!(client.take(LENGTH).await == pattern(number - 6, LENGTH), "{number}");
            client.head().await;
            assert!(client.rest().await == pattern(number, BROKEN_AT), "{number}");
        }
        8 => {
            client.send(&get(&format!("/{number}"))).await;
            let mut bytes = Vec::new();
            let error = client.0.read_to_end(&mut bytes).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{number}");
            let begins = number / 10 % NO_ANSWERS.len() > 6;
            assert!(bytes.is_empty() || begins, "{number}: {bytes:?}");
        }
        9 => {
            client.send(&[SMUGGLING[number / 10 % SMUGGLING.len()], HIDDEN].concat()).await;
            let said = String::from_utf8(client.rest().await).unwrap();
            assert!(
                said.starts_with("HTTP/1.1 4") && said.matches("HTTP/1.1").count() == 1,
                "{number}: {said}"
            );
        }
        5 => {
            client.send(&get(&format!("/{number}"))).await;
            all_done.wait_for(|done| *done).await.unwrap();
            let head = client.head().await;
            let body =
                if head.contains("chunked") { client.chunks().await } else { client.take(LENGTH).await };
            assert!(body == pattern(number, LENGTH), "{number}");
        }
        _ => {
            for seed in 0..3 {
                client.send(&get(&format!("/{number}/{seed}"))).await;
                client.head().await;
                assert!(client.take(LENGTH).await == pattern(number + seed, LENGTH), "{number}");
            }
        }
    }
}

#[test]
fn a_crowd_through_the_pep_loses_nothing_and_costs_no_more_than_is_stated() {
    if skips() {
        return;
    }
    wirepaint_run::process::allow_many_files();
    let (folder, port) = (Folder::new(), free_port());
    let server = std::net::TcpListener::bind((support::address(1), 0)).unwrap();
    let listen_port = server.local_addr().unwrap().port();
    let mut run = pep_run(&folder, &[("http", "a.test")], port, listen_port);
    run["proxies"][0]["buffer_bytes"] = PEP_BUFFER.into();
    let pep = Pep::start(folder, &run);
    let origin: SocketAddr = format!("{}:{port}", support::address(1)).parse().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    runtime().block_on(async {
        let asked = asked.clone();
        serve(server, move |stream| answer_pep(stream, asked.clone()));
        start_together(origin, |number| number % 10 == 5, flow_pep).await;
    });
    let sides = [("remote", &pep.remote), ("ground", &pep.ground)];
    let peaks = sides.map(|(name, side)| (name, side.peak()));
    eprintln!("{:?}", peaks.map(|(name, bytes)| (name, bytes / 1024)));
    for (name, peak) in peaks {
        assert!(peak < SIDE + PEP_BUFFER + FLOWS as u64 * CONNECTION, "{name}: {peak} bytes");
    }
    let asked = asked.lock().unwrap();
    assert!(!asked.iter().any(|path| path.contains("hidden")));
    let of_good_flows = asked.iter().filter(|path| path.matches('/').count() == 2).count();
    assert_eq!(of_good_flows, FLOWS / 2 * 3 + FLOWS / 10, "each once");
    assert_eq!(pep.remote.stop()["lost"], serde_json::json!([]));
}
