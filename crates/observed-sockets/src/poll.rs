//! Waiting for sockets until an instant of the monotonic clock, exact to microseconds.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Most events of one wait; the others come with the next.
const EVENTS: usize = 256;

/// A set of sockets that are watched for changes, each under a number.
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poll {
    /// An empty set.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is new and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Poll { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS] })
    }

    /// Watches a socket for every change (edge-triggered).
    pub fn watch(&self, socket: &impl AsRawFd, number: usize) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: number as u64 };
        // SAFETY: both descriptors are open and `event` lives through the call.
        let done = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, socket.as_raw_fd(), &mut event)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for changes at most so long, and appends the numbers of the sockets.
    pub fn wait(&mut self, limit: Duration, numbers: &mut Vec<usize>) -> io::Result<()> {
        // epoll_wait counts milliseconds, ppoll nanoseconds.
        wait_readable(self.epoll.as_raw_fd(), limit)?;
        // SAFETY: the buffer has room for EVENTS events.
        let found = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), EVENTS as libc::c_int, 0)
        };
        match usize::try_from(found) {
            Ok(found) => numbers.extend(self.events[..found].iter().map(|event| event.u64 as usize)),
            Err(_) => return interrupted(),
        }
        Ok(())
    }
}

fn wait_readable(fd: RawFd, limit: Duration) -> io::Result<()> {
    let mut wanted = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    };
    // SAFETY: one descriptor and a valid time are given; a null mask changes no signal.
    let done = unsafe { libc::ppoll(&mut wanted, 1, &limit, std::ptr::null()) };
    if done < 0 { interrupted() } else { Ok(()) }
}

fn interrupted() -> io::Result<()> {
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}
