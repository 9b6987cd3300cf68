//! The verb `cc load RUN.json`.

use crate::{groups, load};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::ExitCode;
use wirepaint_congestion_native::find;
use wirepaint_run::signals::Signals;
use wirepaint_run::{Congestion, Run};

/// Loads all congestion controls of a run and holds them until SIGTERM or SIGINT.
///
/// Prints `{"ready": true, "loaded": [{"algorithm", "name", "parameters"}]}` once they are registered, with
/// the values of all parameters, and at the end `{"loaded", "hooks", "group_events", "group_events_lost"}`:
/// their number; the cost of each hook ([`HookCost`](crate::HookCost)), if the kernel kept statistics; rows
/// written to the table `group`, and events lost.
pub fn command(path: &Path) -> ExitCode {
    let signals = Signals::block();
    let run = match Run::read(path) {
        Ok(run) => run,
        Err(error) => return fail(2, &error.to_string()),
    };
    let wanted: Vec<Congestion> = run.congestion.iter().filter(|one| !one.of_kernel).cloned().collect();
    let loaded = match load(&wanted) {
        Ok(loaded) => loaded,
        Err(error) if error.is_bad_input() => return fail(2, &format!("{}: {error}", path.display())),
        Err(error) => return fail(1, &error.to_string()),
    };
    let instances: Vec<Value> = wanted.iter().map(describe).collect();
    let ready = || println!("{}", json!({"ready": true, "loaded": instances}));
    let recorded = match groups::record(&loaded, &run.trace_dir, run.epoch_ns, &signals, ready) {
        Ok(recorded) => recorded,
        Err(error) => return fail(1, &error.to_string()),
    };
    let hooks = loaded.costs();
    drop(loaded);
    println!(
        "{}",
        json!({
            "loaded": wanted.len(),
            "hooks": hooks,
            "group_events": recorded.events,
            "group_events_lost": recorded.lost,
        })
    );
    ExitCode::SUCCESS
}

fn describe(congestion: &Congestion) -> Value {
    let algorithm = find(&congestion.algorithm).expect("it was loaded");
    let values = algorithm.resolve(&congestion.parameters).expect("it was loaded");
    let parameters: Map<String, Value> =
        algorithm.parameters().zip(values).map(|(p, value)| (p.name().to_owned(), value.into())).collect();
    json!({"algorithm": congestion.algorithm, "name": congestion.name, "parameters": parameters})
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(code)
}
