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

/// Browser and servers. The default is Chromium's headless shell with cold caches, and our replay
/// server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Newest HTTP version over TLS; over plain TCP it is always HTTP/1.1.
    pub http: Http,
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
    /// Per cent by which each of these times is more or less, at random by the visit's seed. Visits of
    /// a real browser differ as much; without it all visits would meet the queue in the same phase.
    pub compute_noise_percent: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            http: Http::H2,
            connections_per_origin: 6,
            pipeline: 1,
            coalesce: false,
            dns_ns: Duration::ZERO,
            resume: true,
            record_bytes: 16_384,
            compute: Compute::default(),
            compute_noise_percent: 20,
        }
    }
}

/// Time that a browser's computing takes. Scaling them scales the machine.
///
/// The defaults are Chromium's headless shell 156 on the machine that the testbed was built on
/// (2 cores): medians over the valid visits among three unshaped loads of each shipped page, browser,
/// server and emulator on the same cores, read from the tables object, connection and page. Parallel
/// work made single values two to three times as large; on a shaped path most of that hides behind
/// the transfer.
///
/// | constant | read as | values seen |
/// |---|---|---|
/// | launch | navigation start to SYN | 4.1 to 5.0 ms |
/// | tls | TCP connected to TLS done, less round trip and transmission, halved | 1.0 to 5 ms |
/// | pass, request | discovered to queued, of a lone request; distance of queued ones in a batch | 0.4 to 1.2 ms; 0.5 to 1.0 ms |
/// | receive | distance of last bytes in an unshaped load | 15 to 30 us per KiB |
/// | commit | last byte of a document in one record to its first discovery | 6.6 to 9.8 ms |
/// | css, layout | last stylesheet to what its rules name, by its size | 7.6 to 19 ms at 0 to 245 KiB |
/// | js | last byte of a script to its first effect | 25 to 57 ms at 1533 KiB, 2 ms at 90 KiB |
/// | paint | that layout to first paint | 43 to 78 ms |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Compute {
    /// Navigation start to the first connect.
    pub launch_ns: Duration,
    /// A byte's way from the socket to the page's process, or back.
    pub pass_ns: Duration,
    /// A connection's TLS work on each of its two flights at the browser.
    pub tls_ns: Duration,
    /// The network process, for each request.
    pub request_ns: Duration,
    /// The network process, for each 1024 bytes received.
    pub receive_ns_per_kib: Duration,
    /// First bytes of the document to the first of its text parsed: a page's process takes over.
    pub commit_ns: Duration,
    /// The same for a frame.
    pub frame_commit_ns: Duration,
    /// The main thread, for each resource that has come.
    pub finish_ns: Duration,
    /// Parsing a document, per 1024 bytes.
    pub html_ns_per_kib: Duration,
    /// Parsing a stylesheet, per 1024 bytes.
    pub css_ns_per_kib: Duration,
    /// Compiling and running a script, per 1024 bytes.
    pub js_ns_per_kib: Duration,
    /// Style and layout.
    pub layout_ns: Duration,
    /// Layout to pixels.
    pub paint_ns: Duration,
    /// The server, for each request beside its think time.
    pub answer_ns: Duration,
}

impl Default for Compute {
    fn default() -> Compute {
        Compute {
            launch_ns: Duration::from_micros(4_000),
            pass_ns: Duration::from_micros(700),
            tls_ns: Duration::from_micros(1_200),
            request_ns: Duration::from_micros(700),
            receive_ns_per_kib: Duration::from_micros(20),
            commit_ns: Duration::from_micros(6_500),
            frame_commit_ns: Duration::from_micros(15_000),
            finish_ns: Duration::from_micros(300),
            html_ns_per_kib: Duration::from_micros(20),
            css_ns_per_kib: Duration::from_micros(20),
            js_ns_per_kib: Duration::from_micros(20),
            layout_ns: Duration::from_micros(8_000),
            paint_ns: Duration::from_micros(50_000),
            answer_ns: Duration::from_micros(500),
        }
    }
}
