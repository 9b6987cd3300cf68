//! What of a browser and its servers can be set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_units::Duration;

/// HTTP version that a browser and its servers agree on over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Http {
    /// HTTP/1.1.
    H1,
    /// HTTP/2.
    H2,
}

/// TLS version that servers speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Tls {
    /// TLS 1.3.
    #[default]
    #[serde(rename = "1.3")]
    V13,
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V12,
}

/// Browser and servers. The default is Chromium's headless shell with cold caches, and our replay
/// server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Newest HTTP version over TLS; over plain TCP it is always HTTP/1.1.
    pub http: Http,
    /// TLS version of encrypted origins.
    pub tls: Tls,
    /// Most connections to one origin; an HTTP/2 browser has as many on the way until it knows the
    /// protocol.
    pub connections_per_origin: u8,
    /// Requests on an HTTP/1.1 connection before the answer to the first; 1 is no pipelining.
    pub pipeline: u8,
    /// True uses one HTTP/2 connection for all origins of one address, as a browser does when the
    /// certificate names them all. In the testbed each origin has its own address.
    pub coalesce: bool,
    /// Time of a name look-up.
    pub dns_ns: Duration,
    /// True when parallel connections to an origin resume the TLS session of the first.
    pub resume: bool,
    /// Most plaintext in a TLS record of the server, in bytes.
    pub record_bytes: u32,
    /// Time that computing takes.
    pub compute: Compute,
    /// Per cent by which half a millisecond of each of these times is more or less, at random by the visit's
    /// seed; without it all visits would meet the queue in the same phase. Longer times vary by the square
    /// root of their parts: a layout of 30 ms by 9 % with the default, on the testbed by 5 to 10 %.
    pub compute_noise_percent: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            http: Http::H2,
            tls: Tls::V13,
            connections_per_origin: 6,
            pipeline: 1,
            coalesce: false,
            dns_ns: Duration::ZERO,
            resume: true,
            record_bytes: 16_384,
            compute: Compute::default(),
            compute_noise_percent: 70,
        }
    }
}

/// What a page load costs the machine. Scaling the times scales the machine.
///
/// Times are CPU time of the thread that does the work; threads share `cores`. The defaults are Chromium's
/// headless shell 156 with NetLog and screencast, as the testbed drives it, on the machine that the testbed
/// was built on: medians of `benches/browser_cost.py`, which measures each thread's CPU time on pages made
/// for it. Not from there, since they depend on what a text says: the main thread's times per 1024 bytes of
/// documents and style rules, per element, per layout and per request asked for, which are least squares over
/// the CPU times by kind of work in loads of the shipped pages (`benches/browser_work.py`), and its time for
/// scripts (eleven with recorded bodies, of 7 to 1533 KiB). Read from Chromium's trace of the same loads: the
/// first script or stylesheet (8 to 9 ms in the network process), the script of synthesised pages (6.2 to 9.2
/// ms), what a first layout takes beyond its CPU time on pages that name fonts (18 to 28 ms), the time to
/// pixels (31 ms after a layout, in the median, and 9 ms in which a layout waits for a frame). Not CPU times,
/// and read from unshaped loads: launch, pass, and the parts into which request and commit are divided.
/// `aside_threads` was not measured: it is the number with which the load times of those pages came out best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compute {
    /// Cores that browser, servers and what carries packets share.
    pub cores: u8,
    /// Navigation start to the first request in the network process; not CPU time.
    pub launch_ns: Duration,
    /// A message's way between the page's process and the network process; not CPU time.
    pub pass_ns: Duration,
    /// The network process, for each of its two flights of a TLS handshake.
    pub tls_ns: Duration,
    /// The network process, for each request.
    pub request_ns: Duration,
    /// The same, once, for the first script or stylesheet.
    pub first_code_ns: Duration,
    /// The network process, for each answer.
    pub respond_ns: Duration,
    /// The network process, for each 1024 bytes received.
    pub receive_ns_per_kib: Duration,
    /// The main thread, when the page's process takes over a document.
    pub commit_ns: Duration,
    /// The same for a frame.
    pub frame_commit_ns: Duration,
    /// The main thread, asking for a resource.
    pub ask_ns: Duration,
    /// The main thread, for each resource that has come.
    pub finish_ns: Duration,
    /// The main thread, looking a document through for what it loads, per 1024 bytes.
    pub html_ns_per_kib: Duration,
    /// The main thread, parsing a document, for each element of its body.
    pub html_ns_per_element: Duration,
    /// The main thread, running the script in a synthesised page that prepares what its scripts ask for.
    pub driver_ns: Duration,
    /// The main thread, parsing a stylesheet, per 1024 bytes.
    pub css_ns_per_kib: Duration,
    /// The main thread, running a script.
    pub js_ns: Duration,
    /// The same, per 1024 bytes.
    pub js_ns_per_kib: Duration,
    /// The main thread, for each style, layout and paint.
    pub layout_ns: Duration,
    /// The same, for each element that has none yet or new style rules.
    pub layout_ns_per_element: Duration,
    /// A first layout of a document that names fonts takes so much longer: it waits for the browser's own
    /// process, once for each family it looks for and once for each size of one that it finds. The shipped
    /// pages ask 23 to 53 times, 0.45 ms each while the machine is idle.
    pub fonts_ns: Duration,
    /// Layout to pixels, and the wait for a frame before it; not CPU time.
    pub paint_ns: Duration,
    /// The server, for each request beside its think time.
    pub answer_ns: Duration,
    /// The server, for a TLS handshake.
    pub server_tls_ns: Duration,
    /// The server and what carries packets, for each 1024 bytes.
    pub serve_ns_per_kib: Duration,
    /// How many other threads have work at a time; they share it evenly.
    pub aside_threads: u8,
    /// All other threads together, for a visit.
    pub aside_visit_ns: Duration,
    /// All other threads together, for each connection.
    pub aside_connection_ns: Duration,
    /// All other threads together, for each request.
    pub aside_request_ns: Duration,
    /// All other threads together, for each 1024 bytes received.
    pub aside_ns_per_kib: Duration,
    /// All other threads together, for each 1024 bytes of a script beyond that.
    pub aside_js_ns_per_kib: Duration,
}

impl Default for Compute {
    fn default() -> Compute {
        Compute {
            cores: 2,
            launch_ns: Duration::from_micros(4_000),
            pass_ns: Duration::from_micros(300),
            tls_ns: Duration::from_micros(300),
            request_ns: Duration::from_micros(500),
            first_code_ns: Duration::from_micros(8_000),
            respond_ns: Duration::from_micros(800),
            receive_ns_per_kib: Duration::from_micros(12),
            commit_ns: Duration::from_micros(6_500),
            frame_commit_ns: Duration::from_micros(15_000),
            ask_ns: Duration::from_micros(180),
            finish_ns: Duration::from_micros(570),
            html_ns_per_kib: Duration::from_micros(21),
            html_ns_per_element: Duration::from_micros(12),
            driver_ns: Duration::from_micros(6_000),
            css_ns_per_kib: Duration::from_micros(14),
            js_ns: Duration::from_micros(1_100),
            js_ns_per_kib: Duration::from_micros(11),
            layout_ns: Duration::from_micros(500),
            layout_ns_per_element: Duration::from_micros(70),
            fonts_ns: Duration::from_micros(20_000),
            paint_ns: Duration::from_micros(40_000),
            answer_ns: Duration::from_micros(120),
            server_tls_ns: Duration::from_micros(400),
            serve_ns_per_kib: Duration::from_micros(5),
            aside_threads: 8,
            aside_visit_ns: Duration::from_micros(37_000),
            aside_connection_ns: Duration::from_micros(500),
            aside_request_ns: Duration::from_micros(3_500),
            aside_ns_per_kib: Duration::from_micros(20),
            aside_js_ns_per_kib: Duration::from_micros(23),
        }
    }
}
