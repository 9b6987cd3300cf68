//! The proxies of the testbed.
//!
//! - `split` ends TCP connections and opens others to the destinations (RFC 3135, section 2.4).
//!
//! A proxy is transparent: the namespace delivers packets for any origin to it, and it learns the destination of a
//! connection from its local address. One thread serves everything.
//!
//! ```text
//! split ─► relay       one connection to another, bytes as they come
//!   └──┬─► listening   sockets for any address
//!      ├─► stage       from ready to the end of the run
//!      └─► records     what the kernel told of each connection
//! ```
//!
//! Start at [`split`].

mod failure;
mod listening;
mod records;
mod relay;
mod split;
mod stage;

pub use failure::Failure;

use std::path::Path;
use std::process::ExitCode;
use wirepaint_run::Run;

/// The verb `split RUN.json --host NAME`: a transparent TCP proxy, until SIGTERM or SIGINT.
///
/// Prints `{"ready": true}` when every port of the run's origins is listened on, and a summary at the end. Writes
/// `proxy-NAME.json` into the run's work folder. An error goes to stderr in one line; exit 2 is bad input.
pub fn split(path: &Path, host: &str) -> ExitCode {
    ended(Run::read(path).map_err(Failure::from).and_then(|run| split::serve(path, &run, host)))
}

fn ended(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
