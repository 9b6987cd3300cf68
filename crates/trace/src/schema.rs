//! The tables and their columns: the only declaration of the trace's shape.
//!
//! `dataplane schema` writes this as `schema/trace.json`; Python writes and reads by that file.

use serde::Serialize;

/// Type of a column as stored in Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// 64-bit signed integer: times in ns, sizes, counts.
    Int64,
    /// 64-bit float: shares and rates that are not counts.
    Float64,
    /// UTF-8 text.
    Utf8,
    /// True or false.
    Boolean,
}

/// One column. Every column may be null: null means "this back end cannot know it".
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Column {
    /// Name, unique in its table.
    pub name: &'static str,
    /// Stored type.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Unit (`ns`, `bytes`, `segments`, `packets`, ...), empty for names and flags.
    pub unit: &'static str,
    /// One line that says what the value is.
    pub summary: &'static str,
}

/// One table of the trace.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Table {
    /// File name without ending.
    pub name: &'static str,
    /// What one row is.
    pub row: &'static str,
    /// Columns in file order.
    pub columns: &'static [Column],
}

const fn c(name: &'static str, column_type: ColumnType, unit: &'static str, summary: &'static str) -> Column {
    Column { name, column_type, unit, summary }
}
const fn ns(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Int64, "ns", summary)
}
const fn bytes(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Int64, "bytes", summary)
}
const fn segments(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Int64, "segments", summary)
}
const fn packets(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Int64, "packets", summary)
}
const fn count(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Int64, "", summary)
}
const fn text(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Utf8, "", summary)
}
const fn flag(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Boolean, "", summary)
}

/// The table of a name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// Every table of the trace.
pub const TABLES: &[Table] = &[
    Table {
        name: "run",
        row: "the run",
        columns: &[
            text("run_key", "unique name of the run in its evaluation"),
            text("backend", "testbed or simulator"),
            c("seed", ColumnType::Int64, "", "seed of every random element of the run"),
            text("scenario", "name of the scenario"),
            text("network", "name of the network"),
            text("congestion", "congestion control asked for at the server"),
            text("http", "HTTP version asked for: h1 or h2"),
            segments("initial_window", "initial window asked for at the server"),
            text("proxy", "proxy on the path: none"),
            text("user_agent", "name of the user agent"),
            text("page", "name of the page"),
            count("visit", "number of the visit, 0 is the warm-up"),
            flag("warmup", "true for the visit that is kept apart from the statistics"),
            count("attempt", "1 for the first attempt"),
            c(
                "started_unix",
                ColumnType::Int64,
                "ns",
                "wall clock at the run's epoch, nanoseconds since 1970",
            ),
            ns("duration", "length of the run"),
            text("verdict", "valid, suspect or invalid"),
            text("reasons", "JSON list of {check, severity, found, expected}"),
            text("kernel", "release of the kernel"),
            text("browser", "product and version of the browser"),
            text("wirepaint", "version of wirepaint"),
            text("sysctls", "JSON object: sysctls in force in the server and client namespaces"),
            text("server_congestion", "congestion control that the kernel reports for the server's sockets"),
            text(
                "client_congestion",
                "congestion control that the kernel reports for the client's namespace",
            ),
            segments(
                "server_initial_window",
                "initial window that the kernel reports for the server's sockets",
            ),
        ],
    },
    Table {
        name: "page",
        row: "one page visit",
        columns: &[
            text("user_agent", "name of the user agent"),
            text("page", "name of the page"),
            text("url", "address of the base document"),
            ns("navigation_start", "navigation start"),
            ns("base_request_sent", "request of the base document sent (the last one after redirects)"),
            ns("base_first_byte", "first byte of the base document"),
            ns("base_last_byte", "last byte of the base document"),
            ns("first_paint", "first paint"),
            ns("first_contentful_paint", "first contentful paint (W3C Paint Timing)"),
            ns("largest_contentful_paint", "last candidate before the end of the visit (W3C LCP)"),
            ns("viewport_complete", "last object of the first view port loaded and painted"),
            ns("dom_content_loaded", "DOMContentLoaded event fired"),
            ns("load_event", "load event fired"),
            c("speed_index", ColumnType::Float64, "ms", "speed index from screencast frames"),
            count("objects", "objects loaded"),
            count("failed_objects", "objects that failed"),
            count("expected_objects", "objects that the recording holds"),
            bytes("encoded_bytes", "response bytes as transferred, headers included"),
            bytes("decoded_bytes", "body bytes after content decoding"),
            count("connections", "connections that carried a request"),
            count("surplus_connections", "connections opened that never carried a request"),
        ],
    },
    Table {
        name: "object",
        row: "one request",
        columns: &[
            text("request", "id of the request, unique in the run"),
            text("page", "name of the page"),
            text("url", "address"),
            text("host", "host of the address"),
            text("type", "html, css, js, image, font, media, data or other"),
            text("method", "HTTP method"),
            count("status", "HTTP status"),
            text("protocol", "http/1.1, h2 or h3"),
            count("connection", "id of the connection that carried it"),
            flag("first_on_connection", "true for the first request of its connection"),
            text("initiator", "address of the object that caused the request"),
            text("initiator_type", "parser, script, preload, redirect or other"),
            text("priority", "priority that the browser gave the request"),
            flag("in_viewport", "true when it paints in the first view port"),
            text("served_by", "origin, cache hit, cache miss, proxy"),
            ns("discovered", "the browser knew of the object"),
            ns("queued", "waiting for a connection began"),
            ns("sent", "request sent"),
            ns("first_byte", "first byte of the response"),
            ns("last_byte", "last byte of the response"),
            bytes("encoded_bytes", "response bytes as transferred, headers included"),
            bytes("decoded_bytes", "body bytes after content decoding"),
            text("failed", "cause of a failure, null when it loaded"),
        ],
    },
    Table {
        name: "chunk",
        row: "bytes of an object arriving",
        columns: &[
            text("request", "id of the request"),
            count("connection", "id of the connection"),
            ns("time", "arrival at the browser"),
            bytes("bytes", "bytes that arrived"),
        ],
    },
    Table {
        name: "connection",
        row: "one transport connection",
        columns: &[
            count("connection", "id, unique in the run"),
            text("client_address", "address of the client"),
            count("client_port", "port of the client"),
            text("server_address", "address of the server"),
            count("server_port", "port of the server"),
            text("host", "host that the connection was opened for"),
            text("protocol", "http/1.1, h2 or h3; null when nothing was negotiated"),
            flag("encrypted", "true with TLS"),
            text("congestion", "congestion control of the server's socket as the kernel reports it"),
            segments("initial_window", "initial window of the server's socket as the kernel reports it"),
            ns("opened", "connect began (SYN sent)"),
            ns("connected", "TCP handshake done"),
            ns("tls_done", "TLS handshake done"),
            ns("first_request", "first request sent"),
            ns("last_byte", "last response byte received"),
            ns("closed", "connection closed; null when still open at the end"),
            bytes("bytes_received", "bytes received by the client, as transferred"),
            bytes("bytes_sent", "bytes sent by the client, as transferred"),
            count("objects", "requests that the connection carried"),
            segments("retransmitted_segments", "segments that the server retransmitted"),
            ns("min_rtt", "smallest round-trip time that the server saw"),
            bytes("mss", "maximum segment size of the server's socket"),
            text("reason", "request, or surplus for a connection that never carried one"),
        ],
    },
    Table {
        name: "tcp",
        row: "a sample of one connection's sender",
        columns: &[
            ns("time", "time of the sample"),
            count("connection", "id of the connection"),
            text("side", "server or client"),
            text("server_address", "address of the server"),
            count("server_port", "port of the server"),
            text("client_address", "address of the client"),
            count("client_port", "port of the client"),
            text("event", "ack, state or retransmit"),
            segments("cwnd", "congestion window"),
            segments("ssthresh", "slow-start threshold; null while infinite"),
            ns("srtt", "smoothed round-trip time; null before the first sample"),
            segments("in_flight", "segments in flight"),
            text("state", "Open, Disorder, CWR, Recovery or Loss"),
            segments("delivered", "segments delivered so far"),
            segments("lost", "segments marked lost so far"),
            segments("retransmitted", "segments retransmitted so far"),
            c("pacing_rate", ColumnType::Int64, "bit/s", "pacing rate; null when not paced"),
        ],
    },
    Table {
        name: "group",
        row: "an event of a group of connections that share congestion control state",
        columns: &[
            ns("time", "time of the event"),
            text("algorithm", "name of the congestion control's file"),
            text("congestion", "name that the instance is registered under"),
            text("prefix", "destinations of the group, such as 10.1.2.0/24"),
            text("server", "senders of the group, such as 10.65.0.0/24: hosts of one network are one server"),
            count("slot", "number of the group among those of its prefix and server"),
            text("event", "join, loss, leave, delay or undo"),
            count("connection", "id of the connection that caused it"),
            text("server_address", "address of the server"),
            count("server_port", "port of the server"),
            text("client_address", "address of the client"),
            count("client_port", "port of the client"),
            count("members", "members of the group after the event"),
            segments("cwnd_sum", "sum of the windows that the members contributed"),
            segments("ssthresh_sum", "sum of the slow-start thresholds that the members contributed"),
            segments("cwnd", "window that the algorithm tells the members; null for none"),
            segments("ssthresh", "slow-start threshold that it tells them; null for none"),
        ],
    },
    Table {
        name: "link",
        row: "a sample of one direction of the bottleneck",
        columns: &[
            ns("time", "time of the sample"),
            text("direction", "down (server to client) or up"),
            text("class", "service class; null without classes"),
            packets("queue_packets", "packets in the queue"),
            bytes("queue_bytes", "bytes in the queue"),
            packets("offered_packets", "packets that arrived so far"),
            bytes("offered_bytes", "wire bytes that arrived so far"),
            packets("delivered_packets", "packets that left so far"),
            bytes("delivered_bytes", "wire bytes that left so far"),
            packets("queue_drops", "packets that the queue dropped so far"),
            packets("random_losses", "packets that the loss model dropped so far"),
            ns("lateness_max", "largest lateness of the emulator since the last sample; 0 in the simulator"),
            bytes(
                "capacity_bytes",
                "bytes that the bottleneck could have carried so far; null when unlimited",
            ),
        ],
    },
    Table {
        name: "packet",
        row: "a packet at the bottleneck, on request",
        columns: &[
            text("direction", "down or up"),
            ns("time_in", "arrival at the bottleneck"),
            ns("time_due", "departure that the model computed; null when dropped"),
            ns("time_out", "departure in fact; null when dropped"),
            text("dropped", "queue, aqm, loss, or host: the far interface refused it; null when delivered"),
            bytes("wire_bytes", "IP bytes plus the link's overhead"),
            count("connection", "id of the connection"),
            text("source_address", "source address"),
            count("source_port", "source port"),
            text("destination_address", "destination address"),
            count("destination_port", "destination port"),
            count("sequence", "TCP sequence number"),
            count("acknowledgement", "TCP acknowledgement number"),
            bytes("payload_bytes", "TCP or UDP payload"),
            text("flags", "TCP flags, of SAFRPUEW"),
        ],
    },
    Table {
        name: "flow",
        row: "one interval of a bulk or constant-rate flow without a browser",
        columns: &[
            count("connection", "id of the connection"),
            ns("started", "start of the flow"),
            ns("ended", "end of the flow"),
            c("rate_asked", ColumnType::Int64, "bit/s", "rate asked for; null for a bulk flow"),
            bytes("bytes", "bytes that the flow transferred in all"),
            ns("time", "end of the interval"),
            bytes("received_bytes", "bytes received in the interval"),
        ],
    },
    Table {
        name: "host",
        row: "the machine while the run ran",
        columns: &[
            c("cpu_browser", ColumnType::Float64, "s", "CPU time of the browser's processes"),
            c("cpu_server", ColumnType::Float64, "s", "CPU time of the replay server"),
            c("cpu_emulator", ColumnType::Float64, "s", "CPU time of the emulator"),
            c("cpu_foreign", ColumnType::Float64, "s", "CPU time of everything that is not ours"),
            c("cpu_total", ColumnType::Float64, "s", "CPU time that the machine had: cores times duration"),
            c("steal", ColumnType::Float64, "s", "CPU time stolen by the hypervisor"),
            c("pressure", ColumnType::Float64, "", "share of time in which a task waited for a CPU"),
            ns("lateness_p50", "median lateness of the emulator's departures"),
            ns("lateness_p99", "99th percentile of the lateness"),
            ns("lateness_max", "largest lateness"),
        ],
    },
];
