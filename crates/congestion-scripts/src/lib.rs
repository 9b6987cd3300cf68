//! Acknowledgement scripts: what arrives, and the windows that must follow.
//!
//! * [`script`]: the language of the `.ack` files, and their player;
//! * [`sender`]: a small sender that calls a congestion control's hooks in the kernel's order; [`concurrent`] senders
//!   share a [`wire`];
//! * [`timetable`]: prepares a script for the running kernel behind the emulator;
//! * [`command`]: the verb `cc script`.

pub mod command;
pub mod concurrent;
pub mod entry;
pub mod script;
pub mod sender;
pub mod timetable;
pub mod wire;
