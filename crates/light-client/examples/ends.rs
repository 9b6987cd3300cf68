//! Both ends of a light visit alone: `ends replay RUN.json`, and `ends light RUN.json [HASH OF THE AUTHORITY]`,
//! `ends waits RUN.json`.

use std::path::Path;
use std::process::ExitCode;
use wirepaint_light_client::{Options, command};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["replay", run] => wirepaint_replay_server::command(Path::new(run)),
        ["light", run, ref more @ ..] if more.len() < 2 => {
            let ca_spki_sha256 = more.first().copied();
            command(Path::new(run), &Options { ca_spki_sha256, ..Options::default() })
        }
        ["waits", run] => command(Path::new(run), &Options { waits: true, ..Options::default() }),
        _ => {
            eprintln!("usage: ends replay RUN.json | ends light RUN.json [HASH] | ends waits RUN.json");
            ExitCode::from(2)
        }
    }
}
