//! What a verb asks of the kernel for its own process: open files, its network namespace, its user.

use std::io;
use std::os::fd::RawFd;

/// Raises the limit of open files to the most that this process may have.
pub fn allow_many_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a valid structure. Where they fail, opening a socket says so.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Enters a network namespace: sockets are opened in it from here on.
pub fn enter_network(namespace: RawFd) -> io::Result<()> {
    // SAFETY: a plain system call; the result is checked.
    if unsafe { libc::setns(namespace, libc::CLONE_NEWNET) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Asks the kernel to kill this process when the thread that started it ends. False if the process of this number,
/// for which it works, has ended already; a program between the two may have started it.
pub fn die_with_parent(parent: i32) -> bool {
    // SAFETY: plain system calls; the signal 0 only asks whether a process is there.
    let (asked, there) =
        unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0, libc::kill(parent, 0) == 0) };
    // A process of another user may not be signalled, so it is there.
    asked && (there || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM))
}

/// If the process is root, becomes the ordinary user and group of this number for good. Call it before the
/// process reads what strangers wrote, while it has one thread.
pub fn become_user(number: u32) -> io::Result<()> {
    // SAFETY: plain system calls, checked below; the process has one thread.
    unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        let done = [
            libc::setgroups(0, std::ptr::null()),
            libc::setgid(number),
            libc::setuid(number),
            // A change of user clears this signal, so set it again: the process ends with its parent.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        ];
        if done.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// As [`become_user`], but the process may go on to configure sockets (CAP_NET_ADMIN): congestion controls that are
/// not open to everybody, and code points.
pub fn become_user_of_network(number: u32) -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    const NET_ADMIN: u32 = 1 << 12;
    #[repr(C)]
    struct Header(u32, libc::c_int);
    #[repr(C)]
    struct Sets([u32; 6]);
    // SAFETY: plain system calls; the structures have the kernel's layout (linux/capability.h).
    unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        if libc::prctl(libc::PR_SET_KEEPCAPS, 1) == -1 {
            return Err(io::Error::last_os_error());
        }
        become_user(number)?;
        let (header, sets) = (Header(VERSION_3, 0), Sets([NET_ADMIN, NET_ADMIN, 0, 0, 0, 0]));
        if libc::syscall(libc::SYS_capset, &raw const header, &raw const sets) == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
