//! The records of the flows' connections. Times are nanoseconds since the run's epoch.

use serde::Serialize;
use socket2::Socket;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use wirepaint_observed_sockets::{Socket as Observed, TcpInfo};

/// File with one JSON object per connection of a flow.
pub const CONNECTIONS: &str = "flow-connections.jsonl";

/// One end of a connection, as the kernel reports it.
#[derive(Default, Serialize)]
pub(crate) struct End {
    /// Congestion control when the end was connected.
    pub congestion: Option<String>,
    pub congestion_end: Option<String>,
    /// Congestion window when it was connected, segments.
    pub initial_window: Option<u32>,
    /// Segments of its handshake that were sent again. After one, Linux begins with a window of 1.
    pub handshake_retrans: Option<u32>,
    pub tcp: Option<TcpInfo>,
}

impl End {
    /// Looks at an end that was just connected.
    pub fn connected(socket: &Socket) -> io::Result<End> {
        let observed = Observed::of(socket.as_fd())?;
        let info = observed.tcp_info()?;
        Ok(End {
            congestion: Some(observed.congestion()?),
            initial_window: Some(info.snd_cwnd),
            handshake_retrans: Some(info.total_retrans),
            ..End::default()
        })
    }

    /// Looks at it for the last time.
    pub fn ends(&mut self, socket: &Socket) -> io::Result<()> {
        let observed = Observed::of(socket.as_fd())?;
        self.congestion_end = Some(observed.congestion()?);
        self.tcp = Some(observed.tcp_info()?);
        Ok(())
    }
}

/// The connection of a flow.
#[derive(Serialize)]
pub(crate) struct Connection {
    pub flow: String,
    pub sender: &'static str,
    pub client_address: Ipv4Addr,
    pub client_port: u16,
    pub server_address: Ipv4Addr,
    pub server_port: u16,
    pub opened: u64,
    pub connected: Option<u64>,
    /// Last byte that the client received.
    pub last_byte: Option<u64>,
    /// Bytes received by the client.
    pub bytes_received: u64,
    /// Bytes received by the server.
    pub bytes_sent: u64,
    pub client: End,
    pub server: End,
}
