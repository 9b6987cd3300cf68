//! The simulated run: links, TCP endpoints, flows and page visits under a virtual clock.
//!
//! ```text
//! command ── many runs, one thread each                    cross ── given packets over one link
//!   engine ── one run: description -> event loop -> trace
//!     plan, way ── names of the description; the path of a run with proxies
//!     app ── users of connections: flow, page, and proxies that answer: squid, pep, both over fetch
//!       relay ── connections of several hops      post ── what applications tell one another
//!     world ── connections: TCP endpoints and their timers      settings: sysctls
//!       fabric ── packets over links and routes
//!       agenda ── pending events
//!     record, summary ── its results
//! ```
//!
//! A run has one thread and one seed. Its results repeat byte for byte, whatever else runs on the machine.
//! Start at [`Engine`].

pub mod agenda;
pub mod app;
mod apps;
mod command;
pub mod cross;
mod engine;
mod error;
pub mod fabric;
mod fetch;
mod flow;
mod link_name;
pub mod page;
mod pages;
mod pep;
mod plan;
pub mod post;
mod record;
pub mod relay;
mod settings;
mod squid;
mod summary;
mod visited;
mod way;
pub mod world;

pub use command::{carry_out, command};
pub use engine::Engine;
pub use error::Error;
pub use pages::{Pages, prepare};
pub use pep::AheadSummary;
pub use settings::{Form, sysctls};
pub use summary::{Fault, FlowSummary, Summary};
