//! Kernel settings that let the thread wake on time.

use serde::Serialize;

/// Priority under SCHED_FIFO: above every ordinary task, below the kernel's own threads.
const PRIORITY: i32 = 50;

/// Conditions of the emulator. A missing right makes it late, not wrong.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Conditions {
    /// SCHED_FIFO was granted.
    pub realtime: bool,
    /// The memory is locked.
    pub memory_locked: bool,
    /// The CPU that the thread is pinned to; null on a machine with one.
    pub cpu: Option<usize>,
}

/// Real-time conditions; dropped, they end: what comes after a run must not hold up the emulators of others.
pub(crate) struct Realtime {
    pub conditions: Conditions,
    /// The CPUs that the process had before.
    allowed: Option<libc::cpu_set_t>,
}

impl Realtime {
    /// Pins the thread to `cpu`, or the last one (receive packet steering keeps TCP input on the others), locks
    /// the memory, asks for real-time priority and for timers without slack.
    pub fn begin(cpu: Option<usize>) -> Realtime {
        let allowed = allowed();
        // SAFETY: plain system calls without pointers.
        let memory_locked = unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize);
            libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) == 0
        };
        let realtime = schedule(libc::SCHED_FIFO, PRIORITY);
        let cpu = cpu.or_else(|| last_of_several(&allowed?)).filter(|cpu| pin_to(*cpu));
        Realtime { conditions: Conditions { realtime, memory_locked, cpu }, allowed }
    }
}

impl Drop for Realtime {
    fn drop(&mut self) {
        schedule(libc::SCHED_OTHER, 0);
        let _back = self.allowed.is_some_and(|allowed| set(&allowed));
    }
}

fn schedule(policy: libc::c_int, sched_priority: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the parameters live during the call.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) == 0 }
}

fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: the set is a plain bit mask of the size that is passed.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut allowed) == 0).then_some(allowed)
    }
}

fn last_of_several(allowed: &libc::cpu_set_t) -> Option<usize> {
    // SAFETY: the indices are below the size of the set.
    let mut cpus =
        (0..libc::CPU_SETSIZE as usize).rev().filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, allowed) });
    cpus.next().filter(|_| cpus.next().is_some())
}

fn pin_to(cpu: usize) -> bool {
    if cpu >= libc::CPU_SETSIZE as usize {
        return false;
    }
    // SAFETY: the index is below the size of the set.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut one);
        set(&one)
    }
}

fn set(cpus: &libc::cpu_set_t) -> bool {
    // SAFETY: the set is a plain bit mask of the size that is passed.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) == 0 }
}

/// CPU time of this process in nanoseconds.
pub(crate) fn cpu_time_ns() -> u64 {
    // SAFETY: an all-zero rusage is valid and is filled by the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only() -> Vec<usize> {
        let allowed = allowed().unwrap();
        // SAFETY: the indices are below the size of the set.
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &allowed) }).collect()
    }

    #[test]
    fn the_cpu_and_the_priority_are_given_back() {
        let before = only();
        let Some(&first) = before.first().filter(|_| before.len() > 1) else { return };
        for asked in [None, Some(first)] {
            let realtime = Realtime::begin(asked);
            let taken = asked.or(before.last().copied());
            assert_eq!(realtime.conditions.cpu, taken);
            assert_eq!(only(), taken.into_iter().collect::<Vec<_>>());
            drop(realtime);
            assert_eq!(only(), before);
            // SAFETY: it has no pointers.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_OTHER);
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_none() {
        for cpu in [libc::CPU_SETSIZE as usize - 1, usize::MAX] {
            assert_eq!(Realtime::begin(Some(cpu)).conditions.cpu, None);
        }
    }
}
