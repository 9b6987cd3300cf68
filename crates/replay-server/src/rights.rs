//! The server reads what strangers recorded, so it serves as an ordinary user.

use std::io;

/// Numeric user and group of the server: not the browser's, so that neither can touch the other.
const USER: u32 = 65_533;

/// Becomes an ordinary user for good where the process is root; call once everything is opened.
pub fn give_up() -> io::Result<()> {
    // SAFETY: plain system calls, checked below; the process has one thread.
    unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        let done = [
            libc::setgroups(0, std::ptr::null()),
            libc::setgid(USER),
            libc::setuid(USER),
            // A change of user takes it away; with its parent the server ends.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        ];
        if done.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
