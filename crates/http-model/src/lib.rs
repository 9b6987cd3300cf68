//! HTTP as lengths and order: what each version puts on a connection, and which answer goes next.
//!
//! The replay server sends by [`Schedule`], and the page model's server does too. The page model takes the
//! lengths of a version from its [`Protocol`]. Contents are never carried.
//!
//! ```text
//! HttpVersion ─► Protocol   version/{h1, h2}: requests at once, openings, frames
//!                  └─► Coding   heads of one connection: plain, HPACK
//! Schedule    RFC 9218: urgency, incremental
//! ```

mod heads;
mod hpack;
mod protocol;
pub mod schedule;
mod version;

pub use heads::{Heads, Message, RequestHeads};
pub use protocol::{Coding, Protocol};
pub use schedule::{Change, Priority, Schedule};
pub use version::HttpVersion;
