//! Browsers and their servers above byte streams: the connections that a page load opens, its requests and
//! their times, and the order of the answers.
//!
//! Reads no clock, does no I/O, starts no thread, never sees a segment: lengths go in and out.
//!
//! ```text
//! Visit ─┬─► renderer   parser, preload scanner, scripts, stylesheets, layout: which request when
//!        └─► network    socket pools, HTTP/1.1 and HTTP/2, TLS flights ─► server   priorities
//!            page, browser: input       rows: results      machine: CPU time
//! ```
//!
//! Start at [`Visit`]; [`Client`] is its client's half, for servers that are real.

mod action;
mod agenda;
pub mod browser;
#[cfg(any(test, feature = "catalogue"))]
pub mod catalogue;
mod client;
mod document;
mod headers;
mod heard;
mod links;
mod machine;
mod network;
mod noise;
pub mod page;
mod pipe;
mod priority;
mod ranking;
mod refused;
mod renderer;
pub mod rows;
mod server;
mod tls;
mod upstream;
mod visit;

pub use action::{Action, Message};
pub use browser::Browser;
pub use client::{Client, Order};
pub use heard::Heard;
pub use network::EndsAtProxy;
pub use page::Page;
pub use priority::Priority;
pub use refused::Refused;
pub use rows::Rows;
pub use server::{Backlog, unsent_bound};
pub use upstream::{Step, Upstream};
pub use visit::{Prepared, Visit};
