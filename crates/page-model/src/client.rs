//! The client's half of a visit whose servers are real: the same browser as in [`Visit`], above sockets.
//!
//! Time is passed in, as for [`Visit`]: after every call, call [`Client::poll`] until it returns `None`, then
//! [`Client::timeout`] at [`Client::next_timeout`]. The caller writes requests and parses answers; it must have
//! checked that a body is as long as [`Client::body`] says.
//!
//! The modelled servers stay idle here. The client's times of computing stay: they are a browser's, which the
//! caller does not spend.

use crate::action::{Action, Message};
use crate::browser::Browser;
use crate::heard::Heard;
use crate::page::Resource;
use crate::rows::Rows;
use crate::visit::{Prepared, Visit};
use std::sync::Arc;
use wirepaint_http_model::Priority;
use wirepaint_units::Time;

/// What the browser wants of its sockets. Requests have the page's numbers, connections those of
/// [`Order::Connect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Open a connection to an origin of the page. Report with [`Client::connected`].
    Connect {
        /// Number of the new connection, counted from 0.
        connection: u32,
        /// Position of the origin.
        origin: u32,
    },
    /// Begin the TLS handshake. Report its end with [`Heard::Handshake`].
    Handshake {
        /// Which connection.
        connection: u32,
    },
    /// Write a request.
    Request {
        /// Which connection.
        connection: u32,
        /// Which request.
        request: u32,
        /// Its priority.
        priority: Priority,
    },
    /// Tell the server a new priority of a request under way, on a multiplexed connection.
    Raise {
        /// Which connection.
        connection: u32,
        /// Which request.
        request: u32,
        /// Its new priority.
        priority: Priority,
    },
    /// Close a connection that is no longer needed.
    Close {
        /// Which connection.
        connection: u32,
    },
    /// The server ended the connection without an answer to this request, which is not sent again.
    Unanswered {
        /// Which request.
        request: u32,
        /// Which connection.
        connection: u32,
    },
    /// The page is loaded and every request answered.
    Done,
}

/// The client's half of a visit.
#[derive(Debug)]
pub struct Client {
    prepared: Prepared,
    visit: Visit,
    browser: Arc<Browser>,
}

impl Client {
    /// A visit that has not begun, with numbers that [`Browser::check`] accepts.
    pub fn new(prepared: &Prepared, browser: Arc<Browser>, seed: u64) -> Client {
        let visit = Visit::new(prepared, Browser::clone(&browser), seed);
        Client { prepared: prepared.clone(), visit, browser }
    }

    /// Navigation start.
    pub fn start(&mut self, now: Time) {
        self.visit.start(now);
    }

    /// A connection is established.
    pub fn connected(&mut self, now: Time, connection: u32) {
        self.visit.connected(now, connection);
    }

    /// These have arrived in order on a connection.
    pub fn heard(&mut self, now: Time, connection: u32, heard: &[Heard]) {
        self.visit.heard(now, connection, heard);
    }

    /// The next order.
    pub fn poll(&mut self) -> Option<Order> {
        if let Some((request, connection)) = self.visit.unanswered() {
            return Some(Order::Unanswered { request, connection });
        }
        loop {
            let order = match self.visit.poll()? {
                Action::Connect { connection, origin } => Order::Connect { connection, origin },
                Action::Close { connection } => Order::Close { connection },
                Action::Done => Order::Done,
                Action::ClientWrite { connection, message, .. } => match message {
                    Message::Hello => Order::Handshake { connection },
                    Message::Request(request, urgency) => {
                        Order::Request { connection, request, priority: self.priority(request, urgency) }
                    }
                    Message::Raise(request, urgency) => {
                        Order::Raise { connection, request, priority: self.priority(request, urgency) }
                    }
                    // The caller's TLS and HTTP write these by themselves.
                    Message::Finished | Message::Settings | Message::Acknowledgement => continue,
                },
                Action::ClientRead { .. }
                | Action::ServerWrite { .. }
                | Action::ServerWaits { .. }
                | Action::Ask { .. } => {
                    continue;
                }
            };
            return Some(order);
        }
    }

    /// When to call [`Client::timeout`].
    pub fn next_timeout(&self) -> Option<Time> {
        self.visit.next_timeout()
    }

    /// Does what is due by `now`.
    pub fn timeout(&mut self, now: Time) {
        self.visit.timeout(now);
    }

    /// When the load event fired.
    pub fn load_event(&self) -> Option<Time> {
        self.visit.load_event()
    }

    /// The rows so far. Bytes of connections are modelled; the caller knows the real ones.
    pub fn rows(&self) -> Rows {
        self.visit.rows()
    }

    /// Bytes of the body that answers a request.
    pub fn body(&self, request: u32) -> u64 {
        self.prepared.page().resources[request as usize].answer_bytes()
    }

    fn priority(&self, request: u32, urgency: u8) -> Priority {
        let Resource { kind, .. } = &self.prepared.page().resources[request as usize];
        Priority { urgency, incremental: self.browser.priorities.incremental.contains(kind) }
    }
}
