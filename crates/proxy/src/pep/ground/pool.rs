//! Persistent connections to origins.

use crate::counted::{Counted, Ending};
use crate::listening::{self, v4};
use crate::pep::http1::Reader;
use crate::records::{ConnectionId, Records};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use wirepaint_observed_sockets::Socket;

/// Most answers of an origin that are fetched ahead at once: as many connections as nginx keeps to its upstream by
/// default.
const AHEAD: usize = 32;
/// Time for a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);

/// Who is connected to: address, and the name in TLS.
type Key = (SocketAddrV4, Option<String>);

/// The connections.
pub struct Pool {
    congestion: String,
    tls: Option<Arc<ClientConfig>>,
    /// Port of each origin's socket.
    ports: BTreeMap<SocketAddrV4, u16>,
    idle: RefCell<BTreeMap<Key, Vec<Connection>>>,
    permits: RefCell<BTreeMap<Key, Arc<Semaphore>>>,
    records: Rc<Records>,
}

/// A connection to an origin.
pub struct Connection {
    key: Key,
    pub reader: Reader<Io>,
    pub id: ConnectionId,
    /// It has carried an answer before.
    pub is_used: bool,
    ending: Ending,
}

/// Bytes of a connection, encrypted or not.
pub enum Io {
    Plain(Counted),
    Tls(Box<TlsStream<Counted>>),
}

impl Pool {
    pub fn new(
        congestion: String,
        tls: Option<Arc<ClientConfig>>,
        ports: BTreeMap<SocketAddrV4, u16>,
        records: Rc<Records>,
    ) -> Pool {
        let (idle, permits) = (RefCell::default(), RefCell::default());
        Pool { congestion, tls, ports, idle, permits, records }
    }

    /// Waits while too much is fetched ahead from an origin. What browsers asked for needs no permit: of answers that
    /// wait for their browsers there may be many.
    pub async fn permit(&self, address: SocketAddrV4, name: Option<String>) -> Option<OwnedSemaphorePermit> {
        let permits = self
            .permits
            .borrow_mut()
            .entry((address, name))
            .or_insert_with(|| Arc::new(Semaphore::new(AHEAD)))
            .clone();
        permits.acquire_owned().await.ok()
    }

    /// An idle connection, or a new one; `fresh` asks for a new one.
    pub async fn take(
        &self,
        address: SocketAddrV4,
        name: Option<String>,
        fresh: bool,
    ) -> io::Result<Connection> {
        let key = (address, name);
        let idle = if fresh { None } else { self.idle(&key) };
        match idle {
            Some(connection) => Ok(connection),
            None => self.open(key).await.inspect_err(|error| {
                self.records.refused(address, None, error.to_string());
            }),
        }
    }

    /// An idle connection that its origin has not closed, the newest first.
    fn idle(&self, key: &Key) -> Option<Connection> {
        loop {
            let mut connection = self.idle.borrow_mut().get_mut(key)?.pop()?;
            if connection.reader.io.is_silent() {
                return Some(connection);
            }
            connection.close();
        }
    }

    /// Keeps a connection whose answer is complete.
    pub fn give_back(&self, mut connection: Connection) {
        if !connection.reader.has_bytes() {
            connection.is_used = true;
            self.idle.borrow_mut().entry(connection.key.clone()).or_default().push(connection);
        }
    }

    async fn open(&self, key: Key) -> io::Result<Connection> {
        let port = self.ports.get(&key.0).copied().unwrap_or(key.0.port());
        let address = SocketAddrV4::new(*key.0.ip(), port);
        let stream = listening::connect(address, &self.congestion).await?;
        let socket = Rc::new(Socket::of(stream.as_fd())?);
        let id = self.records.opened(v4(stream.local_addr())?, address, socket.clone());
        let counted = Counted::new(stream, socket, self.records.clone(), id);
        let ending = counted.ending();
        let io = match &key.1 {
            None => Io::Plain(counted),
            Some(name) => {
                let tls =
                    self.tls.clone().ok_or_else(|| io::Error::other("no origin of the run is encrypted"))?;
                let name = ServerName::try_from(name.clone()).map_err(io::Error::other)?;
                let handshake = TlsConnector::from(tls).connect(name, counted);
                Io::Tls(Box::new(timeout(HANDSHAKE_TIME, handshake).await??))
            }
        };
        Ok(Connection { key, reader: Reader::new(io), id, is_used: false, ending })
    }
}

impl Connection {
    /// Ends it in order: its answers are complete. Who only drops it resets it.
    pub fn close(self) {
        self.ending.in_order();
    }
}

impl Io {
    /// Whether the other end has neither closed it nor sent anything. Who sends on a closed connection learns it too
    /// late to repeat what must not be done twice.
    fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(self).poll_read(&mut cx, &mut ReadBuf::new(&mut byte)).is_pending()
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_read(cx, buffer),
            Io::Tls(io) => Pin::new(io).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_write(cx, bytes),
            Io::Tls(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_flush(cx),
            Io::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Io::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}
