//! The verb `cc script` of the data plane.

use crate::{script, timetable};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::process::ExitCode;

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
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        };
    }
    println!("{:#}", Value::from(timetables));
    ExitCode::SUCCESS
}
