//! What applications on one host tell one another.

use wirepaint_http_model::Priority;

/// Index of an application: a flow, a visit, a proxy.
pub type AppId = u32;

/// A request of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The visit.
    pub visit: AppId,
    /// Position of the resource in its page.
    pub resource: u32,
}

/// What applications on one host tell one another: a proxy and what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Post {
    /// The proxy has read a request, or a new priority of one.
    Ask {
        /// Which.
        request: Request,
        /// What the browser said of it.
        priority: Priority,
    },
    /// The proxy has more of an answer. The first of these says that it has the head.
    Answer {
        /// To which request.
        request: Request,
        /// Bytes of the body.
        bytes: u64,
        /// Who made it, as in the trace's `served_by`.
        served_by: &'static str,
    },
}
