//! Cost of a segment at the two endpoints, in nanoseconds of one core, for several windows: without loss, and
//! with one loss per window, so that the connection is always in recovery (Relentless keeps the window
//! large).
//!
//!     cargo run --release -p wirepaint-tcp-model --example cost

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use wirepaint_tcp_model::{Config, Endpoint, Peer, Segment};
use wirepaint_units::{Duration, Time};

const SEGMENTS: u64 = 2_000_000;
const DELAY: Duration = Duration::from_millis(50);

struct Loop {
    ends: [Endpoint; 2],
    flying: [VecDeque<(Time, Segment)>; 2],
    free_at: Time,
    spacing: Duration,
    loss: u64,
    sent: u64,
}

impl Loop {
    /// The server's segments are `spacing` apart. Without `loss` all arrive, else one in `loss` is lost.
    fn collect(&mut self, now: Time) {
        for side in 0..2 {
            while let Some(segment) = self.ends[side].transmit(now) {
                let mut due = now + DELAY;
                if side == 1 && segment.len > 0 {
                    self.sent += 1;
                    if self.loss > 0 && self.sent.is_multiple_of(self.loss) {
                        continue;
                    }
                    self.free_at = self.free_at.max(now) + self.spacing;
                    due = self.free_at + DELAY;
                }
                self.flying[side].push_back((due, segment));
            }
        }
    }

    fn run(&mut self) {
        let mut now;
        let mut received = 0;
        while received < SEGMENTS * 1448 {
            let due = |queue: &VecDeque<(Time, Segment)>| queue.front().map_or(Time::MAX, |front| front.0);
            let arrivals = [due(&self.flying[0]), due(&self.flying[1])];
            let timers = [0, 1].map(|side: usize| self.ends[side].next_timeout().unwrap_or(Time::MAX));
            now = arrivals[0].min(arrivals[1]).min(timers[0]).min(timers[1]);
            if let Some(from) = (0..2).find(|&from| arrivals[from] == now) {
                let (_, segment) = self.flying[from].pop_front().expect("it is due");
                self.ends[1 - from].receive(now, &segment);
                received += self.ends[0].read(now, u64::MAX);
            } else {
                let side = usize::from(timers[1] == now);
                self.ends[side].timeout(now);
            }
            if self.ends[1].is_established() && self.ends[1].unsent() < 4 << 20 {
                self.ends[1].write(now, 4 << 20);
            }
            self.collect(now);
        }
    }
}

/// CPU time of this process in nanoseconds.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the timespec, which lives.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn measure(window: u32, loss: u64) -> f64 {
    let parameters = BTreeMap::from([("fld_threshold".to_owned(), 1 << 60)]);
    let congestion = wirepaint_congestion_native::find("fld").and_then(|fld| fld.instance(&parameters));
    let mut config = Config::linux(congestion.expect("fld is shipped"));
    config.initial_window = window;
    config.sndbuf = Some(u64::MAX);
    config.rmem = [4_096, 256 << 20, 256 << 20];
    config.gso_max_segs = 1;
    let config = Arc::new(config);
    let now = Time::ZERO;
    let client = SocketAddr::from((Ipv4Addr::new(10, 1, 0, 2), 40_000));
    let server = SocketAddr::from((Ipv4Addr::new(10, 2, 0, 1), 443));
    let mut path = Loop {
        ends: [
            Endpoint::client(&config, Peer::new(client, server), now),
            Endpoint::server(&config, Peer::new(server, client), now),
        ],
        flying: Default::default(),
        free_at: now,
        spacing: Duration(100_000_000 / u64::from(window) + 1),
        loss,
        sent: 0,
    };
    path.collect(now);
    let start = cpu_ns();
    path.run();
    (cpu_ns() - start) as f64 / path.sent as f64
}

fn main() {
    println!("ns per data segment, both endpoints and a FIFO path (RTT 100 ms)");
    println!("{:>10} {:>12} {:>12}", "window", "no loss", "recovery");
    for window in [100, 1_000, 20_000] {
        println!("{window:>10} {:>12.0} {:>12.0}", measure(window, 0), measure(window, u64::from(window)));
    }
}
