//! The server's listening sockets.

use std::io;
use std::net::SocketAddrV4;
use tokio::net::{TcpListener, TcpSocket};
use wirepaint_observed_sockets::set_congestion;

/// Largest backlog of connections not yet accepted; the kernel cuts it to `somaxconn`.
const BACKLOG: u32 = 4096;

/// Binds and listens, without a congestion control set.
pub fn listen(address: SocketAddrV4, congestion: &str) -> io::Result<Result<TcpListener, io::Error>> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address.into())?;
    // Before the first SYN can arrive: an accepted socket inherits its listener's congestion control.
    if let Err(refused) = set_congestion(&socket, congestion) {
        return Ok(Err(refused));
    }
    socket.listen(BACKLOG).map(Ok)
}
