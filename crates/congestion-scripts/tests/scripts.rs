//! Every script of congestion/scripts holds.

use std::path::Path;

#[test]
fn every_acknowledgement_script_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../congestion/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "ack"))
        .collect();
    paths.sort();
    let failures: Vec<String> = paths
        .iter()
        .filter_map(|path| wirepaint_congestion_scripts::script::run(path).err())
        .map(|error| error.to_string())
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_algorithm_has_a_script() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../congestion/scripts");
    for algorithm in wirepaint_congestion_native::algorithms() {
        let prefix = format!("{}-", algorithm.name());
        let found = std::fs::read_dir(&folder)
            .unwrap()
            .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(&prefix));
        assert!(found, "congestion/scripts holds no {prefix}*.ack");
    }
}
