//! Waiting for the end of a verb: SIGTERM or SIGINT, without a handler.

use std::mem::MaybeUninit;
use std::time::Duration;

/// SIGTERM and SIGINT, blocked in this thread and in those that it starts.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks both signals; call before any thread starts and before the program says it is ready.
    pub fn block() -> Signals {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set before it is used; the calls take no other memory.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            set.assume_init()
        };
        Signals(set)
    }

    /// Waits until one of them arrives.
    pub fn wait(&self) {
        while !self.wait_for(Duration::from_secs(3600)) {}
    }

    /// Waits at most so long; true once one of them has arrived.
    pub fn wait_for(&self, limit: Duration) -> bool {
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        };
        // SAFETY: both pointers are to living values; no information on the signal is asked for.
        unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &limit) > 0 }
    }
}
