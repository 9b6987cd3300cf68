//! One connection: its socket, TLS and HTTP.

use crate::event::{Event, Fault};
use crate::http1::Http1;
use crate::http2::Http2;
use crate::requests::Request;
use crate::tls::Settings;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use wirepaint_http_model::{HttpVersion, Priority};
use wirepaint_observed_sockets::{Poll, Socket as Kernel, set_congestion};

/// Where a connection begins and ends.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// Address of the client.
    pub client: Ipv4Addr,
    /// Congestion control of the client.
    pub congestion: &'a str,
    /// Address and port of the server.
    pub server: SocketAddrV4,
}

/// What has happened since the last look.
#[derive(Debug, Default)]
pub struct Seen {
    /// TCP is connected.
    pub connected: bool,
    /// Bytes of the server's part of the TLS handshake, which is complete.
    pub handshake: Option<u64>,
    /// What has come of answers.
    pub events: Vec<Event>,
    /// The server sends no more.
    pub ended: bool,
}

/// A connection.
pub struct Connection {
    socket: Socket,
    connected: bool,
    secure: Secure,
    /// Plaintext that came before the first request.
    early: Vec<u8>,
    http: Http,
    version: HttpVersion,
    /// Bytes that the kernel has not taken.
    unsent: Vec<u8>,
    ended: bool,
    /// Bytes received from the kernel.
    pub received: u64,
    /// Bytes that the kernel has taken.
    pub sent: u64,
    /// Congestion control that the kernel reports once it is connected.
    pub congestion: Option<String>,
}

enum Secure {
    Plain,
    /// TLS that has not begun.
    Later,
    Tls(Box<ClientConnection>),
}

enum Http {
    /// Nothing was requested.
    Idle,
    H1(Http1),
    H2(Box<Http2>),
}

impl Connection {
    /// Begins to connect. Changes of the socket come under `number`.
    pub fn open(
        ends: &Ends<'_>,
        encrypted: bool,
        version: HttpVersion,
        poll: &Poll,
        number: usize,
    ) -> Result<Connection, Fault> {
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_nonblocking(true)?;
            socket.set_tcp_nodelay(true)?;
            // The namespace's own needs no right to set it.
            if Kernel::of(socket.as_fd())?.congestion()? != ends.congestion {
                set_congestion(&socket, ends.congestion)?;
            }
            socket.bind(&SocketAddrV4::new(ends.client, 0).into())?;
            poll.watch(&socket, number)?;
            match socket.connect(&ends.server.into()) {
                Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
                _ => Ok(socket),
            }
        };
        let fault = |error| Fault::new(format!("connecting from {}: {error}", ends.client));
        Ok(Connection {
            socket: open().map_err(fault)?,
            connected: false,
            secure: if encrypted { Secure::Later } else { Secure::Plain },
            early: Vec::new(),
            http: Http::Idle,
            version,
            unsent: Vec::new(),
            ended: false,
            received: 0,
            sent: 0,
            congestion: None,
        })
    }

    /// The congestion control that the kernel reports now.
    pub fn present_congestion(&self) -> Option<String> {
        Kernel::of(self.socket.as_fd()).and_then(|socket| socket.congestion()).ok()
    }

    /// The client's port.
    pub fn port(&self) -> Option<u16> {
        self.socket.local_addr().ok()?.as_socket_ipv4().map(|address| address.port())
    }

    /// The TLS version, once it is negotiated, and whether the session was resumed.
    pub fn tls(&self) -> Option<(String, bool)> {
        let Secure::Tls(tls) = &self.secure else { return None };
        let version = match tls.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLS 1.2".to_owned(),
            rustls::ProtocolVersion::TLSv1_3 => "TLS 1.3".to_owned(),
            other => format!("{other:?}"),
        };
        Some((version, tls.handshake_kind() == Some(HandshakeKind::Resumed)))
    }

    /// Begins the TLS handshake.
    pub fn begin_tls(&mut self, settings: &Settings, host: &str) -> Result<(), Fault> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| Fault::new(format!("host {host:?}: {error}")))?;
        let mut tls = settings.connection(name).map_err(of_tls)?;
        tls.set_buffer_limit(None);
        self.secure = Secure::Tls(Box::new(tls));
        self.send()
    }

    /// Writes a request.
    pub fn ask(&mut self, request: Request, priority: Priority, seen: &mut Seen) -> Result<(), Fault> {
        if let Http::Idle = self.http {
            self.http = match self.version {
                HttpVersion::H1 => Http::H1(Http1::default()),
                HttpVersion::H2 => Http::H2(Box::new(Http2::new()?)),
            };
            let early = std::mem::take(&mut self.early);
            self.answer(&early, seen)?;
        }
        match &mut self.http {
            Http::Idle => {}
            Http::H1(http) => http.ask(&request),
            Http::H2(http) => {
                http.ask(request, priority);
                http.drive(&mut seen.events)?;
            }
        }
        self.send()
    }

    /// Tells the server a new priority of a request, where the version can.
    pub fn raise(&mut self, request: u32, priority: Priority) -> Result<(), Fault> {
        if let Http::H2(http) = &mut self.http {
            http.raise(request, priority);
        }
        self.send()
    }

    /// Does what the socket allows: connects, writes, and reads all that has come through `buffer`.
    pub fn look(&mut self, buffer: &mut [u8], seen: &mut Seen) -> Result<(), Fault> {
        if !self.connected {
            if let Some(error) = self.socket.take_error().map_err(Fault::from)? {
                return Err(Fault::new(format!("connecting: {error}")));
            }
            if self.socket.peer_addr().is_err() {
                return Ok(());
            }
            self.connected = true;
            self.congestion = self.present_congestion();
            seen.connected = true;
        }
        self.send()?;
        while !self.ended {
            match self.socket.read(buffer) {
                Ok(0) => self.ended = true,
                Ok(size) => {
                    self.received += size as u64;
                    self.receive(&buffer[..size], seen)?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The server has closed with bytes of the client unread: the answers until then are good.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => self.ended = true,
                Err(error) => return Err(error.into()),
            }
        }
        if self.ended {
            self.end(seen)?;
        }
        self.send()
    }

    fn end(&mut self, seen: &mut Seen) -> Result<(), Fault> {
        match (&mut self.http, &self.secure) {
            (_, Secure::Tls(tls)) if tls.is_handshaking() => {
                return Err(Fault::new("the server closed it during the TLS handshake"));
            }
            (Http::Idle, _) => {}
            (Http::H1(http), _) => http.end(&mut seen.events),
            (Http::H2(http), _) => http.end(&mut seen.events)?,
        }
        seen.ended = true;
        Ok(())
    }

    /// Reads bytes from the network.
    fn receive(&mut self, mut bytes: &[u8], seen: &mut Seen) -> Result<(), Fault> {
        let Secure::Tls(tls) = &mut self.secure else { return self.answer(bytes, seen) };
        let mut plain = Vec::new();
        let (mut begun, mut is_over) = (tls.is_handshaking(), false);
        while !bytes.is_empty() && !is_over {
            tls.read_tls(&mut bytes).map_err(Fault::from)?;
            let state = tls.process_new_packets();
            if let Err(error) = state {
                // The alert that says why.
                let _ = self.send();
                return Err(of_tls(error));
            }
            if begun && !tls.is_handshaking() {
                begun = false;
                seen.handshake = Some(self.received);
                let agreed = tls.alpn_protocol().unwrap_or(b"http/1.1");
                let wanted = self.version.protocol().alpn();
                if agreed != wanted.as_bytes() {
                    let agreed = String::from_utf8_lossy(agreed);
                    return Err(Fault::new(format!(
                        "the server agreed to {agreed:?}, the run has {wanted:?}"
                    )));
                }
            }
            match tls.reader().read_to_end(&mut plain) {
                // A clean end (close_notify).
                Ok(_) => is_over = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.ended |= is_over;
        self.answer(&plain, seen)
    }

    /// Reads plaintext.
    fn answer(&mut self, plain: &[u8], seen: &mut Seen) -> Result<(), Fault> {
        if plain.is_empty() {
            return Ok(());
        }
        match &mut self.http {
            Http::Idle if self.early.len() + plain.len() > EARLY_LIMIT => {
                Err(Fault::new("the server sent bytes that answer no request"))
            }
            Http::Idle => {
                self.early.extend_from_slice(plain);
                Ok(())
            }
            Http::H1(http) => {
                http.receive(plain, &mut seen.events)?;
                self.ended |= http.is_over;
                Ok(())
            }
            Http::H2(http) => {
                http.receive(plain, &mut seen.events)?;
                self.ended |= http.is_over;
                Ok(())
            }
        }
    }

    /// Gives the kernel all that is to be sent, as far as it takes it.
    fn send(&mut self) -> Result<(), Fault> {
        let output = match &mut self.http {
            Http::Idle => Vec::new(),
            Http::H1(http) => std::mem::take(&mut http.output),
            Http::H2(http) => http.output(),
        };
        match &mut self.secure {
            Secure::Tls(tls) => {
                tls.writer().write_all(&output).map_err(Fault::from)?;
                while tls.wants_write() {
                    tls.write_tls(&mut self.unsent).map_err(Fault::from)?;
                }
            }
            _ if self.unsent.is_empty() => self.unsent = output,
            _ => self.unsent.extend_from_slice(&output),
        }
        let mut taken = 0;
        while self.connected && taken < self.unsent.len() {
            match self.socket.send_with_flags(&self.unsent[taken..], libc::MSG_NOSIGNAL) {
                Ok(size) => taken += size,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The next read says how the connection ended, after what had come before.
                Err(_) => taken = self.unsent.len(),
            }
        }
        self.sent += taken as u64;
        self.unsent.drain(..taken);
        Ok(())
    }
}

/// Most plaintext that is kept before the first request: a server's settings.
const EARLY_LIMIT: usize = 64 * 1024;

fn of_tls(error: rustls::Error) -> Fault {
    Fault::new(format!("TLS: {error}"))
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::new(error.to_string())
    }
}
