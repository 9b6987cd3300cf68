//! The run's clock, and a timer that is exact to microseconds.
//!
//! Tokio's timer counts whole milliseconds; think times can be 0.1 ms and less.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;

pub use wirepaint_observed_sockets::monotonic;

/// Waits for instants of [`monotonic`] with one timerfd, created at the first wait.
#[derive(Default)]
pub struct Timer {
    fd: Option<AsyncFd<OwnedFd>>,
    armed: u64,
}

impl Timer {
    /// Ready once `deadline` (nanoseconds of [`monotonic`]) is reached. Call again with the same or another
    /// deadline after each wake-up; only the latest deadline wakes.
    pub fn poll_until(&mut self, cx: &mut Context<'_>, deadline: u64) -> Poll<io::Result<()>> {
        while monotonic() < deadline {
            let fd = match &mut self.fd {
                Some(fd) => fd,
                // SAFETY: an OwnedFd stays open and the same until it is dropped.
                none => none.insert(unsafe { AsyncFd::register(create()?) }?),
            };
            if self.armed != deadline {
                arm(fd.get_ref(), deadline)?;
                self.armed = deadline;
            }
            let mut guard = ready!(fd.poll_read_ready(cx))?;
            let mut expirations = [0u8; 8];
            // SAFETY: the buffer is valid for its 8 bytes, which is what a timerfd yields.
            unsafe { libc::read(fd.as_raw_fd(), expirations.as_mut_ptr().cast(), expirations.len()) };
            guard.clear_ready();
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until `deadline`.
    pub async fn until(&mut self, deadline: u64) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_until(cx, deadline)).await
    }
}

fn create() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the result is checked.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn arm(fd: &OwnedFd, deadline: u64) -> io::Result<()> {
    let at = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec {
            tv_sec: (deadline / 1_000_000_000) as libc::time_t,
            tv_nsec: (deadline % 1_000_000_000) as libc::c_long,
        },
    };
    // SAFETY: `at` is valid; a null pointer asks for no old value.
    let done =
        unsafe { libc::timerfd_settime(fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &at, std::ptr::null_mut()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_wait_of_300_us_ends_between_300_us_and_a_few_ms() {
        let mut timer = Timer::default();
        let mut late = Vec::new();
        for _ in 0..50 {
            let deadline = monotonic() + 300_000;
            timer.until(deadline).await.unwrap();
            let now = monotonic();
            assert!(now >= deadline);
            late.push(now - deadline);
        }
        late.sort_unstable();
        assert!(late[10] < 500_000, "lateness of the better fifth in ns: {late:?}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_deadline_in_the_past_does_not_wait() {
        let mut timer = Timer::default();
        timer.until(monotonic() - 1).await.unwrap();
        assert!(timer.fd.is_none());
    }
}
