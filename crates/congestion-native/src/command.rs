//! The verbs `cc list`, `cc source` and `cc scripts` of the data plane.

use crate::{Algorithm, Refusal, algorithms, external, find};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Display;
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

fn print(value: &Value) -> ExitCode {
    println!("{value:#}");
    ExitCode::SUCCESS
}

fn refuse(cause: &dyn Display) -> ExitCode {
    eprintln!("{cause}");
    ExitCode::from(2)
}
