//! Light users: they load pages as a browser would, over real sockets, many users in one process.
//!
//! The page model decides what is requested, when, with which priority and over how many connections, by the
//! real clock; this crate opens the sockets, encrypts and speaks HTTP. So a light user has the same pools,
//! priorities and times of computing as the modelled browser, and the kernel's TCP.
//!
//! ```text
//! stage ─► load ─► page-model's Client         one loop for all users; one visit; what to request when
//!            └───► connection ─► tls           one socket
//!                      └───────► http1, http2 ─► requests        bytes in, events out
//!          records                             what a visit saw
//! ```
//!
//! Start at [`command`], the verb `light RUN.json`.

mod connection;
mod event;
mod http1;
mod http2;
mod load;
mod records;
mod requests;
mod stage;
mod tls;

pub use records::VISITS;

use serde_json::json;
use stage::Stage;
use std::io::BufRead;
use std::os::fd::RawFd;
use std::path::Path;
use std::process::ExitCode;
use wirepaint_run::signals::Signals;
use wirepaint_run::{Run, RunError, process};
use wirepaint_units::Time;

/// Numeric user and group of the light client, which reads what servers of recorded pages send. They differ from
/// those of server and browser.
const USER: u32 = 65_531;

/// Why the visits could not be carried out. A visit that fails is no failure here.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run description is not readable, not one, or has a wrong value.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The hash of the certificate authority is none.
    #[error("--ca-spki-sha256: found {found:?}, accepted: base64 of 32 bytes")]
    Authority {
        /// What was given.
        found: String,
    },
    /// The time from which the visits count is none.
    #[error("standard input: found {found:?}, accepted: nanoseconds of the run")]
    Begin {
        /// What was told.
        found: String,
    },
    /// The operating system refused.
    #[error("{attempt}: {source}")]
    System {
        /// What was tried.
        attempt: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Failure {
    fn system(attempt: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
        |source| Failure::System { attempt: attempt.into(), source }
    }
}

/// How the visits are carried out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Descriptor of the network namespace to connect from; `None` stays in this one.
    pub client_namespace: Option<RawFd>,
    /// Base64 of the SHA-256 of the SubjectPublicKeyInfo of the one certificate authority that is trusted; without
    /// it no TLS handshake succeeds.
    pub ca_spki_sha256: Option<&'a str>,
    /// The time from which the visits count comes as a line on standard input, in nanoseconds of the run, once
    /// the client is ready; else it is when that is.
    pub waits: bool,
}

/// The verb `light RUN.json`: carries out the visits without a `navigation`, until all are over or SIGTERM or
/// SIGINT comes. Each visit is over when its page is loaded and every request answered, at its timeout, or when it
/// fails.
///
/// Prints `{"ready": true, "begin"}`; `begin` is the time, in nanoseconds of the run, from which the times of the
/// visits count. At the end it prints `{"begin", "end", "visits", "failed", "late_ns"}`: `failed` counts the visits
/// without a load event, `late_ns` is the longest time by which an effect of computing came late. Writes [`VISITS`]
/// into the run's work folder.
pub fn command(path: &Path, options: &Options<'_>) -> ExitCode {
    match carry_out(path, options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(if matches!(failure, Failure::System { .. }) { 1 } else { 2 })
        }
    }
}

fn carry_out(path: &Path, options: &Options<'_>) -> Result<(), Failure> {
    let signals = Signals::block();
    let run = Run::read(path)?;
    let authority = options.ca_spki_sha256.map(tls::authority_of).transpose()?;
    process::allow_many_files();
    if let Some(namespace) = options.client_namespace {
        process::enter_network(namespace).map_err(Failure::system("entering the client's namespace"))?;
    }
    let mut stage = Stage::open(&run, path, authority)?;
    process::become_user(USER).map_err(Failure::system("becoming an ordinary user"))?;
    if options.waits {
        println!("{}", json!({"ready": true}));
        stage.begin(told(std::io::stdin().lock())?);
    } else {
        let begin = stage.now();
        stage.begin(begin);
        println!("{}", json!({"ready": true, "begin": begin}));
    }
    println!("{}", stage.play(&signals)?);
    Ok(())
}

/// The time in the next line.
fn told(mut lines: impl BufRead) -> Result<Time, Failure> {
    let mut line = String::new();
    lines.read_line(&mut line).map_err(Failure::system("standard input"))?;
    line.trim().parse().map(Time).map_err(|_| Failure::Begin { found: line.trim_end().to_owned() })
}
