//! The other side of the PEP, played by a test frame by frame; `pep/wire.rs` has the format.

use super::origin::{LIMIT, origin};
use super::{Folder, Running, address, free_port, pep_run};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};

pub const HELLO: u8 = 0;
pub const REQUEST: u8 = 1;
pub const BODY: u8 = 2;
pub const CREDIT: u8 = 3;
pub const CANCEL: u8 = 4;
pub const PRIORITY: u8 = 5;
pub const PROMISE: u8 = 6;
pub const SERVE: u8 = 7;
pub const DATA: u8 = 8;

/// Flag of an answer's last bytes: its origin ended it.
pub const WHOLE: u8 = 1;
/// Flag of an answer's last bytes: its origin failed.
pub const BROKEN: u8 = 2;
/// Place of the last byte of the user's address in a request.
pub const USER_AT: usize = 3;
/// Place of the priority in a request.
pub const PRIORITY_AT: usize = 13;

#[derive(Debug, PartialEq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The only connection between the sides.
pub struct Link(TcpStream);

impl Link {
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let head = [&[kind], &length[1..], &[flags], &stream.to_be_bytes()].concat();
        self.0.write_all(&[&head, payload].concat()).unwrap();
    }

    /// Sends bytes of an answer.
    pub fn answer(&mut self, stream: u32, flags: u8, offset: usize, bytes: &[u8]) {
        let offset = (offset as u64).to_be_bytes();
        self.send(DATA, flags, stream, &[&offset[3..], bytes].concat());
    }

    /// How it ends behind the last frame; panics if that is in order.
    pub fn error(&mut self) -> std::io::ErrorKind {
        self.0.read(&mut [0]).unwrap_err().kind()
    }

    /// The next frame; panics if none comes.
    pub fn next(&mut self) -> Frame {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).expect("a frame");
        let mut payload = vec![0; u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize];
        self.0.read_exact(&mut payload).expect("a whole frame");
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Frame { kind: head[0], flags: head[4], stream, payload }
    }

    /// The next frame of a kind; others are passed over.
    pub fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next();
            if frame.kind == kind {
                return frame;
            }
        }
    }
}

/// The remote side, the link to the test in the place of the ground side, and where browsers connect to.
pub fn remote(scheme: &str, prepare: impl Fn(&Folder, &mut Value)) -> (Folder, Running, Link, SocketAddr) {
    let (folder, port) = (Folder::new(), free_port());
    let mut run = pep_run(&folder, &[(scheme, "a.test")], port, port);
    run["proxies"][0]["connections"] = 1.into();
    prepare(&folder, &mut run);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    run["proxies"][0]["port"] = listener.local_addr().unwrap().port().into();
    let running = folder.start("pep", &run, "remote");
    let mut link = linked(listener.accept().unwrap().0);
    assert_eq!(link.next().kind, HELLO);
    (folder, running, link, format!("{}:{port}", address(1)).parse().unwrap())
}

/// The ground side before an origin, the link to the test in the place of the remote side, and the origin's port.
pub fn ground(
    serve: impl Fn(TcpStream, usize) + Send + Sync + Clone + 'static,
    change: impl Fn(&mut Value),
) -> (Folder, Running, Link, u16) {
    let (folder, port) = (Folder::new(), free_port());
    let listen_port = origin(1, serve);
    let mut run = pep_run(&folder, &[("http", "a.test")], port, listen_port);
    run["proxies"][0]["connections"] = 1.into();
    change(&mut run);
    let running = folder.start("pep", &run, "ground");
    let link_port = run["proxies"][0]["port"].as_u64().unwrap() as u16;
    let mut link = linked(TcpStream::connect(("127.0.0.1", link_port)).unwrap());
    link.send(HELLO, 0, 0, &[1, 0, 0]);
    (folder, running, link, port)
}

fn linked(stream: TcpStream) -> Link {
    stream.set_read_timeout(LIMIT).unwrap();
    stream.set_nodelay(true).unwrap();
    Link(stream)
}

/// A GET without fields as the remote side hands it over.
pub fn request(port: u16, path: &str) -> Vec<u8> {
    request_with(port, path, &[])
}

/// A GET with these fields.
pub fn request_with(port: u16, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ends =
        [SocketAddrV4::new(Ipv4Addr::LOCALHOST, 40_000), format!("{}:{port}", address(1)).parse().unwrap()];
    for end in ends {
        bytes.extend(end.ip().octets());
        bytes.extend(end.port().to_be_bytes());
    }
    let (flags, urgency, no_body) = (0, 3, 0);
    bytes.extend([flags, urgency, no_body]);
    bytes.extend(0_u64.to_be_bytes());
    for text in ["GET", &format!("a.test:{port}"), path] {
        put_text(&mut bytes, text);
    }
    put_fields(&mut bytes, fields);
    bytes
}

/// The head of an answer without fields.
pub fn head(status: u16, length: u64) -> Vec<u8> {
    head_with(status, length, &[])
}

/// The head of an answer with these fields.
pub fn head_with(status: u16, length: u64, fields: &[(&str, &str)]) -> Vec<u8> {
    let (not_coded, has_length) = ([0], [1]);
    let mut rest = [&status.to_be_bytes()[..], &not_coded, &has_length, &length.to_be_bytes()].concat();
    put_fields(&mut rest, fields);
    [&(rest.len() as u32).to_be_bytes()[..], &rest].concat()
}

fn put_fields(bytes: &mut Vec<u8>, fields: &[(&str, &str)]) {
    bytes.extend((fields.len() as u16).to_be_bytes());
    fields.iter().flat_map(|(name, value)| [name, value]).for_each(|text| put_text(bytes, text));
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_be_bytes());
    bytes.extend(text.bytes());
}
