//! A browser in numbers. They stand in the catalogue (`catalog/browsers`), each with its source.

use crate::page::{Kind, MOST_TIME};
use crate::priority::Priority;
use crate::refused::Refused;
use crate::tls::Hello;
pub use crate::tls::Tls;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_http_model::{HttpVersion, RequestHeads};
use wirepaint_units::Duration;

/// A browser, as far as the model knows it, and what the run's transport tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Browser {
    /// Newest HTTP version over TLS; over plain TCP it is always HTTP/1.1. Told by the run's transport.
    #[serde(skip)]
    pub http: HttpVersion,
    /// TLS version of encrypted origins. Told by the run's transport.
    #[serde(skip)]
    pub tls: Tls,
    /// Most plaintext in a TLS record of the server, in bytes: 1 to 16384 (RFC 8446, 5.1). Told by the run's
    /// transport.
    #[serde(skip, default = "full_record")]
    pub record_bytes: u32,
    /// True uses one multiplexed connection for all origins of one address, as a browser does when the
    /// certificate names them all. In the testbed each origin has its own address.
    pub coalesce: bool,
    /// Time of a name look-up, at most a minute, as all times here.
    pub dns_ns: Duration,
    /// Most connections to one origin, at least 1; an HTTP/2 browser has as many on the way until it knows the
    /// protocol.
    pub connections_per_origin: u8,
    /// Requests on an HTTP/1.1 connection before the answer to the first, at least 1, which is no pipelining.
    pub pipeline: u8,
    /// True adds requests to a pipeline under way. False fills one only as it begins, on an idle connection that
    /// has been used before.
    pub pipeline_grows: bool,
    /// A second connect to an origin begins when the first has not succeeded within this time.
    pub backup_connect_ns: Duration,
    /// True when parallel connections to an origin resume the TLS session of the first.
    pub resume: bool,
    /// Most delayable requests under way; per origin, as many as its connections may carry. Requests to servers
    /// known to schedule by priority do not count. Redirected requests do not wait again.
    pub delayable_requests: u32,
    /// With this many requests under way, none of low priority starts before the body begins. This many of
    /// medium priority may always start.
    pub requests_before_body: u32,
    /// Bytes that the network process reads from a connection before it turns to the next, at least 1.
    pub read_bytes: u64,
    /// Messages from the page's process that the network process handles before its connections.
    pub messages_before_reading: u64,
    /// Images of style rules are requested after one part in so many of style, layout and paint, at least 1.
    pub style_share: u64,
    /// Priorities of requests.
    pub priorities: Priorities,
    /// Heads of requests.
    pub heads: RequestHeads,
    /// Sizes of its part in TLS handshakes, and of what opens an HTTP/2 connection.
    pub hello: Hello,
    /// Time that computing takes.
    pub compute: Compute,
    /// Per cent, at most 100, by which half a millisecond of each of these times is more or less, at random by
    /// the visit's seed; without it all visits would meet the queue in the same phase. Longer times vary by the
    /// square root of their parts.
    pub compute_noise_percent: u8,
}

fn full_record() -> u32 {
    16_384
}

/// The priority with which a browser asks for a resource, by kind and element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Priorities {
    /// Documents and frames.
    pub html: Priority,
    /// Style sheets.
    pub css: Priority,
    /// Fonts.
    pub font: Priority,
    /// Fonts that the document preloads.
    pub font_preloaded: Priority,
    /// Scripts at which the parser stops, before the first image.
    pub script: Priority,
    /// The same after an image.
    pub script_after_image: Priority,
    /// Scripts that the document preloads.
    pub script_preloaded: Priority,
    /// Asynchronous and deferred scripts, and those that scripts ask for.
    pub script_other: Priority,
    /// Fetches and posts.
    pub data: Priority,
    /// Images.
    pub image: Priority,
    /// A document's first images.
    pub image_first: Priority,
    /// How many images are first.
    pub first_images: u32,
    /// Images of fewer bytes than this are too small to be first.
    pub small_image_bytes: u64,
    /// Audio and video.
    pub media: Priority,
    /// Anything else.
    pub other: Priority,
    /// At least this where the page asks for a high priority.
    pub urgent: Priority,
    /// At most this where the page asks for a low one.
    pub idle: Priority,
    /// At least this for an image in the view port, once the layout is known.
    pub visible: Priority,
    /// Kinds whose answers take turns (RFC 9218, `i`).
    pub incremental: Vec<Kind>,
}

impl Browser {
    /// Refuses values that no visit can be carried out with.
    pub fn check(&self) -> Result<(), Refused> {
        let number = |key: &'static str, found: u32, least: u32, most: u32| (key, found, least, most);
        let numbers = [
            number("connections_per_origin", self.connections_per_origin.into(), 1, 255),
            number("pipeline", self.pipeline.into(), 1, 255),
            number("record_bytes", self.record_bytes, 1, 16_384),
            number("read_bytes", self.read_bytes.min(u32::MAX.into()) as u32, 1, u32::MAX),
            number("style_share", self.style_share.min(u32::MAX.into()) as u32, 1, u32::MAX),
            number("compute_noise_percent", self.compute_noise_percent.into(), 0, 100),
            number("compute.cores", self.compute.cores.into(), 1, 255),
            number("compute.aside_threads", self.compute.aside_threads.into(), 1, 255),
        ];
        let wrong = numbers.into_iter().find(|(_, found, least, most)| !(least..=most).contains(&found));
        if let Some((key, found, least, most)) = wrong {
            let accepted = format!("{least} to {most}");
            return Err(Refused { key: key.to_owned(), found: found.to_string(), accepted });
        }
        let mut compute = self.compute.clone();
        if compute.processor_ns == Duration::ZERO {
            let accepted = "at least 1 ns".to_owned();
            return Err(Refused { key: "compute.processor_ns".to_owned(), found: "0".to_owned(), accepted });
        }
        let times = compute.times().map(|(key, time)| (format!("compute.{key}"), *time));
        let others = [("dns_ns", self.dns_ns), ("backup_connect_ns", self.backup_connect_ns)];
        let mut times = others.into_iter().map(|(key, time)| (key.to_owned(), time)).chain(times);
        if let Some((key, time)) = times.find(|(_, time)| *time > MOST_TIME) {
            let accepted = format!("0 to {} ns", MOST_TIME.0);
            return Err(Refused { key, found: time.0.to_string(), accepted });
        }
        Ok(())
    }
}

/// What a page load costs a machine: [`Compute::on`] gives the times of a machine of another speed.
///
/// Times are CPU time of the thread that does the work; threads share `cores`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// Cores that browser, servers and what carries packets share, at least 1.
    pub cores: u8,
    /// Time of a fixed piece of work on the machine of these times (`wirepaint-dataplane speed`), at least 1.
    pub processor_ns: Duration,
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
    /// From a request until the stored answer is read from the browser's cache; not CPU time.
    #[serde(default = "cache_read")]
    pub cache_ns: Duration,
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
    /// How many other threads have work at a time, at least 1; they share it evenly. Chosen by outcome on the
    /// shipped pages: the number with which their load times came out best.
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

fn cache_read() -> Duration {
    Duration::from_millis(1)
}

impl Compute {
    /// The times on a machine where the fixed piece of work takes `processor`.
    pub fn on(&self, processor: Duration) -> Compute {
        let mut there = self.clone();
        let own = u128::from(self.processor_ns.0);
        for (_, time) in there.times() {
            let scaled = u128::from(time.0) * u128::from(processor.0) / own;
            *time = Duration(scaled.min(MOST_TIME.0.into()) as u64);
        }
        there
    }

    /// Every time, by key.
    fn times(&mut self) -> [(&'static str, &mut Duration); 31] {
        [
            ("processor_ns", &mut self.processor_ns),
            ("launch_ns", &mut self.launch_ns),
            ("pass_ns", &mut self.pass_ns),
            ("tls_ns", &mut self.tls_ns),
            ("request_ns", &mut self.request_ns),
            ("first_code_ns", &mut self.first_code_ns),
            ("respond_ns", &mut self.respond_ns),
            ("cache_ns", &mut self.cache_ns),
            ("receive_ns_per_kib", &mut self.receive_ns_per_kib),
            ("commit_ns", &mut self.commit_ns),
            ("frame_commit_ns", &mut self.frame_commit_ns),
            ("ask_ns", &mut self.ask_ns),
            ("finish_ns", &mut self.finish_ns),
            ("html_ns_per_kib", &mut self.html_ns_per_kib),
            ("html_ns_per_element", &mut self.html_ns_per_element),
            ("driver_ns", &mut self.driver_ns),
            ("css_ns_per_kib", &mut self.css_ns_per_kib),
            ("js_ns", &mut self.js_ns),
            ("js_ns_per_kib", &mut self.js_ns_per_kib),
            ("layout_ns", &mut self.layout_ns),
            ("layout_ns_per_element", &mut self.layout_ns_per_element),
            ("fonts_ns", &mut self.fonts_ns),
            ("paint_ns", &mut self.paint_ns),
            ("answer_ns", &mut self.answer_ns),
            ("server_tls_ns", &mut self.server_tls_ns),
            ("serve_ns_per_kib", &mut self.serve_ns_per_kib),
            ("aside_visit_ns", &mut self.aside_visit_ns),
            ("aside_connection_ns", &mut self.aside_connection_ns),
            ("aside_request_ns", &mut self.aside_request_ns),
            ("aside_ns_per_kib", &mut self.aside_ns_per_kib),
            ("aside_js_ns_per_kib", &mut self.aside_js_ns_per_kib),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::chromium;

    #[test]
    fn numbers_that_hang_or_do_nothing_are_refused_with_what_is_accepted() {
        type Change = fn(&mut Browser);
        let cases: [(Change, &str); 13] = [
            (|s| s.record_bytes = 0, "record_bytes: found 0, accepted: 1 to 16384"),
            (|s| s.record_bytes = 16_385, "record_bytes: found 16385, accepted: 1 to 16384"),
            (|s| s.connections_per_origin = 0, "connections_per_origin: found 0, accepted: 1 to 255"),
            (|s| s.pipeline = 0, "pipeline: found 0, accepted: 1 to 255"),
            (|s| s.compute_noise_percent = 101, "compute_noise_percent: found 101, accepted: 0 to 100"),
            (|s| s.compute.cores = 0, "compute.cores: found 0, accepted: 1 to 255"),
            (|s| s.compute.aside_threads = 0, "compute.aside_threads: found 0, accepted: 1 to 255"),
            (|s| s.compute.processor_ns.0 = 0, "compute.processor_ns: found 0, accepted: at least 1 ns"),
            (|s| s.read_bytes = 0, "read_bytes: found 0, accepted: 1 to 4294967295"),
            (|s| s.style_share = 0, "style_share: found 0, accepted: 1 to 4294967295"),
            (|s| s.dns_ns.0 = u64::MAX, "dns_ns: found 18446744073709551615, accepted: 0 to 60000000000 ns"),
            (
                |s| s.compute.launch_ns.0 = 60_000_000_001,
                "compute.launch_ns: found 60000000001, accepted: 0 to 60000000000 ns",
            ),
            (
                |s| s.compute.aside_js_ns_per_kib = Duration::from_secs(61),
                "compute.aside_js_ns_per_kib: found 61000000000, accepted: 0 to 60000000000 ns",
            ),
        ];
        for (change, refusal) in cases {
            let mut browser = chromium();
            change(&mut browser);
            assert_eq!(browser.check().unwrap_err().to_string(), refusal);
        }
        assert_eq!(chromium().check(), Ok(()));
    }

    #[test]
    fn every_time_of_compute_is_checked() {
        let json = serde_json::to_value(chromium().compute).unwrap();
        let mut keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        keys.retain(|key| key.contains("_ns"));
        let mut compute = chromium().compute;
        let mut known: Vec<&str> = compute.times().iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, keys);
    }

    #[test]
    fn a_machine_that_takes_twice_as_long_for_the_fixed_work_takes_so_for_all() {
        let own = chromium().compute;
        assert_eq!(own.on(own.processor_ns), own);
        let twice = own.on(Duration(2 * own.processor_ns.0));
        assert_eq!((twice.cores, twice.aside_threads), (own.cores, own.aside_threads));
        assert_eq!(twice.request_ns, Duration(2 * own.request_ns.0));
        assert_eq!(twice.on(own.processor_ns), own);
        let browser = Browser { compute: own.on(Duration(u64::MAX)), ..chromium() };
        assert_eq!(browser.check(), Ok(()), "no time grows beyond what is accepted");
    }
}
