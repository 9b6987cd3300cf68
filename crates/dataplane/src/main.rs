//! The one program of the data plane: everything that handles packets or bytes in time.
//!
//! A run description goes in, a trace comes out. Each long-running verb prints one JSON line
//! `{"ready": true, ...}` when it serves, stops on SIGTERM or SIGINT, and prints one JSON line
//! with its summary at the end. Errors go to stderr in one line; exit 2 is bad input, 1 a failure.

use clap::{Parser, Subcommand};
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
    }
}
