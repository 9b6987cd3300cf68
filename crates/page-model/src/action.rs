//! What a page visit asks of whoever moves its bytes.

/// What the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection to an origin of the page; answer by [`Visit::connected`](crate::Visit::connected).
    Connect {
        /// Number of the new connection; they are given from 0 on.
        connection: u32,
        /// Position of the origin.
        origin: u32,
    },
    /// The client reads what has come for it.
    ClientRead {
        /// Which connection.
        connection: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The client writes.
    ClientWrite {
        /// Which connection.
        connection: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The server writes.
    ServerWrite {
        /// Which connection.
        connection: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The server waits until the kernel takes more; answer by [`Visit::server_acknowledged`](crate::Visit::server_acknowledged).
    ServerWaits {
        /// Which connection.
        connection: u32,
    },
    /// The client closes; nothing more is wanted of the connection.
    Close {
        /// Which connection.
        connection: u32,
    },
    /// The page is loaded and every request answered.
    Done,
}
