//! The remote side's start: connections to the ground side, then sockets for browsers.

use super::http1::{self, Browser};
use super::{Remote, http2};
use crate::Failure;
use crate::counted::Counted;
use crate::listening::{self, v4};
use crate::pep::Settings;
use crate::pep::link::{self, Out};
use crate::pep::wire::{Frame, VERSION};
use crate::records::{Ended, Records};
use bytes::BytesMut;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use wirepaint_observed_sockets::{Socket, set_code_point};

/// Time for a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);
/// Time in which the ground side must listen.
const GROUND_TIME: Duration = Duration::from_secs(15);
/// Time between two attempts to reach it.
const GROUND_AGAIN: Duration = Duration::from_millis(50);

/// What a browser reaches at an address: TLS with these certificates, or none.
type Acceptors = Rc<BTreeMap<SocketAddrV4, Option<TlsAcceptor>>>;

/// Opens the connections to the ground side and listens for browsers.
pub async fn begin(settings: &Settings, records: &Rc<Records>) -> Result<Rc<Remote>, Failure> {
    let policy = settings.policy.clone();
    let until = Instant::now() + GROUND_TIME;
    let mut links = Vec::new();
    for connection in 0..policy.connection_count() {
        let class = policy.class_of_connection(connection);
        let stream = reach(settings, class, until).await?;
        let system = || Failure::system("a connection to the ground side");
        let socket = Rc::new(Socket::of(stream.as_fd()).map_err(system())?);
        socket.reset_when_closed(true);
        let local = v4(stream.local_addr()).map_err(system())?;
        let out = Out::new(records.opened(local, settings.ground, socket.clone()));
        let number = (connection % policy.connections) as u8;
        out.put(&Frame::Hello { version: VERSION, class: class as u8, number });
        links.push((stream, socket, out));
    }
    let outs = links.iter().map(|(_, _, out)| out.clone()).collect();
    let remote = Remote::new(policy, settings.classes.clone(), outs, settings.buffer_bytes, records.clone());
    for (stream, socket, out) in links {
        let (remote, records) = (remote.clone(), records.clone());
        let serve = link::serve(stream, socket, out, BytesMut::new(), false, remote, records);
        tokio::task::spawn_local(serve);
    }
    let mut acceptors = BTreeMap::new();
    for (address, origins) in &settings.origins {
        let acceptor = match &settings.authority {
            Some(authority) if origins.encrypted => {
                let hosts: Vec<_> = origins.hosts.iter().map(String::as_str).collect();
                Some(TlsAcceptor::from(authority.config(&hosts, &settings.transport)?))
            }
            _ => None,
        };
        acceptors.insert(*address, acceptor);
    }
    let acceptors = Rc::new(acceptors);
    for &port in &settings.ports {
        let listener = listening::transparent(port, &settings.congestion)?;
        tokio::task::spawn_local(accept(listener, acceptors.clone(), remote.clone()));
    }
    Ok(remote)
}

/// Connects to the ground side; it may be about to start.
async fn reach(settings: &Settings, class: usize, until: Instant) -> Result<TcpStream, Failure> {
    let code_point = settings.policy.classes.get(class).map(|class| class.dscp);
    let prepare = |socket: &tokio::net::TcpSocket| match code_point {
        Some(code_point) => set_code_point(socket, code_point),
        None => Ok(()),
    };
    loop {
        match listening::connect_prepared(settings.ground, &settings.upstream_congestion, prepare).await {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < until => sleep(GROUND_AGAIN).await,
            Err(error) => {
                return Err(
                    Failure::system(format!("connecting to the ground side at {}", settings.ground))(error),
                );
            }
        }
    }
}

async fn accept(listener: TcpListener, acceptors: Acceptors, remote: Rc<Remote>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::task::spawn_local(connection(stream, acceptors.clone(), remote.clone()));
            }
            // Out of descriptors or memory, or the client gave up; later accepts may succeed.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(stream: TcpStream, acceptors: Acceptors, remote: Rc<Remote>) {
    let (Ok(user), Ok(destination)) = (v4(stream.peer_addr()), v4(stream.local_addr())) else { return };
    // Without a second descriptor the kernel cannot be asked about the connection, so it is not served.
    let Ok(socket) = Socket::of(stream.as_fd()).map(Rc::new) else { return };
    let id = remote.records.accepted(user, destination, socket.clone());
    let Some(acceptor) = acceptors.get(&destination) else {
        remote.records.refused(destination, Some(id), "no origin of the run".to_owned());
        socket.reset_when_closed(true);
        return remote.records.closed(id, Ended::Reset);
    };
    let counted = Counted::new(stream, socket, remote.records.clone(), id);
    let encrypted = acceptor.is_some();
    let browser = Browser { user, destination, encrypted, id, ending: counted.ending() };
    let Some(acceptor) = acceptor else { return http1::serve(counted, remote, browser).await };
    let stream = match timeout(HANDSHAKE_TIME, acceptor.accept(counted).into_fallible()).await {
        Ok(Ok(stream)) => stream,
        // The client reads the alert before the connection ends.
        Ok(Err(_failed)) => return browser.ending.in_order(),
        Err(_) => return,
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2::serve(stream, remote, browser).await;
    } else {
        http1::serve(stream, remote, browser).await;
    }
}
