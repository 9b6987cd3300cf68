//! The proxies of the testbed.
//!
//! - `split` ends TCP connections and opens others to the destinations (RFC 3135, section 2.4).
//! - `pep` ends HTTP too, on two sides, and sends what a page needs ahead of the browser (HTTP-AE, section IV-D).
//!
//! A proxy is transparent: the namespace delivers packets for any origin to it, and it learns the destination of a
//! connection from its local address. One thread serves everything.
//!
//! ```text
//! split ─► relay       one connection to another, bytes as they come
//! pep   ─► counted     a connection whose bytes are counted
//!  both ─► listening   sockets for any address
//!    ├───► stage       from ready to the end of the run
//!    └───► records     what the kernel told of each connection, and the requests
//! ```
//!
//! Start at [`split`] and [`pep`].

mod counted;
mod failure;
mod listening;
mod pep;
mod records;
mod relay;
mod split;
mod stage;

pub use failure::Failure;
pub use pep::Side;

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

/// The verb `pep RUN.json --side SIDE`: one side of the performance-enhancing proxy, until SIGTERM or SIGINT.
///
/// Prints `{"ready": true}`: the ground side when it listens, the remote side when it has its connections to the
/// ground side. Else as [`split()`]. Where an origin is encrypted, the replay server must have written the run's
/// authority into the work folder before.
pub fn pep(path: &Path, side: Side) -> ExitCode {
    ended(Run::read(path).map_err(Failure::from).and_then(|run| pep::serve(path, &run, side)))
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
