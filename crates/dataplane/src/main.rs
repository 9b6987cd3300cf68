//! The one program of the data plane: everything that handles packets or bytes in time.
//!
//! A run description goes in, a trace comes out. Each long-running verb prints one JSON line
//! `{"ready": true, ...}` when it serves, stops on SIGTERM or SIGINT, and prints one JSON line
//! with its summary at the end. Errors go to stderr in one line; exit 2 is bad input, 1 a failure.

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "wirepaint-dataplane", version, about)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Print the schemas of the run description and of the trace as one JSON object.
    Schema,
    /// Forward frames between two interfaces through the link model until SIGTERM or SIGINT.
    Emulate {
        /// The run description.
        run: PathBuf,
    },
    /// Measure what a path between two network namespaces gives.
    Probe {
        /// What to measure, as a JSON object.
        request: String,
    },
    /// Serve recorded pages until SIGTERM or SIGINT.
    Replay {
        /// The run description.
        run: PathBuf,
    },
    /// Sample the kernel's TCP senders until SIGTERM or SIGINT.
    ProbeTcp {
        /// The run description.
        run: PathBuf,
    },
    /// Congestion controls: what exists, loading them into the kernel, acknowledgement scripts.
    #[command(subcommand)]
    Cc(Cc),
}

#[derive(Subcommand)]
enum Cc {
    /// Print every congestion control with its parameters as JSON.
    List,
    /// Register a run's congestion controls with the kernel until SIGTERM or SIGINT.
    Load {
        /// The run description.
        run: PathBuf,
    },
    /// Run acknowledgement scripts natively and say what differs.
    Script {
        /// Files of congestion/scripts.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    match Cli::parse().verb {
        Verb::Schema => {
            let schemas = serde_json::json!({
                "run": schemars::schema_for!(wirepaint_run::Run),
                "trace": wirepaint_trace::schema::TABLES,
            });
            println!("{}", serde_json::to_string_pretty(&schemas).expect("schemas are plain data"));
            ExitCode::SUCCESS
        }
        Verb::Emulate { run } => emulator_ended(wirepaint_emulator::command(&run)),
        Verb::Probe { request } => emulator_ended(wirepaint_emulator::probe::command(&request)),
        Verb::Replay { run } => wirepaint_replay_server::command(&run),
        Verb::ProbeTcp { run } => wirepaint_tcp_probe::command(&run),
        Verb::Cc(Cc::List) => wirepaint_congestion_native::command::list(),
        Verb::Cc(Cc::Load { run }) => wirepaint_congestion_kernel::command(&run),
        Verb::Cc(Cc::Script { files }) => wirepaint_congestion_native::command::scripts(&files),
    }
}

fn emulator_ended(result: Result<(), wirepaint_emulator::Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
