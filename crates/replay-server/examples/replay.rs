//! The verb `replay` alone: `cargo run -p wirepaint-replay-server --example replay -- run.json`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(run) => wirepaint_replay_server::command(Path::new(&run)),
        None => {
            eprintln!("usage: replay RUN.json");
            ExitCode::from(2)
        }
    }
}
