//! The verb `probe`: measures a path.
//!
//! One process opens a socket in each network namespace, so one clock stamps departures and arrivals, and
//! one-way delays need no synchronisation. Arrivals are stamped by the kernel, so the receiver's wake-up does
//! not count.

mod tcp;
mod udp;

use crate::Error;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A measurement request, as one JSON object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Where packets come from.
    pub source: End,
    /// Where they go.
    pub destination: End,
    /// The measurement.
    pub measure: Measure,
}

/// One end of the path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// File of the network namespace, such as `/proc/PID/ns/net`.
    pub namespace: PathBuf,
    /// Address to bind to.
    pub address: Ipv4Addr,
}

/// The measurements.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Measure {
    /// UDP packets one way.
    Stream {
        /// What is sent.
        probes: Probes,
        /// Whether the result lists every arrival.
        #[serde(default)]
        arrivals: bool,
    },
    /// UDP packets there and back.
    Echo {
        /// What is sent.
        probes: Probes,
    },
    /// One TCP bulk transfer.
    Tcp {
        /// How long.
        duration_ns: u64,
        /// Congestion control of the sender.
        congestion: String,
        /// How long to wait for the connection, and for its end after that time.
        #[serde(default = "default_patience")]
        patience_ns: u64,
    },
}

fn default_patience() -> u64 {
    10_000_000_000
}

/// UDP packets and their times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    /// How many.
    pub packets: u64,
    /// Length of the IP packet.
    pub ip_bytes: usize,
    /// Time between departures; 0 sends them at once.
    pub interval_ns: u64,
    /// How long to wait after the last departure and after the last arrival.
    pub linger_ns: u64,
    /// Sleeps in steps and spins before each departure; otherwise it only catches up when late.
    #[serde(default)]
    pub punctual: bool,
    /// Code point of the packets (RFC 2474).
    #[serde(default)]
    pub dscp: u8,
}

/// Quantiles of a measured time in nanoseconds; null when nothing arrived.
#[derive(Clone, Debug, Serialize)]
pub struct Quantiles {
    min: Option<i64>,
    p50: Option<i64>,
    p99: Option<i64>,
    max: Option<i64>,
}

impl Quantiles {
    fn of(mut values: Vec<i64>) -> Quantiles {
        values.sort_unstable();
        let at = |share: f64| {
            let rank = (share * values.len() as f64).ceil() as usize;
            values.get(rank.saturating_sub(1)).copied()
        };
        Quantiles { min: values.first().copied(), p50: at(0.5), p99: at(0.99), max: values.last().copied() }
    }
}

/// The verb `probe REQUEST`: carries one measurement out and prints its result as JSON.
pub fn command(request: &str) -> Result<(), Error> {
    let request: Request =
        serde_json::from_str(request).map_err(|error| Error::Usage(format!("probe request: {error}")))?;
    let Request { source, destination, measure } = request;
    let result = match measure {
        Measure::Stream { probes, arrivals } => {
            let plan = udp::Plan::check(&probes)?;
            serde_json::to_value(udp::stream(&source, &destination, &plan, arrivals)?)
        }
        Measure::Echo { probes } => {
            serde_json::to_value(udp::echo(&source, &destination, &udp::Plan::check(&probes)?)?)
        }
        Measure::Tcp { duration_ns, congestion, patience_ns } => {
            accept("duration_ns", duration_ns, 1_000_000..=600_000_000_000)?;
            accept("patience_ns", patience_ns, 1_000_000..=600_000_000_000)?;
            serde_json::to_value(tcp::bulk(&source, &destination, duration_ns, patience_ns, &congestion)?)
        }
    };
    println!("{}", result.expect("a result is plain data"));
    Ok(())
}

/// Calls `open` in the network namespace of an end, in a new thread.
fn inside<T: Send>(end: &End, open: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let attempt = || format!("entering namespace {}", end.namespace.display());
    let namespace =
        File::open(&end.namespace).map_err(|source| Error::System { attempt: attempt(), source })?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: moves only this thread.
            if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(Error::last(attempt()));
            }
            open()
        });
        thread.join().expect("opening a socket does not panic")
    })
}

/// Refuses a value of the request outside the accepted range.
fn accept(key: &str, found: u64, accepted: RangeInclusive<u64>) -> Result<(), Error> {
    if accepted.contains(&found) {
        return Ok(());
    }
    let (least, most) = accepted.into_inner();
    Err(Error::Usage(format!("probe request: {key}: found {found}, accepted: {least} to {most}")))
}

/// Runs `finish` when it goes out of scope, even by a panic, because another thread waits for it.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn io(attempt: &str) -> impl FnOnce(std::io::Error) -> Error {
    let attempt = attempt.to_owned();
    move |source| Error::System { attempt, source }
}
