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

/// Pins the thread to the last CPU (receive packet steering keeps TCP input on the others), locks
/// the memory, asks for real-time priority and for timers without slack.
pub(crate) fn prepare() -> Conditions {
    // SAFETY: plain system calls on valid, initialised arguments.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize);
        let memory_locked = libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) == 0;
        let parameters = libc::sched_param { sched_priority: PRIORITY };
        let realtime = libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) == 0;
        Conditions { realtime, memory_locked, cpu: pin_to_last_cpu() }
    }
}

fn pin_to_last_cpu() -> Option<usize> {
    // SAFETY: the sets are plain bit masks of the size that is passed.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut allowed) != 0
            || libc::CPU_COUNT(&allowed) < 2
        {
            return None;
        }
        let last = (0..libc::CPU_SETSIZE as usize).rev().find(|cpu| libc::CPU_ISSET(*cpu, &allowed))?;
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(last, &mut one);
        (libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one) == 0).then_some(last)
    }
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
