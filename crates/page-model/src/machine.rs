//! The machine that a visit runs on: threads that share its cores.
//!
//! On the testbed, browser, servers and emulator share a machine. On an unlimited path the page load is bound
//! by them. Each thread does its jobs in order. When more threads have work than there are cores, all
//! progress equally fast (processor sharing, which approximates Linux's scheduler over some milliseconds).

use std::collections::VecDeque;
use wirepaint_units::{Duration, Time};

/// The threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The page's main thread.
    Main,
    /// The network process.
    Network,
    /// The servers and what carries packets.
    Server,
    /// All others: the browser process, helpers of pages and network, the process that paints. Nothing waits
    /// for them, but they use CPU time.
    Aside(u8),
}

impl Thread {
    fn index(self) -> usize {
        match self {
            Thread::Main => 0,
            Thread::Network => 1,
            Thread::Server => 2,
            Thread::Aside(number) => 3 + usize::from(number),
        }
    }
}

/// Work is counted in these parts of a nanosecond, so that remainders of core shares do not add up.
const FINE: u64 = 1 << 10;

#[derive(Debug)]
struct Line<E> {
    /// Jobs behind the running one: work in ns, and the event at its end.
    jobs: VecDeque<(u64, Option<E>)>,
    /// Jobs that pass others: number of the job that it precedes, then as above.
    soon: VecDeque<(u64, u64, Option<E>)>,
    /// Jobs of `jobs` that began.
    begun: u64,
    /// Progress at which the running job ends, and its event.
    running: Option<(u64, Option<E>)>,
}

/// Threads on shared cores.
#[derive(Debug)]
pub struct Machine<E> {
    cores: u64,
    lines: Vec<Line<E>>,
    /// CPU time of each busy thread since the start, in parts of a nanosecond (`FINE`).
    progress: u64,
    /// The time of `progress`.
    now: Time,
}

impl<E> Machine<E> {
    /// An idle machine with `cores` cores (at least one) and `asides` threads of [`Thread::Aside`].
    pub fn new(cores: u8, asides: u8) -> Machine<E> {
        let line = |_| Line { jobs: VecDeque::new(), soon: VecDeque::new(), begun: 0, running: None };
        Machine {
            cores: u64::from(cores),
            lines: (0..3 + usize::from(asides)).map(line).collect(),
            progress: 0,
            now: Time::ZERO,
        }
    }

    /// Gives a thread a job; [`Machine::due`] returns `event` when it is done. Call that up to `now` first.
    pub fn give(&mut self, now: Time, thread: Thread, work: Duration, event: Option<E>) {
        self.advance(now);
        let line = &mut self.lines[thread.index()];
        line.jobs.push_back((work.0, event));
        line.start(self.progress);
    }

    /// The same, but at most `ahead` waiting jobs stay in front of it, besides all earlier jobs given this
    /// way.
    pub fn give_behind(&mut self, now: Time, thread: Thread, work: Duration, event: Option<E>, ahead: u64) {
        self.advance(now);
        let line = &mut self.lines[thread.index()];
        line.soon.push_back((line.begun + ahead, work.0, event));
        line.start(self.progress);
    }

    /// True while a thread has work.
    pub fn is_busy(&self, thread: Thread) -> bool {
        self.lines[thread.index()].running.is_some()
    }

    /// When the next job is done.
    pub fn next(&self) -> Option<Time> {
        let end =
            self.lines.iter().filter_map(|line| line.running.as_ref()).map(|running| running.0).min()?;
        let (busy, cores) = (self.busy(), self.cores);
        let left = u128::from(end.saturating_sub(self.progress));
        // Rounded up, so that the job is done then.
        let wait = (left * u128::from(busy.max(cores))).div_ceil(u128::from(cores * FINE));
        Some(self.now + Duration(wait as u64))
    }

    /// The next job with an event that is done by `now`: its time and event.
    pub fn due(&mut self, now: Time) -> Option<(Time, E)> {
        loop {
            let at = self.next().filter(|&at| at <= now)?;
            self.advance(at);
            let done = |line: &&mut Line<E>| line.running.as_ref().is_some_and(|job| job.0 <= self.progress);
            let line = self.lines.iter_mut().find(done).expect("a job is done by then");
            let (_, event) = line.running.take().expect("it ran");
            line.start(self.progress);
            if let Some(event) = event {
                return Some((at, event));
            }
        }
    }

    fn busy(&self) -> u64 {
        self.lines.iter().filter(|line| line.running.is_some()).count() as u64
    }

    /// Advances the running jobs to `now`, which is not after the end of any.
    fn advance(&mut self, now: Time) {
        let busy = self.busy();
        if busy > 0 && now > self.now {
            let passed = u128::from(now.0 - self.now.0);
            let gained = passed * u128::from(self.cores * FINE) / u128::from(busy.max(self.cores));
            self.progress += gained as u64;
        }
        self.now = self.now.max(now);
    }
}

impl<E> Line<E> {
    fn start(&mut self, progress: u64) {
        if self.running.is_some() {
            return;
        }
        let passes = self.soon.front().is_some_and(|first| first.0 <= self.begun || self.jobs.is_empty());
        let next = if passes {
            self.soon.pop_front().map(|(_, work, event)| (work, event))
        } else {
            self.jobs.pop_front().inspect(|_| self.begun += 1)
        };
        self.running = next.map(|(work, event)| (progress + work * FINE, event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(machine: &mut Machine<&'static str>) -> Vec<(u64, &'static str)> {
        std::iter::from_fn(|| machine.due(Time(u64::MAX / 2)).map(|(at, what)| (at.0, what))).collect()
    }

    #[test]
    fn as_many_threads_as_cores_do_not_slow_each_other() {
        let mut machine = Machine::new(2, 1);
        machine.give(Time(0), Thread::Main, Duration(1_000), Some("main"));
        machine.give(Time(0), Thread::Network, Duration(1_500), Some("network"));
        assert_eq!(all(&mut machine), [(1_000, "main"), (1_500, "network")]);
    }

    #[test]
    fn three_threads_on_two_cores_take_half_as_long_again() {
        let mut machine = Machine::new(2, 1);
        machine.give(Time(0), Thread::Main, Duration(1_000), Some("main"));
        machine.give(Time(0), Thread::Network, Duration(1_000), Some("network"));
        machine.give(Time(0), Thread::Aside(0), Duration(2_000), Some("aside"));
        assert_eq!(all(&mut machine), [(1_500, "main"), (1_500, "network"), (2_500, "aside")]);
    }

    #[test]
    fn a_thread_does_its_jobs_in_order_and_a_late_one_shares_from_then_on() {
        let mut machine = Machine::new(1, 0);
        machine.give(Time(0), Thread::Main, Duration(100), Some("first"));
        machine.give(Time(0), Thread::Main, Duration(100), Some("second"));
        assert_eq!(machine.due(Time(100)), Some((Time(100), "first")));
        machine.give(Time(150), Thread::Network, Duration(50), Some("other"));
        // Half of the second job is left; both continue at half the speed.
        assert_eq!(all(&mut machine), [(250, "second"), (250, "other")]);
    }

    #[test]
    fn a_job_passes_all_but_so_many_that_wait() {
        let mut machine = Machine::new(1, 0);
        for name in ["runs", "first", "second", "third"] {
            machine.give(Time(0), Thread::Network, Duration(10), Some(name));
        }
        for name in ["read", "write"] {
            machine.give_behind(Time(0), Thread::Network, Duration(0), Some(name), 2);
        }
        let ends = [(10, "runs"), (20, "first"), (30, "second"), (30, "read"), (30, "write"), (40, "third")];
        assert_eq!(all(&mut machine), ends);
    }

    #[test]
    fn silent_jobs_take_their_time() {
        let mut machine = Machine::new(1, 0);
        machine.give(Time(0), Thread::Server, Duration(70), None);
        machine.give(Time(0), Thread::Server, Duration(30), Some("after it"));
        assert!(machine.is_busy(Thread::Server) && !machine.is_busy(Thread::Main));
        assert_eq!(all(&mut machine), [(100, "after it")]);
    }
}
