//! The verbs `cc list`, `cc source`, `cc scripts` and `cc script` of the data plane.

use crate::{Algorithm, Refusal, algorithms, external, find, script, timetable};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

/// A congestion control with its parameters, as JSON.
fn entry(algorithm: &Algorithm) -> Value {
    let parameters: Vec<Value> = algorithm
        .parameters()
        .map(|p| {
            json!({
                "name": p.name(), "default": p.default, "min": p.min, "max": p.max, "summary": p.doc(),
                "simulated": p.simulated,
            })
        })
        .collect();
    let sysctls: BTreeMap<_, _> = algorithm.sysctl().into_iter().collect();
    json!({
        "name": algorithm.name(), "summary": algorithm.summary(), "sysctls": sysctls,
        "own_initial_window": algorithm.own_initial_window(), "parameters": parameters,
    })
}

/// `cc list [FILE.c...]`: prints the catalogue, or the entries of the user's own files.
pub fn list(files: &[String]) -> ExitCode {
    let found: Result<Vec<&Algorithm>, Refusal> = match files {
        [] => Ok(algorithms().to_vec()),
        files => files.iter().map(|file| find(file)).collect(),
    };
    match found {
        Ok(found) => print(&found.iter().map(|algorithm| entry(algorithm)).collect()),
        Err(refusal) => refuse(&refusal),
    }
}

/// `cc source NAME`: prints an algorithm's C source.
pub fn source(name: &str) -> ExitCode {
    match external::source(name) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(refusal) => refuse(&refusal),
    }
}

/// `cc scripts`: prints the names of the scripts that ship, as JSON.
pub fn shipped_scripts() -> ExitCode {
    print(&external::scripts().iter().map(|(file, _)| *file).collect())
}

/// `cc script FILE...`: runs acknowledgement scripts natively. Exit 1 where an algorithm differs
/// from its script, 2 where a script cannot be read.
pub fn scripts(paths: &[PathBuf]) -> ExitCode {
    let mut worst = 0;
    for path in paths {
        match script::run(path) {
            Ok(checks) => println!("{}: {checks} checks hold", path.display()),
            Err(error) => {
                eprintln!("{error}");
                worst = worst.max(if error.differs { 1 } else { 2 });
            }
        }
    }
    ExitCode::from(worst)
}

/// `cc script --timetable FILE...`: plays scripts natively and prints a JSON object by file: the native
/// results (`exchange`, `checks`) and instructions for the same run in the kernel (`connections`).
pub fn timetables(paths: &[PathBuf]) -> ExitCode {
    let mut timetables = Map::new();
    for path in paths {
        match script::play(path) {
            Ok(played) => timetables.insert(path.display().to_string(), timetable::timetable(&played)),
            Err(error) => return refuse(&error),
        };
    }
    print(&timetables.into())
}

fn print(value: &Value) -> ExitCode {
    println!("{value:#}");
    ExitCode::SUCCESS
}

fn refuse(cause: &dyn Display) -> ExitCode {
    eprintln!("{cause}");
    ExitCode::from(2)
}
