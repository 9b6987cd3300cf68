//! The tables and their columns: the only declaration of the trace's shape.
//!
//! `dataplane schema` writes this as `schema/trace.json`; Python writes and reads by that file.

use crate::value::Value;
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

const fn seconds(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Float64, "s", summary)
}
const fn ms(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Float64, "ms", summary)
}
const fn share(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Float64, "", summary)
}
const fn rate(name: &'static str, summary: &'static str) -> Column {
    c(name, ColumnType::Int64, "bit/s", summary)
}

/// The table of a name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// A row of a table, with a field for each column.
pub trait Row: Default {
    /// The table.
    const TABLE: &'static Table;

    /// The cells in the order of the table's columns.
    fn cells(&self) -> impl Iterator<Item = &Value>;

    /// A row with what `cell` gives for each column.
    fn from_cells(cell: impl FnMut(&'static Column) -> Value) -> Self;
}

macro_rules! column_name {
    ($column:ident) => {
        stringify!($column)
    };
    ($column:ident $name:literal) => {
        $name
    };
}

/// Declares each table once: its entry in [`TABLES`], and its row as a struct.
macro_rules! tables {
    ($($row:ident $table:literal: $what:literal {
        $($column:ident $(as $name:literal)?: $kind:ident $summary:literal,)*
    })*) => {
        /// Every table of the trace.
        pub const TABLES: &[Table] = &[$(*<$row as Row>::TABLE),*];

        $(
            #[doc = concat!("A row of the table `", $table, "`: ", $what, ".")]
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $row {
                $(
                    #[doc = concat!($summary, ".")]
                    pub $column: Value,
                )*
            }

            impl Row for $row {
                const TABLE: &'static Table = &Table {
                    name: $table,
                    row: $what,
                    columns: &[$($kind(column_name!($column $($name)?), $summary)),*],
                };

                fn cells(&self) -> impl Iterator<Item = &Value> {
                    [$(&self.$column),*].into_iter()
                }

                fn from_cells(mut cell: impl FnMut(&'static Column) -> Value) -> Self {
                    let mut columns = Self::TABLE.columns.iter();
                    $row { $($column: cell(columns.next().expect("each field has its column"))),* }
                }
            }
        )*
    };
}

tables! {
    Run "run": "the run" {
        run_key: text "unique name of the run in its evaluation",
        backend: text "testbed or simulator",
        seed: count "seed of every random element of the run",
        scenario: text "name of the scenario",
        network: text "name of the network",
        congestion: text "congestion control asked for at the server, or at the proxy's side of the clients",
        http: text "HTTP version asked for: h1 or h2",
        initial_window: segments "initial window asked for at the server",
        background: text "name of the background traffic",
        proxy: text "proxies on the path: none, a kind or the name of a table; several joined by +",
        user_agent: text "name of the user agent",
        page: text "name of the page",
        visit: count "number of the visit, 0 is the warm-up",
        warmup: flag "true for the visit that is kept apart from the statistics",
        attempt: count "1 for the first attempt",
        started_unix: ns "wall clock at the run's epoch, nanoseconds since 1970",
        duration: ns "length of the run",
        verdict: text "valid, suspect or invalid",
        reasons: text "JSON list of {check, severity, found, expected}",
        kernel: text "release of the kernel",
        browser: text "product and version of the browser",
        wirepaint: text "version of wirepaint",
        sysctls: text "JSON object: sysctls in force in the server and client namespaces",
        server_congestion: text "congestion control that the kernel reports for the server's sockets, or the proxy's towards clients",
        client_congestion: text "congestion control that the kernel reports for the client's namespace",
        server_initial_window: segments "initial window that the kernel reports for the server's sockets",
        ahead_bytes: bytes "what a PEP sent ahead over the main hop, heads included",
        ahead_unused_bytes: bytes "of these, what no browser asked for",
    }
    Page "page": "one page visit" {
        visit: count "number of the visit in the run",
        user_agent: text "name of the user agent",
        page: text "name of the page",
        url: text "address of the base document",
        navigation_start: ns "navigation start",
        base_request_sent: ns "request of the base document sent (the last one after redirects)",
        base_first_byte: ns "first byte of the base document",
        base_last_byte: ns "last byte of the base document",
        first_paint: ns "first paint",
        first_contentful_paint: ns "first contentful paint (W3C Paint Timing)",
        largest_contentful_paint: ns "last candidate before the end of the visit (W3C LCP)",
        viewport_complete: ns "last object of the first view port loaded and painted",
        dom_content_loaded: ns "DOMContentLoaded event fired",
        load_event: ns "load event fired",
        speed_index: ms "speed index from screencast frames",
        objects: count "objects loaded",
        failed_objects: count "objects that failed",
        expected_objects: count "objects that the recording holds",
        encoded_bytes: bytes "response bytes as transferred, headers included",
        decoded_bytes: bytes "body bytes after content decoding",
        connections: count "connections that carried a request",
        surplus_connections: count "connections opened that never carried a request",
    }
    Object "object": "one request" {
        visit: count "number of the visit in the run",
        request: text "id of the request, unique in the run",
        page: text "name of the page",
        url: text "address",
        host: text "host of the address",
        kind as "type": text "html, css, js, image, font, media, data or other",
        method: text "HTTP method",
        status: count "HTTP status",
        protocol: text "http/1.1, h2 or h3",
        connection: count "id of the connection that carried it",
        first_on_connection: flag "true for the first request of its connection",
        initiator: text "address of the object that caused the request",
        initiator_type: text "parser, script, preload, redirect or other",
        priority: text "priority that the browser gave the request",
        in_viewport: flag "true when it paints in the first view port",
        served_by: text "origin; cache hit or cache miss (squid's X-Cache), or proxy for an answer of its own; ahead or pep for what a PEP sent ahead or was asked for; browser cache without a request, or revalidated (304)",
        discovered: ns "the browser knew of the object",
        queued: ns "waiting for a connection began",
        sent: ns "request sent",
        first_byte: ns "first byte of the response",
        last_byte: ns "last byte of the response",
        encoded_bytes: bytes "response bytes as transferred, headers included",
        decoded_bytes: bytes "body bytes after content decoding",
        failed: text "cause of a failure, null when it loaded",
    }
    Chunk "chunk": "bytes of an object arriving" {
        visit: count "number of the visit in the run",
        request: text "id of the request",
        connection: count "id of the connection",
        time: ns "arrival at the browser",
        bytes: bytes "bytes that arrived",
    }
    Connection "connection": "one transport connection" {
        visit: count "number of the visit in the run; null for a flow",
        connection: count "id, unique in the run",
        client_address: text "address of the client",
        client_port: count "port of the client",
        server_address: text "address of the server",
        server_port: count "port of the server",
        host: text "host that the connection was opened for",
        protocol: text "http/1.1, h2 or h3; null when nothing was negotiated",
        encrypted: flag "true with TLS",
        congestion: text "congestion control of the server's socket as the kernel reports it",
        initial_window: segments "initial window of the server's socket as the kernel reports it",
        opened: ns "connect began (SYN sent)",
        connected: ns "TCP handshake done",
        tls_done: ns "TLS handshake done",
        first_request: ns "first request sent",
        last_byte: ns "last response byte received",
        closed: ns "connection closed; null when still open at the end",
        bytes_received: bytes "bytes received by the client, as transferred",
        bytes_sent: bytes "bytes sent by the client, as transferred",
        objects: count "requests that the connection carried",
        retransmitted_segments: segments "segments that the server retransmitted",
        min_rtt: ns "smallest round-trip time that the server saw",
        mss: bytes "maximum segment size of the server's socket",
        reason: text "request, or surplus for a connection that never carried one",
    }
    Tcp "tcp": "a sample of one connection's sender" {
        time: ns "time of the sample",
        connection: count "id of the connection",
        host: text "name of the host whose sender it is",
        side: text "server or client",
        server_address: text "address of the server",
        server_port: count "port of the server",
        client_address: text "address of the client",
        client_port: count "port of the client",
        event: text "ack, state or retransmit",
        cwnd: segments "congestion window",
        ssthresh: segments "slow-start threshold; null while infinite",
        srtt: ns "smoothed round-trip time; null before the first sample",
        in_flight: segments "segments in flight",
        state: text "Open, Disorder, CWR, Recovery or Loss",
        delivered: segments "segments delivered so far",
        lost: segments "segments marked lost so far",
        retransmitted: segments "segments retransmitted so far",
        pacing_rate: rate "pacing rate; null when not paced",
    }
    Group "group": "an event of a group of connections that share congestion control state" {
        time: ns "time of the event",
        algorithm: text "name of the congestion control's file",
        congestion: text "name that the instance is registered under",
        prefix: text "destinations of the group, such as 10.1.2.0/24",
        server: text "senders of the group, such as 10.65.0.0/24: hosts of one network are one server",
        slot: count "number of the group among those of its prefix and server",
        event: text "join, loss, leave, delay or undo",
        connection: count "id of the connection that caused it",
        server_address: text "address of the server",
        server_port: count "port of the server",
        client_address: text "address of the client",
        client_port: count "port of the client",
        members: count "members of the group after the event",
        cwnd_sum: segments "sum of the windows that the members contributed",
        ssthresh_sum: segments "sum of the slow-start thresholds that the members contributed",
        cwnd: segments "window that the algorithm tells the members; null for none",
        ssthresh: segments "slow-start threshold that it tells them; null for none",
    }
    Link "link": "a sample of one direction of a segment" {
        time: ns "time of the sample",
        segment: text "name of the segment",
        direction: text "down (server to client) or up",
        queue_packets: packets "packets in the queue",
        queue_bytes: bytes "bytes in the queue",
        offered_packets: packets "packets that arrived so far",
        offered_bytes: bytes "wire bytes that arrived so far",
        delivered_packets: packets "packets that left so far",
        delivered_bytes: bytes "wire bytes that left so far",
        queue_drops: packets "packets that the queue dropped so far",
        random_losses: packets "packets that the loss model dropped so far",
        lateness_max: ns "largest lateness of the emulator since the last sample; 0 in the simulator",
        capacity_bytes: bytes "bytes that the bottleneck could have carried so far; null when unlimited",
    }
    Client "client": "a client at the bottleneck, from the beginning of the run to its end" {
        host: text "name of the host: of a user, or client",
        address: text "its address",
        dscp: count "code point that the path sees on its packets; null for what they carry",
        sent_packets: packets "packets that it sent",
        sent_bytes: bytes "IP bytes that it sent",
        received_packets: packets "packets that it received",
        received_bytes: bytes "IP bytes that it received",
    }
    Packet "packet": "a packet at the bottleneck, on request" {
        segment: text "name of the segment",
        direction: text "down or up",
        time_in: ns "arrival at the bottleneck",
        time_due: ns "departure that the model computed; null when dropped",
        time_out: ns "departure in fact; null when dropped",
        dropped: text "queue, aqm, loss, or host: the far interface refused it; null when delivered",
        wire_bytes: bytes "IP bytes plus the link's overhead",
        connection: count "id of the connection",
        source_address: text "source address",
        source_port: count "source port",
        destination_address: text "destination address",
        destination_port: count "destination port",
        sequence: count "TCP sequence number",
        acknowledgement: count "TCP acknowledgement number",
        payload_bytes: bytes "TCP or UDP payload",
        flags: text "TCP flags, of SAFRPUEW",
    }
    Flow "flow": "one interval of a flow without a browser" {
        flow: text "name of the flow",
        sender: text "server or client",
        connection: count "id of the connection",
        started: ns "start of the flow",
        ended: ns "end of the flow",
        rate_asked: rate "rate asked for; null unless the flow has a constant rate",
        bytes: bytes "bytes that the flow transferred in all",
        time: ns "end of the interval",
        received_bytes: bytes "bytes received in the interval",
        retransmitted: segments "segments that the sender retransmitted so far",
    }
    Message "message": "a message of a constant-rate flow, or an exchange of request and response" {
        flow: text "name of the flow",
        connection: count "id of the connection",
        due: ns "its write was due; of an exchange, the write of the request",
        read: ns "its last byte was read; of an exchange, that of the answer",
        bytes: bytes "bytes of the message; of an exchange, those of the answer",
    }
    Frame "frame": "a change of what the screen showed, from the browser's screencast" {
        visit: count "number of the visit in the run",
        time: ns "time of the frame",
        progress: share "share of the final picture that it shows, by histograms",
        picture: text "base64 of a WebP; null for frames that were thinned out",
    }
    Cpu "cpu": "a sample of the CPU time that a visit's browser used" {
        visit: count "number of the visit in the run",
        time: ns "time of the sample",
        browser: seconds "CPU time of all processes of the browser so far",
    }
    Host "host": "the machine while the run ran" {
        cpu_browser: seconds "CPU time of the browser's processes",
        cpu_server: seconds "CPU time of the replay server",
        cpu_emulator: seconds "CPU time of the emulator",
        cpu_foreign: seconds "CPU time of everything that is not ours",
        cpu_total: seconds "CPU time that the machine had: cores times duration",
        steal: seconds "CPU time stolen by the hypervisor",
        pressure: share "share of time in which a task waited for a CPU",
        lateness_p50: ns "median lateness of the emulator's departures",
        lateness_p99: ns "99th percentile of the lateness",
        lateness_max: ns "largest lateness",
    }
}
