//! The verbs of the data plane that the tests start as processes of their own.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["split", run, host] => wirepaint_proxy::split(Path::new(run), host),
        _ => panic!("found {arguments:?}, accepted: split RUN HOST"),
    }
}
