//! The verbs `cc list` and `cc script` of the data plane.

use crate::{algorithms, script};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Every congestion control with its parameters, as JSON.
pub fn catalogue() -> Value {
    algorithms()
        .iter()
        .map(|algorithm| {
            let parameters: Vec<Value> = algorithm
                .parameters()
                .map(|p| {
                    json!({"name": p.name(), "default": p.default, "min": p.min, "max": p.max, "summary": p.doc()})
                })
                .collect();
            json!({"name": algorithm.name(), "summary": algorithm.summary(), "parameters": parameters})
        })
        .collect()
}

/// `cc list`: prints the catalogue.
pub fn list() -> ExitCode {
    println!("{:#}", catalogue());
    ExitCode::SUCCESS
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
