//! The verbs of the data plane that the tests start as processes of their own.

use std::path::Path;
use std::process::ExitCode;
use wirepaint_light_client::Options;
use wirepaint_proxy::Side;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["split", run, host] => wirepaint_proxy::split(Path::new(run), host),
        ["pep", run, "remote"] => wirepaint_proxy::pep(Path::new(run), Side::Remote),
        ["pep", run, "ground"] => wirepaint_proxy::pep(Path::new(run), Side::Ground),
        ["replay", run, _] => wirepaint_replay_server::command(Path::new(run)),
        ["light", run, authority] => {
            let ca_spki_sha256 = Some(authority).filter(|authority| !authority.is_empty());
            let options = Options { client_namespace: None, ca_spki_sha256, waits: false };
            wirepaint_light_client::command(Path::new(run), &options)
        }
        _ => {
            panic!("found {arguments:?}, accepted: split, pep, replay or light, RUN, HOST, SIDE or authority")
        }
    }
}
