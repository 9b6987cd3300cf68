//! How fast the processor is for what browsers do: a fixed piece of work on short texts in a map.
//!
//! It is the same on every machine, whatever Python runs there.

use std::collections::BTreeMap;
use std::hint::black_box;

/// As many as take the time of the loop in Python 3.11 by which earlier rehearsals measured machines.
const STEPS: u64 = 44_000;

/// CPU nanoseconds of the work: the shortest of so many times, at least once.
///
/// Time spent waiting for a CPU does not count.
pub fn shortest(times: u32) -> u64 {
    (0..times.max(1)).map(|_| took(work)).min().unwrap_or_default()
}

fn took(work: impl FnOnce()) -> u64 {
    let began = thread_time();
    work();
    thread_time() - began
}

fn work() {
    let (mut words, mut state) = (BTreeMap::<String, u64>::new(), 1_u64);
    for _ in 0..STEPS {
        // Knuth's linear congruential generator: its upper bits.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *words.entry(format!("{:x}", state >> 49)).or_default() += state & 7;
    }
    black_box(words.values().sum::<u64>());
}

fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn waiting_for_a_cpu_does_not_count() {
        assert!(took(|| std::thread::sleep(Duration::from_millis(300))) < 100_000_000);
    }

    #[test]
    fn the_shortest_of_no_times_is_of_one() {
        assert!(shortest(0) > 100_000);
    }
}
