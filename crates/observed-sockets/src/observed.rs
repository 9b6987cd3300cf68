//! What the kernel tells of a connection when it begins and when it ends.

use crate::{Socket, TcpInfo};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

/// A connection's part of the records. Times are nanoseconds since the run's epoch.
#[derive(Serialize)]
pub struct Observed {
    /// Of the end that opened the connection.
    pub client_address: Ipv4Addr,
    /// Of the end that opened the connection.
    pub client_port: u16,
    /// Of the end that accepted it.
    pub server_address: Ipv4Addr,
    /// Of the end that accepted it.
    pub server_port: u16,
    /// When this end had the connection.
    pub accepted: u64,
    /// When this end was done with it; null while it is open.
    pub closed: Option<u64>,
    congestion: Option<String>,
    congestion_end: Option<String>,
    initial_window: Option<u32>,
    /// Segments of the handshake that this end retransmitted. After one, Linux begins with a window of 1
    /// (`tcp_init_transfer`).
    handshake_retrans: Option<u32>,
    tcp: Option<TcpInfo>,
    #[serde(skip)]
    socket: Option<Rc<Socket>>,
}

impl Observed {
    /// A connection that exists since `now`; asks the kernel for its congestion control and initial window.
    pub fn new(client: SocketAddrV4, server: SocketAddrV4, now: u64, socket: Rc<Socket>) -> Observed {
        let at_start = socket.tcp_info().ok();
        Observed {
            client_address: *client.ip(),
            client_port: client.port(),
            server_address: *server.ip(),
            server_port: server.port(),
            accepted: now,
            closed: None,
            congestion: socket.congestion().ok(),
            congestion_end: None,
            initial_window: at_start.as_ref().map(|info| info.snd_cwnd),
            handshake_retrans: at_start.as_ref().map(|info| info.total_retrans),
            tcp: None,
            socket: Some(socket),
        }
    }

    /// Asks the kernel once more and lets the socket go. Later calls do nothing.
    pub fn ask_for_the_last_time(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.congestion_end = socket.congestion().ok();
            self.tcp = socket.tcp_info().ok();
        }
    }

    /// True unless the congestion control was `name` at the start and at the end.
    pub fn congestion_differs(&self, name: &str) -> bool {
        [&self.congestion, &self.congestion_end].into_iter().any(|seen| seen.as_deref() != Some(name))
    }

    /// True if the connection began with another window, and not because its handshake was retransmitted.
    pub fn initial_window_differs(&self, segments: u32) -> bool {
        self.initial_window != Some(segments) && self.handshake_retrans.unwrap_or(0) == 0
    }
}
