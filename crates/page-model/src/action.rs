//! Actions that a page visit requests from its transport.

/// The meaning of bytes that a client writes. Requests have the page's numbers, urgencies are those of RFC 9218.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// TLS: the client's hello.
    Hello,
    /// TLS: the client's last part of the handshake.
    Finished,
    /// HTTP/2: preface and settings.
    Settings,
    /// HTTP/2: acknowledgement of the server's settings.
    Acknowledgement,
    /// A request and its urgency.
    Request(u32, u8),
    /// A request's new urgency.
    Raise(u32, u8),
}

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
        /// What they say.
        message: Message,
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
    /// The proxy that ends connections has read a request, or a new priority of one. Report what it has of the answer with
    /// [`Visit::supplied`](crate::Visit::supplied).
    Ask {
        /// Which request.
        request: u32,
        /// What the browser said of it.
        priority: wirepaint_http_model::Priority,
    },
    /// The client closes the connection, which it no longer needs.
    Close {
        /// Which connection.
        connection: u32,
    },
    /// The page is loaded and every request answered.
    Done,
}
