//! The simulator's speed as one JSON line; benches/simulator.py compares it with ns-3.
//!
//! ```text
//! cargo run --release -p wirepaint-simulator --example speed dumbbell FLOWS MBIT DELAY_MS SECONDS bulk|cbr
//! cargo run --release -p wirepaint-simulator --example speed loads RUN
//! ```
//!
//! `dumbbell`: FLOWS flows over one bottleneck of MBIT, with a one-way delay of DELAY_MS, for SECONDS of
//! simulated time; measures the CPU time of the event loop. `loads`: visits of a run description (`run.json`
//! of a simulated run) that a core carries out per second, building the run included. Reading descriptions
//! and writing tables are excluded.

use serde_json::{Value, json};
use std::path::Path;
use wirepaint_run::Run;
use wirepaint_simulator::Engine;

/// One link of the dumbbell. A packet counts as many bytes as over ns-3's point-to-point link (PPP).
fn link(bit_per_s: u64, delay_ms: u64, queue_bytes: u64) -> Value {
    json!({
        "capacity": {"kind": "rate", "bit_per_s": bit_per_s},
        "delay_ns": delay_ms * 1_000_000,
        "queue": {"kind": "droptail", "bytes": queue_bytes},
        "overhead_bytes": 2,
    })
}

/// `flows` over one bottleneck of `mbit` and `delay_ms` one way with a queue of one BDP.
fn dumbbell(flows: usize, mbit: u64, delay_ms: u64, seconds: u64, kind: &Value) -> Value {
    let rate = mbit * 1_000_000;
    let bdp = (rate / 8 * 2 * delay_ms / 1000).max(50 * 1514);
    let access = || link(10 * rate, 1, 100 * bdp);
    let hosts = (0..flows).flat_map(|number| {
        ["client", "server"]
            .map(|role| json!({"name": format!("{role}{number}"), "role": role, "congestion": "cc"}))
    });
    let flow = |number: usize| {
        json!({
            "kind": kind, "client": format!("client{number}"), "server": format!("server{number}"),
            "start_ns": number as u64 * 10_000_000 % 1_000_000_000,
        })
    };
    let segment = |name: &str, link: Value| json!({"name": name, "down": link, "up": link});
    json!({
        "format": 5, "id": "speed", "seed": 1, "trace_dir": "", "work_dir": "",
        "hosts": hosts.collect::<Vec<_>>(),
        "segments": [
            segment("servers", access()), segment("bottleneck", link(rate, delay_ms, bdp)),
            segment("clients", access()),
        ],
        "congestion": [{"algorithm": "cubic9438", "name": "cc"}],
        "transport": {
            "sysctls": {"net.ipv4.tcp_rmem": "4096 131072 268435456", "net.ipv4.tcp_wmem": "4096 16384 268435456"},
        },
        "flows": (0..flows).map(flow).collect::<Vec<_>>(),
        "until_ns": seconds * 1_000_000_000, "tables": ["host"],
    })
}

/// CPU time of this thread in seconds, from /proc.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

/// Largest resident set so far, in MB.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("kB") / 1000.0
}

fn flows(description: &Value) {
    let place = Path::new("speed");
    let run = Run::parse(description.to_string().as_bytes(), place).expect("a description");
    let mut engine = Engine::new(&run, place).unwrap_or_else(|error| panic!("{error}"));
    let before = cpu_seconds();
    let summary = engine.run();
    let seconds = cpu_seconds() - before;
    assert!(summary.faults.is_empty(), "{:?}", summary.faults);
    let bytes: u64 = summary.flows.iter().map(|flow| flow.received_bytes).sum();
    let line = json!({
        "cpu_s": seconds, "packet_hops": summary.packet_hops, "events": summary.events,
        "goodput_mbit": bytes as f64 * 8.0 / summary.duration as f64 * 1e3, "peak_mb": peak_mb(),
    });
    println!("{line}");
}

/// CPU time in seconds after which no further load begins.
const LOADS_FOR: f64 = 2.0;

/// The visit of a run description, again and again with other seeds.
fn loads(path: &Path) {
    let mut run = Run::read(path).unwrap_or_else(|error| panic!("{error}"));
    let (mut count, mut hops, before) = (0_u64, 0, cpu_seconds());
    while cpu_seconds() - before < LOADS_FOR {
        run.seed = count;
        let summary = Engine::new(&run, path).unwrap_or_else(|error| panic!("{error}")).run();
        assert!(summary.visits.iter().all(|visit| visit.loaded == visit.objects), "{path:?} did not load");
        hops += summary.packet_hops;
        count += 1;
    }
    let seconds = cpu_seconds() - before;
    let objects = run
        .visits
        .iter()
        .filter_map(|v| run.pages.get(&v.page))
        .map(|page| page.resources.len())
        .sum::<usize>();
    let line = json!({
        "requests": objects, "loads": count,
        "loads_per_s": count as f64 / seconds, "hops_per_s": hops as f64 / seconds, "peak_mb": peak_mb(),
    });
    println!("{line}");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|error| panic!("{word:?}: {error}"));
    match words[..] {
        ["loads", path] => loads(Path::new(path)),
        ["dumbbell", count, mbit, delay_ms, seconds, kind @ ("bulk" | "cbr")] => {
            let kind = match kind {
                "bulk" => json!({"kind": kind}),
                _ => {
                    json!({"kind": kind, "write_bytes": 1448, "rates": [{"at_ns": 0, "bit_per_s": 512_000}]})
                }
            };
            let [mbit, delay_ms, seconds] = [mbit, delay_ms, seconds].map(number);
            flows(&dumbbell(number(count) as usize, mbit, delay_ms, seconds, &kind));
        }
        _ => {
            eprintln!("usage: speed dumbbell FLOWS MBIT DELAY_MS SECONDS bulk|cbr, or speed loads RUN");
            std::process::exit(2);
        }
    }
}
