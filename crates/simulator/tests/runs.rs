//! Whole runs, from a JSON description to the results.

use parquet::file::serialized_reader::SerializedFileReader;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use wirepaint_page_model::catalogue::chromium;
use wirepaint_run::Run;
use wirepaint_simulator::{Engine, Summary};

/// One direction of a path of `mbit` and `delay_ms`, with a drop-tail queue of `queue` packets.
fn direction(mbit: f64, delay_ms: f64, queue: u64, loss: f64) -> Value {
    json!({
        "capacity": {"kind": "rate", "bit_per_s": (mbit * 1e6) as u64},
        "delay_ns": (delay_ms * 1e6) as u64,
        "queue": {"kind": "droptail", "packets": queue},
        "loss": {"kind": "independent", "probability": loss},
    })
}

fn segment(name: &str, down: Value, up: Value) -> Value {
    json!({"name": name, "down": down, "up": up})
}

fn network(down: Value, up: Value) -> Value {
    json!([segment("access", down, up)])
}

/// A run over `segments`; `rest` are further keys of the description.
fn described(segments: Value, rest: Value) -> Value {
    let mut run = json!({
        "format": 5, "id": "t", "seed": 7, "trace_dir": "", "work_dir": "", "segments": segments,
        "hosts": [{"name": "client", "role": "client", "congestion": "std"},
                  {"name": "server", "role": "server", "congestion": "std"}],
        "congestion": [{"algorithm": "std", "name": "std"}, {"algorithm": "fld", "name": "fld"}],
    });
    run.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    run
}

fn engine(description: &Value) -> Result<Engine, String> {
    let place = Path::new("run.json");
    let run = Run::parse(description.to_string().as_bytes(), place).map_err(|e| e.to_string())?;
    Engine::new(&run, place).map_err(|e| e.to_string())
}

fn simulate(description: &Value) -> Summary {
    engine(description).unwrap().run()
}

/// The rows of a table of the trace, as text.
fn table(engine: &mut Engine, name: &str) -> Vec<String> {
    static TABLES: AtomicU32 = AtomicU32::new(0);
    let number = TABLES.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("wirepaint-simulator-{number}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    engine.write_tables(&folder).unwrap();
    let file = std::fs::File::open(folder.join(format!("{name}.parquet"))).unwrap();
    let rows = SerializedFileReader::new(file).unwrap().into_iter().map(|row| row.unwrap().to_string());
    let rows = rows.collect();
    std::fs::remove_dir_all(folder).unwrap();
    rows
}

fn bulk(bytes: u64) -> Value {
    json!({"kind": {"kind": "bulk", "bytes": bytes}, "congestion": "std"})
}

#[test]
fn a_bulk_flow_fills_the_bottleneck() {
    let path = network(direction(10.0, 20.0, 100, 0.0), direction(10.0, 20.0, 100, 0.0));
    let summary =
        simulate(&described(path, json!({"flows": [bulk(5_000_000)], "until_ns": 60_000_000_000_u64})));
    let flow = &summary.flows[0];
    assert_eq!((flow.received_bytes, summary.unfinished), (5_000_000, 0));
    // 1448 of 1514 bytes of a frame are payload: 4.18 s at 10 Mbit/s, and slow start before.
    let seconds = flow.ended.unwrap() as f64 / 1e9;
    assert!((4.2..4.6).contains(&seconds), "{seconds} s");
    assert!(summary.faults.is_empty(), "{:?}", summary.faults);
}

fn flow_ends(summary: &Summary) -> Vec<(u64, Option<u64>)> {
    summary.flows.iter().map(|flow| (flow.received_bytes, flow.ended)).collect()
}

#[test]
fn flows_over_several_hops_take_the_sum_of_the_delays() {
    let hop = || direction(100.0, 10.0, 1000, 0.0);
    let flow = json!({"kind": {"kind": "bulk", "bytes": 1000}, "through": ["b", "a"]});
    let hops = json!([segment("a", hop(), hop()), segment("b", hop(), hop()), segment("c", hop(), hop())]);
    let summary = simulate(&described(hops, json!({"flows": [flow], "until_ns": 10_u64.pow(10)})));
    // SYN, SYN-ACK, ACK, data: 20 ms each, and some transmission times of 12 to 85 us.
    let ended = summary.flows[0].ended.unwrap();
    assert!((80_000_000..80_600_000).contains(&ended), "{ended} ns");
    assert_eq!(summary.links["b.down"].delivered_packets, summary.links["a.down"].offered_packets);
    assert_eq!(summary.links["a.up"].delivered_packets, summary.links["b.up"].offered_packets);
    assert_eq!(summary.links["c.down"].offered_packets, 0);
}

#[test]
fn a_constant_rate_is_kept_idles_and_changes() {
    let rates = json!([
        {"at_ns": 0, "bit_per_s": 512_000}, {"at_ns": 2_000_000_000_u64, "bit_per_s": 0},
        {"at_ns": 3_000_000_000_u64, "bit_per_s": 128_000}, {"at_ns": 4_000_000_000_u64, "bit_per_s": 0},
    ]);
    let flow = json!({"kind": {"kind": "cbr", "write_bytes": 1000, "rates": rates}, "congestion": "std"});
    let path = network(direction(10.0, 10.0, 100, 0.0), direction(10.0, 10.0, 100, 0.0));
    let summary = simulate(&described(path, json!({"flows": [flow], "until_ns": 10_u64.pow(10)})));
    // 64 writes a second for two seconds, none for one, 16 in the last.
    assert_eq!(flow_ends(&summary)[0].0, (2 * 64 + 16) * 1000);
    let ended = summary.flows[0].ended.unwrap() as f64 / 1e9;
    assert!((4.0..4.05).contains(&ended), "{ended} s");
}

#[test]
fn a_message_takes_the_path_and_what_it_waits_for() {
    let rates = json!([{"at_ns": 0, "bit_per_s": 80_000}, {"at_ns": 5_000_000_000_u64, "bit_per_s": 0}]);
    let flow = json!({"kind": {"kind": "cbr", "write_bytes": 1000, "rates": rates}, "congestion": "std"});
    let path = network(direction(10.0, 10.0, 100, 0.0), direction(10.0, 10.0, 100, 0.0));
    let summary = simulate(&described(path, json!({"flows": [flow], "until_ns": 10_u64.pow(10)})));
    let delay = summary.flows[0].message_delay.as_ref().unwrap();
    // 1066 bytes at 10 Mbit/s and 10 ms; the first message waits 30 ms for the end of the handshake.
    assert_eq!((delay.messages, delay.p50), (50, 10_000_000 + 852_800));
    assert!((40_852_800..41_200_000).contains(&delay.max), "{} ns", delay.max);
    assert_eq!(delay.p99, delay.max);
}

#[test]
fn service_classes_share_the_bottleneck_by_weight_and_priority() {
    let mut down = direction(10.0, 10.0, 100, 0.0);
    let class = |dscp: Value, priority: u32, weight: u32| json!({"dscp": dscp, "priority": priority, "weight": weight, "packets": 100});
    let bronze = class(json!([]), 1, 20);
    down["queue"] = json!({"kind": "classes", "classes":
        [class(json!([46]), 0, 1), class(json!([10, 12]), 1, 50), class(json!([18]), 1, 30), bronze]});
    let flow = |dscp: u8| json!({"kind": {"kind": "bulk"}, "congestion": "std", "dscp": dscp});
    let rates = json!([{"at_ns": 0, "bit_per_s": 500_000}]);
    let voice = json!({"kind": {"kind": "cbr", "write_bytes": 1448, "rates": rates}, "congestion": "std", "dscp": 46});
    let flows = json!([flow(10), flow(12), flow(18), flow(0), voice]);
    let path = network(down, direction(100.0, 10.0, 1000, 0.0));
    let summary = simulate(&described(path, json!({"flows": flows, "until_ns": 30_000_000_000_u64})));
    let received: Vec<f64> = summary.flows.iter().map(|flow| flow.received_bytes as f64).collect();
    let gold = received[0] + received[1];
    let shared = gold + received[2] + received[3];
    for (found, share) in [(gold, 0.5), (received[2], 0.3), (received[3], 0.2)] {
        assert!((found / shared - share).abs() < 0.02, "{received:?}");
    }
    // A message takes 1.2 ms and 10 ms, and waits at most for the packet in transmission, 1.2 ms.
    let voice = summary.flows[4].message_delay.as_ref().unwrap();
    assert!(voice.p50 <= 10_000_000 + 2 * 1_211_200, "{} ns", voice.p50);
}

#[test]
fn a_request_waits_for_the_answer_before_it_and_its_pause() {
    let kind = json!({
        "kind": "request_response", "request_bytes": 100, "response_bytes": 1000, "count": 5,
        "pause_ns": 1_000_000_000_u64,
    });
    let path = network(direction(100.0, 10.0, 100, 0.0), direction(100.0, 10.0, 100, 0.0));
    let flows = json!([{"kind": kind, "congestion": "std"}]);
    let summary = simulate(&described(path, json!({"flows": flows, "until_ns": 10_u64.pow(11)})));
    assert_eq!(summary.flows[0].received_bytes, 5000);
    // Handshake 20 ms, five exchanges of a round trip, four pauses of a second.
    let ended = summary.flows[0].ended.unwrap() as f64 / 1e9;
    assert!((4.12..4.13).contains(&ended), "{ended} s");
}

#[test]
fn a_group_takes_its_new_route_from_its_time_on() {
    let fast = || direction(100.0, 5.0, 1000, 0.0);
    let slow = direction(1.0, 5.0, 1000, 0.0);
    let segments = json!([segment("fast", fast(), fast()), segment("slow", slow, fast())]);
    let flow = |group: &str| json!({"kind": {"kind": "bulk", "bytes": 2_000_000}, "group": group, "through": ["fast"]});
    let reroute = json!({"at_ns": 20_000_000, "group": "moved", "through": ["slow"]});
    let flows = json!([flow("moved"), flow("")]);
    let rest = json!({"flows": flows, "reroutes": [reroute], "until_ns": 10_u64.pow(11)});
    let summary = simulate(&described(segments, rest));
    let ends = flow_ends(&summary);
    assert!(ends[0].1.unwrap() > 15_000_000_000, "1 Mbit/s carries 2 MB in 16 s: {ends:?}");
    assert!(ends[1].1.unwrap() < 2_000_000_000, "the other flow stays: {ends:?}");
}

#[test]
fn a_client_that_sends_fills_the_way_up() {
    let path = network(direction(100.0, 10.0, 100, 0.0), direction(2.0, 10.0, 100, 0.0));
    let flow = json!({"kind": {"kind": "bulk", "bytes": 500_000}, "congestion": "std", "sender": "client"});
    let summary = simulate(&described(path, json!({"flows": [flow], "until_ns": 10_u64.pow(11)})));
    assert!(
        summary.links["access.up"].delivered_bytes > 500_000
            && summary.links["access.down"].delivered_bytes < 100_000
    );
    assert!(summary.flows[0].ended.unwrap() > 2_000_000_000);
}

#[test]
fn a_flow_without_end_stops_with_the_run_or_at_its_own_time() {
    let path = || network(direction(10.0, 10.0, 100, 0.0), direction(10.0, 10.0, 100, 0.0));
    let endless = json!({"kind": {"kind": "bulk"}, "congestion": "std"});
    let stopped = json!({"kind": {"kind": "bulk"}, "congestion": "std", "stop_ns": 1_000_000_000});
    let summary = simulate(&described(path(), json!({"flows": [endless], "until_ns": 3_000_000_000_u64})));
    assert_eq!((summary.duration, summary.unfinished), (3_000_000_000, 1));
    let summary = simulate(&described(path(), json!({"flows": [stopped], "until_ns": 10_u64.pow(11)})));
    assert_eq!(summary.unfinished, 0);
    // Bytes in the send buffer at the stop are still sent.
    let ended = summary.flows[0].ended.unwrap();
    assert!((1_000_000_000..3_000_000_000).contains(&ended), "{ended} ns");
}

#[test]
fn a_flow_that_is_stopped_before_it_is_connected_sends_nothing_and_ends() {
    let path = network(direction(10.0, 20.0, 100, 0.0), direction(10.0, 20.0, 100, 0.0));
    let early = json!({"kind": {"kind": "bulk"}, "congestion": "std", "stop_ns": 10_000_000});
    let summary = simulate(&described(path, json!({"flows": [early], "until_ns": 10_u64.pow(10)})));
    let flow = &summary.flows[0];
    assert_eq!((summary.unfinished, flow.received_bytes), (0, 0));
    assert!((40_000_000..100_000_000).contains(&flow.ended.unwrap()), "{flow:?}");
}

#[test]
fn a_flow_begins_when_the_one_that_it_comes_after_has_ended() {
    let path = network(direction(10.0, 20.0, 100, 0.0), direction(10.0, 20.0, 100, 0.0));
    let kind = || json!({"kind": "bulk", "bytes": 100_000});
    let first = json!({"name": "first", "kind": kind(), "congestion": "std"});
    let then = json!({"name": "then", "after": "first", "start_ns": 1_000_000_000, "kind": kind(), "congestion": "std"});
    let summary = simulate(&described(path, json!({"flows": [first, then], "until_ns": 10_u64.pow(11)})));
    let [first, then] = &summary.flows[..] else { panic!("two flows") };
    assert_eq!((first.name.as_str(), then.name.as_str(), summary.unfinished), ("first", "then", 0));
    assert_eq!(then.started.unwrap(), first.ended.unwrap() + 1_000_000_000);
    assert_eq!(then.ended.unwrap() - then.started.unwrap(), first.ended.unwrap() - first.started.unwrap());
}

#[test]
fn a_run_does_not_wait_for_background_flows() {
    let path = network(direction(10.0, 20.0, 100, 0.0), direction(10.0, 20.0, 100, 0.0));
    let background = json!({"kind": {"kind": "bulk"}, "congestion": "std", "background": true});
    let flows = json!([background, bulk(100_000)]);
    let summary = simulate(&described(path, json!({"flows": flows, "until_ns": 10_u64.pow(11)})));
    assert_eq!((summary.unfinished, summary.flows[0].ended), (0, None));
    assert!(summary.duration < 5_000_000_000 && summary.flows[0].received_bytes > 0, "{summary:?}");
}

#[test]
fn the_end_of_a_run_is_sampled_once() {
    let path = network(direction(10.0, 20.0, 100, 0.0), direction(10.0, 20.0, 100, 0.0));
    let flow = json!({"kind": {"kind": "bulk"}, "congestion": "std"});
    let simulation = json!({"flows": [flow], "flow_interval_ns": 100_000_000, "until_ns": 300_000_000});
    let mut engine = engine(&described(path, simulation)).unwrap();
    engine.run();
    assert_eq!(table(&mut engine, "flow").len(), 3);
}

#[test]
fn a_request_that_is_larger_than_the_send_buffer_is_sent_in_full() {
    let path = network(direction(10.0, 10.0, 100, 0.0), direction(10.0, 10.0, 100, 0.0));
    let kind =
        json!({"kind": "request_response", "request_bytes": 1_000_000, "response_bytes": 500, "count": 2});
    let flow = json!({"kind": kind, "congestion": "std"});
    let summary = simulate(&described(path, json!({"flows": [flow], "until_ns": 10_u64.pow(11)})));
    assert_eq!((summary.unfinished, summary.flows[0].received_bytes), (0, 1000));
}

#[test]
fn what_cannot_be_carried_out_is_refused_in_one_line() {
    let path = || network(direction(10.0, 10.0, 100, 0.0), direction(10.0, 10.0, 100, 0.0));
    let refusal = |rest: Value| engine(&described(path(), rest)).err().unwrap();
    let flow = || json!([{"kind": {"kind": "bulk"}}]);
    let with = |flow: Value| refusal(json!({"flows": [flow], "until_ns": 1}));
    let cases = [
        (
            with(json!({"kind": {"kind": "bulk"}, "congestion": "cubik"})),
            "run.json: flows[0].congestion: found \"cubik\", accepted: fld, std",
        ),
        (
            with(json!({"kind": {"kind": "bulk"}, "server": "x"})),
            "run.json: flows[0].server: found \"x\", accepted: client, server",
        ),
        (
            with(json!({"kind": {"kind": "bulk", "bytes": 0}, "congestion": "std"})),
            "run.json: flows[0].kind.bytes: found 0, accepted: at least 1, or null for no end",
        ),
        (
            with(json!({"kind": {"kind": "bulk"}, "through": ["x"]})),
            "run.json: flows[0].through: found \"x\", accepted: access",
        ),
        (
            with(json!({"kind": {"kind": "bulk"}, "congestion": "std", "dscp": 64})),
            "run.json: flows[0].dscp: found 64, accepted: 0 to 63",
        ),
        (
            refusal(json!({"flows": flow(), "segments": [path()[0], path()[0]]})),
            "run.json: segments[1].name: found \"access\" again, accepted: each name once",
        ),
        (
            refusal(
                json!({"flows": flow(), "segments": network(direction(1.0, 1.0, 1, 0.0), direction(1.0, 1.0, 1, 2.0))}),
            ),
            "run.json: link access.up: loss.probability: found 2, accepted: ",
        ),
        (
            refusal(json!({"flows": flow(), "hosts": []})),
            "run.json: flows[0].client: found \"client\", accepted: a name in hosts, which is empty",
        ),
        (
            refusal(json!({"flows": flow(), "tables": ["packets"]})),
            "run.json: tables: found \"packets\", accepted: each once of page, object, ",
        ),
        (
            refusal(json!({"flows": flow(), "tables": ["tcp", "tcp"]})),
            "run.json: tables: found \"tcp\", accepted: each once of page, object, ",
        ),
        (
            refusal(json!({"flows": flow(), "flow_interval_ns": 0})),
            "run.json: flow_interval_ns: found 0, accepted: at least 1 ns",
        ),
        (
            with(
                json!({"kind": {"kind": "cbr", "write_bytes": 1, "rates": [{"at_ns": 0, "bit_per_s": 20_000_000_000_u64}]},
                        "congestion": "std"}),
            ),
            "run.json: flows[0].kind.rates: found more than a write a nanosecond, accepted: ",
        ),
        (
            refusal(json!({"flows": [{"kind": {"kind": "bulk"}, "congestion": "std", "group": "phones"}],
                           "reroutes": [{"at_ns": 1, "group": "phone", "through": []}], "until_ns": 1})),
            "run.json: reroutes[0].group: found \"phone\", accepted: a group that flows or visits name: \"phones\"",
        ),
        (
            refusal(json!({"flows": flow(), "tables": ["packet"], "packet_links": ["x"]})),
            "run.json: packet_links: found \"x\", accepted: access.down, access.up",
        ),
    ];
    for (found, expected) in cases {
        assert!(found.starts_with(expected) && !found.contains('\n'), "{found}\n{expected}");
    }
    let nothing = engine(&json!({"format": 5, "id": "t", "seed": 1, "trace_dir": "", "work_dir": ""}));
    assert!(nothing.err().unwrap().contains("flows, visits: found none"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// On any path, finite flows end, every packet is accounted for, and a second run of the same description
    /// is equal. (A debug assertion of the engine checks that time never runs back.)
    #[test]
    fn every_run_ends_and_conserves_its_packets(
        mbit in 0.2_f64..50.0, delay_ms in 0.0_f64..200.0, queue in 4_u64..200, loss in 0.0_f64..0.05,
        up_mbit in 0.2_f64..50.0, jitter_ms in 0_u64..20, reorder: bool, seed: u64,
        sizes in prop::collection::vec(1_u64..200_000, 1..5),
    ) {
        let mut down = direction(mbit, delay_ms, queue, loss);
        down["jitter"] = json!({"kind": "uniform", "range_ns": jitter_ms * 1_000_000, "reorder": reorder});
        let flows: Vec<Value> = sizes.iter().map(|bytes| bulk(*bytes)).collect();
        let simulation = json!({"flows": flows, "until_ns": 10_u64.pow(13)});
        let mut run = described(network(down, direction(up_mbit, delay_ms, queue, loss)), simulation);
        run["seed"] = json!(seed);
        let summary = simulate(&run);
        prop_assert_eq!(summary.unfinished, 0, "does not end: {}", run);
        prop_assert!(summary.faults.is_empty(), "{:?}: {}", summary.faults, run);
        let received: Vec<u64> = summary.flows.iter().map(|flow| flow.received_bytes).collect();
        prop_assert_eq!(&received, &sizes, "{}", run);
        let again = serde_json::to_value(simulate(&run)).unwrap();
        prop_assert_eq!(serde_json::to_value(summary).unwrap(), again, "{}", run);
    }
}

#[test]
fn connections_to_one_network_share_a_group_and_its_events_are_a_table() {
    let path = network(direction(10.0, 20.0, 30, 0.0), direction(10.0, 20.0, 100, 0.0));
    let flow = json!({"kind": {"kind": "bulk", "bytes": 2_000_000}, "congestion": "together"});
    let mut asked = described(path, json!({"flows": [flow, flow, flow], "until_ns": 60_000_000_000_u64}));
    asked["congestion"] =
        json!([{"algorithm": "heracles", "name": "together"}, {"algorithm": "std", "name": "std"}]);
    let mut engine = engine(&asked).unwrap();
    let summary = engine.run();
    assert_eq!(summary.unfinished, 0);
    let rows = table(&mut engine, "group");
    assert!(rows[0].contains("algorithm: \"heracles\""), "{}", rows[0]);
    for needed in ["event: \"join\"", "event: \"loss\"", "members: 3,", "connection: 2,"] {
        assert!(rows.iter().any(|row| row.contains(needed)), "no row with {needed}");
    }
}

const SECOND: u64 = 1_000_000_000;

/// A visit of a user to a page of one document, at a server.
fn visit(start_ms: u64, client: u16, server: u8, bytes: u64) -> Value {
    let page = json!({
        "origins": [{"host": "a.test", "address": format!("10.65.{server}.1"), "port": 443, "encrypted": true}],
        "resources": [{"url": "https://a.test/", "origin": 0, "status": 200, "type": "html", "cause": null,
                       "wire_bytes": bytes, "decoded_bytes": bytes, "think_ns": 0, "document": {"body_at": 400}}],
    });
    json!({"user_agent": "u", "name": "p", "start_ns": start_ms * 1_000_000, "timeout_ns": 9 * SECOND,
           "client": format!("user{client}"), "page": page, "browser": "chromium"})
}

/// The pages of visits, by the place of the visit, and the visits with that name in place of the page.
fn apart(visits: &[Value]) -> (Value, Vec<Value>) {
    let mut visits = visits.to_vec();
    let pages = visits.iter_mut().enumerate().map(|(place, visit)| {
        let name = place.to_string();
        (name.clone(), std::mem::replace(&mut visit["page"], json!(name)))
    });
    (pages.collect(), visits)
}

/// A column of a row that [`table`] gives; the first has a brace before it.
fn column(row: &str, name: &str) -> Option<u64> {
    let at = row.split([' ', '{']).skip_while(|word| word.strip_suffix(':') != Some(name)).nth(1)?;
    at.trim_end_matches([',', '}']).parse().ok()
}

/// The rows of a table of visits over 10 Mbit/s with a queue of 121 ms.
fn visited(visits: &[Value], algorithm: &str, parameters: &Value, name: &str) -> Vec<String> {
    let path = network(direction(10.0, 20.0, 100, 0.0), direction(10.0, 20.0, 100, 0.0));
    let (pages, visits) = apart(visits);
    let mut asked = described(
        path,
        json!({"browsers": {"chromium": chromium()}, "pages": pages, "visits": visits, "until_ns": 60 * SECOND}),
    );
    asked["hosts"] = json!([
        {"name": "user0", "role": "client", "congestion": "std"},
        {"name": "user1", "role": "client", "congestion": "std"},
        {"name": "server", "role": "server", "congestion": "shares"},
    ]);
    asked["congestion"] = json!([
        {"algorithm": "std", "name": "std"},
        {"algorithm": algorithm, "name": "shares", "parameters": parameters},
    ]);
    let mut engine = engine(&asked).unwrap();
    assert_eq!(engine.run().unfinished, 0);
    table(&mut engine, name)
}

#[test]
fn a_server_caches_over_the_visits_of_one_user() {
    let visits = [(0, 0), (0, 0), (1, 0), (0, 1), (0, 0)];
    let visits: Vec<Value> =
        (0..).zip(visits).map(|(n, (client, server))| visit(n * 10_000, client, server, 200_000)).collect();
    let rows = visited(&visits, "tcbt", &json!({}), "group");
    let cached = (0..5).map(|visit| {
        let begun = |row: &&String| column(row, "time").unwrap() / (10 * SECOND) == visit;
        let first = rows.iter().filter(begun).find(|row| row.contains("\"join\""));
        column(first.unwrap(), "cwnd").is_some()
    });
    // Cached: only later visits of the first user to the same server.
    assert_eq!(cached.collect::<Vec<_>>(), [false, true, false, false, true], "{rows:#?}");
}

#[test]
fn a_new_connection_begins_with_the_round_trip_time_of_others_where_that_is_shared() {
    // The second visit begins after the first, with an empty queue, or while the first fills the queue.
    for (algorithm, second_ms) in [("tcbt", 10_000), ("tcbe", 1_500)] {
        let visits = [visit(0, 0, 0, 3_000_000), visit(second_ms, 0, 0, 20_000)];
        let [alone, shared] = [0, 1].map(|shares| {
            let rows = visited(&visits, algorithm, &json!({"tcb_share_rtt": shares}), "tcp");
            // The largest connection is the first visit's; the last one is the second's.
            let of_second = rows
                .iter()
                .filter(|row| row.contains("\"server\""))
                .max_by_key(|row| (column(row, "connection"), std::cmp::Reverse(column(row, "time"))));
            column(of_second.unwrap(), "srtt").unwrap()
        });
        assert_ne!(shared, alone, "{algorithm}");
        if algorithm == "tcbt" {
            assert!(
                alone < 50_000_000 && shared > alone + 10_000_000,
                "{alone} ns alone, {shared} ns shared"
            );
        }
    }
}

#[test]
fn connections_of_different_servers_share_nothing() {
    let path = network(direction(10.0, 20.0, 30, 0.0), direction(10.0, 20.0, 100, 0.0));
    let flow = |server: &str| json!({"kind": {"kind": "bulk", "bytes": 200_000}, "server": server});
    let flows = json!({"flows": [flow("a"), flow("a"), flow("b")], "until_ns": 60_000_000_000_u64});
    let mut asked = described(path, flows);
    asked["hosts"] = json!([
        {"name": "client", "role": "client", "congestion": "std"},
        {"name": "a", "role": "server", "congestion": "one"},
        {"name": "b", "role": "server", "congestion": "one"},
    ]);
    asked["congestion"] =
        json!([{"algorithm": "tcpint", "name": "one"}, {"algorithm": "std", "name": "std"}]);
    let mut engine = engine(&asked).unwrap();
    assert_eq!(engine.run().unfinished, 0);
    let rows = table(&mut engine, "group");
    let most = |server: &str| {
        let of_it = rows.iter().filter(|row| row.contains(&format!("server: {server:?}")));
        (1..4).filter(|n| of_it.clone().any(|row| row.contains(&format!("members: {n},")))).max()
    };
    assert_eq!((most("10.65.0.0/24"), most("10.65.1.0/24")), (Some(2), Some(1)));
}

#[test]
fn applications_over_one_shared_window_end_and_repeat() {
    let bulk = |bytes: u64| json!({"kind": {"kind": "bulk", "bytes": bytes}, "congestion": "shares"});
    let kind = json!({"kind": "request_response", "request_bytes": 3000, "response_bytes": 40_000, "count": 5,
                      "pause_ns": 100_000_000});
    let flows = json!([bulk(300_000), bulk(70_000), {"kind": kind, "congestion": "shares"}, bulk(1)]);
    let visits: Vec<Value> = (0..4).map(|n| visit(n * 150, 0, 0, 150_000)).collect();
    // An application is notified when another connection's ACK makes room to write.
    let transport = json!({"sysctls": {"net.ipv4.tcp_notsent_lowat": "4096"}});
    let (pages, visits) = apart(&visits);
    let rest = json!({"flows": flows, "browsers": {"chromium": chromium()}, "pages": pages, "visits": visits, "transport": transport, "until_ns": 60 * SECOND});
    let path = network(direction(5.0, 20.0, 20, 0.03), direction(5.0, 20.0, 100, 0.01));
    let mut asked = described(path, rest);
    asked["hosts"] = json!([
        {"name": "client", "role": "client", "congestion": "shares"},
        {"name": "user0", "role": "client", "congestion": "shares"},
        {"name": "server", "role": "server", "congestion": "shares"},
    ]);
    asked["congestion"] =
        json!([{"algorithm": "tcpint", "name": "shares", "parameters": {"tcpint_exact": 1}}]);
    let summary = simulate(&asked);
    assert_eq!((summary.unfinished, summary.faults.len()), (0, 0), "{:?}", summary.faults);
    let again = serde_json::to_value(simulate(&asked)).unwrap();
    assert_eq!(serde_json::to_value(summary).unwrap(), again);
}
