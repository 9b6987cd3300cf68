//! The same description gives the same bytes, on any number of workers.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use wirepaint_page_model::catalogue::chromium;

const SEEDS: u64 = 200;

/// Writes `runs` as one JSONL file, carries them out with `workers` workers and returns every byte.
fn trace_bytes(folder: &Path, runs: &[Value], workers: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = folder.join(workers.to_string());
    std::fs::create_dir_all(&folder).unwrap();
    let mut lines = String::new();
    for (number, run) in runs.iter().enumerate() {
        let mut run = run.clone();
        run["trace_dir"] = json!(folder.join(number.to_string()));
        lines += &format!("{run}\n");
    }
    let file = folder.join("runs.jsonl");
    std::fs::write(&file, lines).unwrap();
    let mut lines = Vec::new();
    assert_eq!(wirepaint_simulator::carry_out(&[file], workers, None, &mut lines), 0);
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), runs.len());
    let mut files = Vec::new();
    for number in 0..runs.len() {
        for entry in std::fs::read_dir(folder.join(number.to_string())).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            files.push((path.strip_prefix(&folder).unwrap().to_owned(), bytes));
        }
    }
    files.sort();
    files
}

/// Links of every queue discipline, with random loss and jitter.
fn direction(queue: Value) -> Value {
    json!({
        "capacity": {"kind": "rate", "bit_per_s": 5_000_000},
        "delay_ns": 20_000_000,
        "queue": queue,
        "loss": {"kind": "independent", "probability": 0.02},
        "jitter": {"kind": "uniform", "range_ns": 500_000, "reorder": true},
    })
}

fn page() -> Value {
    let origin = json!({"host": "a.test", "address": "10.65.0.1", "port": 443, "encrypted": true});
    let resource = |url: &str, kind: &str, bytes: u64, cause: Value| {
        json!({"url": format!("https://a.test/{url}"), "origin": 0, "status": 200, "type": kind,
               "wire_bytes": bytes, "decoded_bytes": bytes, "think_ns": 2_000_000, "cause": cause})
    };
    let markup = |element: &str| json!({"kind": "markup", "by": 0, "at": 100, "element": element});
    let mut document = resource("", "html", 9_000, Value::Null);
    document["document"] = json!({"body_at": 400});
    let resources = [
        document,
        resource("s.css", "css", 12_000, markup("stylesheet")),
        resource("1.jpg", "image", 20_000, markup("image")),
    ];
    json!({"origins": [origin], "resources": resources})
}

/// One of five kinds of runs: loss and drops, CoDel, FQ-CoDel and service classes; transfers alone, of a
/// group, and beside a page load.
fn run(seed: u64) -> Value {
    let drop_tail = json!({"kind": "droptail", "packets": 15});
    let classes = json!([{"dscp": [46], "weight": 3, "packets": 20}, {"packets": 20}]);
    let queue = match seed % 5 {
        0 | 1 => drop_tail.clone(),
        2 => json!({"kind": "codel"}),
        3 => json!({"kind": "fq_codel", "flows": 8}),
        _ => json!({"kind": "classes", "classes": classes}),
    };
    let bulk = |congestion: &str| json!({"kind": {"kind": "bulk", "bytes": 40_000}, "congestion": congestion, "dscp": 46});
    let rates = json!([{"at_ns": 0, "bit_per_s": 400_000}, {"at_ns": 300_000_000, "bit_per_s": 0}]);
    let constant = json!({"kind": {"kind": "cbr", "write_bytes": 900, "rates": rates}, "congestion": "fld"});
    let flows = match seed % 5 {
        0 => vec![bulk("fld"), constant],
        1 => vec![bulk("her"), bulk("her"), bulk("her")],
        _ => vec![bulk("fld")],
    };
    let visits = if seed % 5 < 2 {
        vec![]
    } else {
        vec![
            json!({"browser": "chromium", "user_agent": "desktop", "name": "page", "timeout_ns": 60_000_000_000_u64,
                   "page": "page"}),
        ]
    };
    json!({
        "format": 5, "id": "t", "seed": seed, "trace_dir": "", "work_dir": "",
        "hosts": [{"name": "client", "role": "client", "congestion": "fld"},
                  {"name": "server", "role": "server", "congestion": "her"}],
        "segments": [{"name": "access", "down": direction(queue), "up": direction(drop_tail)}],
        "congestion": [{"algorithm": "fld", "name": "fld"}, {"algorithm": "heracles", "name": "her"}],
        "flows": flows, "browsers": {"chromium": chromium()},
        "pages": {"page": page()}, "visits": visits, "until_ns": 60_000_000_000_u64,
    })
}

#[test]
fn two_hundred_seeds_give_the_same_bytes_on_one_worker_and_on_two() {
    let folder = std::env::temp_dir().join(format!("wirepaint-determinism-{}", std::process::id()));
    let runs: Vec<Value> = (0..SEEDS).map(run).collect();
    let (one, two) = (trace_bytes(&folder, &runs, 1), trace_bytes(&folder, &runs, 2));
    std::fs::remove_dir_all(&folder).unwrap();
    let differing: Vec<&Path> =
        one.iter().zip(&two).filter(|(a, b)| a != b).map(|((name, _), _)| name.as_path()).collect();
    assert!(one.len() == two.len() && differing.is_empty(), "the traces differ: {differing:?}");
    let of = |table: &str| one.iter().filter(|(name, _)| name.ends_with(table)).collect::<Vec<_>>();
    assert_eq!(of("page.parquet").len() as u64, SEEDS / 5 * 3);
    assert!(!of("group.parquet").is_empty());
    let different: BTreeSet<&[u8]> = of("tcp.parquet").into_iter().map(|(_, bytes)| &bytes[..]).collect();
    assert_eq!(different.len() as u64, SEEDS, "each seed has losses of its own");
}

#[test]
fn a_description_that_cannot_be_read_has_a_line_too() {
    let gone = std::path::PathBuf::from("/nowhere/run.json");
    let mut lines = Vec::new();
    assert_eq!(wirepaint_simulator::carry_out(&[gone], 1, None, &mut lines), 2);
    let line: serde_json::Value = serde_json::from_slice(&lines).expect("one line of JSON");
    assert_eq!((&line["run"], &line["exit_code"]), (&"/nowhere/run.json".into(), &2.into()));
    assert!(line["error"].as_str().expect("a message").starts_with("/nowhere/run.json: "));
}
