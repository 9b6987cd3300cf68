//! Flows without a browser over real sockets: bulk, constant rate, request and response.
//!
//! One process holds both ends of each connection, the server's in its own network namespace, the client's in
//! the namespace that it is given; so one clock stamps writes and reads. What a flow writes and when is
//! `flow-model`'s, as in the simulator. One thread serves all flows, because it shares a small machine with
//! the emulator.
//!
//! [`command`] is the verb `flows RUN.json`, for those flows of the run that it leaves to no other tool. It writes the tables `flow` and `message`, and a file of JSON
//! lines with a row per connection ([`CONNECTIONS`]).

mod ends;
mod records;
mod stage;

pub use records::CONNECTIONS;

use serde_json::json;
use stage::Stage;
use std::os::fd::RawFd;
use std::path::Path;
use std::process::ExitCode;
use wirepaint_run::signals::Signals;
use wirepaint_run::{Run, RunError, Tool, process};
use wirepaint_trace::TraceError;

/// Why the flows could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The run description is not readable, not one, or has a wrong value.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The operating system refused.
    #[error("{attempt}: {source}")]
    System {
        /// What was tried.
        attempt: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A table could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Failure {
    fn system(attempt: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
        |source| Failure::System { attempt: attempt.into(), source }
    }
}

/// The verb `flows RUN.json`: carries out the flows of a run until all have ended, its `until_ns` is reached, or
/// SIGTERM or SIGINT comes.
///
/// Prints `{"ready": true, "begin"}` when all servers listen; `begin` is the time, in nanoseconds of the run, from
/// which the times of the flows and `until_ns` count. At the end it prints `{"begin", "end", "unfinished"}`:
/// the flows that have an end and did not reach it.
pub fn command(path: &Path, client_namespace: RawFd) -> ExitCode {
    match carry_out(path, client_namespace) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(if matches!(failure, Failure::Run(_)) { 2 } else { 1 })
        }
    }
}

fn carry_out(path: &Path, client_namespace: RawFd) -> Result<(), Failure> {
    let signals = Signals::block();
    let mut run = Run::read(path)?;
    run.flows.retain(|flow| flow.tool == Tool::Wirepaint);
    process::allow_many_files();
    let mut stage = Stage::open(&run, path, client_namespace)?;
    let begin = stage.begin();
    println!("{}", json!({"ready": true, "begin": begin}));
    let (end, unfinished) = stage.play(&signals)?;
    stage.write(&run)?;
    println!("{}", json!({"begin": begin, "end": end, "unfinished": unfinished}));
    Ok(())
}
