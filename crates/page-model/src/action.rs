//! Actions that a page visit requests from its transport.

/// An action for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection to an origin of the page. Report with [`Visit::connected`](crate::Visit::connected).
    Connect {
        /// Number of the new connection, counted from 0.
        connection: u32,
        /// Position of the origin.
        origin: u32,
    },
    /// The client reads bytes that have arrived.
    ClientRead {
        /// Which connection.
        connection: u32,
        /// Which of its ordered byte streams.
        stream: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The client writes.
    ClientWrite {
        /// Which connection.
        connection: u32,
        /// Which of its ordered byte streams.
        stream: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The server writes.
    ServerWrite {
        /// Which connection.
        connection: u32,
        /// Which of its ordered byte streams.
        stream: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The server waits until the kernel takes more. Report with
    /// [`Visit::server_acknowledged`](crate::Visit::server_acknowledged).
    ServerWaits {
        /// Which connection.
        connection: u32,
    },
    /// The client closes the connection, which it no longer needs.
    Close {
        /// Which connection.
        connection: u32,
    },
    /// The page is loaded and every request answered.
    Done,
}
