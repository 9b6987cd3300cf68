//! Servers of the tests' own, which may be hostile, and browsers that are sockets.

use super::{Folder, Pep, address, free_port, pep_run};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Longest time for anything to arrive.
pub const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

/// A PEP, and a server for what it opens: `serve` has each connection and its number.
pub fn before(
    serve: impl Fn(TcpStream, usize) + Send + Sync + Clone + 'static,
    change: impl Fn(&mut serde_json::Value),
) -> (Pep, SocketAddr) {
    let (folder, port) = (Folder::new(), free_port());
    let listen_port = origin(1, serve);
    let mut run = pep_run(&folder, &[("http", "a.test")], port, listen_port);
    change(&mut run);
    (Pep::start(folder, &run), format!("{}:{port}", address(1)).parse().unwrap())
}

/// A server at an address of the tests: `serve` has each connection and its number. Returns its port.
pub fn origin(number: u8, serve: impl Fn(TcpStream, usize) + Send + Sync + Clone + 'static) -> u16 {
    let server = TcpListener::bind((address(number), 0)).unwrap();
    let port = server.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in server.incoming().enumerate() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream.unwrap(), number));
        }
    });
    port
}

/// Reads a head from a connection; `None` at its end.
pub fn head(stream: &mut impl Read) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        text.push(byte[0]);
    }
    Some(String::from_utf8(text).unwrap())
}

/// Answers each request of a connection.
pub fn answering(
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + Clone + 'static,
) -> impl Fn(TcpStream, usize) + Clone {
    move |mut stream, _| {
        while let Some(request) = head(&mut stream) {
            if stream.write_all(&answer(&request)).is_err() {
                return;
            }
        }
    }
}

/// A request of the test's host.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nUser-Agent: x\r\n\r\n")
}

/// A browser's connection.
pub fn connect(origin: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(origin).unwrap();
    stream.set_read_timeout(LIMIT).unwrap();
    stream
}

/// An answer with a length: its head and its body.
pub fn answer(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let head = head(stream).expect("an answer");
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

/// A page, as bytes.
pub fn html(page: &str) -> Vec<u8> {
    let length = page.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{page}").into()
}

/// An answer with a length, as bytes.
pub fn with_length(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nX-Origin: yes\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
