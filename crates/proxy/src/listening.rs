//! Sockets that accept connections to any address, and those that the proxy opens.

use crate::Failure;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use wirepaint_observed_sockets::{set_congestion, set_transparent};

/// Largest backlog of connections not yet accepted; the kernel cuts it to `somaxconn`.
const BACKLOG: u32 = 4096;

/// Refuses a congestion control that the kernel lacks or does not give to this process.
pub fn check_congestion(key: &'static str, name: &str) -> Result<(), Failure> {
    let socket = TcpSocket::new_v4().map_err(Failure::system("a socket"))?;
    set_congestion(&socket, name).map_err(|source| Failure::congestion(key, name, source))
}

/// Listens on a port for connections to any address. The accepted sockets have the congestion control.
pub fn transparent(port: u16, congestion: &str) -> Result<TcpListener, Failure> {
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let system = || Failure::system(format!("listening on {address}"));
    let socket = TcpSocket::new_v4().map_err(system())?;
    set_transparent(&socket).map_err(|source| Failure::Transparent { address, source })?;
    listen(socket, address, congestion).map_err(system())
}

/// Listens at an address. The accepted sockets have the congestion control.
pub fn listen(socket: TcpSocket, address: SocketAddrV4, congestion: &str) -> io::Result<TcpListener> {
    socket.set_reuseaddr(true)?;
    socket.bind(address.into())?;
    // Before the first SYN can arrive: an accepted socket inherits its listener's congestion control.
    set_congestion(&socket, congestion)?;
    socket.listen(BACKLOG)
}

/// Opens a connection with a congestion control. Its local address is left to the route.
pub async fn connect(address: SocketAddrV4, congestion: &str) -> io::Result<TcpStream> {
    connect_prepared(address, congestion, |_| Ok(())).await
}

/// The same; `prepare` is called with the socket before it is connected.
pub async fn connect_prepared(
    address: SocketAddrV4,
    congestion: &str,
    prepare: impl Fn(&TcpSocket) -> io::Result<()>,
) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    set_congestion(&socket, congestion)?;
    prepare(&socket)?;
    let stream = socket.connect(address.into()).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// An address of version 4.
pub fn v4(address: io::Result<SocketAddr>) -> io::Result<SocketAddrV4> {
    match address? {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(address) => Err(io::Error::other(format!("found {address}, accepted: IPv4"))),
    }
}
